//! Along edges.

use std::{collections::HashMap, ops::Range};

use foldhash::fast::RandomState;
use hoplake_engine::{Edges, Frontier, Held};
use hoplake_format::VertexId;

use super::{Followed, HopConditions};
use crate::{
    operators::prelude::*,
    plan::Reaches,
    run::{Element, Pipe, ROWS_MAX},
    tokens::Direction,
    value::kind_of,
};

/// Along edges, to the vertices at their other ends, or to the edges themselves.
#[derive(Debug, Clone, PartialEq)]
pub struct Hop {
    /// Which way edges are followed.
    pub direction: Direction,
    /// The labels of edges; none means all.
    pub labels: Vec<Name>,
    /// What it leads to.
    pub reaches: Reaches,
}

impl Hop {
    /// The direction and the labels, as `explain` shows them.
    pub(crate) fn write(f: &mut Formatter<'_>, direction: Direction, labels: &[Name]) -> fmt::Result {
        write!(f, " {}", direction.name().to_lowercase())?;
        if labels.is_empty() { Ok(()) } else { write!(f, " {}", labels.join(", ")) }
    }
}

impl Operator for Hop {
    fn parameters(&self, f: &mut Formatter<'_>) -> fmt::Result {
        Self::write(f, self.direction, &self.labels)?;
        f.write_str(if self.reaches == Reaches::Edges { " to edges" } else { " to vertices" })
    }

    fn reach(&self, reach: &mut Reach<'_>, input: Elements) -> Elements {
        reach.hop(&input, self.direction, &self.labels, self.reaches)
    }

    fn start(self: Arc<Self>) -> Running {
        Running::new(Hopping::new(Self::clone(&self), HopConditions::default()))
    }
}

/// The run of a hop.
#[derive(Debug)]
pub(super) struct Hopping {
    hop: Hop,
    conditions: HopConditions,
    followed: Option<Arc<Followed>>,
    expansion: Option<Box<Expansion>>,
}

impl Hopping {
    pub(super) fn new(hop: Hop, conditions: HopConditions) -> Self {
        Self { hop, conditions, followed: None, expansion: None }
    }
}

impl Stage for Hopping {
    fn input<'a>(&'a mut self, run: &'a mut Run, batch: Batch, _: &'a mut Vec<Output>) -> BoxFuture<'a, Done<()>> {
        Box::pin(async move {
            let followed = run.followed(&mut self.followed, &self.hop, &self.conditions)?;
            self.expansion = run.hop(batch, followed).await?.map(Box::new);
            Ok(())
        })
    }

    fn poll<'a>(&'a mut self, run: &'a mut Run, out: &'a mut Vec<Output>) -> BoxFuture<'a, Done<()>> {
        Box::pin(async move {
            if let Some(expansion) = &mut self.expansion {
                match expansion.next(run).await? {
                    Some(batch) => out.push(Output::Next(batch)),
                    None => self.expansion = None,
                }
            }
            Ok(())
        })
    }
}

/// Edges that were read for a batch, and how far they were handed out.
#[derive(Debug)]
pub(crate) struct Expansion {
    batch: Batch,
    edges: Held<Edges>,
    /// Which of the edges leave a vertex.
    of: HashMap<VertexId, Range<usize>, RandomState>,
    followed: Arc<Followed>,
    /// The row whose edges come next, and which of them.
    at: (usize, usize),
}

impl Expansion {
    /// Those of the next rows that match the conditions, perhaps none; `None` when all were given.
    pub(crate) async fn next(&mut self, run: &mut Run) -> Done<Option<Batch>> {
        match self.next_followed(run)? {
            Some(batch) => run.after(&self.followed.left, batch).await.map(Some),
            None => Ok(None),
        }
    }

    fn next_followed(&mut self, run: &mut Run) -> Done<Option<Batch>> {
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
        let items = match self.followed.reaches {
            Reaches::Vertices => {
                let targets = self.edges.targets();
                Items::Vertices(places.into_iter().flat_map(|part| targets[part].iter().copied()).collect())
            }
            Reaches::Edges => Items::Edges(places.into_iter().flat_map(|part| self.edges.slice(part)).collect()),
        };
        run.derived(&self.batch, &parents, items).map(Some)
    }
}

impl Run {
    /// Reads the edges of a hop from the vertices of a batch.
    pub(crate) async fn hop(&mut self, batch: Batch, followed: Arc<Followed>) -> Done<Option<Expansion>> {
        let batch = as_vertices(batch, "a hop")?.merged(&self.growth)?;
        let Items::Vertices(vertices) = &batch.items else { return Ok(None) };
        let Some(along) = &followed.along else { return Ok(None) };
        let frontier = Frontier::held(vertices, self.branch.context()).await?;
        let edges = self.snapshot.adjacency().neighbours(&frontier, along, &mut self.branch).await?;
        let mut of: HashMap<VertexId, Range<usize>, RandomState> = HashMap::default();
        let mut begin = 0;
        for list in edges.lists() {
            let end = begin + list.targets.len();
            of.entry(list.from).or_insert(begin..begin).end = end;
            begin = end;
        }
        Ok(Some(Expansion { batch, edges, of, followed, at: (0, 0) }))
    }

    /// What steps that keep nothing between batches make of a batch.
    pub(crate) async fn after(&mut self, steps: &Steps, batch: Batch) -> Done<Batch> {
        if steps.is_empty() || batch.is_empty() {
            return Ok(batch);
        }
        let mut pipe = Pipe::new(steps);
        pipe.feed(batch);
        self.drain_boxed(&mut pipe).await
    }
}

/// A batch whose rows are all on vertices.
pub(crate) fn as_vertices(mut batch: Batch, what: &str) -> Done<Batch> {
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
