//! The same graph has the same results, however it was loaded and changed.

use std::{collections::BTreeMap, fmt::Write as _, sync::Arc};

use arrow_schema::DataType;
use hoplake_analytics::registry::OptionKind;
use hoplake_format::Key;
use hoplake_testkit::generate::SplitMix64;

use super::*;
use crate::{Graph, LoadOptions, Value as Property, VertexOrder};

const PEOPLE: u64 = 40;
const TOWNS: u64 = 8;

/// Every algorithm of the registry, in the ways in which its options make a difference to the order.
pub(super) fn all() -> Vec<Algorithm> {
    let mut all = Vec::new();
    for spec in registry::ALGORITHMS.iter().filter(|spec| spec.value.is_some()) {
        let start: StartKey = "Person:7".parse().unwrap();
        let plain = match spec.option(registry::FROM_OPTION).map(|option| option.kind) {
            Some(OptionKind::Vertex) => Algorithm::from_start(spec.name, start),
            Some(_) => {
                all.push(Algorithm::from_start(spec.name, start).unwrap());
                Algorithm::named(spec.name)
            }
            None => Algorithm::named(spec.name),
        };
        let plain = plain.unwrap();
        let has = |name: &str| spec.option(name).is_some();
        if has(registry::WEIGHT_OPTION) {
            all.push(plain.clone().with(registry::WEIGHT_OPTION, "km").unwrap());
        }
        if has(registry::SAMPLE_OPTION) {
            let sampled = plain.clone().with(registry::SAMPLE_OPTION, 9).unwrap();
            all.push(sampled.with(registry::SEED_OPTION, 3).unwrap());
        }
        if has("iterations") {
            all.push(plain.clone().with("iterations", 1).unwrap());
        }
        all.push(plain);
    }
    all
}

fn shuffle<T>(items: &mut [T], random: &mut SplitMix64) {
    (1..items.len()).rev().for_each(|last| items.swap(last, random.below(last as u64 + 1) as usize));
}

/// A graph of several components, some of them single vertices, in rows.
fn rows() -> [Vec<String>; 3] {
    let mut random = SplitMix64::new(31);
    // Two parts that no edge joins, and parallel edges and circles in both.
    let mut edges = Vec::new();
    for number in 0..70 {
        let part = number % 2 * (PEOPLE / 2);
        let [from, to] = std::array::from_fn(|_| part + random.below(PEOPLE / 2 - 4));
        edges.push(format!("{from},{to},road,{}", 1 + random.below(5)));
    }
    edges.extend((0..20).map(|_| format!("{},{},road,2", random.below(PEOPLE - 8), 100 + random.below(TOWNS))));
    let people = (0..PEOPLE).map(|key| format!("{key},Person")).collect();
    [people, (100..100 + TOWNS).map(|key| format!("{key},Town")).collect(), edges]
}

async fn loaded(name: &str, [people, towns, edges]: [Vec<String>; 3], order: VertexOrder, towns_first: bool) -> Graph {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, header: &str, rows: &[String]| {
        let mut text = header.to_owned();
        rows.iter().for_each(|row| write!(text, "\n{row}").unwrap());
        std::fs::write(folder.path().join(name), text).unwrap();
    };
    let [a, b] = if towns_first { [towns, people] } else { [people, towns] };
    write("a.csv", "~id,~label", &a);
    write("b.csv", "~id,~label", &b);
    write("edges.csv", "~from,~to,~label,km:Int", &edges);
    let url = format!("memory://compute/order/{name}");
    crate::load(&url, LoadOptions { order, ..LoadOptions::from_paths([folder.path()]) }).await.unwrap();
    Graph::open(&url).await.unwrap()
}

/// The graph, loaded and changed in several ways.
async fn graphs() -> Vec<(&'static str, Graph)> {
    let mut random = SplitMix64::new(7);
    let shuffled = {
        let mut rows = rows();
        rows.iter_mut().for_each(|rows| shuffle(rows, &mut random));
        rows
    };
    let mut graphs = vec![
        ("keys", loaded("keys", rows(), VertexOrder::Keys, false).await),
        ("locality", loaded("locality", rows(), VertexOrder::Locality, false).await),
        ("shuffled", loaded("shuffled", shuffled.clone(), VertexOrder::Keys, true).await),
        ("both", loaded("both", shuffled.clone(), VertexOrder::Locality, true).await),
    ];
    // Half of it committed later, and vertices in between deleted.
    let [people, towns, edges] = shuffled;
    let (first, later) = people.split_at(people.len() / 2);
    let first = first.iter().cloned().chain(["5000,Person".into(), "-5,Person".into()]).collect();
    let some_edges = vec!["5000,-5,road,1".into()];
    let mut graph = loaded("committed", [first, towns, some_edges], VertexOrder::Locality, true).await;
    let mut commit = graph.begin();
    let key = |text: &str| Key::from(text.parse::<i64>().unwrap());
    let label = |text: &str| if text.len() > 2 { "Town" } else { "Person" };
    for row in later {
        commit.upsert_vertex("Person", key(row.split(',').next().unwrap()), [("name", Property::Null); 0]);
    }
    commit.delete_vertex("Person", -5).delete_vertex("Person", 5000);
    commit.commit().await.unwrap();
    graph.refresh().await.unwrap();
    // Parallel edges, which an upsert would make one.
    let mut commit = graph.begin();
    for (number, row) in (0i64..).zip(&edges) {
        let [from, to, _, km] = row.split(',').collect::<Vec<_>>()[..] else { panic!("{row}") };
        commit.upsert_edge_by(
            ("number", number),
            "road",
            (label(from), key(from)),
            (label(to), key(to)),
            [("km", km.parse::<i64>().unwrap())],
        );
    }
    commit.commit().await.unwrap();
    graph.refresh().await.unwrap();
    graphs.push(("committed", graph));
    graphs
}

/// The values of all vertices, by label and key, and the first seven.
pub(super) async fn found(
    graph: &Graph,
    algorithm: &Algorithm,
    options: &ComputeOptions,
) -> (BTreeMap<String, f64>, Vec<String>) {
    let mut query = graph.query();
    let computed = Arc::new(query.compute(algorithm, options, |_| ()).await.unwrap());
    let top = query.top(&computed, 7).await.unwrap();
    let vertices: Vec<_> = computed.vertices().collect();
    let names = async |query: &mut Query, vertices: &[VertexId]| {
        let keys = query.keys_of(vertices).await.unwrap();
        let names = vertices.iter().zip(keys.iter()).map(|(vertex, key)| format!("{}:{key}", query.label_of(*vertex)));
        names.collect::<Vec<_>>()
    };
    let column = computed.column(&vertices);
    assert_eq!(*column.data_type(), algorithm.value_type(), "{algorithm:?}");
    let value = |row| match Property::at(&column, row) {
        Property::Int64(value) => value as f64,
        Property::Float64(value) => value,
        Property::Null => -1.0,
        other => panic!("{other:?}"),
    };
    let values = names(&mut query, &vertices).await.into_iter().zip((0..).map(value)).collect();
    (values, names(&mut query, &top).await)
}

#[tokio::test(flavor = "multi_thread")]
async fn results_do_not_depend_on_how_a_graph_was_loaded() {
    let algorithms = all();
    let graphs = graphs().await;
    for algorithm in &algorithms {
        for hop in ["out:road", "both:road"] {
            // Ranks by weight have no program.
            let is_weighted_rank = *algorithm == Algorithm::named("pagerank").unwrap().with("weight", "km").unwrap();
            let placements = match algorithm.spec().has_program() && !is_weighted_rank {
                true => &[Placement::Memory, Placement::Streamed][..],
                false => &[Placement::Memory],
            };
            for placement in placements {
                let selection = Selection {
                    hop: hop.parse().unwrap(),
                    labels: vec!["Person".into(), "Town".into()],
                    ..Selection::default()
                };
                let options = ComputeOptions { selection, placement: *placement, ..ComputeOptions::default() };
                let mut expected = None;
                for (name, graph) in &graphs {
                    let (values, top) = found(graph, algorithm, &options).await;
                    let (first, first_top) = expected.get_or_insert_with(|| (values.clone(), top.clone()));
                    let is_near = |(a, b): (&f64, &f64)| (a - b).abs() < 1e-9;
                    let is_same = values.keys().eq(first.keys()) && values.values().zip(first.values()).all(is_near);
                    assert!(is_same, "{algorithm:?} of {hop}, {name}: {values:?}, not {first:?}");
                    // Sums of floats differ in their last bits, so that what is nearly equal may change places.
                    if algorithm.value_type() == DataType::Int64 {
                        assert_eq!(top, *first_top, "{algorithm:?} of {hop}, {name}");
                    }
                }
            }
        }
    }
}
