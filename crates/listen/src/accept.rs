//! The accept loop: a task per connection, within limits, until the drain.

use crate::backoff::AcceptBackoff;
use crate::drain::{Drain, Drained};
use crate::error::Error;
use crate::limits::Limits;
use crate::listener::Listener;
use crate::stream::Stream;
use crate::tls::TlsIdentity;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::JoinSet;

/// Listeners with the rules for what they accept.
#[derive(Debug)]
pub struct Server {
    listeners: Vec<Listener>,
    tls: Option<TlsIdentity>,
    pub(crate) limits: Limits,
}

impl Server {
    /// A server on one socket, in clear text, with the default limits.
    pub fn new(listener: Listener) -> Self {
        Self { listeners: vec![listener], tls: None, limits: Limits::default() }
    }

    /// Listens on another socket as well.
    #[must_use]
    pub fn listener(mut self, listener: Listener) -> Self {
        self.listeners.push(listener);
        self
    }

    /// Puts each connection under TLS before its session begins.
    #[must_use]
    pub fn tls(mut self, identity: TlsIdentity) -> Self {
        self.tls = Some(identity);
        self
    }

    /// Sets the limits.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// The listeners, for their addresses.
    pub fn listeners(&self) -> &[Listener] {
        &self.listeners
    }

    /// Runs `session` for each connection, in a task of its own, until the drain is started and
    /// all sessions have ended or been cut off. A session learns of the drain from its own clone
    /// of it. A TLS handshake that fails ends its connection before there is a session.
    ///
    /// Dropping the future ends all sessions at once.
    pub async fn serve_streams<F, Fut>(self, drain: &Drain, session: F) -> Drained
    where
        F: Fn(Stream) -> Fut + Clone + Send + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        let places = Arc::new(Semaphore::new(self.limits.connections_max));
        let (accepted, mut to_serve) = mpsc::channel(1);
        let mut accepting = JoinSet::new();
        for listener in self.listeners {
            accepting.spawn(accept_all(listener, places.clone(), accepted.clone()));
        }
        drop(accepted);

        let mut sessions = JoinSet::new();
        let mut drained = Drained::default();
        loop {
            tokio::select! {
                biased;
                () = drain.started() => break,
                ended = sessions.join_next(), if !sessions.is_empty() => {
                    drained.finished += 1;
                    report_panic(ended);
                }
                next = to_serve.recv() => {
                    // The accepting tasks never end by themselves.
                    let Some((stream, place)) = next else { break };
                    let begin = begin(stream, self.tls.clone(), self.limits, session.clone());
                    sessions.spawn(async move {
                        begin.await;
                        drop(place);
                    });
                }
            }
        }
        // Closes the listening sockets, so that a successor can take them.
        accepting.shutdown().await;
        drop(to_serve);
        let in_time = tokio::time::timeout(drain.deadline(), async {
            while let Some(ended) = sessions.join_next().await {
                drained.finished += 1;
                report_panic(Some(ended));
            }
        });
        if in_time.await.is_err() {
            drained.cut_off = sessions.len() as u64;
            sessions.shutdown().await;
        }
        drained
    }
}

async fn begin<F, Fut>(stream: Stream, tls: Option<TlsIdentity>, limits: Limits, session: F)
where
    F: Fn(Stream) -> Fut,
    Fut: Future<Output = ()>,
{
    let Some(identity) = tls else { return session(stream).await };
    let peer = stream.peer();
    match stream.upgrade(&identity, limits.header_timeout).await {
        Ok(stream) => session(stream).await,
        Err(error @ (Error::Handshake(_) | Error::HandshakeTimeout(_))) => {
            tracing::debug!(%peer, %error, "connection ended");
        }
        Err(error) => tracing::warn!(%peer, %error, "connection ended"),
    }
}

/// Accepts one connection after the other, each only once the last has got its place: while all
/// are taken, one connection per listener waits here and the rest in the system's queue. A place
/// is taken after accepting, not before, or an idle listener would hold one that another needs.
async fn accept_all(
    listener: Listener,
    places: Arc<Semaphore>,
    accepted: mpsc::Sender<(Stream, OwnedSemaphorePermit)>,
) {
    let mut backoff = AcceptBackoff::default();
    loop {
        let (carrier, peer) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                if let Some(wait) = backoff.failed(&error) {
                    tracing::warn!(address = %listener.address(), %error, ?wait, "cannot accept");
                    tokio::time::sleep(wait).await;
                }
                continue;
            }
        };
        backoff.succeeded();
        let Ok(place) = places.clone().acquire_owned().await else { return };
        if accepted.send((Stream::new(carrier, peer), place)).await.is_err() {
            return;
        }
    }
}

fn report_panic(ended: Option<Result<(), tokio::task::JoinError>>) {
    if let Some(Err(error)) = ended
        && error.is_panic()
    {
        tracing::error!(%error, "a session panicked");
    }
}
