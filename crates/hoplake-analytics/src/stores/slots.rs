//! States in a file, each in the slot that its vertex's number says.

use std::{
    fs::{File, OpenOptions},
    marker::PhantomData,
    ops::Range,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
};

use super::{StateStore, StoreBytes, StoreError};
use crate::{
    Value,
    value::{decode, encode},
};

/// States in a file, each in the slot that its vertex's number says. The file is sparse: states that were never written take
/// nothing. Ranges are read and written, not mapped: a superstep goes through the file in order, where a map saves a copy and costs
/// a fault a page.
#[derive(Debug)]
pub struct SlotStore<S> {
    file: File,
    path: PathBuf,
    vertices: u32,
    states: PhantomData<fn() -> S>,
}

impl<S: Value> SlotStore<S> {
    /// A store for this number of vertices, in a new file; or, if there is one, with the states that it has.
    ///
    /// # Errors
    /// [`StoreError`] if the file cannot be made, or if it is of another length.
    pub fn open(path: &Path, vertices: u32) -> Result<Self, StoreError> {
        let failed = |error: std::io::Error| StoreError::new(path.display(), error);
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path).map_err(failed)?;
        let length = u64::from(vertices) * S::WIDTH as u64;
        match file.metadata().map_err(failed)?.len() {
            0 => file.set_len(length).map_err(failed)?,
            found if found == length => {}
            found => {
                let why = format!("it has {found} bytes, where the states of {vertices} vertices take {length}");
                return Err(StoreError::new(path.display(), why));
            }
        }
        Ok(Self { file, path: path.to_owned(), vertices, states: PhantomData })
    }

    /// Waits until all states are on the disk.
    ///
    /// # Errors
    /// [`StoreError`] if the disk fails.
    pub fn sync(&self) -> Result<(), StoreError> {
        self.file.sync_data().map_err(|error| StoreError::new(self.path.display(), error))
    }

    fn check(&self, vertices: &Range<u32>) -> Result<u64, StoreError> {
        if vertices.end > self.vertices {
            let why = format!("it has no state of vertex {}", vertices.end - 1);
            return Err(StoreError::new(self.path.display(), why));
        }
        Ok(u64::from(vertices.start) * S::WIDTH as u64)
    }
}

impl<S: Value> StateStore<S> for SlotStore<S> {
    fn read(&self, vertices: Range<u32>) -> Result<Vec<S>, StoreError> {
        let position = self.check(&vertices)?;
        let mut bytes = vec![0; vertices.len() * S::WIDTH];
        let read = self.file.read_exact_at(&mut bytes, position);
        read.map_err(|error| StoreError::new(self.path.display(), error))?;
        Ok(decode(&bytes))
    }

    fn put(&self, first: u32, states: Vec<S>) -> Result<(), StoreError> {
        let position = self.check(&(first..first + states.len() as u32))?;
        let written = self.file.write_all_at(&encode(&states), position);
        written.map_err(|error| StoreError::new(self.path.display(), error))
    }

    fn bytes(&self) -> StoreBytes {
        use std::os::unix::fs::MetadataExt;
        StoreBytes { memory: 0, disk: self.file.metadata().map_or(0, |metadata| metadata.blocks() * 512) }
    }
}
