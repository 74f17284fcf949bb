//! An object that is written to a folder in parts.

use std::{path::PathBuf, sync::Arc};

use async_trait::async_trait;
use bytes::Bytes;
use object_store::{MultipartUpload, PutPayload, PutResult, Result, UploadPart};

use super::{Folder, WriteError, put_result};

/// A file under a name of its own, until it is complete.
#[derive(Debug)]
pub(super) struct FolderUpload {
    folder: Folder,
    /// Until it has its own name, or is given up.
    staged: Option<Arc<PathBuf>>,
    object: PathBuf,
    bytes: u64,
}

impl FolderUpload {
    pub(super) fn new(folder: Folder, staged: PathBuf, object: PathBuf) -> Self {
        Self { folder, staged: Some(Arc::new(staged)), object, bytes: 0 }
    }
}

#[async_trait]
impl MultipartUpload for FolderUpload {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        let files = self.folder.files.clone();
        let staged = self.staged.clone();
        // Its place is fixed when the part is handed over: parts may be written in any order.
        let position = self.bytes;
        let bytes = Bytes::from(data);
        self.bytes += bytes.len() as u64;
        Box::pin(async move {
            let staged = staged.ok_or(WriteError::GivenUp)?;
            Ok(files.write_at(&staged, position, bytes).await.map_err(WriteError::Failed)?)
        })
    }

    async fn complete(&mut self) -> Result<PutResult> {
        let staged = self.staged.take().ok_or(WriteError::GivenUp)?;
        self.folder.replace(&staged, &self.object).await?;
        Ok(put_result())
    }

    async fn abort(&mut self) -> Result<()> {
        let staged = self.staged.take().ok_or(WriteError::GivenUp)?;
        Ok(self.folder.files.remove(&staged).await.map_err(WriteError::Failed)?)
    }
}

impl Drop for FolderUpload {
    /// An upload that is not completed removes its file if it can; else a vacuum does.
    fn drop(&mut self) {
        if let (Some(staged), Ok(runtime)) = (self.staged.take(), tokio::runtime::Handle::try_current()) {
            let files = self.folder.files.clone();
            runtime.spawn(async move { files.remove(&staged).await });
        }
    }
}
