//! From URLs to local files: a safe name for what is fetched, the path behind a `file:` URL.

use percent_encoding::percent_decode_str;
use thiserror::Error;

/// Longest file name that common file systems take, in bytes.
const NAME_BYTES_MAX: usize = 255;

/// The name of a URL without a last segment, as wget has it.
pub const NAME_DEFAULT: &str = "index.html";

/// A file name from a URL's last path segment: decoded, never `.` or `..`, at most 255 bytes.
///
/// Separators, control characters and marks that reverse the direction of text become `_`: a URL
/// that a server redirected to must choose neither the folder nor what a terminal shows.
pub fn from_url_path(path: &str) -> String {
    let path = path.split(['?', '#']).next().unwrap_or_default();
    let segment = path.rsplit('/').next().unwrap_or_default();
    let decoded = percent_decode_str(segment).decode_utf8_lossy();
    let mut name: String = decoded.chars().map(|c| if is_unsafe(c) { '_' } else { c }).collect();
    while name.len() > NAME_BYTES_MAX {
        name.pop();
    }
    if matches!(name.as_str(), "" | "." | "..") { NAME_DEFAULT.to_owned() } else { name }
}

fn is_unsafe(c: char) -> bool {
    let turns_text = matches!(
        c,
        '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    );
    matches!(c, '/' | '\\') || c.is_control() || turns_text
}

/// A `file:` URL that names no file of this machine.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum FileUrlError {
    /// It does not begin with `file:/`.
    #[error("not a file: URL with an absolute path")]
    NotAFileUrl,
    /// It names another machine.
    #[error("`{host}` is another machine; a file: URL can name only this one")]
    OtherHost {
        /// The host found.
        host: String,
    },
    /// The decoded path is not UTF-8 or holds a NUL.
    #[error("the decoded path is not UTF-8 or holds a NUL; no file can be reached by it here")]
    InvalidPath,
}

/// The path of `file:/p`, `file:///p` and `file://localhost/p` (RFC 8089 §2), with raw blanks and
/// `%20` alike.
///
/// Raw `?` and `#` are part of the name, and a `%` without two hex digits stands for itself: people
/// make such URLs by gluing `file://` to a path.
///
/// # Errors
/// [`FileUrlError`].
pub fn file_url_to_path(url: &str) -> Result<String, FileUrlError> {
    let scheme = url.get(..5).filter(|scheme| scheme.eq_ignore_ascii_case("file:"));
    let rest = &url[scheme.ok_or(FileUrlError::NotAFileUrl)?.len()..];
    let path = match rest.strip_prefix("//") {
        None => rest,
        Some(with_host) => {
            let slash = with_host.find('/').ok_or(FileUrlError::NotAFileUrl)?;
            let host = &with_host[..slash];
            if !host.is_empty() && !host.eq_ignore_ascii_case("localhost") {
                return Err(FileUrlError::OtherHost { host: host.to_owned() });
            }
            &with_host[slash..]
        }
    };
    if !path.starts_with('/') {
        return Err(FileUrlError::NotAFileUrl);
    }
    let decoded = percent_decode_str(path).decode_utf8().map_err(|_| FileUrlError::InvalidPath)?;
    if decoded.contains('\0') {
        return Err(FileUrlError::InvalidPath);
    }
    Ok(decoded.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_are_the_last_segment() {
        assert_eq!(from_url_path("/a/b/pkg_1.0.tar.gz"), "pkg_1.0.tar.gz");
        assert_eq!(from_url_path("/a%20b?x=/y"), "a b");
        assert_eq!(from_url_path("/dir/"), NAME_DEFAULT);
        assert_eq!(from_url_path("/.."), NAME_DEFAULT);
        assert_eq!(from_url_path("/%2e%2e%2fetc%2fpasswd"), ".._etc_passwd");
        assert_eq!(from_url_path("/a%00b%0a"), "a_b_");
        assert_eq!(from_url_path("/a%E2%80%AEgpj.exe"), "a_gpj.exe");
        assert_eq!(from_url_path("/%5C..%5Cx"), "_.._x");
        assert_eq!(from_url_path(&"é".repeat(200)), "é".repeat(127));
        assert_eq!(from_url_path("/100%"), "100%");
    }

    #[test]
    fn every_spelling_of_a_file_url() {
        for url in ["file:/a b/c", "file:///a%20b/c", "FILE://localhost/a%20b/c"] {
            assert_eq!(file_url_to_path(url).unwrap(), "/a b/c", "{url}");
        }
        assert!(matches!(file_url_to_path("file://h/a"), Err(FileUrlError::OtherHost { .. })));
        assert_eq!(file_url_to_path("file:/100%/a?b#c").unwrap(), "/100%/a?b#c");
        assert_eq!(file_url_to_path("file:///a//b").unwrap(), "/a//b");
        assert_eq!(file_url_to_path("file:///a%00"), Err(FileUrlError::InvalidPath));
        for url in ["file:a", "file:", "file://", "file://localhost", "fil", "é:/a"] {
            assert_eq!(file_url_to_path(url), Err(FileUrlError::NotAFileUrl), "{url}");
        }
        assert_eq!(file_url_to_path("file:///%ff"), Err(FileUrlError::InvalidPath));
        assert_eq!(file_url_to_path("http://h/a"), Err(FileUrlError::NotAFileUrl));
    }

    proptest! {
        #[test]
        fn a_name_stays_in_its_folder(path in ".*") {
            let name = from_url_path(&path);
            prop_assert!(!name.is_empty() && name.len() <= NAME_BYTES_MAX);
            prop_assert!(!name.contains(['/', '\\', '\0']));
            prop_assert!(name != "." && name != "..");
        }

        #[test]
        fn no_url_panics(url in ".*") {
            let _ = file_url_to_path(&url);
        }

        #[test]
        fn a_path_survives_its_url(path in "(/[^%/\0]{0,12}){1,4}") {
            let encoded = percent_encoding::utf8_percent_encode(&path, percent_encoding::CONTROLS);
            prop_assert_eq!(file_url_to_path(&format!("file://{encoded}")), Ok(path.clone()));
            prop_assert_eq!(file_url_to_path(&format!("file://localhost{path}")), Ok(path));
        }
    }
}
