//! Edges that do not match a condition take part as little as those that were never loaded.

use std::fmt::Write as _;

use hoplake_testkit::generate::SplitMix64;

use super::{
    order_tests::{all, found},
    *,
};
use crate::{Graph, LoadOptions};

const PEOPLE: u64 = 40;
const TOWNS: u64 = 8;

/// An edge: its ends, its label, and its length if it has one.
type Row = (u64, u64, &'static str, Option<u64>);

/// How large the place of a key is; of every third it is not known.
fn size(key: u64) -> Option<u64> {
    (!key.is_multiple_of(3)).then_some(key % 10)
}

fn rows() -> Vec<Row> {
    let mut random = SplitMix64::new(77);
    let mut rows = Vec::new();
    for number in 0..160 {
        let part = number % 2 * (PEOPLE / 2);
        let [from, to] = std::array::from_fn(|_| part + random.below(PEOPLE / 2 - 2));
        let label = if random.below(4) == 0 { "river" } else { "road" };
        rows.push((from, to, label, (random.below(5) > 0).then(|| 1 + random.below(9))));
    }
    // Loops and parallel edges, of which one matches conditions.
    rows.extend([(7, 7, "road", Some(2)), (7, 7, "road", Some(9)), (7, 8, "road", Some(2)), (7, 8, "road", None)]);
    rows.extend((0..30).map(|at| (random.below(PEOPLE - 8), 100 + random.below(TOWNS), "road", Some(at % 10))));
    rows
}

/// A graph of all people and towns and of some edges, half of which a commit adds.
async fn graph(name: &str, rows: &[Row]) -> Graph {
    let folder = tempfile::tempdir().unwrap();
    let vertices = |label: &str, keys: std::ops::Range<u64>| {
        let mut text = String::from("~id,~label,size:Int");
        for key in keys {
            let size = size(key).map(|size| size.to_string()).unwrap_or_default();
            write!(text, "\n{key},{label},{size}").unwrap();
        }
        std::fs::write(folder.path().join(format!("{label}.csv")), text).unwrap();
    };
    vertices("Person", 0..PEOPLE);
    vertices("Town", 100..100 + TOWNS);
    let (first, later) = rows.split_at(rows.len() / 2);
    let mut text = String::from("~from,~to,~label,km:Int");
    for (from, to, label, km) in first {
        let km = km.map(|km| km.to_string()).unwrap_or_default();
        write!(text, "\n{from},{to},{label},{km}").unwrap();
    }
    std::fs::write(folder.path().join("edges.csv"), text).unwrap();
    let url = format!("memory://compute/conditions/{name}");
    crate::load(&url, LoadOptions::from_paths([folder.path()])).await.unwrap();
    let mut graph = Graph::open(&url).await.unwrap();
    let mut commit = graph.begin();
    let vertex = |key: u64| (if key < 100 { "Person" } else { "Town" }, key as i64);
    for (number, (from, to, label, km)) in (0i64..).zip(later) {
        let km = km.map(|km| ("km", km as i64));
        commit.upsert_edge_by(("number", number), label, vertex(*from), vertex(*to), km);
    }
    commit.commit().await.unwrap();
    graph.refresh().await.unwrap();
    graph
}

/// A name, a hop with a condition, the same hop without it, and whether an edge matches the condition.
type Case = (&'static str, &'static str, &'static str, fn(&Row) -> bool);

#[tokio::test(flavor = "multi_thread")]
async fn edges_with_a_condition_are_the_edges_that_match_it() {
    let whole = graph("whole", &rows()).await;
    let cases: [Case; 5] = [
        ("out", "out:road[km < 5]", "out:road", |row| row.3.is_some_and(|km| km < 5)),
        ("both", "both:road,river[km < 5]", "both:road,river", |row| row.3.is_some_and(|km| km < 5)),
        ("not", "in[not (km >= 5)]", "in", |row| row.3.is_some_and(|km| km < 5)),
        ("target", "out:road[vertex.size > 4]", "out:road", |row| size(row.1).is_some_and(|size| size > 4)),
        ("source", "in:road[vertex.size > 4 and km is not null]", "in:road", |row| {
            size(row.0).is_some_and(|size| size > 4) && row.3.is_some()
        }),
    ];
    for (name, conditional, bare, matches) in cases {
        let kept: Vec<Row> = rows().into_iter().filter(matches).collect();
        let only = graph(name, &kept).await;
        let selected = |hop: &str, placement| ComputeOptions {
            selection: Selection { hop: hop.parse().unwrap(), labels: vec!["Town".into()], ..Selection::default() },
            placement,
            ..ComputeOptions::default()
        };
        for algorithm in all() {
            // Some of these edges have no length.
            if algorithm.options().text(registry::WEIGHT_OPTION).is_some() && name == "target" {
                continue;
            }
            let is_weighted_rank = algorithm == Algorithm::named("pagerank").unwrap().with("weight", "km").unwrap();
            let placements = match algorithm.spec().has_program() && !is_weighted_rank {
                true => &[Placement::Memory, Placement::Streamed][..],
                false => &[Placement::Memory],
            };
            for placement in placements {
                let (expected, _) = found(&only, &algorithm, &selected(bare, *placement)).await;
                let (values, _) = found(&whole, &algorithm, &selected(conditional, *placement)).await;
                let is_near = |(a, b): (&f64, &f64)| (a - b).abs() < 1e-9;
                let is_same = values.keys().eq(expected.keys()) && values.values().zip(expected.values()).all(is_near);
                assert!(is_same, "{algorithm:?} of {conditional}, {placement:?}: {values:?}, not {expected:?}");
            }
        }
        let triangles = async |graph: &Graph, hop: &str| {
            graph.query().count_triangles(&selected(hop, Placement::Automatic)).await.unwrap()
        };
        assert_eq!(triangles(&whole, conditional).await, triangles(&only, bare).await, "{conditional}");
    }
}

/// Components follow edges both ways, and a condition may be on either end of them.
#[tokio::test]
async fn a_checkpoint_knows_at_which_end_a_condition_is() {
    let graph = graph("checkpoint", &rows()).await;
    let file = CheckpointFile { path: "states".into(), every: std::time::Duration::ZERO };
    let header = |hop: &str| {
        let selection = Selection { hop: hop.parse().unwrap(), ..Selection::default() };
        let options = ComputeOptions { selection, ..ComputeOptions::default() };
        let applied = Algorithm::named("components").unwrap().applied_to(&options);
        graph.query().checkpoint(&file, &applied.selection).graph
    };
    assert_ne!(header("out:road[vertex.size > 4]"), header("in:road[vertex.size > 4]"));
    assert_eq!(header("out:road"), header("in:road"));
}
