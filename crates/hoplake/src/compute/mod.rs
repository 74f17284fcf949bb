//! Whole-graph computations: algorithms that come with Hoplake, and vertex programs of one's own.
//!
//! ```
//! # async fn example() -> Result<(), hoplake::Error> {
//! use hoplake::{Graph, compute::{Algorithm, ComputeOptions}};
//! # let folder = tempfile::tempdir().unwrap();
//! # let csv = folder.path().join("knows.csv");
//! # std::fs::write(&csv, "1,2\n2,3\n3,2\n").unwrap();
//! # hoplake::load("memory://docs/compute", hoplake::LoadOptions::from_paths([csv])).await?;
//!
//! let graph = Graph::open("memory://docs/compute").await?;
//! let mut query = graph.query();
//! let ranks = query.compute(&Algorithm::named("pagerank")?, &ComputeOptions::default(), |_| ()).await?;
//! let [first, ..] = query.top(&ranks.into(), 1).await?[..] else { panic!("it has vertices") };
//! assert_eq!(query.keys_of(&[first]).await?[..], [2.into()]);
//! # Ok(())
//! # }
//! # tokio::runtime::Runtime::new().unwrap().block_on(example()).unwrap();
//! ```

mod algorithm;
mod columns;
mod computed;
#[cfg(test)]
mod condition_tests;
mod key_order;
#[cfg(test)]
mod order_tests;
mod parts;

use std::{path::PathBuf, sync::Arc, time::Duration};

use hoplake_analytics::{
    Adjacency, Checkpoint, Lists, Packed, ProgramRun, ProgramSettings, Progress, RunError, Topology,
    registry::{KernelInput, KeyOrder, Options, ProgramInput, ProgramResult, SAMPLE_OPTION, SEED_OPTION},
    run_program,
};
use hoplake_engine::{DenseIds, EngineError, Held, traversal::HopDirection};
use hoplake_format::{LabelId, VertexId};
use hoplake_storage::{MemoryHold, QueryContext};

pub use algorithm::{Algorithm, usual_hop};
pub use columns::ColumnRun;
pub use computed::Computed;
pub use hoplake_analytics::{
    Asynchronous, Edge, Selection, Step, Value as StateValue, Vertex, VertexProgram, Waiting, Workers,
    columns::{Along, Column, Combination, Combine, Number, SignalColumn},
    registry::{self, ComputeProgress, Figure},
    stores::{CachePolicy, StateStore, States, StatesCache, StoreBytes, StoreError},
};
pub use parts::{PartRun, PartSignals};

use crate::{Error, ErrorKind, Query, StartKey};

/// Where the lists of the selection are while a computation runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Placement {
    /// In memory if they fit the budget, otherwise streamed, or packed where they cannot be streamed.
    #[default]
    Automatic,
    /// In memory, decoded.
    Memory,
    /// As they are stored: in less memory, in none if the files of the graph are mapped, and decoded each time that they are read. Lists
    /// with weights or of edges with a condition cannot be packed, nor those of what is computed by a program.
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

/// A file into which a computation writes its states now and then. If it is there, the computation goes on from it, to the same
/// result; a file of another computation, another selection or another version of a graph is rejected. It stays: remove it when the
/// result is safe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckpointFile {
    /// The file, and next to it a partial one with `.partial` behind its name.
    pub path: PathBuf,
    /// The least time between two of them.
    pub every: Duration,
}

/// The least time between two checkpoints unless the user says otherwise.
pub const CHECKPOINT_EVERY: Duration = Duration::from_secs(60);

/// Memory for a computation whose query has no limit of its own, which decides whether lists fit.
pub const COMPUTE_MEMORY_BYTES: u64 = 2 << 30;

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
    _memory: MemoryHold,
}

impl From<RunError> for Error {
    fn from(error: RunError) -> Self {
        match error {
            RunError::Graph(error) => error.into(),
            RunError::States(error) => error.into(),
            rejected @ (RunError::Checkpoint { .. } | RunError::Part(_)) => {
                Self::new(ErrorKind::Invalid, rejected.to_string())
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
    /// Computes an algorithm on a selection: a value for each vertex, or a figure. `observe` gets the progress of each superstep, if there
    /// are any.
    ///
    /// Lists that fit the memory of the query, or [`COMPUTE_MEMORY_BYTES`] if it has no limit, are loaded once; otherwise they are
    /// streamed in each superstep. Results are the same but for the last bits of floats.
    ///
    /// # Errors
    /// [`NotFound`](ErrorKind::NotFound) if the graph lacks a label or the start vertex, [`Invalid`](ErrorKind::Invalid) if the
    /// condition of the hop cannot be, [`Limit`](ErrorKind::Limit) at a limit of the query; the store's.
    pub async fn compute(
        &mut self,
        algorithm: &Algorithm,
        options: &ComputeOptions,
        mut observe: impl FnMut(&ComputeProgress) + Send,
    ) -> Result<Computed, Error> {
        let spec = algorithm.spec();
        let options = algorithm.applied_to(options);
        let invalid = |message: String| Err(Error::new(ErrorKind::Invalid, message));
        if let (Some(_), Some(why)) = (options.asynchronous, spec.synchronous()) {
            return invalid(format!("{} is not computed asynchronously: {why}", spec.value_name()));
        }
        let needs_program = spec.kernel.is_none() || options.checkpoint.is_some() || options.asynchronous.is_some();
        if spec.program.is_none() {
            in_memory_only(spec.value_name(), options.placement)?;
            if options.checkpoint.is_some() {
                return invalid(format!("{} is computed in one go, without checkpoints", spec.value_name()));
            }
        } else if options.placement == Placement::Packed && needs_program {
            return invalid(format!("{} is then computed by a program, which has no packed lists", spec.value_name()));
        }
        let in_memory = self.is_in_memory(&options)?;
        let mut computed = if spec.program.is_none() || in_memory && !needs_program {
            self.compute_by_kernel(algorithm, &options).await?
        } else {
            self.compute_by_program(algorithm, &options, in_memory, &mut observe).await?
        };
        if spec.key_order == KeyOrder::Named {
            self.number_by_key(&mut computed).await?;
        }
        Ok(computed)
    }

    /// What [`Self::compute`] takes. Reads nothing.
    ///
    /// # Errors
    /// As [`Self::compute`] for a selection or a placement that cannot be.
    pub fn compute_needs(&self, algorithm: &Algorithm, options: &ComputeOptions) -> Result<ComputeNeeds, Error> {
        let spec = algorithm.spec();
        let options = algorithm.applied_to(options);
        if spec.program.is_none() {
            in_memory_only(spec.value_name(), options.placement)?;
        }
        let vertices = options.selection.dense_ids(&self.snapshot)?.len();
        let in_memory = options.selection.memory_bytes(&self.snapshot)?;
        let streamed = spec.program.map(|program| vertices * program.streamed_bytes);
        let memory_bytes = match options.placement {
            Placement::Memory => in_memory,
            Placement::Packed => options.selection.packed_bytes(&self.snapshot)?,
            Placement::Streamed => streamed.unwrap_or(in_memory),
            Placement::Automatic => in_memory.min(streamed.unwrap_or(u64::MAX)),
        };
        let result_bytes = if spec.value.is_some() { vertices * 8 } else { 8 };
        Ok(ComputeNeeds { vertices, memory_bytes, result_bytes })
    }

    /// The labels whose vertices get a value by [`Self::compute`]. Reads nothing.
    ///
    /// # Errors
    /// As [`Self::compute_needs`].
    pub fn computed_labels(&self, algorithm: &Algorithm, options: &ComputeOptions) -> Result<Vec<LabelId>, Error> {
        let ids = algorithm.applied_to(options).selection.dense_ids(&self.snapshot)?;
        Ok(ids.by_label().filter(|(_, ids)| !ids.is_empty()).map(|(label, _)| label).collect())
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
        let mut options = options.clone();
        options.selection.reversed = options.selection.hop.direction != HopDirection::Both;
        let in_memory = self.is_in_memory(&options)?;
        let lists = self.lists(&options, in_memory).await?;
        let settings = self.program_settings(&options);
        let ran = run_program(program, &lists, &settings, supersteps_max, observe, &mut self.branch).await?;
        let ProgramRun { states, progress: Progress { superstep, collections, .. }, memory } = ran;
        let ids = lists.ids().clone();
        let deleted = lists.deleted().to_vec();
        Ok(ProgramStates { ids, states, deleted, supersteps: superstep, collections, _memory: memory })
    }

    /// The lists of a selection for a program.
    async fn lists(&mut self, options: &ComputeOptions, in_memory: bool) -> Result<Lists, EngineError> {
        if in_memory {
            return Lists::in_memory(&Arc::new(self.load_topology(options).await?), self.branch.context());
        }
        Lists::streamed(&self.snapshot, &options.selection, &mut self.branch).await
    }

    fn program_settings(&self, options: &ComputeOptions) -> ProgramSettings {
        ProgramSettings {
            states: options.states.clone(),
            states_cache: options.states_cache,
            workers: options.workers.clone(),
            checkpoint: options.checkpoint.as_ref().map(|file| self.checkpoint(file, &options.selection)),
            asynchronous: options.asynchronous,
        }
    }

    /// A checkpoint of a computation on a selection of this version.
    fn checkpoint(&self, file: &CheckpointFile, selection: &Selection) -> Checkpoint {
        let manifest = self.snapshot.manifest();
        let Selection { hop, labels, weight, condition_direction, .. } = selection;
        let labels: String = labels.iter().map(|label| format!(" with {label:?}")).collect();
        let weight = weight.as_ref().map(|weight| format!(" by {weight:?}")).unwrap_or_default();
        // A hop that was turned around may have its condition at either end.
        let direction = match (&hop.condition, condition_direction) {
            (Some(_), Some(direction)) => format!(" with its condition along {direction:?}"),
            _ => String::new(),
        };
        // The time of the version, too: a graph that was loaded again has other ids, and may have the same version.
        let graph = format!(
            "{hop}{direction}{labels}{weight} of version {} of {}, from {}",
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
            Placement::Automatic => {
                let Selection { hop, weight, .. } = &options.selection;
                !self.is_in_memory(options)? && weight.is_none() && hop.condition.is_none()
            }
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
        let vertices: Vec<(&StartKey, VertexId)> = match algorithm.has_one_start() {
            true => keys.iter().zip(self.named(keys).await?).collect(),
            false => {
                let found = self.resolve(keys).await?;
                keys.iter().zip(&found).flat_map(|(key, all)| all.vertices().map(move |vertex| (key, vertex))).collect()
            }
        };
        let id = |(key, vertex): (&StartKey, VertexId)| {
            let none = || Error::new(ErrorKind::Invalid, format!("no selected edge can have {key} at an end"));
            ids.of_vertex(vertex).map(|id| id as u32).ok_or_else(none)
        };
        vertices.into_iter().map(id).collect()
    }

    /// What a kernel gets besides its lists.
    async fn kernel_extras<A>(
        &mut self,
        algorithm: &Algorithm,
        selection: &Selection,
        topology: &Topology<A>,
    ) -> Result<KernelExtras, Error> {
        let options = algorithm.options();
        let starts = match options.count(SAMPLE_OPTION) {
            Some(count) => {
                let seed = options.seed(SEED_OPTION).unwrap_or_default();
                self.sampled(count, seed, &topology.ids, topology.deleted.len()).await?
            }
            None => {
                let starts = self.starts(algorithm, &topology.ids).await?;
                let bytes = starts.len() as u64 * 4;
                Held::counted(starts, bytes, self.branch.context()).map_err(EngineError::from)?
            }
        };
        let places = self.places(algorithm, &topology.ids).await?;
        let is_undirected = selection.hop.direction == HopDirection::Both;
        Ok(KernelExtras { options: options.clone(), is_undirected, starts, places })
    }

    /// The places of vertices by label and key, if an algorithm reads them.
    async fn places(&mut self, algorithm: &Algorithm, ids: &DenseIds) -> Result<Option<Held<Vec<u32>>>, EngineError> {
        Ok(match algorithm.spec().key_order {
            KeyOrder::Read => Some(self.key_places(ids).await?),
            KeyOrder::Unused | KeyOrder::Named => None,
        })
    }

    async fn compute_by_kernel(&mut self, algorithm: &Algorithm, options: &ComputeOptions) -> Result<Computed, Error> {
        let spec = algorithm.spec();
        let workers = &options.workers;
        let selection = &options.selection;
        let none = || EngineError::Internal(format!("{} has no kernel", spec.name));
        let kernel = spec.kernel.ok_or_else(none)?;
        if self.is_packed(options)? {
            let topology = Topology::load_packed(&self.snapshot, selection, workers, &mut self.branch).await?;
            let extras = self.kernel_extras(algorithm, selection, &topology).await?;
            let work = move |context: &QueryContext| {
                let found = (kernel.packed)(&extras.input(&topology, context))?;
                [Some(&topology.out), topology.against.as_ref()].into_iter().flatten().try_for_each(Packed::check)?;
                Ok::<_, EngineError>(Computed::by_kernel(spec, topology.ids, topology.deleted, found))
            };
            return Ok(workers.run(self.branch.context(), work).await??);
        }
        let topology = self.load_topology(options).await?;
        let extras = self.kernel_extras(algorithm, selection, &topology).await?;
        let work = move |context: &QueryContext| {
            let found = (kernel.decoded)(&extras.input(&topology, context))?;
            Ok::<_, EngineError>(Computed::by_kernel(spec, topology.ids, topology.deleted, found))
        };
        Ok(workers.run(self.branch.context(), work).await??)
    }

    /// How many triangles a selection has: sets of three vertices of which each two have an edge, in whichever direction. Its lists
    /// are in memory.
    ///
    /// # Errors
    /// As [`Self::compute`].
    pub async fn count_triangles(&mut self, options: &ComputeOptions) -> Result<u64, Error> {
        let computed = self.compute(&Algorithm::named("triangles")?, options, |_| ()).await?;
        match computed.figure("triangles") {
            Some(Figure::Count(triangles)) => Ok(triangles),
            _ => Err(Error::new(ErrorKind::Internal, "the number of triangles is missing")),
        }
    }

    async fn compute_by_program(
        &mut self,
        algorithm: &Algorithm,
        options: &ComputeOptions,
        in_memory: bool,
        observe: &mut (dyn FnMut(&ComputeProgress) + Send),
    ) -> Result<Computed, Error> {
        let spec = algorithm.spec();
        let none = || EngineError::Internal(format!("{} has no program", spec.name));
        let program = spec.program.ok_or_else(none)?;
        let ids = options.selection.dense_ids(&self.snapshot)?;
        let starts = self.starts(algorithm, &ids).await?;
        let places = self.places(algorithm, &ids).await?;
        let program = (program.make)(ProgramInput { options: algorithm.options(), starts: &starts, places })?;
        let mut options = options.clone();
        options.selection.reversed = options.selection.hop.direction != HopDirection::Both;
        let lists = self.lists(&options, in_memory).await?;
        let settings = self.program_settings(&options);
        let found = program.run(&lists, &settings, observe, &mut self.branch).await?;
        let ProgramResult { values, supersteps, collections } = found;
        let deleted = lists.deleted().to_vec();
        let bytes = deleted.len() as u64 * 4;
        Ok(Computed {
            name: spec.value_name().into(),
            has_groups: spec.has_groups(),
            supersteps: Some(supersteps),
            // In supersteps all vertices collect each time.
            collections: options.asynchronous.map(|_| collections),
            streamed: !in_memory,
            figures: Vec::new(),
            ids: lists.ids().clone(),
            deleted: Held::counted(deleted, bytes, self.branch.context()).map_err(EngineError::from)?,
            values: Some(values),
            others: Vec::new(),
        })
    }
}

/// What a kernel gets besides its lists.
struct KernelExtras {
    options: Options,
    is_undirected: bool,
    starts: Held<Vec<u32>>,
    places: Option<Held<Vec<u32>>>,
}

impl KernelExtras {
    fn input<'a, A: Adjacency>(&'a self, topology: &'a Topology<A>, context: &'a QueryContext) -> KernelInput<'a, A> {
        KernelInput {
            topology,
            is_undirected: self.is_undirected,
            options: &self.options,
            starts: &self.starts,
            places: self.places.as_ref().map(|places| &places[..]),
            context,
        }
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
