//! Replies of the transmission phase, in each of the three framings.

use bytes::{BufMut, BytesMut};

use super::agreement::ReplyStyle;
use super::constants::{
    EXTENDED_REPLY_MAGIC, REPLY_FLAG_DONE, SIMPLE_REPLY_MAGIC, STRING_BYTES_MAX,
    STRUCTURED_REPLY_MAGIC, chunk,
};
use super::flags::ExtentFlags;
use super::request::{Header, Request, WireError};

#[cfg(test)]
mod tests;

/// What a reply repeats of its request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestId {
    /// The client's mark.
    pub cookie: u64,
    /// Offset of the request; part of each extended reply header.
    pub offset: u64,
}

impl From<&Request> for RequestId {
    fn from(request: &Request) -> Self {
        Self { cookie: request.cookie, offset: request.offset }
    }
}

impl From<&Header> for RequestId {
    fn from(header: &Header) -> Self {
        Self { cookie: header.cookie, offset: header.offset }
    }
}

/// One extent of a block status reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Descriptor {
    /// Bytes; not zero.
    pub length: u64,
    /// State of these bytes.
    pub flags: ExtentFlags,
}

/// Appends reply headers and small replies to a buffer. Bulk data is sent by the caller right
/// after [`ReplyEncoder::data`], so that it need not be copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplyEncoder {
    style: ReplyStyle,
}

impl ReplyEncoder {
    /// An encoder for the style that was agreed.
    pub const fn new(style: ReplyStyle) -> Self {
        Self { style }
    }

    /// Whether a read may be answered by several chunks and holes.
    pub fn chunked(self) -> bool {
        self.style != ReplyStyle::Simple
    }

    /// A successful reply without payload, or the end of a chunked reply.
    pub fn done(self, out: &mut BytesMut, id: RequestId) {
        if self.style == ReplyStyle::Extended {
            self.chunk(out, id, chunk::NONE, 0, true);
        } else {
            simple(out, id, 0);
        }
    }

    /// The end of a read whose content chunks were not final. Must not be used with simple
    /// replies, which have no end mark.
    pub fn end_of_read(self, out: &mut BytesMut, id: RequestId) {
        debug_assert!(self.chunked(), "a simple reply ends with its data");
        self.chunk(out, id, chunk::NONE, 0, true);
    }

    /// The header before `length` bytes of data from `offset`. With simple replies it must cover
    /// the whole request, and `last` has no meaning.
    ///
    /// `length` must fit the agreed maximum payload, hence 32 bits, and not be zero.
    pub fn data(self, out: &mut BytesMut, id: RequestId, offset: u64, length: u32, last: bool) {
        debug_assert!(length > 0, "an empty content chunk is not allowed");
        if self.chunked() {
            self.chunk(out, id, chunk::OFFSET_DATA, u64::from(length) + 8, last);
            out.put_u64(offset);
        } else {
            simple(out, id, 0);
        }
    }

    /// A chunk that stands for `length` zero bytes from `offset`. Must not be used with simple
    /// replies, which can only send the zeroes.
    pub fn hole(self, out: &mut BytesMut, id: RequestId, offset: u64, length: u32, last: bool) {
        debug_assert!(self.chunked() && length > 0, "holes need chunked replies");
        self.chunk(out, id, chunk::OFFSET_HOLE, 12, last);
        out.put_u64(offset);
        out.put_u32(length);
    }

    /// The extents of one context, as the last chunk. Lengths over 32 bits are cut in the
    /// structured style, and the extents after the cut left out, which the protocol allows.
    ///
    /// Without chunked replies BLOCK_STATUS cannot have been agreed.
    pub fn block_status(self, out: &mut BytesMut, id: RequestId, context: u32, all: &[Descriptor]) {
        debug_assert!(self.chunked() && !all.is_empty(), "block status needs chunks and extents");
        if self.style == ReplyStyle::Extended {
            let length = 8 + 16 * all.len() as u64;
            self.chunk(out, id, chunk::BLOCK_STATUS_EXT, length, true);
            out.put_u32(context);
            out.put_u32(all.len() as u32);
            for extent in all {
                out.put_u64(extent.length);
                out.put_u64(u64::from(extent.flags.bits()));
            }
            return;
        }
        // A cut length stays a multiple of any block size.
        const CUT: u64 = 1 << 31;
        let whole = all.iter().take_while(|extent| u32::try_from(extent.length).is_ok()).count();
        let cut = all.get(whole).map(|extent| Descriptor { length: CUT, ..*extent });
        let count = whole + usize::from(cut.is_some());
        self.chunk(out, id, chunk::BLOCK_STATUS, 4 + 8 * count as u64, true);
        out.put_u32(context);
        for extent in all[..whole].iter().chain(cut.as_ref()) {
            out.put_u32(extent.length as u32);
            out.put_u32(extent.flags.bits());
        }
    }

    /// A failed request. `message` is for people and cut at the longest string allowed; simple
    /// replies cannot carry it.
    pub fn error(self, out: &mut BytesMut, id: RequestId, error: WireError, message: &str) {
        if !self.chunked() {
            return simple(out, id, error.code());
        }
        let message = clip(message);
        self.chunk(out, id, chunk::ERROR, 6 + message.len() as u64, true);
        out.put_u32(error.code());
        out.put_u16(message.len() as u16);
        out.put_slice(message.as_bytes());
    }

    /// A request that failed at `at`, after parts of it may have been answered; the last chunk.
    /// With simple replies this is [`ReplyEncoder::error`].
    pub fn error_at(
        self,
        out: &mut BytesMut,
        id: RequestId,
        error: WireError,
        message: &str,
        at: u64,
    ) {
        if !self.chunked() {
            return simple(out, id, error.code());
        }
        let message = clip(message);
        self.chunk(out, id, chunk::ERROR_OFFSET, 14 + message.len() as u64, true);
        out.put_u32(error.code());
        out.put_u16(message.len() as u16);
        out.put_slice(message.as_bytes());
        out.put_u64(at);
    }

    fn chunk(self, out: &mut BytesMut, id: RequestId, kind: u16, length: u64, last: bool) {
        let flags = if last { REPLY_FLAG_DONE } else { 0 };
        if self.style == ReplyStyle::Extended {
            out.reserve(40);
            out.put_u32(EXTENDED_REPLY_MAGIC);
            out.put_u16(flags);
            out.put_u16(kind);
            out.put_u64(id.cookie);
            out.put_u64(id.offset);
            out.put_u64(length);
        } else {
            out.reserve(28);
            out.put_u32(STRUCTURED_REPLY_MAGIC);
            out.put_u16(flags);
            out.put_u16(kind);
            out.put_u64(id.cookie);
            out.put_u32(length as u32);
        }
    }
}

fn simple(out: &mut BytesMut, id: RequestId, error: u32) {
    out.put_u32(SIMPLE_REPLY_MAGIC);
    out.put_u32(error);
    out.put_u64(id.cookie);
}

/// The longest prefix of `text` that the protocol allows in one string.
pub(super) fn clip(text: &str) -> &str {
    let mut end = text.len().min(STRING_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}
