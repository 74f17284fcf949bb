//! Features next to the properties that were loaded and committed.

use std::fs;

use hoplake::{
    Batch, ErrorKind, Graph, LabelId, LoadOptions, MemoryBudget, Operation, VertexId, VertexRef,
    compute::Workers,
    sampling::{Feature, FeatureSettings, Numbers, Sample, SamplerSettings},
};

use crate::{assert_empty, fan_outs, sample, vertices};

/// People in a ring, each with numbers of several types. A commit changed the numbers of one and left another without.
async fn people(name: &str) -> Graph {
    let url = format!("memory://sampling/{name}");
    let folder = tempfile::tempdir().unwrap();
    let mut people =
        String::from("~id,~label,age:Int,height:Double,member:Bool,born:Date,embedding:Double[],pair:Int[],name\n");
    let mut edges = String::from("~id,~from,~to,~label\n");
    for at in 0..500 {
        let day = 1 + at % 28;
        people += &format!(
            "p{at},person,{at},{}.5,{},2000-01-{day:02},{}.25;-{at}.5;3,{at};{},n{at}\n",
            at,
            at % 2 == 0,
            at,
            2 * at
        );
        for step in 1..5 {
            edges += &format!("e{at}-{step},p{at},p{},knows\n", (at * step + 7) % 500);
        }
    }
    fs::write(folder.path().join("vertices.csv"), people).unwrap();
    fs::write(folder.path().join("edges.csv"), edges).unwrap();
    let files = [folder.path().join("vertices.csv"), folder.path().join("edges.csv")];
    hoplake::load(&url, LoadOptions::from_paths(files)).await.unwrap();
    let mut graph = Graph::open(&url).await.unwrap();
    let vertex = VertexRef::new("person", "p7");
    let changed = Operation::UpsertVertex { vertex, properties: [("age", 1_000i64)].into(), replace: false };
    let vertex = VertexRef::new("person", "p8");
    let emptied = Operation::UpsertVertex { vertex, properties: [("age", 8i64)].into(), replace: true };
    graph.apply(Batch { operations: vec![changed, emptied], ..Batch::default() }).await.unwrap();
    graph.refresh().await.unwrap();
    graph
}

fn feature(name: &str, properties: &[&str]) -> FeatureSettings {
    let properties = properties.iter().map(|name| (*name).to_owned()).collect();
    FeatureSettings::new(name, LabelId(0), properties)
}

async fn read(graph: &Graph, settings: Vec<FeatureSettings>, sample: &Sample) -> Result<Vec<Feature>, hoplake::Error> {
    let mut query = graph.query();
    let features = query.features(settings, Workers::default()).await?;
    Ok(query.features_of(&features, sample).await?.into_inner())
}

#[tokio::test(flavor = "multi_thread")]
async fn features_are_the_properties_of_sampled_vertices_in_their_order() {
    let graph = people("features").await;
    for disjoint in [false, true] {
        let settings = SamplerSettings {
            fan_outs: fan_outs(&graph, "out:knows", &[Some(3), Some(3)]),
            disjoint,
            ..SamplerSettings::default()
        };
        let sampler = graph.query().sampler(settings).unwrap();
        let seeds = vertices(&graph, [400, 7, 3, 499, 7].map(|at| ("person", format!("p{at}")))).await;
        let sample = sample(&graph, &sampler, &seeds, 0).await;
        let ordinals = &sample.vertices[0].ordinals;
        assert!(ordinals.len() > 20 && !ordinals.is_sorted());
        let missing = |settings: FeatureSettings| FeatureSettings { missing: Some(-1.0), ..settings };
        let asked = vec![
            missing(feature("age", &["age"])),
            FeatureSettings { is_matrix: true, ..missing(feature("column", &["age"])) },
            missing(feature("mixed", &["height", "embedding", "member"])),
            FeatureSettings { is_double: true, ..missing(feature("double", &["height"])) },
            missing(feature("integers", &["pair", "born"])),
        ];
        let found = read(&graph, asked, &sample).await.unwrap();
        let shapes: Vec<_> = found.iter().map(|feature| (feature.rows, feature.width)).collect();
        let rows = ordinals.len();
        assert_eq!(shapes, [(rows, None), (rows, Some(1)), (rows, Some(5)), (rows, None), (rows, Some(3))]);
        let keys = graph.query().keys_of(&vertex_ids(ordinals)).await.unwrap().into_inner();
        for (row, key) in keys.iter().enumerate() {
            let at: i64 = key.to_string().trim_matches('"')[1..].parse().unwrap();
            let is_empty = at == 8;
            let age = if at == 7 { 1_000 } else { at };
            let or = |value: f64| if is_empty { -1.0 } else { value };
            assert!(matches!(&found[0].numbers, Numbers::Int64(all) if all[row] == age), "{key}");
            assert!(matches!(&found[1].numbers, Numbers::Int64(all) if all[row] == age), "{key}");
            let mixed = [at as f64 + 0.5, at as f64 + 0.25, -(at as f64) - 0.5, 3.0, f64::from(at % 2 == 0)];
            let mixed = mixed.map(|value| or(value) as f32);
            assert!(
                matches!(&found[2].numbers, Numbers::Float32(all) if all[row * 5..][..5] == mixed),
                "{key} {mixed:?}"
            );
            assert!(matches!(&found[3].numbers, Numbers::Float64(all) if all[row] == or(at as f64 + 0.5)), "{key}");
            let integers = if is_empty { [-1; 3] } else { [at, 2 * at, (10_957 + at % 28) * 86_400_000_000] };
            assert!(matches!(&found[4].numbers, Numbers::Int64(all) if all[row * 3..][..3] == integers), "{key}");
        }
    }
}

fn vertex_ids(ordinals: &[i64]) -> Vec<VertexId> {
    ordinals.iter().map(|ordinal| VertexId::new(LabelId(0), *ordinal as u64).unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn features_that_cannot_be_are_rejected() {
    let graph = people("no-features").await;
    let ordinals = vertices(&graph, [("person", "p8".to_owned())]).await[0].ordinal() as i64;
    let rejected = async |settings: FeatureSettings| {
        let mut query = graph.query();
        match query.features(vec![settings], Workers::default()).await {
            Err(error) => error,
            Ok(features) => query.feature_of_vertices(&features, LabelId(0), "x", &[0, ordinals]).await.unwrap_err(),
        }
    };
    let error = rejected(feature("x", &["nothing"])).await;
    assert!(error.kind() == ErrorKind::NotFound && error.to_string().contains("it has age"), "{error}");
    let error = rejected(feature("x", &["age", "name"])).await;
    assert!(error.kind() == ErrorKind::Invalid && error.to_string().contains("is text"), "{error}");
    assert!(rejected(feature("x", &[])).await.to_string().contains("at least one property"));
    for name in ["height", "embedding"] {
        let error = rejected(feature("x", &["age", name])).await;
        assert!(error.to_string().contains(&format!("person:p8 has no value of {name}")), "{error}");
    }
    let mut query = graph.query();
    let features = query.features(vec![feature("x", &["age"])], Workers::default()).await.unwrap();
    for wrong in [-1, 500] {
        let error = query.feature_of_vertices(&features, LabelId(0), "x", &[0, wrong]).await.unwrap_err();
        assert!(error.kind() == ErrorKind::NotFound && error.to_string().contains(&wrong.to_string()), "{error}");
    }
    let twice = vec![feature("x", &["age"]), feature("x", &["height"])];
    assert!(query.features(twice, Workers::default()).await.unwrap_err().to_string().contains("two features"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_of_two_hops_with_features_takes_three_waves() {
    let graph = people("waves").await;
    let settings =
        SamplerSettings { fan_outs: fan_outs(&graph, "out:knows", &[Some(4); 2]), ..SamplerSettings::default() };
    let sampler = graph.query().sampler(settings).unwrap();
    let seeds = vertices(&graph, [("person", "p1".to_owned())]).await;
    let asked = vec![feature("x", &["age"]), FeatureSettings { missing: Some(0.0), ..feature("y", &["embedding"]) }];
    let features = graph.query().features(asked, Workers::default()).await.unwrap();
    let budget = MemoryBudget::new("a batch", 16 << 20);
    let mut query = graph.query_within(&budget);
    let sample = query.sample(&sampler, &seeds, 0).await.unwrap();
    let found = query.features_of(&features, &sample).await.unwrap();
    assert!(query.cost().waves <= 3, "{:?}", query.cost());
    assert!(budget.used() >= found.len() as u64);
    drop((sample, found, query));
    assert_empty(&budget);
    // A budget without room for it is full before it is made.
    let budget = MemoryBudget::new("a batch", 4 << 10);
    let all: Vec<i64> = (0..500).collect();
    let error = graph.query_within(&budget).feature_of_vertices(&features, LabelId(0), "x", &all).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Limit, "{error}");
    assert_empty(&budget);
}
