//! Sockets that are listened on.

use crate::error::Error;
use crate::stream::{Carrier, Peer};
use socket2::{Domain, SockAddr, Socket, Type};
use std::fmt;
use std::fs;
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use tokio::net::{TcpListener, UnixListener};

/// Connections that may wait in the system's queue while none is accepted; the system may
/// lower it (`net.core.somaxconn`).
const BACKLOG: i32 = 1024;

/// Where a [`Listener`] listens.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Address {
    /// An IP address and port.
    Tcp(SocketAddr),
    /// A path in the file system; `None` for an abstract or unnamed socket that was passed in.
    Unix(Option<PathBuf>),
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(Some(path)) => path.display().fmt(f),
            Self::Unix(None) => f.write_str("(unnamed Unix socket)"),
        }
    }
}

/// A socket that accepts connections. A Unix socket made by [`bind_unix`](Self::bind_unix) is
/// removed from the file system on drop, unless another has taken its place.
#[derive(Debug)]
pub struct Listener {
    socket: ListenSocket,
    address: Address,
    _unlink: Option<Unlink>,
}

#[derive(Debug)]
enum ListenSocket {
    Tcp(TcpListener),
    Unix(UnixListener),
}

impl Listener {
    /// Listens on a TCP address; port 0 lets the system choose, see [`address`](Self::address).
    ///
    /// Must be called within a Tokio runtime, as must the other constructors.
    ///
    /// # Errors
    /// [`Error::Bind`] when the address is taken, not ours or not allowed.
    pub fn bind_tcp(address: SocketAddr) -> Result<Self, Error> {
        let bound = || -> io::Result<(TcpListener, SocketAddr)> {
            let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
            // A restart must not wait until the connections of the last run are forgotten.
            socket.set_reuse_address(true)?;
            socket.set_nonblocking(true)?;
            socket.bind(&address.into())?;
            socket.listen(BACKLOG)?;
            let listener = TcpListener::from_std(socket.into())?;
            let address = listener.local_addr()?;
            Ok((listener, address))
        };
        let (listener, address) =
            bound().map_err(|source| Error::Bind { address: Address::Tcp(address), source })?;
        Ok(Self {
            socket: ListenSocket::Tcp(listener),
            address: Address::Tcp(address),
            _unlink: None,
        })
    }

    /// Listens on a Unix socket at this path with these permission bits (`0o600`: its owner
    /// only). A socket that a server left behind is replaced; one in use is not.
    ///
    /// # Errors
    /// [`Error::SocketInUse`], [`Error::NotASocket`], or [`Error::Bind`] when the directory is
    /// missing, not writable, or the path is too long for a socket (108 bytes on Linux).
    pub fn bind_unix(path: &Path, mode: u32) -> Result<Self, Error> {
        let address = Address::Unix(Some(path.to_owned()));
        let failed = |source| Error::Bind { address: address.clone(), source };
        remove_left_behind(path)?;
        let bound = || -> io::Result<(UnixListener, Unlink)> {
            let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
            socket.set_nonblocking(true)?;
            socket.bind(&SockAddr::unix(path)?)?;
            let unlink = Unlink::of(path)?;
            // Before it listens, so that nobody gets in under the default permissions.
            fs::set_permissions(path, fs::Permissions::from_mode(mode))?;
            socket.listen(BACKLOG)?;
            Ok((UnixListener::from_std(socket.into())?, unlink))
        };
        let (listener, unlink) = bound().map_err(failed)?;
        Ok(Self { socket: ListenSocket::Unix(listener), address, _unlink: Some(unlink) })
    }

    /// Takes over a listening stream socket made by somebody else.
    pub(crate) fn from_descriptor(descriptor: OwnedFd) -> io::Result<Self> {
        let socket = Socket::from(descriptor);
        let listens = socket.is_listener()? && socket.r#type()? == Type::STREAM;
        if !listens {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        socket.set_nonblocking(true)?;
        if socket.domain()? == Domain::UNIX {
            let path = socket.local_addr()?.as_pathname().map(Path::to_owned);
            let listener = UnixListener::from_std(socket.into())?;
            let socket = ListenSocket::Unix(listener);
            return Ok(Self { socket, address: Address::Unix(path), _unlink: None });
        }
        let listener = TcpListener::from_std(socket.into())?;
        let address = Address::Tcp(listener.local_addr()?);
        Ok(Self { socket: ListenSocket::Tcp(listener), address, _unlink: None })
    }

    /// Where it listens, with the port the system chose.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// The TCP address; `None` for a Unix socket.
    pub fn tcp_address(&self) -> Option<SocketAddr> {
        match self.address {
            Address::Tcp(address) => Some(address),
            Address::Unix(_) => None,
        }
    }

    /// The next connection. Cancel safe.
    pub(crate) async fn accept(&self) -> io::Result<(Carrier, Peer)> {
        match &self.socket {
            ListenSocket::Tcp(listener) => {
                let (tcp, peer) = listener.accept().await?;
                // Replies are written whole; waiting to fill a packet would only delay them. The
                // client may be gone already, which reading from it will tell.
                let _ = tcp.set_nodelay(true);
                Ok((Carrier::Tcp(tcp), Peer::Tcp(peer)))
            }
            ListenSocket::Unix(listener) => {
                let (unix, _) = listener.accept().await?;
                let user_id = unix.peer_cred().ok().map(|credentials| credentials.uid());
                Ok((Carrier::Unix(unix), Peer::Unix { user_id }))
            }
        }
    }
}

/// Removes a socket nobody listens on any more.
fn remove_left_behind(path: &Path) -> Result<(), Error> {
    let Ok(metadata) = fs::symlink_metadata(path) else { return Ok(()) };
    if !metadata.file_type().is_socket() {
        return Err(Error::NotASocket(path.to_owned()));
    }
    match std::os::unix::net::UnixStream::connect(path) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => fs::remove_file(path)
            .map_err(|source| Error::Bind {
                address: Address::Unix(Some(path.to_owned())),
                source,
            }),
        Err(source) if source.kind() == io::ErrorKind::PermissionDenied => {
            Err(Error::Bind { address: Address::Unix(Some(path.to_owned())), source })
        }
        _ => Err(Error::SocketInUse(path.to_owned())),
    }
}

/// Removes the socket file it was made for, and no other that may have taken its path.
#[derive(Debug)]
struct Unlink {
    path: PathBuf,
    inode: (u64, u64),
}

impl Unlink {
    fn of(path: &Path) -> io::Result<Self> {
        Ok(Self { path: path.to_owned(), inode: inode(path)? })
    }
}

impl Drop for Unlink {
    fn drop(&mut self) {
        let ours = inode(&self.path).is_ok_and(|now| now == self.inode);
        if ours && let Err(error) = fs::remove_file(&self.path) {
            tracing::debug!(path = %self.path.display(), %error, "socket file not removed");
        }
    }
}

fn inode(path: &Path) -> io::Result<(u64, u64)> {
    let metadata = fs::symlink_metadata(path)?;
    Ok((metadata.dev(), metadata.ino()))
}
