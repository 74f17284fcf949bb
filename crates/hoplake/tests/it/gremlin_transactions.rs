//! Transactions of Gremlin: what they read and write, keys that stay unique, and values of the type that they were written as.

use hoplake::{
    Batch, CompactionSettings, ErrorKind, Graph, Key, Operation, Reason, Store, VertexRef, gremlin::value::Value,
};

use crate::gremlin::empty;

#[tokio::test]
async fn a_transaction_reads_what_it_wrote_and_is_one_version() {
    let mut graph = empty("memory://gremlin-transaction").await;
    let mut transaction = graph.gremlin();
    transaction.query("g.addV('a').property(T.id, 1).property('x', 1).addV('a').property(T.id, 2)").await.unwrap();
    transaction
        .query("g.V(1).addE('e').to(__.V(2)).property('w', 1).addE('f').from(__.V(2)).to(__.V(1))")
        .await
        .unwrap();
    // Two edges of one label between the same vertices, and each is changed by itself.
    transaction.query("g.V(1).addE('e').to(__.V(2)).property('w', 2)").await.unwrap();
    assert_eq!(transaction.query("g.V(1).outE('e').values('w').sum()").await.unwrap(), [Value::from(3_i32)]);
    transaction.query("g.V(1).outE('e').has('w', 1).property('w', 10)").await.unwrap();
    assert_eq!(transaction.query("g.V(1).outE('e').values('w').sum()").await.unwrap(), [Value::from(12_i32)]);
    transaction.query("g.V(1).outE('e').has('w', 2).drop()").await.unwrap();
    // Others see nothing of it.
    assert_eq!(graph.gremlin().query("g.V().count()").await.unwrap(), [Value::from(0_i64)]);
    let before = graph.version();
    transaction.commit().await.unwrap();
    graph.refresh().await.unwrap();
    assert_eq!(graph.version(), before + 1);
    let mut after = graph.gremlin();
    assert_eq!(after.query("g.E().hasLabel('e').values('w')").await.unwrap(), [Value::from(10)]);
    assert_eq!(after.query("g.V(2).drop()").await.unwrap(), []);
    assert_eq!(after.query("g.E().count()").await.unwrap(), [Value::from(0_i64)]);
    // Never committed.
    drop(after);
    graph.refresh().await.unwrap();
    assert_eq!(graph.gremlin().query("g.E().count()").await.unwrap(), [Value::from(2_i64)]);
}

#[tokio::test]
async fn what_a_step_writes_is_not_seen_by_the_steps_before_it() {
    let graph = empty("memory://gremlin-eager").await;
    let mut transaction = graph.gremlin();
    // Of two labels, which are scanned one after the other.
    transaction.query("g.addV('a').as('a').addV('b').as('b').addE('e').from('a').to('b')").await.unwrap();
    transaction.query("g.V().as('v').addE('e').to('v')").await.unwrap();
    let found = transaction.query("g.V().both().hasNot('x').property('x', 1).count()").await.unwrap();
    assert_eq!(found, transaction.query("g.V().both().count()").await.unwrap());
    // A loop over what it adds ends.
    transaction.query("g.V().addV('b')").await.unwrap();
    assert_eq!(transaction.query("g.V().count()").await.unwrap(), [Value::from(4_i64)]);
    // What a limit of nothing comes behind is written and collected.
    transaction.query("g.addV('c').limit(0)").await.unwrap();
    assert_eq!(transaction.query("g.V().hasLabel('c').count()").await.unwrap(), [Value::from(1_i64)]);
    let collected =
        transaction.query("g.V().hasLabel('c').aggregate('s').limit(0).cap('s').count(local)").await.unwrap();
    assert_eq!(collected, [Value::from(1_i64)]);
    // A property of an edge has neither.
    assert_eq!(
        transaction.query("g.V().property('p', 1).outE().property('p', 1).properties().hasId('x')").await.unwrap(),
        []
    );
    assert_eq!(transaction.query("g.E().properties().has('p', 1)").await.unwrap(), []);
}

#[tokio::test]
async fn changes_of_the_same_element_are_a_conflict() {
    let mut graph = empty("memory://gremlin-conflict").await;
    let mut first = graph.gremlin();
    first.query("g.addV('a').property(T.id, 1)").await.unwrap();
    first.commit().await.unwrap();
    graph.refresh().await.unwrap();
    let mut one = graph.gremlin();
    let mut other = graph.gremlin();
    one.query("g.V(1).property('x', 1)").await.unwrap();
    other.query("g.V(1).property('x', 2)").await.unwrap();
    one.commit().await.unwrap();
    assert_eq!(other.commit().await.unwrap_err().kind(), ErrorKind::Conflict);
}

/// What a property's values were written as is what they are read as, as long as all were.
#[tokio::test]
async fn values_are_read_as_they_were_written() {
    let url = "memory://gremlin-types";
    let mut graph = empty(url).await;
    let uuid = "41d2e28a-20a4-4ab0-b379-d810dede3786";
    let mut transaction = graph.gremlin();
    transaction
        .query(&format!(
            "g.addV('a').property(T.id, 1).property('int', 7).property('long', 7l).property('float', 0.1f)\
             .property('short', 7s).property('byte', 7b).property('uuid', UUID('{uuid}'))\
             .property('list', [2, 1, 2]).property('set', {{2, 1}}).property(list, 'many', 1).property(list, 'many', 2)\
             .addE('e').to(__.V(1)).property('int', 7).property('set', {{'x'}})"
        ))
        .await
        .unwrap();
    let kinds = async |graph: &Graph| {
        let mut kinds = Vec::new();
        for name in ["int", "long", "float", "short", "byte", "uuid", "list", "set", "many"] {
            let types = ["INT", "LONG", "FLOAT", "SHORT", "BYTE", "UUID", "LIST", "SET"];
            for kind in types {
                let query = format!("g.V(1).values('{name}').is(typeOf(GType.{kind})).count()");
                if graph.gremlin_read_only().query(&query).await.unwrap() != [Value::from(0_i64)] {
                    kinds.push(format!("{name} {kind}"));
                }
            }
        }
        kinds.join(", ")
    };
    transaction.commit().await.unwrap();
    graph.refresh().await.unwrap();
    let all = "int INT, long LONG, float FLOAT, short SHORT, byte BYTE, uuid UUID, list LIST, set SET, many INT";
    assert_eq!(kinds(&graph).await, all);
    assert_eq!(kinds(&Graph::open(url).await.unwrap()).await, all);
    let found = async |graph: &Graph, query: &str| graph.gremlin_read_only().query(query).await.unwrap();
    for (query, count) in [
        (format!("g.V().has('a', 'uuid', UUID('{uuid}')).count()"), 1_i64),
        (format!("g.V().has('a', 'uuid', '{uuid}').count()"), 0),
        (format!("g.V().has('a', 'uuid', neq('{uuid}')).count()"), 1),
        ("g.V().has('a', 'int', 7l).count()".to_owned(), 1),
        ("g.V().has('a', 'float', 0.1f).count()".to_owned(), 1),
        ("g.V().has('a', 'float', within(0.1f)).values('float').is(0.1f).count()".to_owned(), 1),
        ("g.V().has('a', 'float', 0.1d).count()".to_owned(), 0),
        ("g.E().has('int', typeOf(GType.INT)).has('set', typeOf(GType.SET)).count()".to_owned(), 1),
        ("g.V().values('list').count()".to_owned(), 1),
        ("g.V().values('many').count()".to_owned(), 2),
    ] {
        assert_eq!(found(&graph, &query).await, [Value::from(count)], "{query}");
    }
    assert_eq!(found(&graph, "g.V().values('list')").await[0].to_string(), "[2, 1, 2]");

    // A value of another kind takes it away, and those that can be of the kind do not.
    let mut transaction = graph.gremlin();
    transaction.query("g.V(1).property('int', 8l).property('list', 3)").await.unwrap();
    transaction.query("g.addV('a').property(T.id, 2).property('uuid', 'ann').property('float', 1.5f)").await.unwrap();
    transaction.commit().await.unwrap();
    graph.refresh().await.unwrap();
    let operations = vec![set("short", 300), set("byte", 300)];
    graph.apply(Batch { operations, ..Batch::default() }).await.unwrap();
    graph.refresh().await.unwrap();
    Graph::compact(&Store::open(url).unwrap(), &CompactionSettings::default()).await.unwrap();
    let some = "int LONG, long LONG, float FLOAT, short SHORT, byte LONG, list INT, set SET, many INT";
    for graph in [&graph, &Graph::open(url).await.unwrap()] {
        assert_eq!(kinds(graph).await, some);
    }
}

/// Each of two writers adds a vertex that keeps the keys of what it saw unique, and both would not.
#[tokio::test(flavor = "multi_thread")]
async fn two_writers_keep_keys_unique() {
    let add = |label: &str, id: &str| format!("g.addV('{label}').property(T.id, {id})");
    for (case, [one, other]) in
        [[add("a", "7"), add("b", "7")], [add("a", "7"), add("b", "'x'")]].into_iter().enumerate()
    {
        for at_once in [false, true] {
            let url = format!("memory://gremlin-unique-{case}-{at_once}");
            let graph = empty(&url).await;
            // In one process they may share a delta, and in another one they build on the same version.
            let others = [graph.clone(), Graph::open(&url).await.unwrap()];
            for (round, second) in others.iter().enumerate() {
                let version = Graph::newest(graph.store()).await.unwrap().version;
                let mut first = graph.gremlin();
                let mut second = second.gremlin();
                first.query(&one.replace('7', &format!("7{round}"))).await.unwrap();
                second.query(&other.replace('7', &format!("7{round}"))).await.unwrap();
                let outcomes = match at_once {
                    true => <[_; 2]>::from(tokio::join!(first.commit(), second.commit())),
                    false => [first.commit().await, second.commit().await],
                };
                let ([Ok(_), Err(error)] | [Err(error), Ok(_)]) = &outcomes else {
                    panic!("{url}, {round}: {outcomes:?}")
                };
                assert!(error.to_string().contains("the keys of the graph are unique"), "{error}");
                let newest = Graph::newest(graph.store()).await.unwrap();
                assert!(newest.unique_keys && newest.version == version + 1, "{url}, {round}");
                let mut transaction = Graph::open(&url).await.unwrap().gremlin();
                transaction.query("g.V().drop()").await.unwrap();
                transaction.commit().await.unwrap();
            }
        }
    }
}

/// Whether keys stay unique is decided by what a transaction leaves, not by what it names.
#[tokio::test]
async fn a_transaction_gives_a_deleted_key_to_another_label() {
    let add = |label: &str, id: &str| format!("g.addV('{label}').property(T.id, {id})");
    for (case, before, together, ids) in [
        ("known", vec![add("a", "7"), add("a", "8")], vec!["g.V(7).drop()".to_owned(), add("b", "7")], "8, 7"),
        ("all", vec![add("a", "7")], vec!["g.V().drop()".to_owned(), add("b", "'x'")], "x"),
        ("texts", vec![add("a", "'x'")], vec!["g.V().drop()".to_owned(), add("b", "7")], "7"),
        ("own", vec![], vec![add("a", "7"), "g.V(7).drop()".to_owned(), add("b", "7")], "7"),
        ("own-beside-another", vec![add("c", "1")], vec![add("a", "7"), "g.V(7).drop()".into(), add("b", "7")], "1, 7"),
    ] {
        let url = format!("memory://gremlin-deleted-keys-{case}");
        let mut graph = empty(&url).await;
        for queries in [before, together] {
            let mut transaction = graph.gremlin();
            for query in &queries {
                transaction.query(query).await.unwrap_or_else(|error| panic!("{case}: {query}: {error}"));
            }
            transaction.commit().await.unwrap_or_else(|error| panic!("{case}: {error}"));
            graph.refresh().await.unwrap();
        }
        assert!(Graph::newest(graph.store()).await.unwrap().unique_keys, "{case}");
        for graph in [&graph, &Graph::open(&url).await.unwrap()] {
            let found = graph.gremlin_read_only().query("g.V().id()").await.unwrap();
            let mut found: Vec<_> = found.iter().map(ToString::to_string).collect();
            let mut expected: Vec<_> = ids.split(", ").collect();
            found.sort_unstable();
            expected.sort_unstable();
            assert_eq!(found, expected, "{case}");
        }
        // A computation names vertices as they are named elsewhere.
        let sorted = async |query: &str| {
            let found = graph.gremlin_read_only().query(query).await.unwrap();
            let mut found: Vec<_> = found.iter().map(|value| format!("{value:?}")).collect();
            found.sort_unstable();
            found
        };
        let clusters = sorted("g.V().peerPressure().with(PeerPressure.propertyName, 'c').values('c')").await;
        assert_eq!(clusters, sorted("g.V().id()").await, "{case}");
    }
}

/// TinkerPop's types are those of values, not of properties.
#[tokio::test]
async fn a_property_takes_another_type_after_its_last_value() {
    let mut graph = empty("memory://gremlin-retyped").await;
    let texts = "g.addV('a').property(T.id, 1).property('x', 'text').as('a').addV('a').property(T.id, 2).as('b')\
         .addE('e').from('a').to('b').property('w', 'text')";
    let numbers = "g.addV('a').property(T.id, 3).property('x', 1).as('a').addV('a').property(T.id, 4).as('b')\
         .addE('e').from('a').to('b').property('w', 1)";
    for (round, queries) in [
        vec![texts, "g.V().drop()", numbers],
        vec![texts, "g.V().properties('x').drop()", "g.E().properties('w').drop()", numbers],
        vec![texts, "g.E().drop()", "g.V(1).drop()", numbers],
        vec![texts, "g.V(1).property('x', 1).outE('e').property('w', 1)"],
    ]
    .into_iter()
    .enumerate()
    {
        for together in [true, false] {
            // In one transaction, and with a version for each.
            let mut transaction = graph.gremlin();
            for query in &queries {
                transaction.query(query).await.unwrap_or_else(|error| panic!("{round}: {query}: {error}"));
                if !together {
                    transaction.commit().await.unwrap_or_else(|error| panic!("{round}: {query}: {error}"));
                    graph.refresh().await.unwrap();
                    transaction = graph.gremlin();
                }
            }
            if together {
                transaction.commit().await.unwrap_or_else(|error| panic!("{round}: {error}"));
                graph.refresh().await.unwrap();
            }
            let mut after = graph.gremlin();
            let found = after.query("g.V().values('x').union(identity(), V().outE().values('w'))").await.unwrap();
            // Together they are longs: not all values that the transaction wrote were written as ints.
            let numbers: Vec<_> = found.iter().map(ToString::to_string).collect();
            assert_eq!(numbers, ["1", "1"], "{round}, {together}");
            let error = after.query("g.addV('a').property('x', 'text')").await.unwrap_err();
            assert!(error.to_string().contains("property x of a is int64"), "{error}");
            after = graph.gremlin();
            after.query("g.V().drop()").await.unwrap();
            after.commit().await.unwrap();
            graph.refresh().await.unwrap();
        }
    }
}

fn set(name: &str, value: i64) -> Operation {
    let properties = [(name, value)].into();
    Operation::UpsertVertex { vertex: VertexRef::new("a", Key::Int64(1)), properties, replace: false }
}

#[tokio::test]
async fn keys_are_ids_while_no_two_labels_have_the_same() {
    let url = "memory://gremlin-ids";
    let mut graph = empty(url).await;
    let ids = async |graph: &Graph| {
        let ids = graph.gremlin_read_only().query("g.V().id().order()").await.unwrap();
        ids.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
    };
    let commit = async |graph: &mut Graph, queries: &[&str]| {
        let mut transaction = graph.gremlin();
        for query in queries {
            transaction.query(query).await.unwrap();
        }
        let ids = transaction.query("g.V().id().order()").await.unwrap();
        transaction.commit().await.unwrap();
        graph.refresh().await.unwrap();
        ids.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
    };
    let before = commit(&mut graph, &["g.addV('a').property(T.id, 1).addV('b').property(T.id, 2)"]).await;
    assert_eq!((before.as_str(), ids(&graph).await.as_str()), ("1 2", "1 2"));
    assert_eq!(graph.gremlin_read_only().query("g.V(1, 'b:2').count()").await.unwrap(), [Value::from(2_i64)]);
    // A vertex that is there has no new key, and one that goes leaves its own.
    commit(&mut graph, &["g.V(1).property('x', 1)", "g.V(2).drop()"]).await;
    assert_eq!(commit(&mut graph, &["g.addV('c').property(T.id, 2)"]).await, "1 2");
    let old = graph.version();
    // A query does not end it, and neither does a new label without an id; a batch may.
    for query in [
        "g.addV('b').property(T.id, 1)",
        "g.mergeV([(T.id): 1, (T.label): 'b'])",
        "g.addV('d').property(T.id, 'x')",
        "g.inject(9, 9).addV('d').property(T.id, 9)",
    ] {
        assert_eq!(graph.gremlin().query(query).await.unwrap_err().reason(), Some(Reason::Query), "{query}");
    }
    let mut transaction = graph.gremlin();
    assert_eq!(
        transaction.query("g.addV('d').id().is(P.typeOf(GType.LONG)).count()").await.unwrap(),
        [Value::from(1_i64)]
    );
    let shared = Operation::UpsertVertex {
        vertex: VertexRef::new("b", Key::Int64(1)),
        properties: [("x", 1_i64)].into(),
        replace: false,
    };
    graph.apply(Batch { operations: vec![shared], ..Batch::default() }).await.unwrap();
    graph.refresh().await.unwrap();
    assert_eq!(ids(&graph).await, "a:1 b:1 c:2");
    commit(&mut graph, &["g.V('b:1').drop()"]).await;
    assert_eq!(ids(&graph).await, "a:1 c:2");
    Graph::restore(&Store::open(url).unwrap(), old, "").await.unwrap();
    graph.refresh().await.unwrap();
    assert_eq!(ids(&graph).await, "1 2");

    // Two labels in one transaction, and keys of two types.
    for together in [
        "g.addV('a').property(T.id, 9).addV('b').property(T.id, 9)",
        "g.addV('a').property(T.id, 9).addV('b').property(T.id, 'x')",
    ] {
        assert!(graph.gremlin().query(together).await.is_err(), "{together}");
    }
}
