//! Chances are what they should be: chi-square tests with a fixed seed, at one in a thousand.

use std::{collections::BTreeMap, fs};

use hoplake::{
    Graph, LoadOptions, VertexId,
    sampling::{Sample, SamplerSettings},
};

use crate::{fan_outs, in_memory, sample, vertices};

/// A vertex `c` with `neighbours` edges, whose weights are 1, 2, 3 and so on.
async fn star(name: &str, neighbours: usize) -> (Graph, VertexId) {
    let url = format!("memory://sampling/{name}");
    let folder = tempfile::tempdir().unwrap();
    let mut rows = String::from("~id,~label\nc,v\n");
    let mut edges = String::from("~id,~from,~to,~label,weight:Double\n");
    for at in 0..neighbours {
        rows += &format!("n{at:06},v\n");
        edges += &format!("e{at},c,n{at:06},e,{}\n", at + 1);
    }
    fs::write(folder.path().join("vertices.csv"), rows).unwrap();
    fs::write(folder.path().join("edges.csv"), edges).unwrap();
    let options = LoadOptions::from_paths([folder.path().join("vertices.csv"), folder.path().join("edges.csv")]);
    hoplake::load(&url, options).await.unwrap();
    let graph = Graph::open(&url).await.unwrap();
    let centre = vertices(&graph, [("v", "c".to_owned())]).await[0];
    (graph, centre)
}

/// The statistic of observed counts next to their expectations.
fn chi_square<'a>(counts: impl IntoIterator<Item = (u64, f64)> + 'a) -> f64 {
    counts.into_iter().map(|(count, expected)| (count as f64 - expected).powi(2) / expected).sum()
}

/// The ordinals that were chosen, from that of the first neighbour.
fn chosen(sample: &Sample) -> Vec<usize> {
    let ordinals = &sample.vertices[0].ordinals;
    sample.edges[0].far.iter().map(|far| ordinals[*far as usize] as usize - 1).collect()
}

/// How often each set of neighbours is chosen, in as many batches.
async fn subsets(graph: &Graph, settings: &SamplerSettings, seed: VertexId, batches: u64) -> BTreeMap<Vec<usize>, u64> {
    let sampler = in_memory(graph, settings, 1).await;
    let mut counts = BTreeMap::new();
    for batch in 0..batches {
        *counts.entry(chosen(&sample(graph, &sampler, &[seed], batch).await)).or_default() += 1;
    }
    counts
}

#[tokio::test(flavor = "multi_thread")]
async fn all_subsets_have_the_same_chance() {
    let (graph, centre) = star("subsets", 6).await;
    let settings = SamplerSettings { fan_outs: fan_outs(&graph, "out:e", &[Some(3)]), ..SamplerSettings::default() };
    let counts = subsets(&graph, &settings, centre, 20_000).await;
    assert_eq!(counts.len(), 20, "the subsets of 3 of 6");
    let found = chi_square(counts.values().map(|count| (*count, 1_000.0)));
    // 19 degrees of freedom.
    assert!(found < 43.82, "{found}: {counts:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn with_replacement_each_draw_is_uniform() {
    let (graph, centre) = star("replace", 10).await;
    let fan_outs = fan_outs(&graph, "out:e", &[Some(4)]);
    let settings = SamplerSettings { fan_outs, replace: true, ..SamplerSettings::default() };
    let counts = subsets(&graph, &settings, centre, 5_000).await;
    assert!(counts.keys().all(|chosen| chosen.len() == 4));
    let of =
        |at: usize| counts.iter().map(|(all, count)| all.iter().filter(|one| **one == at).count() as u64 * count).sum();
    let found = chi_square((0..10).map(|at| (of(at), 2_000.0)));
    // 9 degrees of freedom.
    assert!(found < 27.88, "{found}");
    // Draws do not depend on each other: all four are the same with a chance of 1 in 1,000.
    let same =
        counts.iter().filter(|(all, _)| all.iter().all(|one| *one == all[0])).map(|(_, count)| count).sum::<u64>();
    assert!((1..15).contains(&same), "{same}");
}

#[tokio::test(flavor = "multi_thread")]
async fn weights_are_chances() {
    let (graph, centre) = star("weights", 5).await;
    let weight = Some("weight".to_owned());
    let total = 15.0;
    let of = |at: usize| (at + 1) as f64;
    for replace in [true, false] {
        let fan_outs = fan_outs(&graph, "out:e", &[Some(1)]);
        let settings = SamplerSettings { fan_outs, replace, weight: weight.clone(), ..SamplerSettings::default() };
        let counts = subsets(&graph, &settings, centre, 15_000).await;
        let found = chi_square((0..5).map(|at| (counts[&vec![at]], 15_000.0 * of(at) / total)));
        // 4 degrees of freedom.
        assert!(found < 18.47, "{found} with {replace}: {counts:?}");
    }
    // Two without replacement: one by weight, and then one of the others by weight.
    let settings =
        SamplerSettings { fan_outs: fan_outs(&graph, "out:e", &[Some(2)]), weight, ..SamplerSettings::default() };
    let counts = subsets(&graph, &settings, centre, 20_000).await;
    let chance = |a: usize, b: usize| of(a) / total * of(b) / (total - of(a)) + of(b) / total * of(a) / (total - of(b));
    let pairs = (0..5).flat_map(|a| (a + 1..5).map(move |b| (a, b)));
    let found = chi_square(pairs.map(|(a, b)| (counts[&vec![a, b]], 20_000.0 * chance(a, b))));
    // 9 degrees of freedom.
    assert!(found < 27.88, "{found}: {counts:?}");
}

/// A list of many blocks, from the bucket.
#[tokio::test(flavor = "multi_thread")]
async fn long_lists_are_sampled_evenly() {
    let (graph, centre) = star("long", 100_000).await;
    let settings = SamplerSettings { fan_outs: fan_outs(&graph, "out:e", &[Some(50)]), ..SamplerSettings::default() };
    let sampler = graph.query().sampler(settings).unwrap();
    let mut counts = [0; 10];
    for batch in 0..100 {
        chosen(&sample(&graph, &sampler, &[centre], batch).await).iter().for_each(|at| counts[at / 10_000] += 1);
    }
    let found = chi_square(counts.iter().map(|count| (*count, 500.0)));
    assert!(found < 27.88, "{found}: {counts:?}");
}
