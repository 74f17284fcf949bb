//! The steps of a load of tables, each by itself, so that many processes can run them.
//!
//! ```text
//! read       a block of a table -> rows with their origins
//! split      rows -> those of each range of keys, or of vertices
//! vertices   the rows of a range -> its vertices in the order of their keys
//! keys       the vertices of a range -> where its keys are looked up
//! resolve    edges whose source, or target, is in a range -> the same with the vertex in place of its key
//! edges      edges whose source, or target, is in a range -> sorted
//! write      a span of vertices or edges -> objects
//! ```
//!
//! They do with the rows of a range what [`build`](super::build) does with all, and write the same objects. Ordinals follow the order of keys,
//! and the first bad row ends the load.

use std::{
    collections::{BTreeMap, VecDeque, btree_map::Entry},
    path::PathBuf,
    sync::Arc,
};

use arrow_array::{
    ArrayRef, Int64Array, RecordBatch, RecordBatchIterator, StringArray, UInt32Array, UInt64Array,
    cast::AsArray,
    types::{Int64Type, UInt32Type, UInt64Type},
};
use arrow_schema::{DataType, Field, Schema as ArrowSchema, SchemaRef};
use arrow_select::{concat::concat_batches, filter::filter_record_batch, take::take_record_batch};
use hoplake_format::{BuiltGraph, DegreeSummary, Direction, EdgeType, EdgeTypeId, LabelId, TableOwner, WrittenSpan};
use hoplake_storage::Store;
use tempfile::TempDir;
use tokio::runtime::Handle;

use super::{
    Build, BuildSettings, SpaceBuilders, VertexWriter,
    edges::{DirectionRows, DirectionSorter, DirectionWriter, EdgePiece, SortedEdges, WrittenDirection},
    groups::groups,
    objects::{Objects, SegmentUpload, Stream},
    route::edges_with_origin,
    scan::ScanContext,
    vertices::{KnownKeys, SortedVertices, TableSorters, keys_of, merge, with_origin},
};
use crate::{
    BadRows, Dataset, Feed, IngestError, Input, Phase, RowTexts,
    dataset::{Chunks, Endpoint, Lines},
    resolve::{KeyTable, UNKNOWN, parts},
    source::{self, SourceOptions},
    staged::{StagedEnd, StagedTables},
};

/// The least rows of a piece of sorted edges, unless they end.
const PIECE_ROWS: usize = 1 << 18;
/// Of so many keys of a block one is a sample.
const SAMPLED: usize = 37;
/// What is remembered of the keys of a block whose vertices edges imply.
const KNOWN_BYTES: usize = 32 << 20;

/// Vertices of a label, in a table.
#[derive(Debug, Clone)]
pub struct VertexRows {
    /// The label.
    pub label: String,
    /// The column with their keys.
    pub key: String,
    /// The columns.
    pub schema: SchemaRef,
    /// In how many blocks the rows come.
    pub blocks: usize,
}

/// Edges of a label, in a table.
#[derive(Debug, Clone)]
pub struct EdgeRows {
    /// The label.
    pub label: String,
    /// Label and column of the sources.
    pub source: (String, String),
    /// Label and column of the targets.
    pub target: (String, String),
    /// The columns.
    pub schema: SchemaRef,
    /// In how many blocks the rows come.
    pub blocks: usize,
}

/// The tables of a load.
#[derive(Debug, Clone, Default)]
pub struct Tables {
    /// Vertices.
    pub vertices: Vec<VertexRows>,
    /// Edges.
    pub edges: Vec<EdgeRows>,
    /// Whether labels without a table have the vertices that edges name.
    pub implies_labels: bool,
}

/// An end of an edge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EdgeEnd {
    /// Where it starts.
    Source,
    /// Where it ends.
    Target,
}

/// Rows of a feed, with their origins.
#[derive(Debug, Clone)]
pub struct FeedRows {
    /// Which rows these are.
    pub feed: Feed,
    /// Vertices: key, block, line, properties. Edges: both ends, block, line, properties.
    pub batch: RecordBatch,
}

/// Keys at which ranges begin but for the first, by id space.
pub type Bounds = BTreeMap<String, ArrayRef>;

/// Vertices in the order of their keys.
#[derive(Debug, Clone)]
pub struct OrderedVertices {
    /// The label.
    pub label: LabelId,
    /// Key and properties.
    pub batch: RecordBatch,
}

/// The type of edges before there is a schema: the number of their table, and the labels of both ends.
pub type TypeKey = (usize, LabelId, LabelId);

/// Edges of a type in the order of one end.
#[derive(Debug, Clone)]
pub struct OrderedEdges {
    /// The type.
    pub kind: TypeKey,
    /// The ordinals of that end, and of the other, and properties.
    pub batch: RecordBatch,
}

/// Keys of a range, and the vertices that have them.
pub struct RangeKeys(Vec<(String, Arc<KeyTable>)>);

/// What all steps know.
pub struct LoadSteps {
    tables: Tables,
    dataset: Dataset,
    settings: BuildSettings,
    spill: TempDir,
    blocks: Vec<Box<dyn Input>>,
    bad_rows: Arc<BadRows>,
}

/// A block of a table where messages name the file of a row.
struct Block(PathBuf);

impl Input for Block {
    fn path(&self) -> &PathBuf {
        &self.0
    }

    fn bytes(&self) -> u64 {
        0
    }

    fn feeds(&self) -> &[Feed] {
        &[]
    }

    fn scan(&self, _: Phase, _: Arc<BadRows>) -> Result<Chunks, IngestError> {
        Ok(Box::new(std::iter::empty()))
    }

    fn texts(&self) -> Arc<dyn RowTexts> {
        Arc::new(NoTexts)
    }
}

/// Rows of a block are not read again.
#[derive(Debug)]
struct NoTexts;

impl RowTexts for NoTexts {
    fn find(&self, _: &[u64], _: &mut dyn FnMut(u64, String) -> Result<(), IngestError>) -> Result<(), IngestError> {
        Ok(())
    }
}

/// The data set of these tables, one of which has rows.
fn dataset_of(
    tables: &Tables,
    spill: &TempDir,
    rows: Option<(usize, RecordBatch)>,
) -> Result<(StagedTables, Dataset), IngestError> {
    let mut staged = StagedTables::new(Some(spill.path()))?;
    if tables.implies_labels {
        staged.imply_labels();
    }
    let reader = |number: usize, schema: &SchemaRef| {
        let own = rows.iter().filter(|(of, _)| *of == number).map(|(_, batch)| Ok(batch.clone()));
        let schema =
            rows.iter().find(|(of, _)| *of == number).map_or_else(|| schema.clone(), |(_, batch)| batch.schema());
        Box::new(RecordBatchIterator::new(own.collect::<Vec<_>>(), schema))
    };
    for (number, table) in tables.vertices.iter().enumerate() {
        staged.add_vertices(&table.label, &table.key, reader(number, &table.schema), &|| true)?;
    }
    for (number, table) in (tables.vertices.len()..).zip(&tables.edges) {
        let ends = [&table.source, &table.target].map(|(label, column)| StagedEnd { label, column });
        staged.add_edges(&table.label, ends, reader(number, &table.schema), &|| true)?;
    }
    let options = SourceOptions { mapping: Some(staged.mapping()?), ..SourceOptions::default() };
    let dataset = source::open(&[], &options)?;
    Ok((staged, dataset))
}

impl LoadSteps {
    /// Steps of a load of these tables.
    ///
    /// # Errors
    /// [`IngestError::Invalid`] if the tables contradict each other, or if settings ask for something that steps do not do.
    pub fn new(tables: Tables, settings: BuildSettings) -> Result<Self, IngestError> {
        if !settings.indexes.is_empty() {
            let message = "indexes are not made by steps; create them once the graph is loaded";
            return Err(IngestError::Invalid(message.into()));
        }
        let spill = match &settings.temp_dir {
            Some(folder) => tempfile::tempdir_in(folder),
            None => tempfile::tempdir(),
        };
        let spill = spill.map_err(IngestError::Spill)?;
        let (_, dataset) = dataset_of(&tables, &spill, None)?;
        let of_vertices = tables.vertices.iter().map(|table| table.blocks);
        let all = of_vertices.chain(tables.edges.iter().map(|table| table.blocks));
        // As the files of tables in memory are named.
        let named = all
            .enumerate()
            .flat_map(|(table, blocks)| std::iter::repeat_n(PathBuf::from(format!("{table}.parquet")), blocks));
        let blocks = named.map(|name| Box::new(Block(name)) as Box<dyn Input>).collect();
        Ok(Self { tables, dataset, settings, spill, blocks, bad_rows: Arc::new(BadRows::stop()) })
    }

    fn build(&self) -> Build<'_> {
        let context = ScanContext { inputs: &self.blocks, bad_rows: &self.bad_rows, progress: &() };
        Build { dataset: &self.dataset, settings: &self.settings, spill_dir: self.spill.path(), context }
    }

    /// The labels, in the order of their numbers.
    pub fn labels(&self) -> impl Iterator<Item = &str> {
        self.dataset.vertex_tables.iter().map(|table| table.label.as_str())
    }

    /// The numbers of the labels in the order in which their vertices are written.
    pub fn label_order(&self) -> Vec<usize> {
        groups(&self.dataset, Phase::Vertices).into_iter().flat_map(|group| group.tables).collect()
    }

    /// Reads a block of a table: vertices first. Blocks are counted over all tables, and `first` is how many rows the table has before it.
    ///
    /// # Errors
    /// [`IngestError::BadRow`]; [`IngestError::Invalid`] if a column has another type than the table said.
    pub fn read(
        &self,
        table: usize,
        block: usize,
        first: u64,
        rows: RecordBatch,
        phase: Phase,
    ) -> Result<Vec<FeedRows>, IngestError> {
        let (_files, dataset) = dataset_of(&self.tables, &self.spill, Some((table, rows)))?;
        let mut known: BTreeMap<usize, KnownKeys> = BTreeMap::new();
        let mut found = Vec::new();
        for input in &dataset.inputs {
            for chunk in input.scan(phase, self.bad_rows.clone())? {
                let mut chunk = chunk?;
                chunk.lines = match chunk.lines {
                    Lines::Range(lines) => Lines::Range(lines.start + first..lines.end + first),
                    Lines::List(lines) => Lines::List(lines.into_iter().map(|line| line + first).collect()),
                };
                let feed = chunk.feed;
                let batch = match feed {
                    Feed::Edges { .. } => edges_with_origin(block, chunk)?,
                    Feed::Vertices { table } => {
                        let batch = with_origin(block, &chunk)?;
                        if dataset.vertex_tables[table].implied {
                            let known = known.entry(table).or_insert_with(|| KnownKeys::new(KNOWN_BYTES));
                            filter_record_batch(&batch, &known.learn(batch.column(0)))?
                        } else {
                            batch
                        }
                    }
                    Feed::ListValues { .. } => with_origin(block, &chunk)?,
                };
                if batch.num_rows() > 0 {
                    found.push(FeedRows { feed, batch });
                }
            }
        }
        Ok(found)
    }

    /// The id space of the keys of an end of edges, or of vertices.
    fn space(&self, feed: Feed, end: EdgeEnd) -> &str {
        match feed {
            Feed::Vertices { table } | Feed::ListValues { table, .. } => &self.dataset.vertex_tables[table].id_space,
            Feed::Edges { table } => &self.endpoint(table, end).id_space,
        }
    }

    fn endpoint(&self, table: usize, end: EdgeEnd) -> &Endpoint {
        let table = &self.dataset.edge_tables[table];
        match end {
            EdgeEnd::Source => &table.source,
            EdgeEnd::Target => &table.target,
        }
    }

    /// Some keys of vertices, by id space.
    ///
    /// # Errors
    /// Arrow's.
    pub fn sample(&self, rows: &[FeedRows]) -> Result<Vec<(String, ArrayRef)>, IngestError> {
        let mut sampled = Vec::new();
        for FeedRows { feed, batch } in rows {
            if matches!(feed, Feed::Vertices { .. }) {
                let at = UInt32Array::from_iter_values((0..batch.num_rows() as u32).step_by(SAMPLED));
                let keys = arrow_select::take::take(batch.column(0), &at, None)?;
                sampled.push((self.space(*feed, EdgeEnd::Source).to_owned(), keys));
            }
        }
        Ok(sampled)
    }

    /// Divides rows by the range that the key of a vertex, or of an end of an edge, is in. There is one more range than bounds.
    ///
    /// # Errors
    /// [`IngestError::Invalid`] if bounds are of another type than keys.
    pub fn split(
        &self,
        rows: &[FeedRows],
        end: EdgeEnd,
        bounds: &Bounds,
        ranges: usize,
    ) -> Result<Vec<Vec<FeedRows>>, IngestError> {
        divided(rows, ranges, |row| {
            let column = match (row.feed, end) {
                (Feed::Edges { .. }, EdgeEnd::Target) => 1,
                _ => 0,
            };
            let space = self.space(row.feed, end);
            range_of_keys(row.batch.column(column), bounds.get(space))
        })
    }

    /// Divides edges whose ends are resolved by the range that an end is in. `firsts` has the first ordinal of each range, for each label.
    ///
    /// # Errors
    /// Arrow's.
    pub fn split_resolved(
        &self,
        rows: &[FeedRows],
        end: EdgeEnd,
        firsts: &[Vec<u64>],
        ranges: usize,
    ) -> Result<Vec<Vec<FeedRows>>, IngestError> {
        divided(rows, ranges, |row| {
            let column = if end == EdgeEnd::Source { 0 } else { 1 };
            let vertices = row.batch.column(column).as_primitive::<UInt64Type>().values();
            let range = |vertex: &u64| {
                let (label, ordinal) = parts(*vertex);
                let firsts = firsts.get(usize::from(label.0)).map_or(&[][..], Vec::as_slice);
                firsts.partition_point(|first| *first <= ordinal).saturating_sub(1)
            };
            Ok(vertices.iter().map(range).collect())
        })
    }

    /// Vertices of a range, sorted.
    ///
    /// # Errors
    /// [`IngestError::BadRow`] if two have one key; [`IngestError::Spill`].
    pub fn vertices(
        &self,
        rows: impl Iterator<Item = Result<FeedRows, IngestError>>,
    ) -> Result<VertexRange, IngestError> {
        let build = self.build();
        let tables = &self.dataset.vertex_tables;
        let order = self.label_order();
        let share = build.share(40) / order.len().max(1);
        let mut sorters = TableSorters::new(tables, &order, &|_| Vec::new(), share, build.spill_dir)?;
        for rows in rows {
            let FeedRows { feed, batch } = rows?;
            sorters.push(feed, batch)?;
        }
        let sorted = merge(vec![sorters], &order, tables)?;
        Ok(VertexRange { sorted: order.into_iter().zip(sorted).collect() })
    }

    /// Where the keys of a range are looked up: those of each label ascend, and their ordinals follow from the first.
    ///
    /// # Errors
    /// [`IngestError::Invalid`] if labels that share their keys have one twice; [`IngestError::Memory`] if the range is too large.
    pub fn keys(
        &self,
        vertices: impl Iterator<Item = Result<(LabelId, u64, ArrayRef), IngestError>>,
    ) -> Result<RangeKeys, IngestError> {
        let build = self.build();
        let mut spaces = SpaceBuilders::new(&build)?;
        for keys in vertices {
            let (label, first, keys) = keys?;
            spaces.push(label, &keys, first)?;
        }
        let tables = spaces.finish(&build)?;
        if let Some((_, table)) = tables.iter().find(|(_, table)| table.is_partitioned()) {
            let left_bytes = build.share(16) as u64;
            let needed_bytes = table.memory_bytes() as u64;
            return Err(IngestError::Memory { what: "the keys of a range", needed_bytes, left_bytes });
        }
        Ok(RangeKeys(tables))
    }

    /// Edges with the vertices of an end, which is in the range of these keys.
    ///
    /// # Errors
    /// [`IngestError::BadRow`] if there is no vertex with a key.
    pub fn resolve(&self, keys: &RangeKeys, rows: Vec<FeedRows>, end: EdgeEnd) -> Result<Vec<FeedRows>, IngestError> {
        let column = if end == EdgeEnd::Source { 0 } else { 1 };
        let mut resolved = Vec::with_capacity(rows.len());
        for FeedRows { feed, batch } in rows {
            let Feed::Edges { table } = feed else { continue };
            let endpoint = self.endpoint(table, end);
            let found = keys.0.iter().find(|(space, _)| *space == endpoint.id_space);
            let missing =
                || IngestError::Invalid(format!("there are no vertices of the id space {:?}", endpoint.id_space));
            let (_, of_space) = found.ok_or_else(missing)?;
            let label = endpoint.label.as_ref().and_then(|name| self.labels().position(|label| label == name));
            let mut vertices = Vec::new();
            let label = label.map(|label| LabelId(label as u16));
            of_space.resolve(batch.column(column), label, &mut vertices)?;
            if let Some(row) = vertices.iter().position(|vertex| *vertex == UNKNOWN) {
                self.unknown(endpoint, end, &batch, row)?;
            }
            let (schema, mut columns, _) = batch.into_parts();
            columns[column] = Arc::new(UInt64Array::from(vertices));
            let mut fields: Vec<_> = schema.fields().iter().map(|field| field.as_ref().clone()).collect();
            fields[column] = Field::new(fields[column].name(), DataType::UInt64, false);
            let batch = RecordBatch::try_new(Arc::new(ArrowSchema::new(fields)), columns)?;
            resolved.push(FeedRows { feed, batch });
        }
        Ok(resolved)
    }

    fn unknown(&self, endpoint: &Endpoint, end: EdgeEnd, batch: &RecordBatch, row: usize) -> Result<(), IngestError> {
        let (column, name) = if end == EdgeEnd::Source { (0, "source") } else { (1, "target") };
        let key_type = self.dataset.vertex_tables.iter().find(|table| table.id_space == endpoint.id_space);
        let key = key_type.map(|table| keys_of(table.key_type, &batch.column(column).slice(row, 1)));
        let key = key.and_then(|keys| keys.first().map(ToString::to_string)).unwrap_or_default();
        let block = batch.column(2).as_primitive::<UInt32Type>().value(row);
        let line = batch.column(3).as_primitive::<UInt64Type>().value(row);
        let why = format!("is the key of no {}", endpoint.label.as_deref().unwrap_or("vertex"));
        self.blocks[block as usize].report(&self.bad_rows, line, name, key, why)
    }

    /// Edges of a range, both of whose ends are resolved, sorted by one of them. `counts` has the vertices of each label.
    ///
    /// # Errors
    /// [`IngestError::Spill`].
    pub fn edges(
        &self,
        direction: Direction,
        counts: &[u64],
        rows: impl Iterator<Item = Result<FeedRows, IngestError>>,
    ) -> Result<EdgeRange, IngestError> {
        let build = self.build();
        let count = |label: LabelId| counts.get(usize::from(label.0)).copied().unwrap_or_default();
        // At most so many types: an end without a label may have each of its id space.
        let types: usize = self.dataset.edge_tables.iter().map(|table| super::route::types_of(&build, table)).sum();
        let share = build.share(48) / types.max(1);
        let mut sorters: BTreeMap<TypeKey, DirectionSorter> = BTreeMap::new();
        for rows in rows {
            let FeedRows { feed, batch } = rows?;
            let Feed::Edges { table } = feed else { continue };
            let ends = [0, 1].map(|column| batch.column(column).as_primitive::<UInt64Type>().values());
            let mut of_type: BTreeMap<(LabelId, LabelId), Vec<u32>> = BTreeMap::new();
            for (row, (source, target)) in (0u32..).zip(ends[0].iter().zip(ends[1])) {
                of_type.entry((parts(*source).0, parts(*target).0)).or_default().push(row);
            }
            for ((source, target), rows) in of_type {
                let own = if rows.len() == batch.num_rows() {
                    batch.clone()
                } else {
                    take_record_batch(&batch, &UInt32Array::from(rows))?
                };
                let ordinals = |column: usize| -> Vec<u64> {
                    own.column(column).as_primitive::<UInt64Type>().values().iter().map(|it| parts(*it).1).collect()
                };
                let (near, far, labels) = match direction {
                    Direction::Out => (ordinals(0), ordinals(1), (source, target)),
                    Direction::In => (ordinals(1), ordinals(0), (target, source)),
                };
                let key = (table, source, target);
                let sorter = match sorters.entry(key) {
                    Entry::Occupied(entry) => entry.into_mut(),
                    Entry::Vacant(entry) => {
                        let properties = &self.dataset.edge_tables[table].properties;
                        let counts = (count(labels.0), count(labels.1));
                        let sorter = DirectionSorter::new(counts.0, counts.1, properties, share, build.spill_dir)?;
                        entry.insert(sorter)
                    }
                };
                sorter.push(&near, &far, &own)?;
            }
        }
        let mut sorted = VecDeque::new();
        for (kind, sorter) in sorters {
            let properties = &self.dataset.edge_tables[kind.0].properties;
            sorted.push_back((kind, SortedEdges::of(vec![sorter], properties)?));
        }
        Ok(EdgeRange { sorted })
    }

    /// The types of edges in the order of their numbers, if edges of these were found.
    pub fn edge_types(&self, found: &[TypeKey]) -> Vec<TypeKey> {
        let tables = &self.dataset.edge_tables;
        let label = |end: &Endpoint| {
            let position = self.labels().position(|label| Some(label) == end.label.as_deref());
            position.map(|label| LabelId(label as u16))
        };
        let mut ordered = Vec::new();
        for group in groups(&self.dataset, Phase::Edges) {
            let mut of_group: Vec<TypeKey> =
                found.iter().filter(|kind| group.tables.contains(&kind.0)).copied().collect();
            // A table whose ends are of known labels is a type even if it has no rows.
            for table in &group.tables {
                if let (Some(source), Some(target)) = (label(&tables[*table].source), label(&tables[*table].target)) {
                    of_group.push((*table, source, target));
                }
            }
            of_group.sort_unstable();
            of_group.dedup();
            ordered.append(&mut of_group);
        }
        ordered
    }

    /// Writes vertices, the first of which has `items` before it among those of all labels. Each comes with the ordinal of its first. Blocks, and must not
    /// be called from an async task.
    ///
    /// # Errors
    /// The store's, and those of the temporary folder.
    pub fn write_vertices(
        &self,
        (store, runtime): (&Store, &Handle),
        items: u64,
        vertices: impl Iterator<Item = Result<(u64, OrderedVertices), IngestError>>,
    ) -> Result<WrittenSpan, IngestError> {
        let build = self.build();
        let objects = Objects::new(store, runtime, &self.settings, Stream::Vertices, items);
        let mut segments = SegmentUpload::new(&objects, items)?;
        let mut tables = Vec::new();
        let mut vertices = vertices.peekable();
        while let Some(next) = vertices.next() {
            let (first, OrderedVertices { label, batch }) = next?;
            let key_type = self.dataset.vertex_tables[usize::from(label.0)].key_type;
            let mut writer = VertexWriter::new(&build, &[], &mut segments, label, first)?;
            writer.write(keys_of(key_type, batch.column(0)), batch)?;
            while let Some(next) = vertices.next_if(|it| !matches!(it, Ok((_, other)) if other.label != label)) {
                let (_, OrderedVertices { batch, .. }) = next?;
                writer.write(keys_of(key_type, batch.column(0)), batch)?;
            }
            tables.extend(writer.finish()?);
        }
        let (segments, _) = segments.finish()?;
        Ok(WrittenSpan { segments, tables, ..WrittenSpan::default() })
    }

    /// Writes edges of a direction, the first of which has `items` before it among those of all types. Each comes with the number of its type and the
    /// edges of that type before it. Blocks, and must not be called from an async task.
    ///
    /// # Errors
    /// As [`Self::write_vertices`].
    pub fn write_edges(
        &self,
        (store, runtime): (&Store, &Handle),
        direction: Direction,
        items: u64,
        edges: impl Iterator<Item = Result<(EdgeTypeId, u64, OrderedEdges), IngestError>>,
    ) -> Result<WrittenSpan, IngestError> {
        let build = self.build();
        let objects = Objects::new(store, runtime, &self.settings, Stream::Edges(direction), items);
        let mut segments = SegmentUpload::new(&objects, items)?;
        let mut span = WrittenSpan::default();
        let mut edges = edges.peekable();
        while let Some(next) = edges.next() {
            let (edge_type, first, own) = next?;
            let properties = &self.dataset.edge_tables[own.kind.0].properties;
            let rows = DirectionRows { edge_type, direction, properties, first };
            let mut writer = DirectionWriter::new(&mut segments, build.spill_dir, build.table_settings(), &rows)?;
            writer.write(&piece_of(own.batch)?)?;
            while let Some(next) = edges.next_if(|it| !matches!(it, Ok((other, ..)) if *other != edge_type)) {
                let (.., own) = next?;
                writer.write(&piece_of(own.batch)?)?;
            }
            let WrittenDirection { edges, degrees, tables } = writer.finish()?;
            span.edges.push((edge_type, edges, degrees));
            span.tables.extend(tables);
        }
        let (segments, bytes) = segments.finish()?;
        Ok(WrittenSpan { segments, adjacency_bytes: bytes, ..span })
    }

    /// The graph of these spans: of vertices, of edges out and of edges in, each in order.
    ///
    /// # Errors
    /// [`IngestError::Invalid`] if its names contradict each other.
    pub fn graph(
        &self,
        counts: Vec<u64>,
        types: &[TypeKey],
        [vertices, out, into]: [Vec<WrittenSpan>; 3],
    ) -> Result<BuiltGraph, IngestError> {
        let mut built = self.build().empty_graph()?;
        built.vertex_counts = counts;
        let label_of = |kind: &TypeKey| &self.dataset.edge_tables[kind.0];
        built.schema.edge_types = types
            .iter()
            .map(|kind| EdgeType {
                label: label_of(kind).label.clone(),
                source: kind.1,
                target: kind.2,
                properties: label_of(kind).properties.clone(),
            })
            .collect();
        built.edge_counts = vec![0; types.len()];
        built.degrees = vec![[DegreeSummary::default(), DegreeSummary::default()]; types.len()];
        for span in &vertices {
            built.segments.extend(span.segments.iter().cloned());
            built.tables.extend(span.tables.iter().cloned());
        }
        for (direction, spans) in [&out, &into].into_iter().enumerate() {
            for span in spans {
                built.segments.extend(span.segments.iter().cloned());
                built.adjacency_bytes += span.adjacency_bytes;
                for (edge_type, edges, degrees) in &span.edges {
                    let number = usize::from(edge_type.0);
                    let (Some(count), Some(of_type)) =
                        (built.edge_counts.get_mut(number), built.degrees.get_mut(number))
                    else {
                        return Err(IngestError::Invalid(format!("a span has edges of an unknown type, {number}")));
                    };
                    *count += if direction == 0 { *edges } else { 0 };
                    of_type[direction].merge(degrees);
                }
            }
        }
        // By type, out before in.
        let mut tables: Vec<_> = out.iter().chain(&into).flat_map(|span| span.tables.iter().cloned()).collect();
        tables.sort_by_key(|table| match table.owner {
            TableOwner::Edges(edge_type, direction) => (edge_type.0, direction != Direction::Out),
            _ => (0, false),
        });
        built.tables.extend(tables);
        built.schema.validate()?;
        Ok(built)
    }
}

/// Sorted vertices of a range, in the order of labels in which they are written.
pub struct VertexRange {
    sorted: VecDeque<(usize, SortedVertices)>,
}

impl VertexRange {
    /// The next ones, in the load that they were sorted for; `None` at the end.
    ///
    /// # Errors
    /// [`IngestError::BadRow`] if two have one key; [`IngestError::Spill`].
    pub fn next_vertices(&mut self, steps: &LoadSteps) -> Result<Option<OrderedVertices>, IngestError> {
        let context = steps.build().context;
        while let Some((table, sorted)) = self.sorted.front_mut() {
            if let Some((_, batch)) = sorted.next(&context, &steps.dataset.vertex_tables[*table])? {
                return Ok(Some(OrderedVertices { label: LabelId(*table as u16), batch }));
            }
            self.sorted.pop_front();
        }
        Ok(None)
    }
}

/// Sorted edges of a range, by type.
pub struct EdgeRange {
    sorted: VecDeque<(TypeKey, SortedEdges)>,
}

fn divided(
    rows: &[FeedRows],
    ranges: usize,
    range_of: impl Fn(&FeedRows) -> Result<Vec<usize>, IngestError>,
) -> Result<Vec<Vec<FeedRows>>, IngestError> {
    let mut found: Vec<Vec<FeedRows>> = vec![Vec::new(); ranges.max(1)];
    for row in rows {
        let mut of_range: BTreeMap<usize, Vec<u32>> = BTreeMap::new();
        for (number, range) in (0u32..).zip(range_of(row)?) {
            of_range.entry(range).or_default().push(number);
        }
        for (range, numbers) in of_range {
            let batch = take_record_batch(&row.batch, &UInt32Array::from(numbers))?;
            let missing =
                || IngestError::Internal(format!("there are {ranges} ranges, and a row is in number {range}"));
            found.get_mut(range).ok_or_else(missing)?.push(FeedRows { feed: row.feed, batch });
        }
    }
    Ok(found)
}

/// The range of each key: that of the last bound that is not above it.
fn range_of_keys(keys: &ArrayRef, bounds: Option<&ArrayRef>) -> Result<Vec<usize>, IngestError> {
    let Some(bounds) = bounds else { return Ok(vec![0; keys.len()]) };
    if keys.data_type() != bounds.data_type() {
        let message = format!("bounds of ranges are {}, and keys {}", bounds.data_type(), keys.data_type());
        return Err(IngestError::Invalid(message));
    }
    Ok(match keys.as_primitive_opt::<Int64Type>() {
        Some(keys) => {
            let bounds: &Int64Array = bounds.as_primitive();
            keys.values().iter().map(|key| bounds.values().partition_point(|bound| bound <= key)).collect()
        }
        None => {
            let bounds: &StringArray = bounds.as_string();
            let bounds: Vec<&str> = bounds.iter().flatten().collect();
            let range = |key: Option<&str>| bounds.partition_point(|bound| Some(*bound) <= key);
            keys.as_string::<i32>().iter().map(range).collect()
        }
    })
}

/// Sorted edges as they are written.
fn piece_of(batch: RecordBatch) -> Result<EdgePiece, IngestError> {
    let near = batch.column(0).as_primitive::<UInt64Type>().values().to_vec();
    let far = batch.column(1).as_primitive::<UInt64Type>().values().to_vec();
    let properties: Vec<usize> = (2..batch.num_columns()).collect();
    let rows = if properties.is_empty() { None } else { Some(batch.project(&properties)?) };
    Ok(EdgePiece { near, far, rows })
}

impl EdgeRange {
    /// The next ones; `None` at the end.
    ///
    /// # Errors
    /// [`IngestError::Spill`].
    pub fn next_edges(&mut self) -> Result<Option<OrderedEdges>, IngestError> {
        let mut edges = EdgePiece::default();
        while let Some((kind, sorted)) = self.sorted.front_mut() {
            let mut near = Vec::new();
            let mut far = Vec::new();
            let mut rows = Vec::new();
            let mut is_over = false;
            while near.len() < PIECE_ROWS && !is_over {
                is_over = !sorted.next_into(&mut edges)?;
                near.append(&mut edges.near);
                far.append(&mut edges.far);
                rows.extend(edges.rows.take());
            }
            let kind = *kind;
            if is_over {
                self.sorted.pop_front();
            }
            if near.is_empty() {
                continue;
            }
            let mut fields = vec![
                Arc::new(Field::new("near", DataType::UInt64, false)),
                Arc::new(Field::new("far", DataType::UInt64, false)),
            ];
            let mut columns: Vec<ArrayRef> = vec![Arc::new(UInt64Array::from(near)), Arc::new(UInt64Array::from(far))];
            if let Some(first) = rows.first() {
                let own = concat_batches(&first.schema(), &rows)?;
                fields.extend(own.schema().fields().iter().cloned());
                columns.extend(own.columns().iter().cloned());
            }
            let batch = RecordBatch::try_new(Arc::new(ArrowSchema::new(fields)), columns)?;
            return Ok(Some(OrderedEdges { kind, batch }));
        }
        Ok(None)
    }
}
