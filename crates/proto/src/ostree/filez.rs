//! `.filez`, the file object of archive repositories: a header, then the content in raw deflate.
//!
//! Neither direction holds a file in memory: bytes are pushed in, bytes come out through a sink, the
//! object's name is known at the end. A file object's name does not depend on how it is compressed.

use super::checksum::Checksum;
use super::deflate::{Damaged, Deflate, Inflate, Progress};
use super::error::FormatError;
use super::file_header::{ContentHasher, FileHeader, LENGTH_PREFIX_BYTES};

/// What libostree compresses with (`archive.zlib-level`).
pub const COMPRESSION_LEVEL_DEFAULT: u32 = 6;

/// How much an object may ask of its reader.
#[derive(Debug, Clone, Copy)]
pub struct FilezLimits {
    /// Longest header in bytes: owner, link target and extended attributes.
    pub header_bytes_max: u32,
    /// Longest content in bytes, uncompressed; what the header states is refused above this before
    /// anything is inflated.
    pub content_bytes_max: u64,
}

impl Default for FilezLimits {
    /// 1 MiB of header (Linux allows 64 KiB of attributes) and 1 TiB of content.
    fn default() -> Self {
        Self { header_bytes_max: 1 << 20, content_bytes_max: 1 << 40 }
    }
}

/// Why bytes are not a sound `.filez`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FilezError {
    /// The header states more content than allowed.
    #[error("{stated} bytes of content are stated, {max} are allowed")]
    ContentTooLong {
        /// Stated length in bytes.
        stated: u64,
        /// The limit in bytes.
        max: u64,
    },
    /// More or less content than the header states.
    #[error("the content's length is not the {stated} bytes that the header states")]
    ContentLength {
        /// Stated length in bytes.
        stated: u64,
    },
    /// The content is not deflate.
    #[error("the compressed content is damaged")]
    Deflate,
    /// The header is broken.
    #[error(transparent)]
    Header(#[from] FormatError),
    /// The header's length is not possible.
    #[error("a header of {bytes} bytes is not possible")]
    HeaderLength {
        /// Stated length in bytes.
        bytes: u32,
    },
    /// Bytes after the end.
    #[error("bytes follow the end of the object")]
    TrailingBytes,
    /// The object ends early.
    #[error("the object ends early")]
    Truncated,
}

impl From<Damaged> for FilezError {
    fn from(Damaged: Damaged) -> Self {
        Self::Deflate
    }
}

/// What a `.filez` turned out to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filez {
    /// The name it hashes to; compare with the name it was fetched by.
    pub checksum: Checksum,
    /// Owner, mode, link target, attributes.
    pub header: FileHeader,
    /// Length in bytes of the content, uncompressed.
    pub content_bytes: u64,
}

/// Reads a `.filez` as it streams by, hashes it, and hands on the content.
#[derive(Debug)]
pub struct FilezDecoder {
    limits: FilezLimits,
    state: DecodeState,
}

#[derive(Debug)]
enum DecodeState {
    /// Collecting the length prefix, then the header.
    Head(Vec<u8>),
    Body(Box<Body>),
    /// A former push failed.
    Failed(FilezError),
}

#[derive(Debug)]
struct Body {
    header: FileHeader,
    hasher: ContentHasher,
    /// `None` for a symbolic link, which has no content at all.
    inflate: Option<Inflate>,
    ended: bool,
    stated: u64,
    left: u64,
}

impl FilezDecoder {
    /// Ready for the first byte.
    pub fn new(limits: FilezLimits) -> Self {
        Self { limits, state: DecodeState::Head(Vec::new()) }
    }

    /// Takes the next bytes; content goes to `sink` in pieces of at most 64 KiB.
    ///
    /// # Errors
    /// [`FilezError`]; the same error again for every later call.
    pub fn push(&mut self, input: &[u8], sink: &mut dyn FnMut(&[u8])) -> Result<(), FilezError> {
        self.advance(input, sink).inspect_err(|error| {
            self.state = DecodeState::Failed(error.clone());
        })
    }

    fn advance(&mut self, mut input: &[u8], sink: &mut dyn FnMut(&[u8])) -> Result<(), FilezError> {
        if let DecodeState::Head(head) = &mut self.state {
            take_until(head, &mut input, LENGTH_PREFIX_BYTES);
            if head.len() < LENGTH_PREFIX_BYTES {
                return Ok(());
            }
            let header_bytes = header_length(head, self.limits)?;
            take_until(head, &mut input, LENGTH_PREFIX_BYTES + header_bytes);
            if head.len() < LENGTH_PREFIX_BYTES + header_bytes {
                return Ok(());
            }
            let body = Body::new(&head[LENGTH_PREFIX_BYTES..], self.limits)?;
            self.state = DecodeState::Body(Box::new(body));
        }
        match &mut self.state {
            DecodeState::Body(body) => body.push(input, sink),
            DecodeState::Failed(error) => Err(error.clone()),
            DecodeState::Head(_) => Ok(()),
        }
    }

    /// The header, once it has been read.
    pub fn header(&self) -> Option<&FileHeader> {
        match &self.state {
            DecodeState::Body(body) => Some(&body.header),
            _ => None,
        }
    }

    /// Says that there are no more bytes.
    ///
    /// # Errors
    /// [`FilezError::Truncated`] or [`FilezError::ContentLength`], or the error of a former push.
    pub fn finish(self) -> Result<Filez, FilezError> {
        let body = match self.state {
            DecodeState::Body(body) => body,
            DecodeState::Failed(error) => return Err(error),
            DecodeState::Head(_) => return Err(FilezError::Truncated),
        };
        if !body.ended {
            return Err(FilezError::Truncated);
        }
        if body.left > 0 {
            return Err(FilezError::ContentLength { stated: body.stated });
        }
        let checksum = body.hasher.finish();
        Ok(Filez { checksum, header: body.header, content_bytes: body.stated })
    }
}

fn take_until(head: &mut Vec<u8>, input: &mut &[u8], bytes: usize) {
    let (taken, rest) = input.split_at(bytes.saturating_sub(head.len()).min(input.len()));
    head.extend_from_slice(taken);
    *input = rest;
}

fn header_length(head: &[u8], limits: FilezLimits) -> Result<usize, FilezError> {
    let prefix = head[..4].try_into().expect("invariant: the prefix is complete");
    let bytes = u32::from_be_bytes(prefix);
    if bytes == 0 || bytes > limits.header_bytes_max || head[4..LENGTH_PREFIX_BYTES] != [0; 4] {
        return Err(FilezError::HeaderLength { bytes });
    }
    usize::try_from(bytes).map_err(|_| FilezError::HeaderLength { bytes })
}

impl Body {
    fn new(header: &[u8], limits: FilezLimits) -> Result<Self, FilezError> {
        let (header, stated) = FileHeader::parse_archive(header)?;
        if stated > limits.content_bytes_max {
            return Err(FilezError::ContentTooLong { stated, max: limits.content_bytes_max });
        }
        if !header.is_regular() && stated != 0 {
            return Err(FilezError::ContentLength { stated });
        }
        let hasher = header.hasher();
        let inflate = header.is_regular().then(Inflate::new);
        let ended = inflate.is_none();
        Ok(Self { header, hasher, inflate, ended, stated, left: stated })
    }

    fn push(&mut self, input: &[u8], sink: &mut dyn FnMut(&[u8])) -> Result<(), FilezError> {
        let Self { hasher, inflate, ended, stated, left, .. } = self;
        if input.is_empty() {
            return Ok(());
        }
        let Some(inflate) = inflate.as_mut().filter(|_| !*ended) else {
            return Err(FilezError::TrailingBytes);
        };
        let progress = inflate.push(input, |content| {
            // Checked per piece: a bomb is noticed one buffer after what its header promised.
            *left = (*left)
                .checked_sub(content.len() as u64)
                .ok_or(FilezError::ContentLength { stated: *stated })?;
            hasher.update(content);
            sink(content);
            Ok::<(), FilezError>(())
        })?;
        if let Progress::Ended(taken) = progress {
            *ended = true;
            if taken < input.len() {
                return Err(FilezError::TrailingBytes);
            }
        }
        Ok(())
    }
}

/// Makes a `.filez` of a file, and its name.
#[derive(Debug)]
pub struct FilezEncoder {
    hasher: ContentHasher,
    deflate: Option<Deflate>,
    stated: u64,
    left: u64,
}

impl FilezEncoder {
    /// Starts an object with `content_bytes` of content (0 for a symbolic link) and writes its head
    /// to `sink`. `level` is 0 to 9, see [`COMPRESSION_LEVEL_DEFAULT`].
    pub fn new(
        header: &FileHeader,
        content_bytes: u64,
        level: u32,
        sink: &mut dyn FnMut(&[u8]),
    ) -> Self {
        let content_bytes = if header.is_regular() { content_bytes } else { 0 };
        sink(&header.encode_archive(content_bytes));
        Self {
            hasher: header.hasher(),
            deflate: header.is_regular().then(|| Deflate::new(level)),
            stated: content_bytes,
            left: content_bytes,
        }
    }

    /// Takes the next content.
    ///
    /// # Errors
    /// [`FilezError::ContentLength`] when there is more than announced: the file has grown.
    pub fn push(&mut self, content: &[u8], sink: &mut dyn FnMut(&[u8])) -> Result<(), FilezError> {
        self.left = self
            .left
            .checked_sub(content.len() as u64)
            .ok_or(FilezError::ContentLength { stated: self.stated })?;
        self.hasher.update(content);
        if let Some(deflate) = &mut self.deflate {
            deflate.push(content, sink);
        }
        Ok(())
    }

    /// Ends the object and returns its name.
    ///
    /// # Errors
    /// [`FilezError::ContentLength`] when there was less than announced: the file has shrunk.
    pub fn finish(mut self, sink: &mut dyn FnMut(&[u8])) -> Result<Checksum, FilezError> {
        if self.left > 0 {
            return Err(FilezError::ContentLength { stated: self.stated });
        }
        if let Some(deflate) = &mut self.deflate {
            deflate.finish(sink);
        }
        Ok(self.hasher.finish())
    }
}

#[cfg(test)]
mod tests;
