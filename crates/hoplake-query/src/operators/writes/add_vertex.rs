//! New vertices.

use crate::{
    operators::prelude::*,
    plan::NewProperty,
    run::{change::NewVertex, copies},
};

/// A new vertex for each row.
#[derive(Debug, Clone, PartialEq)]
pub struct AddVertex {
    /// Its label.
    pub label: Given,
    /// Its properties.
    pub properties: Vec<NewProperty>,
}

impl Operator for AddVertex {
    nested!(label, properties);

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

impl All for AddVertex {
    async fn all(&self, run: &mut Run, all: Batch, _: &Frames) -> Done<Output> {
        if all.is_empty() {
            return Ok(Output::Same(all));
        }
        run.add_vertices(all, &self.label, &self.properties).await
    }
}

impl Run {
    async fn add_vertices(&mut self, batch: Batch, label: &Given, properties: &[NewProperty]) -> Done<Output> {
        let given = self.given(label, &batch).await?;
        let mut new = self.new_values(properties, &batch).await?;
        let bulks = batch.rows.iter().map(|row| copies(row.bulk));
        let count = bulks.sum::<Done<usize>>()?;
        self.growth.take(count.saturating_mul(size_of::<u32>() + size_of::<&NewVertex>()))?;
        let places: Vec<u32> =
            (0u32..).zip(&batch.rows).flat_map(|(at, row)| std::iter::repeat_n(at, row.bulk as usize)).collect();
        for (new, label) in new.iter_mut().zip(given) {
            match label {
                Some(Value::Text(label)) if new.label.is_none() => new.label = Some((*label).into()),
                Some(Value::Text(_)) => {}
                Some(Value::Null) => return Err(QueryError::wrong_type("Label can not be null")),
                _ => return Err(QueryError::wrong_type("the label of a vertex is a text")),
            }
        }
        let new: Vec<&NewVertex> = places.iter().map(|place| &new[*place as usize]).collect();
        let vertices = self.added_vertices(&new).await?;
        let mut added = self.derived(&batch, &places, Items::Vertices(vertices))?;
        added.rows.iter_mut().for_each(|row| row.bulk = 1);
        Ok(Output::Next(added))
    }
}
