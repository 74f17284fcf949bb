//! Graphs of each released version of the format, kept as files: they stay readable, with the answers they had.

use std::path::{Path, PathBuf};

use hoplake::{Graph, Key, LoadOptions, OpenSettings, ScanRequest, SegmentSettings, Store};

use crate::damage::{answers, write_tiny};

/// The first version of the format that is still read.
const OLDEST: u32 = 4;
/// The version of the format that this build writes.
const NEWEST: u32 = hoplake_format::constants::FORMAT_VERSION;

fn folder_of(format_version: u32) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/golden/v{format_version}"))
}

/// All answers, one a line.
async fn answers_as_text(graph: &Graph) -> String {
    let answers = answers(graph).await.into_iter().map(Result::unwrap);
    answers.map(|answer| answer + "\n").collect()
}

async fn open_golden(format_version: u32) -> Graph {
    let graph = folder_of(format_version).join("graph");
    Graph::open(graph.to_str().unwrap()).await.unwrap()
}

#[tokio::test]
async fn every_released_version_of_the_format_is_read() {
    for format_version in OLDEST..=NEWEST {
        let graph = open_golden(format_version).await;
        assert_eq!((graph.version(), &*graph.manifest().change.message), (3, "golden"));
        graph.verify(|_| ()).await.unwrap();
        let expected = std::fs::read_to_string(folder_of(format_version).join("answers.txt")).unwrap();
        let found = answers_as_text(&graph).await;
        for (found, expected) in found.lines().zip(expected.lines()) {
            assert_eq!(found, expected, "format version {format_version}");
        }
        assert_eq!(found.lines().count(), expected.lines().count());
    }
}

/// What a reader can check against the files by eye, whatever the answers' text looks like.
#[tokio::test]
async fn the_hub_knew_whom_it_knew_before_commits() {
    let store = Store::open(folder_of(OLDEST).join("graph").to_str().unwrap()).unwrap();
    let graph = Graph::open_with(store, &OpenSettings { version: Some(1), ..OpenSettings::default() }).await.unwrap();
    let mut query = graph.query();
    let hub = query.vertex("P", 1).await.unwrap().unwrap();
    let edges = query.neighbors(&[hub], &"out:knows[weight<3]".parse().unwrap()).await.unwrap();
    let near: Vec<_> = edges.iter().map(|edge| edge.to).collect();
    assert_eq!(query.keys_of(&near).await.unwrap(), [Key::Int64(2), Key::Int64(2)]);
    let edges = query.neighbors(&[hub], &"both".parse().unwrap()).await.unwrap();
    assert_eq!(edges.len(), 2 + 12 + 12 + 1, "two parallel edges, twelve each way, and where it lives");
}

/// The index of the load, and what commits did to it.
#[tokio::test]
async fn the_index_finds_by_old_and_new_names() {
    let graph = open_golden(NEWEST).await;
    let mut found = Vec::new();
    for condition in ["name = changed", "name = Ann", "name starts with n", "float < 0", "float >= 0 and name = new"] {
        let condition = Some(condition.parse().unwrap());
        let request = ScanRequest { labels: vec!["P".into()], condition, ..ScanRequest::default() };
        let mut query = graph.query();
        let vertices = query.find(&request).await.unwrap();
        found.push(query.keys(&vertices).await.unwrap().into_iter().collect::<Vec<_>>());
    }
    assert_eq!(found, [vec![Key::Int64(1)], vec![], vec![Key::Int64(1000)], vec![Key::Int64(2)], vec![]]);
}

#[tokio::test]
async fn golden_files_are_small() {
    let mut bytes = 0;
    let mut folders: Vec<_> = (OLDEST..=NEWEST).map(folder_of).collect();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
            match entry.metadata().unwrap() {
                metadata if metadata.is_dir() => folders.push(entry.path()),
                metadata => bytes += metadata.len(),
            }
        }
    }
    assert!((5_000..100_000).contains(&bytes), "{bytes} bytes");
}

/// Two commits, so that there are sorted runs of every kind.
async fn change(mut graph: Graph) {
    let nothing: [(&str, i64); 0] = [];
    let mut first = graph.begin();
    first
        .upsert_vertex("P", 1, [("name", "changed")])
        .upsert_vertex("P", 1000, [("name", "new")])
        .delete_vertex("P", 30);
    first.upsert_edge("knows", ("P", 1), ("P", 1000), [("weight", 5)]).delete_edge("knows", ("P", 1), ("P", 2));
    first.source_position("feed", "41").commit().await.unwrap();
    graph.refresh().await.unwrap();
    let mut second = graph.begin();
    second.upsert_vertex("P", 30, nothing).upsert_edge("knows", ("P", 30), ("P", 1), [("weight", 1)]);
    second.message("golden").commit().await.unwrap();
}

/// Writes the files of a new version of the format; those that are there are never written again.
#[tokio::test]
#[ignore = "run once for each version of the format"]
async fn write_the_newest_version() {
    let folder = folder_of(NEWEST);
    assert!(!folder.exists(), "{} is kept as it is", folder.display());
    let files = tempfile::tempdir().unwrap();
    write_tiny(files.path());
    let graph = folder.join("graph");
    std::fs::create_dir_all(&graph).unwrap();
    let store = Store::open(graph.to_str().unwrap()).unwrap();
    // Several index blocks, and sections that go on in another segment.
    let segments = SegmentSettings {
        list_block_bytes: 64,
        key_block_bytes: 8,
        index_entries: 2,
        filter_items: 16,
        tail_bytes: 40,
        data_bytes: 60,
        span_items: 1 << 26,
    };
    let indexes = vec!["P.name".into(), "P.float".into()];
    let message = "golden".into();
    let options = LoadOptions { segments, indexes, message, ..LoadOptions::from_paths([files.path()]) };
    hoplake::load_with(store, options, std::sync::Arc::new(())).await.unwrap();
    let graph = Graph::open(graph.to_str().unwrap()).await.unwrap();
    change(graph).await;
    let text = answers_as_text(&open_golden(NEWEST).await).await;
    std::fs::write(folder.join("answers.txt"), text).unwrap();
}
