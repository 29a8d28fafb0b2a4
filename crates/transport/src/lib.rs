//! One request on one connection: dialling, TLS, proxies, HTTP/1.1 and HTTP/2.
//!
//! This is the only crate that dials. It knows nothing of pools, retries or redirects: it makes a
//! connection to an [`Origin`] by its [`OriginSettings`], sends a request on it, and says what
//! happened; an [`Error`] tells whose [`Fault`] it is and when another try is safe
//! ([`RetryClass`]).

mod body;
mod connector;
mod error;
mod frames;
mod http;
mod identity;
mod meter;
mod origin;
mod proxy;
mod range_lane;
pub mod settings;
mod stream;
mod tcp;
mod tls;

pub use h2::Reason;

pub use body::{BodySource, RequestBody, ResponseBody};
pub use connector::{Connection, Dialled, Handshake, Lane, connect};
pub use error::{
    ChunkError, Error, Fault, HeadError, Phase, ProxyError, RetryClass, TlsSetupError,
};
pub use http::{HEAD_BYTES_MAX, HEADERS_MAX, Http1, Http2, SendError};
pub use identity::Identity;
pub use meter::Meter;
pub use origin::{Origin, Scheme};
pub use range_lane::{BodyFraming, RangeConnection};
pub use settings::OriginSettings;
pub use tls::{Roots, SessionStore, TlsClient, TlsOptions, TlsVersion};
