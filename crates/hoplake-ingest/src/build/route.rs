//! Edges from a scan to the sorters of their types.

use std::{collections::BTreeMap, sync::Arc};

use arrow_array::{ArrayRef, BooleanArray, RecordBatch, UInt32Array, UInt64Array, cast::AsArray, types::UInt64Type};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use arrow_select::{filter::filter_record_batch, take::take_record_batch};
use hoplake_format::LabelId;

use super::{
    Build, BuiltGraph, Spaces,
    edges::DirectionSorter,
    groups::Group,
    scan::{ScanContext, Worker},
};
use crate::{
    Chunk, EdgeTable, Feed, IngestError, Phase,
    dataset::{Endpoint, Lines},
    resolve::{End, JoinSide, ResolveJoin, ResolvedRows, UnknownKey, parts},
};

/// The edges of one type, in the sorters of all threads.
pub(crate) struct RoutedType {
    /// Their edge table.
    pub(crate) table: usize,
    pub(crate) source: LabelId,
    pub(crate) target: LabelId,
    /// By direction: out, then in.
    pub(crate) sorters: [Vec<DirectionSorter>; 2],
}

/// Takes resolved edges: the number of the table; columns source and target (packed vertices), input,
/// line, then properties.
pub(crate) trait EdgeSink: Send {
    fn edges(&mut self, table: usize, batch: &RecordBatch) -> Result<(), IngestError>;
}

/// One thread's way from chunks to a sink, through the joins that resolve keys.
pub(crate) struct Router<'a, S> {
    context: ScanContext<'a>,
    tables: &'a [EdgeTable],
    joins: Vec<(usize, ResolveJoin)>,
    left_out: &'a [(u32, u64)],
    sink: S,
}

impl<'a, S: EdgeSink> Router<'a, S> {
    fn new(
        build: &Build<'a>,
        spaces: &'a Spaces,
        built: &BuiltGraph,
        group: &Group,
        budget: usize,
        sink: S,
    ) -> Result<Self, IngestError> {
        let tables = &build.dataset.edge_tables;
        let share = budget / group.tables.len().max(1);
        let join = |number: &usize| {
            let table = &tables[*number];
            let side = |end: &Endpoint| {
                let label = end.label.as_ref().map(|name| {
                    let missing = || {
                        IngestError::Invalid(format!(
                            "edges {} name vertex label {name:?}, which is not there",
                            table.label
                        ))
                    };
                    built.schema.label_id(name).ok_or_else(missing)
                });
                Ok::<_, IngestError>(JoinSide { table: spaces.table(&end.id_space)?, label: label.transpose()? })
            };
            let schema = join_schema(build, table);
            let join = ResolveJoin::new(&schema, side(&table.source)?, side(&table.target)?, share, build.spill_dir)?;
            Ok((*number, join))
        };
        let joins = group.tables.iter().map(join).collect::<Result<_, IngestError>>()?;
        Ok(Self { context: build.context, tables, joins, left_out: &spaces.left_out, sink })
    }
}

/// Source key, target key, input, line, properties.
fn join_schema(build: &Build<'_>, table: &EdgeTable) -> SchemaRef {
    let key = |end: &Endpoint| {
        let mut tables = build.dataset.vertex_tables.iter();
        let found = tables.find(|table| table.id_space == end.id_space);
        // An id space without a table is reported by `Spaces::table`, so that this type is never used.
        found.map_or(DataType::Int64, |table| table.key_type.arrow())
    };
    let mut fields = vec![
        Field::new("~source", key(&table.source), false),
        Field::new("~target", key(&table.target), false),
        Field::new("~input", DataType::UInt32, false),
        Field::new("~line", DataType::UInt64, false),
    ];
    fields.extend(table.properties.iter().map(|property| property.arrow()));
    Arc::new(Schema::new(fields))
}

impl<S: EdgeSink> Worker for Router<'_, S> {
    fn take(&mut self, input: usize, chunk: Chunk) -> Result<(), IngestError> {
        let Feed::Edges { table } = chunk.feed else { return Ok(()) };
        // A row that lost its key to another row would otherwise lend its edges to that other vertex.
        let chunk = without(self.left_out, input, chunk)?;
        let Some((_, join)) = self.joins.iter_mut().find(|(number, _)| *number == table) else { return Ok(()) };
        let batch = edges_with_origin(input, chunk)?;
        let mut resolved = Resolved { context: &self.context, table, tables: self.tables, sink: &mut self.sink };
        join.push(batch, &mut resolved)
    }
}

/// Source key, target key, input, line, properties of the edges of a chunk.
pub(crate) fn edges_with_origin(input: usize, chunk: Chunk) -> Result<RecordBatch, IngestError> {
    let rows = chunk.batch.num_rows();
    let lines: ArrayRef = Arc::new(UInt64Array::from_iter_values((0..rows).map(|row| chunk.lines.line(row))));
    let (schema, mut columns, _) = chunk.batch.into_parts();
    columns.splice(2..2, [Arc::new(UInt32Array::from_value(input as u32, rows)) as ArrayRef, lines]);
    let mut fields: Vec<_> = schema.fields().iter().map(|field| field.as_ref().clone()).collect();
    fields[0] = Field::new("~source", columns[0].data_type().clone(), false);
    fields[1] = Field::new("~target", columns[1].data_type().clone(), false);
    fields.splice(2..2, [Field::new("~input", DataType::UInt32, false), Field::new("~line", DataType::UInt64, false)]);
    Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)?)
}

/// A chunk without those of its rows that were left out as vertices.
fn without(left_out: &[(u32, u64)], input: usize, chunk: Chunk) -> Result<Chunk, IngestError> {
    let input = input as u32;
    let rows = chunk.batch.num_rows();
    let last = rows.checked_sub(1).map_or(0, |last| chunk.lines.line(last));
    // Lines of a chunk ascend, so that the candidates are one range of the sorted list.
    let from = left_out.partition_point(|it| *it < (input, if rows > 0 { chunk.lines.line(0) } else { 0 }));
    let until = left_out.partition_point(|it| *it <= (input, last));
    if from >= until {
        return Ok(chunk);
    }
    let keep = |row: &usize| left_out[from..until].binary_search(&(input, chunk.lines.line(*row))).is_err();
    let kept: Vec<u64> = (0..rows).filter(keep).map(|row| chunk.lines.line(row)).collect();
    let mask: BooleanArray = (0..rows).map(|row| Some(keep(&row))).collect();
    Ok(Chunk { batch: filter_record_batch(&chunk.batch, &mask)?, lines: Lines::List(kept), ..chunk })
}

/// Passes resolved rows of a join to the sink, and others to the bad rows.
struct Resolved<'a, 'b, S> {
    context: &'a ScanContext<'b>,
    table: usize,
    tables: &'b [EdgeTable],
    sink: &'a mut S,
}

impl<S: EdgeSink> ResolvedRows for Resolved<'_, '_, S> {
    fn rows(&mut self, batch: RecordBatch) -> Result<(), IngestError> {
        self.sink.edges(self.table, &batch)
    }

    fn unknown(&mut self, unknown: UnknownKey) -> Result<(), IngestError> {
        let table = &self.tables[self.table];
        let (name, end) = match unknown.end {
            End::Source => ("source", &table.source),
            End::Target => ("target", &table.target),
        };
        let label = end.label.as_deref().unwrap_or("vertex");
        let input = &self.context.inputs[unknown.file as usize];
        let why = format!("is the key of no {label}");
        input.report(self.context.bad_rows, unknown.line, name, unknown.key, why)
    }
}

/// Scans a group's edges, resolves them and gives them to sinks, one a thread.
pub(crate) fn route_edges<S: EdgeSink>(
    build: &Build<'_>,
    spaces: &Spaces,
    built: &BuiltGraph,
    group: &Group,
    budget: usize,
    sinks: Vec<S>,
) -> Result<Vec<S>, IngestError> {
    let share = budget / sinks.len().max(1);
    let routers = sinks.into_iter().map(|sink| Router::new(build, spaces, built, group, share, sink));
    let routers = build.context.run(&group.inputs, Phase::Edges, routers.collect::<Result<_, _>>()?)?;
    let (mut joins, mut sinks): (Vec<_>, Vec<_>) =
        routers.into_iter().map(|router| (router.joins.into_iter(), router.sink)).unzip();
    let tables = &build.dataset.edge_tables;
    for table in &group.tables {
        // Every router made its joins in the order of the group's tables: one step of each yields the joins of this table.
        let of_table: Vec<_> = joins.iter_mut().filter_map(|joins| joins.next().map(|(_, join)| join)).collect();
        // Rows that went through partitions all end in one sink: each partition of a key table is loaded once, for all threads.
        if let Some(sink) = sinks.first_mut() {
            let mut resolved = Resolved { context: &build.context, table: *table, tables, sink };
            ResolveJoin::finish_all(of_table, &mut resolved)?;
        }
    }
    Ok(sinks)
}

/// Sorts edges by type.
struct TypeSorters<'a, 'b> {
    build: &'a Build<'b>,
    counts: &'a [u64],
    permutation: Option<&'a [Vec<u32>]>,
    budget_bytes: usize,
    types: BTreeMap<(usize, LabelId, LabelId), [DirectionSorter; 2]>,
}

impl EdgeSink for TypeSorters<'_, '_> {
    fn edges(&mut self, table: usize, batch: &RecordBatch) -> Result<(), IngestError> {
        let ends = [0, 1].map(|column| batch.column(column).as_primitive::<UInt64Type>().values());
        let [Some(source), Some(target)] = ends.map(|end| end.first()) else { return Ok(()) };
        let labels = (parts(*source).0, parts(*target).0);
        let alike = |end: &[u64], label| end.iter().all(|vertex| parts(*vertex).0 == label);
        // Always so where the ends name their labels: the join has left out the others. Id spaces of several labels may mix.
        if alike(ends[0], labels.0) && alike(ends[1], labels.1) {
            return self.push(table, labels, batch);
        }
        // Where labels are mixed, each type takes its rows.
        let label_of = |row: usize| (parts(ends[0][row]).0, parts(ends[1][row]).0);
        let mut rows: BTreeMap<_, Vec<u32>> = BTreeMap::new();
        (0..batch.num_rows()).for_each(|row| rows.entry(label_of(row)).or_default().push(row as u32));
        for (labels, rows) in rows {
            self.push(table, labels, &take_record_batch(batch, &UInt32Array::from(rows))?)?;
        }
        Ok(())
    }
}

impl TypeSorters<'_, '_> {
    /// Takes edges of one type.
    fn push(
        &mut self,
        table: usize,
        (source, target): (LabelId, LabelId),
        batch: &RecordBatch,
    ) -> Result<(), IngestError> {
        let permutation = self.permutation;
        let ordinals = |column: usize, label: LabelId| -> Vec<u64> {
            let old = batch.column(column).as_primitive::<UInt64Type>().values().iter().map(|vertex| parts(*vertex).1);
            match permutation {
                None => old.collect(),
                Some(permutation) => old.map(|old| permutation[usize::from(label.0)][old as usize].into()).collect(),
            }
        };
        let sources = ordinals(0, source);
        let targets = ordinals(1, target);
        let [out, into] = self.sorters(table, source, target)?;
        out.push(&sources, &targets, batch)?;
        into.push(&targets, &sources, batch)
    }

    fn sorters(
        &mut self,
        table: usize,
        source: LabelId,
        target: LabelId,
    ) -> Result<&mut [DirectionSorter; 2], IngestError> {
        let count = |label: LabelId| self.counts[usize::from(label.0)];
        match self.types.entry((table, source, target)) {
            std::collections::btree_map::Entry::Occupied(entry) => Ok(entry.into_mut()),
            std::collections::btree_map::Entry::Vacant(entry) => {
                let properties = &self.build.dataset.edge_tables[table].properties;
                let spill_dir = self.build.spill_dir;
                let half = self.budget_bytes / 2;
                let sorter = |near, far| DirectionSorter::new(count(near), count(far), properties, half, spill_dir);
                Ok(entry.insert([sorter(source, target)?, sorter(target, source)?]))
            }
        }
    }
}

/// How many edge types a table may have: every pair of labels that its ends allow.
pub(crate) fn types_of(build: &Build<'_>, table: &EdgeTable) -> usize {
    let labels = |end: &Endpoint| match end.label {
        Some(_) => 1,
        None => build.dataset.vertex_tables.iter().filter(|table| table.id_space == end.id_space).count(),
    };
    (labels(&table.source) * labels(&table.target)).max(1)
}

/// Reads the edges of a group into sorters, by type.
pub(crate) fn sort_edges(
    build: &Build<'_>,
    spaces: &Spaces,
    built: &BuiltGraph,
    group: &Group,
    budget_bytes: usize,
) -> Result<Vec<RoutedType>, IngestError> {
    let tables = &build.dataset.edge_tables;
    let types: usize = group.tables.iter().map(|table| types_of(build, &tables[*table])).sum();
    let threads = build.settings.threads.max(1);
    // A quarter is for rows on their way through partitions.
    let share = budget_bytes / 4 * 3 / threads / types.max(1);
    let sink = || TypeSorters {
        build,
        counts: &built.vertex_counts,
        permutation: spaces.permutation.as_deref(),
        budget_bytes: share,
        types: BTreeMap::new(),
    };
    let sinks = (0..threads).map(|_| sink()).collect();
    let sinks = route_edges(build, spaces, built, group, budget_bytes / 4, sinks)?;
    // Sorted by table and labels: the numbers of edge types must not depend on the thread that saw a type first.
    let mut routed: BTreeMap<_, [Vec<DirectionSorter>; 2]> = BTreeMap::new();
    for (kind, [out, into]) in sinks.into_iter().flat_map(|sink| sink.types) {
        let sorters = routed.entry(kind).or_default();
        sorters[0].push(out);
        sorters[1].push(into);
    }
    // A table whose ends are of known labels is a type even if it has no rows.
    for number in &group.tables {
        let label = |end: &Endpoint| end.label.as_ref().and_then(|name| built.schema.label_id(name));
        let table = &tables[*number];
        if let (Some(source), Some(target)) = (label(&table.source), label(&table.target)) {
            routed.entry((*number, source, target)).or_default();
        }
    }
    let typed =
        routed.into_iter().map(|((table, source, target), sorters)| RoutedType { table, source, target, sorters });
    Ok(typed.collect())
}
