use std::{
    collections::{BTreeMap, HashMap},
    path::Path,
    sync::Arc,
};

use arrow_array::{
    ArrayRef, Int64Array, RecordBatch, StringArray, UInt32Array, UInt64Array,
    cast::AsArray,
    types::{Int64Type, UInt64Type},
};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use hoplake_format::KeyType;
use proptest::prelude::*;

use super::*;
use crate::IngestError;

/// Keys of one type, so that one test serves both.
trait Key: Ord + Clone + std::hash::Hash + std::fmt::Debug {
    const TYPE: KeyType;
    fn array(keys: &[Self]) -> ArrayRef;
    fn text(&self) -> String;
}

impl Key for i64 {
    const TYPE: KeyType = KeyType::Int64;

    fn array(keys: &[Self]) -> ArrayRef {
        Arc::new(Int64Array::from(keys.to_vec()))
    }

    fn text(&self) -> String {
        self.to_string()
    }
}

impl Key for String {
    const TYPE: KeyType = KeyType::String;

    fn array(keys: &[Self]) -> ArrayRef {
        Arc::new(StringArray::from_iter_values(keys))
    }

    fn text(&self) -> String {
        self.clone()
    }
}

/// Gives keys to three labels by `assign` and numbers them within each.
fn vertices<K: Key>(keys: &[K], assign: impl Fn(usize) -> u16) -> BTreeMap<K, VertexId> {
    let sorted: std::collections::BTreeSet<_> = keys.iter().cloned().collect();
    let mut next = [0; 3];
    let mut vertex = |(position, key)| {
        let label = assign(position) % 3;
        let ordinal = next[usize::from(label)];
        next[usize::from(label)] += 1;
        (key, VertexId::new(LabelId(label), ordinal).unwrap())
    };
    sorted.into_iter().enumerate().map(&mut vertex).collect()
}

fn table<K: Key>(vertices: &BTreeMap<K, VertexId>, budget_bytes: usize, folder: &Path) -> KeyTable {
    let mut builder = KeyTableBuilder::new(K::TYPE, budget_bytes, folder);
    let rows: Vec<_> = vertices.iter().collect();
    for rows in rows.chunks(100) {
        let keys: Vec<_> = rows.iter().map(|(key, _)| (*key).clone()).collect();
        let labels: Vec<_> = rows.iter().map(|(_, vertex)| vertex.label().0).collect();
        let ordinals: Vec<_> = rows.iter().map(|(_, vertex)| vertex.ordinal()).collect();
        builder.push(&K::array(&keys), &labels, &ordinals).unwrap();
    }
    builder.finish().unwrap()
}

fn check_table<K: Key>(vertices: &BTreeMap<K, VertexId>, asked: &[K]) -> KeyTable {
    let table = table(vertices, usize::MAX, Path::new("/nowhere"));
    let mut asked = asked.to_vec();
    asked.extend(vertices.keys().cloned());
    for label in [None, Some(LabelId(0)), Some(LabelId(2)), Some(LabelId(77))] {
        let mut found = Vec::new();
        table.resolve(&K::array(&asked), label, &mut found).unwrap();
        let found: Vec<_> = found.into_iter().map(unpack).collect();
        let of_label = |vertex: &VertexId| label.is_none_or(|label| vertex.label() == label);
        let expected: Vec<_> = asked.iter().map(|key| vertices.get(key).copied().filter(of_label)).collect();
        assert_eq!(found, expected);
    }
    table
}

fn any_integers() -> impl Strategy<Value = Vec<i64>> {
    let key = prop_oneof![Just(i64::MIN), Just(i64::MAX), -50i64..50, any::<i64>()];
    let strided = (any::<i64>(), 1i64..5000, 0i64..2000)
        .prop_map(|(start, stride, count)| (0..count).map(|i| start.wrapping_add(i.wrapping_mul(stride))).collect());
    prop_oneof![proptest::collection::vec(key, 0..2000), strided]
}

fn any_strings() -> impl Strategy<Value = Vec<String>> {
    let key = prop_oneof![Just(String::new()), "[a-c]{0,3}", "\\PC{0,12}", "x{100,300}[yz]", "[0-9]{1,5}"];
    proptest::collection::vec(key, 0..800)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn integers_are_found(keys in any_integers(), asked in any_integers(), seed in any::<usize>()) {
        check_table(&vertices(&keys, |position| (position.wrapping_mul(seed) >> 7) as u16), &asked);
    }

    #[test]
    fn strings_are_found(keys in any_strings(), asked in any_strings(), seed in any::<usize>()) {
        check_table(&vertices(&keys, |position| (position.wrapping_mul(seed) >> 7) as u16), &asked);
    }
}

#[test]
fn keys_without_gaps_take_no_memory() {
    let keys: Vec<i64> = (-5000..5000).collect();
    let table = check_table(&vertices(&keys, |position| (position / 4000) as u16), &[i64::MIN, -5001, 5000, i64::MAX]);
    assert!(table.memory_bytes() < 1000);
    let ends: Vec<i64> = (0..100).flat_map(|i| [i64::MIN + i, i64::MAX - i]).collect();
    assert!(check_table(&vertices(&ends, |_| 1), &[0, -1]).memory_bytes() < 1000);
}

#[test]
fn integers_take_less_than_twenty_bytes_a_key() {
    let keys: Vec<i64> = (0..100_000).map(|i| i * 64).collect();
    let table = check_table(&vertices(&keys, |_| 0), &[1, 63, -64, 100_000 * 64]);
    // Reserved in steps of an eighth.
    assert!(table.memory_bytes() <= 20 * keys.len());
}

/// Among this many keys of one shape some share the 28 bits of the hash that are kept, both within the table
/// and between a key that is there and one that is not.
#[test]
fn strings_with_like_hashes_are_told_apart() {
    let keys: Vec<String> = (0..120_000).map(|i| format!("{i:06}x")).collect();
    let top = |key: &String| strings::hash(key) >> 36;
    let mut tops: HashMap<u64, [u32; 2]> = HashMap::new();
    keys.iter().enumerate().for_each(|(position, key)| tops.entry(top(key)).or_default()[position % 2] += 1);
    assert!(tops.values().any(|count| count[0] > 1) && tops.values().any(|count| count[0] > 0 && count[1] > 0));
    let even: Vec<String> = keys.iter().step_by(2).cloned().collect();
    check_table(&vertices(&even, |_| 0), &keys);
}

#[test]
fn what_is_not_a_table_is_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let push = |keys: ArrayRef, labels: &[u16], ordinals: &[u64]| {
        let mut builder = KeyTableBuilder::new(KeyType::Int64, 1 << 20, folder.path());
        builder.push(&i64::array(&[4]), &[0], &[0]).unwrap();
        builder.push(&keys, labels, ordinals)
    };
    let cases = [
        push(i64::array(&[4]), &[1], &[0]),
        push(i64::array(&[3]), &[0], &[1]),
        push(i64::array(&[7, 7]), &[0, 0], &[1, 2]),
        push(String::array(&["8".to_owned()]), &[0], &[1]),
        push(i64::array(&[8]), &[0], &[1 << 48]),
        push(i64::array(&[8, 9]), &[0], &[1]),
    ];
    for case in cases {
        assert!(matches!(case, Err(IngestError::Invalid(_))), "{case:?}");
    }
    let table = table(&vertices(&[1i64, 2], |_| 0), 1 << 20, folder.path());
    assert!(matches!(table.resolve(&String::array(&[]), None, &mut Vec::new()), Err(IngestError::Invalid(_))));
}

/// Collects what a join yields.
#[derive(Default)]
struct Collected {
    edges: Vec<(u64, u64, i64)>,
    unknown: Vec<UnknownKey>,
}

impl ResolvedRows for Collected {
    fn rows(&mut self, batch: RecordBatch) -> Result<(), IngestError> {
        assert_eq!(batch.num_columns(), 5);
        assert!(batch.num_rows() > 0);
        let ends = [0, 1].map(|column| batch.column(column).as_primitive::<UInt64Type>().clone());
        let lines = batch.column(3).as_primitive::<UInt64Type>();
        let weights = batch.column(4).as_primitive::<Int64Type>();
        assert!((0..batch.num_rows()).all(|row| lines.value(row) as i64 == weights.value(row)));
        self.edges
            .extend((0..batch.num_rows()).map(|row| (ends[0].value(row), ends[1].value(row), weights.value(row))));
        Ok(())
    }

    fn unknown(&mut self, unknown: UnknownKey) -> Result<(), IngestError> {
        self.unknown.push(unknown);
        Ok(())
    }
}

fn edge_schema<S: Key, T: Key>() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("source", S::TYPE.arrow(), false),
        Field::new("target", T::TYPE.arrow(), false),
        Field::new("file", DataType::UInt32, false),
        Field::new("line", DataType::UInt64, false),
        Field::new("weight", DataType::Int64, true),
    ]))
}

/// Edges numbered by line from `start`; the weight is the line.
fn edge_batch<S: Key, T: Key>(edges: &[(S, T)], start: u64) -> RecordBatch {
    let (sources, targets): (Vec<_>, Vec<_>) = edges.iter().cloned().unzip();
    let lines = start..start + edges.len() as u64;
    let columns: Vec<ArrayRef> = vec![
        S::array(&sources),
        T::array(&targets),
        Arc::new(UInt32Array::from(vec![3; edges.len()])),
        Arc::new(UInt64Array::from_iter_values(lines.clone())),
        Arc::new(Int64Array::from_iter_values(lines.map(|line| line as i64))),
    ];
    RecordBatch::try_new(edge_schema::<S, T>(), columns).unwrap()
}

fn expected<S: Key, T: Key>(
    edges: &[(S, T)],
    sources: &HashMap<S, VertexId>,
    targets: &HashMap<T, VertexId>,
) -> (Vec<(u64, u64, i64)>, Vec<UnknownKey>) {
    let mut known = Vec::new();
    let mut unknown = Vec::new();
    for (line, (source, target)) in edges.iter().enumerate() {
        let missing = |end, key| UnknownKey { file: 3, line: line as u64, end, key };
        match (sources.get(source), targets.get(target)) {
            (Some(&source), Some(&target)) => known.push((pack(source), pack(target), line as i64)),
            (None, _) => unknown.push(missing(End::Source, source.text())),
            (_, None) => unknown.push(missing(End::Target, target.text())),
        }
    }
    (known, unknown)
}

/// Joins edges, half in one join and half in another, and compares with maps.
fn check_join<S: Key, T: Key>(sources: &[S], targets: &[T], edges: &[(S, T)], budgets: [usize; 2], join_bytes: usize) {
    let folder = tempfile::tempdir().unwrap();
    let sources = vertices(sources, |position| position as u16);
    let targets = vertices(targets, |_| 2);
    let source_table = Arc::new(table(&sources, budgets[0], folder.path()));
    let target_table = Arc::new(table(&targets, budgets[1], folder.path()));
    let side = |table: &Arc<KeyTable>, label| JoinSide { table: Arc::clone(table), label };
    let label = Some(LabelId(1));
    let join = || {
        let source = side(&source_table, label);
        let target = side(&target_table, None);
        ResolveJoin::new(&edge_schema::<S, T>(), source, target, join_bytes, folder.path()).unwrap()
    };
    let mut joins = [join(), join()];
    let mut collected = Collected::default();
    for (position, part) in edges.chunks(50).enumerate() {
        let batch = edge_batch(part, 50 * position as u64);
        joins[position % 2].push(batch, &mut collected).unwrap();
    }
    ResolveJoin::finish_all(joins.into(), &mut collected).unwrap();
    drop((source_table, target_table));
    assert_eq!(folder.path().read_dir().unwrap().count(), 0, "files are left");
    let sources = sources.into_iter().filter(|(_, vertex)| vertex.label() == LabelId(1)).collect();
    let (known, mut unknown) = expected(edges, &sources, &targets.into_iter().collect());
    if budgets == [usize::MAX; 2] {
        assert_eq!(collected.edges, known, "in memory the order is kept");
    }
    collected.edges.sort_by_key(|edge| edge.2);
    assert_eq!(collected.edges, known);
    collected.unknown.sort_by_key(|unknown| unknown.line);
    unknown.sort_by_key(|unknown| unknown.line);
    assert_eq!(collected.unknown, unknown);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn joins_as_maps_do(
        sources in proptest::collection::vec(prop_oneof![0i64..3000, any::<i64>()], 1..3000),
        targets in any_strings(),
        picks in proptest::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), 0u8..10), 0..1500),
        partitioned in any::<[bool; 2]>(),
        join_bytes in prop_oneof![Just(0usize), Just(20_000), Just(1 << 20)],
    ) {
        // A part must fit, so the budget is well above a sixty-fourth of the table.
        let budgets = [if partitioned[0] { 4000 } else { usize::MAX }, if partitioned[1] { 40_000 } else { usize::MAX }];
        let edge = |(source, target, chance): &(prop::sample::Index, prop::sample::Index, u8)| {
            let source = if *chance == 0 { -7 } else { *source.get(&sources) };
            let target = if *chance == 1 || targets.is_empty() { "?".repeat(9) } else { target.get(&targets).clone() };
            (source, target)
        };
        let edges: Vec<_> = picks.iter().map(edge).collect();
        check_join(&sources, &targets, &edges, budgets, join_bytes);
        let turned: Vec<_> = edges.into_iter().map(|(source, target)| (target, source)).collect();
        check_join(&targets, &sources, &turned, [budgets[1], budgets[0]], join_bytes);
    }
}

#[test]
fn a_large_table_goes_to_files() {
    let keys: Vec<i64> = (0..100_000).map(|i| i * 3).collect();
    let folder = tempfile::tempdir().unwrap();
    let partitioned = table(&vertices(&keys, |_| 0), 500_000, folder.path());
    assert!(partitioned.is_partitioned());
    assert!(matches!(partitioned.resolve(&i64::array(&[0]), None, &mut Vec::new()), Err(IngestError::Invalid(_))));
    drop(partitioned);
    let edges: Vec<_> = (0..5000).map(|i| (i * 7, 300_001 - i * 11)).collect();
    check_join(&keys, &keys, &edges, [500_000, 500_000], 50_000);
}

#[test]
fn a_part_that_does_not_fit_is_said() {
    let keys: Vec<i64> = (0..100_000).map(|i| i * 3).collect();
    let folder = tempfile::tempdir().unwrap();
    let table = Arc::new(table(&vertices(&keys, |_| 0), 1000, folder.path()));
    let side = JoinSide { table, label: None };
    let schema = edge_schema::<i64, i64>();
    let mut join = ResolveJoin::new(&schema, side.clone(), side, 1 << 20, folder.path()).unwrap();
    let mut collected = Collected::default();
    join.push(edge_batch(&[(3i64, 6i64)], 1), &mut collected).unwrap();
    assert!(matches!(join.finish(&mut collected), Err(IngestError::Memory { left_bytes: 1000, .. })));
    assert_eq!(folder.path().read_dir().unwrap().count(), 0);
}

#[test]
fn the_sink_can_end_a_join() {
    struct Stop;
    impl ResolvedRows for Stop {
        fn rows(&mut self, _: RecordBatch) -> Result<(), IngestError> {
            unreachable!("no edge is known")
        }

        fn unknown(&mut self, unknown: UnknownKey) -> Result<(), IngestError> {
            Err(IngestError::Invalid(unknown.key))
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let table = Arc::new(table(&vertices(&[1i64], |_| 0), 1000, folder.path()));
    let side = JoinSide { table, label: None };
    let mut join = ResolveJoin::new(&edge_schema::<i64, i64>(), side.clone(), side, 0, folder.path()).unwrap();
    let stopped = join.push(edge_batch(&[(5i64, 1i64)], 1), &mut Stop);
    assert!(matches!(stopped, Err(IngestError::Invalid(key)) if key == "5"));
}
