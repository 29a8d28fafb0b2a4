//! One request that reads and hashes everything some commits need.

use bytes::Bytes;
use http::StatusCode;
use http_body::Body;
use serde::Serialize;

use crate::pack::{verify_stored, want};
use crate::reply::{self, BoxError, Failure, Reply};
use crate::service::Ask;
use crate::walk::{Found, Walk};

/// How many faults are listed; all are counted.
const LISTED_MAX: usize = 10_000;

/// What was found.
#[derive(Debug, Default, Serialize)]
struct Verdict {
    /// Objects reachable, the missing ones included.
    objects: u64,
    missing: u64,
    corrupt: u64,
    faults: Vec<Fault>,
}

#[derive(Debug, Serialize)]
struct Fault {
    object: String,
    /// `missing`, or what is wrong with it.
    reason: String,
}

impl Verdict {
    fn fault(&mut self, object: String, reason: Option<String>) {
        match reason {
            None => self.missing += 1,
            Some(_) => self.corrupt += 1,
        }
        if self.faults.len() < LISTED_MAX {
            let reason = reason.unwrap_or_else(|| "missing".to_owned());
            self.faults.push(Fault { object, reason });
        }
    }
}

pub(crate) async fn check<B>(ask: Ask<B>) -> Result<Reply, Failure>
where
    B: Body<Data = Bytes> + Send + Unpin,
    B::Error: Into<BoxError>,
{
    let Ask { hub, namespace, request } = ask;
    let want = want(request.into_body()).await?;
    let work = move || -> Result<Verdict, Failure> {
        let mut verdict = Verdict::default();
        let mut walk = Walk::new(&hub, &namespace);
        for commit in want.wants {
            walk.commit(commit, want.parents_max, &mut |found| {
                // A broken commit or dirtree is told of twice: as an object, whose hash says so,
                // and as what the walk cannot read.
                let Found::Object(id) = found else { return Ok(()) };
                verdict.objects += 1;
                match verify_stored(&hub, &namespace, &id)? {
                    Ok(true) => {}
                    Ok(false) => verdict.fault(id.to_string(), None),
                    Err(reason) => verdict.fault(id.to_string(), Some(reason)),
                }
                Ok(())
            })?;
        }
        Ok(verdict)
    };
    let verdict = tokio::task::spawn_blocking(work).await??;
    Ok(reply::json(StatusCode::OK, &verdict))
}
