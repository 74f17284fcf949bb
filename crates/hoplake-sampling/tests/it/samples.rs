//! What a sample has.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
};

use hoplake::{
    Direction, ErrorKind, Graph, Hop, HopDirection, LoadOptions, MemoryBudget, VertexId,
    sampling::{Sample, SamplerSettings},
};

use crate::{assert_empty, changed, fan_outs, in_memory, sample, vertices};

/// All settings next to each other, but for weights that are left out where edges have none.
fn all_settings(graph: &Graph) -> Vec<SamplerSettings> {
    let mut all = Vec::new();
    for hops in [
        &[("out:knows", &[Some(3), Some(2)][..])][..],
        &[("in:knows", &[Some(4)])],
        &[("out", &[Some(2), None])],
        &[("both", &[Some(5), Some(3), Some(2)])],
        &[("out:rates", &[Some(2), Some(0), Some(2)]), ("in:rates", &[Some(0), Some(3)])],
        &[("out:knows", &[None, None])],
    ] {
        let fan_outs: Vec<_> = hops.iter().flat_map(|(hop, counts)| fan_outs(graph, hop, counts)).collect();
        for (replace, disjoint, induced, weight) in
            (0..16).map(|bits| (bits & 1 > 0, bits & 2 > 0, bits & 4 > 0, bits & 8 > 0))
        {
            let weight = weight.then(|| "weight".to_owned());
            all.push(SamplerSettings {
                fan_outs: fan_outs.clone(),
                replace,
                weight,
                disjoint,
                induced,
                seed: 3,
                places: true,
                time: None,
            });
        }
    }
    all
}

async fn seeds(graph: &Graph) -> Vec<VertexId> {
    let people = [0, 3, 5, 6, 20, 33, 150, 3].map(|at| ("person", format!("p{at}")));
    vertices(graph, people.into_iter().chain([("film", "f7".into())])).await
}

#[tokio::test(flavor = "multi_thread")]
async fn samples_are_the_same_from_everywhere_and_on_any_number_of_threads() {
    let graph = changed("same").await;
    let seeds = seeds(&graph).await;
    for settings in all_settings(&graph) {
        let on_bucket = graph.query().sampler(settings.clone()).unwrap();
        let expected = sample(&graph, &on_bucket, &seeds, 9).await;
        for threads in [1, 2, 7] {
            let sampler = in_memory(&graph, &settings, threads).await;
            assert_eq!(sample(&graph, &sampler, &seeds, 9).await, expected, "{settings:?} on {threads}");
        }
        assert_eq!(sample(&graph, &on_bucket, &seeds, 9).await, expected, "{settings:?} again");
    }
}

/// How many edges of a type there are between two vertices.
type Edges = BTreeMap<(u16, bool), BTreeMap<(VertexId, VertexId), (usize, Vec<f64>)>>;

/// All edges as queries read them, with their weights.
async fn edges_of(graph: &Graph) -> Edges {
    let mut all = Edges::new();
    for direction in [HopDirection::Out, HopDirection::In] {
        let hop = Hop { direction, ..Hop::default() };
        let every: Vec<VertexId> = (0..graph.schema().vertex_labels.len() as u16)
            .flat_map(|label| (0..400).filter_map(move |at| VertexId::new(hoplake::LabelId(label), at)))
            .filter(|vertex| graph.manifest().vertex_counts[usize::from(vertex.label().0)].ordinals > vertex.ordinal())
            .collect();
        let mut query = graph.query();
        let edges = query.neighbors(&every, &hop).await.unwrap();
        for edge in edges.iter() {
            let of = all.entry((edge.edge_type.0, edge.direction == Direction::Out)).or_default();
            of.entry((edge.from, edge.to)).or_default().0 += 1;
        }
    }
    all
}

/// The vertex at a place of a sample.
fn vertex(sample: &Sample, label: hoplake::LabelId, at: i64) -> (VertexId, i64) {
    let vertices = sample.of_label(label).unwrap();
    let tree = vertices.trees.get(at as usize).copied().unwrap_or(0);
    (VertexId::new(label, vertices.ordinals[at as usize] as u64).unwrap(), tree)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sample_has_edges_of_the_graph_and_as_many_as_it_should() {
    let graph = changed("edges").await;
    let seeds = seeds(&graph).await;
    let all = edges_of(&graph).await;
    for settings in all_settings(&graph).into_iter().filter(|settings| settings.weight.is_none()) {
        let sampler = graph.query().sampler(settings.clone()).unwrap();
        let sample = sample(&graph, &sampler, &seeds, 1).await;
        let shown = format!("{settings:?}");
        // Seeds come first, each once.
        let given: BTreeSet<_> =
            seeds.iter().enumerate().map(|(at, seed)| (*seed, if settings.disjoint { at } else { 0 })).collect();
        assert_eq!(sample.vertices.iter().map(|vertices| vertices.per_hop[0]).sum::<usize>(), given.len(), "{shown}");
        for vertices in &sample.vertices {
            assert_eq!(vertices.per_hop.iter().sum::<usize>(), vertices.ordinals.len(), "{shown}");
            assert_eq!(vertices.trees.len(), if settings.disjoint { vertices.ordinals.len() } else { 0 }, "{shown}");
            let distinct: BTreeSet<_> =
                (0..vertices.ordinals.len() as i64).map(|at| vertex(&sample, vertices.label, at)).collect();
            assert_eq!(distinct.len(), vertices.ordinals.len(), "{shown}");
            assert!(
                distinct.iter().filter(|(seed, tree)| given.contains(&(*seed, *tree as usize))).count()
                    >= vertices.per_hop[0]
            );
        }
        for (edges, fan_out) in sample.edges.iter().zip(&settings.fan_outs) {
            let of = &all[&(edges.edges.edge_type.0, edges.edges.direction == Direction::Out)];
            let degree = |near: VertexId| {
                of.iter().filter(|((from, _), _)| *from == near).map(|(_, (count, _))| count).sum::<usize>()
            };
            let mut chosen: BTreeMap<(i64, VertexId), usize> = BTreeMap::new();
            let mut of_each: BTreeMap<i64, usize> = BTreeMap::new();
            for (near, far) in edges.near.iter().zip(&edges.far) {
                let ((from, tree), (to, other)) =
                    (vertex(&sample, edges.edges.near, *near), vertex(&sample, edges.edges.far, *far));
                assert_eq!(tree, other, "{shown}");
                assert!(of.contains_key(&(from, to)), "no edge from {from} to {to}: {shown}");
                *chosen.entry((*near, to)).or_default() += 1;
                *of_each.entry(*near).or_default() += 1;
            }
            assert_eq!(edges.per_hop.iter().sum::<usize>(), edges.near.len(), "{shown}");
            assert_eq!(edges.places.len(), edges.near.len(), "{shown}");
            let Some(near) = sample.of_label(edges.edges.near) else { continue };
            if settings.induced {
                // All edges between its vertices.
                let known: BTreeSet<_> = sample
                    .of_label(edges.edges.far)
                    .into_iter()
                    .flat_map(|vertices| {
                        (0..vertices.ordinals.len() as i64).map(|at| vertex(&sample, edges.edges.far, at))
                    })
                    .collect();
                for at in 0..near.ordinals.len() as i64 {
                    let (from, tree) = vertex(&sample, edges.edges.near, at);
                    for ((_, to), (count, _)) in of.iter().filter(|((near, _), _)| *near == from) {
                        let found = chosen.get(&(at, *to)).copied().unwrap_or(0);
                        assert_eq!(found, if known.contains(&(*to, tree)) { *count } else { 0 }, "{shown}");
                    }
                }
                continue;
            }
            let mut first = 0;
            for (hop, reached) in near.per_hop.iter().enumerate() {
                for at in first..first + *reached as i64 {
                    let (from, _) = vertex(&sample, edges.edges.near, at);
                    let degree = degree(from);
                    let expected = match fan_out.counts.get(hop).copied().unwrap_or(Some(0)) {
                        None => degree,
                        Some(count) if settings.replace && degree > 0 => count as usize,
                        Some(count) => degree.min(count as usize),
                    };
                    assert_eq!(of_each.get(&at).copied().unwrap_or(0), expected, "{from} in hop {hop}: {shown}");
                    if !settings.replace {
                        let most = |to: &VertexId| of[&(from, *to)].0;
                        assert!(
                            chosen
                                .iter()
                                .filter(|((near, _), _)| *near == at)
                                .all(|((_, to), count)| *count <= most(to))
                        );
                    }
                }
                first += *reached as i64;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_sampled_is_rejected_before_it_is_built() {
    let graph = changed("rejected").await;
    let seeds = seeds(&graph).await;
    let query = graph.query();
    let rejected = |settings: SamplerSettings| query.sampler(settings).unwrap_err().to_string();
    assert!(rejected(SamplerSettings::default()).contains("needs a fan-out"));
    let twice: Vec<_> = ["out:knows", "both:knows"].iter().flat_map(|hop| fan_outs(&graph, hop, &[Some(1)])).collect();
    let error = rejected(SamplerSettings { fan_outs: twice, ..SamplerSettings::default() });
    assert!(error.contains("two fan-outs for out:knows"), "{error}");
    let deep = fan_outs(&graph, "out:knows", &[Some(1); 65]);
    assert!(rejected(SamplerSettings { fan_outs: deep, ..SamplerSettings::default() }).contains("at most 64 hops"));
    assert_eq!(query.fan_outs(&"out:nothing".parse().unwrap(), &[]).unwrap_err().kind(), ErrorKind::NotFound);

    let settings = |count: Option<u32>, replace| SamplerSettings {
        fan_outs: fan_outs(&graph, "out:knows", &[count; 2]),
        replace,
        ..SamplerSettings::default()
    };
    let gone = VertexId::new(seeds[0].label(), 1 << 40).unwrap();
    let sampler = query.sampler(settings(Some(2), false)).unwrap();
    let error = graph.query().sample(&sampler, &[seeds[0], gone], 0).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.to_string().contains("seed 1"), "{error}");

    // A thousand million of each vertex: the memory that they would take is counted first.
    for sampler in [
        query.sampler(settings(Some(1_000_000_000), true)).unwrap(),
        in_memory(&graph, &settings(Some(1_000_000_000), true), 2).await,
    ] {
        let budget = MemoryBudget::new("the batch", 64 << 20);
        let error = graph.query_within(&budget).sample(&sampler, &seeds, 0).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Limit, "{error}");
        assert!(budget.peak() < 16 << 20, "{}", budget.peak());
        assert_empty(&budget);
    }
    // A sample counts until it is dropped.
    let budget = MemoryBudget::new("the batch", 64 << 20);
    let kept = graph.query_within(&budget).sample(&sampler, &seeds, 0).await.unwrap();
    assert!(budget.used() >= 8 * kept.vertices.iter().map(|vertices| vertices.ordinals.len() as u64).sum::<u64>());
    drop(kept);
    assert_empty(&budget);
}

#[tokio::test(flavor = "multi_thread")]
async fn vertices_are_numbered_in_the_order_in_which_they_were_reached() {
    let url = "memory://sampling/numbered";
    let folder = tempfile::tempdir().unwrap();
    let (people, films) = (6_000_u64, 900);
    let mut rows = String::from("~id,~label\n");
    let mut edges = String::from("~id,~from,~to,~label\n");
    (0..people).for_each(|at| rows += &format!("p{at},person\n"));
    (0..films).for_each(|at| rows += &format!("f{at},film\n"));
    for at in 0..people {
        for step in 0..at % 6 {
            edges += &format!("k{at}-{step},p{at},p{},knows\n", (at * 2_654_435_761 + step * step * 7_919) % people);
            edges += &format!("r{at}-{step},p{at},f{},rates\n", (at * 40_503 + step) % films);
        }
    }
    fs::write(folder.path().join("vertices.csv"), rows).unwrap();
    fs::write(folder.path().join("edges.csv"), edges).unwrap();
    let files = [folder.path().join("vertices.csv"), folder.path().join("edges.csv")];
    hoplake::load(url, LoadOptions::from_paths(files)).await.unwrap();
    let graph = Graph::open(url).await.unwrap();
    let hops = ["out:knows", "in:knows", "out:rates", "in:rates"];
    let label = fan_outs(&graph, hops[0], &[])[0].edges.near;
    let seeds: Vec<i64> = (0..2_000).map(|at| at * 37 % people as i64).collect();
    let seeds = graph.query().vertices_at(label, &seeds).unwrap();
    for disjoint in [false, true] {
        let counts = [Some(3), Some(2), Some(4)];
        let settings = SamplerSettings {
            fan_outs: hops.iter().flat_map(|hop| fan_outs(&graph, hop, &counts)).collect(),
            disjoint,
            seed: 8,
            ..SamplerSettings::default()
        };
        let expected = sample(&graph, &in_memory(&graph, &settings, 1).await, &seeds, 4).await;
        for threads in [2, 7] {
            let sampler = in_memory(&graph, &settings, threads).await;
            assert!(sample(&graph, &sampler, &seeds, 4).await == expected, "{threads} threads, disjoint: {disjoint}");
        }
        // What one table and one thread would do: hop by hop, by fan-out, and in the order of edges.
        let mut numbers: BTreeMap<hoplake::LabelId, BTreeSet<(VertexId, i64)>> = BTreeMap::new();
        let mut reached: BTreeMap<hoplake::LabelId, i64> = BTreeMap::new();
        let mut reach = |label: hoplake::LabelId, at: i64| {
            let is_new = numbers.entry(label).or_default().insert(vertex(&expected, label, at));
            let next = reached.entry(label).or_default();
            assert!(if is_new { at == *next } else { at < *next }, "{at} of {next}, disjoint: {disjoint}");
            *next += i64::from(is_new);
        };
        expected.seeds.iter().for_each(|at| reach(label, *at));
        let mut begins = vec![0; hops.len()];
        for hop in 0..counts.len() {
            for (edges, begin) in expected.edges.iter().zip(&mut begins) {
                let end = *begin + edges.per_hop[hop];
                edges.far[*begin..end].iter().for_each(|at| reach(edges.edges.far, *at));
                assert!(edges.near[*begin..end].is_sorted());
                *begin = end;
            }
        }
        for vertices in &expected.vertices {
            assert_eq!(reached[&vertices.label], vertices.ordinals.len() as i64);
        }
        assert!(expected.edges.iter().all(|edges| edges.near.len() > 1_000), "disjoint: {disjoint}");
    }
}
