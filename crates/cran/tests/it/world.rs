//! Repositories with every oddity an index may have.

use trunkline_cran::{Filter, Index, Platform, RepositoryIndex};
use trunkline_proto::cran::{Limits, dependency, read_index};
use trunkline_testkit::cran_repo::{CranRepo, PackageSpec, Random};

/// How many packages share names over all repositories of a world.
const NAMES: usize = 60;

/// A few repositories whose packages overlap, depend on each other in circles too, and are partly
/// for other versions of R or other systems.
pub(crate) fn repositories(seed: u64) -> Vec<CranRepo> {
    let mut random = Random(seed);
    (0..3).map(|_| repository(&mut random)).collect()
}

fn repository(random: &mut Random) -> CranRepo {
    let mut packages = Vec::new();
    for number in 0..NAMES {
        // Two thirds of the names are here, some of them twice.
        for _ in 0..random.below(3).min(1) + random.below(8) / 7 {
            packages.push(package(random, number));
        }
    }
    CranRepo { packages, archived: Vec::new() }
}

fn package(random: &mut Random, number: usize) -> PackageSpec {
    let separator = *random.pick(&[".", "-"]);
    let version = format!("{}.{}{separator}{}", random.below(2), random.below(12), random.below(3));
    let mut spec = PackageSpec::new(&format!("pk{number}"), &version);
    let depends = match random.below(8) {
        0 => "R (>= 99.0)".to_owned(),
        1 => format!("methods, R (>= 3.{})", random.below(9)),
        2 => "R (< 4.0.0), stats".to_owned(),
        3 => format!("R (>= 3.5.0),\n  methods, {}", list(random, 2)),
        _ => String::new(),
    };
    for (field, value) in [
        ("Depends", depends),
        ("Imports", list(random, 3)),
        ("LinkingTo", list(random, 1)),
        ("Suggests", list(random, 2)),
        ("Enhances", list(random, 1)),
        ("OS_type", ["", "", "", "", "", "unix", "windows"][random.below(7)].to_owned()),
        ("Path", ["", "", "", "older", "4.1/extra"][random.below(5)].to_owned()),
        ("File", ["", "", "", "", &format!("file{number}.tar.gz")][random.below(5)].to_owned()),
    ] {
        // R takes a package that names itself for a circle; nobody does that.
        if !value.is_empty() && !dependency::names(&value).any(|name| name == spec.name) {
            spec = spec.field(field, &value);
        }
    }
    spec
}

fn list(random: &mut Random, max: usize) -> String {
    let entry = |random: &mut Random| match random.below(9) {
        0 => "utils".to_owned(),
        1 => format!("nowhere{}", random.below(3)),
        2 => format!("pk{} (>= {}.{})", random.below(NAMES), random.below(2), random.below(12)),
        3 => format!("pk{}(< {}.{})", random.below(NAMES), random.below(2), random.below(12)),
        4 => format!(" pk{}  ( >= 1.{}-1)", random.below(NAMES), random.below(3)),
        _ => format!("pk{}", random.below(NAMES)),
    };
    let entries: Vec<_> = (0..random.below(max + 1)).map(|_| entry(random)).collect();
    entries.join(", ")
}

/// Our reading of the repositories' indexes, as `available.packages()` merges them.
pub(crate) fn index(
    urls: &[String],
    repositories: &[CranRepo],
    filters: &[Filter],
    r: &str,
) -> Index {
    let platform = Platform {
        r_version: r.parse().unwrap(),
        os_type: "unix".to_owned(),
        subarch: String::new(),
    };
    let read = |(url, repository): (&String, &CranRepo)| RepositoryIndex {
        contrib_url: url.clone(),
        table: read_index(&repository.files()["src/contrib/PACKAGES.rds"], &Limits::default())
            .unwrap(),
    };
    Index::merge(urls.iter().zip(repositories).map(read), filters, &platform)
}

/// A world on disk, for R, with the `contriburl` of each repository.
pub(crate) struct World {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) repositories: Vec<CranRepo>,
    pub(crate) urls: Vec<String>,
}

impl World {
    pub(crate) fn new(seed: u64) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let repositories = repositories(seed);
        let urls = repositories
            .iter()
            .enumerate()
            .map(|(number, repository)| {
                let root = folder.path().join(number.to_string());
                format!("file://{}", repository.write(&root).unwrap().display())
            })
            .collect();
        Self { folder, repositories, urls }
    }

    pub(crate) fn index(&self, filters: &[Filter], r: &str) -> Index {
        index(&self.urls, &self.repositories, filters, r)
    }
}
