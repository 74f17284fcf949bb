//! How Hoplake's programs give memory back: the allocator's settings that bounds on memory depend on.
//!
//! glibc maps a large allocation by itself, and unmaps it when it is freed. But when it frees one it takes its size, up to
//! 32 MiB, for the new bound of what is large: from then on such allocations come from the heap of their thread, which
//! keeps what is freed. Queries hold lists of megabytes for milliseconds, on many threads, so a server that counted 1 GiB
//! had 1.9 GiB resident; with a fixed bound it has 1.0 GiB. (Two allocators that are often taken instead did not help
//! or keep more: mimalloc kept 700 MiB of a query that had ended.)
//!
//! Small allocations that are freed stay in the heap of their thread, too, and the next query may run on another one. So what is freed joins what
//! is free beside it at once, and not later, when the heap might give its end back ([`give_back_large`]), and a server has free pages within
//! heaps given back when much memory has become free ([`give_back_freed`]). Four queries that each made lists of millions of vertices had
//! 345 MiB resident with a limit of 256 MiB, and with both they have 255 MiB at most.
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

/// Allocations of at most so many bytes are kept for the next ones of their size when they are freed, beside the seven of each size that a thread
/// keeps for itself: none. glibc's 128 bytes keep all that a list of vertices was made of.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const KEPT_APART_BYTES: libc::c_int = 0;

/// Makes the allocator give large allocations back to the system when they are freed, whatever was freed before. To be
/// called before threads are started. Elsewhere than on Linux with glibc it does nothing.
pub fn give_back_large() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    for (setting, bytes) in [
        (libc::M_MMAP_THRESHOLD, LARGE_BYTES),
        (libc::M_TRIM_THRESHOLD, KEPT_BYTES),
        (libc::M_TOP_PAD, GROWTH_BYTES),
        (libc::M_MXFAST, KEPT_APART_BYTES),
    ] {
        #[expect(unsafe_code, reason = "the system has no other way to set it")]
        // SAFETY: it changes a number of the allocator, under its lock, and takes no pointer. What it returns says only whether the
        // number is allowed.
        unsafe {
            libc::mallopt(setting, bytes);
        }
    }
}

/// Gives free memory back to the system that the allocator keeps in the heaps of threads, wherever in them it is: what a thread has freed is
/// of no use to others, which take their own. It took 1 to 35 ms in a process of some hundred MiB. Elsewhere than on Linux with
/// glibc it does nothing.
pub fn give_back_freed() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    #[expect(unsafe_code, reason = "the system has no other way to ask for it")]
    // SAFETY: it looks at memory that is free only, under the locks of the allocator, and takes no pointer.
    unsafe {
        libc::malloc_trim(0);
    }
}
