//! `cargo xtask setup`: what the tests and benches need from the machine.

mod packages;
mod service_guard;

use std::process::Command;

use anyhow::{Context as _, Result, bail};
use clap::Args;

use self::packages::{Need, PACKAGES, Package};
use self::service_guard::ServiceGuard;
use crate::command;

#[derive(Args, Default)]
pub(crate) struct Arguments {
    /// Only say what is missing; install nothing
    #[arg(long)]
    check: bool,
    /// Also what the benches need: the lab and the peers
    #[arg(long)]
    bench: bool,
    /// Also what the dependency check needs: cargo-deny
    #[arg(long)]
    lint: bool,
}

impl Arguments {
    /// What `cargo xtask test` needs.
    pub(crate) fn for_tests() -> Self {
        Self { lint: true, ..Self::default() }
    }

    /// What `cargo xtask bench` needs.
    pub(crate) fn for_benches() -> Self {
        Self { bench: true, ..Self::default() }
    }

    fn wants(&self, need: Need) -> bool {
        match need {
            Need::Tests => true,
            Need::Benches => self.bench,
        }
    }
}

/// Installs what is missing, or with `--check` fails when something is.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let missing: Vec<&Package> = PACKAGES
        .iter()
        .filter(|package| arguments.wants(package.need) && !package.is_present())
        .collect();
    let lacks_deny = arguments.lint && command::find_program("cargo-deny").is_none();
    if missing.is_empty() && !lacks_deny {
        println!("setup: everything is there");
        return Ok(());
    }
    for package in &missing {
        println!("setup: lacks {}: {} ({})", package.name, package.why, package.used_by);
    }
    if lacks_deny {
        println!("setup: lacks cargo-deny: licences, bans and sources of dependencies (deny.toml)");
    }
    if arguments.check {
        bail!("something is missing; `cargo xtask setup` installs it");
    }
    if !missing.is_empty() {
        install_packages(&missing)?;
    }
    if lacks_deny {
        install_cargo_deny()?;
    }
    Ok(())
}

fn install_packages(missing: &[&Package]) -> Result<()> {
    let names: Vec<&str> = missing.iter().map(|package| package.name).collect();
    let Some(apt_get) = command::find_program("apt-get") else {
        bail!(
            "this is no Debian system: install what these Debian packages hold, then run again: {}",
            names.join(" ")
        );
    };
    if !command::is_root() && command::find_program("sudo").is_none() {
        bail!("installing needs root: run `apt-get install {}` as root", names.join(" "));
    }
    let _guard = if missing.iter().any(|package| package.starts_service) {
        Some(ServiceGuard::raise()?)
    } else {
        None
    };
    let install = || {
        command::run(
            command::as_root("env")
                .args(["DEBIAN_FRONTEND=noninteractive", "RUNLEVEL=1"])
                .arg(&apt_get)
                .args(["install", "--yes", "--quiet", "--no-install-recommends"])
                .args(&names),
        )
    };
    // A fresh machine has no package lists, an old one stale lists: both show as a failed install.
    if install().is_err() {
        println!("setup: trying again with fresh package lists");
        command::run(command::as_root(&apt_get).args(["update", "--quiet"]))
            .context("could not refresh the package lists")?;
        install()?;
    }
    let still: Vec<&str> = missing
        .iter()
        .filter(|package| !package.is_present())
        .map(|package| package.name)
        .collect();
    if !still.is_empty() {
        bail!("installed without error, yet not found afterwards: {}", still.join(" "));
    }
    Ok(())
}

/// Built without optimisation: it runs for a second and would else build for many minutes.
fn install_cargo_deny() -> Result<()> {
    println!("setup: building cargo-deny, which takes some minutes, once");
    let mut cargo = Command::new(command::cargo().get_program());
    command::run(cargo.args(["install", "--locked", "--debug", "--quiet", "cargo-deny"]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_do_not_ask_for_what_only_benches_need() {
        assert!(!Arguments::for_tests().wants(Need::Benches));
        assert!(Arguments::for_benches().wants(Need::Tests));
    }
}
