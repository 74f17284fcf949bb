//! Conditions on a graph that has every type: any condition is judged for every edge or refused, and those that exclude each
//! other share the edges that have a value among them.

#![no_main]

use std::sync::LazyLock;

use hoplake::{Comparison, Graph, Hop, HopDirection, LabelId, Predicate, VertexId};
use hoplake_fuzz::{
    begin, bounded,
    golden::{objects, settings, store_of},
};
use libfuzzer_sys::fuzz_target;
use tokio::runtime::{Builder, Runtime};

const BYTES_MAX: usize = 64 << 20;

struct Fixture {
    runtime: Runtime,
    graph: Graph,
    all: Vec<VertexId>,
}

static FIXTURE: LazyLock<Fixture> = LazyLock::new(|| {
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime can be had");
    let graph = runtime.block_on(async {
        let mut settings = settings();
        settings.read.cache_bytes_max = 16 << 20;
        Graph::open_with(store_of(&objects()).await, &settings).await.expect("golden files are whole")
    });
    let counts = (0u16..).zip(&graph.manifest().vertex_counts);
    let of_label = |(label, count): (u16, &hoplake::VertexCount)| {
        (0..count.ordinals).filter_map(move |at| VertexId::new(LabelId(label), at)).collect::<Vec<_>>()
    };
    let all = counts.flat_map(of_label).collect();
    Fixture { runtime, graph, all }
});

/// Of each pair, a value fulfils one.
const PAIRS: [[Comparison; 2]; 3] = [
    [Comparison::Equal, Comparison::NotEqual],
    [Comparison::Less, Comparison::GreaterOrEqual],
    [Comparison::LessOrEqual, Comparison::Greater],
];

fuzz_target!(
    init: {
        begin();
        LazyLock::force(&FIXTURE);
    },
    |text: &str| bounded(BYTES_MAX, || {
        let Ok(predicate) = text.parse::<Predicate>() else { return };
        let mut unions = PAIRS.map(|pair| {
            let [one, other] = pair.map(|comparison| edges(Predicate { comparison, ..predicate.clone() }));
            assert_eq!(one.is_some(), other.is_some(), "{text}");
            let (mut union, other) = (one?, other?);
            let count = union.len() + other.len();
            union.extend(other);
            union.sort_unstable();
            union.dedup();
            assert_eq!(union.len(), count, "{text}: an edge fulfils both of {pair:?}");
            Some(union)
        });
        let [first, rest @ ..] = &mut unions;
        assert!(rest.iter().all(|other| other == first), "{text}");
    })
);

type Edge = (VertexId, VertexId, u16, bool, u64, u64);

/// The edges that fulfil a condition; `None` if it is refused.
fn edges(predicate: Predicate) -> Option<Vec<Edge>> {
    let Fixture { runtime, graph, all } = &*FIXTURE;
    let hop = Hop { labels: Vec::new(), direction: HopDirection::Both, predicates: vec![predicate] };
    let found = runtime.block_on(async { graph.query().neighbors(all, &hop).await });
    let found = found.inspect_err(|error| assert_ne!(error.kind(), hoplake::ErrorKind::Internal, "{error}")).ok()?;
    let edge = |edge: hoplake::Neighbour| {
        let is_out = edge.direction == hoplake::Direction::Out;
        (edge.from, edge.to, edge.edge_type.0, is_out, edge.run, edge.position)
    };
    Some(found.iter().map(edge).collect())
}
