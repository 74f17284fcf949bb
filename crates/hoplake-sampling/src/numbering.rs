//! The sampled vertices of a label, with a number for each: by the hop in which each was reached first, and there in the order of the
//! edges.
//!
//! All threads number the neighbours of a hop. Vertices are in tables by their hash, and a thread has a table for itself: it finds for each
//! edge the first edge that led to the same vertex. First edges then get numbers in their order, and each of the others that of its first
//! edge. A table is small enough for the cache of a core, so this pays off on one thread, too.

use std::ops::Range;

use hashbrown::HashTable;
use hoplake_engine::EngineError;
use hoplake_format::{LabelId, VertexId};
use hoplake_storage::QueryContext;
use rayon::prelude::*;

use crate::sample::SampledVertices;

/// How many tables a label has: as many threads can number, and 200,000 vertices take 100 KiB in each.
const TABLES: usize = 32;

/// What a neighbour takes at most if it is new, in lists and tables that are doubled as they grow: in what was chosen its ordinal, tree,
/// table and position; the first edge that led to it, twice; its number; itself; and a place of a table, of which there are three while one
/// is doubled.
pub(crate) const NUMBERED_BYTES: u64 = 2 * (8 + 4) + 1 + 4 + 2 * 4 + 2 * 4 + 2 * 16 + 3 * 17;

/// A vertex in the tree of a seed, and the first edge that led to it.
#[derive(Debug, Clone, Copy)]
struct First {
    ordinal: u64,
    tree: u32,
    edge: u32,
}

impl First {
    fn is(&self, ordinal: u64, tree: u32) -> bool {
        (self.ordinal, self.tree) == (ordinal, tree)
    }
}

#[inline]
fn hash(ordinal: u64, tree: u32) -> u64 {
    // The product of two words, folded, as in foldhash: ordinals are numbers one after the other, which nobody chooses.
    let product = u128::from(ordinal ^ u64::from(tree).rotate_left(32) ^ 0x243f_6a88_85a3_08d3) * 0x9e37_79b9_7f4a_7c15;
    (product as u64) ^ (product >> 64) as u64
}

/// The table of a hash. `HashTable` itself uses the bits at both ends.
#[inline]
fn table_of(hash: u64) -> usize {
    (hash >> 40) as usize % TABLES
}

/// What was chosen of the lists of some consecutive vertices.
#[derive(Debug, Default)]
pub(crate) struct Chosen {
    /// How many neighbours of each vertex.
    counts: Vec<u32>,
    ordinals: Vec<u64>,
    /// The trees of the neighbours; empty if there is one.
    trees: Vec<u32>,
    /// Where the edges are in their lists, if that is asked for.
    pub(crate) places: Vec<u32>,
    /// Positions among the neighbours, by table.
    by_table: Vec<u32>,
    /// Where those of each table end.
    ends: [u32; TABLES],
}

impl Chosen {
    /// Adds what was chosen of the list of the next vertex.
    #[inline]
    pub(crate) fn push(&mut self, ordinals: impl Iterator<Item = u64>, tree: Option<u32>) {
        let before = self.ordinals.len();
        self.ordinals.extend(ordinals);
        self.counts.push((self.ordinals.len() - before) as u32);
        if let Some(tree) = tree {
            self.trees.resize(self.ordinals.len(), tree);
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.ordinals.len()
    }

    fn tree(&self, at: usize) -> u32 {
        self.trees.get(at).copied().unwrap_or(0)
    }

    /// Finds out which table each neighbour is in, once all are there.
    pub(crate) fn divide(&mut self) {
        let tables: Vec<u8> =
            (0..self.len()).map(|at| table_of(hash(self.ordinals[at], self.tree(at))) as u8).collect();
        let mut places = [0_u32; TABLES];
        tables.iter().for_each(|table| places[usize::from(*table)] += 1);
        let mut end = 0;
        for (place, of_table) in places.iter_mut().zip(&mut self.ends) {
            let begin = end;
            end += *place;
            *place = begin;
            *of_table = end;
        }
        self.by_table = vec![0; self.len()];
        for (at, table) in tables.iter().enumerate() {
            let place = &mut places[usize::from(*table)];
            self.by_table[*place as usize] = at as u32;
            *place += 1;
        }
    }

    fn of_table(&self, table: usize) -> &[u32] {
        let begin = table.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.by_table[begin as usize..self.ends[table] as usize]
    }
}

/// The vertices of a label, with a number for each.
#[derive(Debug)]
pub(crate) struct Numbering {
    pub(crate) label: LabelId,
    tables: Vec<HashTable<First>>,
    /// For each seed and edge, in their order, the number of the vertex if it was the first that led there.
    numbers: Vec<u32>,
    vertices: Vec<(VertexId, u32)>,
    /// Where the vertices begin that were reached in each hop.
    begins: Vec<usize>,
}

impl Numbering {
    pub(crate) fn new(label: LabelId) -> Self {
        let tables = (0..TABLES).map(|_| HashTable::new()).collect();
        Self { label, tables, numbers: Vec::new(), vertices: Vec::new(), begins: vec![0] }
    }

    /// The number of a seed in a tree, which is a new one if it was not there.
    pub(crate) fn number(&mut self, vertex: VertexId, tree: u32) -> u32 {
        let edge = self.numbers.len() as u32;
        let first = first_edge(&mut self.tables[table_of(hash(vertex.ordinal(), tree))], vertex.ordinal(), tree, edge);
        if first == edge {
            self.numbers.push(self.vertices.len() as u32);
            self.vertices.push((vertex, tree));
        }
        self.numbers[first as usize]
    }

    /// Numbers the chosen neighbours of consecutive vertices, in their order. Adds to `near` the number of the vertex that has each, from
    /// `first` on, and to `far` that of the neighbour.
    pub(crate) fn number_all(
        &mut self,
        chosen: &[Chosen],
        first: usize,
        (near, far): (&mut Vec<i64>, &mut Vec<i64>),
        context: &QueryContext,
    ) -> Result<(), EngineError> {
        let before = self.numbers.len();
        let count: usize = chosen.iter().map(Chosen::len).sum();
        if before.saturating_add(count) > u32::MAX as usize {
            return Err(EngineError::Invalid(
                "a batch has 2³² edges or more; sample fewer neighbours of fewer seeds".into(),
            ));
        }
        let mut begins = Vec::with_capacity(chosen.len());
        let mut begin = before;
        for chosen in chosen {
            begins.push(begin);
            begin += chosen.len();
        }
        let find = |(number, table): (usize, &mut HashTable<First>)| {
            let count = chosen.iter().map(|chosen| chosen.of_table(number).len()).sum();
            let mut found = Vec::with_capacity(count);
            for (chosen, begin) in chosen.iter().zip(&begins) {
                context.check_time()?;
                found.extend(chosen.of_table(number).iter().map(|at| {
                    let place = *at as usize;
                    first_edge(table, chosen.ordinals[place], chosen.tree(place), *begin as u32 + at)
                }));
            }
            Ok(found)
        };
        let found = self.tables.par_iter_mut().enumerate().map(find).collect::<Result<Vec<Vec<u32>>, EngineError>>()?;
        // Where what was found for each piece begins in that of each table.
        let mut places = Vec::with_capacity(chosen.len());
        let mut place = [0; TABLES];
        for chosen in chosen {
            places.push(place);
            place.iter_mut().enumerate().for_each(|(table, place)| *place += chosen.of_table(table).len());
        }
        let in_order = |((chosen, begin), places): ((&Chosen, &usize), &[usize; TABLES])| {
            let mut firsts = vec![0; chosen.len()];
            for (table, found) in found.iter().enumerate() {
                let of_table = chosen.of_table(table);
                of_table.iter().zip(&found[places[table]..]).for_each(|(at, first)| firsts[*at as usize] = *first);
            }
            let new = firsts.iter().zip(*begin as u32..).filter(|(first, edge)| *first == edge).count();
            (firsts, new)
        };
        let firsts: Vec<(Vec<u32>, usize)> = chosen.par_iter().zip(&begins).zip(&places).map(in_order).collect();
        drop(found);
        let known = self.vertices.len();
        let new: usize = firsts.iter().map(|(_, new)| new).sum();
        self.numbers.resize(before + count, 0);
        let unknown =
            VertexId::new(self.label, 0).ok_or_else(|| EngineError::Internal("0 has more than 48 bits".into()))?;
        self.vertices.resize(known + new, (unknown, 0));
        let lengths = chosen.iter().map(Chosen::len);
        let numbers = pieces(&mut self.numbers[before..], lengths.clone());
        let vertices = pieces(&mut self.vertices[known..], firsts.iter().map(|(_, new)| *new));
        let mut number = known as u32;
        let mut tasks = Vec::with_capacity(chosen.len());
        for (at, (numbers, vertices)) in numbers.into_iter().zip(vertices).enumerate() {
            tasks.push((at, number, numbers, vertices));
            number += firsts[at].1 as u32;
        }
        let label = self.label;
        tasks.into_par_iter().try_for_each(|(piece, mut next, numbers, vertices)| {
            let (chosen, begin) = (&chosen[piece], begins[piece] as u32);
            let mut vertices = vertices.iter_mut();
            for (at, (first, number)) in firsts[piece].0.iter().zip(numbers).enumerate() {
                if *first == begin + at as u32
                    && let Some(place) = vertices.next()
                {
                    let outside = || EngineError::Internal("an ordinal has more than 48 bits".into());
                    *place = (VertexId::new(label, chosen.ordinals[at]).ok_or_else(outside)?, chosen.tree(at));
                    *number = next;
                    next += 1;
                }
            }
            Ok::<_, EngineError>(())
        })?;
        let edges = near.len();
        near.resize(edges + count, 0);
        far.resize(edges + count, 0);
        let ends = pieces(&mut near[edges..], lengths.clone()).into_iter().zip(pieces(&mut far[edges..], lengths));
        let mut vertex = first;
        let mut tasks = Vec::with_capacity(chosen.len());
        for ((chosen, (firsts, _)), (near, far)) in chosen.iter().zip(&firsts).zip(ends) {
            tasks.push((chosen, firsts, vertex, near, far));
            vertex += chosen.counts.len();
        }
        let numbers = &self.numbers;
        tasks.into_par_iter().for_each(|(chosen, firsts, vertex, near, far)| {
            firsts.iter().zip(far).for_each(|(first, far)| *far = numbers[*first as usize].into());
            let mut near = near.iter_mut();
            for (vertex, count) in (vertex as i64..).zip(&chosen.counts) {
                near.by_ref().take(*count as usize).for_each(|near| *near = vertex);
            }
        });
        Ok(())
    }

    /// The number of a vertex in a tree, if it is there.
    pub(crate) fn known(&self, vertex: VertexId, tree: u32) -> Option<u32> {
        let hash = hash(vertex.ordinal(), tree);
        let found = self.tables[table_of(hash)].find(hash, |known| known.is(vertex.ordinal(), tree));
        found.map(|first| self.numbers[first.edge as usize])
    }

    pub(crate) fn len(&self) -> usize {
        self.vertices.len()
    }

    /// Vertices and their trees.
    pub(crate) fn vertices(&self, numbers: Range<usize>) -> &[(VertexId, u32)] {
        &self.vertices[numbers]
    }

    /// The vertices of the hop before, or the seeds.
    pub(crate) fn frontier(&self) -> Range<usize> {
        let end = self.begins.len();
        let begin = end.checked_sub(2).map_or(0, |before| self.begins[before]);
        begin..self.begins[end - 1]
    }

    /// Ends a hop, or the seeds: what was added since then is the next frontier.
    pub(crate) fn end_hop(&mut self) {
        self.begins.push(self.vertices.len());
    }

    pub(crate) fn finish(self, is_disjoint: bool) -> SampledVertices {
        let Self { label, vertices, begins, .. } = self;
        let per_hop = begins.windows(2).map(|ends| ends[1] - ends[0]).collect();
        let trees = if is_disjoint { vertices.iter().map(|(_, tree)| i64::from(*tree)).collect() } else { Vec::new() };
        let ordinals = vertices.into_iter().map(|(vertex, _)| vertex.ordinal() as i64).collect();
        SampledVertices { label, ordinals, trees, per_hop }
    }
}

/// The first edge that led to a vertex, which is this one if the table does not have the vertex.
#[inline]
fn first_edge(table: &mut HashTable<First>, ordinal: u64, tree: u32, edge: u32) -> u32 {
    let rehash = |first: &First| hash(first.ordinal, first.tree);
    let entry = table.entry(hash(ordinal, tree), |known| known.is(ordinal, tree), rehash);
    entry.or_insert(First { ordinal, tree, edge }).get().edge
}

/// Consecutive pieces of these lengths.
fn pieces<T>(mut all: &mut [T], lengths: impl Iterator<Item = usize>) -> Vec<&mut [T]> {
    let cut = |length| {
        let (piece, rest) = std::mem::take(&mut all).split_at_mut(length);
        all = rest;
        piece
    };
    lengths.map(cut).collect()
}
