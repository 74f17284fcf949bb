//! The access layer against a scripted source, on a paused clock.

#![allow(clippy::unwrap_used, reason = "a test that fails panics")]

mod disk;
mod mapped;
mod reading;
mod scripted;
