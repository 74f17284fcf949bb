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
//! let [first, ..] = ranks.top(1)[..] else { panic!("it has vertices") };
//! assert_eq!(query.keys_of(&[first]).await?[..], [2.into()]);
//! # Ok(())
//! # }
//! # tokio::runtime::Runtime::new().unwrap().block_on(example()).unwrap();
//! ```

use std::{cmp::Ordering, path::PathBuf, sync::Arc};

use arrow_array::{ArrayRef, Float64Array, Int64Array};
use hoplake_analytics::{
    Adjacency, Lists, Progress, RunError, RunSettings, Topology,
    kernels::{
        ShortestPathSettings, UNREACHED, breadth_first_levels, connected_components, page_rank, shortest_path_lengths,
    },
    programs, run,
    stores::{KeyValueStore, MemoryStore, SlotStore},
};
use hoplake_engine::{DenseIds, EngineError, Held, traversal::HopDirection};
use hoplake_format::VertexId;
use hoplake_storage::MemoryHold;

pub use hoplake_analytics::{
    Edge, Selection, Step, Value as StateValue, Vertex, VertexProgram, Workers,
    kernels::PageRankSettings,
    stores::{StateStore, StoreBytes, StoreError},
};

use crate::{Error, ErrorKind, Query, StartKey};

/// Computations that come with Hoplake. More may follow.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Algorithm {
    /// PageRank: ranks that add up to 1.
    PageRank(PageRankSettings),
    /// Connected components, whichever way edges point: vertices with the same number are in one.
    Components,
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
    /// Communities by label propagation, as LDBC Graphalytics has it: vertices with the same number are in one.
    Communities {
        /// How many times labels are passed on.
        iterations: usize,
    },
}

/// Where the lists of the selection are while a computation runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Placement {
    /// In memory if they fit the budget, otherwise streamed.
    #[default]
    Automatic,
    /// In memory.
    Memory,
    /// Read from the store again in each superstep: memory is for states and signals alone.
    Streamed,
}

/// Where states are kept while a program runs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum States {
    /// In memory.
    #[default]
    Memory,
    /// In this file, each in a slot of its own.
    Slots(PathBuf),
    /// In a key-value store in this file.
    KeyValue(PathBuf),
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
    /// The threads that compute.
    pub workers: Workers,
}

/// Memory for a computation whose query has no limit of its own, which decides whether lists fit.
pub const COMPUTE_MEMORY_BYTES: u64 = 2 << 30;

/// How far a computation has come.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct ComputeProgress {
    /// The superstep or iteration that has just ended.
    pub superstep: usize,
    /// How many vertices it changed.
    pub changed: u64,
    /// By how much it changed all ranks in sum; of PageRank alone.
    pub residual: Option<f64>,
}

/// A value for each vertex.
#[derive(Debug)]
pub struct Computed {
    /// What it is called: `rank`, `component`, `level`, `length`, `community`.
    pub name: &'static str,
    /// How many supersteps or iterations it took, if it took any.
    pub supersteps: Option<usize>,
    /// Whether lists were streamed.
    pub streamed: bool,
    ids: Arc<DenseIds>,
    /// Ascending.
    deleted: Vec<u32>,
    values: Held<Values>,
}

#[derive(Debug, Clone)]
enum Values {
    /// The greatest number stands for no value.
    Integers(Vec<u32>),
    /// The greatest first.
    Floats(Vec<f64>),
    /// The least first; infinity stands for no value.
    Lengths(Vec<f64>),
}

impl Computed {
    /// How many vertices have been computed.
    pub fn len(&self) -> usize {
        self.ids.len() as usize - self.deleted.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All vertices, by label and ordinal.
    pub fn vertices(&self) -> impl Iterator<Item = VertexId> + '_ {
        self.numbers().filter_map(|id| self.ids.vertex(id.into()))
    }

    /// The vertices with the greatest ranks, or the least other values; vertices without a value come last, and of equal ones those
    /// with the least label and ordinal first.
    pub fn top(&self, most: usize) -> Vec<VertexId> {
        let mut numbers: Vec<u32> = self.numbers().collect();
        let order = |a: &u32, b: &u32| self.order(*a, *b).then(a.cmp(b));
        if most < numbers.len() && most > 0 {
            numbers.select_nth_unstable_by(most, order);
        }
        numbers.truncate(most);
        numbers.sort_unstable_by(order);
        numbers.into_iter().filter_map(|id| self.ids.vertex(id.into())).collect()
    }

    /// How many components or communities there are, and how many vertices the largest has; `None` of other values.
    pub fn groups(&self) -> Option<(u64, u64)> {
        let Values::Integers(values) = &*self.values else { return None };
        if self.name == "level" {
            return None;
        }
        let mut sizes = vec![0u32; values.len()];
        self.numbers().for_each(|id| sizes[values[id as usize] as usize] += 1);
        let groups = sizes.iter().filter(|size| **size > 0).count();
        Some((groups as u64, sizes.iter().copied().max().unwrap_or(0).into()))
    }

    /// The values of some vertices, as a column of int64 or float64; null where there is none.
    pub fn column(&self, vertices: &[VertexId]) -> ArrayRef {
        let number = |vertex: &VertexId| {
            let id = self.ids.of_vertex(*vertex)? as u32;
            self.deleted.binary_search(&id).is_err().then_some(id as usize)
        };
        let numbers = vertices.iter().map(number);
        match &*self.values {
            Values::Integers(values) => {
                let value = |number: Option<usize>| number.map(|at| values[at]).filter(|value| *value != u32::MAX);
                Arc::new(numbers.map(|number| value(number).map(i64::from)).collect::<Int64Array>())
            }
            Values::Lengths(values) => {
                let value = |number: Option<usize>| number.map(|at| values[at]).filter(|value| value.is_finite());
                Arc::new(numbers.map(value).collect::<Float64Array>())
            }
            Values::Floats(values) => {
                Arc::new(numbers.map(|number| number.map(|at| values[at])).collect::<Float64Array>())
            }
        }
    }

    fn numbers(&self) -> impl Iterator<Item = u32> + '_ {
        let mut deleted = self.deleted.iter().peekable();
        (0..self.ids.len() as u32).filter(move |id| deleted.next_if_eq(&id).is_none())
    }

    fn order(&self, a: u32, b: u32) -> Ordering {
        match &*self.values {
            Values::Integers(values) => values[a as usize].cmp(&values[b as usize]),
            Values::Floats(values) => values[b as usize].total_cmp(&values[a as usize]),
            Values::Lengths(values) => values[a as usize].total_cmp(&values[b as usize]),
        }
    }
}

/// What a program of one's own left: the state of each vertex.
pub struct ProgramStates<S> {
    /// The dense ids of the vertices.
    pub ids: Arc<DenseIds>,
    /// Their states, by dense id.
    pub states: Arc<dyn StateStore<S>>,
    /// Ids of deleted vertices, ascending.
    pub deleted: Vec<u32>,
    /// How many supersteps it took.
    pub supersteps: usize,
    /// What states in memory take.
    memory: Option<MemoryHold>,
}

impl From<RunError> for Error {
    fn from(error: RunError) -> Self {
        match error {
            RunError::Graph(error) => error.into(),
            RunError::States(error) => error.into(),
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
        let mut options = options.clone();
        if let Algorithm::Components = algorithm {
            options.selection.hop.direction = HopDirection::Both;
        }
        if let Algorithm::ShortestPaths { weight, .. } = algorithm {
            options.selection.weight = weight.clone();
        }
        options.selection.reversed = options.selection.hop.direction != HopDirection::Both;
        let fits = options.selection.memory_bytes(&self.snapshot)? <= self.memory_for_lists();
        let in_memory = match options.placement {
            Placement::Memory => true,
            Placement::Streamed => false,
            Placement::Automatic => fits,
        };
        match (algorithm, in_memory) {
            (Algorithm::Communities { .. }, _) | (_, false) => {
                self.compute_in_supersteps(algorithm, &options, in_memory, observe).await
            }
            (_, true) => self.compute_by_kernel(algorithm, &options).await,
        }
    }

    /// Runs a program of one's own on a selection, for as many supersteps as it may take. `observe` gets its progress.
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
        let mut options = options.clone();
        options.selection.reversed = options.selection.hop.direction != HopDirection::Both;
        let in_memory = match options.placement {
            Placement::Memory => true,
            Placement::Streamed => false,
            Placement::Automatic => options.selection.memory_bytes(&self.snapshot)? <= self.memory_for_lists(),
        };
        let lists = match in_memory {
            true => Lists::in_memory(&Arc::new(self.load_topology(&options).await?), self.branch.context())?,
            false => Lists::streamed(&self.snapshot, &options.selection, &mut self.branch).await?,
        };
        let vertices = lists.vertices();
        let states: Arc<dyn StateStore<P::State>> = match &options.states {
            States::Memory => Arc::new(MemoryStore::new(vertices)),
            States::Slots(path) => Arc::new(SlotStore::open(path, vertices)?),
            States::KeyValue(path) => Arc::new(KeyValueStore::open(path, vertices, KEY_VALUE_CACHE_BYTES)?),
        };
        let memory = match options.states {
            States::Memory => Some(self.branch.context().hold(u64::from(vertices) * size_of::<P::State>() as u64)?),
            _ => None,
        };
        let settings = RunSettings { supersteps_max, workers: options.workers.clone() };
        let ran = run(program, &lists, &states, None, &settings, observe, &mut self.branch).await?;
        let (ids, deleted) = (lists.ids().clone(), lists.deleted().to_vec());
        Ok(ProgramStates { ids, states, deleted, supersteps: ran.superstep, memory })
    }

    fn memory_for_lists(&self) -> u64 {
        match self.memory().left() {
            u64::MAX => COMPUTE_MEMORY_BYTES,
            left => left,
        }
    }

    async fn load_topology(&mut self, options: &ComputeOptions) -> Result<Topology, EngineError> {
        Topology::load(&self.snapshot, &options.selection, &options.workers, &mut self.branch).await
    }

    /// The dense id of the vertex that a user named.
    async fn start(&mut self, start: &StartKey, ids: &DenseIds) -> Result<u32, Error> {
        let vertices = self.named(std::slice::from_ref(start)).await?;
        let id = vertices.first().and_then(|vertex| ids.of_vertex(*vertex));
        let none = || Error::new(ErrorKind::Invalid, format!("no selected edge can have {start} at an end"));
        id.map(|id| id as u32).ok_or_else(none)
    }

    async fn compute_by_kernel(&mut self, algorithm: &Algorithm, options: &ComputeOptions) -> Result<Computed, Error> {
        let topology = Arc::new(self.load_topology(options).await?);
        let start = match algorithm {
            Algorithm::Levels { start } | Algorithm::ShortestPaths { start, .. } => {
                self.start(start, &topology.ids).await?
            }
            _ => 0,
        };
        let (context, loaded, algorithm) = (self.branch.context().clone(), topology.clone(), algorithm.clone());
        let kernel = move || {
            let Topology { out, against, deleted, .. } = &*loaded;
            let against = against.as_ref().unwrap_or(out);
            Ok::<_, EngineError>(match algorithm {
                Algorithm::PageRank(settings) => {
                    let found = page_rank(out, against, deleted, &settings, &context)?;
                    ("rank", Some(found.iterations), found.map(|found| Values::Floats(found.ranks)))
                }
                Algorithm::Levels { .. } => {
                    let found = breadth_first_levels(out, Some(against), start, &context)?;
                    ("level", None, found.map(Values::Integers))
                }
                Algorithm::ShortestPaths { weight: None, .. } => {
                    let found = breadth_first_levels(out, Some(against), start, &context)?;
                    let length = |level: u32| if level == UNREACHED { f64::INFINITY } else { level.into() };
                    let memory = context.hold(out.len() as u64 * 8)?;
                    let lengths = found.iter().map(|level| length(*level)).collect();
                    ("length", None, Held::new(Values::Lengths(lengths), memory))
                }
                Algorithm::ShortestPaths { weight: Some(_), .. } => {
                    let settings = ShortestPathSettings::default();
                    let found = shortest_path_lengths(out, out.weights(), start, &settings, &context)?;
                    ("length", None, found.map(Values::Lengths))
                }
                _ => {
                    let found = connected_components(out, Some(against), &context)?;
                    ("component", None, found.map(Values::Integers))
                }
            })
        };
        let (name, supersteps, values) = options.workers.run(kernel).await??;
        let (ids, deleted) = (topology.ids.clone(), topology.deleted.to_vec());
        Ok(Computed { name, supersteps, streamed: false, ids, deleted, values })
    }

    async fn compute_in_supersteps(
        &mut self,
        algorithm: &Algorithm,
        options: &ComputeOptions,
        in_memory: bool,
        mut observe: impl FnMut(&ComputeProgress),
    ) -> Result<Computed, Error> {
        let placement = if in_memory { Placement::Memory } else { Placement::Streamed };
        let options = ComputeOptions { placement, ..options.clone() };
        let mut simple = |progress: &Progress<()>| observe(&seen(progress, None));
        let mut computed = match algorithm {
            Algorithm::PageRank(settings) => {
                let (program, most) = (Arc::new(programs::PageRank(*settings)), settings.iterations_max);
                let observe = |progress: &Progress<programs::RankSums>| {
                    observe(&seen(progress, Some(progress.aggregate.residual)));
                };
                let found = self.run_program(&program, &options, Some(most), observe).await?;
                self.collected("rank", found, Values::Floats)?
            }
            Algorithm::Components => {
                let found = self.run_program(&Arc::new(programs::Components), &options, None, simple).await?;
                self.collected("component", found, Values::Integers)?
            }
            Algorithm::Levels { start } => {
                let ids = options.selection.dense_ids(&self.snapshot)?;
                let program = Arc::new(programs::Levels { start: self.start(start, &ids).await? });
                let found = self.run_program(&program, &options, None, simple).await?;
                self.collected("level", found, Values::Integers)?
            }
            Algorithm::ShortestPaths { start, .. } => {
                let ids = options.selection.dense_ids(&self.snapshot)?;
                let program = Arc::new(programs::ShortestPaths { start: self.start(start, &ids).await? });
                let found = self.run_program(&program, &options, None, simple).await?;
                self.collected("length", found, Values::Lengths)?
            }
            Algorithm::Communities { iterations } => {
                let program = Arc::new(programs::Labels);
                let found = self.run_program(&program, &options, Some(*iterations), &mut simple).await?;
                self.collected("community", found, Values::Integers)?
            }
        };
        computed.streamed = !in_memory;
        Ok(computed)
    }

    /// The states of a program as a column.
    fn collected<S: StateValue>(
        &self,
        name: &'static str,
        found: ProgramStates<S>,
        values: impl Fn(Vec<S>) -> Values,
    ) -> Result<Computed, Error> {
        let ProgramStates { ids, states, deleted, supersteps, memory: _of_states } = found;
        let memory = self.branch.context().hold(ids.len() * size_of::<S>() as u64)?;
        let values = Held::new(values(states.take(0..ids.len() as u32)?), memory);
        Ok(Computed { name, supersteps: Some(supersteps), streamed: true, ids, deleted, values })
    }
}

/// Pages of a key-value store in memory.
const KEY_VALUE_CACHE_BYTES: usize = 64 << 20;

fn seen<A>(progress: &Progress<A>, residual: Option<f64>) -> ComputeProgress {
    ComputeProgress { superstep: progress.superstep, changed: progress.changed, residual }
}
