//! A store in memory, for tests and for trying things out.

use std::collections::{BTreeMap, HashMap};
use std::io::Cursor;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use trunkline_proto::ostree::{Checksum, ObjectId, RefName};

use super::{Document, Reader, Staged, Stat, Store, StoreError};
use crate::routes::Namespace;

/// Keeps everything in memory; clones share it.
#[derive(Debug, Clone, Default)]
pub struct MemoryStore(Arc<Mutex<HashMap<Namespace, Contents>>>);

#[derive(Debug, Default)]
struct Contents {
    objects: HashMap<ObjectId, (u64, Arc<[u8]>)>,
    refs: BTreeMap<RefName, Checksum>,
    documents: HashMap<String, Vec<u8>>,
    writes: u64,
}

impl MemoryStore {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Namespace, Contents>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Store for MemoryStore {
    fn stat(&self, namespace: &Namespace, id: &ObjectId) -> Result<Option<Stat>, StoreError> {
        Ok(self.open(namespace, id, 0)?.map(|(stat, _)| stat))
    }

    fn open(
        &self,
        namespace: &Namespace,
        id: &ObjectId,
        offset: u64,
    ) -> Result<Option<(Stat, Reader)>, StoreError> {
        let all = self.lock();
        let object = all.get(namespace).and_then(|contents| contents.objects.get(id));
        Ok(object.map(|(write, data)| {
            let stat = Stat { bytes: data.len() as u64, tag: format!("{write:x}") };
            let mut cursor = Cursor::new(Arc::clone(data));
            cursor.set_position(offset);
            (stat, Box::new(cursor) as Reader)
        }))
    }

    fn stage(&self, namespace: &Namespace, id: &ObjectId) -> Result<Box<dyn Staged>, StoreError> {
        let (store, namespace) = (self.clone(), namespace.clone());
        Ok(Box::new(StagedBytes { store, namespace, id: *id, data: Vec::new() }))
    }

    fn settle(&self, _: &Namespace) -> Result<(), StoreError> {
        Ok(())
    }

    fn read_ref(
        &self,
        namespace: &Namespace,
        name: &RefName,
    ) -> Result<Option<Checksum>, StoreError> {
        Ok(self.lock().get(namespace).and_then(|contents| contents.refs.get(name).copied()))
    }

    fn swap_ref(
        &self,
        namespace: &Namespace,
        name: &RefName,
        expected: Option<Checksum>,
        new: Checksum,
    ) -> Result<bool, StoreError> {
        let mut all = self.lock();
        let refs = &mut all.entry(namespace.clone()).or_default().refs;
        let unchanged = refs.get(name).copied() == expected;
        if unchanged {
            refs.insert(name.clone(), new);
        }
        Ok(unchanged)
    }

    fn refs(&self, namespace: &Namespace) -> Result<Vec<(RefName, Checksum)>, StoreError> {
        let all = self.lock();
        let refs = all.get(namespace).map(|contents| &contents.refs);
        Ok(refs.into_iter().flatten().map(|(name, commit)| (name.clone(), *commit)).collect())
    }

    fn read_document(
        &self,
        namespace: &Namespace,
        document: &Document,
    ) -> Result<Option<Vec<u8>>, StoreError> {
        let all = self.lock();
        let contents = all.get(namespace);
        Ok(contents.and_then(|contents| contents.documents.get(&document.path()).cloned()))
    }

    fn write_document(
        &self,
        namespace: &Namespace,
        document: &Document,
        data: &[u8],
    ) -> Result<(), StoreError> {
        let mut all = self.lock();
        let documents = &mut all.entry(namespace.clone()).or_default().documents;
        documents.insert(document.path(), data.to_vec());
        Ok(())
    }
}

struct StagedBytes {
    store: MemoryStore,
    namespace: Namespace,
    id: ObjectId,
    data: Vec<u8>,
}

impl Staged for StagedBytes {
    fn write(&mut self, data: &[u8]) -> Result<(), StoreError> {
        self.data.extend_from_slice(data);
        Ok(())
    }

    fn seal(&mut self) -> Result<(), StoreError> {
        Ok(())
    }

    fn publish(self: Box<Self>) -> Result<(), StoreError> {
        let mut all = self.store.lock();
        let contents = all.entry(self.namespace.clone()).or_default();
        contents.writes += 1;
        contents.objects.insert(self.id, (contents.writes, self.data.as_slice().into()));
        Ok(())
    }
}
