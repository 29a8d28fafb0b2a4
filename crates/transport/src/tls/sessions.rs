//! Sessions kept for resumption within the process.

use std::fmt;
use std::sync::Arc;

use rustls::client::{ClientSessionMemoryCache, ClientSessionStore, Resumption, Tls12Resumption};

/// Servers whose sessions are remembered; above this the one added first is forgotten.
const SERVERS_MAX: usize = 256;

/// TLS 1.3 tickets that rustls keeps per server, the unit of its cache's size.
const TICKETS_PER_SERVER: usize = 8;

/// Sessions by server name, shared by all connections of a process; cheap to clone.
///
/// A TLS 1.3 ticket is used once (RFC 8446 §C.4). rustls offers a session only under the same
/// verifier and client identity that it was made with, so that one store can safely serve clients
/// with different roots.
#[derive(Clone)]
pub struct SessionStore {
    cache: Arc<dyn ClientSessionStore>,
}

impl SessionStore {
    pub(super) fn resumption(&self) -> Resumption {
        Resumption::store(Arc::clone(&self.cache))
            .tls12_resumption(Tls12Resumption::SessionIdOrTickets)
    }
}

impl Default for SessionStore {
    fn default() -> Self {
        let cache = ClientSessionMemoryCache::new(SERVERS_MAX * TICKETS_PER_SERVER);
        Self { cache: Arc::new(cache) }
    }
}

impl fmt::Debug for SessionStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionStore").finish_non_exhaustive()
    }
}
