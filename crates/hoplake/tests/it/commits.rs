//! Random histories of commits: after each, every read of every version equals a naive model of it.

use std::collections::{BTreeMap, BTreeSet};

use hoplake::{
    Batch, Commit, End, ErrorKind, Graph, Hop, HopDirection, Key, LoadOptions, OpenSettings, Operation, Store,
    Strategy, Traversal, Value,
};
use hoplake_testkit::generate::SplitMix64;

pub(super) type Properties = BTreeMap<String, Value>;

/// What a graph should say.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Model {
    pub(super) vertices: BTreeMap<End, Properties>,
    pub(super) edges: BTreeMap<(String, End, End), Properties>,
}

impl Model {
    fn apply(&mut self, operation: &Operation) {
        let merged = |old: Option<&Properties>, new: &Properties, whole: bool| {
            let mut merged = old.filter(|_| !whole).cloned().unwrap_or_default();
            merged.extend(new.clone());
            merged.retain(|_, value| *value != Value::Null);
            merged
        };
        match operation {
            Operation::UpsertVertex { vertex, properties, whole } => {
                let row = merged(self.vertices.get(vertex), properties, *whole);
                self.vertices.insert(vertex.clone(), row);
            }
            Operation::DeleteVertex { vertex } => {
                self.vertices.remove(vertex);
                self.edges.retain(|(_, source, target), _| source != vertex && target != vertex);
            }
            Operation::UpsertEdge { label, source, target, properties, whole, .. } => {
                let edge = (label.clone(), source.clone(), target.clone());
                let row = merged(self.edges.get(&edge), properties, *whole);
                self.edges.insert(edge, row);
            }
            Operation::DeleteEdge { label, source, target, .. } => {
                self.edges.remove(&(label.clone(), source.clone(), target.clone()));
            }
        }
    }

    /// Edges of a label that touch a vertex, with the other end.
    fn edges_of(&self, label: &str, vertex: &End, out: bool) -> BTreeMap<End, Properties> {
        let ends = |(of, source, target): &(String, End, End)| match out {
            true => (of == label && source == vertex).then(|| target.clone()),
            false => (of == label && target == vertex).then(|| source.clone()),
        };
        self.edges.iter().filter_map(|(edge, row)| Some((ends(edge)?, row.clone()))).collect()
    }
}

const LABELS: [&str; 2] = ["Person", "City"];
const EDGE_LABELS: [&str; 2] = ["knows", "visits"];
const KEYS: i64 = 40;

fn end(random: &mut SplitMix64) -> End {
    let label = LABELS[random.below(2) as usize];
    let key = random.below(KEYS as u64) as i64;
    // Keys of cities are text.
    if label == "City" { End::new(label, format!("city {key:02}")) } else { End::new(label, key) }
}

fn properties(random: &mut SplitMix64) -> Properties {
    let mut properties = Properties::new();
    if random.below(2) == 0 {
        properties.insert("name".into(), Value::String(format!("n{}", random.below(100))));
    }
    if random.below(2) == 0 {
        let number = random.below(100) as i64;
        properties.insert("weight".into(), if random.below(8) == 0 { Value::Null } else { Value::Int64(number) });
    }
    if random.below(3) == 0 {
        properties.insert("tags".into(), Value::List(vec![Value::String("a".into()), Value::Null]));
    }
    properties
}

/// A batch that is allowed on a model, and the model after it.
pub(super) fn batch(random: &mut SplitMix64, model: &Model) -> (Batch, Model) {
    let (mut batch, mut after) = (Batch::default(), model.clone());
    let (mut vertices, mut edges, mut gone) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for _ in 0..=random.below(12) {
        let vertex = end(random);
        if !vertices.insert(vertex.clone()) {
            continue;
        }
        let operation = if random.below(4) == 0 && model.vertices.contains_key(&vertex) {
            gone.insert(vertex.clone());
            Operation::DeleteVertex { vertex }
        } else {
            Operation::UpsertVertex { vertex, properties: properties(random), whole: random.below(2) == 0 }
        };
        after.apply(&operation);
        batch.operations.push(operation);
    }
    let there: Vec<End> = after.vertices.keys().cloned().collect();
    for _ in 0..random.below(30) {
        let draw = |random: &mut SplitMix64| there[random.below(there.len().max(1) as u64) as usize].clone();
        if there.is_empty() {
            break;
        }
        let (source, target) = (draw(random), draw(random));
        let label = EDGE_LABELS[random.below(2) as usize].to_owned();
        if !edges.insert((label.clone(), source.clone(), target.clone())) {
            continue;
        }
        let known =
            model.edges.keys().any(|(of, a, b)| (of, &a.label, &b.label) == (&label, &source.label, &target.label));
        let operation = if random.below(3) == 0 && known {
            Operation::DeleteEdge { label, source, target, key: None }
        } else {
            Operation::UpsertEdge {
                label,
                source,
                target,
                key: None,
                properties: properties(random),
                whole: random.below(2) == 0,
            }
        };
        after.apply(&operation);
        batch.operations.push(operation);
    }
    batch.message = format!("{} operations", batch.operations.len());
    (batch, after)
}

/// What a graph says, by every kind of read.
pub(crate) async fn read(graph: &Graph) -> Model {
    let mut model = Model::default();
    let mut query = graph.query();
    let mut ids = BTreeMap::new();
    for label in LABELS.into_iter().filter(|label| graph.schema().label_id(label).is_some()) {
        let keys = (0..KEYS).map(|key| if label == "City" { Key::from(format!("city {key:02}")) } else { key.into() });
        for key in keys {
            if let Some(vertex) = query.vertex(label, key.clone()).await.unwrap() {
                ids.insert(End::new(label, key), vertex);
            }
        }
    }
    let vertices: Vec<_> = ids.values().copied().collect();
    assert_eq!(query.keys_of(&vertices).await.unwrap(), ids.keys().map(|end| end.key.clone()).collect::<Vec<_>>());
    let by_id: BTreeMap<_, _> = ids.iter().map(|(end, id)| (*id, end.clone())).collect();
    for (end, id) in &ids {
        let label = graph.schema().label(id.label()).unwrap();
        let names: Vec<String> = label.properties.iter().map(|property| property.name.clone()).collect();
        let row = query.properties(&[*id].into_iter().collect(), &names).await.unwrap();
        let mut properties = Properties::new();
        for rows in row {
            for (name, column) in rows.batch.schema().fields().iter().zip(rows.batch.columns()) {
                if name.name() != "~key" {
                    properties.insert(name.name().clone(), hoplake::Value::at(column, 0));
                }
            }
        }
        properties.retain(|_, value| *value != Value::Null);
        model.vertices.insert(end.clone(), properties);
    }
    for label in EDGE_LABELS.into_iter().filter(|label| graph.schema().edge_types.iter().any(|it| it.label == *label)) {
        for (direction, out) in [(HopDirection::Out, true), (HopDirection::In, false)] {
            let edges = query.neighbors(&vertices, &Hop::along(direction, label)).await.unwrap();
            let types = graph.schema().edge_types.iter().filter(|it| it.label == label);
            let names: BTreeSet<String> = types.flat_map(|it| &it.properties).map(|it| it.name.clone()).collect();
            let names: Vec<_> = names.into_iter().collect();
            let mut rows = vec![Properties::new(); edges.len()];
            for of in query.edge_properties(&edges, &names).await.unwrap() {
                for (row, at) in of.positions.iter().enumerate() {
                    for (field, column) in of.batch.schema().fields().iter().zip(of.batch.columns()) {
                        rows[*at].insert(field.name().clone(), hoplake::Value::at(column, row));
                    }
                }
            }
            let mut found = BTreeMap::new();
            for (edge, mut row) in edges.iter().zip(rows) {
                row.retain(|_, value| *value != Value::Null);
                let (near, far) = (by_id[&edge.from].clone(), by_id[&edge.to].clone());
                let (source, target) = if out { (near, far) } else { (far, near) };
                assert!(found.insert((label.to_owned(), source, target), row).is_none(), "an edge is there twice");
            }
            if out {
                model.edges.extend(found);
            } else {
                let of_label: BTreeMap<_, _> = model
                    .edges
                    .iter()
                    .filter(|((of, ..), _)| of == label)
                    .map(|(a, b)| (a.clone(), b.clone()))
                    .collect();
                assert_eq!(found, of_label, "the two directions differ");
            }
        }
    }
    for strategy in [Strategy::Bfs, Strategy::BfsPipelined, Strategy::Dfs] {
        for (end, id) in &ids {
            let hops = vec![Hop::along(HopDirection::Out, "knows"); 2];
            if !graph.schema().edge_types.iter().any(|it| it.label == "knows") {
                continue;
            }
            let traversal = Traversal { starts: vec![*id], hops, strategy, ..Traversal::default() };
            let reached = query.traverse(traversal).await.unwrap();
            let found: BTreeSet<End> = reached.last().vertices().map(|vertex| by_id[&vertex].clone()).collect();
            let first = model.edges_of("knows", end, true);
            let second = first.keys().flat_map(|middle| model.edges_of("knows", middle, true).into_keys());
            assert_eq!(found, second.collect(), "{strategy:?} from {end}");
        }
    }
    model
}

pub(super) async fn loaded(name: &str) -> Graph {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("edges.csv");
    std::fs::write(&file, "1,2\n").unwrap();
    hoplake::load(name, LoadOptions::from_paths([file])).await.unwrap();
    Graph::open(name).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_version_of_a_random_history_reads_as_its_model() {
    for seed in 0..6 {
        let name = format!("memory://commits/{seed}");
        let mut graph = loaded(&name).await;
        let (mut random, mut model) = (SplitMix64::new(seed), Model::default());
        let mut versions = vec![(graph.version(), model.clone())];
        for _ in 0..12 {
            let (batch, after) = batch(&mut random, &model);
            let committed = graph.apply(batch.clone()).await.unwrap_or_else(|error| panic!("{error}: {batch:?}"));
            model = after;
            versions.push((committed.version, model.clone()));
            assert!(graph.refresh().await.unwrap());
            assert_eq!(graph.version(), committed.version);
            assert_eq!(read(&graph).await, model, "seed {seed}, version {}", committed.version);
        }
        for (version, model) in versions {
            let settings = OpenSettings { version: Some(version), ..OpenSettings::default() };
            let old = Graph::open_with(Store::open(&name).unwrap(), &settings).await.unwrap();
            old.verify(|_| ()).await.unwrap();
            assert_eq!(read(&old).await, model, "seed {seed}, version {version}, opened");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn writers_at_once_all_succeed_unless_they_change_the_same() {
    let name = "memory://commits-at-once/graph";
    let graph = loaded(name).await;
    // Two processes: each has a graph, and each graph many callers.
    let other = Graph::open(name).await.unwrap();
    let commits = (0..40i64).map(|number| {
        let graph = if number % 2 == 0 { graph.clone() } else { other.clone() };
        tokio::spawn(async move {
            let mut commit = graph.begin();
            commit.upsert_vertex("Person", number, [("name", format!("p{number}"))]);
            commit.upsert_edge("knows", ("Person", number), ("vertex", 1), [("weight", number)]);
            commit.commit().await.unwrap().version
        })
    });
    let mut versions = BTreeSet::new();
    for commit in commits.collect::<Vec<_>>() {
        versions.insert(commit.await.unwrap());
    }
    assert!(versions.len() < 40, "no batches shared a level");
    let mut newest = graph.clone();
    newest.refresh().await.unwrap();
    let mut query = newest.query();
    let one = query.vertex("vertex", 1).await.unwrap().unwrap();
    let edges = query.neighbors(&[one], &"in:knows".parse().unwrap()).await.unwrap();
    assert_eq!(edges.len(), 40);

    let conflict = |commit: &mut Commit| {
        commit.upsert_vertex("Person", 7, [("name", "another")]);
    };
    let (mut first, mut second) = (newest.begin(), newest.begin());
    conflict(&mut first);
    conflict(&mut second);
    first.commit().await.unwrap();
    let error = second.commit().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    assert!(error.to_string().starts_with("vertex Person:7 was changed between version"), "{error}");
}
