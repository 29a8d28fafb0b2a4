//! The netrc file: credentials by host.
//!
//! The format is ftp(1)'s, with the additions that curl made: quoted values with backslash
//! escapes, and comments from a `#` to the end of the line. A `#` where a value is expected is the
//! value: passwords begin with it.

use std::iter::Peekable;
use std::str::Chars;

use thiserror::Error;

use crate::secret::Secret;

/// A parsed file.
#[derive(Clone, Debug, Default)]
pub struct Netrc {
    entries: Vec<Entry>,
}

#[derive(Clone, Debug, Default)]
struct Entry {
    /// `None` is the default entry.
    host: Option<String>,
    login: Option<String>,
    password: Option<Secret>,
}

/// A file that breaks the grammar.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum NetrcError {
    /// A keyword without its value.
    #[error("line {line}: `{keyword}` needs a value")]
    MissingValue {
        /// Line, from 1.
        line: usize,
        /// The keyword.
        keyword: &'static str,
    },
    /// `login` or `password` before any `machine`.
    #[error("line {line}: `{keyword}` stands before any `machine`")]
    NoMachine {
        /// Line, from 1.
        line: usize,
        /// The keyword.
        keyword: &'static str,
    },
    /// A word that is no keyword. It is not shown: it may be part of a password.
    #[error("line {line}: a word that is no netrc keyword")]
    UnknownWord {
        /// Line, from 1.
        line: usize,
    },
    /// A quoted value without its closing quote.
    #[error("line {line}: a quoted value does not end")]
    OpenQuote {
        /// Line, from 1.
        line: usize,
    },
}

impl Netrc {
    /// Reads a file's text.
    ///
    /// # Errors
    /// [`NetrcError`] with the line; credentials are never part of it.
    pub fn parse(text: &str) -> Result<Self, NetrcError> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut words = Words { chars: text.chars().peekable(), line: 1 };
        let mut entries: Vec<Entry> = Vec::new();
        while let Some(word) = words.next()? {
            let keyword = match word.as_str() {
                comment if comment.starts_with('#') => {
                    words.skip_line();
                    continue;
                }
                "machine" => {
                    let host = words.value("machine")?.to_ascii_lowercase();
                    entries.push(Entry { host: Some(host), ..Entry::default() });
                    continue;
                }
                "default" => {
                    entries.push(Entry::default());
                    continue;
                }
                "macdef" => {
                    words.value("macdef")?;
                    words.skip_macro();
                    continue;
                }
                "login" => "login",
                "password" => "password",
                "account" => "account",
                _ => return Err(NetrcError::UnknownWord { line: words.line }),
            };
            let value = words.value(keyword)?;
            let line = words.line;
            let entry = entries.last_mut().ok_or(NetrcError::NoMachine { line, keyword })?;
            match keyword {
                "login" => entry.login = Some(value),
                "password" => entry.password = Some(Secret::new(value)),
                _ => {}
            }
        }
        Ok(Self { entries })
    }

    /// Login and password for a host: its first entry that has both, else the default's.
    pub fn lookup(&self, host: &str) -> Option<(&str, &Secret)> {
        let host = host.to_ascii_lowercase();
        let complete = |entry: &'_ Entry| entry.login.is_some() && entry.password.is_some();
        let found = self
            .entries
            .iter()
            .find(|entry| entry.host.as_deref() == Some(&host) && complete(entry))
            .or_else(|| {
                self.entries.iter().find(|entry| entry.host.is_none() && complete(entry))
            })?;
        Some((found.login.as_deref()?, found.password.as_ref()?))
    }
}

struct Words<'t> {
    chars: Peekable<Chars<'t>>,
    line: usize,
}

impl Words<'_> {
    fn next(&mut self) -> Result<Option<String>, NetrcError> {
        loop {
            match self.chars.peek() {
                None => return Ok(None),
                Some(c) if c.is_whitespace() => self.skip_char(),
                Some('"') => return self.quoted().map(Some),
                Some(_) => break,
            }
        }
        let mut word = String::new();
        while let Some(c) = self.chars.next_if(|c| !c.is_whitespace()) {
            word.push(c);
        }
        Ok(Some(word))
    }

    fn value(&mut self, keyword: &'static str) -> Result<String, NetrcError> {
        let line = self.line;
        self.next()?.ok_or(NetrcError::MissingValue { line, keyword })
    }

    fn quoted(&mut self) -> Result<String, NetrcError> {
        let line = self.line;
        self.chars.next();
        let mut word = String::new();
        loop {
            match self.chars.next() {
                None | Some('\n') => return Err(NetrcError::OpenQuote { line }),
                Some('"') => return Ok(word),
                Some('\\') => match self.chars.next() {
                    None => return Err(NetrcError::OpenQuote { line }),
                    Some('n') => word.push('\n'),
                    Some('r') => word.push('\r'),
                    Some('t') => word.push('\t'),
                    Some(other) => word.push(other),
                },
                Some(c) => word.push(c),
            }
        }
    }

    fn skip_char(&mut self) {
        if self.chars.next() == Some('\n') {
            self.line += 1;
        }
    }

    fn skip_line(&mut self) {
        while self.chars.next_if(|c| *c != '\n').is_some() {}
    }

    /// A macro ends at an empty line.
    fn skip_macro(&mut self) {
        self.skip_line();
        let mut empty = false;
        while let Some(c) = self.chars.peek() {
            if *c == '\n' {
                if empty {
                    return;
                }
                empty = true;
            } else if *c != '\r' {
                empty = false;
            }
            self.skip_char();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn lookup(text: &str, host: &str) -> Option<(String, String)> {
        let netrc = Netrc::parse(text).unwrap();
        let (login, password) = netrc.lookup(host)?;
        Some((login.to_owned(), password.expose().to_owned()))
    }

    fn pair(login: &str, password: &str) -> Option<(String, String)> {
        Some((login.to_owned(), password.to_owned()))
    }

    #[test]
    fn one_line_and_many_lines() {
        let text = "# mine\nmachine A.example login me password hush\n\
                    machine b.example\n  login you\n  account x\n  password \"a b\\\"c\"\n";
        assert_eq!(lookup(text, "a.EXAMPLE"), pair("me", "hush"));
        assert_eq!(lookup(text, "b.example"), pair("you", "a b\"c"));
        assert_eq!(lookup(text, "c.example"), None);
    }

    #[test]
    fn the_default_comes_last_wherever_it_stands() {
        let text = "default login any password one machine a login b password c";
        assert_eq!(lookup(text, "a"), pair("b", "c"));
        assert_eq!(lookup(text, "z"), pair("any", "one"));
    }

    #[test]
    fn a_password_may_begin_with_a_hash() {
        assert_eq!(lookup("machine a login b password #1\n#x\n", "a"), pair("b", "#1"));
    }

    #[test]
    fn a_comment_may_follow_an_entry() {
        let text = "  # top\nmachine a login b password c # its \"owner\nmachine d # here\n\
                    #login x\nlogin e password f#g\n#";
        assert_eq!(lookup(text, "a"), pair("b", "c"));
        assert_eq!(lookup(text, "d"), pair("e", "f#g"));
    }

    #[test]
    fn the_first_complete_entry_of_a_host_counts() {
        let text = "machine a login only\nmachine a login b password c\nmachine a login d password e\n\
                    default login f password g";
        assert_eq!(lookup(text, "a"), pair("b", "c"));
        assert_eq!(lookup("machine a login only default login f password g", "a"), pair("f", "g"));
        assert_eq!(lookup("\u{feff}machine a login b password \"\"", "a"), pair("b", ""));
    }

    #[test]
    fn what_is_shown_of_a_file_holds_no_password() {
        let netrc = Netrc::parse("machine a login b password hush").unwrap();
        assert!(!format!("{netrc:?}").contains("hush"));
    }

    #[test]
    fn macros_are_passed_over() {
        let text = "macdef init\nmachine evil login x password y\n\nmachine a login b password c";
        assert_eq!(lookup(text, "evil"), None);
        assert_eq!(lookup(text, "a"), pair("b", "c"));
    }

    #[test]
    fn errors_name_the_line_and_no_secret() {
        let error = Netrc::parse("machine a\nlogin b password hush extra").unwrap_err();
        assert_eq!(error, NetrcError::UnknownWord { line: 2 });
        assert!(!error.to_string().contains("extra"));
        assert!(matches!(Netrc::parse("machine"), Err(NetrcError::MissingValue { line: 1, .. })));
        assert!(matches!(Netrc::parse("login a"), Err(NetrcError::NoMachine { line: 1, .. })));
        assert!(matches!(Netrc::parse("machine \"a"), Err(NetrcError::OpenQuote { line: 1 })));
    }

    proptest! {
        #[test]
        fn no_text_panics(text in ".*", host in ".*") {
            if let Ok(netrc) = Netrc::parse(&text) {
                netrc.lookup(&host);
            }
        }

        #[test]
        fn what_is_quoted_is_read(password in "[ -~]{0,30}") {
            let escaped = password.replace('\\', "\\\\").replace('"', "\\\"");
            let text = format!("machine h login l password \"{escaped}\"");
            prop_assert_eq!(lookup(&text, "h"), pair("l", &password));
        }
    }
}
