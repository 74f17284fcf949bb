//! A generated graph: people who know each other, unevenly, and the towns that they live in.

use std::{
    fmt::Write,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use hoplake::{Graph, LoadOptions, OpenSettings, SegmentSettings, Store, load_with};
use hoplake_testkit::generate::{SplitMix64, kronecker};

use crate::held_store::HeldStore;

/// People have the keys 1 to 256, towns `t0` to `t9`.
pub(crate) const PEOPLE: u64 = 256;

fn files(seed: u64) -> (tempfile::TempDir, LoadOptions) {
    let folder = tempfile::tempdir().unwrap();
    let mut random = SplitMix64::new(seed);
    let mut people = String::from(":ID(Person),name,age:int,height:double,born:date,tags:string[]\n");
    for person in 1..=PEOPLE {
        let age = if person % 7 == 0 { String::new() } else { (person % 90).to_string() };
        let tags = ["", "a", "a;b"][random.below(3) as usize];
        writeln!(people, "{person},\"P, {person}\",{age},{}.5,1990-01-{:02},{tags}", person % 3, person % 28 + 1)
            .unwrap();
    }
    let mut towns = String::from(":ID(Town),name\n");
    (0..10).for_each(|town| writeln!(towns, "t{town},Town {town}").unwrap());
    let mut edges = String::from(":START_ID(Person),:END_ID(Person),:TYPE,since:int\n");
    for (from, to) in kronecker(8, 6, seed) {
        writeln!(edges, "{},{},knows,{}", from + 1, to + 1, 2000 + random.below(20)).unwrap();
    }
    let mut lives = String::from(":START_ID(Person),:END_ID(Town),:TYPE\n");
    (1..=PEOPLE).for_each(|person| writeln!(lives, "{person},t{},livesIn", random.below(10)).unwrap());
    for (name, text) in [("Person", people), ("Town", towns), ("knows", edges), ("livesIn", lives)] {
        std::fs::write(folder.path().join(format!("{name}.csv")), text).unwrap();
    }
    let mut options = LoadOptions::from_paths([folder.path()]);
    // Small blocks, so that hops read several.
    options.segments = SegmentSettings::with_list_blocks(512);
    options.replace = true;
    (folder, options)
}

async fn load_into(store: &Store, seed: u64) {
    let (_folder, options) = files(seed);
    load_with(store.clone(), options, Arc::new(())).await.unwrap();
}

/// Loads the graph under `{folder}/{name}` of a folder in memory that no other test uses; returns the folder.
pub(crate) async fn in_memory(name: &str) -> String {
    static FOLDERS: AtomicUsize = AtomicUsize::new(0);
    let folder = format!("memory://server-test-{}", FOLDERS.fetch_add(1, Ordering::Relaxed));
    add(&folder, name, 7).await;
    folder
}

/// Loads another graph next to it, or another version of one.
pub(crate) async fn add(folder: &str, name: &str, seed: u64) {
    load_into(&Store::open(&format!("{folder}/{name}")).unwrap(), seed).await;
}

/// The embedded facade on the same graph.
pub(crate) async fn embedded(folder: &str, name: &str) -> Graph {
    Graph::open(&format!("{folder}/{name}")).await.unwrap()
}

/// The graph in a store that can be held; every URL leads there.
pub(crate) async fn held() -> (HeldStore, hoplake_server::StoreOpener) {
    let held = HeldStore::new();
    let opener = leading_to(&held);
    load_into(&opener("memory://held/g").unwrap(), 7).await;
    (held, opener)
}

/// Every URL leads to a store.
pub(crate) fn leading_to(held: &HeldStore) -> hoplake_server::StoreOpener {
    let store = held.store();
    Arc::new(move |url| Ok(Store::new(store.clone(), "g".into(), url)))
}

/// The air routes that come with the sources, loaded as `air-routes`.
pub(crate) async fn air_routes() -> String {
    let folder = in_memory("unused").await;
    let data = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../samples/air-routes");
    let store = Store::open(&format!("{folder}/air-routes")).unwrap();
    load_with(store, LoadOptions::from_paths([data]), Arc::new(())).await.unwrap();
    folder
}

/// That it can be opened, with its own cache.
pub(crate) async fn open_held(opener: &hoplake_server::StoreOpener) -> Graph {
    Graph::open_with(opener("memory://held/g").unwrap(), &OpenSettings::default()).await.unwrap()
}
