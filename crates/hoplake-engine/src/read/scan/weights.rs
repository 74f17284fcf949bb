//! A property of edges as numbers, in the order in which a scan of lists has the edges.
//!
//! The table of a run has a row for each of its edges, by position, and lists ascend by position. So weights are read ahead from
//! one end of the table to the other while lists are decoded, whichever of the positions a merge then takes.

use std::{collections::VecDeque, sync::Arc};

use arrow_array::{
    Array, ArrayRef,
    cast::AsArray,
    types::{Float64Type, Int64Type},
};
use hoplake_format::{EdgeType, PropertyType, ScalarType, TableOwner};
use hoplake_storage::Branch;

use super::{ListRange, OnItsWay};
use crate::{EngineError, Snapshot, read::properties::RowsOf, snapshot::sections::Run};

/// Rows that are read at once: 2 MiB of numbers.
const CHUNK_ROWS: u64 = 1 << 18;

/// Chunks on their way while one is taken from.
const CHUNKS_AHEAD: usize = 2;

/// The greatest integer up to which each has a float64 of its own.
const EXACT_MAX: u64 = 1 << 53;

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

/// Refuses a property that cannot be a weight of edges of a type.
pub(super) fn check_weight(edge_type: &EdgeType, property: &str) -> Result<(), EngineError> {
    let label = &edge_type.label;
    let Some(found) = edge_type.properties.iter().find(|found| found.name == property) else {
        return Err(EngineError::NotFound(format!(
            "edges {label} have no property {property:?}, which is to be a weight"
        )));
    };
    match found.kind {
        PropertyType::Scalar(ScalarType::Int64 | ScalarType::Float64) => Ok(()),
        kind => {
            Err(EngineError::Invalid(format!("property {property:?} of edges {label} is of type {kind}, not a number")))
        }
    }
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
                let weights = batch.column_by_name(&property).map(|column| numbers(column, &property, &label));
                let missing = || EngineError::NotFound(format!("edges {label} have no property {property:?}"));
                Ok((first, weights.ok_or_else(missing)??, line))
            }));
        }
        let Some(coming) = self.coming.pop_front() else {
            // A run from before the edge label had properties has no table.
            return Err(no_weight(&self.property, &self.label));
        };
        let (first, weights, came) = coming.arrived().await?;
        branch.join([&came]);
        (self.first, self.here) = (first, weights);
        Ok(())
    }
}

fn no_weight(property: &str, label: &str) -> EngineError {
    EngineError::Invalid(format!("an edge {label} has no value of property {property:?}, which is to be its weight"))
}

/// A column as weights: each has to be there, not negative, and exact.
fn numbers(column: &ArrayRef, property: &str, label: &str) -> Result<Vec<f64>, EngineError> {
    if column.null_count() > 0 {
        return Err(no_weight(property, label));
    }
    let refused = |value: &dyn std::fmt::Display, why| {
        EngineError::Invalid(format!("{property} = {value} of an edge {label} is no weight: {why}"))
    };
    if let Some(floats) = column.as_primitive_opt::<Float64Type>() {
        return match floats.values().iter().find(|value| value.is_nan() || **value < 0.0) {
            Some(value) => Err(refused(value, "weights are 0 or more")),
            None => Ok(floats.values().to_vec()),
        };
    }
    let not_a_number = || EngineError::Invalid(format!("property {property:?} of edges {label} is not a number"));
    let integers = column.as_primitive_opt::<Int64Type>().ok_or_else(not_a_number)?;
    for value in integers.values() {
        if *value < 0 {
            return Err(refused(value, "weights are 0 or more"));
        }
        if value.unsigned_abs() > EXACT_MAX {
            return Err(refused(value, "a float64 does not hold it exactly"));
        }
    }
    Ok(integers.values().iter().map(|value| *value as f64).collect())
}
