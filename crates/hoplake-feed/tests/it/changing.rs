//! Tables that change: whatever a statement does to them, and whatever the feed does at the time, the graph is what the tables say, or
//! the feed stops until somebody decides.
//!
//! Each statement runs once, in a database of its own. One feed runs then, and another one is stopped and starts after it. The oracle is
//! the database: a graph that is copied anew. A feed that goes on has to have the same; one that stops has to stop again at each start,
//! and to have the same once all rows are compared.

use std::{panic::AssertUnwindSafe, path::Path, sync::Arc, time::Duration};

use futures::{FutureExt, StreamExt, stream};
use hoplake_feed::{Feed, FeedError, RunOptions, Settings};
use hoplake_testkit::{MariaDbServer, PostgresServer};
use tokio::sync::Notify;

use crate::{
    following::{content, once, settings_of},
    model::Model,
};

/// A statement: what is there before it and after it, and whether the feed goes on over it.
struct Change {
    before: &'static str,
    statement: &'static str,
    after: &'static str,
    /// What the feed says if it stops.
    stops: Option<&'static str>,
    /// Whether no graph can be made of it by this mapping, or only a new one, since a property has another type.
    is_over: bool,
}

const ROW: &str = "INSERT INTO t (id) VALUES (99)";

const fn goes_on(statement: &'static str) -> Change {
    Change { before: "", statement, after: ROW, stops: None, is_over: false }
}

const fn stops(statement: &'static str, why: &'static str) -> Change {
    Change { stops: Some(why), ..goes_on(statement) }
}

/// One that this mapping does not outlive.
const fn retypes(statement: &'static str, why: &'static str) -> Change {
    Change { is_over: true, ..stops(statement, why) }
}

/// One that no row follows.
const fn without_row(change: Change) -> Change {
    Change { after: "", ..change }
}

/// One after which the table is not there.
const fn removes(statement: &'static str, why: &'static str) -> Change {
    Change { is_over: true, ..without_row(stops(statement, why)) }
}

const fn after(before: &'static str, change: Change) -> Change {
    Change { before, ..change }
}

const TABLES: &str =
    "CREATE TABLE t (id INT PRIMARY KEY, a INT, b VARCHAR(20), c INT, x INT, y INT, n NUMERIC(5,2), m INT DEFAULT 0);
    CREATE TABLE mark (id INT PRIMARY KEY);
    INSERT INTO t VALUES (1, 10, 'x', 5, 7, 8, 1.25, 0), (2, 20, 'y', 6, 8, 7, 2.50, 0);";

/// Column c is not carried.
const MAPPING: &str = "
[[table]]
name = 't'
ignore = ['c']
vertex = { label = 'T' }
[[table]]
name = 'mark'
vertex = { label = 'Mark' }
";

trait Server: Sync {
    /// Makes a database with its tables.
    fn begin(&self, database: &str, before: &str);
    fn sql(&self, database: &str, statements: &str);
    fn url(&self, database: &str) -> String;
}

impl Server for MariaDbServer {
    fn begin(&self, database: &str, before: &str) {
        MariaDbServer::sql(self, "test", &format!("CREATE DATABASE {database}")).unwrap();
        MariaDbServer::sql(self, database, &format!("{TABLES}{before}")).unwrap();
    }

    fn sql(&self, database: &str, statements: &str) {
        MariaDbServer::sql(self, database, statements).unwrap_or_else(|error| panic!("{statements}: {error}"));
    }

    fn url(&self, database: &str) -> String {
        MariaDbServer::url(self, database)
    }
}

impl Server for PostgresServer {
    fn begin(&self, database: &str, before: &str) {
        PostgresServer::sql(self, "test", &format!("CREATE DATABASE {database}")).unwrap();
        let publication = "CREATE PUBLICATION hoplake_company FOR TABLE t, mark;";
        PostgresServer::sql(self, database, &format!("{TABLES}{before}{publication}")).unwrap();
    }

    fn sql(&self, database: &str, statements: &str) {
        PostgresServer::sql(self, database, statements).unwrap_or_else(|error| panic!("{statements}: {error}"));
    }

    fn url(&self, database: &str) -> String {
        PostgresServer::url(self, database)
    }
}

fn settings(server: &dyn Server, database: &str, graph: &Path, mapping: &str) -> Settings {
    settings_of(&server.url(database), graph, mapping)
}

/// Why a feed does not go on, which has to be the same at each start.
async fn stopped_again(settings: &Settings, said: &FeedError, what: &str) {
    for _ in 0..2 {
        match once(settings, RunOptions::default()).await {
            Ok(_) => panic!("{what}: the next start goes on over: {said}"),
            Err(error) => assert_eq!(error.to_string(), said.to_string(), "{what}"),
        }
    }
}

async fn check(server: &dyn Server, database: &str, folder: &Path, change: &Change) {
    let what = change.statement;
    server.begin(database, change.before);
    let of = |graph: &str| settings(server, database, &folder.join(format!("{database}_{graph}")), MAPPING);
    let (running, stopped, fresh) = (of("running"), of("stopped"), of("fresh"));
    let mut feed = Feed::open(running.clone(), RunOptions::default(), Arc::new(())).await.unwrap();
    once(&stopped, RunOptions::default()).await.unwrap();
    let stop = Arc::new(Notify::new());
    let of_feed = stop.clone();
    let mut task = tokio::spawn(async move { feed.run(of_feed.notified()).await });
    // It has read something.
    server.sql(database, "INSERT INTO t (id) VALUES (98); INSERT INTO mark VALUES (1)");
    let has = |label: &'static str| {
        let settings = running.clone();
        async move {
            while !content(&settings).await.vertices.contains_key(label) {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(60), has("Mark:1")).await.expect("the feed follows");
    server.sql(database, what);
    server.sql(database, &format!("{};INSERT INTO mark VALUES (2)", change.after));
    let limit = Duration::from_secs(60);
    match change.stops {
        None => {
            tokio::select! {
                ended = &mut task => panic!("{what}: the feed that runs stops: {}", ended.unwrap().unwrap_err()),
                found = tokio::time::timeout(limit, has("Mark:2")) => found.expect("the feed follows"),
            }
            stop.notify_one();
            task.await.unwrap().unwrap_or_else(|error| panic!("{what}: {error}"));
            let checked = [&running, &stopped];
            once(&fresh, RunOptions::default()).await.unwrap_or_else(|error| panic!("{what}: {error}"));
            let expected = content(&fresh).await;
            for settings in checked {
                // Twice: what was stopped may see it at any start.
                for _ in 0..2 {
                    once(settings, RunOptions::default())
                        .await
                        .unwrap_or_else(|error| panic!("{what}: at a start: {error}"));
                }
                let found = content(settings).await;
                assert!(found == expected, "{what}: graph | tables\n{}", found.difference(&expected));
            }
        }
        Some(why) => {
            let ended = tokio::time::timeout(limit, task)
                .await
                .unwrap_or_else(|_| panic!("{what}: the feed that runs goes on"));
            let of_running = ended.unwrap().unwrap_err();
            let of_stopped =
                once(&stopped, RunOptions::default()).await.err().unwrap_or_else(|| panic!("{what}: a start goes on"));
            for (settings, said) in [(&running, &of_running), (&stopped, &of_stopped)] {
                // A mapping of a table that is not there is refused before the feed looks for a reason.
                let refused = ["the database has no table", "there is no column", "vertex was"];
                let is_gone = change.is_over && refused.iter().any(|why| said.to_string().contains(why));
                assert!(is_gone || said.to_string().contains(why), "{what}: {said}");
                assert!(is_gone || said.what_to_do().contains("--resnapshot"), "{what}: {}", said.what_to_do());
                stopped_again(settings, said, what).await;
            }
            if change.is_over {
                return;
            }
            once(&fresh, RunOptions::default()).await.unwrap_or_else(|error| panic!("{what}: {error}"));
            let expected = content(&fresh).await;
            for settings in [&running, &stopped] {
                let options = RunOptions { resnapshot: true, ..RunOptions::default() };
                once(settings, options).await.unwrap_or_else(|error| panic!("{what}: {error}"));
                let found = content(settings).await;
                let found = without(found, &expected);
                assert!(
                    found == expected,
                    "{what}: after a resnapshot: graph | tables\n{}",
                    found.difference(&expected)
                );
                // The stop is over.
                once(settings, RunOptions::default()).await.unwrap_or_else(|error| panic!("{what}: {error}"));
            }
        }
    }
}

/// Without properties of columns that are gone: nobody says that they are not someone else's.
fn without(mut model: Model, expected: &Model) -> Model {
    for (name, properties) in &mut model.vertices {
        if let Some(expected) = expected.vertices.get(name) {
            let known = ["a", "b", "x", "y", "n", "m"];
            properties.retain(|property, _| expected.contains_key(property) || !known.contains(&property.as_str()));
        }
    }
    model
}

async fn check_all(server: &dyn Server, changes: &[Change]) {
    let folder = tempfile::tempdir().unwrap();
    let only = std::env::var("HOPLAKE_FEED_STATEMENT").unwrap_or_default();
    let chosen = changes.iter().enumerate().filter(|(_, change)| change.statement.contains(&only));
    let checks = chosen.map(|(number, change)| {
        let folder = folder.path();
        let database = format!("c{number}");
        async move {
            let checked = AssertUnwindSafe(check(server, &database, folder, change)).catch_unwind().await;
            checked.is_err().then_some(change.statement)
        }
    });
    // All that fail, and not only the first one.
    let failed: Vec<&str> = stream::iter(checks).buffer_unordered(4).filter_map(std::future::ready).collect().await;
    assert!(failed.is_empty(), "{failed:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_statement_of_mariadb_does_is_followed_or_stops_the_feed() {
    let parts = "ALTER TABLE t PARTITION BY RANGE (id) (PARTITION p0 VALUES LESS THAN (2), PARTITION p1 VALUES LESS THAN (1000))";
    let changes = [
        goes_on("ALTER TABLE t ADD COLUMN more INT"),
        goes_on("ALTER TABLE t ADD COLUMN (more INT, most TEXT), ALGORITHM=INPLACE, LOCK=NONE"),
        goes_on("ALTER TABLE t ADD INDEX i (a)"),
        goes_on("DROP INDEX IF EXISTS i ON t"),
        goes_on("CREATE INDEX i ON t (b)"),
        after("CREATE INDEX i ON t (b);", goes_on("ALTER TABLE t RENAME INDEX i TO j")),
        goes_on("ALTER TABLE t COMMENT='drop column a'"),
        goes_on("ALTER TABLE t ALTER COLUMN a SET DEFAULT 5"),
        goes_on("ALTER TABLE t ENGINE=InnoDB"),
        goes_on("ALTER TABLE t FORCE, ALGORITHM=INPLACE"),
        goes_on("OPTIMIZE TABLE t"),
        goes_on("ANALYZE TABLE t"),
        goes_on("ALTER TABLE t ROW_FORMAT=DYNAMIC"),
        goes_on("ALTER TABLE t ADD CONSTRAINT k CHECK (id > 0), ADD UNIQUE (id)"),
        goes_on(parts),
        goes_on("CREATE TRIGGER g AFTER INSERT ON mark FOR EACH ROW UPDATE t SET a = 77 WHERE id = 1"),
        goes_on("TRUNCATE TABLE t"),
        goes_on(
            "CREATE TABLE other (id INT PRIMARY KEY, a INT); ALTER TABLE other RENAME COLUMN a TO aa; DROP TABLE other",
        ),
        goes_on(
            "CREATE DATABASE o17; CREATE TABLE o17.t (id INT, a INT); ALTER TABLE o17.t DROP COLUMN a; DROP DATABASE o17",
        ),
        goes_on(
            "CREATE DATABASE o18; CREATE TABLE o18.t (id INT); USE o18; SET binlog_format=STATEMENT; INSERT INTO t VALUES (1)",
        ),
        goes_on("ALTER TABLE t MODIFY c BIGINT"),
        stops("ALTER TABLE t RENAME COLUMN a TO aa", "column a is renamed to aa"),
        retypes("ALTER TABLE t RENAME COLUMN c TO cc", "column c is renamed to cc"),
        stops("ALTER TABLE t RENAME COLUMN x TO y, RENAME COLUMN y TO x", "column x is renamed"),
        stops("ALTER TABLE t CHANGE A aa INT", "column A becomes aa"),
        stops("ALTER TABLE t MODIFY a BIGINT", "column a gets another type"),
        retypes("ALTER TABLE t MODIFY a VARCHAR(20)", "column a gets another type"),
        stops("ALTER TABLE t DROP COLUMN a", "column a is dropped"),
        stops("SET STATEMENT max_statement_time=60 FOR ALTER TABLE t DROP a", "column a is dropped"),
        stops("/*!40000 ALTER TABLE t DROP a */", "column a is dropped"),
        stops("ALTER TABLE t DROP COLUMN a; ALTER TABLE t ADD COLUMN a INT", "column a is dropped"),
        stops("ALTER TABLE t ADD COLUMN more INT; ALTER TABLE t DROP COLUMN more", "column more is dropped"),
        without_row(stops("ALTER TABLE t ADD COLUMN more INT NOT NULL", "column more is added")),
        stops("ALTER TABLE t ADD COLUMN more INT DEFAULT 7", "column more is added"),
        removes("ALTER TABLE t RENAME TO told", "is renamed"),
        removes("RENAME TABLE t TO told", "is renamed"),
        removes("DROP TABLE t", "is dropped"),
        stops("CREATE TABLE tn LIKE t; INSERT INTO tn (id) VALUES (7); RENAME TABLE t TO told, tn TO t", "is renamed"),
        stops("CREATE OR REPLACE TABLE t (id INT PRIMARY KEY, a INT, c INT)", "is replaced"),
        stops("ALTER TABLE t CONVERT TO CHARACTER SET latin1", "another character set"),
        retypes("ALTER TABLE t DROP PRIMARY KEY, ADD PRIMARY KEY (id, m)", "primary key changes"),
        after(
            "UPDATE t SET a = NULL;",
            stops("ALTER TABLE t ADD CONSTRAINT f FOREIGN KEY (a) REFERENCES mark (id)", "foreign keys change"),
        ),
        stops("SET binlog_format=STATEMENT; INSERT INTO t (id) VALUES (50)", "in place of rows"),
    ];
    let server = MariaDbServer::start(&[]).unwrap();
    check_all(&server, &changes).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_statement_of_postgres_does_is_followed_or_stops_the_feed() {
    let mood =
        "CREATE TYPE mood AS ENUM ('good', 'bad'); ALTER TABLE t ADD COLUMN mood mood; UPDATE t SET mood = 'bad';";
    let pair = "CREATE TYPE pair AS (x int, y int); ALTER TABLE t ADD COLUMN pair pair; UPDATE t SET pair = (1, 2);";
    let republished = "ALTER PUBLICATION hoplake_company DROP TABLE t; INSERT INTO t (id) VALUES (50); ALTER PUBLICATION hoplake_company ADD TABLE t";
    let changes = [
        goes_on("ALTER TABLE t ADD COLUMN more int"),
        goes_on("COMMENT ON TABLE t IS 'x'; COMMENT ON COLUMN t.a IS 'y'"),
        goes_on("CREATE INDEX i ON t (a)"),
        goes_on("DROP INDEX IF EXISTS i"),
        goes_on("ALTER TABLE t ALTER a SET DEFAULT 5"),
        goes_on("ALTER TABLE t ALTER m SET DEFAULT 5, ALTER m DROP DEFAULT"),
        goes_on("ALTER TABLE t ALTER a SET STATISTICS 500, ALTER b SET STORAGE EXTERNAL"),
        goes_on("ALTER TABLE t ADD CONSTRAINT k CHECK (id > 0), ADD CONSTRAINT u UNIQUE (id)"),
        goes_on("ALTER TABLE t RENAME CONSTRAINT t_pkey TO tkey"),
        goes_on("ALTER TABLE t SET (fillfactor = 70)"),
        goes_on("ALTER TABLE t REPLICA IDENTITY FULL"),
        goes_on("VACUUM FULL t"),
        goes_on("CLUSTER t USING t_pkey"),
        goes_on("ANALYZE t"),
        goes_on("CREATE ROLE someone; ALTER TABLE t OWNER TO someone; GRANT SELECT ON t TO someone"),
        goes_on("TRUNCATE t"),
        goes_on("CREATE TABLE other (id int PRIMARY KEY, a int); ALTER TABLE other RENAME a TO aa; DROP TABLE other"),
        goes_on("ALTER TABLE t ALTER b TYPE varchar(40)"),
        goes_on("ALTER TABLE t ALTER b TYPE text"),
        goes_on("ALTER TABLE t ALTER n TYPE numeric(9,2)"),
        after(mood, goes_on("ALTER TYPE mood ADD VALUE 'so so' BEFORE 'bad'")),
        stops("ALTER TABLE t RENAME a TO aa", "column a is renamed to aa"),
        without_row(stops("ALTER TABLE t RENAME b TO bb", "column b is renamed to bb")),
        retypes("ALTER TABLE t RENAME c TO cc", "column c is renamed to cc"),
        stops(
            "ALTER TABLE t RENAME x TO z; ALTER TABLE t RENAME y TO x; ALTER TABLE t RENAME z TO y",
            "column x is renamed to y",
        ),
        stops("ALTER TABLE t ALTER b TYPE text USING upper(b)", "column b was changed"),
        stops("ALTER TABLE t ALTER b TYPE varchar(20) USING upper(b)", "column b was changed"),
        stops("ALTER TABLE t ALTER a TYPE bigint USING a * 100", "column a has another type"),
        stops("ALTER TABLE t ALTER a TYPE int USING a * 100", "column a was changed"),
        retypes("ALTER TABLE t ALTER a TYPE text", "column a has another type"),
        stops("ALTER TABLE t ALTER n TYPE numeric(8,4)", "column n has another type"),
        stops("ALTER TABLE t ALTER n TYPE numeric(5,1)", "column n has another type"),
        stops("ALTER TABLE t DROP COLUMN a", "column a was dropped or renamed"),
        stops("ALTER TABLE t DROP COLUMN a; ALTER TABLE t ADD COLUMN a int", "column a is another column"),
        stops("ALTER TABLE t ADD COLUMN more int DEFAULT 5", "column more is new"),
        stops("ALTER TABLE t ADD COLUMN more timestamptz DEFAULT clock_timestamp()", "column more is new"),
        stops("ALTER TABLE t ADD COLUMN more serial", "column more is new"),
        removes("ALTER TABLE t RENAME TO told", "no table has its name"),
        removes("DROP TABLE t", "no table has its name"),
        removes("CREATE SCHEMA s; ALTER TABLE t SET SCHEMA s", "no table has its name"),
        stops(
            "CREATE TABLE tn (LIKE t INCLUDING ALL); ALTER TABLE t RENAME TO told; ALTER TABLE tn RENAME TO t; ALTER PUBLICATION hoplake_company ADD TABLE t",
            "another table",
        ),
        stops(republished, "publication was changed"),
        after(mood, stops("ALTER TYPE mood RENAME VALUE 'bad' TO 'worse'", "column mood has another type")),
        after(pair, goes_on("ALTER TYPE pair RENAME ATTRIBUTE y TO z")),
        after(pair, stops("ALTER TYPE pair ADD ATTRIBUTE z int", "column pair has another type")),
    ];
    let server =
        PostgresServer::start(&["fsync=off", "max_replication_slots=200", "max_wal_senders=60", "max_connections=200"])
            .unwrap();
    check_all(&server, &changes).await;
}
