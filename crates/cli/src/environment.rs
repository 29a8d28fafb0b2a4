//! Every environment variable that Trunkline reads, once.

use std::ffi::OsString;
use std::path::PathBuf;

/// What the environment says, in the conventions of curl and OpenSSL.
#[derive(Clone, Debug, Default)]
pub(crate) struct Environment {
    /// `http_proxy`, lower case only: the upper-case form is set by web servers from a request
    /// header in CGI programs (httpoxy).
    pub(crate) http_proxy: Option<String>,
    /// `https_proxy`, `HTTPS_PROXY`.
    pub(crate) https_proxy: Option<String>,
    /// `all_proxy`, `ALL_PROXY`.
    pub(crate) all_proxy: Option<String>,
    /// `no_proxy`, `NO_PROXY`.
    pub(crate) no_proxy: Option<String>,
    /// `CURL_CA_BUNDLE`: a PEM file that replaces the system's roots.
    pub(crate) curl_ca_bundle: Option<PathBuf>,
    /// `SSL_CERT_FILE`: likewise.
    pub(crate) ssl_cert_file: Option<PathBuf>,
    /// `SSL_CERT_DIR`: a folder of PEM files, likewise.
    pub(crate) ssl_cert_dir: Option<PathBuf>,
    /// `NETRC`: where the netrc file is.
    pub(crate) netrc: Option<PathBuf>,
    /// `HOME`.
    pub(crate) home: Option<PathBuf>,
    /// `XDG_CACHE_HOME`: where caches go.
    pub(crate) xdg_cache_home: Option<PathBuf>,
    /// `R_PROFILE_USER`: the profile that R reads.
    pub(crate) r_profile_user: Option<PathBuf>,
}

impl Environment {
    /// Reads the process's environment. Empty values count as unset.
    pub(crate) fn read() -> Self {
        let raw = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        let text = |names: &[&str]| {
            names.iter().find_map(|name| raw(name)).and_then(|value| value.into_string().ok())
        };
        let path = |name: &str| raw(name).map(|value: OsString| PathBuf::from(value));
        Self {
            http_proxy: text(&["http_proxy"]),
            https_proxy: text(&["https_proxy", "HTTPS_PROXY"]),
            all_proxy: text(&["all_proxy", "ALL_PROXY"]),
            no_proxy: text(&["no_proxy", "NO_PROXY"]),
            curl_ca_bundle: path("CURL_CA_BUNDLE"),
            ssl_cert_file: path("SSL_CERT_FILE"),
            ssl_cert_dir: path("SSL_CERT_DIR"),
            netrc: path("NETRC"),
            home: path("HOME"),
            xdg_cache_home: path("XDG_CACHE_HOME"),
            r_profile_user: path("R_PROFILE_USER"),
        }
    }
}
