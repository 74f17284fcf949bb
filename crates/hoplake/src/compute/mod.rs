//! Whole-graph computations: algorithms that come with Hoplake, and vertex programs of one's own.
//!
//! ```
//! # async fn example() -> Result<(), hoplake::Error> {
//! use hoplake::{Graph, compute::{Algorithm, ComputeOptions, PageRankSettings}};
//! # let folder = tempfile::tempdir().unwrap();
//! # let csv = folder.path().join("knows.csv");
//! # std::fs::write(&csv, "1,2\n2,3\n3,2\n").unwrap();
//! # hoplake::load("memory://docs/compute", hoplake::LoadOptions::from_paths([csv])).await?;
//!
//! let graph = Graph::open("memory://docs/compute").await?;
//! let mut query = graph.query();
//! let ranks = query.compute(&Algorithm::PageRank(PageRankSettings::default()), &ComputeOptions::default(), |_| ()).await?;
//! let [first, ..] = query.top(&ranks.into(), 1).await?[..] else { panic!("it has vertices") };
//! assert_eq!(query.keys_of(&[first]).await?[..], [2.into()]);
//! # Ok(())
//! # }
//! # tokio::runtime::Runtime::new().unwrap().block_on(example()).unwrap();
//! ```

mod computed;
mod kernels;
mod key_order;
mod named;
#[cfg(test)]
mod order_tests;
mod states;

use std::{path::PathBuf, sync::Arc, time::Duration};

use arrow_schema::DataType;
use hoplake_analytics::{
    AsyncSettings, Checkpoint, Lists, Packed, Progress, RunError, RunSettings, Topology, kernels::count_triangles,
    programs, run, run_asynchronously,
};
use hoplake_engine::{DenseIds, EngineError, Held, traversal::HopDirection};
use hoplake_format::{LabelId, VertexId};
use hoplake_storage::{MemoryHold, QueryContext};

pub use computed::Computed;
use computed::Values;
pub use hoplake_analytics::{
    Edge, Selection, Step, Value as StateValue, Vertex, VertexProgram, Waiting, Workers,
    kernels::PageRankSettings,
    registry,
    stores::{CachePolicy, StateStore, StoreBytes, StoreError},
};
pub use named::{Computation, usual_hop};
#[cfg(feature = "documents")]
pub use states::DocumentSettings;
pub use states::{States, StatesCache};

use crate::{Error, ErrorKind, Query, StartKey};

/// Computations that come with Hoplake. More may follow.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Algorithm {
    /// PageRank: ranks that add up to 1.
    PageRank(PageRankSettings),
    /// PageRank as seen from some vertices: what is not passed on along edges goes to these.
    PersonalisedPageRank {
        /// How it is computed.
        settings: PageRankSettings,
        /// The vertices. One that is there twice counts once.
        sources: Vec<StartKey>,
    },
    /// Connected components, whichever way edges point: vertices with the same number are in one. It is the place of the first of
    /// them among all by label and key.
    Components,
    /// Strongly connected components: vertices of one reach each other. They are numbered as components are.
    StrongComponents,
    /// The number of edges of a shortest path from a vertex.
    Levels {
        /// The vertex.
        start: StartKey,
    },
    /// The length of a shortest path from a vertex, by a property of edges; without one, as [`Self::Levels`]. Infinity where there
    /// is no path.
    ShortestPaths {
        /// The vertex.
        start: StartKey,
        /// An int64 or float64 that every selected edge has, 0 or more.
        weight: Option<String>,
    },
    /// Communities by label propagation, as LDBC Graphalytics has it: vertices with the same number are in one. Labels are vertices at
    /// first, and of several equally frequent ones the first by label and key is taken.
    Communities {
        /// How many times labels are passed on.
        iterations: usize,
    },
    /// The number of edges of each vertex along the selection.
    Degrees,
    /// The local clustering coefficient, as LDBC Graphalytics has it: from 0 to 1.
    Clustering,
    /// The greatest k for which a vertex is in a k-core, whichever way edges point.
    CoreNumbers,
    /// Closeness centrality, as networkx has it, of all vertices or of a sample.
    Closeness {
        /// Vertices of which it is computed; all without one.
        sample: Option<Sample>,
    },
    /// Betweenness centrality, not normalised; an estimate if shortest paths of a sample are counted. Followed in both directions, a
    /// pair of ends counts once.
    Betweenness {
        /// Vertices whose shortest paths are counted; all without one.
        sample: Option<Sample>,
    },
    /// How similar other vertices are to one, by the Jaccard similarity of their sets of neighbours along the selection: above 0, and
    /// at most 1. Those that share no neighbour with it have no value.
    Similarity {
        /// The vertex.
        start: StartKey,
    },
}

impl Algorithm {
    /// What the registry says about it.
    pub fn spec(&self) -> &'static registry::AlgorithmSpec {
        let name = match self {
            Self::PageRank(_) | Self::PersonalisedPageRank { .. } => "pagerank",
            Self::Components => "components",
            Self::StrongComponents => "strong-components",
            Self::Levels { .. } => "levels",
            Self::ShortestPaths { .. } => "paths",
            Self::Communities { .. } => "communities",
            Self::Degrees => "degrees",
            Self::Clustering => "clustering",
            Self::CoreNumbers => "cores",
            Self::Closeness { .. } => "closeness",
            Self::Betweenness { .. } => "betweenness",
            Self::Similarity { .. } => "similarity",
        };
        registry::find(name).expect("the registry has every variant")
    }

    /// What its values are called.
    pub fn name(&self) -> &'static str {
        self.spec().value.unwrap_or_default()
    }

    /// The type of its values.
    pub fn value_type(&self) -> DataType {
        match self.spec().value_type {
            registry::ValueType::Integer => DataType::Int64,
            registry::ValueType::Float => DataType::Float64,
        }
    }

    /// Whether it has no program, so that its lists are in memory.
    fn is_kernel_alone(&self) -> bool {
        !self.spec().has_program()
    }

    /// The options of its computation: it may decide on directions and weights.
    fn applied_to(&self, options: &ComputeOptions) -> ComputeOptions {
        let mut options = options.clone();
        if let Self::Components | Self::CoreNumbers = self {
            options.selection.hop.direction = HopDirection::Both;
        }
        if let Self::ShortestPaths { weight, .. } = self {
            options.selection.weight = weight.clone();
        }
        options.selection.reversed = options.selection.hop.direction != HopDirection::Both;
        options
    }

    /// Why it is not computed asynchronously, if it is not.
    fn synchronous_alone(&self) -> Option<&'static str> {
        if self.is_kernel_alone() { Some("it has no vertex program") } else { self.spec().synchronous }
    }

    /// The vertices that it names.
    fn starts(&self) -> &[StartKey] {
        match self {
            Self::PersonalisedPageRank { sources, .. } => sources,
            Self::Levels { start } | Self::ShortestPaths { start, .. } | Self::Similarity { start } => {
                std::slice::from_ref(start)
            }
            _ => &[],
        }
    }
}

/// Vertices drawn at random, of all by label and key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// How many; all vertices if there are no more.
    pub count: usize,
    /// The same seed draws the same ones, however the graph was loaded.
    pub seed: u64,
}

/// Where the lists of the selection are while a computation runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Placement {
    /// In memory if they fit the budget, otherwise streamed, or packed where they cannot be streamed.
    #[default]
    Automatic,
    /// In memory, decoded.
    Memory,
    /// As they are stored: in less memory, in none if the files of the graph are mapped, and decoded each time that they are read. Lists
    /// with weights cannot be packed, nor those of what is computed by a program.
    Packed,
    /// Read from the store again in each superstep: memory is for states and signals alone.
    Streamed,
}

/// How a computation runs, and on which part of the graph.
#[derive(Debug, Clone, Default)]
pub struct ComputeOptions {
    /// The part of the graph. Without edge labels all edges take part.
    pub selection: Selection,
    /// Where lists are.
    pub placement: Placement,
    /// Where states are, if a program runs: lists in memory are for kernels, which keep their own.
    pub states: States,
    /// A cache above states that are not in memory; none unless it is set.
    pub states_cache: Option<StatesCache>,
    /// The threads that compute.
    pub workers: Workers,
    /// A file for states, from which a computation that was killed goes on. A kernel has none, so that supersteps are run also
    /// where lists are in memory.
    pub checkpoint: Option<CheckpointFile>,
    /// Has those vertices collect that have reason to, and not all of them in supersteps; no checkpoints.
    pub asynchronous: Option<Asynchronous>,
}

/// How an asynchronous computation chooses the vertices that collect.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Asynchronous {
    /// The least sum of scores that is a reason to collect; with 0 any score above 0.
    pub threshold: f64,
    /// How many steps a vertex that has a reason waits at most while others have greater ones.
    pub staleness_max: usize,
    /// The computation ends with the step in which vertices have collected as often; no bound if there is none, but for PageRank
    /// the number of its iterations times that of vertices.
    pub collections_max: Option<u64>,
}

impl Default for Asynchronous {
    fn default() -> Self {
        let AsyncSettings { threshold, staleness_max, collections_max, workers: _ } = AsyncSettings::default();
        Self { threshold, staleness_max, collections_max }
    }
}

/// A file into which a computation writes its states now and then. If it is there, the computation goes on from it, to the same
/// result; a file of another computation, another selection or another version of a graph is refused. It stays: remove it when the
/// result is safe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckpointFile {
    /// The file, and next to it a partial one with `.partial` behind its name.
    pub path: PathBuf,
    /// The least time between two of them.
    pub every: Duration,
}

/// Memory for a computation whose query has no limit of its own, which decides whether lists fit.
pub const COMPUTE_MEMORY_BYTES: u64 = 2 << 30;

/// How far a computation has come.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct ComputeProgress {
    /// The superstep or iteration that has just ended, or the step of an asynchronous computation.
    pub superstep: usize,
    /// How many vertices it changed.
    pub changed: u64,
    /// By how much it changed all ranks in sum; of PageRank in supersteps alone.
    pub residual: Option<f64>,
    /// How many times vertices have collected.
    pub collections: u64,
    /// What waits to collect, in an asynchronous computation.
    pub waiting: Option<Waiting>,
}

/// What a computation takes, by the counts of the version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ComputeNeeds {
    /// The vertices that take part, with those that were deleted.
    pub vertices: u64,
    /// The memory without which it cannot run, in bytes: for its lists and the arrays of a kernel, or for states and signals if it may
    /// stream its lists.
    pub memory_bytes: u64,
    /// Bytes of its result, at most.
    pub result_bytes: u64,
}

/// What a program of one's own left: the state of each vertex.
pub struct ProgramStates<S> {
    /// The dense ids of the vertices.
    pub ids: Arc<DenseIds>,
    /// Their states, by dense id.
    pub states: Arc<dyn StateStore<S>>,
    /// Ids of deleted vertices, ascending.
    pub deleted: Vec<u32>,
    /// How many supersteps or steps it took.
    pub supersteps: usize,
    /// How many times vertices have collected.
    pub collections: u64,
    /// What the store has in memory.
    memory: MemoryHold,
}

impl From<RunError> for Error {
    fn from(error: RunError) -> Self {
        match error {
            RunError::Graph(error) => error.into(),
            RunError::States(error) => error.into(),
            refused @ (RunError::Checkpoint { .. } | RunError::Part(_)) => {
                Self::new(ErrorKind::Invalid, refused.to_string())
            }
        }
    }
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        Self::new(ErrorKind::Unavailable, format!("states: {error}"))
    }
}

impl Query {
    /// Computes a value for each vertex of a selection. `observe` gets the progress of each superstep, if there are any.
    ///
    /// Lists that fit the memory of the query, or [`COMPUTE_MEMORY_BYTES`] if it has no limit, are loaded once; otherwise they are
    /// streamed in each superstep. Results are the same but for the last bits of floats.
    ///
    /// # Errors
    /// [`NotFound`](ErrorKind::NotFound) if the graph lacks a label or the start vertex, [`Invalid`](ErrorKind::Invalid) if the hop has
    /// conditions, [`Limit`](ErrorKind::Limit) at a limit of the query; the store's.
    pub async fn compute(
        &mut self,
        algorithm: &Algorithm,
        options: &ComputeOptions,
        observe: impl FnMut(&ComputeProgress),
    ) -> Result<Computed, Error> {
        let options = algorithm.applied_to(options);
        if let (Some(_), Some(why)) = (options.asynchronous, algorithm.synchronous_alone()) {
            return Err(Error::new(
                ErrorKind::Invalid,
                format!("{} is not computed asynchronously: {why}", algorithm.name()),
            ));
        }
        let needs_program = matches!(algorithm, Algorithm::Communities { .. })
            || options.checkpoint.is_some()
            || options.asynchronous.is_some();
        if options.placement == Placement::Packed && needs_program && !algorithm.is_kernel_alone() {
            let message = format!("{} is then computed by a program, which has no packed lists", algorithm.name());
            return Err(Error::new(ErrorKind::Invalid, message));
        }
        if algorithm.is_kernel_alone() {
            in_memory_only(algorithm.name(), options.placement)?;
            if options.checkpoint.is_some() {
                let message = format!("{} is computed in one go, without checkpoints", algorithm.name());
                return Err(Error::new(ErrorKind::Invalid, message));
            }
            return self.compute_by_kernel(algorithm, &options).await;
        }
        let in_memory = self.is_in_memory(&options)?;
        if in_memory && !needs_program {
            return self.compute_by_kernel(algorithm, &options).await;
        }
        self.compute_by_program(algorithm, &options, in_memory, observe).await
    }

    /// What [`Self::compute`] takes. Reads nothing.
    ///
    /// # Errors
    /// As [`Self::compute`] for a selection or a placement that cannot be.
    pub fn compute_needs(&self, algorithm: &Algorithm, options: &ComputeOptions) -> Result<ComputeNeeds, Error> {
        let options = algorithm.applied_to(options);
        if algorithm.is_kernel_alone() {
            in_memory_only(algorithm.name(), options.placement)?;
        }
        let vertices = options.selection.dense_ids(&self.snapshot)?.len();
        let in_memory = options.selection.memory_bytes(&self.snapshot)?;
        let streamed = algorithm.spec().streamed_bytes.map(|bytes| vertices * bytes);
        let memory_bytes = match options.placement {
            Placement::Memory => in_memory,
            Placement::Packed => options.selection.packed_bytes(&self.snapshot)?,
            Placement::Streamed => streamed.unwrap_or(in_memory),
            Placement::Automatic => in_memory.min(streamed.unwrap_or(u64::MAX)),
        };
        Ok(ComputeNeeds { vertices, memory_bytes, result_bytes: vertices * 8 })
    }

    /// The labels whose vertices get a value by [`Self::compute`]. Reads nothing.
    ///
    /// # Errors
    /// As [`Self::compute_needs`].
    pub fn computed_labels(&self, algorithm: &Algorithm, options: &ComputeOptions) -> Result<Vec<LabelId>, Error> {
        let ids = algorithm.applied_to(options).selection.dense_ids(&self.snapshot)?;
        Ok(ids.by_label().filter(|(_, ids)| !ids.is_empty()).map(|(label, _)| label).collect())
    }

    /// What [`Self::count_triangles`] takes. Reads nothing.
    ///
    /// # Errors
    /// As [`Self::compute_needs`].
    pub fn count_triangles_needs(&self, options: &ComputeOptions) -> Result<ComputeNeeds, Error> {
        let selection = for_triangles(options)?.selection;
        let vertices = selection.dense_ids(&self.snapshot)?.len();
        Ok(ComputeNeeds { vertices, memory_bytes: selection.memory_bytes(&self.snapshot)?, result_bytes: 8 })
    }

    /// Runs a program of one's own on a selection, for as many supersteps as it may take. `observe` gets its progress. In an asynchronous
    /// run vertices may collect as often as in that number of supersteps, unless [`Asynchronous::collections_max`] is another bound.
    ///
    /// # Errors
    /// As [`Self::compute`]; [`Unavailable`](ErrorKind::Unavailable) if states cannot be written.
    pub async fn run_program<P: VertexProgram>(
        &mut self,
        program: &Arc<P>,
        options: &ComputeOptions,
        supersteps_max: Option<usize>,
        observe: impl FnMut(&Progress<P::Aggregate>),
    ) -> Result<ProgramStates<P::State>, Error> {
        if options.asynchronous.is_some() && options.checkpoint.is_some() {
            let message = "an asynchronous computation has no checkpoints; run it in supersteps, or without one";
            return Err(Error::new(ErrorKind::Invalid, message));
        }
        let mut options = options.clone();
        options.selection.reversed = options.selection.hop.direction != HopDirection::Both;
        let lists = match self.is_in_memory(&options)? {
            true => Lists::in_memory(&Arc::new(self.load_topology(&options).await?), self.branch.context())?,
            false => Lists::streamed(&self.snapshot, &options.selection, &mut self.branch).await?,
        };
        let vertices = lists.vertices();
        let (states, memory) =
            self.open_states::<P::State>(&options.states, options.states_cache, vertices, &options.workers).await?;
        let workers = options.workers.clone();
        let ran = match options.asynchronous {
            None => {
                let checkpoint = options.checkpoint.as_ref().map(|file| self.checkpoint(file, &options.selection));
                let settings = RunSettings { supersteps_max, workers, checkpoint };
                run(program, &lists, &states, &settings, observe, &mut self.branch).await?
            }
            Some(Asynchronous { threshold, staleness_max, collections_max }) => {
                let as_often = supersteps_max.map(|most| u64::from(vertices).saturating_mul(most as u64));
                let collections_max = collections_max.or(as_often);
                let settings = AsyncSettings { threshold, staleness_max, collections_max, workers };
                run_asynchronously(program, &lists, &states, &settings, observe, &mut self.branch).await?
            }
        };
        let (ids, deleted) = (lists.ids().clone(), lists.deleted().to_vec());
        let Progress { superstep: supersteps, collections, .. } = ran;
        Ok(ProgramStates { ids, states, deleted, supersteps, collections, memory })
    }

    /// A checkpoint of a computation on a selection of this version.
    fn checkpoint(&self, file: &CheckpointFile, selection: &Selection) -> Checkpoint {
        let manifest = self.snapshot.manifest();
        let Selection { hop, labels, weight, .. } = selection;
        let labels: String = labels.iter().map(|label| format!(" with {label:?}")).collect();
        let weight = weight.as_ref().map(|weight| format!(" by {weight:?}")).unwrap_or_default();
        // The time of the version, too: a graph that was loaded again has other ids, and may have the same version.
        let graph = format!(
            "{hop}{labels}{weight} of version {} of {}, from {}",
            manifest.version,
            self.snapshot.reader().store().url(),
            manifest.created_unix_ms
        );
        Checkpoint { path: file.path.clone(), every: file.every, graph }
    }

    /// Whether a kernel reads lists as they are stored.
    fn is_packed(&self, options: &ComputeOptions) -> Result<bool, EngineError> {
        Ok(match options.placement {
            Placement::Packed => true,
            // What cannot be streamed.
            Placement::Automatic => !self.is_in_memory(options)? && options.selection.weight.is_none(),
            Placement::Memory | Placement::Streamed => false,
        })
    }

    /// Whether lists are loaded into memory.
    fn is_in_memory(&self, options: &ComputeOptions) -> Result<bool, EngineError> {
        let left = match self.memory().left() {
            u64::MAX => COMPUTE_MEMORY_BYTES,
            left => left,
        };
        Ok(match options.placement {
            Placement::Memory | Placement::Packed => true,
            Placement::Streamed => false,
            Placement::Automatic => options.selection.memory_bytes(&self.snapshot)? <= left,
        })
    }

    async fn load_topology(&mut self, options: &ComputeOptions) -> Result<Topology, EngineError> {
        Topology::load(&self.snapshot, &options.selection, &options.workers, &mut self.branch).await
    }

    /// The dense ids of the vertices that an algorithm names.
    async fn starts(&mut self, algorithm: &Algorithm, ids: &DenseIds) -> Result<Vec<u32>, Error> {
        let keys = algorithm.starts();
        let vertices: Vec<(&StartKey, VertexId)> = match algorithm {
            Algorithm::PersonalisedPageRank { .. } => {
                let found = self.resolve(keys).await?;
                keys.iter().zip(&found).flat_map(|(key, all)| all.vertices().map(move |vertex| (key, vertex))).collect()
            }
            _ => keys.iter().zip(self.named(keys).await?).collect(),
        };
        let id = |(key, vertex): (&StartKey, VertexId)| {
            let none = || Error::new(ErrorKind::Invalid, format!("no selected edge can have {key} at an end"));
            ids.of_vertex(vertex).map(|id| id as u32).ok_or_else(none)
        };
        vertices.into_iter().map(id).collect()
    }

    /// The dense ids that a kernel begins at: those of the vertices that the algorithm names, or of its sample. All vertices of a
    /// sample that is as large are none.
    async fn kernel_starts<A>(
        &mut self,
        algorithm: &Algorithm,
        topology: &Topology<A>,
    ) -> Result<Held<Vec<u32>>, Error> {
        if let Algorithm::Closeness { sample: Some(sample) } | Algorithm::Betweenness { sample: Some(sample) } =
            algorithm
        {
            return Ok(self.sampled(*sample, &topology.ids, topology.deleted.len()).await?);
        }
        let starts = self.starts(algorithm, &topology.ids).await?;
        let memory = self.branch.context().hold(starts.len() as u64 * 4)?;
        Ok(Held::new(starts, memory))
    }

    async fn compute_by_kernel(&mut self, algorithm: &Algorithm, options: &ComputeOptions) -> Result<Computed, Error> {
        let (workers, name, algorithm) = (&options.workers, algorithm.name(), algorithm.clone());
        let numbers_components = matches!(algorithm, Algorithm::Components | Algorithm::StrongComponents);
        let (ids, deleted, (supersteps, values)) = if self.is_packed(options)? {
            let topology = Topology::load_packed(&self.snapshot, &options.selection, workers, &mut self.branch).await?;
            let starts = self.kernel_starts(&algorithm, &topology).await?;
            let kernel = move |context: &QueryContext| {
                let found = kernels::run(&algorithm, &topology, None, &starts, context)?;
                [Some(&topology.out), topology.against.as_ref()].into_iter().flatten().try_for_each(Packed::check)?;
                Ok::<_, EngineError>((topology.ids, topology.deleted, found))
            };
            workers.run(self.branch.context(), kernel).await??
        } else {
            let topology = self.load_topology(options).await?;
            let starts = self.kernel_starts(&algorithm, &topology).await?;
            let kernel = move |context: &QueryContext| {
                let found = kernels::run(&algorithm, &topology, Some(&topology.out), &starts, context)?;
                Ok::<_, EngineError>((topology.ids, topology.deleted, found))
            };
            workers.run(self.branch.context(), kernel).await??
        };
        let mut computed = Computed { name, supersteps, collections: None, streamed: false, ids, deleted, values };
        if numbers_components {
            self.number_by_key(&mut computed).await?;
        }
        Ok(computed)
    }

    /// How many triangles a selection has: sets of three vertices of which each two have an edge, in whichever direction. Its lists
    /// are in memory.
    ///
    /// # Errors
    /// As [`Self::compute`].
    pub async fn count_triangles(&mut self, options: &ComputeOptions) -> Result<u64, Error> {
        let options = for_triangles(options)?;
        let (workers, selection) = (&options.workers, &options.selection);
        if self.is_packed(&options)? {
            let topology = Topology::load_packed(&self.snapshot, selection, workers, &mut self.branch).await?;
            let kernel = move |context: &QueryContext| {
                let found = count_triangles(&topology.out, context)?;
                topology.out.check().map(|()| found)
            };
            return Ok(workers.run(self.branch.context(), kernel).await??);
        }
        let topology = self.load_topology(&options).await?;
        let kernel = move |context: &QueryContext| count_triangles(&topology.out, context);
        Ok(workers.run(self.branch.context(), kernel).await??)
    }

    /// The dense id of the one vertex that an algorithm begins at.
    async fn start(&mut self, algorithm: &Algorithm, options: &ComputeOptions) -> Result<u32, Error> {
        let ids = options.selection.dense_ids(&self.snapshot)?;
        let starts = self.starts(algorithm, &ids).await?;
        let none = || EngineError::Internal("a search has no start".into());
        Ok(starts.first().copied().ok_or_else(none)?)
    }

    async fn compute_by_program(
        &mut self,
        algorithm: &Algorithm,
        options: &ComputeOptions,
        in_memory: bool,
        mut observe: impl FnMut(&ComputeProgress),
    ) -> Result<Computed, Error> {
        let placement = if in_memory { Placement::Memory } else { Placement::Streamed };
        let options = ComputeOptions { placement, ..options.clone() };
        let name = algorithm.name();
        let mut simple = |progress: &Progress<()>| observe(&seen(progress, None));
        let mut computed = match algorithm {
            Algorithm::PageRank(settings) | Algorithm::PersonalisedPageRank { settings, .. } => {
                let sources = match algorithm {
                    Algorithm::PageRank(_) => None,
                    _ => Some(self.starts(algorithm, options.selection.dense_ids(&self.snapshot)?.as_ref()).await?),
                };
                let (program, most) = (Arc::new(programs::PageRank::new(*settings, sources)), settings.iterations_max);
                let observe = |progress: &Progress<programs::RankSums>| {
                    let residual = progress.waiting.is_none().then_some(progress.aggregate.residual);
                    observe(&seen(progress, residual));
                };
                let found = self.run_program(&program, &options, Some(most), observe).await?;
                self.collected(name, &options.workers, found, Values::Floats).await?
            }
            Algorithm::Components => {
                let observe = |progress: &Progress<_>| observe(&seen(progress, None));
                let found = self.run_program(&Arc::new(programs::Components), &options, None, observe).await?;
                let mut computed = self.collected(name, &options.workers, found, Values::Integers).await?;
                self.number_by_key(&mut computed).await?;
                computed
            }
            Algorithm::Levels { .. } => {
                let program = Arc::new(programs::Levels { start: self.start(algorithm, &options).await? });
                let found = self.run_program(&program, &options, None, simple).await?;
                self.collected(name, &options.workers, found, Values::Integers).await?
            }
            Algorithm::ShortestPaths { .. } => {
                let program = Arc::new(programs::ShortestPaths { start: self.start(algorithm, &options).await? });
                let found = self.run_program(&program, &options, None, simple).await?;
                self.collected(name, &options.workers, found, Values::Lengths).await?
            }
            Algorithm::Communities { iterations } => {
                let ids = options.selection.dense_ids(&self.snapshot)?;
                let program = Arc::new(programs::Labels::from(self.key_places(&ids).await?));
                let found = self.run_program(&program, &options, Some(*iterations), &mut simple).await?;
                self.collected(name, &options.workers, found, Values::Integers).await?
            }
            _ => return Err(EngineError::Internal(format!("{} has only a kernel", algorithm.name())).into()),
        };
        computed.streamed = !in_memory;
        // In supersteps all vertices collect each time.
        computed.collections = computed.collections.filter(|_| options.asynchronous.is_some());
        Ok(computed)
    }

    /// The states of a program as a column.
    async fn collected<S: StateValue>(
        &self,
        name: &'static str,
        workers: &Workers,
        found: ProgramStates<S>,
        values: impl Fn(Vec<S>) -> Values,
    ) -> Result<Computed, Error> {
        let ProgramStates { ids, states, deleted, supersteps, collections, memory: _of_states } = found;
        let memory = self.branch.context().hold(ids.len() * size_of::<S>() as u64)?;
        let vertices = ids.len() as u32;
        // They may come from a disk or a server, which the store then lets go.
        let states = workers.run(self.branch.context(), move |_| states.take(0..vertices)).await??;
        let values = Held::new(values(states), memory);
        let memory = self.branch.context().hold(deleted.len() as u64 * 4)?;
        let deleted = Held::new(deleted, memory);
        let (supersteps, collections) = (Some(supersteps), Some(collections));
        Ok(Computed { name, supersteps, collections, streamed: true, ids, deleted, values })
    }
}

/// Refuses to stream lists for what is only computed from lists in memory.
fn in_memory_only(what: &str, placement: Placement) -> Result<(), Error> {
    match placement {
        Placement::Streamed => Err(Error::new(
            ErrorKind::Invalid,
            format!("{what} is computed from lists in memory, which cannot be streamed"),
        )),
        Placement::Automatic | Placement::Memory | Placement::Packed => Ok(()),
    }
}

/// Triangles are found whichever way edges point.
fn for_triangles(options: &ComputeOptions) -> Result<ComputeOptions, Error> {
    in_memory_only("a number of triangles", options.placement)?;
    let mut options = options.clone();
    options.selection.hop.direction = HopDirection::Both;
    options.selection.reversed = false;
    Ok(options)
}

fn seen<A>(progress: &Progress<A>, residual: Option<f64>) -> ComputeProgress {
    let Progress { superstep, changed, collections, waiting, .. } = *progress;
    ComputeProgress { superstep, changed, residual, collections, waiting }
}
