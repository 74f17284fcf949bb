//! From rows to a graph in the store.
//!
//! ```text
//! vertices   scan -> sort by key -> ordinals -> keys, tables, key tables; sort by value -> property indexes
//! order      scan edges -> a permutation of ordinals (only if a locality order is wanted)
//! edges      scan -> resolve both ends -> sort by source and by target -> adjacency, tables
//! ```
//! Memory is divided, not shared: key tables get a part of the budget and keep it, and the sorters that
//! are at work divide the rest. What does not fit goes to a temporary folder, which is removed at the end.

mod adjacency;
mod edges;
mod footprint;
mod groups;
mod indexes;
mod objects;
mod ordering;
mod progress;
mod route;
mod scan;
mod settings;
pub mod steps;
mod table;
mod vertices;

use std::{sync::Arc, thread};

use arrow_array::{
    ArrayRef, RecordBatch, UInt16Array, UInt64Array, cast::AsArray, types::UInt16Type, types::UInt64Type,
};
use arrow_schema::{DataType, Field, SchemaRef};
use hoplake_format::{
    BuiltGraph, Direction, EdgeType, EdgeTypeId, IndexId, Key, LabelId, PropertyIndex, Schema, TableOwner, TableRef,
    VertexLabel,
    segment::{KeyWriter, SectionKind},
    table::TableSettings,
};
use hoplake_storage::Store;
use tokio::runtime::Handle;

pub use progress::{LoadPhase, Progress};
pub use settings::{BuildSettings, MEMORY_BYTES_MIN, VertexOrder};

use self::{
    edges::{DirectionRows, DirectionWriter, EdgePiece, SortedEdges},
    groups::groups,
    indexes::IndexWriter,
    objects::{Objects, SegmentUpload, Stream},
    ordering::StagedVertices,
    route::RoutedType,
    scan::ScanContext,
    table::TableUpload,
    vertices::sort_vertices,
};
use crate::{
    BadRows, Dataset, Feed, IngestError, Phase,
    resolve::{KeyTable, KeyTableBuilder},
    sort::BatchSorter,
};

/// Builds a graph from a source of data and writes its objects to `store`. Blocks, and must not be called
/// from an async task; `runtime` is where its requests run.
///
/// # Errors
/// [`IngestError::BadRow`] under the policy that stops, [`IngestError::Memory`] if a step cannot do with
/// the budget, and those of the source, the temporary folder and the store.
pub fn build(
    dataset: &Dataset,
    store: Store,
    runtime: Handle,
    settings: &BuildSettings,
    bad_rows: &Arc<BadRows>,
    progress: &dyn Progress,
) -> Result<BuiltGraph, IngestError> {
    if settings.memory_bytes < MEMORY_BYTES_MIN {
        let message =
            format!("a load needs at least {} MiB of memory; raise the memory budget", MEMORY_BYTES_MIN >> 20);
        return Err(IngestError::Invalid(message));
    }
    footprint::check(dataset, settings.threads.max(1), settings.memory_bytes)?;
    let spill = match &settings.temp_dir {
        Some(folder) => tempfile::tempdir_in(folder),
        None => tempfile::tempdir(),
    };
    let spill = spill.map_err(IngestError::Spill)?;
    let objects = |stream| Objects::new(&store, &runtime, settings, stream, 0);
    let build = Build {
        dataset,
        settings,
        spill_dir: spill.path(),
        context: ScanContext { inputs: &dataset.inputs, bad_rows, progress },
    };
    // Vertices first: edges are resolved to ordinals, which exist only when all vertices are in their order.
    let mut built = build.empty_graph()?;
    let spaces = build.vertices(&mut built, &objects(Stream::Vertices))?;
    build.edges(&mut built, &spaces, &Direction::ALL.map(|direction| objects(Stream::Edges(direction))))?;
    built.schema.validate()?;
    Ok(built)
}

/// The context of all steps of a build.
struct Build<'a> {
    dataset: &'a Dataset,
    settings: &'a BuildSettings,
    spill_dir: &'a std::path::Path,
    context: ScanContext<'a>,
}

/// The data about vertices that the edges need.
pub(crate) struct Spaces {
    /// Name and keys of each id space.
    tables: Vec<(String, Arc<KeyTable>)>,
    /// With a locality order: for each label, the new ordinal of each old one.
    permutation: Option<Vec<Vec<u32>>>,
    /// Rows (input, line) whose vertices were left out, sorted: their edges are left out, too.
    left_out: Vec<(u32, u64)>,
}

impl Spaces {
    pub(crate) fn table(&self, name: &str) -> Result<Arc<KeyTable>, IngestError> {
        let found = self.tables.iter().find(|(space, _)| space == name);
        let missing = || IngestError::Invalid(format!("edges name vertices of id space {name:?}, which has none"));
        found.map(|(_, table)| table.clone()).ok_or_else(missing)
    }
}

impl Build<'_> {
    fn empty_graph(&self) -> Result<BuiltGraph, IngestError> {
        let labels = self.dataset.vertex_tables.iter().map(|table| VertexLabel {
            name: table.label.clone(),
            key_type: table.key_type,
            properties: table.properties.clone(),
        });
        let schema = Schema { vertex_labels: labels.collect(), edge_types: Vec::new() };
        schema.validate()?;
        let mut indexes: Vec<PropertyIndex> = Vec::new();
        for name in &self.settings.indexes {
            let (label, property) = PropertyIndex::named(&schema, name)?;
            let number = u16::try_from(indexes.len()).ok().filter(|number| *number < u16::MAX);
            let id =
                number.map(IndexId).ok_or_else(|| IngestError::Invalid("a graph has at most 65,535 indexes".into()))?;
            if indexes.iter().any(|index| index.label == label && index.property == property) {
                return Err(IngestError::Invalid(format!("the index {name} is named twice")));
            }
            indexes.push(PropertyIndex { id, label, property, writer: None });
        }
        let vertex_counts = vec![0; schema.vertex_labels.len()];
        let mut spaces = self.dataset.vertex_tables.iter().map(|table| table.id_space.as_str());
        let first = spaces.next();
        // In spaces of their own, labels may have the same key for different things.
        let unique_keys = spaces.all(|space| Some(space) == first);
        Ok(BuiltGraph { vertex_counts, schema, unique_keys, indexes, ..BuiltGraph::default() })
    }

    /// The part of the budget for sorting the values of indexes, in 64ths.
    fn index_share(&self) -> u64 {
        if self.settings.indexes.is_empty() { 0 } else { 12 }
    }

    /// A part of the budget, in 64ths.
    fn share(&self, parts: u64) -> usize {
        usize::try_from(self.settings.memory_bytes / 64 * parts).unwrap_or(usize::MAX)
    }

    fn table_settings(&self) -> TableSettings {
        let group_bytes = self.share(2).clamp(1 << 20, 32 << 20);
        TableSettings { group_bytes, ..TableSettings::default() }
    }

    fn input_bytes(&self, wanted: impl Fn(&Feed) -> bool) -> u64 {
        let inputs = self.dataset.inputs.iter().filter(|input| input.feeds().iter().any(&wanted));
        inputs.map(|input| input.bytes()).sum()
    }

    /// Reads, orders and writes all vertices.
    fn vertices(&self, built: &mut BuiltGraph, objects: &Objects) -> Result<Spaces, IngestError> {
        // Progress by bytes of input, since nobody knows the number of rows before they are read.
        let bytes = self.input_bytes(|feed| !matches!(feed, Feed::Edges { .. }));
        self.context.progress.begin(LoadPhase::Vertices, bytes);
        let mut segments = SegmentUpload::new(objects, 0)?;
        let mut spaces = SpaceBuilders::new(self)?;
        let mut staged = Vec::new();
        let mut left_out = Vec::new();
        let tables = &self.dataset.vertex_tables;
        for group in groups(self.dataset, Phase::Vertices) {
            let sorted = sort_vertices(
                &self.context,
                tables,
                &group.tables,
                &group.inputs,
                self.settings.threads,
                // The tables of keys are in memory, too, with 16 parts and half of them again where labels share their
                // keys.
                self.share(36 - self.index_share()),
                self.spill_dir,
            )?;
            for (table, mut sorted) in group.tables.iter().zip(sorted) {
                let label = LabelId(*table as u16);
                let mut writer = match self.settings.order {
                    VertexOrder::Keys => {
                        let writer = VertexWriter::new(self, &built.indexes, &mut segments, label, 0)?;
                        VertexSink::Write(Box::new(writer))
                    }
                    VertexOrder::Locality => {
                        VertexSink::Stage(Box::new(StagedVertices::create(self.spill_dir, label)?))
                    }
                };
                let count = &mut built.vertex_counts[*table];
                while let Some((keys, batch)) = sorted.next(&self.context, &tables[*table])? {
                    // Always the ordinal in key order. With a locality order, edges resolve to this one and are renumbered afterwards.
                    spaces.push(label, batch.column(0), *count)?;
                    *count += keys.len() as u64;
                    writer.write(keys, batch)?;
                    left_out.append(&mut sorted.left_out);
                    self.check_left_out(&left_out)?;
                }
                match writer {
                    VertexSink::Write(writer) => built.tables.extend(writer.finish()?),
                    VertexSink::Stage(stage) => staged.push(stage.finish()?),
                }
            }
        }
        // Edges look their row up by binary search.
        left_out.sort_unstable();
        let mut spaces = Spaces { tables: spaces.finish(self)?, permutation: None, left_out };
        if self.settings.order == VertexOrder::Locality {
            let permutation = self.locality(built, &spaces)?;
            for stage in staged {
                let label = stage.label();
                let writer = VertexWriter::new(self, &built.indexes, &mut segments, label, 0)?;
                built.tables.extend(self.write_staged(stage, &permutation[usize::from(label.0)], writer)?);
            }
            spaces.permutation = Some(permutation);
        }
        built.segments.extend(segments.finish()?.0);
        Ok(spaces)
    }

    /// Skipped vertices are remembered until the edges are read.
    fn check_left_out(&self, left_out: &[(u32, u64)]) -> Result<(), IngestError> {
        let needed = size_of_val(left_out);
        if needed <= self.share(4) {
            return Ok(());
        }
        let what = "remembering rows with keys of others, whose edges are left out,";
        Err(IngestError::Memory { what, needed_bytes: needed as u64, left_bytes: self.share(4) as u64 })
    }

    /// Writes the vertices of one label in a new order: keys with their ordinals, rows by ordinal.
    fn write_staged(
        &self,
        stage: ordering::StagedReader,
        ordinals: &[u32],
        mut writer: VertexWriter<'_, '_>,
    ) -> Result<Vec<TableRef>, IngestError> {
        let table = &self.dataset.vertex_tables[usize::from(stage.label().0)];
        let mut sorter: Option<BatchSorter> = None;
        // The stage has the vertices in their old order, so old ordinals count up with its rows.
        let mut next = ordinals.iter();
        for batch in stage {
            let batch = batch?;
            // Rows were staged in key order, so the old ordinal of a row is its position in the file.
            let new: Vec<u64> = next.by_ref().take(batch.num_rows()).map(|ordinal| u64::from(*ordinal)).collect();
            for (key, ordinal) in vertices::keys_of(table.key_type, batch.column(0)).into_iter().zip(&new) {
                writer.key(key, *ordinal)?;
            }
            let batch = ordering::with_ordinals(&batch, new)?;
            let sorter = match &mut sorter {
                Some(sorter) => sorter,
                // The tables of keys are in memory, too, with 16 parts, and the order, with up to 15.
                None => {
                    let share = self.share(26 - self.index_share());
                    sorter.insert(BatchSorter::new(batch.schema(), &[0], share, self.spill_dir)?)
                }
            };
            sorter.push(batch)?;
        }
        if let Some(sorter) = sorter {
            for batch in sorter.finish()? {
                let batch = batch?;
                // The ordinal was the sort key; a row's position says it from now on.
                let columns: Vec<_> = (1..batch.num_columns()).collect();
                writer.rows(batch.project(&columns)?)?;
            }
        }
        writer.finish()
    }

    /// Reads, sorts and writes all edges.
    fn edges(&self, built: &mut BuiltGraph, spaces: &Spaces, objects: &[Objects; 2]) -> Result<(), IngestError> {
        let bytes = self.input_bytes(|feed| matches!(feed, Feed::Edges { .. }));
        self.context.progress.begin(LoadPhase::Edges, bytes);
        // One object for each direction: both are written at the same time, each on a thread.
        let mut segments = [SegmentUpload::new(&objects[0], 0)?, SegmentUpload::new(&objects[1], 0)?];
        let key_bytes: usize = spaces.tables.iter().map(|(_, table)| table.memory_bytes()).sum();
        let order_bytes: usize = spaces.permutation.iter().flatten().map(|of_label| size_of_val(&of_label[..])).sum();
        let kept_bytes = key_bytes + order_bytes + size_of_val(&spaces.left_out[..]);
        // Tables of keys and the new order stay in memory until the last edge is resolved, so sorters get what these leave.
        let left = self.share(56).saturating_sub(kept_bytes).max(self.share(8));
        for group in groups(self.dataset, Phase::Edges) {
            let routed = route::sort_edges(self, spaces, built, &group, left)?;
            for edges in routed {
                self.write_type(built, edges, &mut segments)?;
            }
        }
        for segments in segments {
            let (references, bytes) = segments.finish()?;
            built.adjacency_bytes += bytes;
            built.segments.extend(references);
        }
        Ok(())
    }

    /// Writes both directions of an edge type, each on a thread.
    fn write_type(
        &self,
        built: &mut BuiltGraph,
        routed: RoutedType,
        segments: &mut [SegmentUpload<'_>; 2],
    ) -> Result<(), IngestError> {
        let table = &self.dataset.edge_tables[routed.table];
        let number = u16::try_from(built.schema.edge_types.len());
        let edge_type =
            EdgeTypeId(number.map_err(|_| IngestError::Invalid("there are more than 65,535 edge types".into()))?);
        let written = thread::scope(|scope| {
            let directions = routed.sorters.into_iter().zip(segments.iter_mut()).zip(Direction::ALL);
            let threads: Vec<_> = directions
                .map(|((sorters, segments), direction)| {
                    scope.spawn(move || {
                        let properties = &table.properties;
                        let rows = DirectionRows { edge_type, direction, properties, first: 0 };
                        let mut writer = DirectionWriter::new(segments, self.spill_dir, self.table_settings(), &rows)?;
                        let mut sorted = SortedEdges::of(sorters, properties)?;
                        let mut edges = EdgePiece::default();
                        while sorted.next_into(&mut edges)? {
                            writer.write(&edges)?;
                        }
                        writer.finish()
                    })
                })
                .collect();
            let results = threads.into_iter().map(|thread| thread.join().expect("a writer does not panic"));
            results.collect::<Result<Vec<_>, _>>()
        })?;
        // In the order of `Direction::ALL`: out, then in.
        let [out, into]: [_; 2] =
            written.try_into().map_err(|_| IngestError::Invalid("a direction is missing".into()))?;
        built.schema.edge_types.push(EdgeType {
            label: table.label.clone(),
            source: routed.source,
            target: routed.target,
            properties: table.properties.clone(),
        });
        built.edge_counts.push(out.edges);
        built.degrees.push([out.degrees, into.degrees]);
        built.tables.extend(out.tables.into_iter().chain(into.tables));
        Ok(())
    }
}

/// Where sorted vertices go.
enum VertexSink<'a, 'b> {
    Write(Box<VertexWriter<'a, 'b>>),
    Stage(Box<StagedVertices>),
}

impl VertexSink<'_, '_> {
    fn write(&mut self, keys: Vec<Key>, batch: RecordBatch) -> Result<(), IngestError> {
        match self {
            Self::Write(writer) => writer.write(keys, batch),
            Self::Stage(stage) => stage.write(&batch),
        }
    }
}

/// Writes the keys and the table of one label.
struct VertexWriter<'a, 'b> {
    segments: &'a mut SegmentUpload<'b>,
    keys: KeyWriter,
    table: TableUpload<'b>,
    indexes: IndexWriter,
    next: u64,
}

impl<'a, 'b> VertexWriter<'a, 'b> {
    /// Writes the vertices of a label from one on.
    fn new(
        build: &'b Build<'_>,
        indexes: &[PropertyIndex],
        segments: &'a mut SegmentUpload<'b>,
        label: LabelId,
        first: u64,
    ) -> Result<Self, IngestError> {
        let table = &build.dataset.vertex_tables[usize::from(label.0)];
        let (kind, owner) = (SectionKind::Keys(label), TableOwner::Vertices(label));
        let objects = segments.objects;
        let keys = if first > 0 {
            KeyWriter::resumed(kind, table.key_type, &mut segments.writer)
        } else {
            KeyWriter::new(kind, table.key_type)
        };
        Ok(Self {
            segments,
            keys,
            table: TableUpload::new(objects, build.spill_dir, owner, first, build.table_settings()),
            indexes: IndexWriter::new(indexes, label, build.share(build.index_share()), build.spill_dir)?,
            next: first,
        })
    }

    /// Writes the next vertices, whose ordinals follow those of the ones before: keys and rows of a span end together.
    fn write(&mut self, keys: Vec<Key>, batch: RecordBatch) -> Result<(), IngestError> {
        let mut keys = keys.into_iter();
        let mut written = 0;
        while written < batch.num_rows() {
            if self.segments.is_span_over() {
                // Keys before rows, as at the end of the label, since each object is named when it begins.
                self.keys.flush(&mut self.segments.writer)?;
                self.table.end_table()?;
            }
            let left = usize::try_from(self.segments.keys_left()).unwrap_or(usize::MAX);
            let count = (batch.num_rows() - written).min(left.max(1));
            for key in keys.by_ref().take(count) {
                self.key(key, self.next)?;
                self.next += 1;
            }
            self.rows(batch.slice(written, count))?;
            written += count;
        }
        Ok(())
    }

    fn key(&mut self, key: Key, ordinal: u64) -> Result<(), IngestError> {
        if self.segments.is_span_over() {
            self.keys.flush(&mut self.segments.writer)?;
            self.segments.begin_span()?;
        }
        self.keys.push(key, ordinal, &mut self.segments.writer)?;
        self.segments.count(1);
        self.segments.send()
    }

    fn rows(&mut self, batch: RecordBatch) -> Result<(), IngestError> {
        self.indexes.rows(&batch)?;
        self.table.write(batch)
    }

    fn finish(self) -> Result<Vec<TableRef>, IngestError> {
        self.keys.finish(&mut self.segments.writer)?;
        self.indexes.finish(self.segments)?;
        self.table.finish()
    }
}

/// Gathers the keys of all id spaces. A space of one label gets its keys in order; those of
/// several labels are sorted together first.
struct SpaceBuilders {
    spaces: Vec<SpaceBuilder>,
    /// The space of each label.
    of_label: Vec<usize>,
}

struct SpaceBuilder {
    name: String,
    table: KeyTableBuilder,
    shared: Option<(BatchSorter, SchemaRef)>,
}

impl SpaceBuilders {
    fn new(build: &Build<'_>) -> Result<Self, IngestError> {
        let tables = &build.dataset.vertex_tables;
        let mut names: Vec<&str> = tables.iter().map(|table| table.id_space.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        let budget = build.share(16) / names.len().max(1);
        let space = |name: &&str| {
            let mut members = tables.iter().filter(|table| table.id_space == **name);
            let first = members.next().expect("the name is that of a table");
            let shared = members.next().map(|_| {
                let fields = vec![
                    Field::new("key", first.key_type.arrow(), false),
                    Field::new("label", DataType::UInt16, false),
                    Field::new("ordinal", DataType::UInt64, false),
                ];
                let schema: SchemaRef = Arc::new(arrow_schema::Schema::new(fields));
                // By key alone: two labels with one key then are neighbours, which is an error whatever their order.
                Ok::<_, IngestError>((BatchSorter::new(schema.clone(), &[0], budget / 2, build.spill_dir)?, schema))
            });
            let table = KeyTableBuilder::new(first.key_type, budget, build.spill_dir);
            Ok(SpaceBuilder { name: (*name).to_owned(), table, shared: shared.transpose()? })
        };
        let position =
            |table: &crate::VertexTable| names.binary_search(&table.id_space.as_str()).expect("it is a name");
        let of_label = tables.iter().map(position).collect();
        Ok(Self { spaces: names.iter().map(space).collect::<Result<_, IngestError>>()?, of_label })
    }

    /// Takes keys of a label, which ascend; their ordinals follow from the first.
    fn push(&mut self, label: LabelId, keys: &ArrayRef, first_ordinal: u64) -> Result<(), IngestError> {
        let space = &mut self.spaces[self.of_label[usize::from(label.0)]];
        let ordinals: Vec<u64> = (first_ordinal..).take(keys.len()).collect();
        match &mut space.shared {
            None => space.table.push(keys, &vec![label.0; keys.len()], &ordinals),
            Some((sorter, schema)) => {
                let columns: Vec<ArrayRef> = vec![
                    keys.clone(),
                    Arc::new(UInt16Array::from_value(label.0, keys.len())),
                    Arc::new(UInt64Array::from(ordinals)),
                ];
                sorter.push(RecordBatch::try_new(schema.clone(), columns)?)
            }
        }
    }

    fn finish(self, build: &Build<'_>) -> Result<Vec<(String, Arc<KeyTable>)>, IngestError> {
        let finish = |space: SpaceBuilder| {
            let SpaceBuilder { name, mut table, shared } = space;
            // Outlives a batch: the two rows of a shared key may be the last of one batch and the first of the next.
            let mut previous: Option<(Key, u16)> = None;
            for batch in shared.map(|(sorter, _)| sorter.finish()).transpose()?.into_iter().flatten() {
                let batch = batch?;
                let labels = batch.column(1).as_primitive::<UInt16Type>().values();
                reject_shared_keys(build, &batch, labels, &mut previous)?;
                table.push(batch.column(0), labels, batch.column(2).as_primitive::<UInt64Type>().values())?;
            }
            Ok((name, Arc::new(table.finish()?)))
        };
        self.spaces.into_iter().map(finish).collect()
    }
}

/// A key of a space that two labels have would leave open which vertex an edge means.
fn reject_shared_keys(
    build: &Build<'_>,
    batch: &RecordBatch,
    labels: &[u16],
    previous: &mut Option<(Key, u16)>,
) -> Result<(), IngestError> {
    let tables = &build.dataset.vertex_tables;
    let Some(first) = labels.first() else { return Ok(()) };
    let keys = vertices::keys_of(tables[usize::from(*first)].key_type, batch.column(0));
    for (key, label) in keys.into_iter().zip(labels) {
        if let Some((other, before)) = previous.as_ref().filter(|(other, _)| *other == key) {
            let name = |label: &u16| &tables[usize::from(*label)].label;
            let message =
                format!("key {other} belongs to a {} and to a {}, which share their ids", name(before), name(label));
            return Err(IngestError::Invalid(message));
        }
        *previous = Some((key, *label));
    }
    Ok(())
}
