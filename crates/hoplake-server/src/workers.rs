//! The threads that queries run on, apart from those that accept connections and answer probes.
//!
//! A query may be busy for milliseconds at a time, and there may be as many as there are processors. On the threads of
//! the connections, probes would wait for them, and so would the signal that ends the server. So everything of a
//! call, from decoding its request to encoding its answer, is a task of a runtime of its own. The connection holds the
//! task and aborts it by dropping it; work gives way every few milliseconds, so it ends soon after.

use std::{future::Future, io};

use hoplake::gremlin::mark_worker_thread;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio_util::task::AbortOnDropHandle;

/// A runtime for queries.
#[derive(Debug)]
pub(crate) struct Workers(Option<Runtime>, Handle);

impl Workers {
    /// The name and the number of threads.
    ///
    /// # Errors
    /// The system's, if it has none left.
    pub(crate) fn new(name: &str, threads: usize) -> io::Result<Self> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(threads)
            .thread_name(name)
            .on_thread_start(mark_worker_thread)
            .enable_all()
            .build()?;
        // A handle works without the runtime, which `drop` takes out; a task that begins after that is cancelled at once.
        let handle = runtime.handle().clone();
        Ok(Self(Some(runtime), handle))
    }

    /// Begins work there. Dropping what is returned ends it.
    pub(crate) fn begin<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> AbortOnDropHandle<T> {
        // A plain `JoinHandle` would detach the task, and a query would run on after its client has disconnected.
        AbortOnDropHandle::new(self.1.spawn(work))
    }

    /// Where tasks begin that nothing holds.
    pub(crate) fn handle(&self) -> &Handle {
        &self.1
    }

    /// Tasks that have not ended.
    pub(crate) fn tasks(&self) -> usize {
        self.1.metrics().num_alive_tasks()
    }
}

impl Drop for Workers {
    /// Running tasks are dropped at their next await. This does not wait for them: the last holder may be one of the
    /// tasks themselves, where waiting is not allowed.
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, atomic::AtomicBool, atomic::Ordering};

    use super::*;

    #[tokio::test]
    async fn work_ends_with_what_holds_it() {
        let workers = Workers::new("test", 1).unwrap();
        assert_eq!(workers.begin(async { 7 }).await.unwrap(), 7);
        // The result arrives before the task has ended.
        while workers.tasks() > 0 {
            tokio::task::yield_now().await;
        }
        let held = workers.begin(std::future::pending::<()>());
        assert_eq!(workers.tasks(), 1);
        drop(held);
        while workers.tasks() > 0 {
            tokio::task::yield_now().await;
        }
    }

    /// The last to hold the threads may be a task on one of them.
    #[test]
    fn a_task_may_end_its_own_threads() {
        let workers = Arc::new(Workers::new("test", 1).unwrap());
        let own = workers.clone();
        let ended = Arc::new(AtomicBool::new(false));
        let told = ended.clone();
        let (go, wait) = tokio::sync::oneshot::channel::<()>();
        std::mem::forget(workers.begin(async move {
            wait.await.ok();
            drop(own);
            told.store(true, Ordering::SeqCst);
        }));
        drop(workers);
        go.send(()).unwrap();
        while !ended.load(Ordering::SeqCst) {
            std::thread::yield_now();
        }
    }
}
