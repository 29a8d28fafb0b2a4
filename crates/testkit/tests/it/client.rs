//! Small clients that hide nothing.

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http2::SendRequest;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;
use tokio_rustls::TlsConnector;
use trunkline_testkit::{Identity, Origin};

/// A plain socket with HTTP/1.1 text on it.
pub(crate) struct Raw {
    pub(crate) tcp: TcpStream,
    buf: Vec<u8>,
}

/// A response, as far as it came.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) head: String,
    pub(crate) status: u16,
    pub(crate) body: Vec<u8>,
    /// How reading the body ended before its announced end, if it did.
    pub(crate) error: Option<io::Error>,
}

impl Response {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (key, value) = line.split_once(": ")?;
            key.eq_ignore_ascii_case(name).then_some(value)
        })
    }
}

impl Raw {
    pub(crate) fn connect(origin: &Origin) -> Self {
        let tcp = TcpStream::connect(origin.address()).unwrap();
        tcp.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        Self { tcp, buf: Vec::new() }
    }

    pub(crate) fn send(&mut self, text: &str) {
        self.tcp.write_all(text.as_bytes()).unwrap();
    }

    pub(crate) fn request(
        &mut self,
        method: &str,
        path: &str,
        fields: &str,
    ) -> io::Result<Response> {
        self.tcp.write_all(
            format!("{method} {path} HTTP/1.1\r\nhost: origin\r\n{fields}\r\n").as_bytes(),
        )?;
        self.response(method == "HEAD")
    }

    pub(crate) fn get(&mut self, path: &str) -> io::Result<Response> {
        self.request("GET", path, "")
    }

    /// Reads a response by Content-Length, or to the end of the connection without one.
    pub(crate) fn response(&mut self, bodiless: bool) -> io::Result<Response> {
        let end = loop {
            if let Some(at) = self.buf.windows(4).position(|w| w == b"\r\n\r\n") {
                break at + 4;
            }
            if self.fill()? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        };
        let head: Vec<u8> = self.buf.drain(..end).collect();
        let head = String::from_utf8(head).unwrap();
        let status = head.split(' ').nth(1).and_then(|s| s.parse().ok()).unwrap_or(0);
        let mut response = Response { head, status, body: Vec::new(), error: None };
        if bodiless || matches!(status, 100..=199 | 204 | 304) {
            return Ok(response);
        }
        let length = response.header("content-length").map(|n| n.parse::<usize>().unwrap());
        while length.is_none_or(|length| self.buf.len() < length) {
            match self.fill() {
                Ok(0) => {
                    if length.is_some() {
                        response.error = Some(io::ErrorKind::UnexpectedEof.into());
                    }
                    break;
                }
                Ok(_) => {}
                Err(error) => {
                    response.error = Some(error);
                    break;
                }
            }
        }
        let taken = length.map_or(self.buf.len(), |length| length.min(self.buf.len()));
        response.body = self.buf.drain(..taken).collect();
        Ok(response)
    }

    /// What arrived beyond the last response, then all up to the end of the connection.
    pub(crate) fn rest(&mut self) -> io::Result<Vec<u8>> {
        let mut rest = std::mem::take(&mut self.buf);
        self.tcp.read_to_end(&mut rest)?;
        Ok(rest)
    }

    fn fill(&mut self) -> io::Result<usize> {
        let mut space = [0; 16 << 10];
        let n = self.tcp.read(&mut space)?;
        self.buf.extend_from_slice(&space[..n]);
        Ok(n)
    }
}

/// One GET on a connection of its own.
pub(crate) fn get(origin: &Origin, path: &str) -> io::Result<Response> {
    Raw::connect(origin).get(path)
}

pub(crate) fn client_config(
    origin: &Origin,
    alpn: &[&str],
    identity: Option<&Identity>,
) -> Arc<rustls::ClientConfig> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(origin.ca_pem().as_bytes()).unwrap()).unwrap();
    let builder = rustls::ClientConfig::builder_with_provider(Arc::new(
        rustls::crypto::ring::default_provider(),
    ))
    .with_safe_default_protocol_versions()
    .unwrap()
    .with_root_certificates(roots);
    let mut config = match identity {
        None => builder.with_no_client_auth(),
        Some(identity) => builder
            .with_client_auth_cert(
                CertificateDer::pem_slice_iter(identity.chain_pem.as_bytes())
                    .collect::<Result<_, _>>()
                    .unwrap(),
                PrivateKeyDer::from_pem_slice(identity.key_pem.as_bytes()).unwrap(),
            )
            .unwrap(),
    };
    config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
    Arc::new(config)
}

pub(crate) type TlsStream = tokio_rustls::client::TlsStream<tokio::net::TcpStream>;

pub(crate) async fn tls(
    origin: &Origin,
    config: Arc<rustls::ClientConfig>,
) -> io::Result<TlsStream> {
    let tcp = tokio::net::TcpStream::connect(origin.address()).await?;
    let name = ServerName::try_from("localhost").unwrap();
    TlsConnector::from(config).connect(name, tcp).await
}

/// An HTTP/2 connection with its driver running beside it.
pub(crate) struct H2 {
    pub(crate) send: SendRequest<Full<Bytes>>,
    authority: String,
}

impl H2 {
    pub(crate) async fn connect(origin: &Origin) -> hyper::Result<Self> {
        let tls = tls(origin, client_config(origin, &["h2"], None)).await.unwrap();
        Self::over(tls, origin).await
    }

    pub(crate) async fn over<T>(io: T, origin: &Origin) -> hyper::Result<Self>
    where
        T: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
    {
        let (send, connection) = hyper::client::conn::http2::Builder::new(TokioExecutor::new())
            .max_header_list_size(4 << 20)
            .handshake(TokioIo::new(io))
            .await?;
        tokio::spawn(connection);
        Ok(Self { send, authority: origin.address().to_string() })
    }

    pub(crate) fn request(
        &self,
        method: &str,
        path: &str,
        body: &[u8],
    ) -> http::Request<Full<Bytes>> {
        http::Request::builder()
            .method(method)
            .uri(format!("https://{}{path}", self.authority))
            .body(Full::new(Bytes::copy_from_slice(body)))
            .unwrap()
    }

    /// The whole exchange: head, and body or how it failed.
    pub(crate) async fn get(
        &mut self,
        path: &str,
    ) -> hyper::Result<(http::response::Parts, hyper::Result<Bytes>)> {
        let response = self.send.send_request(self.request("GET", path, b"")).await?;
        let (parts, body) = response.into_parts();
        Ok((parts, body.collect().await.map(http_body_util::Collected::to_bytes)))
    }
}

/// The HTTP/2 error code of a reset stream.
pub(crate) fn h2_reason(error: &hyper::Error) -> Option<::h2::Reason> {
    let mut source = std::error::Error::source(error);
    while let Some(inner) = source {
        if let Some(error) = inner.downcast_ref::<::h2::Error>() {
            return error.reason();
        }
        source = inner.source();
    }
    None
}
