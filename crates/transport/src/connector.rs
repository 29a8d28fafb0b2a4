//! Makes a connection: route, TCP or Unix socket, proxy, TLS, HTTP; one deadline over all.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use base64::Engine as _;
use http::HeaderValue;
use rustls::HandshakeKind;
use rustls_pki_types::ServerName;
use tokio::io::BufReader;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::error::{Error, Phase, ProxyError, TlsSetupError};
use crate::http::{Forwarding, Http1, Http2};
use crate::meter::{Meter, Metered};
use crate::origin::{Origin, Scheme};
use crate::range_lane::RangeConnection;
use crate::settings::{HttpVersion, OriginSettings, Proxy, Route};
use crate::stream::{Carrier, Stream, TLS_READ_BYTES};
use crate::{proxy, tcp, tls};

/// What a connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Lane {
    /// Many small bodies: HTTP/2 where the server has it, else HTTP/1.1.
    Object,
    /// Large bodies, read straight into the caller's buffer: HTTP/1.1 alone.
    Range,
}

/// A connection ready for its first request.
#[derive(Debug)]
pub struct Dialled {
    /// The connection.
    pub connection: Connection,
    /// How its TLS session came about; `None` in clear text.
    pub handshake: Option<Handshake>,
}

/// A connection of one of the kinds that the lanes use.
#[derive(Debug)]
pub enum Connection {
    /// Object lane, one exchange at a time.
    Http1(Http1),
    /// Object lane, many exchanges at once.
    Http2(Http2),
    /// Range lane.
    Range(Box<RangeConnection>),
}

/// How a TLS session came about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handshake {
    /// With certificates and signatures.
    Full,
    /// By a ticket of an earlier session (RFC 8446 §2.2).
    Resumed,
}

impl From<HandshakeKind> for Handshake {
    fn from(kind: HandshakeKind) -> Self {
        match kind {
            HandshakeKind::Resumed => Self::Resumed,
            _ => Self::Full,
        }
    }
}

/// Dials `origin` for `lane`, within the settings' connect time-out.
///
/// # Errors
/// Everything of [`Error`] that concerns making a connection.
pub async fn connect(
    origin: &Origin,
    settings: &OriginSettings,
    lane: Lane,
    meter: &Arc<Meter>,
) -> Result<Dialled, Error> {
    let phase = Reached(Mutex::new(Phase::Resolve));
    let dialling = Dialling { origin, settings, phase: &phase };
    match tokio::time::timeout(settings.connect_timeout, dialling.run(lane, meter)).await {
        Ok(result) => result,
        Err(_) => Err(Error::ConnectTimeout {
            origin: origin.clone(),
            phase: phase.get(),
            after: settings.connect_timeout,
        }),
    }
}

/// The phase reached, so that a time-out can name it.
struct Reached(Mutex<Phase>);

impl Reached {
    fn set(&self, phase: Phase) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = phase;
    }

    fn get(&self) -> Phase {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Dialling<'a> {
    origin: &'a Origin,
    settings: &'a OriginSettings,
    phase: &'a Reached,
}

impl Dialling<'_> {
    async fn run(&self, lane: Lane, meter: &Arc<Meter>) -> Result<Dialled, Error> {
        let (carrier, forwarding) = self.carrier().await?;
        match lane {
            Lane::Object => self.object(carrier, forwarding, meter).await,
            Lane::Range => self.range(carrier, forwarding).await,
        }
    }

    /// Opens the way to the origin, or to the proxy that forwards to it.
    async fn carrier(&self) -> Result<(Carrier, Forwarding), Error> {
        let direct = Forwarding::default();
        match &self.settings.route {
            Route::Direct => {
                let stream = self.tcp(self.origin.host(), self.origin.port()).await?;
                Ok((Carrier::Tcp(stream), direct))
            }
            #[cfg(unix)]
            Route::Unix(path) => {
                self.phase.set(Phase::Connect);
                let stream = tokio::net::UnixStream::connect(path)
                    .await
                    .map_err(|source| Error::ConnectUnix { path: path.clone(), source })?;
                Ok((Carrier::Unix(stream), direct))
            }
            #[cfg(not(unix))]
            Route::Unix(path) => Err(Error::ConnectUnix {
                path: path.clone(),
                source: io::ErrorKind::Unsupported.into(),
            }),
            Route::HttpProxy(proxy) => self.through_http_proxy(proxy).await,
            Route::Socks5(proxy) => {
                let stream = self.tcp(&proxy.host, proxy.port).await?;
                self.phase.set(Phase::Proxy);
                let stream = proxy::socks5(stream, self.origin.host(), self.origin.port(), proxy)
                    .await
                    .map_err(|source| proxy_error(proxy, source))?;
                Ok((Carrier::Tcp(stream), direct))
            }
        }
    }

    async fn through_http_proxy(&self, proxy: &Proxy) -> Result<(Carrier, Forwarding), Error> {
        let stream = self.tcp(&proxy.host, proxy.port).await?;
        self.phase.set(Phase::Proxy);
        let carrier = if proxy.tls {
            let config = self.settings.tls.objects(HttpVersion::Http1)?;
            let stream = handshake(&proxy.host, config, stream).await?;
            Carrier::TlsProxy(Box::new(stream))
        } else {
            Carrier::Tcp(stream)
        };
        if self.origin.scheme() == Scheme::Http {
            let authorization = proxy.credentials.as_ref().and_then(|(user, password)| {
                let pair = format!("{user}:{}", password.expose());
                let token = base64::engine::general_purpose::STANDARD.encode(pair);
                let mut value = HeaderValue::try_from(format!("Basic {token}")).ok()?;
                value.set_sensitive(true);
                Some(value)
            });
            return Ok((carrier, Forwarding { absolute_form: true, authorization }));
        }
        let carrier = proxy::http_connect(carrier, &self.origin.host_port(), proxy)
            .await
            .map_err(|source| proxy_error(proxy, source))?;
        Ok((carrier, Forwarding::default()))
    }

    async fn tcp(&self, host: &str, port: u16) -> Result<TcpStream, Error> {
        let OriginSettings { addresses, tcp_keepalive, .. } = self.settings;
        tcp::dial(host, port, addresses, *tcp_keepalive, || self.phase.set(Phase::Connect)).await
    }

    async fn object(
        &self,
        carrier: Carrier,
        forwarding: Forwarding,
        meter: &Arc<Meter>,
    ) -> Result<Dialled, Error> {
        let version = self.settings.version;
        if self.origin.scheme() == Scheme::Http {
            let stream = Metered::new(Stream::Clear(carrier), Arc::clone(meter));
            self.phase.set(Phase::Http);
            // A proxy that forwards understands the absolute form, which is HTTP/1.1's.
            let connection = if version == HttpVersion::Http2 && !forwarding.absolute_form {
                Connection::Http2(Http2::start(stream).await?)
            } else {
                Connection::Http1(Http1::start(stream, forwarding).await?)
            };
            return Ok(Dialled { connection, handshake: None });
        }
        self.phase.set(Phase::Tls);
        let config = self.settings.tls.objects(version)?;
        let carrier = BufReader::with_capacity(TLS_READ_BYTES, carrier);
        let stream = handshake(self.origin.host(), config, carrier).await?;
        let (_, session) = stream.get_ref();
        let kind = session.handshake_kind().map(Handshake::from);
        let http2 = session.alpn_protocol() == Some(b"h2") || version == HttpVersion::Http2;
        let stream = Metered::new(Stream::Tls(Box::new(stream)), Arc::clone(meter));
        self.phase.set(Phase::Http);
        let connection = if http2 {
            Connection::Http2(Http2::start(stream).await?)
        } else {
            Connection::Http1(Http1::start(stream, forwarding).await?)
        };
        Ok(Dialled { connection, handshake: kind })
    }

    async fn range(&self, carrier: Carrier, forwarding: Forwarding) -> Result<Dialled, Error> {
        if self.origin.scheme() == Scheme::Http {
            let connection = RangeConnection::clear(carrier, forwarding);
            return Ok(Dialled {
                connection: Connection::Range(Box::new(connection)),
                handshake: None,
            });
        }
        self.phase.set(Phase::Tls);
        let host = self.origin.host();
        let config = self.settings.tls.ranges()?;
        let name = server_name(host)?;
        let (connection, kind) = RangeConnection::tls(carrier, config, name, host).await?;
        Ok(Dialled {
            connection: Connection::Range(Box::new(connection)),
            handshake: Some(kind.into()),
        })
    }
}

fn proxy_error(proxy: &Proxy, source: ProxyError) -> Error {
    Error::Proxy { proxy: format!("{}:{}", proxy.host, proxy.port), source }
}

fn server_name(host: &str) -> Result<ServerName<'static>, TlsSetupError> {
    ServerName::try_from(host.to_owned())
        .map_err(|_| TlsSetupError::ServerName { host: host.to_owned() })
}

async fn handshake<S>(
    host: &str,
    config: Arc<rustls::ClientConfig>,
    stream: S,
) -> Result<TlsStream<S>, Error>
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
{
    let name = server_name(host)?;
    TlsConnector::from(config)
        .connect(name, stream)
        .await
        .map_err(|error: io::Error| tls::classify(host, error))
}
