//! Tunnels through proxies: HTTP CONNECT (RFC 9110 §9.3.6) and SOCKS5 (RFC 1928, RFC 1929).
//!
//! What follows the proxy's last reply belongs to the origin. So the replies are read without
//! reading past them: SOCKS5 says its lengths, an HTTP head is read byte by byte, which is cheap
//! enough for the hundred bytes of a CONNECT reply, once per connection.

#[cfg(test)]
mod tests;

use std::net::IpAddr;

use base64::Engine as _;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

use crate::error::ProxyError;
use crate::settings::Proxy;

/// The longest head of a CONNECT reply accepted, in bytes.
const CONNECT_HEAD_BYTES_MAX: usize = 16 * 1024;

/// The most headers accepted in a CONNECT reply.
const CONNECT_HEADERS_MAX: usize = 100;

/// Names for messages.
const HTTP: &str = "HTTP";
const SOCKS5: &str = "SOCKS5";

/// Asks an HTTP proxy for a tunnel to `target`, `host:port` with brackets around IPv6.
///
/// # Errors
/// [`ProxyError`]: refused (407 apart), no HTTP, or the connection broke.
pub(crate) async fn http_connect<S>(
    mut stream: S,
    target: &str,
    proxy: &Proxy,
) -> Result<S, ProxyError>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    stream.write_all(&connect_request(target, proxy)).await?;
    stream.flush().await?;
    let mut head = Vec::with_capacity(512);
    while !head.ends_with(b"\r\n\r\n") && !head.ends_with(b"\n\n") {
        if head.len() == CONNECT_HEAD_BYTES_MAX {
            return Err(ProxyError::Malformed { protocol: HTTP });
        }
        head.push(stream.read_u8().await?);
    }
    match connect_status(&head)? {
        200..=299 => Ok(stream),
        407 => Err(ProxyError::AuthenticationRequired),
        status => Err(ProxyError::Refused { status }),
    }
}

fn connect_request(target: &str, proxy: &Proxy) -> Vec<u8> {
    let mut request = format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n");
    if let Some((user, password)) = &proxy.credentials {
        let pair = format!("{user}:{}", password.expose());
        let token = base64::engine::general_purpose::STANDARD.encode(pair);
        request.push_str("Proxy-Authorization: Basic ");
        request.push_str(&token);
        request.push_str("\r\n");
    }
    request.push_str("\r\n");
    request.into_bytes()
}

/// The status of a complete reply head. Its headers mean nothing for a tunnel (RFC 9110 §9.3.6:
/// Content-Length and Transfer-Encoding are ignored).
fn connect_status(head: &[u8]) -> Result<u16, ProxyError> {
    let mut headers = [httparse::EMPTY_HEADER; CONNECT_HEADERS_MAX];
    let mut response = httparse::Response::new(&mut headers);
    match response.parse(head) {
        Ok(httparse::Status::Complete(length)) if length == head.len() => {
            response.code.ok_or(ProxyError::Malformed { protocol: HTTP })
        }
        _ => Err(ProxyError::Malformed { protocol: HTTP }),
    }
}

/// Asks a SOCKS5 proxy for a connection to `host`, a name or an address without brackets; the
/// proxy resolves names.
///
/// # Errors
/// [`ProxyError`]: refused with a reply code, no SOCKS5, or the connection broke.
pub(crate) async fn socks5<S>(
    mut stream: S,
    host: &str,
    port: u16,
    proxy: &Proxy,
) -> Result<S, ProxyError>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    // Built first, so that a name that does not fit fails before anything is sent.
    let request = socks_request(host, port)?;
    let login = match &proxy.credentials {
        Some((user, password)) => Some(socks_login(user, password.expose())?),
        None => None,
    };
    stream.write_all(socks_greeting(login.is_some())).await?;
    stream.flush().await?;
    let mut choice = [0; 2];
    stream.read_exact(&mut choice).await?;
    match (socks_choice(choice)?, login) {
        (SocksMethod::Open, _) => {}
        (SocksMethod::Password, Some(login)) => {
            stream.write_all(&login).await?;
            stream.flush().await?;
            let mut verdict = [0; 2];
            stream.read_exact(&mut verdict).await?;
            // RFC 1929 §2: the version is 1; some servers answer 5. Only the status counts.
            if verdict[1] != 0 {
                return Err(ProxyError::SocksAuthentication);
            }
        }
        (SocksMethod::Password, None) => return Err(ProxyError::Malformed { protocol: SOCKS5 }),
    }
    stream.write_all(&request).await?;
    stream.flush().await?;
    let mut head = [0; 5];
    stream.read_exact(&mut head).await?;
    let rest = socks_reply(head)?;
    // The bound address, of no use to a client.
    let mut address = [0; 1 + u8::MAX as usize + 2];
    stream.read_exact(&mut address[..rest]).await?;
    Ok(stream)
}

/// Protocol version (RFC 1928 §3).
const VERSION: u8 = 5;

const METHOD_OPEN: u8 = 0;
const METHOD_PASSWORD: u8 = 2;
const METHOD_NONE: u8 = 0xff;

const COMMAND_CONNECT: u8 = 1;

const ADDRESS_V4: u8 = 1;
const ADDRESS_NAME: u8 = 3;
const ADDRESS_V6: u8 = 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SocksMethod {
    Open,
    Password,
}

fn socks_greeting(password: bool) -> &'static [u8] {
    if password { &[VERSION, 2, METHOD_OPEN, METHOD_PASSWORD] } else { &[VERSION, 1, METHOD_OPEN] }
}

fn socks_choice(reply: [u8; 2]) -> Result<SocksMethod, ProxyError> {
    match reply {
        [VERSION, METHOD_OPEN] => Ok(SocksMethod::Open),
        [VERSION, METHOD_PASSWORD] => Ok(SocksMethod::Password),
        [VERSION, METHOD_NONE] => Err(ProxyError::SocksAuthentication),
        _ => Err(ProxyError::Malformed { protocol: SOCKS5 }),
    }
}

/// The RFC 1929 §2 request.
fn socks_login(user: &str, password: &str) -> Result<Vec<u8>, ProxyError> {
    let mut login = vec![1];
    for text in [user, password] {
        let length = u8::try_from(text.len()).map_err(|_| ProxyError::TooLongForSocks)?;
        login.push(length);
        login.extend_from_slice(text.as_bytes());
    }
    Ok(login)
}

/// The CONNECT request (RFC 1928 §4, §5).
fn socks_request(host: &str, port: u16) -> Result<Vec<u8>, ProxyError> {
    let mut request = vec![VERSION, COMMAND_CONNECT, 0];
    match host.parse() {
        Ok(IpAddr::V4(address)) => {
            request.push(ADDRESS_V4);
            request.extend_from_slice(&address.octets());
        }
        Ok(IpAddr::V6(address)) => {
            request.push(ADDRESS_V6);
            request.extend_from_slice(&address.octets());
        }
        Err(_) => {
            let length = u8::try_from(host.len()).map_err(|_| ProxyError::TooLongForSocks)?;
            request.extend_from_slice(&[ADDRESS_NAME, length]);
            request.extend_from_slice(host.as_bytes());
        }
    }
    request.extend_from_slice(&port.to_be_bytes());
    Ok(request)
}

/// Reads the first five bytes of the reply (RFC 1928 §6) and says how many follow.
fn socks_reply(head: [u8; 5]) -> Result<usize, ProxyError> {
    let [version, code, _reserved, kind, first] = head;
    if version != VERSION {
        return Err(ProxyError::Malformed { protocol: SOCKS5 });
    }
    if code != 0 {
        return Err(ProxyError::SocksRefused { code, meaning: socks_meaning(code) });
    }
    // One byte of the address has been read; two of the port follow it.
    match kind {
        ADDRESS_V4 => Ok(4 - 1 + 2),
        ADDRESS_V6 => Ok(16 - 1 + 2),
        ADDRESS_NAME => Ok(usize::from(first) + 2),
        _ => Err(ProxyError::Malformed { protocol: SOCKS5 }),
    }
}

fn socks_meaning(code: u8) -> &'static str {
    match code {
        1 => "general failure",
        2 => "not allowed by its rules",
        3 => "network unreachable",
        4 => "host unreachable",
        5 => "connection refused",
        6 => "time to live expired",
        7 => "command not supported",
        8 => "address type not supported",
        _ => "unassigned code",
    }
}
