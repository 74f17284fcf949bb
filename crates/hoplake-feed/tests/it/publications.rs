//! What a publication leaves out is rejected, and what the rejection says to run leads to a feed that works.
//!
//! Each scenario is a way in which changes of a table would not arrive, or not as they are. The statements of the hints are run as they are
//! printed, one rejection after the other, until the feed opens; then the tables are changed, and the graph has to have what they have.

use std::{collections::BTreeMap, path::Path, sync::Arc};

use hoplake_feed::{Feed, FeedErrorKind, ReconcileOptions, RunOptions, Settings, check};
use hoplake_testkit::PostgresServer;

use crate::{
    following::{self, caught_up},
    model::Model,
    reconciling::reported,
};

struct Scenario {
    name: &'static str,
    /// Before the feed is opened for the first time.
    before: &'static str,
    /// What the table becomes, besides a vertex `T`.
    entry: &'static str,
    /// What the rejections say, in their order.
    rejected: &'static [&'static str],
    /// After it was opened.
    after: &'static str,
    /// The rows that the graph has to have.
    rows: &'static str,
}

const TABLE: &str = "name = 't'";
const CHANGES: &str =
    "INSERT INTO t VALUES (50, 5, 'new'); UPDATE t SET note = 'changed' WHERE id = 1; DELETE FROM t WHERE id = 2";
const ROWS: &str = "SELECT id, note FROM t";

macro_rules! plain {
    () => {
        "CREATE TABLE t (id int PRIMARY KEY, k int, note text); INSERT INTO t VALUES (1, 1, 'a'), (2, 2, 'b'), (3, 3, 'c');"
    };
}

macro_rules! partitioned {
    () => {
        "CREATE TABLE t (id int, k int, note text, PRIMARY KEY (id, k)) PARTITION BY RANGE (k);
         CREATE TABLE t_low PARTITION OF t FOR VALUES FROM (0) TO (3);
         CREATE TABLE t_high PARTITION OF t FOR VALUES FROM (3) TO (100) PARTITION BY LIST (k);
         CREATE TABLE t_rest PARTITION OF t_high DEFAULT;
         INSERT INTO t VALUES (1, 1, 'a'), (2, 2, 'b'), (3, 3, 'c');"
    };
}

/// Every way to leave something out.
const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "no publication",
        before: plain!(),
        entry: TABLE,
        rejected: &["has no publication"],
        after: CHANGES,
        rows: ROWS,
    },
    Scenario {
        name: "another table is published",
        before: concat!(plain!(), "CREATE TABLE o (id int PRIMARY KEY); CREATE PUBLICATION hoplake_p FOR TABLE o"),
        entry: TABLE,
        rejected: &["does not have public.t"],
        after: CHANGES,
        rows: ROWS,
    },
    Scenario {
        name: "some kinds of changes",
        before: concat!(plain!(), "CREATE PUBLICATION hoplake_p FOR TABLE t WITH (publish = 'insert, delete')"),
        entry: TABLE,
        rejected: &["leaves out inserts, updates"],
        after: CHANGES,
        rows: ROWS,
    },
    Scenario {
        name: "a list of columns",
        before: concat!(plain!(), "CREATE PUBLICATION hoplake_p FOR TABLE t (id, k)"),
        entry: TABLE,
        rejected: &["has only the columns id, k of public.t"],
        after: CHANGES,
        rows: ROWS,
    },
    Scenario {
        name: "a filter of rows",
        before: concat!(plain!(), "CREATE PUBLICATION hoplake_p FOR TABLE t WHERE (id > 1)"),
        entry: TABLE,
        rejected: &["has only the rows of public.t with (id > 1)"],
        after: CHANGES,
        rows: ROWS,
    },
    Scenario {
        name: "no partitions yet published",
        before: partitioned!(),
        entry: TABLE,
        rejected: &["has no publication"],
        after: CHANGES,
        rows: ROWS,
    },
    Scenario {
        name: "partitions under their own names",
        before: concat!(partitioned!(), "CREATE PUBLICATION hoplake_p FOR TABLE t"),
        entry: TABLE,
        rejected: &["has the partitions of public.t in place of the table"],
        after: CHANGES,
        rows: ROWS,
    },
    Scenario {
        name: "one of the partitions",
        before: concat!(partitioned!(), "CREATE PUBLICATION hoplake_p FOR TABLE t_low"),
        entry: TABLE,
        rejected: &["in place of the table", "does not have public.t"],
        after: CHANGES,
        rows: ROWS,
    },
    Scenario {
        name: "a list of columns of a partitioned table",
        before: concat!(
            partitioned!(),
            "CREATE PUBLICATION hoplake_p FOR TABLE t (id, k) WITH (publish_via_partition_root = true)"
        ),
        entry: TABLE,
        rejected: &["has only the columns id, k of public.t"],
        after: CHANGES,
        rows: ROWS,
    },
    Scenario {
        name: "partitions that log keys of a table that logs rows",
        before: concat!(
            partitioned!(),
            "ALTER TABLE t REPLICA IDENTITY FULL; CREATE PUBLICATION hoplake_p FOR TABLE t WITH (publish_via_partition_root)"
        ),
        entry: TABLE,
        rejected: &["the partition public.t_low of table public.t logs less of a row"],
        after: CHANGES,
        rows: ROWS,
    },
    Scenario {
        name: "a partition that logs nothing before changes",
        before: concat!(
            partitioned!(),
            "ALTER TABLE t_rest REPLICA IDENTITY NOTHING; CREATE PUBLICATION hoplake_p FOR TABLE t WITH (publish_via_partition_root)"
        ),
        entry: TABLE,
        rejected: &["the partition public.t_rest of table public.t logs less of a row"],
        after: CHANGES,
        rows: ROWS,
    },
    Scenario {
        name: "a condition that needs rows as they were, of a partitioned table",
        before: partitioned!(),
        entry: "name = 't'\nwhere = \"note <> 'changed'\"",
        rejected: &["does not have column note of rows before they change", "logs less of a row", "has no publication"],
        after: CHANGES,
        rows: "SELECT id, note FROM t WHERE note <> 'changed'",
    },
    Scenario {
        name: "an unlogged table",
        before: "CREATE UNLOGGED TABLE t (id int PRIMARY KEY, k int, note text); CREATE PUBLICATION hoplake_p FOR ALL TABLES",
        entry: TABLE,
        rejected: &["table public.t is unlogged"],
        after: CHANGES,
        rows: ROWS,
    },
    Scenario {
        name: "an unlogged partition",
        before: "CREATE TABLE t (id int, k int, note text, PRIMARY KEY (id, k)) PARTITION BY RANGE (k);
                 CREATE UNLOGGED TABLE \"t 1\" PARTITION OF t FOR VALUES FROM (0) TO (100); INSERT INTO t VALUES (1, 1, 'a');
                 CREATE PUBLICATION hoplake_p FOR ALL TABLES WITH (publish_via_partition_root)",
        entry: TABLE,
        rejected: &["table public.t 1 is unlogged"],
        after: CHANGES,
        rows: ROWS,
    },
    Scenario {
        name: "a partition on another server",
        before: "CREATE EXTENSION file_fdw; CREATE SERVER files FOREIGN DATA WRAPPER file_fdw;
                 CREATE TABLE t (id int NOT NULL, k int, note text) PARTITION BY RANGE (k);
                 CREATE TABLE t_low PARTITION OF t FOR VALUES FROM (0) TO (100); INSERT INTO t VALUES (1, 1, 'a'), (2, 2, 'b');
                 CREATE FOREIGN TABLE t_far PARTITION OF t FOR VALUES FROM (100) TO (200) SERVER files OPTIONS (filename '/dev/null');
                 ALTER TABLE t REPLICA IDENTITY FULL; ALTER TABLE t_low REPLICA IDENTITY FULL;
                 CREATE PUBLICATION hoplake_p FOR TABLE t WITH (publish_via_partition_root)",
        entry: "name = 't'",
        rejected: &["the partition public.t_far of table public.t is on another server"],
        after: CHANGES,
        rows: ROWS,
    },
    Scenario {
        name: "a table without a key of its own",
        before: concat!(plain!(), "ALTER TABLE t REPLICA IDENTITY NOTHING; CREATE PUBLICATION hoplake_p FOR TABLE t"),
        entry: TABLE,
        rejected: &["does not have column id of rows before they change"],
        after: CHANGES,
        rows: ROWS,
    },
    Scenario {
        name: "a table from which others inherit",
        // The child has no key: if it were published, it could not be changed.
        before: concat!(plain!(), "CREATE TABLE child (extra int) INHERITS (t); INSERT INTO child VALUES (70, 7, 'child', 7)"),
        entry: TABLE,
        rejected: &["has no publication"],
        after: "INSERT INTO t VALUES (50, 5, 'new'); UPDATE t SET note = 'changed' WHERE id IN (1, 70); DELETE FROM t WHERE id = 2",
        rows: "SELECT id, note FROM ONLY t",
    },
    Scenario {
        name: "a name with quotes, dots and capitals",
        before: "CREATE SCHEMA \"S.s\"; CREATE TABLE \"S.s\".\"T.x \"\"q\" (id int PRIMARY KEY, k int, note text);
                 INSERT INTO \"S.s\".\"T.x \"\"q\" VALUES (1, 1, 'a'), (2, 2, 'b'); CREATE TABLE o (id int PRIMARY KEY);
                 ALTER TABLE \"S.s\".\"T.x \"\"q\" REPLICA IDENTITY NOTHING; CREATE PUBLICATION hoplake_p FOR TABLE o",
        entry: "name = '\"S.s\".\"T.x \"\"q\"'",
        rejected: &["does not have column id", "does not have \"S.s\".\"T.x \"\"q\""],
        after: "INSERT INTO \"S.s\".\"T.x \"\"q\" VALUES (50, 5, 'new'); UPDATE \"S.s\".\"T.x \"\"q\" SET note = 'changed' WHERE id = 1",
        rows: "SELECT id, note FROM \"S.s\".\"T.x \"\"q\"",
    },
];

fn settings(server: &PostgresServer, database: &str, graph: &Path, entry: &str) -> Settings {
    let url = server.url(database);
    // Of a partitioned table the key has the column by which it is divided.
    let vertex = "vertex = { label = 'T', key = 'id' }";
    Settings::parse(&format!("graph = {graph:?}\n[source]\nname = 'p'\nurl = '{url}'\n[[table]]\n{entry}\n{vertex}\n"))
        .unwrap()
}

/// What a hint says to run.
fn statements(hint: &str) -> &str {
    hint.strip_prefix("run: ").unwrap_or_else(|| panic!("no statements: {hint}"))
}

/// The rows that a statement selects, and what the graph has.
async fn assert_equal(server: &PostgresServer, database: &str, settings: &Settings, rows: &str, name: &str) {
    let text = server.sql(database, rows).unwrap();
    let row = |line: &str| line.split_once('|').map(|(id, note)| (format!("T:{id}"), note.to_owned()));
    let expected: BTreeMap<_, _> = text.lines().filter_map(row).collect();
    let graph = hoplake::Graph::open(&settings.graph).await.unwrap();
    let found = Model::of_graph(&graph).await.vertices;
    let found: BTreeMap<_, _> =
        found.into_iter().map(|(id, it)| (id, it.get("note").cloned().unwrap_or_default())).collect();
    assert_eq!(found, expected, "{name}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_left_out_is_rejected_and_hints_lead_to_a_feed_that_works() {
    let folder = tempfile::tempdir().unwrap();
    let server = PostgresServer::start(&["fsync=off"]).unwrap();
    for (number, Scenario { name, before, entry, rejected, after, rows }) in SCENARIOS.iter().enumerate() {
        let database = format!("p{number}");
        server.sql("postgres", &format!("CREATE DATABASE {database}")).unwrap();
        server.sql(&database, before).unwrap_or_else(|error| panic!("{name}: {error}"));
        let settings = settings(&server, &database, &folder.path().join(&database), entry);
        for expected in *rejected {
            let checked = check(&settings).await.err().unwrap_or_else(|| panic!("{name}: {expected} is not refused"));
            let error = Feed::open(settings.clone(), RunOptions::default(), Arc::new(())).await.err().unwrap();
            assert!(error.kind() == FeedErrorKind::Invalid && error.to_string().contains(expected), "{name}: {error}");
            assert_eq!((error.to_string(), error.what_to_do()), (checked.to_string(), checked.what_to_do()));
            let ran = server.sql(&database, statements(error.what_to_do()));
            ran.unwrap_or_else(|ran| panic!("{name}: {}: {ran}", error.what_to_do()));
        }
        check(&settings).await.unwrap_or_else(|error| panic!("{name}: {error}; {}", error.what_to_do()));
        drop(caught_up(&settings).await);
        server.sql(&database, after).unwrap_or_else(|error| panic!("{name}: {error}"));
        drop(caught_up(&settings).await);
        assert_equal(&server, &database, &settings, rows, name).await;
        let (reconciled, found) = reported(&settings, ReconcileOptions::default()).await;
        assert!(reconciled.is_equal(), "{name}: {found:?}");
        let slots = "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE NOT active";
        while server.sql(&database, "SELECT count(*) FROM pg_replication_slots").unwrap().trim() != "0" {
            server.sql(&database, slots).unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_left_out_while_a_graph_followed_comes_with_a_resnapshot() {
    let folder = tempfile::tempdir().unwrap();
    let server = PostgresServer::start(&["fsync=off"]).unwrap();
    server.sql("test", concat!(plain!(), "CREATE PUBLICATION hoplake_p FOR TABLE t")).unwrap();
    let settings = settings(&server, "test", &folder.path().join("graph"), TABLE);
    drop(caught_up(&settings).await);
    server.sql("test", "ALTER PUBLICATION hoplake_p SET TABLE t (id, k)").unwrap();
    server.sql("test", CHANGES).unwrap();
    let once = RunOptions { once: true, ..RunOptions::default() };
    let error = Feed::open(settings.clone(), once.clone(), Arc::new(())).await.err().unwrap();
    assert!(error.what_to_do().contains("--resnapshot"), "{}", error.what_to_do());
    server.sql("test", statements(error.what_to_do())).unwrap();
    let mut feed = Feed::open(settings.clone(), RunOptions { resnapshot: true, ..once }, Arc::new(())).await.unwrap();
    feed.run(std::future::pending()).await.unwrap();
    assert_equal(&server, "test", &settings, ROWS, "after a resnapshot").await;
}

/// A new partition has the default identity, whatever its table has: nulls would stand in the log for what is not in it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_partition_that_logs_less_stops_a_feed() {
    let folder = tempfile::tempdir().unwrap();
    let server = PostgresServer::start(&["fsync=off"]).unwrap();
    let before = concat!(
        partitioned!(),
        "ALTER TABLE t REPLICA IDENTITY FULL; ALTER TABLE t_low REPLICA IDENTITY FULL; ALTER TABLE t_rest REPLICA IDENTITY FULL;
         CREATE PUBLICATION hoplake_p FOR TABLE t WITH (publish_via_partition_root)"
    );
    server.sql("test", before).unwrap();
    let settings = settings(&server, "test", &folder.path().join("graph"), TABLE);
    let mut feed = caught_up(&settings).await;
    // One that logs whole rows is followed.
    let new = |name: &str, from: i32| {
        format!("CREATE TABLE {name} PARTITION OF t FOR VALUES FROM ({from}) TO ({});", from + 100)
    };
    let whole = new("t_2", 200) + "ALTER TABLE t_2 REPLICA IDENTITY FULL; INSERT INTO t VALUES (4, 250, 'd');";
    server.sql("test", &whole).unwrap();
    feed.run(std::future::pending()).await.unwrap();
    // Next to a table of its own, which a TRUNCATE names, too.
    server
        .sql(
            "test",
            "CREATE TABLE other (id int PRIMARY KEY); ALTER PUBLICATION hoplake_p ADD TABLE other; TRUNCATE t, other",
        )
        .unwrap();
    feed.run(std::future::pending()).await.unwrap();
    assert_equal(&server, "test", &settings, ROWS, "after a TRUNCATE").await;
    let less = new("t_3", 300) + "INSERT INTO t VALUES (5, 350, 'e'); UPDATE t SET note = 'f' WHERE id = 5";
    server.sql("test", &less).unwrap();
    let error = feed.run(std::future::pending()).await.unwrap_err();
    assert!(error.to_string().contains("the partition public.t_3 of table public.t logs less of a row"), "{error}");
    drop(feed);
    // So it does at each start.
    let once = RunOptions { once: true, ..RunOptions::default() };
    let again = Feed::open(settings.clone(), once.clone(), Arc::new(())).await.err().unwrap();
    assert!(again.to_string().contains("the partition public.t_3"), "{again}");
    server.sql("test", statements(error.what_to_do())).unwrap();
    let mut feed = Feed::open(settings.clone(), RunOptions { resnapshot: true, ..once }, Arc::new(())).await.unwrap();
    feed.run(std::future::pending()).await.unwrap();
    assert_equal(&server, "test", &settings, ROWS, "at the end").await;
}

/// Rows that come or go with a partition are in the log nowhere.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn partitions_that_come_with_rows_or_go_with_them_stop_a_feed() {
    let folder = tempfile::tempdir().unwrap();
    let server = PostgresServer::start(&["fsync=off"]).unwrap();
    let own = "CREATE TABLE own (LIKE t INCLUDING ALL); INSERT INTO own VALUES (9, 500, 'own');";
    for (number, (statements, stops)) in [
        (
            "CREATE TABLE t_2 PARTITION OF t FOR VALUES FROM (200) TO (300); INSERT INTO t VALUES (4, 250, 'd')"
                .to_owned(),
            None,
        ),
        (
            "BEGIN; CREATE TABLE t_2 PARTITION OF t FOR VALUES FROM (200) TO (300) PARTITION BY LIST (k);
             CREATE TABLE t_3 PARTITION OF t_2 DEFAULT; COMMIT; INSERT INTO t VALUES (4, 250, 'd')"
                .to_owned(),
            None,
        ),
        (format!("{own} ALTER TABLE t ATTACH PARTITION own FOR VALUES FROM (500) TO (600)"), Some("was attached")),
        ("ALTER TABLE t DETACH PARTITION t_low".to_owned(), Some("was detached or dropped")),
        ("DROP TABLE t_rest".to_owned(), Some("was detached or dropped")),
    ]
    .into_iter()
    .enumerate()
    {
        let database = format!("parts{number}");
        server.sql("postgres", &format!("CREATE DATABASE {database}")).unwrap();
        let publication = "CREATE PUBLICATION hoplake_p FOR TABLE t WITH (publish_via_partition_root)";
        server.sql(&database, &format!("{}{publication}", partitioned!())).unwrap();
        let settings = settings(&server, &database, &folder.path().join(&database), TABLE);
        let mut feed = caught_up(&settings).await;
        server.sql(&database, &statements).unwrap();
        server
            .sql(&database, "INSERT INTO t VALUES (7, 1, 'g'), (8, 2, 'h') ON CONFLICT DO NOTHING")
            .or_else(|_| server.sql(&database, "INSERT INTO t VALUES (7, 3, 'g')"))
            .unwrap();
        let ran = feed.run(std::future::pending()).await;
        drop(feed);
        let once = RunOptions { once: true, ..RunOptions::default() };
        match stops {
            None => ran.unwrap_or_else(|error| panic!("{statements}: {error}")),
            Some(why) => {
                let error = ran.expect_err(&statements);
                assert!(error.to_string().contains(why) && error.what_to_do().contains("--resnapshot"), "{error}");
                let resnapshot = RunOptions { resnapshot: true, ..once.clone() };
                Feed::open(settings.clone(), resnapshot, Arc::new(())).await.unwrap();
            }
        }
        drop(caught_up(&settings).await);
        assert_equal(&server, &database, &settings, ROWS, &statements).await;
    }
}

/// While a table is not in the publication, or is unlogged, its rows are in the log nowhere.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tables_that_are_not_logged_for_some_time_stop_a_feed() {
    let folder = tempfile::tempdir().unwrap();
    let server = PostgresServer::start(&["fsync=off", "max_replication_slots=80"]).unwrap();
    let schema = concat!(plain!(), "CREATE PUBLICATION hoplake_p FOR TABLES IN SCHEMA public");
    let all = concat!(plain!(), "CREATE PUBLICATION hoplake_p FOR ALL TABLES");
    let parts = concat!(
        partitioned!(),
        "CREATE TABLE t_empty PARTITION OF t FOR VALUES FROM (900) TO (999);
         CREATE PUBLICATION hoplake_p FOR TABLE t WITH (publish_via_partition_root)"
    );
    let row = "INSERT INTO t VALUES (50, 5, 'new');";
    let meanwhile = |off: &str, on: &str| format!("{off}; {row} {on}");
    let unlogged_and = |meanwhile: &str, later: &str| {
        format!("ALTER TABLE t SET UNLOGGED; {meanwhile}; ALTER TABLE t SET LOGGED; {later}")
    };
    let unlogged = unlogged_and(row, "");
    let later = "UPDATE t SET note = 'later' WHERE id = 1; INSERT INTO t VALUES (51, 5, 'later');";
    for (number, (before, statements, stops)) in [
        (
            schema,
            meanwhile(
                "ALTER PUBLICATION hoplake_p DROP TABLES IN SCHEMA public",
                "ALTER PUBLICATION hoplake_p ADD TABLES IN SCHEMA public",
            ),
            Some("publication was changed"),
        ),
        (
            schema,
            "CREATE SCHEMA s; ALTER TABLE t SET SCHEMA s; INSERT INTO s.t VALUES (50, 5, 'new'); \
             ALTER TABLE s.t SET SCHEMA public"
                .to_owned(),
            Some("in another schema"),
        ),
        // The server cannot read its own log of that time.
        (
            all,
            meanwhile("DROP PUBLICATION hoplake_p", "CREATE PUBLICATION hoplake_p FOR ALL TABLES"),
            Some("publication was changed"),
        ),
        (schema, unlogged.clone(), Some("unlogged")),
        (all, unlogged, Some("unlogged")),
        (
            all,
            "ALTER TABLE t SET UNLOGGED; DELETE FROM t WHERE id = 2; ALTER TABLE t SET LOGGED".to_owned(),
            Some("unlogged"),
        ),
        // A publication that names a table does not name its partitions.
        (
            parts,
            "ALTER TABLE t_low SET UNLOGGED; INSERT INTO t VALUES (50, 1, 'new'); ALTER TABLE t_low SET LOGGED"
                .to_owned(),
            Some("unlogged"),
        ),
        // No row is left that shows it.
        (all, unlogged_and("DELETE FROM t", ""), Some("unlogged")),
        (all, unlogged_and(row, "UPDATE t SET k = k + 1"), Some("unlogged")),
        (all, unlogged_and(row, "GRANT SELECT ON t TO public"), Some("unlogged")),
        (parts, "TRUNCATE t_low".to_owned(), Some("TRUNCATE of a single partition")),
        (parts, "TRUNCATE t; TRUNCATE t_rest".to_owned(), Some("TRUNCATE of a single partition")),
        (parts, "TRUNCATE t_low; VACUUM ANALYZE t_low; INSERT INTO t VALUES (50, 1, 'new')".to_owned(), Some("single partition")),
        (parts, "TRUNCATE t".to_owned(), None),
        (parts, "BEGIN; TRUNCATE t; INSERT INTO t VALUES (50, 1, 'new'); COMMIT; GRANT SELECT ON t_low TO public".to_owned(), None),
        (parts, "TRUNCATE t; INSERT INTO t VALUES (50, 1, 'new'); TRUNCATE t; INSERT INTO t VALUES (52, 4, 'new')".to_owned(), None),
        // Also of one without rows.
        (parts, "VACUUM FULL; CLUSTER t_low USING t_low_pkey".to_owned(), None),
        (parts, "CREATE TABLE t_2 PARTITION OF t FOR VALUES FROM (200) TO (300); ALTER TABLE t_2 OWNER TO feed; \
             GRANT SELECT ON t_2 TO public; INSERT INTO t VALUES (53, 253, 'new'); VACUUM FULL t_2".to_owned(), None),
        (
            parts,
            "CREATE UNLOGGED TABLE t_2 PARTITION OF t FOR VALUES FROM (200) TO (300); INSERT INTO t VALUES (50, 250, 'new'); \
             ALTER TABLE t_2 SET LOGGED"
                .to_owned(),
            Some("unlogged"),
        ),
        (
            parts,
            "BEGIN; CREATE TABLE own (LIKE t INCLUDING ALL); INSERT INTO own VALUES (50, 250, 'new'); \
             ALTER TABLE t ATTACH PARTITION own FOR VALUES FROM (200) TO (300); COMMIT"
                .to_owned(),
            Some("was attached"),
        ),
        (schema, "ALTER TABLE t OWNER TO feed".to_owned(), None),
        (all, format!("BEGIN; TRUNCATE t; {row} COMMIT; BEGIN; UPDATE t SET k = 9; ROLLBACK"), None),
        (parts, "VACUUM FULL t; INSERT INTO t VALUES (50, 7, 'new')".to_owned(), None),
        (all, "VACUUM FULL t".to_owned(), None),
        (all, "TRUNCATE t".to_owned(), None),
        (all, format!("BEGIN; TRUNCATE t; {row} COMMIT"), None),
        (
            all,
            "ALTER TABLE t ADD COLUMN more int; ALTER TABLE t REPLICA IDENTITY FULL; CREATE INDEX ON t (k)".to_owned(),
            None,
        ),
        (
            schema,
            "ALTER TABLE t ADD COLUMN more int; VACUUM FULL t; GRANT SELECT ON t TO public; CREATE TABLE u (id int)"
                .to_owned(),
            None,
        ),
    ]
    .into_iter()
    .enumerate()
    {
        let database = format!("meanwhile{number}");
        server.sql("postgres", &format!("CREATE DATABASE {database}")).unwrap();
        server.sql(&database, before).unwrap();
        let of = |graph: &str| settings(&server, &database, &folder.path().join(format!("{database}_{graph}")), TABLE);
        let running = of("running");
        let stopped = of("stopped");
        let mut feed = caught_up(&running).await;
        drop(caught_up(&stopped).await);
        server.sql(&database, &statements).unwrap_or_else(|error| panic!("{statements}: {error}"));
        server.sql(&database, later).unwrap();
        let once = RunOptions { once: true, ..RunOptions::default() };
        let ran = feed.run(std::future::pending()).await;
        drop(feed);
        for settings in [&running, &stopped] {
            let Some(why) = stops else {
                drop(caught_up(settings).await);
                assert_equal(&server, &database, settings, ROWS, &statements).await;
                continue;
            };
            // Each start stops again.
            for _ in 0..2 {
                let started = following::once(settings, once.clone()).await;
                let error = started.err().unwrap_or_else(|| panic!("{statements}: goes on"));
                assert!(error.to_string().contains(why), "{statements}: {error}");
                assert!(error.what_to_do().contains("--resnapshot"), "{statements}: {}", error.what_to_do());
            }
            let resnapshot = RunOptions { resnapshot: true, ..once.clone() };
            following::once(settings, resnapshot).await.unwrap_or_else(|error| panic!("{statements}: {error}"));
            drop(caught_up(settings).await);
            assert_equal(&server, &database, settings, ROWS, &statements).await;
        }
        match (ran, stops) {
            (Ok(_), None) => {}
            (Err(error), Some(why)) => assert!(error.to_string().contains(why), "{statements}: {error}"),
            (ran, stops) => panic!("{statements}: {:?} and not {stops:?}", ran.err()),
        }
    }
}

/// Also after a stop was accepted.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_of_a_table_that_has_another_name_now_are_not_those_of_its_successor() {
    let folder = tempfile::tempdir().unwrap();
    let server = PostgresServer::start(&["fsync=off"]).unwrap();
    server.sql("test", concat!(plain!(), "CREATE PUBLICATION hoplake_p FOR ALL TABLES")).unwrap();
    let settings = settings(&server, "test", &folder.path().join("graph"), TABLE);
    drop(caught_up(&settings).await);
    let successor =
        "ALTER TABLE t RENAME TO t_old; CREATE TABLE t (LIKE t_old INCLUDING ALL); INSERT INTO t SELECT * FROM t_old";
    server.sql("test", successor).unwrap();
    server.sql("test", "INSERT INTO t_old VALUES (60, 6, 'of the old one')").unwrap();
    let once = RunOptions { once: true, ..RunOptions::default() };
    let mut position = None;
    for _ in 0..3 {
        let options = RunOptions { accepted: position.take(), ..once.clone() };
        match following::once(&settings, options).await {
            Ok(_) => break,
            Err(error) => position = Some(error.stop_note().expect("a stop").position.clone()),
        }
    }
    assert_eq!(position, None, "stops although it was accepted");
    server.sql("test", "INSERT INTO t_old VALUES (61, 6, 'later'); INSERT INTO t VALUES (62, 6, 'new')").unwrap();
    following::once(&settings, once).await.unwrap();
    assert_equal(&server, "test", &settings, ROWS, "the successor").await;
}
