//! The part of GVariant that OSTree's formats use: tuples, arrays, strings, byte strings and
//! `a{sv}` dictionaries, read in place and written into vectors.
//!
//! A container that holds members of variable size ends in *framing offsets*: where each such member
//! ends, counted from the container's start, little-endian, as wide as the container's length needs
//! (GVariant specification 1.0, section 2.3.6 and 3). Readers here accept normal form only: zero
//! padding, offsets that ascend and stay inside.

use std::str;

/// What is wrong with a serialised value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum VariantError {
    /// A framing offset points backwards or outside its container.
    #[error("a framing offset points outside its container")]
    Offset,
    /// Padding bytes are not zero.
    #[error("padding is not zero")]
    Padding,
    /// A string without its final zero byte, or with one inside.
    #[error("a string is not ended by its only zero byte")]
    StringEnd,
    /// Bytes are left over after the last member.
    #[error("bytes are left over after the last member")]
    TrailingBytes,
    /// Fewer bytes than the members need.
    #[error("the value ends early")]
    Truncated,
    /// A variant's type is missing or has characters no type has.
    #[error("a variant has no valid type")]
    Type,
    /// A string is not UTF-8.
    #[error("a string is not UTF-8")]
    Utf8,
}

/// Alignment of `v`, `a{sv}` and of every tuple with a 64-bit member.
pub const ALIGN_8: usize = 8;
/// Alignment of `u` and of tuples of nothing wider.
pub const ALIGN_4: usize = 4;
/// Alignment of strings and byte strings.
pub const ALIGN_1: usize = 1;

/// Width of the framing offsets in a container of `bytes` bytes, offsets included.
fn offset_width(bytes: usize) -> usize {
    match bytes {
        0 => 0,
        1..=0xff => 1,
        0x100..=0xffff => 2,
        0x1_0000..=0xffff_ffff => 4,
        _ => 8,
    }
}

fn padding(position: usize, align: usize) -> usize {
    position.wrapping_neg() & (align - 1)
}

fn read_offset(data: &[u8], at: usize, width: usize) -> Result<usize, VariantError> {
    let bytes = data.get(at..at + width).ok_or(VariantError::Truncated)?;
    let mut wide = [0; 8];
    wide[..width].copy_from_slice(bytes);
    usize::try_from(u64::from_le_bytes(wide)).map_err(|_| VariantError::Offset)
}

/// Skips to the next multiple of `align`, which must be over zero bytes.
fn skip_padding(data: &[u8], position: usize, align: usize) -> Result<usize, VariantError> {
    let next = position + padding(position, align);
    let skipped = data.get(position..next).ok_or(VariantError::Truncated)?;
    if skipped.iter().any(|&byte| byte != 0) {
        return Err(VariantError::Padding);
    }
    Ok(next)
}

/// Reads the members of a tuple one after the other.
///
/// The caller knows the signature: [`fixed`](Self::fixed) for members of fixed size,
/// [`variable`](Self::variable) for others, [`last`](Self::last) for the last member when it is of
/// variable size (it has no framing offset).
#[derive(Debug, Clone)]
pub struct TupleReader<'a> {
    data: &'a [u8],
    position: usize,
    width: usize,
    frames: usize,
}

impl<'a> TupleReader<'a> {
    /// Starts at the first member.
    pub fn new(data: &'a [u8]) -> Self {
        Self { data, position: 0, width: offset_width(data.len()), frames: 0 }
    }

    /// The next member, of `N` bytes aligned to `align`.
    ///
    /// # Errors
    /// [`VariantError::Truncated`] or [`VariantError::Padding`].
    pub fn fixed<const N: usize>(&mut self, align: usize) -> Result<[u8; N], VariantError> {
        let start = skip_padding(self.data, self.position, align)?;
        let end = start + N;
        let bytes = self.data.get(start..end).ok_or(VariantError::Truncated)?;
        self.position = end;
        Ok(bytes.try_into().expect("invariant: the slice has N bytes"))
    }

    /// The next member, which is of variable size and not the last.
    ///
    /// # Errors
    /// [`VariantError::Offset`] when its framing offset is nonsense, or a padding error.
    pub fn variable(&mut self, align: usize) -> Result<&'a [u8], VariantError> {
        let start = skip_padding(self.data, self.position, align)?;
        self.frames += 1;
        let frame_at =
            self.data.len().checked_sub(self.frames * self.width).ok_or(VariantError::Truncated)?;
        let end = read_offset(self.data, frame_at, self.width)?;
        if end < start || end > frame_at {
            return Err(VariantError::Offset);
        }
        self.position = end;
        Ok(&self.data[start..end])
    }

    /// The last member, of variable size: all that is left before the framing offsets.
    ///
    /// # Errors
    /// [`VariantError::Truncated`] when nothing can be left.
    pub fn last(self, align: usize) -> Result<&'a [u8], VariantError> {
        let start = skip_padding(self.data, self.position, align)?;
        let end = self.data.len().checked_sub(self.frames * self.width);
        end.and_then(|end| self.data.get(start..end)).ok_or(VariantError::Truncated)
    }
}

/// An array of elements of variable size, such as `as`, `a(say)` or `a{sv}`.
#[derive(Debug, Clone, Copy)]
pub struct ArrayReader<'a> {
    data: &'a [u8],
    align: usize,
    width: usize,
    frames_at: usize,
    len: usize,
}

impl<'a> ArrayReader<'a> {
    /// Reads the array's frame; its elements are aligned to `align`.
    ///
    /// # Errors
    /// [`VariantError::Offset`] when the framing offsets do not fit the length.
    pub fn new(data: &'a [u8], align: usize) -> Result<Self, VariantError> {
        if data.is_empty() {
            return Ok(Self { data, align, width: 0, frames_at: 0, len: 0 });
        }
        let width = offset_width(data.len());
        let last = data.len().checked_sub(width).ok_or(VariantError::Truncated)?;
        let frames_at = read_offset(data, last, width)?;
        let frames_bytes = data.len().checked_sub(frames_at).ok_or(VariantError::Offset)?;
        if frames_bytes < width || frames_bytes % width != 0 {
            return Err(VariantError::Offset);
        }
        Ok(Self { data, align, width, frames_at, len: frames_bytes / width })
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The elements' bytes in order; ends after the first broken one.
    pub fn iter(&self) -> ArrayIter<'a> {
        ArrayIter { array: *self, index: 0, position: 0 }
    }
}

/// Iterates over an [`ArrayReader`].
#[derive(Debug, Clone)]
pub struct ArrayIter<'a> {
    array: ArrayReader<'a>,
    index: usize,
    position: usize,
}

impl<'a> ArrayIter<'a> {
    fn element(&mut self) -> Result<&'a [u8], VariantError> {
        let array = &self.array;
        let start = skip_padding(array.data, self.position, array.align)?;
        let frame_at = array.frames_at + self.index * array.width;
        let end = read_offset(array.data, frame_at, array.width)?;
        if end < start || end > array.frames_at {
            return Err(VariantError::Offset);
        }
        self.index += 1;
        self.position = end;
        Ok(&array.data[start..end])
    }
}

impl<'a> Iterator for ArrayIter<'a> {
    type Item = Result<&'a [u8], VariantError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.index >= self.array.len {
            return None;
        }
        let element = self.element();
        if element.is_err() {
            self.index = self.array.len;
        }
        Some(element)
    }
}

/// The text of a serialised string.
///
/// # Errors
/// [`VariantError::StringEnd`] or [`VariantError::Utf8`].
pub fn string(data: &[u8]) -> Result<&str, VariantError> {
    match data.split_last() {
        Some((0, text)) if !text.contains(&0) => {
            str::from_utf8(text).map_err(|_| VariantError::Utf8)
        }
        _ => Err(VariantError::StringEnd),
    }
}

/// A value of type `v`: some type's name and the bytes of a value of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Value<'a> {
    signature: &'a str,
    data: &'a [u8],
}

impl<'a> Value<'a> {
    /// Takes a serialised `v` apart.
    ///
    /// # Errors
    /// [`VariantError::Type`] when it does not end in a type.
    pub fn new(data: &'a [u8]) -> Result<Self, VariantError> {
        let nul = data.iter().rposition(|&byte| byte == 0).ok_or(VariantError::Type)?;
        let signature = &data[nul + 1..];
        if signature.is_empty() || !signature.iter().all(|c| b"ybnqiuxthdsogvam(){}".contains(c)) {
            return Err(VariantError::Type);
        }
        let signature = str::from_utf8(signature).map_err(|_| VariantError::Type)?;
        Ok(Self { signature, data: &data[..nul] })
    }

    /// The type, for instance `aay`.
    pub fn signature(&self) -> &'a str {
        self.signature
    }

    /// The bytes of the value inside.
    pub fn data(&self) -> &'a [u8] {
        self.data
    }

    /// The text when this is an `s`.
    pub fn as_str(&self) -> Option<&'a str> {
        (self.signature == "s").then(|| string(self.data).ok()).flatten()
    }

    /// The bytes when this is an `ay`.
    pub fn as_bytes(&self) -> Option<&'a [u8]> {
        (self.signature == "ay").then_some(self.data)
    }

    /// The number when this is a `t`, as stored on a little-endian machine.
    pub fn as_u64(&self) -> Option<u64> {
        if self.signature != "t" {
            return None;
        }
        self.data.try_into().ok().map(u64::from_le_bytes)
    }

    /// The elements when this is an `aay` (signatures in a commitmeta).
    pub fn as_byte_strings(&self) -> Option<Vec<&'a [u8]>> {
        if self.signature != "aay" {
            return None;
        }
        ArrayReader::new(self.data, ALIGN_1).ok()?.iter().collect::<Result<_, _>>().ok()
    }
}

/// An `a{sv}`: commit metadata, a whole `.commitmeta`, a summary's properties.
#[derive(Debug, Clone, Copy)]
pub struct Dict<'a>(ArrayReader<'a>);

impl<'a> Dict<'a> {
    /// Checks each entry and keeps the bytes.
    ///
    /// # Errors
    /// The first [`VariantError`] in any entry.
    pub fn new(data: &'a [u8]) -> Result<Self, VariantError> {
        let dict = Self(ArrayReader::new(data, ALIGN_8)?);
        for entry in dict.0.iter() {
            Self::entry(entry?)?;
        }
        Ok(dict)
    }

    fn entry(data: &'a [u8]) -> Result<(&'a str, Value<'a>), VariantError> {
        let mut entry = TupleReader::new(data);
        let key = string(entry.variable(ALIGN_1)?)?;
        Ok((key, Value::new(entry.last(ALIGN_8)?)?))
    }

    /// The entries in order.
    pub fn iter(&self) -> impl Iterator<Item = (&'a str, Value<'a>)> + use<'a> {
        self.0.iter().map(|entry| {
            entry.and_then(Self::entry).expect("invariant: new() has read every entry")
        })
    }

    /// The value of the first entry called `key`.
    pub fn get(&self, key: &str) -> Option<Value<'a>> {
        self.iter().find(|(name, _)| *name == key).map(|(_, value)| value)
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Appends the framing offsets in the narrowest width that can count the whole.
fn frame(mut body: Vec<u8>, ends: impl ExactSizeIterator<Item = usize>) -> Vec<u8> {
    let count = ends.len();
    let width = [1, 2, 4, 8]
        .into_iter()
        .find(|width| offset_width(body.len() + count * width) <= *width)
        .expect("invariant: 8 bytes count everything");
    for end in ends {
        body.extend_from_slice(&(end as u64).to_le_bytes()[..width]);
    }
    body
}

fn pad(body: &mut Vec<u8>, align: usize) {
    body.resize(body.len() + padding(body.len(), align), 0);
}

/// Writes a tuple; mirrors [`TupleReader`].
#[derive(Debug, Clone, Default)]
pub struct TupleWriter {
    body: Vec<u8>,
    ends: Vec<usize>,
}

impl TupleWriter {
    /// An empty tuple.
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends a member of fixed size.
    pub fn fixed(&mut self, align: usize, data: &[u8]) -> &mut Self {
        pad(&mut self.body, align);
        self.body.extend_from_slice(data);
        self
    }

    /// Appends a member of variable size that is not the last.
    pub fn variable(&mut self, align: usize, data: &[u8]) -> &mut Self {
        self.fixed(align, data);
        self.ends.push(self.body.len());
        self
    }

    /// Appends a string that is not the last member.
    pub fn string(&mut self, text: &str) -> &mut Self {
        self.fixed(ALIGN_1, text.as_bytes());
        self.body.push(0);
        self.ends.push(self.body.len());
        self
    }

    /// Appends the last member, of variable size, and returns the tuple's bytes.
    pub fn last(mut self, align: usize, data: &[u8]) -> Vec<u8> {
        self.fixed(align, data);
        frame(self.body, self.ends.into_iter().rev())
    }
}

/// Writes an array of elements of variable size; mirrors [`ArrayReader`].
#[derive(Debug, Clone)]
pub struct ArrayWriter {
    align: usize,
    body: Vec<u8>,
    ends: Vec<usize>,
}

impl ArrayWriter {
    /// An empty array whose elements are aligned to `align`.
    pub fn new(align: usize) -> Self {
        Self { align, body: Vec::new(), ends: Vec::new() }
    }

    /// Appends an element.
    pub fn push(&mut self, element: &[u8]) -> &mut Self {
        pad(&mut self.body, self.align);
        self.body.extend_from_slice(element);
        self.ends.push(self.body.len());
        self
    }

    /// The array's bytes.
    pub fn finish(self) -> Vec<u8> {
        if self.ends.is_empty() { self.body } else { frame(self.body, self.ends.into_iter()) }
    }
}

/// Writes an `a{sv}`; mirrors [`Dict`]. Entries keep the order they are given in.
#[derive(Debug, Clone)]
pub struct DictWriter(ArrayWriter);

impl Default for DictWriter {
    fn default() -> Self {
        Self(ArrayWriter::new(ALIGN_8))
    }
}

impl DictWriter {
    /// An empty dictionary.
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends an entry whose value is already serialised with the type `signature`.
    pub fn value(&mut self, key: &str, signature: &str, data: &[u8]) -> &mut Self {
        let mut entry = TupleWriter::new();
        entry.string(key);
        let mut value = Vec::with_capacity(data.len() + 1 + signature.len());
        value.extend_from_slice(data);
        value.push(0);
        value.extend_from_slice(signature.as_bytes());
        self.0.push(&entry.last(ALIGN_8, &value));
        self
    }

    /// Appends an `s`.
    pub fn string(&mut self, key: &str, text: &str) -> &mut Self {
        let mut data = text.as_bytes().to_vec();
        data.push(0);
        self.value(key, "s", &data)
    }

    /// Appends a `t`.
    pub fn u64(&mut self, key: &str, number: u64) -> &mut Self {
        self.value(key, "t", &number.to_le_bytes())
    }

    /// The dictionary's bytes.
    pub fn finish(self) -> Vec<u8> {
        self.0.finish()
    }
}

#[cfg(test)]
mod tests;
