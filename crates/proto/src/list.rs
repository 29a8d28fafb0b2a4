//! Transfer lists, read line by line: our own form, aria2's input files, curl's config files.
//!
//! A parser holds one entry at a time, and of curl's form a group up to a limit, so that a list of
//! any length takes no more memory than a short one.
//!
//! | form | an entry |
//! |---|---|
//! | own | `URL [TAB destination [TAB algorithm:hex]]` |
//! | aria2 | `URL [TAB mirror]...`, then indented lines `out=`, `dir=`, `checksum=`, `header=` |
//! | curl | `url = "..."` and `output = "..."`, paired in order, up to a `next` |
//!
//! The first two are one grammar: a second column that looks like a URL is a mirror. A list is
//! curl's when its first line that is no comment is one of curl's options. In every form a line
//! whose first character is `#` is a comment. The rules are those of curl(1) `--config` and
//! aria2c(1) "Input File"; blanks inside a URL stay as they are, which `file:` URLs need.

mod curl;
mod own;

use std::fmt;
use std::sync::Arc;

use thiserror::Error;

use crate::digest::{Digest, DigestError};

/// Longest line accepted, in bytes.
pub const LINE_BYTES_MAX: usize = 64 * 1024;

/// Headers of one entry or group at most; servers refuse more long before.
pub const HEADERS_MAX: usize = 100;

/// One thing to fetch.
///
/// `Debug` shows neither credentials nor queries of URLs, nor the values of headers.
#[derive(Clone, Default, PartialEq, Eq)]
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
    /// Headers, `Name: value`, [`HEADERS_MAX`] at most. Entries of one curl group share them.
    pub headers: Arc<Vec<String>>,
    /// The line that it begins on, from 1.
    pub line: usize,
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.headers.iter().map(|header| header.split(':').next().unwrap_or_default());
        f.debug_struct("Entry")
            .field("url", &without_secrets(&self.url))
            .field(
                "mirrors",
                &self.mirrors.iter().map(|url| without_secrets(url)).collect::<Vec<_>>(),
            )
            .field("destination", &self.destination)
            .field("directory", &self.directory)
            .field("checksum", &self.checksum)
            .field("headers", &names.collect::<Vec<_>>())
            .field("line", &self.line)
            .finish()
    }
}

/// A URL without what may stand before its host and after its path.
fn without_secrets(url: &str) -> String {
    let end = url.find(['?', '#']).unwrap_or(url.len());
    let (scheme, rest) = url[..end].split_once("://").unwrap_or(("", &url[..end]));
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let host = authority.rsplit('@').next().unwrap_or_default();
    format!("{scheme}://{host}{path}")
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
    /// A URL that curl would expand to several; it is used as it stands.
    #[error("braces and brackets in a URL are not expanded here; write one line for each URL")]
    Glob,
    /// Headers from a file, which a list cannot read.
    #[error("headers are not read from a file here; write the header itself")]
    HeaderFile,
    /// An option of a whole curl group that came when its first entries were already under way.
    #[error("`{name}` comes too late in this long group; write it before the first URL")]
    LateOption {
        /// The option.
        name: String,
    },
    /// Too many URLs of a curl group wait for their outputs; this one is left out.
    #[error("too many URLs before their outputs; write each output after its URL")]
    GroupTooLong,
    /// One header more than [`HEADERS_MAX`]; it is left out.
    #[error("more than {HEADERS_MAX} headers")]
    TooManyHeaders,
}

impl Problem {
    /// Whether the entry is used all the same, as far as it is understood.
    pub fn is_warning(&self) -> bool {
        matches!(self, Self::UnknownOption { .. } | Self::Glob)
    }
}

/// Reads a list; see the [module](self).
#[derive(Default)]
pub struct ListParser {
    line: usize,
    form: Option<Form>,
}

impl fmt::Debug for ListParser {
    /// Without what is held: it may be secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ListParser").field("line", &self.line).finish_non_exhaustive()
    }
}

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

fn add_header(headers: &mut Arc<Vec<String>>, header: String) -> Result<(), Problem> {
    if headers.len() >= HEADERS_MAX {
        return Err(Problem::TooManyHeaders);
    }
    Arc::make_mut(headers).push(header);
    Ok(())
}

#[cfg(test)]
mod tests;
