//! The requests behind the calls of an object store that send several, for stores that count or delay each.

use std::future::Future;
use std::sync::Arc;

use futures::stream::BoxStream;
use futures::{FutureExt, StreamExt, TryStreamExt};
use object_store::path::Path;
use object_store::{Error, ObjectMeta, ObjectStore, Result};

/// Entries on one page of a listing, as on S3; also how many deletions run at once.
pub(crate) const PAGE_ENTRIES: usize = 1_000;

/// Passes a listing on page by page, each a request that follows the one before: `request` is awaited for
/// each page, by its number. `list` runs when the first is answered.
pub(crate) fn paged<F: Future<Output = Result<()>> + Send + 'static>(
    request: impl Fn(usize) -> F + Send + Sync + 'static,
    list: impl FnOnce() -> BoxStream<'static, Result<ObjectMeta>> + Send + 'static,
) -> BoxStream<'static, Result<ObjectMeta>> {
    let first_page = async move {
        request(0).await?;
        let pages = list().chunks(PAGE_ENTRIES).enumerate().then(move |(number, page)| {
            let next = (number > 0).then(|| request(number));
            async move {
                if let Some(next) = next {
                    next.await?;
                }
                Ok::<_, Error>(futures::stream::iter(page))
            }
        });
        Ok::<_, Error>(pages.try_flatten())
    };
    first_page.into_stream().try_flatten().boxed()
}

/// Deletes objects one by one, many at once: `request` is awaited before each.
pub(crate) fn deletions<F: Future<Output = Result<()>> + Send + 'static>(
    inner: Arc<dyn ObjectStore>,
    locations: BoxStream<'static, Result<Path>>,
    request: impl Fn(String) -> F + Send + 'static,
) -> BoxStream<'static, Result<Path>> {
    let delete = move |location: Result<Path>| {
        let inner = inner.clone();
        let sent = location.as_ref().ok().map(|path| request(path.to_string()));
        async move {
            let location = location?;
            if let Some(sent) = sent {
                sent.await?;
            }
            let mut deleted = inner.delete_stream(futures::stream::once(async { Ok(location) }).boxed());
            deleted.next().await.expect("a store answers each deletion")
        }
    };
    locations.map(delete).buffered(PAGE_ENTRIES).boxed()
}
