//! What may be sent beside a commit's objects: static deltas and a manifest.

use std::fs;
use std::path::{Path, PathBuf};

use trunkline_proto::ostree::Checksum;
use trunkline_proto::ostree::delta::{DeltaName, is_part_name};
use trunkline_transfer::Payload;

use crate::push::PushError;
use crate::remote::Remote;
use crate::repo::{Repo, RepoError};

/// Sends the static deltas of a local repository that lead to `commit`; returns how many. A
/// delta's superblock, by which clients find it, goes after its parts. Treehub itself does not take
/// deltas; servers with packs do.
///
/// # Errors
/// [`PushError`].
pub async fn push_deltas(
    repo: &Repo,
    remote: &Remote,
    commit: &Checksum,
) -> Result<u64, PushError> {
    let (local, to) = (repo.clone(), *commit);
    let deltas = tokio::task::spawn_blocking(move || deltas_to(&local, to)).await??;
    let sent = deltas.len() as u64;
    for (name, mut parts) in deltas {
        parts.sort_by_key(|(part, _)| part == "superblock");
        for (part, file) in parts {
            let path = format!("{}/{part}", name.path());
            remote.put(&path, "application/octet-stream", Payload::File(file)).await?;
        }
    }
    Ok(sent)
}

/// Sends a manifest of how a commit was made: JSON, as Treehub takes it.
///
/// # Errors
/// [`PushError`].
pub async fn push_manifest(
    remote: &Remote,
    commit: &Checksum,
    file: &Path,
) -> Result<(), PushError> {
    let path = format!("manifests/{commit}");
    remote.put(&path, "application/json", Payload::File(file.to_owned())).await?;
    Ok(())
}

type Delta = (DeltaName, Vec<(String, PathBuf)>);

fn deltas_to(repo: &Repo, commit: Checksum) -> Result<Vec<Delta>, RepoError> {
    let root = repo.path().join("deltas");
    let mut deltas = Vec::new();
    for (prefix, directory) in entries(&root)? {
        for (rest, directory) in entries(&directory)? {
            let name = DeltaName::from_path(&prefix, &rest);
            let Some(name) = name.filter(|name| name.to == commit) else { continue };
            let mut parts = entries(&directory)?;
            parts.retain(|(part, _)| is_part_name(part));
            deltas.push((name, parts));
        }
    }
    Ok(deltas)
}

/// Names and paths in a directory; none when it is not there.
fn entries(directory: &Path) -> Result<Vec<(String, PathBuf)>, RepoError> {
    let failed = |source| RepoError::File { action: "list", path: directory.to_owned(), source };
    let listing = match fs::read_dir(directory) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        listing => listing.map_err(failed)?,
    };
    let mut entries = Vec::new();
    for entry in listing {
        let entry = entry.map_err(failed)?;
        if let Ok(name) = entry.file_name().into_string() {
            entries.push((name, entry.path()));
        }
    }
    entries.sort();
    Ok(entries)
}
