//! Graphs that are damaged behind the feed's back are compared with their tables, and repaired.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    sync::Arc,
};

use hoplake::{ErrorKind, Graph, Key, Operation, Properties, Value, VertexRef};
use hoplake_feed::{Feed, FeedError, FeedErrorKind, ReconcileOptions, Reconciled, RunOptions, Settings, reconcile};
use hoplake_testkit::MariaDbServer;
use serde_json::Value as Json;

use crate::{following::caught_up, model::Model};

/// A reconciliation with its report: what differs, by name.
pub async fn reported(settings: &Settings, options: ReconcileOptions) -> (Reconciled, BTreeMap<String, String>) {
    let folder = tempfile::tempdir().unwrap();
    let report = Some(folder.path().join("report"));
    let reconciled = reconcile_again(settings, &ReconcileOptions { report, ..options }).await;
    let text = std::fs::read_to_string(folder.path().join("report/differences.jsonl")).unwrap();
    let mut found = BTreeMap::new();
    for line in text.lines() {
        let line: Json = serde_json::from_str(line).unwrap();
        let [kind, name] = ["difference", "name"].map(|field| line[field].as_str().unwrap().to_owned());
        assert!(found.insert(name.clone(), kind).is_none(), "{name} twice");
    }
    let count = |kind: &str| found.values().filter(|it| *it == kind).count() as u64;
    let counts = (count("missing"), count("left over"), count("different"));
    assert_eq!(counts, (reconciled.missing, reconciled.left_over, reconciled.different));
    (reconciled, found)
}

/// A comparison, begun again if it met something that passes, such as a table that was truncated after the snapshot.
async fn reconcile_again(settings: &Settings, options: &ReconcileOptions) -> Reconciled {
    for _ in 0..20 {
        match reconcile(settings, options).await {
            Err(error) if error.is_transient() => {}
            ended => return ended.unwrap(),
        }
    }
    panic!("no comparison comes to its end");
}

/// Compares and repairs until both sides are the same.
pub async fn repaired(settings: &Settings) -> Reconciled {
    for _ in 0..20 {
        let options = ReconcileOptions { repair: true, ..ReconcileOptions::default() };
        let reconciled = reconcile_again(settings, &options).await;
        if reconciled.is_equal() {
            return reconciled;
        }
        let Reconciled { missing, left_over, different, repaired, changed_meanwhile, not_repairable, .. } = reconciled;
        assert_eq!(missing + left_over + different, repaired + changed_meanwhile + not_repairable, "{reconciled:?}");
    }
    panic!("still not the same");
}

/// A feed that has followed to the end. One that stops at a row which names a vertex that was damaged does as its error says.
pub async fn caught_up_with_damage(settings: &Settings) {
    let once = RunOptions { once: true, ..RunOptions::default() };
    let mut feed = Feed::open(settings.clone(), once.clone(), Arc::new(())).await.unwrap();
    if let Err(error) = feed.run(std::future::pending()).await {
        assert!(names_what_was_deleted(&error), "{error}");
        drop(feed);
        let resnapshot = RunOptions { resnapshot: true, ..once };
        let mut feed = Feed::open(settings.clone(), resnapshot, Arc::new(())).await.unwrap();
        feed.run(std::future::pending()).await.unwrap();
    }
}

/// Whether a feed has stopped since a row names a vertex that others deleted.
pub fn names_what_was_deleted(error: &FeedError) -> bool {
    let text = error.to_string();
    error.kind() == FeedErrorKind::Row && text.contains("there is no vertex") && text.contains("--resnapshot")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_row_that_names_what_others_deleted_stops_the_feed_and_says_what_helps() {
    let server = MariaDbServer::start(&[]).unwrap();
    // The database compares the one by value, and the other by a collation that other texts are equal by.
    for (database, of_key, second) in [("numbers", "INT", Key::Int64(2)), ("texts", "VARCHAR(9)", Key::from("2"))] {
        server.sql("test", &format!("CREATE DATABASE {database}")).unwrap();
        names_a_deleted_row(&server, database, of_key, second).await;
    }
}

async fn names_a_deleted_row(server: &MariaDbServer, database: &str, of_key: &str, second: Key) {
    let folder = tempfile::tempdir().unwrap();
    let sql = |statements: &str| server.sql(database, statements).unwrap();
    sql(&format!(
        "CREATE TABLE team (id {of_key} PRIMARY KEY, title TEXT); CREATE TABLE note (id INT PRIMARY KEY, team {of_key}, FOREIGN KEY (team) \
         REFERENCES team (id)); INSERT INTO team VALUES (1, 'a'), (2, 'b'); INSERT INTO note VALUES (1, 1)"
    ));
    let path = folder.path().join("graph");
    let text = format!(
        "graph = {path:?}\n[source]\nname = 'hr'\nurl = '{}'\n[stream]\nrows_max = 1\n[[table]]\nname = 'team'\nvertex = {{ label = 'Team' }}\n\
         [[table]]\nname = 'note'\nvertex = {{ label = 'Note' }}\n[[table.edges]]\nlabel = 'of'\ncolumns = 'team'\nto = 'Team'",
        server.url(database)
    );
    let settings = Settings::parse(&text).unwrap();
    caught_up(&settings).await;
    let graph = Graph::open(path.to_str().unwrap()).await.unwrap();
    let mut commit = graph.begin();
    commit.push(Operation::DeleteVertex { vertex: VertexRef::new("Team", second) });
    commit.commit().await.unwrap();
    // The row that changes later makes the vertex again, so that a repair sees nothing that lacks at the end.
    sql("INSERT INTO note VALUES (2, 2)");
    sql("UPDATE team SET title = 'c' WHERE id = 2");
    assert!(reconcile_again(&settings, &ReconcileOptions::default()).await.is_equal());
    let once = RunOptions { once: true, ..RunOptions::default() };
    let mut feed = Feed::open(settings.clone(), once, Arc::new(())).await.unwrap();
    let error = feed.run(std::future::pending()).await.unwrap_err();
    assert!(names_what_was_deleted(&error), "{error}");
    drop(feed);
    caught_up_with_damage(&settings).await;
    let found = Model::of_graph(&Graph::open(path.to_str().unwrap()).await.unwrap()).await;
    assert!(found.edges.keys().eq(["Note:1 -of-> Team:1", "Note:2 -of-> Team:2"]), "{found:?}");
    assert!(reconcile_again(&settings, &ReconcileOptions::default()).await.is_equal());
}

/// What of two models is not the same, by name; of edges without their keys.
pub fn differences(tables: &Model, graph: &Model) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    let names: BTreeSet<_> = tables.vertices.keys().chain(graph.vertices.keys()).collect();
    for name in names {
        let kind = match (tables.vertices.get(name), graph.vertices.get(name)) {
            (Some(_), None) => "missing",
            (None, Some(_)) => "left over",
            (here, there) if here != there => "different",
            _ => continue,
        };
        all.insert(name.clone(), kind.to_owned());
    }
    let names: BTreeSet<_> = tables.edges.keys().chain(graph.edges.keys()).collect();
    for name in names.into_iter().filter(|name| tables.edges.get(*name) != graph.edges.get(*name)) {
        all.insert(name.clone(), "edge".into());
    }
    all
}

/// What a report has, in the form of [`differences`].
pub fn without_keys(found: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let name = |name: &String| name.split(" with ").next().unwrap().to_owned();
    let of = |(it, kind): (&String, &String)| match it.contains(" -") {
        true => (name(it), "edge".to_owned()),
        false => (it.clone(), kind.clone()),
    };
    found.iter().map(of).collect()
}

/// Changes a graph at random, as nobody should.
pub async fn damage(graph: &Path, changes: usize, dice: &mut fastrand::Rng) {
    let mut graph = Graph::open(graph.to_str().unwrap()).await.unwrap();
    let model = Model::of_graph(&graph).await;
    let vertices: Vec<_> = model.vertices.keys().map(|name| vertex(name)).collect();
    let edges: Vec<_> = model.edges.iter().map(|(name, all)| (edge(name), all.len())).collect();
    let mut operations = Vec::new();
    let mut named = BTreeSet::new();
    for number in 0..changes {
        let operation = match dice.u32(0..6) {
            0 => Operation::DeleteVertex { vertex: dice.choice(&vertices).unwrap().clone() },
            1 => {
                let properties = Properties::from_iter([("name", Value::String(format!("nobody {number}")))]);
                let people: Vec<_> = vertices.iter().filter(|vertex| vertex.label == "Person").collect();
                let vertex = (*dice.choice(&people).unwrap()).clone();
                Operation::UpsertVertex { vertex, properties, replace: false }
            }
            2 => {
                let vertex = VertexRef::new("Note", Key::Int64(1_000_000 + number as i64));
                Operation::UpsertVertex { vertex, properties: Properties::new(), replace: false }
            }
            3 | 4 => {
                let ((source, label, target), _) = dice.choice(&edges).unwrap();
                let label = label.as_str().into();
                let source = source.clone();
                let target = target.clone();
                Operation::DeleteEdge { label, source, target, key: None }
            }
            _ => {
                let ((source, label, _), _) = dice.choice(&edges).unwrap();
                let others: Vec<_> = edges.iter().filter(|((_, other, _), _)| other == label).collect();
                let ((_, _, target), _) = dice.choice(&others).unwrap();
                if label == "memberOf" {
                    continue;
                }
                let label = label.as_str().into();
                let source = source.clone();
                let target = target.clone();
                let properties = Properties::new();
                Operation::UpsertEdge { label, source, target, key: None, properties, replace: false }
            }
        };
        // One change for each: the order within a commit is not what this is about.
        let ends = match &operation {
            Operation::DeleteVertex { vertex } | Operation::UpsertVertex { vertex, .. } => vec![vertex.clone()],
            Operation::DeleteEdge { source, target, .. } | Operation::UpsertEdge { source, target, .. } => {
                vec![source.clone(), target.clone()]
            }
            _ => Vec::new(),
        };
        if ends.iter().all(|end| !named.contains(end)) {
            named.extend(ends);
            operations.push(operation);
        }
    }
    // What is compacted meanwhile may be in the way.
    loop {
        let mut commit = graph.begin();
        for operation in &operations {
            commit.push(operation.clone());
        }
        match commit.commit().await {
            Ok(_) => return,
            // A vertex may be gone meanwhile at which there would be an edge.
            Err(error) if error.kind() == ErrorKind::Invalid => {
                operations.retain(|operation| !matches!(operation, Operation::UpsertEdge { .. }));
            }
            Err(error) => assert_eq!(error.kind(), ErrorKind::Conflict, "{error}"),
        }
        graph.refresh().await.unwrap();
    }
}

fn vertex(name: &str) -> VertexRef {
    let (label, key) = name.split_once(':').unwrap();
    let key = match label {
        "Person" | "Note" => Key::Int64(key.parse().unwrap()),
        _ => Key::String(key.into()),
    };
    VertexRef::new(label, key)
}

fn edge(name: &str) -> (VertexRef, String, VertexRef) {
    let (source, rest) = name.split_once(" -").unwrap();
    let (label, target) = rest.split_once("-> ").unwrap();
    (vertex(source), label.to_owned(), vertex(target))
}
