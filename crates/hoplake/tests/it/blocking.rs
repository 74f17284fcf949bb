//! The facade without async, from a load to a vacuum.

use hoplake::{
    Change, ChangeKind, CompactionSettings, Difference, ErrorKind, LoadOptions, OpenSettings, Store, VacuumSettings,
    VertexRef,
    blocking::{Graph, Log, load},
};

fn loaded(url: &str) -> (Store, Graph) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("edges.csv");
    std::fs::write(&file, "1,2\n2,3\n").unwrap();
    load(url, LoadOptions::from_paths([file])).unwrap();
    (Store::open(url).unwrap(), Graph::open(url).unwrap())
}

fn out_of(graph: &Graph, key: i64) -> usize {
    let mut query = graph.query();
    let start = query.vertex("vertex", key).unwrap().unwrap();
    query.neighbors(&[start], &"out:edge".parse().unwrap()).unwrap().len()
}

#[test]
fn a_graph_is_changed_and_its_past_is_read() {
    let (store, old) = loaded("memory://blocking/changes");
    let mut graph = old.clone();
    let mut commit = graph.begin();
    commit.upsert_vertex("vertex", 4, [("name", "Ann")]).upsert_edge("edge", ("vertex", 1), ("vertex", 4), [("n", 1)]);
    commit.delete_vertex("vertex", 3).message("Ann for 3").source_position("crm", "17");
    let committed = commit.commit().unwrap();
    assert_eq!((committed.version, committed.counts.vertices_added), (2, 1));
    assert_eq!((graph.version(), out_of(&graph, 1)), (1, 1));
    assert!(graph.refresh().unwrap() && !graph.refresh().unwrap());
    assert_eq!((graph.version(), graph.source_position("crm"), old.source_position("crm")), (2, Some("17"), None));
    assert_eq!((out_of(&graph, 1), out_of(&old, 1), out_of(&graph, 2)), (2, 1, 0));

    let differences: Vec<_> = old.diff(&graph, &[]).unwrap().map(Result::unwrap).collect();
    let vertices = differences.iter().filter(|it| matches!(it, Difference::Vertex { .. })).count();
    assert_eq!((vertices, differences.len()), (2, 4));
    let added = |it: &&Difference| matches!(it, Difference::Edge { before: None, .. });
    let Some(Difference::Edge { source, target, .. }) = differences.iter().find(added) else { panic!() };
    assert_eq!((source, target), (&VertexRef::new("vertex", 1), &VertexRef::new("vertex", 4)));

    let mut log: Log = Graph::log(&store).unwrap();
    let newest = log.next().unwrap().unwrap();
    let expected = (2, ChangeKind::Commit, "Ann for 3");
    let Change { kind, message, .. } = &newest.change;
    assert_eq!((newest.version, *kind, message.as_str()), expected);
    assert_eq!(log.map(|entry| entry.unwrap().version).collect::<Vec<_>>(), [1]);
    assert_eq!(Graph::version_as_of(&store, newest.created_unix_ms).unwrap(), 2);
}

#[test]
fn versions_are_named_restored_cloned_merged_and_let_go() {
    let (store, mut graph) = loaded("memory://blocking/past");
    graph.begin().delete_edge("edge", ("vertex", 1), ("vertex", 2)).commit().unwrap();
    assert_eq!(Graph::tag(&store, "first", Some(1)).unwrap(), Some(3));
    assert_eq!(Graph::tagged(&store, "first").unwrap(), 1);
    assert_eq!(Graph::restore(&store, 1, "back").unwrap(), 4);
    graph.refresh().unwrap();
    assert_eq!((graph.version(), out_of(&graph, 1)), (4, 1));

    let target = Store::open("memory://blocking/clone").unwrap();
    Graph::clone_to(&store, Some(2), &target).unwrap();
    let clone = Graph::open_with(target, &OpenSettings::default()).unwrap();
    assert_eq!((clone.version(), out_of(&clone, 1)), (2, 0));

    graph.refresh().unwrap();
    graph.begin().upsert_edge("edge", ("vertex", 3), ("vertex", 1), [("n", 2)]).commit().unwrap();
    graph.refresh().unwrap();
    let everything = CompactionSettings { everything: true, ..CompactionSettings::default() };
    assert!(graph.compaction_is_due(&everything).unwrap());
    let compacted = Graph::compact(&store, &everything).unwrap();
    assert!(compacted.merges > 0, "{compacted:?}");
    graph.refresh().unwrap();
    assert_eq!((graph.version(), graph.info().unwrap().edges), (compacted.version, 3));
    graph.verify(|_| ()).unwrap();

    let settings = VacuumSettings { keep_versions: Some(1), ..VacuumSettings::default() };
    Graph::vacuum(&store, &settings).unwrap();
    let versions = Graph::versions(&store).unwrap();
    assert!(versions.contains(&1) && versions.contains(&2) && !versions.contains(&4), "{versions:?}");
}

#[test]
fn what_is_rejected_says_which_operation_it_was() {
    let (_, graph) = loaded("memory://blocking/refused");
    let mut commit = graph.begin();
    commit.delete_vertex("vertex", 3).upsert_edge("edge", ("vertex", 1), ("vertex", 9), [("n", 1)]);
    let error = commit.commit().unwrap_err();
    assert_eq!((error.kind(), error.operation()), (ErrorKind::Invalid, Some(1)));
    assert!(graph.is_there().unwrap());
    let nothing = Graph::open("memory://blocking/nothing").unwrap_err();
    assert_eq!(nothing.kind(), ErrorKind::NotFound);
}

#[test]
fn threads_share_versions() {
    let (_, mut graph) = loaded("memory://blocking/threads");
    std::thread::scope(|scope| {
        for number in 10..20 {
            let graph = graph.clone();
            scope.spawn(move || graph.begin().upsert_vertex("vertex", number, [("n", number)]).commit().unwrap());
        }
    });
    graph.refresh().unwrap();
    let mut query = graph.query();
    let keys: Vec<_> = (10..20).map(|key| ("vertex", hoplake::Key::from(key))).collect();
    assert!(query.vertices(&keys).unwrap().iter().all(Option::is_some));
}
