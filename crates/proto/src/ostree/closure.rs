//! Walks everything a commit needs, without reading anything itself.

use std::collections::{HashMap, HashSet, VecDeque};

use super::checksum::Checksum;
use super::commit::Commit;
use super::dirtree::DirTree;
use super::error::FormatError;
use super::object_id::{ObjectId, ObjectKind};

/// How large a closure may grow.
#[derive(Debug, Clone, Copy)]
pub struct ClosureLimits {
    /// Most objects; each costs about 60 bytes of memory.
    pub objects_max: usize,
}

impl Default for ClosureLimits {
    /// Ten million objects: fifty times the largest repository known to be pushed.
    fn default() -> Self {
        Self { objects_max: 10_000_000 }
    }
}

/// Why a walk cannot go on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ClosureError {
    /// An object on the way is broken.
    #[error("{id} is broken: {source}")]
    Format {
        /// The object.
        id: ObjectId,
        /// What is wrong with it.
        #[source]
        source: FormatError,
    },
    /// More objects than [`ClosureLimits::objects_max`].
    #[error("more than {max} objects are reachable; raise the limit if that is right")]
    TooManyObjects {
        /// The limit.
        max: usize,
    },
}

/// The walk's state: what was found, and which metadata must be read to find more.
///
/// The caller asks [`next`](Self::next) which object to read, reads it wherever it is, and gives its
/// bytes to [`feed`](Self::feed), in any order and with as many outstanding as it likes. Each object
/// is found once. To get what `new` needs beyond `old`, walk `old` first in the same `Closure`: what
/// is found afterwards is the difference.
///
/// ```
/// use trunkline_proto::ostree::{Checksum, Closure, ClosureLimits};
///
/// # fn read(_: trunkline_proto::ostree::ObjectId) -> Vec<u8> { unreachable!() }
/// # fn walk(commit: Checksum) -> Result<(), trunkline_proto::ostree::ClosureError> {
/// let mut closure = Closure::new(ClosureLimits::default());
/// let mut found = Vec::new();
/// closure.want(commit, 0, &mut found)?;
/// while let Some(id) = closure.next() {
///     closure.feed(id, &read(id), &mut found)?;
/// }
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Closure {
    limits: ClosureLimits,
    seen: HashSet<ObjectId>,
    unread: VecDeque<ObjectId>,
    /// How many generations of parents to follow from each commit.
    parents_left: HashMap<Checksum, u32>,
    /// Commits that were reached as somebody's parent only.
    parents: HashSet<Checksum>,
}

impl Closure {
    /// An empty walk.
    pub fn new(limits: ClosureLimits) -> Self {
        Self {
            limits,
            seen: HashSet::new(),
            unread: VecDeque::new(),
            parents_left: HashMap::new(),
            parents: HashSet::new(),
        }
    }

    /// Adds a commit and up to `parents_max` generations before it. `found` gets the commit's id
    /// unless it was found before.
    ///
    /// # Errors
    /// [`ClosureError::TooManyObjects`].
    pub fn want(
        &mut self,
        commit: Checksum,
        parents_max: u32,
        found: &mut Vec<ObjectId>,
    ) -> Result<(), ClosureError> {
        self.parents.remove(&commit);
        self.add_commit(commit, parents_max, found)
    }

    fn add_commit(
        &mut self,
        commit: Checksum,
        parents_max: u32,
        found: &mut Vec<ObjectId>,
    ) -> Result<(), ClosureError> {
        let id = ObjectId::new(commit, ObjectKind::Commit);
        let deeper =
            self.parents_left.get(&commit).is_some_and(|&parents_left| parents_left < parents_max);
        if !self.seen.contains(&id) {
            self.parents_left.insert(commit, parents_max);
            self.add(id, found)?;
        } else if deeper {
            // Known, but its parents are wanted only now: read it once more.
            self.parents_left.insert(commit, parents_max);
            self.unread.push_back(id);
        }
        Ok(())
    }

    fn add(&mut self, id: ObjectId, found: &mut Vec<ObjectId>) -> Result<(), ClosureError> {
        if self.seen.contains(&id) {
            return Ok(());
        }
        let max = self.limits.objects_max;
        if self.seen.len() >= max {
            return Err(ClosureError::TooManyObjects { max });
        }
        self.seen.insert(id);
        if matches!(id.kind, ObjectKind::Commit | ObjectKind::DirTree) {
            self.unread.push_back(id);
        }
        found.push(id);
        Ok(())
    }

    /// The next commit or dirtree whose bytes are needed; `None` when nothing more is known, which
    /// is the end once every object handed out has been fed or given up.
    #[expect(clippy::should_implement_trait, reason = "not an iterator: feed() makes it grow")]
    pub fn next(&mut self) -> Option<ObjectId> {
        self.unread.pop_front()
    }

    /// Takes the bytes of an object that [`next`](Self::next) asked for, which the caller has
    /// verified; appends what is found through it to `found`.
    ///
    /// # Errors
    /// [`ClosureError`] when the object is broken or the walk grows too large.
    pub fn feed(
        &mut self,
        id: ObjectId,
        data: &[u8],
        found: &mut Vec<ObjectId>,
    ) -> Result<(), ClosureError> {
        let broken = |source| ClosureError::Format { id, source };
        match id.kind {
            ObjectKind::Commit => {
                let commit = Commit::parse(data).map_err(broken)?;
                self.add(commit.root_tree_id(), found)?;
                self.add(commit.root_meta_id(), found)?;
                let parents_left = self.parents_left.get(&id.checksum).copied().unwrap_or(0);
                if let (Some(parent), Some(parents_left)) =
                    (commit.parent, parents_left.checked_sub(1))
                {
                    if !self.seen.contains(&ObjectId::new(parent, ObjectKind::Commit)) {
                        self.parents.insert(parent);
                    }
                    self.add_commit(parent, parents_left, found)?;
                }
            }
            ObjectKind::DirTree => {
                let tree = DirTree::parse(data).map_err(broken)?;
                for (_, file) in tree.files() {
                    self.add(ObjectId::new(file, ObjectKind::File), found)?;
                }
                for (_, directory) in tree.directories() {
                    self.add(ObjectId::new(directory.meta, ObjectKind::DirMeta), found)?;
                    self.add(ObjectId::new(directory.tree, ObjectKind::DirTree), found)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Whether this commit was reached as a parent only: a repository may lack it and be complete.
    pub fn is_optional(&self, id: ObjectId) -> bool {
        id.kind == ObjectKind::Commit && self.parents.contains(&id.checksum)
    }

    /// Number of objects found so far.
    pub fn len(&self) -> usize {
        self.seen.len()
    }

    /// Whether nothing was found yet.
    pub fn is_empty(&self) -> bool {
        self.seen.is_empty()
    }

    /// Whether the object was found.
    pub fn contains(&self, id: &ObjectId) -> bool {
        self.seen.contains(id)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{CommitFields, DirMetaFields, DirTreeBuilder, Directory};
    use super::*;

    #[derive(Default)]
    struct Store(HashMap<ObjectId, Vec<u8>>);

    impl Store {
        fn put(&mut self, kind: ObjectKind, data: Vec<u8>) -> Checksum {
            let checksum = Checksum::of(&data);
            self.0.insert(ObjectId::new(checksum, kind), data);
            checksum
        }

        fn commit(&mut self, files: &[&str], parent: Option<Checksum>) -> Checksum {
            let meta = self.put(ObjectKind::DirMeta, DirMetaFields::default().encode());
            let mut shared = DirTreeBuilder::new();
            shared.file("shared", Checksum::of(b"shared"));
            let shared = self.put(ObjectKind::DirTree, shared.encode());
            let mut root = DirTreeBuilder::new();
            for file in files {
                root.file(file, Checksum::of(file.as_bytes()));
            }
            for name in ["x", "y"] {
                root.directory(name, Directory { tree: shared, meta });
            }
            let root_tree = self.put(ObjectKind::DirTree, root.encode());
            let fields = CommitFields {
                metadata: &[],
                parent,
                subject: "s",
                body: "",
                timestamp_s: 1,
                root_tree,
                root_meta: meta,
            };
            self.put(ObjectKind::Commit, fields.encode())
        }

        fn walk(&self, closure: &mut Closure) -> Vec<ObjectId> {
            let mut found = Vec::new();
            while let Some(id) = closure.next() {
                closure.feed(id, &self.0[&id], &mut found).unwrap();
            }
            found
        }
    }

    #[test]
    fn finds_each_object_once_and_differences() {
        let mut store = Store::default();
        let old = store.commit(&["a", "b"], None);
        let new = store.commit(&["a", "c"], Some(old));
        let mut closure = Closure::new(ClosureLimits::default());
        closure.want(old, 0, &mut Vec::new()).unwrap();
        // root, its meta, the shared directory, its file, a, b
        assert_eq!(store.walk(&mut closure).len(), 6);
        let mut found = Vec::new();
        closure.want(new, 0, &mut found).unwrap();
        found.extend(store.walk(&mut closure));
        let kinds: Vec<_> = found.iter().map(|id| id.kind).collect();
        assert_eq!(kinds, [ObjectKind::Commit, ObjectKind::DirTree, ObjectKind::File]);
        assert_eq!(found[2].checksum, Checksum::of(b"c"));
        assert_eq!(closure.len(), 10);
    }

    #[test]
    fn parents_only_when_asked_for() {
        let mut store = Store::default();
        let old = store.commit(&["a"], None);
        let middle = store.commit(&["b"], Some(old));
        let new = store.commit(&["c"], Some(middle));
        let commits = |parents_max| {
            let mut closure = Closure::new(ClosureLimits::default());
            let mut found = Vec::new();
            closure.want(new, parents_max, &mut found).unwrap();
            found.extend(store.walk(&mut closure));
            found.iter().filter(|id| id.kind == ObjectKind::Commit).count()
        };
        assert_eq!([commits(0), commits(1), commits(2), commits(9)], [1, 2, 3, 3]);

        let mut closure = Closure::new(ClosureLimits::default());
        closure.want(new, 0, &mut Vec::new()).unwrap();
        store.walk(&mut closure);
        closure.want(new, 2, &mut Vec::new()).unwrap();
        let later = store.walk(&mut closure);
        assert!(later.contains(&ObjectId::new(old, ObjectKind::Commit)));
        assert!(closure.is_optional(ObjectId::new(old, ObjectKind::Commit)));
        assert!(!closure.is_optional(ObjectId::new(new, ObjectKind::Commit)));
    }

    #[test]
    fn limits_and_broken_objects() {
        let mut store = Store::default();
        let commit = store.commit(&["a", "b"], None);
        let mut closure = Closure::new(ClosureLimits { objects_max: 2 });
        let mut found = Vec::new();
        closure.want(commit, 0, &mut found).unwrap();
        let id = closure.next().unwrap();
        assert_eq!(
            closure.feed(id, &store.0[&id], &mut found),
            Err(ClosureError::TooManyObjects { max: 2 })
        );
        assert!(matches!(closure.feed(id, b"junk", &mut found), Err(ClosureError::Format { .. })));
    }
}
