//! New edges.

use hoplake_format::VertexId;

use crate::{
    operators::prelude::*,
    plan::{End, NewProperty},
    run::{
        change::{NewValues, bytes_of, no_edge_ids},
        copies,
    },
    tokens::Pop,
    value::{kind_of, value_bytes},
};

/// A new edge for each row.
#[derive(Debug, Clone, PartialEq)]
pub struct AddEdge {
    /// Its label.
    pub label: Given,
    /// The vertex that it leaves.
    pub from: End,
    /// The vertex that it leads to.
    pub to: End,
    /// Its properties.
    pub properties: Vec<NewProperty>,
}

impl Operator for AddEdge {
    nested!(label, from, to, properties);

    fn parameters(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match &self.label {
            Given::Value(label) => write!(f, " {label}"),
            Given::Steps(_) => Ok(()),
        }
    }

    fn is_write(&self) -> bool {
        true
    }

    fn start(self: Arc<Self>) -> Running {
        AllInput::running(self)
    }
}

impl All for AddEdge {
    async fn all(&self, run: &mut Run, all: Batch, _: &Frames) -> Done<Output> {
        if all.is_empty() {
            return Ok(Output::Same(all));
        }
        run.add_edges(all, &self.label, [&self.from, &self.to], &self.properties).await
    }
}

impl Run {
    async fn add_edges(
        &mut self,
        batch: Batch,
        label: &Given,
        ends: [&End; 2],
        properties: &[NewProperty],
    ) -> Done<Output> {
        let given = self.given(label, &batch).await?;
        let new = self.new_values(properties, &batch).await?;
        let sources = self.ends_of(&batch, ends[0]).await?;
        let targets = self.ends_of(&batch, ends[1]).await?;
        let mut rows = Vec::new();
        let mut added = Vec::new();
        for (at, (label, new)) in given.into_iter().zip(&new).enumerate() {
            let label: Name = match (&new.label, label) {
                (Some(label), _) => label.clone(),
                (None, Some(Value::Text(label))) => (*label).into(),
                (None, Some(Value::Null)) => return Err(QueryError::wrong_type("Label can not be null")),
                _ => return Err(QueryError::wrong_type("the label of an edge is a text")),
            };
            if new.id.is_some() {
                return Err(no_edge_ids());
            }
            let bytes = size_of::<(u32, Name, VertexId, VertexId, NewValues)>() + bytes_of(&new.values);
            for _ in 0..copies(batch.rows[at].bulk)? {
                self.growth.take(bytes)?;
                self.pace.rest(1).await?;
                rows.push(at as u32);
                added.push((label.clone(), sources[at], targets[at], new.values.clone()));
            }
        }
        let edges = self.added_edges(added).await?;
        let mut batch = self.derived(&batch, &rows, Items::Edges(edges))?;
        batch.rows.iter_mut().for_each(|row| row.bulk = 1);
        Ok(Output::Next(batch))
    }

    /// An end of new edges, for each row.
    async fn ends_of(&mut self, batch: &Batch, end: &End) -> Done<Vec<VertexId>> {
        let values: Vec<Option<Value>> = match end {
            End::Here => self.own_values(batch)?,
            End::Labelled(label) => self.met(label, Pop::Last, batch).await?,
            End::Steps(steps) => self.firsts(steps, batch).await?,
            End::Vertex(value) => self.growth.copies(&Some(value.clone()), value_bytes(value), batch.len())?,
        };
        let values: Vec<Value> = values.into_iter().map(Option::unwrap_or_default).collect();
        let vertices = self.vertices_of(&values).await?;
        let found = vertices.iter().zip(&values).map(|(found, value)| match found.first() {
            Some(vertex) => Ok(*vertex),
            None => Err(QueryError::wrong_type(format!(
                "The value given to addE() must resolve to a Vertex or the ID of a Vertex present in the graph, and this is {}",
                kind_of(value)
            ))),
        });
        found.collect()
    }
}
