//! Queries: steps that depend on each other, and one cost meter for all of them.

use std::{mem::take, sync::Arc, time::Instant};

use arrow_array::RecordBatch;
use hoplake_engine::{
    Degree, Edges, EngineError, Expected, Frontier, Held, Neighbour, Snapshot, Walk,
    path::{FoundPath, PathQuery},
    traversal::{Hop, Limits, Paths, Reached, Traversal, WalkCount},
    weighted_path::{WeightedPath, WeightedPathQuery},
};
use hoplake_format::{EdgeId, Key, LabelId, VertexId};
use hoplake_storage::{Branch, Cost, MemoryBudget, QueryContext};

use crate::{Error, ErrorKind, StartKey};

/// A complete traversal, from keys to properties.
#[derive(Debug, Clone, Default)]
pub struct TraversalRequest {
    /// Where it starts.
    pub starts: Vec<StartKey>,
    /// The traversal; its own starts are added to those above.
    pub traversal: Traversal,
    /// Properties of the result to fetch, in addition to label and key; `None` fetches nothing, not even keys.
    pub select: Option<Vec<String>>,
    /// The most vertices to fetch properties of.
    pub limit: Option<usize>,
}

/// Vertices of one label with their keys (column `~key`) and properties.
#[derive(Debug, Clone, PartialEq)]
pub struct Rows {
    /// The label.
    pub label: String,
    /// One row a vertex.
    pub batch: RecordBatch,
}

/// Properties of edges of one type that were followed in one direction.
#[derive(Debug, Clone, PartialEq)]
pub struct EdgeRows {
    /// For each row, the position of its edge among those asked.
    pub positions: Vec<usize>,
    /// One row an edge.
    pub batch: RecordBatch,
}

/// The cost of one step of a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StepCost {
    /// What it cost.
    pub cost: Cost,
    /// Its duration in microseconds.
    pub time_us: u64,
}

/// The result of a complete traversal.
#[derive(Debug, Clone)]
pub struct TraversalAnswer {
    /// The sets by depth, and the cost of each hop.
    pub reached: Held<Reached>,
    /// The vertices of the last depth, by label and ordinal, up to the limit.
    pub rows: Held<Vec<Rows>>,
    /// The cost of the look-up of the start vertices, and of the metadata of properties.
    pub start_cost: StepCost,
    /// The cost of the keys and properties of the result.
    pub rows_cost: StepCost,
}

/// A query on one version of a graph. Each step depends on those before it; [`Query::cost`] is the cost of all of them.
#[derive(Debug)]
pub struct Query {
    pub(crate) snapshot: Arc<Snapshot>,
    /// What the next step depends on.
    pub(crate) branch: Branch,
    /// Reads that the next step does in parallel, for later ones.
    pub(crate) expected: Expected,
    /// How many vertices a scan may find.
    pub(crate) vertices_max: Option<u64>,
}

impl Query {
    pub(crate) fn new(snapshot: Arc<Snapshot>, context: QueryContext) -> Self {
        Self { snapshot, branch: context.branch(), expected: Expected::default(), vertices_max: None }
    }

    /// The memory that it holds and may hold. What is made of its answers is counted there, too.
    pub fn memory(&self) -> &MemoryBudget {
        self.branch.context().memory()
    }

    /// The query as its reads see it: what it has cost can be read there while a step runs.
    pub fn context(&self) -> &QueryContext {
        self.branch.context()
    }

    /// Ends the query at these limits from now on; the cost so far counts. Traversals and shortest paths bring limits
    /// of their own, which then apply; of a scan, the vertices that it finds count.
    pub fn limit(&mut self, limits: &Limits) {
        limits.apply(self.branch.context());
        self.vertices_max = limits.vertices_max;
    }

    /// The cost of the query so far.
    pub fn cost(&self) -> Cost {
        self.branch.context().cost()
    }

    /// The same in US dollars, for requests and bytes.
    pub fn cost_usd(&self) -> f64 {
        self.cost().usd(self.snapshot.reader().store().prices())
    }

    /// The label of vertices with this name.
    ///
    /// # Errors
    /// [`NotFound`](ErrorKind::NotFound), which names those that there are.
    pub fn label_id(&self, name: &str) -> Result<LabelId, Error> {
        let schema = self.snapshot.schema();
        schema.label_id(name).ok_or_else(|| {
            let known: Vec<_> = schema.vertex_labels.iter().map(|label| label.name.as_str()).collect();
            Error::new(
                ErrorKind::NotFound,
                format!("the graph has no vertex label {name:?}; it has {}", known.join(", ")),
            )
        })
    }

    /// The vertex with this label and key, if there is one. One wave.
    ///
    /// # Errors
    /// [`NotFound`](ErrorKind::NotFound) if the label does not exist, [`Invalid`](ErrorKind::Invalid) if the key
    /// is of the wrong type; the store's.
    pub async fn vertex(&mut self, label: &str, key: impl Into<Key>) -> Result<Option<VertexId>, Error> {
        Ok(self.vertices(&[(label, key.into())]).await?.pop().flatten())
    }

    /// The vertices with these labels and keys, in their order. One wave.
    ///
    /// # Errors
    /// As [`Self::vertex`].
    pub async fn vertices(&mut self, keys: &[(&str, Key)]) -> Result<Vec<Option<VertexId>>, Error> {
        let keys: Vec<_> =
            keys.iter().map(|(label, key)| Ok((self.label_id(label)?, key.clone()))).collect::<Result<_, Error>>()?;
        self.look_up(&keys).await
    }

    pub(crate) async fn look_up(&mut self, keys: &[(LabelId, Key)]) -> Result<Vec<Option<VertexId>>, Error> {
        self.step(async |snapshot, branch| snapshot.keys().look_up(keys, branch).await).await
    }

    /// Runs a step, and in parallel reads the metadata that later steps will need.
    async fn step<T>(
        &mut self,
        step: impl AsyncFnOnce(&Arc<Snapshot>, &mut Branch) -> Result<T, EngineError>,
    ) -> Result<T, Error> {
        // Once: what the step has read is known to all later steps.
        let expected = take(&mut self.expected);
        Ok(expected.alongside(&self.snapshot, &mut self.branch, step).await?)
    }

    /// The edges of a hop from these vertices, in the order of vertex, edge type, direction and
    /// position. One wave, and one more for a condition on properties.
    ///
    /// # Errors
    /// [`NotFound`](ErrorKind::NotFound) if the edge label does not exist;
    /// [`Invalid`](ErrorKind::Invalid) if a condition of the hop cannot be; the store's.
    pub async fn neighbors(&mut self, vertices: &[VertexId], hop: &Hop) -> Result<Held<Edges>, Error> {
        let frontier = self.set_of(vertices).await?;
        self.step(async |snapshot, branch| snapshot.adjacency().neighbours(&frontier, hop, branch).await).await
    }

    /// The first edges of [`Self::neighbors`], up to a limit, in the same order. One wave reads the first
    /// blocks of the hop, about 360 KiB on S3 Standard, and another one twice as many until there are enough edges: a few edges of
    /// a vertex with millions take one request. A hop with conditions reads in the same way, with two waves each time. Vertices with
    /// changes that were not compacted are read completely.
    ///
    /// # Errors
    /// As [`Self::neighbors`].
    pub async fn first_neighbors(
        &mut self,
        vertices: &[VertexId],
        hop: &Hop,
        limit: usize,
    ) -> Result<Held<Edges>, Error> {
        let frontier = self.set_of(vertices).await?;
        self.step(async |snapshot, branch| snapshot.adjacency().first_neighbours(&frontier, hop, limit, branch).await)
            .await
    }

    /// The edges with these ids ([`Neighbour::id`]), in their order, as seen from their sources. One wave, which reads
    /// all edges of these types that the sources have.
    ///
    /// # Errors
    /// The store's.
    pub async fn edges(&mut self, ids: &[EdgeId]) -> Result<Vec<Option<Neighbour>>, Error> {
        self.step(async |snapshot, branch| snapshot.adjacency().edges(ids, branch).await).await
    }

    /// How many edges of a hop each of these vertices has, in the order of vertices. One wave.
    ///
    /// # Errors
    /// As [`Self::neighbors`].
    pub async fn degrees(&mut self, vertices: &[VertexId], hop: &Hop) -> Result<Held<Vec<Degree>>, Error> {
        let frontier = self.set_of(vertices).await?;
        Ok(self.snapshot.adjacency().degrees(&frontier, hop, &mut self.branch).await?)
    }

    /// The set of some vertices, in any order and with repeats. No request.
    ///
    /// # Errors
    /// [`Limit`](ErrorKind::Limit) if the query has no memory for it.
    pub async fn set_of(&self, vertices: &[VertexId]) -> Result<Held<Frontier>, Error> {
        Ok(Frontier::held(vertices, self.branch.context()).await?)
    }

    /// The keys of a set, in its order. One wave, after one that each label's first use takes unless it was expected
    /// ([`Self::expect_rows`]).
    ///
    /// # Errors
    /// The store's.
    pub async fn keys(&mut self, vertices: &Frontier) -> Result<Held<Vec<Key>>, Error> {
        let _memory = self.context().hold((vertices.len() * size_of::<VertexId>()) as u64)?;
        let vertices: Vec<_> = vertices.vertices().collect();
        self.keys_of(&vertices).await
    }

    /// The keys of vertices, in their order.
    ///
    /// # Errors
    /// The store's.
    pub async fn keys_of(&mut self, vertices: &[VertexId]) -> Result<Held<Vec<Key>>, Error> {
        let keys = self.snapshot.keys().of(vertices, &mut self.branch).await?;
        let bytes = keys.iter().map(key_bytes).sum();
        Ok(Held::counted(keys, bytes, self.branch.context())?)
    }

    /// Keys and properties of a set, a batch for each label. One wave, after one that each label's first
    /// use takes unless it was expected ([`Self::expect_rows`]).
    ///
    /// # Errors
    /// [`NotFound`](ErrorKind::NotFound) if no label has a property of that name; the store's.
    pub async fn properties(&mut self, vertices: &Frontier, names: &[String]) -> Result<Held<Vec<Rows>>, Error> {
        let batches = self.snapshot.properties().of_frontier(vertices, names, &mut self.branch).await?;
        let bytes = batches.iter().map(|(_, batch)| batch.get_array_memory_size() as u64).sum();
        let rows = batches.into_iter().map(|(label, batch)| Rows { label: self.label_name(label), batch }).collect();
        Ok(Held::counted(rows, bytes, self.branch.context())?)
    }

    /// Properties of edges: one batch for each edge type and direction in which they were followed.
    ///
    /// # Errors
    /// The store's.
    pub async fn edge_properties(&mut self, edges: &Edges, names: &[String]) -> Result<Held<Vec<EdgeRows>>, Error> {
        let batches = self.snapshot.properties().of_edges(edges, names, &mut self.branch).await?;
        let bytes =
            |(positions, batch): &(Vec<usize>, RecordBatch)| positions.len() * 8 + batch.get_array_memory_size();
        let bytes = batches.iter().map(|rows| bytes(rows) as u64).sum();
        let rows = batches.into_iter().map(|(positions, batch)| EdgeRows { positions, batch }).collect();
        Ok(Held::counted(rows, bytes, self.branch.context())?)
    }

    pub(crate) fn label_name(&self, label: LabelId) -> String {
        self.snapshot.schema().label(label).map_or_else(String::new, |label| label.name.clone())
    }

    /// The name of a vertex's label.
    pub fn label_of(&self, vertex: VertexId) -> String {
        self.label_name(vertex.label())
    }

    /// Runs a traversal. One wave a hop breadth-first.
    ///
    /// # Errors
    /// [`Limit`](ErrorKind::Limit) if it reached one; [`Invalid`](ErrorKind::Invalid) if its parts contradict each
    /// other; the store's.
    pub async fn traverse(&mut self, traversal: Traversal) -> Result<Held<Reached>, Error> {
        self.step(async |snapshot, branch| snapshot.traverse(&traversal, branch).await).await
    }

    /// The walks of a traversal, one by one, read on demand: `wanted` of them, if that is known. Nothing is read before
    /// the first is requested, unless vertices are to be visited once. [`Paths::with_edges`] gives walks their edges, and
    /// [`Self::describe_walks`] keys and properties.
    ///
    /// # Errors
    /// As [`Self::traverse`].
    pub async fn paths(&mut self, traversal: Traversal, wanted: Option<usize>) -> Result<Paths, Error> {
        Ok(self.snapshot.paths(&traversal, wanted, &mut self.branch).await?)
    }

    /// The next walks, `most` of them or those that are left.
    ///
    /// # Errors
    /// As [`Self::traverse`].
    pub async fn next_walks(&mut self, paths: &mut Paths, most: usize) -> Result<Held<Vec<Walk>>, Error> {
        self.step(async |_, branch| {
            let context = branch.context();
            let mut walks: Vec<Walk> = Vec::new();
            let mut memory = context.hold(0)?;
            while walks.len() < most
                && let Some(walk) = paths.next().await?
            {
                let bytes = memory.bytes() + walk.bytes();
                if context.resize(&mut memory, bytes).is_err() {
                    // Lists that were read for later walks make room for the current ones.
                    paths.drop_lists();
                    context.resize(&mut memory, bytes)?;
                }
                walks.push(walk);
            }
            branch.join([paths.branch()]);
            Ok(Held::new(walks, memory))
        })
        .await
    }

    /// How many walks a traversal has, without keeping one. Takes the waves of the traversal.
    ///
    /// # Errors
    /// As [`Self::traverse`].
    pub async fn count_walks(&mut self, traversal: Traversal) -> Result<WalkCount, Error> {
        Ok(self.snapshot.count_walks(&traversal, &mut self.branch).await?)
    }

    /// Runs a traversal from starts to properties: the look-up of keys (and the search by conditions), the hops, and one wave for
    /// the properties of the result, because their metadata is read in parallel with the look-up.
    ///
    /// # Errors
    /// As [`Self::start_vertices`], [`Self::traverse`] and [`Self::properties`].
    pub async fn run(&mut self, request: &TraversalRequest) -> Result<TraversalAnswer, Error> {
        let select = request.select.as_deref();
        let begun = Instant::now();
        let before = self.cost();
        request.traversal.limits.apply(self.branch.context());
        // A misspelt property is an error before anything is read, not after the traversal.
        self.snapshot.properties().fields(select.unwrap_or_default())?;
        if select.is_some() {
            let ids = request.traversal.starts.iter().map(|vertex| vertex.label());
            let named = self.label_ids(request.starts.iter().map(StartKey::label));
            let starts: Vec<_> = named.into_iter().chain(ids).collect();
            self.expect_rows_at_end(&starts, &request.traversal.hops);
        }
        let traversal = self.started(&request.traversal, &request.starts).await?;
        let start_cost = self.step_since(begun, &before);
        let reached = self.step(async |snapshot, branch| snapshot.traverse(&traversal, branch).await).await?;
        drop(traversal);
        let begun = Instant::now();
        let before = self.cost();
        let mut rows = Held::default();
        if let Some(select) = select {
            let limit = request.limit.unwrap_or(usize::MAX);
            let wanted: Frontier = reached.last().vertices().take(limit).collect();
            rows = self.properties(&wanted, select).await?;
        }
        let rows_cost = self.step_since(begun, &before);
        Ok(TraversalAnswer { reached, rows, start_cost, rows_cost })
    }

    fn step_since(&self, begun: Instant, before: &Cost) -> StepCost {
        StepCost { cost: self.cost().since(before), time_us: begun.elapsed().as_micros() as u64 }
    }

    /// A shortest path by number of edges, or whether there is none at all or none within the length.
    ///
    /// # Errors
    /// As [`Self::traverse`].
    pub async fn shortest_path(&mut self, query: PathQuery) -> Result<FoundPath, Error> {
        self.step(async |snapshot, branch| snapshot.shortest_path(&query, branch).await).await
    }

    /// A shortest path by the weights of its edges, searched from both ends; `None` if there is none.
    ///
    /// ```
    /// # async fn example() -> Result<(), hoplake::Error> {
    /// use hoplake::{Graph, Limits, WeightedPathQuery};
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let csv = folder.path().join("road.csv");
    /// # std::fs::write(&csv, "source,target,weight\n1,2,9\n1,3,2\n3,2,4\n").unwrap();
    /// # hoplake::load("memory://docs/weighted-path", hoplake::LoadOptions::from_paths([csv])).await?;
    ///
    /// let graph = Graph::open("memory://docs/weighted-path").await?;
    /// let mut query = graph.query();
    /// let label = graph.schema().vertex_labels[0].name.clone();
    /// let ends = query.named(&[format!("{label}:1").parse()?, format!("{label}:2").parse()?]).await?;
    /// let [from, to] = [ends[0], ends[1]];
    /// let hop = "out".parse()?;
    /// let weight = "weight".into();
    /// let limits = Limits::default();
    /// let wanted = WeightedPathQuery { from, to, hop, weight, edges: true, length_max: None, limits };
    /// let path = query.weighted_path(wanted).await?.expect("there is a road");
    /// assert_eq!(path.length, 6.0);
    /// assert_eq!(query.keys_of(&path.walk.vertices).await?[..], [1.into(), 3.into(), 2.into()]);
    /// # Ok(())
    /// # }
    /// # tokio::runtime::Runtime::new().unwrap().block_on(example()).unwrap();
    /// ```
    ///
    /// # Errors
    /// [`Invalid`](ErrorKind::Invalid) if an edge that the search reaches, which the error names, has no weight or a negative one;
    /// otherwise as [`Self::traverse`].
    pub async fn weighted_path(&mut self, query: WeightedPathQuery) -> Result<Option<WeightedPath>, Error> {
        self.step(async |snapshot, branch| snapshot.weighted_path(&query, branch).await).await
    }

    /// The vertices within some hops of others: the sets by distance, each vertex once.
    ///
    /// # Errors
    /// As [`Self::traverse`].
    pub async fn neighborhood(&mut self, starts: &[VertexId], hop: &Hop, depth: usize) -> Result<Held<Reached>, Error> {
        Ok(self.snapshot.neighbourhood(starts, hop, depth, 1, &mut self.branch).await?)
    }
}

/// The memory of a key.
pub(crate) fn key_bytes(key: &Key) -> u64 {
    let text = if let Key::String(text) = key { text.capacity() } else { 0 };
    (size_of::<Key>() + text) as u64
}
