//! The chunked transfer coding (RFC 9112 §7.1), decoded in place. Pure: no sockets here.

#[cfg(test)]
mod tests;

use crate::error::ChunkError;

/// The most bytes of chunk extensions and trailer fields in one body. They carry nothing that is
/// used here, and a peer that sends many wants to waste time.
const EXTRA_BYTES_MAX: u32 = 64 * 1024;

/// A decoder over one body, fed with whatever pieces arrive.
#[derive(Clone, Debug)]
pub(super) struct ChunkedDecoder {
    state: State,
    extra_bytes: u32,
}

/// What stands next on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// A hexadecimal digit of the size, the first or a further one.
    Size {
        size: u64,
        digits: u8,
    },
    /// Blanks after the size, which some servers pad with.
    Blank {
        size: u64,
    },
    Extension {
        size: u64,
    },
    SizeLf {
        size: u64,
    },
    Data {
        left: u64,
    },
    DataCr,
    DataLf,
    /// A trailer line's first byte.
    Trailer,
    TrailerLine,
    TrailerLf,
    EndLf,
    End,
}

/// What one piece held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Decoded {
    /// Bytes of the body, now at the piece's beginning.
    pub(super) body: usize,
    /// Bytes of the piece that belong to the body's coding; fewer than all only at its end.
    pub(super) consumed: usize,
}

impl ChunkedDecoder {
    pub(super) fn new() -> Self {
        Self { state: State::Size { size: 0, digits: 0 }, extra_bytes: 0 }
    }

    /// Whether the last chunk and the trailers have been read.
    pub(super) fn is_done(&self) -> bool {
        self.state == State::End
    }

    /// Decodes `piece` in place.
    ///
    /// # Errors
    /// [`ChunkError`]; the decoder is of no further use then.
    pub(super) fn decode(&mut self, piece: &mut [u8]) -> Result<Decoded, ChunkError> {
        let mut body = 0;
        let mut at = 0;
        while at < piece.len() && self.state != State::End {
            if let State::Data { left } = self.state {
                let run = usize::try_from(left).unwrap_or(usize::MAX).min(piece.len() - at);
                piece.copy_within(at..at + run, body);
                body += run;
                at += run;
                let left = left - run as u64;
                self.state = if left == 0 { State::DataCr } else { State::Data { left } };
            } else {
                self.state = self.after(piece[at])?;
                at += 1;
            }
        }
        Ok(Decoded { body, consumed: at })
    }

    /// The state after one byte of the coding itself.
    fn after(&mut self, byte: u8) -> Result<State, ChunkError> {
        Ok(match (self.state, byte) {
            (State::Size { size, digits }, b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') => {
                let digit = char::from(byte).to_digit(16).map_or(0, u64::from);
                // Sixteen digits fill 64 bits; more would overflow, were they zeros or not.
                if digits == 16 {
                    return Err(ChunkError::Size);
                }
                State::Size { size: size << 4 | digit, digits: digits + 1 }
            }
            (State::Size { digits: 0, .. }, _) => return Err(ChunkError::Size),
            (State::Size { size, .. } | State::Blank { size }, b' ' | b'\t') => {
                self.count_extra()?;
                State::Blank { size }
            }
            (State::Size { size, .. } | State::Blank { size }, b';') => State::Extension { size },
            (
                State::Size { size, .. } | State::Blank { size } | State::Extension { size },
                b'\r',
            ) => State::SizeLf { size },
            (State::Size { .. } | State::Blank { .. }, _) => return Err(ChunkError::Size),
            (State::Extension { .. } | State::Trailer | State::TrailerLine, b'\n') => {
                return Err(ChunkError::Line);
            }
            (State::Extension { .. }, _) => {
                self.count_extra()?;
                self.state
            }
            (State::SizeLf { size: 0 }, b'\n') => State::Trailer,
            (State::SizeLf { size }, b'\n') => State::Data { left: size },
            (State::DataCr, b'\r') => State::DataLf,
            (State::DataLf, b'\n') => State::Size { size: 0, digits: 0 },
            (State::Trailer, b'\r') => State::EndLf,
            (State::TrailerLine, b'\r') => State::TrailerLf,
            (State::Trailer | State::TrailerLine, _) => {
                self.count_extra()?;
                State::TrailerLine
            }
            (State::TrailerLf, b'\n') => State::Trailer,
            (State::EndLf, b'\n') => State::End,
            _ => return Err(ChunkError::Line),
        })
    }

    fn count_extra(&mut self) -> Result<(), ChunkError> {
        self.extra_bytes += 1;
        if self.extra_bytes > EXTRA_BYTES_MAX {
            return Err(ChunkError::TooMuchExtra { bytes_max: EXTRA_BYTES_MAX });
        }
        Ok(())
    }
}
