//! Who is measured, and each one's command line.

use std::path::Path;

use anyhow::{Context as _, Result};

use super::cran;
use super::lists::Lists;
use super::r_ways::RWay;

/// How one row moves the files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tool {
    Ours {
        http1: bool,
        connections_max: Option<u32>,
    },
    /// A process for each file, one after the other.
    CurlEach,
    /// One process, 50 at a time.
    CurlParallel {
        http1: bool,
    },
    /// One process, one file.
    CurlOne {
        http1: bool,
    },
    /// So many files at a time, one connection each.
    Aria2 {
        files: u32,
    },
    /// One file over so many connections.
    Aria2Split {
        connections: u32,
    },
    Wget2,
    /// Throws bodies away.
    H2load {
        clients: usize,
        streams: u32,
    },
    /// R, its own ways and ours.
    R(RWay),
}

/// One row of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Peer {
    pub(super) label: &'static str,
    pub(super) tool: Tool,
    /// Slow rows are run no more often than this.
    pub(super) rounds_max: usize,
}

impl Peer {
    pub(super) const fn new(label: &'static str, tool: Tool) -> Self {
        Self { label, tool, rounds_max: usize::MAX }
    }

    /// For rows that take so long that two rounds must do.
    pub(super) const fn slow(label: &'static str, tool: Tool) -> Self {
        Self { label, tool, rounds_max: 2 }
    }

    /// Whether it leaves files behind that can be checked.
    pub(super) fn stores_files(&self) -> bool {
        match self.tool {
            Tool::H2load { .. } => false,
            Tool::R(way) => way.stores_files(),
            _ => true,
        }
    }

    /// Whether it is one of ours.
    pub(super) fn is_ours(&self) -> bool {
        match self.tool {
            Tool::Ours { .. } => true,
            Tool::R(way) => way.is_ours(),
            _ => false,
        }
    }
}

/// What a command line is made from.
#[derive(Debug)]
pub(super) struct Setting<'a> {
    pub(super) trunkline: &'a Path,
    pub(super) authority: &'a Path,
    pub(super) lists: &'a Lists,
    /// Where files go; empty before each run.
    pub(super) out: &'a Path,
}

impl Tool {
    /// Program and arguments.
    ///
    /// # Errors
    /// An input file cannot be written.
    pub(super) fn command(self, setting: &Setting<'_>) -> Result<Vec<String>> {
        let Setting { trunkline, authority, lists, out } = setting;
        let [trunkline, authority, out] =
            [trunkline, authority, out].map(|path| path.display().to_string());
        let urls = lists.urls().display().to_string();
        let line = match self {
            Self::Ours { http1, connections_max } => {
                let list = lists.named().display().to_string();
                let mut line = words(&[&trunkline, "get", "-q", "-i", &list, "-d", &out]);
                line.extend(words(&["--cacert", &authority]));
                if http1 {
                    line.push("--http1.1".to_owned());
                }
                if let Some(connections) = connections_max {
                    line.extend(["--max-connections".to_owned(), connections.to_string()]);
                }
                line
            }
            Self::CurlEach => {
                let script = "tab=$(printf '\\t'); while IFS=\"$tab\" read -r url name; do
                    curl -q -sS --fail --cacert \"$1\" -o \"$2/$name\" \"$url\" || exit 1
                    done < \"$3\"";
                let list = lists.named().display().to_string();
                words(&["sh", "-c", script, "sh", &authority, &out, &list])
            }
            Self::CurlParallel { http1 } => {
                let list = lists.curl().display().to_string();
                let mut line =
                    words(&["curl", "-q", "-sS", "--fail", "-Z", "--parallel-max", "50"]);
                line.extend(words(&["--cacert", &authority, "--output-dir", &out, "-K", &list]));
                line.extend(http1.then(|| "--http1.1".to_owned()));
                line
            }
            Self::CurlOne { http1 } => {
                let job = lists.jobs.first().context("an empty list")?;
                let target = format!("{out}/{}", job.name);
                let mut line = words(&["curl", "-q", "-sS", "--fail", "--cacert", &authority]);
                line.extend(words(&["-o", &target, &lists.url(job)]));
                line.extend(http1.then(|| "--http1.1".to_owned()));
                line
            }
            Self::R(way) => r(way, setting)?,
            Self::Aria2 { files } => {
                let list = lists.aria2().display().to_string();
                let mut line = aria2(&authority, &out);
                line.extend(words(&["-j", &files.to_string(), "-x1", "-i", &list]));
                line
            }
            Self::Aria2Split { connections } => {
                let job = lists.jobs.first().context("an empty list")?;
                let count = connections.to_string();
                let mut line = aria2(&authority, &out);
                line.extend(words(&["-x", &count, "-s", &count, "-o", &job.name, &lists.url(job)]));
                line
            }
            Self::Wget2 => {
                let mut line =
                    words(&["wget2", "--no-config", "-q", "--no-hsts", "--max-threads=10"]);
                line.push(format!("--ca-certificate={authority}"));
                line.extend(words(&["-P", &out, "-i", &urls]));
                line
            }
            Self::H2load { clients, streams } => {
                let (list, requests) = lists.share(clients)?;
                let list = list.display().to_string();
                let mut line = words(&["h2load", "-t", "1", "-c", &clients.to_string()]);
                line.extend(words(&["-m", &streams.to_string(), "-n", &requests.to_string()]));
                line.extend(words(&["-i", &list]));
                line
            }
        };
        Ok(line)
    }
}

fn aria2(authority: &str, out: &str) -> Vec<String> {
    let mut line = words(&["aria2c", "--no-conf=true", "-q", "--file-allocation=none"]);
    line.push(format!("--ca-certificate={authority}"));
    line.extend(words(&["-d", out]));
    line
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// Rscript with a profile that knows the server; behind our mirror where the way has one.
fn r(way: RWay, setting: &Setting<'_>) -> Result<Vec<String>> {
    let Setting { trunkline, authority, lists, out } = setting;
    let [trunkline, authority, out] =
        [trunkline, authority, out].map(|path| path.display().to_string());
    let base = lists.base();
    let profile = lists.directory.join("bench.Rprofile");
    std::fs::write(&profile, format!("options(repos = c(BENCH = '{base}'), timeout = 300)\n"))?;
    let mut line = words(&["env", &format!("CURL_CA_BUNDLE={authority}")]);
    line.push(format!("R_PROFILE_USER={}", profile.display()));
    if way.has_mirror() {
        let cache = lists.directory.join("mirror");
        if way == RWay::MirrorCold && cache.exists() {
            std::fs::remove_dir_all(&cache)?;
        }
        let cache = cache.display().to_string();
        line.extend(words(&[&trunkline, "cran", "with-mirror", "-q", "--cacert", &authority]));
        line.extend(words(&["--cache", &cache, "--"]));
    }
    let (code, urls) = (way.code(), lists.urls().display().to_string());
    let library = cran::library().display().to_string();
    line.extend(words(&["Rscript", "--no-save", "--no-restore", "--no-site-file", "-e", &code]));
    line.extend(words(&[&out, &urls, base, &library]));
    Ok(line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::fixtures::Entry;

    fn command(tool: Tool) -> String {
        let directory = tempfile::tempdir().unwrap();
        let entry = Entry { path: "large/image.bin".into(), bytes: 1, md5: String::new() };
        let lists = Lists::write(directory.path(), "https://h", &[entry], 1).unwrap();
        let setting = Setting {
            trunkline: Path::new("trunkline"),
            authority: Path::new("ca.pem"),
            lists: &lists,
            out: Path::new("out"),
        };
        let line = tool.command(&setting).unwrap().join(" ");
        line.replace(&*directory.path().to_string_lossy(), "IN")
    }

    #[test]
    fn ours_is_told_no_more_than_a_user_would() {
        assert_eq!(
            command(Tool::Ours { http1: true, connections_max: Some(16) }),
            "trunkline get -q -i IN/named -d out --cacert ca.pem --http1.1 --max-connections 16"
        );
    }

    #[test]
    fn a_single_file_is_named_by_its_url() {
        assert_eq!(
            command(Tool::CurlOne { http1: false }),
            "curl -q -sS --fail --cacert ca.pem -o out/image.bin https://h/large/image.bin"
        );
        assert!(command(Tool::Aria2Split { connections: 6 }).ends_with("/large/image.bin"));
    }

    #[test]
    fn h2load_asks_for_as_many_as_the_list_has() {
        assert!(command(Tool::H2load { clients: 1, streams: 128 }).contains("-m 128 -n 1 -i"));
    }
}
