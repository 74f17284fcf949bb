//! Programs give what kernels give, over lists in memory and streamed ones, with any store of states and any number of threads.

use std::{path::Path, sync::Arc, time::Duration};

use hoplake::Graph;
use hoplake_analytics::{
    Adjacency, Checkpoint, Csr, Lists, RunError, RunSettings, Selection, Topology, Value, VertexProgram, Workers,
    kernels::{PageRankSettings, breadth_first_levels, connected_components, page_rank, personalised_page_rank},
    programs::{Components, Labels, Levels, PageRank, ShortestPaths},
    run,
    stores::{CompressedStore, KeyValueStore, MemoryStore, SlotStore, StateStore},
};
use hoplake_engine::Snapshot;
use hoplake_storage::{QueryContext, ReadLimits};

use crate::{keys, loading::changed, open};

pub fn stores<S: Value>(folder: &Path, vertices: u32) -> [Arc<dyn StateStore<S>>; 4] {
    [
        Arc::new(MemoryStore::new(vertices)),
        Arc::new(CompressedStore::new(vertices)),
        Arc::new(SlotStore::open(&folder.join("slots"), vertices).unwrap()),
        Arc::new(KeyValueStore::open(&folder.join("states.redb"), vertices, 1 << 20).unwrap()),
    ]
}

fn settings(threads: usize, supersteps_max: Option<usize>) -> RunSettings {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    RunSettings { supersteps_max, workers: Workers::new(Arc::new(pool)), checkpoint: None }
}

/// A graph, loaded and not.
pub struct Both {
    pub snapshot: Arc<Snapshot>,
    pub selection: Selection,
    pub topology: Arc<Topology>,
}

impl Both {
    pub async fn of(url: &str, hop: &str) -> Self {
        Self::weighted(url, hop, None).await
    }

    pub async fn weighted(url: &str, hop: &str, weight: Option<&str>) -> Self {
        let snapshot = open(url).await;
        let weight = weight.map(Into::into);
        let selection = Selection { hop: hop.parse().unwrap(), reversed: true, weight, ..Selection::default() };
        let mut branch = QueryContext::new().branch();
        let topology = Topology::load(&snapshot, &selection, &Workers::default(), &mut branch).await.unwrap();
        Self { snapshot, selection, topology: Arc::new(topology) }
    }

    pub fn against(&self) -> &Csr {
        self.topology.against.as_ref().unwrap()
    }

    /// The values of vertices that were not deleted.
    pub fn kept<T: Copy>(&self, values: &[T]) -> Vec<T> {
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
                    let ran = run(&program, &lists, &store, &settings, observe, &mut branch).await.unwrap();
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
        let out = &graph.topology.out;
        let deleted = &graph.topology.deleted;
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
        // To the end: before, the kernel rounds shares.
        let ranks_settings = PageRankSettings { iterations_max: 300, tolerance: 1e-13, ..PageRankSettings::default() };
        let ranks = page_rank(out, graph.against(), deleted, &ranks_settings, &context).unwrap();
        let personalised =
            personalised_page_rank(out, graph.against(), deleted, &[3, 5], &ranks_settings, &context).unwrap();
        for (sources, ranks) in [(None, ranks), (Some(vec![5, 3, 5]), personalised)] {
            for found in graph.states(PageRank::new(ranks_settings, sources.clone()), Some(300)).await {
                for (vertex, (found, rank)) in found.iter().zip(graph.kept(&ranks.ranks)).enumerate() {
                    assert!((found - rank).abs() < 1e-12, "vertex {vertex} along {hop}: {found}, not {rank}");
                }
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
        for found in graph.states(Labels::default(), Some(supersteps)).await {
            assert_eq!(found, graph.kept(&labels), "after {supersteps} supersteps");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_goes_on_from_its_states_and_ends_at_its_limits() {
    let url = changed("resumed").await;
    let graph = Both::of(&url, "out").await;
    let program = Arc::new(PageRank::default());
    let mut branch = QueryContext::new().branch();
    let lists = Lists::streamed(&graph.snapshot, &graph.selection, &mut branch).await.unwrap();
    let whole: Arc<dyn StateStore<f64>> = Arc::new(MemoryStore::new(lists.vertices()));
    run(&program, &lists, &whole, &settings(2, Some(12)), |_| (), &mut branch).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("states");
    let on = |graph: &str, supersteps_max| {
        let checkpoint = Checkpoint { path: path.clone(), every: Duration::ZERO, graph: graph.into() };
        RunSettings { checkpoint: Some(checkpoint), ..settings(2, supersteps_max) }
    };
    let parts = || -> Arc<dyn StateStore<f64>> { Arc::new(MemoryStore::new(lists.vertices())) };
    run(&program, &lists, &parts(), &on("a", Some(5)), |_| (), &mut branch).await.unwrap();
    // As a run that is killed while it writes the next one leaves it.
    std::fs::write(folder.path().join("states.partial"), "half").unwrap();
    let resumed = parts();
    let mut seen = Vec::new();
    let observe = |progress: &hoplake_analytics::Progress<_>| seen.push(progress.superstep);
    let ran = run(&program, &lists, &resumed, &on("a", Some(12)), observe, &mut branch).await.unwrap();
    assert_eq!((ran.superstep, seen), (12, (5..=12).collect()), "the first run wrote its fourth");
    let states = |store: &Arc<dyn StateStore<f64>>| store.take(0..lists.vertices()).unwrap();
    assert_eq!(states(&whole), states(&resumed), "bit for bit");
    let ended = run(&program, &lists, &parts(), &on("a", Some(3)), |_| (), &mut branch).await.unwrap_err().to_string();
    assert!(ended.contains("it is of superstep 11, and this run ends after 3"), "{ended}");
    let mut rejected = async |program: PageRank, graph: &str| {
        let ran = run(&Arc::new(program), &lists, &parts(), &on(graph, Some(13)), |_| (), &mut branch).await;
        ran.unwrap_err().to_string()
    };
    let other = PageRank::new(PageRankSettings { damping: 0.5, ..PageRankSettings::default() }, None);
    let error = rejected(other, "a").await;
    assert!(error.contains("it is of PageRank with damping 0.85") && error.contains("this run is"), "{error}");
    let error = rejected(PageRank::default(), "b").await;
    assert!(error.contains("it is of a, and this run is on b"), "{error}");
    let whole_file = std::fs::read(&path).unwrap();
    std::fs::write(&path, &whole_file[..whole_file.len() - 9]).unwrap();
    assert!(rejected(PageRank::default(), "a").await.contains("it ends too early"));
    let mut damaged = whole_file.clone();
    damaged[whole_file.len() - 20] ^= 1;
    std::fs::write(&path, damaged).unwrap();
    assert!(rejected(PageRank::default(), "a").await.contains("its checksum is not that of its states"));
    std::fs::write(&path, "anything").unwrap();
    assert!(rejected(PageRank::default(), "a").await.contains("it is not a checkpoint"));
    std::fs::remove_file(&path).unwrap();
    let elsewhere = RunSettings {
        checkpoint: Some(Checkpoint {
            path: folder.path().join("no/states"),
            every: Duration::ZERO,
            graph: "a".into(),
        }),
        ..settings(2, Some(3))
    };
    let failed = run(&program, &lists, &parts(), &elsewhere, |_| (), &mut branch).await;
    assert!(matches!(failed, Err(RunError::States(_))), "{failed:?}");
    let parts = parts();
    let context = QueryContext::new();
    context.limit(ReadLimits { memory_bytes_max: Some(100), ..ReadLimits::default() });
    let rejected = run(&program, &lists, &parts, &settings(2, None), |_| (), &mut context.branch()).await;
    let Err(RunError::Graph(error)) = rejected else { panic!("{rejected:?}") };
    assert!(error.to_string().contains("100 bytes of memory"), "{error}");
    let too_small: Arc<dyn StateStore<f64>> = Arc::new(MemoryStore::new(3));
    let rejected = run(&program, &lists, &too_small, &settings(2, None), |_| (), &mut branch).await;
    assert!(matches!(rejected, Err(RunError::States(_))), "{rejected:?}");
}

/// Towns, and roads with these columns.
pub fn write(folder: &Path, towns: i64, columns: &str, roads: &str) {
    let towns: String = (0..towns).map(|key| format!("{key},Town\n")).collect();
    std::fs::write(folder.join("towns.csv"), format!("~id,~label\n{towns}")).unwrap();
    std::fs::write(folder.join("roads.csv"), format!("~from,~to,~label,{columns}\n{roads}")).unwrap();
}

/// Edges with weights, of two labels and in two versions; the second deletes a vertex and an edge.
pub async fn weighted(name: &str) -> (String, Vec<(i64, i64, f64)>) {
    let folder = tempfile::tempdir().unwrap();
    let mut edges: Vec<(i64, i64, f64)> =
        (0..400).map(|number| (number % 50, number * 7 % 90, (number * 13 % 17) as f64 / 4.0)).collect();
    let rows = |(source, target, weight): &(i64, i64, f64)| format!("{source},{target},road,{weight}\n");
    let roads: String = edges.iter().map(rows).collect();
    write(folder.path(), 90, "weight:Double", &roads);
    let url = crate::load(name, folder.path()).await;
    let mut graph = Graph::open(&url).await.unwrap();
    let label = graph.schema().vertex_labels[0].name.clone();
    let mut commit = graph.begin();
    for number in 0..40 {
        // Between those that roads lead to.
        let source = number * 11 % 90;
        let target = 5 + number % 7 * 12;
        let weight = number % 5;
        commit.upsert_vertex::<&str, i64>(&label, target, []);
        commit.upsert_edge("rail", (&label, source), (&label, target), [("weight", weight)]);
        commit.upsert_edge("rail", (&label, target), (&label, source), [("weight", weight + 1)]);
        edges.push((source, target, weight as f64));
        edges.push((target, source, (weight + 1) as f64));
    }
    commit.commit().await.unwrap();
    graph.refresh().await.unwrap();
    let mut commit = graph.begin();
    let road = edges[60];
    commit.delete_vertex(&label, 11).delete_edge(
        &graph.schema().edge_types[0].label,
        (&label, road.0),
        (&label, road.1),
    );
    commit.commit().await.unwrap();
    let rails = edges.split_off(400);
    edges.retain(|(source, target, _)| (*source, *target) != (road.0, road.1));
    edges.extend(rails);
    edges.retain(|(source, target, _)| *source != 11 && *target != 11);
    (url, edges)
}

#[tokio::test(flavor = "multi_thread")]
async fn paths_are_as_long_as_their_weights() {
    let (url, edges) = weighted("weighted").await;
    let graph = Both::weighted(&url, "out", Some("weight")).await;
    let keys = keys(&graph.snapshot, &graph.topology).await;
    let start = keys.iter().position(|key| *key == 3).unwrap() as u32;
    // Until no edge makes a path shorter.
    let mut lengths = std::collections::BTreeMap::from([(3, 0.0)]);
    loop {
        let before = lengths.clone();
        for (source, target, weight) in &edges {
            let Some(length) = lengths.get(source).map(|length| length + weight) else { continue };
            let known = lengths.entry(*target).or_insert(f64::INFINITY);
            *known = known.min(length);
        }
        if lengths == before {
            break;
        }
    }
    let expected: Vec<f64> = keys.iter().map(|key| lengths.get(key).copied().unwrap_or(f64::INFINITY)).collect();
    assert!(lengths.len() > 50, "{}", lengths.len());
    for found in graph.states(ShortestPaths { start }, None).await {
        assert_eq!(found, graph.kept(&expected));
    }
    // Each edge with its own weight, in either direction.
    for (csr, is_out) in [(&graph.topology.out, true), (graph.against(), false)] {
        let of =
            |vertex: u32| csr.neighbours(vertex).iter().zip(csr.weights_of(vertex)).map(move |edge| (vertex, edge));
        let found = (0..csr.len() as u32).flat_map(of).map(|(near, (far, weight))| {
            let near = keys[near as usize];
            let far = keys[*far as usize];
            if is_out { (near, far, *weight) } else { (far, near, *weight) }
        });
        let sorted = |mut edges: Vec<(i64, i64, f64)>| {
            edges.sort_by(|a, b| (a.0, a.1).cmp(&(b.0, b.1)).then(a.2.total_cmp(&b.2)));
            edges
        };
        assert_eq!(sorted(found.collect()), sorted(edges.clone()));
    }
}

/// More vertices than a chunk of states has, more edges than a batch and a chunk of weights, and a hub with more than a batch.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_read_and_computed_by_parts_is_whole() {
    const TOWNS: i64 = 40_000;
    let weight = |source: i64, target: i64| (source * 31 + target * 17) % 1000;
    let folder = tempfile::tempdir().unwrap();
    let spread = (0..12).flat_map(|round| (0..TOWNS).map(move |town| (town, (town * 7919 + round * 104_729) % TOWNS)));
    let hub = (1..TOWNS).flat_map(|town| [(17, town); 3]);
    let row = |(source, target)| format!("{source},{target},road,{}\n", weight(source, target));
    let roads: String = spread.chain(hub).map(row).collect();
    write(folder.path(), TOWNS, "weight:Long", &roads);
    let url = crate::load("parts", folder.path()).await;
    // Two runs, which are merged.
    let changed = Graph::open(&url).await.unwrap();
    let mut commit = changed.begin();
    commit.upsert_vertex::<&str, i64>("Town", TOWNS, []);
    commit.upsert_edge("road", ("Town", TOWNS), ("Town", 0), [("weight", weight(TOWNS, 0))]);
    commit.upsert_edge("road", ("Town", 3), ("Town", TOWNS), [("weight", weight(3, TOWNS))]);
    commit.commit().await.unwrap();
    let graph = Both::weighted(&url, "out", Some("weight")).await;
    let keys = keys(&graph.snapshot, &graph.topology).await;
    let out = &graph.topology.out;
    assert_eq!(out.edges(), 15 * TOWNS as u64 - 1);
    for (csr, is_out) in [(out, true), (graph.against(), false)] {
        for vertex in 0..csr.len() as u32 {
            for (other, found) in csr.neighbours(vertex).iter().zip(csr.weights_of(vertex)) {
                let ends = [keys[vertex as usize], keys[*other as usize]];
                let [source, target] = if is_out { ends } else { [ends[1], ends[0]] };
                assert_eq!(*found, weight(source, target) as f64, "from {source} to {target}");
            }
        }
    }
    let context = QueryContext::new();
    let levels = breadth_first_levels(out, Some(graph.against()), 0, &context).unwrap();
    let program = Arc::new(Levels { start: 0 });
    let paths = Arc::new(ShortestPaths { start: 0 });
    let mut lengths = Vec::new();
    for streamed in [false, true] {
        let mut branch = QueryContext::new().branch();
        let lists = match streamed {
            true => Lists::streamed(&graph.snapshot, &graph.selection, &mut branch).await.unwrap(),
            false => Lists::in_memory(&graph.topology, branch.context()).unwrap(),
        };
        let store: Arc<dyn StateStore<u32>> = Arc::new(MemoryStore::new(lists.vertices()));
        run(&program, &lists, &store, &settings(2, None), |_| (), &mut branch).await.unwrap();
        assert_eq!(store.take(0..lists.vertices()).unwrap(), *levels);
        let store: Arc<dyn StateStore<f64>> = Arc::new(MemoryStore::new(lists.vertices()));
        run(&paths, &lists, &store, &settings(2, None), |_| (), &mut branch).await.unwrap();
        lengths.push(store.take(0..lists.vertices()).unwrap());
    }
    assert_eq!(lengths[0], lengths[1]);
    // No edge makes a path shorter, and each path ends with an edge.
    for vertex in 0..out.len() as u32 {
        let length = lengths[0][vertex as usize];
        for (target, weight) in out.neighbours(vertex).iter().zip(out.weights_of(vertex)) {
            assert!(lengths[0][*target as usize] <= length + weight);
        }
        let mut ends = graph.against().neighbours(vertex).iter().zip(graph.against().weights_of(vertex));
        let is_reached = ends.any(|(source, weight)| lengths[0][*source as usize] + weight == length);
        assert!(is_reached || vertex == 0 || length.is_infinite(), "vertex {vertex}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_weight_is_rejected_with_a_sentence() {
    let folder = tempfile::tempdir().unwrap();
    let columns = "text:String,negative:Long,some:Double,great:Long";
    write(folder.path(), 4, columns, "1,2,road,a,-1,,9007199254740993\n2,3,road,b,1,2,1\n");
    let snapshot = open(&crate::load("no-weights", folder.path()).await).await;
    for (weight, expected) in [
        ("nothing", "edge type road has no property \"nothing\" to use as a weight"),
        ("text", "property \"text\" of edges road is of type string"),
        ("negative", "an edge road has negative = -1, but a weight must be 0 or more"),
        ("some", "an edge road has no value for the weight property \"some\""),
        ("great", "an edge road has great = 9007199254740993, but a float64 cannot hold it exactly"),
    ] {
        let selection = Selection { weight: Some(weight.into()), ..Selection::default() };
        let loaded =
            Topology::load(&snapshot, &selection, &Workers::default(), &mut QueryContext::new().branch()).await;
        let error = loaded.unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}
