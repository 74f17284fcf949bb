//! Scans: the vertices of labels that match a condition, and how many they are.

use std::sync::Arc;

use arrow_array::{RecordBatch, new_null_array};
use arrow_schema::{ArrowError, DataType, Field, Schema};
use hoplake::{Graph, Held, MemoryBudget, Query, Rows};

use super::{Call, GraphRef, LabelRows, ResultBatch, ResultSink, ScanRequest};
use crate::failure::{Failure, Reason};

/// What a null takes, at most: a value or a position, and its bit.
const NULL_BYTES: u64 = 9;

/// What a scan found.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scanned {
    /// Vertices that were returned, or counted.
    pub(crate) vertices: u64,
    /// Whether the limit kept some back.
    pub(crate) truncated: bool,
    pub(crate) version: u64,
}

/// The vertices that match a condition, read as they are sent, or their number.
pub(crate) async fn scan(
    call: &mut Call,
    graph: &GraphRef,
    request: &ScanRequest,
    sink: &mut dyn ResultSink,
) -> Result<Scanned, Failure> {
    call.limit_time(request.limits.time_ms);
    let open = call.graph(graph).await?;
    let most = call.service.settings.limits.results_max;
    let limit = request.scan.limit.filter(|limit| *limit > 0).map_or(most, |limit| limit.min(most));
    let mut query = call.query(&open.graph, &call.limits(&request.limits));
    let version = open.graph.version();
    let work = async {
        if request.count {
            let vertices = query.count_found(&request.scan).await?;
            return Ok(Scanned { vertices, truncated: false, version });
        }
        let (vertices, truncated) = put_found(&open.graph, &mut query, &request.scan, limit, sink).await?;
        Ok(Scanned { vertices, truncated, version })
    };
    let outcome = call.bounded(work).await;
    call.settle(&query, &open.graph, outcome).await
}

/// Puts vertices up to a limit; returns how many they are, and whether there are more.
async fn put_found(
    graph: &Graph,
    query: &mut Query,
    request: &hoplake::ScanRequest,
    limit: usize,
    sink: &mut dyn ResultSink,
) -> Result<(u64, bool), Failure> {
    // One more shows whether there are more.
    let wanted = hoplake::ScanRequest { limit: Some(limit.saturating_add(1)), ..request.clone() };
    let fields = fields_of(graph, request);
    let mut scan = query.scan(&wanted)?;
    let mut left = limit;
    while let Some(found) = query.next_rows(&mut scan).await? {
        let count = found.batch.num_rows();
        let taken = count.min(left);
        let rows = complete(&found, taken, &fields, query.memory()).await?;
        if taken > 0 {
            sink.put(ResultBatch::Scanned(&rows)).await?;
        }
        left -= taken;
        if taken < count {
            return Ok((limit as u64, true));
        }
    }
    Ok(((limit - left) as u64, false))
}

/// The selected properties and their types: of the first label of the scan that has each.
fn fields_of(graph: &Graph, request: &hoplake::ScanRequest) -> Vec<(String, DataType)> {
    let labels = || {
        let all = graph.schema().vertex_labels.iter();
        all.filter(|label| request.labels.is_empty() || request.labels.contains(&label.name))
    };
    let field = |name: &String| {
        let property = labels().flat_map(|label| &label.properties).find(|property| property.name == *name)?;
        Some((name.clone(), property.kind.arrow()))
    };
    request.select.iter().filter_map(field).collect()
}

/// Rows with a column for each selected property: a label that does not have one has nulls.
async fn complete(
    found: &Rows,
    count: usize,
    fields: &[(String, DataType)],
    memory: &MemoryBudget,
) -> Result<Held<LabelRows>, Failure> {
    let batch = found.batch.slice(0, count);
    let mut columns = batch.columns().to_vec();
    let mut all = batch.schema().fields().to_vec();
    let missing = fields.iter().filter(|(name, _)| batch.column_by_name(name).is_none());
    // Before anything is allocated: the rows that were found are held already.
    let hold = memory.hold(missing.clone().count() as u64 * count as u64 * NULL_BYTES)?;
    for (name, kind) in missing {
        columns.push(new_null_array(kind, count));
        all.push(Arc::new(Field::new(name, kind.clone(), true)));
        tokio::task::yield_now().await;
    }
    let failed = |error: ArrowError| Failure::new(Reason::Internal, error.to_string());
    let batch = RecordBatch::try_new(Arc::new(Schema::new(all)), columns).map_err(failed)?;
    Ok(Held::new(LabelRows { label: found.label.clone(), depth: 0, ids: Vec::new(), batch }, hold))
}

#[cfg(test)]
mod tests {
    use arrow_array::{ArrayRef, Int64Array};
    use hoplake::KEY_COLUMN;

    use super::*;

    #[tokio::test]
    async fn columns_of_nulls_are_held_before_they_are_made() {
        let keys: ArrayRef = Arc::new(Int64Array::from_iter_values(0..1_000));
        let found = Rows { label: "Town".into(), batch: RecordBatch::try_from_iter([(KEY_COLUMN, keys)]).unwrap() };
        let fields = [("age".into(), DataType::Int64), ("name".into(), DataType::Utf8)];
        let budget = MemoryBudget::new("the query", 20_000);
        let rows = complete(&found, 1_000, &fields, &budget).await.unwrap();
        let made: usize = rows.batch.columns()[1..].iter().map(|column| column.get_array_memory_size()).sum();
        assert!(made as u64 <= budget.used() + 512, "{made} of {}", budget.used());
        assert_eq!(complete(&found, 1_000, &fields, &budget).await.unwrap_err().reason, Reason::Limit);
        drop(rows);
        assert_eq!(budget.used(), 0);
    }
}
