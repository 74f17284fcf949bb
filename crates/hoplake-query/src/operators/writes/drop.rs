//! Deletes.

use std::collections::{BTreeMap, HashMap, HashSet};

use hoplake_engine::{
    Neighbour,
    change::{self, LogicalTypes, Name as EngineName, Operation, Properties, VertexRef},
};
use hoplake_format::VertexId;

use crate::{
    growth::units_of,
    operators::prelude::*,
    run::{
        Element,
        change::{gone, name_bytes, not_an_element},
        kept::distinct,
        properties::Wanted,
        to_stored::to_stored,
    },
    value::{Unread, value_bytes},
};

/// Deletes the elements and properties that come.
#[derive(Debug, Clone, PartialEq)]
pub struct Drop;

impl Operator for Drop {
    fn is_write(&self) -> bool {
        true
    }

    fn start(self: Arc<Self>) -> Running {
        AllInput::running(self)
    }
}

impl All for Drop {
    async fn all(&self, run: &mut Run, all: Batch, _: &Frames) -> Done<Output> {
        if all.is_empty() {
            return Ok(Output::Same(all));
        }
        run.drop_elements(all).await
    }
}

/// What is dropped, in tables and lists.
const DROPPED_BYTES: usize = 3 * size_of::<(Neighbour, Name)>();

impl Run {
    async fn drop_elements(&mut self, batch: Batch) -> Done<Output> {
        let mut vertices: HashSet<VertexId> = HashSet::new();
        let mut edges: HashMap<_, Neighbour> = HashMap::new();
        // Values of vertices' properties that go, by place.
        let mut values: BTreeMap<(VertexId, Name), HashSet<u32>> = BTreeMap::new();
        let mut of_edges: Vec<(Neighbour, Name)> = Vec::new();
        for at in 0..batch.len() {
            match batch.items.copy(at, &self.growth)? {
                Value::Unread(element) => {
                    self.growth.take(DROPPED_BYTES)?;
                    self.pace.rest(units_of(DROPPED_BYTES)).await?;
                    match *element {
                        Unread::Vertex(vertex) => drop(vertices.insert(vertex)),
                        Unread::Edge(edge) => drop(edges.insert(edge.id(), edge)),
                        Unread::VertexProperty(property) => {
                            values.entry((property.element, property.key)).or_default().insert(property.number);
                        }
                        Unread::Property(property) => of_edges.push((property.element, property.key)),
                    }
                }
                other => return Err(not_an_element(&other)),
            }
        }
        let ends = edges.values().chain(of_edges.iter().map(|(edge, _)| edge)).flat_map(|edge| [edge.from, edge.to]);
        let count = vertices.len() + 2 * (edges.len() + of_edges.len()) + values.len();
        let mut all = self.growth.column(count)?;
        all.extend(vertices.iter().copied().chain(ends).chain(values.keys().map(|(vertex, _)| *vertex)));
        let named = self.names_of(all).await?;
        let name_of = |vertex: &VertexId| named.get(vertex).cloned().ok_or_else(|| gone("the vertex"));
        let bytes_of_name = |vertex: &VertexId| named.get(vertex).map_or(0, name_bytes);
        let bytes_of_ends = |edge: &Neighbour| bytes_of_name(&edge.from) + bytes_of_name(&edge.to);
        let mut operations = Vec::new();
        let names = distinct(values.keys().map(|(_, key)| key));
        let read = self.read(values.keys().map(|(vertex, _)| Element::Vertex(*vertex)), Wanted::Named(&names)).await?;
        // Until the operations are applied, which counts them again.
        let mark = self.growth.begin();
        for ((vertex, key), numbers) in values {
            let before = read.values(Element::Vertex(vertex), &key);
            let left = before.into_iter().zip(0u32..).filter(|(_, number)| !numbers.contains(number));
            let left: Vec<Value> = left.map(|(value, _)| value).collect();
            let left_bytes = left.iter().map(value_bytes).sum::<usize>();
            self.changes_one(bytes_of_name(&vertex), key.len() + left_bytes).await?;
            let value = if left.is_empty() { change::Value::Null } else { to_stored(&key, &Value::List(left))? };
            let properties = [(EngineName::from(&*key), value)].into_iter().collect();
            operations.push(Operation::UpsertVertex { vertex: name_of(&vertex)?, properties, replace: false });
        }
        let edit = |run: &Self, edge: &Neighbour, properties: Option<Properties>| -> Done<Operation> {
            let id = edge.id();
            Ok(Operation::EditEdge {
                label: run.edge_label_of(edge).into(),
                source: name_of(&id.source)?,
                target: name_of(&id.target)?,
                number: Some(id.parallel),
                properties,
                replace: false,
            })
        };
        for (edge, key) in &of_edges {
            let label_bytes = self.edge_label_of(edge).len();
            self.changes_one(bytes_of_ends(edge) + label_bytes, key.len()).await?;
            let properties = [(EngineName::from(&**key), change::Value::Null)].into_iter().collect();
            operations.push(edit(self, edge, Some(properties))?);
        }
        // From the last of each pair on, or those before would change the numbers of those behind.
        let mut edges: Vec<Neighbour> = edges.into_values().collect();
        edges.sort_unstable_by_key(|edge| std::cmp::Reverse(edge.id()));
        for edge in &edges {
            let id = edge.id();
            if !vertices.contains(&id.source) && !vertices.contains(&id.target) {
                let label_bytes = self.edge_label_of(edge).len();
                self.changes_one(bytes_of_ends(edge) + label_bytes, 0).await?;
                operations.push(edit(self, edge, None)?);
            }
        }
        let mut gone: HashSet<VertexRef> = HashSet::new();
        let mut gone_bytes = 0;
        for vertex in vertices.iter().filter_map(|vertex| named.get(vertex)) {
            self.changes_one(name_bytes(vertex), 0).await?;
            gone_bytes += 2 * size_of::<VertexRef>() + name_bytes(vertex);
            gone.insert(vertex.clone());
            operations.push(Operation::DeleteVertex { vertex: vertex.clone() });
        }
        self.growth.end(&mark)?;
        self.growth.take(gone_bytes)?;
        self.apply(operations, LogicalTypes::default()).await?;
        // In a batch vertices come before edges: an edge of a vertex that goes would have no end.
        let stays = |operation: &Operation| match operation {
            Operation::EditEdge { source, target, .. } => !gone.contains(source) && !gone.contains(target),
            _ => true,
        };
        for operations in &mut self.changes.operations {
            self.growth.work(operations.len() as u64)?;
            if !gone.is_empty() && !operations.iter().all(stays) {
                Arc::make_mut(operations).retain(stays);
            }
        }
        Ok(Output::Same(Batch::default()))
    }
}
