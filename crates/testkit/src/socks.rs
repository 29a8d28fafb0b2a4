//! A logging SOCKS5 proxy (RFC 1928), with or without user and password (RFC 1929).

use crate::background::Background;
use crate::proxy::{Relay, Tunnel, serve_each};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::TcpStream;

const VERSION: u8 = 0x05;
const METHOD_NONE: u8 = 0x00;
const METHOD_PASSWORD: u8 = 0x02;
const METHOD_UNACCEPTABLE: u8 = 0xff;
const COMMAND_CONNECT: u8 = 0x01;
const ADDRESS_IPV4: u8 = 0x01;
const ADDRESS_DOMAIN: u8 = 0x03;
const ADDRESS_IPV6: u8 = 0x04;
const REPLY_SUCCEEDED: u8 = 0x00;
const REPLY_HOST_UNREACHABLE: u8 = 0x04;
const REPLY_COMMAND_UNSUPPORTED: u8 = 0x07;

/// A SOCKS5 proxy on loopback. It reaches loopback only, and the host names it was told; dropping
/// it closes every tunnel.
#[derive(Debug)]
pub struct SocksProxy {
    relay: Relay,
    address: SocketAddr,
    _background: Background,
}

impl SocksProxy {
    /// A proxy that asks for nothing.
    pub fn start() -> Self {
        Self::with_relay(Relay::default())
    }

    /// A proxy that lets only this user through.
    pub fn with_credentials(user: &str, password: &str) -> Self {
        Self::with_relay(Relay::with_credentials(Some((user, password))))
    }

    fn with_relay(relay: Relay) -> Self {
        let shared = relay.clone();
        let (address, background) = serve_each("testkit-socks", move |tcp| {
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

    /// The proxy's URL (`socks5h`: names are resolved by the proxy), without credentials.
    pub fn url(&self) -> String {
        format!("socks5h://{}", self.address)
    }

    /// The proxy's URL with credentials in it.
    pub fn url_with(&self, user: &str, password: &str) -> String {
        format!("socks5h://{user}:{password}@{}", self.address)
    }

    /// Makes a host name lead to an address, whatever port is asked for.
    pub fn resolve(&self, host: &str, address: SocketAddr) {
        self.relay.resolve(host, address);
    }

    /// What was asked for so far; a client whose credentials failed never gets to ask.
    pub fn tunnels(&self) -> Vec<Tunnel> {
        self.relay.tunnels()
    }

    /// How many connections were accepted.
    pub fn connections(&self) -> usize {
        self.relay.connections()
    }
}

async fn attend(mut client: TcpStream, relay: &Relay) -> io::Result<()> {
    if !greet(&mut client, relay).await? {
        return Ok(());
    }
    let [_, command, _, kind] = read_bytes(&mut client).await?;
    let host = match kind {
        ADDRESS_IPV4 => IpAddr::V4(Ipv4Addr::from(read_bytes::<4>(&mut client).await?)).to_string(),
        ADDRESS_IPV6 => {
            format!("[{}]", Ipv6Addr::from(read_bytes::<16>(&mut client).await?))
        }
        ADDRESS_DOMAIN => read_text(&mut client).await?,
        _ => return Err(io::ErrorKind::InvalidData.into()),
    };
    let port = u16::from_be_bytes(read_bytes(&mut client).await?);
    if command != COMMAND_CONNECT {
        return reply(&mut client, REPLY_COMMAND_UNSUPPORTED).await;
    }
    let target = format!("{host}:{port}");
    let by_name = kind == ADDRESS_DOMAIN;
    relay.log(Tunnel { target: target.clone(), tunnel: true, allowed: true, by_name });
    match relay.dial(&target).await {
        Err(_) => reply(&mut client, REPLY_HOST_UNREACHABLE).await,
        Ok(mut upstream) => {
            reply(&mut client, REPLY_SUCCEEDED).await?;
            copy_bidirectional(&mut client, &mut upstream).await.map(|_| ())
        }
    }
}

/// Agrees on a method and checks the password; whether the client may go on.
async fn greet(client: &mut TcpStream, relay: &Relay) -> io::Result<bool> {
    let [version, methods] = read_bytes(client).await?;
    if version != VERSION {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut offered = vec![0; usize::from(methods)];
    client.read_exact(&mut offered).await?;
    let credentials = relay.credentials();
    let method = if credentials.is_some() { METHOD_PASSWORD } else { METHOD_NONE };
    if !offered.contains(&method) {
        client.write_all(&[VERSION, METHOD_UNACCEPTABLE]).await?;
        return Ok(false);
    }
    client.write_all(&[VERSION, method]).await?;
    let Some(right) = credentials else { return Ok(true) };
    let [_] = read_bytes(client).await?;
    let given = (read_text(client).await?, read_text(client).await?);
    let allowed = given == right;
    client.write_all(&[0x01, u8::from(!allowed)]).await?;
    Ok(allowed)
}

async fn reply(client: &mut TcpStream, code: u8) -> io::Result<()> {
    client.write_all(&[VERSION, code, 0, ADDRESS_IPV4, 0, 0, 0, 0, 0, 0]).await
}

async fn read_bytes<const N: usize>(client: &mut TcpStream) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    client.read_exact(&mut bytes).await?;
    Ok(bytes)
}

async fn read_text(client: &mut TcpStream) -> io::Result<String> {
    let [len] = read_bytes(client).await?;
    let mut text = vec![0; usize::from(len)];
    client.read_exact(&mut text).await?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}
