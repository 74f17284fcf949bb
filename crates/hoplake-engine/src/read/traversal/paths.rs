//! The walks of a traversal, one by one.
//!
//! Walks are enumerated depth first, and lists are read when a walk needs them: the first walk of a traversal of k hops
//! costs k lists if nothing leads into a dead end, however many walks there are. What is known stays known: a vertex of
//! which all continuations were tried in vain is *dead* at its depth and is never tried again, so that dead ends cost at
//! most what the traversal itself costs.
//!
//! One list at a time would make one round trip each. A read therefore also brings the lists of the vertices that come
//! next at the same depth: as many as there are walks wanted, and twice as many whenever what the last read at that depth
//! brought led to no walk. All walks of a small traversal take the traversal's waves.
//!
//! Memory holds the lists of the current walk, those that were read in advance, and the dead. When lists read before do
//! not fit any more, those off the current walk are dropped and read again from the cache if they are needed.
//!
//! Under the visit policy *global* a vertex belongs to the first depth that reaches it, which only the whole traversal
//! tells: its sets are found first, and walks keep to them.
//!
//! A list has the vertices that an edge each leads to, or, if walks are to have their edges, the edges themselves
//! ([`Paths::with_edges`]): parallel edges make walks of their own, so each walk has one edge between two vertices.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::Instant,
};

use futures::future::BoxFuture;
use hoplake_format::VertexId;
use hoplake_storage::{Branch, MemoryHold, QueryContext, StorageError};

use super::{DepthProfile, Reached, Traversal, VisitPolicy, Watch};
use crate::{
    EdgeList, Edges, EngineError, Frontier, Held, Neighbour, Snapshot, Walk,
    memory::bytes_of,
    pieces::{STEP, sort_by_key},
    read::frontier::sorted,
};

/// The most lists that one read brings.
const LISTS_MAX: usize = 1 << 16;
/// Walks that are wanted if nobody says: enough that lists come many at a time.
const WANTED: usize = 1 << 12;
/// What a vertex takes that is dead: 8 bytes and one for the table, of which at least 7/16 are used.
const DEAD_BYTES: u64 = 20;
/// What a vertex takes whose list is wanted: in a table while it is collected, and in the frontier.
const WANTED_BYTES: u64 = 32;
/// What a vertex takes that was looked behind, with its depth.
const PASSED_BYTES: u64 = 40;

/// The walks of a traversal, from a start to a vertex of the last depth. Parallel edges make walks that look alike, as
/// often as there are edges.
#[derive(Debug)]
pub struct Paths {
    snapshot: Arc<Snapshot>,
    branch: Branch,
    /// Without its starts.
    traversal: Traversal,
    starts: Held<Steps>,
    /// Under *global*: the sets that walks keep to.
    allowed: Option<Held<Reached>>,
    layers: Vec<Layer>,
    /// For each depth of the current walk: the alternatives there, and which of them comes next.
    trail: Vec<(Steps, usize)>,
    walk: Vec<VertexId>,
    /// For each depth of the current walk, whether a walk was found through it.
    fruitful: Vec<bool>,
    /// Lists that the next read brings.
    lists: usize,
    /// For each depth, whether lists were read there since the last walk.
    tried: Vec<bool>,
    /// Whether the number of walks wanted is known.
    counted: bool,
    with_edges: bool,
    vertices: u64,
    profile: Vec<DepthProfile>,
}

/// How many walks a traversal has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WalkCount {
    /// Their number; `None` if it is 2¹²⁸ or more.
    pub walks: Option<u128>,
    /// What each hop took.
    pub profile: Vec<DepthProfile>,
}

/// Where a hop leads from a vertex, with repeats for parallel edges.
#[derive(Debug, Clone)]
enum Steps {
    Vertices(Arc<[VertexId]>),
    Edges(Arc<[Neighbour]>),
}

impl Steps {
    fn none() -> Self {
        Self::Vertices(Arc::new([]))
    }

    fn vertex(&self, at: usize) -> Option<VertexId> {
        match self {
            Self::Vertices(vertices) => vertices.get(at).copied(),
            Self::Edges(edges) => edges.get(at).map(|edge| edge.to),
        }
    }

    fn edge(&self, at: usize) -> Option<Neighbour> {
        match self {
            Self::Vertices(_) => None,
            Self::Edges(edges) => edges.get(at).copied(),
        }
    }

    /// The vertices from a position on.
    fn from(&self, at: usize) -> impl Iterator<Item = VertexId> {
        (at..).map_while(|at| self.vertex(at))
    }

    /// Its memory as one of a layer's lists.
    fn bytes(&self) -> u64 {
        LIST_BYTES
            + match self {
                Self::Vertices(vertices) => bytes_of::<VertexId>(vertices.len()),
                Self::Edges(edges) => bytes_of::<Neighbour>(edges.len()),
            }
    }
}

/// What is known of the vertices of a depth.
#[derive(Debug)]
struct Layer {
    lists: HashMap<VertexId, Steps>,
    lists_memory: MemoryHold,
    dead: HashSet<VertexId>,
    dead_memory: MemoryHold,
}

impl Layer {
    fn new(context: &QueryContext) -> Result<Self, StorageError> {
        let lists_memory = context.hold(0)?;
        let dead_memory = context.hold(0)?;
        Ok(Self { lists: HashMap::new(), lists_memory, dead: HashSet::new(), dead_memory })
    }

    fn bury(&mut self, vertex: VertexId, context: &QueryContext) -> Result<(), StorageError> {
        if self.dead.insert(vertex) {
            context.resize(&mut self.dead_memory, self.dead.len() as u64 * DEAD_BYTES)?;
        }
        Ok(())
    }
}

/// The vertices of a depth whose lists one read brings, while they are collected.
struct LookAhead {
    depth: usize,
    wanted: HashSet<VertexId>,
    /// Vertices of the depths before that were looked behind.
    passed: HashSet<(usize, VertexId)>,
    /// How many more vertices are looked at.
    steps: usize,
}

/// What an empty list takes in a layer: two counts and what the allocator adds; and its entry of 32 bytes and one in a table of which
/// at least 7/16 are used.
const LIST_BYTES: u64 = 16 + 16 + 76;

impl Snapshot {
    /// The walks of a traversal that its visit policy allows, of which `wanted` are about to be asked for, or `None` if
    /// that is not known. Nothing is read before the first is asked for, unless vertices are to be visited once.
    ///
    /// # Errors
    /// As [`Self::traverse`].
    pub fn paths<'a>(
        self: &'a Arc<Self>,
        traversal: &'a Traversal,
        wanted: Option<usize>,
        branch: &'a mut Branch,
    ) -> BoxFuture<'a, Result<Paths, EngineError>> {
        Box::pin(async move {
            self.check_traversal(traversal)?;
            let mut profile = vec![DepthProfile::default(); traversal.hops.len()];
            let allowed = match traversal.visit {
                VisitPolicy::PerDepth => None,
                VisitPolicy::Global => {
                    let reached = self.traverse(traversal, branch).await?;
                    profile.clone_from(&reached.profile);
                    Some(reached)
                }
            };
            let context = branch.context();
            traversal.limits.apply(context);
            let starts = sorted(&traversal.starts, context).await?;
            // Copied once more.
            let memory = context.hold(bytes_of::<VertexId>(starts.len()))?;
            let starts = Held::new(Steps::Vertices(starts.as_slice().into()), memory);
            let layers = traversal.hops.iter().map(|_| Layer::new(context)).collect::<Result<_, _>>()?;
            Ok(Paths {
                snapshot: self.clone(),
                branch: branch.clone(),
                traversal: Traversal { starts: Vec::new(), hops: traversal.hops.clone(), ..*traversal },
                trail: vec![(starts.clone().into_inner(), 0)],
                starts,
                allowed,
                layers,
                walk: Vec::new(),
                fruitful: vec![false],
                lists: wanted.unwrap_or(WANTED).clamp(1, LISTS_MAX),
                tried: vec![false; traversal.hops.len()],
                counted: wanted.is_some(),
                with_edges: false,
                vertices: 0,
                profile,
            })
        })
    }

    /// How many walks a traversal has that its visit policy allows, without keeping one: for each vertex of a depth, how
    /// many lead to it. Takes the waves of the traversal.
    ///
    /// # Errors
    /// As [`Self::traverse`].
    pub fn count_walks<'a>(
        self: &'a Arc<Self>,
        traversal: &'a Traversal,
        branch: &'a mut Branch,
    ) -> BoxFuture<'a, Result<WalkCount, EngineError>> {
        Box::pin(async move {
            let context = &branch.context().clone();
            self.check_traversal(traversal)?;
            let mut watch = Watch::new(&traversal.limits, self, context);
            let starts = sorted(&traversal.starts, context).await?;
            let mut memory = context.hold(2 * starts.len() as u64 * COUNT_BYTES)?;
            let mut counts: HashMap<VertexId, u128> = starts.iter().map(|vertex| (*vertex, 1)).collect();
            let mut seen: HashSet<VertexId> = starts.iter().copied().collect();
            drop(starts);
            let mut pace = context.pace();
            let mut overflown = false;
            let mut profile = Vec::with_capacity(traversal.hops.len());
            for hop in &traversal.hops {
                let begun = Instant::now();
                let before = context.cost();
                let mut edges_read = 0;
                let mut next: HashMap<VertexId, u128> = HashMap::new();
                let _sources = context.hold(bytes_of::<VertexId>(counts.len()))?;
                let mut sources: Vec<VertexId> = counts.keys().copied().collect();
                sort_by_key(&mut sources, |vertex| *vertex, context).await?;
                let from = branch.clone();
                // A frontier's lists can be many times its vertices: some sources at a time, which all wait for the same.
                for sources in sources.chunks(COUNTED) {
                    let frontier = Frontier::of_sorted(sources, &mut pace).await?;
                    let mut line = from.clone();
                    let edges = self.adjacency().neighbours(&frontier, hop, &mut line).await?;
                    branch.join([&line]);
                    edges_read += edges.len() as u64;
                    for list in edges.lists() {
                        let walks = counts[&list.from];
                        for step in list.targets.chunks(STEP) {
                            let known = counts.len() + next.len() + seen.len() + step.len();
                            context.resize(&mut memory, known as u64 * COUNT_BYTES)?;
                            for to in step {
                                if traversal.visit == VisitPolicy::Global && seen.contains(to) {
                                    continue;
                                }
                                let count = next.entry(*to).or_default();
                                let sum = count.checked_add(walks);
                                overflown |= sum.is_none();
                                *count = sum.unwrap_or(u128::MAX);
                            }
                            pace.rest(step.len() as u64 * 8).await?;
                        }
                    }
                }
                if traversal.visit == VisitPolicy::Global {
                    seen.extend(next.keys());
                }
                watch.visited(next.len())?;
                profile.push(DepthProfile {
                    edges: edges_read,
                    vertices: next.len() as u64,
                    cost: context.cost().since(&before),
                    time_us: begun.elapsed().as_micros() as u64,
                });
                counts = next;
            }
            let sum = counts.values().try_fold(0u128, |sum, count| sum.checked_add(*count));
            Ok(WalkCount { walks: sum.filter(|_| !overflown), profile })
        })
    }
}

/// What the count of a vertex takes: 32 bytes and one for the table, of which at least 7/16 are used.
const COUNT_BYTES: u64 = 76;
/// Sources whose edges are counted at a time.
const COUNTED: usize = 1 << 16;

impl Paths {
    /// The same walks from the first on, with their edges: in the same waves, with five times the memory for lists.
    #[must_use]
    pub fn with_edges(mut self) -> Self {
        self.with_edges = true;
        // Lists that were read without edges are of no use.
        self.walk.clear();
        self.drop_lists();
        self.trail = vec![(self.starts.clone().into_inner(), 0)];
        self.fruitful = vec![false];
        self
    }

    /// The next walk; `None` after the last.
    ///
    /// # Errors
    /// As [`Snapshot::traverse`].
    pub fn next<'a>(&'a mut self) -> BoxFuture<'a, Result<Option<Walk>, EngineError>> {
        Box::pin(async move {
            let hops = self.traversal.hops.len();
            let context = self.branch.context().clone();
            let mut pace = context.pace();
            while let Some(depth) = self.trail.len().checked_sub(1) {
                pace.rest(16).await?;
                self.walk.truncate(depth);
                let (alternatives, position) = &mut self.trail[depth];
                let Some(vertex) = alternatives.vertex(*position) else {
                    self.leave(depth)?;
                    continue;
                };
                *position += 1;
                if !self.is_allowed(depth, vertex) || self.layers.get(depth).is_some_and(|it| it.dead.contains(&vertex))
                {
                    continue;
                }
                self.walk.push(vertex);
                if depth == hops {
                    self.fruitful.iter_mut().for_each(|fruitful| *fruitful = true);
                    // Where the number of walks wanted is unknown, `tried` stays set, so that reads keep doubling.
                    if self.counted {
                        self.tried.fill(false);
                    }
                    return Ok(Some(self.current()));
                }
                let targets = match self.layers[depth].lists.get(&vertex) {
                    Some(targets) => targets.clone(),
                    None => self.read(depth, vertex).await?,
                };
                self.trail.push((targets, 0));
                self.fruitful.push(false);
            }
            Ok(None)
        })
    }

    /// The walk that was found last.
    fn current(&self) -> Walk {
        // Positions are those of the next alternatives.
        let followed = self.trail.iter().skip(1).map(|(steps, next)| steps.edge(next - 1));
        let edges = if self.with_edges { followed.flatten().collect() } else { Vec::new() };
        Walk { vertices: self.walk.clone(), edges }
    }

    /// What each hop took so far. Without sets found first, `vertices` are those whose edges were read.
    pub fn profile(&self) -> &[DepthProfile] {
        &self.profile
    }

    /// Its line of work: what follows depends on it.
    pub fn branch(&self) -> &Branch {
        &self.branch
    }

    fn is_allowed(&self, depth: usize, vertex: VertexId) -> bool {
        self.allowed.as_ref().is_none_or(|reached| reached.depths[depth].contains(vertex))
    }

    /// All alternatives at a depth were tried: the vertex before them is dead if no walk was found.
    fn leave(&mut self, depth: usize) -> Result<(), StorageError> {
        self.trail.pop();
        let fruitful = self.fruitful.pop().unwrap_or(true);
        if let Some(before) = depth.checked_sub(1)
            && !fruitful
        {
            let vertex = self.walk[before];
            self.layers[before].bury(vertex, self.branch.context())?;
        }
        Ok(())
    }

    /// Reads the list of a vertex at a depth, and of those that come after it there.
    async fn read(&mut self, depth: usize, vertex: VertexId) -> Result<Steps, EngineError> {
        if std::mem::replace(&mut self.tried[depth], true) {
            // What the last read brought here led to no walk: many dead ends are read at once, rather than with a round trip each.
            self.lists = (self.lists * 2).min(LISTS_MAX);
        }
        let begun = Instant::now();
        let before = self.branch.context().cost();
        loop {
            match self.read_upcoming(depth, vertex).await {
                // What was read in advance makes room; then less comes at a time.
                Err(EngineError::Limit { .. }) if self.drop_lists() => {}
                Err(EngineError::Limit { .. }) if self.lists > 1 => self.lists /= 4,
                read => break read?,
            }
        }
        let read = &mut self.profile[depth];
        read.cost = read.cost + self.branch.context().cost().since(&before);
        read.time_us += begun.elapsed().as_micros() as u64;
        Ok(self.layers[depth].lists.get(&vertex).cloned().unwrap_or_else(Steps::none))
    }

    async fn read_upcoming(&mut self, depth: usize, vertex: VertexId) -> Result<(), EngineError> {
        self.lists = self.lists.max(1);
        let bytes = self.lists as u64 * WANTED_BYTES + self.steps_max() as u64 * PASSED_BYTES;
        let _memory = self.branch.context().hold(bytes)?;
        let wanted = self.upcoming(depth, vertex);
        self.load(depth, &wanted).await
    }

    /// Vertices that are looked at for a read: no more than some milliseconds.
    fn steps_max(&self) -> usize {
        (self.lists * 8).clamp(1 << 10, 1 << 16)
    }

    /// Puts the lists of some vertices into a layer.
    async fn load(&mut self, depth: usize, wanted: &Frontier) -> Result<(), EngineError> {
        let edges = self.edges(depth, wanted).await?;
        let layer = &mut self.layers[depth];
        let steps =
            if self.with_edges { bytes_of::<Neighbour>(edges.len()) } else { bytes_of::<VertexId>(edges.len()) };
        let bytes = layer.lists_memory.bytes() + steps + wanted.len() as u64 * LIST_BYTES;
        self.branch.context().resize(&mut layer.lists_memory, bytes)?;
        let mut pace = self.branch.context().pace();
        let mut each = self.with_edges.then(|| edges.iter());
        let mut lists = edges.lists().peekable();
        while let Some(EdgeList { from, targets, .. }) = lists.next() {
            // Of each edge type and direction one; usually there is one.
            let mut all: Arc<[VertexId]> = targets.into();
            while let Some(more) = lists.next_if(|list| list.from == from) {
                all = all.iter().chain(more.targets).copied().collect();
            }
            pace.rest(all.len() as u64 + 32).await?;
            let steps = match &mut each {
                None => Steps::Vertices(all),
                // Lists have the edges in their order.
                Some(each) => Steps::Edges(each.by_ref().take(all.len()).collect()),
            };
            layer.lists.insert(from, steps);
        }
        for vertex in wanted.vertices() {
            // Vertices without edges were read as well, and must not be read again.
            layer.lists.entry(vertex).or_insert_with(Steps::none);
            pace.rest(8).await?;
        }
        if self.traversal.visit == VisitPolicy::PerDepth {
            self.profile[depth].edges += edges.len() as u64;
            self.profile[depth].vertices += wanted.len() as u64;
        }
        Ok(())
    }

    async fn edges(&mut self, depth: usize, wanted: &Frontier) -> Result<Held<Edges>, EngineError> {
        let hop = &self.traversal.hops[depth];
        let edges = self.snapshot.adjacency().neighbours(wanted, hop, &mut self.branch).await?;
        self.vertices += wanted.len() as u64;
        if let Some(limit) = self.traversal.limits.vertices_max.filter(|limit| self.vertices > *limit) {
            let cost = Box::new(self.branch.context().cost());
            return Err(EngineError::Limit { limit: format!("{limit} vertices"), is_shared: false, cost });
        }
        Ok(edges)
    }

    /// The vertex, and those that walks come to after it at its depth, as far as is known: the alternatives next to it, and
    /// those behind the alternatives of the depths before.
    fn upcoming(&self, depth: usize, vertex: VertexId) -> Frontier {
        let wanted = HashSet::from([vertex]);
        let passed = HashSet::new();
        let mut ahead = LookAhead { depth, wanted, passed, steps: self.steps_max() };
        // Deepest first: what is next to the vertex comes before what is behind its parent's neighbours.
        for level in (0..=depth).rev() {
            let (alternatives, position) = &self.trail[level];
            for vertex in alternatives.from(*position) {
                if !self.collect(level, vertex, &mut ahead) {
                    return ahead.wanted.into_iter().collect();
                }
            }
        }
        ahead.wanted.into_iter().collect()
    }

    /// Collects the vertices that known lists lead to from a vertex of `level`; `false` when there are enough.
    fn collect(&self, level: usize, vertex: VertexId, ahead: &mut LookAhead) -> bool {
        if ahead.wanted.len() >= self.lists || ahead.steps == 0 {
            return false;
        }
        ahead.steps -= 1;
        let layer = &self.layers[level];
        if !self.is_allowed(level, vertex) || layer.dead.contains(&vertex) {
            return true;
        }
        let known = layer.lists.get(&vertex);
        if level == ahead.depth {
            if known.is_none() {
                ahead.wanted.insert(vertex);
            }
            return true;
        }
        if !ahead.passed.insert((level, vertex)) {
            return true;
        }
        known.is_none_or(|list| list.from(0).all(|next| self.collect(level + 1, next, ahead)))
    }

    /// Gives back the memory of all lists but those of the current walk, which are read again when they are needed. Whether
    /// there were any.
    pub fn drop_lists(&mut self) -> bool {
        let mut dropped = false;
        for (depth, layer) in self.layers.iter_mut().enumerate() {
            let on_walk = self.walk.get(depth).and_then(|vertex| layer.lists.remove_entry(vertex));
            dropped |= !layer.lists.is_empty();
            layer.lists = on_walk.into_iter().collect();
            let bytes = layer.lists.values().map(Steps::bytes).sum();
            // Less than before: that is never rejected.
            let _ = layer.lists_memory.resize(bytes);
        }
        dropped
    }
}
