//! One thread, one engine, one pool.

use std::{
    process,
    sync::{Arc, Mutex, PoisonError},
    thread::JoinHandle,
    time::Duration,
};

use tokio::{runtime::Handle, sync::oneshot};
use trunkline_pool::Stats;
use trunkline_proto::cran::rds::{self, Object};
use trunkline_transfer::Engine;

use crate::{
    download, indexes,
    job::{Job, Shared},
    message::{Request, RequestError, counts, list, strings},
    settings::Settings,
};

/// Threads for files, besides the one for the network.
const FILE_THREADS_MAX: usize = 4;

/// How long the end waits for file work that cannot be stopped.
const SHUTDOWN_WAIT: Duration = Duration::from_millis(200);

/// Owner of the transfers' thread and of the engine.
#[derive(Debug)]
pub struct Core {
    handle: Handle,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
    engine: Arc<EngineSlot>,
    /// The process that made it: threads do not survive a fork.
    process: u32,
}

/// The engine in use, and the settings it was made from.
#[derive(Debug, Default)]
struct EngineSlot(Mutex<Option<(Settings, Engine)>>);

impl EngineSlot {
    /// The engine for these settings; one for others is closed, once its transfers have ended.
    fn get(&self, settings: &Settings) -> Result<Engine, RequestError> {
        let mut slot = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, engine)) = &*slot
            && known == settings
        {
            return Ok(engine.clone());
        }
        let engine = Engine::new(settings.engine()?);
        if let Some((_, old)) = slot.replace((settings.clone(), engine.clone())) {
            old.close();
        }
        Ok(engine)
    }

    fn current(&self) -> Option<Engine> {
        let slot = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        slot.as_ref().map(|(_, engine)| engine.clone())
    }
}

impl Core {
    /// Starts the thread.
    ///
    /// # Errors
    /// What the system says when it has no thread to give.
    pub fn start() -> std::io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(FILE_THREADS_MAX)
            .build()?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::Builder::new().name("trunkline".to_owned()).spawn(move || {
            // An error means that the sender is gone, which is as good as a word.
            let _ = runtime.block_on(stopped);
            runtime.shutdown_timeout(SHUTDOWN_WAIT);
        })?;
        let (engine, process) = (Arc::default(), process::id());
        Ok(Self { handle, stop: Some(stop), thread: Some(thread), engine, process })
    }

    /// Whether this process made it; in a forked child it is of no use.
    #[must_use]
    pub fn is_ours(&self) -> bool {
        self.process == process::id()
    }

    /// Begins what a serialized request asks for.
    #[must_use]
    pub fn begin(&self, request: &[u8]) -> Job {
        let shared = Arc::new(Shared::default());
        if !self.is_ours() {
            shared.finish(failure("the connection pool belongs to the parent process"));
            return Job { shared, abort: None, reply: Vec::new() };
        }
        let request = Request::read(request);
        let (engine, there) = (Arc::clone(&self.engine), Arc::clone(&shared));
        let work = async move { perform(request?, &engine, &there).await };
        let there = Arc::clone(&shared);
        let work = self.handle.spawn(work);
        let abort = work.abort_handle();
        self.handle.spawn(async move {
            // A task of its own, so that a panic becomes a reply and R does not wait for ever.
            let reply = match work.await {
                Ok(Ok(reply)) => rds::write(&reply),
                Ok(Err(error)) => failure(&error.to_string()),
                Err(error) => failure(&format!("internal error: {error}")),
            };
            there.finish(reply);
        });
        Job { shared, abort: Some(abort), reply: Vec::new() }
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        let thread = self.thread.take();
        if !self.is_ours() {
            // The thread did not survive the fork; nothing of its state can be touched.
            std::mem::forget(thread);
            std::mem::forget(std::mem::take(&mut self.engine));
            std::mem::forget(self.stop.take());
            return;
        }
        if let Some(engine) = self.engine.current() {
            engine.close();
        }
        drop(self.stop.take());
        if let Some(thread) = thread {
            // A thread that panicked has nothing left to clean up.
            let _ = thread.join();
        }
    }
}

async fn perform(
    request: Request,
    slot: &EngineSlot,
    shared: &Shared,
) -> Result<Object, RequestError> {
    match request.text("op")?.as_str() {
        "download" => {
            let engine = slot.get(&Settings::read(&request.part("settings")?))?;
            download::perform(&engine, &request, Arc::clone(&shared.progress)).await
        }
        "indexes" => {
            let engine = slot.get(&Settings::read(&request.part("settings")?))?;
            indexes::perform(&engine, &request).await
        }
        "stats" => Ok(stats(slot.current().as_ref())),
        other => Err(RequestError::Operation(other.to_owned())),
    }
}

/// Counters by origin, one row each.
fn stats(engine: Option<&Engine>) -> Object {
    let rows = engine.map(Engine::stats).unwrap_or_default();
    let column = |count: fn(&Stats) -> u64| counts(rows.iter().map(|(_, stats)| count(stats)));
    list([
        ("origin", strings(rows.iter().map(|(origin, _)| Some(origin.to_string())))),
        ("connections", column(|stats| stats.connections)),
        ("handshakes", column(|stats| stats.handshakes_full)),
        ("resumed", column(|stats| stats.handshakes_resumed)),
        ("requests", column(|stats| stats.requests)),
        ("received", column(|stats| stats.bytes_received)),
    ])
}

fn failure(message: &str) -> Vec<u8> {
    rds::write(&list([("error", strings([Some(message)]))]))
}
