//! Packages over an engine.

use std::{fs, path::Path, sync::Arc};

use futures_util::StreamExt as _;
use trunkline_cran::{
    Filter, Index, KnownArchive, PackageType, Platform, Request,
    download::{DownloadError, DownloadOptions, download},
    indexes::{IndexRequest, read_archive, read_indexes},
    plan::plan,
};
use trunkline_testkit::{
    Fault, Origin, Resource,
    cran_repo::{CranRepo, PackageSpec},
};
use trunkline_transfer::{Engine, Silent};

use crate::served::{engine, runtime, serve};

fn platform() -> Platform {
    Platform {
        r_version: "4.2.2".parse().unwrap(),
        os_type: "unix".to_owned(),
        subarch: String::new(),
    }
}

fn options(destination: &Path) -> DownloadOptions {
    DownloadOptions {
        destination: destination.to_owned(),
        headers: http::HeaderMap::new(),
        in_flight_max: 64,
        keep_complete: true,
        observer: Arc::new(Silent),
    }
}

/// Plans and downloads; results in the order of the requests.
async fn fetch(
    engine: &Engine,
    urls: &[String],
    requests: &[&str],
    destination: &Path,
) -> Vec<Result<std::path::PathBuf, DownloadError>> {
    let indexes = read_indexes(engine, urls, &IndexRequest::default()).await;
    let index = Index::merge(indexes.into_iter().flatten(), &Filter::DEFAULT, &platform());
    let mut listings = Vec::new();
    for url in urls {
        if let Ok(listing) = read_archive(engine, url, &IndexRequest::default()).await {
            listings.push((url, listing));
        }
    }
    let archives: Vec<_> = listings
        .iter()
        .map(|(contrib_url, listing)| KnownArchive { contrib_url, listing })
        .collect();
    let plan_one = |text: &&str| {
        let request: Request = text.parse().unwrap();
        plan(&index, &request, &PackageType::Source, &archives).unwrap()
    };
    let plans: Vec<_> = requests.iter().map(plan_one).collect();
    let options = options(destination);
    let mut results: Vec<_> = download(engine, &plans, &options).collect().await;
    results.sort_by_key(|(number, _)| *number);
    results.into_iter().map(|(_, result)| result).collect()
}

#[test]
fn many_packages_come_whole_over_few_connections() {
    let origin = Origin::https();
    let repo = CranRepo::generate(3, 60, 20_000);
    let files = serve(&origin, "", &repo);
    let names: Vec<&str> = repo.packages.iter().map(|package| package.name.as_str()).collect();
    let folder = tempfile::tempdir().unwrap();
    let urls = [origin.url("/src/contrib")];
    runtime().block_on(async {
        for result in fetch(&engine(&origin), &urls, &names, folder.path()).await {
            result.unwrap();
        }
    });
    for package in &repo.packages {
        let there = fs::read(folder.path().join(package.file_name())).unwrap();
        assert_eq!(there, files[&format!("src/contrib/{}", package.file_name())]);
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 60, "and nothing else");
    assert!(origin.counters().connections_accepted <= 6);
}

#[test]
fn a_file_that_is_not_the_one_in_the_index_is_fetched_elsewhere() {
    let origin = Origin::http();
    let repo = CranRepo { packages: vec![PackageSpec::new("aa", "1.0")], archived: vec![] };
    let files = serve(&origin, "/one", &repo);
    serve(&origin, "/two", &repo);
    let urls = ["/one", "/two"].map(|prefix| origin.url(&format!("{prefix}/src/contrib")));
    let path = "/one/src/contrib/aa_1.0.tar.gz";
    let wrongs = [
        Resource::new("another file"),
        Resource::new("<html>please log in</html>").content_type("text/html"),
    ];
    for wrong in wrongs {
        origin.put(path, wrong);
        let folder = tempfile::tempdir().unwrap();
        let results = runtime().block_on(fetch_in(&origin, &urls, folder.path()));
        let there = fs::read(results[0].as_ref().unwrap()).unwrap();
        assert_eq!(there, files["src/contrib/aa_1.0.tar.gz"]);
    }
}

async fn fetch_in(
    origin: &Origin,
    urls: &[String],
    folder: &Path,
) -> Vec<Result<std::path::PathBuf, DownloadError>> {
    fetch(&engine(origin), urls, &["aa"], folder).await
}

#[test]
fn nothing_wrong_gets_its_name_in_the_folder() {
    let origin = Origin::http();
    let repo = CranRepo { packages: vec![PackageSpec::new("aa", "1.0")], archived: vec![] };
    serve(&origin, "", &repo);
    origin.script("/src/contrib/aa_1.0.tar.gz").always(Fault::Status(404));
    let folder = tempfile::tempdir().unwrap();
    let old = folder.path().join("aa_1.0.tar.gz");
    fs::write(&old, "what was here before").unwrap();
    let urls = [origin.url("/src/contrib")];
    let results = runtime().block_on(fetch_in(&origin, &urls, folder.path()));
    assert!(matches!(results[0], Err(DownloadError::Transfer(_))));
    assert_eq!(fs::read_to_string(&old).unwrap(), "what was here before");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn old_versions_come_from_the_archive_and_local_files_stay_where_they_are() {
    let origin = Origin::http();
    let repo = CranRepo {
        packages: vec![PackageSpec::new("aa", "2.0")],
        archived: vec![PackageSpec::new("aa", "1.0-3")],
    };
    let files = serve(&origin, "", &repo);
    let local = tempfile::tempdir().unwrap();
    let only_here = CranRepo { packages: vec![PackageSpec::new("bb", "1.0")], archived: vec![] };
    let contrib = only_here.write(local.path()).unwrap();
    let urls = [origin.url("/src/contrib"), format!("file://{}", contrib.display())];
    let folder = tempfile::tempdir().unwrap();
    let results = runtime().block_on(async {
        fetch(&engine(&origin), &urls, &["aa==1.0-3", "bb"], folder.path()).await
    });
    let old = fs::read(results[0].as_ref().unwrap()).unwrap();
    assert_eq!(old, files["src/contrib/Archive/aa/aa_1.0-3.tar.gz"]);
    assert_eq!(*results[1].as_ref().unwrap(), contrib.join("bb_1.0.tar.gz"));

    fs::write(contrib.join("bb_1.0.tar.gz"), "damaged").unwrap();
    let results =
        runtime().block_on(async { fetch(&engine(&origin), &urls, &["bb"], folder.path()).await });
    assert!(matches!(results[0], Err(DownloadError::LocalChecksum { .. })));
}
