//! Objects next to a graph that its position names: written before the commit that names them, and never changed.
//!
//! A name is that of a process' clock and the CRC-32C of the object's bytes, so what was changed on the way or in the bucket is not
//! taken for what was written.

use std::fmt::Display;

use bytes::Bytes;
use hoplake::Store;

use crate::{FeedError, error::COPY_ANEW};

/// Where objects of a kind are.
#[derive(Clone, Copy)]
pub(crate) struct Folder<'a> {
    /// Of a source, without `/` at its end.
    pub(crate) kind: &'static str,
    pub(crate) source: &'a str,
    /// What names end with, with its point.
    pub(crate) ending: &'static str,
}

impl Folder<'_> {
    /// The name of an object.
    pub(crate) fn name(self, id: &str) -> String {
        format!("{}/{}/{id}{}", self.kind, self.source, self.ending)
    }

    /// Writes an object, and returns by what it is named.
    ///
    /// # Errors
    /// The store's.
    pub(crate) async fn write(self, store: &Store, bytes: Bytes) -> Result<String, FeedError> {
        let id = format!("{}-{:08x}", store.clock().ulid(), crc32c::crc32c(&bytes));
        // No other writer has this name; a create that is answered with "exists" may have made nothing.
        store.put(&self.name(&id), bytes).await.map_err(hoplake::Error::from)?;
        // Durable before the commit that names it.
        store.flush(&format!("{}/{}", self.kind, self.source)).await.map_err(hoplake::Error::from)?;
        Ok(id)
    }

    /// Reads an object; `None` if it is gone.
    ///
    /// # Errors
    /// [`Invalid`](crate::FeedErrorKind::Invalid) if it is damaged; the store's.
    pub(crate) async fn read(self, store: &Store, id: &str) -> Result<Option<Bytes>, FeedError> {
        let name = self.name(id);
        let checksum = id.rsplit_once('-').and_then(|(_, checksum)| u32::from_str_radix(checksum, 16).ok());
        // What was changed on the way is whole when it is asked for again.
        for _ in 0..2 {
            let Some(bytes) = store.get(&name).await.map_err(hoplake::Error::from)? else { return Ok(None) };
            if Some(crc32c::crc32c(&bytes)) == checksum {
                return Ok(Some(bytes));
            }
        }
        Err(self.damaged(id, &"has other bytes than were written"))
    }

    /// The error of an object that cannot be understood.
    pub(crate) fn damaged(self, id: &str, why: &dyn Display) -> FeedError {
        FeedError::invalid(format!("{} {why}", self.name(id))).hint(COPY_ANEW)
    }

    /// Removes objects that no position names any more. That it fails leaves objects of no use.
    pub(crate) async fn remove(self, store: &Store, ids: &[String]) {
        let _ = store.delete(&ids.iter().map(|id| self.name(id)).collect::<Vec<_>>()).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_object_that_was_changed_is_not_read() {
        let store = Store::open("memory://objects").unwrap();
        let folder = Folder { kind: "feeds", source: "hr", ending: ".txt" };
        let id = folder.write(&store, Bytes::from_static(b"3 letters")).await.unwrap();
        assert_eq!(folder.read(&store, &id).await.unwrap().unwrap(), "3 letters");
        store.put(&folder.name(&id), Bytes::from_static(b"2 letters")).await.unwrap();
        let error = folder.read(&store, &id).await.unwrap_err().to_string();
        assert_eq!(error, format!("feeds/hr/{id}.txt has other bytes than were written"));
        folder.remove(&store, std::slice::from_ref(&id)).await;
        assert_eq!(folder.read(&store, &id).await.unwrap(), None);
    }
}
