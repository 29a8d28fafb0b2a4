//! Values to bytes: format version 2 in XDR, which every R since 1.4.0 reads.

use super::{NA_INTEGER, Object, Value, code, flag};
use crate::cran::StringVector;

/// Format version, then the R versions (major.minor.patch in three bytes) that wrote it and that
/// can read it.
const HEADER: [u32; 3] = [2, 0x0004_0202, 0x0002_0300];

/// Serializes a value as `saveRDS(version = 2, compress = FALSE)` does.
///
/// # Panics
/// If a vector or string is longer than 2^31 - 1, the format's limit for short vectors.
#[must_use]
pub fn write(object: &Object) -> Vec<u8> {
    let mut writer = Writer { bytes: b"X\n".to_vec(), symbols: Vec::new() };
    HEADER.iter().for_each(|&word| writer.word(word));
    writer.item(object);
    writer.bytes
}

struct Writer {
    bytes: Vec<u8>,
    /// Symbols written so far; later ones are references to them.
    symbols: Vec<String>,
}

impl Writer {
    fn word(&mut self, word: u32) {
        self.bytes.extend_from_slice(&word.to_be_bytes());
    }

    fn integer(&mut self, value: i32) {
        self.bytes.extend_from_slice(&value.to_be_bytes());
    }

    fn length(&mut self, length: usize) {
        self.integer(i32::try_from(length).expect("a vector of less than 2^31 elements"));
    }

    fn item(&mut self, object: &Object) {
        let mut flags = 0;
        if !object.attributes.is_empty() {
            flags |= flag::ATTRIBUTES;
        }
        if object.attribute("class").is_some() {
            flags |= flag::OBJECT;
        }
        self.value(&object.value, flags);
        if !object.attributes.is_empty() && !matches!(object.value, Value::Null | Value::Symbol(_))
        {
            self.attributes(&object.attributes);
        }
    }

    fn value(&mut self, value: &Value, flags: u32) {
        match value {
            Value::Null => self.word(u32::from(code::NULL)),
            Value::Symbol(name) => self.symbol(name),
            Value::Logical(values) => {
                self.vector(code::LOGICAL, flags, values.len());
                for value in values {
                    self.integer(value.map_or(NA_INTEGER, i32::from));
                }
            }
            Value::Integer(values) => {
                self.vector(code::INTEGER, flags, values.len());
                for value in values {
                    self.integer(value.unwrap_or(NA_INTEGER));
                }
            }
            Value::Real(values) => {
                self.vector(code::REAL, flags, values.len());
                for value in values {
                    self.bytes.extend_from_slice(&value.to_be_bytes());
                }
            }
            Value::Raw(bytes) => {
                self.vector(code::RAW, flags, bytes.len());
                self.bytes.extend_from_slice(bytes);
            }
            Value::Strings(strings) => self.strings(strings, flags),
            Value::List(elements) => {
                self.vector(code::LIST, flags, elements.len());
                for element in elements {
                    self.item(element);
                }
            }
        }
    }

    fn vector(&mut self, kind: u8, flags: u32, length: usize) {
        self.word(u32::from(kind) | flags);
        self.length(length);
    }

    fn strings(&mut self, strings: &StringVector, flags: u32) {
        self.vector(code::STRINGS, flags, strings.len());
        for string in strings.iter() {
            self.string(string);
        }
    }

    fn string(&mut self, string: Option<&str>) {
        let kind = u32::from(code::CHAR);
        let Some(string) = string else {
            self.word(kind);
            self.integer(-1);
            return;
        };
        self.word(kind | if string.is_ascii() { flag::ASCII } else { flag::UTF8 });
        self.length(string.len());
        self.bytes.extend_from_slice(string.as_bytes());
    }

    fn symbol(&mut self, name: &str) {
        if let Some(index) = self.symbols.iter().position(|known| known == name) {
            let index = u32::try_from(index + 1).expect("a handful of symbols");
            self.word(u32::from(code::REFERENCE) | index << 8);
        } else {
            self.word(u32::from(code::SYMBOL));
            self.string(Some(name));
            self.symbols.push(name.to_owned());
        }
    }

    fn attributes(&mut self, attributes: &[(String, Object)]) {
        for (name, value) in attributes {
            self.word(u32::from(code::PAIRLIST) | flag::TAG);
            self.symbol(name);
            self.item(value);
        }
        self.word(u32::from(code::NULL));
    }
}
