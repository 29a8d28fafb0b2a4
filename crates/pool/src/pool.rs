//! All origins together: one pool a process.

use std::collections::HashMap;
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
}

#[derive(Debug, Default)]
struct Origins {
    by_origin: HashMap<Origin, Arc<OriginPool>>,
    sweeping: bool,
    closed: bool,
}

impl Pool {
    /// An empty pool.
    pub fn new(limits: Limits) -> Self {
        let budget = Budget::new(limits.connections_in_all);
        Self { inner: Arc::new(Inner { limits, budget, origins: Mutex::default() }) }
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
        if !origins.sweeping {
            origins.sweeping = sweep(Arc::downgrade(&self.inner));
        }
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

    /// Closes an unused connection of any origin but `for_origin`.
    pub(crate) fn evict_idle(&self, for_origin: &Arc<OriginPool>) -> bool {
        self.all()
            .iter()
            .filter(|origin| !Arc::ptr_eq(origin, for_origin))
            .any(|origin| origin.evict_idle())
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

/// Starts the sweeper; it ends with the pool. Returns whether there is a runtime to run it.
fn sweep(pool: Weak<Inner>) -> bool {
    let Ok(runtime) = tokio::runtime::Handle::try_current() else { return false };
    runtime.spawn(async move {
        loop {
            tokio::time::sleep(SWEEP_INTERVAL).await;
            let Some(pool) = pool.upgrade() else { return };
            let now = Instant::now();
            for origin in pool.all() {
                origin.expire(now);
            }
        }
    });
    true
}
