//! What a file object says of the file besides its content.

use sha2::{Digest, Sha256};

use super::checksum::Checksum;
use super::error::FormatError;
use super::variant::{
    ALIGN_1, ALIGN_4, ALIGN_8, ArrayReader, ArrayWriter, TupleReader, TupleWriter, VariantError,
    string,
};

const S_IFMT: u32 = 0o170_000;
const S_IFREG: u32 = 0o100_000;
const S_IFLNK: u32 = 0o120_000;
/// Bytes before a header: its length, big-endian, and padding to 8.
pub(super) const LENGTH_PREFIX_BYTES: usize = 8;

/// Extended attributes: names (with their final zero byte) and values, sorted by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Xattrs(Vec<(Vec<u8>, Vec<u8>)>);

impl Xattrs {
    /// Attributes from names without a final zero byte; sorts them as libostree does.
    pub fn from_pairs(pairs: impl IntoIterator<Item = (Vec<u8>, Vec<u8>)>) -> Self {
        let mut pairs: Vec<_> = pairs
            .into_iter()
            .map(|(mut name, value)| {
                name.push(0);
                (name, value)
            })
            .collect();
        pairs.sort();
        Self(pairs)
    }

    /// Reads an `a(ayay)`.
    ///
    /// # Errors
    /// [`VariantError`] when the serialisation is broken.
    pub fn parse(data: &[u8]) -> Result<Self, VariantError> {
        let mut pairs = Vec::new();
        for pair in ArrayReader::new(data, ALIGN_1)?.iter() {
            let mut pair = TupleReader::new(pair?);
            let name = pair.variable(ALIGN_1)?.to_vec();
            pairs.push((name, pair.last(ALIGN_1)?.to_vec()));
        }
        Ok(Self(pairs))
    }

    /// The bytes of the `a(ayay)`.
    pub fn encode(&self) -> Vec<u8> {
        let mut array = ArrayWriter::new(ALIGN_1);
        for (name, value) in &self.0 {
            let mut pair = TupleWriter::new();
            pair.variable(ALIGN_1, name);
            array.push(&pair.last(ALIGN_1, value));
        }
        array.finish()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Names (with their final zero byte) and values.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.0.iter().map(|(name, value)| (&name[..], &value[..]))
    }
}

/// Owner, mode, link target and attributes of a regular file or symbolic link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileHeader {
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// The whole `st_mode`: a regular file's or a symbolic link's.
    pub mode: u32,
    /// Target of a symbolic link; `None` for a regular file.
    pub symlink_target: Option<String>,
    /// Extended attributes.
    pub xattrs: Xattrs,
}

impl FileHeader {
    /// A regular file with these permission bits.
    pub fn regular(uid: u32, gid: u32, permissions: u32) -> Self {
        let mode = S_IFREG | (permissions & 0o7777);
        Self { uid, gid, mode, symlink_target: None, xattrs: Xattrs::default() }
    }

    /// A symbolic link; its permission bits are always 0777.
    pub fn symlink(uid: u32, gid: u32, target: String) -> Self {
        let mode = S_IFLNK | 0o777;
        Self { uid, gid, mode, symlink_target: Some(target), xattrs: Xattrs::default() }
    }

    /// Whether this is a regular file, so that content follows.
    pub fn is_regular(&self) -> bool {
        self.symlink_target.is_none()
    }

    fn new(
        (uid, gid, mode): (u32, u32, u32),
        target: &str,
        xattrs: Xattrs,
    ) -> Result<Self, FormatError> {
        let symlink_target = match (mode & S_IFMT, target) {
            (S_IFREG, "") => None,
            (S_IFREG, _) | (S_IFLNK, "") => return Err(FormatError::SymlinkTarget),
            (S_IFLNK, target) => Some(target.to_owned()),
            _ => return Err(FormatError::Mode { mode }),
        };
        Ok(Self { uid, gid, mode, symlink_target, xattrs })
    }

    /// Reads the header of a `.filez`: `(tuuuusa(ayay))` without the length in front. Returns the
    /// length in bytes of the content as well.
    ///
    /// # Errors
    /// [`FormatError`] when the bytes are not such a header.
    pub fn parse_archive(data: &[u8]) -> Result<(Self, u64), FormatError> {
        let variant = FormatError::variant("filez header");
        let mut tuple = TupleReader::new(data);
        let content_bytes = u64::from_be_bytes(tuple.fixed(ALIGN_8).map_err(&variant)?);
        let (owner, target, xattrs) = Self::members(tuple).map_err(&variant)?;
        Ok((Self::new(owner, target, xattrs)?, content_bytes))
    }

    /// Reads the header that content is hashed after: `(uuuusa(ayay))` without the length.
    ///
    /// # Errors
    /// [`FormatError`] when the bytes are not such a header.
    pub fn parse_plain(data: &[u8]) -> Result<Self, FormatError> {
        let (owner, target, xattrs) =
            Self::members(TupleReader::new(data)).map_err(FormatError::variant("file header"))?;
        Self::new(owner, target, xattrs)
    }

    #[expect(clippy::type_complexity, reason = "taken apart at once by both callers")]
    fn members(
        mut tuple: TupleReader<'_>,
    ) -> Result<((u32, u32, u32), &str, Xattrs), VariantError> {
        let uid = u32::from_be_bytes(tuple.fixed(ALIGN_4)?);
        let gid = u32::from_be_bytes(tuple.fixed(ALIGN_4)?);
        let mode = u32::from_be_bytes(tuple.fixed(ALIGN_4)?);
        // The device number is written as zero and read by nobody; another value here changes the
        // name that is computed, so such an object is refused there.
        let _rdev: [u8; 4] = tuple.fixed(ALIGN_4)?;
        let target = string(tuple.variable(ALIGN_1)?)?;
        Ok(((uid, gid, mode), target, Xattrs::parse(tuple.last(ALIGN_1)?)?))
    }

    /// Length prefix and header as a `.filez` starts with, for content of `content_bytes`.
    pub fn encode_archive(&self, content_bytes: u64) -> Vec<u8> {
        let mut tuple = TupleWriter::new();
        tuple.fixed(ALIGN_8, &content_bytes.to_be_bytes());
        prefixed(&self.write_members(tuple))
    }

    /// Length prefix and header as they are hashed before the content.
    pub fn encode_plain(&self) -> Vec<u8> {
        prefixed(&self.write_members(TupleWriter::new()))
    }

    fn write_members(&self, mut tuple: TupleWriter) -> Vec<u8> {
        tuple
            .fixed(ALIGN_4, &self.uid.to_be_bytes())
            .fixed(ALIGN_4, &self.gid.to_be_bytes())
            .fixed(ALIGN_4, &self.mode.to_be_bytes())
            .fixed(ALIGN_4, &[0; 4])
            .string(self.symlink_target.as_deref().unwrap_or(""));
        tuple.last(ALIGN_1, &self.xattrs.encode())
    }

    /// Starts the hash that names the object; the content comes next.
    pub fn hasher(&self) -> ContentHasher {
        ContentHasher(Sha256::new_with_prefix(self.encode_plain()))
    }
}

/// Hashes the content of a file object after its header.
#[derive(Debug, Clone)]
pub struct ContentHasher(Sha256);

impl ContentHasher {
    /// Takes the next piece of content.
    pub fn update(&mut self, content: &[u8]) {
        self.0.update(content);
    }

    /// The object's name.
    pub fn finish(self) -> Checksum {
        Checksum::from_bytes(self.0.finalize().into())
    }
}

fn prefixed(header: &[u8]) -> Vec<u8> {
    let length = u32::try_from(header.len()).expect("invariant: headers are far below 4 GiB");
    let mut bytes = Vec::with_capacity(LENGTH_PREFIX_BYTES + header.len());
    bytes.extend_from_slice(&length.to_be_bytes());
    bytes.extend_from_slice(&[0; 4]);
    bytes.extend_from_slice(header);
    bytes
}

/// What a bare-user repository keeps in the attribute `user.ostreemeta`: `(uuua(ayay))`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BareUserMeta {
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// The whole `st_mode`; a symbolic link's is kept in a regular file with the target as content.
    pub mode: u32,
    /// Extended attributes.
    pub xattrs: Xattrs,
}

impl BareUserMeta {
    /// Reads the attribute's value.
    ///
    /// # Errors
    /// [`FormatError`] when the bytes are not of that form.
    pub fn parse(data: &[u8]) -> Result<Self, FormatError> {
        let read = || {
            let mut tuple = TupleReader::new(data);
            let uid = u32::from_be_bytes(tuple.fixed(ALIGN_4)?);
            let gid = u32::from_be_bytes(tuple.fixed(ALIGN_4)?);
            let mode = u32::from_be_bytes(tuple.fixed(ALIGN_4)?);
            Ok(Self { uid, gid, mode, xattrs: Xattrs::parse(tuple.last(ALIGN_1)?)? })
        };
        read().map_err(FormatError::variant("user.ostreemeta"))
    }

    /// Whether the file stands for a symbolic link.
    pub fn is_symlink(&self) -> bool {
        self.mode & S_IFMT == S_IFLNK
    }

    /// The header of the object; `symlink_target` is the file's content if it stands for a link.
    ///
    /// # Errors
    /// [`FormatError`] when mode and target contradict each other.
    pub fn into_header(self, symlink_target: &str) -> Result<FileHeader, FormatError> {
        FileHeader::new((self.uid, self.gid, self.mode), symlink_target, self.xattrs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_round_trip() {
        let mut header = FileHeader::regular(3, 4, 0o4755);
        header.xattrs =
            Xattrs::from_pairs([(b"user.b".to_vec(), vec![1, 0]), (b"user.a".to_vec(), vec![])]);
        let archive = header.encode_archive(9);
        assert_eq!(FileHeader::parse_archive(&archive[8..]), Ok((header.clone(), 9)));
        let plain = header.encode_plain();
        assert_eq!(FileHeader::parse_plain(&plain[8..]), Ok(header.clone()));
        assert_eq!(header.xattrs.iter().next(), Some((&b"user.a\0"[..], &b""[..])));

        let link = FileHeader::symlink(0, 0, "../x".to_owned());
        assert_eq!(FileHeader::parse_archive(&link.encode_archive(0)[8..]), Ok((link, 0)));
    }

    #[test]
    fn refuses_contradictions() {
        let mut header = FileHeader::regular(0, 0, 0o644);
        header.symlink_target = Some("x".to_owned());
        assert_eq!(
            FileHeader::parse_plain(&header.encode_plain()[8..]),
            Err(FormatError::SymlinkTarget)
        );
        header.mode = 0o020_600;
        assert_eq!(
            FileHeader::parse_plain(&header.encode_plain()[8..]),
            Err(FormatError::Mode { mode: 0o020_600 })
        );
    }
}
