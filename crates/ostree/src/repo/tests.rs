use std::path::Path;
use std::process::Command;

use super::*;
use crate::closure;

fn run(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn ostree(repo: &Path, arguments: &[&str]) -> String {
    run(Command::new("ostree").arg(format!("--repo={}", repo.display())).args(arguments))
}

fn has_ostree() -> bool {
    let found = Command::new("ostree").arg("--version").output().is_ok();
    if !found {
        let all = std::env::var_os("TRUNKLINE_JUDGES").is_some_and(|value| value == "all");
        assert!(!all, "`ostree` is not installed; `cargo xtask setup` installs it");
        eprintln!("skipped: `ostree` is not installed");
    }
    found
}

fn tree(root: &Path) -> PathBuf {
    let tree = root.join("tree");
    fs::create_dir_all(tree.join("usr/bin")).unwrap();
    fs::write(tree.join("usr/bin/tool"), b"#!/bin/sh\n".repeat(500)).unwrap();
    fs::write(tree.join("usr/empty"), b"").unwrap();
    std::os::unix::fs::symlink("../usr/bin/tool", tree.join("usr/link")).unwrap();
    tree
}

/// Each mode that libostree writes is read, verified and packed into what an archive stores, and
/// libostree's own check accepts the archive that results.
#[test]
fn every_mode_is_read_as_an_archive() {
    if !has_ostree() {
        return;
    }
    for mode in ["archive-z2", "bare", "bare-user", "bare-user-only"] {
        let directory = tempfile::tempdir().unwrap();
        let tree = tree(directory.path());
        let source = directory.path().join("source");
        run(Command::new("ostree")
            .args(["init", "--mode", mode])
            .arg(format!("--repo={}", source.display())));
        let path = tree.display().to_string();
        let mut arguments = vec!["commit", "-b", "main", "--no-xattrs"];
        if mode == "bare-user-only" {
            arguments.push("--canonical-permissions");
        }
        arguments.push(&path);
        ostree(&source, &arguments);

        let repo = Repo::open(&source).unwrap();
        let name: RefName = "main".parse().unwrap();
        let commit = repo.resolve(&name).unwrap().unwrap();
        let archive = Repo::open_or_create(&directory.path().join("archive")).unwrap();
        let ids = closure::of(&repo, commit, 0).unwrap();
        for id in &ids {
            repo.verify(id).unwrap();
            // Once in memory, once by way of a file.
            for memory_bytes_max in [u64::MAX, 10] {
                let object = repo.read_for_sending(id, memory_bytes_max, true).unwrap();
                let data = match object.bytes {
                    Packed::Memory(data) => data,
                    Packed::File(path, bytes) => {
                        let data = fs::read(path).unwrap();
                        assert_eq!(data.len() as u64, bytes);
                        data
                    }
                };
                repo.forget_packed(id);
                let mut writing = archive.write(*id).unwrap();
                writing.push(&data).unwrap();
                writing.finish().unwrap();
            }
        }
        archive.set_ref(&name, &commit).unwrap();
        ostree(archive.path(), &["fsck", "-q"]);
        assert_eq!(ostree(archive.path(), &["rev-parse", "main"]).trim(), commit.to_string());
        let ours = |name: std::ffi::OsString| name.to_string_lossy().starts_with("trunkline-");
        let mut left = fs::read_dir(archive.path().join("tmp")).unwrap();
        assert!(!left.any(|entry| ours(entry.unwrap().file_name())), "{mode}");
    }
}

#[test]
fn a_flipped_byte_is_found_and_named() {
    if !has_ostree() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let tree = tree(directory.path());
    let source = directory.path().join("source");
    run(Command::new("ostree")
        .args(["init", "--mode=archive"])
        .arg(format!("--repo={}", source.display())));
    ostree(&source, &["commit", "-b", "main", &tree.display().to_string()]);
    let repo = Repo::open(&source).unwrap();
    let commit = repo.resolve(&"main".parse().unwrap()).unwrap().unwrap();
    let ids = closure::of(&repo, commit, 0).unwrap();
    let victim = ids.iter().find(|id| id.kind == ObjectKind::File).unwrap();
    let path = repo.object_path(victim);
    let mut data = fs::read(&path).unwrap();
    data[20] ^= 1; // the group
    fs::remove_file(&path).unwrap();
    fs::write(&path, data).unwrap();
    for result in [repo.verify(victim), repo.read_for_sending(victim, 1 << 20, true).map(drop)] {
        assert!(matches!(result, Err(RepoError::Corrupt { id, .. }) if id == *victim));
    }
}

#[test]
fn what_is_no_repository_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    assert!(matches!(Repo::open(directory.path()), Err(RepoError::NotARepository { .. })));
    let repo = Repo::open_or_create(directory.path()).unwrap();
    assert_eq!(repo.mode(), Mode::Archive);
    fs::write(directory.path().join("config"), "[core]\nmode=strange\n").unwrap();
    assert!(matches!(Repo::open(directory.path()), Err(RepoError::Mode { .. })));
}
