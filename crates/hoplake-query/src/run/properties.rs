//! Properties that were read of elements, and what is kept of them for later steps.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use arrow_array::{RecordBatch, cast::AsArray};
use foldhash::fast::RandomState;
use hoplake_engine::{Snapshot, change};
use hoplake_format::{EdgeId, Key, LogicalType, VertexId, constants::KEY_COLUMN};
use hoplake_storage::MemoryHold;

use super::{batch::Element, stored};
use crate::{plan::Name, value::Value};

/// Which properties are read.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Wanted<'a> {
    /// All.
    All,
    /// Those of some names; none reads keys alone.
    Named(&'a [Name]),
}

/// The names that are wanted, with their places among them; `None` if all are.
pub(crate) type Places<'a> = Option<HashMap<&'a str, usize, RandomState>>;

impl<'a> Wanted<'a> {
    /// For a step to look names up, for each of its elements.
    pub(crate) fn places(self) -> Places<'a> {
        let Wanted::Named(names) = self else { return None };
        // Of one that is there twice, the first place counts.
        Some(names.iter().enumerate().rev().map(|(at, name)| (&**name, at)).collect())
    }
}

/// The names of a batch's columns, and what their values are beyond their types.
pub(super) type Logical = Vec<(Name, LogicalType)>;

/// Properties that were read.
#[derive(Debug, Default)]
pub(crate) struct Properties {
    pub(super) batches: Vec<(RecordBatch, Logical)>,
    pub(super) vertices: HashMap<VertexId, (u32, u32), RandomState>,
    pub(super) edges: HashMap<EdgeId, (u32, u32), RandomState>,
}

impl Properties {
    /// Whether an element was read.
    pub(crate) fn has(&self, element: Element) -> bool {
        self.place(element).is_some()
    }

    /// The memory that they take.
    pub(crate) fn bytes(&self) -> u64 {
        let columns: usize = self.batches.iter().map(|(batch, _)| batch.get_array_memory_size()).sum();
        let places = self.vertices.capacity() * size_of::<(VertexId, (u32, u32))>()
            + self.edges.capacity() * size_of::<(EdgeId, (u32, u32))>();
        (columns + places) as u64
    }

    fn place(&self, element: Element) -> Option<(&(RecordBatch, Logical), usize)> {
        let (batch, row) = match element {
            Element::Vertex(vertex) => self.vertices.get(&vertex)?,
            Element::Edge(edge) => self.edges.get(&edge.id())?,
        };
        Some((&self.batches[*batch as usize], *row as usize))
    }

    /// The values of a property; several where it has a list of them.
    pub(crate) fn values(&self, element: Element, name: &str) -> Vec<Value> {
        let Some(((batch, logical), row)) = self.place(element) else { return Vec::new() };
        match logical.iter().position(|(other, _)| **other == *name) {
            Some(at) => stored::values(element, change::Value::at(batch.column(at), row), logical[at].1),
            None => Vec::new(),
        }
    }

    /// The first value of a property.
    pub(crate) fn first(&self, element: Element, name: &str) -> Option<Value> {
        self.values(element, name).into_iter().next()
    }

    /// All properties of an element that were read, by name in the order of the schema, or of the names.
    pub(crate) fn all(&self, element: Element, places: &Places<'_>) -> Vec<(&str, Vec<Value>)> {
        let Some(((batch, logical), row)) = self.place(element) else { return Vec::new() };
        let is_wanted = |name: &str| name != KEY_COLUMN && places.as_ref().is_none_or(|all| all.contains_key(name));
        let columns = logical.iter().zip(batch.columns()).filter(|((name, _), _)| is_wanted(name));
        let mut all: Vec<(&str, Vec<Value>)> = columns
            .map(|((name, logical), column)| {
                (&**name, stored::values(element, change::Value::at(column, row), *logical))
            })
            .filter(|(_, values)| !values.is_empty())
            .collect();
        if let Some(places) = places {
            all.sort_by_key(|(name, _)| places.get(name));
        }
        all
    }

    /// Calls `give` with the name, value and number of each property of an element, in the order of the schema.
    pub(super) fn each(&self, element: Element, give: &mut impl FnMut(&Name, Value, u32)) {
        let Some(((batch, logical), row)) = self.place(element) else { return };
        for ((name, logical), column) in logical.iter().zip(batch.columns()) {
            if **name != *KEY_COLUMN {
                let mut number = 0;
                stored::each(element, change::Value::at(column, row), *logical, |value| {
                    give(name, value, number);
                    number += 1;
                });
            }
        }
    }

    /// The key of a vertex.
    pub(super) fn key(&self, vertex: VertexId) -> Option<Key> {
        let ((batch, _), row) = self.place(Element::Vertex(vertex))?;
        key_at(batch, row)
    }
}

/// The key in a row of a batch of vertices.
pub(super) fn key_at(batch: &RecordBatch, row: usize) -> Option<Key> {
    let column = batch.column_by_name(KEY_COLUMN)?;
    if let Some(texts) = column.as_string_opt::<i32>() {
        return Some(Key::String(texts.value(row).to_owned()));
    }
    let numbers = column.as_primitive_opt::<arrow_array::types::Int64Type>()?;
    Some(Key::Int64(numbers.value(row)))
}

/// Properties that were read for later steps, too.
#[derive(Debug, Clone)]
pub(crate) struct Kept {
    /// What the graph was then.
    pub(super) snapshot: Arc<Snapshot>,
    /// Which were read; `None` if all were.
    pub(super) names: Option<HashSet<Name>>,
    pub(super) properties: Arc<Properties>,
    pub(super) _hold: Arc<MemoryHold>,
}

impl Kept {
    /// The properties, if all that is wanted of some elements is among them.
    pub(crate) fn of(
        &self,
        snapshot: &Arc<Snapshot>,
        elements: &[Element],
        wanted: Wanted<'_>,
    ) -> Option<Arc<Properties>> {
        let has_names = match (&self.names, wanted) {
            (None, _) => true,
            (Some(_), Wanted::All) => false,
            (Some(names), Wanted::Named(wanted)) => wanted.iter().all(|name| names.contains(name)),
        };
        let is_same = has_names && Arc::ptr_eq(snapshot, &self.snapshot);
        (is_same && elements.iter().all(|element| self.properties.has(*element))).then(|| self.properties.clone())
    }
}
