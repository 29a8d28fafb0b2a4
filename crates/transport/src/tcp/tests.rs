use std::net::{Ipv4Addr, Ipv6Addr};

use socket2::{Domain, Socket, Type};
use tokio::net::TcpListener;

use super::*;
use crate::settings::AddressOverride;

fn v4(last: u8) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::new(192, 0, 2, last), 80))
}

fn v6(last: u16) -> SocketAddr {
    SocketAddr::from((Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, last), 80))
}

/// A listening socket whose queue is full, so that the system drops further SYNs: an address that
/// does not answer.
struct Silent {
    address: SocketAddr,
    _listener: Socket,
    _queued: Vec<Socket>,
}

impl Silent {
    fn new() -> Self {
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let listener = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        listener.bind(&any.into()).unwrap();
        listener.listen(0).unwrap();
        let address = listener.local_addr().unwrap().as_socket().unwrap();
        let mut queued = Vec::new();
        // A queue of length 0 holds one connection; a few more make sure of it.
        for _ in 0..4 {
            let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
            socket.set_nonblocking(true).unwrap();
            let _ = socket.connect(&address.into());
            queued.push(socket);
        }
        Self { address, _listener: listener, _queued: queued }
    }
}

/// A bound port on which nobody listens: connecting is refused.
fn refusing() -> (SocketAddr, Socket) {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into()).unwrap();
    (socket.local_addr().unwrap().as_socket().unwrap(), socket)
}

fn policy(host: &str, port: u16, addresses: Vec<IpAddr>) -> AddressPolicy {
    AddressPolicy {
        family: AddressFamily::Any,
        overrides: vec![AddressOverride { host: host.to_owned(), port, addresses }],
    }
}

#[test]
fn families_alternate_beginning_with_the_first() {
    let found = vec![v6(1), v6(2), v6(3), v4(1), v4(2)];
    assert_eq!(interleave(found.clone(), AddressFamily::Any), [v6(1), v4(1), v6(2), v4(2), v6(3)]);
    assert_eq!(interleave(found.clone(), AddressFamily::V4), [v4(1), v4(2)]);
    assert_eq!(interleave(found, AddressFamily::V6), [v6(1), v6(2), v6(3)]);
    assert_eq!(interleave(vec![v4(1), v6(1)], AddressFamily::Any), [v4(1), v6(1)]);
}

#[test]
fn addresses_are_tried_once_and_not_without_end() {
    assert_eq!(interleave(vec![v4(1), v4(1)], AddressFamily::Any), [v4(1)]);
    let many = (0..=255).map(v4).collect();
    assert_eq!(interleave(many, AddressFamily::Any).len(), ATTEMPTS_MAX);
}

#[tokio::test]
async fn a_literal_address_is_dialled_without_delay_or_nagle() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let keepalive = Duration::from_secs(40);
    let stream =
        dial("127.0.0.1", port, &AddressPolicy::default(), Some(keepalive), || ()).await.unwrap();
    assert!(stream.nodelay().unwrap());
    let socket = SockRef::from(&stream);
    assert!(socket.keepalive().unwrap());
    assert_eq!(socket.tcp_keepalive_time().unwrap(), keepalive);
}

#[tokio::test]
async fn an_override_goes_before_the_resolver() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let policy = policy("origin.invalid", port, vec![Ipv4Addr::LOCALHOST.into()]);
    let stream = dial("Origin.invalid", port, &policy, None, || ()).await.unwrap();
    assert_eq!(stream.peer_addr().unwrap().port(), port);
    assert!(!SockRef::from(&stream).keepalive().unwrap());
}

#[tokio::test]
async fn a_family_without_address_is_a_resolve_error() {
    let policy = AddressPolicy { family: AddressFamily::V6, overrides: Vec::new() };
    let error = dial("127.0.0.1", 1, &policy, None, || ()).await.unwrap_err();
    assert!(matches!(error, Error::Resolve { .. }), "{error:?}");
}

#[tokio::test]
async fn a_refused_address_gives_way_to_the_next_at_once() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let good = listener.local_addr().unwrap();
    let (refused, _held) = refusing();
    // A day's delay: the second address can only be reached through the first one's failure.
    let stream = race(vec![refused, good], Duration::from_secs(86_400)).await.unwrap();
    assert_eq!(stream.peer_addr().unwrap(), good);
}

#[tokio::test]
async fn a_silent_address_gives_way_to_the_next_after_the_delay() {
    let silent = Silent::new();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let good = listener.local_addr().unwrap();
    let delay = Duration::from_millis(20);
    let started = Instant::now();
    let stream = race(vec![silent.address, good], delay).await.unwrap();
    assert_eq!(stream.peer_addr().unwrap(), good);
    assert!(started.elapsed() >= delay);
}

#[tokio::test]
async fn the_error_names_the_last_address() {
    let (refused, _held) = refusing();
    let policy = policy("origin.invalid", refused.port(), vec![Ipv4Addr::LOCALHOST.into()]);
    let error = dial("origin.invalid", refused.port(), &policy, None, || ()).await.unwrap_err();
    match error {
        Error::Connect { target, address, source } => {
            assert_eq!(target, format!("origin.invalid:{}", refused.port()));
            assert_eq!(address, refused);
            assert_eq!(source.kind(), io::ErrorKind::ConnectionRefused);
        }
        other => panic!("{other:?}"),
    }
}
