//! The graph as it is at the position of a snapshot: a version, and over it the transactions between the two.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use hoplake::{KEY_COLUMN, Name, Properties, ScanRequest, Value, VertexRef, arrow::array::RecordBatch};

use super::scope::Scope;
use crate::{
    Element, FeedError, Transaction,
    apply::{
        applier::Applier,
        fold::{Aside, EdgeId, EdgeTypeName, Folded, LookupResults, Need, Overlay, Owner, WaitingEdges},
        lookups::{EdgeKeys, look_up, row_of},
    },
    value::as_key,
};

/// Vertices that are looked up at a time.
const LOOK_UP: usize = 10_000;

/// A graph at a position of its source.
pub(super) struct View {
    pub(super) applier: Applier,
    overlay: Overlay,
    waiting: WaitingEdges,
    /// The names of changes that were set aside.
    held: BTreeSet<String>,
}

impl View {
    /// The graph with the transactions of a stretch.
    pub(super) async fn new(mut applier: Applier, stretch: &[Transaction]) -> Result<Self, FeedError> {
        let Folded { overlay, waiting: changes, set_aside, .. } = folded(&mut applier, stretch).await?;
        let mut waiting = applier.state.waiting.clone();
        waiting.apply(&changes);
        let mut held = applier.state.held.clone();
        held.extend(set_aside.into_iter().flat_map(|it| it.names));
        Ok(Self { applier, overlay, waiting, held })
    }

    /// The graph as it is; what was set aside before does not count.
    pub(super) fn at_its_position(applier: Applier) -> Self {
        let waiting = applier.state.waiting.clone();
        Self { applier, overlay: Overlay::default(), waiting, held: BTreeSet::new() }
    }

    /// Whether a change of this was set aside, or one of the row that says that there is this edge. What only its other end's row says is
    /// nothing of the edge: it waits.
    pub(super) fn is_held(&self, element: &Element) -> bool {
        let is_held = |name: String| self.held.contains(&name);
        if self.held.is_empty() {
            return false;
        }
        if is_held(element.to_string()) {
            return true;
        }
        let Element::Edge(id) = element else { return false };
        match self.applier.mapping.of_edge(id).1 {
            Owner::Row => false,
            Owner::Source => is_held(id.source.to_string()),
            Owner::Target => is_held(id.target.to_string()),
        }
    }

    /// Notes that a row cannot be read.
    pub(super) fn hold(&mut self, name: String) {
        self.held.insert(name);
    }

    /// Passes on all that the graph has, with the edges that wait where they have to; `with_stubs` also vertices that may be stubs.
    pub(super) async fn elements(
        &self,
        scope: &Scope,
        with_stubs: bool,
        take: &mut (dyn FnMut(Element, Properties) -> Result<(), FeedError> + Send),
    ) -> Result<(), FeedError> {
        let mut take = |element: Element, properties: Properties| {
            let properties = scope.compared(&element, properties);
            match &element {
                Element::Vertex(vertex) if !with_stubs && scope.may_be_stub(vertex, &properties) => Ok(()),
                _ => take(element, properties),
            }
        };
        for (label, names) in &scope.labels {
            self.vertices(label, names, &mut take).await?;
        }
        let keys = EdgeKeys::of(&self.applier.mapping);
        for (edge_type, names) in &scope.edge_types {
            self.edges(&keys, edge_type, names, &mut take).await?;
        }
        let meant: Vec<_> =
            self.waiting.iter().filter(|(id, _)| scope.edge_types.contains_key(&id.edge_type())).collect();
        for some in meant.chunks(LOOK_UP) {
            let ends: Vec<_> = some.iter().flat_map(|(id, _)| [id.source.clone(), id.target.clone()]).collect();
            let are_there = self.exist(ends).await?;
            for (id, edge) in some {
                // One that waits for nothing is a mistake: then it is missing.
                if !are_there[&id.source] || !are_there[&id.target] {
                    take(Element::Edge((*id).clone()), edge.properties.clone())?;
                }
            }
        }
        Ok(())
    }

    async fn vertices(
        &self,
        label: &hoplake::Name,
        names: &BTreeSet<hoplake::Name>,
        take: &mut (dyn FnMut(Element, Properties) -> Result<(), FeedError> + Send),
    ) -> Result<(), FeedError> {
        let graph = &self.applier.graph;
        let mut seen: HashSet<VertexRef> = HashSet::new();
        if let Some(known) = graph.schema().label_id(label).and_then(|label| graph.schema().label(label)) {
            let all = known.properties.iter().filter(|it| names.contains(it.name.as_str()));
            let select = all.map(|it| it.name.clone()).collect();
            let mut query = graph.query();
            let request = ScanRequest { labels: vec![label.to_string()], select, ..ScanRequest::default() };
            let mut scan = query.scan(&request)?;
            while let Some(rows) = query.next_rows(&mut scan).await? {
                let Some(column) = rows.batch.column_by_name(KEY_COLUMN) else { continue };
                for row in 0..rows.batch.num_rows() {
                    let Some(key) = as_key(Value::at(column, row)) else { continue };
                    let vertex = VertexRef { label: label.clone(), key };
                    let mut properties = row_of(&rows.batch, row);
                    if let Some(state) = self.overlay.vertices.get(&vertex) {
                        if state.is_reset {
                            continue;
                        }
                        properties.extend(state.properties.clone());
                        seen.insert(vertex.clone());
                    }
                    take(Element::Vertex(vertex), properties)?;
                }
            }
        }
        for (vertex, state) in &self.overlay.vertices {
            if vertex.label == *label && state.exists && !seen.contains(vertex) {
                take(Element::Vertex(vertex.clone()), state.properties.clone())?;
            }
        }
        Ok(())
    }

    async fn edges(
        &self,
        keys: &EdgeKeys,
        edge_type: &EdgeTypeName,
        names: &BTreeSet<hoplake::Name>,
        take: &mut (dyn FnMut(Element, Properties) -> Result<(), FeedError> + Send),
    ) -> Result<(), FeedError> {
        let graph = &self.applier.graph;
        let schema = graph.schema();
        let ends = schema.label_id(&edge_type.source).zip(schema.label_id(&edge_type.target));
        let known =
            schema.edge_types.iter().find(|it| edge_type.label == it.label && ends == Some((it.source, it.target)));
        let mut seen: HashSet<EdgeId> = HashSet::new();
        if let Some(known) = known {
            let all = known.properties.iter().filter(|it| names.contains(it.name.as_str()));
            let columns: Vec<_> = all.map(|it| it.name.clone()).collect();
            let mut query = graph.query();
            let ends = (&*edge_type.source, &*edge_type.target);
            let mut scan = query.scan_edges(&edge_type.label, ends, &columns).await?;
            while let Some(batch) = query.next_edges(&mut scan).await? {
                for row in 0..batch.num_rows() {
                    let Some((id, mut properties)) = edge_at(keys, edge_type, &batch, row) else { continue };
                    if self.overlay.is_reset(&id.source) || self.overlay.is_reset(&id.target) {
                        continue;
                    }
                    if let Some(state) = self.overlay.edges.get(&id) {
                        if state.is_reset {
                            continue;
                        }
                        // Of several that nothing distinguishes, the first gets the properties.
                        if seen.insert(id.clone()) {
                            properties.extend(state.properties.first().cloned().unwrap_or_default());
                        }
                    }
                    take(Element::Edge(id), properties)?;
                }
            }
        }
        for (id, state) in &self.overlay.edges {
            let is_meant = id.edge_type() == *edge_type && state.exists && !seen.contains(id);
            for properties in state.properties.iter().filter(|_| is_meant) {
                take(Element::Edge(id.clone()), properties.clone())?;
            }
        }
        Ok(())
    }

    /// Whether vertices are there.
    pub(super) async fn exist(&self, vertices: Vec<VertexRef>) -> Result<BTreeMap<VertexRef, bool>, FeedError> {
        let mut found = BTreeMap::new();
        let mut needs = BTreeSet::new();
        for vertex in vertices {
            match self.overlay.vertices.get(&vertex) {
                Some(state) => drop(found.insert(vertex, state.exists)),
                None => drop(needs.insert(Need::Exists(vertex))),
            }
        }
        let mut known = LookupResults::default();
        look_up(&self.applier.graph, &self.applier.mapping, &needs, &mut known).await?;
        found.extend(known.exists);
        Ok(found)
    }
}

/// Elements that transactions change, or may.
pub(super) struct Touched {
    overlay: Overlay,
    waiting: BTreeSet<EdgeId>,
    /// The labels of tables that lost all their rows, also of those that the graph did not have.
    truncated: BTreeSet<Name>,
}

impl Touched {
    pub(super) async fn by(applier: &mut Applier, transactions: &[Transaction]) -> Result<Self, FeedError> {
        let Folded { overlay, waiting, truncated, .. } = folded(applier, transactions).await?;
        let entries = truncated.iter().flat_map(|table| applier.mapping.entries_of(table));
        let truncated = entries.map(|(_, entry)| entry.label().clone()).collect();
        Ok(Self { overlay, waiting: waiting.into_keys().collect(), truncated })
    }

    pub(super) fn has(&self, element: &Element) -> bool {
        let Self { overlay, waiting, truncated } = self;
        let has_vertex =
            |vertex: &VertexRef| overlay.vertices.contains_key(vertex) || truncated.contains(&vertex.label);
        match element {
            Element::Vertex(vertex) => has_vertex(vertex),
            Element::Edge(id) => {
                overlay.edges.contains_key(id)
                    || waiting.contains(id)
                    || truncated.contains(&id.label)
                    || [&id.source, &id.target].into_iter().any(has_vertex)
            }
        }
    }
}

/// Folds transactions; changes that fail are set aside.
async fn folded(applier: &mut Applier, transactions: &[Transaction]) -> Result<Folded, FeedError> {
    let mut aside = Aside { held: applier.state.held.clone(), ..Aside::default() };
    loop {
        let folded = applier.folded(transactions, &aside, &mut 0).await?;
        if folded.failures.is_empty() {
            return Ok(folded);
        }
        let failing = folded.failures.into_iter().map(|it| (it.origin, it.why));
        aside.failing.extend(failing);
    }
}

fn edge_at(keys: &EdgeKeys, edge_type: &EdgeTypeName, batch: &RecordBatch, row: usize) -> Option<(EdgeId, Properties)> {
    let end = |column: usize, label: &hoplake::Name| {
        let key = as_key(Value::at(batch.column(column), row))?;
        Some(VertexRef { label: label.clone(), key })
    };
    let source = end(0, &edge_type.source)?;
    let target = end(1, &edge_type.target)?;
    let properties = row_of(batch, row);
    Some((keys.name(&edge_type.label, source, target, &properties), properties))
}
