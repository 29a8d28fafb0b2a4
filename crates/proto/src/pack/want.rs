//! Commits wanted and commits had: the request of `closure` and `check`.

use super::{Cursor, FrameKind, PackError, encode_head};
use crate::ostree::Checksum;

/// Most commits on either side of a request.
pub const COMMITS_MAX: usize = 1024;
const FLAG_COMMITMETA: u8 = 1;

/// Asks for what some commits need and others have not.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Want {
    /// Commits whose closure is asked for.
    pub wants: Vec<Checksum>,
    /// Commits whose whole closure the asker has.
    pub haves: Vec<Checksum>,
    /// How many generations of parents of each wanted commit are asked for.
    pub parents_max: u32,
    /// Whether to send the `.commitmeta` of each commit sent.
    pub commitmeta: bool,
}

impl Want {
    /// The frame.
    ///
    /// # Errors
    /// [`PackError::TooMany`] above [`COMMITS_MAX`] on either side.
    pub fn encode(&self) -> Result<Vec<u8>, PackError> {
        let mut frame = encode_head(FrameKind::Want).to_vec();
        frame.push(if self.commitmeta { FLAG_COMMITMETA } else { 0 });
        frame.extend_from_slice(&self.parents_max.to_be_bytes());
        for commits in [&self.wants, &self.haves] {
            let count = u16::try_from(commits.len())
                .ok()
                .filter(|&count| usize::from(count) <= COMMITS_MAX)
                .ok_or(PackError::TooMany { max: COMMITS_MAX as u64 })?;
            frame.extend_from_slice(&count.to_be_bytes());
        }
        for commit in self.wants.iter().chain(&self.haves) {
            frame.extend_from_slice(commit.as_bytes());
        }
        Ok(frame)
    }

    /// Reads a complete frame.
    ///
    /// # Errors
    /// [`PackError`] for anything but such a frame.
    pub fn decode(frame: &[u8]) -> Result<Self, PackError> {
        let mut cursor = Cursor::open(frame, FrameKind::Want)?;
        let [flags] = cursor.array()?;
        if flags & !FLAG_COMMITMETA != 0 {
            return Err(PackError::Record { tag: flags });
        }
        let parents_max = u32::from_be_bytes(cursor.array()?);
        let wants = usize::from(u16::from_be_bytes(cursor.array()?));
        let haves = usize::from(u16::from_be_bytes(cursor.array()?));
        if wants > COMMITS_MAX || haves > COMMITS_MAX {
            return Err(PackError::TooMany { max: COMMITS_MAX as u64 });
        }
        let mut commits = |count| {
            (0..count)
                .map(|_| cursor.array().map(Checksum::from_bytes))
                .collect::<Result<Vec<_>, _>>()
        };
        let (wants, haves) = (commits(wants)?, commits(haves)?);
        cursor.end()?;
        Ok(Self { wants, haves, parents_max, commitmeta: flags & FLAG_COMMITMETA != 0 })
    }
}
