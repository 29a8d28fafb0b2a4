//! The repository's `config`: a key file, of which two keys matter here.

use trunkline_proto::ostree::COMPRESSION_LEVEL_DEFAULT;

/// How a repository stores files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// `archive-z2`, spelt `archive` as well: compressed, fit to be served.
    Archive,
    /// Files as they are, owned by their owners.
    Bare,
    /// Files owned by the user; owner, mode and attributes in an extended attribute.
    BareUser,
    /// As bare-user without owners and attributes.
    BareUserOnly,
}

impl Mode {
    /// The mode by its name in the config.
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "archive" | "archive-z2" => Self::Archive,
            "bare" => Self::Bare,
            "bare-user" => Self::BareUser,
            "bare-user-only" => Self::BareUserOnly,
            _ => return None,
        })
    }
}

#[derive(Debug)]
pub(super) struct Config {
    pub(super) mode: Option<String>,
    pub(super) compression_level: u32,
}

impl Config {
    /// Reads a key file; what is not understood is passed over, as libostree does.
    pub(super) fn parse(text: &str) -> Self {
        let mut section = "";
        let mut config = Self { mode: None, compression_level: COMPRESSION_LEVEL_DEFAULT };
        for line in text.lines().map(str::trim) {
            if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
                section = name;
            } else if let Some((key, value)) = line.split_once('=') {
                match (section, key.trim()) {
                    ("core", "mode") => config.mode = Some(value.trim().to_owned()),
                    ("archive", "zlib-level") => {
                        let level = value.trim().parse().ok().filter(|level| *level <= 9);
                        config.compression_level = level.unwrap_or(COMPRESSION_LEVEL_DEFAULT);
                    }
                    _ => {}
                }
            }
        }
        config
    }
}
