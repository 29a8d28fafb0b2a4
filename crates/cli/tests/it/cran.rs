//! `trunkline cran`.

use std::{
    fs,
    path::Path,
    process::{Command, Output},
};

use trunkline_testkit::{
    Origin, Resource,
    cran_repo::{CranRepo, PackageSpec},
    rscript, temp_dir,
};

/// Packages that depend on one another, an old version, and a file that is not what it should be.
fn origin() -> Origin {
    let repo = CranRepo {
        packages: vec![
            PackageSpec::new("app", "2.0").field("Imports", "lib"),
            PackageSpec::new("lib", "1.1"),
            PackageSpec::new("bad", "1.0"),
        ],
        archived: vec![PackageSpec::new("lib", "1.0-1")],
    };
    let origin = Origin::http();
    for (path, content) in repo.files() {
        origin.put(&format!("/{path}"), Resource::new(content));
    }
    origin.put("/src/contrib/bad_1.0.tar.gz", Resource::new("not that file"));
    origin
}

fn cran(arguments: &[&str], folder: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_trunkline"))
        .arg("cran")
        .args(arguments)
        .current_dir(folder)
        .env_remove("http_proxy")
        .output()
        .unwrap()
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn downloads_follow_dependencies_and_archives_without_any_r() {
    let (origin, folder) = (origin(), temp_dir());
    let repos = format!("TEST={}", origin.url(""));
    let common = ["--repos", &repos, "--r-version", "4.2.2", "-d", "out"];
    let run = |arguments: &[&str]| {
        let output = cran(&[&["download"], arguments, &common].concat(), folder.path());
        let errors = String::from_utf8(output.stderr).unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap(), errors)
    };
    let (code, out, errors) =
        run(&["app", "--dependencies", "strong", "--write-lockfile", "app.lock"]);
    assert_eq!(code, Some(0), "{errors}");
    assert_eq!(out, "lib\t1.1\tout/lib_1.1.tar.gz\napp\t2.0\tout/app_2.0.tar.gz\n");
    assert!(errors.contains("also installing the dependency ‘lib’"), "{errors}");

    let (code, ..) = run(&["lib==1.0-1"]);
    assert_eq!(code, Some(0));
    assert_eq!(
        names(&folder.path().join("out")),
        ["app_2.0.tar.gz", "lib_1.0-1.tar.gz", "lib_1.1.tar.gz"]
    );

    let asked = origin.counters().requests;
    let (code, out, _) = run(&["--lockfile", "app.lock"]);
    assert_eq!((code, out.lines().count()), (Some(0), 2));
    assert_eq!(origin.counters().requests - asked, 1, "the index only: the files were complete");
}

#[test]
fn a_wrong_file_is_not_kept_and_does_not_stop_the_rest() {
    let (origin, folder) = (origin(), temp_dir());
    let arguments =
        ["download", "bad", "lib", "--repos", &origin.url(""), "--r-version", "4.2.2", "-d", "out"];
    let output = cran(&arguments, folder.path());
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(7), "{errors}");
    assert!(errors.contains("download of package ‘bad’ failed"), "{errors}");
    assert_eq!(names(&folder.path().join("out")), ["lib_1.1.tar.gz"]);
}

#[test]
fn what_makes_no_sense_is_said() {
    let folder = temp_dir();
    for (arguments, words) in [
        (vec!["download", "app", "--r-version", "4.2.2"], "no repository is set"),
        (vec!["download", "../app", "--r-version", "4.2.2"], "is not the name of an R package"),
        (vec!["install", "app", "--r-version", "4.2.2"], "leave it out"),
        (vec!["mirror", "--print-rprofile", "--cache", "cache"], "needs --port"),
    ] {
        let output = cran(&arguments, folder.path());
        let errors = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {errors}");
        assert!(errors.contains(words), "{arguments:?}: {errors}");
    }
}

#[test]
fn packages_are_installed_in_order_into_a_library() {
    if rscript::find().is_none() {
        return;
    }
    let (origin, folder) = (origin(), temp_dir());
    let arguments = ["install", "app", "--repos", &origin.url(""), "--lib", "library", "-j", "2"];
    let output = cran(&arguments, folder.path());
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{errors}");
    assert_eq!(names(&folder.path().join("library")), ["app", "lib"]);
}

#[test]
fn an_unchanged_r_installs_through_a_mirror_of_its_own() {
    if rscript::find().is_none() {
        return;
    }
    let (origin, folder) = (origin(), temp_dir());
    let profile = folder.path().join("profile.R");
    fs::write(&profile, format!("options(repos = c(TEST = '{}'))\n", origin.url(""))).unwrap();
    let library = folder.path().join("library");
    fs::create_dir(&library).unwrap();
    let code = "install.packages('app', lib = 'library', type = 'source', quiet = TRUE)";
    let run = || {
        Command::new(env!("CARGO_BIN_EXE_trunkline"))
            .args(["cran", "with-mirror", "--cache", "cache", "--", "Rscript", "-e", code])
            .current_dir(folder.path())
            .env("R_PROFILE_USER", &profile)
            .output()
            .unwrap()
    };
    let output = run();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{errors}");
    assert_eq!(names(&library), ["app", "lib"]);
    let files = |origin: &Origin| origin.requests_to("/src/contrib/app_2.0.tar.gz").len();
    assert_eq!(files(&origin), 1);
    assert_eq!(run().status.code(), Some(0));
    assert_eq!(files(&origin), 1, "the second time from the mirror's folder");
}
