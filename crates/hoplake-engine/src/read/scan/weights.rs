//! A property of edges as numbers, in the order in which a scan of lists has the edges.
//!
//! The table of a run has a row for each of its edges, by position, and lists ascend by position. So weights are read ahead from
//! one end of the table to the other while lists are decoded, whichever of the positions a merge then takes.

use std::{collections::VecDeque, sync::Arc};

use hoplake_format::TableOwner;
use hoplake_storage::Branch;

use super::{ListRange, OnItsWay};
use crate::{
    EngineError, Snapshot,
    read::{
        properties::RowsOf,
        weights::{Flaw, numbers},
    },
    snapshot::sections::Run,
};

/// Rows that are read at once: 2 MiB of numbers.
const CHUNK_ROWS: u64 = 1 << 18;

/// Chunks on their way while one is taken from.
const CHUNKS_AHEAD: usize = 2;

/// Weights that were read: the row of the first, all of them, and the branch that read them.
type Chunk = (u64, Vec<f64>, Branch);

/// The weights of the edges of a run.
pub(crate) struct WeightScan {
    snapshot: Arc<Snapshot>,
    rows: RowsOf,
    property: String,
    /// For errors: the edge label.
    label: String,
    /// The first row that was not asked for yet, and how many there are.
    next: u64,
    end: u64,
    coming: VecDeque<OnItsWay<Chunk>>,
    /// Those at hand, from this row on.
    first: u64,
    here: Vec<f64>,
}

impl WeightScan {
    pub(super) fn new(snapshot: &Arc<Snapshot>, range: &ListRange, run: &Run, property: &str) -> Self {
        let until = run.versions.until;
        let owner = TableOwner::Edges(range.edge_type, range.direction);
        let tables = snapshot.manifest().tables.iter();
        let tables = tables.filter(|table| table.owner == owner && table.versions.until == until);
        Self {
            rows: RowsOf::Edges(range.edge_type, range.direction, until),
            property: property.to_owned(),
            label: snapshot.schema().edge_type(range.edge_type).map_or_else(String::new, |edge| edge.label.clone()),
            next: 0,
            end: tables.map(|table| table.first_row + table.rows).max().unwrap_or(0),
            coming: VecDeque::new(),
            first: 0,
            here: Vec::new(),
            snapshot: snapshot.clone(),
        }
    }

    /// Appends the weights at some positions, which ascend from call to call.
    pub(super) async fn take(
        &mut self,
        positions: impl Iterator<Item = u64>,
        into: &mut Vec<f64>,
        branch: &mut Branch,
    ) -> Result<(), EngineError> {
        for position in positions {
            while position >= self.first + self.here.len() as u64 {
                self.go_on(position, branch).await?;
            }
            into.push(self.here[(position - self.first) as usize]);
        }
        Ok(())
    }

    /// Waits for the next chunk. A scan of a part of the lists begins at the first position that is asked for.
    async fn go_on(&mut self, position: u64, branch: &mut Branch) -> Result<(), EngineError> {
        if self.coming.is_empty() {
            self.next = self.next.max(position / CHUNK_ROWS * CHUNK_ROWS);
        }
        while self.coming.len() <= CHUNKS_AHEAD && self.next < self.end {
            let rows = self.next..self.end.min(self.next + CHUNK_ROWS);
            self.next = rows.end;
            let (snapshot, of, property, mut line) =
                (self.snapshot.clone(), self.rows, self.property.clone(), branch.clone());
            let label = self.label.clone();
            self.coming.push_back(OnItsWay::begin(async move {
                let first = rows.start;
                let rows = rows.collect::<Vec<u64>>();
                let batch = snapshot.rows().of(of, &rows, std::slice::from_ref(&property), &mut line).await?;
                let weights = batch
                    .column_by_name(&property)
                    .map(|column| numbers(column).map_err(|(_, flaw)| flaw.of(&property, &format!("an edge {label}"))));
                let missing = || {
                    EngineError::NotFound(format!("edge type {label} has no property {property:?} to use as a weight"))
                };
                Ok((first, weights.ok_or_else(missing)??, line))
            }));
        }
        let Some(coming) = self.coming.pop_front() else {
            // A run from before the edge label had properties has no table.
            return Err(Flaw::Missing.of(&self.property, &format!("an edge {}", self.label)));
        };
        let (first, weights, came) = coming.arrived().await?;
        branch.join([&came]);
        (self.first, self.here) = (first, weights);
        Ok(())
    }
}
