//! What belongs to one process, such as threads.
//!
//! Threads do not survive `fork`: a child has the memory of its parent, with a pool whose threads are not there. Programs in Python fork
//! often, for workers that load data.

use std::sync::OnceLock;

/// A value that each process makes for itself when it first needs it. A child of a process that has one never touches that one, not even to
/// drop it: locks within may be held by threads that the child does not have.
///
/// ```
/// use hoplake_storage::PerProcess;
///
/// static THREADS: PerProcess<usize> = PerProcess::new();
/// assert_eq!(THREADS.get_or_try_init(|| Ok::<_, ()>(2)), Ok(&2));
/// assert_eq!(THREADS.get_or_try_init(|| Ok::<_, ()>(3)), Ok(&2));
/// ```
#[derive(Debug)]
pub struct PerProcess<T>(OnceLock<Box<OfProcess<T>>>);

/// The value of one process, and those of its children. Not a lock around a map: a parent may fork while one of its threads holds a lock.
#[derive(Debug)]
struct OfProcess<T> {
    process: u32,
    value: T,
    children: PerProcess<T>,
}

impl<T> PerProcess<T> {
    /// No value yet.
    pub const fn new() -> Self {
        Self(OnceLock::new())
    }

    /// The value of this process. If two threads make it at once, one of them is kept.
    ///
    /// # Errors
    /// Those of `make`.
    pub fn get_or_try_init<E>(&self, make: impl FnOnce() -> Result<T, E>) -> Result<&T, E> {
        let process = std::process::id();
        let mut place = self;
        while let Some(known) = place.0.get() {
            if known.process == process {
                return Ok(&known.value);
            }
            place = &known.children;
        }
        let mut made = Box::new(OfProcess { process, value: make()?, children: Self::new() });
        loop {
            let set = place.0.set(made);
            let Some(known) = place.0.get() else { unreachable!("it was set, here or before") };
            match set {
                Err(mine) if known.process != process => {
                    made = mine;
                    place = &known.children;
                }
                _ => return Ok(&known.value),
            }
        }
    }
}

impl<T> Default for PerProcess<T> {
    fn default() -> Self {
        Self::new()
    }
}
