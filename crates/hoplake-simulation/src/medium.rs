//! A disk that forgets what was not flushed, for graphs in a folder.
//!
//! Processes see what they wrote. The disk keeps what was flushed: the bytes of files, and the names in each folder.
//! When the power goes, everything between the two is drawn: of each name that was not flushed whether it is as it is
//! seen or as it was flushed, and for each unflushed file whether all, none or some of its bytes remain.

use std::{
    collections::BTreeMap,
    io,
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bytes::Bytes;
use hoplake_testkit::generate::SplitMix64;

/// A file: its visible and its flushed bytes.
#[derive(Debug, Default, Clone)]
pub(crate) struct Content {
    pub(crate) seen: Vec<u8>,
    pub(crate) kept: Vec<u8>,
}

/// The target of a name.
#[derive(Debug, Clone)]
pub(crate) enum Entry {
    File(Arc<Mutex<Content>>),
    Folder,
}

impl Entry {
    fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::File(one), Self::File(other)) => Arc::ptr_eq(one, other),
            (Self::Folder, Self::Folder) => true,
            _ => false,
        }
    }
}

/// Names by their paths, without the first slash; the root has none.
pub(crate) type Names = BTreeMap<String, Entry>;

/// The disk of the machine.
#[derive(Debug, Default)]
pub struct Medium {
    pub(crate) seen: Names,
    kept: Names,
}

pub(crate) fn name_of(path: &Path) -> String {
    path.to_string_lossy().trim_matches('/').to_owned()
}

pub(crate) fn folder_of(name: &str) -> &str {
    name.rsplit_once('/').map_or("", |(folder, _)| folder)
}

fn is_staged(name: &str) -> bool {
    // As the folder names files that are not objects yet; no listing of objects shows them.
    name.contains('#')
}

impl Medium {
    /// A file that was always there.
    pub fn found(&mut self, name: &str, bytes: &Bytes) {
        let content = Content { seen: bytes.to_vec(), kept: bytes.to_vec() };
        let entry = Entry::File(Arc::new(Mutex::new(content)));
        for names in [&mut self.seen, &mut self.kept] {
            let folders = name.match_indices('/').map(|(at, _)| (name[..at].to_owned(), Entry::Folder));
            names.extend(folders);
            names.insert(name.to_owned(), entry.clone());
        }
    }

    /// Deletes a file, visibly.
    pub fn removed(&mut self, name: &str) {
        self.seen.remove(name);
    }

    pub(crate) fn file(&self, name: &str) -> io::Result<Arc<Mutex<Content>>> {
        match self.seen.get(name) {
            Some(Entry::File(file)) => Ok(file.clone()),
            _ => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn check_folder(&self, folder: &str) -> io::Result<()> {
        match self.seen.get(folder) {
            Some(Entry::Folder) => Ok(()),
            None if folder.is_empty() => Ok(()),
            _ => Err(io::ErrorKind::NotFound.into()),
        }
    }

    /// Puts a name into its folder, over an existing one if that is allowed.
    pub(crate) fn name(&mut self, name: String, entry: Entry, replace: bool) -> io::Result<()> {
        self.check_folder(folder_of(&name))?;
        if !replace && self.seen.contains_key(&name) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        self.seen.insert(name, entry);
        Ok(())
    }

    pub(crate) fn flush_folder(&mut self, folder: &str) -> io::Result<()> {
        self.check_folder(folder)?;
        // Removed and renamed names go with the flush as well, so the names of this folder are replaced as a whole.
        self.kept.retain(|name, _| folder_of(name) != folder || name.is_empty());
        let seen = self.seen.iter().filter(|(name, _)| folder_of(name) == folder);
        self.kept.extend(seen.map(|(name, entry)| (name.clone(), entry.clone())));
        Ok(())
    }

    /// The state after a loss of power: its objects, and the number of names and files that differ from what was
    /// visible.
    pub(crate) fn lose(&mut self, random: &mut SplitMix64) -> (BTreeMap<String, Bytes>, usize) {
        let mut names: Vec<String> = self.seen.keys().chain(self.kept.keys()).cloned().collect();
        names.sort();
        names.dedup();
        let mut left = Names::new();
        let mut changes = 0;
        for name in names {
            let seen = self.seen.get(&name);
            let kept = self.kept.get(&name);
            // By identity: a name that was replaced by another file of the same bytes was still not flushed.
            let same = matches!((seen, kept), (Some(seen), Some(kept)) if seen.is_same(kept));
            let entry = if same || random.below(2) == 0 { kept } else { seen };
            changes += usize::from(!same);
            // Folders are before their content.
            let reachable = folder_of(&name).is_empty() || left.contains_key(folder_of(&name));
            if let Some(entry) = entry.filter(|_| reachable) {
                left.insert(name, entry.clone());
            }
        }
        let mut objects = BTreeMap::new();
        for (name, entry) in &left {
            let Entry::File(file) = entry else { continue };
            let mut content = lock(file);
            // Two names may share a file. The first draws for it; then what is seen is what is kept, and nothing is left to draw.
            changes += usize::from(content.lose(random));
            if !is_staged(name) {
                objects.insert(name.clone(), Bytes::from(content.seen.clone()));
            }
        }
        // The processes that follow find what is left, and all of it counts as flushed.
        self.seen = left.clone();
        self.kept = left;
        (objects, changes)
    }
}

impl Content {
    /// Draws what is left; whether anything was not flushed.
    fn lose(&mut self, random: &mut SplitMix64) -> bool {
        if self.seen == self.kept {
            return false;
        }
        match random.below(4) {
            0 => {}
            1 => self.seen = self.kept.clone(),
            2 => self.seen.truncate(random.below(self.seen.len() as u64 + 1) as usize),
            // The length was flushed, but the bytes were not.
            _ => self.seen.fill(0),
        }
        self.kept = self.seen.clone();
        true
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_flushed_stays_and_the_rest_is_drawn() {
        let mut outcomes = std::collections::BTreeSet::new();
        for seed in 0..64 {
            let mut medium = Medium::default();
            medium.found("data/old", &Bytes::from_static(b"old"));
            for name in ["data/new", "data/unnamed"] {
                medium.name(name.into(), Entry::File(Arc::default()), false).unwrap();
            }
            let new = medium.file("data/new").unwrap();
            lock(&new).seen = b"new".to_vec();
            lock(&new).kept = b"new".to_vec();
            medium.flush_folder("data").unwrap();
            medium.removed("data/old");
            medium.name("more".into(), Entry::Folder, false).unwrap();
            medium.name("more/lost".into(), Entry::File(new.clone()), false).unwrap();
            lock(&medium.file("data/unnamed").unwrap()).seen = b"unflushed".to_vec();
            let (left, changes) = medium.lose(&mut SplitMix64::new(seed));
            assert_eq!((left.get("data/new").map(|bytes| &bytes[..]), changes), (Some(&b"new"[..]), 4));
            let unnamed = left.get("data/unnamed").expect("its name was flushed");
            outcomes.insert((left.contains_key("data/old"), left.contains_key("more/lost"), unnamed == "unflushed"));
            // Once is enough.
            assert_eq!(medium.lose(&mut SplitMix64::new(seed + 1)), (left, 0));
        }
        assert_eq!(outcomes.len(), 8, "{outcomes:?}");
        assert!(Medium::default().name("none/file".into(), Entry::Folder, false).is_err());
    }
}
