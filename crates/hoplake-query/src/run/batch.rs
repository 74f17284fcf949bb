//! Batches of traversers, as columns.

use std::{borrow::Cow, collections::HashMap};

use foldhash::fast::RandomState;
use hoplake_engine::Neighbour;
use hoplake_format::VertexId;
use hoplake_storage::MemoryHold;

use super::paths::NO_PATH;
use crate::{
    error::Done,
    growth::Growth,
    value::{ELEMENT_BYTES, Unread, Value, value_bytes},
};

/// Traversers of a batch, at most, where a step can divide what it gives.
pub(crate) const ROWS_MAX: usize = 1 << 16;

/// Some traversers.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    /// Where they are.
    pub(crate) items: Items,
    /// What else there is of each.
    pub(crate) rows: Vec<Row>,
    /// What each carries, if the query has sacks.
    pub(crate) sacks: Option<Vec<Value>>,
    /// The memory that counts for it.
    pub(crate) hold: Option<MemoryHold>,
}

/// Where traversers are.
#[derive(Debug, Clone)]
pub(crate) enum Items {
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
pub(crate) struct Row {
    /// How many equal traversers it is.
    pub(crate) bulk: u64,
    /// Within another traversal, which of its traversers it came from.
    pub(crate) frame: u32,
    /// The last node of its path.
    pub(crate) path: u32,
}

/// An element of the graph.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Element {
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
pub(crate) fn element_of(value: &Value) -> Option<Element> {
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
    pub(crate) fn of_values(values: Vec<Value>) -> Self {
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

    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Nowhere(count) => *count,
            Self::Vertices(vertices) => vertices.len(),
            Self::Edges(edges) => edges.len(),
            Self::Values(values) => values.len(),
        }
    }

    /// The value at a place, to look at.
    pub(crate) fn get(&self, at: usize) -> Cow<'_, Value> {
        match self {
            Self::Nowhere(_) => Cow::Owned(Value::Null),
            Self::Vertices(vertices) => Cow::Owned(vertices[at].into()),
            Self::Edges(edges) => Cow::Owned(edges[at].into()),
            Self::Values(values) => Cow::Borrowed(&values[at]),
        }
    }

    /// A copy of the value at a place.
    pub(crate) fn copy(&self, at: usize, growth: &Growth) -> Done<Value> {
        match self.get(at) {
            Cow::Owned(value) => growth.built(value),
            Cow::Borrowed(value) => growth.copy(value),
        }
    }

    /// Copies of all values.
    pub(crate) fn copies(&self, growth: &Growth) -> Done<Vec<Value>> {
        (0..self.len()).map(|at| self.copy(at, growth)).collect()
    }

    pub(crate) fn element(&self, at: usize) -> Option<Element> {
        match self {
            Self::Nowhere(_) => None,
            Self::Vertices(vertices) => Some(Element::Vertex(vertices[at])),
            Self::Edges(edges) => Some(Element::Edge(edges[at])),
            Self::Values(values) => element_of(&values[at]),
        }
    }

    pub(crate) fn into_values(self, growth: &Growth) -> Done<Vec<Value>> {
        Ok(match self {
            Self::Nowhere(count) => growth.copies(&Value::Null, 0, count)?,
            Self::Vertices(vertices) => {
                growth.take(vertices.len() * ELEMENT_BYTES)?;
                vertices.into_iter().map(Value::from).collect()
            }
            Self::Edges(edges) => {
                growth.take(edges.len() * ELEMENT_BYTES)?;
                edges.into_iter().map(Value::from).collect()
            }
            Self::Values(values) => values,
        })
    }

    /// Those at some places, in their order.
    pub(crate) fn take(&self, places: &[u32], growth: &Growth) -> Done<Self> {
        fn taken<T: Copy>(items: &[T], places: &[u32], growth: &Growth) -> Done<Vec<T>> {
            let mut taken = growth.column(places.len())?;
            taken.extend(places.iter().map(|place| items[*place as usize]));
            Ok(taken)
        }
        Ok(match self {
            Self::Nowhere(_) => Self::Nowhere(places.len()),
            Self::Vertices(vertices) => Self::Vertices(taken(vertices, places, growth)?),
            Self::Edges(edges) => Self::Edges(taken(edges, places, growth)?),
            Self::Values(values) => Self::Values(growth.copy_all(places.iter().map(|place| &values[*place as usize]))?),
        })
    }

    /// Those from a place on, which it has no longer.
    fn split_off(&mut self, at: usize) -> Self {
        match self {
            Self::Nowhere(count) => Self::Nowhere(std::mem::replace(count, at) - at),
            Self::Vertices(vertices) => Self::Vertices(vertices.split_off(at)),
            Self::Edges(edges) => Self::Edges(edges.split_off(at)),
            Self::Values(values) => Self::Values(values.split_off(at)),
        }
    }

    /// Those whose flag is set.
    fn kept(self, keep: &[bool]) -> Self {
        fn kept<T>(mut items: Vec<T>, keep: &[bool]) -> Vec<T> {
            let mut keep = keep.iter();
            items.retain(|_| keep.next().is_some_and(|keep| *keep));
            items
        }
        match self {
            Self::Nowhere(_) => Self::Nowhere(keep.iter().filter(|keep| **keep).count()),
            Self::Vertices(vertices) => Self::Vertices(kept(vertices, keep)),
            Self::Edges(edges) => Self::Edges(kept(edges, keep)),
            Self::Values(values) => Self::Values(kept(values, keep)),
        }
    }

    /// The item at a place, as items.
    pub(super) fn one(&self, at: usize) -> Self {
        match self {
            Self::Nowhere(_) => Self::Nowhere(1),
            Self::Vertices(vertices) => Self::Vertices(vec![vertices[at]]),
            Self::Edges(edges) => Self::Edges(vec![edges[at]]),
            Self::Values(values) => Self::Values(vec![values[at].clone()]),
        }
    }

    /// Adds items of the same type; gives others back.
    pub(super) fn extend(&mut self, more: Self) -> Result<(), Self> {
        match (self, more) {
            (Self::Nowhere(count), Self::Nowhere(more)) => *count += more,
            (Self::Vertices(vertices), Self::Vertices(more)) => vertices.extend(more),
            (Self::Edges(edges), Self::Edges(more)) => edges.extend(more),
            (Self::Values(values), Self::Values(more)) => values.extend(more),
            (_, more) => return Err(more),
        }
        Ok(())
    }

    fn append(&mut self, more: Self, growth: &Growth) -> Done<()> {
        if self.len() == 0 {
            *self = more;
        } else if let Err(more) = self.extend(more)
            && more.len() > 0
        {
            let mut values = std::mem::take(self).into_values(growth)?;
            values.extend(more.into_values(growth)?);
            *self = Self::Values(values);
        }
        Ok(())
    }

    pub(crate) fn bytes(&self) -> u64 {
        let bytes = match self {
            Self::Nowhere(_) => 0,
            Self::Vertices(vertices) => size_of_val(&vertices[..]),
            Self::Edges(edges) => size_of_val(&edges[..]),
            Self::Values(values) => values.iter().map(value_bytes).sum(),
        };
        bytes as u64
    }
}

impl Batch {
    /// Which of some frames have rows.
    pub(crate) fn frames(&self, count: usize) -> Vec<bool> {
        let mut have = vec![false; count];
        self.rows.iter().for_each(|row| have[row.frame as usize] = true);
        have
    }

    /// The only traverser there is before the first step.
    pub(crate) fn start(sack: Option<Value>) -> Self {
        Self {
            items: Items::Nowhere(1),
            rows: vec![Row { bulk: 1, frame: 0, path: NO_PATH }],
            sacks: sack.map(|sack| vec![sack]),
            hold: None,
        }
    }

    /// The same rows on other items.
    pub(crate) fn on(self, items: Items) -> Self {
        Self { items, ..self }
    }

    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// What it takes.
    pub(crate) fn bytes(&self) -> u64 {
        let sacks: usize = self.sacks.iter().flatten().map(value_bytes).sum();
        self.items.bytes() + size_of_val(&self.rows[..]) as u64 + sacks as u64
    }

    /// The traversers at some places, in their order and perhaps several times.
    pub(crate) fn take(&self, places: &[u32], growth: &Growth) -> Done<Self> {
        Ok(Self { items: self.items.take(places, growth)?, ..self.take_rows(places, growth)? })
    }

    /// As [`Self::take`], for other items.
    pub(crate) fn take_rows(&self, places: &[u32], growth: &Growth) -> Done<Self> {
        let mut rows = growth.column(places.len())?;
        rows.extend(places.iter().map(|place| self.rows[*place as usize]));
        let sacks = match &self.sacks {
            Some(sacks) => Some(growth.copy_all(places.iter().map(|place| &sacks[*place as usize]))?),
            None => None,
        };
        Ok(Self { items: Items::default(), rows, sacks, hold: None })
    }

    /// Those for which `keep` is true.
    pub(crate) fn keep(mut self, keep: impl FnMut(usize) -> bool) -> Self {
        let keep: Vec<bool> = (0..self.len()).map(keep).collect();
        if keep.iter().all(|keep| *keep) {
            return self;
        }
        self.items = self.items.kept(&keep);
        let mut rows = keep.iter();
        self.rows.retain(|_| rows.next().is_some_and(|keep| *keep));
        if let Some(sacks) = &mut self.sacks {
            let mut rows = keep.iter();
            sacks.retain(|_| rows.next().is_some_and(|keep| *keep));
        }
        self
    }

    pub(crate) fn append(&mut self, more: Self, growth: &Growth) -> Done<()> {
        if self.is_empty() {
            *self = more;
            return Ok(());
        }
        self.items.append(more.items, growth)?;
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
        Ok(())
    }

    /// In parts of [`ROWS_MAX`] rows at most.
    pub(crate) fn parts(mut self, growth: &Growth) -> Done<Vec<Self>> {
        if self.len() > ROWS_MAX {
            growth.take(self.len() * (size_of::<Value>() * 2 + size_of::<Row>()))?;
        }
        let mut parts = Vec::with_capacity(self.len() / ROWS_MAX + 1);
        // From the end: what is split off is a part, and nothing is copied twice.
        while self.len() > ROWS_MAX {
            let begin = (self.len() - 1) / ROWS_MAX * ROWS_MAX;
            let items = self.items.split_off(begin);
            let rows = self.rows.split_off(begin);
            let sacks = self.sacks.as_mut().map(|sacks| sacks.split_off(begin));
            parts.push(Self { items, rows, sacks, hold: None });
        }
        parts.push(self);
        parts.reverse();
        Ok(parts)
    }

    /// Equal traversers become one, if nothing but their number tells them apart.
    pub(crate) fn merged(mut self, growth: &Growth) -> Done<Self> {
        let Items::Vertices(vertices) = &self.items else { return Ok(self) };
        if self.len() < 2 || self.sacks.is_some() {
            return Ok(self);
        }
        growth.take(self.len() * size_of::<((VertexId, u32, u32), usize, u32, u64)>() * 2)?;
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
            return Ok(self);
        }
        let mut merged = self.take(&kept, growth)?;
        merged.rows.iter_mut().zip(bulks).for_each(|(row, bulk)| row.bulk = bulk);
        merged.hold = self.hold.take();
        Ok(merged)
    }
}
