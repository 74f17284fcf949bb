//! Scans of all vertices or all edges.

use std::{
    collections::{BTreeSet, VecDeque},
    fmt::Debug,
};

use hoplake_engine::{Snapshot, VertexQuery, VertexScan};
use hoplake_format::{LabelId, VertexId};
use hoplake_storage::{Branch, MemoryHold};

use super::VertexConditions;
use crate::{
    operators::{
        moves::{Expansion, Hop},
        prelude::*,
    },
    plan::{Reaches, every},
    run::{
        Element,
        conditions::{self, Of, fulfils},
        properties::Wanted,
    },
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
    found: VertexConditions,
    /// The labels of the edges that are scanned, if edges are.
    edges: Option<Vec<Name>>,
    /// Labels of vertices that are scanned for each row.
    all_labels: VecDeque<LabelId>,
    /// The row whose scan is under way.
    row: usize,
    labels: VecDeque<LabelId>,
    scan: Option<Scanning>,
    /// Edges of the vertices that were scanned last.
    expansion: Option<Expansion>,
}
struct Scanning {
    label: LabelId,
    /// What the scan does not test.
    left: Vec<(Name, Arc<Predicate>)>,
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
    pub(crate) fn of_vertices(run: &Run, batch: Batch, found: VertexConditions) -> Self {
        let labels = 0..run.snapshot.schema().vertex_labels.len();
        Self::new(batch, found, None, labels.map(|label| LabelId(label as u16)).collect())
    }

    /// Of the edges whose labels fulfil predicates.
    pub(crate) fn of_edges(run: &Run, batch: Batch, labels: &[Arc<Predicate>]) -> Done<Self> {
        let mut some = Vec::new();
        for edge in &run.snapshot.schema().edge_types {
            if fulfils(&edge.label, labels.iter().map(|it| &**it), &run.growth)? {
                some.push(edge);
            }
        }
        let sources: BTreeSet<LabelId> = some.iter().map(|edge| edge.source).collect();
        let names: BTreeSet<&str> = some.iter().map(|edge| edge.label.as_str()).collect();
        let names = names.into_iter().map(Name::from).collect();
        Ok(Self::new(batch, VertexConditions::default(), Some(names), sources.into_iter().collect()))
    }

    fn new(batch: Batch, found: VertexConditions, edges: Option<Vec<Name>>, all_labels: VecDeque<LabelId>) -> Self {
        let labels = all_labels.clone();
        Self { batch, found, edges, all_labels, row: 0, labels, scan: None, expansion: None }
    }

    /// The next vertices or edges.
    pub(crate) async fn next(&mut self, run: &mut Run) -> Done<Option<Batch>> {
        loop {
            if let Some(expansion) = &mut self.expansion {
                if let Some(batch) = expansion.next(run)? {
                    return Ok(Some(batch));
                }
                self.expansion = None;
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
                        let conditions = conditions::of(described, &self.found, is_computed, &run.growth)?;
                        run.pace.rest(1).await?;
                        let Of::Some(condition, bytes, left) = conditions else { continue };
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
            let (label, left) = (*label, left.clone());
            let expected = run.expected.take().unwrap_or_default();
            let snapshot = run.snapshot.clone();
            let next = async |_: &Arc<Snapshot>, branch: &mut Branch| scan.next(branch).await;
            let Some(found) = expected.alongside(&snapshot, &mut run.branch, next).await? else {
                self.scan = None;
                continue;
            };
            let mut vertices: Vec<VertexId> =
                found.ordinals().filter_map(|ordinal| VertexId::new(label, ordinal)).collect();
            if !left.is_empty() {
                let names: Vec<Name> = left.iter().map(|(name, _)| name.clone()).collect();
                let elements = vertices.iter().map(|vertex| Element::Vertex(*vertex)).collect::<Vec<_>>();
                let read = run.read(elements, Wanted::Named(&names)).await?;
                let fulfils = |at: usize, growth: &Growth| {
                    every(&left, |(name, predicate)| {
                        predicate.test_any(&read.values(Element::Vertex(vertices[at]), name), growth)
                    })
                };
                let fulfilled = run.tested(vertices.len(), fulfils).await?;
                let mut fulfilled = fulfilled.into_iter();
                vertices.retain(|_| fulfilled.next().is_some_and(|it| it));
            }
            let parents = vec![self.row as u32; vertices.len()];
            let Some(edge_labels) = &self.edges else {
                return run.derived(&self.batch, &parents, Items::Vertices(vertices)).map(Some);
            };
            // Edges go on from where the row is, and not from the vertices that they leave.
            let mut sources = self.batch.take_rows(&parents, &run.growth)?;
            sources.items = Items::Vertices(vertices);
            let hop = Hop { direction: Direction::Out, labels: edge_labels.clone(), reaches: Reaches::Edges };
            self.expansion = run.hop(sources, &hop, None).await?;
        }
    }
}

/// Each of some rows with each of some others.
pub(super) fn crossed(rows: usize, others: usize, growth: &Growth) -> Done<(Vec<u32>, Vec<usize>)> {
    // For both lists, which grow by halves, and the items that are made of them.
    growth.take(rows.saturating_mul(others).saturating_mul(CROSSED_BYTES))?;
    let pairs = (0..rows).flat_map(|row| (0..others).map(move |other| (row as u32, other)));
    Ok(pairs.unzip())
}

/// What a pair of a row and another takes.
const CROSSED_BYTES: usize = 2 * (size_of::<u32>() + size_of::<usize>()) + size_of::<hoplake_engine::Neighbour>();
