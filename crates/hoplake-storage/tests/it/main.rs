//! The access layer against a source that does as it is told, on a paused clock.

#![allow(clippy::unwrap_used, reason = "a test that fails panics")]

mod disk;
mod reading;
mod scripted;
