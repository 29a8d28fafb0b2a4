//! `renv.lock`: which version of which package came from where.
//!
//! (renv documentation, article "lockfiles".) Fields this crate has no use for are kept, so that
//! reading and writing a lock file loses nothing. Lock files written here carry two fields of
//! their own, which renv ignores: the digests of the package's file.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::Error;

/// A whole lock file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Lockfile {
    /// The R the library was made with, and where its packages came from.
    #[serde(default)]
    pub r: LockedR,
    /// The release of Bioconductor, where it was used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bioconductor: Option<LockedBioconductor>,
    /// The packages by name.
    #[serde(default)]
    pub packages: BTreeMap<String, LockedPackage>,
    /// Everything else, as it was.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// The `R` part of a lock file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct LockedR {
    /// R's version, `4.2.2`.
    #[serde(default)]
    pub version: String,
    /// The repositories in the order of `getOption("repos")`.
    #[serde(default)]
    pub repositories: Vec<LockedRepository>,
    /// Everything else, as it was.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// A repository of a lock file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockedRepository {
    /// The name packages refer to it by: `CRAN`.
    #[serde(rename = "Name", default)]
    pub name: String,
    /// Its root, without `src/contrib`.
    #[serde(rename = "URL", default)]
    pub url: String,
}

/// The `Bioconductor` part of a lock file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct LockedBioconductor {
    /// The release, `3.16`.
    #[serde(default)]
    pub version: String,
    /// Everything else, as it was.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// One package of a lock file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct LockedPackage {
    /// The package's name.
    pub package: String,
    /// The version as its file name spells it.
    pub version: String,
    /// What kind of place it came from: `Repository`, `Bioconductor`, `GitHub`, ...
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The name or the URL of the repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repository: Option<String>,
    /// MD5 of the package's file in hexadecimal; not the `Hash` of renv, which is of the
    /// `DESCRIPTION`.
    #[serde(rename = "FileMD5", default, skip_serializing_if = "Option::is_none")]
    pub file_md5: Option<String>,
    /// SHA-256 of the package's file in hexadecimal.
    #[serde(rename = "FileSHA256", default, skip_serializing_if = "Option::is_none")]
    pub file_sha256: Option<String>,
    /// Everything else, as it was: `Hash`, `Requirements`, `RemoteType`, ...
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

impl LockedPackage {
    /// Whether the package comes from a repository of R packages, rather than from a forge, a URL
    /// or this machine.
    #[must_use]
    pub fn is_from_repository(&self) -> bool {
        matches!(self.source.as_deref(), None | Some("Repository" | "CRAN" | "Bioconductor"))
    }
}

impl Lockfile {
    /// Reads a lock file.
    ///
    /// # Errors
    /// [`Error::BadLockfile`], with the place in the file.
    pub fn read(bytes: &[u8]) -> Result<Self, Error> {
        serde_json::from_slice(bytes).map_err(Error::BadLockfile)
    }

    /// The lock file as text: two spaces a level, packages by name, a line break at the end.
    #[must_use]
    pub fn to_json(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).expect("string keys and plain values");
        text.push('\n');
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RENV: &str = r#"{
  "R": {
    "Version": "4.2.2",
    "Repositories": [
      { "Name": "CRAN", "URL": "https://cloud.r-project.org" }
    ]
  },
  "Bioconductor": { "Version": "3.16" },
  "Python": { "Version": "3.11" },
  "Packages": {
    "markdown": {
      "Package": "markdown",
      "Version": "1.0",
      "Source": "Repository",
      "Repository": "CRAN",
      "Requirements": ["mime"],
      "Hash": "4584a57f565dd7987d59dda3a02cfb41"
    },
    "mime": {
      "Package": "mime",
      "Version": "0.12.1",
      "Source": "GitHub",
      "RemoteType": "github"
    }
  }
}"#;

    #[test]
    fn nothing_is_lost_on_the_way() {
        let lock = Lockfile::read(RENV.as_bytes()).unwrap();
        assert_eq!(lock.r.repositories[0].url, "https://cloud.r-project.org");
        assert_eq!(lock.bioconductor.as_ref().unwrap().version, "3.16");
        assert_eq!(lock.packages["markdown"].version, "1.0");
        assert!(lock.packages["markdown"].is_from_repository());
        assert!(!lock.packages["mime"].is_from_repository());
        let before: Value = serde_json::from_str(RENV).unwrap();
        let after: Value = serde_json::from_str(&lock.to_json()).unwrap();
        assert_eq!(after, before);
    }

    #[test]
    fn our_digests_survive() {
        let mut lock = Lockfile::read(RENV.as_bytes()).unwrap();
        lock.packages.get_mut("mime").unwrap().file_md5 = Some("ab".repeat(16));
        assert_eq!(Lockfile::read(lock.to_json().as_bytes()).unwrap(), lock);
    }

    #[test]
    fn the_error_says_where() {
        let error = Lockfile::read(b"{\"Packages\": {\"a\": {\"Version\": \"1\"}}}").unwrap_err();
        let source = std::error::Error::source(&error).unwrap().to_string();
        assert!(source.contains("missing field `Package`"), "{source}");
    }
}
