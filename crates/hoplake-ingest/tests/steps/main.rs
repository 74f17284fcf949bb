//! A graph that many processes write by steps is the graph that one writes, byte for byte.

#![expect(clippy::unwrap_used, reason = "helpers outside of #[test] functions are test code, too")]

use std::{collections::BTreeMap, sync::Arc};

use arrow_array::{
    ArrayRef, Int64Array, RecordBatch, RecordBatchIterator, StringArray, UInt32Array, cast::AsArray, types::UInt64Type,
};
use hoplake_format::{BuiltGraph, Direction, EdgeTypeId, LabelId, WrittenSpan, segment::SegmentSettings};
use hoplake_ingest::{
    BadRows, IngestError, Phase,
    build::{
        BuildSettings, VertexOrder, build,
        steps::{Bounds, EdgeEnd, EdgeRows, FeedRows, LoadSteps, OrderedEdges, OrderedVertices, Tables, VertexRows},
    },
    source::{self, SourceOptions},
    staged::{StagedEnd, StagedTables},
};
use hoplake_storage::Store;
use hoplake_testkit::generate::SplitMix64;
use tokio::runtime::Runtime;

/// Tables of a graph, vertices first.
struct Case {
    vertices: Vec<(&'static str, RecordBatch)>,
    edges: Vec<(&'static str, [&'static str; 2], RecordBatch)>,
}

fn column<T>(values: impl Iterator<Item = T>) -> ArrayRef
where
    Int64Array: FromIterator<Option<T>>,
{
    Arc::new(values.map(Some).collect::<Int64Array>())
}

fn texts(values: impl Iterator<Item = String>) -> ArrayRef {
    Arc::new(StringArray::from_iter_values(values))
}

/// Two labels, one with keys that are text; edges with and without properties, parallel ones, and a hub whose list is longer than a span.
fn case(seed: u64, has_vertices: bool) -> Case {
    let mut random = SplitMix64::new(seed);
    let people = 200 + random.next_u64() % 300;
    let tags = 1 + random.next_u64() % 60;
    let mut any = |count: u64, below: u64| -> Vec<u64> { (0..count).map(|_| random.next_u64() % below).collect() };
    let ends = |numbers: Vec<u64>| column(numbers.into_iter().map(|number| 7 * number as i64 - 500));
    let mut shuffled: Vec<u64> = (0..people).collect();
    shuffled.sort_by_key(|number| SplitMix64::new(seed ^ number).next_u64());
    let age = any(people, 90);
    let vertices = vec![
        (
            "Person",
            RecordBatch::try_from_iter([
                ("key", ends(shuffled)),
                ("age", column(age.into_iter().map(|age| age as i64))),
            ]),
        ),
        (
            "Tag",
            RecordBatch::try_from_iter([
                ("key", texts((0..tags).rev().map(|tag| format!("tag {tag}")))),
                ("text", texts((0..tags).map(|tag| "x".repeat(tag as usize)))),
            ]),
        ),
    ];
    let mut sources = any(900, people);
    sources[100..500].fill(3);
    let targets = any(900, people / 8);
    let since = any(900, 5);
    let knows = RecordBatch::try_from_iter([
        ("source", ends(sources.clone())),
        ("target", ends(targets.clone())),
        ("since", column(since.into_iter().map(|since| since as i64))),
    ]);
    let follows = RecordBatch::try_from_iter([("source", ends(targets)), ("target", ends(sources))]);
    let likes = RecordBatch::try_from_iter([
        ("source", ends(any(300, people))),
        ("target", texts(any(300, tags).into_iter().map(|tag| format!("tag {tag}")))),
    ]);
    let edges = vec![
        ("knows", ["Person", "Person"], knows.unwrap()),
        ("likes", ["Person", "Tag"], likes.unwrap()),
        ("follows", ["Person", "Person"], follows.unwrap()),
    ];
    let vertices = vertices.into_iter().map(|(label, batch)| (label, batch.unwrap()));
    Case { vertices: if has_vertices { vertices.collect() } else { Vec::new() }, edges }
}

const WRITER: &str = "01JDXAAAAAAAAAAAAAAAAAAAAA";

fn settings(span_items: u64) -> BuildSettings {
    BuildSettings {
        memory_bytes: 256 << 20,
        temp_dir: None,
        threads: 2,
        order: VertexOrder::Keys,
        segments: SegmentSettings { span_items, ..SegmentSettings::default() },
        indexes: Vec::new(),
        base_version: 0,
        writer: WRITER.into(),
    }
}

/// All objects of a store.
type Objects = BTreeMap<String, Vec<u8>>;

fn objects(runtime: &Runtime, store: &Store) -> Objects {
    runtime.block_on(async {
        let mut found = Objects::new();
        for object in store.list("data").await.unwrap() {
            found.insert(object.name.clone(), store.get(&object.name).await.unwrap().unwrap().to_vec());
        }
        found
    })
}

fn by_one(runtime: &Runtime, url: &str, case: &Case, settings: &BuildSettings) -> (BuiltGraph, Objects) {
    let mut staged = StagedTables::new(None).unwrap();
    if case.vertices.is_empty() {
        staged.imply_labels();
    }
    let reader = |batch: &RecordBatch| Box::new(RecordBatchIterator::new([Ok(batch.clone())], batch.schema()));
    for (label, batch) in &case.vertices {
        staged.add_vertices(label, "key", reader(batch), &|| true).unwrap();
    }
    for (label, [source, target], batch) in &case.edges {
        let ends = [StagedEnd { label: source, column: "source" }, StagedEnd { label: target, column: "target" }];
        staged.add_edges(label, ends, reader(batch), &|| true).unwrap();
    }
    let options = SourceOptions { mapping: Some(staged.mapping().unwrap()), ..SourceOptions::default() };
    let dataset = source::open(&[], &options).unwrap();
    let store = Store::open(url).unwrap();
    let bad_rows = Arc::new(BadRows::stop());
    let built = build(&dataset, store.clone(), runtime.handle().clone(), settings, &bad_rows, &()).unwrap();
    (built, objects(runtime, &store))
}

/// What `hoplake.ray.load` does, in one process: each step as if it knew only what it is given.
fn by_steps(
    runtime: &Runtime,
    url: &str,
    case: &Case,
    settings: &BuildSettings,
    (blocks, ranges): (usize, usize),
) -> (BuiltGraph, Objects) {
    let implies_labels = case.vertices.is_empty();
    let tables = Tables {
        vertices: case
            .vertices
            .iter()
            .map(|(label, batch)| VertexRows {
                label: (*label).into(),
                key: "key".into(),
                schema: batch.schema(),
                blocks,
            })
            .collect(),
        edges: case
            .edges
            .iter()
            .map(|(label, [source, target], batch)| EdgeRows {
                label: (*label).into(),
                source: ((*source).into(), "source".into()),
                target: ((*target).into(), "target".into()),
                schema: batch.schema(),
                blocks,
            })
            .collect(),
        implies_labels,
    };
    let steps = || LoadSteps::new(tables.clone(), settings.clone()).unwrap();
    let batches = || {
        let vertices = case.vertices.iter().map(|(_, batch)| (batch, false));
        vertices.chain(case.edges.iter().map(|(.., batch)| (batch, true)))
    };
    let read = |phase: Phase| -> Vec<Vec<FeedRows>> {
        let mut found = Vec::new();
        for (table, (batch, is_edges)) in batches().enumerate() {
            if is_edges != (phase == Phase::Edges) && !implies_labels {
                continue;
            }
            let each = batch.num_rows().div_ceil(blocks);
            for block in 0..blocks {
                let first = (block * each).min(batch.num_rows());
                let rows = batch.slice(first, each.min(batch.num_rows() - first));
                found.push(steps().read(table, table * blocks + block, first as u64, rows, phase).unwrap());
            }
        }
        found
    };
    let divided = |rows: Vec<Vec<Vec<FeedRows>>>, range: usize| -> Vec<FeedRows> {
        rows.iter().flat_map(|of_block| of_block[range].iter().cloned()).collect()
    };
    // Vertices.
    let blocks_read = read(Phase::Vertices);
    let mut bounds = Bounds::new();
    for (space, keys) in blocks_read.iter().flat_map(|rows| steps().sample(rows).unwrap()) {
        let keys: Vec<ArrayRef> = bounds.remove(&space).into_iter().chain([keys]).collect();
        let keys: Vec<&dyn arrow_array::Array> = keys.iter().map(|keys| &**keys).collect();
        bounds.insert(space, arrow_select::concat::concat(&keys).unwrap());
    }
    for keys in bounds.values_mut() {
        *keys = cut(keys, ranges);
    }
    let split: Vec<_> =
        blocks_read.iter().map(|rows| steps().split(rows, EdgeEnd::Source, &bounds, ranges).unwrap()).collect();
    let mut of_range: Vec<Vec<OrderedVertices>> = Vec::new();
    for range in 0..ranges {
        let steps = steps();
        let mut sorted = steps.vertices(divided(split.clone(), range).into_iter().map(Ok)).unwrap();
        let mut own = Vec::new();
        while let Some(vertices) = sorted.next_vertices(&steps).unwrap() {
            own.push(vertices);
        }
        of_range.push(own);
    }
    let labels: Vec<String> = steps().labels().map(str::to_owned).collect();
    let mut counts = vec![0; labels.len()];
    let mut firsts = vec![Vec::new(); labels.len()];
    let mut keys = vec![Vec::new(); ranges];
    for (label, count) in counts.iter_mut().enumerate() {
        for (range, vertices) in of_range.iter().enumerate() {
            firsts[label].push(*count);
            for own in vertices.iter().filter(|own| usize::from(own.label.0) == label) {
                keys[range].push((own.label, *count, own.batch.column(0).clone()));
                *count += own.batch.num_rows() as u64;
            }
        }
    }
    // Edges.
    let split: Vec<_> =
        read(Phase::Edges).iter().map(|rows| steps().split(rows, EdgeEnd::Source, &bounds, ranges).unwrap()).collect();
    let resolve = |range: usize, rows: Vec<FeedRows>, end: EdgeEnd| {
        let steps = steps();
        let table = steps.keys(keys[range].iter().cloned().map(Ok)).unwrap();
        steps.resolve(&table, rows, end).unwrap()
    };
    let split: Vec<_> = (0..ranges)
        .map(|range| {
            let resolved = resolve(range, divided(split.clone(), range), EdgeEnd::Source);
            steps().split(&resolved, EdgeEnd::Target, &bounds, ranges).unwrap()
        })
        .collect();
    let into: Vec<Vec<FeedRows>> =
        (0..ranges).map(|range| resolve(range, divided(split.clone(), range), EdgeEnd::Target)).collect();
    let split: Vec<_> =
        into.iter().map(|rows| steps().split_resolved(rows, EdgeEnd::Source, &firsts, ranges).unwrap()).collect();
    let out: Vec<Vec<FeedRows>> = (0..ranges).map(|range| divided(split.clone(), range)).collect();
    let sort = |direction: Direction, of_range: Vec<Vec<FeedRows>>| -> Vec<OrderedEdges> {
        let mut found = Vec::new();
        for rows in of_range {
            let mut sorted = steps().edges(direction, &counts, rows.into_iter().map(Ok)).unwrap();
            while let Some(edges) = sorted.next_edges().unwrap() {
                found.push(edges);
            }
        }
        found
    };
    let sorted = [sort(Direction::Out, out), sort(Direction::In, into)];
    let found: Vec<_> = sorted.iter().flatten().map(|edges| edges.kind).collect();
    let types = steps().edge_types(&found);
    // Spans, the last ones first.
    let store = Store::open(url).unwrap();
    let target = (&store, runtime.handle());
    let each = settings.segments.span_items;
    let order = steps().label_order();
    let mut rows: Vec<(LabelId, u64, RecordBatch)> = Vec::new();
    for label in order {
        let mut first = 0;
        for own in of_range.iter().flatten().filter(|own| usize::from(own.label.0) == label) {
            for row in 0..own.batch.num_rows() {
                rows.push((own.label, first, own.batch.slice(row, 1)));
                first += 1;
            }
        }
    }
    let mut vertices: Vec<WrittenSpan> = Vec::new();
    for (number, span) in rows.chunks(usize::try_from(each).unwrap()).enumerate().rev() {
        let own = span.iter().map(|(label, first, batch)| {
            Ok::<_, IngestError>((*first, OrderedVertices { label: *label, batch: batch.clone() }))
        });
        vertices.insert(0, steps().write_vertices(target, number as u64 * each, own).unwrap());
    }
    let mut spans = [Vec::new(), Vec::new()];
    for (direction, edges) in [Direction::Out, Direction::In].into_iter().zip(&sorted) {
        let mut rows: Vec<(EdgeTypeId, u64, OrderedEdges, bool)> = Vec::new();
        for (number, kind) in types.iter().enumerate() {
            let mut first = 0;
            let mut before = None;
            for own in edges.iter().filter(|own| own.kind == *kind) {
                let near = own.batch.column(0).as_primitive::<UInt64Type>().values();
                for (row, near) in near.iter().enumerate() {
                    let edge = OrderedEdges { kind: *kind, batch: own.batch.slice(row, 1) };
                    rows.push((EdgeTypeId(number as u16), first, edge, before != Some(*near)));
                    first += 1;
                    before = Some(*near);
                }
            }
        }
        let mut begins: Vec<usize> = Vec::new();
        for (items, (.., begins_list)) in rows.iter().enumerate() {
            let span_of = |items: usize| items as u64 / each;
            if *begins_list && begins.last().is_none_or(|last| span_of(*last) != span_of(items)) {
                begins.push(items);
            }
        }
        for (at, begin) in begins.iter().enumerate().rev() {
            let end = begins.get(at + 1).copied().unwrap_or(rows.len());
            let own = rows[*begin..end].iter().map(|(number, first, edge, _)| Ok((*number, *first, edge.clone())));
            let span = steps().write_edges(target, direction, *begin as u64, own).unwrap();
            // As another process gets it.
            let span = WrittenSpan::decode(&span.encode(), 1).unwrap();
            spans[usize::from(direction == Direction::In)].insert(0, span);
        }
    }
    let [out, into] = spans;
    let built = steps().graph(counts, &types, [vertices, out, into]).unwrap();
    (built, objects(runtime, &store))
}

/// Keys at which ranges begin.
fn cut(keys: &ArrayRef, ranges: usize) -> ArrayRef {
    let sorted = arrow_ord_sorted(keys);
    let at = (1..ranges).map(|range| (sorted.len() * range / ranges) as u32).collect::<std::collections::BTreeSet<_>>();
    arrow_select::take::take(&sorted, &UInt32Array::from_iter_values(at), None).unwrap()
}

fn arrow_ord_sorted(keys: &ArrayRef) -> ArrayRef {
    match keys.as_primitive_opt::<arrow_array::types::Int64Type>() {
        Some(keys) => {
            let mut values = keys.values().to_vec();
            values.sort_unstable();
            values.dedup();
            Arc::new(Int64Array::from(values))
        }
        None => {
            let mut values: Vec<String> = keys.as_string::<i32>().iter().flatten().map(str::to_owned).collect();
            values.sort_unstable();
            values.dedup();
            Arc::new(StringArray::from(values))
        }
    }
}

#[test]
fn what_many_write_is_what_one_writes() {
    let runtime = Runtime::new().unwrap();
    for (seed, has_vertices) in [(1, true), (2, true), (3, false)] {
        let case = case(seed, has_vertices);
        for span_items in [1, 61, 250, 1 << 26] {
            let settings = settings(span_items);
            let url = |name: &str| format!("memory://steps/{seed}/{span_items}/{name}");
            let (graph, expected) = by_one(&runtime, &url("one"), &case, &settings);
            assert!(expected.len() > if span_items < 100 { 20 } else { 3 }, "{} objects", expected.len());
            for (blocks, ranges) in [(1, 1), (3, 2), (4, 7)] {
                let name = format!("{blocks}-{ranges}");
                let (found, objects) = by_steps(&runtime, &url(&name), &case, &settings, (blocks, ranges));
                let what = format!("seed {seed}, spans of {span_items}, {blocks} blocks, {ranges} ranges");
                for name in expected.keys().chain(objects.keys()) {
                    assert!(objects.get(name) == expected.get(name), "{what}: {name} differs");
                }
                // Neither is printed: they are long.
                assert!(
                    found.segments == graph.segments && found.tables == graph.tables,
                    "{what}: other objects are named"
                );
                assert!(
                    found
                        == BuiltGraph {
                            segments: found.segments.clone(),
                            tables: found.tables.clone(),
                            ..graph.clone()
                        },
                    "{what}"
                );
            }
        }
    }
}
