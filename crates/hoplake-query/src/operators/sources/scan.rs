//! Scans of all vertices or all edges.

use std::{
    collections::{BTreeSet, VecDeque},
    fmt::Debug,
};

use hoplake_engine::{PropertyOf, Snapshot, VertexQuery, VertexScan};
use hoplake_format::{LabelId, VertexId};
use hoplake_storage::{Branch, MemoryHold};

use crate::{
    operators::{
        moves::{Expansion, Followed, Hop, HopConditions},
        prelude::*,
    },
    plan::{ElementCondition, Reaches, read_together},
    run::conditions::{Owner, Tested, TestedPart, tested},
    tokens::Direction,
};

/// The run of an operator that scans.
pub(super) struct Scanned<F> {
    begin: F,
    scan: Option<Box<Scan>>,
}

impl<F: FnMut(&Run, Batch) -> Done<Scan> + Send + 'static> Scanned<F> {
    /// Scans as `begin` says, for each batch.
    pub(super) fn running(begin: F) -> Running {
        Running::new(Self { begin, scan: None })
    }
}

impl<F> Debug for Scanned<F> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scanned").field("scan", &self.scan).finish_non_exhaustive()
    }
}

impl<F: FnMut(&Run, Batch) -> Done<Scan> + Send> Stage for Scanned<F> {
    fn input<'a>(&'a mut self, run: &'a mut Run, batch: Batch, _: &'a mut Vec<Output>) -> BoxFuture<'a, Done<()>> {
        let begun = (self.begin)(run, batch).map(|scan| self.scan = Some(Box::new(scan)));
        Box::pin(std::future::ready(begun))
    }

    fn poll<'a>(&'a mut self, run: &'a mut Run, out: &'a mut Vec<Output>) -> BoxFuture<'a, Done<()>> {
        Box::pin(async move {
            if let Some(scan) = &mut self.scan {
                match scan.next(run).await? {
                    Some(batch) => out.push(Output::Next(batch)),
                    None => self.scan = None,
                }
            }
            Ok(())
        })
    }
}

/// A scan of all vertices or all edges, once for each row of a batch.
#[derive(Debug)]
pub(crate) struct Scan {
    batch: Batch,
    /// What the vertices have to match.
    conditions: Vec<ElementCondition>,
    /// The hop from vertices to the edges that are scanned, if edges are.
    edges: Option<EdgeHop>,
    /// Labels of vertices that are scanned for each row.
    all_labels: VecDeque<LabelId>,
    /// The row whose scan is under way.
    row: usize,
    labels: VecDeque<LabelId>,
    scan: Option<Scanning>,
    /// Edges of the vertices that were scanned last.
    expansion: Option<Expansion>,
}
/// The hop of a scan of edges.
#[derive(Debug)]
struct EdgeHop {
    hop: Hop,
    conditions: HopConditions,
    followed: Option<Arc<Followed>>,
}

impl EdgeHop {
    /// As the graph is now: the query may have written since.
    fn followed(&mut self, run: &Run) -> Done<Arc<Followed>> {
        run.followed(&mut self.followed, &self.hop, &self.conditions)
    }
}

struct Scanning {
    label: LabelId,
    /// Steps that test what the scan does not.
    left: Steps,
    scan: VertexScan,
    /// Of the condition.
    _hold: MemoryHold,
}
impl std::fmt::Debug for Scanning {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Scanning").field("label", &self.label).finish_non_exhaustive()
    }
}
impl Scan {
    pub(crate) fn of_vertices(run: &Run, batch: Batch, conditions: Vec<ElementCondition>) -> Self {
        let labels = 0..run.snapshot.schema().vertex_labels.len();
        Self::new(batch, conditions, None, labels.map(|label| LabelId(label as u16)).collect())
    }

    /// Of edges that match conditions.
    pub(crate) fn of_edges(run: &Run, batch: Batch, conditions: &[ElementCondition]) -> Done<Self> {
        let hop = Hop { direction: Direction::Out, labels: Vec::new(), reaches: Reaches::Edges };
        let conditions = HopConditions { on_edges: conditions.to_vec(), on_vertices: Vec::new() };
        let mut edges = EdgeHop { hop, conditions, followed: None };
        let followed = edges.followed(run)?;
        let schema = run.snapshot.schema();
        let is_followed = |label: &str| match &followed.along {
            Some(along) => along.labels.is_empty() || along.labels.iter().any(|followed| followed == label),
            None => false,
        };
        let sources: BTreeSet<LabelId> =
            schema.edge_types.iter().filter(|edge| is_followed(&edge.label)).map(|edge| edge.source).collect();
        Ok(Self::new(batch, Vec::new(), Some(edges), sources.into_iter().collect()))
    }

    fn new(
        batch: Batch,
        conditions: Vec<ElementCondition>,
        edges: Option<EdgeHop>,
        all_labels: VecDeque<LabelId>,
    ) -> Self {
        let labels = all_labels.clone();
        Self { batch, conditions, edges, all_labels, row: 0, labels, scan: None, expansion: None }
    }

    /// The next vertices or edges; `None` when all were given. A label or a part of the edges that
    /// has none gives a batch without rows, so that its memory is released before the next is read.
    pub(crate) async fn next(&mut self, run: &mut Run) -> Done<Option<Batch>> {
        loop {
            if let Some(expansion) = &mut self.expansion {
                let batch = expansion.next(run).await?;
                if batch.is_none() {
                    self.expansion = None;
                }
                return Ok(Some(batch.unwrap_or_default()));
            }
            if self.row == self.batch.len() {
                return Ok(None);
            }
            let Some(Scanning { label, left, scan, .. }) = &mut self.scan else {
                match self.labels.pop_front() {
                    Some(label) => {
                        let schema = run.snapshot.schema();
                        let Some(described) = schema.label(label) else { continue };
                        let is_computed = |name: &str| run.is_computed(name);
                        let owner = Owner { label: &described.name, properties: &described.properties };
                        let verdict = tested(PropertyOf::Either, &[owner], &self.conditions, is_computed, &run.growth)?;
                        run.pace.rest(1).await?;
                        let Tested::Some(TestedPart { condition, bytes, left }) = verdict else {
                            return Ok(Some(Batch::default()));
                        };
                        let left = read_together(left.into());
                        let hold = run.branch.context().hold(bytes)?;
                        let query = VertexQuery { label, condition, columns: Vec::new(), wanted: None };
                        let scan = run.snapshot.scan_vertices(query, &mut run.branch).await?;
                        self.scan = Some(Scanning { label, left, scan, _hold: hold });
                    }
                    None => {
                        self.row += 1;
                        self.labels = self.all_labels.clone();
                    }
                }
                continue;
            };
            let label = *label;
            let left = left.clone();
            let expected = run.expected.take().unwrap_or_default();
            let snapshot = run.snapshot.clone();
            let next = async |_: &Arc<Snapshot>, branch: &mut Branch| scan.next(branch).await;
            let Some(found) = expected.alongside(&snapshot, &mut run.branch, next).await? else {
                self.scan = None;
                return Ok(Some(Batch::default()));
            };
            let vertices: Vec<VertexId> =
                found.ordinals().filter_map(|ordinal| VertexId::new(label, ordinal)).collect();
            let parents = vec![self.row as u32; vertices.len()];
            let Some(edges) = &mut self.edges else {
                let batch = run.derived(&self.batch, &parents, Items::Vertices(vertices))?;
                return run.after(&left, batch).await.map(Some);
            };
            // Edges go on from where the row is, and not from the vertices that they leave.
            let mut sources = self.batch.take_rows(&parents, &run.growth)?;
            sources.items = Items::Vertices(vertices);
            let followed = edges.followed(run)?;
            self.expansion = run.hop(sources, followed).await?;
        }
    }
}
