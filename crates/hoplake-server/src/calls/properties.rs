//! Keys and properties of vertices.

use hoplake::{Frontier, Graph, Held, Query, Rows};

use super::{
    Call, GraphRef, LabelRows, PropertiesRequest, ResultBatch, ResultSink,
    neighbors::check_vertices,
    vertices::{find_all, labels_of, resolve},
};
use crate::failure::Failure;

/// Rows that are read at first, before it is known how long they are: most answers take this one wave.
pub(super) const ROWS_FIRST: usize = 16 << 10;
/// Bytes of rows that are read at a time after that, and the bounds of their number.
const ROWS_BYTES: usize = 8 << 20;
const ROWS_MIN: usize = 256;
const ROWS_MAX: usize = 128 << 10;

/// How many rows to read at a time. The rows just read predict the next ones.
pub(super) fn rows_at_a_time(row_bytes: usize) -> usize {
    // With a minimum, or long rows would take a wave for every few of them.
    (ROWS_BYTES / row_bytes.max(1)).clamp(ROWS_MIN, ROWS_MAX)
}

/// Reads rows of a set piece by piece, as many at a time as fit a bounded memory, and puts them.
pub(super) struct RowReader<'a> {
    graph: &'a Graph,
    select: &'a [String],
    rows: usize,
}

impl<'a> RowReader<'a> {
    pub(super) fn new(graph: &'a Graph, select: &'a [String]) -> Self {
        Self { graph, select, rows: ROWS_FIRST }
    }

    /// The rows of a set, from a position on.
    pub(super) async fn put(
        &mut self,
        query: &mut Query,
        depth: u32,
        set: &Frontier,
        from: usize,
        sink: &mut dyn ResultSink,
    ) -> Result<(), Failure> {
        let mut vertices = set.vertices().skip(from).peekable();
        while vertices.peek().is_some() {
            // In the order of the set, so that the pieces together are what one read would answer.
            let wanted: Frontier = vertices.by_ref().take(self.rows).collect();
            let rows = query.properties(&wanted, self.select).await?;
            self.put_read(depth, rows, &wanted, sink).await?;
        }
        Ok(())
    }

    /// Rows that were read.
    pub(super) async fn put_read(
        &mut self,
        depth: u32,
        rows: Held<Vec<Rows>>,
        wanted: &Frontier,
        sink: &mut dyn ResultSink,
    ) -> Result<(), Failure> {
        let all = rows.map(|rows| LabelRows::of(self.graph, depth, rows, wanted));
        let bytes: usize = all.iter().map(LabelRows::bytes).sum();
        let row_bytes = bytes / wanted.len().max(1);
        self.rows = rows_at_a_time(row_bytes);
        for rows in all.iter() {
            sink.put(ResultBatch::Rows(rows)).await?;
        }
        Ok(())
    }
}

/// Keys and properties of some vertices, by label and position; returns the version they are of.
pub(crate) async fn properties(
    call: &mut Call,
    graph: &GraphRef,
    request: &PropertiesRequest,
    sink: &mut dyn ResultSink,
) -> Result<u64, Failure> {
    call.limit_time(request.limits.time_ms);
    let open = call.graph(graph).await?;
    call.service.check_batch(&request.vertices)?;
    call.service.check_results(request.vertices.len())?;
    let limits = call.limits(&request.limits);
    let mut query = call.query(&open.graph, &limits);
    let work = async {
        let named = resolve(&open.graph, &request.vertices)?;
        // Announced before the look-up, which then reads the metadata of rows in the same wave.
        query.expect_rows(labels_of(&query, &named));
        let found = find_all(&mut query, &named).await?;
        let vertices = query.set_of(&found).await?;
        drop(found);
        // Counted without repetitions, as the set has them: a vertex that is named twice has one row.
        check_vertices(vertices.len(), &limits)?;
        // A condition names one vertex or all of a label.
        call.service.check_results(vertices.len())?;
        let mut reader = RowReader::new(&open.graph, &request.select);
        reader.put(&mut query, 0, &vertices, 0, sink).await
    };
    let outcome = call.bounded(work).await;
    call.settle(&query, &open.graph, outcome).await?;
    Ok(open.graph.version())
}
