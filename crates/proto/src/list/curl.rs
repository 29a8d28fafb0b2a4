//! curl's config files (`curl -K`): url/output pairs and headers.

use super::{Entry, Line, ListError, Problem};

/// Options in one group at most: curl files are held until `next` or the end.
const OPEN_MAX: usize = 100_000;

#[derive(Debug, Default)]
pub(super) struct Parser {
    urls: Vec<(String, usize)>,
    /// `None` is `remote-name`.
    outputs: Vec<Option<String>>,
    directory: Option<String>,
    headers: Vec<String>,
}

/// Whether a line is one of the options understood here.
pub(super) fn is_option(text: &str) -> bool {
    let (name, _) = split(text.trim());
    matches!(
        name.as_str(),
        "url"
            | "output"
            | "o"
            | "remote-name"
            | "O"
            | "remote-name-all"
            | "next"
            | "header"
            | "H"
            | "output-dir"
            | "create-dirs"
            | "parallel"
            | "Z"
            | "location"
            | "L"
            | "fail"
            | "f"
            | "silent"
            | "s"
            | "show-error"
            | "S"
    ) && !text.contains("://")
        || name == "url"
}

impl Parser {
    pub(super) fn line(&mut self, text: &str, line: usize, out: &mut Line) {
        let (name, value) = split(text.trim());
        let mut problem = |problem| out.1.push(ListError { line, problem });
        let needs_value =
            matches!(name.as_str(), "url" | "output" | "o" | "header" | "H" | "output-dir");
        match (name.as_str(), value) {
            (_, None) if needs_value => problem(Problem::MissingValue { name }),
            ("url", Some(url)) => self.urls.push((url, line)),
            ("output" | "o", Some(output)) => self.outputs.push(Some(output)),
            ("remote-name" | "O", _) => self.outputs.push(None),
            ("output-dir", Some(directory)) => self.directory = Some(directory),
            ("header" | "H", Some(header)) => self.headers.push(header),
            ("next" | ":", _) => out.0.extend(self.finish()),
            // What these ask for is done anyway.
            (
                "remote-name-all" | "create-dirs" | "parallel" | "Z" | "location" | "L" | "fail"
                | "f" | "silent" | "s" | "show-error" | "S",
                _,
            ) => {}
            _ => problem(Problem::UnknownOption { name }),
        }
        if self.urls.len() >= OPEN_MAX {
            out.0.extend(self.finish());
        }
        // A pair is complete as soon as both halves are there, so that a long file of pairs is
        // not held in memory. Headers that follow belong to the entries that follow.
        else if self.headers.is_empty() {
            out.0.extend(self.pairs(false));
        }
    }

    pub(super) fn finish(&mut self) -> Vec<Entry> {
        let entries = self.pairs(true);
        *self = Self::default();
        entries
    }

    /// Pairs in order; with `all`, URLs without an output too.
    fn pairs(&mut self, all: bool) -> Vec<Entry> {
        let ready = if all { self.urls.len() } else { self.urls.len().min(self.outputs.len()) };
        let urls: Vec<_> = self.urls.drain(..ready).collect();
        let taken = ready.min(self.outputs.len());
        let mut outputs = self.outputs.drain(..taken).collect::<Vec<_>>().into_iter();
        urls.into_iter()
            .map(|(url, line)| Entry {
                url,
                line,
                destination: outputs.next().flatten(),
                directory: self.directory.clone(),
                headers: self.headers.clone(),
                ..Entry::default()
            })
            .collect()
    }
}

/// The option's name without dashes, and its value. Between them stand blanks, `=` or `:`.
fn split(text: &str) -> (String, Option<String>) {
    let is_long = text.starts_with("--") || !text.starts_with('-');
    let bare = text.trim_start_matches('-');
    let end = if is_long {
        bare.find(|c: char| c.is_whitespace() || c == '=' || c == ':').unwrap_or(bare.len())
    } else {
        bare.chars().next().map_or(0, char::len_utf8)
    };
    let (name, rest) = bare.split_at(end);
    let rest = rest.trim_start();
    let rest = rest.strip_prefix(['=', ':']).unwrap_or(rest).trim_start();
    let name = if name.is_empty() { ":".to_owned() } else { name.to_owned() };
    (name, value(rest))
}

/// A quoted value with its escapes, or a bare one up to the first blank.
fn value(text: &str) -> Option<String> {
    let Some(quoted) = text.strip_prefix('"') else {
        return text.split_whitespace().next().map(str::to_owned);
    };
    let mut value = String::new();
    let mut chars = quoted.chars();
    while let Some(c) = chars.next() {
        match c {
            '"' => break,
            '\\' => match chars.next() {
                Some('t') => value.push('\t'),
                Some('n') => value.push('\n'),
                Some('r') => value.push('\r'),
                Some('v') => value.push('\u{b}'),
                Some(other) => value.push(other),
                None => break,
            },
            other => value.push(other),
        }
    }
    Some(value)
}
