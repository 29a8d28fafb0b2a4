use crate::client::{connect, loopback};
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use trunkline_listen::{
    Address, Drain, Error, Limits, Listener, Peer, Server, Stream, TlsIdentity,
};
use trunkline_testkit::temp_dir;

#[tokio::test]
async fn a_unix_socket_has_its_mode_and_is_removed_with_its_listener() {
    let directory = temp_dir();
    let path = directory.path().join("a.sock");
    let listener = Listener::bind_unix(&path, 0o600).unwrap();
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(listener.address(), &Address::Unix(Some(path.clone())));
    let drain = Drain::new(Duration::from_secs(20));
    let watched = drain.clone();
    let serving = tokio::spawn(async move {
        let session = |mut stream: Stream| async move {
            assert!(matches!(stream.peer(), Peer::Unix { user_id: Some(_) }));
            stream.write_all(b"hi").await.unwrap();
        };
        Server::new(listener).serve_streams(&watched, session).await
    });
    let mut client = tokio::net::UnixStream::connect(&path).await.unwrap();
    let mut text = String::new();
    client.read_to_string(&mut text).await.unwrap();
    assert_eq!(text, "hi");
    drain.start();
    serving.await.unwrap();
    assert!(!path.exists());
}

#[tokio::test]
async fn a_socket_left_behind_is_replaced_but_none_in_use_and_no_file() {
    let directory = temp_dir();
    let path = directory.path().join("a.sock");
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    assert!(path.exists());
    let listener = Listener::bind_unix(&path, 0o600).unwrap();
    assert!(matches!(Listener::bind_unix(&path, 0o600), Err(Error::SocketInUse(_))));
    // Another's socket at our path is not ours to remove.
    std::fs::remove_file(&path).unwrap();
    let _other = std::os::unix::net::UnixListener::bind(&path).unwrap();
    drop(listener);
    assert!(path.exists());

    let file = directory.path().join("file");
    std::fs::write(&file, "precious").unwrap();
    assert!(matches!(Listener::bind_unix(&file, 0o600), Err(Error::NotASocket(_))));
    assert_eq!(std::fs::read(&file).unwrap(), b"precious");
    let lost = directory.path().join("no/such/a.sock");
    assert!(matches!(Listener::bind_unix(&lost, 0o600), Err(Error::Bind { .. })));
}

#[tokio::test]
async fn a_taken_port_is_told_with_its_address() {
    let listener = loopback();
    let address = listener.tcp_address().unwrap();
    let error = Listener::bind_tcp(address).unwrap_err();
    assert!(error.to_string().contains(&address.to_string()), "{error}");
}

#[tokio::test]
async fn one_server_can_listen_in_several_places() {
    let directory = temp_dir();
    let path = directory.path().join("a.sock");
    let tcp = loopback();
    let address = tcp.tcp_address().unwrap();
    // One place for both: an idle listener must not keep it from the other.
    let limits = Limits { connections_max: 1, ..Limits::default() };
    let unix = Listener::bind_unix(&path, 0o600).unwrap();
    let server = Server::new(tcp).listener(unix).limits(limits);
    assert_eq!(server.listeners().len(), 2);
    tokio::spawn(async move {
        let drain = Drain::new(Duration::ZERO);
        let session = |mut stream: Stream| async move { stream.write_all(b"hi").await.unwrap() };
        server.serve_streams(&drain, session).await
    });
    let mut text = String::new();
    connect(address).await.read_to_string(&mut text).await.unwrap();
    let mut unix = tokio::net::UnixStream::connect(&path).await.unwrap();
    unix.read_to_string(&mut text).await.unwrap();
    assert_eq!(text, "hihi");
}

#[test]
fn tls_files_that_do_not_serve_are_named() {
    let directory = temp_dir();
    let authority = trunkline_testkit::Authority::new("a");
    let (one, two) = (authority.server(), authority.server());
    let write = |name: &str, text: &str| {
        let path = directory.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let chain = write("chain.pem", &one.chain_pem);
    let key = write("key.pem", &one.key_pem);
    let other_key = write("other.pem", &two.key_pem);
    let empty = write("empty.pem", "");
    let missing = directory.path().join("missing.pem");
    let load = |chain, key| TlsIdentity::from_files(chain, key, None, &[]);
    assert!(load(&chain, &key).is_ok());
    assert!(matches!(load(&missing, &key), Err(Error::TlsFile { path, .. }) if path == missing));
    assert!(matches!(load(&empty, &key), Err(Error::TlsPem { expected: "certificate", .. })));
    assert!(matches!(load(&chain, &empty), Err(Error::TlsPem { expected: "private key", .. })));
    assert!(matches!(load(&chain, &other_key), Err(Error::TlsIdentity(_))));
}
