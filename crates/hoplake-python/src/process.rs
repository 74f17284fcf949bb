//! The threads of this process, which a child of it does not have.

use std::{
    ffi::{c_int, c_void},
    io,
    mem::ManuallyDrop,
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
/// sentence; the exception of a signal's handler is raised by the interpreter once the caller has returned to it.
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
        if on_main_thread && let Some(Err(exception)) = Python::try_attach(|py| py.check_signals()) {
            task.abort();
            raise_later(exception);
            return Err("interrupted".into());
        }
    }
}

/// The exception of a signal's handler, until the interpreter raises it.
static HANDLED: Mutex<Option<PyErr>> = Mutex::new(None);

/// Has the main thread raise an exception as soon as it interprets code again. Consumers of Arrow's streams know errors only as texts.
fn raise_later(exception: PyErr) {
    *lock(&HANDLED) = Some(exception);
    // SAFETY: it may be called from any thread, and the function that it schedules is run with the interpreter lock, as that asks for.
    #[expect(unsafe_code, reason = "a function of the interpreter's C interface")]
    unsafe {
        pyo3::ffi::Py_AddPendingCall(Some(raise_handled), std::ptr::null_mut());
    }
}

extern "C" fn raise_handled(_: *mut c_void) -> c_int {
    let Some(exception) = lock(&HANDLED).take() else { return 0 };
    Python::attach(|py| exception.restore(py));
    -1
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

/// Locks what is replaced as a whole, so that a panic elsewhere leaves it valid.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A value that is dropped only in the process that made it. In a child the locks within may be held by threads that are not there.
pub struct OfProcess<T> {
    value: ManuallyDrop<T>,
    process: u32,
}

impl<T> OfProcess<T> {
    pub fn new(value: T) -> Self {
        Self { value: ManuallyDrop::new(value), process: std::process::id() }
    }

    /// The value, in the process that made it.
    pub fn get(&self) -> Option<&T> {
        (self.process == std::process::id()).then_some(&*self.value)
    }
}

impl<T> Drop for OfProcess<T> {
    fn drop(&mut self) {
        if self.process == std::process::id() {
            // SAFETY: it is dropped here, once.
            #[expect(unsafe_code, reason = "a value that is not always dropped")]
            unsafe {
                ManuallyDrop::drop(&mut self.value)
            };
        }
    }
}

static MAIN_THREAD: OnceLock<ThreadId> = OnceLock::new();

/// Remembers that this thread is the one that imported the module, which is the main thread unless the program does something unusual.
pub fn note_main_thread() {
    let _ = MAIN_THREAD.set(std::thread::current().id());
}
