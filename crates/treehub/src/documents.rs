//! Summary, static deltas, manifests.

use bytes::Bytes;
use http::StatusCode;
use http::header::{HeaderValue, LOCATION};
use http_body::Body;
use serde_json::Value;
use trunkline_proto::ostree::delta::DeltaName;
use trunkline_proto::ostree::{Checksum, Commit, ObjectId, ObjectKind, SummaryBuilder, SummaryRef};

use crate::body::{ReplyBody, collect};
use crate::reply::{self, BoxError, Failure, Reply};
use crate::routes::Namespace;
use crate::service::{Ask, Treehub};
use crate::store::{Document, StoreError, read_all};

/// Longest manifest in bytes.
const MANIFEST_BYTES_MAX: usize = 16 << 20;
/// Longest file of a delta in bytes; libostree cuts parts at 32 MiB, a fallback may be longer.
const DELTA_BYTES_MAX: usize = 256 << 20;

pub(crate) async fn get<B>(ask: Ask<B>, document: Document) -> Result<Reply, Failure> {
    let Ask { hub, namespace, .. } = ask;
    let media_type = match document {
        Document::Manifest(_) => "application/json",
        _ => "application/octet-stream",
    };
    let read = move || hub.inner.store.read_document(&namespace, &document);
    let data = tokio::task::spawn_blocking(read).await??;
    let data = data.ok_or_else(|| Failure::not_found("document_missing"))?;
    Ok(reply::typed(media_type, ReplyBody::full(data)))
}

pub(crate) async fn put<B>(ask: Ask<B>, document: Document) -> Result<Reply, Failure>
where
    B: Body<Data = Bytes> + Send + Unpin,
    B::Error: Into<BoxError>,
{
    let Ask { hub, namespace, request } = ask;
    let data = receive(request.into_body(), DELTA_BYTES_MAX).await?;
    let write = move || hub.inner.store.write_document(&namespace, &document, &data);
    tokio::task::spawn_blocking(write).await??;
    Ok(reply::empty(StatusCode::NO_CONTENT))
}

async fn receive<B>(body: B, bytes_max: usize) -> Result<Bytes, Failure>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Into<BoxError>,
{
    collect(body, bytes_max).await.map_err(|_| Failure::body_cut())?.ok_or_else(|| {
        let text = format!("at most {bytes_max} bytes are taken here");
        Failure::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", text)
    })
}

pub(crate) async fn put_manifest<B>(ask: Ask<B>, commit: Checksum) -> Result<Reply, Failure>
where
    B: Body<Data = Bytes> + Send + Unpin,
    B::Error: Into<BoxError>,
{
    let Ask { hub, namespace, request } = ask;
    let data = receive(request.into_body(), MANIFEST_BYTES_MAX).await?;
    check_manifest(&data).map_err(Failure::bad_request)?;
    let document = Document::Manifest(commit);
    let write = move || hub.inner.store.write_document(&namespace, &document, &data);
    tokio::task::spawn_blocking(write).await??;
    Ok(reply::empty(StatusCode::OK))
}

/// Treehub takes a repo manifest with a default revision and a project called meta-updater.
fn check_manifest(data: &[u8]) -> Result<(), &'static str> {
    let json: Value = serde_json::from_slice(data).map_err(|_| "the manifest is not JSON")?;
    let manifest = json.get("manifest").unwrap_or(&Value::Null);
    let revision = manifest.get("default").and_then(|default| default.get("@revision"));
    if revision.and_then(Value::as_str).is_none() {
        return Err("the manifest has no manifest.default.@revision");
    }
    let is_updater = |project: &Value| {
        let name = project.get("@name").and_then(Value::as_str);
        name.is_some_and(|name| name.contains("meta-updater"))
    };
    let found = match manifest.get("project") {
        Some(Value::Array(projects)) => projects.iter().any(is_updater),
        Some(project) => is_updater(project),
        None => false,
    };
    if found { Ok(()) } else { Err("the manifest has no project meta-updater") }
}

/// Finds the delta between two commits.
pub(crate) fn delta_lookup<B>(ask: &Ask<B>) -> Result<Reply, Failure> {
    let commit = |name| ask.query(name).map(|text| text.parse::<Checksum>()).transpose();
    let bad = |_| Failure::bad_request("from and to are commits of 64 hexadecimal digits");
    let from = commit("from").map_err(bad)?;
    let to = commit("to").map_err(bad)?;
    let to = to.ok_or_else(|| Failure::bad_request("to is missing"))?;
    let path = ask.request.uri().path().trim_end_matches('/');
    let base = path.strip_suffix("deltas").unwrap_or("/");
    let location = format!("{base}{}", DeltaName { from, to }.path());
    let mut answer = reply::empty(StatusCode::FOUND);
    let location = HeaderValue::from_str(&location)
        .map_err(|_| Failure::bad_request("the path cannot be a header"))?;
    answer.headers_mut().insert(LOCATION, location);
    Ok(answer)
}

/// The summary that was put there, or else one of the refs as they are now. Only a stored one can
/// have a signature.
pub(crate) async fn summary<B>(ask: Ask<B>, signature: bool) -> Result<Reply, Failure> {
    let Ask { hub, namespace, .. } = ask;
    let work = move || -> Result<Option<Vec<u8>>, StoreError> {
        let store = &hub.inner.store;
        if signature {
            return store.read_document(&namespace, &Document::SummarySignature);
        }
        match store.read_document(&namespace, &Document::Summary)? {
            Some(stored) => Ok(Some(stored)),
            None => make_summary(&hub, &namespace),
        }
    };
    let data = tokio::task::spawn_blocking(work).await??;
    let data = data.ok_or_else(|| Failure::not_found("summary_missing"))?;
    Ok(reply::typed("application/octet-stream", ReplyBody::full(data)))
}

fn make_summary(hub: &Treehub, namespace: &Namespace) -> Result<Option<Vec<u8>>, StoreError> {
    let refs = hub.inner.store.refs(namespace)?;
    if refs.is_empty() {
        return Ok(None);
    }
    let mut summary = SummaryBuilder::new();
    let mut newest = 0;
    for (name, commit) in refs {
        let id = ObjectId::new(commit, ObjectKind::Commit);
        let Some((stat, reader)) = hub.inner.store.open(namespace, &id, 0)? else { continue };
        let data = read_all(reader, &stat)?;
        let timestamp_s = Commit::parse(&data).ok().map(|commit| commit.timestamp_s);
        newest = newest.max(timestamp_s.unwrap_or(0));
        summary.add(name, SummaryRef { commit_bytes: stat.bytes, commit, timestamp_s });
    }
    // From the commits, not from a clock: the same refs make the same bytes on every server.
    summary.last_modified_s(newest);
    Ok(Some(summary.encode()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn manifests_as_treehub_takes_them() {
        let good = br#"{"manifest":{"default":{"@revision":"x"},"project":[{"@name":"a"},{"@name":"advancedtelematic/meta-updater"}]}}"#;
        assert_eq!(check_manifest(good), Ok(()));
        for bad in [&b"{"[..], b"{}", br#"{"manifest":{"default":{"@revision":"x"}}}"#] {
            assert!(check_manifest(bad).is_err());
        }
    }
}
