//! Who moves what: each row's beginning, its command line, and how its end is judged.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};

use super::fixture::{BRANCH, Fixture, Repository, count_objects};
use super::hub::Hub;
use crate::command;
use crate::lab::{Nginx, SERVER_NAME};

/// How much the far side lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lacks {
    /// The whole commit.
    All,
    /// What is new in a commit after one that is there.
    Part,
    Nothing,
}

/// Where objects are pulled from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// Static files over HTTP/2.
    Nginx,
    Hub,
}

/// One row of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// One tar file of the repository, sent.
    TarPost,
    /// The same, fetched.
    TarGet {
        http1: bool,
    },
    OstreePull(Source, Lacks),
    Push {
        plain: bool,
        lacks: Lacks,
    },
    Pull {
        from: Source,
        plain: bool,
        lacks: Lacks,
    },
    Deploy(Lacks),
    Check {
        plain: bool,
    },
}

/// What rows work on.
#[derive(Debug)]
pub(super) struct Setting<'a> {
    pub(super) trunkline: &'a Path,
    pub(super) authority: &'a Path,
    pub(super) fixture: &'a Fixture,
    /// The folder that nginx serves; the fixture lies in it.
    pub(super) served: &'a Path,
    /// Where clients put what they pull; empty before each run.
    pub(super) out: &'a Path,
    pub(super) hub: &'a Hub,
    /// Where deploys go.
    pub(super) target: &'a Hub,
}

impl Way {
    pub(super) fn is_ours(self) -> bool {
        !matches!(self, Self::TarPost | Self::TarGet { .. } | Self::OstreePull(..))
    }

    /// Whether nginx's log tells what it did.
    pub(super) fn asks_nginx(self) -> bool {
        matches!(
            self,
            Self::TarPost
                | Self::TarGet { .. }
                | Self::OstreePull(Source::Nginx, _)
                | Self::Pull { from: Source::Nginx, .. }
        )
    }

    /// Whether our server works for it.
    pub(super) fn asks_hub(self) -> bool {
        !self.asks_nginx()
    }

    /// What is moved.
    fn wanted<'a>(self, setting: &Setting<'a>) -> &'a Repository {
        match self {
            Self::OstreePull(_, lacks)
            | Self::Push { lacks, .. }
            | Self::Pull { lacks, .. }
            | Self::Deploy(lacks)
                if lacks != Lacks::All =>
            {
                &setting.fixture.new
            }
            _ => &setting.fixture.old,
        }
    }

    /// Brings both sides to where the row begins.
    ///
    /// # Errors
    /// Files cannot be copied.
    pub(super) fn prepare(self, setting: &Setting<'_>) -> Result<()> {
        let far = |hub: &Hub, lacks: Lacks| -> Result<()> {
            hub.empty()?;
            match lacks {
                Lacks::All => Ok(()),
                Lacks::Part => setting.fixture.old.link_to(&hub.repository()),
                Lacks::Nothing => setting.fixture.new.link_to(&hub.repository()),
            }
        };
        let full = |hub: &Hub| -> Result<()> {
            hub.empty()?;
            self.wanted(setting).link_to(&hub.repository())
        };
        let mine = |lacks: Lacks| -> Result<()> {
            match lacks {
                Lacks::All => {
                    let repository = format!("--repo={}", target(setting).display());
                    let words = [repository.as_str(), "init", "--mode=archive-z2"];
                    command::output(std::process::Command::new("ostree").args(words)).map(drop)
                }
                Lacks::Part => setting.fixture.old.link_to(&target(setting)),
                Lacks::Nothing => setting.fixture.new.link_to(&target(setting)),
            }
        };
        match self {
            Self::TarPost | Self::TarGet { .. } => Ok(()),
            Self::Push { lacks, .. } => far(setting.hub, lacks),
            Self::Check { .. } => full(setting.hub),
            Self::Deploy(lacks) => {
                full(setting.hub)?;
                far(setting.target, lacks)
            }
            Self::Pull { lacks, from, .. } => {
                mine(lacks)?;
                if from == Source::Hub { full(setting.hub) } else { Ok(()) }
            }
            Self::OstreePull(from, lacks) => {
                mine(lacks)?;
                self.add_remote(setting, from)?;
                if from == Source::Hub { full(setting.hub) } else { Ok(()) }
            }
        }
    }

    /// Tells `ostree` where to pull from.
    fn add_remote(self, setting: &Setting<'_>, from: Source) -> Result<()> {
        let config = target(setting).join("config");
        // It may be a hard link to the fixture's.
        let text = fs::read_to_string(&config)?;
        fs::remove_file(&config)?;
        let (url, authority) = (self.url(setting, from), setting.authority.display());
        let remote =
            format!("[remote \"far\"]\nurl={url}\ngpg-verify=false\ntls-ca-path={authority}\n");
        Ok(fs::write(&config, format!("{text}\n{remote}"))?)
    }

    fn url(self, setting: &Setting<'_>, from: Source) -> String {
        match from {
            Source::Nginx => nginx_url(setting, &self.wanted(setting).path, Nginx::H2_PORT),
            Source::Hub => setting.hub.url(),
        }
    }

    /// Program and arguments.
    pub(super) fn command(self, setting: &Setting<'_>) -> Vec<String> {
        let authority = setting.authority.display().to_string();
        let tar = &setting.fixture.tar;
        let curl = ["curl", "-q", "-sS", "--fail", "--cacert", &authority];
        let target = target(setting).display().to_string();
        match self {
            Self::TarPost => {
                let file = format!("@{}", tar.display());
                let url = format!("https://{SERVER_NAME}:{}{}", Nginx::H1_PORT, Nginx::UPLOADS);
                // Else curl asks for leave to send, and waits a round trip.
                let post = ["-H", "Expect:", "-X", "POST", "-T", &file[1..], &url];
                words(&[&curl[..], &post[..]].concat())
            }
            Self::TarGet { http1 } => {
                let port = if http1 { Nginx::H1_PORT } else { Nginx::H2_PORT };
                let (file, url) = (format!("{target}.tar"), nginx_url(setting, tar, port));
                words(&[&curl[..], &["-o", &file, &url]].concat())
            }
            Self::OstreePull(..) => {
                let repository = format!("--repo={target}");
                words(&["ostree", &repository, "pull", "far", BRANCH])
            }
            Self::Push { plain, .. } => {
                let repository = self.wanted(setting).path.display().to_string();
                let verb = ["push", "--repo", &repository, "--ref", BRANCH];
                ours(setting, &verb, plain, &setting.hub.url())
            }
            Self::Pull { from, plain, .. } => {
                let verb = ["pull", "--repo", &target, "--ref", BRANCH];
                ours(setting, &verb, plain, &self.url(setting, from))
            }
            Self::Deploy(_) => {
                let (commit, from) = (&self.wanted(setting).commit, setting.hub.url());
                let verb = ["deploy", "--commit", commit, "--ref", BRANCH, "--from", &from];
                ours(setting, &verb, false, &setting.target.url())
            }
            Self::Check { plain } => {
                let verb = ["check", "--ref", &self.wanted(setting).commit];
                ours(setting, &verb, plain, &setting.hub.url())
            }
        }
    }

    /// Is everything where it belongs? `thoroughly` has `ostree fsck` look as well.
    ///
    /// # Errors
    /// It is not.
    pub(super) fn verify(self, setting: &Setting<'_>, thoroughly: bool) -> Result<()> {
        let wanted = self.wanted(setting);
        let (repository, branch) = match self {
            Self::TarPost | Self::TarGet { .. } | Self::Check { .. } => return Ok(()),
            Self::Push { .. } => (setting.hub.repository(), "refs/heads"),
            Self::Deploy(_) => (setting.target.repository(), "refs/heads"),
            Self::Pull { .. } => (target(setting), "refs/heads"),
            Self::OstreePull(..) => (target(setting), "refs/remotes/far"),
        };
        let commit = fs::read_to_string(repository.join(branch).join(BRANCH)).context("no ref")?;
        ensure!(commit.trim() == wanted.commit, "the ref points to {}", commit.trim());
        let objects = count_objects(&repository)?;
        ensure!(objects == wanted.objects, "{objects} objects in place of {}", wanted.objects);
        if thoroughly {
            let repository = format!("--repo={}", repository.display());
            let fsck = [repository.as_str(), "fsck", "-q"];
            command::output(std::process::Command::new("ostree").args(fsck))?;
        }
        Ok(())
    }
}

fn target(setting: &Setting<'_>) -> PathBuf {
    setting.out.join("repo")
}

fn nginx_url(setting: &Setting<'_>, path: &Path, port: u16) -> String {
    let path = path.strip_prefix(setting.served).unwrap_or(path).display();
    format!("https://{SERVER_NAME}:{port}/{path}")
}

fn ours(setting: &Setting<'_>, verb: &[&str], plain: bool, url: &str) -> Vec<String> {
    let (trunkline, authority) =
        (setting.trunkline.display().to_string(), setting.authority.display().to_string());
    let mut line = words(&[&trunkline, "ostree"]);
    line.extend(words(verb));
    line.extend(words(&["--json", "--cacert", &authority]));
    line.extend(plain.then(|| "--plain".to_owned()));
    line.push(url.to_owned());
    line
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}
