//! A look at all rows before the load begins, for layouts that do not declare their content: labels, used
//! columns, whether keys are integers. Files are looked at in parallel.

use std::{
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use crate::IngestError;

/// Runs `look` on all items, on all cores; the results are in the order of the items.
pub(crate) fn at_all<T: Sync, R: Send>(
    items: &[T],
    look: impl Fn(&T) -> Result<R, IngestError> + Sync,
) -> Result<Vec<R>, IngestError> {
    let next = AtomicUsize::new(0);
    let results = Mutex::new(Vec::with_capacity(items.len()));
    let work = || {
        while let Some((position, item)) =
            Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|n| Some((n, items.get(n)?)))
        {
            let result = look(item);
            results.lock().expect("no thread panics while it adds a result").push((position, result));
        }
    };
    let threads = thread::available_parallelism().map_or(1, usize::from).min(items.len());
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(work);
        }
    });
    let mut results = results.into_inner().expect("all threads have ended well");
    results.sort_by_key(|(position, _)| *position);
    results.into_iter().map(|(_, result)| result).collect()
}
