//! Lists that are kept as they are stored read as those that are decoded.

use std::sync::Arc;

use hoplake::{OpenSettings, Store};
use hoplake_analytics::{
    Adjacency, Cursor, Packed, Selection, Topology, Workers,
    kernels::{PageRankSettings, breadth_first_levels, connected_components, count_triangles, page_rank},
};
use hoplake_engine::Snapshot;
use hoplake_storage::{QueryContext, ReadLimits, ReadPool, ReadSettings, Reader};
use hoplake_testkit::generate::SplitMix64;

use crate::{load_at, loading::changed, open};

async fn both(snapshot: &Arc<Snapshot>, hop: &str) -> (Topology, Topology<Packed>) {
    let selection = Selection { hop: hop.parse().unwrap(), reversed: true, ..Selection::default() };
    let workers = Workers::default();
    let mut branch = QueryContext::new().branch();
    let topology = Topology::load(snapshot, &selection, &workers, &mut branch).await.unwrap();
    let packed = Topology::load_packed(snapshot, &selection, &workers, &mut branch).await.unwrap();
    assert_eq!((&topology.ids, &*topology.deleted), (&packed.ids, &*packed.deleted));
    (topology, packed)
}

/// Reads all lists in their order, and again in none.
fn assert_same(topology: &Topology, packed: &Topology<Packed>) {
    let directions =
        [(&topology.out, &packed.out)].into_iter().chain(topology.against.as_ref().zip(packed.against.as_ref()));
    for (csr, packed) in directions {
        assert_eq!((csr.len(), csr.edges()), (packed.len(), packed.edges()));
        let mut cursor = packed.cursor();
        let mut random = SplitMix64::new(1);
        let vertices = csr.len() as u32;
        let in_no_order = (0..2 * vertices).map(|_| random.below(vertices.into()) as u32);
        for vertex in (0..vertices).chain(in_no_order.collect::<Vec<_>>()) {
            let list = csr.neighbours(vertex);
            assert_eq!(cursor.neighbours(vertex), list, "vertex {vertex}");
            assert_eq!(packed.degree(vertex), list.len());
            let wanted = list.get(list.len() / 2).copied();
            assert_eq!(cursor.any(vertex, |neighbour| Some(neighbour) == wanted), wanted.is_some());
            assert!(!cursor.any(vertex, |_| false));
        }
        packed.check().unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn packed_lists_are_those_of_all_labels_types_and_versions() {
    let snapshot = open(&changed("packed").await).await;
    for hop in ["out", "in", "both", "out:livesIn", "both:near", "in:livesIn,near"] {
        let (topology, packed) = both(&snapshot, hop).await;
        assert_same(&topology, &packed);
    }
}

/// A graph of two hubs, whose lists take several blocks, and many small lists, in a folder.
async fn hubs(folder: &std::path::Path) -> String {
    let mut edges = String::from("source,target\n");
    let mut random = SplitMix64::new(3);
    (0..20_000).for_each(|number| edges.push_str(&format!("7,{}\n70,{}\n", number / 2, number * 3 % 10_000)));
    (0..20_000).for_each(|_| edges.push_str(&format!("{},{}\n", random.below(10_000), random.below(500))));
    let input = folder.join("input");
    std::fs::create_dir(&input).unwrap();
    std::fs::write(input.join("links.csv"), edges).unwrap();
    let url = folder.join("graph").to_str().unwrap().to_owned();
    load_at(&url, &input).await;
    url
}

#[tokio::test(flavor = "multi_thread")]
async fn kernels_give_the_same_from_stored_blocks_mapped_or_not() {
    let folder = tempfile::tempdir().unwrap();
    let url = hubs(folder.path()).await;
    for mapped in [false, true] {
        let read = ReadSettings { mapped, ..ReadSettings::default() };
        let reader = Reader::new(Store::open(&url).unwrap(), ReadPool::new(read).unwrap());
        let snapshot = Arc::new(Snapshot::open(reader, &OpenSettings::default()).await.unwrap());
        let (topology, packed) = both(&snapshot, "out").await;
        assert_same(&topology, &packed);
        let context = QueryContext::new();
        let against = topology.against.as_ref();
        let packed_against = packed.against.as_ref();
        let settings = PageRankSettings::default();
        assert_eq!(
            *page_rank(&packed.out, packed_against.unwrap(), &[], &settings, &context).unwrap(),
            *page_rank(&topology.out, against.unwrap(), &[], &settings, &context).unwrap()
        );
        for start in [0, 7, 9_000] {
            assert_eq!(
                *breadth_first_levels(&packed.out, packed_against, start, &context).unwrap(),
                *breadth_first_levels(&topology.out, against, start, &context).unwrap()
            );
        }
        assert_eq!(
            *connected_components(&packed.out, packed_against, &context).unwrap(),
            *connected_components(&topology.out, against, &context).unwrap()
        );
        let (topology, packed) = both(&snapshot, "both").await;
        let triangles = count_triangles(&topology.out, &context).unwrap();
        assert_eq!(count_triangles(&packed.out, &context).unwrap(), triangles);
        assert!(triangles > 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn stored_blocks_count_with_their_bytes_and_mapped_ones_with_none() {
    let folder = tempfile::tempdir().unwrap();
    let url = hubs(folder.path()).await;
    let mut held = Vec::new();
    for mapped in [false, true] {
        let read = ReadSettings { mapped, ..ReadSettings::default() };
        let reader = Reader::new(Store::open(&url).unwrap(), ReadPool::new(read).unwrap());
        let snapshot = Arc::new(Snapshot::open(reader, &OpenSettings::default()).await.unwrap());
        let selection = Selection::default();
        let limited = |memory_bytes_max| {
            let context = QueryContext::new();
            context.limit(ReadLimits { memory_bytes_max: Some(memory_bytes_max), ..ReadLimits::default() });
            context
        };
        let bytes_max = 64 << 20;
        let context = limited(bytes_max);
        let packed = Topology::load_packed(&snapshot, &selection, &Workers::default(), &mut context.branch()).await;
        let packed = packed.unwrap();
        held.push(bytes_max - context.memory().left());
        assert_eq!(packed.out.edges(), 60_000);
        drop(packed);
        assert_eq!(context.memory().left(), bytes_max);
        let mut branch = limited(50_000).branch();
        let rejected = Topology::load_packed(&snapshot, &selection, &Workers::default(), &mut branch).await;
        assert!(rejected.unwrap_err().to_string().contains("50000 bytes of memory"));
    }
    let offsets = 10_001 * 8;
    assert_eq!(held[1], offsets);
    assert!((offsets + 20_000..offsets + 120_000).contains(&held[0]), "{held:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn weights_and_conditions_are_not_packed() {
    let snapshot = open(&changed("packed-weights").await).await;
    let weighted = Selection { weight: Some("km".into()), ..Selection::default() };
    let conditional = Selection { hop: "out:knows[km < 5]".parse().unwrap(), ..Selection::default() };
    for (selection, what) in [(weighted, "weights"), (conditional, "conditions on edges")] {
        let mut context = QueryContext::new().branch();
        let rejected = Topology::load_packed(&snapshot, &selection, &Workers::default(), &mut context).await;
        let message = rejected.unwrap_err().to_string();
        assert!(message.contains(&format!("packed lists do not support {what}")), "{message}");
    }
}
