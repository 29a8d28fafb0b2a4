//! Our server, as a process on the lab's server host.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result};

use crate::lab::{Host, Lab, SERVER_ADDRESS, SERVER_NAME, wait_until};

/// The namespace that requests without one are in: a folder of the store.
const NAMESPACE: &str = "default";
/// The kernel's clock ticks a second, of which `/proc` tells CPU time (USER_HZ).
const TICKS_PER_SECOND: u64 = 100;

/// A running `trunkline treehub serve`; ended when dropped.
#[derive(Debug)]
pub(super) struct Hub {
    child: Child,
    root: PathBuf,
    port: u16,
}

/// What a server used until now.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Usage {
    pub(super) cpu: Duration,
    pub(super) memory_bytes_max: u64,
}

impl Hub {
    /// Starts one over an empty folder `root`, open to everybody.
    ///
    /// # Errors
    /// It does not start, or is not ready in time.
    pub(super) fn start(lab: &Lab, trunkline: &Path, root: PathBuf, port: u16) -> Result<Self> {
        fs::create_dir_all(&root)?;
        let log = root.with_extension("log");
        let child = lab
            .command(Host::Server)
            .arg(trunkline)
            .args(["treehub", "serve", "--anonymous", "push", "--root"])
            .arg(&root)
            .args(["--listen", &format!("{SERVER_ADDRESS}:{port}")])
            .arg("--tls-cert")
            .arg(&lab.certificates.server)
            .arg("--tls-key")
            .arg(&lab.certificates.server_key)
            .stdin(Stdio::null())
            .stdout(File::create(&log)?)
            .stderr(File::create(root.with_extension("err"))?)
            .spawn()
            .context("could not start our server")?;
        let hub = Self { child, root, port };
        wait_until("our server", || {
            fs::read_to_string(&log).is_ok_and(|text| text.starts_with("https://"))
        })?;
        Ok(hub)
    }

    /// The base URL of its API.
    pub(super) fn url(&self) -> String {
        format!("https://{SERVER_NAME}:{}/api/v3", self.port)
    }

    /// The repository in which it keeps what it gets.
    pub(super) fn repository(&self) -> PathBuf {
        self.root.join(NAMESPACE)
    }

    /// Makes it a server that has nothing. It keeps no state of its own beside the files.
    ///
    /// # Errors
    /// A file cannot be removed.
    pub(super) fn empty(&self) -> Result<()> {
        match fs::remove_dir_all(self.repository()) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.into()),
            _ => Ok(()),
        }
    }

    /// # Errors
    /// `/proc` tells nothing, since the process has ended.
    pub(super) fn usage(&self) -> Result<Usage> {
        let read = |file: &str| {
            fs::read_to_string(format!("/proc/{}/{file}", self.child.id()))
                .context("our server has ended")
        };
        let ticks = ticks(&read("stat")?).context("/proc/PID/stat has another form")?;
        let kib = peak_kib(&read("status")?).context("/proc/PID/status has another form")?;
        let cpu = Duration::from_millis(ticks * 1000 / TICKS_PER_SECOND);
        Ok(Usage { cpu, memory_bytes_max: kib * 1024 })
    }

    /// Forgets the memory peak of the past.
    pub(super) fn reset_peak(&self) {
        // Without the right to, the peak is that of all rows so far.
        let _ = fs::write(format!("/proc/{}/clear_refs", self.child.id()), "5");
    }
}

/// User and system time; the name before them may hold spaces and brackets.
fn ticks(stat: &str) -> Option<u64> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace().skip(11);
    Some(fields.next()?.parse::<u64>().ok()? + fields.next()?.parse::<u64>().ok()?)
}

fn peak_kib(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.split_whitespace().next()?.parse().ok()
}

impl Drop for Hub {
    fn drop(&mut self) {
        // It keeps nothing that a clean end would save.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_and_memory_are_read_from_proc() {
        let stat = "7 (a (b) c) S 1 7 7 0 -1 4194304 100 0 0 0 12 30 0 0 20 0 9 0 100 1 1";
        assert_eq!(ticks(stat), Some(42));
        assert_eq!(peak_kib("Name:\tx\nVmHWM:\t   2048 kB\n"), Some(2048));
        assert_eq!(peak_kib("Name:\tx\n"), None);
    }
}
