use super::*;
use std::fs;
use std::os::unix::fs::FileExt;
use std::sync::Mutex;

const BLOCK: u64 = 64 << 10;
const SIZE: u64 = 20 * BLOCK + 100;

/// An image that remembers what was asked of it.
#[derive(Debug)]
struct Image {
    version: u8,
    asked: Mutex<Vec<(u64, u32)>>,
}

impl Image {
    fn new(version: u8) -> Arc<Self> {
        Arc::new(Self { version, asked: Mutex::default() })
    }

    fn byte(&self, at: u64) -> u8 {
        (at % 251) as u8 ^ self.version
    }

    fn asked(&self) -> Vec<(u64, u32)> {
        std::mem::take(&mut self.asked.lock().unwrap())
    }
}

impl Export for Image {
    fn size(&self) -> u64 {
        SIZE
    }

    fn read(&self, offset: u64, length: u32) -> Verb<'_, Content> {
        self.asked.lock().unwrap().push((offset, length));
        let bytes: Vec<u8> = (offset..offset + u64::from(length)).map(|at| self.byte(at)).collect();
        Box::pin(std::future::ready(Ok(Piece::Bytes(bytes.into()).into())))
    }

    fn identity(&self) -> Option<String> {
        Some(format!("image version {}", self.version))
    }
}

async fn check(cache: &Cache, image: &Image, offset: u64, length: u32) {
    let bytes = cache.read(offset, length).await.unwrap().into_bytes().await.unwrap();
    assert_eq!(bytes.len(), length as usize);
    assert!((offset..).zip(&bytes[..]).all(|(at, is)| image.byte(at) == *is));
    settle(cache).await;
}

/// Waits until what was fetched is kept.
async fn settle(cache: &Cache) {
    let _all = cache.writes.acquire_many(WRITES_MAX as u32).await.unwrap();
}

fn files(folder: &Path, name: &str) -> Vec<std::path::PathBuf> {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path().join(name)).collect()
}

#[tokio::test]
async fn what_was_read_is_there_in_the_next_run() {
    let folder = tempfile::tempdir().unwrap();
    let image = Image::new(0);
    let cache = Cache::open(image.clone(), folder.path(), 1 << 30).unwrap();
    check(&cache, &image, BLOCK + 5, 100_000).await;
    assert_eq!(image.asked(), [(BLOCK, 2 * BLOCK as u32)]);
    check(&cache, &image, SIZE - 50, 50).await;
    assert_eq!(image.asked(), [(20 * BLOCK, 100)]);
    assert!(matches!(
        Cache::open(image.clone(), folder.path(), 1 << 30),
        Err(CacheError::InUse { .. })
    ));
    drop(cache);
    let cache = Cache::open(image.clone(), folder.path(), 1 << 30).unwrap();
    check(&cache, &image, BLOCK, 2 * BLOCK as u32).await;
    check(&cache, &image, SIZE - 100, 100).await;
    assert_eq!(image.asked(), []);
    check(&cache, &image, 0, 4 * BLOCK as u32).await;
    assert_eq!(image.asked(), [(0, BLOCK as u32), (3 * BLOCK, BLOCK as u32)]);
}

#[tokio::test]
async fn a_torn_or_damaged_block_is_fetched_again() {
    let folder = tempfile::tempdir().unwrap();
    let image = Image::new(0);
    let cache = Cache::open(image.clone(), folder.path(), 1 << 30).unwrap();
    check(&cache, &image, 0, 3 * BLOCK as u32).await;
    image.asked();
    drop(cache);
    let blocks =
        fs::OpenOptions::new().write(true).open(&files(folder.path(), "blocks")[0]).unwrap();
    blocks.write_all_at(&[0; 4096], BLOCK + 4096).unwrap();
    let cache = Cache::open(image.clone(), folder.path(), 1 << 30).unwrap();
    check(&cache, &image, 0, 3 * BLOCK as u32).await;
    assert_eq!(image.asked().len(), 1);
    check(&cache, &image, 0, 3 * BLOCK as u32).await;
    assert_eq!(image.asked(), []);
    drop(cache);
    // An index that is none is begun anew.
    fs::write(&files(folder.path(), "index")[0], b"rubbish").unwrap();
    let cache = Cache::open(image.clone(), folder.path(), 1 << 30).unwrap();
    check(&cache, &image, 0, BLOCK as u32).await;
    assert_eq!(image.asked().len(), 1);
}

#[tokio::test]
async fn versions_do_not_mix_and_the_bound_holds() {
    let folder = tempfile::tempdir().unwrap();
    let bytes_max = 8 * BLOCK;
    let used = || -> u64 {
        use std::os::unix::fs::MetadataExt;
        files(folder.path(), "blocks").iter().map(|f| f.metadata().unwrap().blocks() * 512).sum()
    };
    for version in 0..3 {
        let image = Image::new(version);
        let cache = Cache::open(image.clone(), folder.path(), bytes_max).unwrap();
        for round in 0..2 {
            for block in 0..20 {
                check(&cache, &image, block * BLOCK, BLOCK as u32).await;
                assert!(used() <= bytes_max, "round {round}, block {block}: {}", used());
            }
        }
    }
    let image = Image::new(9);
    let cache = Cache::open(image.clone(), folder.path(), 0).unwrap();
    check(&cache, &image, 0, BLOCK as u32).await;
    check(&cache, &image, 0, BLOCK as u32).await;
    assert_eq!(image.asked().len(), 2, "no room, no cache");
}
