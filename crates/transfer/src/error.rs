//! What can go wrong with a transfer, in words that tell the user what to do.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use http::StatusCode;
use thiserror::Error;
use trunkline_proto::digest::Digest;
use trunkline_transport as transport;

use crate::display::SafeUrl;

/// A transfer that failed for good, with the URL and the number of attempts made.
#[derive(Debug, Error)]
#[error("{url}: {kind}{}", Attempts(*attempts))]
pub struct Error {
    /// The URL, safe to show.
    pub url: SafeUrl,
    /// What went wrong in the last attempt.
    #[source]
    pub kind: ErrorKind,
    /// Attempts made, the last one included.
    pub attempts: u32,
}

struct Attempts(u32);

impl std::fmt::Display for Attempts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.0 > 1 { write!(f, " (tried {} times)", self.0) } else { Ok(()) }
    }
}

/// The kinds of failure that a caller may want to tell apart; the command line gives each an
/// exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Class {
    /// The request itself makes no sense: URL, destination.
    Usage,
    /// No connection, or it broke again and again.
    Network,
    /// TLS: certificates, keys, handshake.
    Tls,
    /// The server answered with an error status.
    Status,
    /// The server or proxy wants other credentials.
    Authentication,
    /// The bytes are not what was asked for: length, range, checksum, encoding, changed file.
    Integrity,
    /// The local file could not be read or written.
    File,
    /// The time ran out.
    Timeout,
    /// The caller stopped it.
    Cancelled,
}

/// What went wrong.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The connection or the exchange on it.
    #[error(transparent)]
    Connection(#[from] transport::Error),
    /// No connection could be made.
    #[error(transparent)]
    Pool(#[from] trunkline_pool::Error),
    /// The URL cannot be fetched.
    #[error("this URL cannot be fetched: {reason}")]
    Url {
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The server answered with a status that says no.
    #[error("the server answered {status}{}", Quoted(detail))]
    Status {
        /// The status.
        status: StatusCode,
        /// The first line of a short text body.
        detail: String,
        /// What the server asked to wait.
        retry_after: Option<Duration>,
    },
    /// 401 or 403 where credentials matter.
    #[error(
        "the server answered {status}; {}",
        if *had_credentials { "it does not accept these credentials" }
        else { "give credentials with --user, --netrc or a token" }
    )]
    Authentication {
        /// The status.
        status: StatusCode,
        /// Whether credentials were sent.
        had_credentials: bool,
    },
    /// No token could be had from the OAuth2 server.
    #[error("the token server answered {status}{}; check client id and secret", Quoted(detail))]
    Token {
        /// The token server's status.
        status: StatusCode,
        /// OAuth2 error code (RFC 6749 §5.2).
        detail: String,
    },
    /// The token server's answer cannot be read.
    #[error("the token server's answer is not an OAuth2 token (RFC 6749 §5.1)")]
    TokenMalformed,
    /// Too many redirects.
    #[error("more than {redirects_max} redirects; is it a loop?")]
    RedirectLimit {
        /// The limit.
        redirects_max: u32,
    },
    /// A redirect without a usable target.
    #[error("the server redirects ({status}) without a usable Location")]
    RedirectTarget {
        /// The status.
        status: StatusCode,
    },
    /// A redirect from https to http.
    #[error(
        "the server redirects from https to http ({target}); \
         give a checksum or allow it with --allow-downgrade"
    )]
    RedirectDowngrade {
        /// The target.
        target: SafeUrl,
    },
    /// Nothing moved for the whole time allowed.
    #[error("nothing came for {after:?}")]
    Stalled {
        /// The time allowed.
        after: Duration,
    },
    /// The transfer took longer than the caller allows.
    #[error("not done within {after:?}")]
    TimedOut {
        /// The time allowed.
        after: Duration,
    },
    /// The server asks to wait for longer than the limit.
    #[error("the server answered {status} and asks to wait for {wait:?}; try again later")]
    RetryLater {
        /// The status.
        status: StatusCode,
        /// The wait asked for.
        wait: Duration,
    },
    /// The body was shorter or longer than announced.
    #[error("the body has {received} bytes where {expected} were announced")]
    Length {
        /// Announced.
        expected: u64,
        /// Received.
        received: u64,
    },
    /// The body is larger than the caller accepts.
    #[error("the answer is larger than {bytes_max} bytes")]
    TooLarge {
        /// The limit.
        bytes_max: u64,
    },
    /// The length is not known in advance where it must be.
    #[error("the server does not tell the length")]
    LengthUnknown,
    /// The body is compressed although identity was asked for.
    #[error(
        "the server sent the body as `{encoding}` though it was asked not to; \
         its bytes are not those of the file"
    )]
    Encoded {
        /// The content coding.
        encoding: String,
    },
    /// The server answered 200 with the whole body to a range.
    #[error("the server ignores ranges; this needs a server that answers 206")]
    RangeIgnored,
    /// The server sent another range than the one asked for.
    #[error("the server sent another range ({sent}) than bytes {start}-{} ", end - 1)]
    RangeMismatch {
        /// First byte asked for.
        start: u64,
        /// End asked for, exclusive.
        end: u64,
        /// The Content-Range header, or `none`.
        sent: String,
    },
    /// The file was replaced while it was read.
    #[error("the file changed on the server while it was read (it was {was}, now it is {is})")]
    Changed {
        /// The validator at the start.
        was: String,
        /// The validator now.
        is: String,
    },
    /// The checksum differs.
    #[error("the checksum is {actual} where {expected} was expected; the file was not kept")]
    Checksum {
        /// What the caller expects.
        expected: Box<Digest>,
        /// What came.
        actual: Box<Digest>,
    },
    /// A web page came where a file was expected.
    #[error("the server sent a web page (text/html) where a file was expected")]
    WebPage,
    /// Something local failed.
    #[error("cannot {action} `{}`: {source}", path.display())]
    File {
        /// What was tried, as a verb.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// Another process works on the same destination.
    #[error("another process is writing `{}`", path.display())]
    Busy {
        /// The destination.
        path: PathBuf,
    },
    /// The caller stopped the transfer.
    #[error("stopped")]
    Cancelled,
}

struct Quoted<'a>(&'a str);

impl std::fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.0.is_empty() { Ok(()) } else { write!(f, " ({})", self.0) }
    }
}

impl ErrorKind {
    /// The class, for exit codes.
    pub fn class(&self) -> Class {
        match self {
            Self::Connection(error) => class_of(error),
            Self::Pool(trunkline_pool::Error::Dial(error)) => class_of(error),
            Self::Pool(_) | Self::Cancelled => Class::Cancelled,
            Self::Url { .. } => Class::Usage,
            Self::Authentication { .. } | Self::Token { .. } | Self::TokenMalformed => {
                Class::Authentication
            }
            Self::Status { .. }
            | Self::RetryLater { .. }
            | Self::RedirectLimit { .. }
            | Self::RedirectTarget { .. }
            | Self::RedirectDowngrade { .. } => Class::Status,
            Self::Stalled { .. } | Self::TimedOut { .. } => Class::Timeout,
            Self::Length { .. }
            | Self::TooLarge { .. }
            | Self::LengthUnknown
            | Self::Encoded { .. }
            | Self::RangeIgnored
            | Self::RangeMismatch { .. }
            | Self::Changed { .. }
            | Self::Checksum { .. }
            | Self::WebPage => Class::Integrity,
            Self::File { .. } | Self::Busy { .. } => Class::File,
        }
    }

    /// The HTTP status, when the failure is one.
    pub fn status(&self) -> Option<StatusCode> {
        match self {
            Self::Status { status, .. }
            | Self::Authentication { status, .. }
            | Self::RetryLater { status, .. } => Some(*status),
            _ => None,
        }
    }
}

fn class_of(error: &transport::Error) -> Class {
    use transport::Error as E;
    match error {
        E::UnsupportedUrl { .. } => Class::Usage,
        E::UntrustedIssuer { .. }
        | E::Certificate { .. }
        | E::Handshake { .. }
        | E::ClientCertificate { .. }
        | E::TlsSetup(_) => Class::Tls,
        E::Proxy { source: transport::ProxyError::AuthenticationRequired, .. } => {
            Class::Authentication
        }
        E::ConnectTimeout { .. } => Class::Timeout,
        E::RequestBody(_) => Class::File,
        _ => Class::Network,
    }
}
