//! Keys and properties of vertices.

use arrow_array::RecordBatch;
use hoplake::{Frontier, Graph, Held, Query, Rows, VertexId};

use super::{
    Call, GraphRef, Part, Parts, PropertiesQuery,
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

/// Vertices of one label: their ids, unless they were found by a scan, and a batch with their keys (column `~key`) and properties.
#[derive(Debug, Clone)]
pub(crate) struct LabelRows {
    pub(crate) label: String,
    /// The distance in hops.
    pub(crate) depth: u32,
    pub(crate) ids: Vec<VertexId>,
    pub(crate) batch: RecordBatch,
}

impl LabelRows {
    /// Rows of the facade, in order of label and ordinal, as the vertices of a set.
    pub(super) fn of(graph: &Graph, depth: u32, rows: Vec<Rows>, vertices: &Frontier) -> Vec<Self> {
        let one = |rows: Rows| {
            let label = graph.schema().label_id(&rows.label);
            let ids = label.into_iter().flat_map(|label| {
                vertices.ordinals(label).iter().filter_map(move |ordinal| VertexId::new(label, ordinal))
            });
            Self { label: rows.label, depth, ids: ids.collect(), batch: rows.batch }
        };
        rows.into_iter().map(one).collect()
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.batch.num_rows()
    }

    /// Bytes that they take.
    pub(super) fn bytes(&self) -> usize {
        self.batch.get_array_memory_size() + self.ids.capacity() * size_of::<VertexId>()
    }

    /// Parts of at most `most` rows.
    pub(crate) fn chunks(&self, most: usize) -> impl Iterator<Item = Self> + '_ {
        (0..self.len()).step_by(most.max(1)).map(move |start| {
            let length = most.min(self.len() - start);
            let ids = self.ids.get(start..start + length).unwrap_or_default().to_vec();
            Self { label: self.label.clone(), depth: self.depth, ids, batch: self.batch.slice(start, length) }
        })
    }
}

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
        parts: &mut dyn Parts,
    ) -> Result<(), Failure> {
        let mut vertices = set.vertices().skip(from).peekable();
        while vertices.peek().is_some() {
            // In the order of the set, so that the pieces together are what one read would answer.
            let wanted: Frontier = vertices.by_ref().take(self.rows).collect();
            let rows = query.properties(&wanted, self.select).await?;
            self.put_read(depth, rows, &wanted, parts).await?;
        }
        Ok(())
    }

    /// Rows that were read.
    pub(super) async fn put_read(
        &mut self,
        depth: u32,
        rows: Held<Vec<Rows>>,
        wanted: &Frontier,
        parts: &mut dyn Parts,
    ) -> Result<(), Failure> {
        let all = rows.map(|rows| LabelRows::of(self.graph, depth, rows, wanted));
        let bytes: usize = all.iter().map(LabelRows::bytes).sum();
        let row_bytes = bytes / wanted.len().max(1);
        self.rows = rows_at_a_time(row_bytes);
        for rows in all.iter() {
            parts.put(Part::Rows(rows)).await?;
        }
        Ok(())
    }
}

/// Keys and properties of some vertices, by label and position; returns the version they are of.
pub(crate) async fn properties(
    call: &mut Call,
    graph: &GraphRef,
    asked: &PropertiesQuery,
    parts: &mut dyn Parts,
) -> Result<u64, Failure> {
    call.limit_time(asked.limits.time_ms);
    let open = call.graph(graph).await?;
    call.service.check_batch(&asked.vertices)?;
    call.service.check_results(asked.vertices.len())?;
    let limits = call.limits(&asked.limits);
    let mut query = call.query(&open.graph, &limits);
    let work = async {
        let named = resolve(&open.graph, &asked.vertices)?;
        // Announced before the look-up, which then reads the metadata of rows in the same wave.
        query.expect_rows(labels_of(&query, &named));
        let found = find_all(&mut query, &named).await?;
        let vertices = query.set_of(&found).await?;
        drop(found);
        // Counted without repetitions, as the set has them: a vertex that is named twice has one row.
        check_vertices(vertices.len(), &limits)?;
        // A condition names one vertex or all of a label.
        call.service.check_results(vertices.len())?;
        let mut reader = RowReader::new(&open.graph, &asked.select);
        reader.put(&mut query, 0, &vertices, 0, parts).await
    };
    let outcome = call.bounded(work).await;
    call.settle(&query, &open.graph, outcome).await?;
    Ok(open.graph.version())
}
