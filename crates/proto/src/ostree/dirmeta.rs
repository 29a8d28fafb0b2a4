//! Dirmeta objects: `(uuua(ayay))`, numbers big-endian.

use super::error::FormatError;
use super::file_header::Xattrs;
use super::variant::{ALIGN_1, ALIGN_4, TupleReader, TupleWriter, VariantError};

const OBJECT: &str = "dirmeta";
const S_IFMT: u32 = 0o170_000;
const S_IFDIR: u32 = 0o040_000;

/// Owner, mode and extended attributes of a directory, read in place.
#[derive(Debug, Clone, Copy)]
pub struct DirMeta<'a> {
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// The whole `st_mode`, always that of a directory.
    pub mode: u32,
    /// Serialised `a(ayay)`; see [`Xattrs`].
    pub xattrs: &'a [u8],
}

impl<'a> DirMeta<'a> {
    /// Reads a `.dirmeta` object; does not hash it.
    ///
    /// # Errors
    /// [`FormatError`] when the bytes are not a dirmeta or the mode is not a directory's.
    pub fn parse(data: &'a [u8]) -> Result<Self, FormatError> {
        let variant = FormatError::variant(OBJECT);
        let meta = Self::read(data).map_err(&variant)?;
        if meta.mode & S_IFMT != S_IFDIR {
            return Err(FormatError::Mode { mode: meta.mode });
        }
        Xattrs::parse(meta.xattrs).map_err(&variant)?;
        Ok(meta)
    }

    fn read(data: &'a [u8]) -> Result<Self, VariantError> {
        let mut tuple = TupleReader::new(data);
        let uid = u32::from_be_bytes(tuple.fixed(ALIGN_4)?);
        let gid = u32::from_be_bytes(tuple.fixed(ALIGN_4)?);
        let mode = u32::from_be_bytes(tuple.fixed(ALIGN_4)?);
        Ok(Self { uid, gid, mode, xattrs: tuple.last(ALIGN_1)? })
    }
}

/// What a new dirmeta says; mirrors [`DirMeta`].
#[derive(Debug, Clone, Default)]
pub struct DirMetaFields {
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Permission bits; the directory bit is added.
    pub permissions: u32,
    /// Extended attributes.
    pub xattrs: Xattrs,
}

impl DirMetaFields {
    /// The bytes of the `.dirmeta` object; their SHA-256 is its name.
    pub fn encode(&self) -> Vec<u8> {
        let mode = S_IFDIR | (self.permissions & 0o7777);
        let mut tuple = TupleWriter::new();
        tuple
            .fixed(ALIGN_4, &self.uid.to_be_bytes())
            .fixed(ALIGN_4, &self.gid.to_be_bytes())
            .fixed(ALIGN_4, &mode.to_be_bytes());
        tuple.last(ALIGN_1, &self.xattrs.encode())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trips_and_refuses_other_modes() {
        let fields =
            DirMetaFields { uid: 1, gid: 2, permissions: 0o1777, xattrs: Xattrs::default() };
        let mut bytes = fields.encode();
        let meta = DirMeta::parse(&bytes).unwrap();
        assert_eq!((meta.uid, meta.gid, meta.mode), (1, 2, 0o041_777));
        bytes[10] = 0x80; // a regular file's mode
        assert!(matches!(DirMeta::parse(&bytes), Err(FormatError::Mode { .. })));
        assert!(DirMeta::parse(&bytes[..11]).is_err());
    }
}
