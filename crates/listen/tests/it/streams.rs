use crate::client::{connect, identity, loopback, over_tls};
use std::io;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use trunkline_listen::{Drain, Error, Peer, Server, Stream, TlsIdentity};
use trunkline_testkit::Authority;

/// A protocol that starts in clear text and turns on TLS when told.
async fn starttls(mut stream: Stream, identity: TlsIdentity) -> io::Result<()> {
    assert!(stream.tls().is_none() && stream.clear_descriptor().is_some());
    let mut word = [0; 9];
    stream.read_exact(&mut word).await?;
    assert_eq!(&word, b"STARTTLS\n");
    stream.write_all(b"ok\n").await?;
    stream.flush().await?;
    let stream = stream.upgrade(&identity, Duration::from_secs(20)).await.unwrap();
    let facts = stream.tls().unwrap();
    assert_eq!(facts.server_name.as_deref(), Some("localhost"));
    assert!(stream.clear_descriptor().is_none());
    let mut stream = BufReader::new(stream);
    let mut line = String::new();
    stream.read_line(&mut line).await?;
    stream.write_all(line.to_uppercase().as_bytes()).await?;
    stream.shutdown().await
}

#[tokio::test]
async fn a_stream_can_turn_on_tls_later() {
    let authority = Authority::new("server");
    let identity = identity(&authority, None);
    let listener = loopback();
    let address = listener.tcp_address().unwrap();
    tokio::spawn(async move {
        let drain = Drain::new(Duration::ZERO);
        let session = move |stream| {
            let session = starttls(stream, identity.clone());
            async move { session.await.unwrap() }
        };
        Server::new(listener).serve_streams(&drain, session).await
    });
    let mut tcp = connect(address).await;
    tcp.write_all(b"STARTTLS\n").await.unwrap();
    let mut ok = [0; 3];
    tcp.read_exact(&mut ok).await.unwrap();
    let mut tls = over_tls(tcp, &authority, &[], None).await.unwrap();
    tls.write_all(b"hello\n").await.unwrap();
    let mut answer = String::new();
    tls.read_to_string(&mut answer).await.unwrap();
    assert_eq!(answer, "HELLO\n");
}

#[tokio::test]
async fn a_handshake_that_fails_or_hangs_is_a_typed_error() {
    let identity = identity(&Authority::new("server"), None);
    let (results, mut seen) = tokio::sync::mpsc::unbounded_channel();
    let listener = loopback();
    let address = listener.tcp_address().unwrap();
    tokio::spawn(async move {
        let drain = Drain::new(Duration::ZERO);
        let session = move |stream: Stream| {
            let (identity, results) = (identity.clone(), results.clone());
            async move {
                assert!(matches!(stream.peer(), Peer::Tcp(_)));
                let timeout = Duration::from_millis(100);
                results.send(stream.upgrade(&identity, timeout).await.map(|_| ())).unwrap();
            }
        };
        Server::new(listener).serve_streams(&drain, session).await
    });
    let mut nonsense = connect(address).await;
    nonsense.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
    assert!(matches!(seen.recv().await.unwrap(), Err(Error::Handshake(_))));
    let _silent = connect(address).await;
    assert!(matches!(seen.recv().await.unwrap(), Err(Error::HandshakeTimeout(_))));
}

#[tokio::test]
async fn system_calls_can_write_to_the_socket_when_it_takes_more() {
    let listener = loopback();
    let address = listener.tcp_address().unwrap();
    const LEN: usize = 3 << 20;
    tokio::spawn(async move {
        let drain = Drain::new(Duration::ZERO);
        let session = |stream: Stream| async move {
            let block = vec![7; LEN];
            let mut sent = 0;
            while sent < LEN {
                let write = |socket: std::os::fd::BorrowedFd<'_>| {
                    rustix::io::write(socket, &block[sent..]).map_err(io::Error::from)
                };
                sent += stream.write_by(write).await.unwrap();
            }
        };
        Server::new(listener).serve_streams(&drain, session).await
    });
    let mut all = Vec::new();
    connect(address).await.read_to_end(&mut all).await.unwrap();
    assert!(all.len() == LEN && all.iter().all(|byte| *byte == 7));
}
