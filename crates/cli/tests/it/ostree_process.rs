//! `trunkline ostree` and `trunkline treehub serve` as processes: exit codes, drop-in names, and
//! what is left when either is killed at any moment.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::Duration;

/// How often somebody is killed.
const KILLS: u64 = 8;

fn trunkline() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_trunkline"));
    for variable in ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"] {
        command.env_remove(variable);
    }
    command
}

fn ostree(repo: &Path, arguments: &[&str]) -> String {
    let mut command = Command::new("ostree");
    let output =
        command.arg(format!("--repo={}", repo.display())).args(arguments).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "ostree {arguments:?}: {text}");
    String::from_utf8(output.stdout).unwrap()
}

fn has_ostree() -> bool {
    let found = Command::new("ostree").arg("--version").output().is_ok();
    if !found {
        trunkline_testkit::judge::absent("ostree");
    }
    found
}

/// A repository with one commit of `files` files on the branch `main`.
fn source(directory: &Path, files: usize) -> PathBuf {
    let (tree, repo) = (directory.join("tree"), directory.join("source"));
    for number in 0..files {
        let folder = tree.join(format!("d{}", number % 17));
        std::fs::create_dir_all(&folder).unwrap();
        let text = format!("{number} ").repeat(200 + number);
        std::fs::write(folder.join(format!("f{number}")), text).unwrap();
    }
    ostree(&repo, &["init", "--mode=archive"]);
    ostree(&repo, &["commit", "-b", "main", "--no-xattrs", &tree.display().to_string()]);
    repo
}

struct Serving {
    child: Child,
    url: String,
}

impl Serving {
    fn start(root: &Path) -> Self {
        let mut child = trunkline()
            .args(["treehub", "serve", "--listen", "127.0.0.1:0", "--root"])
            .arg(root)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut url = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut url).unwrap();
        Self { child, url: url.trim().to_owned() }
    }

    fn kill(mut self) {
        self.stop();
    }

    fn stop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.stop();
    }
}

fn push(repo: &Path, url: &str) -> Command {
    let mut command = trunkline();
    command.args(["ostree", "push", "--retry", "0", "--ref", "main", "--repo"]).arg(repo).arg(url);
    command
}

fn done(command: &mut Command) -> Output {
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {text}");
    output
}

#[test]
fn the_commands_work_together_and_tell_by_their_exit_codes() {
    if !has_ostree() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let repo = source(directory.path(), 30);
    let root = directory.path().join("root");
    let serving = Serving::start(&root);
    done(&mut push(&repo, &serving.url));
    let commit = ostree(&repo, &["rev-parse", "main"]).trim().to_owned();

    let mine = directory.path().join("mine");
    let pull = |url: &str| {
        let mut command = trunkline();
        command.args(["ostree", "pull", "--ref", "main", "--json", "--repo"]).arg(&mine).arg(url);
        command
    };
    let output = done(&mut pull(&serving.url));
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["result"]["commit"], commit.as_str());
    assert_eq!(json["connections"], 1);
    ostree(&mine, &["fsck", "-q"]);

    // The same job under the seed's name, with its credentials file.
    let credentials = directory.path().join("treehub.json");
    let text = format!("{{\"ostree\": {{\"server\": \"{}\"}}}}", serving.url);
    std::fs::write(&credentials, text).unwrap();
    let garage = directory.path().join("garage-push");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_trunkline"), &garage).unwrap();
    let mut command = Command::new(&garage);
    command.args(["-r", "main", "-w", "-C"]).arg(&repo).arg("-j").arg(&credentials);
    let output = done(&mut command);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.starts_with("Upload to Treehub complete after 0 HEAD requests and 0 PUT"),
        "{text}"
    );

    let garage_check = || {
        let mut command = trunkline();
        command.args(["garage-check", "-w", "-r", &commit, "-j"]).arg(&credentials);
        command
    };
    done(&mut garage_check());

    // What lies beside the objects goes only when asked for.
    assert!(!root.join("default/deltas").exists());
    ostree(&repo, &["static-delta", "generate", "--empty", "main"]);
    let manifest = directory.path().join("manifest.json");
    let text = r#"{"manifest":{"default":{"@revision":"r"},"project":[{"@name":"meta-updater"}]}}"#;
    std::fs::write(&manifest, text).unwrap();
    done(push(&repo, &serving.url).arg("--deltas").arg("--manifest").arg(&manifest));
    assert!(root.join(format!("default/manifests/{commit}")).exists());
    let stored = root.join("default");
    assert_eq!(
        ostree(&stored, &["static-delta", "list"]),
        ostree(&repo, &["static-delta", "list"])
    );

    // Server to server.
    let other_root = directory.path().join("other");
    let other = Serving::start(&other_root);
    let mut deploy = trunkline();
    deploy.args(["ostree", "deploy", "--ref", "main", "--commit", &commit]);
    done(deploy.args(["--from", &serving.url, &other.url]));
    ostree(&other_root.join("default"), &["fsck", "-q"]);
    assert_eq!(ostree(&other_root.join("default"), &["rev-parse", "main"]).trim(), commit);
    other.kill();

    // One object is lost: check says which and fails, repair sends just that.
    let check = || {
        let mut command = trunkline();
        command.args(["ostree", "check", "--ref", "main", &serving.url]);
        command
    };
    done(&mut check());
    let listed = ostree(&repo, &["ls", "-RC", "main"]);
    let line = listed.lines().find(|line| line.starts_with("-0")).unwrap();
    let object = line.split_whitespace().nth(4).unwrap();
    let path = root.join(format!("default/objects/{}/{}.filez", &object[..2], &object[2..]));
    std::fs::remove_file(&path).unwrap();
    let output = check().output().unwrap();
    assert_eq!(output.status.code(), Some(7));
    assert_eq!(garage_check().output().unwrap().status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stdout).contains(object));
    let mut repair = trunkline();
    repair.args(["ostree", "repair", "--ref", "main", "--repo"]).arg(&repo).arg(&serving.url);
    let output = done(&mut repair);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(path.exists(), "{text}");
    done(&mut check());

    let url = serving.url.clone();
    serving.kill();
    assert_eq!(push(&repo, &url).output().unwrap().status.code(), Some(3));
    assert_eq!(push(directory.path(), &url).output().unwrap().status.code(), Some(2));
}

/// Whoever is killed, and whenever: what is visible is sound, a ref points to a whole commit or is
/// not there, and the next push completes it.
#[test]
fn a_killed_push_or_server_leaves_nothing_half_done() {
    if !has_ostree() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let repo = source(directory.path(), 400);
    let commit = ostree(&repo, &["rev-parse", "main"]).trim().to_owned();
    for round in 0..KILLS {
        let root = directory.path().join(format!("root{round}"));
        let serving = Serving::start(&root);
        let mut command = push(&repo, &serving.url);
        if round % 4 >= 2 {
            command.arg("--plain");
        }
        let mut pushing = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        // Spread over the push, which takes about half a second; whether it lands before, within
        // or after does not matter to what must hold.
        thread::sleep(Duration::from_millis(40 + 60 * round));
        if round % 2 == 0 {
            let _ = pushing.kill();
            let _ = pushing.wait();
            serving.kill();
        } else {
            serving.kill();
            let _ = pushing.wait();
        }
        let stored = root.join("default");
        if stored.join("refs/heads/main").exists() {
            assert_eq!(ostree(&stored, &["rev-parse", "main"]).trim(), commit);
            ostree(&stored, &["fsck", "-q"]);
        }
        let serving = Serving::start(&root);
        done(&mut push(&repo, &serving.url));
        ostree(&stored, &["fsck", "-q"]);
        assert_eq!(ostree(&stored, &["rev-parse", "main"]).trim(), commit);
    }
}
