//! Conditions on a graph that has every type: any condition is judged for every edge or rejected, is read as it is written, and
//! obeys the laws of three-valued logic.

#![no_main]

use std::sync::LazyLock;

use hoplake::{Condition, Graph, Hop, HopDirection, LabelId, VertexId};
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

fuzz_target!(
    init: {
        begin();
        LazyLock::force(&FIXTURE);
    },
    |text: &str| bounded(BYTES_MAX, || {
        let Ok(condition) = text.parse::<Condition>() else { return };
        let negated = condition.clone().negated();
        let either = condition.clone().or(negated.clone());
        let both = condition.clone().and(negated.clone());
        let found = [&condition, &negated, &either, &both].map(edges);
        let [Some(matching), Some(failed), Some(either), Some(both)] = found else {
            assert!(found.iter().all(Option::is_none), "{text}: rejected in part");
            return;
        };
        assert!(both.is_empty(), "{text}: an edge matches it and its negation");
        let mut union = [matching, failed].concat();
        union.sort_unstable();
        assert_eq!(union, either, "{text}");
    })
);

type Edge = (VertexId, VertexId, u16, bool, u64, u64);

/// The edges that match a condition, ascending; `None` if it is rejected.
fn edges(condition: &Condition) -> Option<Vec<Edge>> {
    let Fixture { runtime, graph, all } = &*FIXTURE;
    let hop = Hop { labels: Vec::new(), direction: HopDirection::Both, condition: Some(condition.clone()) };
    let found = runtime.block_on(async { graph.query().neighbors(all, &hop).await });
    let found = found.inspect_err(|error| assert_ne!(error.kind(), hoplake::ErrorKind::Internal, "{error}")).ok()?;
    let edge = |edge: hoplake::Neighbour| {
        let is_out = edge.direction == hoplake::Direction::Out;
        (edge.from, edge.to, edge.edge_type.0, is_out, edge.run, edge.position)
    };
    let mut edges: Vec<_> = found.iter().map(edge).collect();
    edges.sort_unstable();
    Some(edges)
}
