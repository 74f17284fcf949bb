//! The validation graphs of LDBC Graphalytics, and p2p-Gnutella31 with its reference outputs. Figures on them are not
//! LDBC benchmark results.

use std::{
    collections::HashMap,
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use hoplake_analytics::{
    AsyncSettings, Lists, Selection, Topology, VertexProgram, Workers,
    kernels::{
        PageRankSettings, UNREACHED, breadth_first_levels, connected_components, label_propagation, local_clustering,
        page_rank,
    },
    programs::{Components, Levels},
    run_asynchronously,
    stores::{MemoryStore, StateStore},
};
use hoplake_engine::Snapshot;
use hoplake_storage::QueryContext;
use hoplake_testkit::snb;

use crate::{keys, load, open};

/// The folder of a data set; `None` if it is not there.
fn data(set: &str) -> Option<PathBuf> {
    snb::available(set).then(|| snb::extract(set))
}

/// The values of a reference output by the vertex's key.
fn expected<T: std::str::FromStr>(file: &Path) -> HashMap<i64, T> {
    let text = fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let line = |line: &str| {
        let (key, value) = line.split_once(' ').unwrap();
        (key.parse().unwrap(), value.trim().parse().ok().unwrap())
    };
    text.lines().filter(|it| !it.is_empty()).map(line).collect()
}

/// A graph in memory, and the key of each of its dense ids.
struct Loaded {
    snapshot: Arc<Snapshot>,
    selection: Selection,
    topology: Arc<Topology>,
    keys: Vec<i64>,
}

impl Loaded {
    async fn of(snapshot: &Arc<Snapshot>, directed: bool) -> Self {
        let hop = if directed { "out" } else { "both" };
        let labels = vec!["vertex".into()];
        let selection = Selection { hop: hop.parse().unwrap(), reversed: directed, labels, ..Selection::default() };
        let mut branch = QueryContext::new().branch();
        let topology = Topology::load(snapshot, &selection, &Workers::default(), &mut branch).await.unwrap();
        let keys = keys(snapshot, &topology).await;
        let snapshot = snapshot.clone();
        let topology = Arc::new(topology);
        Self { snapshot, selection, topology, keys }
    }

    /// What a program comes to asynchronously, over lists in memory and streamed ones.
    async fn asynchronously<P: VertexProgram>(&self, program: P, selection: &Selection) -> Vec<Vec<P::State>> {
        let program = Arc::new(program);
        let mut branch = QueryContext::new().branch();
        let in_memory = Lists::in_memory(&self.topology, branch.context()).unwrap();
        let streamed = Lists::streamed(&self.snapshot, selection, &mut branch).await.unwrap();
        let mut found = Vec::new();
        // What is in memory is of the selection that was loaded.
        for lists in [Some(in_memory).filter(|_| *selection == self.selection), Some(streamed)].into_iter().flatten() {
            let store: Arc<dyn StateStore<P::State>> = Arc::new(MemoryStore::new(lists.vertices()));
            let settings = AsyncSettings::default();
            run_asynchronously(&program, &lists, &store, &settings, |_| (), &mut branch).await.unwrap();
            found.push(store.take(0..lists.vertices()).unwrap());
        }
        found
    }

    fn id(&self, key: i64) -> u32 {
        self.keys.iter().position(|known| *known == key).unwrap() as u32
    }

    fn against(&self) -> &hoplake_analytics::Csr {
        self.topology.against.as_ref().unwrap_or(&self.topology.out)
    }

    async fn check_levels(&self, start: i64, file: &Path) {
        let out = &self.topology.out;
        let context = QueryContext::new();
        let levels = breadth_first_levels(out, Some(self.against()), self.id(start), &context).unwrap();
        let top_down = breadth_first_levels(out, None, self.id(start), &context).unwrap();
        assert_eq!(*top_down, *levels, "top down");
        for found in self.asynchronously(Levels { start: self.id(start) }, &self.selection).await {
            assert_eq!(found, *levels, "asynchronously");
        }
        let expected = expected::<i64>(file);
        assert_eq!(expected.len(), levels.len());
        for (key, level) in self.keys.iter().zip(levels.iter()) {
            let level = if *level == UNREACHED { i64::MAX } else { (*level).into() };
            assert_eq!(level, expected[key], "{}: vertex {key}", file.display());
        }
    }

    /// Components may have any names.
    async fn check_components(&self, file: &Path) {
        let found = connected_components(&self.topology.out, Some(self.against()), &QueryContext::new()).unwrap();
        let both = Selection { hop: "both".parse().unwrap(), ..self.selection.clone() };
        for least in self.asynchronously(Components, &both).await {
            assert_eq!(least, *found, "asynchronously");
        }
        let expected = expected::<i64>(file);
        let mut names: HashMap<u32, i64> = HashMap::new();
        for (key, component) in self.keys.iter().zip(found.iter()) {
            assert_eq!(*names.entry(*component).or_insert(expected[key]), expected[key], "vertex {key}");
        }
        let different: std::collections::HashSet<_> = expected.values().collect();
        assert_eq!(names.len(), different.len(), "{}", file.display());
    }

    fn check_ranks(&self, iterations_max: usize, file: &Path) {
        let settings = PageRankSettings { iterations_max, tolerance: 0.0, ..PageRankSettings::default() };
        let Topology { out, deleted, .. } = &*self.topology;
        let found = page_rank(out, self.against(), deleted, &settings, &QueryContext::new()).unwrap();
        assert_eq!(found.iterations, iterations_max);
        let expected = expected::<f64>(file);
        assert_eq!(expected.len(), found.ranks.len());
        for (key, rank) in self.keys.iter().zip(found.ranks.iter()) {
            // As Graphalytics compares them.
            assert!((rank - expected[key]).abs() <= 1e-4 * expected[key], "{}: vertex {key}: {rank}", file.display());
        }
    }

    /// Labels are keys, so the initial ones ascend with them.
    fn check_labels(&self, iterations: usize, file: &Path) {
        let Topology { out, against, .. } = &*self.topology;
        let mut ascending = self.keys.clone();
        ascending.sort_unstable();
        let label = |key| ascending.binary_search(key).unwrap() as u32;
        let initial: Vec<u32> = self.keys.iter().map(label).collect();
        let found = label_propagation(out, against.as_ref(), &initial, iterations, &QueryContext::new()).unwrap();
        let expected = expected::<i64>(file);
        assert_eq!(expected.len(), found.len());
        for (key, label) in self.keys.iter().zip(found.iter()) {
            assert_eq!(ascending[*label as usize], expected[key], "{}: vertex {key}", file.display());
        }
    }

    fn check_clustering(&self, file: &Path) {
        let Topology { out, against, .. } = &*self.topology;
        let found = local_clustering(out, against.as_ref(), &QueryContext::new()).unwrap();
        let expected = expected::<f64>(file);
        assert_eq!(expected.len(), found.len());
        for (key, coefficient) in self.keys.iter().zip(found.iter()) {
            // Some references have 12 digits after the point.
            let off = (coefficient - expected[key]).abs();
            assert!(off < 1e-11, "{}: vertex {key}: {coefficient}", file.display());
        }
    }
}

/// Writes lists as an edge list and a list of vertices; of edges without direction, which are in two lists, one each.
fn as_edges(lists: &Path, directed: bool) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let mut vertices = std::collections::BTreeSet::new();
    let mut edges = String::new();
    for line in fs::read_to_string(lists).unwrap().lines() {
        let mut keys = line.split_whitespace().map(|key| key.parse::<i64>().unwrap());
        let Some(source) = keys.next() else { continue };
        vertices.insert(source);
        for target in keys {
            vertices.insert(target);
            if directed || source <= target {
                edges.push_str(&format!("{source} {target}\n"));
            }
        }
    }
    let vertices: String = vertices.iter().map(|key| format!("{key}\n")).collect();
    fs::write(folder.path().join("graph.v"), vertices).unwrap();
    fs::write(folder.path().join("graph.e"), edges).unwrap();
    folder
}

#[tokio::test(flavor = "multi_thread")]
async fn the_example_graphs_have_the_expected_results() {
    let Some(folder) = data("graphalytics-validation") else { return };
    let examples = folder.join("validation-graphs/example");
    for (directed, name, start) in [(true, "directed", 1), (false, "undirected", 2)] {
        let own = tempfile::tempdir().unwrap();
        for kind in ["v", "e"] {
            let file = format!("example-{name}.{kind}");
            fs::copy(examples.join(&file), own.path().join(&file)).unwrap();
        }
        let loaded = Loaded::of(&open(&load(&format!("example-{name}"), own.path()).await).await, directed).await;
        let output = |kind| examples.join(format!("example-{name}-{kind}"));
        loaded.check_levels(start, &output("BFS")).await;
        loaded.check_components(&output("WCC")).await;
        loaded.check_ranks(2, &output("PR"));
        loaded.check_clustering(&output("LCC"));
        loaded.check_labels(2, &output("CDLP"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_validation_graphs_have_the_expected_results() {
    let Some(folder) = data("graphalytics-validation") else { return };
    for directed in [true, false] {
        for algorithm in ["bfs", "wcc", "pr", "lcc", "cdlp"] {
            let name = if directed { "dir" } else { "undir" };
            let folder = folder.join("validation-graphs").join(algorithm);
            let edges = as_edges(&folder.join(format!("{name}-input")), directed);
            let url = load(&format!("{algorithm}-{name}"), edges.path()).await;
            let loaded = Loaded::of(&open(&url).await, directed).await;
            let output = folder.join(format!("{name}-output"));
            match algorithm {
                "bfs" => loaded.check_levels(1, &output).await,
                "wcc" => loaded.check_components(&output).await,
                "lcc" => loaded.check_clustering(&output),
                "cdlp" => loaded.check_labels(5, &output),
                _ => loaded.check_ranks(if directed { 14 } else { 26 }, &output),
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn gnutella_has_the_reference_results() {
    let Some(folder) = data("p2p-gnutella31") else { return };
    let output = |kind: &str| folder.join(format!("property/ldbc/p2p-31-{kind}"));
    let own = tempfile::tempdir().unwrap();
    for file in ["p2p-31.v", "p2p-31.e"] {
        fs::copy(folder.join(file), own.path().join(file)).unwrap();
    }
    let snapshot = open(&load("gnutella", own.path()).await).await;
    for (directed, suffix) in [(true, "-directed"), (false, "")] {
        let loaded = Loaded::of(&snapshot, directed).await;
        loaded.check_levels(6, &output(&format!("BFS{suffix}"))).await;
        loaded.check_components(&output("WCC")).await;
        // The directed reference adds up to 0.46: it takes every vertex without out-edges for one without in-edges, too.
        if !directed {
            loaded.check_ranks(10, &output("PR"));
            loaded.check_clustering(&output("LCC"));
            loaded.check_labels(10, &output("CDLP"));
        }
    }
}
