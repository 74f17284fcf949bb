//! Computations over the whole graph, whose results are properties of vertices for the steps behind them.
//!
//! ```text
//! traversers ─▶ weights ─▶ vertex program over all lists ─▶ a column by dense id ─▶ joined to what is read of vertices
//! ```
//! Nothing is written: the property is seen by the query alone, in place of one of the same name.

use hoplake_analytics::{
    Lists, RunError, RunSettings, Selection, Topology, VertexProgram, Workers, run,
    stores::{MemoryStore, StateStore},
};
use hoplake_engine::{DenseIds, EngineError, vertex_text};
use hoplake_format::{Key, KeyType, LabelId};
use hoplake_storage::{MemoryHold, QueryContext};

use super::hop::{Hop, as_vertices};
use crate::{
    operators::{hop_along, prelude::*},
    run::{
        Column, Computed, Names,
        programs::{Components, PageRank, PeerPressure},
    },
    tokens::Direction,
};

/// A property of each vertex that is computed over the whole graph, for the steps behind.
#[derive(Debug, Clone, PartialEq)]
pub struct Compute {
    /// What is computed.
    pub program: Program,
    /// The property that vertices have of it.
    pub property: Name,
    /// The edges that it goes along: in which direction, and of which labels.
    pub edges: (Direction, Vec<Name>),
    /// Whether it begins with the traversers that come, and not with all vertices alike.
    pub from_traversers: bool,
}

/// What is computed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Program {
    /// PageRank with this damping factor, for this many rounds at most.
    PageRank(f64, usize),
    /// Clusters by peer pressure, for this many rounds at most.
    PeerPressure(usize),
    /// Connected components.
    ConnectedComponent,
}

impl Program {
    /// The step that computes it.
    pub fn step(self) -> &'static str {
        match self {
            Self::PageRank(..) => "pageRank",
            Self::PeerPressure(_) => "peerPressure",
            Self::ConnectedComponent => "connectedComponent",
        }
    }
}

impl Operator for Compute {
    fn parameters(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let (direction, labels) = &self.edges;
        write!(f, " {} as {} along", self.program.step(), self.property)?;
        Hop::write(f, *direction, labels)
    }

    fn is_barrier(&self) -> bool {
        true
    }

    fn start(self: Arc<Self>) -> Running {
        AllInput::running(self)
    }
}

impl All for Compute {
    async fn all(&self, run: &mut Run, all: Batch, _: &Frames) -> Done<Output> {
        run.compute(self, &all).await?;
        Ok(Output::Same(all))
    }
}

/// Lists that are loaded into memory, if the query has no limit of its own; more is streamed in each round.
const LISTS_BYTES_MAX: u64 = 2 << 30;

/// What the id of a vertex takes besides its text: its pointer and length, its places, and what the allocator adds.
const NAME_BYTES: u64 = 40;

impl Run {
    /// Computes a property of all vertices, for the steps behind.
    pub(crate) async fn compute(&mut self, computation: &Compute, batch: &Batch) -> Done<()> {
        let snapshot = self.snapshot.clone();
        let context = self.branch.context().clone();
        let labels = (0..snapshot.schema().vertex_labels.len()).map(|label| LabelId(label as u16));
        let ids = Arc::new(snapshot.dense_ids(labels));
        let weights = match computation.from_traversers {
            true => Some(Arc::new(self.weights(batch, &ids, computation)?)),
            false => None,
        };
        let mut hold = context.hold(ids.len() * size_of::<f64>() as u64)?;
        let column = match computation.program {
            Program::PageRank(damping, times) => {
                let program = PageRank { damping, initial: weights };
                Column::Numbers(self.states(program, computation, Some(times)).await?)
            }
            Program::PeerPressure(times) => {
                let (names, places) = self.names_in_order(&ids, false, &mut hold).await?;
                let program = PeerPressure { places, strengths: weights };
                let states = self.states(program, computation, Some(times)).await?;
                Column::Vertices(states.into_iter().map(|(cluster, _)| cluster).collect(), names)
            }
            Program::ConnectedComponent => {
                let (names, places) = self.names_in_order(&ids, true, &mut hold).await?;
                Column::Vertices(self.states(Components { places }, computation, None).await?, names)
            }
        };
        let property = computation.property.clone();
        // What was read before lacks it, or has that of the graph.
        self.kept = None;
        self.computed.retain(|computed| computed.property != property);
        self.computed.push(Arc::new(Computed { property, ids, column, _hold: hold }));
        Ok(())
    }

    /// How many traversers there are on each vertex, by dense id.
    fn weights(&self, batch: &Batch, ids: &DenseIds, computation: &Compute) -> Done<Vec<(u32, f64)>> {
        if batch.is_empty() {
            return Ok(Vec::new());
        }
        let places: Vec<u32> = (0..batch.len() as u32).collect();
        let on_vertices =
            as_vertices(batch.take(&places, &self.growth)?, &format!("`{}`", computation.program.step()))?;
        let Items::Vertices(vertices) = &on_vertices.items else { return Ok(Vec::new()) };
        let with_bulks = vertices.iter().zip(&batch.rows);
        let mut weights: Vec<(u32, f64)> =
            with_bulks.filter_map(|(vertex, row)| Some((ids.of_vertex(*vertex)? as u32, row.bulk as f64))).collect();
        weights.sort_by_key(|(id, _)| *id);
        weights.dedup_by(|more, first| {
            let is_same = more.0 == first.0;
            first.1 += if is_same { more.1 } else { 0.0 };
            is_same
        });
        Ok(weights)
    }

    /// The states that a program leaves, by dense id.
    async fn states<P: VertexProgram>(
        &mut self,
        program: P,
        computation: &Compute,
        supersteps_max: Option<usize>,
    ) -> Done<Vec<P::State>> {
        let context = self.branch.context().clone();
        let lists = self.lists(computation).await?;
        let vertices = lists.vertices();
        let _hold = context.hold(u64::from(vertices) * size_of::<P::State>() as u64)?;
        let store: Arc<dyn StateStore<P::State>> = Arc::new(MemoryStore::new(vertices));
        let settings = RunSettings { supersteps_max, ..RunSettings::default() };
        run(&Arc::new(program), &lists, &store, &settings, |_| (), &mut self.branch).await.map_err(failed)?;
        store.read(0..vertices).map_err(|error| EngineError::Internal(error.to_string()).into())
    }

    /// The lists that a computation goes along: in memory if they fit, and otherwise streamed in each round.
    async fn lists(&mut self, computation: &Compute) -> Done<Lists> {
        let snapshot = self.snapshot.clone();
        let context = self.branch.context().clone();
        let (direction, labels) = &computation.edges;
        let Some(hop) = hop_along(&snapshot, *direction, labels) else {
            let topology = Topology::without_edges(&snapshot, &mut self.branch).await?;
            return Ok(Lists::in_memory(&Arc::new(topology), &context)?);
        };
        let labels = snapshot.schema().vertex_labels.iter().map(|label| label.name.clone()).collect();
        let reversed = *direction != Direction::Both;
        let selection = Selection { hop, labels, reversed, ..Selection::default() };
        let left = match context.memory().left() {
            u64::MAX => LISTS_BYTES_MAX,
            left => left,
        };
        if selection.memory_bytes(&snapshot)? > left {
            return Ok(Lists::streamed(&snapshot, &selection, &mut self.branch).await?);
        }
        let topology = Topology::load(&snapshot, &selection, &Workers::default(), &mut self.branch).await?;
        Ok(Lists::in_memory(&Arc::new(topology), &context)?)
    }

    /// The ids of all vertices in their order as texts, and for each vertex the place of its own.
    async fn names_in_order(
        &mut self,
        ids: &Arc<DenseIds>,
        as_texts: bool,
        hold: &mut MemoryHold,
    ) -> Done<(Names, Arc<Vec<u32>>)> {
        let snapshot = self.snapshot.clone();
        let context = self.branch.context().clone();
        let are_keys = snapshot.manifest().unique_keys;
        context.resize(hold, hold.bytes() + ids.len() * NAME_BYTES)?;
        let mut names: Vec<Box<str>> = vec![Box::default(); ids.len() as usize];
        // Labels without vertices may have keys of another type.
        let are_numbers = !as_texts && snapshot.manifest().unique_key_type() == Some(KeyType::Int64);
        let mut pace = context.pace();
        for (label, own) in ids.by_label() {
            let Some(described) = snapshot.schema().label(label) else { continue };
            let mut scan = snapshot.scan_keys(label, snapshot.ahead_bytes(&context));
            let mut keys = Vec::new();
            while scan.next(&mut keys, &mut self.branch).await? {
                let mut bytes = 0;
                for (key, ordinal) in keys.drain(..) {
                    let name = match key {
                        key if !are_keys => vertex_text(&described.name, &key),
                        Key::String(text) => text,
                        Key::Int64(number) => number.to_string(),
                    };
                    bytes += name.len() as u64;
                    if let Some(place) = names.get_mut((own.start + ordinal) as usize) {
                        *place = name.into();
                    }
                }
                context.resize(hold, hold.bytes() + bytes)?;
                pace.rest(bytes).await?;
            }
        }
        let sort = move |_: &QueryContext| {
            let mut order: Vec<u32> = (0..names.len() as u32).collect();
            order.sort_unstable_by(|a, b| names[*a as usize].cmp(&names[*b as usize]));
            let mut places = vec![0; names.len()];
            (0..).zip(&order).for_each(|(place, id)| places[*id as usize] = place);
            let sorted = order.iter().map(|id| std::mem::take(&mut names[*id as usize])).collect();
            (sorted, places)
        };
        let (sorted, places) = Workers::default().run(&context, sort).await?;
        Ok((Names { sorted, are_numbers }, Arc::new(places)))
    }
}

fn failed(error: RunError) -> QueryError {
    match error {
        RunError::Graph(error) => error.into(),
        error => EngineError::Internal(error.to_string()).into(),
    }
}
