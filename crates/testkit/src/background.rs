//! A server's own thread and runtime, so that any test can use it and dropping it ends it.

use std::future::Future;
use std::thread::JoinHandle;
use tokio::sync::oneshot;

/// A thread that runs one future until dropped. Everything that future spawned ends with it.
#[derive(Debug)]
pub(crate) struct Background {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Background {
    pub(crate) fn run<F>(name: &str, main: impl FnOnce() -> F + Send + 'static) -> Self
    where
        F: Future<Output = ()>,
    {
        let (stop, stopped) = oneshot::channel::<()>();
        let thread = std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread()
                    .enable_all()
                    .build()
                    .expect("a runtime can be built");
                runtime.block_on(async move {
                    tokio::select! {
                        () = main() => {}
                        _ = stopped => {}
                    }
                });
            })
            .expect("a thread can be started");
        Self { stop: Some(stop), thread: Some(thread) }
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic in the server is reported by its own message; the test goes on to fail.
            let _ = thread.join();
        }
    }
}
