//! Steps that give many for one: hops along edges and scans of all vertices or edges. They hand out their rows in parts.

use std::{
    collections::{BTreeSet, HashMap, HashSet, VecDeque},
    ops::Range,
    sync::Arc,
};

use foldhash::fast::RandomState;
use hoplake_engine::{
    Condition, Edges, Frontier, Held, PropertyOf, Snapshot, VertexQuery, VertexScan,
    traversal::{Hop, HopDirection, Traversal, VisitPolicy},
};
use hoplake_format::{LabelId, Property, VertexId};
use hoplake_storage::{Branch, MemoryHold};

use super::{
    Done, Run,
    batch::{Batch, Element, Items, ROWS_MAX, Row},
    by::kind_of,
    conditions::{self, Of, fulfils},
    elements::Wanted,
    growth::Growth,
    paths::{Labels, NO_PATH},
};
use crate::{
    error::QueryError,
    plan::{Counted, Found, HopWhere, Name, Predicate, Reaches, every},
    tokens::Direction,
    value::Value,
};

/// Edges that were read for a batch, and how far they were handed out.
#[derive(Debug)]
pub(super) struct Expansion {
    batch: Batch,
    edges: Held<Edges>,
    /// Which of the edges leave a vertex.
    of: HashMap<VertexId, Range<usize>, RandomState>,
    reaches: Reaches,
    /// The row whose edges come next, and which of them.
    at: (usize, usize),
}

impl Expansion {
    pub(super) fn next(&mut self, run: &mut Run, labels: &Labels) -> Done<Option<Batch>> {
        let Items::Vertices(vertices) = &self.batch.items else { return Ok(None) };
        let mut parents = Vec::new();
        let mut places = Vec::new();
        while let Some(vertex) = vertices.get(self.at.0)
            && parents.len() < ROWS_MAX
        {
            let range = self.of.get(vertex).cloned().unwrap_or_default();
            let left = range.start + self.at.1..range.end;
            let part = left.start..left.end.min(left.start + ROWS_MAX - parents.len());
            parents.extend(std::iter::repeat_n(self.at.0 as u32, part.len()));
            self.at = if part.end == range.end { (self.at.0 + 1, 0) } else { (self.at.0, self.at.1 + part.len()) };
            places.push(part);
        }
        if parents.is_empty() {
            return Ok(None);
        }
        let items = match self.reaches {
            Reaches::Vertices => {
                let targets = self.edges.targets();
                Items::Vertices(places.into_iter().flat_map(|part| targets[part].iter().copied()).collect())
            }
            Reaches::Edges => Items::Edges(places.into_iter().flat_map(|part| self.edges.slice(part)).collect()),
        };
        run.derived(&self.batch, &parents, items, labels).map(Some)
    }
}

/// What the engine tests of the conditions of a hop.
#[derive(Debug)]
pub(super) enum OfHop {
    /// Nothing along the hop can fulfil them.
    Never,
    /// All of them, and what the condition takes.
    Tested(Condition, u64),
    /// Not all of them.
    Untested,
}

impl Run {
    /// Reads the edges of a hop from the vertices of a batch.
    pub(super) async fn hop(
        &mut self,
        batch: Batch,
        direction: Direction,
        edge_labels: &[Name],
        reaches: Reaches,
        condition: Option<Condition>,
    ) -> Done<Option<Expansion>> {
        let batch = as_vertices(batch, "a hop")?.merged(&self.growth)?;
        let Items::Vertices(vertices) = &batch.items else { return Ok(None) };
        let Some(hop) = hop_along(&self.snapshot, direction, edge_labels) else { return Ok(None) };
        let hop = Hop { condition, ..hop };
        let frontier = Frontier::held(vertices, self.branch.context()).await?;
        let edges = self.snapshot.neighbours(&frontier, &hop, &mut self.branch).await?;
        let mut of: HashMap<VertexId, Range<usize>, RandomState> = HashMap::default();
        let mut begin = 0;
        for list in edges.lists() {
            let end = begin + list.targets.len();
            of.entry(list.from).or_insert(begin..begin).end = end;
            begin = end;
        }
        Ok(Some(Expansion { batch, edges, of, reaches, at: (0, 0) }))
    }

    /// What the engine tests of the conditions of a hop.
    pub(super) fn hop_conditions(&self, hop: &HopWhere) -> Done<OfHop> {
        let Some(along) = hop_along(&self.snapshot, hop.direction, &hop.labels) else { return Ok(OfHop::Never) };
        let schema = self.snapshot.schema();
        let near: Vec<LabelId> = (0..schema.vertex_labels.len()).map(|label| LabelId(label as u16)).collect();
        let of = match hop.reaches {
            Reaches::Vertices => PropertyOf::Vertex,
            Reaches::Edges => PropertyOf::Edge,
        };
        let owners: Vec<&[Property]> = match hop.reaches {
            Reaches::Vertices => {
                let reached = self.snapshot.labels_reached(&near, &along);
                reached.into_iter().filter_map(|label| Some(&schema.label(label)?.properties[..])).collect()
            }
            Reaches::Edges => {
                let followed = self.snapshot.edges_followed(&near, &along);
                followed.into_iter().filter_map(|(edge, _)| Some(&schema.edge_type(edge)?.properties[..])).collect()
            }
        };
        // One text may stand for values of two types, which compare in other ways.
        let differs = |name: &Name| {
            let mut types = owners.iter().filter_map(|owner| {
                owner.iter().find(|property| property.name == **name).map(|property| (property.kind, property.logical))
            });
            let first = types.next();
            types.any(|other| Some(other) != first)
        };
        if hop.conditions.iter().any(|(name, _)| differs(name)) {
            return Ok(OfHop::Untested);
        }
        // What lacks a property fulfils nothing, for the engine too.
        for owner in &owners {
            match conditions::of_properties(of, owner, &hop.conditions, |name| self.is_computed(name), &self.growth)? {
                Of::None => {}
                Of::Some(Some(condition), bytes, left) if left.is_empty() => {
                    return Ok(OfHop::Tested(condition, bytes));
                }
                Of::Some(..) => return Ok(OfHop::Untested),
            }
        }
        Ok(OfHop::Never)
    }

    /// The vertices that hops lead to from those of a batch, each once.
    pub(super) async fn walk(
        &mut self,
        batch: Batch,
        hops: &[(Direction, Vec<Name>)],
        labels: &Labels,
    ) -> Done<Vec<Batch>> {
        let batch = as_vertices(batch, "a hop")?;
        let Items::Vertices(vertices) = &batch.items else { return Ok(Vec::new()) };
        let hops: Option<Vec<Hop>> =
            hops.iter().map(|(direction, labels)| hop_along(&self.snapshot, *direction, labels)).collect();
        let Some(hops) = hops else { return Ok(Vec::new()) };
        let frame = batch.rows.first().map_or(0, |row| row.frame);
        let traversal = Traversal {
            starts: vertices.clone(),
            hops,
            visit: VisitPolicy::PerDepth,
            parallelism: std::thread::available_parallelism().map_or(1, usize::from),
            ..Traversal::default()
        };
        let reached = self.snapshot.traverse(&traversal, &mut self.branch).await?;
        let Some(last) = reached.depths.last() else { return Ok(Vec::new()) };
        let mut batches = Vec::new();
        let mut vertices = last.vertices();
        loop {
            let part: Vec<VertexId> = vertices.by_ref().take(ROWS_MAX).collect();
            if part.is_empty() {
                return Ok(batches);
            }
            let rows = vec![Row { bulk: 1, frame, path: NO_PATH }; part.len()];
            let batch = Batch { rows, ..Batch::default() };
            let mut batch = self.mapped(batch, Items::Vertices(part), labels)?;
            self.held(&mut batch)?;
            batches.push(batch);
        }
    }

    /// How many edges each row's vertex has, along a hop.
    pub(super) async fn degrees(&mut self, batch: &Batch, direction: Direction, labels: &[Name]) -> Done<Vec<u64>> {
        let places: Vec<u32> = (0..batch.len() as u32).collect();
        let on_vertices = as_vertices(batch.take(&places, &self.growth)?, "a hop")?;
        let Items::Vertices(vertices) = &on_vertices.items else { return Ok(vec![0; batch.len()]) };
        let Some(hop) = hop_along(&self.snapshot, direction, labels) else { return Ok(vec![0; batch.len()]) };
        let frontier = Frontier::held(vertices, self.branch.context()).await?;
        let found = self.snapshot.degrees(&frontier, &hop, &mut self.branch).await?;
        let of: HashMap<VertexId, u64, RandomState> = found.iter().map(|it| (it.vertex, it.edges)).collect();
        Ok(vertices.iter().map(|vertex| of.get(vertex).copied().unwrap_or(0)).collect())
    }

    /// Numbers that the statistics have; `None` if they are not exact.
    pub(super) fn counted(&self, counted: &Counted) -> Done<Option<Value>> {
        let fulfils = |label: &str| fulfils(label, counted.labels.iter().map(|it| &**it), &self.growth);
        let manifest = self.snapshot.manifest();
        let mut counts: Vec<(&str, u64)> = Vec::new();
        let mut add = |label, count| match counts.iter_mut().find(|(other, _)| *other == label) {
            Some((_, sum)) => *sum += count,
            None => counts.push((label, count)),
        };
        if counted.edges {
            for ((number, edge), count) in manifest.schema.edge_types().zip(&manifest.edge_counts) {
                if fulfils(&edge.label)? {
                    if !self.snapshot.is_edge_count_exact(number) {
                        return Ok(None);
                    }
                    add(edge.label.as_str(), *count);
                }
            }
        } else {
            for (label, count) in manifest.schema.vertex_labels.iter().zip(&manifest.vertex_counts) {
                if fulfils(&label.name)? {
                    add(label.name.as_str(), count.live());
                }
            }
        }
        let number = |count: u64| Value::from(i64::try_from(count).unwrap_or(i64::MAX));
        Ok(Some(match counted.by_label {
            false => number(counts.iter().map(|(_, count)| count).sum()),
            true => {
                let some = counts.into_iter().filter(|(_, count)| *count > 0);
                Value::Map(some.map(|(label, count)| (label.into(), number(count))).collect())
            }
        }))
    }

    /// Vertices by id, for each row.
    pub(super) async fn vertices_by_id(&mut self, batch: Batch, ids: &[Value], labels: &Labels) -> Done<Batch> {
        let found: Vec<VertexId> = self.vertices_of(ids).await?.into_iter().flatten().collect();
        let (parents, places) = crossed(batch.len(), found.len(), &self.growth)?;
        let items = Items::Vertices(places.into_iter().map(|place| found[place]).collect());
        self.derived(&batch, &parents, items, labels)
    }

    /// Edges by id, for each row.
    pub(super) async fn edges_by_id(&mut self, batch: Batch, ids: &[Value], labels: &Labels) -> Done<Batch> {
        let found: Vec<_> = self.edges_of(ids).await?.into_iter().flatten().collect();
        let (parents, places) = crossed(batch.len(), found.len(), &self.growth)?;
        let items = Items::Edges(places.into_iter().map(|place| found[place]).collect());
        self.derived(&batch, &parents, items, labels)
    }
}

/// A hop along those of some labels that the graph has; `None` if it has none of them.
pub(super) fn hop_along(snapshot: &Snapshot, direction: Direction, labels: &[Name]) -> Option<Hop> {
    let mut types: HashSet<&str> = HashSet::new();
    if !labels.is_empty() {
        types.extend(snapshot.schema().edge_types.iter().map(|edge| edge.label.as_str()));
    }
    // Each once.
    let known = labels.iter().filter(|label| types.remove(&***label)).map(|label| label.to_string());
    let known: Vec<String> = known.collect();
    if known.is_empty() && !labels.is_empty() {
        return None;
    }
    let direction = match direction {
        Direction::Out => HopDirection::Out,
        Direction::In => HopDirection::In,
        Direction::Both => HopDirection::Both,
    };
    Some(Hop { labels: known, direction, condition: None })
}

/// Each of some rows with each of some others.
fn crossed(rows: usize, others: usize, growth: &Growth) -> Done<(Vec<u32>, Vec<usize>)> {
    // For both lists, which grow by halves, and the items that are made of them.
    growth.take(rows.saturating_mul(others).saturating_mul(CROSSED_BYTES))?;
    let pairs = (0..rows).flat_map(|row| (0..others).map(move |other| (row as u32, other)));
    Ok(pairs.unzip())
}

/// What a pair of a row and another takes.
const CROSSED_BYTES: usize = 2 * (size_of::<u32>() + size_of::<usize>()) + size_of::<hoplake_engine::Neighbour>();

/// A batch whose rows are all on vertices.
pub(super) fn as_vertices(mut batch: Batch, what: &str) -> Done<Batch> {
    if let Items::Values(values) = &batch.items {
        let vertex = |(at, value): (usize, &Value)| match batch.items.element(at) {
            Some(Element::Vertex(vertex)) => Ok(vertex),
            _ => Err(QueryError::wrong_type(format!("{what} is from a vertex, and this is {}", kind_of(value)))),
        };
        let vertices = values.iter().enumerate().map(vertex).collect::<Done<Vec<_>>>()?;
        batch.items = Items::Vertices(vertices);
    }
    match &batch.items {
        Items::Vertices(_) => Ok(batch),
        Items::Edges(_) => Err(QueryError::wrong_type(format!("{what} is from a vertex, and this is an edge"))),
        _ => Err(QueryError::wrong_type(format!("{what} is from a vertex, and there is none yet"))),
    }
}

/// A scan of all vertices or all edges, once for each row of a batch.
#[derive(Debug)]
pub(super) struct Scan {
    batch: Batch,
    found: Found,
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
    pub(super) fn of_vertices(run: &Run, batch: Batch, found: Found) -> Self {
        let labels = 0..run.snapshot.schema().vertex_labels.len();
        Self::new(batch, found, None, labels.map(|label| LabelId(label as u16)).collect())
    }

    /// Of the edges whose labels fulfil predicates.
    pub(super) fn of_edges(run: &Run, batch: Batch, labels: &[Arc<Predicate>]) -> Done<Self> {
        let mut some = Vec::new();
        for edge in &run.snapshot.schema().edge_types {
            if fulfils(&edge.label, labels.iter().map(|it| &**it), &run.growth)? {
                some.push(edge);
            }
        }
        let sources: BTreeSet<LabelId> = some.iter().map(|edge| edge.source).collect();
        let names: BTreeSet<&str> = some.iter().map(|edge| edge.label.as_str()).collect();
        let names = names.into_iter().map(Name::from).collect();
        Ok(Self::new(batch, Found::default(), Some(names), sources.into_iter().collect()))
    }

    fn new(batch: Batch, found: Found, edges: Option<Vec<Name>>, all_labels: VecDeque<LabelId>) -> Self {
        let labels = all_labels.clone();
        Self { batch, found, edges, all_labels, row: 0, labels, scan: None, expansion: None }
    }

    /// The next vertices or edges.
    pub(super) async fn next(&mut self, run: &mut Run, labels: &Labels) -> Done<Option<Batch>> {
        loop {
            if let Some(expansion) = &mut self.expansion {
                if let Some(batch) = expansion.next(run, labels)? {
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
                return run.derived(&self.batch, &parents, Items::Vertices(vertices), labels).map(Some);
            };
            // Edges go on from where the row is, and not from the vertices that they leave.
            let mut sources = self.batch.take_rows(&parents, &run.growth)?;
            sources.items = Items::Vertices(vertices);
            self.expansion = run.hop(sources, Direction::Out, edge_labels, Reaches::Edges, None).await?;
        }
    }
}
