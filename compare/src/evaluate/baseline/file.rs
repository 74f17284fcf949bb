//! What a file of the baseline holds.
//!
//! ```text
//! first vertex u64 | vertices n u64 | (2 n + 1) offsets u32 | edges u64 …
//! ```
//!
//! Everything is little-endian. Offsets count edges: those of vertex v come in from offset 2 v to offset 2 v + 1,
//! and go out from there to offset 2 v + 2.

use anyhow::{Context, Result, ensure};
use bytes::{BufMut, Bytes, BytesMut};

use super::adjacency::{Adjacency, Edge};

const HEAD_BYTES: usize = 16;

/// Bytes of a file with these numbers of vertices and edges.
pub(super) fn file_bytes(vertices: u64, edges: u64) -> u64 {
    HEAD_BYTES as u64 + (2 * vertices + 1) * 4 + edges * 8
}

/// The file of the vertices from `first` to before `end`.
pub(super) fn encode(all: &Adjacency, first: u64, end: u64) -> Bytes {
    let offsets = &all.offsets[2 * first as usize..=2 * end as usize];
    let from = offsets[0];
    let to = offsets[offsets.len() - 1];
    let mut file = BytesMut::with_capacity(file_bytes(end - first, to - from) as usize);
    file.put_u64_le(first);
    file.put_u64_le(end - first);
    offsets.iter().for_each(|offset| file.put_u32_le((offset - from) as u32));
    all.edges[from as usize..to as usize].iter().for_each(|edge| file.put_u64_le(*edge));
    file.freeze()
}

/// A file, parsed.
#[derive(Debug)]
pub(super) struct File {
    first: u64,
    offsets: Vec<u32>,
    edges: Vec<Edge>,
}

impl File {
    /// Takes a file apart.
    pub(super) fn parse(bytes: &[u8]) -> Result<Self> {
        let (head, rest) = bytes.split_at_checked(HEAD_BYTES).context("the file ends in its head")?;
        let number = |at: usize| u64::from_le_bytes(head[at..at + 8].try_into().expect("eight bytes"));
        let count = usize::try_from(number(8))?.checked_mul(2).and_then(|twice| twice.checked_add(1));
        let length = count.and_then(|count| count.checked_mul(4)).context("too many vertices")?;
        let (offsets, edges) = rest.split_at_checked(length).context("the file ends in its offsets")?;
        let offsets = offsets.chunks_exact(4).map(|four| u32::from_le_bytes(four.try_into().expect("four bytes")));
        let edges = edges.chunks_exact(8).map(|eight| u64::from_le_bytes(eight.try_into().expect("eight bytes")));
        let file = Self { first: number(0), offsets: offsets.collect(), edges: edges.collect() };
        ensure!(file.offsets.is_sorted(), "offsets descend");
        ensure!(file.offsets.last().is_some_and(|last| *last as usize == file.edges.len()), "edges are missing");
        Ok(file)
    }

    /// What it takes in memory, in bytes.
    pub(super) fn bytes(&self) -> u64 {
        (self.offsets.len() * 4 + self.edges.len() * 8) as u64
    }

    /// The edges that come into a vertex of this file, and those that go out.
    pub(super) fn lists(&self, vertex: u64) -> [&[Edge]; 2] {
        let at = 2 * (vertex - self.first) as usize;
        let cut = |list: usize| &self.edges[self.offsets[at + list] as usize..self.offsets[at + list + 1] as usize];
        [cut(0), cut(1)]
    }
}
