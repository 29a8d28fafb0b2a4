//! Ctrl-C and SIGTERM: the first one stops in good order, the second one at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

/// Which signal came, if any.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stopped(Arc<AtomicU8>);

impl Stopped {
    /// The signal's number.
    pub(crate) fn get(&self) -> Option<u8> {
        match self.0.load(Ordering::Relaxed) {
            0 => None,
            number => Some(number),
        }
    }

    fn set(&self, number: u8) {
        self.0.store(number, Ordering::Relaxed);
    }
}

/// A future that is ready when the user wants to stop, and what tells which signal it was.
pub(crate) fn stop() -> (impl Future<Output = ()>, Stopped) {
    let stopped = Stopped::default();
    let told = stopped.clone();
    let stop = async move {
        told.set(wait().await);
        // From here on a second signal ends the process at once, whatever hangs.
        tokio::spawn(async {
            let number = wait().await;
            #[expect(clippy::exit, reason = "the user asked twice")]
            std::process::exit(128 + i32::from(number));
        });
    };
    (stop, stopped)
}

#[cfg(unix)]
async fn wait() -> u8 {
    use tokio::signal::unix::{SignalKind, signal};
    let (interrupt, terminate) = (signal(SignalKind::interrupt()), signal(SignalKind::terminate()));
    let (Ok(mut interrupt), Ok(mut terminate)) = (interrupt, terminate) else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = interrupt.recv() => 2,
        _ = terminate.recv() => 15,
    }
}

#[cfg(not(unix))]
async fn wait() -> u8 {
    match tokio::signal::ctrl_c().await {
        Ok(()) => 2,
        Err(_) => std::future::pending().await,
    }
}

/// SIGUSR1: the user wants to see the counters.
pub(crate) struct ReportWanted(#[cfg(unix)] Option<tokio::signal::unix::Signal>);

/// Starts to listen for SIGUSR1.
pub(crate) fn report_wanted() -> ReportWanted {
    #[cfg(unix)]
    let wanted = {
        use tokio::signal::unix::{SignalKind, signal};
        ReportWanted(signal(SignalKind::user_defined1()).ok())
    };
    #[cfg(not(unix))]
    let wanted = ReportWanted();
    wanted
}

impl ReportWanted {
    /// Ready each time the signal came.
    pub(crate) async fn next(&mut self) {
        #[cfg(unix)]
        if let Some(signal) = &mut self.0
            && signal.recv().await.is_some()
        {
            return;
        }
        std::future::pending::<()>().await;
    }
}
