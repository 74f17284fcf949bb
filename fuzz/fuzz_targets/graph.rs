//! A graph whose objects were forged: whatever is in them behind right checksums, opening it, asking it everything, verifying,
//! comparing and compacting it, and committing to it end with an answer or an error that is nobody's mistake but the bytes'.

#![no_main]

use std::sync::LazyLock;

use arbitrary::Arbitrary;
use hoplake::{
    CompactionSettings, Error, ErrorKind, Frontier, Graph, Hop, Key, LabelId, Limits, OpenSettings, Query, Store,
    Traversal, VertexId,
};
use hoplake_fuzz::{
    begin, bounded,
    golden::{Edit, Forge, settings, store_of},
};
use libfuzzer_sys::fuzz_target;
use tokio::runtime::{Builder, Runtime};

const BYTES_MAX: usize = 512 << 20;
const QUERY_BYTES_MAX: u64 = 64 << 20;
const EDITS_MAX: usize = 8;
const PAGES_MAX: usize = 10;
/// Of each label, this many ordinals are asked about: a forged manifest may say that there are 2^48.
const ORDINALS_MAX: u64 = 8;

static FORGE: LazyLock<Forge> = LazyLock::new(Forge::default);
static RUNTIME: LazyLock<Runtime> =
    LazyLock::new(|| Builder::new_current_thread().enable_all().build().expect("a runtime can be had"));

/// One kind of work for each input, so that there are hundreds in a second.
#[derive(Debug, Clone, Copy, Arbitrary)]
enum Work {
    Query,
    Verify,
    VerifyAll,
    Versions,
    Diff,
    Commit,
    Compact,
}

#[derive(Debug, Arbitrary)]
struct Forged {
    work: Work,
    edits: Vec<Edit>,
}

fuzz_target!(
    init: {
        begin();
        LazyLock::force(&FORGE);
        LazyLock::force(&RUNTIME);
    },
    |forged: Forged| bounded(BYTES_MAX, || {
        RUNTIME.block_on(async {
            let store = store_of(&FORGE.forged(&forged.edits[..forged.edits.len().min(EDITS_MAX)])).await;
            ask(forged.work, &store).await;
        });
    })
);

async fn ask(work: Work, store: &Store) {
    match work {
        Work::VerifyAll => {
            judge(Graph::verify_all(store, |_| ()).await);
        }
        Work::Compact => {
            judge(Graph::compact(store, &CompactionSettings::default()).await);
        }
        Work::Versions => log(store).await,
        _ => {
            if let Some(graph) = judge(Graph::open_with(store.clone(), &settings()).await) {
                ask_one(work, &graph, store).await;
            }
        }
    }
}

async fn ask_one(work: Work, graph: &Graph, store: &Store) {
    match work {
        Work::Verify => {
            judge(graph.verify(|_| ()).await);
            judge(graph.info().await);
        }
        Work::Diff => diff(graph, store).await,
        Work::Commit => commit(graph).await,
        _ => query(graph, &mut graph.query()).await,
    }
}

/// The answer, if there is one. An `Internal` error is a failure: forged bytes must not lead to it.
fn judge<T>(outcome: Result<T, Error>) -> Option<T> {
    if let Err(error) = &outcome {
        assert_ne!(error.kind(), ErrorKind::Internal, "{error}");
    }
    outcome.ok()
}

async fn query(graph: &Graph, query: &mut Query) {
    query.limit(&Limits { memory_bytes_max: Some(QUERY_BYTES_MAX), ..Limits::default() });
    let people = [1, 2, 30, -4, 1000].map(|key| ("P", Key::Int64(key)));
    let places = ["here", "there", "nowhere"].map(|key| ("C", Key::String(key.into())));
    judge(query.vertices(&people).await);
    judge(query.vertices(&places).await);
    let counts = graph.manifest().vertex_counts.iter().take(4);
    let of_label = |(label, ordinals): (u16, u64)| {
        (0..ordinals.min(ORDINALS_MAX)).filter_map(move |at| VertexId::new(LabelId(label), at))
    };
    let all: Vec<_> = (0u16..).zip(counts.map(|count| count.ordinals)).flat_map(of_label).collect();
    for hop in ["in:knows", "both", "both:knows[weight>2]", "out[name>=\"\"]"] {
        let hop: Hop = hop.parse().expect("a hop is written like this");
        if let Some(edges) = judge(query.neighbors(&all, &hop).await) {
            judge(query.edge_properties(&edges, &["since", "weight"].map(str::to_owned)).await);
        }
        judge(query.degrees(&all, &hop).await);
        judge(query.traverse(Traversal { starts: all.clone(), hops: vec![hop; 2], ..Default::default() }).await);
    }
    let frontier: Frontier = all.into_iter().collect();
    judge(query.keys(&frontier).await);
    let names = ["name", "bool", "int", "float", "day", "time", "list", "ints"].map(str::to_owned);
    judge(query.properties(&frontier, &names).await);
}

async fn commit(graph: &Graph) {
    let mut commit = graph.begin();
    commit.upsert_vertex("P", 1, [("name", "new")]).upsert_vertex("P", 77, [("name", "Zoë")]);
    commit.upsert_edge("knows", ("P", 1), ("P", 77), [("weight", 5)]).delete_vertex("P", 2);
    judge(commit.commit().await);
}

async fn diff(graph: &Graph, store: &Store) {
    let settings = OpenSettings { version: Some(2), ..settings() };
    let Some(before) = judge(Graph::open_with(store.clone(), &settings).await) else { return };
    let Some(mut diff) = judge(before.diff(graph, &[])) else { return };
    for _ in 0..PAGES_MAX {
        if !matches!(judge(diff.next_page().await), Some(Some(_))) {
            return;
        }
    }
}

async fn log(store: &Store) {
    judge(Graph::versions(store).await);
    let Some(mut log) = judge(Graph::log(store).await) else { return };
    for _ in 0..PAGES_MAX {
        if !matches!(judge(log.next().await), Some(Some(_))) {
            return;
        }
    }
}
