//! Negatives: pairs of vertices without an edge, next to which a model learns to tell edges.

use std::sync::{Arc, Mutex, PoisonError};

use hoplake_engine::{EdgesOf, EngineError, Held};
use hoplake_format::{LabelId, VertexId};
use hoplake_storage::Branch;
use rand::RngExt;

use crate::{
    Sampler,
    lists::{Lists, Read},
    random::Randomness,
    vertices::existing,
};

/// How often a pair that is an edge is drawn again. Then it is taken as it is: a vertex may have edges to all others.
const DRAWN_AGAIN: usize = 5;

/// The hop of negatives in the words that random numbers follow from, and that before it; no sample has as many.
const HOP: usize = usize::MAX;

/// What a pair takes, with its vertex in a set and a place among lists.
const PAIR_BYTES: u64 = 6 * 8;

/// The vertices where negatives begin.
#[derive(Debug, Clone, Copy)]
pub enum NegativesFrom<'a> {
    /// As many random ones.
    Any(usize),
    /// These, each as many times.
    Each(&'a [VertexId], usize),
}

/// Pairs of vertices.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Negatives {
    /// The vertices where they begin.
    pub near: Vec<VertexId>,
    /// The others.
    pub far: Vec<VertexId>,
}

/// Ordinals of vertices that exist, by label, of labels that lost some.
pub(crate) type Existing = Arc<Mutex<Vec<(LabelId, Arc<Held<Vec<i64>>>)>>>;

/// The vertices of a label that can be drawn.
struct Urn {
    label: LabelId,
    count: u64,
    /// None if all ordinals are of vertices that exist.
    existing: Option<Arc<Held<Vec<i64>>>>,
}

impl Urn {
    fn len(&self) -> u64 {
        self.existing.as_ref().map_or(self.count, |existing| existing.len() as u64)
    }

    fn draw(&self, random: &mut impl rand::Rng) -> Result<VertexId, EngineError> {
        let at = random.random_range(0..self.len());
        let ordinal = self.existing.as_ref().map_or(at, |existing| existing[at as usize] as u64);
        VertexId::new(self.label, ordinal)
            .ok_or_else(|| EngineError::Internal("an ordinal has more than 48 bits".into()))
    }
}

impl Sampler {
    /// Random pairs that are not edges of a type: each end is drawn from all vertices of its label with the same chance, and a pair that is
    /// an edge is drawn again, up to 5 times. One wave, which reads the lists of the vertices where they begin; none if these are in
    /// memory.
    ///
    /// # Errors
    /// [`EngineError::Invalid`] if a label has no vertices; [`EngineError::NotFound`] if a vertex does not exist;
    /// [`EngineError::Limit`] at a limit of the query; the store's.
    pub async fn negatives(
        &self,
        edges: EdgesOf,
        from: NegativesFrom<'_>,
        batch: u64,
        branch: &mut Branch,
    ) -> Result<Held<Negatives>, EngineError> {
        let count = match from {
            NegativesFrom::Any(count) => count,
            NegativesFrom::Each(vertices, times) => vertices.len().saturating_mul(times),
        };
        let memory = branch.context().hold((count as u64).saturating_mul(PAIR_BYTES))?;
        if count == 0 {
            return Ok(Held::new(Negatives::default(), memory));
        }
        let (nears, fars) = (self.urn(edges.near, branch).await?, self.urn(edges.far, branch).await?);
        if nears.len() == 0 || fars.len() == 0 {
            return Err(EngineError::Invalid("a label without vertices has no negatives".into()));
        }
        let seed = self.settings().seed;
        let (of_near, of_far) =
            (Randomness::new(seed, batch, HOP, edges), Randomness::new(seed, batch, HOP - 1, edges));
        let start =
            VertexId::new(edges.near, 0).ok_or_else(|| EngineError::Internal("0 has more than 48 bits".into()))?;
        let near = (0..count).map(|at| match from {
            NegativesFrom::Any(_) => nears.draw(&mut of_near.of_list(start, at as u32)),
            NegativesFrom::Each(vertices, times) => Ok(vertices[at / times]),
        });
        let near: Vec<VertexId> = near.collect::<Result<_, _>>()?;
        self.check(&near)?;
        let mut wanted = near.clone();
        wanted.sort_unstable();
        wanted.dedup();
        let (fan_out, lists) = self.lists_along(edges, wanted, branch).await?;
        let draw = move |context: &hoplake_storage::QueryContext| {
            let mut far = Vec::with_capacity(near.len());
            for (at, vertex) in near.iter().enumerate() {
                if at % 1_024 == 0 {
                    context.check_time()?;
                }
                let mut random = of_far.of_list(start, at as u32);
                let list = lists.list(fan_out, *vertex);
                let mut drawn = fars.draw(&mut random)?;
                for _ in 0..DRAWN_AGAIN {
                    if !list.has(drawn) {
                        break;
                    }
                    drawn = fars.draw(&mut random)?;
                }
                far.push(drawn);
            }
            Ok(Negatives { near, far })
        };
        let negatives: Result<Negatives, EngineError> = self.workers().run(branch.context(), draw).await?;
        Ok(Held::new(negatives?, memory))
    }

    /// The lists of vertices along the edges of a type, and the fan-out that they have there.
    async fn lists_along(
        &self,
        edges: EdgesOf,
        wanted: Vec<VertexId>,
        branch: &mut Branch,
    ) -> Result<(usize, Lists), EngineError> {
        let known = self.settings().fan_outs.iter().position(|fan_out| fan_out.edges == edges);
        match (known, self.in_memory_lists()) {
            (Some(fan_out), Some(lists)) => Ok((fan_out, lists.clone())),
            _ => {
                let read = Read::read(self.snapshot(), &[(0, edges, wanted)], None, None, branch).await?;
                Ok((0, Lists::Read(Arc::new(read))))
            }
        }
    }

    async fn urn(&self, label: LabelId, branch: &mut Branch) -> Result<Urn, EngineError> {
        let count = self.snapshot().ordinal_count(label);
        let counts = self.snapshot().manifest().vertex_counts.get(usize::from(label.0));
        if counts.is_none_or(|counts| counts.gone == 0) {
            return Ok(Urn { label, count, existing: None });
        }
        let lock = || self.known_existing().lock().unwrap_or_else(PoisonError::into_inner);
        let known = lock().iter().find(|(known, _)| *known == label).map(|(_, existing)| existing.clone());
        let existing = match known {
            Some(existing) => existing,
            None => {
                let found = Arc::new(existing(self.snapshot(), label, branch).await?);
                lock().push((label, found.clone()));
                found
            }
        };
        Ok(Urn { label, count, existing: Some(existing) })
    }
}
