use super::*;
use crate::file::FileExport;
use proptest::prelude::*;

const SIZE: u64 = 20 * 4096 + 100;

/// A base image of its own kind of bytes.
fn base(folder: &Path) -> (Arc<dyn Export>, Vec<u8>) {
    let bytes: Vec<u8> = (0..SIZE).map(|at| (at % 251) as u8).collect();
    let path = folder.join("base");
    if !path.exists() {
        std::fs::write(&path, &bytes).unwrap();
    }
    (Arc::new(FileExport::open(&path).unwrap()), bytes)
}

async fn whole(overlay: &Overlay) -> Bytes {
    overlay.read(0, SIZE as u32).await.unwrap().into_bytes().await.unwrap()
}

const UNMAP: Zeroing = Zeroing { may_unmap: true, only_fast: false };

#[tokio::test]
async fn what_was_flushed_is_there_again_and_what_was_not_is_the_bases() {
    let folder = tempfile::tempdir().unwrap();
    let (base, mut model) = base(folder.path());
    let path = folder.path().join("overlay");
    let overlay = Overlay::open(Arc::clone(&base), &path).unwrap();
    overlay.write(5000, Bytes::from_static(b"flushed")).await.unwrap();
    overlay.zero(SIZE - 200, 200, UNMAP).await.unwrap();
    overlay.flush().await.unwrap();
    overlay.write(9 * 4096, vec![7; 4096].into()).await.unwrap();
    // Dropped without a flush, as by kill -9: the bit of the last write never reached the file.
    drop(overlay);
    let overlay = Overlay::open(Arc::clone(&base), &path).unwrap();
    model[5000..5007].copy_from_slice(b"flushed");
    model[(SIZE - 200) as usize..].fill(0);
    assert!(whole(&overlay).await == model);
    assert!(matches!(Overlay::open(base, &path), Err(OverlayError::InUse { .. })));
}

#[tokio::test]
async fn other_bases_and_other_files_are_refused_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let (base, _) = base(folder.path());
    let path = folder.path().join("overlay");
    drop(Overlay::open(Arc::clone(&base), &path).unwrap());
    let other = folder.path().join("other");
    std::fs::write(&other, vec![1; SIZE as usize]).unwrap();
    let other_base: Arc<dyn Export> = Arc::new(FileExport::open(&other).unwrap());
    let opened = Overlay::open(other_base, &path);
    assert!(matches!(opened, Err(OverlayError::OtherBase { .. })));
    let opened = Overlay::open(Arc::clone(&base), &other);
    assert!(matches!(opened, Err(OverlayError::NotAnOverlay { .. })));
    assert_eq!(std::fs::read(&other).unwrap(), vec![1; SIZE as usize]);
    // A header with one bit flipped vouches for nothing.
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[20] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    assert!(matches!(Overlay::open(base, &path), Err(OverlayError::NotAnOverlay { .. })));
}

#[tokio::test]
async fn a_fast_zero_that_needs_the_base_is_refused_unchanged() {
    let folder = tempfile::tempdir().unwrap();
    let (base, model) = base(folder.path());
    let overlay = Overlay::temporary(base).unwrap();
    let fast = Zeroing { may_unmap: true, only_fast: true };
    assert!(matches!(overlay.zero(10, 10, fast).await, Err(Error::NotFast)));
    assert!(whole(&overlay).await == model);
    overlay.zero(4096, 8192, fast).await.unwrap();
    let extents = overlay.extents(0, SIZE).await.unwrap();
    assert_eq!(extents.iter().map(|extent| extent.length).sum::<u64>(), SIZE);
    assert_eq!(extents[1].length, 8192);
}

#[derive(Clone, Debug)]
enum Act {
    Write { offset: u64, length: u64, byte: u8 },
    Zero { offset: u64, length: u64, may_unmap: bool },
    Flush,
    Reopen,
}

fn act() -> impl Strategy<Value = Act> {
    let range =
        (0..SIZE - 1).prop_flat_map(|offset| (Just(offset), 1..=(SIZE - offset).min(20_000)));
    prop_oneof![
        4 => (range.clone(), 1_u8..).prop_map(|((offset, length), byte)| {
            Act::Write { offset, length, byte }
        }),
        2 => (range, any::<bool>()).prop_map(|((offset, length), may_unmap)| {
            Act::Zero { offset, length, may_unmap }
        }),
        1 => Just(Act::Flush),
        1 => Just(Act::Reopen),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn it_behaves_as_a_disk(acts in proptest::collection::vec(act(), 1..25)) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let folder = tempfile::tempdir().unwrap();
            let (base, mut model) = base(folder.path());
            let path = folder.path().join("overlay");
            let mut overlay = Overlay::open(Arc::clone(&base), &path).unwrap();
            for act in acts {
                match act {
                    Act::Write { offset, length, byte } => {
                        let bytes = vec![byte; length as usize];
                        model[offset as usize..][..bytes.len()].copy_from_slice(&bytes);
                        overlay.write(offset, bytes.into()).await.unwrap();
                    }
                    Act::Zero { offset, length, may_unmap } => {
                        model[offset as usize..][..length as usize].fill(0);
                        let how = Zeroing { may_unmap, only_fast: false };
                        overlay.zero(offset, length, how).await.unwrap();
                    }
                    Act::Flush => overlay.flush().await.unwrap(),
                    Act::Reopen => {
                        overlay.flush().await.unwrap();
                        drop(overlay);
                        overlay = Overlay::open(Arc::clone(&base), &path).unwrap();
                    }
                }
                assert!(whole(&overlay).await == model);
            }
            let extents = overlay.extents(0, SIZE).await.unwrap();
            let mut at = 0;
            for extent in extents {
                if extent.kind != crate::export::ExtentKind::Data {
                    assert!(model[at..][..extent.length as usize].iter().all(|byte| *byte == 0));
                }
                at += extent.length as usize;
            }
            assert_eq!(at as u64, SIZE);
        });
    }

    #[test]
    fn concurrent_writers_of_one_block_all_count(order in Just((0..64_u64).collect::<Vec<_>>()).prop_shuffle()) {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
        runtime.block_on(async {
            let folder = tempfile::tempdir().unwrap();
            let (base, mut model) = base(folder.path());
            let overlay = Overlay::temporary(base).unwrap();
            let writes = order.iter().map(|at| overlay.write(at * 100, vec![1; 50].into()));
            try_join_all(writes).await.unwrap();
            for at in 0..64 {
                model[at * 100..][..50].fill(1);
            }
            assert!(whole(&overlay).await == model);
        });
    }
}
