//! Fetches many files: `fetch_many FOLDER URL...`.
//!
//! An engine, a stream of jobs, an observer: files come atomically, resumed and retried, over few
//! warm connections, as `trunkline get` brings them.

use std::error::Error;
use std::future::pending;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::sync::Arc;

use futures_util::stream;
use trunkline_transfer::{Engine, EngineSettings, Event, IN_FLIGHT_DEFAULT, Job, JobId, Observer};
use trunkline_transport::{TlsClient, TlsOptions};
use url::Url;

/// Tells of each file as it ends.
struct Teller;

impl Observer for Teller {
    fn event(&self, job: JobId, event: Event<'_>) {
        let told = match event {
            Event::Done { receipt } => format!("{job}: {} bytes", receipt.bytes),
            // The error names the URL, without passwords and signatures.
            Event::Failed { error } => format!("{job}: {error}"),
            _ => return,
        };
        // Nobody is left to tell when standard error is closed.
        let _ = writeln!(io::stderr(), "{told}");
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let folder = PathBuf::from(arguments.next().ok_or("usage: fetch_many FOLDER URL...")?);
    std::fs::create_dir_all(&folder)?;

    // Jobs are plain data; a stream of them may be as long as it likes.
    let mut jobs = Vec::new();
    for argument in arguments {
        let url: Url = argument.parse()?;
        let name = url.path().rsplit('/').find(|name| !name.is_empty()).unwrap_or("index.html");
        jobs.push(Job::new(url.clone(), folder.join(name)));
    }

    // One engine a process: it owns the pool.
    let engine = Engine::new(EngineSettings::new(TlsClient::new(TlsOptions::default())?));
    let stop = pending(); // a future that is ready when the user wants to stop
    let report = engine.run(stream::iter(jobs), IN_FLIGHT_DEFAULT, Arc::new(Teller), stop).await;

    let counts = engine.stats_total();
    let (requests, connections) = (counts.requests, counts.connections);
    let (done, failed) = (report.done, report.failed);
    let line =
        format!("{done} done, {failed} failed; {requests} requests, {connections} connections");
    writeln!(io::stderr(), "{line}")?;
    if report.is_success() { Ok(()) } else { Err("not all files came".into()) }
}
