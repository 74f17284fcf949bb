//! To the ends of an edge.

use crate::{
    operators::prelude::*,
    run::{Element, batch::element_of, by::not_an_edge},
    tokens::Direction,
};

/// To an end of an edge, or to both.
#[derive(Debug, Clone, PartialEq)]
pub struct Ends {
    /// Out is the vertex that the edge leaves.
    pub direction: Direction,
}

impl Operator for Ends {
    fn reach(&self, reach: &mut Reach<'_>, input: Elements) -> Elements {
        reach.ends(&input)
    }

    fn start(self: Arc<Self>) -> Running {
        PerBatch::running(self)
    }
}

impl Each for Ends {
    async fn each(&self, run: &mut Run, batch: Batch) -> Done<Output> {
        let mut parents = run.growth.column(batch.len() * 2)?;
        let mut vertices = run.growth.column(batch.len() * 2)?;
        for at in 0..batch.len() {
            let Some(Element::Edge(edge)) = batch.items.element(at) else {
                return Err(not_an_edge(&batch.items.get(at)));
            };
            let id = edge.id();
            let ends: &[_] = match self.direction {
                Direction::Out => &[id.source],
                Direction::In => &[id.target],
                Direction::Both => &[id.source, id.target],
            };
            vertices.extend(ends);
            parents.extend(ends.iter().map(|_| at as u32));
        }
        run.derived(&batch, &parents, Items::Vertices(vertices)).map(Output::Next)
    }
}

/// To the end of an edge that the traverser did not come from.
#[derive(Debug, Clone, PartialEq)]
pub struct OtherEnd;

impl Operator for OtherEnd {
    fn reach(&self, reach: &mut Reach<'_>, input: Elements) -> Elements {
        reach.ends(&input)
    }

    fn start(self: Arc<Self>) -> Running {
        PerBatch::running(self)
    }
}

impl Each for OtherEnd {
    async fn each(&self, run: &mut Run, batch: Batch) -> Done<Output> {
        let end = |value: &Value| match element_of(value) {
            Some(Element::Edge(edge)) => Ok(Some(edge.to.into())),
            _ => Err(not_an_edge(value)),
        };
        run.each_value(batch, end).await
    }
}
