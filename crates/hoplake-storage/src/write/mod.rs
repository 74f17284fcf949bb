//! Objects that are created once, and uploads of any length.

pub(crate) mod create;
pub(crate) mod proof;
mod upload;

pub use upload::Upload;
