//! The threads that compute.

use std::sync::Arc;

use futures::channel::oneshot;
use hoplake_engine::EngineError;
use rayon::ThreadPool;

/// Threads for processor work, which async code waits for without being blocked: rayon's global pool, or one of one's own.
#[derive(Debug, Clone, Default)]
pub struct Workers(Option<Arc<ThreadPool>>);

impl Workers {
    /// The threads of a pool.
    pub fn new(pool: Arc<ThreadPool>) -> Self {
        Self(Some(pool))
    }

    /// How many there are.
    pub fn threads(&self) -> usize {
        self.0.as_ref().map_or_else(rayon::current_num_threads, |pool| pool.current_num_threads())
    }

    /// Runs work on them; parallel iterators within it use all of them.
    ///
    /// # Errors
    /// [`EngineError::Internal`] if it panics.
    pub async fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Result<T, EngineError> {
        let (answer, answered) = oneshot::channel();
        let work = move || {
            // Nobody waits any more if the computation was dropped.
            let _ = answer.send(std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)));
        };
        match &self.0 {
            Some(pool) => pool.spawn(work),
            None => rayon::spawn(work),
        }
        match answered.await {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(_)) | Err(_) => Err(EngineError::Internal("a computation panicked".into())),
        }
    }
}
