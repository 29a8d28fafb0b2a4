//! One request on one connection: dialling, TLS, proxies, HTTP/1.1 and HTTP/2.
//!
//! This is the only crate that dials. It knows nothing of pools, retries or redirects: it makes a
//! connection to an [`Origin`] by its [`OriginSettings`], sends a request on it, and says what
//! happened; an [`Error`] tells whose [`Fault`] it is and when another try is safe
//! ([`RetryClass`]).

mod error;
mod origin;
pub mod settings;

pub use error::{Error, Fault, HeadError, Phase, ProxyError, RetryClass, TlsSetupError};
pub use origin::{Origin, Scheme};
pub use settings::OriginSettings;
