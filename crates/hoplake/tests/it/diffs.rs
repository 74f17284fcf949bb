//! The difference between any two versions of a random history leads from the content of the one to the content of the
//! other.

use hoplake::{
    CompactionSettings, Difference, EdgeKey, Graph, LoadOptions, OpenSettings, Operation, Properties, Store, Value,
    VertexRef, load,
};
use hoplake_simulation::model::compared;
use hoplake_testkit::generate::SplitMix64;

use crate::commits::{Model, batch, loaded};

async fn open(name: &str, version: u64) -> Graph {
    let settings = OpenSettings { version: Some(version), ..OpenSettings::default() };
    Graph::open_with(Store::open(name).unwrap(), &settings).await.unwrap()
}

async fn differences(before: &Graph, after: &Graph, labels: &[&str]) -> Vec<Difference> {
    let labels: Vec<_> = labels.iter().map(|label| (*label).to_owned()).collect();
    let mut diff = before.diff(after, &labels).unwrap();
    let mut all = Vec::new();
    while let Some(page) = diff.next_page().await.unwrap() {
        all.extend(page);
    }
    all
}

/// Applies a difference to the content of the first version, which must have its before-state.
fn apply(model: &mut Model, difference: Difference) {
    match difference {
        Difference::Vertex { vertex, before, after } => {
            assert_ne!(before, after);
            assert_eq!(model.vertices.remove(&vertex), before.map(compared), "{vertex}");
            model.vertices.extend(after.map(|properties| (vertex, compared(properties))));
        }
        Difference::Edge { label, source, target, before, after } => {
            assert_ne!(before, after);
            let edge = (label, source, target);
            let group = model.edges.entry(edge.clone()).or_default();
            if let Some(before) = before.map(compared) {
                let at = group.iter().position(|it| *it == before);
                group.remove(at.unwrap_or_else(|| panic!("there is no {before:?} among {edge:?}")));
            }
            group.extend(after.map(compared));
            group.sort_by_key(|edge| format!("{edge:?}"));
            if group.is_empty() {
                model.edges.remove(&edge);
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_difference_of_any_two_versions_leads_from_one_to_the_other() {
    for seed in 0..5 {
        let name = format!("memory://diffs/{seed}");
        let graph = loaded(&name).await;
        let mut random = SplitMix64::new(100 + seed);
        let mut model = Model::default();
        let mut versions = vec![(graph.version(), model.clone())];
        for step in 0..13 {
            if step == 6 && seed % 2 == 0 {
                // Loaded anew, so that nothing is shared with the versions before.
                let folder = tempfile::tempdir().unwrap();
                let file = folder.path().join("edges.csv");
                std::fs::write(&file, "1,2\n").unwrap();
                let options = LoadOptions { replace: true, ..LoadOptions::from_paths([file]) };
                let report = load(&name, options).await.unwrap();
                model = Model::default();
                versions.push((report.version, model.clone()));
                continue;
            }
            if step == 3 || step == 9 {
                // Some runs become one, or all: nothing is different.
                let settings = CompactionSettings { everything: step == 9, ..CompactionSettings::default() };
                let version = Graph::compact(&Store::open(&name).unwrap(), &settings).await.unwrap().version;
                versions.push((version, model.clone()));
                continue;
            }
            if step == 8 {
                // Later writes are dropped, and their ordinals are not reused.
                let (version, old) = versions[versions.len() - 3].clone();
                let restored = Graph::restore(&Store::open(&name).unwrap(), version, "").await.unwrap();
                versions.push((restored, old.clone()));
                model = old;
                continue;
            }
            let (batch, after) = batch(&mut random, &model);
            let graph = Graph::open(&name).await.unwrap();
            versions.push((graph.apply(batch).await.unwrap().version, after.clone()));
            model = after;
        }
        let mut graphs = Vec::new();
        for (version, model) in versions {
            graphs.push((open(&name, version).await, model));
        }
        for (before, model) in &graphs {
            for (after, expected) in &graphs {
                let mut found = model.clone();
                for difference in differences(before, after, &[]).await {
                    apply(&mut found, difference);
                }
                let a = before.version();
                let b = after.version();
                assert_eq!(
                    (&found.vertices, &found.edges),
                    (&expected.vertices, &expected.edges),
                    "seed {seed}, from version {a} to version {b}"
                );
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn parallel_edges_and_vertices_that_came_back_are_told_apart() {
    let name = "memory://diffs/parallel";
    let graph = loaded(name).await;
    let edge = |id: i64, note: &str| Operation::UpsertEdge {
        label: "pays".into(),
        source: VertexRef::new("vertex", 1),
        target: VertexRef::new("vertex", 2),
        key: Some(EdgeKey { property: "id".into(), value: Value::Int64(id) }),
        properties: [("note".to_owned(), Value::from(note))].into(),
        replace: false,
    };
    let mut commit = graph.begin();
    commit.push(edge(1, "a")).push(edge(2, "b")).upsert_vertex("Person", 7, [("name", "Ann")]);
    commit.upsert_edge("likes", ("Person", 7), ("vertex", 1), [("since", 1)]);
    let first = commit.commit().await.unwrap().version;
    let mut commit = open(name, first).await.begin();
    commit.push(edge(2, "c")).push(edge(3, "d")).delete_vertex("Person", 7).commit().await.unwrap();
    let mut commit = Graph::open(name).await.unwrap().begin();
    commit.upsert_vertex("Person", 7, [("name", "Ann")]);
    commit.upsert_edge("likes", ("Person", 7), ("vertex", 1), [("since", 1)]);
    let last = commit.commit().await.unwrap().version;

    let before = open(name, first).await;
    let after = open(name, last).await;
    let paid = |id: i64, note: &str| Some(Properties::from([("id", Value::Int64(id)), ("note", Value::from(note))]));
    let pays = |before, after| Difference::Edge {
        label: "pays".into(),
        source: VertexRef::new("vertex", 1),
        target: VertexRef::new("vertex", 2),
        before,
        after,
    };
    // Person 7 is another vertex with another ordinal, and has the same content.
    let expected = [pays(paid(2, "b"), None), pays(None, paid(2, "c")), pays(None, paid(3, "d"))];
    assert_eq!(differences(&before, &after, &[]).await, expected);
    assert_eq!(differences(&before, &after, &["pays"]).await, expected);
    assert_eq!(differences(&before, &after, &["likes", "Person"]).await, []);
    assert!(before.diff(&after, &["loves".to_owned()]).is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_small_commit_to_a_large_graph_costs_little() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("edges.csv");
    let lines: String = (0..200_000u64).map(|from| format!("{from},{}\n", from * 7919 % 200_000)).collect();
    std::fs::write(&file, lines).unwrap();
    let name = "memory://diffs/large";
    hoplake::load(name, LoadOptions::from_paths([file])).await.unwrap();
    let before = Graph::open(name).await.unwrap();
    let mut commit = before.begin();
    commit.upsert_vertex("vertex", 17, [("name", "x")]).delete_edge("edge", ("vertex", 3), ("vertex", 3 * 7919));
    commit.commit().await.unwrap();
    let after = Graph::open(name).await.unwrap();
    let mut diff = before.diff(&after, &[]).unwrap();
    let mut found = 0;
    while let Some(page) = diff.next_page().await.unwrap() {
        found += page.len();
    }
    assert_eq!(found, 2);
    let cost = diff.cost();
    let size = after.info().await.unwrap().total_bytes;
    assert!(cost.store_bytes * 4 < size, "{} of {size} bytes were read", cost.store_bytes);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_vertex_that_came_back_is_the_same_however_much_changed_between() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("edges.csv");
    let lines: String = (0..10_000u64).map(|from| format!("{from},{}\n", (from + 1) % 10_000)).collect();
    std::fs::write(&file, lines).unwrap();
    let name = "memory://diffs/ring";
    hoplake::load(name, LoadOptions::from_paths([file])).await.unwrap();
    let before = Graph::open(name).await.unwrap();
    let mut commit = before.begin();
    commit.delete_vertex("vertex", 17);
    for from in 1_000..6_000 {
        commit.upsert_edge("edge", ("vertex", from), ("vertex", from + 1), [("weight", from)]);
    }
    commit.commit().await.unwrap();
    let mut graph = before.clone();
    graph.refresh().await.unwrap();
    let mut commit = graph.begin();
    commit.upsert_vertex("vertex", 17, [("name", Value::Null)]);
    commit.upsert_edge("edge", ("vertex", 17), ("vertex", 18), [("weight", Value::Null)]);
    commit.upsert_edge("edge", ("vertex", 16), ("vertex", 17), [("weight", Value::Null)]);
    commit.commit().await.unwrap();
    let after = Graph::open(name).await.unwrap();
    let changed: Vec<_> = differences(&before, &after, &[]).await;
    // Its new ordinal is the last, pages away from its old one.
    let weight = |weight: i64| Some(Properties::from([("weight", weight)]));
    for (from, difference) in (1_000..).zip(&changed) {
        let Difference::Edge { source, before, after, .. } = difference else { panic!("{difference:?}") };
        assert_eq!((source, before, after), (&VertexRef::new("vertex", from), &Some(Properties::new()), &weight(from)));
    }
    assert_eq!(changed.len(), 5_000);
    assert_eq!(differences(&after, &before, &["edge"]).await.len(), 5_000);
}

/// The content of the ring once its vertices have names and its edges weights, but for every hundredth vertex, which
/// was removed.
fn ring(vertices: i64, changed: bool) -> Model {
    let mut model = Model::default();
    let end = |key: i64| VertexRef::new("vertex", key % vertices);
    let stays = |key: i64| !changed || key % vertices % 100 != 0;
    for key in (0..vertices).filter(|key| stays(*key)) {
        let name = changed.then(|| ("name", Value::from(format!("v{key}"))));
        model.vertices.insert(end(key), Properties::from_iter(name));
        if stays(key + 1) {
            let weight = changed.then_some(("weight", Value::Int64(key)));
            let edge = ("edge".into(), end(key), end(key + 1));
            model.edges.insert(edge, vec![compared(Properties::from_iter(weight))]);
        }
    }
    model
}

/// Two versions that share nothing have two entries for every key, in sections of their own: wherever a page of
/// candidates ends, nothing may be repeated or missing.
#[tokio::test(flavor = "multi_thread")]
async fn differences_are_told_once_however_many_pages_they_take() {
    const VERTICES: i64 = 25_000;
    let name = "memory://diffs/pages";
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("edges.csv");
    let line = |from: i64| format!("{from},{}\n", (from + 1) % VERTICES);
    std::fs::write(&file, (0..VERTICES).map(line).collect::<String>()).unwrap();
    let mut graphs = Vec::new();
    for _ in 0..2 {
        let options = LoadOptions { replace: true, ..LoadOptions::from_paths([&file]) };
        graphs.push(open(name, load(name, options).await.unwrap().version).await);
    }
    let mut commit = graphs[1].begin();
    for key in 0..VERTICES {
        match key % 100 {
            0 => commit.delete_vertex("vertex", key),
            99 => commit.upsert_vertex("vertex", key, [("name", format!("v{key}"))]),
            _ => commit.upsert_vertex("vertex", key, [("name", format!("v{key}"))]).upsert_edge(
                "edge",
                ("vertex", key),
                ("vertex", (key + 1) % VERTICES),
                [("weight", key)],
            ),
        };
    }
    graphs.push(open(name, commit.commit().await.unwrap().version).await);
    let everything = CompactionSettings { everything: true, ..CompactionSettings::default() };
    let compacted = Graph::compact(&Store::open(name).unwrap(), &everything).await.unwrap();
    graphs.push(open(name, compacted.version).await);
    let models = [false, false, true, true].map(|changed| ring(VERTICES, changed));
    for (before, after) in [(0, 1), (1, 2), (2, 1), (0, 2), (2, 0), (1, 3), (3, 0), (2, 3)] {
        let mut model = models[before].clone();
        let expected = &models[after];
        let found = differences(&graphs[before], &graphs[after], &[]).await;
        // Each vertex and each edge once, if anything changed.
        let count = if model == *expected { 0 } else { 2 * VERTICES as usize };
        assert_eq!(found.len(), count, "from {before} to {after}");
        found.into_iter().for_each(|difference| apply(&mut model, difference));
        assert!(model == *expected, "from {before} to {after}");
    }
}
