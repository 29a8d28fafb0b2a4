//! Check: is everything a commit needs on the server, and sound?

use trunkline_proto::ostree::{Checksum, ObjectId, ObjectKind};
use trunkline_proto::pack::Want;

use crate::remote::{Fault, Remote, RemoteError, Verdict};
use crate::tree::{Tree, TreeError};

/// What to check, and how.
#[derive(Debug, Clone)]
pub struct Check {
    /// The commit.
    pub commit: Checksum,
    /// Look at everything it needs; otherwise only whether the commit object is there.
    pub walk: bool,
    /// Requests in flight at a time on a plain server.
    pub jobs: usize,
    /// Fetch and hash everything here even when the server can do it.
    pub plain: bool,
}

/// A check could not be done. What is wrong with the server's objects is no error but a
/// [`Verdict`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CheckError {
    /// The server.
    #[error(transparent)]
    Remote(#[from] RemoteError),
    /// Single objects.
    #[error(transparent)]
    Tree(#[from] TreeError),
}

/// Checks.
///
/// # Errors
/// [`CheckError`] when it could not be done.
pub async fn check(remote: &Remote, check: &Check) -> Result<Verdict, CheckError> {
    if !check.walk {
        let id = ObjectId::new(check.commit, ObjectKind::Commit);
        let mut verdict = Verdict { objects: 1, ..Verdict::default() };
        if !remote.has(&id).await? {
            add(&mut verdict, id, None);
        }
        return Ok(verdict);
    }
    if !check.plain && remote.capabilities(None).await?.is_some() {
        let want = Want { wants: vec![check.commit], ..Want::default() };
        return Ok(remote.check(&want).await?);
    }
    let tree = Tree { remote, target: None, jobs: check.jobs };
    let report = tree.walk(check.commit, 0).await?;
    let mut verdict = Verdict { objects: report.objects, ..Verdict::default() };
    for (id, reason) in report.faults {
        add(&mut verdict, id, reason);
    }
    Ok(verdict)
}

fn add(verdict: &mut Verdict, id: ObjectId, reason: Option<String>) {
    match reason {
        None => verdict.missing += 1,
        Some(_) => verdict.corrupt += 1,
    }
    let reason = reason.unwrap_or_else(|| "missing".to_owned());
    verdict.faults.push(Fault { object: id.to_string(), reason });
}

impl Verdict {
    /// Whether all is there and sound.
    pub fn is_sound(&self) -> bool {
        self.missing == 0 && self.corrupt == 0
    }
}
