use super::*;
use std::time::Duration;
use tokio::sync::Semaphore;

/// Serves bytes that depend on their offset, after a delay, and remembers what was asked.
#[derive(Debug)]
struct Far {
    size: u64,
    delay: Duration,
    asked: Mutex<Vec<(u64, u32)>>,
    failures: Semaphore,
}

impl Far {
    fn new(size: u64) -> Arc<Self> {
        let delay = Duration::from_millis(20);
        Arc::new(Self { size, delay, asked: Mutex::default(), failures: Semaphore::new(0) })
    }

    fn asked(&self) -> Vec<(u64, u32)> {
        self.asked.lock().unwrap().clone()
    }
}

fn byte(at: u64) -> u8 {
    (at ^ (at >> 9)) as u8
}

impl Export for Far {
    fn size(&self) -> u64 {
        self.size
    }

    fn read(&self, offset: u64, length: u32) -> Verb<'_, Content> {
        Box::pin(async move {
            self.asked.lock().unwrap().push((offset, length));
            tokio::time::sleep(self.delay).await;
            if let Ok(permit) = self.failures.try_acquire() {
                permit.forget();
                return Err(Error::Stopping);
            }
            let bytes: Vec<u8> = (offset..offset + u64::from(length)).map(byte).collect();
            Ok(Piece::Bytes(bytes.into()).into())
        })
    }
}

async fn check(export: &ReadAhead, offset: u64, length: u32) {
    let bytes = export.read(offset, length).await.unwrap().into_bytes().await.unwrap();
    assert_eq!(bytes.len(), length as usize);
    assert!((offset..).zip(&bytes[..]).all(|(at, is)| byte(at) == *is), "wrong bytes at {offset}");
}

fn limits() -> ReadAheadLimits {
    ReadAheadLimits { chunk_bytes: 4096, window_bytes_max: 64 << 10, held_bytes_max: 128 << 10 }
}

#[tokio::test(start_paused = true)]
async fn a_sequential_reader_pays_few_round_trips() {
    let far = Far::new(1 << 20);
    let export = ReadAhead::new(far.clone(), limits());
    let begin = tokio::time::Instant::now();
    for at in 0..1024_u64 {
        check(&export, at * 1024, 1024).await;
    }
    // 1024 round trips without; the line holds 16 chunks, so 16 and a few to get going.
    assert!(begin.elapsed() < far.delay * 30, "{:?}", begin.elapsed());
    let asked = far.asked();
    let fetched: u64 = asked.iter().map(|(_, length)| u64::from(*length)).sum();
    assert_eq!(fetched, 1 << 20, "each byte is fetched once");
    assert_eq!(export.lock().held_bytes, 0, "what was read is not kept");
}

#[tokio::test(start_paused = true)]
async fn a_random_reader_gets_exactly_its_blocks() {
    let far = Far::new(1 << 30);
    let export = ReadAhead::new(far.clone(), limits());
    let mut wanted = Vec::new();
    for step in 1..100_u64 {
        let offset = step.wrapping_mul(0x9e37_79b9_7f4a_7c15) % (1 << 30) / 4096 * 4096;
        check(&export, offset, 4096).await;
        wanted.push((offset, 4096));
    }
    assert_eq!(far.asked(), wanted);
}

#[tokio::test(start_paused = true)]
async fn many_requests_in_flight_share_their_chunks() {
    let far = Far::new(1 << 20);
    let export = ReadAhead::new(far.clone(), limits());
    let reads = (0..64_u64).map(|at| check(&export, at * 512, 512));
    futures_util::future::join_all(reads).await;
    assert!(far.asked().len() < 30, "{:?}", far.asked());
}

#[tokio::test(start_paused = true)]
async fn no_more_is_held_than_allowed() {
    let far = Far::new(1 << 24);
    let export = ReadAhead::new(far.clone(), limits());
    for step in 0..200_u64 {
        for reader in 0..20 {
            check(&export, (reader << 19) + step * 1024, 1024).await;
            assert!(export.lock().held_bytes <= limits().held_bytes_max);
        }
    }
    export.prefetch(15 << 20, 1 << 20).await.unwrap();
    assert!(export.lock().held_bytes <= limits().held_bytes_max);
}

#[tokio::test(start_paused = true)]
async fn a_fetch_that_failed_unseen_is_tried_again_for_the_reader() {
    let far = Far::new(1 << 20);
    let export = ReadAhead::new(far.clone(), limits());
    export.prefetch(0, 8192).await.unwrap();
    far.failures.add_permits(2);
    tokio::time::sleep(far.delay * 2).await;
    assert_eq!(far.failures.available_permits(), 0);
    check(&export, 0, 8192).await;
}

#[tokio::test(start_paused = true)]
async fn a_failure_reaches_those_who_wait_and_is_not_kept() {
    let far = Far::new(1 << 20);
    let export = ReadAhead::new(far.clone(), limits());
    far.failures.add_permits(1);
    assert!(export.read(0, 512).await.is_err());
    check(&export, 0, 512).await;
    assert_eq!(export.counts().hits, 1);
}
