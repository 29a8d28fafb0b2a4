use std::fs;
use std::path::PathBuf;

use rustls::HandshakeKind;
use rustls_pki_types::ServerName;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};
use tokio_rustls::{TlsAcceptor, TlsConnector, client};

use super::fixtures::{Authority, HOST, Leaf};
use super::*;
use crate::error::Error;

/// A client that trusts what stands in a PEM text.
fn trusting(pem: &str) -> TlsClient {
    let (_kept, path) = file(pem);
    client_of(TlsOptions { roots: Roots::Only(vec![path]), ..TlsOptions::default() })
}

fn client_of(options: TlsOptions) -> TlsClient {
    TlsClient::new(options).unwrap()
}

/// A file with the text; it goes with the directory.
fn file(text: &str) -> (TempDir, PathBuf) {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("file.pem");
    fs::write(&path, text).unwrap();
    (directory, path)
}

type ClientStream = client::TlsStream<DuplexStream>;

/// One handshake and one byte each way, so that tickets have come.
async fn shake(
    config: Arc<ClientConfig>,
    server: &Arc<rustls::ServerConfig>,
) -> Result<ClientStream, Error> {
    let (near, far) = duplex(1 << 16);
    let acceptor = TlsAcceptor::from(Arc::clone(server));
    let far = tokio::spawn(async move {
        let mut stream = acceptor.accept(far).await?;
        let byte = stream.read_u8().await?;
        stream.write_u8(byte).await?;
        stream.flush().await?;
        std::io::Result::Ok(stream)
    });
    let name = ServerName::try_from(HOST).unwrap();
    let near = async {
        let mut stream = TlsConnector::from(config).connect(name, near).await?;
        stream.write_u8(7).await?;
        stream.flush().await?;
        stream.read_u8().await?;
        Ok(stream)
    };
    let result = near.await.map_err(|error| classify(HOST, error));
    let _ = far.await.unwrap();
    result
}

async fn shake_with(client: &TlsClient, server: rustls::ServerConfig) -> Result<(), Error> {
    shake(client.objects(HttpVersion::Auto).unwrap(), &Arc::new(server)).await.map(drop)
}

#[tokio::test]
async fn named_roots_are_trusted_and_alpn_follows_the_lane() {
    let authority = Authority::new("Root");
    let (client, server) = (trusting(&authority.pem()), Arc::new(authority.leaf().server()));
    let objects = shake(client.objects(HttpVersion::Auto).unwrap(), &server).await.unwrap();
    assert_eq!(objects.get_ref().1.alpn_protocol(), Some(b"h2".as_slice()));
    for config in [client.objects(HttpVersion::Http1).unwrap(), client.ranges().unwrap()] {
        let stream = shake(config, &server).await.unwrap();
        assert_eq!(stream.get_ref().1.alpn_protocol(), Some(b"http/1.1".as_slice()));
    }
}

#[tokio::test]
async fn sessions_resume_from_lane_to_lane() {
    let authority = Authority::new("Root");
    let (client, server) = (trusting(&authority.pem()), Arc::new(authority.leaf().server()));
    let first = shake(client.objects(HttpVersion::Auto).unwrap(), &server).await.unwrap();
    assert_eq!(first.get_ref().1.handshake_kind(), Some(HandshakeKind::Full));
    let second = shake(client.ranges().unwrap(), &server).await.unwrap();
    assert_eq!(second.get_ref().1.handshake_kind(), Some(HandshakeKind::Resumed));
}

#[tokio::test]
async fn another_clients_trust_is_not_inherited_by_resumption() {
    let authority = Authority::new("Root");
    let server = Arc::new(authority.leaf().server());
    let sessions = SessionStore::default();
    let client = |pem: &str| {
        let (_kept, path) = file(pem);
        let roots = Roots::Only(vec![path]);
        client_of(TlsOptions { roots, sessions: sessions.clone(), ..TlsOptions::default() })
    };
    let trusting = client(&authority.pem());
    shake(trusting.objects(HttpVersion::Auto).unwrap(), &server).await.unwrap();
    let other = client(&Authority::new("Other").pem());
    let error = shake(other.objects(HttpVersion::Auto).unwrap(), &server).await.unwrap_err();
    assert!(matches!(error, Error::UntrustedIssuer { .. }), "{error:?}");
}

#[tokio::test]
async fn an_unknown_issuer_is_named_at_the_top_of_the_chain() {
    let root = Authority::new("Missing Root");
    let below = root.intermediate("Intermediate");
    let mut leaf = below.leaf();
    leaf.chain.push(below.der());
    let client = trusting(&Authority::new("Other").pem());
    match shake_with(&client, leaf.server()).await.unwrap_err() {
        Error::UntrustedIssuer { host, issuer } => {
            assert_eq!(host, HOST);
            assert!(issuer.contains("CN=Missing Root"), "{issuer}");
        }
        other => panic!("{other:?}"),
    }
    // Without the intermediate, that one is what is missing.
    leaf.chain.pop();
    match shake_with(&trusting(&root.pem()), leaf.server()).await.unwrap_err() {
        Error::UntrustedIssuer { issuer, .. } => assert!(issuer.contains("Intermediate")),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn dates_and_names_are_certificate_errors() {
    let authority = Authority::new("Root");
    let client = trusting(&authority.pem());
    for leaf in [authority.leaf_valid(2000, 2001), authority.leaf_valid(3999, 4000)] {
        let error = shake_with(&client, leaf.server()).await.unwrap_err();
        assert!(matches!(error, Error::Certificate { .. }), "{error:?}");
    }
    let config = client.objects(HttpVersion::Auto).unwrap();
    let (near, far) = duplex(1 << 16);
    let acceptor = TlsAcceptor::from(Arc::new(authority.leaf().server()));
    let far = tokio::spawn(async move { acceptor.accept(far).await.map(drop) });
    let name = ServerName::try_from("other.test").unwrap();
    let failed = TlsConnector::from(config).connect(name, near).await.unwrap_err();
    let error = classify("other.test", failed);
    assert!(matches!(error, Error::Certificate { .. }), "{error:?}");
    assert!(far.await.unwrap().is_err());
}

#[tokio::test]
async fn a_named_certificate_is_trusted_for_itself_but_for_its_own_name_only() {
    let leaf = Leaf::self_signed();
    let client = trusting(&leaf.certificate_pem);
    shake_with(&client, leaf.server()).await.unwrap();
    let error = shake_with(&client, Authority::new("Other").leaf().server()).await.unwrap_err();
    assert!(matches!(error, Error::UntrustedIssuer { .. }), "{error:?}");
    let (near, far) = duplex(1 << 16);
    let acceptor = TlsAcceptor::from(Arc::new(leaf.server()));
    let far = tokio::spawn(async move { acceptor.accept(far).await.map(drop) });
    let name = ServerName::try_from("other.test").unwrap();
    let config = client.ranges().unwrap();
    let failed = TlsConnector::from(config).connect(name, near).await.unwrap_err();
    assert!(matches!(classify(HOST, failed), Error::Certificate { .. }));
    assert!(far.await.unwrap().is_err());
}

#[tokio::test]
async fn verification_can_be_switched_off() {
    let leaf = Authority::new("Nobody").leaf_valid(2000, 2001);
    let client = client_of(TlsOptions { verify: false, ..TlsOptions::default() });
    shake_with(&client, leaf.server()).await.unwrap();
}

#[tokio::test]
async fn the_oldest_version_is_kept() {
    let authority = Authority::new("Root");
    let (_kept, path) = file(&authority.pem());
    let strict = client_of(TlsOptions {
        roots: Roots::Only(vec![path]),
        min_version: TlsVersion::Tls13,
        ..TlsOptions::default()
    });
    let old = || authority.leaf().server_with(&[&rustls::version::TLS12], None);
    let error = shake_with(&strict, old()).await.unwrap_err();
    assert!(matches!(error, Error::Handshake { .. }), "{error:?}");
    shake_with(&trusting(&authority.pem()), old()).await.unwrap();
}

#[tokio::test]
async fn the_identity_is_sent_when_asked_for() {
    let authority = Authority::new("Root");
    let clients = Authority::new("Clients");
    let leaf = clients.leaf();
    let (_kept, root) = file(&authority.pem());
    let (_kept2, own) = file(&format!("{}{}", leaf.certificate_pem, leaf.key_pem));
    let identity = Identity::from_pem_files(&own, None).unwrap();
    let options = TlsOptions { roots: Roots::Only(vec![root]), ..TlsOptions::default() };
    let server = || authority.leaf().server_with(rustls::ALL_VERSIONS, Some(&clients));
    let anonymous = client_of(options.clone());
    assert!(shake_with(&anonymous, server()).await.is_err());
    let known = client_of(TlsOptions { identity: Some(identity), ..options });
    shake_with(&known, server()).await.unwrap();
}

#[test]
fn errors_name_the_file() {
    let read = |paths: Vec<PathBuf>| {
        let options = TlsOptions { roots: Roots::Only(paths), ..TlsOptions::default() };
        TlsClient::new(options).unwrap_err()
    };
    let missing = PathBuf::from("/nonexistent/ca.pem");
    assert!(
        matches!(read(vec![missing.clone()]), TlsSetupError::Read { path, .. } if path == missing)
    );
    let (_kept, empty) = file("no certificate here\n");
    assert!(
        matches!(read(vec![empty.clone()]), TlsSetupError::NoCertificate { path } if path == empty)
    );
    let (_kept, broken) = file("-----BEGIN CERTIFICATE-----\n!!!\n-----END CERTIFICATE-----\n");
    assert!(
        matches!(read(vec![broken.clone()]), TlsSetupError::Pem { path, .. } if path == broken)
    );
    let (_kept, junk) = file("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
    assert!(matches!(
        read(vec![junk.clone()]),
        TlsSetupError::UnusableCertificate { path, .. } if path == junk
    ));
    let directory = TempDir::new().unwrap();
    let path = directory.path().to_owned();
    assert!(
        matches!(read(vec![path.clone()]), TlsSetupError::NoCertificate { path: p } if p == path)
    );
    let nothing = client_of(TlsOptions { roots: Roots::Only(vec![]), ..TlsOptions::default() });
    assert!(matches!(nothing.ranges(), Err(TlsSetupError::NoRoots)));
}

#[tokio::test]
async fn a_directory_of_certificates_is_read() {
    let authority = Authority::new("Root");
    let directory = TempDir::new().unwrap();
    fs::write(directory.path().join("root.crt"), authority.pem()).unwrap();
    fs::write(directory.path().join("README"), "nothing").unwrap();
    let options = TlsOptions {
        roots: Roots::Only(vec![directory.path().to_owned()]),
        ..TlsOptions::default()
    };
    shake_with(&client_of(options), authority.leaf().server()).await.unwrap();
}

#[test]
fn nothing_is_built_before_it_is_needed() {
    let client = client_of(TlsOptions::default());
    assert!(client.inner.configs.get().is_none());
    assert!(format!("{client:?}").contains("System"));
}
