//! Where a repository keeps its packages, by type of package and version of R.

use std::{
    fmt,
    path::{Path, PathBuf},
    str::FromStr,
};

use trunkline_proto::cran::Version;

/// What kind of package is asked for (R: `type` of `install.packages()`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum PackageType {
    /// Source packages, `NAME_VERSION.tar.gz` under `src/contrib`.
    #[default]
    Source,
    /// Windows binaries, `.zip` under `bin/windows/contrib/X.Y`.
    WinBinary,
    /// macOS binaries, `.tgz` under `bin/macosx[/FLAVOUR]/contrib/X.Y`.
    MacBinary {
        /// The build's flavour, such as `big-sur-arm64`.
        flavour: Option<String>,
    },
}

/// A package type no R knows.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid package type \u{2018}{0}\u{2019}: use source, win.binary or mac.binary[.FLAVOUR]")]
pub struct InvalidPackageType(pub String);

impl FromStr for PackageType {
    type Err = InvalidPackageType;

    fn from_str(text: &str) -> Result<Self, InvalidPackageType> {
        match text {
            "source" => Ok(Self::Source),
            "win.binary" => Ok(Self::WinBinary),
            "mac.binary" => Ok(Self::MacBinary { flavour: None }),
            _ => match text.strip_prefix("mac.binary.") {
                Some(flavour) if !flavour.is_empty() && !flavour.contains('/') => {
                    Ok(Self::MacBinary { flavour: Some(flavour.to_owned()) })
                }
                _ => Err(InvalidPackageType(text.to_owned())),
            },
        }
    }
}

impl fmt::Display for PackageType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Source => f.write_str("source"),
            Self::WinBinary => f.write_str("win.binary"),
            Self::MacBinary { flavour: None } => f.write_str("mac.binary"),
            Self::MacBinary { flavour: Some(flavour) } => write!(f, "mac.binary.{flavour}"),
        }
    }
}

impl PackageType {
    /// The end of a package's file name, dot included.
    #[must_use]
    pub fn extension(&self) -> &'static str {
        match self {
            Self::Source => ".tar.gz",
            Self::WinBinary => ".zip",
            Self::MacBinary { .. } => ".tgz",
        }
    }
}

/// The R that packages are for: what the index filters ask about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Platform {
    /// R's version, `4.2.2`.
    pub r_version: Version,
    /// `.Platform$OS.type`: `unix` or `windows`.
    pub os_type: String,
    /// `.Platform$r_arch`, empty where R has no sub-architectures (everywhere but old Windows).
    pub subarch: String,
}

/// The folder of a repository that holds packages of one type (R: `contrib.url()`).
///
/// `repository` is a root such as `https://cloud.r-project.org/`; one slash at its end goes.
#[must_use]
pub fn contrib_url(repository: &str, package_type: &PackageType, r_version: &Version) -> String {
    let root = repository.strip_suffix('/').unwrap_or(repository);
    let series = series(r_version);
    match package_type {
        PackageType::Source => format!("{root}/src/contrib"),
        PackageType::WinBinary => format!("{root}/bin/windows/contrib/{series}"),
        PackageType::MacBinary { flavour: None } => format!("{root}/bin/macosx/contrib/{series}"),
        PackageType::MacBinary { flavour: Some(flavour) } => {
            format!("{root}/bin/macosx/{flavour}/contrib/{series}")
        }
    }
}

/// The series of an R version, the `X.Y` that binary packages depend on.
fn series(r_version: &Version) -> String {
    let mut numbers = r_version.numbers().iter();
    let major = numbers.next().copied().unwrap_or_default();
    let minor = numbers.next().copied().unwrap_or_default();
    format!("{major}.{minor}")
}

/// The path behind a `file:` URL in the three spellings R users write: `file:///path`,
/// `file://path` and `file:path`; `None` for any other URL.
///
/// R takes what follows literally, `%20` and spaces included.
#[must_use]
pub fn local_path(url: &str) -> Option<&Path> {
    let rest = url.strip_prefix("file:")?;
    let path = match rest.strip_prefix("//") {
        Some(path) if path.starts_with('/') => path,
        // An empty host is the only one a repository can have; R opens `//path`, the same file.
        Some(_) => rest.strip_prefix('/')?,
        None => rest,
    };
    Some(Path::new(path))
}

/// Joins a local folder and a `/`-separated relative path.
pub(crate) fn join_local(folder: &Path, relative: &str) -> PathBuf {
    relative.split('/').filter(|part| !part.is_empty()).fold(folder.to_owned(), |mut path, part| {
        path.push(part);
        path
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contrib_urls_are_rs() {
        let r = "4.2.2".parse().unwrap();
        let url =
            |package_type: &str| contrib_url("https://x.org/", &package_type.parse().unwrap(), &r);
        assert_eq!(url("source"), "https://x.org/src/contrib");
        assert_eq!(url("win.binary"), "https://x.org/bin/windows/contrib/4.2");
        assert_eq!(url("mac.binary"), "https://x.org/bin/macosx/contrib/4.2");
        let arm = "mac.binary.big-sur-arm64";
        assert_eq!(url(arm), "https://x.org/bin/macosx/big-sur-arm64/contrib/4.2");
        assert_eq!(arm.parse::<PackageType>().unwrap().to_string(), arm);
    }

    #[test]
    fn unknown_types_are_refused() {
        for text in ["", "both", "mac.binary.", "mac.binary.a/../b", "Source"] {
            assert_eq!(text.parse::<PackageType>(), Err(InvalidPackageType(text.to_owned())));
        }
    }

    #[test]
    fn file_urls_come_in_three_spellings() {
        for url in ["file:///srv/cran", "file:/srv/cran", "file://srv/cran"] {
            assert_eq!(local_path(url), Some(Path::new("/srv/cran")), "{url}");
        }
        assert_eq!(local_path("file:here"), Some(Path::new("here")));
        assert_eq!(local_path("file:///a b/c%20d"), Some(Path::new("/a b/c%20d")));
        assert_eq!(local_path("https://x.org"), None);
    }
}
