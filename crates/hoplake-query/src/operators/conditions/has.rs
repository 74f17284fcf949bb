//! Elements whose property, id or label matches a predicate.

use std::collections::HashSet;

use super::keep;
use crate::{
    operators::prelude::*,
    plan::Test,
    run::{
        Element,
        elements::{elements, has_properties},
        properties::Wanted,
    },
    tokens::T,
    value::Unread,
};

/// Rows whose property, id or label matches a predicate.
#[derive(Debug, Clone, PartialEq)]
pub struct Has {
    /// What is tested.
    pub by: By,
    /// What it has to match.
    pub predicate: Arc<Predicate>,
}

impl Operator for Has {
    nested!(by);

    fn parameters(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, " {} {}", self.by, self.predicate)
    }

    fn reach(&self, reach: &mut Reach<'_>, input: Elements) -> Elements {
        reach.by(&self.by, input.clone());
        input
    }

    fn start(self: Arc<Self>) -> Running {
        PerBatch::running(self)
    }
}

impl Each for Has {
    async fn each(&self, run: &mut Run, batch: Batch) -> Done<Output> {
        match &self.by {
            By::Property(name) => run.has(batch, name, &self.predicate).await,
            By::Token(T::Id) => run.has_id(batch, &self.predicate).await,
            by => {
                let values = run.by(by, &batch).await?;
                let test = |at: usize, growth: &Growth| match &values[at] {
                    Some(value) => self.predicate.test(value, growth),
                    None => Ok(false),
                };
                let kept = run.tested(batch.len(), test).await?;
                Ok(keep(batch, |at| kept[at]))
            }
        }
    }
}

impl Run {
    async fn has(&mut self, batch: Batch, name: &Name, predicate: &Predicate) -> Done<Output> {
        let batch = without_edge_properties(batch);
        let read = self.read(elements(&batch), Wanted::Named(std::slice::from_ref(name))).await?;
        let matches = |at: usize, growth: &Growth| match has_properties(&batch, at)? {
            Some(element) => predicate.test_any(&read.values(element, name), growth),
            None => Ok(false),
        };
        let kept = self.tested(batch.len(), matches).await?;
        Ok(keep(batch, |at| kept[at]))
    }

    /// By identity where the predicate asks for certain ids: every form of an id is one then.
    async fn has_id(&mut self, batch: Batch, predicate: &Predicate) -> Done<Output> {
        let batch = without_edge_properties(batch);
        if let Predicate::Test(test @ (Test::Eq | Test::Neq | Test::Within | Test::Without), ids) = predicate {
            let vertices: HashSet<_> = self.vertices_of(ids).await?.into_iter().flatten().collect();
            let edges: HashSet<_> = self.edges_of(ids).await?.into_iter().flatten().map(|edge| edge.id()).collect();
            let wanted = matches!(test, Test::Eq | Test::Within);
            let is_one = |at: usize| match batch.items.element(at) {
                Some(Element::Vertex(vertex)) => vertices.contains(&vertex) == wanted,
                Some(Element::Edge(edge)) => edges.contains(&edge.id()) == wanted,
                None => false,
            };
            // A property of a vertex has an id, too.
            if (0..batch.len()).all(|at| batch.items.element(at).is_some()) {
                let kept: Vec<bool> = (0..batch.len()).map(is_one).collect();
                return Ok(keep(batch, |at| kept[at]));
            }
        }
        let ids = self.by_token(T::Id, &batch).await?;
        let test = |at: usize, growth: &Growth| match &ids[at] {
            Some(id) => predicate.test(id, growth),
            None => Ok(false),
        };
        let kept = self.tested(batch.len(), test).await?;
        Ok(keep(batch, |at| kept[at]))
    }
}

/// The rows that are not on a property of an edge, which matches no condition on a property or an id.
fn without_edge_properties(batch: Batch) -> Batch {
    let Items::Values(values) = &batch.items else { return batch };
    let is_one = |value: &Value| matches!(value, Value::Unread(unread) if matches!(**unread, Unread::Property(_)));
    let others: Vec<bool> = values.iter().map(|value| !is_one(value)).collect();
    batch.keep(|at| others[at])
}
