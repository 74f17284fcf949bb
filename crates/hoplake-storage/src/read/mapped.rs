//! Objects of a folder as memory: blocks are slices of mapped files, and each is checked once.
//!
//! A read of a mapped folder makes no request: it takes no wave, and neither caches nor bounds on what is in flight know of it. The
//! system's page cache is the cache. Pages that are not in it are read when they are touched, one after the other, unless the
//! system was advised: so readers say first what comes ([`Mapped::will_need`]). The system itself reads nothing ahead.

use std::{
    collections::{HashMap, HashSet},
    ops::Range,
    path::PathBuf,
    sync::{Arc, PoisonError, RwLock},
};

use bytes::Bytes;
use hoplake_mapping::{AccessPattern, MappedFile};

use crate::{
    Check, Store,
    read::block::{BlockRequest, verified_payload},
};

/// The mapped files of a graph's objects.
#[derive(Debug)]
pub(crate) struct MappedFolder {
    store: Store,
    objects: RwLock<HashMap<Arc<str>, Arc<Mapped>>>,
}

/// An object, mapped.
#[derive(Debug)]
pub(crate) struct Mapped {
    file: MappedFile,
    /// The blocks that passed their checks, by where they begin and end.
    checked: RwLock<HashSet<(u64, u64)>>,
}

impl MappedFolder {
    /// Those of a store; `None` if its objects are not files of this machine.
    pub(crate) fn of(store: &Store) -> Option<Self> {
        store.file("").is_some().then(|| Self { store: store.clone(), objects: RwLock::default() })
    }

    /// An object; `None` if it cannot be mapped, and a request may tell why.
    pub(crate) fn object(&self, name: &Arc<str>) -> Option<Arc<Mapped>> {
        let found = self.objects.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned();
        found.or_else(|| self.map(name))
    }

    fn map(&self, name: &Arc<str>) -> Option<Arc<Mapped>> {
        let path: PathBuf = self.store.file(name)?;
        let file = MappedFile::open(&path).ok()?;
        // Readers say what they need. The system's own reading ahead brings many times what a block has, and where memory is short
        // throws out what was needed.
        file.expect(AccessPattern::Random);
        let mapped = Arc::new(Mapped { file, checked: RwLock::default() });
        let mut objects = self.objects.write().unwrap_or_else(PoisonError::into_inner);
        // A map keeps the space of a file that a vacuum has removed.
        objects.retain(|_, other| Arc::strong_count(other) > 1 || other.file.is_linked());
        Some(objects.entry(name.clone()).or_insert(mapped).clone())
    }
}

impl Mapped {
    /// The payload of a block; `None` if it is not intact, or the file too short.
    pub(crate) fn get(&self, request: &BlockRequest<'_>) -> Option<Bytes> {
        let BlockRequest { object, range, check } = request;
        let stored = self.file.slice(range.clone())?;
        if *check == Check::Later {
            return Some(stored);
        }
        let key = (range.start, range.end);
        let is_checked = self.checked.read().unwrap_or_else(PoisonError::into_inner).contains(&key);
        if is_checked {
            return Some(check.payload(&stored));
        }
        let payload = verified_payload(object, range.start, *check, &stored).ok()?;
        self.checked.write().unwrap_or_else(PoisonError::into_inner).insert(key);
        Some(payload)
    }

    pub(crate) fn expect(&self, access: AccessPattern) {
        self.file.expect(access);
    }

    /// Begins to read a range that is not in the page cache.
    pub(crate) fn will_need(&self, range: Range<u64>) {
        self.file.will_need(range);
    }

    /// Gives a range of the page cache back.
    pub(crate) fn will_not_need(&self, range: Range<u64>) {
        self.file.will_not_need(range);
    }
}
