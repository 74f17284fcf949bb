//! A store in which some things go otherwise than in the one below it.
//!
//! A test that needs a store which rejects, loses or delays requests writes an [`Alteration`] with one or two methods;
//! all other requests pass. Uploads in parts pass in any case.

use std::fmt;

use async_trait::async_trait;
use futures::stream::BoxStream;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore, PutMultipartOptions,
    PutOptions, PutPayload, PutResult, Result, path::Path,
};

/// The altered requests. Each request passes unless its method is overridden.
#[async_trait]
pub trait Alteration: fmt::Debug + Send + Sync + 'static {
    /// The store below.
    fn below(&self) -> &dyn ObjectStore;

    /// A write of a complete object.
    async fn put(&self, path: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        self.below().put_opts(path, payload, options).await
    }

    /// A read, of a range or the complete object.
    async fn get(&self, path: &Path, options: GetOptions) -> Result<GetResult> {
        self.below().get_opts(path, options).await
    }

    /// Deletions.
    fn delete(&self, paths: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        self.below().delete_stream(paths)
    }

    /// A listing.
    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.below().list(prefix)
    }
}

/// A store with an alteration.
#[derive(Debug, Clone)]
pub struct AlteredStore<T>(pub T);

impl<T: Alteration> fmt::Display for AlteredStore<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an altered {}", self.0.below())
    }
}

#[async_trait]
impl<T: Alteration> ObjectStore for AlteredStore<T> {
    async fn put_opts(&self, path: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        self.0.put(path, payload, options).await
    }

    async fn put_multipart_opts(&self, path: &Path, options: PutMultipartOptions) -> Result<Box<dyn MultipartUpload>> {
        self.0.below().put_multipart_opts(path, options).await
    }

    async fn get_opts(&self, path: &Path, options: GetOptions) -> Result<GetResult> {
        self.0.get(path, options).await
    }

    fn delete_stream(&self, paths: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        self.0.delete(paths)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.0.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.0.below().list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.0.below().copy_opts(from, to, options).await
    }
}
