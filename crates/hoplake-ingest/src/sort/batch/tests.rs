use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, StringArray, UInt32Array, UInt64Array, cast::AsArray, types::UInt32Type};
use arrow_schema::{DataType, Field, Schema};
use arrow_select::concat::concat_batches;
use proptest::prelude::*;

use super::*;

/// Integers, text that may be null, and the order of arrival.
type Row = (i64, Option<String>, u32);

fn schema() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("number", DataType::Int64, false),
        Field::new("text", DataType::Utf8, true),
        Field::new("arrival", DataType::UInt32, false),
    ]))
}

fn batch(rows: &[Row]) -> RecordBatch {
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| row.0)));
    let texts: ArrayRef = Arc::new(StringArray::from_iter(rows.iter().map(|row| row.1.as_deref())));
    let arrivals: ArrayRef = Arc::new(UInt32Array::from_iter_values(rows.iter().map(|row| row.2)));
    RecordBatch::try_new(schema(), vec![numbers, texts, arrivals]).unwrap()
}

/// Sorts by the columns, checks bounds and the folder, and returns the order by arrival.
fn sorted(parts: &[Vec<Row>], columns: &[usize], budget_bytes: usize, batch_len: usize) -> Vec<u32> {
    let folder = tempfile::tempdir().unwrap();
    let mut sorters = Vec::new();
    for rows in parts {
        let mut sorter = BatchSorter::new(schema(), columns, budget_bytes, folder.path()).unwrap();
        rows.chunks(batch_len).for_each(|rows| sorter.push(batch(rows)).unwrap());
        sorters.push(sorter);
    }
    let batches: Vec<_> = BatchSorter::finish_all(sorters).unwrap().map(Result::unwrap).collect();
    assert_eq!(folder.path().read_dir().unwrap().count(), 0, "files are left");
    assert!(batches.iter().all(|batch| (1..=8192).contains(&batch.num_rows())));
    let all = concat_batches(&schema(), &batches).unwrap();
    let arrivals = all.column(2).as_primitive::<UInt32Type>().values().to_vec();
    let originals = parts.concat();
    let rows: Vec<_> = arrivals.iter().map(|&arrival| originals[arrival as usize].clone()).collect();
    assert_eq!(all, batch(&rows), "rows are torn");
    arrivals
}

fn expected(rows: &[Row], columns: &[usize]) -> Vec<u32> {
    let mut order: Vec<_> = rows.iter().collect();
    order.sort_by(|a, b| {
        let by = |column: &usize| match column {
            0 => a.0.cmp(&b.0),
            1 => a.1.cmp(&b.1),
            _ => a.2.cmp(&b.2),
        };
        columns.iter().map(by).find(|order| order.is_ne()).unwrap_or(std::cmp::Ordering::Equal)
    });
    order.into_iter().map(|row| row.2).collect()
}

fn numbered(parts: Vec<Vec<(i64, Option<String>)>>) -> Vec<Vec<Row>> {
    let mut arrival = 0..;
    let mut number = |(key, text)| (key, text, arrival.next().unwrap());
    parts.into_iter().map(|rows| rows.into_iter().map(&mut number).collect()).collect()
}

fn any_row() -> impl Strategy<Value = (i64, Option<String>)> {
    let number = prop_oneof![Just(i64::MIN), Just(i64::MAX), -3i64..3, any::<i64>()];
    let text = prop_oneof![
        Just(String::new()),
        "[ab]{0,3}",
        "a{10,40}[xy]?",
        "https://example.org/a{0,20}[bc]{0,2}",
        "\\PC{0,8}"
    ];
    (number, proptest::option::weighted(0.9, text))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn sorts_stably_by_any_columns_in_any_budget(
        parts in proptest::collection::vec(proptest::collection::vec(any_row(), 0..600), 0..4),
        columns in prop_oneof![Just(vec![0]), Just(vec![1]), Just(vec![0, 1]), Just(vec![1, 0]), Just(vec![0, 2, 1]), Just(vec![])],
        budget_bytes in prop_oneof![Just(0usize), Just(40_000), Just(1 << 22)],
        batch_len in 1usize..100,
    ) {
        let parts = numbered(parts);
        prop_assume!(!parts.is_empty());
        prop_assert_eq!(sorted(&parts, &columns, budget_bytes, batch_len), expected(&parts.concat(), &columns));
    }
}

#[test]
fn wide_rows_and_ties_across_many_runs() {
    let texts = |i: u32| Some("w".repeat(2000 + (i as usize * 7919) % 500));
    let rows: Vec<Row> = (0..3000).map(|i| (i64::from(i * 31 % 7), texts(i), i)).collect();
    for budget_bytes in [20_000, 200_000, 1 << 30] {
        assert_eq!(sorted(std::slice::from_ref(&rows), &[0], budget_bytes, 100), expected(&rows, &[0]));
    }
}

#[test]
fn keys_that_begin_alike() {
    let text =
        |i: u32| Some(format!("https://example.org/a/path/that/all/share/{}", i.wrapping_mul(2_654_435_761) % 999));
    let mut rows: Vec<Row> = (0..2000).map(|i| (0, text(i), i)).collect();
    for budget_bytes in [100_000, 1 << 30] {
        assert_eq!(sorted(std::slice::from_ref(&rows), &[1], budget_bytes, 100), expected(&rows, &[1]));
    }
    // One key that is the beginning of the others.
    rows[1500].1 = Some("https://example.org/a/path".to_owned());
    assert_eq!(sorted(std::slice::from_ref(&rows), &[1], 1 << 30, 100), expected(&rows, &[1]));
}

#[test]
fn two_wide_integers_are_one_number() {
    let schema = Arc::new(Schema::new(vec![
        Field::new("source", DataType::UInt64, false),
        Field::new("target", DataType::UInt64, false),
    ]));
    let column = |values: &[u64]| -> ArrayRef { Arc::new(UInt64Array::from(values.to_vec())) };
    let folder = tempfile::tempdir().unwrap();
    let mut sorter = BatchSorter::new(schema.clone(), &[0, 1], 1 << 20, folder.path()).unwrap();
    let columns = vec![column(&[u64::MAX, 0, 7, 7]), column(&[0, u64::MAX, 9, 8])];
    sorter.push(RecordBatch::try_new(schema.clone(), columns).unwrap()).unwrap();
    assert!(sorter.buffer.rows[0].is_none());
    let batch = sorter.finish().unwrap().next().unwrap().unwrap();
    let columns = vec![column(&[0, 7, 7, u64::MAX]), column(&[u64::MAX, 8, 9, 0])];
    assert_eq!(batch, RecordBatch::try_new(schema, columns).unwrap());
}

#[test]
fn a_number_longer_than_sixteen_bytes_goes_on_behind() {
    let schema =
        Arc::new(Schema::new((0..3).map(|i| Field::new(format!("{i}"), DataType::UInt64, false)).collect::<Vec<_>>()));
    let column = |values: [u64; 3]| -> ArrayRef { Arc::new(UInt64Array::from(values.to_vec())) };
    let folder = tempfile::tempdir().unwrap();
    let mut sorter = BatchSorter::new(schema.clone(), &[0, 1, 2], 1 << 20, folder.path()).unwrap();
    let columns = vec![column([7, 7, 6]), column([9, 9, 9]), column([4, 3, u64::MAX])];
    sorter.push(RecordBatch::try_new(schema.clone(), columns).unwrap()).unwrap();
    let columns = vec![column([6, 7, 7]), column([9, 9, 9]), column([u64::MAX, 3, 4])];
    let sorted = sorter.finish().unwrap().next().unwrap().unwrap();
    assert_eq!(sorted, RecordBatch::try_new(schema, columns).unwrap());
}

#[test]
fn slices_do_not_keep_their_batch() {
    let rows: Vec<Row> = (0..50_000).map(|i| (i64::from(i), None, i)).collect();
    let whole = batch(&rows);
    let folder = tempfile::tempdir().unwrap();
    let mut sorter = BatchSorter::new(schema(), &[0], 1 << 20, folder.path()).unwrap();
    (0..100).for_each(|i| sorter.push(whole.slice(i * 10, 10)).unwrap());
    assert!(sorter.files.is_empty() && sorter.buffer.bytes() < 200_000);
}
