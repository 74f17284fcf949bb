//! Memory that large calls have freed goes back to the system.
//!
//! What a call holds counts against the server's memory until it is freed. But the allocator keeps much of what is freed in the heap of the
//! thread that allocated it, where threads of the next call do not find it: the process would have the memory of both. So after a call
//! that held much, a thread has the allocator give back what is free. Calls that end meanwhile share the next time.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use tokio::runtime::Handle;

/// A call that held less leaves nothing that is worth a look at all heaps.
const LARGE_BYTES: u64 = 16 << 20;

/// Whether a thread is about to give back.
static IS_DUE: AtomicBool = AtomicBool::new(false);

/// Notes that a call has ended that held so many bytes at a time.
pub(crate) fn freed(peak_bytes: u64) {
    if peak_bytes < LARGE_BYTES || IS_DUE.swap(true, Relaxed) {
        return;
    }
    match Handle::try_current() {
        Ok(runtime) => drop(runtime.spawn_blocking(give_back)),
        Err(_) => give_back(),
    }
}

fn give_back() {
    // Before, so that a call which ends from now on is not left out.
    IS_DUE.store(false, Relaxed);
    hoplake_allocator::give_back_freed();
}
