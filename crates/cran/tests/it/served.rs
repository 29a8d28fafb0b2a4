//! A generated repository behind a scripted origin, and an engine that trusts it.

use std::{collections::BTreeMap, time::Duration};

use trunkline_testkit::{Origin, Resource, cran_repo::CranRepo};
use trunkline_transfer::{Engine, EngineSettings};
use trunkline_transport::{Roots, TlsClient, TlsOptions};

/// A runtime for one test, on its own thread.
pub(crate) fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

/// An engine that trusts the origin's authority and does not wait long between attempts.
pub(crate) fn engine(origin: &Origin) -> Engine {
    let folder = tempfile::tempdir().unwrap();
    let pem = folder.path().join("ca.pem");
    let is_tls = origin.url("/").starts_with("https");
    std::fs::write(&pem, if is_tls { origin.ca_pem() } else { "" }).unwrap();
    let roots = if is_tls { Roots::Only(vec![pem]) } else { Roots::System };
    let tls = TlsClient::new(TlsOptions { roots, ..TlsOptions::default() }).unwrap();
    let mut settings = EngineSettings::new(tls);
    settings.patience.retry.retries = 2;
    settings.patience.stall_timeout = Duration::from_secs(20);
    Engine::new(settings)
}

/// Puts all files of a repository below a prefix of the origin; returns them by path.
pub(crate) fn serve(origin: &Origin, prefix: &str, repo: &CranRepo) -> BTreeMap<String, Vec<u8>> {
    let files = repo.files();
    for (path, content) in &files {
        origin.put(&format!("{prefix}/{path}"), Resource::new(content.clone()));
    }
    files
}
