//! Connected components by Afforest (Sutton, Ben-Nun, Barak: *Optimizing parallel graph connectivity computation via subgraph
//! sampling*, 2018).
//!
//! Each vertex points to one with a lower id, and a component is a tree of such pointers. An edge links the roots of the trees of
//! its two ends. The first two edges of every vertex already join most of the graph into one component, which a sample finds;
//! vertices that are in it skip the rest of their edges. What they skip is seen from the other end, unless that is in it, too.

use std::{
    ops::Range,
    sync::atomic::{AtomicU32, Ordering::Relaxed},
};

use hoplake_engine::{EngineError, Held};
use hoplake_storage::{QueryContext, StorageError};
use rayon::prelude::*;

use super::{CHUNK, held};
use crate::{
    Adjacency, Cursor,
    adjacency::InOrder,
    programs,
    registry::{
        AlgorithmSpec, Kernel, KernelInput, KernelResult, KeyOrder, Neighbours, Program, ProgramInput, ProgramSpec,
        Runnable, ValueType, Values,
    },
};

/// Components, as users see them.
pub(crate) const COMPONENTS: AlgorithmSpec = AlgorithmSpec {
    name: "components",
    value: Some("component"),
    help: "a number that is the same for all vertices of a connected component; the direction of edges is ignored",
    value_type: ValueType::Integer,
    neighbours: Neighbours::Undirected,
    key_order: KeyOrder::Named,
    program: Some(ProgramSpec { make: program, streamed_bytes: 14, synchronous: None }),
    kernel: Some(Kernel { decoded: run, packed: run }),
    ..AlgorithmSpec::USUAL
};

fn run<A: Adjacency>(input: &KernelInput<'_, A>) -> Result<KernelResult, EngineError> {
    let found = connected_components(&input.topology.out, Some(input.against()), input.context)?;
    Ok(found.map(Values::Integers).into())
}

fn program(_: ProgramInput<'_>) -> Result<Box<dyn Program>, EngineError> {
    Ok(Box::new(Runnable::new(programs::Components, Values::Integers)))
}

/// Edges of each vertex before the sample, as the paper has it, but in one pass over the lists.
const SAMPLED_EDGES: usize = 2;
/// Vertices of the sample.
const SAMPLE: usize = 1024;

/// The component of each vertex, whichever way its edges point: the lowest id in it. `against` has the same edges from their other
/// ends: `out` itself if edges have no direction. Without it no edge can be skipped.
///
/// # Errors
/// [`StorageError::Limit`] if the query's time is over, or its memory does not hold the components.
pub fn connected_components<A: Adjacency>(
    out: &A,
    against: Option<&A>,
    context: &QueryContext,
) -> Result<Held<Vec<u32>>, StorageError> {
    let memory = context.hold(out.len() as u64 * 8)?;
    let parents: Vec<AtomicU32> = (0..out.len() as u32).map(AtomicU32::new).collect();
    let forest = Forest { parents: &parents, context };
    let in_order = InOrder::new(out);
    forest.each(|vertices| {
        let mut lists = out.cursor();
        vertices.for_each(|vertex| {
            let mut left = SAMPLED_EDGES;
            lists.any(vertex, |target| {
                forest.link(vertex, target);
                left -= 1;
                left == 0
            });
        });
    })?;
    // From here on most lists are skipped.
    drop(in_order);
    forest.compress()?;
    let largest = against.and_then(|_| forest.largest_of_sample());
    forest.each(|vertices| {
        let mut lists = out.cursor();
        let mut others = against.map(Adjacency::cursor);
        for vertex in vertices.filter(|vertex| largest.is_none_or(|largest| forest.parent(*vertex) != largest)) {
            let rest = lists.unordered(vertex).iter().skip(SAMPLED_EDGES);
            // The edges of skipped vertices lead here.
            let skipped = others.as_mut().map_or(&[][..], |others| others.unordered(vertex));
            rest.chain(skipped).for_each(|target| forest.link(vertex, *target));
        }
    })?;
    forest.compress()?;
    Ok(held(parents.into_iter().map(AtomicU32::into_inner).collect(), 4 * out.len(), memory))
}

struct Forest<'a> {
    parents: &'a [AtomicU32],
    context: &'a QueryContext,
}

impl Forest<'_> {
    /// Runs over all vertices, by ranges.
    fn each(&self, of_range: impl Fn(Range<u32>) + Sync) -> Result<(), StorageError> {
        (0..self.parents.len()).into_par_iter().step_by(CHUNK).try_for_each(|first| {
            self.context.check_time()?;
            of_range(first as u32..self.parents.len().min(first + CHUNK) as u32);
            Ok(())
        })
    }

    #[inline]
    fn parent(&self, vertex: u32) -> u32 {
        self.parents[vertex as usize].load(Relaxed)
    }

    /// Joins the trees of two vertices. The higher root gets the lower one as its parent, so pointers always descend, there is no
    /// circle, and the last root is the lowest id.
    fn link(&self, a: u32, b: u32) {
        let mut a = self.parent(a);
        let mut b = self.parent(b);
        while a != b {
            let high = a.max(b);
            let low = a.min(b);
            let above = self.parent(high);
            // Another thread may have linked it to the same root, or to another: then one goes on from there.
            if above == low {
                return;
            }
            let linked =
                above == high && self.parents[high as usize].compare_exchange(high, low, Relaxed, Relaxed).is_ok();
            if linked {
                return;
            }
            a = self.parent(self.parent(high));
            b = self.parent(low);
        }
    }

    /// Has every vertex point to its root.
    fn compress(&self) -> Result<(), StorageError> {
        self.each(|vertices| {
            for vertex in vertices {
                let mut parent = self.parent(vertex);
                while parent != self.parent(parent) {
                    parent = self.parent(parent);
                }
                self.parents[vertex as usize].store(parent, Relaxed);
            }
        })
    }

    /// The component that most vertices of a sample are in, which is spread evenly.
    fn largest_of_sample(&self) -> Option<u32> {
        let step = (self.parents.len() / SAMPLE).max(1);
        let mut sample: Vec<u32> =
            (0..self.parents.len()).step_by(step).map(|vertex| self.parent(vertex as u32)).collect();
        sample.sort_unstable();
        sample.chunk_by(|a, b| a == b).max_by_key(|same| same.len()).map(|same| same[0])
    }
}
