//! Temporary files, removed when they are dropped, and what their failures are called.

use std::{
    fs::File,
    io::{self, BufReader},
    path::Path,
};

use arrow_schema::ArrowError;
use tempfile::TempPath;

use crate::IngestError;

/// A file in the spill folder; dropping it removes it.
#[derive(Debug)]
pub(crate) struct SpillFile(TempPath);

impl SpillFile {
    /// A new empty file, open for writing.
    pub(crate) fn create(folder: &Path) -> Result<(Self, File), IngestError> {
        let (file, path) =
            tempfile::Builder::new().prefix("run-").tempfile_in(folder).map_err(IngestError::Spill)?.into_parts();
        Ok((Self(path), file))
    }

    /// Opens it for reading from the start.
    pub(crate) fn open(&self, buffer_bytes: usize) -> Result<BufReader<File>, IngestError> {
        let file = File::open(&self.0).map_err(IngestError::Spill)?;
        Ok(BufReader::with_capacity(buffer_bytes, file))
    }
}

/// Converts an error of Arrow's reader or writer of a spill file: the folder's fault if the system
/// says so, else Arrow's.
pub(crate) fn spill_error(error: ArrowError) -> IngestError {
    match error {
        ArrowError::IoError(_, source) => IngestError::Spill(source),
        ArrowError::IpcError(why) => IngestError::Spill(io::Error::new(io::ErrorKind::InvalidData, why)),
        other => IngestError::Arrow(other),
    }
}
