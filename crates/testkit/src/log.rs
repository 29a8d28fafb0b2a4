//! What an origin saw: counters, requests, connections, uploads.

use crate::request::Received;
use bytes::Bytes;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// Totals since the origin started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counters {
    /// Connections accepted, refused ones not included.
    pub connections_accepted: u64,
    /// Connections reset at once because of a limit or a script.
    pub connections_refused: u64,
    /// Connections open now.
    pub connections_open: u64,
    /// The most connections that were open at once.
    pub connections_open_max: u64,
    /// TLS handshakes with certificates.
    pub handshakes_full: u64,
    /// TLS handshakes that resumed a session.
    pub handshakes_resumed: u64,
    /// TLS handshakes that failed.
    pub handshakes_failed: u64,
    /// Requests whose head was read.
    pub requests: u64,
    /// Requests (HTTP/2: streams) being served now.
    pub requests_open: u64,
    /// The most requests that were being served at once.
    pub requests_open_max: u64,
    /// The most HTTP/2 streams that were open at once on one connection.
    pub streams_open_max: u64,
    /// Body bytes handed to the sender.
    pub body_bytes_sent: u64,
}

/// One request.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RequestRecord {
    /// Method, path, query, header fields, protocol and connection.
    pub head: Received,
    /// The status answered; `None` when there was no answer (yet).
    pub status: Option<u16>,
    /// Length of the request's body.
    pub body_len: u64,
    /// SHA-256 of the request's body in hexadecimal; `None` without a body.
    pub body_sha256: Option<String>,
}

/// One accepted connection.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ConnectionRecord {
    /// Counted from 1 in the order of acceptance.
    pub id: u64,
    /// The protocol chosen by ALPN (`h2`, `http/1.1`), if any was.
    pub alpn: Option<String>,
    /// The host name in the TLS handshake, if any.
    pub server_name: Option<String>,
    /// Whether TLS resumed a session; `None` without TLS.
    pub resumed: Option<bool>,
    /// Whether the client showed a certificate (also true after a resumption of such a session).
    pub client_certificate: bool,
    /// Requests it carried.
    pub requests: u64,
    /// HTTP/2 streams open now.
    pub streams_open: u64,
    /// Whether it is still open.
    pub open: bool,
}

/// A body received by PUT or POST.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Upload {
    /// The path it was sent to.
    pub path: String,
    /// `PUT`, `POST`, ...
    pub method: String,
    /// The body, or its first part when it is larger than the kit keeps (64 MiB).
    pub body: Bytes,
    /// Length of the whole body.
    pub len: u64,
    /// SHA-256 of the whole body in hexadecimal.
    pub sha256: String,
}

#[derive(Debug, Default)]
struct Pages {
    counters: Counters,
    requests: Vec<RequestRecord>,
    connections: BTreeMap<u64, ConnectionRecord>,
    uploads: Vec<Upload>,
}

/// The log, shared by the origin's tasks and the test. Each change wakes those who wait for it.
#[derive(Clone, Debug)]
pub(crate) struct Log {
    pages: Arc<Mutex<Pages>>,
    version: Arc<watch::Sender<u64>>,
}

impl Default for Log {
    fn default() -> Self {
        Self { pages: Arc::default(), version: Arc::new(watch::Sender::new(0)) }
    }
}

impl Log {
    fn pages(&self) -> MutexGuard<'_, Pages> {
        self.pages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change<T>(&self, edit: impl FnOnce(&mut Pages) -> T) -> T {
        let result = edit(&mut self.pages());
        self.version.send_modify(|version| *version += 1);
        result
    }

    pub(crate) fn watch(&self) -> watch::Receiver<u64> {
        self.version.subscribe()
    }

    pub(crate) fn counters(&self) -> Counters {
        self.pages().counters.clone()
    }

    pub(crate) fn requests(&self) -> Vec<RequestRecord> {
        self.pages().requests.clone()
    }

    pub(crate) fn connections(&self) -> Vec<ConnectionRecord> {
        self.pages().connections.values().cloned().collect()
    }

    pub(crate) fn uploads(&self) -> Vec<Upload> {
        self.pages().uploads.clone()
    }

    pub(crate) fn connections_open(&self) -> u64 {
        self.pages().counters.connections_open
    }

    pub(crate) fn refused(&self) {
        self.change(|pages| pages.counters.connections_refused += 1);
    }

    pub(crate) fn accepted(&self) -> ConnectionEntry {
        let id = self.change(|pages| {
            let counters = &mut pages.counters;
            counters.connections_accepted += 1;
            counters.connections_open += 1;
            counters.connections_open_max =
                counters.connections_open_max.max(counters.connections_open);
            let id = counters.connections_accepted;
            let record = ConnectionRecord { id, open: true, ..ConnectionRecord::default() };
            pages.connections.insert(id, record);
            id
        });
        ConnectionEntry { log: self.clone(), id }
    }

    pub(crate) fn uploaded(&self, upload: Upload) {
        self.change(|pages| pages.uploads.push(upload));
    }
}

/// A connection's place in the log; marks it closed when dropped.
#[derive(Debug)]
pub(crate) struct ConnectionEntry {
    log: Log,
    pub(crate) id: u64,
}

impl ConnectionEntry {
    pub(crate) fn handshake_failed(&self) {
        self.log.change(|pages| pages.counters.handshakes_failed += 1);
    }

    pub(crate) fn handshake_done(&self, tls: &rustls::ServerConnection) {
        let resumed = tls.handshake_kind() == Some(rustls::HandshakeKind::Resumed);
        self.log.change(|pages| {
            if resumed {
                pages.counters.handshakes_resumed += 1;
            } else {
                pages.counters.handshakes_full += 1;
            }
            if let Some(record) = pages.connections.get_mut(&self.id) {
                record.resumed = Some(resumed);
                record.alpn =
                    tls.alpn_protocol().map(|name| String::from_utf8_lossy(name).into_owned());
                record.server_name = tls.server_name().map(ToOwned::to_owned);
                record.client_certificate = tls.peer_certificates().is_some();
            }
        });
    }

    pub(crate) fn request(&self, head: Received) -> RequestEntry {
        let index = self.log.change(|pages| {
            let counters = &mut pages.counters;
            counters.requests += 1;
            counters.requests_open += 1;
            counters.requests_open_max = counters.requests_open_max.max(counters.requests_open);
            if let Some(record) = pages.connections.get_mut(&self.id) {
                record.requests += 1;
                record.streams_open += 1;
                counters.streams_open_max = counters.streams_open_max.max(record.streams_open);
            }
            pages.requests.push(RequestRecord {
                head,
                status: None,
                body_len: 0,
                body_sha256: None,
            });
            pages.requests.len() - 1
        });
        RequestEntry { log: self.log.clone(), connection: self.id, index }
    }
}

impl Drop for ConnectionEntry {
    fn drop(&mut self) {
        self.log.change(|pages| {
            pages.counters.connections_open -= 1;
            if let Some(record) = pages.connections.get_mut(&self.id) {
                record.open = false;
            }
        });
    }
}

/// A request's place in the log; no longer counted as open when dropped.
#[derive(Debug)]
pub(crate) struct RequestEntry {
    log: Log,
    connection: u64,
    index: usize,
}

impl RequestEntry {
    pub(crate) fn answered(&self, status: u16) {
        self.log.change(|pages| pages.requests[self.index].status = Some(status));
    }

    pub(crate) fn body_received(&self, len: u64, sha256: String) {
        self.log.change(|pages| {
            pages.requests[self.index].body_len = len;
            pages.requests[self.index].body_sha256 = Some(sha256);
        });
    }

    pub(crate) fn sent(&self, bytes: usize) {
        self.log.change(|pages| pages.counters.body_bytes_sent += bytes as u64);
    }
}

impl Drop for RequestEntry {
    fn drop(&mut self) {
        self.log.change(|pages| {
            pages.counters.requests_open -= 1;
            if let Some(record) = pages.connections.get_mut(&self.connection) {
                record.streams_open -= 1;
            }
        });
    }
}
