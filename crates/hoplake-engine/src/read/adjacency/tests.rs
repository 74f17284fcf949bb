//! Hops along lists that were written to a store in memory: plans, edges, sets and degrees.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use hoplake_format::{Direction, VertexId, segment::SectionKind};
use hoplake_storage::{Branch, QueryContext};
use proptest::prelude::*;

use crate::{
    EngineError, Frontier, Ordinals, Snapshot,
    read::{
        hop::{Hop, HopDirection},
        scan::written::{EDGE_TYPE, KEYS, LABEL, LISTS, REMOVED, RunsFixture},
    },
    write::change::{Batch, Committer, Operation, Properties, VertexRef},
};

type OfSources = BTreeMap<u64, Vec<u64>>;

fn slices(lists: &OfSources) -> impl Iterator<Item = (u64, &[u64])> {
    lists.iter().map(|(source, targets)| (*source, targets.as_slice()))
}

/// What three versions say of an edge type: lists, then lists that replace theirs pair by pair, then pairs that are removed; and
/// lists against its direction, which need not fit to those along it.
#[derive(Debug, Clone)]
struct Versions {
    first: OfSources,
    against: OfSources,
    second: OfSources,
    removed: OfSources,
}

impl Versions {
    async fn open(&self) -> Arc<Snapshot> {
        let mut written =
            RunsFixture::new().lists(1, LISTS, slices(&self.first)).lists(1, AGAINST, slices(&self.against));
        if !self.second.is_empty() {
            written = written.lists(2, LISTS, slices(&self.second));
        }
        if !self.removed.is_empty() {
            written = written.lists(3, REMOVED, slices(&self.removed));
        }
        written.open().await
    }

    /// The edges from a source, in order.
    fn edges(&self, source: u64) -> Vec<(u64, u64)> {
        let of = |lists: &OfSources| lists.get(&source).cloned().unwrap_or_default();
        let second = of(&self.second);
        let removed = of(&self.removed);
        let mut targets: Vec<_> = of(&self.first).into_iter().filter(|target| !second.contains(target)).collect();
        targets.extend(&second);
        targets.retain(|target| !removed.contains(target));
        targets.sort_unstable();
        targets.extend(of(&self.against));
        targets.into_iter().map(|target| (source, target)).collect()
    }

    fn hop(&self, sources: &BTreeSet<u64>) -> Vec<(u64, u64)> {
        sources.iter().flat_map(|source| self.edges(*source)).collect()
    }
}

fn lists(sources: u64, targets: u64, most: usize) -> impl Strategy<Value = OfSources> {
    let targets = prop::collection::vec(0..targets, 1..most);
    prop::collection::btree_map(0..sources, targets, 1..40).prop_map(|mut lists| {
        lists.values_mut().for_each(|targets| targets.sort_unstable());
        lists
    })
}

/// Short lists, with repeats, and one hub of many blocks.
fn versions() -> impl Strategy<Value = Versions> {
    let newer = || prop_oneof![Just(OfSources::new()), lists(300, 30, 6)];
    let parts = (lists(300, 30, 9), lists(300, 30, 9), 0u64..300, newer(), newer());
    parts.prop_map(|(mut first, against, hub, second, mut removed)| {
        first.insert(hub, (0..900).map(|target| target / 5).collect());
        // A run names a removed pair once.
        removed.values_mut().for_each(Vec::dedup);
        Versions { first, against, second, removed }
    })
}

/// The same set as a list and as a bitmap.
async fn frontiers(ordinals: &BTreeSet<u64>) -> [Frontier; 2] {
    let mut words = vec![0u64; 8];
    ordinals.iter().for_each(|ordinal| words[(*ordinal / 64) as usize] |= 1 << (*ordinal % 64));
    let bitmap = Ordinals::bitmap(words, &mut QueryContext::new().pace()).await.unwrap();
    [Ordinals::list(ordinals.iter().copied().collect()), bitmap].map(|ordinals| {
        let mut frontier = Frontier::default();
        frontier.set(LABEL, ordinals);
        frontier
    })
}

fn sources() -> impl Strategy<Value = BTreeSet<u64>> {
    prop_oneof![prop::collection::btree_set(0u64..320, 0..8), prop::collection::btree_set(0u64..320, 0..300)]
}

const AGAINST: SectionKind = SectionKind::Adjacency(EDGE_TYPE, Direction::In);

fn hop() -> Hop {
    Hop::along(HopDirection::Both, "edge")
}

/// The blocks of a plan, by the segment and the position.
async fn blocks(
    snapshot: &Arc<Snapshot>,
    frontier: &Frontier,
    branch: &mut Branch,
) -> Result<Vec<(usize, u64)>, EngineError> {
    let plan = snapshot.adjacency().plan_hop(frontier, &hop(), branch).await?;
    Ok(plan.all_tasks().map(|task| (task.location.segment, task.block.start)).collect())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn a_hop_has_the_lists_of_its_sources(versions in versions(), sources in sources(), limit in 0usize..1000) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let expected = versions.hop(&sources);
        runtime.block_on(async {
            let snapshot = versions.open().await;
            for frontier in frontiers(&sources).await {
                let frontier = Arc::new(frontier);
                let context = QueryContext::new();
                let mut branch = context.branch();
                let edges = snapshot.adjacency().neighbours(&frontier, &hop(), &mut branch).await.unwrap();
                let pair = |edge: crate::Neighbour| (edge.from.ordinal(), edge.to.ordinal());
                assert_eq!(edges.iter().map(pair).collect::<Vec<_>>(), expected);
                // With so few bytes at first, it takes several rounds.
                for bytes in [1, 300, 1 << 20] {
                    let first = snapshot.adjacency().first_from(bytes, &frontier, &hop(), limit, &mut branch).await.unwrap();
                    assert!(first.iter().eq(edges.iter().take(limit)), "the first {limit}");
                }
                let degrees = snapshot.adjacency().degrees(&frontier, &hop(), &mut branch).await.unwrap();
                let of_sources = sources.iter().map(|source| versions.edges(*source).len() as u64);
                assert!(degrees.iter().map(|degree| degree.edges).eq(of_sources));
                let plan = snapshot.adjacency().plan_hop(&frontier, &hop(), &mut branch).await.unwrap();
                let (reached, count) =
                    snapshot.adjacency().reach(&frontier, &hop(), plan, 2, None, &mut branch).await.unwrap();
                let targets: BTreeSet<_> = expected.iter().map(|(_, target)| *target).collect();
                assert!(reached.vertices().map(VertexId::ordinal).eq(targets), "whom it reaches");
                assert_eq!(count, expected.len() as u64);
                // Edges between the same vertices count up.
                for pair in edges.iter().collect::<Vec<_>>().windows(2) {
                    let ends = |edge: &crate::Neighbour| (edge.from, edge.direction, edge.to);
                    let next = if ends(&pair[0]) == ends(&pair[1]) { pair[0].parallel + 1 } else { 0 };
                    assert_eq!(pair[1].parallel, next);
                }
                drop((edges, degrees, reached));
                assert_eq!(context.memory().used(), 0, "all memory is given back");
            }
        });
    }

    /// A plan of one run names the blocks that some source of it may be in, each once, in whichever form the set is.
    #[test]
    fn a_plan_has_the_blocks_of_its_sources(versions in versions(), sources in sources()) {
        let versions = Versions { second: OfSources::new(), removed: OfSources::new(), ..versions };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let snapshot = versions.open().await;
            let mut branch = QueryContext::new().branch();
            let mut expected = BTreeSet::new();
            for source in &sources {
                let [alone, _] = frontiers(&BTreeSet::from([*source])).await;
                expected.extend(blocks(&snapshot, &alone, &mut branch).await.unwrap());
            }
            for frontier in frontiers(&sources).await {
                let planned = blocks(&snapshot, &frontier, &mut branch).await.unwrap();
                assert_eq!(planned.len(), expected.len(), "each once");
                assert_eq!(planned.into_iter().collect::<BTreeSet<_>>(), expected);
            }
            let everyone = frontiers(&(0..400).collect()).await;
            let all = blocks(&snapshot, &everyone[0], &mut branch).await.unwrap();
            assert_eq!(all, blocks(&snapshot, &everyone[1], &mut branch).await.unwrap());
            assert!(expected.is_subset(&all.into_iter().collect()));
        });
    }
}

/// Of a hub, the first edges take the first blocks, and one more source nothing but its own.
#[tokio::test]
async fn a_plan_of_a_hub_has_its_blocks() {
    let lists = OfSources::from([(3, vec![1]), (7, (0..9000).collect()), (9, vec![2])]);
    let versions =
        Versions { first: lists, against: OfSources::new(), second: OfSources::new(), removed: OfSources::new() };
    let snapshot = versions.open().await;
    let mut branch = QueryContext::new().branch();
    let mut count = async |ordinals: &[u64]| {
        let [list, _] = frontiers(&ordinals.iter().copied().collect()).await;
        blocks(&snapshot, &list, &mut branch).await.unwrap().len()
    };
    let hub = count(&[7]).await;
    let before = count(&[3]).await;
    let behind = count(&[9]).await;
    assert!(hub > 50, "{hub} blocks");
    assert!(before <= 2 && behind <= 2, "{before} and {behind} blocks");
    assert!(count(&[3, 7, 9]).await <= hub + 2);
    assert_eq!(count(&[8]).await, count(&[9]).await, "a source without a list is sought where it would be");
}

/// Edges from two vertices to twenty, with a property of the edge, of the vertex, or of both: the edge's counts.
async fn with_properties() -> Arc<Snapshot> {
    let keys = (0..20).map(|key| (key, key as u64));
    let committer =
        Committer::new(RunsFixture::new().keys(1, KEYS, keys).lists(1, LISTS, [(19, &[0][..])]).open().await);
    let vertex = |key: i64| VertexRef::new("vertex", key);
    let mut operations: Vec<_> = (0..20)
        .map(|key| Operation::UpsertVertex {
            vertex: vertex(key),
            properties: Properties::from([("age", key), ("rank", 100 + key)]),
            replace: true,
        })
        .collect();
    for number in 0..40 {
        operations.push(Operation::UpsertEdge {
            label: "edge".into(),
            source: vertex(number % 2),
            target: vertex(number / 2),
            key: None,
            properties: Properties::from([("since", number), ("rank", number)]),
            replace: true,
        });
    }
    let committer = Arc::new(committer);
    committer.commit(Batch { operations, ..Batch::default() }).await.unwrap();
    committer.settled().await;
    committer.newest()
}

#[tokio::test]
async fn conditions_are_on_the_edge_or_else_on_the_vertex_reached() {
    let snapshot = with_properties().await;
    let frontier: Frontier = [0, 1].into_iter().filter_map(|source| VertexId::new(LABEL, source)).collect();
    let frontier = Arc::new(frontier);
    let expected = |keep: &dyn Fn(i64, i64) -> bool| -> Vec<(u64, u64)> {
        let mut kept: Vec<_> = (0..40).filter(|number| keep(*number, number / 2)).collect();
        kept.sort_unstable_by_key(|number| (number % 2, *number));
        kept.into_iter().map(|number| ((number % 2) as u64, (number / 2) as u64)).collect()
    };
    for (condition, expected) in [
        ("[since>=10]", expected(&|since, _| since >= 10)),
        ("[age<5]", expected(&|_, age| age < 5)),
        ("[since>=10][age<15]", expected(&|since, age| since >= 10 && age < 15)),
        ("[since>=10][since<12]", expected(&|since, _| (10..12).contains(&since))),
        // Both have a rank.
        ("[rank<40]", expected(&|_, _| true)),
        ("[rank>=100]", Vec::new()),
        // Of the edge 0 to 39, of the vertex as much.
        ("[edge.rank<10 or vertex.rank>=30]", expected(&|_, _| true)),
        ("[since<2 or age>=19 and since!=38]", expected(&|since, age| since < 2 || age >= 19 && since != 38)),
        ("[not (since between 3 and 36)]", expected(&|since, _| !(3..=36).contains(&since))),
        ("[age in (3, 5) and since is not null]", expected(&|_, age| age == 3 || age == 5)),
    ] {
        let hop: Hop = format!("out:edge{condition}").parse().unwrap();
        let mut branch = QueryContext::new().branch();
        let edges = snapshot.adjacency().neighbours(&frontier, &hop, &mut branch).await.unwrap();
        let pair = |edge: crate::Neighbour| (edge.from.ordinal(), edge.to.ordinal());
        assert_eq!(edges.iter().map(pair).collect::<Vec<_>>(), expected, "{condition}");
        for limit in [0, 1, 7, 100] {
            let first = snapshot.adjacency().first_from(1, &frontier, &hop, limit, &mut branch).await.unwrap();
            assert!(first.iter().eq(edges.iter().take(limit)), "{condition}, the first {limit}");
        }
        let plan = snapshot.adjacency().plan_hop(&frontier, &hop, &mut branch).await.unwrap();
        let (reached, count) = snapshot.adjacency().reach(&frontier, &hop, plan, 1, None, &mut branch).await.unwrap();
        let targets: BTreeSet<_> = expected.iter().map(|(_, target)| *target).collect();
        assert!(reached.vertices().map(VertexId::ordinal).eq(targets), "{condition}");
        assert_eq!(count, expected.len() as u64);
        let degrees = snapshot.adjacency().degrees(&frontier, &hop, &mut branch).await.unwrap();
        let of = |source| expected.iter().filter(|(from, _)| *from == source).count() as u64;
        assert_eq!(degrees.iter().map(|degree| degree.edges).collect::<Vec<_>>(), [of(0), of(1)], "{condition}");
    }
    for (hop, why) in [
        ("out:edge[size=1]", "neither the edges of out:edge nor the vertices they reach have a property \"size\""),
        ("out:edge[since=soon]", "soon"),
    ] {
        let hop = hop.parse().unwrap();
        let rejected =
            snapshot.adjacency().neighbours(&frontier, &hop, &mut QueryContext::new().branch()).await.unwrap_err();
        assert!(rejected.to_string().contains(why), "{rejected}");
    }
}
