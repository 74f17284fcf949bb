//! Programs over columns by parts, each of which may be computed by another process.

use std::sync::Arc;

use arrow_array::types::{Float64Type, Int64Type, UInt8Type};
use arrow_array::{Array, ArrayRef, Float64Array, Int64Array, RecordBatch, UInt8Array, cast::AsArray};
use hoplake_analytics::{
    Lists,
    columns::{Column, Combination},
    parts::{self, ColumnSlice, Fold, Part, SignalSlice},
};
use hoplake_engine::Held;
use hoplake_format::VertexId;
use hoplake_storage::{MemoryHold, QueryContext};

use super::{Algorithm, ComputeOptions};
use crate::{Error, ErrorKind, Query};

/// A part of a program over columns that is under way: some vertices, and the edges along which they receive signals. Runs of all parts of a
/// plan come to what one [`ColumnRun`](super::ColumnRun) comes to, except for the last bits of floats; how columns travel between them is the
/// caller's.
pub struct PartRun {
    query: Query,
    options: ComputeOptions,
    lists: Lists,
    part: Arc<Part>,
    fold: Option<Fold>,
    /// The columns of the caller.
    kept: MemoryHold,
}

/// Signals of some vertices as arrays of Arrow, which are not copied.
#[derive(Debug, Clone)]
pub struct PartSignals {
    values: ArrayRef,
    is_sent: Option<UInt8Array>,
}

impl PartSignals {
    /// Signals from a batch whose first column has them, int64 or float64, and whose second one, if there is one, says with uint8 which are sent: those that
    /// are not 0.
    ///
    /// # Errors
    /// [`Invalid`](ErrorKind::Invalid) for other columns, and for nulls.
    pub fn new(batch: &RecordBatch) -> Result<Self, Error> {
        let invalid = || {
            Error::new(ErrorKind::Invalid, "signals are int64 or float64, with uint8 for which are sent, without nulls")
        };
        let values = batch.columns().first().filter(|values| {
            let is_number =
                values.as_primitive_opt::<Int64Type>().is_some() || values.as_primitive_opt::<Float64Type>().is_some();
            is_number && values.null_count() == 0
        });
        let values = values.ok_or_else(invalid)?.clone();
        let is_sent = match batch.columns().get(1) {
            None => None,
            Some(sent) => {
                let sent = sent.as_primitive_opt::<UInt8Type>().filter(|sent| sent.null_count() == 0);
                Some(sent.ok_or_else(invalid)?.clone())
            }
        };
        Ok(Self { values, is_sent })
    }

    fn slice(&self) -> SignalSlice<'_> {
        let values = match self.values.as_primitive_opt::<Int64Type>() {
            Some(values) => ColumnSlice::Integers(values.values()),
            None => ColumnSlice::Floats(self.values.as_primitive::<Float64Type>().values()),
        };
        SignalSlice { values, is_sent: self.is_sent.as_ref().map(|sent| &sent.values()[..]) }
    }
}

impl Query {
    /// Cuts the vertices of a selection into parts whose lists are equally long: the dense ids at which parts begin, and the end of the last. Reads
    /// index blocks. With an algorithm, its direction and weights apply.
    ///
    /// # Errors
    /// As [`Self::column_run`].
    pub async fn plan_parts(
        &mut self,
        algorithm: Option<&Algorithm>,
        options: &ComputeOptions,
        count: usize,
    ) -> Result<Vec<u32>, Error> {
        let options = part_options(algorithm, options)?;
        let lists = Lists::streamed(&self.snapshot, &options.selection, &mut self.branch).await?;
        Ok(parts::plan(&lists, count.max(1), &mut self.branch).await?)
    }

    /// Begins a part of a program over columns: reads its lists once, from the bucket.
    ///
    /// # Errors
    /// As [`Self::column_run`]; [`Invalid`](ErrorKind::Invalid) if `bounds` are not those of a plan that has such a part.
    pub async fn part_run(
        mut self,
        algorithm: Option<&Algorithm>,
        options: &ComputeOptions,
        bounds: &[u32],
        number: usize,
    ) -> Result<PartRun, Error> {
        let options = part_options(algorithm, options)?;
        let lists = Lists::streamed(&self.snapshot, &options.selection, &mut self.branch).await?;
        let part = Part::load(&lists, bounds, number, &options.workers, &mut self.branch).await?;
        if let (Some(_), Some(weight)) = (algorithm, part.negative_weight()) {
            let message = format!("an edge has the weight {weight}; weights are numbers, 0 or more");
            return Err(Error::new(ErrorKind::Invalid, message));
        }
        let kept = self.branch.context().hold(0)?;
        Ok(PartRun { query: self, options, lists, part: Arc::new(part), fold: None, kept })
    }
}

fn part_options(algorithm: Option<&Algorithm>, options: &ComputeOptions) -> Result<ComputeOptions, Error> {
    if options.checkpoint.is_some() || options.asynchronous.is_some() {
        let message = "parts of a program run in supersteps, and their caller writes checkpoints";
        return Err(Error::new(ErrorKind::Invalid, message));
    }
    let mut options = algorithm.map_or_else(|| options.clone(), |algorithm| algorithm.applied_to(options));
    let selection = &mut options.selection;
    selection.reversed = false;
    selection.condition_direction.get_or_insert(selection.hop.direction);
    Ok(options)
}

impl PartRun {
    /// How many vertices the part has: a column has as many numbers.
    pub fn len(&self) -> usize {
        self.part.len()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.part.is_empty()
    }

    /// How many vertices all parts have.
    pub fn count(&self) -> usize {
        self.lists.vertices() as usize - self.lists.deleted().len()
    }

    /// The part.
    pub fn part(&self) -> &Part {
        &self.part
    }

    /// The query that it is part of.
    pub fn query(&self) -> &Query {
        &self.query
    }

    fn context(&self) -> &QueryContext {
        self.query.branch.context()
    }

    /// Counts columns of this part that the caller keeps from now on, instead of those that it kept before.
    ///
    /// # Errors
    /// [`Limit`](ErrorKind::Limit) if the memory of the query has no room for them.
    pub fn keep(&mut self, columns: usize) -> Result<(), Error> {
        let bytes = columns as u64 * self.len() as u64 * 8;
        Ok(self.query.branch.context().resize(&mut self.kept, bytes)?)
    }

    /// How many edges each vertex signals along. One pass over the lists of the part in the direction of edges.
    ///
    /// # Errors
    /// [`Limit`](ErrorKind::Limit) at a limit of the query; the store's.
    pub async fn edge_counts(&mut self) -> Result<Held<Column>, Error> {
        self.signalled(false).await
    }

    /// The weights of the edges that each vertex signals along, added up. As [`Self::edge_counts`].
    ///
    /// # Errors
    /// [`Invalid`](ErrorKind::Invalid) if edges have no weights; otherwise as [`Self::edge_counts`].
    pub async fn weight_sums(&mut self) -> Result<Held<Column>, Error> {
        if self.options.selection.weight.is_none() {
            return Err(Error::new(ErrorKind::Invalid, "edges have no weights; name the property that is the weight"));
        }
        self.signalled(true).await
    }

    async fn signalled(&mut self, by_weight: bool) -> Result<Held<Column>, Error> {
        let Self { query, lists, part, options, .. } = self;
        Ok(parts::signalled(lists, part.range(), by_weight, &options.workers, &mut query.branch).await?)
    }

    /// The place of each vertex of the part among all, by label and key, from 0 on. Reads the keys of all parts.
    ///
    /// # Errors
    /// As [`Self::edge_counts`].
    pub async fn places(&mut self) -> Result<Held<Column>, Error> {
        let ids = self.lists.ids().clone();
        let places = self.query.key_places_in(&ids, self.part.range()).await?;
        let there = self.ids().map(|id| i64::from(places[(id - self.part.range().start) as usize]));
        let column = Column::Integers(there.collect());
        Ok(Held::counted(column, self.len() as u64 * 8, self.context())?)
    }

    /// A property of the vertices of the part, as [`ColumnRun::property`](super::ColumnRun::property). It may be of integers in one part and of floats
    /// in another, if some vertices do not have it.
    ///
    /// # Errors
    /// As [`ColumnRun::property`](super::ColumnRun::property).
    pub async fn property(&mut self, name: &str) -> Result<Held<Column>, Error> {
        let vertices = self.vertices();
        self.query.numbers(vertices, name).await
    }

    /// The rows of the vertices of this part at which an algorithm begins, and how many it begins at in all parts.
    ///
    /// # Errors
    /// [`NotFound`](ErrorKind::NotFound) if the graph lacks one of them.
    pub async fn starts(&mut self, algorithm: &Algorithm) -> Result<(Vec<u32>, usize), Error> {
        let ids = self.lists.ids().clone();
        let mut starts = self.query.starts(algorithm, &ids).await?;
        starts.sort_unstable();
        starts.dedup();
        let rows = self.ids().zip(0..).filter(|(id, _)| starts.binary_search(id).is_ok()).map(|(_, row)| row).collect();
        Ok((rows, starts.len()))
    }

    /// The signals that another part [needs](Part::needed) of this one.
    ///
    /// # Errors
    /// [`Invalid`](ErrorKind::Invalid) if there are fewer signals; [`Limit`](ErrorKind::Limit) if the memory of the query has no room.
    pub async fn gather(&self, signals: PartSignals, rows: Vec<u32>) -> Result<(Column, Option<Vec<u8>>), Error> {
        let _memory = self.context().hold(rows.len() as u64 * 9)?;
        let as_floats = self.options.selection.weight.is_some();
        let gather = move |_: &QueryContext| parts::gather(&signals.slice(), &rows, as_floats);
        Ok(self.options.workers.run(self.context(), gather).await??)
    }

    /// Begins to receive signals. What was received before is dropped.
    ///
    /// # Errors
    /// [`Limit`](ErrorKind::Limit) if the memory of the query has no room.
    pub fn begin_fold(&mut self, how: &Combination) -> Result<(), Error> {
        self.fold = None;
        self.fold = Some(Fold::new(&self.part, how, self.query.branch.context())?);
        Ok(())
    }

    /// Folds the signals of the next part, in the order of parts.
    ///
    /// # Errors
    /// [`Invalid`](ErrorKind::Invalid) if they are not those that this part needs; [`Limit`](ErrorKind::Limit) at a limit of the query.
    pub async fn fold(&mut self, signals: PartSignals) -> Result<(), Error> {
        let mut fold = self.fold.take().ok_or_else(not_begun)?;
        let part = self.part.clone();
        let add = move |context: &QueryContext| fold.add(&part, &signals.slice(), context).map(|()| fold);
        self.fold = Some(self.options.workers.run(self.context(), add).await??);
        Ok(())
    }

    /// What each vertex has received, once the signals of all parts are folded. `own` are those of this part.
    ///
    /// # Errors
    /// [`Invalid`](ErrorKind::Invalid) if a part is missing, or if a sum of integers is beyond int64; [`Limit`](ErrorKind::Limit) at a limit of the
    /// query.
    pub async fn finish_fold(&mut self, own: PartSignals) -> Result<Held<Column>, Error> {
        let fold = self.fold.take().ok_or_else(not_begun)?;
        let part = self.part.clone();
        let finish = move |context: &QueryContext| fold.finish(&part, own.slice().values, context);
        Ok(self.options.workers.run(self.context(), finish).await??)
    }

    /// The labels and keys of the vertices, with columns that have a row for each.
    ///
    /// # Errors
    /// [`Invalid`](ErrorKind::Invalid) if a column does not have a row for each vertex; otherwise as [`Query::properties`].
    pub async fn tables(&mut self, columns: &[(String, ArrayRef)]) -> Result<Vec<RecordBatch>, Error> {
        for (name, column) in columns {
            if column.len() != self.len() {
                let message = format!("{name} has {} rows for {} vertices", column.len(), self.len());
                return Err(Error::new(ErrorKind::Invalid, message));
            }
        }
        let vertices = self.vertices();
        self.query.column_tables(&vertices, columns).await
    }

    /// Dense ids of its vertices.
    fn ids(&self) -> impl Iterator<Item = u32> + '_ {
        let deleted = self.lists.deleted();
        let mut gone = deleted[deleted.partition_point(|id| *id < self.part.range().start)..].iter().peekable();
        self.part.range().clone().filter(move |id| gone.next_if_eq(&id).is_none())
    }

    fn vertices(&self) -> Vec<VertexId> {
        self.ids().filter_map(|id| self.lists.ids().vertex(id.into())).collect()
    }
}

fn not_begun() -> Error {
    Error::new(ErrorKind::Invalid, "a part receives signals after it began to")
}

/// A column as an array of Arrow.
impl From<Column> for PartSignals {
    fn from(column: Column) -> Self {
        let values: ArrayRef = match column {
            Column::Integers(values) => Arc::new(Int64Array::from(values)),
            Column::Floats(values) => Arc::new(Float64Array::from(values)),
        };
        Self { values, is_sent: None }
    }
}
