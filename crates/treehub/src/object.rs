//! Single objects: HEAD, GET with ranges, POST.

use bytes::Bytes;
use http::header::{
    ACCEPT_RANGES, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, ETAG, HeaderValue, IF_NONE_MATCH,
    IF_RANGE, RANGE,
};
use http::{Method, StatusCode};
use http_body::Body;
use trunkline_proto::ostree::{ObjectId, ObjectKind, ObjectVerifier};

use crate::body::{Pieces, ReplyBody, feed};
use crate::metrics::add;
use crate::multipart::{self, Multipart};
use crate::pack::verify_stored;
use crate::range::{self, Asked};
use crate::reply::{self, BoxError, Failure, Reply};
use crate::routes::Namespace;
use crate::service::{Ask, Treehub};
use crate::store::{Staged, Stat, read_all};

/// Objects up to this many bytes are read before the answer starts.
const SMALL_BYTES_MAX: u64 = 256 * 1024;

pub(crate) async fn get<B>(ask: Ask<B>, id: ObjectId) -> Result<Reply, Failure> {
    let head_only = ask.request.method() == Method::HEAD;
    let asked_tag = ask.header(&IF_NONE_MATCH).map(str::to_owned);
    let range = ask.header(&RANGE).map(str::to_owned);
    let if_range = ask.header(&IF_RANGE).map(str::to_owned);
    let Ask { hub, namespace, .. } = ask;
    let work = move || -> Result<Reply, Failure> {
        let Some(stat) = hub.inner.store.stat(&namespace, &id)? else {
            return Err(Failure::not_found("object_missing"));
        };
        let tag = format!("\"{}\"", stat.tag);
        if asked_tag.is_some_and(|asked| asked == "*" || asked.contains(&tag)) {
            return Ok(with_tag(reply::empty(StatusCode::NOT_MODIFIED), &tag));
        }
        let range = range.filter(|_| if_range.is_none_or(|value| value == tag));
        match range::parse(range.as_deref(), stat.bytes) {
            Asked::Unsatisfiable => {
                let mut answer = reply::empty(StatusCode::RANGE_NOT_SATISFIABLE);
                set(&mut answer, CONTENT_RANGE, &format!("bytes */{}", stat.bytes));
                Ok(with_tag(answer, &tag))
            }
            Asked::Whole => send(&hub, &namespace, id, (0, stat.bytes), head_only)
                .map(|answer| with_tag(answer, &tag)),
            Asked::Part { start, end } => {
                let mut answer = send(&hub, &namespace, id, (start, end), head_only)?;
                *answer.status_mut() = StatusCode::PARTIAL_CONTENT;
                let value = format!("bytes {start}-{}/{}", end - 1, stat.bytes);
                set(&mut answer, CONTENT_RANGE, &value);
                Ok(with_tag(answer, &tag))
            }
        }
    };
    tokio::task::spawn_blocking(work).await?
}

fn send(
    hub: &Treehub,
    namespace: &Namespace,
    id: ObjectId,
    (start, end): (u64, u64),
    head_only: bool,
) -> Result<Reply, Failure> {
    let bytes = end - start;
    let body = if head_only {
        ReplyBody::empty()
    } else {
        let opened = hub.inner.store.open(namespace, &id, start)?;
        let (_, mut reader) = opened.ok_or_else(|| Failure::not_found("blob_missing"))?;
        if bytes <= SMALL_BYTES_MAX {
            let limited = Box::new(std::io::Read::take(reader, bytes));
            ReplyBody::full(read_all(limited, &Stat { bytes, tag: String::new() })?)
        } else {
            ReplyBody::stream(Some(bytes), move |outlet| outlet.copy(&mut *reader, bytes))
        }
    };
    let mut answer = reply::typed("application/octet-stream", body);
    set(&mut answer, CONTENT_LENGTH, &bytes.to_string());
    answer.headers_mut().insert(ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    Ok(answer)
}

fn with_tag(mut answer: Reply, tag: &str) -> Reply {
    set(&mut answer, ETAG, tag);
    answer
}

fn set(answer: &mut Reply, name: http::HeaderName, value: &str) {
    let value = HeaderValue::from_str(value).expect("invariant: digits and tags are plain ASCII");
    answer.headers_mut().insert(name, value);
}

pub(crate) async fn post<B>(ask: Ask<B>, id: ObjectId) -> Result<Reply, Failure>
where
    B: Body<Data = Bytes> + Send + Unpin,
    B::Error: Into<BoxError>,
{
    let length = ask.header(&CONTENT_LENGTH).and_then(|text| text.parse::<u64>().ok());
    let boundary = match ask.header(&CONTENT_TYPE).and_then(multipart::boundary) {
        Some(boundary) => Some(boundary.map_err(Failure::bad_request)?),
        None if length.unwrap_or(0) == 0 => {
            return Err(Failure::bad_request("an object needs a Content-Length above 0"));
        }
        None => None,
    };
    // Treehub answers an upload in a form with 200, a plain one with 204.
    let stored = if boundary.is_some() { StatusCode::OK } else { StatusCode::NO_CONTENT };
    let repair = ask.query("repair").is_some_and(|value| value == "true");
    let Ask { hub, namespace, request } = ask;
    let work = move |pieces: &mut Pieces| {
        refuse_present(&hub, &namespace, id, repair)?;
        receive(&hub, &namespace, id, pieces, boundary, length)
    };
    feed(request.into_body(), work).await??;
    Ok(reply::empty(stored))
}

/// An object that is there is not taken again, unless it is corrupt and that is asked for.
fn refuse_present(
    hub: &Treehub,
    namespace: &Namespace,
    id: ObjectId,
    repair: bool,
) -> Result<(), Failure> {
    // A commitmeta is not bound to a hash: the newer one, with more signatures, must get through.
    if id.kind == ObjectKind::CommitMeta {
        return Ok(());
    }
    let present = if repair {
        verify_stored(hub, namespace, &id)?.is_ok_and(|found| found)
    } else {
        hub.inner.store.stat(namespace, &id)?.is_some()
    };
    if present {
        let description = format!("{id} is there already");
        return Err(Failure::new(StatusCode::CONFLICT, "object_exists", description));
    }
    Ok(())
}

fn receive(
    hub: &Treehub,
    namespace: &Namespace,
    id: ObjectId,
    pieces: &mut Pieces,
    boundary: Option<String>,
    length: Option<u64>,
) -> Result<(), Failure> {
    let store = &hub.inner.store;
    let mut incoming = Incoming::new(hub, namespace, id)?;
    let mut form = boundary.map(|boundary| Multipart::new(&boundary));
    let mut received = 0;
    while let Some(piece) = pieces.next() {
        let piece = piece.map_err(|_| Failure::body_cut())?;
        received += piece.len() as u64;
        match &mut form {
            None => incoming.push(&piece)?,
            Some(form) => {
                form.push(&piece, &mut |data| incoming.push(data))??;
            }
        }
    }
    if form.is_some_and(|form| !form.is_complete()) || length.is_some_and(|all| all != received) {
        return Err(Failure::body_cut());
    }
    let staged = incoming.finish()?;
    store.settle(namespace)?;
    staged.publish()?;
    add(&hub.inner.metrics.objects_stored, 1);
    Ok(())
}

/// One object on its way in: verified as it is written.
pub(crate) struct Incoming<'a> {
    hub: &'a Treehub,
    verifier: ObjectVerifier,
    staged: Box<dyn Staged>,
}

impl<'a> Incoming<'a> {
    pub(crate) fn new(
        hub: &'a Treehub,
        namespace: &Namespace,
        id: ObjectId,
    ) -> Result<Self, Failure> {
        let verifier = ObjectVerifier::new(id, hub.inner.settings.verify);
        let staged = hub.inner.store.stage(namespace, &id)?;
        Ok(Self { hub, verifier, staged })
    }

    pub(crate) fn push(&mut self, data: &[u8]) -> Result<(), Failure> {
        let verified = self.verifier.push(data);
        verified.map_err(|error| refuse(self.hub, &error.to_string()))?;
        Ok(self.staged.write(data)?)
    }

    pub(crate) fn finish(mut self) -> Result<Box<dyn Staged>, Failure> {
        let verified = self.verifier.finish();
        verified.map_err(|error| refuse(self.hub, &error.to_string()))?;
        self.staged.seal()?;
        Ok(self.staged)
    }
}

fn refuse(hub: &Treehub, description: &str) -> Failure {
    add(&hub.inner.metrics.objects_refused, 1);
    Failure::new(StatusCode::UNPROCESSABLE_ENTITY, "object_corrupt", description)
}
