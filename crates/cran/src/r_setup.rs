//! What the R on this machine says about itself: one short process.

use std::{
    collections::HashMap,
    io,
    path::{Path, PathBuf},
    process::Stdio,
};

use tokio::process::Command;
use trunkline_proto::cran::{InvalidVersion, Version};

use crate::{closure::Installed, repository::Platform};

/// What R is set up to do, after its site's and its user's profile.
#[derive(Clone, Debug)]
pub struct RSetup {
    /// The R program that was asked.
    pub program: PathBuf,
    /// What the index filters ask about.
    pub platform: Platform,
    /// `getOption("repos")`: names (empty where there is none) and roots.
    pub repositories: Vec<(String, String)>,
    /// `getOption("pkgType")`.
    pub package_type: String,
    /// `getOption("HTTPUserAgent")`, by which some repositories choose what they serve.
    pub user_agent: Option<String>,
    /// `getOption("timeout")`, in seconds.
    pub timeout_s: Option<u32>,
    /// `.libPaths()`, in order.
    pub libraries: Vec<PathBuf>,
    /// What is installed in these libraries.
    pub installed: Installed,
}

/// Why R could not be asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RSetupError {
    /// The program cannot be started.
    #[error("cannot start {}: {source}; give another R with --r", program.display())]
    Start {
        /// The program.
        program: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// R ended with an error, most likely in a profile.
    #[error("{} failed to say how it is set up:\n{errors}", program.display())]
    Failed {
        /// The program.
        program: PathBuf,
        /// What it wrote to standard error.
        errors: String,
    },
    /// R's version is none.
    #[error(transparent)]
    Version(#[from] InvalidVersion),
    /// R said something else than it was asked.
    #[error("{} did not say {field}", program.display())]
    Incomplete {
        /// The program.
        program: PathBuf,
        /// What is missing.
        field: &'static str,
    },
}

/// One line for each fact: a word, then values between tabs. Profiles may print too, so every
/// line begins with a mark; `repos` may still hold the placeholder `@CRAN@`, which is left out.
const QUESTION: &str = r#"
local({
    say <- function(...) cat("trunkline:", paste(c(...), collapse = "\t"), "\n", sep = "")
    say("version", format(getRversion()))
    say("os", .Platform$OS.type)
    say("arch", .Platform$r_arch)
    say("type", getOption("pkgType"))
    if (is.character(ua <- getOption("HTTPUserAgent"))) say("agent", ua[1L])
    if (is.numeric(t <- getOption("timeout"))) say("timeout", as.integer(t[1L]))
    repos <- unlist(getOption("repos"))
    repos <- repos[!is.na(repos) & repos != "@CRAN@"]
    names <- if (is.null(names(repos))) rep("", length(repos)) else names(repos)
    for (i in seq_along(repos)) say("repo", names[i], repos[[i]])
    for (lib in .libPaths()) say("lib", lib)
    pkgs <- installed.packages(noCache = TRUE)
    for (i in seq_len(nrow(pkgs))) say("have", pkgs[i, "Package"], pkgs[i, "Version"])
})"#;
const MARK: &str = "trunkline:";

impl RSetup {
    /// Asks R, with the profiles it would read anyway.
    ///
    /// # Errors
    /// [`RSetupError`].
    pub async fn ask(program: &Path) -> Result<Self, RSetupError> {
        let output = Command::new(program)
            .args(["--no-echo", "--no-save", "--no-restore", "-e", QUESTION])
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .output()
            .await
            .map_err(|source| RSetupError::Start { program: program.to_owned(), source })?;
        if !output.status.success() {
            let errors = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            return Err(RSetupError::Failed { program: program.to_owned(), errors });
        }
        Self::parse(program, &String::from_utf8_lossy(&output.stdout))
    }

    fn parse(program: &Path, answer: &str) -> Result<Self, RSetupError> {
        let facts = || {
            let lines = answer.lines().filter_map(|line| line.strip_prefix(MARK));
            lines.map(|line| line.split('\t').collect::<Vec<_>>())
        };
        let values = |word: &str| -> Vec<Vec<&str>> {
            facts().filter(|fact| fact[0] == word).map(|fact| fact[1..].to_vec()).collect()
        };
        let one =
            |word: &str| values(word).first().and_then(|v| v.first()).map(ToString::to_string);
        let missing = |field| RSetupError::Incomplete { program: program.to_owned(), field };
        let mut installed: Installed = HashMap::new();
        for fact in values("have") {
            if let [name, version] = fact[..] {
                let version = version.parse::<Version>();
                installed.entry(name.to_owned()).or_default().extend(version);
            }
        }
        let repositories = values("repo").into_iter().filter_map(|fact| match fact[..] {
            [name, root] => Some((name.to_owned(), root.to_owned())),
            _ => None,
        });
        Ok(Self {
            program: program.to_owned(),
            platform: Platform {
                r_version: one("version").ok_or_else(|| missing("its version"))?.parse()?,
                os_type: one("os").ok_or_else(|| missing("its system"))?,
                subarch: one("arch").unwrap_or_default(),
            },
            repositories: repositories.collect(),
            package_type: one("type").ok_or_else(|| missing("its package type"))?,
            user_agent: one("agent").filter(|agent| !agent.is_empty()),
            timeout_s: one("timeout").and_then(|seconds| seconds.parse().ok()),
            libraries: values("lib").into_iter().flatten().map(PathBuf::from).collect(),
            installed,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_read_between_other_output() {
        let answer = "hello from a profile\ntrunkline:version\t4.2.2\ntrunkline:os\tunix\n\
                      trunkline:arch\t\ntrunkline:type\tsource\ntrunkline:agent\tR (4.2.2)\n\
                      trunkline:timeout\t60\ntrunkline:repo\tCRAN\thttps://x\n\
                      trunkline:repo\t\tfile:///srv\ntrunkline:lib\t/lib one\n\
                      trunkline:have\tstats\t4.2.2\ntrunkline:have\tzoo\t1.8-12\n\
                      trunkline:have\tzoo\t1.8-11\ngoodbye\n";
        let setup = RSetup::parse(Path::new("R"), answer).unwrap();
        assert_eq!(setup.platform.r_version, "4.2.2".parse().unwrap());
        assert_eq!(
            setup.repositories,
            [
                ("CRAN".to_owned(), "https://x".to_owned()),
                (String::new(), "file:///srv".to_owned()),
            ]
        );
        assert_eq!(setup.libraries, [PathBuf::from("/lib one")]);
        assert_eq!(setup.installed["zoo"].len(), 2);
        assert_eq!(setup.timeout_s, Some(60));
    }

    #[test]
    fn silence_is_an_error() {
        let error = RSetup::parse(Path::new("R"), "nothing\n").unwrap_err();
        assert_eq!(error.to_string(), "R did not say its version");
    }
}
