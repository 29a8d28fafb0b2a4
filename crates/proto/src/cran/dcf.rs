//! The Debian control format as R's `read.dcf()` reads it: `PACKAGES` and `DESCRIPTION`.
//!
//! Records are separated by blank lines. A field is `Tag: value`; lines that start with white
//! space continue the value, each after a line break; ` .` stands for an empty line. There are no
//! comments. (R: `src/main/dcf.c`; R manual page `read.dcf`.)

use std::borrow::Cow;

use super::{
    Error, Limits, StringMatrix,
    strings::{COLUMNS_MAX, MatrixBuilder},
};

/// Reads all records into a matrix; its columns are the tags in order of first appearance.
///
/// Bytes that are not UTF-8 are taken as Latin-1, a line at a time: R keeps such bytes and marks
/// nothing, and refusing an index for one author's name helps nobody. A byte order mark before
/// the first tag is skipped.
///
/// # Errors
/// [`Error::MalformedLine`] and [`Error::StrayContinuation`], where R stops too;
/// [`Error::TooManyCells`] and [`Error::TooManyFields`] where the table grows out of bounds.
pub fn read(bytes: &[u8], limits: &Limits) -> Result<StringMatrix, Error> {
    let bytes = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes);
    let mut builder = MatrixBuilder::default();
    let mut in_record = false;
    let mut field = Field::default();
    for (number, line) in bytes.split(|&byte| byte == b'\n').enumerate() {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let line = decode(line.trim_ascii_end());
        if line.is_empty() {
            field.flush_into(&mut builder)?;
            in_record = false;
        } else if line.starts_with([' ', '\t']) {
            if !in_record {
                return Err(Error::StrayContinuation { line: number + 1 });
            }
            field.extend(line.trim_start());
        } else {
            let (tag, value) = split_tag(&line).ok_or_else(|| Error::MalformedLine {
                line: number + 1,
                start: line.chars().take(25).collect(),
            })?;
            field.flush_into(&mut builder)?;
            if !in_record {
                builder.begin_record();
                in_record = true;
            }
            field.begin(tag, value);
        }
    }
    field.flush_into(&mut builder)?;
    builder.finish(limits.cells_max).ok_or(Error::TooManyCells { limit: limits.cells_max })
}

/// The field being read: its value grows with every continuation line.
#[derive(Default)]
struct Field {
    tag: String,
    value: String,
    /// Nothing stood on the tag's own line, and nothing has been added since: that line is none.
    is_unbegun: bool,
}

impl Field {
    fn begin(&mut self, tag: &str, value: &str) {
        tag.clone_into(&mut self.tag);
        value.clone_into(&mut self.value);
        self.is_unbegun = value.is_empty();
    }

    fn extend(&mut self, line: &str) {
        if !std::mem::take(&mut self.is_unbegun) {
            self.value.push('\n');
        }
        if line != "." {
            self.value.push_str(line);
        }
    }

    fn flush_into(&mut self, builder: &mut MatrixBuilder) -> Result<(), Error> {
        if !self.tag.is_empty() && !builder.set(&self.tag, self.value.trim_end_matches('\n')) {
            return Err(Error::TooManyFields { limit: COLUMNS_MAX });
        }
        self.tag.clear();
        Ok(())
    }
}

/// Splits at the first colon; a tag has at least one character before it.
fn split_tag(line: &str) -> Option<(&str, &str)> {
    let (tag, value) = line.split_once(':')?;
    (!tag.is_empty()).then(|| (tag, value.trim_start_matches([' ', '\t'])))
}

/// UTF-8 as it is, anything else byte by byte as Latin-1.
pub(super) fn decode(bytes: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => Cow::Owned(decode_latin1(bytes)),
    }
}

/// Every byte is the character of the same number.
pub(super) fn decode_latin1(bytes: &[u8]) -> String {
    bytes.iter().map(|&byte| char::from(byte)).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn table(text: &[u8]) -> StringMatrix {
        read(text, &Limits::default()).unwrap()
    }

    /// Same input and output as `read.dcf()` of R 4.2.2.
    #[test]
    fn reads_as_r_does() {
        let m = table(
            b"\nPackage: a\nVersion: 1.0\nDepends: R (>= 3.5),\n  b,\n\tc\n   .\n  .x\n  d  \n   \n\n\
              Package: b\nVersion:2.0\nVersion: 3\nFoo:   \n  bar\nLast value: z: y\n",
        );
        assert_eq!(m.columns(), ["Package", "Version", "Depends", "Foo", "Last value"]);
        assert_eq!(m.rows(), 2);
        assert_eq!(m.field(0, "Depends"), Some("R (>= 3.5),\nb,\nc\n\n.x\nd"));
        assert_eq!(m.field(1, "Version"), Some("3"), "a repeated tag: the last one counts");
        assert_eq!(m.field(1, "Foo"), Some("bar"));
        assert_eq!(m.field(1, "Last value"), Some("z: y"));
        assert_eq!((m.field(0, "Foo"), m.field(1, "Depends")), (None, None));
    }

    #[test]
    fn nothing_in_nothing_out() {
        for text in ["", "\n", "\n  \n\t\n"] {
            let m = table(text.as_bytes());
            assert_eq!((m.rows(), m.columns().len()), (0, 0), "{text:?}");
        }
    }

    #[test]
    fn line_ends_and_encodings_are_tolerated() {
        let m = table(
            b"\xef\xbb\xbfPackage: a\r\nAuthor: caf\xe9\r\n\r\nPackage: b\r\nAuthor: \xc3\xa9",
        );
        assert_eq!(m.columns(), ["Package", "Author"]);
        assert_eq!(m.field(0, "Author"), Some("café"));
        assert_eq!(m.field(1, "Author"), Some("é"));
    }

    #[test]
    fn stops_where_r_stops() {
        let limits = Limits::default();
        let error = read(b"Package: a\nbogus line\n", &limits).unwrap_err();
        assert!(matches!(error, Error::MalformedLine { line: 2, .. }), "{error}");
        let error = read(b"# comment\nPackage: a\n", &limits).unwrap_err();
        assert!(matches!(error, Error::MalformedLine { line: 1, .. }), "{error}");
        let error = read(b"Package: a\n\n  stray\n", &limits).unwrap_err();
        assert!(matches!(error, Error::StrayContinuation { line: 3 }), "{error}");
    }

    #[test]
    fn a_sparse_table_is_bounded() {
        // One record of 1,000 tags and 2,000 of one would make 2 million cells.
        let wide: String = (0..1000).map(|i| format!("T{i}: x\n")).collect();
        let text = wide + &"\nT0: x\n".repeat(2000);
        let limits = Limits { cells_max: 1 << 20, ..Limits::default() };
        assert!(matches!(read(text.as_bytes(), &limits), Err(Error::TooManyCells { .. })));
    }

    #[test]
    fn too_many_tags_are_refused() {
        let text: String = (0..=COLUMNS_MAX).map(|i| format!("T{i}: x\n")).collect();
        let error = read(text.as_bytes(), &Limits::default()).unwrap_err();
        assert!(matches!(error, Error::TooManyFields { .. }), "{error}");
    }

    proptest! {
        #[test]
        fn never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            let _ = read(&bytes, &Limits::default());
        }

        #[test]
        fn reads_what_was_written(
            records in proptest::collection::vec(
                proptest::collection::btree_map("[A-Z][A-Za-z_]{0,8}", "[!-~]{1,20}( [!-~]{1,9}){0,2}", 1..6),
                1..8,
            )
        ) {
            let text: String = records
                .iter()
                .map(|r| r.iter().map(|(t, v)| format!("{t}: {v}\n")).collect::<String>() + "\n")
                .collect();
            let m = table(text.as_bytes());
            prop_assert_eq!(m.rows(), records.len());
            for (row, record) in records.iter().enumerate() {
                for column in m.columns() {
                    prop_assert_eq!(m.field(row, column), record.get(column).map(String::as_str));
                }
            }
        }
    }
}
