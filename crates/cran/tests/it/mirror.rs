//! The mirror between clients and a scripted origin.

use std::time::Duration;

use http::{Request, StatusCode, header::USER_AGENT};
use http_body_util::BodyExt as _;
use trunkline_cran::mirror::{
    Mirror, MirrorOptions, STORE_BYTES_MAX_DEFAULT, Store, Token, mirrored,
};
use trunkline_listen::{Drain, Listener, Server};
use trunkline_testkit::{Fault, Origin, Resource, cran_repo::CranRepo, rscript};

use crate::served::{engine, runtime, serve};

const TOKEN: &str = "abcdef0123456789";

fn mirror(origin: &Origin, folder: &std::path::Path, prefetch: bool) -> Mirror {
    let store = Store::open(folder, STORE_BYTES_MAX_DEFAULT).unwrap();
    let options = MirrorOptions { token: Token::new(TOKEN), prefetch };
    Mirror::new(engine(origin), store, options)
}

/// Asks for what is behind the mirror at an upstream URL.
async fn ask(mirror: &Mirror, url: &str, agent: &str) -> (StatusCode, Vec<u8>) {
    let path = mirrored("", Token::new(TOKEN).as_ref(), url).unwrap();
    let request = Request::get(path).header(USER_AGENT, agent).body(()).unwrap();
    let response = mirror.answer(request).await;
    let status = response.status();
    (status, response.into_body().collect().await.unwrap().to_bytes().to_vec())
}

#[test]
fn what_was_fetched_once_is_not_fetched_again() {
    let origin = Origin::http();
    let repo = CranRepo::generate(1, 3, 2_000);
    let files = serve(&origin, "", &repo);
    let folder = tempfile::tempdir().unwrap();
    let index = origin.url("/src/contrib/PACKAGES.rds");
    let file = repo.packages[0].file_name();
    let package = origin.url(&format!("/src/contrib/{file}"));
    runtime().block_on(async {
        let mirror = mirror(&origin, folder.path(), false);
        for _ in 0..3 {
            let (status, body) = ask(&mirror, &index, "R").await;
            assert_eq!((status, &body), (StatusCode::OK, &files["src/contrib/PACKAGES.rds"]));
            let (status, body) = ask(&mirror, &package, "R").await;
            assert_eq!((status, &body), (StatusCode::OK, &files[&format!("src/contrib/{file}")]));
        }
        assert_eq!(mirror.stats().hits, 4);
    });
    assert_eq!(origin.requests_to(&format!("/src/contrib/{file}")).len(), 1);
    let asked = origin.requests_to("/src/contrib/PACKAGES.rds");
    let statuses: Vec<_> = asked.iter().map(|request| request.status.unwrap()).collect();
    assert_eq!(statuses, [200, 304, 304], "indexes are revalidated");
}

#[test]
fn agents_do_not_see_each_others_files() {
    let origin = Origin::http();
    origin.handle("/src/contrib/aa_1.0.tar.gz", |request, _body| {
        let agent = request.header("user-agent").unwrap_or_default().to_owned();
        trunkline_testkit::Reply::new(200).body(agent)
    });
    let folder = tempfile::tempdir().unwrap();
    let url = origin.url("/src/contrib/aa_1.0.tar.gz");
    runtime().block_on(async {
        let mirror = mirror(&origin, folder.path(), false);
        for agent in ["R/4.2.2 R (linux)", "pak", "R/4.2.2 R (linux)"] {
            let (status, body) = ask(&mirror, &url, agent).await;
            assert_eq!((status, body), (StatusCode::OK, agent.as_bytes().to_vec()));
        }
    });
    assert_eq!(origin.counters().requests, 2);
}

#[test]
fn errors_pass_through_and_old_indexes_survive_an_outage() {
    let origin = Origin::http();
    serve(&origin, "", &CranRepo::generate(1, 3, 2_000));
    let folder = tempfile::tempdir().unwrap();
    let index = origin.url("/src/contrib/PACKAGES.rds");
    runtime().block_on(async {
        let mirror = mirror(&origin, folder.path(), false);
        let (status, _) = ask(&mirror, &origin.url("/src/contrib/no_1.0.tar.gz"), "R").await;
        assert_eq!(status, StatusCode::NOT_FOUND);
        let request = Request::get("/wrongtoken123456/http/x/").body(()).unwrap();
        assert_eq!(mirror.answer(request).await.status(), StatusCode::NOT_FOUND);
        let (_, body) = ask(&mirror, &index, "R").await;
        drop(origin);
        assert_eq!(ask(&mirror, &index, "R").await, (StatusCode::OK, body));
        assert_eq!(mirror.stats().stale, 1);
    });
}

#[test]
fn a_damaged_or_replaced_file_is_fetched_again() {
    let origin = Origin::http();
    let repo = CranRepo::generate(1, 1, 2_000);
    let files = serve(&origin, "", &repo);
    let folder = tempfile::tempdir().unwrap();
    let file = repo.packages[0].file_name();
    let path = format!("/src/contrib/{file}");
    let package = origin.url(&path);
    origin.put(&path, Resource::new("an older file of that name"));
    runtime().block_on(async {
        let mirror = mirror(&origin, folder.path(), false);
        let (_, body) = ask(&mirror, &package, "R").await;
        assert_eq!(body, b"an older file of that name", "without an index nothing is known");
        origin.put(&path, Resource::new(files[&path[1..]].clone()));
        ask(&mirror, &origin.url("/src/contrib/PACKAGES.gz"), "R").await;
        let (_, body) = ask(&mirror, &package, "R").await;
        assert_eq!(body, files[&path[1..]]);
        origin.put(&path, Resource::new("damaged"));
        origin.script(&path).always(Fault::Status(500));
        let (status, _) = ask(&mirror, &package, "R").await;
        assert_eq!(status, StatusCode::OK, "what is right stays");
    });
}

/// Unchanged R, one file after the other, and yet few of them have to be waited for.
#[test]
fn r_downloads_through_it_and_most_files_are_there_before_r_asks() {
    if rscript::find().is_none() {
        return;
    }
    let rtt = Duration::from_millis(20);
    let origin = Origin::builder().tls().rtt(rtt).start();
    let repo = CranRepo::generate(9, 60, 10_000);
    serve(&origin, "", &repo);
    let folder = tempfile::tempdir().unwrap();
    let destination = tempfile::tempdir().unwrap();
    let code = r#"
        args <- commandArgs(TRUE)
        options(repos = args[1])
        a <- available.packages(type = "source")
        d <- download.packages(rownames(a), args[2], available = a, type = "source", quiet = TRUE)
        stopifnot(nrow(d) == nrow(a), all(tools::md5sum(d[, 2]) == a[, "MD5sum"]))
        cat(nrow(d))"#;
    runtime().block_on(async {
        let mirror = mirror(&origin, folder.path(), true);
        let listener = Listener::bind_tcp("127.0.0.1:0".parse().unwrap()).unwrap();
        let base = format!("http://{}", listener.tcp_address().unwrap());
        let drain = Drain::new(Duration::from_secs(1));
        let answering = mirror.clone();
        let server = Server::new(listener).serve_http(&drain, move |request| {
            let mirror = answering.clone();
            async move { mirror.answer(request).await }
        });
        let repository =
            mirrored(&base, Token::new(TOKEN).as_ref(), origin.url("").trim_end_matches('/'));
        let mut command = rscript::command(code).unwrap();
        command.arg(repository.unwrap()).arg(destination.path());
        let r = tokio::task::spawn_blocking(move || rscript::stdout(command.output().unwrap()));
        let output = tokio::select! {
            output = r => output.unwrap(),
            _ = server => unreachable!("nobody drains it"),
        };
        assert_eq!(output, "60");
        let stats = mirror.stats();
        assert_eq!(stats.requests, 61);
        assert!(stats.prefetched >= 50, "{stats:?}");
    });
    assert!(origin.counters().connections_accepted <= 6);
}
