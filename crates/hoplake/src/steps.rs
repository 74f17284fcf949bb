//! A traversal that is built step by step, and reads like the text of its hops.

use std::mem::take;

use hoplake_engine::{
    Condition, Held, Walk,
    traversal::{Hop, HopDirection, Limits, VisitPolicy},
};

use crate::{Error, ErrorKind, Query, Rows, StartKey, TraversalAnswer, TraversalRequest};

/// A traversal under construction, from [`Query::from`]. Nothing is read before one of its last steps: [`Self::rows`], [`Self::count`],
/// [`Self::walks`] or [`Self::run`].
///
/// ```
/// # async fn example() -> Result<(), hoplake::Error> {
/// use hoplake::{Graph, LoadOptions};
///
/// # let folder = tempfile::tempdir().unwrap();
/// # let csv = folder.path().join("routes.csv");
/// # std::fs::write(&csv, "~from,~to,~label,dist:Int\na,b,route,800\nb,c,route,300\nb,d,route,900\n").unwrap();
/// hoplake::load("memory://docs/routes", LoadOptions::from_paths([csv])).await?;
/// let graph = Graph::open("memory://docs/routes").await?;
/// let mut query = graph.query();
/// let far = query.from("vertex:a")?.out("route").out("route").such_that("dist > 500")?;
/// assert_eq!(far.count().await?, 1);
///
/// let rows = query.from("vertex:a")?.hop("out:route[dist > 500]")?.both("route").rows::<&str>([]).await?;
/// assert_eq!(rows[0].batch.num_rows(), 3); // back at a, and on to c and d
/// # Ok(())
/// # }
/// # tokio::runtime::Runtime::new().unwrap().block_on(example()).unwrap();
/// ```
#[derive(Debug)]
#[must_use = "nothing is read before one of its last steps"]
pub struct Steps<'q> {
    query: &'q mut Query,
    request: TraversalRequest,
}

impl Query {
    /// Begins a traversal at a vertex, `airport:3`, or at all that match a condition, `airport[code = AUS]`.
    ///
    /// # Errors
    /// [`Invalid`](ErrorKind::Invalid) if the text is neither.
    pub fn from(&mut self, start: &str) -> Result<Steps<'_>, Error> {
        let request = TraversalRequest { starts: vec![start.parse::<StartKey>()?], ..TraversalRequest::default() };
        Ok(Steps { query: self, request })
    }
}

impl Steps<'_> {
    /// Begins at this vertex or these vertices, too.
    ///
    /// # Errors
    /// As [`Query::from`].
    pub fn and_from(mut self, start: &str) -> Result<Self, Error> {
        self.request.starts.push(start.parse()?);
        Ok(self)
    }

    /// Follows edges of a label from source to target.
    pub fn out(self, label: &str) -> Self {
        self.along(Hop::along(HopDirection::Out, label))
    }

    /// Follows edges of a label from target to source.
    pub fn against(self, label: &str) -> Self {
        self.along(Hop::along(HopDirection::In, label))
    }

    /// Follows edges of a label both ways.
    pub fn both(self, label: &str) -> Self {
        self.along(Hop::along(HopDirection::Both, label))
    }

    /// Follows a hop that is written as text, with any number of labels: `out:knows,likes[since > 2020]`.
    ///
    /// # Errors
    /// [`Invalid`](ErrorKind::Invalid) if the text is not a hop.
    pub fn hop(self, text: &str) -> Result<Self, Error> {
        Ok(self.along(text.parse()?))
    }

    /// Follows a hop.
    pub fn along(mut self, hop: Hop) -> Self {
        self.request.traversal.hops.push(hop);
        self
    }

    /// Follows only edges that match a condition, on the edge or the vertex reached, in the last hop so far.
    ///
    /// # Errors
    /// [`Invalid`](ErrorKind::Invalid) if the text is not a valid condition, or the traversal has no hop to put it on.
    pub fn such_that(mut self, condition: &str) -> Result<Self, Error> {
        let condition: Condition = condition.parse()?;
        let Some(hop) = self.request.traversal.hops.last_mut() else {
            let message = "a condition is on a hop: write one before it, or the condition into the start";
            return Err(Error::new(ErrorKind::Invalid, message));
        };
        *hop = take(hop).such_that(condition);
        Ok(self)
    }

    /// How often a vertex may appear; once at each depth unless it is set.
    pub fn visit(mut self, policy: VisitPolicy) -> Self {
        self.request.traversal.visit = policy;
        self
    }

    /// What ends it early.
    pub fn within(mut self, limits: Limits) -> Self {
        self.request.traversal.limits = limits;
        self
    }

    /// Fetches the properties of this many vertices at most.
    pub fn limit(mut self, most: usize) -> Self {
        self.request.limit = Some(most);
        self
    }

    /// The vertices reached, with their keys and these properties, a batch for each label.
    ///
    /// # Errors
    /// As [`Query::run`].
    pub async fn rows<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Result<Held<Vec<Rows>>, Error> {
        self.request.select = Some(names.into_iter().map(Into::into).collect());
        Ok(self.run().await?.rows)
    }

    /// How many vertices are reached.
    ///
    /// # Errors
    /// As [`Query::run`].
    pub async fn count(self) -> Result<u64, Error> {
        Ok(self.run().await?.reached.last().len() as u64)
    }

    /// The first walks, with their edges; [`Query::describe_walks`] has their keys and properties.
    ///
    /// # Errors
    /// As [`Query::start_vertices`] and [`Query::paths`].
    pub async fn walks(self, most: usize) -> Result<Held<Vec<Walk>>, Error> {
        let TraversalRequest { traversal, starts, .. } = &self.request;
        self.query.limit(&traversal.limits);
        let traversal = self.query.started(traversal, starts).await?;
        let Query { snapshot, branch, .. } = &mut *self.query;
        let mut paths = snapshot.paths(&traversal, Some(most), branch).await?.with_edges();
        drop(traversal);
        self.query.next_walks(&mut paths, most).await
    }

    /// The complete answer, without rows: the set at each depth, and what each hop cost.
    ///
    /// # Errors
    /// As [`Query::run`].
    pub async fn run(self) -> Result<TraversalAnswer, Error> {
        self.query.run(&self.request).await
    }
}
