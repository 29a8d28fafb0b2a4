//! Our own form and aria2's input files.

use super::{Entry, Line, ListError, Problem};

#[derive(Debug, Default)]
pub(super) struct Parser {
    open: Option<Entry>,
}

impl Parser {
    pub(super) fn line(&mut self, text: &str, line: usize, out: &mut Line) {
        let report = |problem| ListError { line, problem };
        if text.starts_with([' ', '\t']) {
            match &mut self.open {
                None => out.1.push(report(Problem::OptionWithoutUrl)),
                Some(entry) => {
                    if let Err(problem) = option(entry, text.trim()) {
                        out.1.push(report(problem));
                    }
                }
            }
            return;
        }
        out.0.extend(self.open.take());
        match columns(text, line) {
            Ok(entry) => self.open = Some(entry),
            Err(problem) => out.1.push(report(problem)),
        }
    }

    pub(super) fn finish(&mut self) -> Option<Entry> {
        self.open.take()
    }
}

fn columns(text: &str, line: usize) -> Result<Entry, Problem> {
    let mut columns = text.split('\t').map(str::trim).filter(|column| !column.is_empty());
    let url = columns.next().unwrap_or_default().to_owned();
    let mut entry = Entry { url, line, ..Entry::default() };
    for column in columns {
        if looks_like_url(column) && entry.destination.is_none() {
            entry.mirrors.push(column.to_owned());
        } else if entry.destination.is_none() {
            entry.destination = Some(column.to_owned());
        } else if entry.checksum.is_none() {
            entry.checksum = Some(column.parse()?);
        } else {
            return Err(Problem::TooManyColumns);
        }
    }
    Ok(entry)
}

fn looks_like_url(text: &str) -> bool {
    let Some((scheme, _)) = text.split_once("://") else { return false };
    !scheme.is_empty() && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// An aria2 option of an entry.
fn option(entry: &mut Entry, text: &str) -> Result<(), Problem> {
    let (name, value) = text.split_once('=').unwrap_or((text, ""));
    let (name, value) = (name.trim(), value.trim());
    match name {
        "out" => entry.destination = Some(value.to_owned()),
        "dir" => entry.directory = Some(value.to_owned()),
        "checksum" => entry.checksum = Some(value.parse()?),
        "header" => entry.headers.push(value.to_owned()),
        _ => return Err(Problem::UnknownOption { name: name.to_owned() }),
    }
    Ok(())
}
