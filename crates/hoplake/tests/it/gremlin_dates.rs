//! Dates and timestamps at both ends of what a graph stores, loaded from files, in Gremlin.

use std::fmt::Write;

use hoplake::{
    CompactionSettings, Graph, IndexSettings, LoadOptions, QueryContext, Reason, Store, Value as Stored,
    gremlin::value::Value,
};
use hoplake_testkit::generate::SplitMix64;

use crate::{
    graphs::{in_memory, load_into, open},
    gremlin::{empty, values},
    waves::in_parts,
};

/// How a property has an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Indexed {
    Not,
    AtLoad,
    Later,
}

/// A graph that is loaded from a CSV file, with indexes of properties of the label P or without.
async fn loaded(csv: &str, properties: &[&str], indexed: Indexed) -> (Store, Graph) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("P.csv");
    std::fs::write(&file, csv).unwrap();
    let names: Vec<String> = properties.iter().map(|name| format!("P.{name}")).collect();
    let (_, store) = in_memory();
    let indexes = if indexed == Indexed::AtLoad { names.clone() } else { Vec::new() };
    load_into(&store, LoadOptions { indexes, ..LoadOptions::from_paths([file]) }).await.unwrap();
    if indexed == Indexed::Later {
        for name in &names {
            Graph::create_index(&store, name, &IndexSettings::default()).await.unwrap();
        }
    }
    let graph = open(&store).await;
    let count = if indexed == Indexed::Not { 0 } else { names.len() };
    assert_eq!(graph.indexes().await.unwrap().len(), count);
    (store, graph)
}

async fn assert_answers(graph: &Graph, answers: &[(&str, &str)], stage: &str) {
    for (query, expected) in answers {
        let answer = graph.gremlin_read_only().query(query).await;
        let answer = answer.unwrap_or_else(|error| panic!("{stage}: {query}: {error}"));
        let answer: Vec<String> = answer.iter().map(Value::to_string).collect();
        assert_eq!(answer.join(" "), *expected, "{stage}: {query}");
    }
}

/// The library of dates ends a day before 9999-12-31 does where it allows for offsets, and such dates were null.
#[tokio::test]
async fn the_last_day_is_a_date() {
    let csv = "~id,~label,ends:Date\na,P,2020-01-02\nb,P,9999-12-30\nc,P,9999-12-31\n";
    for indexed in [Indexed::Not, Indexed::AtLoad, Indexed::Later] {
        let (_, graph) = loaded(csv, &["ends"], indexed).await;
        let answers = [
            (
                "g.V().order().by(id).project('i','v').by(id).by(values('ends'))",
                "{i=a, v=2020-01-02T00:00Z} {i=b, v=9999-12-30T00:00Z} {i=c, v=9999-12-31T00:00Z}",
            ),
            ("g.V().order().by('ends').id()", "a b c"),
            ("g.V().values('ends').max()", "9999-12-31T00:00Z"),
            ("g.V().has('ends',gt(datetime('2500-01-01T00:00:00Z'))).count()", "2"),
            ("g.inject(datetime('9999-12-31T00:00:00Z'))", "9999-12-31T00:00Z"),
        ];
        assert_answers(&graph, &answers, &format!("{indexed:?}")).await;
    }
}

#[tokio::test]
async fn dates_and_moments_are_read_in_all_of_their_range() {
    let csv = ":ID(P),ends:date,at:datetime\n\
               a,2020-01-02,2020-01-02T03:04:05Z\n\
               b,9999-12-30,9999-12-30T22:00:01Z\n\
               c,9999-12-31,9999-12-31T23:59:59.999999Z\n\
               d,-009999-01-01,-009999-01-01T00:00:00Z\n\
               e,9999-12-31,9999-12-31T23:59:59.999999Z\n\
               f,,\n";
    let answers = [
        (
            "g.V().order().by(id).values('ends')",
            "2020-01-02T00:00Z 9999-12-30T00:00Z 9999-12-31T00:00Z -9999-01-01T00:00Z 9999-12-31T00:00Z",
        ),
        (
            "g.V().order().by(id).values('at')",
            "2020-01-02T03:04:05Z 9999-12-30T22:00:01Z 9999-12-31T23:59:59.999999Z -9999-01-01T00:00Z 9999-12-31T23:59:59.999999Z",
        ),
        ("g.V().has('ends').order().by('ends').by(id).id()", "d a b c e"),
        ("g.V().has('at').order().by('at', desc).by(id).id()", "c e b a d"),
        ("g.V().values('ends').max()", "9999-12-31T00:00Z"),
        ("g.V().values('ends').min()", "-9999-01-01T00:00Z"),
        ("g.V().values('at').max()", "9999-12-31T23:59:59.999999Z"),
        ("g.V().values('at').min()", "-9999-01-01T00:00Z"),
        ("g.V().values('ends').dedup().count()", "4"),
        ("g.V().values('at').dedup().count()", "4"),
        (
            "g.V().has('ends').group().by('ends').by(id().order().fold()).unfold().order().by(keys)",
            "{-9999-01-01T00:00Z=[d]} {2020-01-02T00:00Z=[a]} {9999-12-30T00:00Z=[b]} {9999-12-31T00:00Z=[c, e]}",
        ),
        ("g.V().has('ends').groupCount().by('ends').unfold().order().by(keys).select(values)", "1 1 1 2"),
        ("g.V().has('ends', gt(datetime('2500-01-01T00:00:00Z'))).id().order()", "b c e"),
        ("g.V().has('ends', gt(datetime('9999-12-30T00:00:00Z'))).id().order()", "c e"),
        ("g.V().has('ends', gt(datetime('9999-12-31T00:00:00Z'))).id().order()", ""),
        ("g.V().has('ends', gte(datetime('9999-12-31T00:00:00Z'))).id().order()", "c e"),
        ("g.V().has('ends', datetime('9999-12-31T00:00:00Z')).id().order()", "c e"),
        ("g.V().has('ends', lt(datetime('0001-01-01T00:00:00Z'))).id().order()", "d"),
        ("g.V().has('ends', lte(datetime('-009999-01-01T00:00:00Z'))).id().order()", "d"),
        ("g.V().has('ends', lt(datetime('-009999-01-01T00:00:00Z'))).id().order()", ""),
        ("g.V().has('ends', datetime('-009999-01-01T00:00:00Z')).id().order()", "d"),
        (
            "g.V().has('ends', within(datetime('-009999-01-01T00:00:00Z'), datetime('9999-12-31T00:00:00Z'))).id().order()",
            "c d e",
        ),
        ("g.V().has('ends', neq(datetime('9999-12-31T00:00:00Z'))).id().order()", "a b d"),
        // Within the last day, and in an offset in which it is another one.
        ("g.V().has('ends', gt(datetime('9999-12-30T12:00:00Z'))).id().order()", "c e"),
        ("g.V().has('ends', lt(datetime('9999-12-31T12:00:00Z'))).id().order()", "a b c d e"),
        ("g.V().has('ends', datetime('9999-12-31T12:00:00Z')).id().order()", ""),
        ("g.V().has('ends', datetime('9999-12-30T22:00:00-02:00')).id().order()", "c e"),
        ("g.V().has('at', gt(datetime('9999-12-30T22:00:00.999999Z'))).id().order()", "b c e"),
        ("g.V().has('at', gt(datetime('9999-12-31T23:59:59.999998Z'))).id().order()", "c e"),
        ("g.V().has('at', gt(datetime('9999-12-31T23:59:59.999999Z'))).id().order()", ""),
        ("g.V().has('at', datetime('9999-12-31T23:59:59.999999Z')).id().order()", "c e"),
        ("g.V().has('at', lt(datetime('-009999-01-01T00:00:00.000001Z'))).id().order()", "d"),
        ("g.V().has('at', datetime('-009999-01-01T00:00:00Z')).id().order()", "d"),
    ];
    for indexed in [Indexed::Not, Indexed::AtLoad, Indexed::Later] {
        let (store, mut graph) = loaded(csv, &["ends", "at"], indexed).await;
        assert_answers(&graph, &answers, &format!("{indexed:?}, loaded")).await;
        // What a change adds, and removes again.
        let mut commit = graph.begin();
        let last = [("ends", Stored::Date(2_932_896)), ("at", Stored::Timestamp(253_402_300_799_999_999))];
        commit.upsert_vertex("P", "g", last);
        commit.commit().await.unwrap();
        graph.refresh().await.unwrap();
        let more = [
            ("g.V().has('ends', gt(datetime('9999-12-30T00:00:00Z'))).id().order()", "c e g"),
            ("g.V('P:g').values('ends', 'at')", "9999-12-31T00:00Z 9999-12-31T23:59:59.999999Z"),
        ];
        assert_answers(&graph, &more, &format!("{indexed:?}, changed")).await;
        let mut transaction = graph.gremlin();
        let pushed = "g.V().has('at', gte(datetime('9999-12-31T23:59:59.999999Z'))).has('ends')";
        transaction.query(&format!("{pushed}.hasId('g').drop()")).await.unwrap();
        assert_eq!(transaction.query(&format!("{pushed}.count()")).await.unwrap(), [Value::from(2_i64)]);
        transaction.commit().await.unwrap();
        graph.refresh().await.unwrap();
        assert_answers(&graph, &answers, &format!("{indexed:?}, changed back")).await;
        Graph::compact(&store, &CompactionSettings { everything: true, ..CompactionSettings::default() })
            .await
            .unwrap();
        graph.refresh().await.unwrap();
        assert_answers(&graph, &answers, &format!("{indexed:?}, compacted")).await;
    }
}

/// Whatever the engine makes of a condition, and whether it looks it up.
#[tokio::test]
async fn an_index_of_dates_changes_no_answer() {
    let mut random = SplitMix64::new(7);
    let mut csv = ":ID(P),ends:date,at:datetime\n\
                   last,9999-12-31,9999-12-31T23:59:59.999999Z\n\
                   first,-009999-01-01,-009999-01-01T00:00:00Z\n"
        .to_owned();
    for key in 0..2_000 {
        let year = 1000 + random.below(1000);
        let month = 1 + random.below(12);
        let day = 1 + random.below(28);
        let minute = random.below(60);
        let micros = random.below(1_000_000);
        writeln!(csv, "{key},{year}-{month:02}-{day:02},{year}-{month:02}-{day:02}T00:{minute:02}:00.{micros:06}Z")
            .unwrap();
    }
    let conditions = [
        ("'ends', gt(datetime('2500-01-01T00:00:00Z'))", "last"),
        ("'ends', datetime('9999-12-31T00:00:00Z')", "last"),
        ("'ends', lt(datetime('0999-01-01T00:00:00Z'))", "first"),
        ("'ends', datetime('-009999-01-01T00:00:00Z')", "first"),
        ("'at', gt(datetime('2500-01-01T00:00:00Z'))", "last"),
        ("'at', datetime('9999-12-31T23:59:59.999999Z')", "last"),
        ("'at', lt(datetime('0999-01-01T00:00:00Z'))", "first"),
        ("'at', datetime('-009999-01-01T00:00:00Z')", "first"),
    ];
    for indexed in [Indexed::Not, Indexed::AtLoad, Indexed::Later] {
        let (store, graph) = loaded(&csv, &["ends", "at"], indexed).await;
        for (condition, found) in conditions {
            let query = format!("g.V().hasLabel('P').has({condition})");
            let plan = graph.gremlin_read_only().query(&format!("{query}.explain()")).await.unwrap()[0].to_string();
            let last = plan.lines().last().unwrap();
            assert!(last.starts_with("  Find label within P "), "{plan}");
            // In parts, and with nothing in memory: a small graph is read as a whole.
            let graph = Graph::open_with(store.clone(), &in_parts()).await.unwrap();
            let ids = values(&graph, &format!("{query}.id()"), &QueryContext::new()).await;
            assert!(matches!(&ids[..], [(id, 1)] if *id == found.into()), "{query}: {ids:?}");
        }
    }
}

/// Only a program that applies batches stores such a date. Gremlin has none, and null would be another value.
#[tokio::test]
async fn a_date_that_gremlin_does_not_have_is_an_error() {
    let mut graph = empty("memory://gremlin-beyond").await;
    let mut commit = graph.begin();
    commit
        .upsert_vertex("P", "day", [("ends", Stored::Date(2_932_897))])
        .upsert_vertex("P", "moment", [("at", Stored::Timestamp(i64::MAX))])
        .upsert_vertex("P", "list", [("days", Stored::List(vec![Stored::Date(0), Stored::Date(i32::MIN)]))])
        .upsert_vertex("P", "good", [("ends", Stored::Date(2_932_896))])
        .upsert_edge("e", ("P", "good"), ("P", "day"), [("since", Stored::Date(i32::MAX))]);
    commit.commit().await.unwrap();
    graph.refresh().await.unwrap();
    for (query, words) in [
        ("g.V('P:day').values('ends')", "property ends of P:day is 2932897 days after 1970-01-01"),
        ("g.V('P:day')", "property ends of P:day is 2932897 days after 1970-01-01"),
        ("g.V().has('ends').order().by('ends')", "property ends of P:day is 2932897 days"),
        ("g.V('P:moment').valueMap()", "property at of P:moment is 9223372036854775807 microseconds after 1970-01-01"),
        ("g.V('P:list').properties()", "property days of P:list is -2147483648 days after 1970-01-01"),
        ("g.E().values('since')", "is 2147483647 days after 1970-01-01"),
        ("g.E().values('since')", "property since of the edge "),
    ] {
        let error = graph.gremlin_read_only().query(query).await.unwrap_err();
        assert!(error.to_string().contains(words), "{query}: {error}");
        assert!(error.to_string().ends_with("which is not between -9999-01-01 and 9999-12-31"), "{query}: {error}");
        assert_eq!(error.reason(), Some(Reason::Query), "{query}");
    }
    let others = [
        ("g.V('P:good').values('ends')", "9999-12-31T00:00Z"),
        ("g.V('P:moment').values('ends').count()", "0"),
        ("g.V('P:good').out('e').id()", "day"),
    ];
    assert_answers(&graph, &others, "others").await;
}
