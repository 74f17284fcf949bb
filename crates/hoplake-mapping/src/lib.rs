//! Immutable files as memory: their bytes without a copy, and advice to the system about which of them will be needed.
//!
//! Objects of a graph are written once, under a name that is never used again, and removed as a whole. A file of one can therefore be
//! mapped: its bytes do not change while somebody has them. What the system cannot read when they are touched, because the disk has
//! failed or because somebody has cut the file, ends the process with SIGBUS. That is the price of reading without a call, and
//! the reason why mapping is something that an operator chooses.
//!
//! With the crate that sets the allocator this is the only unsafe code of the workspace; each block says why it is sound.

mod file;

pub use file::{AccessPattern, MappedFile, expect, will_need};
