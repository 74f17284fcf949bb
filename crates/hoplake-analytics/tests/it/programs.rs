//! Programs give what kernels give, over lists in memory and streamed ones, with any store of states and any number of threads.

use std::{path::Path, sync::Arc};

use hoplake_analytics::{
    Adjacency, Csr, Lists, RunError, RunSettings, Selection, Topology, Value, VertexProgram, Workers,
    kernels::{PageRankSettings, breadth_first_levels, connected_components, page_rank},
    programs::{Components, Labels, Levels, PageRank, ShortestPaths},
    run,
    stores::{CompressedStore, KeyValueStore, MemoryStore, SlotStore, StateStore},
};
use hoplake_engine::Snapshot;
use hoplake_storage::{QueryContext, ReadLimits};

use crate::{loading::changed, open};

fn stores<S: Value>(folder: &Path, vertices: u32) -> [Arc<dyn StateStore<S>>; 4] {
    [
        Arc::new(MemoryStore::new(vertices)),
        Arc::new(CompressedStore::new(vertices)),
        Arc::new(SlotStore::open(&folder.join("slots"), vertices).unwrap()),
        Arc::new(KeyValueStore::open(&folder.join("states.redb"), vertices, 1 << 20).unwrap()),
    ]
}

fn settings(threads: usize, supersteps_max: Option<usize>) -> RunSettings {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    RunSettings { supersteps_max, workers: Workers::new(Arc::new(pool)) }
}

/// A graph, loaded and not.
struct Both {
    snapshot: Arc<Snapshot>,
    selection: Selection,
    topology: Arc<Topology>,
}

impl Both {
    async fn of(url: &str, hop: &str) -> Self {
        let snapshot = open(url).await;
        let selection = Selection { hop: hop.parse().unwrap(), reversed: true, ..Selection::default() };
        let mut branch = QueryContext::new().branch();
        let topology = Topology::load(&snapshot, &selection, &Workers::default(), &mut branch).await.unwrap();
        Self { snapshot, selection, topology: Arc::new(topology) }
    }

    fn against(&self) -> &Csr {
        self.topology.against.as_ref().unwrap()
    }

    /// The values of vertices that were not deleted.
    fn kept<T: Copy>(&self, values: &[T]) -> Vec<T> {
        let kept = (0..).zip(values).filter(|(vertex, _)| !self.topology.deleted.contains(vertex));
        kept.map(|(_, value)| *value).collect()
    }

    /// The states that a program ends with, however it is run. Lists in memory come first.
    async fn states<P: VertexProgram>(&self, program: P, supersteps_max: Option<usize>) -> Vec<Vec<P::State>> {
        let program = Arc::new(program);
        let mut all = Vec::new();
        for streamed in [false, true] {
            for threads in [1, 3] {
                let folder = tempfile::tempdir().unwrap();
                for store in stores::<P::State>(folder.path(), self.topology.out.len() as u32) {
                    let mut branch = QueryContext::new().branch();
                    let lists = match streamed {
                        true => Lists::streamed(&self.snapshot, &self.selection, &mut branch).await.unwrap(),
                        false => Lists::in_memory(&self.topology, branch.context()).unwrap(),
                    };
                    let settings = settings(threads, supersteps_max);
                    let mut supersteps = 0;
                    let observe = |progress: &hoplake_analytics::Progress<_>| {
                        supersteps += 1;
                        assert_eq!(progress.superstep, supersteps);
                    };
                    let ran = run(&program, &lists, &store, None, &settings, observe, &mut branch).await.unwrap();
                    assert_eq!(ran.superstep, supersteps);
                    assert_eq!(branch.context().memory().used(), lists.deleted().len() as u64 * 4);
                    let mut states = store.take(0..lists.vertices()).unwrap();
                    // Deleted vertices have none.
                    for vertex in lists.deleted().iter().rev() {
                        states.remove(*vertex as usize);
                    }
                    all.push(states);
                }
            }
        }
        let (in_memory, streamed) = all.split_at(8);
        assert!(in_memory.iter().all(|states| *states == in_memory[0]), "any store, any number of threads");
        assert!(streamed.iter().all(|states| *states == streamed[0]), "any store, any number of threads");
        all
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn programs_give_what_kernels_give() {
    let url = changed("programs").await;
    let context = QueryContext::new();
    for hop in ["out", "both", "in:livesIn,near"] {
        let graph = Both::of(&url, hop).await;
        let (out, deleted) = (&graph.topology.out, &graph.topology.deleted);
        let levels = breadth_first_levels(out, Some(graph.against()), 3, &context).unwrap();
        let levels = graph.kept(&levels);
        for found in graph.states(Levels { start: 3 }, None).await {
            assert_eq!(found, levels, "levels along {hop}");
        }
        // Without weights a path is as long as it has edges.
        for found in graph.states(ShortestPaths { start: 3 }, None).await {
            let levels = levels.iter().map(|level| if *level == u32::MAX { f64::INFINITY } else { f64::from(*level) });
            assert_eq!(found, levels.collect::<Vec<_>>(), "paths along {hop}");
        }
        let ranks_settings = PageRankSettings { iterations_max: 30, tolerance: 1e-9, ..PageRankSettings::default() };
        let ranks = page_rank(out, graph.against(), deleted, &ranks_settings, &context).unwrap();
        for found in graph.states(PageRank(ranks_settings), Some(30)).await {
            for (vertex, (found, rank)) in found.iter().zip(graph.kept(&ranks.ranks)).enumerate() {
                assert!((found - rank).abs() < 1e-12, "vertex {vertex} along {hop}: {found}, not {rank}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn least_ids_spread_through_components_and_labels_through_neighbours() {
    let url = changed("spreading").await;
    let graph = Both::of(&url, "both").await;
    let components = connected_components(&graph.topology.out, Some(graph.against()), &QueryContext::new()).unwrap();
    for found in graph.states(Components, None).await {
        assert_eq!(found, graph.kept(&components));
    }
    // As its definition has it.
    let vertices = 0..graph.topology.out.len() as u32;
    let mut labels: Vec<u32> = vertices.clone().collect();
    for supersteps in 1..4 {
        let label = |vertex: u32| {
            let mut counts = std::collections::BTreeMap::new();
            for neighbour in graph.topology.out.neighbours(vertex) {
                *counts.entry(labels[*neighbour as usize]).or_insert(0) += 1;
            }
            let most = counts.values().copied().max().unwrap_or(0);
            counts.iter().find(|(_, count)| **count == most).map_or(labels[vertex as usize], |(label, _)| *label)
        };
        labels = vertices.clone().map(label).collect();
        for found in graph.states(Labels, Some(supersteps)).await {
            assert_eq!(found, graph.kept(&labels), "after {supersteps} supersteps");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_goes_on_from_its_states_and_ends_at_its_limits() {
    let url = changed("resumed").await;
    let graph = Both::of(&url, "out").await;
    let program = Arc::new(PageRank(PageRankSettings::default()));
    let mut branch = QueryContext::new().branch();
    let lists = Lists::streamed(&graph.snapshot, &graph.selection, &mut branch).await.unwrap();
    let whole: Arc<dyn StateStore<f64>> = Arc::new(MemoryStore::new(lists.vertices()));
    run(&program, &lists, &whole, None, &settings(2, Some(12)), |_| (), &mut branch).await.unwrap();
    let parts: Arc<dyn StateStore<f64>> = Arc::new(MemoryStore::new(lists.vertices()));
    run(&program, &lists, &parts, None, &settings(2, Some(5)), |_| (), &mut branch).await.unwrap();
    let ran = run(&program, &lists, &parts, Some(5), &settings(2, Some(12)), |_| (), &mut branch).await.unwrap();
    assert_eq!(ran.superstep, 12);
    let states = |store: &Arc<dyn StateStore<f64>>| store.take(0..lists.vertices()).unwrap();
    assert_eq!(states(&whole), states(&parts), "bit for bit");
    let context = QueryContext::new();
    context.limit(ReadLimits { memory_bytes_max: Some(100), ..ReadLimits::default() });
    let refused = run(&program, &lists, &parts, None, &settings(2, None), |_| (), &mut context.branch()).await;
    let Err(RunError::Graph(error)) = refused else { panic!("{refused:?}") };
    assert!(error.to_string().contains("100 bytes of memory"), "{error}");
    let too_small: Arc<dyn StateStore<f64>> = Arc::new(MemoryStore::new(3));
    let refused = run(&program, &lists, &too_small, None, &settings(2, None), |_| (), &mut branch).await;
    assert!(matches!(refused, Err(RunError::States(_))), "{refused:?}");
}
