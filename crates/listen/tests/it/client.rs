//! What the tests talk with.

use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::http2::SendRequest;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;
use trunkline_listen::{Listener, TlsIdentity};
use trunkline_testkit::{Authority, Identity};

/// Longer than anything here takes: reached only by a hang.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) fn loopback() -> Listener {
    Listener::bind_tcp("127.0.0.1:0".parse().unwrap()).unwrap()
}

pub(crate) fn identity(authority: &Authority, clients: Option<&Authority>) -> TlsIdentity {
    let server = authority.server();
    let clients = clients.map(|authority| authority.pem().as_bytes());
    let alpn = trunkline_listen::ALPN_HTTP;
    TlsIdentity::from_pem(server.chain_pem.as_bytes(), server.key_pem.as_bytes(), clients, alpn)
        .unwrap()
}

pub(crate) async fn connect(address: SocketAddr) -> TcpStream {
    TcpStream::connect(address).await.unwrap()
}

pub(crate) async fn over_tls<T: AsyncRead + AsyncWrite + Unpin>(
    io: T,
    authority: &Authority,
    alpn: &[&str],
    client: Option<&Identity>,
) -> std::io::Result<TlsStream<T>> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(authority.pem().as_bytes()).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots);
    let mut config = match client {
        None => builder.with_no_client_auth(),
        Some(identity) => {
            let chain: Vec<_> = CertificateDer::pem_slice_iter(identity.chain_pem.as_bytes())
                .map(|certificate| certificate.unwrap())
                .collect();
            let key = PrivateKeyDer::from_pem_slice(identity.key_pem.as_bytes()).unwrap();
            builder.with_client_auth_cert(chain, key).unwrap()
        }
    };
    config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
    let name = ServerName::try_from("localhost").unwrap();
    tokio_rustls::TlsConnector::from(Arc::new(config)).connect(name, io).await
}

/// Sends a request and reads to the end of the connection.
pub(crate) async fn exchange<T: AsyncRead + AsyncWrite + Unpin>(mut io: T, text: &str) -> String {
    io.write_all(text.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    // Under TLS a peer may leave out close_notify; what came counts.
    let _ = tokio::time::timeout(PATIENCE, io.read_to_end(&mut answer)).await.unwrap();
    String::from_utf8(answer).unwrap()
}

pub(crate) async fn h2<T>(io: T) -> SendRequest<Full<Bytes>>
where
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let builder = hyper::client::conn::http2::Builder::new(TokioExecutor::new());
    let (send, connection) = builder.handshake(TokioIo::new(io)).await.unwrap();
    tokio::spawn(connection);
    send
}

pub(crate) fn post(body: &[u8]) -> ::http::Request<Full<Bytes>> {
    ::http::Request::post("http://localhost/x")
        .body(Full::new(Bytes::copy_from_slice(body)))
        .unwrap()
}
