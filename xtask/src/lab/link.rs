//! The link between the hosts: a delay line of our own, since many kernels come without netem.

use std::fs::File;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result};

use super::{CLIENT_ADDRESS, Host, LinkSpec, SERVER_ADDRESS, namespace, wait_until};
use crate::command;

pub(super) const PID: &str = "tundelay.pid";
const SOURCE: &str = "bench/lab/tundelay.c";
const DEVICE: &str = "lab0";

/// Starts the delay line and gives its two ends their addresses.
pub(super) struct Link;

impl Link {
    /// # Errors
    /// The compiler, `ip` or the kernel fails; a started process is on record in `directory`.
    pub(super) fn up(name: &str, directory: &Path, spec: LinkSpec) -> Result<()> {
        let program = directory.join("tundelay");
        command::output(
            Command::new("gcc")
                .args(["-O2", "-pthread", "-o"])
                .arg(&program)
                .arg(command::workspace_root().join(SOURCE)),
        )?;
        let log = directory.join("tundelay.log");
        let (server, client) = (namespace(name, Host::Server), namespace(name, Host::Client));
        let one_way_us = spec.rtt.as_micros() / 2;
        let kbit = spec.mbit.unwrap_or(0.0) * 1000.0;
        let child = Command::new(&program)
            .args([&server, &client, &one_way_us.to_string(), &kbit.to_string()])
            .stdin(Stdio::null())
            .stdout(File::create(&log)?)
            .stderr(File::create(directory.join("tundelay.err"))?)
            .process_group(0) // Ctrl-C is for us; the lab is taken down in order
            .spawn()
            .context("could not start the delay line")?;
        std::fs::write(directory.join(PID), child.id().to_string())?;
        wait_until("the delay line", || {
            std::fs::read_to_string(&log).is_ok_and(|text| text.starts_with("up"))
        })?;
        for (space, own, peer) in
            [(server, SERVER_ADDRESS, CLIENT_ADDRESS), (client, CLIENT_ADDRESS, SERVER_ADDRESS)]
        {
            let ip =
                |words: &[&str]| command::run(Command::new("ip").args(["-n", &space]).args(words));
            ip(&["addr", "add", own, "peer", peer, "dev", DEVICE])?;
            ip(&["link", "set", DEVICE, "mtu", "1500", "txqueuelen", "10000", "up"])?;
        }
        Ok(())
    }
}
