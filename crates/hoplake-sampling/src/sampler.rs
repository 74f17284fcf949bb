//! Samples hop by hop.

use std::{collections::BTreeSet, sync::Arc};

use hoplake_analytics::Workers;
use hoplake_engine::{EdgesOf, EngineError, Held, Snapshot};
use hoplake_format::{LabelId, VertexId};
use hoplake_storage::{Branch, MemoryHold, QueryContext};
use rayon::prelude::*;

use crate::{
    Sample, SampledEdges, SamplerSettings,
    choose::{Choice, Seen},
    links::Existing,
    lists::{InMemory, List, Lists, Read},
    numbering::{Chosen, NUMBERED_BYTES, Numbering},
    random::Randomness,
    settings::FanOut,
    times,
};

/// What a sampled edge takes at most: its ends, in lists that are doubled as they grow, and a vertex that is new.
const EDGE_BYTES: u64 = 2 * (8 + 8) + NUMBERED_BYTES;

/// What its place in its list takes, as it was chosen and in the sample.
const PLACE_BYTES: u64 = 2 * (4 + 4);

/// What an edge of an induced sample takes, with what it is made of.
const INDUCED_BYTES: u64 = 5 * 8 + 4;

/// An edge of an induced sample: its ends, and its place in its list.
type Induced = (i64, (i64, u32));

/// Vertices whose lists a thread samples at a time.
const CHUNK: usize = 256;

/// Samples neighbourhoods of a version.
#[derive(Debug, Clone)]
pub struct Sampler {
    snapshot: Arc<Snapshot>,
    settings: Arc<SamplerSettings>,
    workers: Workers,
    /// `None` if lists are read from the bucket in each hop.
    in_memory: Option<Lists>,
    existing: Existing,
}

impl Sampler {
    /// A sampler that reads lists from the bucket, through the caches: one wave a hop, and one more if edges have weights.
    ///
    /// # Errors
    /// [`EngineError::Invalid`] for settings without a fan-out, with two for the same edges, or with too many hops.
    pub fn on_bucket(
        snapshot: &Arc<Snapshot>,
        settings: SamplerSettings,
        workers: Workers,
    ) -> Result<Self, EngineError> {
        settings.check(snapshot)?;
        settings.time.as_ref().map_or(Ok(()), |time| times::check(snapshot, time))?;
        let (snapshot, settings) = (snapshot.clone(), Arc::new(settings));
        Ok(Self { snapshot, settings, workers, in_memory: None, existing: Existing::default() })
    }

    /// A sampler that loads all lists into memory, once: 8 bytes a vertex and 4 an edge, 12 with a weight. A time takes 1 to 8 bytes more
    /// for each vertex or edge that has one, as its differences need. Its samples are those of [`Self::on_bucket`].
    ///
    /// # Errors
    /// As [`Self::on_bucket`]; [`EngineError::Limit`] if the budget is too small, before anything is read; the store's.
    pub async fn in_memory(
        snapshot: &Arc<Snapshot>,
        settings: SamplerSettings,
        workers: Workers,
        branch: &mut Branch,
    ) -> Result<Self, EngineError> {
        let sampler = Self::on_bucket(snapshot, settings, workers)?;
        let SamplerSettings { fan_outs, weight, time, .. } = &*sampler.settings;
        let weight = weight.as_deref();
        let lists = InMemory::load(snapshot, fan_outs, weight, time.as_ref(), &sampler.workers, branch).await?;
        Ok(Self { in_memory: Some(Lists::InMemory(Arc::new(lists))), ..sampler })
    }

    /// The same sampler on other threads.
    pub fn with_workers(self, workers: Workers) -> Self {
        Self { workers, ..self }
    }

    /// What it samples, and how.
    pub fn settings(&self) -> &SamplerSettings {
        &self.settings
    }

    /// The sample of some seeds. A batch of the same number and seeds is always the same; of another number, other neighbours are chosen.
    ///
    /// # Errors
    /// [`EngineError::NotFound`] if a seed is not a vertex of the version; [`EngineError::Invalid`] if a weight cannot be one;
    /// [`EngineError::Limit`] at a limit of the query; the store's.
    pub async fn sample(
        &self,
        seeds: &[VertexId],
        batch: u64,
        branch: &mut Branch,
    ) -> Result<Held<Sample>, EngineError> {
        self.sample_at(seeds, &[], batch, branch).await
    }

    /// The sample of some seeds, each with its time, of a sampler with a time: nothing in it is later than its seed.
    ///
    /// # Errors
    /// As [`Self::sample`]; [`EngineError::Invalid`] if there is not one time for each seed, or if the sampler has no time.
    pub async fn sample_at(
        &self,
        seeds: &[VertexId],
        times: &[i64],
        batch: u64,
        branch: &mut Branch,
    ) -> Result<Held<Sample>, EngineError> {
        self.check(seeds)?;
        let expected = if self.settings.time.is_some() { seeds.len() } else { 0 };
        if times.len() != expected {
            let message = match self.settings.time {
                Some(_) => format!("{} times for {} seeds; each seed needs one", times.len(), seeds.len()),
                None => "seeds have times, but the sampler does not have one of edges or vertices".into(),
            };
            return Err(EngineError::Invalid(message));
        }
        let memory = branch.context().hold(seeds.len() as u64 * (EDGE_BYTES + 8))?;
        let mut growing = Growing::new(self.settings.clone(), batch, seeds, times.to_vec(), memory);
        for hop in 0..self.settings.hops() {
            let lists = self.lists(|| growing.frontiers(hop), branch).await?;
            growing = self.work(branch, growing, move |growing, context| growing.grow(hop, &lists, context)).await?;
        }
        if self.settings.induced {
            let lists = self.lists(|| growing.all(), branch).await?;
            growing = self.work(branch, growing, move |growing, context| growing.induce(&lists, context)).await?;
        }
        Ok(growing.finish())
    }

    pub(crate) fn snapshot(&self) -> &Arc<Snapshot> {
        &self.snapshot
    }

    pub(crate) fn workers(&self) -> &Workers {
        &self.workers
    }

    pub(crate) fn in_memory_lists(&self) -> Option<&Lists> {
        self.in_memory.as_ref()
    }

    pub(crate) fn known_existing(&self) -> &Existing {
        &self.existing
    }

    /// Rejects seeds that are not vertices.
    pub(crate) fn check(&self, seeds: &[VertexId]) -> Result<(), EngineError> {
        match seeds.iter().position(|seed| !self.snapshot.has_vertex(*seed)) {
            None => Ok(()),
            Some(at) => {
                let message = format!("seed {at} ({}) is not a vertex of the graph", seeds[at]);
                Err(EngineError::NotFound(message))
            }
        }
    }

    /// The lists of the vertices that are wanted, or all of them if they are in memory.
    async fn lists(
        &self,
        wanted: impl FnOnce() -> Vec<(usize, EdgesOf, Vec<VertexId>)>,
        branch: &mut Branch,
    ) -> Result<Lists, EngineError> {
        match &self.in_memory {
            Some(lists) => Ok(lists.clone()),
            None => {
                let wanted = wanted();
                let weight = self.settings.weight.as_deref();
                let _wanted = branch.context().hold(wanted.iter().map(|(.., all)| all.len() as u64 * 16).sum())?;
                Ok(Lists::Read(Arc::new(
                    Read::read(&self.snapshot, &wanted, weight, self.settings.time.as_ref(), branch).await?,
                )))
            }
        }
    }

    /// Goes on with a sample on the threads that compute.
    async fn work(
        &self,
        branch: &Branch,
        mut growing: Growing,
        step: impl FnOnce(&mut Growing, &QueryContext) -> Result<(), EngineError> + Send + 'static,
    ) -> Result<Growing, EngineError> {
        let work = move |context: &QueryContext| step(&mut growing, context).map(|()| growing);
        self.workers.run(branch.context(), work).await?
    }
}

/// A sample that grows.
struct Growing {
    settings: Arc<SamplerSettings>,
    batch: u64,
    seeds: Vec<i64>,
    /// The times of the seeds, if the sampler has one.
    times: Vec<i64>,
    labels: Vec<Numbering>,
    edges: Vec<SampledEdges>,
    memory: MemoryHold,
}

impl Growing {
    fn new(
        settings: Arc<SamplerSettings>,
        batch: u64,
        seeds: &[VertexId],
        times: Vec<i64>,
        memory: MemoryHold,
    ) -> Self {
        let ends = settings.fan_outs.iter().flat_map(|fan_out| [fan_out.edges.near, fan_out.edges.far]);
        let labels: BTreeSet<LabelId> = ends.chain(seeds.iter().map(|seed| seed.label())).collect();
        let edges = settings.fan_outs.iter().map(|fan_out| SampledEdges {
            edges: fan_out.edges,
            near: Vec::new(),
            far: Vec::new(),
            places: Vec::new(),
            per_hop: Vec::new(),
        });
        let mut growing = Self {
            edges: edges.collect(),
            labels: labels.into_iter().map(Numbering::new).collect(),
            seeds: Vec::with_capacity(seeds.len()),
            times,
            settings,
            batch,
            memory,
        };
        for (tree, seed) in seeds.iter().enumerate() {
            let tree = if growing.settings.disjoint { tree as u32 } else { 0 };
            let at = growing.place(seed.label());
            let number = growing.labels[at].number(*seed, tree);
            growing.seeds.push(number.into());
        }
        growing.labels.iter_mut().for_each(Numbering::end_hop);
        growing
    }

    /// Which of the labels it is.
    fn place(&self, label: LabelId) -> usize {
        self.labels.partition_point(|numbering| numbering.label < label)
    }

    /// The vertices whose lists a hop reads, for each fan-out that has the hop.
    fn frontiers(&self, hop: usize) -> Vec<(usize, EdgesOf, Vec<VertexId>)> {
        let with_count = self.settings.fan_outs.iter().enumerate().filter(|(_, fan_out)| fan_out.count(hop).is_some());
        let frontier = |(number, fan_out): (usize, &FanOut)| {
            let near = &self.labels[self.place(fan_out.edges.near)];
            let vertices = near.vertices(near.frontier()).iter().map(|(vertex, _)| *vertex).collect();
            (number, fan_out.edges, vertices)
        };
        with_count.map(frontier).collect()
    }

    /// The same of all vertices.
    fn all(&self) -> Vec<(usize, EdgesOf, Vec<VertexId>)> {
        let of = |(number, fan_out): (usize, &FanOut)| {
            let near = &self.labels[self.place(fan_out.edges.near)];
            (number, fan_out.edges, near.vertices(0..near.len()).iter().map(|(vertex, _)| *vertex).collect())
        };
        self.settings.fan_outs.iter().enumerate().map(of).collect()
    }

    /// Samples a hop.
    fn grow(&mut self, hop: usize, lists: &Lists, context: &QueryContext) -> Result<(), EngineError> {
        let settings = self.settings.clone();
        let is_last = settings.time.as_ref().is_some_and(|time| time.last);
        let seed_times = self.times.clone();
        let edge_bytes = EDGE_BYTES + if settings.places { PLACE_BYTES } else { 0 };
        for (number, fan_out) in settings.fan_outs.iter().enumerate() {
            let Some(count) = fan_out.count(hop) else {
                self.edges[number].per_hop.push(0);
                continue;
            };
            let choice = Choice { count, replace: settings.replace };
            let randomness = Randomness::new(settings.seed, self.batch, hop, fan_out.edges);
            let near = self.place(fan_out.edges.near);
            let frontier = self.labels[near].frontier();
            let vertices = self.labels[near].vertices(frontier.clone());
            let bytes = vertices.len() as u64 * (4 + size_of::<List<'_>>() as u64);
            let bytes = self.memory.bytes().saturating_add(bytes);
            context.resize(&mut self.memory, bytes)?;
            // Looked up once: in memory, each look-up waits for memory that no cache has.
            let found: Vec<List<'_>> =
                vertices.par_iter().with_min_len(CHUNK).map(|(vertex, _)| lists.list(number, *vertex)).collect();
            let most: u64 = found.iter().map(|list| choice.most(list.len()) as u64).sum();
            let bytes = self.memory.bytes().saturating_add(most.saturating_mul(edge_bytes));
            context.resize(&mut self.memory, bytes)?;
            let chosen: Result<Vec<Chosen>, EngineError> = vertices
                .par_chunks(CHUNK)
                .zip(found.par_chunks(CHUNK))
                .map(|(vertices, found)| {
                    context.check_time()?;
                    let mut chosen = Chosen::default();
                    let mut positions = Vec::new();
                    let mut seen = Seen::default();
                    for ((vertex, tree), list) in vertices.iter().zip(found) {
                        let random = || randomness.of_list(*vertex, *tree);
                        match list.times {
                            None => choice.choose(list.len(), list.weights, random, &mut positions)?,
                            Some(_) => {
                                let now = seed_times[*tree as usize];
                                choice.choose_seen(
                                    (list.len(), |at| list.time(at), now),
                                    is_last,
                                    list.weights,
                                    random,
                                    (&mut seen, &mut positions),
                                )?;
                            }
                        }
                        if settings.places {
                            chosen.places.extend(positions.iter().map(|at| *at as u32));
                        }
                        let tree = settings.disjoint.then_some(*tree);
                        chosen.push(positions.iter().map(|at| list.ordinal(*at)), tree);
                    }
                    chosen.divide();
                    Ok(chosen)
                })
                .collect();
            let far = self.place(fan_out.edges.far);
            let edges = &mut self.edges[number];
            let before = edges.near.len();
            let ends = (&mut edges.near, &mut edges.far);
            let chosen = chosen?;
            self.labels[far].number_all(&chosen, frontier.start, ends, context)?;
            chosen.iter().for_each(|chosen| edges.places.extend(&chosen.places));
            edges.per_hop.push(edges.near.len() - before);
        }
        self.labels.iter_mut().for_each(Numbering::end_hop);
        Ok(())
    }

    /// Replaces the chosen edges by all between the vertices.
    fn induce(&mut self, lists: &Lists, context: &QueryContext) -> Result<(), EngineError> {
        let seed_times = self.times.clone();
        for number in 0..self.edges.len() {
            let EdgesOf { near, far, .. } = self.edges[number].edges;
            let near = &self.labels[self.place(near)];
            let far_numbers = &self.labels[self.place(far)];
            let found = |context: &QueryContext, first: usize, vertices: &[(VertexId, u32)]| {
                context.check_time()?;
                let mut edges = Vec::new();
                for (at, (vertex, tree)) in vertices.iter().enumerate() {
                    let list = lists.list(number, *vertex);
                    let is_seen = |at: &usize| list.times.is_none() || list.time(*at) <= seed_times[*tree as usize];
                    let seen = (0..list.len()).filter(is_seen);
                    let known = seen.filter_map(|place| {
                        let vertex = VertexId::new(far, list.ordinal(place))?;
                        Some(((first + at) as i64, (far_numbers.known(vertex, *tree)?.into(), place as u32)))
                    });
                    edges.extend(known);
                }
                Ok::<_, EngineError>(edges)
            };
            let chunks = near.vertices(0..near.len()).par_chunks(CHUNK).enumerate();
            let most: u64 =
                near.vertices(0..near.len()).iter().map(|(vertex, _)| lists.list(number, *vertex).len() as u64).sum();
            let bytes = self.memory.bytes().saturating_add(most.saturating_mul(INDUCED_BYTES));
            context.resize(&mut self.memory, bytes)?;
            let all: Result<Vec<Vec<Induced>>, EngineError> =
                chunks.map(|(chunk, vertices)| found(context, chunk * CHUNK, vertices)).collect();
            let edges = &mut self.edges[number];
            (edges.near, (edges.far, edges.places)) = all?.into_iter().flatten().unzip();
            if !self.settings.places {
                edges.places = Vec::new();
            }
            edges.per_hop = vec![edges.near.len()];
        }
        Ok(())
    }

    fn finish(self) -> Held<Sample> {
        let Self { settings, seeds, labels, edges, mut memory, .. } = self;
        let vertices = labels.into_iter().filter(|label| label.len() > 0).map(|label| label.finish(settings.disjoint));
        let sample = Sample { seeds, vertices: vertices.collect(), edges };
        // Tables and lists are dropped; less can always be had.
        let _ = memory.resize(sample.bytes().min(memory.bytes()));
        Held::new(sample, memory)
    }
}
