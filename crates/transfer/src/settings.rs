//! How an engine behaves: grouped plain data, consumed when it is made.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, HeaderValue};
use trunkline_pool::Limits;
use trunkline_proto::netrc::Netrc;
use trunkline_transport::settings::{
    AddressPolicy, CONNECT_TIMEOUT_DEFAULT, HttpVersion, Route, TCP_KEEPALIVE_DEFAULT,
};
use trunkline_transport::{Origin, OriginSettings, TlsClient};

use crate::credentials::Auth;
use crate::redirect::REDIRECTS_MAX_DEFAULT;
use crate::retry::RetryPolicy;
use crate::route::ProxyRules;

/// How long nothing may come from an origin before its transfers give up (R's default).
pub const STALL_TIMEOUT_DEFAULT: Duration = Duration::from_secs(60);

/// Everything an engine needs.
#[derive(Clone, Debug)]
pub struct EngineSettings {
    /// Connections.
    pub limits: Limits,
    /// How origins are reached.
    pub network: Network,
    /// Who asks.
    pub identity: Identity,
    /// Patience.
    pub patience: Patience,
    /// Bytes a second of all bodies together, received and sent; `None` is no limit.
    pub rate_bytes_per_second: Option<u64>,
    /// What is done with files.
    pub files: Files,
}

/// What is done with files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Files {
    /// Whether a file is flushed to the disk before it gets its final name.
    pub fsync: bool,
    /// Whether bodies are written by the thread that receives them, while they are still in its
    /// cache. It saves a fifth of the CPU, but a slow disk then holds up every transfer of that
    /// thread: for a process that only fetches files. Else the blocking pool writes.
    pub write_in_place: bool,
}

impl EngineSettings {
    /// Defaults with the given TLS client.
    pub fn new(tls: TlsClient) -> Self {
        Self {
            limits: Limits::default(),
            network: Network::new(tls),
            identity: Identity::default(),
            patience: Patience::default(),
            rate_bytes_per_second: None,
            files: Files::default(),
        }
    }
}

/// How origins are reached.
#[derive(Clone, Debug)]
pub struct Network {
    /// Roots and client certificate.
    pub tls: TlsClient,
    /// Which proxy serves which origin.
    pub proxies: ProxyRules,
    /// A Unix socket that stands in for every origin.
    pub unix_socket: Option<PathBuf>,
    /// How names become addresses.
    pub addresses: AddressPolicy,
    /// HTTP versions to offer.
    pub version: HttpVersion,
    /// Time for making a connection.
    pub connect_timeout: Duration,
    /// Idle time before the system probes a connection; `None` is never.
    pub tcp_keepalive: Option<Duration>,
}

impl Network {
    /// Direct connections with the given TLS client.
    pub fn new(tls: TlsClient) -> Self {
        Self {
            tls,
            proxies: ProxyRules::default(),
            unix_socket: None,
            addresses: AddressPolicy::default(),
            version: HttpVersion::Auto,
            connect_timeout: CONNECT_TIMEOUT_DEFAULT,
            tcp_keepalive: Some(TCP_KEEPALIVE_DEFAULT),
        }
    }

    pub(crate) fn settings_for(&self, origin: &Origin) -> OriginSettings {
        let route = match &self.unix_socket {
            Some(path) => Route::Unix(path.clone()),
            None => self.proxies.route(origin),
        };
        OriginSettings {
            tls: self.tls.clone(),
            route,
            addresses: self.addresses.clone(),
            version: self.version,
            connect_timeout: self.connect_timeout,
            tcp_keepalive: self.tcp_keepalive,
        }
    }
}

/// Who asks.
#[derive(Clone, Debug)]
pub struct Identity {
    /// The User-Agent header, sent verbatim to every origin.
    pub user_agent: HeaderValue,
    /// Headers for a request's first origin; they do not follow a redirect elsewhere.
    pub headers: HeaderMap,
    /// Credentials for a request's first origin.
    pub auth: Auth,
    /// Credentials by host.
    pub netrc: Option<Arc<Netrc>>,
}

impl Default for Identity {
    fn default() -> Self {
        let user_agent = concat!("trunkline/", env!("CARGO_PKG_VERSION"));
        Self {
            user_agent: HeaderValue::from_static(user_agent),
            headers: HeaderMap::new(),
            auth: Auth::None,
            netrc: None,
        }
    }
}

/// Patience with slow and failing origins.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// How long nothing may come from an origin before its transfers give up.
    pub stall_timeout: Duration,
    /// Repeated attempts.
    pub retry: RetryPolicy,
    /// Redirects followed for one request.
    pub redirects_max: u32,
    /// Whether a redirect may lead from https to http.
    pub redirect_downgrade: bool,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            stall_timeout: STALL_TIMEOUT_DEFAULT,
            retry: RetryPolicy::default(),
            redirects_max: REDIRECTS_MAX_DEFAULT,
            redirect_downgrade: false,
        }
    }
}

/// What one origin gets instead of the engine's defaults: another client certificate or other
/// credentials, so that one engine can serve two servers.
#[derive(Clone, Debug, Default)]
pub struct OriginProfile {
    /// How it is reached.
    pub network: Option<Network>,
    /// Its credentials, whichever request leads there.
    pub auth: Option<Auth>,
}
