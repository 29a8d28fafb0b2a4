use trunkline_proto::cran::{
    Limits, StringVector,
    rds::{self, Object, Value},
    read_index,
};

use super::*;
use crate::{
    index::{Filter, RepositoryIndex},
    repository::Platform,
};

fn index(repositories: &[(&str, &str)]) -> Index {
    let read = |&(url, packages): &(&str, &str)| RepositoryIndex {
        contrib_url: url.to_owned(),
        table: read_index(packages.as_bytes(), &Limits::default()).unwrap(),
    };
    let platform = Platform {
        r_version: "4.2.2".parse().unwrap(),
        os_type: "unix".to_owned(),
        subarch: String::new(),
    };
    Index::merge(repositories.iter().map(read), &Filter::DEFAULT, &platform)
}

fn plan_source(index: &Index, request: &str) -> Result<PackagePlan, PlanError> {
    plan(index, &request.parse().unwrap(), &PackageType::Source, &[])
}

fn urls(plan: &PackagePlan) -> Vec<String> {
    plan.candidates
        .iter()
        .map(|candidate| match &candidate.place {
            Place::Local(path) => path.display().to_string(),
            Place::Remote(url) => url.clone(),
        })
        .collect()
}

fn archive(files: &[&str]) -> ArchiveIndex {
    let frame = Object::from(Value::List(Vec::new()))
        .with("names", Value::Strings(StringVector::default()).into())
        .with("row.names", Object::strings(files.iter().copied().map(Some)));
    let list = Object::from(Value::List(vec![frame])).with("names", Object::strings([Some("aa")]));
    ArchiveIndex::read(&rds::write(&list), &Limits::default()).unwrap()
}

#[test]
fn the_highest_version_is_planned_with_the_others_that_have_it_behind() {
    let md5 = "0123456789abcdef0123456789ABCDEF";
    let one = "Package: aa\nVersion: 1.0\n";
    let two = format!("Package: aa\nVersion: 1.1\nMD5sum: {md5}\n");
    let three = "Package: aa\nVersion: 1.1\nMD5sum: short\nFile: sub/aa.tar.gz\n";
    let index = index(&[("https://x/1", one), ("https://x/2", &two), ("file:///srv/3", three)]);
    let plan = plan_source(&index, "aa").unwrap();
    assert_eq!((plan.version.as_str(), plan.file_name.as_str()), ("1.1", "aa_1.1.tar.gz"));
    assert_eq!(urls(&plan), ["https://x/2/aa_1.1.tar.gz", "/srv/3/sub/aa.tar.gz"]);
    assert_eq!(plan.candidates[0].digests.md5, Some(md5.to_ascii_lowercase()));
    assert_eq!(plan.candidates[1].digests, Digests::default());
}

#[test]
fn an_older_version_is_looked_for_in_every_archive() {
    let index = index(&[("https://x/1", "Package: aa\nVersion: 2.0\n"), ("file:/srv/2", "")]);
    let plan = plan_source(&index, "aa==1.0-1").unwrap();
    assert_eq!(plan.file_name, "aa_1.0-1.tar.gz");
    assert_eq!(
        urls(&plan),
        ["https://x/1/Archive/aa/aa_1.0-1.tar.gz", "/srv/2/Archive/aa/aa_1.0-1.tar.gz",]
    );
    assert!(plan.candidates.iter().all(|candidate| candidate.archived));
    let plan = plan_source(&index, "aa==2.0").unwrap();
    assert_eq!(urls(&plan)[0], "https://x/1/aa_2.0.tar.gz");
}

#[test]
fn a_listing_saves_the_asking() {
    let index = index(&[("https://x/1", "Package: aa\nVersion: 2.0\n"), ("https://x/2", "")]);
    let listing = archive(&["aa/aa_1.0.tar.gz", "aa/aa_1.1.tar.gz", "../../aa_1.2.tar.gz"]);
    let archives: Vec<_> = index
        .contrib_urls()
        .map(|contrib_url| KnownArchive { contrib_url, listing: &listing })
        .collect();
    let plan = |request: &str, archives: &[KnownArchive<'_>]| {
        plan(&index, &request.parse().unwrap(), &PackageType::Source, archives)
    };
    let known_and_unknown = plan("aa==1.1", &archives[..1]).unwrap();
    assert_eq!(
        urls(&known_and_unknown),
        ["https://x/1/Archive/aa/aa_1.1.tar.gz", "https://x/2/Archive/aa/aa_1.1.tar.gz",]
    );
    for absent in ["aa==1.5", "aa==1.2"] {
        let error = plan(absent, &archives).unwrap_err();
        assert!(matches!(error, PlanError::NotInArchive { .. }), "{absent}: {error}");
    }
}

#[test]
fn what_cannot_be_planned_says_why() {
    let index = index(&[("u", "Package: aa\nVersion: 2.0\nFile: ../../etc/passwd\n")]);
    let error = plan_source(&index, "bb").unwrap_err();
    assert_eq!(error.to_string(), "no package ‘bb’ at the repositories");
    let error = plan_source(&index, "aa").unwrap_err();
    assert!(matches!(error, PlanError::UnsafeFileName { .. }), "{error}");
    let request = "aa==1.0".parse().unwrap();
    let error = plan(&index, &request, &PackageType::WinBinary, &[]).unwrap_err();
    assert!(matches!(error, PlanError::NoSuchBinaryVersion { .. }), "{error}");
}
