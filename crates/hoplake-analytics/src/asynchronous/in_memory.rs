//! Asynchronous runs over lists in memory: a change of a signal marks exactly the vertices that it reaches.
//!
//! A step goes through the chunks that have something to do, each on one thread, which has the chunk's states meanwhile. Within a
//! chunk it finds the vertices that wait as it goes, so that those which are reached ahead of it collect in the same step.

use std::{ops::Range, sync::Arc};

use hoplake_storage::{Branch, QueryContext};
use rayon::prelude::*;

use super::{
    AsyncSettings, Course, Done, Shared,
    waiting::{Masses, Surveyed, Worklist},
};
use crate::{
    Progress, RunError, Step, Topology, VertexProgram,
    lists::{CHUNK, Lists},
    stores::StateStore,
};

/// Chunks for each thread between two looks at whether anyone still wants the result.
const CHUNKS_A_WORKER: usize = 16;

struct Exact<P: VertexProgram> {
    shared: Arc<Shared<P>>,
    topology: Arc<Topology>,
    waiting: Worklist,
}

pub(super) async fn run<P: VertexProgram>(
    program: &Arc<P>,
    lists: &Lists,
    topology: &Arc<Topology>,
    store: &Arc<dyn StateStore<P::State>>,
    settings: &AsyncSettings,
    mut observe: impl FnMut(&Progress<P::Aggregate>),
    branch: &mut Branch,
) -> Result<Progress<P::Aggregate>, RunError> {
    let workers = &settings.workers;
    let vertices = lists.vertices();
    let (shared, _ended) = Shared::new(program, lists, store, Worklist::bytes(vertices), workers, branch).await?;
    let waiting = Worklist::new(vertices, settings.threshold, settings.staleness_max);
    let exact = Arc::new(Exact { shared: shared.clone(), topology: topology.clone(), waiting });
    let mut course = Course::begin(shared, CHUNK, settings).await?;
    let first = exact.clone();
    workers.run(&exact.shared.context, move |_| first.mark_first()).await??;
    loop {
        let survey = exact.clone();
        let number = course.progress.superstep as u32 + 1;
        let (chunks, masses) = workers.run(&exact.shared.context, move |_| survey.survey(number)).await?;
        let waiting = crate::run::Waiting {
            count: chunks.iter().map(|chunk| chunk.waiting).sum(),
            greatest_score: chunks.iter().map(|chunk| chunk.greatest).fold(0.0, f32::max).into(),
        };
        if course.progress.superstep > 0 {
            course.progress.waiting = Some(waiting);
            observe(&course.progress);
        }
        if !course.goes_on(waiting, chunks.iter().map(|chunk| chunk.sum).sum()) {
            return course.end().await;
        }
        let cut = masses.cut();
        let step = course.next_step();
        let ascends = number % 2 == 1;
        let has_work = |chunk: &&Surveyed| chunk.waiting > 0 && (chunk.greatest >= cut || chunk.is_late);
        let mut firsts: Vec<u32> = chunks.iter().filter(has_work).map(|chunk| chunk.first).collect();
        if !ascends {
            firsts.reverse();
        }
        for firsts in firsts.chunks(workers.threads() * CHUNKS_A_WORKER) {
            let exact = exact.clone();
            let step = step.clone();
            let firsts = firsts.to_vec();
            let sweep = move |_: &QueryContext| {
                let done = firsts.par_iter().map(|first| Ok((*first, exact.sweep(*first, cut, ascends, &step)?)));
                done.collect::<Result<Vec<_>, RunError>>()
            };
            for (first, done) in workers.run(&course.shared.context, sweep).await?? {
                course.count(&done);
                course.blocks[(first / CHUNK) as usize] = done.aggregate;
            }
        }
        course.progress.aggregate = course.shared.sum(&course.blocks);
    }
}

impl<P: VertexProgram> Exact<P> {
    fn chunk(&self, first: u32) -> Range<u32> {
        first..self.shared.vertices.min(first.saturating_add(CHUNK))
    }

    /// Marks the vertices that collect in the first step: all, or those that a signal reaches.
    fn mark_first(&self) -> Result<(), RunError> {
        (0..self.shared.vertices).into_par_iter().step_by(CHUNK as usize).try_for_each(|first| {
            self.shared.context.check_time()?;
            for id in self.shared.present(self.chunk(first)) {
                if !P::WAITS_FOR_SIGNALS {
                    self.waiting.add(id, self.waiting.reason());
                } else if let Some(signal) = self.shared.signals.get(id) {
                    let score = self.shared.program.score(None, Some(signal));
                    if score > 0.0 {
                        self.mark(id, score);
                    }
                }
            }
            Ok(())
        })
    }

    /// Adds to the reasons of those that a vertex signals to.
    fn mark(&self, id: u32, score: f64) {
        self.topology.out.neighbours(id).iter().for_each(|reached| self.waiting.add(*reached, score));
    }

    fn survey(&self, step: u32) -> (Vec<Surveyed>, Masses) {
        let firsts: Vec<u32> = (0..self.shared.vertices).step_by(CHUNK as usize).collect();
        let surveyed = firsts.into_par_iter().fold(Default::default, |found: (Vec<Surveyed>, Masses), first| {
            let (mut chunks, mut masses) = found;
            chunks.push(self.waiting.survey(self.chunk(first), step, &mut masses));
            (chunks, masses)
        });
        // In the order of chunks, whichever thread had them.
        surveyed.reduce(Default::default, |(mut chunks, masses), (next, other)| {
            chunks.extend(next);
            (chunks, masses.merge(&other))
        })
    }

    /// A step for a chunk: those that wait with the score `cut` or more, or too long, collect one after the other.
    fn sweep(
        &self,
        first: u32,
        cut: f32,
        ascends: bool,
        step: &Step<P::Aggregate>,
    ) -> Result<Done<P::Aggregate>, RunError> {
        let shared = &*self.shared;
        let chunk = self.chunk(first);
        let against = self.topology.against.as_ref().unwrap_or(&self.topology.out);
        let sweep = |states: &mut [P::State]| {
            let mut left = chunk.clone();
            let mut collections = 0;
            let mut changed = 0;
            loop {
                let next = if ascends { self.waiting.first(left.clone()) } else { self.waiting.last(left.clone()) };
                let Some(id) = next else { return (collections, changed) };
                left = if ascends { id + 1..left.end } else { left.start..id };
                if !self.waiting.goes(id, cut, step.number as u32) {
                    continue;
                }
                self.waiting.clear(id);
                let vertex = shared.vertex(id);
                let state = &mut states[(id - first) as usize];
                collections += 1;
                changed +=
                    u64::from(shared.collect(&vertex, state, against.neighbours(id), against.weights_of(id), step));
                let score = shared.signal(&vertex, state);
                if score > 0.0 {
                    self.mark(id, score);
                }
            }
        };
        let ((collections, changed), aggregate) = shared.change(chunk.clone(), sweep)?;
        Ok(Done { collections, changed, aggregate })
    }
}
