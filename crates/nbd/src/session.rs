//! One client: handshake, then many requests at once, answered in the order they finish.
//!
//! A session reads requests in one task, serves each in its own (or at once, when the export has
//! the bytes at hand), and sends finished replies from another. A request holds its share of
//! [`SessionLimits`] until its reply is sent, so a client that does not read its replies stops
//! being read from, and holds up nobody else.

use std::sync::Arc;

use bytes::BytesMut;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::mpsc;
use trunkline_listen::{Drain, Stream, TlsIdentity};
use trunkline_proto::nbd::{
    Agreement, Answer, BlockSizes, ExportFacts, Handshake, Policy, Step, TransmissionFlags,
};

use crate::error::SessionError;
use crate::export::{Catalogue, Entry, Export};
use crate::limits::SessionLimits;
use crate::stats::{ServeStats, add};

mod read_loop;
mod respond;
mod send;

/// What all sessions of a server share.
#[derive(Clone, Debug)]
pub struct Server {
    /// The exports.
    pub catalogue: Arc<Catalogue>,
    /// What clients may do before they choose one.
    pub policy: Policy,
    /// TLS, for policies that offer it.
    pub tls: Option<TlsIdentity>,
    /// What each client may hold.
    pub limits: SessionLimits,
    /// Counters.
    pub stats: Arc<ServeStats>,
}

impl Server {
    /// A server of `catalogue` without TLS and with default limits.
    pub fn new(catalogue: Catalogue) -> Self {
        Self {
            catalogue: Arc::new(catalogue),
            policy: Policy::default(),
            tls: None,
            limits: SessionLimits::default(),
            stats: Arc::default(),
        }
    }

    /// Serves one client until it leaves, breaks the protocol, or `drain` starts: then what it
    /// asked for so far is still answered.
    ///
    /// # Errors
    /// A [`SessionError`] when the session did not end by the client's wish or the drain.
    pub async fn serve(&self, stream: Stream, drain: &Drain) -> Result<(), SessionError> {
        let greeted = tokio::select! {
            greeted = tokio::time::timeout(self.limits.handshake_time_max, self.greet(stream)) => {
                greeted.map_err(|_| SessionError::HandshakeTimeout)??
            }
            () = drain.started() => None,
        };
        let Some((stream, input, agreement)) = greeted else { return Ok(()) };
        let Some(entry) = self.catalogue.find(&agreement.export) else { return Ok(()) };
        add(&self.stats.clients, 1);
        let export = Arc::clone(&entry.export);
        self.transmit(stream, input, Arc::new(agreement), export, drain).await
    }

    /// The handshake. `None` when the client left in peace.
    async fn greet(
        &self,
        mut stream: Stream,
    ) -> Result<Option<(Stream, BytesMut, Agreement)>, SessionError> {
        let mut handshake = Handshake::new(self.policy);
        let (mut input, mut out) = (BytesMut::new(), BytesMut::new());
        handshake.greeting(&mut out);
        let mut step = Step::NeedInput;
        loop {
            step = match step {
                Step::Lookup(name) => match self.catalogue.find(&name) {
                    Some(entry) => {
                        let facts = facts(entry);
                        handshake.answer(Answer::Found(&facts), &mut input, &mut out)?
                    }
                    None => {
                        let reason = format!("there is no export named {name:?} here");
                        handshake.answer(Answer::Unknown(&reason), &mut input, &mut out)?
                    }
                },
                Step::List => {
                    let entries = self.catalogue.entries();
                    let list = entries.iter().map(|e| (e.name.as_str(), e.description.as_str()));
                    handshake.answer_list(list, &mut input, &mut out)?
                }
                step => {
                    stream.write_all_buf(&mut out).await?;
                    stream.flush().await?;
                    match step {
                        Step::Enter(agreement) => return Ok(Some((stream, input, agreement))),
                        Step::Close => return Ok(None),
                        Step::StartTls => {
                            let tls = self.tls.as_ref().ok_or(SessionError::TlsNotConfigured)?;
                            stream = stream.upgrade(tls, self.limits.handshake_time_max).await?;
                            handshake.tls_started();
                        }
                        _ => {
                            input.reserve(read_loop::INPUT_BYTES);
                            if stream.read_buf(&mut input).await? == 0 {
                                // Clients that only probe leave without a word.
                                return Ok(None);
                            }
                        }
                    }
                    handshake.advance(&mut input, &mut out)?
                }
            };
        }
    }

    async fn transmit(
        &self,
        stream: Stream,
        input: BytesMut,
        agreement: Arc<Agreement>,
        export: Arc<dyn Export>,
        drain: &Drain,
    ) -> Result<(), SessionError> {
        let (receiver, sender) = stream.into_split();
        // Each reply in the queue belongs to a request that holds a permit, and a request sends
        // one part at a time: the queue needs no bound beyond that of the requests.
        let (replies, queue) = mpsc::channel(self.limits.requests_max as usize);
        let responder = respond::Responder {
            agreement: Arc::clone(&agreement),
            export,
            replies,
            sends_files: sender.is_clear(),
            stats: Arc::clone(&self.stats),
            payload: Arc::new(tokio::sync::Semaphore::new(self.limits.payload_bytes_max as usize)),
            limits: self.limits,
        };
        let sending = send::run(sender, queue, agreement.style);
        let reading = read_loop::run(receiver, input, Arc::new(responder), drain);
        tokio::pin!(sending);
        tokio::select! {
            // When the client cannot be written to, nothing of what it asked matters.
            sent = &mut sending => sent,
            read = reading => {
                // The last replies are in the queue, whose other end is now closed.
                let sent = sending.await;
                read.and(sent)
            }
        }
    }
}

/// What the handshake tells of an export.
fn facts(entry: &Entry) -> ExportFacts {
    use TransmissionFlags as T;
    // Every connection reads and writes one state, and a flush covers them all.
    let mut flags = T::HAS_FLAGS | T::CAN_MULTI_CONN | T::SEND_CACHE;
    if entry.export.writable().is_some() {
        flags |= T::SEND_FLUSH | T::SEND_FUA | T::SEND_TRIM;
        flags |= T::SEND_WRITE_ZEROES | T::SEND_FAST_ZERO;
    } else {
        flags |= T::READ_ONLY;
    }
    ExportFacts {
        name: entry.name.clone(),
        description: entry.description.clone(),
        size: entry.export.size(),
        flags,
        block_sizes: BlockSizes {
            preferred: entry.export.preferred_block_bytes(),
            ..BlockSizes::default()
        },
    }
}
