//! The tour's own origin: a TLS server on loopback behind a simulated round trip.
//!
//! It runs on a thread of its own, so that it disturbs the client as little as another machine
//! would, and it counts what reaches it: an independent witness of what the client did.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::{HandshakeKind, ServerConfig};
use tokio::io::{AsyncRead, AsyncWrite, duplex};
use tokio::sync::oneshot;
use tokio_rustls::TlsAcceptor;
use trunkline_listen::{Drain, Limits, Listener, Server, Stream};
use url::Url;

use super::answer::answer;
use super::certificate::{ALPN_HTTP1, ALPN_HTTP2, Certificate, HOST};
use super::delay::relay;
use super::error::TourError;
use super::files::{FileSet, TourFile};

/// Connections served at once; others wait in the system's queue.
const CONNECTIONS_MAX: usize = 64;

/// HTTP/2 streams at once per connection: what nginx allows.
const STREAMS_MAX: u32 = 128;

/// Bytes between the relay and the server that neither has taken yet, in each direction.
const PIPE_BYTES: usize = 64 << 10;

/// What an origin has seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// TCP connections accepted.
    pub(crate) connections: u64,
    /// TLS handshakes with certificates and signatures.
    pub(crate) handshakes_full: u64,
    /// TLS handshakes by a ticket of an earlier session.
    pub(crate) handshakes_resumed: u64,
    /// HTTP requests.
    pub(crate) requests: u64,
}

#[derive(Debug, Default)]
struct Counters {
    connections: AtomicU64,
    handshakes_full: AtomicU64,
    handshakes_resumed: AtomicU64,
    requests: AtomicU64,
}

impl Counters {
    fn add(counter: &AtomicU64) {
        counter.fetch_add(1, Ordering::Relaxed);
    }

    fn snapshot(&self) -> Counts {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Counts {
            connections: get(&self.connections),
            handshakes_full: get(&self.handshakes_full),
            handshakes_resumed: get(&self.handshakes_resumed),
            requests: get(&self.requests),
        }
    }
}

/// How an origin serves.
#[derive(Clone, Copy, Debug)]
pub(super) struct OriginSettings {
    /// The simulated round trip.
    pub(super) round_trip: Duration,
    /// Whether HTTP/2 is offered besides HTTP/1.1.
    pub(super) http2: bool,
}

/// A running origin. Dropping it stops it and cuts its connections.
#[derive(Debug)]
pub(super) struct Origin {
    address: SocketAddr,
    counters: Arc<Counters>,
    /// Dropped to stop the thread.
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Origin {
    /// Starts an origin at a port that the system chooses.
    ///
    /// # Errors
    /// [`TourError::Tls`] for the certificate, [`TourError::Listen`] when the system gives no
    /// port, [`TourError::Thread`] when it gives no thread.
    pub(super) fn start(
        files: Arc<FileSet>,
        certificate: &Certificate,
        settings: OriginSettings,
    ) -> Result<Self, TourError> {
        let alpn: &[&[u8]] = if settings.http2 { &[ALPN_HTTP2, ALPN_HTTP1] } else { &[ALPN_HTTP1] };
        let tls = certificate.server_config(alpn)?;
        let counters = Arc::<Counters>::default();
        let service = Service {
            files,
            tls,
            round_trip: settings.round_trip,
            counters: Arc::clone(&counters),
        };
        let (stop, stopped) = oneshot::channel();
        let (address, thread) = spawn(service, stopped)?;
        Ok(Self { address, counters, stop: Some(stop), thread: Some(thread) })
    }

    /// Where a file is.
    pub(super) fn url(&self, file: &TourFile) -> Url {
        let text = format!("https://{HOST}:{}/{}", self.address.port(), file.name);
        Url::parse(&text).expect("made of an address and a plain name")
    }

    /// Stops it and tells what it has seen.
    pub(super) fn stop(mut self) -> Counts {
        self.join();
        self.counters.snapshot()
    }

    fn join(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take()
            && let Err(panic) = thread.join()
            && !std::thread::panicking()
        {
            std::panic::resume_unwind(panic);
        }
    }
}

impl Drop for Origin {
    fn drop(&mut self) {
        self.join();
    }
}

fn spawn(
    service: Service,
    stopped: oneshot::Receiver<()>,
) -> Result<(SocketAddr, JoinHandle<()>), TourError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(TourError::Thread)?;
    let listener = {
        let _inside = runtime.enter();
        Listener::bind_tcp((Ipv4Addr::LOCALHOST, 0).into())?
    };
    let address = listener.tcp_address().expect("bound to a TCP address");
    let limits = Limits { connections_max: CONNECTIONS_MAX, ..Limits::default() };
    let server = Server::new(listener).limits(limits);
    let run = async move {
        // What is under way when the origin stops is of no more interest.
        let drain = Drain::new(Duration::ZERO);
        let session = move |client| service.clone().session(client);
        tokio::select! {
            // An error means that the sender is gone: that is the signal.
            _ = stopped => (),
            _ = server.serve_streams(&drain, session) => (),
        }
    };
    let thread = std::thread::Builder::new().name("tour-origin".to_owned());
    let thread = thread.spawn(move || runtime.block_on(run)).map_err(TourError::Thread)?;
    Ok((address, thread))
}

/// What is done with each connection.
#[derive(Clone)]
struct Service {
    files: Arc<FileSet>,
    tls: Arc<ServerConfig>,
    round_trip: Duration,
    counters: Arc<Counters>,
}

impl Service {
    async fn session(self, client: Stream) {
        Counters::add(&self.counters.connections);
        let (far, near) = duplex(PIPE_BYTES);
        // How a connection ends is the client's business.
        let _ = tokio::join!(relay(client, far, self.round_trip), self.serve(near));
    }

    async fn serve<S>(&self, stream: S)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let acceptor = TlsAcceptor::from(Arc::clone(&self.tls));
        let Ok(stream) = acceptor.accept(stream).await else { return };
        let session = stream.get_ref().1;
        Counters::add(match session.handshake_kind() {
            Some(HandshakeKind::Resumed) => &self.counters.handshakes_resumed,
            _ => &self.counters.handshakes_full,
        });
        let is_http2 = session.alpn_protocol() == Some(ALPN_HTTP2);
        let service = service_fn(|request| self.respond(request));
        let io = TokioIo::new(stream);
        let _ = if is_http2 {
            let mut builder = http2::Builder::new(TokioExecutor::new());
            builder.max_concurrent_streams(STREAMS_MAX).serve_connection(io, service).await
        } else {
            http1::Builder::new().serve_connection(io, service).await
        };
    }

    fn respond(
        &self,
        request: Request<Incoming>,
    ) -> impl Future<Output = Result<Response<Full<Bytes>>, http::Error>> + use<> {
        Counters::add(&self.counters.requests);
        let response = answer(&self.files, &request.map(|_| ()));
        std::future::ready(response)
    }
}

#[cfg(test)]
mod tests;
