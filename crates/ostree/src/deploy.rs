//! Deploy: from one server to another, streamed; nothing is kept here but what is under way.
//!
//! Both servers must have packs: the source walks the commit and streams what the target's ref does
//! not need yet, and what arrives is verified, packed anew and sent on.

use std::io::Write as _;

use bytes::Bytes;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use tempfile::NamedTempFile;
use trunkline_proto::ostree::{
    Checksum, ObjectId, ObjectKind, ObjectVerifier, RefName, VerifyLimits,
};
use trunkline_proto::pack::{PackDecoder, PackError, PackEvent, PackLimits, Want};
use trunkline_transfer::{ErrorKind, Payload};

use crate::push::{OpenPack, PACKED_OBJECT_BYTES_MAX, PACKS_IN_FLIGHT};
use crate::remote::{Remote, RemoteError};

/// Bytes of a pack that is sent on.
const PACK_BYTES: usize = 8 << 20;

/// What to bring from one server to another.
#[derive(Debug, Clone)]
pub struct Deploy {
    /// The commit.
    pub commit: Checksum,
    /// The target's ref to point at it; `None` leaves refs alone.
    pub name: Option<RefName>,
    /// Move the ref even when the commit does not follow the present one.
    pub force: bool,
}

/// What was brought.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
pub struct Deployed {
    /// Objects sent.
    pub objects: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Whether the ref was moved.
    pub ref_set: bool,
}

/// A commit could not be brought.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DeployError {
    /// The source's stream was cut.
    #[error("the source's stream was cut: {0}; what came is on the target, run it again")]
    Cut(#[source] Box<ErrorKind>),
    /// The source has something that is corrupt.
    #[error("{id} from the source: {reason}")]
    Corrupt {
        /// The object.
        id: ObjectId,
        /// What is wrong.
        reason: String,
    },
    /// One of the two has no packs.
    #[error("the {0} server has no packs; pull from one and push to the other instead")]
    NoPacks(&'static str),
    /// The source breaks the protocol.
    #[error("the source's stream breaks the pack protocol: {0}")]
    Pack(#[from] PackError),
    /// The target refuses an object.
    #[error("the target refuses {id}: {detail}")]
    Refused {
        /// The object.
        id: ObjectId,
        /// Why.
        detail: String,
    },
    /// Either server.
    #[error(transparent)]
    Remote(#[from] RemoteError),
    /// The source lacks something the commit needs.
    #[error("the source lacks {0}")]
    SourceLacks(ObjectId),
    /// A long object could not be held on the disk meanwhile.
    #[error("cannot hold a long object in a temporary file: {0}")]
    Temporary(#[from] std::io::Error),
}

/// Deploys.
///
/// # Errors
/// [`DeployError`]; the target's ref moves only when all went well.
pub async fn deploy(
    source: &Remote,
    target: &Remote,
    deploy: &Deploy,
) -> Result<Deployed, DeployError> {
    source.capabilities(None).await?.ok_or(DeployError::NoPacks("source"))?;
    let there = target.capabilities(deploy.name.as_ref()).await?;
    let there = there.ok_or(DeployError::NoPacks("target"))?;
    if there.commit == Some(deploy.commit) {
        return Ok(Deployed::default());
    }
    let want = Want {
        wants: vec![deploy.commit],
        haves: there.commit.into_iter().collect(),
        parents_max: 0,
        commitmeta: true,
    };
    let mut answer = source.open_closure(&want).await?;
    let mut decoder = PackDecoder::new(PackLimits::default());
    let mut relay = Relay { target, deployed: Deployed::default() };
    let mut flights = FuturesUnordered::new();
    let (mut open, mut last) = (OpenPack::new(), OpenPack::new());
    let mut current: Option<Arriving> = None;
    while let Some(piece) =
        answer.chunk().await.map_err(|error| DeployError::Cut(Box::new(error)))?
    {
        decoder.push(piece)?;
        while let Some(event) = decoder.next()? {
            match event {
                PackEvent::Object { id, bytes } => current = Some(Arriving::new(id, bytes)?),
                PackEvent::Data(data) => {
                    if let Some(arriving) = &mut current {
                        arriving.take(&data)?;
                    }
                }
                PackEvent::ObjectEnd => {
                    let Some(arriving) = current.take() else { continue };
                    let (id, held) = arriving.finish()?;
                    match held {
                        Held::File(file) => relay.single(&id, &file).await?,
                        Held::Memory(data) if is_last(&id) => last.add(&id, &data),
                        Held::Memory(data) => open.add(&id, &data),
                    }
                }
                PackEvent::Missing(id) => return Err(DeployError::SourceLacks(id)),
                PackEvent::End => {}
            }
            if open.len() >= PACK_BYTES {
                let full = std::mem::replace(&mut open, OpenPack::new());
                flights.push(send(target, full.close()));
                if flights.len() >= PACKS_IN_FLIGHT {
                    // While the target is behind, nothing more is read from the source.
                    relay.count(flights.next().await)?;
                }
            }
        }
    }
    decoder.finish()?;
    flights.push(send(target, open.close()));
    while let Some(sent) = flights.next().await {
        relay.count(Some(sent))?;
    }
    relay.count(Some(send(target, last.close()).await))?;
    let mut deployed = relay.deployed;
    if let Some(name) = &deploy.name {
        target.set_ref(name, &deploy.commit, deploy.force).await?;
        deployed.ref_set = true;
    }
    Ok(deployed)
}

/// Commits go after all they need, with what belongs to them.
fn is_last(id: &ObjectId) -> bool {
    matches!(id.kind, ObjectKind::Commit | ObjectKind::CommitMeta)
}

type Sent = Result<(u64, u64), DeployError>;

/// Sends a pack and reads its receipts; returns objects and bytes.
async fn send(target: &Remote, (pack, ids): (Bytes, Vec<(ObjectId, u64)>)) -> Sent {
    if ids.is_empty() {
        return Ok((0, 0));
    }
    for receipt in target.send_pack(pack, false).await? {
        if !receipt.status.is_success() {
            let (id, detail) = (receipt.id, receipt.detail);
            return Err(DeployError::Refused { id, detail });
        }
    }
    Ok((ids.len() as u64, ids.iter().map(|(_, bytes)| bytes).sum()))
}

struct Relay<'a> {
    target: &'a Remote,
    deployed: Deployed,
}

impl Relay<'_> {
    fn count(&mut self, sent: Option<Sent>) -> Result<(), DeployError> {
        let (objects, bytes) = sent.unwrap_or(Ok((0, 0)))?;
        self.deployed.objects += objects;
        self.deployed.bytes += bytes;
        Ok(())
    }

    async fn single(&mut self, id: &ObjectId, file: &NamedTempFile) -> Result<(), DeployError> {
        let bytes = file.as_file().metadata()?.len();
        let payload = Payload::File(file.path().to_owned());
        self.target.post_object(id, payload, false).await?;
        self.count(Some(Ok((1, bytes))))
    }
}

enum Held {
    Memory(Vec<u8>),
    /// Too long for a pack.
    File(NamedTempFile),
}

struct Arriving {
    id: ObjectId,
    verifier: ObjectVerifier,
    held: Held,
}

impl Arriving {
    fn new(id: ObjectId, bytes: u64) -> Result<Self, DeployError> {
        let held = if bytes > PACKED_OBJECT_BYTES_MAX {
            Held::File(NamedTempFile::new()?)
        } else {
            Held::Memory(Vec::new())
        };
        Ok(Self { id, verifier: ObjectVerifier::new(id, VerifyLimits::default()), held })
    }

    fn take(&mut self, data: &[u8]) -> Result<(), DeployError> {
        let corrupt = |reason: String| DeployError::Corrupt { id: self.id, reason };
        self.verifier.push(data).map_err(|error| corrupt(error.to_string()))?;
        match &mut self.held {
            Held::Memory(held) => held.extend_from_slice(data),
            Held::File(file) => file.write_all(data)?,
        }
        Ok(())
    }

    fn finish(self) -> Result<(ObjectId, Held), DeployError> {
        let id = self.id;
        self.verifier
            .finish()
            .map_err(|error| DeployError::Corrupt { id, reason: error.to_string() })?;
        Ok((id, self.held))
    }
}
