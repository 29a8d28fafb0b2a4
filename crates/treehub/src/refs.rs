//! Refs: where they point, and when they may move.

use bytes::Bytes;
use http::StatusCode;
use http_body::Body;
use trunkline_proto::ostree::{Checksum, Commit, ObjectId, ObjectKind, RefName};

use crate::body::collect;
use crate::metrics::add;
use crate::reply::{self, BoxError, Failure, Reply};
use crate::routes::Namespace;
use crate::service::{Ask, Treehub};
use crate::store::read_all;
use crate::walk::{Found, Walk};

const FORCE_HEADER: &str = "x-ats-ostree-force";
/// A commit's name and a line end, with room to spare.
const BODY_BYTES_MAX: usize = 256;
/// How many objects a refusal lists.
const LISTED_MAX: usize = 100;
/// How far back a ref's old commit is looked for before the new one.
const ANCESTORS_MAX: usize = 10_000;
/// How often a ref that moves at the same time is read again.
const SWAP_ATTEMPTS_MAX: usize = 5;

pub(crate) async fn get<B>(ask: Ask<B>, name: RefName) -> Result<Reply, Failure> {
    let Ask { hub, namespace, .. } = ask;
    let read = move || hub.inner.store.read_ref(&namespace, &name);
    match tokio::task::spawn_blocking(read).await?? {
        Some(commit) => Ok(reply::text(commit.to_hex())),
        None => Err(Failure::not_found("ref_missing")),
    }
}

pub(crate) async fn post<B>(ask: Ask<B>, name: RefName) -> Result<Reply, Failure>
where
    B: Body<Data = Bytes> + Send + Unpin,
    B::Error: Into<BoxError>,
{
    let force = ask
        .request
        .headers()
        .get(FORCE_HEADER)
        .is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"true"));
    let Ask { hub, namespace, request } = ask;
    let body = collect(request.into_body(), BODY_BYTES_MAX)
        .await
        .map_err(|_| Failure::body_cut())?
        .and_then(|body| Checksum::from_hex(body.trim_ascii()).ok())
        .ok_or_else(|| Failure::bad_request("the body of a ref is 64 hexadecimal digits"))?;
    let work = move || set(&hub, &namespace, &name, body, force);
    tokio::task::spawn_blocking(work).await??;
    Ok(reply::text(body.to_hex()))
}

fn set(
    hub: &Treehub,
    namespace: &Namespace,
    name: &RefName,
    commit: Checksum,
    force: bool,
) -> Result<(), Failure> {
    let store = &hub.inner.store;
    if store.stat(namespace, &ObjectId::new(commit, ObjectKind::Commit))?.is_none() {
        return Err(precondition("commit_missing", format!("commit {commit} is not there")));
    }
    check_complete(hub, namespace, commit)?;
    for _ in 0..SWAP_ATTEMPTS_MAX {
        let current = store.read_ref(namespace, name)?;
        if current == Some(commit) {
            return Ok(());
        }
        if let Some(current) = current.filter(|_| !force)
            && !follows(hub, namespace, commit, current)?
        {
            let text = format!(
                "Cannot force push: {commit} does not follow {current}, where `{name}` points"
            );
            return Err(precondition("not_a_descendant", text));
        }
        if store.swap_ref(namespace, name, current, commit)? {
            add(&hub.inner.metrics.refs_moved, 1);
            return Ok(());
        }
        // Somebody else moved it between reading and writing: judge again by where it is now.
    }
    Err(precondition("ref_busy", format!("`{name}` is being moved by others; try again")))
}

fn precondition(code: &'static str, description: String) -> Failure {
    Failure::new(StatusCode::PRECONDITION_FAILED, code, description)
}

/// Refuses a commit of whose closure anything is not there.
fn check_complete(hub: &Treehub, namespace: &Namespace, commit: Checksum) -> Result<(), Failure> {
    let mut missing = 0_usize;
    let mut listed = Vec::new();
    Walk::new(hub, namespace).commit(commit, 0, &mut |found| {
        let lacking = match found {
            Found::Missing(id) => id.to_string(),
            Found::Broken(id, reason) => format!("{id} ({reason})"),
            // Those are read by the walk itself.
            Found::Object(id) if matches!(id.kind, ObjectKind::Commit | ObjectKind::DirTree) => {
                return Ok(());
            }
            Found::Object(id) => {
                if hub.inner.store.stat(namespace, &id)?.is_some() {
                    return Ok(());
                }
                id.to_string()
            }
        };
        missing += 1;
        if listed.len() < LISTED_MAX {
            listed.push(lacking);
        }
        Ok(())
    })?;
    if missing == 0 {
        return Ok(());
    }
    let more = if missing > listed.len() { ", .." } else { "" };
    let text = format!("{missing} objects of {commit} are missing: {}{more}", listed.join(", "));
    Err(precondition("closure_incomplete", text))
}

/// Whether `old` is an ancestor of `new`.
fn follows(
    hub: &Treehub,
    namespace: &Namespace,
    new: Checksum,
    old: Checksum,
) -> Result<bool, Failure> {
    let mut commit = new;
    for _ in 0..ANCESTORS_MAX {
        let id = ObjectId::new(commit, ObjectKind::Commit);
        let Some((stat, reader)) = hub.inner.store.open(namespace, &id, 0)? else {
            return Ok(false);
        };
        let data = read_all(reader, &stat)?;
        match Commit::parse(&data).ok().and_then(|commit| commit.parent) {
            Some(parent) if parent == old => return Ok(true),
            Some(parent) => commit = parent,
            None => return Ok(false),
        }
    }
    Ok(false)
}
