//! One machine, on which all processes of a graph in a folder run, and which loses its power.
//!
//! All processes end then, and the oracle checks what is left on the disk ([`crate::medium`]): no acknowledged version may
//! be lost, and none may exist without those after it.

use std::{fmt, io, path::Path, sync::Arc};

use async_trait::async_trait;
use bytes::Bytes;
use hoplake_storage::{Files, FoundFile};
use tokio::time::sleep;

use crate::{
    bucket::{Bucket, Stored},
    client::{Client, remove, write},
    faults::{Fault, OperationKind},
    machine::Machine,
    medium::{Entry, Medium, folder_of, lock, name_of},
    world::{Concern, World},
};

/// One in this many operations loses the power.
const OPERATIONS_PER_LOSS: u64 = 60;

/// The power goes.
fn lose_power(world: &World) {
    let mut bucket = world.bucket();
    let (left, changes) = world.medium().lose(&mut world.random(Concern::Power));
    world.log(|| format!("THE POWER GOES: {changes} names and files were not flushed"));
    let now = world.now();
    bucket.retain(|name, _| left.contains_key(name));
    for (name, bytes) in left {
        let stored = bucket.entry(name).or_insert_with(|| Stored { bytes: Bytes::new(), modified: now });
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
        let fault = world.schedule.strike(OperationKind::Put, world.now(), &mut random);
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
