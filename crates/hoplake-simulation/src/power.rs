//! A disk that forgets what was not flushed, for graphs in a folder: one machine, on which all processes run, loses its
//! power.
//!
//! Processes see what they wrote. The disk keeps what was flushed: the bytes of files, and the names in each folder.
//! When the power goes, everything between the two is drawn: of each name that was not flushed whether it is as it is
//! seen or as it was flushed, and for each unflushed file whether all, none or some of its bytes remain. All processes
//! end then, and the oracle checks the result: no acknowledged version may be lost, and none may exist without those
//! after it.

use std::{
    collections::BTreeMap,
    fmt, io,
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use async_trait::async_trait;
use bytes::Bytes;
use hoplake_storage::{Files, FoundFile};
use hoplake_testkit::generate::SplitMix64;
use tokio::time::sleep;

use crate::{
    client::{Client, remove, write},
    faults::{Fault, Kind},
    machine::Machine,
    world::{Bucket, Concern, World},
};

/// One in this many operations loses the power.
const OPERATIONS_PER_LOSS: u64 = 60;

/// A file: its visible and its flushed bytes.
#[derive(Debug, Default, Clone)]
struct Content {
    seen: Vec<u8>,
    kept: Vec<u8>,
}

/// The target of a name.
#[derive(Debug, Clone)]
enum Entry {
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
type Names = BTreeMap<String, Entry>;

/// The disk of the machine.
#[derive(Debug, Default)]
pub struct Medium {
    seen: Names,
    kept: Names,
}

fn name_of(path: &Path) -> String {
    path.to_string_lossy().trim_matches('/').to_owned()
}

fn folder_of(name: &str) -> &str {
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

    fn file(&self, name: &str) -> io::Result<Arc<Mutex<Content>>> {
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
    fn name(&mut self, name: String, entry: Entry, replace: bool) -> io::Result<()> {
        self.check_folder(folder_of(&name))?;
        if !replace && self.seen.contains_key(&name) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        self.seen.insert(name, entry);
        Ok(())
    }

    fn flush_folder(&mut self, folder: &str) -> io::Result<()> {
        self.check_folder(folder)?;
        // Removed and renamed names go with the flush as well, so the names of this folder are replaced as a whole.
        self.kept.retain(|name, _| folder_of(name) != folder || name.is_empty());
        let seen = self.seen.iter().filter(|(name, _)| folder_of(name) == folder);
        self.kept.extend(seen.map(|(name, entry)| (name.clone(), entry.clone())));
        Ok(())
    }

    /// The state after a loss of power: its objects, and the number of names and files that differ from what was
    /// visible.
    fn lose(&mut self, random: &mut SplitMix64) -> (BTreeMap<String, Bytes>, usize) {
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

/// The power goes.
fn lose_power(world: &World) {
    let mut bucket = world.bucket();
    let (left, changes) = world.medium().lose(&mut world.random(Concern::Power));
    world.log(|| format!("THE POWER GOES: {changes} names and files were not flushed"));
    let now = world.now();
    bucket.retain(|name, _| left.contains_key(name));
    for (name, bytes) in left {
        let stored = bucket.entry(name).or_insert_with(|| crate::world::Stored { bytes: Bytes::new(), modified: now });
        stored.bytes = bytes;
    }
    // At once, before another process can build on a version that should not be there, or repair one that should.
    world.check(world.history().lost_power(&bucket));
    world.end_all();
}

/// The way of a process to the disk.
pub struct Ground {
    world: Arc<World>,
    machine: Arc<Machine>,
    client: Client,
}

impl fmt::Debug for Ground {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Ground({})", self.machine.name)
    }
}

impl Ground {
    /// The disk, as a process has it.
    pub fn new(world: &Arc<World>, machine: &Arc<Machine>) -> Self {
        Self { world: world.clone(), machine: machine.clone(), client: Client::new(world, machine) }
    }

    /// One operation, which takes its time. The power may go or the process end before it or after it.
    async fn step<T>(
        &self,
        operation: &str,
        path: &Path,
        effect: impl FnOnce(&mut Medium, &mut Bucket) -> io::Result<T> + Send,
    ) -> io::Result<T> {
        let world = &self.world;
        let machine = &self.machine;
        if world.is_in_load() {
            // Nothing goes wrong in a load but that its process ends.
            if machine.is_dead() {
                return Err(io::Error::other("the process has ended"));
            }
            return effect(&mut world.medium(), &mut world.bucket());
        }
        self.client.gate().await;
        if !world.admits_request() {
            return std::future::pending().await;
        }
        if machine.reliable {
            return effect(&mut world.medium(), &mut world.bucket());
        }
        sleep(self.client.delay()).await;
        self.client.gate().await;
        // Drawn before the effect: half of the ends come before it and half after, which no caller can tell apart.
        let end = self.draw_end();
        if end.is_some_and(|(_, before)| before) {
            return self.end(end).await;
        }
        let done = {
            let mut bucket = world.bucket();
            effect(&mut world.medium(), &mut bucket)
        };
        world.log(|| {
            let outcome = done.as_ref().map_or_else(ToString::to_string, |_| "done".into());
            format!("{} {operation} {}: {outcome}", machine.name, path.display())
        });
        if end.is_some() {
            return self.end(end).await;
        }
        done
    }

    /// Whether it ends here: by the power, or the process alone; and whether before the operation.
    fn draw_end(&self) -> Option<(bool, bool)> {
        let world = &self.world;
        if world.is_calm() {
            return None;
        }
        let mut random = world.random(Concern::Power);
        let before = random.below(2) == 0;
        if random.below(OPERATIONS_PER_LOSS) == 0 {
            return Some((true, before));
        }
        let fault = world.schedule.strike(Kind::Put, world.now(), &mut random);
        (fault == Some(Fault::Crash)).then_some((false, before))
    }

    async fn end<T>(&self, end: Option<(bool, bool)>) -> T {
        match end {
            Some((true, _)) => lose_power(&self.world),
            _ => {
                self.world.log(|| format!("{} is killed", self.machine.name));
                self.machine.crash();
            }
        }
        std::future::pending().await
    }
}

#[async_trait]
impl Files for Ground {
    async fn create_folder(&self, folder: &Path) -> io::Result<()> {
        self.step("makes", folder, |medium, _| {
            for above in folder.ancestors().map(name_of).filter(|name| !name.is_empty()) {
                // Only seen: a folder lasts when the folder that names it is flushed.
                medium.seen.entry(above).or_insert(Entry::Folder);
            }
            Ok(())
        })
        .await
    }

    async fn create(&self, file: &Path) -> io::Result<()> {
        self.step("creates", file, |medium, _| medium.name(name_of(file), Entry::File(Arc::default()), false)).await
    }

    async fn write_at(&self, file: &Path, position: u64, bytes: Bytes) -> io::Result<()> {
        self.step("writes", file, |medium, _| {
            let file = medium.file(&name_of(file))?;
            let mut content = lock(&file);
            let position = position as usize;
            let length = content.seen.len().max(position + bytes.len());
            content.seen.resize(length, 0);
            content.seen[position..position + bytes.len()].copy_from_slice(&bytes);
            Ok(())
        })
        .await
    }

    async fn flush_file(&self, file: &Path) -> io::Result<()> {
        self.step("flushes", file, |medium, _| {
            let file = medium.file(&name_of(file))?;
            let mut content = lock(&file);
            content.kept = content.seen.clone();
            Ok(())
        })
        .await
    }

    async fn flush_folder(&self, folder: &Path) -> io::Result<()> {
        self.step("flushes folder", folder, |medium, _| medium.flush_folder(&name_of(folder))).await
    }

    async fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        let world = &self.world;
        let name = name_of(to);
        self.step("links", to, |medium, bucket| {
            let file = medium.file(&name_of(from))?;
            // The new name shares the file, as a hard link does: bytes that were flushed under the old name stay flushed.
            medium.name(name.clone(), Entry::File(file.clone()), false)?;
            let bytes = Bytes::from(lock(&file).seen.clone());
            write(bucket, world, world.now(), &name, &bytes);
            Ok(())
        })
        .await
    }

    async fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let world = &self.world;
        let name = name_of(to);
        self.step("renames to", to, |medium, bucket| {
            let file = medium.file(&name_of(from))?;
            medium.name(name.clone(), Entry::File(file.clone()), true)?;
            medium.removed(&name_of(from));
            let bytes = Bytes::from(lock(&file).seen.clone());
            write(bucket, world, world.now(), &name, &bytes);
            Ok(())
        })
        .await
    }

    async fn remove(&self, file: &Path) -> io::Result<()> {
        let world = &self.world;
        let name = name_of(file);
        self.step("removes", file, |medium, bucket| {
            medium.file(&name)?;
            medium.removed(&name);
            remove(bucket, world, &name);
            Ok(())
        })
        .await
    }

    async fn list(&self, folder: &Path) -> io::Result<Vec<FoundFile>> {
        let within = name_of(folder);
        self.step("lists", folder, |medium, _| {
            let files = medium.seen.iter().filter(|(name, _)| folder_of(name) == within);
            let found = files.filter_map(|(name, entry)| match entry {
                Entry::File(file) => {
                    let path = Path::new("/").join(name);
                    let bytes = lock(file).seen.len() as u64;
                    // They are never old: a vacuum that takes everything for old would stop writers at work.
                    Some(FoundFile { path, bytes, modified_unix_ms: i64::MAX })
                }
                Entry::Folder => None,
            });
            Ok(found.collect())
        })
        .await
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
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
