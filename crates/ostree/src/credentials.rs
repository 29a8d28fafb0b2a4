//! The credentials file of the Treehub tools: `credentials.zip`, or a bare `treehub.json`.

use std::fs::File;
use std::io::{self, Read, Seek};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Deserialize;
use trunkline_proto::secret::Secret;
use trunkline_transfer::{Auth, TokenSource};
use url::Url;

/// Longest file inside in bytes.
const ENTRY_BYTES_MAX: u64 = 4 << 20;
/// How a zip archive begins.
const ZIP_MAGIC: [u8; 2] = *b"PK";

/// What a credentials file says.
#[derive(Debug)]
pub struct Credentials {
    /// Base of the server.
    pub server: Url,
    /// How requests prove who sends them.
    pub auth: Auth,
    /// A client certificate, PKCS#12 without a password; wins over everything else.
    pub client_auth: Option<Vec<u8>>,
    /// Where the signed metadata lies.
    pub tufrepo: Option<Url>,
}

/// A credentials file cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CredentialsError {
    /// It cannot be read.
    #[error("cannot read the credentials `{}`: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// An archive without the file that matters.
    #[error("`{}` has no treehub.json inside", .0.display())]
    NoTreehubJson(PathBuf),
    /// The JSON is not of the form that is expected.
    #[error("treehub.json in `{}`: {source}", path.display())]
    Json {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        #[source]
        source: serde_json::Error,
    },
    /// An address in it is no URL.
    #[error("`{field}` in `{}` is no URL", path.display())]
    Url {
        /// Which field.
        field: &'static str,
        /// The file.
        path: PathBuf,
    },
    /// The archive is broken.
    #[error("`{}` is a damaged zip archive: {source}", path.display())]
    Zip {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        #[source]
        source: zip::result::ZipError,
    },
}

#[derive(Deserialize)]
struct TreehubJson {
    ostree: Ostree,
    #[serde(default)]
    oauth2: Option<OAuth2>,
    #[serde(default)]
    basic_auth: Option<BasicAuth>,
}

#[derive(Deserialize)]
struct Ostree {
    server: String,
}

#[derive(Deserialize)]
struct OAuth2 {
    server: String,
    client_id: String,
    client_secret: String,
    #[serde(default)]
    scope: Option<String>,
}

#[derive(Deserialize)]
struct BasicAuth {
    /// Some files in the field say `username`.
    #[serde(alias = "username")]
    user: String,
    password: String,
}

impl Credentials {
    /// Reads a credentials file of either form, whatever its layout.
    ///
    /// # Errors
    /// [`CredentialsError`].
    pub fn read(path: &Path) -> Result<Self, CredentialsError> {
        let failed = |source| CredentialsError::File { path: path.to_owned(), source };
        let mut file = File::open(path).map_err(failed)?;
        let mut magic = [0; 2];
        let is_zip = file.read_exact(&mut magic).is_ok() && magic == ZIP_MAGIC;
        file.rewind().map_err(failed)?;
        if !is_zip {
            let mut text = Vec::new();
            file.take(ENTRY_BYTES_MAX).read_to_end(&mut text).map_err(failed)?;
            return Self::from_json(path, &text, None, None);
        }
        let broken = |source| CredentialsError::Zip { path: path.to_owned(), source };
        let mut archive = zip::ZipArchive::new(file).map_err(broken)?;
        let mut entry = |name: &str| -> Result<Option<Vec<u8>>, CredentialsError> {
            let entry = match archive.by_name(name) {
                Ok(entry) => entry,
                Err(zip::result::ZipError::FileNotFound) => return Ok(None),
                Err(source) => return Err(broken(source)),
            };
            let mut data = Vec::new();
            entry.take(ENTRY_BYTES_MAX).read_to_end(&mut data).map_err(failed)?;
            Ok(Some(data))
        };
        let json = entry("treehub.json")?;
        let client_auth = entry("client_auth.p12")?;
        let tufrepo = entry("tufrepo.url")?;
        let json = json.ok_or_else(|| CredentialsError::NoTreehubJson(path.to_owned()))?;
        Self::from_json(path, &json, client_auth, tufrepo)
    }

    fn from_json(
        path: &Path,
        json: &[u8],
        client_auth: Option<Vec<u8>>,
        tufrepo: Option<Vec<u8>>,
    ) -> Result<Self, CredentialsError> {
        let wrong = |source| CredentialsError::Json { path: path.to_owned(), source };
        let json: TreehubJson = serde_json::from_slice(json).map_err(wrong)?;
        let url = |field, text: &str| {
            Url::parse(text.trim())
                .map_err(|_| CredentialsError::Url { field, path: path.to_owned() })
        };
        let server = url("ostree.server", &json.ostree.server)?;
        let auth = match (json.oauth2, json.basic_auth) {
            // A client certificate is enough, and an empty client means: none.
            _ if client_auth.is_some() => Auth::None,
            (Some(oauth2), _) if !oauth2.client_id.is_empty() => {
                let mut endpoint = url("oauth2.server", &oauth2.server)?;
                // An address of the token call itself takes a scope, one of the server does not.
                let is_token = endpoint.path().ends_with("/token");
                if !is_token {
                    let base = endpoint.path().trim_end_matches('/').to_owned();
                    endpoint.set_path(&format!("{base}/token"));
                }
                let scope = oauth2.scope.filter(|scope| is_token && !scope.is_empty());
                let secret = Secret::new(oauth2.client_secret);
                Auth::OAuth2(Arc::new(TokenSource::new(endpoint, oauth2.client_id, secret, scope)))
            }
            (_, Some(basic)) => {
                Auth::Basic { user: basic.user, password: Secret::new(basic.password) }
            }
            _ => Auth::None,
        };
        let tufrepo = match tufrepo {
            None => None,
            Some(text) => Some(url("tufrepo.url", &String::from_utf8_lossy(&text))?),
        };
        Ok(Self { server, auth, client_auth, tufrepo })
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn read(json: &str) -> Credentials {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(json.as_bytes()).unwrap();
        Credentials::read(file.path()).unwrap()
    }

    #[test]
    fn a_bare_file_in_any_layout() {
        let line = r#"{"ostree":{"server":"https://h/api/v3/"},"no_auth":true}"#;
        for json in [line.to_owned(), line.replace(',', ",\n  "), format!("\n{line}\n")] {
            let credentials = read(&json);
            assert_eq!(credentials.server.as_str(), "https://h/api/v3/");
            assert!(matches!(credentials.auth, Auth::None));
        }
    }

    #[test]
    fn both_spellings_of_the_user() {
        for name in ["user", "username"] {
            let credentials = read(&format!(
                r#"{{"ostree":{{"server":"https://h/"}},"basic_auth":{{"{name}":"u","password":"p"}}}}"#
            ));
            assert!(matches!(credentials.auth, Auth::Basic { user, .. } if user == "u"));
        }
    }

    #[test]
    fn an_archive_with_a_certificate() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut archive = zip::ZipWriter::new(file.reopen().unwrap());
        let options = zip::write::SimpleFileOptions::default();
        for (name, text) in [
            (
                "treehub.json",
                r#"{"ostree":{"server":"https://h/"},"oauth2":{"server":"https://t","client_id":"a","client_secret":"b","scope":"c"}}"#,
            ),
            ("tufrepo.url", "https://tuf/\n"),
        ] {
            archive.start_file(name, options).unwrap();
            archive.write_all(text.as_bytes()).unwrap();
        }
        archive.finish().unwrap();
        let credentials = Credentials::read(file.path()).unwrap();
        assert!(matches!(credentials.auth, Auth::OAuth2(_)));
        assert_eq!(credentials.tufrepo.unwrap().as_str(), "https://tuf/");
    }

    #[test]
    fn what_lacks_is_named() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut archive = zip::ZipWriter::new(file.reopen().unwrap());
        archive.start_file("x", zip::write::SimpleFileOptions::default()).unwrap();
        archive.finish().unwrap();
        assert!(matches!(Credentials::read(file.path()), Err(CredentialsError::NoTreehubJson(_))));
    }
}
