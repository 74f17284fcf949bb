//! A graph in a folder reads the same whether its files are mapped or not, and while it is written.

use hoplake::{CompactionSettings, Graph, OpenSettings, ReadSettings, Store, VacuumSettings};
use hoplake_testkit::generate::SplitMix64;

use crate::commits::{Model, batch, loaded, read};

/// `scan_keeps_bytes` 0: scans give back all that they have read.
async fn open_mapped(name: &str) -> Graph {
    let read = ReadSettings { mapped: true, scan_keeps_bytes: 0, ..ReadSettings::default() };
    Graph::open_with(Store::open(name).unwrap(), &OpenSettings { read, ..OpenSettings::default() }).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn mapped_files_read_as_the_model_while_versions_come_and_go() {
    let folder = tempfile::tempdir().unwrap();
    let name = folder.path().join("graph").to_str().unwrap().to_owned();
    let writer = loaded(&name).await;
    let store = Store::open(&name).unwrap();
    let mut reader = open_mapped(&name).await;
    let mut random = SplitMix64::new(5);
    let mut model = Model::default();
    for step in 0..12 {
        let (batch, after) = batch(&mut random, &model);
        writer.apply(batch).await.unwrap();
        // Files of the version that is open are removed below it.
        if step % 4 == 3 {
            let settings = CompactionSettings { everything: true, ..CompactionSettings::default() };
            Graph::compact(&store, &settings).await.unwrap();
            let settings = VacuumSettings { keep_versions: Some(1), ..VacuumSettings::default() };
            Graph::vacuum(&store, &settings).await.unwrap();
            assert_eq!(read(&reader).await, model, "step {step}, after a vacuum");
        }
        model = after;
        assert!(reader.refresh().await.unwrap());
        assert_eq!(read(&reader).await, model, "step {step}");
    }
    reader.verify(|_| ()).await.unwrap();
}
