//! The origin: how a test starts it, fills it, scripts it and reads what it saw.

use crate::background::Background;
use crate::connection::{Manners, attend};
use crate::fault::ConnectionFault;
use crate::log::{ConnectionRecord, Counters, RequestRecord, Upload};
use crate::oauth::TokenIssuer;
use crate::reply::Reply;
use crate::request::Received;
use crate::resource::Resource;
use crate::script::{ConnectionScript, PathScript};
use crate::site::Site;
use crate::tls::{Authority, Identity, ServerTls};
use crate::wire::{Line, Socket};
use crate::{Fault, temp_dir};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

/// How long [`Origin::until`] waits before it fails the test.
const UNTIL_TIMEOUT: Duration = Duration::from_secs(20);
/// Streams allowed at once on an HTTP/2 connection unless the test says otherwise.
const STREAMS_MAX_DEFAULT: u32 = 128;

/// Which protocols an origin speaks, by ALPN over TLS and by the client's first bytes without.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocols {
    /// HTTP/1.1 only.
    H1,
    /// HTTP/2 only.
    H2,
    /// Both; the client's choice.
    Both,
}

/// What an origin is made with; see [`Origin::builder`].
#[derive(Clone, Debug)]
pub struct OriginBuilder {
    authority: Option<Authority>,
    identity: Option<Identity>,
    client_authority: Option<Authority>,
    protocols: Protocols,
    unix: bool,
    ipv6: bool,
    tls12_only: bool,
    resumption: bool,
    line: Line,
    streams_max: u32,
    connections_max: Option<u64>,
}

impl OriginBuilder {
    /// TLS, with a new authority.
    #[must_use]
    pub fn tls(self) -> Self {
        self.authority(&Authority::new("trunkline testkit"))
    }

    /// TLS, with a certificate for loopback signed by this authority.
    #[must_use]
    pub fn authority(mut self, authority: &Authority) -> Self {
        self.authority = Some(authority.clone());
        self
    }

    /// TLS with this certificate instead of one for loopback: another name, or an expired one.
    #[must_use]
    pub fn identity(mut self, authority: &Authority, identity: Identity) -> Self {
        self.authority = Some(authority.clone());
        self.identity = Some(identity);
        self
    }

    /// Only clients with a certificate of this authority get through the TLS handshake.
    #[must_use]
    pub fn require_client_certificate(mut self, authority: &Authority) -> Self {
        self.client_authority = Some(authority.clone());
        self
    }

    /// Which protocols are spoken; both unless said otherwise.
    #[must_use]
    pub fn protocols(mut self, protocols: Protocols) -> Self {
        self.protocols = protocols;
        self
    }

    /// TLS 1.2 and nothing newer.
    #[must_use]
    pub fn tls12_only(mut self) -> Self {
        self.tls12_only = true;
        self
    }

    /// No TLS session is ever resumed.
    #[must_use]
    pub fn without_resumption(mut self) -> Self {
        self.resumption = false;
        self
    }

    /// Listens on a Unix socket in a directory of its own instead of TCP.
    #[must_use]
    pub fn unix(mut self) -> Self {
        self.unix = true;
        self
    }

    /// Listens on `[::1]` instead of `127.0.0.1`.
    #[must_use]
    pub fn ipv6(mut self) -> Self {
        self.ipv6 = true;
        self
    }

    /// A simulated round-trip time: everything a client sends arrives that much later, and a new
    /// connection costs one round trip more, as TCP's handshake does.
    #[must_use]
    pub fn rtt(mut self, rtt: Duration) -> Self {
        self.line.rtt = rtt;
        self
    }

    /// A simulated bandwidth towards the client, per connection.
    #[must_use]
    pub fn bytes_per_second(mut self, rate: u64) -> Self {
        self.line.bytes_per_second = Some(rate);
        self
    }

    /// HTTP/2 streams allowed at once on a connection; 128 unless said otherwise.
    #[must_use]
    pub fn streams_max(mut self, streams: u32) -> Self {
        self.streams_max = streams;
        self
    }

    /// Connections above that many at once are reset.
    #[must_use]
    pub fn connections_max(mut self, connections: u64) -> Self {
        self.connections_max = Some(connections);
        self
    }

    /// Starts the origin.
    ///
    /// # Panics
    /// When no socket can be bound or no thread started.
    pub fn start(self) -> Origin {
        let tls = self.authority.as_ref().map(|authority| {
            let identity = self.identity.clone().unwrap_or_else(|| authority.server());
            let alpn: &[&[u8]] = match self.protocols {
                Protocols::H1 => &[b"http/1.1"],
                Protocols::H2 => &[b"h2"],
                Protocols::Both => &[b"h2", b"http/1.1"],
            };
            let config = ServerTls {
                identity: &identity,
                client_authority: self.client_authority.as_ref(),
                alpn,
                tls12_only: self.tls12_only,
                resumption: self.resumption,
            };
            TlsAcceptor::from(config.config())
        });
        let manners = Manners {
            tls,
            h1: self.protocols != Protocols::H2,
            h2: self.protocols != Protocols::H1,
            line: self.line,
            streams_max: self.streams_max,
        };
        let (listener, place) = bind(self.unix, self.ipv6);
        let limit = Arc::new(AtomicU64::new(self.connections_max.unwrap_or(u64::MAX)));
        let site = Site::default();
        let accepting = accept_all(listener, manners, site.clone(), limit.clone());
        Origin {
            site,
            place,
            limit,
            authority: self.authority,
            _background: Background::run("testkit-origin", || accepting),
        }
    }
}

#[derive(Debug)]
enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener),
}

#[derive(Debug)]
enum Place {
    Tcp(SocketAddr),
    Unix { path: PathBuf, _directory: tempfile::TempDir },
}

fn bind(unix: bool, ipv6: bool) -> (Listener, Place) {
    if unix {
        let directory = temp_dir();
        let path = directory.path().join("origin.sock");
        let listener = UnixListener::bind(&path).expect("a Unix socket can be bound");
        listener.set_nonblocking(true).expect("a socket can be made non-blocking");
        return (Listener::Unix(listener), Place::Unix { path, _directory: directory });
    }
    let listener = TcpListener::bind(if ipv6 { "[::1]:0" } else { "127.0.0.1:0" })
        .expect("a loopback port can be bound");
    listener.set_nonblocking(true).expect("a socket can be made non-blocking");
    let address = listener.local_addr().expect("a bound socket has an address");
    (Listener::Tcp(listener), Place::Tcp(address))
}

async fn accept_all(listener: Listener, manners: Manners, site: Site, limit: Arc<AtomicU64>) {
    let mut connections = JoinSet::new();
    let mut serve = |socket: Socket| {
        while connections.try_join_next().is_some() {}
        let fault = site.scripts.fault_for_connection();
        let full = site.log.connections_open() >= limit.load(Ordering::SeqCst);
        if full || matches!(fault, ConnectionFault::ResetOnAccept) {
            site.log.refused();
            socket.reset();
            return;
        }
        let entry = site.log.accepted();
        connections.spawn(attend(socket, manners.clone(), site.clone(), entry, fault));
    };
    match listener {
        Listener::Tcp(listener) => {
            let listener = tokio::net::TcpListener::from_std(listener).expect("non-blocking");
            loop {
                if let Ok((tcp, _)) = listener.accept().await {
                    let _ = tcp.set_nodelay(true);
                    serve(Socket::Tcp(tcp));
                }
            }
        }
        Listener::Unix(listener) => {
            let listener = tokio::net::UnixListener::from_std(listener).expect("non-blocking");
            loop {
                if let Ok((unix, _)) = listener.accept().await {
                    serve(Socket::Unix(unix));
                }
            }
        }
    }
}

/// Puts resources at an origin's paths; see [`Origin::shelf`].
#[derive(Clone, Debug)]
pub struct Shelf {
    site: Site,
}

impl Shelf {
    /// As [`Origin::put`].
    pub fn put(&self, path: &str, resource: Resource) {
        self.site.put(path, resource);
    }
}

/// A scripted HTTP origin on loopback. Dropping it closes every connection and ends its thread.
#[derive(Debug)]
pub struct Origin {
    site: Site,
    place: Place,
    limit: Arc<AtomicU64>,
    authority: Option<Authority>,
    _background: Background,
}

impl Origin {
    /// An origin to be set up.
    pub fn builder() -> OriginBuilder {
        OriginBuilder {
            authority: None,
            identity: None,
            client_authority: None,
            protocols: Protocols::Both,
            unix: false,
            ipv6: false,
            tls12_only: false,
            resumption: true,
            line: Line::default(),
            streams_max: STREAMS_MAX_DEFAULT,
            connections_max: None,
        }
    }

    /// Plaintext, HTTP/1.1 (and HTTP/2 for a client that starts with its preface).
    pub fn http() -> Self {
        Self::builder().start()
    }

    /// TLS, HTTP/2 and HTTP/1.1 by ALPN.
    pub fn https() -> Self {
        Self::builder().tls().start()
    }

    /// TLS, HTTP/1.1 only.
    pub fn https_h1() -> Self {
        Self::builder().tls().protocols(Protocols::H1).start()
    }

    /// The TCP address.
    ///
    /// # Panics
    /// For an origin on a Unix socket.
    pub fn address(&self) -> SocketAddr {
        match &self.place {
            Place::Tcp(address) => *address,
            Place::Unix { .. } => panic!("an origin on a Unix socket has no TCP address"),
        }
    }

    /// The path of the Unix socket, for an origin that listens on one.
    pub fn unix_path(&self) -> Option<&Path> {
        match &self.place {
            Place::Tcp(_) => None,
            Place::Unix { path, .. } => Some(path),
        }
    }

    /// The URL of a path (with its `/`) by address. For a Unix socket: with host `localhost`.
    pub fn url(&self, path: &str) -> String {
        let scheme = self.scheme();
        match &self.place {
            Place::Tcp(address) => format!("{scheme}://{address}{path}"),
            Place::Unix { .. } => format!("{scheme}://localhost{path}"),
        }
    }

    /// The URL of a path under another host name, such as `localhost` or `files.origin.test`.
    ///
    /// # Panics
    /// For an origin on a Unix socket.
    pub fn url_at(&self, host: &str, path: &str) -> String {
        format!("{}://{host}:{}{path}", self.scheme(), self.address().port())
    }

    fn scheme(&self) -> &'static str {
        if self.authority.is_some() { "https" } else { "http" }
    }

    /// The authority that signed the certificate.
    ///
    /// # Panics
    /// For an origin without TLS.
    pub fn authority(&self) -> &Authority {
        self.authority.as_ref().expect("an origin with TLS was asked for")
    }

    /// The certificate a client must trust, as PEM.
    ///
    /// # Panics
    /// For an origin without TLS.
    pub fn ca_pem(&self) -> &str {
        self.authority().pem()
    }

    /// Puts a resource at a path, or another in its place. Answers under way keep the old bytes.
    pub fn put(&self, path: &str, resource: Resource) {
        self.site.put(path, resource);
    }

    /// A handle that puts resources, for a callback that cannot borrow the origin.
    pub fn shelf(&self) -> Shelf {
        Shelf { site: self.site.clone() }
    }

    /// Removes a resource: the path answers 404 from now on.
    pub fn remove(&self, path: &str) {
        self.site.remove(path);
    }

    /// Answers requests to a path, or to all under a prefix (`"/api/*"`), by a function of the
    /// request and its body. Faults scripted for the path apply to what it returns.
    pub fn handle<F>(&self, pattern: &str, handler: F)
    where
        F: Fn(&Received, &[u8]) -> Reply + Send + Sync + 'static,
    {
        self.site.handle(pattern, Arc::new(handler));
    }

    /// Gives out OAuth2 tokens at a path (RFC 6749, section 4.4).
    pub fn token_endpoint(&self, path: &str, issuer: &TokenIssuer) {
        let issuer = issuer.clone();
        self.handle(path, move |request, body| issuer.answer(request, body));
    }

    /// Redirects `/0` under the prefix to `/1` and so on, `length` times, and then to `target`:
    /// `redirect_chain("/hop", 2, "/a.bin")` answers at `/hop/0` and `/hop/1`.
    pub fn redirect_chain(&self, prefix: &str, length: usize, target: &str) {
        for hop in 0..length {
            let next = hop + 1;
            let location =
                if next == length { target.to_owned() } else { format!("{prefix}/{next}") };
            let _ = self.script(&format!("{prefix}/{hop}")).always(Fault::Redirect(302, location));
        }
    }

    /// The script of a path, or of all paths under a prefix (`"/dir/*"`, `"*"`).
    pub fn script(&self, pattern: &str) -> PathScript {
        self.site.scripts.path(pattern)
    }

    /// The script of connections, in the order they are accepted.
    pub fn connections(&self) -> ConnectionScript {
        self.site.scripts.connections()
    }

    /// Resets connections above that many at once from now on; `None` for no limit.
    pub fn limit_connections(&self, connections: Option<u64>) {
        self.limit.store(connections.unwrap_or(u64::MAX), Ordering::SeqCst);
    }

    /// The counters now.
    pub fn counters(&self) -> Counters {
        self.site.log.counters()
    }

    /// All requests so far, in the order their heads were read.
    pub fn requests(&self) -> Vec<RequestRecord> {
        self.site.log.requests()
    }

    /// The requests to one path so far.
    pub fn requests_to(&self, path: &str) -> Vec<RequestRecord> {
        let mut requests = self.site.log.requests();
        requests.retain(|request| request.head.path == path);
        requests
    }

    /// All connections accepted so far.
    pub fn connection_records(&self) -> Vec<ConnectionRecord> {
        self.site.log.connections()
    }

    /// All bodies received by PUT and POST so far, those of handlers not included.
    pub fn uploads(&self) -> Vec<Upload> {
        self.site.log.uploads()
    }

    /// Waits until the counters satisfy the condition.
    ///
    /// # Panics
    /// When they do not within 20 seconds.
    pub async fn until(&self, condition: impl Fn(&Counters) -> bool) {
        let mut changes = self.site.log.watch();
        let reached = tokio::time::timeout(UNTIL_TIMEOUT, async {
            while !condition(&self.counters()) {
                // The log holds the sender: there is always a next change to wait for.
                let _ = changes.changed().await;
            }
        });
        assert!(reached.await.is_ok(), "never reached; counters: {:?}", self.counters());
    }

    /// [`until`](Self::until) for tests without a runtime: blocks the thread.
    ///
    /// # Panics
    /// When the condition does not hold within 20 seconds, or when called within a runtime.
    pub fn block_until(&self, condition: impl Fn(&Counters) -> bool) {
        tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .expect("a runtime can be built")
            .block_on(self.until(condition));
    }
}
