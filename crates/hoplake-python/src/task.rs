//! Calls under way.
//!
//! Python waits for a call in short steps, between which the interpreter handles signals: see `python/hoplake/_waiting.py`.

use std::{
    panic::AssertUnwindSafe,
    sync::{Arc, Condvar, Mutex, PoisonError},
    time::Duration,
};

use futures::FutureExt;
use hoplake::Error;
use pyo3::{exceptions::PyRuntimeError, prelude::*};
use tokio::sync::watch;

use crate::{
    errors,
    process::{self, lock},
};

/// Makes the answer an object of Python.
type Finish = Box<dyn for<'py> FnOnce(Python<'py>) -> PyResult<Bound<'py, PyAny>> + Send>;

enum State {
    Running,
    Done(Result<Finish, Failed>),
    /// The result was taken, or the call was cancelled and its future dropped.
    Over,
}

enum Failed {
    Error(Error),
    Panic(String),
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    /// Called once the call is done.
    callbacks: Mutex<Vec<Py<PyAny>>>,
    progress: Progress,
}

/// How far a call is, as it reports itself.
#[derive(Clone, Default)]
pub struct Progress(Arc<Mutex<Option<(String, u64, Option<u64>)>>>);

impl Progress {
    /// Reports a step, how much of it is done, and of how much, if that is known.
    pub fn report(&self, step: impl Into<String>, done: u64, of: Option<u64>) {
        *lock(&self.0) = Some((step.into(), done, of));
    }
}

/// Whether a call is to end early: ready once its task is cancelled.
#[derive(Clone)]
pub struct Stop(watch::Receiver<bool>);

impl Stop {
    /// Of work that nothing cancels.
    pub fn never() -> Self {
        Self(watch::channel(false).1)
    }

    /// Whether the task was cancelled.
    pub fn is_requested(&self) -> bool {
        *self.0.borrow()
    }

    /// Ends work that was cancelled, with an exception that no one gets.
    pub fn check(&self) -> PyResult<()> {
        if self.is_requested() {
            return Err(PyRuntimeError::new_err("the call was cancelled"));
        }
        Ok(())
    }

    /// Waits until the task is cancelled.
    pub async fn requested(mut self) {
        if self.0.wait_for(|stop| *stop).await.is_err() {
            // The task was dropped, and nobody can cancel it.
            std::future::pending::<()>().await;
        }
    }
}

/// A call under way.
#[pyclass(frozen, module = "hoplake._hoplake")]
pub struct Task {
    shared: Arc<Shared>,
    stop: watch::Sender<bool>,
    /// Whether the call puts things in order when it is cancelled.
    is_graceful: bool,
}

impl Task {
    /// Runs a call on the runtime. When the task is cancelled its future is dropped.
    pub fn spawn<T: Send + 'static>(
        call: impl Future<Output = Result<T, Error>> + Send + 'static,
        finish: impl for<'py> FnOnce(Python<'py>, T) -> PyResult<Bound<'py, PyAny>> + Send + 'static,
    ) -> PyResult<Self> {
        let mut task = Self::stoppable(
            |_, stop| async move {
                tokio::select! {
                    answer = call => answer.map(Some),
                    () = stop.requested() => Ok(None),
                }
            },
            finish,
        )?;
        task.is_graceful = false;
        Ok(task)
    }

    /// Runs work on a thread that may block and may take the interpreter lock. Work that takes long asks from time to time whether the task
    /// was cancelled; its caller waits no longer then, whatever the work does.
    pub fn blocking<T: Send + 'static>(
        work: impl FnOnce(&Stop) -> PyResult<T> + Send + 'static,
        finish: impl for<'py> FnOnce(Python<'py>, T) -> PyResult<Bound<'py, PyAny>> + Send + 'static,
    ) -> PyResult<Self> {
        let mut task = Self::stoppable(
            |_, stop| async move {
                let for_work = stop.clone();
                let work = tokio::task::spawn_blocking(move || work(&for_work));
                tokio::select! {
                    done = work => match done {
                        Ok(done) => Ok(Some(done)),
                        Err(panic) => std::panic::resume_unwind(panic.into_panic()),
                    },
                    () = stop.requested() => Ok(None),
                }
            },
            |py, done: PyResult<T>| finish(py, done?),
        )?;
        task.is_graceful = false;
        Ok(task)
    }

    /// Runs a call that reports its progress, and ends by itself when the task is cancelled: then it returns `None`.
    pub fn stoppable<T: Send + 'static, C: Future<Output = Result<Option<T>, Error>> + Send + 'static>(
        call: impl FnOnce(Progress, Stop) -> C,
        finish: impl for<'py> FnOnce(Python<'py>, T) -> PyResult<Bound<'py, PyAny>> + Send + 'static,
    ) -> PyResult<Self> {
        let runtime = process::runtime()
            .map_err(|error| PyRuntimeError::new_err(format!("could not start the threads of a runtime: {error}")))?;
        let progress = Progress::default();
        let shared = Arc::new(Shared {
            state: Mutex::new(State::Running),
            changed: Condvar::new(),
            callbacks: Mutex::default(),
            progress: progress.clone(),
        });
        let (stop, stopped) = watch::channel(false);
        let call = AssertUnwindSafe(call(progress, Stop(stopped))).catch_unwind();
        let end = shared.clone();
        runtime.spawn(async move {
            let state = match call.await {
                Ok(Ok(Some(answer))) => State::Done(Ok(Box::new(move |py| finish(py, answer)))),
                Ok(Ok(None)) => State::Over,
                Ok(Err(error)) => State::Done(Err(Failed::Error(error))),
                Err(panic) => State::Done(Err(Failed::Panic(panic_text(&*panic)))),
            };
            end.finish(state);
        });
        Ok(Self { shared, stop, is_graceful: true })
    }
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "a panic".to_owned())
}

impl Shared {
    fn finish(&self, state: State) {
        *lock(&self.state) = state;
        self.changed.notify_all();
        let callbacks = std::mem::take(&mut *lock(&self.callbacks));
        if callbacks.is_empty() {
            return;
        }
        let tell = move || {
            // None while the interpreter shuts down: nothing waits for the task any more.
            Python::try_attach(|py| {
                for callback in callbacks {
                    if let Err(error) = callback.call0(py) {
                        error.write_unraisable(py, None);
                    }
                }
            });
        };
        // Not on a thread that runs calls: whoever has the interpreter lock may be waiting for one of them.
        tokio::task::spawn_blocking(tell);
    }

    fn is_running(&self) -> bool {
        matches!(*lock(&self.state), State::Running)
    }
}

#[pymethods]
impl Task {
    /// Waits up to a number of seconds for the call to end, and returns whether it has ended.
    fn wait(&self, py: Python<'_>, seconds: f64) -> bool {
        let timeout = Duration::try_from_secs_f64(seconds).unwrap_or_default();
        py.detach(|| {
            let state = lock(&self.shared.state);
            let running = |state: &mut State| matches!(state, State::Running);
            let waited = self.shared.changed.wait_timeout_while(state, timeout, running);
            !matches!(*waited.unwrap_or_else(PoisonError::into_inner).0, State::Running)
        })
    }

    /// The result of a call that has ended, or its exception. Once.
    fn result<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let state = {
            let mut state = lock(&self.shared.state);
            match *state {
                State::Running => None,
                State::Done(_) | State::Over => Some(std::mem::replace(&mut *state, State::Over)),
            }
        };
        match state {
            Some(State::Done(Ok(finish))) => finish(py),
            Some(State::Done(Err(Failed::Error(error)))) => Err(errors::raised(py, &error)),
            Some(State::Done(Err(Failed::Panic(message)))) => Err(errors::panicked(py, &message)),
            Some(State::Over) => Err(PyRuntimeError::new_err("the call was cancelled, or its result was taken")),
            Some(State::Running) | None => Err(PyRuntimeError::new_err("the call has not ended")),
        }
    }

    /// Ends the call, and returns whether it puts things in order first. What it holds is released soon after.
    fn cancel(&self) -> bool {
        let _ = self.stop.send(true);
        self.is_graceful
    }

    /// The step that the call is in, how much of it is done, and of how much, if it reports that.
    fn progress(&self) -> Option<(String, u64, Option<u64>)> {
        lock(&self.shared.progress.0).clone()
    }

    /// Has a function called, on a thread of the runtime, once the call has ended; at once if it has.
    fn on_done(&self, py: Python<'_>, callback: Py<PyAny>) -> PyResult<()> {
        // Under the lock of the state, so that the end of the call comes either before or after both.
        {
            let state = lock(&self.shared.state);
            if matches!(*state, State::Running) {
                lock(&self.shared.callbacks).push(callback);
                return Ok(());
            }
        }
        callback.call0(py).map(drop)
    }

    /// Whether the call has ended.
    fn done(&self) -> bool {
        !self.shared.is_running()
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        // Who has no task any more cannot take its result.
        let _ = self.stop.send(true);
    }
}
