//! `available.packages()` and `download.packages()` on repositories with every oddity.

use trunkline_cran::{Filter, PackageType, Place, plan::plan};
use trunkline_testkit::rscript;

use crate::world::World;

/// Prints R's version, then the table under two sets of filters.
const AVAILABLE: &str = r#"
    urls <- commandArgs(TRUE)
    cat(format(getRversion()), "\n", sep = "")
    for (filters in list(NULL, "OS_type")) {
        a <- available.packages(urls, filters = filters)
        a[is.na(a)] <- "NA"
        cat(sprintf("%s|%s|%s|%s|%s", a[, "Package"], a[, "Version"], a[, "Repository"],
                    a[, "File"], a[, "MD5sum"]), "", sep = "\n")
    }"#;

#[test]
fn the_table_is_rs() {
    for seed in 0..4 {
        let world = World::new(seed);
        let urls: Vec<&str> = world.urls.iter().map(String::as_str).collect();
        let Some(theirs) = rscript::run(AVAILABLE, &urls) else { return };
        let (r, theirs) = theirs.split_once('\n').unwrap();
        let mut ours = String::new();
        for filters in [&Filter::DEFAULT[..], &[Filter::OsType]] {
            for package in world.index(filters, r).packages() {
                ours += &format!(
                    "{}|{}|{}|{}|{}\n",
                    package.name(),
                    package.version_text(),
                    package.repository(),
                    package.field("File").unwrap_or("NA"),
                    package.field("MD5sum").unwrap_or("NA"),
                );
            }
            ours.push('\n');
        }
        assert_eq!(ours.trim_end(), theirs.trim_end(), "seed {seed}");
    }
}

/// For every package of a table with duplicates in it: the file R takes.
const FILES: &str = r#"
    urls <- commandArgs(TRUE)
    cat(format(getRversion()), "\n", sep = "")
    a <- available.packages(urls, filters = "OS_type")
    d <- download.packages(unique(a[, "Package"]), tempdir(), available = a,
                           contriburl = urls, type = "source")
    cat(sprintf("%s %s", d[, 1], d[, 2]), sep = "\n")"#;

#[test]
fn the_files_taken_are_rs() {
    let world = World::new(7);
    let urls: Vec<&str> = world.urls.iter().map(String::as_str).collect();
    let Some(theirs) = rscript::run(FILES, &urls) else { return };
    let (r, theirs) = theirs.split_once('\n').unwrap();
    let index = world.index(&[Filter::OsType], r);
    let mut seen = std::collections::HashSet::new();
    let names = index.packages().map(|p| p.name().to_owned()).filter(|n| seen.insert(n.clone()));
    let mut ours = String::new();
    for name in names {
        let request = name.parse().unwrap();
        let plan = plan(&index, &request, &PackageType::Source, &[]).unwrap();
        let Place::Local(path) = &plan.candidates[0].place else { panic!("a local repository") };
        assert!(path.is_file(), "{name} {}", path.display());
        ours += &format!("{name} {}\n", path.display());
    }
    assert_eq!(ours.trim_end(), theirs.trim_end());
    assert!(world.folder.path().exists());
}
