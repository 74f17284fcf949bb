//! How Hoplake's programs give memory back: the allocator's settings that bounds on memory depend on.
//!
//! glibc maps a large allocation by itself, and unmaps it when it is freed. But when it frees one it takes its size, up to
//! 32 MiB, for the new bound of what is large: from then on such allocations come from the heap of their thread, which
//! keeps what is freed. Queries hold lists of megabytes for milliseconds, on many threads, so a server that counted 1 GiB
//! had 1.9 GiB resident; with a fixed bound it has 1.0 GiB. (Two allocators that are often taken instead did not help
//! or keep more: mimalloc kept 700 MiB of a query that had ended.)
//!
//! Small allocations also stay in the heap of their thread when they are freed, and the next query may run on another thread. glibc returns the
//! end of a heap only if it is free in one piece, and `malloc_trim` returns free pages within all heaps, but the end of the main heap alone. So
//! both are needed: [`give_back_large`] merges freed allocations with free neighbours immediately, and the server calls
//! [`give_back_freed`] when queries have freed much. Without them, four queries that built lists of millions of vertices had 345 MiB
//! resident with a limit of 256 MiB; with both, at most 255 MiB.
//!
//! It is for programs. A library does not set what belongs to the whole process, so an application that embeds Hoplake
//! decides itself: `MALLOC_MMAP_THRESHOLD_=262144`, `MALLOC_TRIM_THRESHOLD_=4194304`, `MALLOC_TOP_PAD_=1048576` and
//! `GLIBC_TUNABLES=glibc.malloc.mxfast=0` in its environment do the same as [`give_back_large`].
//!
//! With `hoplake-mapping` it has the only unsafe code of the workspace.

/// An allocation of at least this many bytes is unmapped when it is freed. A page fault for each 4 KiB of one costs
/// less than filling them.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const LARGE_BYTES: libc::c_int = 256 << 10;

/// The heap of a thread keeps so much free memory at its end. With glibc's 128 KiB, two batches of a column's cells that were freed went
/// back to the system and were faulted in again for the next two: scans took a third longer.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const KEPT_BYTES: libc::c_int = 4 << 20;

/// The heap of a thread grows by at least so much.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const GROWTH_BYTES: libc::c_int = 1 << 20;

/// glibc does not merge freed allocations of up to this size (its "fast bins") with free neighbours. Its default, 128 bytes, covers every value
/// of a list of vertices, so the memory of a finished list would stay in pieces. Each thread still caches seven of each size.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const FAST_BIN_BYTES: libc::c_int = 0;

/// Makes the allocator give large allocations back to the system when they are freed, whatever was freed before. To be
/// called before threads are started. Elsewhere than on Linux with glibc it does nothing.
pub fn give_back_large() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    for (setting, bytes) in [
        (libc::M_MMAP_THRESHOLD, LARGE_BYTES),
        (libc::M_TRIM_THRESHOLD, KEPT_BYTES),
        (libc::M_TOP_PAD, GROWTH_BYTES),
        (libc::M_MXFAST, FAST_BIN_BYTES),
    ] {
        #[expect(unsafe_code, reason = "the system has no other way to set it")]
        // SAFETY: it changes a number of the allocator, under its lock, and takes no pointer. What it returns says only whether the
        // number is allowed.
        unsafe {
            libc::mallopt(setting, bytes);
        }
    }
}

/// Returns free pages within the heaps of all threads to the system. It takes 1 to 35 ms in a process of a few hundred MiB, and holds up
/// allocations of the heap that it works on. Elsewhere than on Linux with glibc it does nothing.
pub fn give_back_freed() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    #[expect(unsafe_code, reason = "the system has no other way to ask for it")]
    // SAFETY: it takes no pointer, and releases only pages that are free, under the locks of the allocator.
    unsafe {
        libc::malloc_trim(0);
    }
}
