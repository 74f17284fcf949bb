//! The local disk of a machine: the logs of a disk cache outlive its process, and may differ from what it wrote.
//!
//! It is in memory and synchronous, so that the seed decides everything. A process that has ended writes
//! nothing more, as one that was killed.

use std::{
    collections::BTreeMap,
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use hoplake_storage::{Disk, DiskFile};

use crate::{
    faults::{Fault, OperationKind},
    machine::Machine,
    world::{Concern, World},
};

/// A file; an open handle can read it after its deletion.
type File = Arc<Mutex<Vec<u8>>>;

/// The content of a disk.
#[derive(Debug)]
pub struct Platter {
    /// The maximum size of a cache there, in bytes.
    pub bytes_max: u64,
    files: Mutex<BTreeMap<u32, File>>,
}

impl Platter {
    /// Every second machine has a disk, and all have one if something goes wrong with disks. Some are so small that
    /// blocks go and come back.
    pub fn draw(world: &World) -> Option<Arc<Self>> {
        let mut random = world.random(Concern::Disk);
        let bytes_max = [8 << 10, 256 << 10, 4 << 20][random.below(3) as usize];
        let there = random.below(2) == 0 || world.schedule.spoils_disks();
        there.then(|| Arc::new(Self { bytes_max, files: Mutex::default() }))
    }

    /// The disk, as a process has it.
    pub fn of(self: &Arc<Self>, world: &Arc<World>, machine: &Arc<Machine>) -> Arc<dyn Disk> {
        let count = lock(&self.files).len();
        world.log(|| format!("{} has a disk with {count} logs", machine.name));
        Arc::new(Mounted { platter: self.clone(), way: Way { world: world.clone(), machine: machine.clone() } })
    }

    /// The machine has crashed: the last log is truncated, some are missing, or have a wrong bit.
    pub fn crashed(&self, world: &World) {
        let mut files = lock(&self.files);
        if world.is_calm() || files.is_empty() {
            return;
        }
        let mut random = world.random(Concern::Disk);
        if world.schedule.has(Fault::DiskTorn)
            // The last log is the one that was being written.
            && let Some((number, file)) = files.last_key_value()
        {
            let mut bytes = lock(file);
            let length = random.below(bytes.len() as u64 + 1) as usize;
            // Unwritten bytes are missing, or zero.
            match random.below(2) {
                0 => bytes.truncate(length),
                _ => bytes[length..].fill(0),
            }
            world.log(|| format!("the crash leaves {length} bytes of log {number}"));
        }
        let at = random.below(files.len() as u64) as usize;
        let (number, file) =
            files.iter().nth(at).map(|(number, file)| (*number, file.clone())).expect("it is one of them");
        if world.schedule.has(Fault::DiskFlipped) {
            let bit = flip(&mut lock(&file), 0, random.next_u64());
            world.log(|| format!("the crash spoils bit {bit:?} of log {number}"));
        }
        if world.schedule.has(Fault::DiskLost) && random.below(2) == 0 {
            files.remove(&number);
            world.log(|| format!("the crash takes log {number}"));
        }
    }
}

/// Makes a bit wrong, of those from a byte on.
fn flip(bytes: &mut [u8], from: usize, random: u64) -> Option<usize> {
    let bits = 8 * bytes.len().checked_sub(from).filter(|bytes| *bytes > 0)?;
    let bit = 8 * from + (random % bits as u64) as usize;
    bytes[bit / 8] ^= 1 << (bit % 8);
    Some(bit)
}

/// The way from a process to its disk.
#[derive(Debug, Clone)]
struct Way {
    world: Arc<World>,
    machine: Arc<Machine>,
}

impl Way {
    fn befall(&self, kind: OperationKind) -> Option<Fault> {
        let world = &self.world;
        if world.is_calm() {
            return None;
        }
        let fault = world.schedule.strike(kind, world.now(), &mut world.random(Concern::Disk))?;
        world.log(|| format!("{} {kind:?} ({fault:?})", self.machine.name));
        Some(fault)
    }

    fn below(&self, bound: usize) -> usize {
        self.world.random(Concern::Disk).below(bound as u64) as usize
    }

    /// No process is left that could write.
    fn check_alive(&self) -> io::Result<()> {
        match self.machine.is_dead() {
            true => Err(io::Error::other("the process has ended")),
            false => Ok(()),
        }
    }
}

/// A disk, as a process has it.
#[derive(Debug)]
struct Mounted {
    platter: Arc<Platter>,
    way: Way,
}

impl Mounted {
    fn file(&self, file: &File) -> Arc<dyn DiskFile> {
        Arc::new(Open { platter: self.platter.clone(), file: file.clone(), way: self.way.clone() })
    }
}

impl Disk for Mounted {
    fn list(&self) -> io::Result<Vec<u32>> {
        Ok(lock(&self.platter.files).keys().rev().copied().collect())
    }

    fn create(&self, number: u32) -> io::Result<Arc<dyn DiskFile>> {
        self.way.check_alive()?;
        let file = File::default();
        let mut files = lock(&self.platter.files);
        // Never over a log that is there: it may be of an earlier life, and a reader may have it open.
        if files.insert(number, file.clone()).is_some() {
            self.way.world.violated(format!("the disk cache of {} wrote over log {number}", self.way.machine.name));
        }
        Ok(self.file(&file))
    }

    fn open(&self, number: u32) -> io::Result<Arc<dyn DiskFile>> {
        let files = lock(&self.platter.files);
        files.get(&number).map(|file| self.file(file)).ok_or(io::ErrorKind::NotFound.into())
    }

    fn remove(&self, number: u32) -> io::Result<()> {
        self.way.check_alive()?;
        lock(&self.platter.files).remove(&number).map(drop).ok_or(io::ErrorKind::NotFound.into())
    }

    fn waits(&self) -> bool {
        false
    }
}

/// A file, open.
#[derive(Debug)]
struct Open {
    platter: Arc<Platter>,
    file: File,
    way: Way,
}

impl Open {
    /// Bytes of another position in this file, or of the same position in another one.
    fn elsewhere(&self, buffer: &mut [u8], position: usize) -> io::Result<()> {
        let files: Vec<File> = lock(&self.platter.files).values().cloned().collect();
        // One number more than there are files stands for another position in this one.
        match files.get(self.way.below(files.len() + 1)) {
            Some(file) => copy(&lock(file), position, buffer),
            None => {
                let bytes = lock(&self.file);
                copy(&bytes, self.way.below(bytes.len()), buffer)
            }
        }
    }
}

fn copy(bytes: &[u8], position: usize, buffer: &mut [u8]) -> io::Result<()> {
    let there = position.checked_add(buffer.len()).and_then(|end| bytes.get(position..end));
    buffer.copy_from_slice(there.ok_or(io::ErrorKind::UnexpectedEof)?);
    Ok(())
}

impl DiskFile for Open {
    fn bytes(&self) -> io::Result<u64> {
        Ok(lock(&self.file).len() as u64)
    }

    fn read_at(&self, buffer: &mut [u8], position: u64) -> io::Result<()> {
        let position = position as usize;
        match self.way.befall(OperationKind::DiskRead) {
            Some(Fault::DiskLost) => return Err(io::Error::other("the disk cannot read it")),
            Some(Fault::DiskOther) => return self.elsewhere(buffer, position),
            Some(Fault::DiskFlipped) => {
                // Within the bytes that are asked for, and for good: a second read meets the same bit.
                let end = position.saturating_add(buffer.len());
                let mut bytes = lock(&self.file);
                let end = end.min(bytes.len());
                let random = self.way.world.random(Concern::Disk).next_u64();
                flip(&mut bytes[..end], position.min(end), random);
            }
            _ => {}
        }
        copy(&lock(&self.file), position, buffer)
    }

    fn write_at(&self, bytes: &[u8], position: u64) -> io::Result<()> {
        self.way.check_alive()?;
        let fault = self.way.befall(OperationKind::DiskWrite);
        // A torn write is answered as done: only the checksum of the block shows it, when the block is read.
        let arrives = match fault {
            Some(_) => self.way.below(bytes.len() + 1),
            None => bytes.len(),
        };
        let position = position as usize;
        let mut file = lock(&self.file);
        let length = file.len().max(position + arrives);
        file.resize(length, 0);
        file[position..position + arrives].copy_from_slice(&bytes[..arrives]);
        match fault {
            Some(Fault::DiskFull) => Err(io::ErrorKind::StorageFull.into()),
            Some(Fault::Crash) => {
                self.way.machine.crash();
                Err(io::Error::other("the process ends here"))
            }
            _ => Ok(()),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_was_written_outlives_its_process_which_then_writes_nothing_more() {
        let world = World::new(crate::Scenario::Graphs, 1, false);
        world.calm_down();
        let platter = Arc::new(Platter { bytes_max: 1 << 20, files: Mutex::default() });
        let first = Machine::new("first", false);
        let disk = platter.of(&world, &first);
        let file = disk.create(7).unwrap();
        file.write_at(b"block", 3).unwrap();
        first.crash();
        assert!(file.write_at(b"other", 3).is_err() && disk.create(8).is_err() && disk.remove(7).is_err());
        let disk = platter.of(&world, &Machine::new("second", false));
        assert_eq!(disk.list().unwrap(), [7]);
        let file = disk.open(7).unwrap();
        let mut found = [0; 8];
        disk.remove(7).unwrap();
        file.read_at(&mut found, 0).unwrap();
        assert_eq!((&found, file.bytes().unwrap(), disk.open(7).is_err()), (b"\0\0\0block", 8, true));
        assert!(file.read_at(&mut found, 1).is_err());
        assert_eq!(world.outcome().0, None);
    }
}
