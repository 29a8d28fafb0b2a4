//! GET to a file: attempts, mirrors, resume, verification, and the final name at the end.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use http::StatusCode;
use http::header::CONTENT_LENGTH;
use trunkline_proto::digest::{Digest, Hasher};
use url::Url;

use crate::display::SafeUrl;
use crate::download::Download;
use crate::engine::Engine;
use crate::error::{Class, Error, ErrorKind};
use crate::event::{Event, JobId, Observer, Receipt};
use crate::exchange::Ask;
use crate::partial::{Target, file_error};
use crate::plan::{Existing, Job};
use crate::{blocking, local};

impl Engine {
    /// Brings one file: its destination is afterwards the complete, verified new file, or what
    /// it was before.
    ///
    /// Dropping the future stops the transfer; what came so far is kept for a later run when the
    /// server can resume it.
    ///
    /// # Errors
    /// [`Error`] with the kind of the last attempt's failure; it is also an event.
    pub async fn fetch(
        &self,
        id: JobId,
        job: &Job,
        observer: &Arc<dyn Observer>,
    ) -> Result<Receipt, Arc<Error>> {
        let started = Instant::now();
        let url = SafeUrl::new(&job.url);
        observer.event(id, Event::Started { url: &url, destination: &job.destination });
        match self.fetch_within_time(id, job, observer).await {
            Ok(mut receipt) => {
                receipt.elapsed = started.elapsed();
                observer.event(id, Event::Done { receipt: &receipt });
                Ok(receipt)
            }
            Err(error) => {
                let error = Arc::new(error);
                observer.event(id, Event::Failed { error: &error });
                Err(error)
            }
        }
    }

    async fn fetch_within_time(
        &self,
        id: JobId,
        job: &Job,
        observer: &Arc<dyn Observer>,
    ) -> Result<Receipt, Error> {
        let Some(after) = job.time_max else {
            return self.fetch_somewhere(id, job, observer).await;
        };
        // Boxed, as are the other rare ways below: a future is as large as its largest way, and
        // it is moved when its task is made.
        let work = Box::pin(self.fetch_somewhere(id, job, observer));
        match tokio::time::timeout(after, work).await {
            Ok(result) => result,
            Err(_) => Err(Error::new(&job.url, ErrorKind::TimedOut { after }, 1)),
        }
    }

    /// From the job's URL or else from its mirrors.
    async fn fetch_somewhere(
        &self,
        id: JobId,
        job: &Job,
        observer: &Arc<dyn Observer>,
    ) -> Result<Receipt, Error> {
        let fail = |kind| Error::new(&job.url, kind, 1);
        if job.existing == Existing::Keep
            && let Target::File(path) = Target::of(job).map_err(fail)?
        {
            let complete = Box::pin(self.is_complete(job, &path)).await.map_err(fail)?;
            if let Some(bytes) = complete {
                return Ok(unchanged(bytes));
            }
        }
        let mut failed = None;
        for url in std::iter::once(&job.url).chain(&job.mirrors) {
            match self.fetch_from(id, job, url, observer).await {
                Ok(receipt) => return Ok(receipt),
                Err(error) => {
                    let local = matches!(error.kind.class(), Class::File | Class::Cancelled);
                    failed = Some(error);
                    if local {
                        break;
                    }
                }
            }
        }
        Err(failed.expect("a job has at least one URL"))
    }

    async fn fetch_from(
        &self,
        id: JobId,
        job: &Job,
        url: &Url,
        observer: &Arc<dyn Observer>,
    ) -> Result<Receipt, Error> {
        if url.scheme() == "file" {
            return Box::pin(local::copy(self, id, job, url, observer))
                .await
                .map_err(|kind| Error::new(url, kind, 1));
        }
        let mut download = Download::new(self, id, job, url, observer);
        let mut retrier = self.retrier(true);
        loop {
            let kind = match download.attempt().await {
                Ok(bytes) => return Ok(download.receipt(bytes, retrier.attempts)),
                Err(kind) => kind,
            };
            if download.begins_anew(&kind) {
                continue;
            }
            let progressed = download.take_progress();
            let attempt = retrier.attempts;
            let planned = match retrier.next(url, kind, progressed) {
                Ok(planned) => planned,
                Err(error) => {
                    download.give_up(&error.kind);
                    return Err(error);
                }
            };
            if planned.counted {
                let (pause, reason) = (planned.wait, &planned.kind.to_string());
                observer.event(id, Event::Retrying { attempt, pause, reason });
            }
            tokio::time::sleep(planned.wait).await;
        }
    }

    /// The size of a destination that needs no transfer.
    async fn is_complete(&self, job: &Job, path: &PathBuf) -> Result<Option<u64>, ErrorKind> {
        let Ok(metadata) = std::fs::metadata(path) else { return Ok(None) };
        if let Some(check) = job.check {
            let digest = digest_of(path.clone(), check).await?;
            return Ok((digest == check).then_some(metadata.len()));
        }
        if job.url.scheme() == "file" {
            return Ok(None);
        }
        let mut ask = Ask::get(job.url.clone(), job.headers.clone());
        ask.method = http::Method::HEAD;
        // A server that refuses HEAD, or any failure, only means that the file is fetched.
        let Ok(answer) = self.exchange(&mut ask).await else { return Ok(None) };
        let header = |name| answer.header(name);
        let length = header(&CONTENT_LENGTH).and_then(|length| length.parse::<u64>().ok());
        let modified =
            header(&http::header::LAST_MODIFIED).and_then(trunkline_proto::http_date::parse);
        let not_newer =
            modified.zip(metadata.modified().ok()).is_some_and(|(theirs, ours)| theirs <= ours);
        let same = answer.status == StatusCode::OK && length == Some(metadata.len()) && not_newer;
        Ok(same.then_some(metadata.len()))
    }
}

fn unchanged(bytes: u64) -> Receipt {
    Receipt {
        bytes,
        bytes_received: 0,
        attempts: 0,
        unchanged: true,
        elapsed: std::time::Duration::ZERO,
    }
}

/// Hashes a file on the blocking pool.
pub(crate) async fn digest_of(path: PathBuf, like: Digest) -> Result<Digest, ErrorKind> {
    blocking::run(move || {
        let read = || {
            let mut file = std::fs::File::open(&path)?;
            let mut hasher = Hasher::new(like.algorithm());
            hash_up_to(&mut file, u64::MAX, &mut hasher)?;
            Ok(hasher.finish())
        };
        read().map_err(|source| file_error("read", &path, source))
    })
    .await
}

/// Feeds up to `bytes_max` bytes of a reader to a hasher; returns how many there were.
pub(crate) fn hash_up_to(
    reader: &mut impl std::io::Read,
    bytes_max: u64,
    hasher: &mut Hasher,
) -> std::io::Result<u64> {
    let mut block = vec![0; 256 * 1024];
    let mut total = 0;
    while total < bytes_max {
        let wanted = block.len().min(usize::try_from(bytes_max - total).unwrap_or(usize::MAX));
        let read = reader.read(&mut block[..wanted])?;
        if read == 0 {
            break;
        }
        hasher.update(&block[..read]);
        total += read as u64;
    }
    Ok(total)
}
