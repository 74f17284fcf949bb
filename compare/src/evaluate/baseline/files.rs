//! The baseline's files in a store, and its cache of whole files.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use anyhow::{Context, Result};
use hoplake::Store;
use object_store::{ObjectStoreExt, memory::InMemory, path::Path};

use super::{
    adjacency::Adjacency,
    file::{File, encode, file_bytes},
};

/// The index of the files and the files in memory.
pub struct Files {
    store: Store,
    /// The first vertex of each file.
    firsts: Arc<[u64]>,
    recent: Mutex<Recent>,
    /// Held by who fetches a file, so that others wait for it.
    fetching: Vec<tokio::sync::Mutex<()>>,
}

/// Whole files, the least recently used first to go.
#[derive(Default)]
struct Recent {
    bytes_max: u64,
    bytes: u64,
    files: HashMap<usize, (Arc<File>, u64)>,
    uses: u64,
    hits: u64,
}

/// The files of a graph, cut at a size, and where each begins.
#[derive(Clone)]
pub struct Partitions {
    /// Where they are.
    pub objects: Arc<InMemory>,
    /// Their bytes together.
    pub bytes: u64,
    firsts: Arc<[u64]>,
}

fn name(file: usize) -> String {
    format!("partition-{file:05}")
}

impl Partitions {
    /// Cuts the lists into files of about `partition_bytes`; a vertex is in one file.
    pub async fn cut(all: &Adjacency, partition_bytes: u64) -> Result<Self> {
        let objects = Arc::new(InMemory::new());
        let mut firsts = Vec::new();
        let mut bytes = 0;
        let mut first = 0;
        for end in 1..=all.vertices() {
            let edges = all.offsets[2 * end as usize] - all.offsets[2 * first as usize];
            if end == all.vertices() || file_bytes(end - first, edges) >= partition_bytes {
                let file = encode(all, first, end);
                bytes += file.len() as u64;
                objects.put(&Path::from(name(firsts.len())), file.into()).await?;
                firsts.push(first);
                first = end;
            }
        }
        Ok(Self { objects, bytes, firsts: firsts.into() })
    }

    /// How many files there are.
    pub fn len(&self) -> usize {
        self.firsts.len()
    }
}

impl Files {
    /// Reads files from `store` through an empty cache of `cache_bytes_max`.
    pub fn new(partitions: &Partitions, store: Store, cache_bytes_max: u64) -> Self {
        let recent = Mutex::new(Recent { bytes_max: cache_bytes_max, ..Recent::default() });
        let fetching = (0..partitions.len()).map(|_| tokio::sync::Mutex::default()).collect();
        Self { store, firsts: partitions.firsts.clone(), recent, fetching }
    }

    /// Look-ups that found their file in memory.
    pub fn hits(&self) -> u64 {
        self.recent.lock().expect("nothing panics with the cache").hits
    }

    /// The file that holds a vertex.
    pub(super) async fn holding(&self, vertex: u64) -> Result<Arc<File>> {
        let number = self.firsts.partition_point(|first| *first <= vertex) - 1;
        if let Some(file) = self.cached(number) {
            return Ok(file);
        }
        let _fetching = self.fetching[number].lock().await;
        if let Some(file) = self.cached(number) {
            return Ok(file);
        }
        let bytes = self.store.get(&name(number)).await?.with_context(|| format!("{} is gone", name(number)))?;
        let file = Arc::new(File::parse(&bytes)?);
        self.recent.lock().expect("nothing panics with the cache").keep(number, file.clone());
        Ok(file)
    }

    fn cached(&self, number: usize) -> Option<Arc<File>> {
        self.recent.lock().expect("nothing panics with the cache").used(number)
    }
}

impl Recent {
    fn used(&mut self, number: usize) -> Option<Arc<File>> {
        self.uses += 1;
        let (file, used) = self.files.get_mut(&number)?;
        *used = self.uses;
        self.hits += 1;
        Some(file.clone())
    }

    fn keep(&mut self, number: usize, file: Arc<File>) {
        if file.bytes() > self.bytes_max {
            return;
        }
        self.bytes += file.bytes();
        self.files.insert(number, (file, self.uses));
        while self.bytes > self.bytes_max {
            let oldest = self.files.iter().min_by_key(|(_, (_, used))| *used).map(|(number, _)| *number);
            let gone = oldest.and_then(|number| self.files.remove(&number));
            self.bytes -= gone.map_or(self.bytes, |(file, _)| file.bytes());
        }
    }
}
