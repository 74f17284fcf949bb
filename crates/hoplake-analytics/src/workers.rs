//! The threads that compute.

use std::sync::Arc;

use futures::channel::oneshot;
use hoplake_engine::EngineError;
use hoplake_storage::{PerProcess, QueryContext};
use rayon::{ThreadPool, ThreadPoolBuilder};

/// The threads of [`Workers::default`], one for each processor. Not rayon's global pool, whose threads a child of this process would wait for.
static SHARED: PerProcess<ThreadPool> = PerProcess::new();

/// Threads for processor work, which async code waits for without being blocked: those that all computations of the process share, or a
/// pool of one's own.
#[derive(Debug, Clone, Default)]
pub struct Workers(Option<Arc<ThreadPool>>);

impl Workers {
    /// The threads of a pool.
    pub fn new(pool: Arc<ThreadPool>) -> Self {
        Self(Some(pool))
    }

    /// How many there are.
    pub fn threads(&self) -> usize {
        self.pool().map_or(1, ThreadPool::current_num_threads)
    }

    fn pool(&self) -> Result<&ThreadPool, EngineError> {
        if let Some(pool) = &self.0 {
            return Ok(pool);
        }
        let failed = |error| EngineError::Internal(format!("could not start the threads of computations: {error}"));
        let build = || ThreadPoolBuilder::new().thread_name(|_| "hoplake-compute".into()).build();
        SHARED.get_or_try_init(build).map_err(failed)
    }

    /// Runs work of a query on them; parallel iterators within it use all of them. The work gets the context of the query, whose
    /// [`check_time`](QueryContext::check_time) fails once the future that this returns was dropped: work that looks at the deadline
    /// also ends with its caller.
    ///
    /// # Errors
    /// [`EngineError::Internal`] if it panics, or if its threads cannot be started.
    pub async fn run<T: Send + 'static>(
        &self,
        context: &QueryContext,
        work: impl FnOnce(&QueryContext) -> T + Send + 'static,
    ) -> Result<T, EngineError> {
        let (answer, answered) = oneshot::channel();
        let (context, _cancel) = context.cancellable();
        let work = move || {
            // Dropped while it waited for a thread.
            if answer.is_canceled() {
                return;
            }
            let work = std::panic::AssertUnwindSafe(|| work(&context));
            // Nobody waits any more if the computation was dropped.
            let _ = answer.send(std::panic::catch_unwind(work));
        };
        self.pool()?.spawn(work);
        match answered.await {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(_)) | Err(_) => Err(EngineError::Internal("a computation panicked".into())),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::mpsc, time::Duration};

    use futures::FutureExt;
    use hoplake_storage::StorageError;

    use super::*;

    fn one_thread() -> Workers {
        Workers::new(Arc::new(rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap()))
    }

    #[tokio::test]
    async fn work_ends_with_its_caller() {
        let workers = one_thread();
        let query = QueryContext::new();
        let (begun, begins) = mpsc::channel();
        let (ended, end) = mpsc::channel();
        let spin = move |context: &QueryContext| {
            begun.send(()).unwrap();
            let why = loop {
                if let Err(why) = context.check_time() {
                    break why;
                }
            };
            ended.send(why).unwrap();
        };
        let mut running = Box::pin(workers.run(&query, spin));
        assert!(running.as_mut().now_or_never().is_none());
        begins.recv().unwrap();
        drop(running);
        let why = end.recv_timeout(Duration::from_secs(60)).expect("the work ends");
        assert!(matches!(why, StorageError::Cancelled), "{why}");
        // The pool is free, and the query goes on.
        let next = workers.run(&query, |context| context.check_time().is_ok()).await.unwrap();
        assert!(next && query.check_time().is_ok());
    }

    #[tokio::test]
    async fn work_that_waits_for_a_thread_does_not_begin_without_its_caller() {
        let workers = one_thread();
        let query = QueryContext::new();
        let (go, wait) = mpsc::channel::<()>();
        let mut first = Box::pin(workers.run(&query, move |_| wait.recv().unwrap()));
        assert!(first.as_mut().now_or_never().is_none());
        let (begun, begins) = mpsc::channel();
        let mut second = Box::pin(workers.run(&query, move |_| begun.send(()).unwrap()));
        assert!(second.as_mut().now_or_never().is_none());
        drop(second);
        go.send(()).unwrap();
        first.await.unwrap();
        // Its end of the channel was dropped without a word.
        assert!(begins.recv().is_err());
    }

    #[tokio::test]
    async fn a_panic_is_an_error() {
        let outcome = one_thread().run(&QueryContext::new(), |_| panic!("on purpose")).await;
        assert!(matches!(outcome, Err::<(), _>(EngineError::Internal(_))));
    }
}
