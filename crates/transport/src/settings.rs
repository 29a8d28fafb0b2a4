//! How an origin is reached: plain data, built once per origin and shared by its connections.

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use trunkline_proto::secret::Secret;

use crate::tls::TlsClient;

/// Time allowed for making a connection, resolution and handshakes included.
pub const CONNECT_TIMEOUT_DEFAULT: Duration = Duration::from_secs(30);

/// Idle time after which the system probes a connection, so that a dead one is found.
pub const TCP_KEEPALIVE_DEFAULT: Duration = Duration::from_secs(60);

/// Everything needed to dial one origin.
#[derive(Clone, Debug)]
pub struct OriginSettings {
    /// Certificates and keys, already parsed.
    pub tls: TlsClient,
    /// The way to the origin.
    pub route: Route,
    /// How names become addresses.
    pub addresses: AddressPolicy,
    /// Which HTTP versions to offer.
    pub version: HttpVersion,
    /// Time for the whole of dialling.
    pub connect_timeout: Duration,
    /// `None` switches TCP keep-alive probes off.
    pub tcp_keepalive: Option<Duration>,
}

impl OriginSettings {
    /// Direct connections with the given TLS client and defaults for the rest.
    pub fn new(tls: TlsClient) -> Self {
        Self {
            tls,
            route: Route::Direct,
            addresses: AddressPolicy::default(),
            version: HttpVersion::Auto,
            connect_timeout: CONNECT_TIMEOUT_DEFAULT,
            tcp_keepalive: Some(TCP_KEEPALIVE_DEFAULT),
        }
    }
}

/// The way to an origin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Route {
    /// To the origin's own address.
    Direct,
    /// Through a Unix socket; the origin's name is still used for `Host` and TLS.
    Unix(PathBuf),
    /// Through an HTTP proxy: CONNECT for https (RFC 9110 §9.3.6), the absolute form for http
    /// (RFC 9112 §3.2.2).
    HttpProxy(Arc<Proxy>),
    /// Through a SOCKS5 proxy (RFC 1928) that resolves the name itself.
    Socks5(Arc<Proxy>),
}

/// A proxy's address and credentials.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proxy {
    /// Host name or address, without brackets.
    pub host: String,
    /// Port.
    pub port: u16,
    /// Whether the proxy itself is spoken to over TLS (`https://` proxy URL).
    pub tls: bool,
    /// User and password, for Basic (HTTP) or RFC 1929 (SOCKS5).
    pub credentials: Option<(String, Secret)>,
}

/// How names become addresses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AddressPolicy {
    /// Which families may be used.
    pub family: AddressFamily,
    /// Fixed answers that go before the resolver: host, port, addresses (curl's `--resolve`).
    pub overrides: Vec<AddressOverride>,
}

/// One fixed answer of name resolution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddressOverride {
    /// Host name, lower case.
    pub host: String,
    /// Port that it holds for.
    pub port: u16,
    /// Addresses, tried in order.
    pub addresses: Vec<IpAddr>,
}

/// Address families allowed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AddressFamily {
    /// Both, raced (RFC 8305).
    #[default]
    Any,
    /// IPv4 alone.
    V4,
    /// IPv6 alone.
    V6,
}

/// HTTP versions offered to the origin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HttpVersion {
    /// HTTP/2 where TLS's ALPN agrees (RFC 7301), else HTTP/1.1.
    #[default]
    Auto,
    /// HTTP/1.1 alone.
    Http1,
    /// HTTP/2 without asking, also in clear text (prior knowledge, RFC 9113 §3.3).
    Http2,
}
