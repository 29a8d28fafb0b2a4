//! Data of the options that carry some ("Option types").

use bytes::Buf;

use crate::nbd::constants::{CONTEXT_ALLOCATION, STRING_BYTES_MAX, rep};

/// Most metadata queries in one option.
const QUERIES_MAX: u32 = 256;

/// Why an option is refused.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Wrong {
    pub(super) reply: u32,
    pub(super) reason: &'static str,
}

const fn invalid(reason: &'static str) -> Wrong {
    Wrong { reply: rep::ERR_INVALID, reason }
}

const fn too_big(reason: &'static str) -> Wrong {
    Wrong { reply: rep::ERR_TOO_BIG, reason }
}

/// An export name without length, as EXPORT_NAME has it.
pub(super) fn name(data: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(data).ok()?;
    (data.len() <= STRING_BYTES_MAX && !text.contains('\0')).then(|| text.to_owned())
}

/// A string after its 32-bit length.
fn string(data: &mut &[u8]) -> Result<String, Wrong> {
    let length = data.try_get_u32().map_err(|_| invalid("the option data ends too soon"))? as usize;
    if length > STRING_BYTES_MAX {
        return Err(too_big("a string is longer than 4096 bytes"));
    }
    let (text, rest) =
        data.split_at_checked(length).ok_or(invalid("a string is longer than the option"))?;
    *data = rest;
    name(text).ok_or(invalid("a string is not UTF-8 without zero bytes"))
}

/// Data of INFO and GO.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct InfoRequest {
    pub(super) export: String,
    wants: u16,
}

impl InfoRequest {
    pub(super) fn parse(mut data: &[u8]) -> Result<Self, Wrong> {
        let export = string(&mut data)?;
        let count = data.try_get_u16().map_err(|_| invalid("the option data ends too soon"))?;
        if data.len() != usize::from(count) * 2 {
            return Err(invalid("the number of information requests is wrong"));
        }
        let mut wants = 0;
        while data.has_remaining() {
            // Types that do not exist yet must be ignored.
            wants |= 1_u16.checked_shl(u32::from(data.get_u16())).unwrap_or(0);
        }
        Ok(Self { export, wants })
    }

    pub(super) fn wants(&self, kind: u16) -> bool {
        self.wants & (1 << kind) != 0
    }
}

/// Data of LIST_META_CONTEXT and SET_META_CONTEXT.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct MetaRequest {
    pub(super) export: String,
    queries: Vec<String>,
}

impl MetaRequest {
    pub(super) fn parse(mut data: &[u8]) -> Result<Self, Wrong> {
        let export = string(&mut data)?;
        let count = data.try_get_u32().map_err(|_| invalid("the option data ends too soon"))?;
        if count > QUERIES_MAX {
            return Err(too_big("too many metadata queries"));
        }
        let mut queries = Vec::new();
        for _ in 0..count {
            let query = string(&mut data)?;
            if !query.contains(':') {
                return Err(invalid("a metadata query has no namespace"));
            }
            queries.push(query);
        }
        if data.has_remaining() {
            return Err(invalid("bytes follow the last metadata query"));
        }
        Ok(Self { export, queries })
    }

    /// Whether LIST_META_CONTEXT has to name `base:allocation`.
    pub(super) fn lists_allocation(&self) -> bool {
        self.queries.is_empty()
            || self.selects_allocation()
            || self.queries.iter().any(|query| query == "base:")
    }

    /// Whether SET_META_CONTEXT chooses `base:allocation`.
    pub(super) fn selects_allocation(&self) -> bool {
        self.queries.iter().any(|query| query == CONTEXT_ALLOCATION)
    }
}
