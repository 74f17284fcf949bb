//! Programs over whole columns: supersteps of a caller that computes a signal for all vertices at once, and gets what arrives at each.
//!
//! Columns have a number for each vertex that exists, by label and ordinal: the rows of the [`Computed`] that a run leaves. Deleted vertices have dense
//! ids, and no place in a column.

use arrow_array::{Array, RecordBatch};
use hoplake_analytics::{
    Lists,
    columns::{self, Column, Combination, SignalColumn},
    registry::Values,
};
use hoplake_engine::{Frontier, Held, change::Value, traversal::HopDirection};
use hoplake_format::VertexId;
use hoplake_storage::MemoryHold;

use super::{ComputeOptions, Computed, Figure, Placement};
use crate::{Error, ErrorKind, Query};

/// Vertices whose properties are read at a time.
const CHUNK_ROWS: usize = 1 << 16;

/// A program over whole columns that is under way, with the lists of its selection.
///
/// ```
/// # async fn example() -> Result<(), hoplake::Error> {
/// use hoplake::{Graph, compute::{Along, Column, Combination, Combine, ComputeOptions, SignalColumn}};
/// # let folder = tempfile::tempdir().unwrap();
/// # let csv = folder.path().join("knows.csv");
/// # std::fs::write(&csv, "1,2\n2,3\n3,2\n").unwrap();
/// # hoplake::load("memory://docs/columns", hoplake::LoadOptions::from_paths([csv])).await?;
///
/// let graph = Graph::open("memory://docs/columns").await?;
/// let mut run = graph.query().column_run(&ComputeOptions::default()).await?;
/// let signals = SignalColumn { values: Column::Integers(vec![1; run.len()]), is_sent: None };
/// let combination = Combination { combine: Combine::Sum, along: None, default: None };
/// let received = run.combine(signals, &combination).await?;
/// assert_eq!(*received, Column::Integers(vec![0, 2, 1]));
/// # Ok(())
/// # }
/// # tokio::runtime::Runtime::new().unwrap().block_on(example()).unwrap();
/// ```
pub struct ColumnRun {
    query: Query,
    options: ComputeOptions,
    lists: Lists,
    in_memory: bool,
    /// The columns of the caller.
    kept: MemoryHold,
}

impl Query {
    /// Begins a program over whole columns: loads the lists of a selection, or finds out how to stream them. The run is part of this query, whose
    /// limits it has: its time goes on between supersteps.
    ///
    /// # Errors
    /// As [`Self::compute`]; [`Invalid`](ErrorKind::Invalid) for options that such a run does not have.
    pub async fn column_run(mut self, options: &ComputeOptions) -> Result<ColumnRun, Error> {
        let invalid = |message: &str| Err(Error::new(ErrorKind::Invalid, message));
        if options.placement == Placement::Packed {
            return invalid("a program over columns has no packed lists; they are in memory or streamed");
        }
        if options.checkpoint.is_some() || options.asynchronous.is_some() {
            return invalid("a program over columns runs in supersteps, without checkpoints");
        }
        let mut options = options.clone();
        let selection = &mut options.selection;
        selection.reversed = false;
        selection.condition_direction.get_or_insert(selection.hop.direction);
        let in_memory = self.is_in_memory(&options)?;
        if in_memory && options.selection.hop.direction != HopDirection::Both {
            // Only lists against the direction of signals are read.
            options.selection.hop = options.selection.hop.reversed();
        }
        let lists = self.lists(&options, in_memory).await?;
        let kept = self.branch.context().hold(0)?;
        Ok(ColumnRun { query: self, options, lists, in_memory, kept })
    }
}

impl ColumnRun {
    /// How many vertices there are: a column has as many numbers.
    pub fn len(&self) -> usize {
        self.lists.vertices() as usize - self.lists.deleted().len()
    }

    /// Whether there are no vertices.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether edges have weights.
    pub fn is_weighted(&self) -> bool {
        self.options.selection.weight.is_some()
    }

    /// The query that it is part of.
    pub fn query(&self) -> &Query {
        &self.query
    }

    /// Counts columns that the caller keeps from now on, instead of those that it kept before.
    ///
    /// # Errors
    /// [`Limit`](ErrorKind::Limit) if the memory of the query has no room for them.
    pub fn keep(&mut self, columns: usize) -> Result<(), Error> {
        let bytes = columns as u64 * self.len() as u64 * 8;
        Ok(self.query.branch.context().resize(&mut self.kept, bytes)?)
    }

    /// Combines, for each vertex, the signals of the vertices that have an edge to it.
    ///
    /// # Errors
    /// [`Invalid`](ErrorKind::Invalid) if there is not one signal for each vertex, if the combinator does not suit weights or the default, or if a
    /// sum of integers is beyond int64; [`Limit`](ErrorKind::Limit) at a limit of the query; the store's.
    pub async fn combine(&mut self, signals: SignalColumn, how: &Combination) -> Result<Held<Column>, Error> {
        let SignalColumn { values, is_sent } = signals;
        let (count, sent) = (values.len(), is_sent.as_ref().map_or(self.len(), Vec::len));
        if (count, sent) != (self.len(), self.len()) {
            let message = format!("{count} signals for {} vertices; there has to be one for each", self.len());
            return Err(Error::new(ErrorKind::Invalid, message));
        }
        let _memory = self.hold_spread(17)?;
        let signals = SignalColumn {
            values: self.spread(values),
            is_sent: is_sent.map(|sent| spread(sent, self.lists.deleted(), false)),
        };
        let Query { branch, .. } = &mut self.query;
        let found = columns::combine(&self.lists, signals, how, &self.options.workers, branch).await?;
        Ok(found.map(|column| self.existing(column)))
    }

    /// How many edges each vertex signals along. With streamed lists, one more pass over them.
    ///
    /// # Errors
    /// [`Limit`](ErrorKind::Limit) at a limit of the query; the store's.
    pub async fn edge_counts(&mut self) -> Result<Held<Column>, Error> {
        let _memory = self.hold_spread(8)?;
        let Query { branch, .. } = &mut self.query;
        let found = columns::edge_counts(&self.lists, &self.options.workers, branch).await?;
        Ok(found.map(|column| self.existing(column)))
    }

    /// The weights of the edges that each vertex signals along, added up. With streamed lists, one more pass over them.
    ///
    /// # Errors
    /// [`Invalid`](ErrorKind::Invalid) if edges have no weights; otherwise as [`Self::edge_counts`].
    pub async fn weight_sums(&mut self) -> Result<Held<Column>, Error> {
        if !self.is_weighted() {
            return Err(Error::new(ErrorKind::Invalid, "edges have no weights; name the property that is the weight"));
        }
        let _memory = self.hold_spread(8)?;
        let Query { branch, .. } = &mut self.query;
        let found = columns::weight_sums(&self.lists, &self.options.workers, branch).await?;
        Ok(found.map(|column| self.existing(column)))
    }

    /// The place of each vertex by label and key, from 0 on, which does not depend on how the graph was loaded. Reads all keys.
    ///
    /// # Errors
    /// As [`Self::edge_counts`].
    pub async fn places(&mut self) -> Result<Held<Column>, Error> {
        let ids = self.lists.ids().clone();
        let places = self.query.key_places(&ids).await?;
        let memory = self.query.branch.context().hold(ids.len() * 8)?;
        let column = Column::Integers(places.iter().map(|place| i64::from(*place)).collect());
        Ok(Held::new(self.existing(column), memory))
    }

    /// A property of all vertices: integers, if it is an int64 or bool that each vertex has, and floats otherwise, with NaN for a vertex without it.
    ///
    /// # Errors
    /// [`NotFound`](ErrorKind::NotFound) if no vertex can have it; [`Invalid`](ErrorKind::Invalid) if it is not a number, or if an int64 among floats
    /// is not one exactly; otherwise as [`Self::edge_counts`].
    pub async fn property(&mut self, name: &str) -> Result<Held<Column>, Error> {
        let ids = self.lists.ids().clone();
        let vertices = existing(0..ids.len() as u32, self.lists.deleted()).filter_map(|id| ids.vertex(id.into()));
        self.query.numbers(vertices.collect(), name).await
    }

    /// Ends the run: its result has these columns, of which the first is the value.
    ///
    /// # Errors
    /// [`Invalid`](ErrorKind::Invalid) if there is no column, or if one does not have a number for each vertex; [`Limit`](ErrorKind::Limit) if the
    /// memory of the query does not hold them.
    pub fn finish(
        &self,
        columns: Vec<(String, Column)>,
        supersteps: usize,
        figures: Vec<(&'static str, Figure)>,
    ) -> Result<Computed, Error> {
        let context = self.query.branch.context();
        let mut all = Vec::with_capacity(columns.len());
        for (name, column) in columns {
            if column.len() != self.len() {
                let message = format!("{name} has {} numbers for {} vertices", column.len(), self.len());
                return Err(Error::new(ErrorKind::Invalid, message));
            }
            let memory = context.hold(u64::from(self.lists.vertices()) * 8)?;
            let values = match self.spread(column) {
                Column::Integers(values) => Values::Numbers(values),
                Column::Floats(values) => Values::Floats(values),
            };
            all.push((name, Held::new(values, memory)));
        }
        let mut all = all.into_iter();
        let Some((name, values)) = all.next() else {
            return Err(Error::new(ErrorKind::Invalid, "the result of a program has no column"));
        };
        let deleted = self.lists.deleted().to_vec();
        let bytes = deleted.len() as u64 * 4;
        Ok(Computed {
            name: name.into(),
            has_groups: false,
            supersteps: Some(supersteps),
            collections: None,
            streamed: !self.in_memory,
            figures,
            ids: self.lists.ids().clone(),
            deleted: Held::counted(deleted, bytes, context)?,
            values: Some(values),
            others: all.collect(),
        })
    }

    /// Memory for columns with a place for each dense id; none if these are the vertices.
    fn hold_spread(&self, bytes: u64) -> Result<MemoryHold, Error> {
        let vertices = if self.lists.deleted().is_empty() { 0 } else { u64::from(self.lists.vertices()) };
        Ok(self.query.branch.context().hold(vertices * bytes)?)
    }

    /// A column by dense id.
    fn spread(&self, column: Column) -> Column {
        match column {
            Column::Integers(values) => Column::Integers(spread(values, self.lists.deleted(), 0)),
            Column::Floats(values) => Column::Floats(spread(values, self.lists.deleted(), f64::NAN)),
        }
    }

    /// A column of the vertices that exist, from one by dense id.
    fn existing(&self, column: Column) -> Column {
        let deleted = self.lists.deleted();
        match column {
            column if deleted.is_empty() => column,
            Column::Integers(values) => Column::Integers(existing(values, deleted).collect()),
            Column::Floats(values) => Column::Floats(existing(values, deleted).collect()),
        }
    }
}

impl Query {
    /// A property of some vertices as a column: see [`ColumnRun::property`].
    pub(super) async fn numbers(&mut self, vertices: Vec<VertexId>, name: &str) -> Result<Held<Column>, Error> {
        let memory = self.branch.context().hold(vertices.len() as u64 * 16)?;
        let names = [name.to_owned()];
        let mut column = Numbers { name, integers: Some(Vec::with_capacity(vertices.len())), floats: Vec::new() };
        for chunk in vertices.chunks(CHUNK_ROWS) {
            let frontier: Frontier = chunk.iter().copied().collect();
            for rows in self.properties(&frontier, &names).await?.iter() {
                column.append(&rows.batch)?;
            }
        }
        let column = match column.integers {
            Some(integers) => Column::Integers(integers),
            None => Column::Floats(column.floats),
        };
        drop(memory);
        let bytes = column.len() as u64 * 8;
        Ok(Held::counted(column, bytes, self.branch.context())?)
    }
}

/// Values with a place for deleted ids, too.
fn spread<T: Copy>(values: Vec<T>, deleted: &[u32], nothing: T) -> Vec<T> {
    if deleted.is_empty() {
        return values;
    }
    let mut gone = deleted.iter().peekable();
    let mut values = values.into_iter();
    let value = |id| if gone.next_if(|gone| **gone == id).is_some() { Some(nothing) } else { values.next() };
    (0..).map_while(value).collect()
}

/// Values without those of deleted ids.
fn existing<T>(values: impl IntoIterator<Item = T>, deleted: &[u32]) -> impl Iterator<Item = T> {
    let mut gone = deleted.iter().peekable();
    (0..).zip(values).filter(move |(id, _)| gone.next_if(|gone| *gone == id).is_none()).map(|(_, value)| value)
}

/// A property as it is read.
struct Numbers<'a> {
    name: &'a str,
    /// As long as all are integers.
    integers: Option<Vec<i64>>,
    /// From then on.
    floats: Vec<f64>,
}

/// The integers up to which each one is a float.
const EXACT: i64 = 1 << 53;

impl Numbers<'_> {
    fn append(&mut self, rows: &RecordBatch) -> Result<(), Error> {
        let column = rows.column_by_name(self.name);
        for row in 0..rows.num_rows() {
            let value = column.filter(|column| column.is_valid(row)).map_or(Value::Null, |it| Value::at(it, row));
            match (value, &mut self.integers) {
                (Value::Int64(value), Some(integers)) => integers.push(value),
                (Value::Bool(value), Some(integers)) => integers.push(value.into()),
                (value, _) => {
                    for integer in self.integers.take().unwrap_or_default() {
                        self.floats.push(self.exact(integer)?);
                    }
                    let float = match value {
                        Value::Null => f64::NAN,
                        Value::Float64(value) => value,
                        Value::Int64(value) => self.exact(value)?,
                        Value::Bool(value) => f64::from(u8::from(value)),
                        other => {
                            let message = format!("{} is not a number: {other:?}", self.name);
                            return Err(Error::new(ErrorKind::Invalid, message));
                        }
                    };
                    self.floats.push(float);
                }
            }
        }
        Ok(())
    }

    fn exact(&self, value: i64) -> Result<f64, Error> {
        if value.unsigned_abs() <= EXACT.unsigned_abs() {
            return Ok(value as f64);
        }
        let message =
            format!("{} is {value} at one vertex and no integer at another, and no float64 is {value}", self.name);
        Err(Error::new(ErrorKind::Invalid, message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spread_columns_have_places_for_deleted_ids() {
        for deleted in [&[][..], &[0], &[1, 2], &[3], &[0, 2, 5, 6]] {
            let ids = deleted.len() as u32 + 3;
            let found = spread(vec![7, 8, 9], deleted, 0);
            assert_eq!(found.len(), ids as usize, "{deleted:?}");
            assert!(deleted.iter().all(|id| found[*id as usize] == 0), "{found:?}");
            assert_eq!(existing(found, deleted).collect::<Vec<_>>(), [7, 8, 9]);
        }
    }
}
