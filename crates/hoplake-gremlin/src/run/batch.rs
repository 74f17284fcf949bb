//! Batches of traversers, as columns.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use hoplake_engine::Neighbour;
use hoplake_format::VertexId;
use hoplake_storage::MemoryHold;

use super::paths::NO_PATH;
use crate::value::{Edge, Property, Unread, Value, Vertex, VertexProperty};

/// Traversers of a batch, at most, where a step can divide what it gives.
pub(super) const ROWS_MAX: usize = 1 << 16;

/// Some traversers.
#[derive(Debug, Default)]
pub(super) struct Batch {
    /// Where they are.
    pub(super) items: Items,
    /// What else there is of each.
    pub(super) rows: Vec<Row>,
    /// What each carries, if the query has sacks.
    pub(super) sacks: Option<Vec<Value>>,
    /// The memory that counts for it.
    pub(super) hold: Option<MemoryHold>,
}

/// Where traversers are.
#[derive(Debug, Clone)]
pub(super) enum Items {
    /// Nowhere yet: before the first step.
    Nowhere(usize),
    /// On vertices.
    Vertices(Vec<VertexId>),
    /// On edges.
    Edges(Vec<Neighbour>),
    /// On values of any type.
    Values(Vec<Value>),
}

impl Default for Items {
    fn default() -> Self {
        Self::Values(Vec::new())
    }
}

/// A traverser, but for where it is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Row {
    /// How many equal traversers it is.
    pub(super) bulk: u64,
    /// Within another traversal, which of its traversers it came from.
    pub(super) frame: u32,
    /// The last node of its path.
    pub(super) path: u32,
}

/// An element of the graph.
#[derive(Debug, Clone, Copy)]
pub(super) enum Element {
    Vertex(VertexId),
    Edge(Neighbour),
}

impl From<Element> for Value {
    fn from(element: Element) -> Self {
        match element {
            Element::Vertex(vertex) => vertex.into(),
            Element::Edge(edge) => edge.into(),
        }
    }
}

/// The element that a value is.
pub(super) fn element_of(value: &Value) -> Option<Element> {
    match value {
        Value::Unread(element) => match **element {
            Unread::Vertex(vertex) => Some(Element::Vertex(vertex)),
            Unread::Edge(edge) => Some(Element::Edge(edge)),
            _ => None,
        },
        _ => None,
    }
}

impl Items {
    /// Values, by their common type if they have one.
    pub(super) fn of_values(values: Vec<Value>) -> Self {
        let vertex = |value: &Value| match element_of(value) {
            Some(Element::Vertex(vertex)) => Some(vertex),
            _ => None,
        };
        let edge = |value: &Value| match element_of(value) {
            Some(Element::Edge(edge)) => Some(edge),
            _ => None,
        };
        match values.first().and_then(element_of) {
            Some(Element::Vertex(_)) if values.iter().all(|value| vertex(value).is_some()) => {
                Self::Vertices(values.iter().filter_map(vertex).collect())
            }
            Some(Element::Edge(_)) if values.iter().all(|value| edge(value).is_some()) => {
                Self::Edges(values.iter().filter_map(edge).collect())
            }
            _ => Self::Values(values),
        }
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Self::Nowhere(count) => *count,
            Self::Vertices(vertices) => vertices.len(),
            Self::Edges(edges) => edges.len(),
            Self::Values(values) => values.len(),
        }
    }

    pub(super) fn value(&self, at: usize) -> Value {
        match self {
            Self::Nowhere(_) => Value::Null,
            Self::Vertices(vertices) => vertices[at].into(),
            Self::Edges(edges) => edges[at].into(),
            Self::Values(values) => values[at].clone(),
        }
    }

    pub(super) fn element(&self, at: usize) -> Option<Element> {
        match self {
            Self::Nowhere(_) => None,
            Self::Vertices(vertices) => Some(Element::Vertex(vertices[at])),
            Self::Edges(edges) => Some(Element::Edge(edges[at])),
            Self::Values(values) => element_of(&values[at]),
        }
    }

    pub(super) fn into_values(self) -> Vec<Value> {
        match self {
            Self::Nowhere(count) => vec![Value::Null; count],
            Self::Vertices(vertices) => vertices.into_iter().map(Value::from).collect(),
            Self::Edges(edges) => edges.into_iter().map(Value::from).collect(),
            Self::Values(values) => values,
        }
    }

    /// Those at some places, in their order.
    fn take(&self, places: &[u32]) -> Self {
        fn taken<T: Clone>(items: &[T], places: &[u32]) -> Vec<T> {
            places.iter().map(|place| items[*place as usize].clone()).collect()
        }
        match self {
            Self::Nowhere(_) => Self::Nowhere(places.len()),
            Self::Vertices(vertices) => Self::Vertices(taken(vertices, places)),
            Self::Edges(edges) => Self::Edges(taken(edges, places)),
            Self::Values(values) => Self::Values(taken(values, places)),
        }
    }

    fn append(&mut self, more: Self) {
        if self.len() == 0 {
            *self = more;
            return;
        }
        match (&mut *self, more) {
            (Self::Nowhere(count), Self::Nowhere(more)) => *count += more,
            (Self::Vertices(vertices), Self::Vertices(more)) => vertices.extend(more),
            (Self::Edges(edges), Self::Edges(more)) => edges.extend(more),
            (_, more) if more.len() == 0 => {}
            (before, more) => {
                let mut values = std::mem::take(before).into_values();
                values.extend(more.into_values());
                *self = Self::Values(values);
            }
        }
    }

    fn bytes(&self) -> u64 {
        let bytes = match self {
            Self::Nowhere(_) => 0,
            Self::Vertices(vertices) => size_of_val(&vertices[..]),
            Self::Edges(edges) => size_of_val(&edges[..]),
            Self::Values(values) => values.iter().map(value_bytes).sum(),
        };
        bytes as u64
    }
}

/// What a value takes, with all that it has within.
pub fn value_bytes(value: &Value) -> usize {
    let all = |values: &[Value]| values.iter().map(value_bytes).sum::<usize>();
    let plain = |properties: &Option<Vec<Property>>| properties.iter().flatten().map(property_bytes).sum::<usize>();
    size_of::<Value>()
        + match value {
            Value::Text(text) => text.len(),
            Value::Bytes(bytes) => bytes.len(),
            Value::List(items) | Value::Set(items) => all(items),
            Value::BulkSet(items) => items.iter().map(|(item, _)| value_bytes(item) + 8).sum(),
            Value::Map(entries) => entries.iter().map(|(key, value)| value_bytes(key) + value_bytes(value)).sum(),
            Value::Entry(entry) => value_bytes(&entry.0) + value_bytes(&entry.1),
            Value::Path(path) => {
                path.steps.iter().map(|(item, labels)| value_bytes(item) + labels.len() * size_of::<Box<str>>()).sum()
            }
            Value::Tree(tree) => tree_bytes(tree),
            Value::Graph(graph) => all(&graph.vertices) + all(&graph.edges),
            Value::Unread(_) => size_of::<Unread>(),
            Value::Vertex(vertex) => {
                let properties = vertex.properties.iter().flatten().map(vertex_property_bytes).sum::<usize>();
                size_of::<Vertex>() + value_bytes(&vertex.id) + vertex.label.len() + properties
            }
            Value::Edge(edge) => {
                let ends = [&edge.out_vertex, &edge.in_vertex].map(|(id, label)| value_bytes(id) + label.len());
                let own = value_bytes(&edge.id) + edge.label.len() + plain(&edge.properties);
                size_of::<Edge>() + own + ends[0] + ends[1]
            }
            Value::VertexProperty(property) => vertex_property_bytes(property),
            Value::Property(property) => property_bytes(property),
            Value::Traverser(traverser) => value_bytes(&traverser.value),
            _ => 0,
        }
}

fn property_bytes(property: &Property) -> usize {
    size_of::<Property>() + property.key.len() + value_bytes(&property.value)
}

fn vertex_property_bytes(property: &VertexProperty) -> usize {
    let properties = property.properties.iter().flatten().map(property_bytes).sum::<usize>();
    let own = value_bytes(&property.id) + property.key.len() + value_bytes(&property.value);
    size_of::<VertexProperty>() + own + properties
}

fn tree_bytes(tree: &crate::value::Tree) -> usize {
    tree.branches.iter().map(|(item, below)| value_bytes(item) + tree_bytes(below)).sum()
}

impl Batch {
    /// Which of some frames have rows.
    pub(super) fn frames(&self, count: usize) -> Vec<bool> {
        let mut have = vec![false; count];
        self.rows.iter().for_each(|row| have[row.frame as usize] = true);
        have
    }

    /// The only traverser there is before the first step.
    pub(super) fn start(sack: Option<Value>) -> Self {
        Self {
            items: Items::Nowhere(1),
            rows: vec![Row { bulk: 1, frame: 0, path: NO_PATH }],
            sacks: sack.map(|sack| vec![sack]),
            hold: None,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// What it takes.
    pub(super) fn bytes(&self) -> u64 {
        let sacks: usize = self.sacks.iter().flatten().map(value_bytes).sum();
        self.items.bytes() + size_of_val(&self.rows[..]) as u64 + sacks as u64
    }

    /// The traversers at some places, in their order and perhaps several times.
    pub(super) fn take(&self, places: &[u32]) -> Self {
        Self { items: self.items.take(places), ..self.take_rows(places) }
    }

    /// As [`Self::take`], for other items.
    pub(super) fn take_rows(&self, places: &[u32]) -> Self {
        let rows = places.iter().map(|place| self.rows[*place as usize]).collect();
        let sacks =
            self.sacks.as_ref().map(|sacks| places.iter().map(|place| sacks[*place as usize].clone()).collect());
        Self { items: Items::default(), rows, sacks, hold: None }
    }

    /// Those for which `keep` is true.
    pub(super) fn keep(self, keep: impl Fn(usize) -> bool) -> Self {
        let places: Vec<u32> = (0..self.len()).filter(|at| keep(*at)).map(|at| at as u32).collect();
        if places.len() == self.len() {
            return self;
        }
        self.take(&places)
    }

    pub(super) fn append(&mut self, more: Self) {
        if self.is_empty() {
            *self = more;
            return;
        }
        self.items.append(more.items);
        self.rows.extend(more.rows);
        match (&mut self.sacks, more.sacks) {
            (Some(sacks), Some(more)) => sacks.extend(more),
            (sacks, _) => *sacks = None,
        }
        if let Some(more) = more.hold {
            match &mut self.hold {
                Some(hold) => hold.join(more),
                hold => *hold = Some(more),
            }
        }
    }

    /// In parts of [`ROWS_MAX`] rows at most.
    pub(super) fn parts(self) -> Vec<Self> {
        if self.len() <= ROWS_MAX {
            return vec![self];
        }
        let places: Vec<u32> = (0..self.len() as u32).collect();
        places.chunks(ROWS_MAX).map(|places| self.take(places)).collect()
    }

    /// Equal traversers become one, if nothing but their number tells them apart.
    pub(super) fn merged(self) -> Self {
        let Items::Vertices(vertices) = &self.items else { return self };
        if self.len() < 2 || self.sacks.is_some() {
            return self;
        }
        let mut places: HashMap<(VertexId, u32, u32), usize, RandomState> = HashMap::default();
        let mut kept: Vec<u32> = Vec::new();
        let mut bulks: Vec<u64> = Vec::new();
        for (at, (vertex, row)) in vertices.iter().zip(&self.rows).enumerate() {
            let place = *places.entry((*vertex, row.frame, row.path)).or_insert(kept.len());
            match bulks.get_mut(place) {
                Some(bulk) => *bulk = bulk.saturating_add(row.bulk),
                None => {
                    kept.push(at as u32);
                    bulks.push(row.bulk);
                }
            }
        }
        if kept.len() == self.len() {
            return self;
        }
        let mut merged = self.take(&kept);
        merged.rows.iter_mut().zip(bulks).for_each(|(row, bulk)| row.bulk = bulk);
        merged.hold = self.hold;
        merged
    }
}
