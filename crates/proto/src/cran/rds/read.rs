//! Bytes to values.

use std::borrow::Cow;

use super::{DEPTH_MAX, NA_INTEGER, Object, Value, altrep, code, flag};
use crate::cran::{
    Error, StringVector,
    dcf::{decode, decode_latin1},
};

/// Whether expanded bytes begin like R's XDR format.
#[must_use]
pub fn is_xdr(bytes: &[u8]) -> bool {
    bytes.starts_with(b"X\n")
}

/// Reads one value from expanded XDR data, format version 2 or 3; compact (ALTREP) vectors are
/// unfolded.
///
/// Memory is bounded by the input: no vector is made longer than the bytes that remain could
/// fill, and compact sequences are limited to the size of the data that refers to them.
///
/// # Errors
/// [`Error::NotXdr`], [`Error::EndsEarly`], [`Error::UnexpectedType`], [`Error::TooDeep`],
/// [`Error::DanglingReference`] and [`Error::BadCompactVector`].
pub fn read(bytes: &[u8]) -> Result<Object, Error> {
    let body = bytes.strip_prefix(b"X\n").ok_or(Error::NotXdr)?;
    let unfold_elements_left = body.len();
    let mut reader =
        Reader { bytes: body, at: 0, symbols: Vec::new(), depth: 0, unfold_elements_left };
    let version = reader.integer()?;
    let _written_by = reader.integer()?;
    let _readable_from = reader.integer()?;
    match version {
        2 => {}
        3 => {
            let native_encoding_len = reader.length(1)?;
            reader.take(native_encoding_len)?;
        }
        _ => return Err(Error::NotXdr),
    }
    reader.item()
}

pub(super) struct Reader<'a> {
    /// The data after the two bytes of the format mark.
    bytes: &'a [u8],
    at: usize,
    /// Symbols by order of appearance, for back references.
    symbols: Vec<String>,
    depth: usize,
    /// See [`Reader::grant_elements`].
    unfold_elements_left: usize,
}

impl<'a> Reader<'a> {
    pub(super) fn take(&mut self, count: usize) -> Result<&'a [u8], Error> {
        let rest = &self.bytes[self.at..];
        let taken = rest.get(..count).ok_or(Error::EndsEarly { offset: self.at + 2 })?;
        self.at += count;
        Ok(taken)
    }

    fn word(&mut self) -> Result<[u8; 4], Error> {
        let bytes = self.take(4)?;
        Ok(bytes.try_into().expect("took four bytes"))
    }

    fn flags(&mut self) -> Result<u32, Error> {
        Ok(u32::from_be_bytes(self.word()?))
    }

    fn integer(&mut self) -> Result<i32, Error> {
        Ok(i32::from_be_bytes(self.word()?))
    }

    /// A vector's length, refused unless that many elements of the given size can follow.
    fn length(&mut self, element_bytes: usize) -> Result<usize, Error> {
        let offset = self.at + 2;
        let length = match self.integer()? {
            // Long vectors: two more words, high and low (R Internals 1.8).
            -1 => {
                let high = u64::from(self.flags()?);
                let low = u64::from(self.flags()?);
                usize::try_from(high << 32 | low).ok()
            }
            short => usize::try_from(short).ok(),
        };
        let room = (self.bytes.len() - self.at) / element_bytes;
        length.filter(|&length| length <= room).ok_or(Error::EndsEarly { offset })
    }

    /// One item of any type, with its attributes.
    pub(super) fn item(&mut self) -> Result<Object, Error> {
        let flags = self.flags()?;
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(Error::TooDeep { limit: DEPTH_MAX });
        }
        let object = self.body(flags)?;
        self.depth -= 1;
        Ok(object)
    }

    fn body(&mut self, flags: u32) -> Result<Object, Error> {
        let kind = type_code(flags);
        let value = match kind {
            code::NULL => return Ok(Object::null()),
            code::SYMBOL | code::REFERENCE => return Ok(Value::Symbol(self.symbol(flags)?).into()),
            code::PAIRLIST | code::ATTRIBUTED_PAIRLIST => return self.pairlist(flags),
            code::ALTREP => return altrep::unfold(self),
            code::LOGICAL => Value::Logical(self.logicals()?),
            code::INTEGER => Value::Integer(self.integers()?),
            code::REAL => Value::Real(self.reals()?),
            code::STRINGS => Value::Strings(self.strings()?),
            code::RAW => {
                let length = self.length(1)?;
                Value::Raw(self.take(length)?.to_vec())
            }
            code::LIST => {
                let length = self.length(4)?;
                Value::List((0..length).map(|_| self.item()).collect::<Result<_, _>>()?)
            }
            _ => return Err(Error::UnexpectedType { code: kind }),
        };
        let attributes =
            if flags & flag::ATTRIBUTES != 0 { self.attributes()? } else { Vec::new() };
        Ok(Object { value, attributes })
    }

    fn logicals(&mut self) -> Result<Vec<Option<bool>>, Error> {
        let integers = self.integers()?;
        Ok(integers.into_iter().map(|value| value.map(|value| value != 0)).collect())
    }

    fn integers(&mut self) -> Result<Vec<Option<i32>>, Error> {
        let length = self.length(4)?;
        let (words, _) = self.take(length * 4)?.as_chunks::<4>();
        let values = words.iter().map(|&word| i32::from_be_bytes(word));
        Ok(values.map(|value| (value != NA_INTEGER).then_some(value)).collect())
    }

    fn reals(&mut self) -> Result<Vec<f64>, Error> {
        let length = self.length(8)?;
        let (words, _) = self.take(length * 8)?.as_chunks::<8>();
        Ok(words.iter().map(|&word| f64::from_be_bytes(word)).collect())
    }

    fn strings(&mut self) -> Result<StringVector, Error> {
        // Every string takes a flag word and a length.
        let length = self.length(8)?;
        let mut strings = StringVector::with_capacity(length);
        for _ in 0..length {
            let flags = self.flags()?;
            if type_code(flags) != code::CHAR {
                return Err(Error::UnexpectedType { code: type_code(flags) });
            }
            strings.push(self.string(flags)?.as_deref());
        }
        Ok(strings)
    }

    /// A string after its flag word; `None` is `NA`.
    ///
    /// A string without an encoding bit is in the writer's locale, nearly always UTF-8; what is
    /// not valid UTF-8 is taken as Latin-1.
    fn string(&mut self, flags: u32) -> Result<Option<Cow<'a, str>>, Error> {
        let offset = self.at + 2;
        let length = match self.integer()? {
            -1 => return Ok(None),
            length => usize::try_from(length).map_err(|_| Error::EndsEarly { offset })?,
        };
        let bytes = self.take(length)?;
        Ok(Some(if flags & flag::LATIN1 != 0 && !bytes.is_ascii() {
            Cow::Owned(decode_latin1(bytes))
        } else {
            decode(bytes)
        }))
    }

    /// A symbol written here for the first time, or a reference back to one.
    fn symbol(&mut self, flags: u32) -> Result<String, Error> {
        match type_code(flags) {
            code::SYMBOL => {
                let flags = self.flags()?;
                if type_code(flags) != code::CHAR {
                    return Err(Error::UnexpectedType { code: type_code(flags) });
                }
                let name = self.string(flags)?.unwrap_or(Cow::Borrowed("NA")).into_owned();
                self.symbols.push(name.clone());
                Ok(name)
            }
            code::REFERENCE => {
                // The index is packed above the type code, or follows when it does not fit.
                let index = match flags >> 8 {
                    0 => self.flags()?,
                    packed => packed,
                };
                let index = usize::try_from(index).unwrap_or(usize::MAX);
                let known = index.checked_sub(1).and_then(|index| self.symbols.get(index));
                known.cloned().ok_or(Error::DanglingReference { index })
            }
            other => Err(Error::UnexpectedType { code: other }),
        }
    }

    fn attributes(&mut self) -> Result<Vec<(String, Object)>, Error> {
        let offset = self.at + 2;
        let flags = self.flags()?;
        let pairs = self.pairs(flags)?;
        pairs
            .into_iter()
            .map(|(tag, value)| Ok((tag.ok_or(Error::EndsEarly { offset })?, value)))
            .collect()
    }

    /// A pairlist as a list named by its tags; attributes of its cells carry no data and go.
    fn pairlist(&mut self, flags: u32) -> Result<Object, Error> {
        let pairs = self.pairs(flags)?;
        let tagged = pairs.iter().any(|(tag, _)| tag.is_some());
        let names: StringVector =
            pairs.iter().map(|(tag, _)| tag.as_deref().unwrap_or_default()).collect();
        let list = Object::from(Value::List(pairs.into_iter().map(|(_, value)| value).collect()));
        Ok(if tagged { list.with("names", Value::Strings(names).into()) } else { list })
    }

    /// The cells of a pairlist whose first flag word was read; ends at `NULL`.
    fn pairs(&mut self, mut flags: u32) -> Result<Vec<(Option<String>, Object)>, Error> {
        let mut pairs = Vec::new();
        loop {
            match type_code(flags) {
                code::NULL => return Ok(pairs),
                code::PAIRLIST | code::ATTRIBUTED_PAIRLIST => {}
                // A dotted pair, as the states of compact vectors are: the rest is no list.
                _ => {
                    pairs.push((None, self.body(flags)?));
                    return Ok(pairs);
                }
            }
            if flags & flag::ATTRIBUTES != 0 {
                self.item()?;
            }
            let tag = if flags & flag::TAG != 0 {
                let flags = self.flags()?;
                Some(self.symbol(flags)?)
            } else {
                None
            };
            pairs.push((tag, self.item()?));
            flags = self.flags()?;
        }
    }

    /// Takes this many elements from what compact vectors may still unfold to; `None` when it is
    /// more than is left. All of them together may not exceed the input's own size, so that a
    /// small file cannot ask for a large vector again and again.
    pub(super) fn grant_elements(&mut self, elements: usize) -> Option<usize> {
        self.unfold_elements_left = self.unfold_elements_left.checked_sub(elements)?;
        Some(elements)
    }
}

fn type_code(flags: u32) -> u8 {
    let [.., code] = flags.to_be_bytes();
    code
}
