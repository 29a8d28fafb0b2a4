//! Requests of the transmission phase: decoding a header, and judging it.

use bytes::{Buf, BufMut};
use thiserror::Error;

use super::agreement::{Agreement, ReplyStyle};
use super::constants::{
    EXTENDED_REQUEST_BYTES, EXTENDED_REQUEST_MAGIC, REQUEST_BYTES, REQUEST_MAGIC, command,
};
use super::flags::{CommandFlags, TransmissionFlags};

#[cfg(test)]
mod tests;

/// Error codes on the wire ("Error values").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum WireError {
    /// Operation not permitted: a write to a read-only export.
    NotPermitted = 1,
    /// Input or output failed.
    Io = 5,
    /// Out of memory.
    NoMemory = 12,
    /// The request makes no sense.
    Invalid = 22,
    /// No space left, or a write beyond the end.
    NoSpace = 28,
    /// Too long to answer in one piece.
    Overflow = 75,
    /// Cannot be done fast.
    NotSupported = 95,
    /// The server is stopping.
    Shutdown = 108,
}

impl WireError {
    /// The number on the wire.
    pub fn code(self) -> u32 {
        self as u32
    }
}

/// A request header as it came, before it is judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Flags, unknown bits kept.
    pub flags: CommandFlags,
    /// Command number.
    pub command: u16,
    /// The client's mark for the reply.
    pub cookie: u64,
    /// Offset in the export, in bytes.
    pub offset: u64,
    /// Bytes the command concerns, or bytes of payload: see [`Header::payload_bytes`].
    pub length: u64,
}

/// The bytes are no request: the stream has lost its frame and the client must be dropped.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum HeaderError {
    /// The first word is not the magic number of the agreed header style.
    #[error("the client sent {0:#010x} where a request must start; it is out of step")]
    Magic(u32),
}

impl Header {
    /// Bytes of a header in `style`.
    pub const fn encoded_bytes(style: ReplyStyle) -> usize {
        match style {
            ReplyStyle::Simple | ReplyStyle::Structured => REQUEST_BYTES,
            ReplyStyle::Extended => EXTENDED_REQUEST_BYTES,
        }
    }

    /// Takes one header from the front of `input`; `None` (and nothing taken) when it is not
    /// there yet in full.
    ///
    /// # Errors
    /// [`HeaderError`] as soon as the first four bytes rule a request out.
    pub fn decode(style: ReplyStyle, input: &mut impl Buf) -> Result<Option<Self>, HeaderError> {
        let chunk = input.chunk();
        let expected = match style {
            ReplyStyle::Simple | ReplyStyle::Structured => REQUEST_MAGIC,
            ReplyStyle::Extended => EXTENDED_REQUEST_MAGIC,
        };
        if let Some(first) = chunk.first_chunk::<4>() {
            let magic = u32::from_be_bytes(*first);
            if magic != expected {
                return Err(HeaderError::Magic(magic));
            }
        }
        if input.remaining() < Self::encoded_bytes(style) {
            return Ok(None);
        }
        let magic = input.get_u32();
        if magic != expected {
            return Err(HeaderError::Magic(magic));
        }
        Ok(Some(Self {
            flags: CommandFlags::from_bits_retain(input.get_u16()),
            command: input.get_u16(),
            cookie: input.get_u64(),
            offset: input.get_u64(),
            length: match style {
                ReplyStyle::Simple | ReplyStyle::Structured => u64::from(input.get_u32()),
                ReplyStyle::Extended => input.get_u64(),
            },
        }))
    }

    /// Appends the header to `out`; what a client does. A length over 32 bits is cut by the
    /// compact styles.
    pub fn encode(&self, style: ReplyStyle, out: &mut impl BufMut) {
        let compact = style != ReplyStyle::Extended;
        out.put_u32(if compact { REQUEST_MAGIC } else { EXTENDED_REQUEST_MAGIC });
        out.put_u16(self.flags.bits());
        out.put_u16(self.command);
        out.put_u64(self.cookie);
        out.put_u64(self.offset);
        if compact {
            out.put_u32(u32::try_from(self.length).unwrap_or(u32::MAX));
        } else {
            out.put_u64(self.length);
        }
    }

    /// Bytes of payload that follow this header, whether or not the request is then accepted.
    ///
    /// With extended headers a write has to say that it carries one. qemu 10 does not say so and
    /// sends it all the same, so every write is taken to have its payload.
    pub fn payload_bytes(&self, style: ReplyStyle) -> u64 {
        let carries = match style {
            ReplyStyle::Simple | ReplyStyle::Structured => self.command == command::WRITE,
            ReplyStyle::Extended => {
                self.command == command::WRITE || self.flags.contains(CommandFlags::PAYLOAD_LEN)
            }
        };
        if carries { self.length } else { 0 }
    }
}

/// What a client asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Read `length` bytes.
    Read {
        /// Answer with one content chunk.
        whole: bool,
    },
    /// Write the payload.
    Write {
        /// Make it durable before answering.
        fua: bool,
    },
    /// Answer what is outstanding, then close.
    Disconnect,
    /// Make finished writes durable.
    Flush,
    /// Forget the range.
    Trim {
        /// Make it durable before answering.
        fua: bool,
    },
    /// Prepare for reads of the range.
    Cache,
    /// Write zeroes.
    WriteZeroes {
        /// Make it durable before answering.
        fua: bool,
        /// Keep the range allocated.
        no_hole: bool,
        /// Fail with [`WireError::NotSupported`] rather than be slow.
        fast: bool,
    },
    /// Describe the extents of the range.
    BlockStatus {
        /// One extent only.
        one: bool,
        /// The payload names contexts and the true length.
        filtered: bool,
    },
}

/// A request that may be carried out: its range lies within the export, and its command and
/// flags are among those that were offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The client's mark for the reply.
    pub cookie: u64,
    /// Offset in the export, in bytes.
    pub offset: u64,
    /// Bytes concerned; zero for flush and disconnect.
    pub length: u64,
    /// What to do.
    pub command: Command,
}

/// A request that is answered with an error. The connection goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Code for the client.
    pub error: WireError,
    /// Text for the client's log.
    pub reason: &'static str,
}

const fn refuse<T>(error: WireError, reason: &'static str) -> Result<T, Refusal> {
    Err(Refusal { error, reason })
}

impl Agreement {
    /// Judges a header by what was agreed ("Request types", "Command flags", "Size constraints").
    ///
    /// # Errors
    /// A [`Refusal`] names the code that the specification wants for the rule that was broken.
    pub fn judge(&self, header: &Header) -> Result<Request, Refusal> {
        let command = self.command(header)?;
        let request = Request {
            cookie: header.cookie,
            offset: header.offset,
            length: header.length,
            command,
        };
        match command {
            // Old clients leave rubbish in these fields; nothing depends on them.
            Command::Disconnect => Ok(Request { offset: 0, length: 0, ..request }),
            Command::Flush if header.offset != 0 || header.length != 0 => {
                refuse(WireError::Invalid, "offset and length of a flush must be zero")
            }
            Command::Flush | Command::BlockStatus { filtered: true, .. } => Ok(request),
            _ => self.range(request),
        }
    }

    /// Reads the payload of a BLOCK_STATUS request that limits the contexts: effect length, then
    /// context identifiers.
    ///
    /// # Errors
    /// Refused when the layout is wrong, an identifier is unknown or named twice, or the range
    /// leaves the export.
    pub fn judge_status_payload(
        &self,
        request: Request,
        mut payload: &[u8],
    ) -> Result<Request, Refusal> {
        if payload.len() != 12 {
            // One context exists, so exactly one identifier can be asked for.
            return refuse(WireError::Invalid, "the payload must name one known context");
        }
        let length = payload.get_u64();
        if payload.get_u32() != Self::ALLOCATION_ID {
            return refuse(WireError::Invalid, "the payload names an unknown context");
        }
        self.range(Request { length, ..request })
    }

    fn command(&self, header: &Header) -> Result<Command, Refusal> {
        use CommandFlags as F;
        let write = |feature: TransmissionFlags| {
            if self.flags.contains(TransmissionFlags::READ_ONLY) {
                return refuse(WireError::NotPermitted, "the export is read-only");
            }
            if !self.flags.contains(feature) {
                return refuse(WireError::Invalid, "the command was not offered");
            }
            Ok(())
        };
        let chunked = self.style != ReplyStyle::Simple;
        let extended = self.style == ReplyStyle::Extended;
        let fua = header.flags.contains(F::FUA);
        let mut allowed = F::empty();
        allowed.set(F::FUA, self.flags.contains(TransmissionFlags::SEND_FUA));
        let command = match header.command {
            command::READ => {
                allowed.set(F::DF, self.flags.contains(TransmissionFlags::SEND_DF) && chunked);
                Command::Read { whole: header.flags.contains(F::DF) }
            }
            command::WRITE => {
                write(TransmissionFlags::empty())?;
                allowed.set(F::PAYLOAD_LEN, extended);
                Command::Write { fua }
            }
            command::DISC => return Ok(Command::Disconnect),
            command::FLUSH => {
                if !self.flags.contains(TransmissionFlags::SEND_FLUSH) {
                    return refuse(WireError::Invalid, "flush was not offered");
                }
                Command::Flush
            }
            command::TRIM => {
                write(TransmissionFlags::SEND_TRIM)?;
                Command::Trim { fua }
            }
            command::CACHE => Command::Cache,
            command::WRITE_ZEROES => {
                write(TransmissionFlags::SEND_WRITE_ZEROES)?;
                allowed |= F::NO_HOLE;
                allowed.set(F::FAST_ZERO, self.flags.contains(TransmissionFlags::SEND_FAST_ZERO));
                Command::WriteZeroes {
                    fua,
                    no_hole: header.flags.contains(F::NO_HOLE),
                    fast: header.flags.contains(F::FAST_ZERO),
                }
            }
            command::BLOCK_STATUS => {
                if !self.allocation {
                    return refuse(WireError::Invalid, "no metadata context was chosen");
                }
                allowed |= F::REQ_ONE;
                let filtered = self.flags.contains(TransmissionFlags::BLOCK_STATUS_PAYLOAD);
                allowed.set(F::PAYLOAD_LEN, filtered && extended);
                Command::BlockStatus {
                    one: header.flags.contains(F::REQ_ONE),
                    filtered: header.flags.contains(F::PAYLOAD_LEN),
                }
            }
            _ => return refuse(WireError::Invalid, "unknown command"),
        };
        if !allowed.contains(header.flags) {
            return refuse(WireError::Invalid, "a flag does not belong to this command");
        }
        Ok(command)
    }

    fn range(&self, request: Request) -> Result<Request, Refusal> {
        let beyond = match request.command {
            Command::Write { .. } | Command::WriteZeroes { .. } => WireError::NoSpace,
            _ => WireError::Invalid,
        };
        if request.length == 0 {
            return refuse(WireError::Invalid, "the length is zero");
        }
        match request.offset.checked_add(request.length) {
            Some(end) if end <= self.size => {}
            _ => return refuse(beyond, "the range leaves the export"),
        }
        let minimum = u64::from(self.block_sizes.minimum);
        if !request.offset.is_multiple_of(minimum) || !request.length.is_multiple_of(minimum) {
            return refuse(WireError::Invalid, "the range is not aligned to the minimum block");
        }
        let too_long = request.length > u64::from(self.block_sizes.payload_max);
        match request.command {
            Command::Read { .. } if too_long && self.style == ReplyStyle::Simple => {
                refuse(WireError::Invalid, "the read is longer than the maximum payload")
            }
            Command::Read { .. } if too_long => {
                refuse(WireError::Overflow, "the read is longer than the maximum payload")
            }
            _ => Ok(request),
        }
    }
}
