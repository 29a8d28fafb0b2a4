//! Where clients connect, and how that place is told to others.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};

use tokio::process::{Child, Command};
use trunkline_listen::{Activation, Address, Limits, Listener, Server, TlsIdentity};

use super::args::{NbdArgs, TlsArgs, TlsChoice};
use super::outcome::NbdError;

/// The listening sockets and their names.
#[derive(Debug)]
pub(crate) struct Listening {
    pub(crate) server: Server,
    pub(crate) tls: Option<TlsIdentity>,
    pub(crate) names: Names,
}

/// How clients find the server.
#[derive(Debug)]
pub(crate) struct Names {
    /// The URI of the first export.
    pub(crate) uri: String,
    socket: Option<PathBuf>,
    port: Option<u16>,
    /// qemu's older spelling.
    nbd: String,
    /// Removes a private socket's folder at the end.
    _private: Option<tempfile::TempDir>,
}

impl Listening {
    /// Opens the sockets that the arguments, or a service manager, name.
    pub(crate) fn start(args: &NbdArgs) -> Result<Self, NbdError> {
        let tls = identity(&args.tls)?;
        let mut private = None;
        let mut listeners = passed_sockets()?;
        if listeners.is_empty() {
            listeners.push(bind(args, &mut private)?);
        }
        let name = match (&args.url, args.exports.first()) {
            (None, Some(export)) => export.split_once('=').map_or("", |(name, _)| name),
            _ => &args.export_name,
        };
        let names = names(listeners[0].address(), name, tls.is_some(), private);
        let limits = Limits { connections_max: args.listening.clients_max, ..Limits::default() };
        let mut listeners = listeners.into_iter();
        let first = listeners.next().expect("one listener was just counted");
        let server = listeners.fold(Server::new(first), Server::listener).limits(limits);
        Ok(Self { server, tls, names })
    }
}

impl Names {
    /// Starts a shell command that finds the server in its environment.
    pub(crate) fn spawn(&self, command: &str) -> std::io::Result<Child> {
        let mut shell = Command::new("/bin/sh");
        shell.arg("-c").arg(command).env("uri", &self.uri).env("nbd", &self.nbd);
        shell.env("unixsocket", self.socket.as_deref().unwrap_or(Path::new("")));
        shell.env("port", self.port.map(|port| port.to_string()).unwrap_or_default());
        shell.kill_on_drop(true).spawn()
    }
}

fn bind(args: &NbdArgs, private: &mut Option<tempfile::TempDir>) -> Result<Listener, NbdError> {
    let listening = &args.listening;
    let wants_private = match &listening.unix {
        Some(path) => path.as_os_str() == "-",
        None => args.running.run.is_some() && listening.is_tcp_default(),
    };
    if wants_private {
        let folder = tempfile::Builder::new()
            .prefix("trunkline-")
            .tempdir()
            .map_err(NbdError::PrivateSocket)?;
        let path = folder.path().join("nbd.sock");
        *private = Some(folder);
        return Ok(Listener::bind_unix(&path, 0o600)?);
    }
    match &listening.unix {
        Some(path) => Ok(Listener::bind_unix(path, 0o600)?),
        None => Ok(Listener::bind_tcp(SocketAddr::new(listening.address, listening.port))?),
    }
}

impl super::args::ListeningArgs {
    /// Whether nothing was said about TCP.
    fn is_tcp_default(&self) -> bool {
        self.port == trunkline_proto::nbd::constants::PORT
            && self.address == IpAddr::V4(Ipv4Addr::LOCALHOST)
    }
}

/// Sockets that a service manager opened for this process.
fn passed_sockets() -> Result<Vec<Listener>, NbdError> {
    let variable = |name| std::env::var(name).ok();
    let (count, pid) = (variable("LISTEN_FDS"), variable("LISTEN_PID"));
    let passed = Activation::from_values(count.as_deref(), pid.as_deref(), std::process::id())?;
    Ok(passed.map(Activation::listeners).transpose()?.unwrap_or_default())
}

fn identity(args: &TlsArgs) -> Result<Option<TlsIdentity>, NbdError> {
    let Some(folder) = args.tls_certificates.as_ref().filter(|_| args.tls != TlsChoice::Off) else {
        return Ok(None);
    };
    let authority = folder.join("ca-cert.pem");
    let identity = TlsIdentity::from_files(
        &folder.join("server-cert.pem"),
        &folder.join("server-key.pem"),
        args.tls_verify_peer.then_some(&*authority),
        &[],
    );
    Ok(Some(identity?))
}

fn names(address: &Address, export: &str, tls: bool, private: Option<tempfile::TempDir>) -> Names {
    let scheme = if tls { "nbds" } else { "nbd" };
    let name = encoded(export);
    let suffix = if export.is_empty() { String::new() } else { format!(":exportname={export}") };
    match address {
        Address::Tcp(address) => {
            let (host, port) = (reachable(address.ip()), address.port());
            let place = SocketAddr::new(host, port);
            Names {
                uri: format!("{scheme}://{place}/{name}"),
                socket: None,
                port: Some(port),
                nbd: format!("nbd:{place}{suffix}"),
                _private: private,
            }
        }
        // Unnamed and abstract sockets have no path to tell.
        other => {
            let path = match other {
                Address::Unix(Some(path)) => path.clone(),
                _ => PathBuf::new(),
            };
            let path = std::path::absolute(&path).unwrap_or(path);
            Names {
                uri: format!("{scheme}+unix:///{name}?socket={}", encoded(&path.to_string_lossy())),
                nbd: format!("nbd:unix:{}{suffix}", path.display()),
                socket: Some(path),
                port: None,
                _private: private,
            }
        }
    }
}

/// An address that a client on this machine can use.
fn reachable(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(any) if any.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(any) if any.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        address => address,
    }
}

/// Percent-encodes what has a meaning in a URI.
fn encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                encoded.push(char::from(byte));
            }
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uris_follow_the_public_format() {
        let tcp = Address::Tcp("0.0.0.0:99".parse().unwrap());
        let named = names(&tcp, "a disk", false, None);
        assert_eq!(named.uri, "nbd://127.0.0.1:99/a%20disk");
        assert_eq!(named.nbd, "nbd:127.0.0.1:99:exportname=a disk");
        let unix = Address::Unix(Some("/tmp/a b".into()));
        let named = names(&unix, "", true, None);
        assert_eq!(named.uri, "nbds+unix:///?socket=/tmp/a%20b");
    }
}
