//! Indexes over an engine.

use http::StatusCode;
use trunkline_cran::indexes::{IndexError, IndexRequest, read_archive, read_indexes};
use trunkline_testkit::{
    Fault, Origin, Resource,
    cran_repo::{CranRepo, PackageSpec},
};

use crate::served::{engine, runtime, serve};

fn repo(name: &str) -> CranRepo {
    let packages = vec![PackageSpec::new(name, "1.0")];
    let archived = vec![PackageSpec::new(name, "0.9")];
    CranRepo { packages, archived }
}

#[test]
fn six_repositories_take_one_connection() {
    let origin = Origin::https();
    let urls: Vec<String> = (0..6)
        .map(|number| {
            serve(&origin, &format!("/{number}"), &repo(&format!("pk{number}")));
            origin.url(&format!("/{number}/src/contrib"))
        })
        .collect();
    let results = runtime()
        .block_on(async { read_indexes(&engine(&origin), &urls, &IndexRequest::default()).await });
    for (number, result) in results.into_iter().enumerate() {
        let index = result.unwrap();
        assert_eq!(index.contrib_url, urls[number]);
        assert_eq!(index.table.field(0, "Package"), Some(format!("pk{number}").as_str()));
    }
    let counters = origin.counters();
    assert_eq!((counters.connections_accepted, counters.requests), (1, 6));
}

#[test]
fn other_spellings_are_tried_when_the_first_is_missing_or_broken() {
    let origin = Origin::http();
    serve(&origin, "", &repo("pk"));
    let url = [origin.url("/src/contrib")];
    let read = || {
        runtime().block_on(async {
            let mut results = read_indexes(&engine(&origin), &url, &IndexRequest::default()).await;
            results.pop().unwrap().unwrap().table.rows()
        })
    };
    origin.put("/src/contrib/PACKAGES.rds", Resource::new("<html>not an index</html>"));
    assert_eq!(read(), 1);
    origin.remove("/src/contrib/PACKAGES.rds");
    origin.remove("/src/contrib/PACKAGES.gz");
    assert_eq!(read(), 1);
}

#[test]
fn a_bad_repository_is_told_apart_from_the_good() {
    let origin = Origin::http();
    serve(&origin, "/good", &repo("pk"));
    origin.script("/locked/src/contrib/PACKAGES.rds").always(Fault::Status(401));
    let urls = ["/missing", "/good", "/locked"].map(|p| origin.url(&format!("{p}/src/contrib")));
    let results = runtime().block_on(async {
        let urls =
            [&urls[..], &["file:///no/such/folder".to_owned(), "no url".to_owned()]].concat();
        read_indexes(&engine(&origin), &urls, &IndexRequest::default()).await
    });
    let errors: Vec<Option<&IndexError>> = results.iter().map(|r| r.as_ref().err()).collect();
    assert!(matches!(errors[0], Some(IndexError::Status { status: StatusCode::NOT_FOUND, .. })));
    assert!(errors[1].is_none());
    assert!(matches!(errors[2], Some(IndexError::Status { status: StatusCode::UNAUTHORIZED, .. })));
    assert!(matches!(errors[3], Some(IndexError::Local { .. })));
    assert!(matches!(errors[4], Some(IndexError::Url { .. })));
    assert_eq!(origin.requests_to("/missing/src/contrib/PACKAGES").len(), 1);
    assert_eq!(origin.requests_to("/locked/src/contrib/PACKAGES.gz").len(), 0, "asked once");
}

#[test]
fn local_repositories_are_read_in_all_spellings() {
    let folder = tempfile::tempdir().unwrap();
    let contrib = repo("pk").write(folder.path()).unwrap();
    let contrib = contrib.display();
    let urls = [format!("file://{contrib}"), format!("file:{contrib}")];
    let origin = Origin::http();
    runtime().block_on(async {
        let engine = engine(&origin);
        for result in read_indexes(&engine, &urls, &IndexRequest::default()).await {
            assert_eq!(result.unwrap().table.rows(), 1);
        }
        let archive = read_archive(&engine, &urls[0], &IndexRequest::default()).await.unwrap();
        assert_eq!(archive.files("pk").len(), 1);
    });
}
