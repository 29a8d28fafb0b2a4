//! Fetches many files over one pool: `fetch_many FOLDER URL...`.
//!
//! Each file is a task of its own and asks its origin's pool for a lease; how many connections
//! there are, and which one carries what, is the pool's affair. The counters at the end show it.
//! Whoever wants retries, resumption and redirects takes the `trunkline-transfer` crate, which
//! does this over the same pool.

use std::error::Error;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::PathBuf;

use http::{Request, StatusCode};
use tokio::task::JoinSet;
use trunkline_pool::{Limits, Pool};
use trunkline_transport::{Origin, OriginSettings, RequestBody, TlsClient, TlsOptions};
use url::Url;

type Failure = Box<dyn Error + Send + Sync>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let folder = PathBuf::from(arguments.next().ok_or("usage: fetch_many FOLDER URL...")?);
    std::fs::create_dir_all(&folder)?;

    // One pool, and one TLS client: sessions are resumed and roots read once.
    let pool = Pool::new(Limits::default());
    let tls = TlsClient::new(TlsOptions::default())?;
    let mut files = JoinSet::new();
    for argument in arguments {
        let url: Url = argument.parse()?;
        let file = fetch(pool.clone(), tls.clone(), url, folder.clone());
        files.spawn(async move { (argument, file.await) });
    }
    let mut stderr = io::stderr();
    while let Some(ended) = files.join_next().await {
        match ended? {
            (_, Ok(())) => {}
            (url, Err(error)) => writeln!(stderr, "{url}: {error}")?,
        }
    }
    for (origin, stats) in pool.stats() {
        let (connections, requests) = (stats.connections, stats.requests);
        writeln!(stderr, "{origin}: {requests} requests over {connections} connections")?;
    }
    Ok(())
}

async fn fetch(pool: Pool, tls: TlsClient, url: Url, folder: PathBuf) -> Result<(), Failure> {
    let origin = Origin::from_url(&url)?;
    // The settings are built for the first request to an origin only.
    let connections = pool.origin(&origin, || Ok::<_, Failure>(OriginSettings::new(tls)))?;
    let lease = connections.lease().await?;
    let request = Request::get(url.as_str()).body(RequestBody::empty())?;
    let response = lease.send(request).await.map_err(|failed| failed.error)?;
    if response.status() != StatusCode::OK {
        return Err(format!("the server answered {}", response.status()).into());
    }
    let name = url.path().rsplit('/').find(|name| !name.is_empty()).unwrap_or("index.html");
    let mut file = File::create(folder.join(name))?;
    let mut body = response.into_body();
    // Read to its end, the body gives its connection back; dropped before, it closes it.
    while let Some(chunk) = body.chunk().await {
        file.write_all(&chunk?)?;
    }
    Ok(())
}
