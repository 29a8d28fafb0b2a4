//! What every store must do.

use trunkline_proto::ostree::{Checksum, ObjectId, ObjectKind, RefName};

use super::{DirectoryStore, Document, Durability, MemoryStore, Store, read_all};
use crate::routes::Namespace;

fn conforms(store: &dyn Store) {
    let home = Namespace::default();
    let other: Namespace = "other".parse().unwrap();
    let id = ObjectId::new(Checksum::of(b"x"), ObjectKind::File);
    let name: RefName = "os/main".parse().unwrap();
    let (one, two) = (Checksum::of(b"1"), Checksum::of(b"2"));

    // Nothing is there at first, and asking makes nothing.
    assert!(store.stat(&home, &id).unwrap().is_none());
    assert!(store.open(&home, &id, 0).unwrap().is_none());
    assert_eq!(store.read_ref(&home, &name).unwrap(), None);
    assert_eq!(store.refs(&home).unwrap(), []);
    assert_eq!(store.read_document(&home, &Document::Summary).unwrap(), None);

    // An object is invisible until published, and a dropped one never is.
    let mut staged = store.stage(&home, &id).unwrap();
    staged.write(b"drop").unwrap();
    drop(staged);
    let mut staged = store.stage(&home, &id).unwrap();
    staged.write(b"hel").unwrap();
    staged.write(b"lo").unwrap();
    staged.seal().unwrap();
    store.settle(&home).unwrap();
    assert!(store.stat(&home, &id).unwrap().is_none());
    staged.publish().unwrap();
    let stat = store.stat(&home, &id).unwrap().unwrap();
    assert_eq!(stat.bytes, 5);
    let (_, reader) = store.open(&home, &id, 2).unwrap().unwrap();
    assert_eq!(read_all(reader, &stat).unwrap(), b"llo");
    assert!(store.stat(&other, &id).unwrap().is_none());

    // Replacing is whole.
    let mut staged = store.stage(&home, &id).unwrap();
    staged.write(b"better").unwrap();
    staged.seal().unwrap();
    staged.publish().unwrap();
    let (stat, reader) = store.open(&home, &id, 0).unwrap().unwrap();
    assert_eq!(read_all(reader, &stat).unwrap(), b"better");

    // Refs move from where they are only.
    assert!(!store.swap_ref(&home, &name, Some(one), two).unwrap());
    assert!(store.swap_ref(&home, &name, None, one).unwrap());
    assert!(!store.swap_ref(&home, &name, None, two).unwrap());
    assert!(store.swap_ref(&home, &name, Some(one), two).unwrap());
    assert_eq!(store.read_ref(&home, &name).unwrap(), Some(two));
    assert_eq!(store.refs(&home).unwrap(), [(name.clone(), two)]);
    assert_eq!(store.refs(&other).unwrap(), []);
    // A directory of refs is not a ref.
    assert_eq!(store.read_ref(&home, &"os".parse().unwrap()).unwrap(), None);

    let manifest = Document::Manifest(one);
    store.write_document(&home, &manifest, b"{}").unwrap();
    assert_eq!(store.read_document(&home, &manifest).unwrap().as_deref(), Some(&b"{}"[..]));
}

#[test]
fn memory_conforms() {
    conforms(&MemoryStore::new());
}

#[test]
fn directories_conform_and_leave_no_temporary_files() {
    for durability in [Durability::Rename, Durability::Sync] {
        let root = tempfile::tempdir().unwrap();
        let store = DirectoryStore::open(root.path(), durability).unwrap();
        conforms(&store);
        let temporary = root.path().join("default/tmp");
        assert_eq!(std::fs::read_dir(temporary).unwrap().count(), 0);
    }
}
