use super::*;
use bytes::Buf;

const ID: RequestId = RequestId { cookie: 0x0102_0304_0506_0708, offset: 4096 };

fn encoded(style: ReplyStyle, write: impl FnOnce(ReplyEncoder, &mut BytesMut)) -> BytesMut {
    let mut out = BytesMut::new();
    write(ReplyEncoder::new(style), &mut out);
    out
}

/// Reads a chunk header back: flags, type, length.
fn chunk_header(bytes: &mut impl Buf) -> (u16, u16, u64) {
    let magic = bytes.get_u32();
    let (flags, kind, cookie) = (bytes.get_u16(), bytes.get_u16(), bytes.get_u64());
    assert_eq!(cookie, ID.cookie);
    let length = if magic == EXTENDED_REPLY_MAGIC {
        assert_eq!(bytes.get_u64(), ID.offset);
        bytes.get_u64()
    } else {
        assert_eq!(magic, STRUCTURED_REPLY_MAGIC);
        u64::from(bytes.get_u32())
    };
    (flags, kind, length)
}

const CHUNKED: [ReplyStyle; 2] = [ReplyStyle::Structured, ReplyStyle::Extended];

#[test]
fn simple_replies_are_sixteen_bytes() {
    let ok = encoded(ReplyStyle::Simple, |to, out| to.done(out, ID));
    assert_eq!(&ok[..], b"\x67\x44\x66\x98\0\0\0\0\x01\x02\x03\x04\x05\x06\x07\x08");
    let failed = encoded(ReplyStyle::Simple, |to, out| to.error(out, ID, WireError::Io, "disk"));
    assert_eq!(failed[4..8], [0, 0, 0, 5]);
    assert_eq!(failed.len(), 16);
    let data = encoded(ReplyStyle::Simple, |to, out| to.data(out, ID, 4096, 512, true));
    assert_eq!(data, ok);
}

#[test]
fn structured_style_may_confirm_with_a_simple_reply_but_extended_may_not() {
    let short = encoded(ReplyStyle::Structured, |to, out| to.done(out, ID));
    assert_eq!(short.len(), 16);
    let mut long = encoded(ReplyStyle::Extended, |to, out| to.done(out, ID));
    assert_eq!(long.len(), 32);
    assert_eq!(chunk_header(&mut long), (REPLY_FLAG_DONE, chunk::NONE, 0));
}

#[test]
fn content_chunks_state_offset_and_length() {
    for style in CHUNKED {
        let mut data = encoded(style, |to, out| to.data(out, ID, 8192, 512, false));
        assert_eq!(chunk_header(&mut data), (0, chunk::OFFSET_DATA, 520));
        assert_eq!(data.get_u64(), 8192);
        assert!(data.is_empty());
        let mut hole = encoded(style, |to, out| to.hole(out, ID, 8192, 512, true));
        assert_eq!(chunk_header(&mut hole), (REPLY_FLAG_DONE, chunk::OFFSET_HOLE, 12));
        assert_eq!((hole.get_u64(), hole.get_u32(), hole.len()), (8192, 512, 0));
    }
}

#[test]
fn errors_carry_text_cut_to_the_limit() {
    let text = "ü".repeat(4000);
    for style in CHUNKED {
        let mut error = encoded(style, |to, out| to.error(out, ID, WireError::NoSpace, &text));
        assert_eq!(chunk_header(&mut error), (REPLY_FLAG_DONE, chunk::ERROR, 6 + 4096));
        assert_eq!((error.get_u32(), error.get_u16()), (28, 4096));
        assert!(std::str::from_utf8(&error).is_ok());
        let mut at = encoded(style, |to, out| to.error_at(out, ID, WireError::Io, "bad", 5000));
        assert_eq!(chunk_header(&mut at), (REPLY_FLAG_DONE, chunk::ERROR_OFFSET, 17));
        at.advance(9);
        assert_eq!(at.get_u64(), 5000);
    }
}

#[test]
fn block_status_counts_its_extents() {
    let all = [
        Descriptor { length: 4096, flags: ExtentFlags::empty() },
        Descriptor { length: 5 << 32, flags: ExtentFlags::HOLE | ExtentFlags::ZERO },
        Descriptor { length: 4096, flags: ExtentFlags::empty() },
    ];
    let mut wide = encoded(ReplyStyle::Extended, |to, out| to.block_status(out, ID, 1, &all));
    assert_eq!(chunk_header(&mut wide), (REPLY_FLAG_DONE, chunk::BLOCK_STATUS_EXT, 8 + 48));
    assert_eq!((wide.get_u32(), wide.get_u32(), wide.get_u64()), (1, 3, 4096));
    let mut cut = encoded(ReplyStyle::Structured, |to, out| to.block_status(out, ID, 1, &all));
    assert_eq!(chunk_header(&mut cut), (REPLY_FLAG_DONE, chunk::BLOCK_STATUS, 4 + 16));
    assert_eq!((cut.get_u32(), cut.get_u32(), cut.get_u32()), (1, 4096, 0));
    assert_eq!((cut.get_u32(), cut.get_u32(), cut.len()), (1 << 31, 3, 0));
}
