//! From URLs to local files: a safe name for what is fetched, the path behind a `file:` URL.

use percent_encoding::percent_decode_str;
use thiserror::Error;

/// Longest file name that common file systems take, in bytes.
const NAME_BYTES_MAX: usize = 255;

/// The name of a URL without a last segment, as wget has it.
pub const NAME_DEFAULT: &str = "index.html";

/// A file name from a URL's last path segment: decoded, without separators and control
/// characters, never `.` or `..`, at most 255 bytes.
pub fn from_url_path(path: &str) -> String {
    let path = path.split(['?', '#']).next().unwrap_or_default();
    let segment = path.rsplit('/').next().unwrap_or_default();
    let decoded = percent_decode_str(segment).decode_utf8_lossy();
    let mut name: String = decoded
        .chars()
        .map(|c| if matches!(c, '/' | '\\' | '\0') || c.is_control() { '_' } else { c })
        .collect();
    while name.len() > NAME_BYTES_MAX {
        name.pop();
    }
    if matches!(name.as_str(), "" | "." | "..") { NAME_DEFAULT.to_owned() } else { name }
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
    #[error("the path is not valid")]
    InvalidPath,
}

/// The path of `file:/p`, `file:///p` and `file://localhost/p`, with raw blanks and `%20` alike.
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
    }

    #[test]
    fn every_spelling_of_a_file_url() {
        for url in ["file:/a b/c", "file:///a%20b/c", "FILE://localhost/a%20b/c"] {
            assert_eq!(file_url_to_path(url).unwrap(), "/a b/c", "{url}");
        }
        assert!(matches!(file_url_to_path("file://h/a"), Err(FileUrlError::OtherHost { .. })));
        assert_eq!(file_url_to_path("file:a"), Err(FileUrlError::NotAFileUrl));
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
    }
}
