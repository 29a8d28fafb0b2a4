//! Our own form and aria2's input files.

use super::{Entry, Line, ListError, Problem, add_header};

#[derive(Default)]
pub(super) struct Parser {
    open: Option<Entry>,
    /// The last URL line was refused; the options that follow it are not worth a word each.
    skipping: bool,
}

impl Parser {
    pub(super) fn line(&mut self, text: &str, line: usize, out: &mut Line) {
        let mut report = |problem| out.1.push(ListError { line, problem });
        if text.starts_with(char::is_whitespace) {
            match &mut self.open {
                None if self.skipping => {}
                None => report(Problem::OptionWithoutUrl),
                Some(entry) => match option(entry, text.trim()) {
                    Ok(()) => {}
                    Err(problem) => {
                        // What should have been verified is not fetched unverified.
                        if matches!(problem, Problem::Checksum(_)) {
                            self.open = None;
                            self.skipping = true;
                        }
                        report(problem);
                    }
                },
            }
            return;
        }
        out.0.extend(self.open.take());
        match columns(text, line) {
            Ok(entry) => self.open = Some(entry),
            Err(problem) => report(problem),
        }
        self.skipping = self.open.is_none();
    }

    pub(super) fn finish(&mut self) -> Option<Entry> {
        self.open.take()
    }
}

/// `URL [mirror]... [destination [checksum]]`, where the destination may be empty.
fn columns(text: &str, line: usize) -> Result<Entry, Problem> {
    let mut columns = text.split('\t').map(str::trim);
    let url = columns.next().unwrap_or_default().to_owned();
    let mut entry = Entry { url, line, ..Entry::default() };
    let mut position = 0;
    for column in columns {
        if position == 0 && looks_like_url(column) {
            entry.mirrors.push(column.to_owned());
            continue;
        }
        match position {
            0 => entry.destination = filled(column),
            1 if column.is_empty() => {}
            1 => entry.checksum = Some(column.parse()?),
            _ if column.is_empty() => {}
            _ => return Err(Problem::TooManyColumns),
        }
        position += 1;
    }
    Ok(entry)
}

fn filled(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

/// Whether a text begins with a scheme (RFC 3986 §3.1) and `://`.
fn looks_like_url(text: &str) -> bool {
    let Some((scheme, _)) = text.split_once("://") else { return false };
    scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.bytes().all(|c| c.is_ascii_alphanumeric() || matches!(c, b'+' | b'-' | b'.'))
}

/// An aria2 option of an entry.
fn option(entry: &mut Entry, text: &str) -> Result<(), Problem> {
    let (name, value) = text.split_once('=').unwrap_or((text, ""));
    let (name, value) = (name.trim(), value.trim());
    match name {
        "out" => entry.destination = filled(value),
        "dir" => entry.directory = filled(value),
        "checksum" => entry.checksum = Some(value.parse()?),
        "header" => add_header(&mut entry.headers, value.to_owned())?,
        "user-agent" => add_header(&mut entry.headers, format!("User-Agent: {value}"))?,
        "referer" => add_header(&mut entry.headers, format!("Referer: {value}"))?,
        _ => return Err(Problem::UnknownOption { name: name.to_owned() }),
    }
    Ok(())
}
