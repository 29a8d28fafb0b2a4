//! All origins together: one pool a process.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use trunkline_transport::{Origin, OriginSettings};

use crate::budget::Budget;
use crate::limits::Limits;
use crate::origin_pool::OriginPool;
use crate::stats::Stats;

/// How often unused connections are looked through.
const SWEEP_INTERVAL: Duration = Duration::from_secs(5);

/// The pool; clones share it. It closes when the last clone is dropped, or by
/// [`close`](Self::close).
#[derive(Clone, Debug)]
pub struct Pool {
    inner: Arc<Inner>,
}

#[derive(Debug)]
pub(crate) struct Inner {
    limits: Limits,
    budget: Arc<Budget>,
    origins: Mutex<Origins>,
    /// Whether a sweeper runs.
    sweeping: AtomicBool,
}

#[derive(Debug, Default)]
struct Origins {
    by_origin: HashMap<Origin, Arc<OriginPool>>,
    closed: bool,
}

impl Pool {
    /// An empty pool.
    pub fn new(limits: Limits) -> Self {
        let budget = Budget::new(limits.connections_in_all);
        let sweeping = AtomicBool::new(false);
        Self { inner: Arc::new(Inner { limits, budget, origins: Mutex::default(), sweeping }) }
    }

    /// The connections of an origin; its settings are built on first use only.
    ///
    /// Two requests share a connection exactly when scheme, host and port are equal; settings
    /// belong to the origin for the pool's life.
    ///
    /// # Errors
    /// What `settings` returns.
    pub fn origin<E>(
        &self,
        origin: &Origin,
        settings: impl FnOnce() -> Result<OriginSettings, E>,
    ) -> Result<Arc<OriginPool>, E> {
        sweep(&self.inner);
        let mut origins = self.inner.lock();
        if let Some(found) = origins.by_origin.get(origin) {
            return Ok(Arc::clone(found));
        }
        let made = OriginPool::new(
            origin.clone(),
            settings()?,
            self.inner.limits,
            Arc::clone(&self.inner.budget),
            Arc::downgrade(&self.inner),
        );
        if origins.closed {
            made.close();
        }
        origins.by_origin.insert(origin.clone(), Arc::clone(&made));
        Ok(made)
    }

    /// The limits it was made with.
    pub fn limits(&self) -> Limits {
        self.inner.limits
    }

    /// Counts of each origin, ordered by origin.
    pub fn stats(&self) -> Vec<(Origin, Stats)> {
        let origins = self.inner.lock();
        let mut stats: Vec<_> = origins
            .by_origin
            .iter()
            .map(|(origin, connections)| (origin.clone(), connections.stats()))
            .collect();
        stats.sort_by(|(one, _), (other, _)| one.cmp(other));
        stats
    }

    /// Fails what waits, closes what idles; exchanges under way may end.
    pub fn close(&self) {
        self.inner.close();
    }
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, Origins> {
        self.origins.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn all(&self) -> Vec<Arc<OriginPool>> {
        self.lock().by_origin.values().cloned().collect()
    }

    /// Closes an unused connection, of `for_origin` only when no other origin has one.
    pub(crate) fn evict_idle(&self, for_origin: &Arc<OriginPool>) -> bool {
        let others = self.all();
        let mut others = others.iter().filter(|origin| !Arc::ptr_eq(origin, for_origin));
        others.any(|origin| origin.evict_idle()) || for_origin.evict_idle_in_need()
    }

    fn close(&self) {
        self.lock().closed = true;
        for origin in self.all() {
            origin.close();
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let origins = self.origins.get_mut().unwrap_or_else(PoisonError::into_inner);
        for origin in origins.by_origin.values() {
            origin.close();
        }
    }
}

/// Starts the sweeper unless one runs or there is no runtime to run it; it ends with the pool.
fn sweep(pool: &Arc<Inner>) {
    if pool.sweeping.load(Ordering::Relaxed) {
        return;
    }
    let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
    if pool.sweeping.swap(true, Ordering::Relaxed) {
        return;
    }
    let sweeper = Sweeper(Arc::downgrade(pool));
    runtime.spawn(async move {
        loop {
            tokio::time::sleep(SWEEP_INTERVAL).await;
            let Some(pool) = sweeper.0.upgrade() else { return };
            let now = Instant::now();
            for origin in pool.all() {
                origin.expire(now);
            }
        }
    });
}

/// Lets another runtime sweep once this one has ended.
struct Sweeper(Weak<Inner>);

impl Drop for Sweeper {
    fn drop(&mut self) {
        if let Some(pool) = self.0.upgrade() {
            pool.sweeping.store(false, Ordering::Relaxed);
        }
    }
}
