//! Accepts connections: TCP and Unix sockets, TLS, limits, drain; the twin of transport.
//!
//! A [`Server`] takes one or more [`Listener`]s, a TLS identity where there is one, and
//! [`Limits`], and runs a session per connection until its [`Drain`] is started: then it stops
//! accepting, lets what is under way finish, and cuts off what has not by the deadline.
//! [`Server::serve_http`] speaks HTTP/1.1 and HTTP/2; [`Server::serve_streams`] hands over the
//! bare stream, for protocols of their own such as NBD, which may turn on TLS later
//! ([`Stream::upgrade`]).
//!
//! ```
//! use http::{Request, Response};
//! use http_body_util::Full;
//! use std::time::Duration;
//! use trunkline_listen::{Drain, Listener, RequestBody, Server};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), trunkline_listen::Error> {
//! let listener = Listener::bind_tcp("127.0.0.1:0".parse().expect("an address"))?;
//! let drain = Drain::new(Duration::from_secs(30));
//! let serving = Server::new(listener).serve_http(&drain, |request: Request<RequestBody>| async move {
//!     let text = format!("you asked for {}\n", request.uri().path());
//!     Response::new(Full::new(bytes::Bytes::from(text)))
//! });
//! // Elsewhere, on a signal:
//! drain.start();
//! let drained = serving.await;
//! assert_eq!((drained.finished, drained.cut_off), (0, 0));
//! # Ok(())
//! # }
//! ```

mod accept;
mod activation;
mod backoff;
mod drain;
mod error;
mod http;
pub mod limits;
mod listener;
mod opening;
mod split;
mod stream;
mod sys;
mod tls;

pub use accept::Server;
pub use activation::Activation;
pub use drain::{Drain, Drained};
pub use error::Error;
pub use http::{BodyError, RequestBody};
pub use limits::Limits;
pub use listener::{Address, Listener};
pub use split::{Receiver, Sender};
pub use stream::{Peer, Stream, TlsFacts};
pub use tls::{ALPN_HTTP, TlsIdentity};
