use crate::client::{H2, client_config};
use rustls_pki_types::ServerName;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use trunkline_testkit::{ConnectProxy, Origin, Resource, SocksProxy};

fn origin() -> Origin {
    let origin = Origin::http();
    origin.put("/f", Resource::new("file"));
    origin
}

fn talk(address: SocketAddr, text: &str, end: &str) -> String {
    let mut tcp = TcpStream::connect(address).unwrap();
    tcp.write_all(text.as_bytes()).unwrap();
    let mut answer = Vec::new();
    while !answer.ends_with(end.as_bytes()) {
        let mut byte = [0];
        tcp.read_exact(&mut byte).unwrap();
        answer.push(byte[0]);
    }
    String::from_utf8(answer).unwrap()
}

#[test]
fn connect_needs_credentials_and_logs_the_target() {
    let origin = origin();
    let proxy = ConnectProxy::with_credentials("user", "pass");
    let mut tcp = TcpStream::connect(proxy.address()).unwrap();
    let target = origin.address();
    let get = "GET /f HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
    write!(tcp, "CONNECT {target} HTTP/1.1\r\nhost: {target}\r\n\r\n").unwrap();
    write!(
        tcp,
        "CONNECT {target} HTTP/1.1\r\nproxy-authorization: Basic dXNlcjpwYXNz\r\n\r\n{get}"
    )
    .unwrap();
    let mut answer = String::new();
    tcp.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 407 "), "{answer}");
    assert!(answer.contains("HTTP/1.1 200 Connection established"), "{answer}");
    assert!(answer.ends_with("file"), "{answer}");
    let tunnels = proxy.tunnels();
    assert_eq!(tunnels.iter().map(|tunnel| tunnel.allowed).collect::<Vec<_>>(), [false, true]);
    assert_eq!((tunnels[1].target.clone(), tunnels[1].by_name), (target.to_string(), false));
    assert_eq!(proxy.connections(), 1);
}

#[test]
fn plain_requests_are_forwarded_and_unknown_hosts_are_not() {
    let origin = origin();
    let proxy = ConnectProxy::start();
    let url = origin.url("/f");
    let answer = talk(proxy.address(), &format!("GET {url} HTTP/1.1\r\nhost: x\r\n\r\n"), "file");
    assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
    let lost = talk(proxy.address(), "CONNECT nowhere.test:443 HTTP/1.1\r\n\r\n", "\r\n\r\n");
    assert!(lost.starts_with("HTTP/1.1 502 "), "{lost}");
    let tunnels = proxy.tunnels();
    assert!(!tunnels[0].tunnel && tunnels[1].tunnel && tunnels[1].by_name);
}

#[tokio::test]
async fn names_that_no_resolver_knows_are_reached_over_tls() {
    let origin = Origin::https();
    origin.put("/f", Resource::new("file"));
    let proxy = ConnectProxy::start();
    proxy.resolve("files.origin.test", origin.address());
    let mut tcp = tokio::net::TcpStream::connect(proxy.address()).await.unwrap();
    tcp.write_all(b"CONNECT files.origin.test:443 HTTP/1.1\r\n\r\n").await.unwrap();
    let mut established = vec![0; "HTTP/1.1 200 Connection established\r\n\r\n".len()];
    tcp.read_exact(&mut established).await.unwrap();
    let config = client_config(&origin, &["h2"], None);
    let name = ServerName::try_from("files.origin.test").unwrap();
    let tls = tokio_rustls::TlsConnector::from(config).connect(name, tcp).await.unwrap();
    let mut h2 = H2::over(tls, &origin).await.unwrap();
    assert_eq!(h2.get("/f").await.unwrap().1.unwrap(), "file");
}

fn socks_request(host: &str, port: u16) -> Vec<u8> {
    let mut request = vec![5, 1, 0, 3, host.len() as u8];
    request.extend_from_slice(host.as_bytes());
    request.extend_from_slice(&port.to_be_bytes());
    request
}

#[test]
fn socks_takes_names_and_addresses() {
    let origin = origin();
    let proxy = SocksProxy::start();
    proxy.resolve("files.origin.test", origin.address());
    let mut by_address = vec![5, 1, 0, 1, 127, 0, 0, 1];
    by_address.extend_from_slice(&origin.address().port().to_be_bytes());
    for request in [socks_request("files.origin.test", 80), by_address] {
        let mut tcp = TcpStream::connect(proxy.address()).unwrap();
        tcp.write_all(&[5, 1, 0]).unwrap();
        tcp.write_all(&request).unwrap();
        let mut replies = [0; 12];
        tcp.read_exact(&mut replies).unwrap();
        assert_eq!(replies[..4], [5, 0, 5, 0]);
        tcp.write_all(b"GET /f HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        tcp.read_to_string(&mut answer).unwrap();
        assert!(answer.ends_with("file"));
    }
    let tunnels = proxy.tunnels();
    assert_eq!((tunnels[0].target.as_str(), tunnels[0].by_name), ("files.origin.test:80", true));
    assert!(!tunnels[1].by_name);
}

#[test]
fn socks_checks_the_password() {
    let origin = origin();
    let proxy = SocksProxy::with_credentials("user", "pass");
    let greet = |password: &str| {
        let mut tcp = TcpStream::connect(proxy.address()).unwrap();
        tcp.write_all(&[5, 2, 0, 2]).unwrap();
        let mut login = vec![1, 4];
        login.extend_from_slice(b"user");
        login.push(password.len() as u8);
        login.extend_from_slice(password.as_bytes());
        tcp.write_all(&login).unwrap();
        let mut replies = [0; 4];
        tcp.read_exact(&mut replies).unwrap();
        (replies, tcp)
    };
    assert_eq!(greet("wrong").0, [5, 2, 1, 1]);
    let (replies, mut tcp) = greet("pass");
    assert_eq!(replies, [5, 2, 1, 0]);
    tcp.write_all(&socks_request("localhost", origin.address().port())).unwrap();
    let mut reply = [0; 10];
    tcp.read_exact(&mut reply).unwrap();
    assert_eq!(reply[1], 0);
    let mut tcp = TcpStream::connect(proxy.address()).unwrap();
    tcp.write_all(&[5, 1, 0]).unwrap();
    let mut refused = [0; 2];
    tcp.read_exact(&mut refused).unwrap();
    assert_eq!(refused, [5, 0xff]);
}
