//! Scans: vertices that fulfil a condition, as a stream.

use std::{
    collections::{BTreeSet, VecDeque},
    str::FromStr,
    sync::Arc,
};

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions, UInt64Array};
use arrow_ord::sort::{SortColumn, lexsort_to_indices};
use arrow_schema::{DataType, Schema, SortOptions};
use arrow_select::{concat::concat_batches, take::take_record_batch};
use hoplake_engine::{Condition, EngineError, FoundVertices, Frontier, Held, VertexQuery, VertexScan, float};
use hoplake_format::{LabelId, VertexId, constants::KEY_COLUMN};
use hoplake_storage::MemoryHold;

use crate::{Error, ErrorKind, Query, Rows};

/// What a sort takes for each row besides the rows: its number, its place among the others, and what is compared.
const SORT_ROW_BYTES: u64 = 32;

/// Which vertices to find, and what to return of them.
#[derive(Debug, Clone, Default)]
pub struct ScanRequest {
    /// The labels, as a set; none means all of the graph.
    pub labels: Vec<String>,
    /// Which of their vertices; without, all.
    pub condition: Option<Condition>,
    /// Properties to return, in addition to label and key. A label that does not have one leaves it out.
    pub select: Vec<String>,
    /// By what the result is sorted; without, by label and then in the order in which vertices are stored.
    pub order_by: Vec<SortBy>,
    /// The most vertices to return.
    pub limit: Option<usize>,
}

/// A property by which a result is sorted; absent values are last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SortBy {
    /// The property; `~key` is the key.
    pub property: String,
    /// Whether the greatest value is first.
    pub descending: bool,
}

impl FromStr for SortBy {
    type Err = Error;

    /// Reads `age`, `age asc` or `age desc`.
    fn from_str(text: &str) -> Result<Self, Error> {
        let text = text.trim();
        let (property, descending) = match text.rsplit_once(char::is_whitespace) {
            Some((property, order)) if order.eq_ignore_ascii_case("desc") => (property.trim_end(), true),
            Some((property, order)) if order.eq_ignore_ascii_case("asc") => (property.trim_end(), false),
            _ => (text, false),
        };
        match property.is_empty() {
            true => Err(Error::new(ErrorKind::Invalid, "write a property to sort by, as in age or \"age desc\"")),
            false => Ok(Self { property: property.to_owned(), descending }),
        }
    }
}

/// A scan under way, from [`Query::scan`].
pub struct Scan {
    request: ScanRequest,
    /// Labels that were not begun.
    labels: VecDeque<LabelId>,
    current: Option<(LabelId, VertexScan)>,
    /// How many more vertices may be returned.
    left: usize,
}

impl Query {
    /// Begins a scan; [`Self::next_rows`] returns its vertices. No request before the first are asked for.
    ///
    /// # Errors
    /// [`NotFound`](ErrorKind::NotFound) if a label or property does not exist; [`Invalid`](ErrorKind::Invalid) if the condition
    /// cannot be, or a result of several labels is to be sorted.
    pub fn scan(&self, request: &ScanRequest) -> Result<Scan, Error> {
        let schema = self.snapshot.schema();
        let all = 0..schema.vertex_labels.len();
        let mut labels: Vec<LabelId> = match request.labels.is_empty() {
            true => all.filter_map(|label| u16::try_from(label).ok()).map(LabelId).collect(),
            false => request.labels.iter().map(|name| self.label(name)).collect::<Result<_, _>>()?,
        };
        let mut seen = BTreeSet::new();
        labels.retain(|label| seen.insert(*label));
        if let Some(condition) = &request.condition {
            self.snapshot.check_vertex_condition(&labels, condition)?;
        }
        for name in request.select.iter().chain(request.order_by.iter().map(|by| &by.property)) {
            if !labels.iter().any(|label| self.has_column(*label, name)) {
                let message = format!("no vertex label of the scan has a property {name:?}");
                return Err(Error::new(ErrorKind::NotFound, message));
            }
        }
        if !request.order_by.is_empty() && labels.len() > 1 {
            let message = "vertices of several labels cannot be sorted together; scan one label";
            return Err(Error::new(ErrorKind::Invalid, message));
        }
        for by in &request.order_by {
            let of_scan = labels.iter().filter_map(|label| schema.label(*label));
            let mut properties = of_scan.flat_map(|label| &label.properties);
            if properties.any(|it| it.name == by.property && matches!(it.kind.arrow(), DataType::List(_))) {
                let message = format!("{} is a list, and lists have no order", by.property);
                return Err(Error::new(ErrorKind::Invalid, message));
            }
        }
        let left = request.limit.unwrap_or(usize::MAX);
        Ok(Scan { request: request.clone(), labels: labels.into(), current: None, left })
    }

    fn has_column(&self, label: LabelId, name: &str) -> bool {
        let properties = self.snapshot.schema().label(label).map(|label| &label.properties);
        name == KEY_COLUMN || properties.is_some_and(|all| all.iter().any(|property| property.name == name))
    }

    /// The next vertices of a scan, with their keys (column `~key`) and the selected properties that their label has; `None` behind
    /// the last. A sorted result comes at once.
    ///
    /// # Errors
    /// [`Limit`](ErrorKind::Limit) if the query reached one; the store's.
    pub async fn next_rows(&mut self, scan: &mut Scan) -> Result<Option<Held<Rows>>, Error> {
        if !scan.request.order_by.is_empty() {
            return self.sorted(scan).await;
        }
        let Some((label, found)) = self.next_found(scan, &[], true).await? else { return Ok(None) };
        let label = self.label_name(label);
        Ok(Some(found.map(|found| Rows { label, batch: found.batch })))
    }

    /// All vertices that a scan finds, without their keys or properties.
    ///
    /// # Errors
    /// As [`Self::next_rows`].
    pub async fn find(&mut self, request: &ScanRequest) -> Result<Held<Frontier>, Error> {
        let request = ScanRequest { select: Vec::new(), order_by: Vec::new(), ..request.clone() };
        let mut scan = self.scan(&request)?;
        let mut all = Frontier::default();
        let mut memory = self.context().hold(0)?;
        while let Some((label, found)) = self.next_found(&mut scan, &[], false).await? {
            let vertices = found.ordinals.iter().filter_map(|ordinal| VertexId::new(label, *ordinal));
            all.unite(&vertices.collect(), &mut self.branch.context().pace()).await?;
            self.branch.context().resize(&mut memory, all.bytes())?;
        }
        Ok(Held::new(all, memory))
    }

    /// How many vertices a scan finds, without their keys or properties. Without a condition nothing is read.
    ///
    /// # Errors
    /// As [`Self::next_rows`].
    pub async fn count_found(&mut self, request: &ScanRequest) -> Result<u64, Error> {
        let request = ScanRequest { select: Vec::new(), order_by: Vec::new(), ..request.clone() };
        let mut scan = self.scan(&request)?;
        let limit = scan.left as u64;
        if request.condition.is_none() {
            let counts = &self.snapshot.manifest().vertex_counts;
            let live = scan.labels.iter().filter_map(|label| Some(counts.get(usize::from(label.0))?.live()));
            return Ok(live.sum::<u64>().min(limit));
        }
        let mut count = 0;
        while let Some((_, found)) = self.next_found(&mut scan, &[], false).await? {
            count += found.ordinals.len() as u64;
        }
        Ok(count)
    }

    /// The next vertices, with the keys if they are wanted, the selected properties and some more.
    async fn next_found(
        &mut self,
        scan: &mut Scan,
        more: &[String],
        keys: bool,
    ) -> Result<Option<(LabelId, Held<FoundVertices>)>, Error> {
        loop {
            if scan.left == 0 {
                scan.current = None;
                return Ok(None);
            }
            let Some((label, current)) = &mut scan.current else {
                let Some(label) = scan.labels.pop_front() else { return Ok(None) };
                let mut columns: Vec<String> = if keys { vec![KEY_COLUMN.to_owned()] } else { Vec::new() };
                for name in scan.request.select.iter().chain(more) {
                    if !columns.contains(name) && self.has_column(label, name) {
                        columns.push(name.clone());
                    }
                }
                let condition = scan.request.condition.clone();
                let wanted = (scan.left < usize::MAX).then_some(scan.left);
                let query = VertexQuery { label, condition, columns, wanted };
                scan.current = Some((label, self.snapshot.scan_vertices(query, &mut self.branch).await?));
                continue;
            };
            let label = *label;
            let Some(mut found) = current.next(&mut self.branch).await? else {
                scan.current = None;
                continue;
            };
            if found.ordinals.len() > scan.left {
                found.ordinals.truncate(scan.left);
                found.batch = found.batch.slice(0, scan.left);
            }
            scan.left -= found.ordinals.len();
            return Ok(Some((label, found)));
        }
    }

    /// All vertices of a scan, sorted; of those that it returns the first so far are kept.
    async fn sorted(&mut self, scan: &mut Scan) -> Result<Option<Held<Rows>>, Error> {
        let limit = std::mem::replace(&mut scan.left, usize::MAX);
        if limit == 0 || scan.labels.is_empty() {
            scan.left = 0;
            return Ok(None);
        }
        let by: Vec<String> = scan.request.order_by.iter().map(|by| by.property.clone()).collect();
        let mut memory = self.context().hold(0)?;
        let mut kept: Vec<RecordBatch> = Vec::new();
        let mut name = String::new();
        while let Some((label, found)) = self.next_found(scan, &by, true).await? {
            name = self.label_name(label);
            kept.push(found.batch.clone());
            // Sorted whenever what came is as much as what is kept: each row is moved a few times.
            let (first, rest) = (kept[0].num_rows(), kept[1..].iter().map(RecordBatch::num_rows).sum::<usize>());
            if limit < usize::MAX && rest >= first.max(limit) {
                self.hold_twice(&mut memory, &kept)?;
                kept = vec![first_rows(&kept, &scan.request.order_by, limit)?];
            }
            self.hold_twice(&mut memory, &kept)?;
        }
        scan.left = 0;
        if kept.is_empty() {
            return Ok(None);
        }
        let sorted = first_rows(&kept, &scan.request.order_by, limit)?;
        let selected = (0..sorted.num_columns()).filter(|column| {
            let schema = sorted.schema_ref();
            let name = schema.field(*column).name();
            name == KEY_COLUMN || scan.request.select.contains(name)
        });
        let batch = sorted.project(&selected.collect::<Vec<_>>()).map_err(EngineError::from)?;
        Ok(Some(Held::new(Rows { label: name, batch }, memory)))
    }

    /// Holds what is kept, a sorted copy, and what sorts it.
    fn hold_twice(&self, memory: &mut MemoryHold, batches: &[RecordBatch]) -> Result<(), Error> {
        let bytes: usize = batches.iter().map(RecordBatch::get_array_memory_size).sum();
        let rows: usize = batches.iter().map(RecordBatch::num_rows).sum();
        Ok(self.branch.context().resize(memory, 2 * bytes as u64 + SORT_ROW_BYTES * rows as u64)?)
    }
}

/// The first rows of some batches in an order; equal ones as they came.
fn first_rows(batches: &[RecordBatch], by: &[SortBy], limit: usize) -> Result<RecordBatch, Error> {
    let first = |batch: &RecordBatch| -> Result<RecordBatch, EngineError> {
        let column = |by: &SortBy| {
            let values = batch.column_by_name(&by.property).map(float::canonical)?;
            let options = SortOptions { descending: by.descending, nulls_first: false };
            Some(SortColumn { values, options: Some(options) })
        };
        let mut columns: Vec<SortColumn> = by.iter().filter_map(column).collect();
        let numbers: ArrayRef = Arc::new(UInt64Array::from_iter_values(0..batch.num_rows() as u64));
        columns.push(SortColumn { values: numbers, options: None });
        let indices = lexsort_to_indices(&columns, Some(limit.min(batch.num_rows())))?;
        Ok(take_record_batch(batch, &indices)?)
    };
    let schema = batches.first().map_or_else(|| Arc::new(Schema::empty()), RecordBatch::schema);
    let all = match batches {
        [] => RecordBatch::try_new_with_options(schema, vec![], &RecordBatchOptions::new().with_row_count(Some(0))),
        [only] => Ok(only.clone()),
        many => concat_batches(&schema, many),
    };
    Ok(first(&all.map_err(EngineError::from)?)?)
}
