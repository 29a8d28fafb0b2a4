//! Transfer lists, read line by line: our own form, aria2's input files, curl's config files.
//!
//! A parser holds one entry at a time, so that a list of any length takes no memory.
//!
//! | form | an entry |
//! |---|---|
//! | own | `URL [TAB destination [TAB algorithm:hex]]` |
//! | aria2 | `URL [TAB mirror]...`, then indented lines `out=`, `dir=`, `checksum=`, `header=` |
//! | curl | `url = "..."` and `output = "..."`, paired in order, up to a `next` |
//!
//! The first two are one grammar: a second column that looks like a URL is a mirror. A list is
//! curl's when its first line that is no comment is one of curl's options.

mod curl;
mod own;

use thiserror::Error;

use crate::digest::{Digest, DigestError};

/// Longest line accepted, in bytes.
pub const LINE_BYTES_MAX: usize = 64 * 1024;

/// One thing to fetch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    /// Where it comes from.
    pub url: String,
    /// Other places with the same bytes.
    pub mirrors: Vec<String>,
    /// The file to write, when the list names it.
    pub destination: Option<String>,
    /// The folder to write into, when the list names it.
    pub directory: Option<String>,
    /// What the bytes must hash to.
    pub checksum: Option<Digest>,
    /// Headers, `Name: value`.
    pub headers: Vec<String>,
    /// The line that it begins on, from 1.
    pub line: usize,
}

/// A line that cannot be used; the lines after it can.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("line {line}: {problem}")]
pub struct ListError {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub problem: Problem,
}

/// What is wrong with a line.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Problem {
    /// It is longer than the limit.
    #[error("longer than {LINE_BYTES_MAX} bytes")]
    TooLong,
    /// Its checksum cannot be read.
    #[error(transparent)]
    Checksum(#[from] DigestError),
    /// An indented option before any URL.
    #[error("an option before any URL")]
    OptionWithoutUrl,
    /// An option that is not understood; the entry is used without it.
    #[error("the option `{name}` is not understood and was left out")]
    UnknownOption {
        /// Its name.
        name: String,
    },
    /// A curl option without its value.
    #[error("`{name}` needs a value")]
    MissingValue {
        /// The option.
        name: String,
    },
    /// More columns than there can be.
    #[error("more than three columns")]
    TooManyColumns,
}

/// Reads a list; see the [module](self).
#[derive(Debug, Default)]
pub struct ListParser {
    line: usize,
    form: Option<Form>,
}

#[derive(Debug)]
enum Form {
    Own(own::Parser),
    Curl(curl::Parser),
}

/// What a line brought.
pub type Line = (Vec<Entry>, Vec<ListError>);

impl ListParser {
    /// A parser before its first line.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next line, without or with its line end. Returns entries that are complete now
    /// and problems found.
    pub fn line(&mut self, text: &str) -> Line {
        self.line += 1;
        let line = self.line;
        let text = text.strip_suffix('\n').unwrap_or(text);
        let text = text.strip_suffix('\r').unwrap_or(text);
        let text = if line == 1 { text.strip_prefix('\u{feff}').unwrap_or(text) } else { text };
        if text.len() > LINE_BYTES_MAX {
            return (Vec::new(), vec![ListError { line, problem: Problem::TooLong }]);
        }
        if text.trim().is_empty() || text.trim_start().starts_with('#') {
            return Line::default();
        }
        let form = self.form.get_or_insert_with(|| {
            if curl::is_option(text) {
                Form::Curl(Default::default())
            } else {
                Form::Own(Default::default())
            }
        });
        let mut out = Line::default();
        match form {
            Form::Own(parser) => parser.line(text, line, &mut out),
            Form::Curl(parser) => parser.line(text, line, &mut out),
        }
        out
    }

    /// The entries that were still open at the end.
    pub fn finish(&mut self) -> Vec<Entry> {
        match &mut self.form {
            None => Vec::new(),
            Some(Form::Own(parser)) => parser.finish().into_iter().collect(),
            Some(Form::Curl(parser)) => parser.finish(),
        }
    }
}

#[cfg(test)]
mod tests;
