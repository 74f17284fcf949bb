//! Scans: the vertices of labels that fulfil a condition, and how many they are.

use std::sync::Arc;

use arrow_array::{RecordBatch, new_null_array};
use arrow_schema::{ArrowError, DataType, Field, Schema};
use hoplake::{Graph, Query, Rows, ScanRequest};

use super::{Asked, Call, GraphRef, LabelRows, Part, Parts};
use crate::failure::{Failure, Reason};

/// A scan; a limit of 0 is as many vertices as the server allows.
#[derive(Debug, Clone)]
pub(crate) struct ScanQuery {
    pub(crate) request: ScanRequest,
    /// Whether only their number is wanted.
    pub(crate) count: bool,
    pub(crate) limits: Asked,
}

/// What a scan found.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scanned {
    /// Vertices that were returned, or counted.
    pub(crate) vertices: u64,
    /// Whether the limit kept some back.
    pub(crate) truncated: bool,
    pub(crate) version: u64,
}

/// The vertices that fulfil a condition, read as they are sent, or their number.
pub(crate) async fn scan(
    call: &mut Call,
    graph: &GraphRef,
    asked: &ScanQuery,
    parts: &mut dyn Parts,
) -> Result<Scanned, Failure> {
    call.limit_time(asked.limits.time_ms);
    let open = call.graph(graph).await?;
    let most = call.service.settings.limits.results_max;
    let limit = asked.request.limit.filter(|limit| *limit > 0).map_or(most, |limit| limit.min(most));
    let mut query = call.query(&open.graph, &call.limits(&asked.limits));
    let version = open.graph.version();
    let work = async {
        if asked.count {
            let vertices = query.count_found(&asked.request).await?;
            return Ok(Scanned { vertices, truncated: false, version });
        }
        let (vertices, truncated) = put_found(&open.graph, &mut query, &asked.request, limit, parts).await?;
        Ok(Scanned { vertices, truncated, version })
    };
    let outcome = call.bounded(work).await;
    call.settle(&query, &open.graph, outcome).await
}

/// Puts vertices up to a limit; returns how many they are, and whether there are more.
async fn put_found(
    graph: &Graph,
    query: &mut Query,
    request: &ScanRequest,
    limit: usize,
    parts: &mut dyn Parts,
) -> Result<(u64, bool), Failure> {
    // One more shows whether there are more.
    let wanted = ScanRequest { limit: Some(limit.saturating_add(1)), ..request.clone() };
    let fields = fields_of(graph, request);
    let mut scan = query.scan(&wanted)?;
    let mut left = limit;
    while let Some(found) = query.next_rows(&mut scan).await? {
        let count = found.batch.num_rows();
        let taken = count.min(left);
        let rows = complete(&found, taken, &fields)?;
        if taken > 0 {
            parts.put(Part::Found(&rows)).await?;
        }
        left -= taken;
        if taken < count {
            return Ok((limit as u64, true));
        }
    }
    Ok(((limit - left) as u64, false))
}

/// The selected properties and their types: of the first label of the scan that has each.
fn fields_of(graph: &Graph, request: &ScanRequest) -> Vec<(String, DataType)> {
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
fn complete(found: &Rows, count: usize, fields: &[(String, DataType)]) -> Result<LabelRows, Failure> {
    let batch = found.batch.slice(0, count);
    let schema = batch.schema();
    let missing: Vec<_> = fields.iter().filter(|(name, _)| batch.column_by_name(name).is_none()).collect();
    let nulls = missing.iter().map(|(_, kind)| new_null_array(kind, count));
    let columns = batch.columns().iter().cloned().chain(nulls).collect();
    let more = missing.iter().map(|(name, kind)| Arc::new(Field::new(name, kind.clone(), true)));
    let schema = Schema::new(schema.fields().iter().cloned().chain(more).collect::<Vec<_>>());
    let failed = |error: ArrowError| Failure::new(Reason::Internal, error.to_string());
    let batch = RecordBatch::try_new(Arc::new(schema), columns).map_err(failed)?;
    Ok(LabelRows { label: found.label.clone(), depth: 0, ids: Vec::new(), batch })
}
