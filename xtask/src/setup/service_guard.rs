//! Keeps a freshly installed package from starting its service.
//!
//! Debian asks `/usr/sbin/policy-rc.d` before it starts one. The file we lay down refuses only
//! while this process lives, so even if we are killed before taking it away it refuses nothing.

use std::path::Path;
use std::process::Stdio;

use anyhow::{Context as _, Result, bail};

use crate::command;

const POLICY: &str = "/usr/sbin/policy-rc.d";

/// While it lives, and no other policy was there before, no service is started.
#[derive(Debug)]
pub(super) struct ServiceGuard {
    owns_file: bool,
}

impl ServiceGuard {
    /// # Errors
    /// The policy file cannot be written.
    pub(super) fn raise() -> Result<Self> {
        if Path::new(POLICY).exists() {
            return Ok(Self { owns_file: false });
        }
        let mut install = command::as_root("install")
            .args(["-m", "755", "/dev/stdin", POLICY])
            .stdin(Stdio::piped())
            .spawn()
            .context("could not start `install`")?;
        let guard = Self { owns_file: true };
        let mut pipe = install.stdin.take().expect("stdin was asked for");
        std::io::Write::write_all(&mut pipe, policy(std::process::id()).as_bytes())?;
        drop(pipe);
        if !install.wait()?.success() {
            bail!("could not write {POLICY}, which keeps nginx's service from starting");
        }
        Ok(guard)
    }
}

impl Drop for ServiceGuard {
    fn drop(&mut self) {
        if self.owns_file
            && let Err(error) = command::run(command::as_root("rm").args(["-f", POLICY]))
        {
            eprintln!("warning: {POLICY} is still there, harmless now: {error}");
        }
    }
}

/// 101 is the policy layer's "forbidden"; 0 lets the service start.
fn policy(pid: u32) -> String {
    format!(
        "#!/bin/sh\n# Laid down by cargo xtask setup.\n[ -d /proc/{pid} ] && exit 101\nexit 0\n"
    )
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    fn verdict(pid: u32) -> Option<i32> {
        Command::new("sh").args(["-c", &policy(pid)]).status().unwrap().code()
    }

    #[test]
    fn the_policy_refuses_only_while_its_writer_lives() {
        assert_eq!(verdict(std::process::id()), Some(101));
        let mut gone = Command::new("true").spawn().unwrap();
        gone.wait().unwrap();
        assert_eq!(verdict(gone.id()), Some(0));
    }
}
