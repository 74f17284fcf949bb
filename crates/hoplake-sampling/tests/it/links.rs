//! Negatives: no edges, evenly drawn.

use std::collections::BTreeSet;

use hoplake::{
    ErrorKind, MemoryBudget, VertexId,
    sampling::{NegativesFrom, SamplerSettings},
};

use crate::{assert_empty, changed, fan_outs, in_memory, vertices};

#[tokio::test(flavor = "multi_thread")]
async fn negatives_are_no_edges_and_the_same_from_everywhere() {
    let graph = changed("negatives").await;
    let hop = "out:rates";
    let settings =
        SamplerSettings { fan_outs: fan_outs(&graph, hop, &[Some(2)]), seed: 4, ..SamplerSettings::default() };
    let edges = settings.fan_outs[0].edges;
    let people = vertices(&graph, (0..40).map(|at| ("person", format!("p{at}")))).await;
    let on_bucket = graph.query().sampler(settings.clone()).unwrap();
    let existing = graph.query().ordinals(edges.near).await.unwrap();
    assert_eq!(existing.len(), 199, "a commit deleted one");
    for from in [NegativesFrom::Any(300), NegativesFrom::Each(&people, 5)] {
        let found = graph.query().negatives(&on_bucket, edges, from, 2).await.unwrap().into_inner();
        for threads in [1, 3] {
            let sampler = in_memory(&graph, &settings, threads).await;
            assert_eq!(graph.query().negatives(&sampler, edges, from, 2).await.unwrap().into_inner(), found);
        }
        let other = graph.query().negatives(&on_bucket, edges, from, 3).await.unwrap();
        assert_ne!(other.far, found.far);
        let near: BTreeSet<VertexId> = found.near.iter().copied().collect();
        let near: Vec<VertexId> = near.into_iter().collect();
        let all = graph.query().neighbors(&near, &hop.parse().unwrap()).await.unwrap();
        let known: BTreeSet<_> = all.iter().map(|edge| (edge.from, edge.to)).collect();
        assert!(found.near.iter().zip(&found.far).all(|(near, far)| !known.contains(&(*near, *far))));
        match from {
            NegativesFrom::Any(count) => {
                assert_eq!((found.near.len(), found.far.len()), (count, count));
                assert!(near.len() > 120);
                assert!(near.iter().all(|vertex| existing.contains(&(vertex.ordinal() as i64))));
            }
            NegativesFrom::Each(..) => {
                assert_eq!(found.near, people.iter().flat_map(|vertex| [*vertex; 5]).collect::<Vec<_>>());
            }
        }
    }
    let nobody = VertexId::new(edges.near, 1 << 40).unwrap();
    let error = graph.query().negatives(&on_bucket, edges, NegativesFrom::Each(&[nobody], 1), 0).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
    // Pairs are counted before they are made.
    let budget = MemoryBudget::new("the batch", 64 << 20);
    let many = NegativesFrom::Any(usize::MAX);
    let error = graph.query_within(&budget).negatives(&on_bucket, edges, many, 0).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Limit, "{error}");
    assert_empty(&budget);
}

#[tokio::test(flavor = "multi_thread")]
async fn ends_of_negatives_have_the_same_chance() {
    let graph = changed("even-negatives").await;
    let settings =
        SamplerSettings { fan_outs: fan_outs(&graph, "out:rates", &[Some(2)]), ..SamplerSettings::default() };
    let edges = settings.fan_outs[0].edges;
    let sampler = in_memory(&graph, &settings, 1).await;
    // It rates no films, so that all 50 are as likely.
    let person = vertices(&graph, [("person", "p70".to_owned())]).await;
    let found = graph.query().negatives(&sampler, edges, NegativesFrom::Each(&person, 20_000), 0).await.unwrap();
    let mut counts = [0_u64; 50];
    found.far.iter().for_each(|film| counts[film.ordinal() as usize] += 1);
    let statistic: f64 = counts.iter().map(|count| (*count as f64 - 400.0).powi(2) / 400.0).sum();
    // 49 degrees of freedom, at one in a thousand.
    assert!(statistic < 85.35, "{statistic}: {counts:?}");
}
