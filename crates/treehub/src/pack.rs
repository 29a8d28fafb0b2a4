//! The calls that move many objects at once; see docs/protocol-pack.md.

use bytes::Bytes;
use http::StatusCode;
use http_body::Body;
use serde_json::json;
use trunkline_proto::ostree::{ObjectId, ObjectKind, ObjectVerifier};
use trunkline_proto::pack::{
    COMMITS_MAX, IDS_MAX, MEDIA_TYPE, PackDecoder, PackEncoder, PackError, PackEvent, Receipt,
    Status, VERSION, Want, decode_ids, encode_ids, encode_receipts, ids_frame_bytes,
};

use crate::body::{Outlet, Pieces, ReplyBody, collect, feed};
use crate::metrics::add;
use crate::object::Incoming;
use crate::reply::{self, BoxError, Failure, Reply};
use crate::routes::Namespace;
use crate::service::{Ask, Treehub};
use crate::store::Staged;
use crate::walk::{Found, Stop, Walk};

/// Objects of a pack that wait to be published together.
const STAGED_MAX: usize = 4096;
/// How much of a sound object is read at once.
const BLOCK_BYTES: usize = 64 * 1024;
/// Pack size in bytes that clients are told to keep to: little is lost when one is cut.
const PACK_BYTES_ADVISED: u64 = 16 << 20;

impl From<PackError> for Failure {
    fn from(error: PackError) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "frame_broken", error.to_string())
    }
}

pub(crate) async fn capabilities<B>(ask: Ask<B>) -> Result<Reply, Failure> {
    let name = ask.query("ref").map(|name| name.parse()).transpose();
    let name = name.map_err(|_| Failure::bad_request("ref names no ref"))?;
    let Ask { hub, namespace, .. } = ask;
    let commit = match name {
        None => None,
        Some(name) => {
            let read = move || hub.inner.store.read_ref(&namespace, &name);
            tokio::task::spawn_blocking(read).await??
        }
    };
    let value = json!({
        "trunkline": VERSION,
        "ref": commit.map(|commit| commit.to_hex()),
        "pack_bytes_advised": PACK_BYTES_ADVISED,
        "ids_max": IDS_MAX,
    });
    Ok(reply::json(StatusCode::OK, &value))
}

async fn ids<B>(body: B) -> Result<Vec<ObjectId>, Failure>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Into<BoxError>,
{
    let body = collect(body, ids_frame_bytes(IDS_MAX)).await.map_err(|_| Failure::body_cut())?;
    let body = body.ok_or(PackError::TooMany { max: IDS_MAX as u64 })?;
    Ok(decode_ids(&body)?)
}

pub(crate) async fn want<B>(body: B) -> Result<Want, Failure>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Into<BoxError>,
{
    let bytes_max = 64 + 2 * COMMITS_MAX * 32;
    let body = collect(body, bytes_max).await.map_err(|_| Failure::body_cut())?;
    let body = body.ok_or(PackError::TooMany { max: COMMITS_MAX as u64 })?;
    Ok(Want::decode(&body)?)
}

pub(crate) async fn missing<B>(ask: Ask<B>) -> Result<Reply, Failure>
where
    B: Body<Data = Bytes> + Send + Unpin,
    B::Error: Into<BoxError>,
{
    let Ask { hub, namespace, request } = ask;
    let asked = ids(request.into_body()).await?;
    let work = move || -> Result<Vec<u8>, Failure> {
        let mut missing = Vec::new();
        for id in asked {
            if hub.inner.store.stat(&namespace, &id)?.is_none() {
                missing.push(id);
            }
        }
        Ok(encode_ids(&missing)?)
    };
    let frame = tokio::task::spawn_blocking(work).await??;
    Ok(reply::typed(MEDIA_TYPE, ReplyBody::full(frame)))
}

pub(crate) async fn store<B>(ask: Ask<B>) -> Result<Reply, Failure>
where
    B: Body<Data = Bytes> + Send + Unpin,
    B::Error: Into<BoxError>,
{
    let repair = ask.query("repair").is_some_and(|value| value == "true");
    let Ask { hub, namespace, request } = ask;
    let work = move |pieces: &mut Pieces| Unpacking::new(&hub, &namespace, repair).run(pieces);
    let receipts = feed(request.into_body(), work).await??;
    Ok(reply::typed(MEDIA_TYPE, ReplyBody::full(encode_receipts(&receipts))))
}

/// Takes a pack apart on its thread.
struct Unpacking<'a> {
    hub: &'a Treehub,
    namespace: &'a Namespace,
    /// Whether objects that are there are looked at, and replaced when they are corrupt.
    repair: bool,
    current: Option<Current<'a>>,
    staged: Vec<(ObjectId, Box<dyn Staged>)>,
    receipts: Vec<Receipt>,
}

enum Current<'a> {
    Coming(ObjectId, Box<Incoming<'a>>),
    /// Judged already; its bytes are passed over.
    Judged(ObjectId, Status, String),
}

impl<'a> Unpacking<'a> {
    fn new(hub: &'a Treehub, namespace: &'a Namespace, repair: bool) -> Self {
        let (staged, receipts) = (Vec::new(), Vec::new());
        Self { hub, namespace, repair, current: None, staged, receipts }
    }

    fn run(mut self, pieces: &mut Pieces) -> Result<Vec<Receipt>, Failure> {
        add(&self.hub.inner.metrics.packs, 1);
        let read = self.read(pieces);
        // What arrived whole before a cut is kept: the sender need not send it again.
        self.publish()?;
        read.map(|()| self.receipts)
    }

    fn read(&mut self, pieces: &mut Pieces) -> Result<(), Failure> {
        let mut decoder = PackDecoder::new(self.hub.inner.settings.pack);
        while let Some(piece) = pieces.next() {
            decoder.push(piece.map_err(|_| Failure::body_cut())?)?;
            while let Some(event) = decoder.next()? {
                match event {
                    PackEvent::Object { id, bytes: _ } => self.start(id)?,
                    PackEvent::Data(data) => self.data(&data),
                    PackEvent::ObjectEnd => self.end()?,
                    PackEvent::Missing(_) | PackEvent::End => {}
                }
            }
        }
        Ok(decoder.finish()?)
    }

    fn start(&mut self, id: ObjectId) -> Result<(), Failure> {
        let judged = |status, detail: &str| Current::Judged(id, status, detail.to_owned());
        let known = matches!(
            id.kind,
            ObjectKind::File
                | ObjectKind::DirTree
                | ObjectKind::DirMeta
                | ObjectKind::Commit
                | ObjectKind::CommitMeta
        );
        self.current = Some(if !known {
            judged(Status::Refused, "objects of this kind are not taken")
        } else if id.kind != ObjectKind::CommitMeta && self.is_present(&id)? {
            judged(Status::Present, "")
        } else {
            Current::Coming(id, Box::new(Incoming::new(self.hub, self.namespace, id)?))
        });
        Ok(())
    }

    fn is_present(&self, id: &ObjectId) -> Result<bool, Failure> {
        if self.repair {
            Ok(verify_stored(self.hub, self.namespace, id)?.is_ok_and(|found| found))
        } else {
            Ok(self.hub.inner.store.stat(self.namespace, id)?.is_some())
        }
    }

    fn data(&mut self, data: &[u8]) {
        if let Some(Current::Coming(id, incoming)) = &mut self.current
            && let Err(failure) = incoming.push(data)
        {
            let id = *id;
            self.current = Some(judge(id, failure));
        }
    }

    fn end(&mut self) -> Result<(), Failure> {
        match self.current.take() {
            Some(Current::Coming(id, incoming)) => match incoming.finish() {
                Ok(staged) => {
                    self.staged.push((id, staged));
                    if self.staged.len() >= STAGED_MAX {
                        self.publish()?;
                    }
                }
                Err(failure) => {
                    self.current = Some(judge(id, failure));
                    self.end()?;
                }
            },
            Some(Current::Judged(id, status, detail)) => {
                self.receipts.push(Receipt { id, status, detail });
            }
            None => {}
        }
        Ok(())
    }

    /// Makes what is staged visible: contents before the trees that name them, commits last, so
    /// that whoever sees a commit in between, or after a crash, finds what it needs.
    fn publish(&mut self) -> Result<(), Failure> {
        if self.staged.is_empty() {
            return Ok(());
        }
        self.hub.inner.store.settle(self.namespace)?;
        self.staged.sort_by_key(|(id, _)| match id.kind {
            ObjectKind::Commit => 2,
            ObjectKind::DirTree | ObjectKind::CommitMeta => 1,
            _ => 0,
        });
        for (id, staged) in self.staged.drain(..) {
            let (status, detail) = match staged.publish() {
                Ok(()) => (Status::Stored, String::new()),
                Err(error) => {
                    tracing::error!(%error, "the store failed");
                    (Status::Failed, "the store failed".to_owned())
                }
            };
            if status == Status::Stored {
                add(&self.hub.inner.metrics.objects_stored, 1);
            }
            self.receipts.push(Receipt { id, status, detail });
        }
        Ok(())
    }
}

fn judge(id: ObjectId, failure: Failure) -> Current<'static> {
    let status = match failure.status {
        StatusCode::UNPROCESSABLE_ENTITY => Status::Corrupt,
        _ => Status::Failed,
    };
    Current::Judged(id, status, failure.description)
}

/// Hashes a stored object: `Ok(false)` when it is not there, `Err` with the reason when corrupt.
pub(crate) fn verify_stored(
    hub: &Treehub,
    namespace: &Namespace,
    id: &ObjectId,
) -> Result<Result<bool, String>, crate::store::StoreError> {
    let Some((_, mut reader)) = hub.inner.store.open(namespace, id, 0)? else {
        return Ok(Ok(false));
    };
    let mut verifier = ObjectVerifier::new(*id, hub.inner.settings.verify);
    let mut block = vec![0; BLOCK_BYTES];
    loop {
        let count = reader.read(&mut block).map_err(crate::store::StoreError::Read)?;
        if count == 0 {
            break;
        }
        if let Err(error) = verifier.push(&block[..count]) {
            return Ok(Err(error.to_string()));
        }
    }
    Ok(verifier.finish().map(|_| true).map_err(|error| error.to_string()))
}

pub(crate) async fn fetch<B>(ask: Ask<B>) -> Result<Reply, Failure>
where
    B: Body<Data = Bytes> + Send + Unpin,
    B::Error: Into<BoxError>,
{
    let Ask { hub, namespace, request } = ask;
    let asked = ids(request.into_body()).await?;
    let body = ReplyBody::stream(None, move |outlet| {
        let mut packing = Packing::start(&hub, &namespace, outlet)?;
        for id in asked {
            packing.object(&id)?;
        }
        packing.finish()
    });
    Ok(reply::typed(MEDIA_TYPE, body))
}

pub(crate) async fn closure<B>(ask: Ask<B>) -> Result<Reply, Failure>
where
    B: Body<Data = Bytes> + Send + Unpin,
    B::Error: Into<BoxError>,
{
    let Ask { hub, namespace, request } = ask;
    let want = want(request.into_body()).await?;
    let (checking, checked) = (hub.clone(), want.wants.clone());
    let space = namespace.clone();
    let there = move || -> Result<(), Failure> {
        for commit in checked {
            let id = ObjectId::new(commit, ObjectKind::Commit);
            if checking.inner.store.stat(&space, &id)?.is_none() {
                return Err(Failure::not_found("commit_missing"));
            }
        }
        Ok(())
    };
    tokio::task::spawn_blocking(there).await??;
    let body = ReplyBody::stream(None, move |outlet| {
        let mut packing = Packing::start(&hub, &namespace, outlet)?;
        let mut walk = Walk::new(&hub, &namespace);
        for have in want.haves {
            walk.forget(have)?;
        }
        for commit in want.wants {
            walk.commit(commit, want.parents_max, &mut |found| {
                let Found::Object(id) = found else { return Ok(()) };
                packing.object(&id).map_err(Stop::Listener)?;
                if want.commitmeta && id.kind == ObjectKind::Commit {
                    let meta = ObjectId::new(id.checksum, ObjectKind::CommitMeta);
                    packing.object_if_there(&meta).map_err(Stop::Listener)?;
                }
                Ok(())
            })?;
        }
        packing.finish()
    });
    Ok(reply::typed(MEDIA_TYPE, body))
}

/// Writes a pack.
struct Packing<'a> {
    hub: &'a Treehub,
    namespace: &'a Namespace,
    outlet: &'a mut Outlet,
    encoder: PackEncoder,
}

impl<'a> Packing<'a> {
    fn start(
        hub: &'a Treehub,
        namespace: &'a Namespace,
        outlet: &'a mut Outlet,
    ) -> std::io::Result<Self> {
        let (encoder, head) = PackEncoder::new();
        outlet.write(&head)?;
        Ok(Self { hub, namespace, outlet, encoder })
    }

    fn object(&mut self, id: &ObjectId) -> std::io::Result<()> {
        if self.object_if_there(id)? {
            return Ok(());
        }
        self.outlet.write(&self.encoder.missing(id))
    }

    fn object_if_there(&mut self, id: &ObjectId) -> std::io::Result<bool> {
        let opened = self.hub.inner.store.open(self.namespace, id, 0);
        let Some((stat, mut reader)) = opened.map_err(std::io::Error::other)? else {
            return Ok(false);
        };
        self.outlet.write(&self.encoder.object(id, stat.bytes))?;
        self.outlet.copy(&mut *reader, stat.bytes)?;
        Ok(true)
    }

    fn finish(self) -> std::io::Result<()> {
        self.outlet.write(&self.encoder.end())
    }
}
