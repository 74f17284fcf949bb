//! The access layer against a source that does as it is told, on a paused clock.

mod disk;
mod reading;
mod scripted;
