//! Push, pull and check against our server over loopback, with `ostree` as the judge.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use trunkline_listen::{Drain, Limits, Listener, Server};
use trunkline_ostree::check::{Check, check};
use trunkline_ostree::pull::{Pull, PullError, pull};
use trunkline_ostree::push::{Push, PushError, push};
use trunkline_ostree::remote::{Remote, RemoteError};
use trunkline_ostree::repo::{Repo, RepoError};
use trunkline_proto::ostree::{Checksum, ObjectId, ObjectKind, RefName};
use trunkline_transfer::{Engine, EngineSettings};
use trunkline_transport::{TlsClient, TlsOptions};
use trunkline_treehub::store::{DirectoryStore, Durability};
use trunkline_treehub::{Settings, Treehub, serve};

fn run(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Bytes that do not compress.
fn noise(seed: u8, bytes: usize) -> Vec<u8> {
    let mut state = u32::from(seed) + 1;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state.to_be_bytes()[0]
    };
    std::iter::repeat_with(&mut next).take(bytes).collect()
}

/// A directory with a repository of two commits, and a server over an empty store.
struct Scene {
    directory: tempfile::TempDir,
    repo: Repo,
    name: RefName,
    old: Checksum,
    new: Checksum,
    url: String,
    drain: Drain,
}

impl Scene {
    /// `None` where `ostree` is not installed, and says so.
    async fn new() -> Option<Self> {
        if Command::new("ostree").arg("--version").output().is_err() {
            trunkline_testkit::judge::absent("ostree");
            return None;
        }
        let directory = tempfile::tempdir().unwrap();
        let source = directory.path().join("source");
        run(Command::new("ostree")
            .args(["init", "--mode=archive"])
            .arg(format!("--repo={}", source.display())));
        let tree = directory.path().join("tree");
        let mut commits = Vec::new();
        for generation in 0..2 {
            for number in 0..40 {
                let folder = tree.join(format!("usr/d{}/e{}", number % 5, number % 3));
                std::fs::create_dir_all(&folder).unwrap();
                let changes = if number % 10 == 0 { generation } else { 0 };
                let text = format!("{number} {changes} ").repeat(number * 7);
                std::fs::write(folder.join(format!("f{number}")), text).unwrap();
            }
            std::fs::write(tree.join("large"), noise(generation, 6 << 20)).unwrap();
            run(Command::new("ostree")
                .args(["commit", "-b", "os/main", "--no-xattrs"])
                .arg(format!("--repo={}", source.display()))
                .arg(&tree));
            let repo = Repo::open(&source).unwrap();
            commits.push(repo.resolve(&"os/main".parse().unwrap()).unwrap().unwrap());
        }
        let store = directory.path().join("store");
        let store = Arc::new(DirectoryStore::open(&store, Durability::Rename).unwrap());
        let listener = Listener::bind_tcp("127.0.0.1:0".parse().unwrap()).unwrap();
        let address = listener.tcp_address().unwrap();
        let drain = Drain::new(Duration::from_secs(5));
        let limits = Limits { body_bytes_max: 1 << 30, ..Limits::default() };
        let (hub, watched) = (Treehub::new(store, Settings::default()), drain.clone());
        tokio::spawn(async move {
            serve(hub, Server::new(listener).limits(limits), &watched).await;
        });
        let repo = Repo::open(&source).unwrap();
        let name = "os/main".parse().unwrap();
        let url = format!("http://{address}/api/v3");
        let (old, new) = (commits[0], commits[1]);
        Some(Self { directory, repo, name, old, new, url, drain })
    }

    fn remote(&self) -> Remote {
        let tls = TlsClient::new(TlsOptions::default()).unwrap();
        let engine = Engine::new(EngineSettings::new(tls));
        Remote::new(engine, self.url.parse().unwrap()).unwrap()
    }

    fn push(&self, commit: Checksum) -> Push {
        Push {
            commit,
            name: Some(self.name.clone()),
            jobs: 20,
            dry_run: false,
            verify: true,
            walk: false,
            repair: false,
            force: false,
            plain: false,
        }
    }

    fn pull(&self) -> Pull {
        let name = Some(self.name.clone());
        Pull { name, commit: None, parents_max: 0, jobs: 20, plain: false }
    }

    fn check(&self, plain: bool) -> Check {
        Check { commit: self.new, walk: true, jobs: 20, plain }
    }

    fn stored(&self) -> PathBuf {
        self.directory.path().join("store/default")
    }

    fn local(&self, name: &str) -> Repo {
        Repo::open_or_create(&self.directory.path().join(name)).unwrap()
    }

    /// A file object of the new commit that the old one has not.
    fn new_file(&self) -> ObjectId {
        let mut walk = trunkline_ostree::closure::LocalWalk::new(&self.repo);
        walk.forget(self.old).unwrap();
        let ids = walk.commit(self.new, 0).unwrap();
        ids.into_iter().find(|id| id.kind == ObjectKind::File).unwrap()
    }

    fn stored_path(&self, id: &ObjectId) -> PathBuf {
        Repo::open(&self.stored()).unwrap().object_path(id)
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        self.drain.start();
    }
}

fn fsck(repo: &Path) {
    run(Command::new("ostree").args(["fsck", "-q"]).arg(format!("--repo={}", repo.display())));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_packs_bring_is_a_repository_and_a_second_push_sends_the_difference() {
    let Some(scene) = Scene::new().await else { return };
    let remote = scene.remote();
    let first = push(&scene.repo, &remote, &scene.push(scene.old)).await.unwrap();
    assert!(first.packs && first.ref_set);
    assert_eq!((first.heads, first.present), (0, 0));
    assert_eq!(first.uploads, first.objects);
    fsck(&scene.stored());

    let before = remote.engine().stats_total();
    let second = push(&scene.repo, &remote, &scene.push(scene.new)).await.unwrap();
    let after = remote.engine().stats_total();
    assert!(second.uploads < first.uploads / 2, "{second:?}");
    // Where the ref points; a pack, the long object, the commit; the ref.
    assert_eq!(after.requests - before.requests, 5);
    fsck(&scene.stored());
    assert_eq!(remote.read_ref(&scene.name).await.unwrap(), Some(scene.new));

    let before = remote.engine().stats_total();
    let third = push(&scene.repo, &remote, &scene.push(scene.new)).await.unwrap();
    assert_eq!((third.uploads, third.ref_set), (0, false));
    assert_eq!(remote.engine().stats_total().requests - before.requests, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plain_server_gets_children_first_and_no_question_for_what_it_must_lack() {
    let Some(scene) = Scene::new().await else { return };
    let remote = scene.remote();
    let plain = |commit| Push { plain: true, ..scene.push(commit) };
    let first = push(&scene.repo, &remote, &plain(scene.old)).await.unwrap();
    assert!(!first.packs && first.ref_set);
    fsck(&scene.stored());
    let second = push(&scene.repo, &remote, &plain(scene.new)).await.unwrap();
    assert_eq!(second.heads, 1);
    assert!(second.uploads < first.uploads / 2, "{second:?}");
    fsck(&scene.stored());
    let third = push(&scene.repo, &remote, &plain(scene.new)).await.unwrap();
    assert_eq!((third.heads, third.uploads), (1, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn ostree_pulls_what_was_pushed() {
    let Some(scene) = Scene::new().await else { return };
    push(&scene.repo, &scene.remote(), &scene.push(scene.new)).await.unwrap();
    let theirs = scene.local("theirs");
    let url = scene.url.clone();
    let expected = scene.new.to_string();
    tokio::task::spawn_blocking(move || {
        let repo = format!("--repo={}", theirs.path().display());
        let ostree = |arguments: &[&str]| run(Command::new("ostree").arg(&repo).args(arguments));
        ostree(&["remote", "add", "--no-gpg-verify", "hub", &url]);
        ostree(&["pull", "hub", "os/main"]);
        assert_eq!(ostree(&["rev-parse", "hub:os/main"]).trim(), expected);
        // The summary that the server makes lists the ref.
        assert_eq!(ostree(&["remote", "refs", "hub"]).trim(), "hub:os/main");
        fsck(theirs.path());
    })
    .await
    .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn both_ways_of_pulling_bring_the_same() {
    let Some(scene) = Scene::new().await else { return };
    let remote = scene.remote();
    push(&scene.repo, &remote, &scene.push(scene.old)).await.unwrap();
    for plain in [false, true] {
        let mine = scene.local(&format!("mine-{plain}"));
        let ask = Pull { plain, ..scene.pull() };
        let first = pull(&mine, &remote, &ask).await.unwrap();
        assert_eq!(first.packs, !plain);
        fsck(mine.path());
        push(&scene.repo, &remote, &scene.push(scene.new)).await.unwrap();
        let second = pull(&mine, &remote, &ask).await.unwrap();
        assert_eq!(second.commit, scene.new.to_string());
        assert!(second.objects < first.objects / 2, "{second:?}");
        fsck(mine.path());
        assert_eq!(mine.resolve(&scene.name).unwrap(), Some(scene.new));
        assert!(!mine.is_partial(&scene.new));
        let third = pull(&mine, &remote, &ask).await.unwrap();
        assert_eq!(third.objects, 0);
        let back = Push { force: true, ..scene.push(scene.old) };
        push(&scene.repo, &remote, &back).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn check_finds_what_is_missing_or_corrupt_and_repair_sends_just_that() {
    let Some(scene) = Scene::new().await else { return };
    let remote = scene.remote();
    push(&scene.repo, &remote, &scene.push(scene.new)).await.unwrap();
    for plain in [false, true] {
        assert!(check(&remote, &scene.check(plain)).await.unwrap().is_sound());
    }
    let victim = scene.new_file();
    let path = scene.stored_path(&victim);
    let good = std::fs::read(&path).unwrap();

    std::fs::remove_file(&path).unwrap();
    for plain in [false, true] {
        let verdict = check(&remote, &scene.check(plain)).await.unwrap();
        assert_eq!((verdict.missing, verdict.corrupt), (1, 0));
        assert_eq!(verdict.faults[0].object, victim.to_string());
    }
    let mine = scene.local("mine");
    for plain in [false, true] {
        let error = pull(&mine, &remote, &Pull { plain, ..scene.pull() }).await.unwrap_err();
        assert!(
            matches!(error, PullError::Incomplete { missing: 1, first, .. } if first == victim)
        );
        assert!(mine.is_partial(&scene.new));
        assert_eq!(mine.resolve(&scene.name).unwrap(), None);
    }
    // The default push trusts the ref; one that walks does not.
    let walk = Push { walk: true, ..scene.push(scene.new) };
    let repaired = push(&scene.repo, &remote, &walk).await.unwrap();
    assert_eq!(repaired.uploads, 1);

    let mut bad = good.clone();
    bad[20] ^= 1;
    std::fs::remove_file(&path).unwrap();
    std::fs::write(&path, &bad).unwrap();
    for plain in [false, true] {
        let verdict = check(&remote, &scene.check(plain)).await.unwrap();
        assert_eq!((verdict.missing, verdict.corrupt), (0, 1));
    }
    let repair = Push { repair: true, ..scene.push(scene.new) };
    push(&scene.repo, &remote, &repair).await.unwrap();
    assert!(std::fs::read(&path).unwrap() == good);
    pull(&mine, &remote, &scene.pull()).await.unwrap();
    fsck(mine.path());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_corrupt_local_object_is_refused_and_the_ref_stays() {
    let Some(scene) = Scene::new().await else { return };
    let remote = scene.remote();
    push(&scene.repo, &remote, &scene.push(scene.old)).await.unwrap();
    let victim = scene.new_file();
    let path = scene.repo.object_path(&victim);
    let mut data = std::fs::read(&path).unwrap();
    data[20] ^= 1;
    std::fs::remove_file(&path).unwrap();
    std::fs::write(&path, data).unwrap();
    for plain in [false, true] {
        let ask = Push { plain, ..scene.push(scene.new) };
        let error = push(&scene.repo, &remote, &ask).await.unwrap_err();
        assert!(matches!(
            error,
            PushError::Local(trunkline_ostree::closure::WalkError::Repo(RepoError::Corrupt {
                id,
                ..
            })) if id == victim
        ));
        // The server looks for itself as well.
        let ask = Push { verify: false, ..ask };
        let error = push(&scene.repo, &remote, &ask).await.unwrap_err();
        let refused = match &error {
            PushError::Refused { id, .. } => *id == victim,
            PushError::Remote(RemoteError::Status { status, .. }) => status.as_u16() == 422,
            _ => false,
        };
        assert!(refused, "{error}");
        assert_eq!(remote.read_ref(&scene.name).await.unwrap(), Some(scene.old));
    }
    fsck(&scene.stored());
}

#[tokio::test(flavor = "multi_thread")]
async fn refs_move_only_forward_and_only_to_what_is_whole() {
    let Some(scene) = Scene::new().await else { return };
    let remote = scene.remote();
    push(&scene.repo, &remote, &scene.push(scene.new)).await.unwrap();
    let status = |error| match error {
        RemoteError::Status { status, detail, .. } => (status.as_u16(), detail),
        other => panic!("{other}"),
    };
    let refused = remote.set_ref(&scene.name, &Checksum::of(b"none"), true).await.unwrap_err();
    assert_eq!(status(refused).0, 412);
    push(&scene.repo, &remote, &Push { name: None, ..scene.push(scene.old) }).await.unwrap();
    let refused = remote.set_ref(&scene.name, &scene.old, false).await.unwrap_err();
    let (code, detail) = status(refused);
    assert_eq!(code, 412);
    assert!(detail.contains("Cannot force push"), "{detail}");
    remote.set_ref(&scene.name, &scene.old, true).await.unwrap();

    let victim = scene.new_file();
    std::fs::remove_file(scene.stored_path(&victim)).unwrap();
    let refused = remote.set_ref(&scene.name, &scene.new, false).await.unwrap_err();
    let (code, detail) = status(refused);
    assert_eq!(code, 412);
    assert!(detail.contains(&victim.to_string()), "{detail}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_writes_nothing() {
    let Some(scene) = Scene::new().await else { return };
    let remote = scene.remote();
    for plain in [false, true] {
        let ask = Push { dry_run: true, walk: true, plain, ..scene.push(scene.new) };
        let pushed = push(&scene.repo, &remote, &ask).await.unwrap();
        assert!(pushed.objects > 40);
        assert_eq!((pushed.uploads, pushed.ref_set), (0, false));
        assert!(!scene.stored().exists());
    }
}
