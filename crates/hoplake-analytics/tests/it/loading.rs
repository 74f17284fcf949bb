//! What a topology has is what queries read.

use std::collections::BTreeSet;

use hoplake::{Batch, EdgeKey, Graph, Operation, Properties, VertexId, VertexRef};
use hoplake_analytics::{Adjacency, Selection, Topology, Workers};
use hoplake_storage::{QueryContext, ReadLimits};

use crate::{load_at, open};

/// Two labels and three edge types, in several versions: vertices that were deleted, edges that were, and parallel ones.
pub async fn changed(name: &str) -> String {
    let url = format!("memory://analytics/{name}");
    changed_at(&url).await;
    url
}

pub async fn changed_at(url: &str) {
    let folder = tempfile::tempdir().unwrap();
    let mut edges = String::from("source,target\n");
    (0..400).for_each(|number| edges.push_str(&format!("{},{}\n", number % 50, number * 7 % 90)));
    edges.push_str("3,3\n3,3\n");
    std::fs::write(folder.path().join("knows.csv"), edges).unwrap();
    load_at(url, folder.path()).await;
    let mut graph = Graph::open(url).await.unwrap();
    let label = graph.schema().vertex_labels[0].name.clone();
    let person = |key: i64| VertexRef::new(label.as_str(), key);
    let city = |key: i64| VertexRef::new("City", key);
    let edge = |label: &str, source, target| Operation::UpsertEdge {
        label: label.into(),
        source,
        target,
        key: None::<EdgeKey>,
        properties: Properties::new(),
        replace: true,
    };
    let mut first = Vec::new();
    for key in 0..12 {
        first.push(Operation::UpsertVertex { vertex: city(key), properties: Properties::new(), replace: true });
        first.push(edge("livesIn", person(key * 3), city(key % 5)));
        first.push(edge("near", city(key), city((key + 1) % 12)));
    }
    let second = vec![
        Operation::DeleteVertex { vertex: person(7) },
        Operation::DeleteVertex { vertex: city(4) },
        Operation::DeleteEdge {
            label: graph.schema().edge_types[0].label.as_str().into(),
            source: person(3),
            target: person(3),
            key: None,
        },
    ];
    for operations in [first, second] {
        graph.apply(Batch { operations, ..Batch::default() }).await.unwrap();
        graph.refresh().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_topology_has_the_edges_that_queries_read() {
    let url = changed("changed").await;
    let snapshot = open(&url).await;
    let graph = Graph::open(&url).await.unwrap();
    let knows = graph.schema().edge_types[0].label.clone();
    for hop in ["out", "in", "both", "out:livesIn", "both:near", "in:livesIn,near", &format!("both:{knows},livesIn")] {
        let selection = Selection { hop: hop.parse().unwrap(), reversed: true, ..Selection::default() };
        let topology = Topology::load(&snapshot, &selection, &Workers::default(), &mut QueryContext::new().branch())
            .await
            .unwrap();
        let vertices: Vec<VertexId> = (0..topology.ids.len()).filter_map(|id| topology.ids.vertex(id)).collect();
        assert_eq!(vertices.len() as u64, topology.ids.len());
        for (csr, hop) in
            [(&topology.out, selection.hop.clone()), (topology.against.as_ref().unwrap(), selection.hop.reversed())]
        {
            let found = graph.query().neighbors(&vertices, &hop).await.unwrap();
            let id = |vertex| topology.ids.of_vertex(vertex).unwrap() as u32;
            let mut expected: Vec<_> = found.iter().map(|edge| (id(edge.from), id(edge.to))).collect();
            expected.sort_unstable();
            let own = |vertex: u32| csr.neighbours(vertex).iter().map(move |to| (vertex, *to));
            let own: Vec<_> = (0..csr.len() as u32).flat_map(own).collect();
            assert_eq!(own, expected, "{hop}");
            assert_eq!(csr.edges(), expected.len() as u64);
            assert!((0..csr.len() as u32).all(|vertex| csr.degree(vertex) == csr.neighbours(vertex).len()));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn deleted_vertices_are_told_apart() {
    let url = changed("deleted").await;
    let snapshot = open(&url).await;
    let topology =
        Topology::load(&snapshot, &Selection::default(), &Workers::default(), &mut QueryContext::new().branch())
            .await
            .unwrap();
    let labels: BTreeSet<_> =
        topology.deleted.iter().filter_map(|id| topology.ids.vertex((*id).into())).map(|it| it.label().0).collect();
    assert_eq!((topology.deleted.len(), labels.len()), (2, 2), "one of each label: {:?}", topology.deleted);
    assert!(topology.deleted.iter().all(|id| topology.out.degree(*id) == 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_loaded_is_rejected_with_a_reason() {
    let url = changed("refused").await;
    let snapshot = open(&url).await;
    let rejected = async |selection: Selection, memory_bytes_max| {
        let context = QueryContext::new();
        context.limit(ReadLimits { memory_bytes_max, ..ReadLimits::default() });
        let before = context.cost();
        let error = Topology::load(&snapshot, &selection, &Workers::default(), &mut context.branch())
            .await
            .unwrap_err()
            .to_string();
        assert_eq!(context.cost(), before, "nothing is read for it");
        error
    };
    let hop = |text: &str| Selection { hop: text.parse().unwrap(), ..Selection::default() };
    assert!(rejected(hop("out:nothing"), None).await.contains("the graph has no edge label \"nothing\""));
    let labels = Selection { labels: vec!["Planet".into()], ..Selection::default() };
    assert!(rejected(labels, None).await.contains("the graph has no vertex label \"Planet\""));
    assert!(rejected(hop("out"), Some(1000)).await.contains("1000 bytes of memory"));
}
