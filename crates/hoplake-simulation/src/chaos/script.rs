//! The writers' batches: each is identifiable, and an incomplete one is detectable.
//!
//! Batch 17 of writer 2, tried as attempt `a`:
//!
//! | | |
//! | --- | --- |
//! | items | vertices `2/17/a/0` and on, as many as the number; each has an edge from the writer, and one to the next item |
//! | the writer | its row has 17: a row that every batch overwrites |
//! | a lamp | `2/17` is lit and `2/16` is deleted, with its edge: one is there at a time |
//! | source position | `17 a` |
//! | old items | those of the batch [`WINDOW`] before it are deleted, so that a graph that is written for an hour stays as large as it is |
//!
//! Everything has the number as its property `batch`. Another attempt at the same batch has other items, so that a
//! batch which was published twice shows.

use std::fmt::{self, Display};

use hoplake::{Batch, Operation, Properties, VertexRef};

/// Batches of a writer that a version has, at most: the last ones.
pub(super) const WINDOW: u64 = 100;

/// A batch of a writer, as it was tried once.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Attempt {
    pub(super) writer: u32,
    /// Counted from 1, without a gap.
    pub(super) batch: u64,
    pub(super) name: String,
}

impl Display for Attempt {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { writer, batch, name } = self;
        write!(out, "batch {batch} of writer {writer}, attempt {name}")
    }
}

impl Attempt {
    /// The content of a source's position.
    pub(super) fn at_position(writer: u32, position: &str) -> Option<Self> {
        let (batch, name) = position.split_once(' ')?;
        Some(Self { writer, batch: batch.parse().ok()?, name: name.to_owned() })
    }

    pub(super) fn position(&self) -> String {
        format!("{} {}", self.batch, self.name)
    }

    /// The attempt that an item is of, and its number in it.
    pub(super) fn of_item(key: &str) -> Option<(Self, u64)> {
        let mut parts = key.split('/');
        let mut next = || parts.next();
        let writer = next()?;
        let batch = next()?;
        let name = next()?;
        let item = next()?;
        let attempt = Self { writer: writer.parse().ok()?, batch: batch.parse().ok()?, name: name.to_owned() };
        Some((attempt, item.parse().ok()?))
    }

    pub(super) fn items(&self) -> u64 {
        2 + self.batch % 4
    }

    /// All its items.
    pub(super) fn all_items(&self) -> Vec<VertexRef> {
        (0..self.items()).map(|number| self.item(number)).collect()
    }

    pub(super) fn item(&self, number: u64) -> VertexRef {
        VertexRef::new("Item", format!("{}/{}/{}/{number}", self.writer, self.batch, self.name))
    }

    /// The lamp that is lit with it.
    pub(super) fn lamp(&self) -> VertexRef {
        lamp(self.writer, self.batch)
    }

    /// All its changes, with the items that are to go. With a base, so that what an earlier attempt did late is a
    /// conflict.
    pub(super) fn changes(&self, base: Option<u64>, old: &[VertexRef]) -> Batch {
        let mut batch = Batch { base, message: self.to_string(), ..Batch::default() };
        let writer = writer(self.writer);
        batch.operations.push(self.vertex(writer.clone()));
        for number in 0..self.items() {
            batch.operations.push(self.vertex(self.item(number)));
            batch.operations.push(self.edge("wrote", writer.clone(), self.item(number)));
            if number > 0 {
                batch.operations.push(self.edge("next", self.item(number - 1), self.item(number)));
            }
        }
        batch.operations.push(self.vertex(self.lamp()));
        batch.operations.push(self.edge("lit", writer, self.lamp()));
        if self.batch > 1 {
            batch.operations.push(Operation::DeleteVertex { vertex: lamp(self.writer, self.batch - 1) });
        }
        let deleted = old.iter().map(|item| Operation::DeleteVertex { vertex: item.clone() });
        batch.operations.extend(deleted);
        batch.source_positions.insert(source(self.writer), self.position());
        batch
    }

    fn vertex(&self, vertex: VertexRef) -> Operation {
        Operation::UpsertVertex { vertex, properties: self.properties(), replace: false }
    }

    fn edge(&self, label: &str, source: VertexRef, target: VertexRef) -> Operation {
        let properties = self.properties();
        Operation::UpsertEdge { label: label.into(), source, target, key: None, properties, replace: true }
    }

    fn properties(&self) -> Properties {
        [("batch", self.batch as i64)].into()
    }
}

/// The vertex of a writer.
pub(super) fn writer(number: u32) -> VertexRef {
    VertexRef::new("Writer", i64::from(number))
}

/// Its name as a source.
pub(super) fn source(writer: u32) -> String {
    format!("writer {writer}")
}

fn lamp(writer: u32, batch: u64) -> VertexRef {
    VertexRef::new("Lamp", format!("{writer}/{batch}"))
}
