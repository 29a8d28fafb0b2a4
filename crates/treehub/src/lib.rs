//! A server of OSTree objects: the Treehub API as garage-push and `ostree pull` use it, and packs.
//!
//! [`Treehub::handle`] answers a request over any HTTP server; [`serve`] puts it on
//! `trunkline-listen`. What is stored lies behind [`store::Store`]; the default,
//! [`store::DirectoryStore`], keeps each namespace as an archive-z2 repository that `ostree` can
//! open.
//!
//! Promises: an object is visible only once it hashed to its name; a ref moves only to a commit whose
//! closure is complete; a server killed at any moment leaves nothing visible that is not whole.

mod access;
mod body;
mod check;
mod documents;
mod metrics;
mod multipart;
mod object;
mod pack;
mod range;
mod refs;
mod reply;
mod routes;
mod service;
pub mod store;
mod walk;

pub use access::{Access, Scope, Token};
pub use body::ReplyBody;
pub use reply::BoxError;
pub use routes::{Call, Namespace, NamespaceError, Route};
pub use service::{Settings, Treehub, serve};
