//! Stacks for traversals within traversals, and threads for work that is long.
//!
//! A query may nest 128 levels deep, and a level takes tens of kilobytes of stack (hundreds without optimisation), where a thread of a server
//! has two megabytes. So both lowering and running go on on a new stack where the old one ends.

use std::{
    cell::Cell,
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

use tokio::runtime::{Handle, RuntimeFlavor};

/// The least that has to be left for a level.
const RED_ZONE: usize = 512 << 10;

/// A new stack.
const STACK: usize = 4 << 20;

/// Calls a function with enough stack for a level.
pub fn with_stack<T>(call: impl FnOnce() -> T) -> T {
    stacker::maybe_grow(RED_ZONE, STACK, call)
}

/// A future that is polled with enough stack for a level.
pub struct Deep<F>(pub F);

impl<F: Future + Unpin> Future for Deep<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let inner = &mut self.get_mut().0;
        with_stack(|| Pin::new(inner).poll(context))
    }
}

thread_local! {
    static IS_WORKER: Cell<bool> = const { Cell::new(false) };
}

/// Marks this thread as a worker of a multi-threaded tokio runtime; other workers take over while it blocks. A runtime calls it as its
/// `on_thread_start`. The mark is needed because a `LocalSet` cannot be told from a worker otherwise, and tokio panics in one.
///
/// A runtime also starts the threads of its blocking pool with it. A `current_thread` runtime on one of them is recognised. A `LocalSet`
/// that such a thread runs with the `Handle` of the multi-threaded runtime is not, and tokio panics there: run it on a thread of its own,
/// or in a `current_thread` runtime.
pub fn mark_worker_thread() {
    IS_WORKER.set(true);
}

/// Does long work, such as that of reading a text of a megabyte. On a [worker thread](mark_worker_thread) it does not hold up other tasks;
/// a thread that is not marked does the work itself, and the tasks that share it wait.
pub fn block_in_place_if<T>(is_long: bool, work: impl FnOnce() -> T) -> T {
    let is_multi_threaded = |handle: Handle| handle.runtime_flavor() == RuntimeFlavor::MultiThread;
    if is_long && IS_WORKER.get() && Handle::try_current().is_ok_and(is_multi_threaded) {
        return tokio::task::block_in_place(work);
    }
    work()
}
