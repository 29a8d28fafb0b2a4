//! File work off the network's threads.

use crate::error::ErrorKind;

/// Runs `work` on the blocking pool. A panic in it goes on in the caller.
pub(crate) async fn run<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ErrorKind> + Send + 'static,
) -> Result<T, ErrorKind> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        Err(_) => Err(ErrorKind::Cancelled),
    }
}
