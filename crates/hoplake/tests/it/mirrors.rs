//! A mirror has the version of its source, as a whole, whatever came in between.

use hoplake::{CompactionSettings, ErrorKind, Graph, Mirrored, OpenSettings, ReadSettings, Store, VacuumSettings};
use hoplake_testkit::generate::SplitMix64;

use crate::commits::{Model, batch, loaded, read};

async fn mirror(source: &str, target: &str) -> Result<Mirrored, hoplake::Error> {
    Graph::mirror(&Store::open(source).unwrap(), &Store::open(target).unwrap(), |copied, all| {
        assert!(copied <= all);
    })
    .await
}

fn folder() -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let name = folder.path().join("mirror").to_str().unwrap().to_owned();
    (folder, name)
}

async fn compact_and_vacuum(name: &str) {
    let store = Store::open(name).unwrap();
    let settings = CompactionSettings { everything: true, ..CompactionSettings::default() };
    Graph::compact(&store, &settings).await.unwrap();
    let settings = VacuumSettings { keep_versions: Some(0), ..VacuumSettings::default() };
    Graph::vacuum(&store, &settings).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mirror_follows_its_source_and_readers_follow_the_mirror() {
    let source = "memory://mirrors/followed";
    let (_folder, target) = folder();
    let writer = loaded(source).await;
    let mut random = SplitMix64::new(8);
    let mut model = Model::default();
    let mirrored = mirror(source, &target).await.unwrap();
    assert!(!mirrored.is_current && mirrored.objects > 0 && mirrored.kept == 0);
    let read_settings = ReadSettings { mapped: true, ..ReadSettings::default() };
    let settings = OpenSettings { read: read_settings, ..OpenSettings::default() };
    let mut reader = Graph::open_with(Store::open(&target).unwrap(), &settings).await.unwrap();
    for step in 0..9 {
        // One version or several at a time.
        for _ in 0..1 + step % 3 {
            let (batch, after) = batch(&mut random, &model);
            writer.apply(batch).await.unwrap();
            model = after;
        }
        if step == 5 {
            compact_and_vacuum(source).await;
        }
        let mirrored = mirror(source, &target).await.unwrap();
        let newest = Graph::open(source).await.unwrap();
        assert_eq!((mirrored.version, mirrored.is_current), (newest.version(), false));
        assert!(mirrored.kept > 0 || step == 5, "step {step}: only what is new is copied: {mirrored:?}");
        assert!(reader.refresh().await.unwrap());
        assert_eq!((reader.version(), read(&reader).await), (newest.version(), model.clone()), "step {step}");
        // The version before can be opened, and no other.
        let again = mirror(source, &target).await.unwrap();
        assert_eq!(again, Mirrored { version: newest.version(), is_current: true, ..Mirrored::default() });
        for version in reader.manifest().history.iter().flat_map(|range| range.since..=range.until) {
            let settings = OpenSettings { version: Some(version), ..OpenSettings::default() };
            let past = Graph::open_with(Store::open(&target).unwrap(), &settings).await.unwrap();
            past.verify(|_| ()).await.unwrap();
        }
    }
    reader.verify(|_| ()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_interrupted_goes_on_and_what_is_damaged_is_copied_nowhere() {
    let (_source, source) = folder();
    let (_folder, target) = folder();
    let writer = loaded(&source).await;
    let mut random = SplitMix64::new(9);
    let (batch, model) = batch(&mut random, &Model::default());
    writer.apply(batch).await.unwrap();
    let objects = || {
        let files = std::fs::read_dir(format!("{source}/data")).unwrap().map(|file| file.unwrap().path());
        let mut files: Vec<_> = files.collect();
        files.sort();
        files
    };
    let damaged = objects().pop().unwrap();
    let bytes = std::fs::read(&damaged).unwrap();
    let mut flipped = bytes.clone();
    flipped[bytes.len() / 2] ^= 4;
    std::fs::write(&damaged, &flipped).unwrap();
    let error = mirror(&source, &target).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    assert!(error.to_string().contains(damaged.file_name().unwrap().to_str().unwrap()), "{error}");
    let name = damaged.file_name().unwrap();
    assert!(!std::path::Path::new(&target).join("data").join(name).exists(), "it got no name");
    assert!(Graph::open(&target).await.is_err(), "no version is there before all of its objects are");
    std::fs::write(&damaged, &bytes).unwrap();
    let mirrored = mirror(&source, &target).await.unwrap();
    assert_eq!((mirrored.objects + mirrored.kept) as usize, objects().len());
    assert!(mirrored.kept > 0, "{mirrored:?}");
    assert_eq!(read(&Graph::open(&target).await.unwrap()).await, model);
}

#[tokio::test(flavor = "multi_thread")]
async fn files_of_others_stay_where_they_are() {
    let (_folder, target) = folder();
    let own = std::path::Path::new(&target).join("data");
    std::fs::create_dir_all(own.join("notes")).unwrap();
    let files = [own.join("thesis.parquet"), own.join("notes/today.txt")];
    files.iter().for_each(|file| std::fs::write(file, "mine").unwrap());
    let graph = loaded("memory://mirrors/besides").await;
    let mut random = SplitMix64::new(7);
    let mut model = Model::default();
    let mut removed = 0;
    for _ in 0..8 {
        removed += mirror("memory://mirrors/besides", &target).await.unwrap().removed;
        for file in &files {
            assert_eq!(std::fs::read_to_string(file).unwrap(), "mine");
        }
        // Compaction leaves objects of which a version names a part: they are there as a whole, for the version before, too.
        let copy = Graph::open(&target).await.unwrap();
        assert_eq!(read(&copy).await, model);
        for version in copy.manifest().history.iter().flat_map(|range| range.since..=range.until) {
            let settings = OpenSettings { version: Some(version), ..OpenSettings::default() };
            let past = Graph::open_with(Store::open(&target).unwrap(), &settings).await.unwrap();
            past.verify(|_| ()).await.unwrap();
        }
        copy.verify(|_| ()).await.unwrap();
        let (batch, after) = batch(&mut random, &model);
        graph.apply(batch).await.unwrap();
        model = after;
        compact_and_vacuum("memory://mirrors/besides").await;
    }
    assert!(removed > 0, "what was compacted leaves the mirror in time");
}

#[tokio::test(flavor = "multi_thread")]
async fn other_graphs_are_not_overwritten() {
    let (_folder, target) = folder();
    let error = mirror("memory://mirrors/nothing", &target).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    loaded("memory://mirrors/first").await;
    loaded("memory://mirrors/second").await;
    mirror("memory://mirrors/first", &target).await.unwrap();
    let error = mirror("memory://mirrors/second", &target).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.to_string().contains("is not one of memory://mirrors/second"), "{error}");
    // A mirror that was written to is ahead of its source, or has another version of that number.
    let own = Graph::open(&target).await.unwrap();
    let (first, after) = batch(&mut SplitMix64::new(1), &Model::default());
    own.apply(first).await.unwrap();
    assert_eq!(mirror("memory://mirrors/first", &target).await.unwrap_err().kind(), ErrorKind::Invalid);
    let source = Graph::open("memory://mirrors/first").await.unwrap();
    let (second, _) = batch(&mut SplitMix64::new(2), &Model::default());
    source.apply(second).await.unwrap();
    assert_eq!(mirror("memory://mirrors/first", &target).await.unwrap_err().kind(), ErrorKind::Invalid);
    assert_eq!(read(&Graph::open(&target).await.unwrap()).await, after, "what was written is there");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clone_is_mirrored_once_it_stands_alone() {
    let (_folder, target) = folder();
    loaded("memory://mirrors/original").await;
    let original = Store::open("memory://mirrors/original");
    let clone = Store::open("memory://mirrors/clone");
    Graph::clone_to(&original.unwrap(), None, &clone.unwrap()).await.unwrap();
    let error = mirror("memory://mirrors/clone", &target).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.to_string().contains("of the graph that it was cloned from"), "{error}");
}
