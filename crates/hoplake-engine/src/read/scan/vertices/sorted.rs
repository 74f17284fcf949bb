//! The first rows of a scan in an order of properties.
//!
//! Rows are compared by keys of bytes ([`arrow_row`]), which are made once; what is sorted are the numbers of rows. Each step rests on the
//! way, so that a sort of millions of rows ends with its query.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_row::{Row, RowConverter, Rows, SortField};
use arrow_schema::{Schema as ArrowSchema, SortOptions};
use arrow_select::interleave::interleave;
use hoplake_storage::{MemoryHold, Pace, QueryContext};

use crate::{
    EngineError, Held, float,
    memory::bytes_of,
    pieces::{STEP, sort_by_key},
};

/// A column by which rows are sorted; absent values are last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SortedBy<'a> {
    /// Its name.
    pub column: &'a str,
    /// Whether the greatest value is first.
    pub descending: bool,
}

/// The number of a batch, and of a row in it.
type RowAt = (u32, u32);

/// The keys of the rows of some batches, each in steps.
struct SortKeys {
    keys: Vec<Vec<Rows>>,
    _memory: MemoryHold,
}

/// The first `most` rows of some batches of one schema in an order; equal ones as they came.
///
/// # Errors
/// [`EngineError::Limit`] if the query's memory does not hold them once more with their keys, or its time is over.
pub async fn first_rows(
    batches: &[Held<RecordBatch>],
    by: &[SortedBy<'_>],
    most: usize,
    context: &QueryContext,
) -> Result<Held<RecordBatch>, EngineError> {
    let mut pace = context.pace();
    let rows: usize = batches.iter().map(|batch| batch.num_rows()).sum();
    let keys = SortKeys::of(batches, by, context, &mut pace).await?;
    // All, and the first of each step.
    let _order = context.hold(2 * bytes_of::<RowAt>(rows))?;
    let mut order: Vec<RowAt> = Vec::with_capacity(rows);
    for (batch, of_batch) in (0..).zip(batches) {
        order.extend((0..of_batch.num_rows() as u32).map(|row| (batch, row)));
    }
    if most < rows {
        let mut first = Vec::new();
        for step in order.chunks_mut(STEP) {
            if most < step.len() {
                step.select_nth_unstable_by_key(most, |at| keys.key(*at));
            }
            first.extend_from_slice(&step[..most.min(step.len())]);
            pace.rest(step.len() as u64 * 4).await?;
        }
        order = first;
    }
    sort_by_key(&mut order, |at| keys.key(*at), context).await?;
    order.truncate(most);
    drop(keys);
    taken(batches, &order, context, &mut pace).await
}

impl SortKeys {
    async fn of(
        batches: &[Held<RecordBatch>],
        by: &[SortedBy<'_>],
        context: &QueryContext,
        pace: &mut Pace,
    ) -> Result<Self, EngineError> {
        let mut memory = context.hold(0)?;
        let mut keys = Vec::with_capacity(batches.len());
        let mut converter: Option<RowConverter> = None;
        for batch in batches {
            let columns = by.iter().map(|by| {
                let missing = || EngineError::Internal(format!("column {} was not read", by.column));
                batch.column_by_name(by.column).ok_or_else(missing)
            });
            let columns: Vec<&ArrayRef> = columns.collect::<Result<_, _>>()?;
            let converter = match &mut converter {
                Some(converter) => converter,
                none => none.insert(RowConverter::new(fields(&columns, by))?),
            };
            let mut of_batch = Vec::with_capacity(batch.num_rows().div_ceil(STEP));
            for from in (0..batch.num_rows()).step_by(STEP) {
                let step = STEP.min(batch.num_rows() - from);
                let columns: Vec<_> =
                    columns.iter().map(|column| float::canonical(&column.slice(from, step))).collect();
                let before = memory.bytes();
                context.resize(&mut memory, before + key_bytes(&columns))?;
                let rows = converter.convert_columns(&columns)?;
                context.resize(&mut memory, before + rows.size() as u64)?;
                of_batch.push(rows);
                pace.rest(step as u64 * 4).await?;
            }
            keys.push(of_batch);
        }
        Ok(Self { keys, _memory: memory })
    }

    /// What a row is compared by; of equal rows, its place.
    fn key(&self, (batch, row): RowAt) -> (Row<'_>, RowAt) {
        let at = row as usize;
        (self.keys[batch as usize][at / STEP].row(at % STEP), (batch, row))
    }
}

fn fields(columns: &[&ArrayRef], by: &[SortedBy<'_>]) -> Vec<SortField> {
    let field = |(column, by): (&&ArrayRef, &SortedBy<'_>)| {
        let options = SortOptions { descending: by.descending, nulls_first: false };
        SortField::new_with_options(column.data_type().clone(), options)
    };
    columns.iter().zip(by).map(field).collect()
}

/// What the keys of some rows take, at most: texts are in blocks of 8 and of 32 bytes with one more each, and a row has an offset.
fn key_bytes(columns: &[ArrayRef]) -> u64 {
    let of_column = |column: &ArrayRef| column.get_array_memory_size() as u64 * 5 / 4 + column.len() as u64 * 40;
    columns.iter().map(of_column).sum()
}

/// Some rows of some batches, column by column.
async fn taken(
    batches: &[Held<RecordBatch>],
    order: &[RowAt],
    context: &QueryContext,
    pace: &mut Pace,
) -> Result<Held<RecordBatch>, EngineError> {
    let schema = batches.first().map_or_else(|| Arc::new(ArrowSchema::empty()), |batch| batch.schema());
    let bytes = batches.iter().map(|batch| batch.get_array_memory_size() as u64).sum();
    let mut memory = context.hold(bytes)?;
    let _places = context.hold(bytes_of::<(usize, usize)>(order.len()))?;
    let places: Vec<_> = order.iter().map(|(batch, row)| (*batch as usize, *row as usize)).collect();
    let mut columns = Vec::with_capacity(schema.fields().len());
    for column in 0..schema.fields().len() {
        let of_batches: Vec<&dyn Array> = batches.iter().map(|batch| batch.column(column).as_ref()).collect();
        columns.push(interleave(&of_batches, &places)?);
        pace.rest(order.len() as u64 * 4).await?;
    }
    let options = RecordBatchOptions::new().with_row_count(Some(order.len()));
    let batch = RecordBatch::try_new_with_options(schema, columns, &options)?;
    context.resize(&mut memory, batch.get_array_memory_size() as u64)?;
    Ok(Held::new(batch, memory))
}

#[cfg(test)]
mod tests {
    use std::cmp::Ordering;

    use arrow_array::{Float64Array, StringArray, UInt64Array, cast::AsArray, types::UInt64Type};
    use futures::executor::block_on;
    use hoplake_storage::{ReadLimits, StorageError};
    use proptest::prelude::*;

    use super::*;

    type RowOf = (Option<f64>, Option<String>);

    fn held(rows: &[RowOf], first: u64) -> Held<RecordBatch> {
        let float: ArrayRef = Arc::new(Float64Array::from_iter(rows.iter().map(|row| row.0)));
        let text: ArrayRef = Arc::new(StringArray::from_iter(rows.iter().map(|row| row.1.clone())));
        let number: ArrayRef = Arc::new(UInt64Array::from_iter_values((first..).take(rows.len())));
        let batch =
            RecordBatch::try_from_iter_with_nullable([("f", float, true), ("t", text, true), ("n", number, true)]);
        let bytes = batch.as_ref().unwrap().get_array_memory_size() as u64;
        Held::counted(batch.unwrap(), bytes, &QueryContext::new()).unwrap()
    }

    fn last_if_absent<T>(a: Option<&T>, b: Option<&T>, order: impl Fn(&T, &T) -> Ordering) -> Ordering {
        match (a, b) {
            (Some(a), Some(b)) => order(a, b),
            (a, b) => a.is_none().cmp(&b.is_none()),
        }
    }

    fn numbers(sorted: &RecordBatch) -> Vec<u64> {
        sorted.column(2).as_primitive::<UInt64Type>().values().to_vec()
    }

    proptest! {
        #[test]
        fn rows_are_in_order_and_equal_ones_as_they_came(
            batches in prop::collection::vec(prop::collection::vec(
                (prop::option::of(prop::sample::select(vec![-1.5, -0.0, 0.0, 7.0, f64::NAN, -f64::NAN])), prop::option::of("[a-c]{0,2}")),
                0..40), 1..5),
            most in 1usize..120, descending in any::<bool>(),
        ) {
            let mut expected: Vec<(u64, &RowOf)> = (0..).zip(batches.iter().flatten()).collect();
            expected.sort_by(|(_, a), (_, b)| {
                let by_text = last_if_absent(a.1.as_ref(), b.1.as_ref(), |a, b| if descending { b.cmp(a) } else { a.cmp(b) });
                by_text.then(last_if_absent(a.0.as_ref(), b.0.as_ref(), |a, b| float::compare(*a, *b)))
            });
            let expected: Vec<u64> = expected.into_iter().map(|(number, _)| number).take(most).collect();
            let mut first = 0;
            let batches = batches.iter().map(|rows| {
                let batch = held(rows, first);
                first += rows.len() as u64;
                batch
            });
            let by = [SortedBy { column: "t", descending }, SortedBy { column: "f", descending: false }];
            let context = QueryContext::new();
            let sorted = block_on(first_rows(&batches.collect::<Vec<_>>(), &by, most, &context)).unwrap();
            prop_assert_eq!(numbers(&sorted), expected);
            prop_assert_eq!(context.memory().used(), sorted.get_array_memory_size() as u64);
        }
    }

    #[test]
    fn the_first_of_many_rows_are_those_of_all() {
        let rows: Vec<RowOf> = (0..50_000u64).map(|row| (Some((row * 7_919 % 50_000) as f64), None)).collect();
        let batches = [held(&rows[..20_000], 0), held(&rows[20_000..], 20_000)];
        let by = [SortedBy { column: "f", descending: true }];
        let of = |most| numbers(&block_on(first_rows(&batches, &by, most, &QueryContext::new())).unwrap());
        let all = of(usize::MAX);
        assert!(all.is_sorted_by_key(|row| std::cmp::Reverse(row * 7_919 % 50_000)) && all.len() == 50_000);
        assert_eq!((of(1), of(100), of(49_999)), (all[..1].to_vec(), all[..100].to_vec(), all[..49_999].to_vec()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_sort_ends_at_the_deadline_and_at_the_budget() {
        let batches = [held(&vec![(Some(1.0), Some("text".into())); 100_000], 0)];
        let by = [SortedBy { column: "t", descending: false }];
        let bytes = batches[0].get_array_memory_size() as u64;
        let deadline = Some((tokio::time::Instant::now(), 5));
        // Of the rows alone, once more, there is room.
        for limits in [
            ReadLimits { deadline, ..ReadLimits::default() },
            ReadLimits { memory_bytes_max: Some(bytes + (1 << 20)), ..ReadLimits::default() },
        ] {
            let context = QueryContext::new();
            context.limit(limits);
            let ended = first_rows(&batches, &by, usize::MAX, &context).await.unwrap_err();
            assert!(
                matches!(ended, EngineError::Limit { .. } | EngineError::Storage(StorageError::Limit { .. })),
                "{ended}"
            );
            assert_eq!(context.memory().used(), 0);
        }
    }
}
