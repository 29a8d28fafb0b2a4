//! Replies to options ("Option reply types").

use bytes::{BufMut, BytesMut};

use crate::nbd::agreement::BlockSizes;
use crate::nbd::constants::{OPTION_REPLY_MAGIC, info, option, rep};
use crate::nbd::flags::TransmissionFlags;
use crate::nbd::reply::clip;

fn reply(out: &mut BytesMut, option: u32, kind: u32, length: usize) {
    out.put_u64(OPTION_REPLY_MAGIC);
    out.put_u32(option);
    out.put_u32(kind);
    out.put_u32(length as u32);
}

pub(super) fn ack(out: &mut BytesMut, option: u32) {
    reply(out, option, rep::ACK, 0);
}

pub(super) fn error(out: &mut BytesMut, option: u32, kind: u32, reason: &str) {
    let reason = clip(reason);
    reply(out, option, kind, reason.len());
    out.put_slice(reason.as_bytes());
}

pub(super) fn server(out: &mut BytesMut, name: &str, description: &str) {
    let (name, description) = (clip(name), clip(description));
    reply(out, option::LIST, rep::SERVER, 4 + name.len() + description.len());
    out.put_u32(name.len() as u32);
    out.put_slice(name.as_bytes());
    out.put_slice(description.as_bytes());
}

pub(super) fn info_export(out: &mut BytesMut, option: u32, size: u64, flags: TransmissionFlags) {
    reply(out, option, rep::INFO, 12);
    out.put_u16(info::EXPORT);
    out.put_u64(size);
    out.put_u16(flags.bits());
}

pub(super) fn info_text(out: &mut BytesMut, option: u32, kind: u16, text: &str) {
    let text = clip(text);
    reply(out, option, rep::INFO, 2 + text.len());
    out.put_u16(kind);
    out.put_slice(text.as_bytes());
}

pub(super) fn info_block_size(out: &mut BytesMut, option: u32, sizes: BlockSizes) {
    reply(out, option, rep::INFO, 14);
    out.put_u16(info::BLOCK_SIZE);
    out.put_u32(sizes.minimum);
    out.put_u32(sizes.preferred);
    out.put_u32(sizes.payload_max);
}

pub(super) fn meta_context(out: &mut BytesMut, option: u32, id: u32, name: &str) {
    reply(out, option, rep::META_CONTEXT, 4 + name.len());
    out.put_u32(id);
    out.put_slice(name.as_bytes());
}
