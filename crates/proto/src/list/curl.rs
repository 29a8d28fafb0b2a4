//! curl's config files (`curl -K`): URL and output pairs, with headers, in groups.
//!
//! As in curl(1), the n-th `url` of a group and its n-th `output` belong together, in whichever
//! order they stand, and headers and the folder are the whole group's, so that a group is held
//! until `next` or the end. A long group is let go earlier, see [`GROUP_BYTES_MAX`].

use std::collections::VecDeque;
use std::sync::Arc;

use super::{Entry, Line, ListError, Problem, add_header};

/// Text of one group that is held, in bytes: some 100,000 pairs. Beyond it complete pairs are
/// given out, and an option that would have changed them is reported; URLs that still wait for
/// their outputs beyond it are refused.
pub(super) const GROUP_BYTES_MAX: usize = 16 << 20;

/// What an option does here.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Meaning {
    Url,
    Output,
    RemoteName,
    Directory,
    Header,
    UserAgent,
    Referer,
    NoGlobbing,
    Next,
    /// What it asks for is done anyway.
    Done,
    /// A flag or a setting that has no meaning in a list.
    NotHere {
        takes_value: bool,
    },
}

const FLAG: Meaning = Meaning::NotHere { takes_value: false };
const SETTING: Meaning = Meaning::NotHere { takes_value: true };

/// Long names, letters (blank: none) and meanings. Those without meaning here are the ones seen in
/// config files: they tell a curl file from other lists, and what belongs to them.
#[rustfmt::skip]
const OPTIONS: &[(&str, char, Meaning)] = &[
    ("url", ' ', Meaning::Url),
    ("output", 'o', Meaning::Output),
    ("remote-name", 'O', Meaning::RemoteName),
    ("no-remote-name", ' ', Meaning::RemoteName),
    ("output-dir", ' ', Meaning::Directory),
    ("header", 'H', Meaning::Header),
    ("user-agent", 'A', Meaning::UserAgent),
    ("referer", 'e', Meaning::Referer),
    ("globoff", 'g', Meaning::NoGlobbing),
    ("next", ':', Meaning::Next),
    ("create-dirs", ' ', Meaning::Done),
    ("fail", 'f', Meaning::Done),
    ("location", 'L', Meaning::Done),
    ("no-progress-meter", ' ', Meaning::Done),
    ("parallel", 'Z', Meaning::Done),
    ("progress-bar", '#', Meaning::Done),
    ("remote-name-all", ' ', Meaning::Done),
    ("show-error", 'S', Meaning::Done),
    ("silent", 's', Meaning::Done),
    ("compressed", ' ', FLAG),
    ("fail-early", ' ', FLAG),
    ("get", 'G', FLAG),
    ("head", 'I', FLAG),
    ("http1.1", ' ', FLAG),
    ("http2", ' ', FLAG),
    ("include", 'i', FLAG),
    ("insecure", 'k', FLAG),
    ("ipv4", '4', FLAG),
    ("ipv6", '6', FLAG),
    ("location-trusted", ' ', FLAG),
    ("netrc", 'n', FLAG),
    ("remote-header-name", 'J', FLAG),
    ("remote-time", 'R', FLAG),
    ("verbose", 'v', FLAG),
    ("cacert", ' ', SETTING),
    ("cert", 'E', SETTING),
    ("connect-timeout", ' ', SETTING),
    ("continue-at", 'C', SETTING),
    ("cookie", 'b', SETTING),
    ("cookie-jar", 'c', SETTING),
    ("data", 'd', SETTING),
    ("form", 'F', SETTING),
    ("key", ' ', SETTING),
    ("limit-rate", ' ', SETTING),
    ("max-redirs", ' ', SETTING),
    ("max-time", 'm', SETTING),
    ("netrc-file", ' ', SETTING),
    ("noproxy", ' ', SETTING),
    ("oauth2-bearer", ' ', SETTING),
    ("parallel-max", ' ', SETTING),
    ("proxy", 'x', SETTING),
    ("proxy-user", 'U', SETTING),
    ("range", 'r', SETTING),
    ("request", 'X', SETTING),
    ("retry", ' ', SETTING),
    ("retry-delay", ' ', SETTING),
    ("upload-file", 'T', SETTING),
    ("user", 'u', SETTING),
    ("write-out", 'w', SETTING),
];

/// Where an entry goes.
enum Output {
    Named(String),
    FromUrl,
    /// The line could not be used; its URL must not be paired with the next one's output.
    Unusable,
}

/// One group, as far as it was read.
#[derive(Default)]
pub(super) struct Parser {
    /// With the line number; `None` for a line that could not be used, whose output goes with it.
    urls: VecDeque<Option<(String, usize)>>,
    outputs: VecDeque<Output>,
    directory: Option<String>,
    headers: Arc<Vec<String>>,
    globbing_off: bool,
    /// Text held in this group, in bytes.
    held_bytes: usize,
    /// Entries of this group are out already: options can no longer reach them.
    started: bool,
    /// URLs are refused until the group ends.
    full: bool,
}

/// Whether a line can only be one of curl's options.
pub(super) fn is_option(text: &str) -> bool {
    let text = text.trim_start();
    if let Some(dashed) = text.strip_prefix('-') {
        return dashed.starts_with(|c: char| c == '-' || c == ':' || c.is_ascii_alphanumeric());
    }
    let (name, _) = split_word(text);
    long(name).is_some() && !text[name.len()..].starts_with("://")
}

impl Parser {
    pub(super) fn line(&mut self, text: &str, line: usize, out: &mut Line) {
        let text = text.trim();
        // curl passes these lines over too.
        if text.starts_with(['/', '*']) {
            return;
        }
        let (word, rest) = split_word(text);
        let found = match word.strip_prefix('-') {
            Some(letters) if !letters.starts_with('-') => {
                self.letters(letters, rest, line, out);
                return;
            }
            Some(long_name) => &long_name[1..],
            None => word,
        };
        match long(found) {
            Some(meaning) => self.option(found, meaning, value(rest), line, out),
            None => out.1.push(ListError { line, problem: unknown(found) }),
        }
    }

    /// Letters may stand together, the last one's value glued on: `-sSLo file`, `-ofile`.
    fn letters(&mut self, letters: &str, rest: &str, line: usize, out: &mut Line) {
        for (at, letter) in letters.char_indices() {
            let name = &letters[at..at + letter.len_utf8()];
            let found = OPTIONS.iter().find(|(_, known, _)| *known == letter);
            let Some((_, _, meaning)) = found else {
                // Whether the rest is its value is not known.
                out.1.push(ListError { line, problem: unknown(name) });
                return;
            };
            if !takes_value(*meaning) {
                self.option(name, *meaning, None, line, out);
                continue;
            }
            let glued = &letters[at + name.len()..];
            let value = if glued.is_empty() { value(rest) } else { Some(glued.to_owned()) };
            self.option(name, *meaning, value, line, out);
            return;
        }
    }

    fn option(
        &mut self,
        name: &str,
        meaning: Meaning,
        value: Option<String>,
        line: usize,
        out: &mut Line,
    ) {
        let mut report = |problem| out.1.push(ListError { line, problem });
        if takes_value(meaning) && value.is_none() {
            match meaning {
                Meaning::Url => self.urls.push_back(None),
                Meaning::Output => self.outputs.push_back(Output::Unusable),
                _ => {}
            }
            report(Problem::MissingValue { name: name.to_owned() });
            return;
        }
        let value = value.unwrap_or_default();
        self.held_bytes += value.len() + size_of::<Entry>();
        let of_the_group = matches!(
            meaning,
            Meaning::Directory | Meaning::Header | Meaning::UserAgent | Meaning::Referer
        );
        if of_the_group && self.started {
            report(Problem::LateOption { name: name.to_owned() });
        }
        match meaning {
            Meaning::Url if self.full => report(Problem::GroupTooLong),
            Meaning::Url => {
                if !self.globbing_off && has_glob(&value) {
                    report(Problem::Glob);
                }
                self.urls.push_back(Some((value, line)));
            }
            // Outputs that no URL waits for are refused with the URLs.
            Meaning::Output | Meaning::RemoteName
                if self.full && self.outputs.len() >= self.urls.len() => {}
            Meaning::Output => self.outputs.push_back(Output::Named(value)),
            Meaning::RemoteName => self.outputs.push_back(Output::FromUrl),
            Meaning::Directory => self.directory = Some(value),
            Meaning::Header if value.starts_with('@') => report(Problem::HeaderFile),
            Meaning::Header | Meaning::UserAgent | Meaning::Referer => {
                let header = match meaning {
                    Meaning::UserAgent => format!("User-Agent: {value}"),
                    // After `;auto` curl would name each redirect's origin to the next.
                    Meaning::Referer => format!("Referer: {}", value.trim_end_matches(";auto")),
                    _ => value,
                };
                if let Err(problem) = add_header(&mut self.headers, header) {
                    report(problem);
                }
            }
            Meaning::NoGlobbing => self.globbing_off = true,
            // Before the first URL there is nothing to part from: curl goes on with what it has.
            Meaning::Next if self.urls.is_empty() && !self.started => {}
            Meaning::Next => out.0.extend(self.finish()),
            Meaning::Done => {}
            Meaning::NotHere { .. } => report(unknown(name)),
        }
        self.keep_within_limit(out);
    }

    fn keep_within_limit(&mut self, out: &mut Line) {
        if self.held_bytes <= GROUP_BYTES_MAX || self.full {
            return;
        }
        let before = out.0.len();
        let ready = self.urls.len().min(self.outputs.len());
        self.give(ready, &mut out.0);
        self.started |= out.0.len() > before;
        let urls = self.urls.iter().flatten().map(|(url, _)| url.len());
        let outputs = self.outputs.iter().map(|output| match output {
            Output::Named(name) => name.len(),
            Output::FromUrl | Output::Unusable => 0,
        });
        let headers = self.headers.iter().map(String::len);
        self.held_bytes =
            urls.chain(outputs).chain(headers).map(|bytes| bytes + size_of::<Entry>()).sum();
        // Half: else the next line would bring it here again, to look at everything again.
        self.full = self.held_bytes > GROUP_BYTES_MAX / 2;
    }

    /// Ends the group. URLs without an output are named by their URL.
    pub(super) fn finish(&mut self) -> Vec<Entry> {
        let mut entries = Vec::with_capacity(self.urls.len());
        self.give(self.urls.len(), &mut entries);
        *self = Self::default();
        entries
    }

    fn give(&mut self, count: usize, entries: &mut Vec<Entry>) {
        for url in self.urls.drain(..count) {
            let destination = match self.outputs.pop_front() {
                Some(Output::Unusable) => continue,
                Some(Output::Named(name)) => Some(name),
                Some(Output::FromUrl) | None => None,
            };
            let Some((url, line)) = url else { continue };
            entries.push(Entry {
                url,
                line,
                destination,
                directory: self.directory.clone(),
                headers: Arc::clone(&self.headers),
                ..Entry::default()
            });
        }
    }
}

fn long(name: &str) -> Option<Meaning> {
    OPTIONS.iter().find(|(known, _, _)| *known == name).map(|(_, _, meaning)| *meaning)
}

fn takes_value(meaning: Meaning) -> bool {
    match meaning {
        Meaning::Url
        | Meaning::Output
        | Meaning::Directory
        | Meaning::Header
        | Meaning::UserAgent
        | Meaning::Referer => true,
        Meaning::NotHere { takes_value } => takes_value,
        Meaning::RemoteName | Meaning::NoGlobbing | Meaning::Next | Meaning::Done => false,
    }
}

fn unknown(name: &str) -> Problem {
    Problem::UnknownOption { name: name.to_owned() }
}

/// Whether curl would make several URLs of one: `{a,b}` or `[1-9]`. The brackets of an IPv6
/// address are none of these.
fn has_glob(url: &str) -> bool {
    let after_scheme = url.split_once("://").map_or(url, |(_, rest)| rest);
    let after_address = match after_scheme.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, rest)) if address.contains(':') => rest,
        _ => after_scheme,
    };
    after_address.contains(['{', '['])
}

/// The option's word, and what follows blanks and separators. `=` and `:` separate only after
/// words without dashes.
fn split_word(text: &str) -> (&str, &str) {
    let is_dashed = text.starts_with('-');
    let is_end = |c: char| c.is_ascii_whitespace() || (!is_dashed && matches!(c, '=' | ':'));
    let (word, rest) = text.split_at(text.find(is_end).unwrap_or(text.len()));
    (word, rest.trim_start_matches(is_end))
}

/// A quoted value with its escapes, or a bare one up to the first blank; `None` when there is none.
fn value(text: &str) -> Option<String> {
    let Some(quoted) = text.strip_prefix('"') else {
        return text.split_ascii_whitespace().next().map(str::to_owned);
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
    (!value.is_empty()).then_some(value)
}
