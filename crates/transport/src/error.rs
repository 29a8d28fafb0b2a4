//! What can go wrong on one connection, whose fault it is, and whether another try is safe.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use thiserror::Error;

use crate::origin::Origin;

/// Who has to act for the error to go away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The far side broke a rule or refused.
    Peer,
    /// The path between: resolution, routing, resets, silence.
    Network,
    /// This machine: a file, a limit.
    Local,
    /// The caller asked for something that cannot be had.
    Caller,
}

/// When sending the same request again is safe. Transport only classifies; one layer above
/// retries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryClass {
    /// Another try gives the same answer.
    Never,
    /// The request never reached the wire: safe for every method, at once.
    Unsent,
    /// A warm connection was closed under the request before any byte of an answer: safe for
    /// idempotent methods, at once, on another connection (RFC 9112 §9.3.1).
    Reused,
    /// The exchange failed in its course: safe for idempotent methods, after a pause.
    Idempotent,
}

/// The part of making a connection in which something happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Looking up the host's addresses.
    Resolve,
    /// The TCP (or Unix socket) connection.
    Connect,
    /// The proxy's handshake.
    Proxy,
    /// The TLS handshake.
    Tls,
    /// The HTTP/2 preface.
    Http,
}

impl Phase {
    /// Words for a message.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Resolve => "looking up the host",
            Self::Connect => "connecting",
            Self::Proxy => "asking the proxy",
            Self::Tls => "making the TLS handshake",
            Self::Http => "starting HTTP",
        }
    }
}

/// An error of one connection or of one exchange on it.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// The URL's scheme is none that a connection can be made for.
    #[error("cannot connect to a `{scheme}` URL; use http or https")]
    UnsupportedUrl {
        /// The scheme found.
        scheme: String,
    },
    /// The host name has no address.
    #[error("cannot find the host `{host}`; check the name and the DNS settings")]
    Resolve {
        /// The host name.
        host: String,
        /// What the resolver said.
        #[source]
        source: io::Error,
    },
    /// No address of the host accepted a connection.
    #[error("cannot connect to {target} at {address}")]
    Connect {
        /// The origin or proxy that was dialled, `host:port`.
        target: String,
        /// The address tried last.
        address: SocketAddr,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The Unix socket did not accept a connection.
    #[error("cannot connect to the socket `{}`", path.display())]
    ConnectUnix {
        /// The socket's path.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// Making the connection took too long.
    #[error("{origin}: no answer within {after:?} while {}", phase.as_str())]
    ConnectTimeout {
        /// The origin.
        origin: Origin,
        /// The phase in which the time ran out.
        phase: Phase,
        /// The time allowed.
        after: Duration,
    },
    /// The proxy refused or broke its protocol.
    #[error("proxy {proxy}: {source}")]
    Proxy {
        /// The proxy, `host:port`, without credentials.
        proxy: String,
        /// What it did.
        #[source]
        source: ProxyError,
    },
    /// The server's certificate was issued by nobody this machine trusts.
    #[error(
        "{host}: the certificate was issued by `{issuer}`, which is not trusted here; \
         add its CA certificate with --cacert, SSL_CERT_FILE or CURL_CA_BUNDLE"
    )]
    UntrustedIssuer {
        /// The host.
        host: String,
        /// The issuer's distinguished name as the certificate gives it.
        issuer: String,
    },
    /// The server's certificate is not acceptable for another reason (name, dates, usage).
    #[error("{host}: the certificate is not acceptable: {source}")]
    Certificate {
        /// The host.
        host: String,
        /// The rule broken.
        #[source]
        source: rustls::Error,
    },
    /// The TLS handshake failed otherwise.
    #[error("{host}: the TLS handshake failed: {source}")]
    Handshake {
        /// The host.
        host: String,
        /// What the TLS layer or the system said.
        #[source]
        source: io::Error,
    },
    /// The server wants a client certificate, or another one. In TLS 1.3 it says so only after
    /// the handshake (RFC 8446 §4.4.2.4, §6.2).
    #[error(
        "the server refuses the client certificate ({alert:?}); give the right one with --cert"
    )]
    ClientCertificate {
        /// The server's word.
        alert: rustls::AlertDescription,
    },
    /// TLS could not be set up on this side: roots, keys, names.
    #[error(transparent)]
    TlsSetup(#[from] TlsSetupError),
    /// The peer ended the connection before any byte of an answer.
    #[error("the server closed the connection before it answered")]
    ClosedBeforeAnswer {
        /// Whether the connection had answered requests before: then another try is safe.
        reused: bool,
    },
    /// The connection was unusable before the request was written.
    #[error("the connection was closed before the request was sent")]
    Unsent,
    /// The server will take the request on another connection (GOAWAY, REFUSED_STREAM;
    /// RFC 9113 §6.8, §8.7).
    #[error("the server refused the stream unprocessed")]
    RefusedStream,
    /// The server is closing the connection and left this stream unanswered (GOAWAY with
    /// NO_ERROR, RFC 9113 §6.8).
    #[error("the server closed the connection before it answered (GOAWAY)")]
    GoAway,
    /// The server reset this stream.
    #[error("the server reset the stream ({reason})")]
    StreamReset {
        /// The HTTP/2 error code's name.
        reason: h2::Reason,
    },
    /// The server broke HTTP/2 itself, so that the whole connection is lost.
    #[error("the server broke the HTTP/2 protocol: {source}")]
    BrokenHttp2 {
        /// The rule broken.
        #[source]
        source: hyper::Error,
    },
    /// The server broke HTTP/1.1 framing or sent a head that cannot be read.
    #[error("the server's answer is not valid HTTP: {source}")]
    BrokenHttp1 {
        /// The rule broken.
        #[source]
        source: hyper::Error,
    },
    /// The answer's head broke a rule, seen by the range lane.
    #[error("the server's answer is not valid HTTP: {0}")]
    BrokenHead(HeadError),
    /// The body's chunks broke a rule, seen by the range lane.
    #[error("the server's answer is not valid HTTP: {0}")]
    BrokenChunks(ChunkError),
    /// The connection ended before the head, the announced length or the last chunk was complete.
    #[error("the connection ended in mid-answer")]
    Truncated,
    /// Reading or writing the connection failed.
    #[error("the connection failed: {0}")]
    Io(#[from] io::Error),
    /// The caller's request body failed.
    #[error("the request's body could not be read: {0}")]
    RequestBody(#[source] io::Error),
    /// Another error of the HTTP layer.
    #[error("HTTP: {0}")]
    Http(#[source] hyper::Error),
}

/// What a proxy did instead of opening the way.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ProxyError {
    /// 407: it wants credentials, or others.
    #[error("it asks for authentication (407); put user and password into the proxy URL")]
    AuthenticationRequired,
    /// CONNECT was answered by another status.
    #[error("it refused the connection with status {status}")]
    Refused {
        /// The HTTP status.
        status: u16,
    },
    /// The SOCKS5 reply code says no (RFC 1928 §6).
    #[error("it refused the connection (SOCKS5 reply {code}: {meaning})")]
    SocksRefused {
        /// The reply code.
        code: u8,
        /// The RFC's meaning of the code.
        meaning: &'static str,
    },
    /// A SOCKS5 proxy wants a login, or another one (RFC 1928 §3, RFC 1929 §2).
    #[error("it accepts no login that was offered; put user and password into the proxy URL")]
    SocksAuthentication,
    /// Host name, user or password is longer than SOCKS5 can carry.
    #[error("the host name, user or password is longer than the 255 bytes that SOCKS5 carries")]
    TooLongForSocks,
    /// The reply does not follow the protocol.
    #[error("its reply is not valid {protocol}; is this a proxy of that kind?")]
    Malformed {
        /// The protocol expected.
        protocol: &'static str,
    },
    /// The connection to it failed.
    #[error("the connection to it failed: {0}")]
    Io(#[from] io::Error),
}

/// Why TLS could not be set up on this side.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TlsSetupError {
    /// A file could not be read.
    #[error("cannot read `{}`: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// A CA file holds no certificate.
    #[error("`{}` holds no certificate; a PEM file with CERTIFICATE blocks is needed", path.display())]
    NoCertificate {
        /// The file.
        path: PathBuf,
    },
    /// A file is not valid PEM (RFC 7468).
    #[error("`{}` is not valid PEM: {source}", path.display())]
    Pem {
        /// The file.
        path: PathBuf,
        /// The rule broken.
        #[source]
        source: rustls_pki_types::pem::Error,
    },
    /// A file holds a certificate that cannot be used.
    #[error("`{}` holds no certificate that can be used: {source}", path.display())]
    UnusableCertificate {
        /// The file.
        path: PathBuf,
        /// The rule broken.
        #[source]
        source: rustls::Error,
    },
    /// The private key is not that of the client certificate.
    #[error(
        "the private key in `{}` does not belong to the certificate in `{}`",
        key.display(), certificate.display()
    )]
    KeyMismatch {
        /// The certificate's file.
        certificate: PathBuf,
        /// The key's file.
        key: PathBuf,
    },
    /// A key file holds no private key.
    #[error("`{}` holds no private key that can be used (PKCS#8, PKCS#1 or SEC1 PEM, not encrypted)", path.display())]
    NoPrivateKey {
        /// The file.
        path: PathBuf,
    },
    /// A PKCS#12 file could not be opened.
    #[error("cannot open the PKCS#12 file `{}`: {reason}; is the password right?", path.display())]
    Pkcs12 {
        /// The file.
        path: PathBuf,
        /// The library's reason.
        reason: String,
    },
    /// No root certificate was found at all.
    #[error(
        "no trusted root certificate found; install ca-certificates or name a file with --cacert"
    )]
    NoRoots,
    /// The host is no valid TLS server name.
    #[error("`{host}` is not a valid TLS server name")]
    ServerName {
        /// The host.
        host: String,
    },
    /// The TLS library refused the configuration.
    #[error("TLS settings refused: {0}")]
    Rustls(#[from] rustls::Error),
}

/// How an answer's head broke the rules (RFC 9112).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum HeadError {
    /// It does not parse.
    #[error("the head cannot be parsed")]
    Malformed,
    /// It is longer than the limit.
    #[error("the head is longer than {bytes_max} bytes")]
    TooLong {
        /// The limit.
        bytes_max: usize,
    },
    /// It has more headers than the limit.
    #[error("the head has more than {headers_max} headers")]
    TooManyHeaders {
        /// The limit.
        headers_max: usize,
    },
    /// Two different Content-Length values, or one that is no number (RFC 9112 §6.3).
    #[error("its Content-Length is not one number")]
    ContentLength,
    /// Both Transfer-Encoding and Content-Length, or Transfer-Encoding in HTTP/1.0: where the
    /// body ends cannot be trusted (RFC 9112 §6.1).
    #[error("its Transfer-Encoding and its Content-Length or version contradict each other")]
    ConflictingFraming,
    /// More informational answers than the limit.
    #[error("too many informational (1xx) answers")]
    TooManyInformational,
}

/// How a chunked body broke the rules (RFC 9112 §7.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ChunkError {
    /// A chunk's size is no hexadecimal number of at most 16 digits.
    #[error("a chunk's size cannot be read")]
    Size,
    /// A line of the coding does not end where or as it must.
    #[error("a chunk does not end with its line end")]
    Line,
    /// Extensions and trailers are longer than the limit.
    #[error("the chunk extensions and trailers are longer than {bytes_max} bytes")]
    TooMuchExtra {
        /// The limit.
        bytes_max: u32,
    },
}

impl Error {
    /// Who has to act.
    pub fn fault(&self) -> Fault {
        match self {
            Self::UnsupportedUrl { .. } => Fault::Caller,
            Self::TlsSetup(_) | Self::RequestBody(_) => Fault::Local,
            Self::Resolve { .. }
            | Self::Connect { .. }
            | Self::ConnectUnix { .. }
            | Self::ConnectTimeout { .. }
            | Self::Unsent
            | Self::Io(_) => Fault::Network,
            _ => Fault::Peer,
        }
    }

    /// The server's refusal of the client's certificate, if an I/O error is one.
    pub(crate) fn client_certificate(error: &io::Error) -> Option<Self> {
        use rustls::AlertDescription as Alert;
        let inner = error.get_ref()?.downcast_ref::<rustls::Error>()?;
        match inner {
            rustls::Error::AlertReceived(
                alert @ (Alert::CertificateRequired
                | Alert::BadCertificate
                | Alert::UnsupportedCertificate
                | Alert::CertificateRevoked
                | Alert::CertificateExpired
                | Alert::CertificateUnknown
                | Alert::UnknownCA
                | Alert::AccessDenied),
            ) => Some(Self::ClientCertificate { alert: *alert }),
            _ => None,
        }
    }

    /// When another try is safe.
    pub fn retry(&self) -> RetryClass {
        match self {
            Self::Unsent | Self::RefusedStream => RetryClass::Unsent,
            Self::ClosedBeforeAnswer { reused: true } | Self::GoAway => RetryClass::Reused,
            Self::ClosedBeforeAnswer { reused: false }
            | Self::Connect { .. }
            | Self::ConnectUnix { .. }
            | Self::ConnectTimeout { .. }
            | Self::StreamReset { .. }
            | Self::BrokenHttp2 { .. }
            | Self::Truncated
            | Self::Io(_)
            | Self::Http(_) => RetryClass::Idempotent,
            Self::Resolve { source, .. } if source.kind() == io::ErrorKind::TimedOut => {
                RetryClass::Idempotent
            }
            Self::Handshake { source, .. } if is_cut(source) => RetryClass::Idempotent,
            Self::Proxy { source: ProxyError::Io(_), .. } => RetryClass::Idempotent,
            _ => RetryClass::Never,
        }
    }
}

/// Whether an I/O error means that the path broke rather than that a rule was broken.
pub(crate) fn is_cut(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::BrokenPipe
            | io::ErrorKind::UnexpectedEof
            | io::ErrorKind::TimedOut
    )
}
