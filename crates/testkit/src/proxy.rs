//! A logging HTTP proxy: CONNECT tunnels, and plain forwarding of `http` requests.

use crate::background::Background;
use crate::request::Received;
use bytes::BytesMut;
use std::collections::HashMap;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

/// The largest request head that is read.
const HEAD_BYTES_MAX: usize = 64 << 10;

/// One request for a way through.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Tunnel {
    /// What was asked for, `host:port`.
    pub target: String,
    /// Whether a tunnel (CONNECT, SOCKS) was asked for, not the forwarding of one request.
    pub tunnel: bool,
    /// Whether the credentials sufficed.
    pub allowed: bool,
    /// Whether the client named the target by host name, not by address.
    pub by_name: bool,
}

/// What both kinds of proxy know.
#[derive(Clone, Debug, Default)]
pub(crate) struct Relay {
    inner: Arc<Mutex<RelayState>>,
}

#[derive(Debug, Default)]
struct RelayState {
    credentials: Option<(String, String)>,
    hosts: HashMap<String, SocketAddr>,
    tunnels: Vec<Tunnel>,
    connections: usize,
}

impl Relay {
    pub(crate) fn with_credentials(credentials: Option<(&str, &str)>) -> Self {
        let relay = Self::default();
        relay.state().credentials =
            credentials.map(|(user, password)| (user.to_owned(), password.to_owned()));
        relay
    }

    fn state(&self) -> MutexGuard<'_, RelayState> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn credentials(&self) -> Option<(String, String)> {
        self.state().credentials.clone()
    }

    pub(crate) fn log(&self, tunnel: Tunnel) {
        self.state().tunnels.push(tunnel);
    }

    pub(crate) fn accepted(&self) {
        self.state().connections += 1;
    }

    pub(crate) fn tunnels(&self) -> Vec<Tunnel> {
        self.state().tunnels.clone()
    }

    pub(crate) fn connections(&self) -> usize {
        self.state().connections
    }

    pub(crate) fn resolve(&self, host: &str, address: SocketAddr) {
        self.state().hosts.insert(host.to_owned(), address);
    }

    /// Connects to a target of the form `host:port`; only loopback and the names the test gave.
    pub(crate) async fn dial(&self, target: &str) -> io::Result<TcpStream> {
        let host = target.rsplit_once(':').map_or(target, |(host, _)| host);
        let given = self.state().hosts.get(host).copied();
        let address = match given {
            Some(address) => address,
            None => target
                .replace("localhost", "127.0.0.1")
                .parse()
                .map_err(|_| io::Error::from(io::ErrorKind::HostUnreachable))?,
        };
        if !address.ip().is_loopback() {
            return Err(io::ErrorKind::HostUnreachable.into());
        }
        let tcp = TcpStream::connect(address).await?;
        tcp.set_nodelay(true)?;
        Ok(tcp)
    }
}

/// Binds a loopback port and serves each connection by `serve` in the background.
pub(crate) fn serve_each<F, Fut>(name: &str, serve: F) -> (SocketAddr, Background)
where
    F: Fn(TcpStream) -> Fut + Send + 'static,
    Fut: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").expect("a loopback port can be bound");
    listener.set_nonblocking(true).expect("a socket can be made non-blocking");
    let address = listener.local_addr().expect("a bound socket has an address");
    let background = Background::run(name, move || async move {
        let listener = tokio::net::TcpListener::from_std(listener).expect("non-blocking");
        let mut connections = JoinSet::new();
        loop {
            if let Ok((tcp, _)) = listener.accept().await {
                let _ = tcp.set_nodelay(true);
                while connections.try_join_next().is_some() {}
                connections.spawn(serve(tcp));
            }
        }
    });
    (address, background)
}

/// An HTTP proxy on loopback (RFC 9110, section 9.3.6). It reaches loopback only, and the host
/// names it was told; dropping it closes every tunnel.
#[derive(Debug)]
pub struct ConnectProxy {
    relay: Relay,
    address: SocketAddr,
    _background: Background,
}

impl ConnectProxy {
    /// A proxy that asks for nothing.
    pub fn start() -> Self {
        Self::with_relay(Relay::default())
    }

    /// A proxy that answers 407 unless it gets these Basic credentials.
    pub fn with_credentials(user: &str, password: &str) -> Self {
        Self::with_relay(Relay::with_credentials(Some((user, password))))
    }

    fn with_relay(relay: Relay) -> Self {
        let shared = relay.clone();
        let (address, background) = serve_each("testkit-proxy", move |tcp| {
            let relay = shared.clone();
            async move {
                relay.accepted();
                // An error ends this client's connection, which is all it can mean here.
                let _ = attend(tcp, &relay).await;
            }
        });
        Self { relay, address, _background: background }
    }

    /// The address it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The proxy's URL, without credentials.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The proxy's URL with credentials in it, as it stands in an environment variable.
    pub fn url_with(&self, user: &str, password: &str) -> String {
        format!("http://{user}:{password}@{}", self.address)
    }

    /// Makes a host name lead to an address, whatever port is asked for.
    pub fn resolve(&self, host: &str, address: SocketAddr) {
        self.relay.resolve(host, address);
    }

    /// What was asked for so far, refused requests included.
    pub fn tunnels(&self) -> Vec<Tunnel> {
        self.relay.tunnels()
    }

    /// How many connections were accepted.
    pub fn connections(&self) -> usize {
        self.relay.connections()
    }
}

async fn attend(mut client: TcpStream, relay: &Relay) -> io::Result<()> {
    let mut buf = BytesMut::new();
    loop {
        let Some((head, target)) = read_head(&mut client, &mut buf).await? else { return Ok(()) };
        let connect = head.method == "CONNECT";
        let target = if connect { target } else { authority_of(&target) };
        let allowed = relay
            .credentials()
            .is_none_or(|right| head.basic("proxy-authorization") == Some(right));
        let host = target.rsplit_once(':').map_or(target.as_str(), |(host, _)| host);
        let by_name = host.trim_matches(['[', ']']).parse::<std::net::IpAddr>().is_err();
        let tunnel = Tunnel { target: target.clone(), tunnel: connect, allowed, by_name };
        relay.log(tunnel);
        if !allowed {
            client
                .write_all(
                    b"HTTP/1.1 407 Proxy Authentication Required\r\n\
                      proxy-authenticate: Basic realm=\"testkit\"\r\ncontent-length: 0\r\n\r\n",
                )
                .await?;
            continue;
        }
        let Ok(mut upstream) = relay.dial(&target).await else {
            client.write_all(b"HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\n\r\n").await?;
            continue;
        };
        if connect {
            client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await?;
            upstream.write_all(&buf).await?;
        } else {
            upstream.write_all(&forwarded_head(&head)).await?;
            upstream.write_all(&buf).await?;
        }
        copy_bidirectional(&mut client, &mut upstream).await?;
        return Ok(());
    }
}

/// The request in origin-form, without what is meant for the proxy, for one exchange only.
fn forwarded_head(head: &Received) -> Vec<u8> {
    let query = head.query.as_ref().map_or(String::new(), |query| format!("?{query}"));
    let mut text =
        format!("{} {}{query} HTTP/1.1\r\nconnection: close\r\n", head.method, head.path);
    for (name, value) in &head.headers {
        let hop = name.to_ascii_lowercase();
        if hop != "connection" && !hop.starts_with("proxy-") {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
    }
    text.push_str("\r\n");
    text.into_bytes()
}

fn authority_of(target: &str) -> String {
    let rest = target.split_once("://").map_or(target, |(_, rest)| rest);
    let authority = rest.split('/').next().unwrap_or_default();
    if authority.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok()) {
        authority.to_owned()
    } else {
        format!("{authority}:80")
    }
}

async fn read_head(
    client: &mut TcpStream,
    buf: &mut BytesMut,
) -> io::Result<Option<(Received, String)>> {
    loop {
        let mut fields = [httparse::EMPTY_HEADER; 128];
        let mut head = httparse::Request::new(&mut fields);
        let parsed =
            head.parse(buf).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        if let httparse::Status::Complete(head_bytes) = parsed {
            let target = head.path.unwrap_or_default().to_owned();
            let (path, query) = Received::split_target(&target);
            let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
            let received = Received {
                method: head.method.unwrap_or_default().to_owned(),
                path,
                query,
                headers: head.headers.iter().map(|f| (f.name.to_owned(), text(f.value))).collect(),
                protocol: "HTTP/1.1",
                connection: 0,
            };
            let _ = buf.split_to(head_bytes);
            return Ok(Some((received, target)));
        }
        if buf.len() > HEAD_BYTES_MAX {
            return Err(io::ErrorKind::InvalidData.into());
        }
        if client.read_buf(buf).await? == 0 {
            return Ok(None);
        }
    }
}
