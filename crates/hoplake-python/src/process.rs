//! The threads of this process, which a child of it does not have.

use std::{
    io,
    panic::AssertUnwindSafe,
    sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError},
    thread::ThreadId,
    time::Duration,
};

use futures::FutureExt;
use hoplake::{PerProcess, compute::Workers};
use pyo3::prelude::*;
use tokio::runtime::{Builder, Runtime};

static RUNTIME: PerProcess<Runtime> = PerProcess::new();

/// The threads that run calls.
pub fn runtime() -> io::Result<&'static Runtime> {
    RUNTIME.get_or_try_init(|| Builder::new_multi_thread().thread_name("hoplake").enable_all().build())
}

/// The most threads that a call may ask for: more than any machine has processors, and few enough to start in a moment.
const THREADS_MAX: usize = 1_024;

/// A number of threads. The error is a sentence.
pub fn checked_threads(threads: usize) -> Result<usize, String> {
    match threads {
        1..=THREADS_MAX => Ok(threads),
        _ => Err(format!("threads has to be between 1 and {THREADS_MAX}")),
    }
}

/// The threads for a computation: the pool that all computations share, or a given number of threads. The error is a sentence.
pub fn workers(threads: Option<usize>) -> Result<Workers, String> {
    let Some(threads) = threads else { return Ok(Workers::default()) };
    let threads = checked_threads(threads)?;
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).thread_name(|_| "hoplake-compute".into()).build();
    pool.map(|pool| Workers::new(Arc::new(pool))).map_err(|error| format!("could not start {threads} threads: {error}"))
}

/// Waits for a call, in short steps between which the main thread looks for signals, as Python does between its instructions. The error is a
/// sentence; an interrupt is raised by the interpreter once the caller has returned to it.
pub fn wait_with_signals<T: Send + 'static>(call: impl Future<Output = T> + Send + 'static) -> Result<T, String> {
    let runtime = runtime().map_err(|error| format!("could not start the threads of a runtime: {error}"))?;
    let done = Arc::new(Answer { value: Mutex::new(None), changed: Condvar::new() });
    let answer = done.clone();
    let task = runtime.spawn(async move {
        let value = AssertUnwindSafe(call).catch_unwind().await;
        *lock(&answer.value) = Some(value.map_err(drop));
        answer.changed.notify_all();
    });
    let on_main_thread = MAIN_THREAD.get() == Some(&std::thread::current().id());
    loop {
        let ended = match on_main_thread {
            // Without the interpreter lock, if the consumer held it: other threads of Python go on meanwhile.
            true => Python::try_attach(|py| py.detach(|| done.wait())).unwrap_or_else(|| done.wait()),
            // Another thread may hold the lock while it waits for this one.
            false => done.wait(),
        };
        if ended {
            let value = lock(&done.value).take().and_then(Result::ok);
            return value.ok_or_else(|| "a bug in Hoplake: a call panicked".into());
        }
        if on_main_thread && Python::try_attach(|py| py.check_signals().is_err()) == Some(true) {
            task.abort();
            // SAFETY: it may be called from any thread, and needs nothing.
            #[expect(unsafe_code, reason = "a function of the interpreter's C interface")]
            unsafe {
                pyo3::ffi::PyErr_SetInterrupt();
            }
            return Err("interrupted".into());
        }
    }
}

/// The answer of a call, once it is there; an error if the call panicked.
struct Answer<T> {
    value: Mutex<Option<Result<T, ()>>>,
    changed: Condvar,
}

impl<T> Answer<T> {
    /// Waits a step, and returns whether the answer is there.
    fn wait(&self) -> bool {
        let value = lock(&self.value);
        let waited = self.changed.wait_timeout_while(value, Duration::from_millis(50), |value| value.is_none());
        waited.unwrap_or_else(PoisonError::into_inner).0.is_some()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

static MAIN_THREAD: OnceLock<ThreadId> = OnceLock::new();

/// Remembers that this thread is the one that imported the module, which is the main thread unless the program does something unusual.
pub fn note_main_thread() {
    let _ = MAIN_THREAD.set(std::thread::current().id());
}
