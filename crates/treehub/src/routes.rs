//! Which URL means what: a pure table.

use std::str::FromStr;

use trunkline_proto::ostree::delta::{self, DeltaName};
use trunkline_proto::ostree::{Checksum, ObjectId, RefName};

/// Longest namespace in bytes.
const NAMESPACE_BYTES_MAX: usize = 128;

/// A tenant: its objects and refs are its own.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Namespace(String);

/// The text is no namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "a namespace has 1 to {NAMESPACE_BYTES_MAX} letters, digits, `-`, `_`, `.`, and does not \
     begin with a dot"
)]
pub struct NamespaceError;

impl Namespace {
    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for Namespace {
    /// What Treehub calls its namespace when nobody names one.
    fn default() -> Self {
        Self("default".to_owned())
    }
}

impl FromStr for Namespace {
    type Err = NamespaceError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let safe = |c: u8| c.is_ascii_alphanumeric() || b"-_.".contains(&c);
        let fits = (1..=NAMESPACE_BYTES_MAX).contains(&text.len());
        if fits && text.bytes().all(safe) && !text.starts_with('.') {
            Ok(Self(text.to_owned()))
        } else {
            Err(NamespaceError)
        }
    }
}

/// What a path names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Route {
    /// `config`: the repository's mode.
    Config,
    /// `objects/xx/yyyy.type`.
    Object(ObjectId),
    /// `refs/heads/<name>`.
    Ref(RefName),
    /// `summary`, or `summary.sig` when true.
    Summary {
        /// Whether the signature is meant.
        signature: bool,
    },
    /// `deltas/xx/yyyy/<part>`.
    DeltaPart {
        /// Which delta.
        delta: DeltaName,
        /// Which of its files.
        part: String,
    },
    /// `deltas?from=&to=`.
    DeltaLookup,
    /// `manifests/<commit>`.
    Manifest(Checksum),
    /// `trunkline/<call>`: packs.
    Trunkline(Call),
    /// `/health`.
    Health,
    /// `/metrics`.
    Metrics,
}

/// The calls below `trunkline/`, see docs/protocol-pack.md.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    /// What the server offers, and where a ref points.
    Capabilities,
    /// Which of these objects are not there?
    Missing,
    /// Store these objects.
    Pack,
    /// Send these objects.
    Fetch,
    /// Send what these commits need and those have not.
    Closure,
    /// Is everything these commits need there and sound?
    Check,
}

/// Prefixes under which the API lies; the longer ones first. An empty one serves plain
/// `ostree remote add`.
const PREFIXES: [&str; 5] = ["/api/v2/mydevice/", "/api/v3/mydevice/", "/api/v2/", "/api/v3/", "/"];

impl Route {
    /// Reads the path of a URL, still percent-encoded; `None` when it names nothing here.
    ///
    /// Names that need percent-encoding do not occur in OSTree paths but in refs of other scripts;
    /// those are decoded by the caller.
    pub fn parse(path: &str) -> Option<Self> {
        match path {
            "/health" => return Some(Self::Health),
            "/metrics" => return Some(Self::Metrics),
            _ => {}
        }
        let path = PREFIXES.iter().find_map(|prefix| path.strip_prefix(prefix))?;
        let (head, rest) = path.split_once('/').unwrap_or((path, ""));
        Some(match (head, rest) {
            ("config", "") => Self::Config,
            ("summary", "") => Self::Summary { signature: false },
            ("summary.sig", "") => Self::Summary { signature: true },
            ("objects", path) => Self::Object(ObjectId::from_path(path).ok()?),
            ("refs", path) => Self::Ref(path.strip_prefix("heads/")?.parse().ok()?),
            ("manifests", commit) => Self::Manifest(commit.parse().ok()?),
            ("deltas", "") => Self::DeltaLookup,
            ("deltas", path) => {
                let mut parts = path.split('/');
                let delta = DeltaName::from_path(parts.next()?, parts.next()?)?;
                let part = parts.next().filter(|part| delta::is_part_name(part))?.to_owned();
                if parts.next().is_some() {
                    return None;
                }
                Self::DeltaPart { delta, part }
            }
            ("trunkline", call) => Self::Trunkline(Call::parse(call)?),
            _ => return None,
        })
    }
}

impl Call {
    fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "" => Self::Capabilities,
            "missing" => Self::Missing,
            "pack" => Self::Pack,
            "fetch" => Self::Fetch,
            "closure" => Self::Closure,
            "check" => Self::Check,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table() {
        let sum = Checksum::of(b"x");
        let hex = sum.to_string();
        let object = format!("objects/{}/{}.commit", &hex[..2], &hex[2..]);
        for prefix in PREFIXES {
            assert!(matches!(Route::parse(&format!("{prefix}{object}")), Some(Route::Object(_))));
            assert_eq!(Route::parse(&format!("{prefix}config")), Some(Route::Config));
            assert_eq!(
                Route::parse(&format!("{prefix}refs/heads/a/b")),
                Some(Route::Ref("a/b".parse().unwrap()))
            );
        }
        assert_eq!(Route::parse("/api/v3/trunkline/pack"), Some(Route::Trunkline(Call::Pack)));
        assert_eq!(Route::parse("/api/v3/trunkline"), Some(Route::Trunkline(Call::Capabilities)));
        assert_eq!(Route::parse(&format!("/api/v2/manifests/{hex}")), Some(Route::Manifest(sum)));
        let delta = DeltaName { from: None, to: sum };
        assert_eq!(
            Route::parse(&format!("/{}/superblock", delta.path())),
            Some(Route::DeltaPart { delta, part: "superblock".to_owned() })
        );
        for nothing in ["", "/api/v1/config", "/refs/heads/../x", "/objects/..", "/deltas/a/b/../x"]
        {
            assert_eq!(Route::parse(nothing), None, "{nothing}");
        }
    }

    #[test]
    fn namespaces_stay_in_their_directory() {
        assert!("a-b_1.c".parse::<Namespace>().is_ok());
        for bad in ["", ".", "..", ".x", "a/b", "a\0", "ä", &"x".repeat(129)] {
            assert_eq!(bad.parse::<Namespace>(), Err(NamespaceError), "{bad}");
        }
    }
}
