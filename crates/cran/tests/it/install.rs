//! Installation by the real R.

use std::{fs, path::PathBuf};

use futures_util::stream;
use trunkline_cran::{
    Filter, Index, Outcome, Platform, RepositoryIndex,
    closure::install_order,
    install::{InstallEvent, InstallOptions, install},
    r_setup::RSetup,
};
use trunkline_proto::cran::{Limits, read_index};
use trunkline_testkit::{
    cran_repo::{CranRepo, PackageSpec},
    rscript,
};

use crate::served::runtime;

#[test]
fn one_broken_package_stops_only_those_that_need_it() {
    let Some(rscript) = rscript::find() else { return };
    let spec = |name: &str, needs: &str| {
        let spec = PackageSpec::new(name, "1.0");
        if needs.is_empty() { spec } else { spec.field("Imports", needs) }
    };
    let mut broken = spec("bad", "");
    broken.broken = true;
    let packages = vec![
        spec("app", "lib"),
        spec("lib", "core"),
        spec("core", ""),
        broken,
        spec("worse", "bad"),
    ];
    let repo = CranRepo { packages, archived: vec![] };
    let folder = tempfile::tempdir().unwrap();
    let contrib = repo.write(&folder.path().join("repo")).unwrap();
    let [library, logs] = ["library", "logs"].map(|name| folder.path().join(name));
    fs::create_dir(&library).unwrap();
    fs::create_dir(&logs).unwrap();

    let table =
        read_index(&fs::read(contrib.join("PACKAGES")).unwrap(), &Limits::default()).unwrap();
    let index = RepositoryIndex { contrib_url: "u".to_owned(), table };
    let outcomes = runtime().block_on(async {
        let setup = RSetup::ask(&rscript.with_file_name("R")).await.unwrap();
        assert!(setup.installed.contains_key("stats"));
        let platform: Platform = setup.platform.clone();
        let index = Index::merge([index], &Filter::DEFAULT, &platform);
        let names: Vec<String> = repo.packages.iter().map(|p| p.name.clone()).collect();
        let order = install_order(&index, &names);
        let files: Vec<(String, Result<PathBuf, _>)> = repo
            .packages
            .iter()
            .map(|package| (package.name.clone(), Ok(contrib.join(package.file_name()))))
            .collect();
        let options = InstallOptions {
            program: setup.program.clone(),
            library: library.clone(),
            libraries: vec![library.clone()],
            jobs_max: 2,
            logs: logs.clone(),
            arguments: vec!["--no-docs".to_owned(), "--no-test-load".to_owned()],
        };
        let mut started = Vec::new();
        let outcomes = install(order, stream::iter(files), &options, |event| {
            if let InstallEvent::Started { package } = event {
                started.push(package.to_owned());
            }
        })
        .await;
        let position = |name: &str| started.iter().position(|started| started == name);
        assert!(position("core") < position("lib") && position("lib") < position("app"));
        assert_eq!(position("worse"), None);
        outcomes
    });
    let outcome = |name: &str| &outcomes.iter().find(|(n, _)| n == name).unwrap().1;
    for good in ["app", "lib", "core"] {
        assert_eq!(*outcome(good), Outcome::Installed);
        assert!(library.join(good).join("DESCRIPTION").exists());
    }
    assert_eq!(*outcome("bad"), Outcome::Failed);
    assert_eq!(*outcome("worse"), Outcome::Skipped { because: "bad".to_owned() });
    let log = fs::read_to_string(logs.join("bad.out")).unwrap();
    assert!(log.contains("broken on purpose"), "{log}");
}
