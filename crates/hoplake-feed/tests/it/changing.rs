//! Tables that change: whatever a statement does to them, and whatever the feed does at the time, the graph is what the tables say, or
//! the feed stops until somebody decides.
//!
//! Each statement runs once, in a database of its own. One feed runs then, and another one is stopped and starts after it. The oracle is
//! the database: a graph that is copied anew. A feed that goes on has to have the same; one that stops has to stop again at each start,
//! and to have the same once all rows are compared. If somebody accepts the statement instead, it goes on at each start, and has what comes
//! later.

use std::{collections::BTreeSet, panic::AssertUnwindSafe, path::Path, sync::Arc, time::Duration};

use futures::{FutureExt, StreamExt, stream};
use hoplake_feed::{Feed, FeedError, RunOptions, Settings, followed::StopNote, source::HARMLESS_CLAUSES};
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
    /// Whether column c is gone, which a new mapping may not name.
    is_gone: bool,
}

const ROW: &str = "INSERT INTO t (id) VALUES (99)";

const fn goes_on(statement: &'static str) -> Change {
    Change { before: "", statement, after: ROW, stops: None, is_over: false, is_gone: false }
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

/// One that something else follows than a row without values.
const fn then(change: Change, after: &'static str) -> Change {
    Change { after, ..change }
}

/// One that drops the column that is not carried.
const fn drops_ignored(statement: &'static str) -> Change {
    Change { is_gone: true, ..goes_on(statement) }
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

/// Lets a feed go on over its stop, and over those that come of the same statement for other tables.
async fn accepted(settings: &Settings, first: StopNote, what: &str) {
    let mut noted = vec![first];
    loop {
        let position = noted.last().map(|note| note.position.clone());
        let mut ended = once(settings, RunOptions { accepted: position, ..RunOptions::default() }).await;
        if ended.is_ok() {
            ended = once(settings, RunOptions::default()).await;
        }
        let Err(error) = ended else { return };
        let note = error.stop_note().unwrap_or_else(|| panic!("{what}: accepted: {error}"));
        assert!(!noted.contains(note), "{what}: it stops again, though it was accepted: {error}");
        noted.push(note.clone());
    }
}

async fn check(server: &dyn Server, database: &str, folder: &Path, change: &Change) {
    let what = &*change.statement.replace("{db}", database);
    server.begin(database, change.before);
    let of = |graph: &str| settings(server, database, &folder.join(format!("{database}_{graph}")), MAPPING);
    let running = of("running");
    let stopped = of("stopped");
    let mut fresh = of("fresh");
    if change.is_gone {
        fresh.tables[0].ignore.clear();
    }
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
                // As the mapping of a new graph would be.
                let mut settings = settings.clone();
                settings.tables.clone_from(&fresh.tables);
                once(&settings, RunOptions::default()).await.unwrap_or_else(|error| panic!("{what}: {error}"));
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
                // A mapping of a table that is not there is rejected before the feed looks for a reason.
                let rejected =
                    ["the database has no table", "there is no column", "vertex was", "it has no primary key"];
                let is_gone = change.is_over && rejected.iter().any(|why| said.to_string().contains(why));
                assert!(is_gone || said.to_string().contains(why), "{what}: {said}");
                assert!(is_gone || said.what_to_do().contains("--resnapshot"), "{what}: {}", said.what_to_do());
                stopped_again(settings, said, what).await;
            }
            if change.is_over {
                return;
            }
            let note = of_stopped.stop_note().cloned();
            if let Some(note) = &note {
                accepted(&stopped, note.clone(), what).await;
                server.sql(database, "UPDATE t SET id = id + 200");
                once(&stopped, RunOptions::default()).await.unwrap_or_else(|error| panic!("{what}: accepted: {error}"));
            }
            once(&fresh, RunOptions::default()).await.unwrap_or_else(|error| panic!("{what}: {error}"));
            let expected = content(&fresh).await;
            if note.is_some() {
                let mut found = without(content(&stopped).await, &expected);
                // What the statement did to rows that are not there any more, nothing in the log says.
                found.vertices.retain(|name, _| expected.vertices.contains_key(name));
                assert!(found == expected, "{what}: accepted: graph | tables\n{}", found.difference(&expected));
            }
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
            let known = ["a", "b", "d", "x", "y", "n", "m", "rs", "re"];
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

const RANGES: &str =
    "ALTER TABLE t PARTITION BY RANGE (id) (PARTITION p0 VALUES LESS THAN (2), PARTITION p1 VALUES LESS THAN (1000))";
const HASHED: &str = "ALTER TABLE t PARTITION BY HASH (id) PARTITIONS 4";
/// Another table, with a row.
const OTHER: &str = "CREATE TABLE u LIKE t; INSERT INTO u (id) VALUES (0);";
/// The same in parts.
const OTHER_IN_PARTS: &str = "CREATE TABLE u LIKE t; INSERT INTO u (id) VALUES (5); \
    ALTER TABLE u PARTITION BY RANGE (id) (PARTITION p0 VALUES LESS THAN (1000))";
/// Another table with parts that has no row which t could have.
const OTHER_BELOW: &str =
    "CREATE TABLE u LIKE t; ALTER TABLE u PARTITION BY RANGE (id) (PARTITION p0 VALUES LESS THAN (0))";
const VERSIONED: &str = "ALTER TABLE t ADD SYSTEM VERSIONING";
const PERIOD: &str = "ALTER TABLE t ADD COLUMN rs TIMESTAMP(6) GENERATED ALWAYS AS ROW START, \
    ADD COLUMN re TIMESTAMP(6) GENERATED ALWAYS AS ROW END, ADD PERIOD FOR SYSTEM_TIME (rs, re), ADD SYSTEM VERSIONING";
const KEY_TO_MARK: &str = "UPDATE t SET a = NULL; ALTER TABLE t ADD CONSTRAINT f FOREIGN KEY (a) REFERENCES mark (id)";
const WITH_MORE: &str = "INSERT INTO t (id, more) VALUES (99, 5)";

fn changes_of_mariadb() -> Vec<Change> {
    vec![
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
        goes_on(
            "ALTER TABLE t AUTO_INCREMENT=500, AVG_ROW_LENGTH=10, CHECKSUM=1, CONNECTION='x', DELAY_KEY_WRITE=1, ENCRYPTED=NO, \
             ENCRYPTION_KEY_ID=1, INSERT_METHOD=NO, KEY_BLOCK_SIZE=0, MAX_ROWS=99, MIN_ROWS=1, PACK_KEYS=1, PAGE_CHECKSUM=1, \
             STATS_AUTO_RECALC=1, STATS_PERSISTENT=1, STATS_SAMPLE_PAGES=5, TABLE_CHECKSUM=1, TRANSACTIONAL=0",
        ),
        goes_on("ALTER TABLE t DATA DIRECTORY='/tmp', INDEX DIRECTORY='/tmp'"),
        goes_on("ALTER TABLE t PAGE_COMPRESSED=1, PAGE_COMPRESSION_LEVEL=3"),
        goes_on("ALTER TABLE t DEFAULT CHARACTER SET latin1, COLLATE latin1_bin"),
        goes_on("ALTER TABLE t CHARACTER SET latin1"),
        goes_on("ALTER TABLE t CHARSET latin1"),
        goes_on("ALTER TABLE t DISABLE KEYS, ENABLE KEYS"),
        goes_on("ALTER TABLE t ORDER BY a DESC"),
        goes_on("ALTER DATABASE {db} CHARACTER SET latin1"),
        then(goes_on("ALTER TABLE t ADD COLUMN more INT FIRST"), WITH_MORE),
        then(goes_on("ALTER TABLE t ADD COLUMN more INT AFTER id, ADD COLUMN most INT AFTER a"), WITH_MORE),
        then(goes_on("ALTER TABLE t ADD COLUMN more INT INVISIBLE"), WITH_MORE),
        goes_on("ALTER TABLE t MODIFY c INT FIRST"),
        goes_on("ALTER TABLE t MODIFY c INT INVISIBLE"),
        drops_ignored("ALTER TABLE t DROP COLUMN c"),
        goes_on("ALTER TABLE t DROP COLUMN c; ALTER TABLE t ADD COLUMN c INT"),
        stops("ALTER TABLE t MODIFY a INT AFTER b", "column a gets another type"),
        stops("ALTER TABLE t MODIFY a INT FIRST", "column a gets another type"),
        stops("ALTER TABLE t MODIFY a INT INVISIBLE", "column a gets another type"),
        after(KEY_TO_MARK, stops("ALTER TABLE t DROP FOREIGN KEY f", "foreign keys change")),
        stops("ALTER TABLE t ADD SYSTEM VERSIONING", "is not known"),
        after(VERSIONED, stops("ALTER TABLE t DROP SYSTEM VERSIONING", "is not known")),
        after(VERSIONED, goes_on("ALTER TABLE t PARTITION BY SYSTEM_TIME")),
        after(
            PERIOD,
            stops(
                "SET system_versioning_alter_history=KEEP; ALTER TABLE t DROP SYSTEM VERSIONING, DROP COLUMN rs, DROP COLUMN re",
                "is not known",
            ),
        ),
        removes(
            "DROP DATABASE {db}; CREATE DATABASE {db}; USE {db}; CREATE TABLE mark (id INT PRIMARY KEY)",
            "is dropped",
        ),
        goes_on("ALTER TABLE t ADD CONSTRAINT k CHECK (id > 0), ADD UNIQUE (id)"),
        goes_on(RANGES),
        after(
            RANGES,
            goes_on(
                "ALTER TABLE t REORGANIZE PARTITION p1 INTO (PARTITION p1 VALUES LESS THAN (50), PARTITION p2 VALUES LESS THAN (1000))",
            ),
        ),
        after(RANGES, goes_on("ALTER TABLE t ADD PARTITION (PARTITION p2 VALUES LESS THAN (2000))")),
        after(RANGES, goes_on("ALTER TABLE t ANALYZE PARTITION p0")),
        after(RANGES, goes_on("ALTER TABLE t CHECK PARTITION p0")),
        after(RANGES, goes_on("ALTER TABLE t OPTIMIZE PARTITION p0")),
        after(RANGES, goes_on("ALTER TABLE t REBUILD PARTITION p0")),
        after(RANGES, goes_on("ALTER TABLE t REPAIR PARTITION p0")),
        after(RANGES, goes_on("ALTER TABLE t REMOVE PARTITIONING")),
        after(HASHED, goes_on("ALTER TABLE t COALESCE PARTITION 2")),
        after(HASHED, goes_on("ALTER TABLE t ADD PARTITION PARTITIONS 2")),
        after(RANGES, stops("ALTER TABLE t DROP PARTITION p0", "rows of a partition are dropped")),
        after(RANGES, stops("ALTER TABLE t TRUNCATE PARTITION p0", "changes its rows as a whole")),
        after(RANGES, stops("ALTER TABLE t CONVERT PARTITION p0 TO TABLE tp", "changes its rows as a whole")),
        after(
            OTHER,
            stops(
                "ALTER TABLE t PARTITION BY RANGE (id) (PARTITION p0 VALUES LESS THAN (1000)); ALTER TABLE t EXCHANGE PARTITION p0 WITH TABLE u",
                "changes its rows as a whole",
            ),
        ),
        after(
            OTHER_IN_PARTS,
            stops("ALTER TABLE u EXCHANGE PARTITION p0 WITH TABLE t", "to a partition of another table"),
        ),
        after(
            OTHER_BELOW,
            removes(
                "ALTER TABLE u CONVERT TABLE t TO PARTITION p1 VALUES LESS THAN (1000)",
                "to a partition of another table",
            ),
        ),
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
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_statement_of_mariadb_does_is_followed_or_stops_the_feed() {
    let server = MariaDbServer::start(&[]).unwrap();
    check_all(&server, &changes_of_mariadb()).await;
}

#[test]
fn each_clause_that_is_taken_for_harmless_is_run() {
    let changes = changes_of_mariadb();
    let clauses = changes.iter().filter(|change| change.stops.is_none()).filter_map(|change| {
        let clauses = change.statement.strip_prefix("ALTER TABLE t ")?;
        Some(clauses.split(", ").filter_map(|clause| clause.split([' ', '=']).next()))
    });
    let run: BTreeSet<&str> = clauses.flatten().collect();
    let missing: Vec<_> = HARMLESS_CLAUSES.iter().filter(|word| !run.contains(**word)).collect();
    assert!(missing.is_empty(), "no statement has {missing:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_statement_of_postgres_does_is_followed_or_stops_the_feed() {
    let mood =
        "CREATE TYPE mood AS ENUM ('good', 'bad'); ALTER TABLE t ADD COLUMN mood mood; UPDATE t SET mood = 'bad';";
    let pair = "CREATE TYPE pair AS (x int, y int); ALTER TABLE t ADD COLUMN pair pair; UPDATE t SET pair = (1, 2);";
    let domain = "CREATE DOMAIN d AS int; ALTER TABLE t ADD COLUMN d d; UPDATE t SET d = 3;";
    let republished = "ALTER PUBLICATION hoplake_company DROP TABLE t; INSERT INTO t (id) VALUES (50); ALTER PUBLICATION hoplake_company ADD TABLE t";
    let changes = [
        goes_on("ALTER TABLE t ADD COLUMN more int"),
        drops_ignored("ALTER TABLE t DROP COLUMN c"),
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
        goes_on("CREATE DOMAIN d AS int; ALTER TABLE t ADD COLUMN more d; ALTER DOMAIN d SET DEFAULT 7"),
        goes_on("CREATE DOMAIN d AS int CHECK (VALUE > 0); ALTER TABLE t ADD COLUMN more d"),
        after(domain, goes_on("ALTER DOMAIN d ADD CHECK (VALUE > 0); ALTER DOMAIN d SET DEFAULT 7")),
        after(domain, goes_on("ALTER DOMAIN d RENAME TO e")),
        // An ignored column may be anything.
        goes_on("ALTER TABLE t ALTER c TYPE bigint"),
        goes_on("ALTER TABLE t ALTER c TYPE text USING c * 2"),
        // All rows are written again, and none has a value in the new column.
        goes_on("VACUUM FULL t; ALTER TABLE t ADD COLUMN more int; VACUUM FULL t"),
        goes_on("UPDATE t SET a = NULL; ALTER TABLE t ADD CONSTRAINT f FOREIGN KEY (a) REFERENCES mark (id)"),
        after(
            "UPDATE t SET a = NULL; ALTER TABLE t ADD CONSTRAINT f FOREIGN KEY (a) REFERENCES mark (id);",
            goes_on("ALTER TABLE t DROP CONSTRAINT f"),
        ),
        // PostgreSQL rejects `SET UNLOGGED` of a table that a publication names.
        goes_on("ALTER TABLE t SET LOGGED"),
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
        stops(
            "ALTER TABLE t ADD COLUMN more timestamptz DEFAULT clock_timestamp(); ALTER TABLE t ALTER more DROP DEFAULT",
            "column more is new",
        ),
        stops(
            "ALTER TABLE t ADD COLUMN more int DEFAULT 5; VACUUM FULL t; ALTER TABLE t ALTER more DROP DEFAULT",
            "column more is new",
        ),
        stops("CREATE DOMAIN d AS int DEFAULT 5; ALTER TABLE t ADD COLUMN more d", "column more is new"),
        stops(
            "CREATE DOMAIN d AS float8 DEFAULT random(); ALTER TABLE t ADD COLUMN more d; ALTER DOMAIN d DROP DEFAULT",
            "column more is new",
        ),
        stops(
            "ALTER TABLE t RENAME TO u; INSERT INTO u (id) VALUES (50); ALTER TABLE u RENAME TO t",
            "it had the name public.u",
        ),
        stops(
            "CREATE SCHEMA s; ALTER TABLE t SET SCHEMA s; INSERT INTO s.t (id) VALUES (50); ALTER TABLE s.t SET SCHEMA public",
            "it had the name s.t",
        ),
        // Not a schema's: then a feed that runs has the rows under the name that the table had, and one that begins does not.
        // Nothing was written under the other name.
        goes_on("ALTER TABLE t RENAME TO u; ALTER TABLE u RENAME TO t"),
        retypes("ALTER TABLE t DROP CONSTRAINT t_pkey, ADD PRIMARY KEY (id, m)", "its primary key was changed"),
        retypes("ALTER TABLE t DROP CONSTRAINT t_pkey", "its primary key was changed"),
        goes_on("ALTER TABLE t DROP CONSTRAINT t_pkey, ADD PRIMARY KEY (id)"),
        stops(
            "DROP PUBLICATION hoplake_company; CREATE PUBLICATION hoplake_company FOR TABLE t, mark",
            "publication was changed",
        ),
        removes(
            "DROP SCHEMA public CASCADE; CREATE SCHEMA public; CREATE TABLE mark (id int PRIMARY KEY)",
            "another table has its name",
        ),
        after(domain, stops("ALTER TABLE t ALTER d TYPE int", "column d has another type")),
        after(domain, stops("DROP DOMAIN d CASCADE", "column d was dropped")),
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
        PostgresServer::start(&["fsync=off", "max_replication_slots=400", "max_wal_senders=60", "max_connections=200"])
            .unwrap();
    check_all(&server, &changes).await;
}

/// Vertices and edges whose foreign keys have each kind of rule.
const FAMILY: &str = "
CREATE TABLE parent (id int PRIMARY KEY, name text);
CREATE TABLE child (id int PRIMARY KEY, parent int REFERENCES parent ON DELETE CASCADE ON UPDATE CASCADE);
CREATE TABLE other (id int PRIMARY KEY, parent int REFERENCES parent ON DELETE SET NULL ON UPDATE SET NULL);
CREATE TABLE strict (id int PRIMARY KEY, parent int CONSTRAINT f REFERENCES parent DEFERRABLE INITIALLY DEFERRED);
CREATE TABLE link (
  parent int REFERENCES parent ON DELETE CASCADE, child int REFERENCES child ON DELETE CASCADE, PRIMARY KEY (parent, child)
);
INSERT INTO parent VALUES (1, 'a'), (2, 'b'), (3, 'c');
INSERT INTO child VALUES (1, 1), (2, 2), (3, NULL);
INSERT INTO other VALUES (1, 1), (2, 2);
INSERT INTO strict VALUES (1, 1), (2, 2);
INSERT INTO link VALUES (1, 1), (2, 2), (3, 1);
CREATE PUBLICATION hoplake_company FOR ALL TABLES;
";

const FAMILY_MAPPING: &str = "
[[table]]
name = 'parent'
vertex = { label = 'parent' }
[[table]]
name = 'child'
vertex = { label = 'child' }
edges = [{ label = 'of', columns = 'parent', to = 'parent' }]
[[table]]
name = 'other'
vertex = { label = 'other' }
edges = [{ label = 'of', columns = 'parent', from = 'parent' }]
[[table]]
name = 'strict'
vertex = { label = 'strict' }
edges = [{ label = 'of', columns = 'parent', to = 'parent' }]
[[table]]
name = 'link'
[table.edge]
label = 'link'
source = { label = 'parent', columns = 'parent' }
target = { label = 'child', columns = 'child' }
";

/// PostgreSQL's log does not say whether a session followed the rules of foreign keys, and has what the rules did.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_that_were_deleted_without_rules_and_come_back_have_their_edges() {
    let folder = tempfile::tempdir().unwrap();
    let server = PostgresServer::start(&["fsync=off", "max_replication_slots=40"]).unwrap();
    server.sql("test", FAMILY).unwrap();
    let of = |graph: &str| settings_of(&server.url("test"), &folder.path().join(graph), FAMILY_MAPPING);
    let settings = of("graph");
    once(&settings, RunOptions::default()).await.unwrap();
    let replica = |statements: &str| format!("SET session_replication_role = replica; {statements}");
    for (number, statements) in [
        replica("BEGIN; DELETE FROM parent; INSERT INTO parent VALUES (1, 'x'), (2, 'y'), (3, 'z'); COMMIT"),
        // In two, of which the feed sees each.
        replica("DELETE FROM parent WHERE id IN (1, 2)"),
        replica("INSERT INTO parent VALUES (1, 'again'), (2, 'again')"),
        replica("DELETE FROM child"),
        replica("INSERT INTO child VALUES (1, 1), (2, 2), (3, NULL)"),
        // By another key.
        replica("UPDATE parent SET id = 20 WHERE id = 2"),
        replica("UPDATE parent SET id = 2 WHERE id = 20"),
        // What still names nothing changes otherwise, or goes.
        replica(
            "DELETE FROM parent WHERE id = 3; UPDATE strict SET id = 8 WHERE id = 1; DELETE FROM link WHERE parent = 3",
        ),
        replica("INSERT INTO parent VALUES (3, 'late')"),
        // A foreign key that is gone while the feed runs.
        "ALTER TABLE strict DROP CONSTRAINT f; DELETE FROM parent WHERE id = 2".to_owned(),
        "INSERT INTO parent VALUES (2, 'b')".to_owned(),
        "ALTER TABLE strict ADD CONSTRAINT f FOREIGN KEY (parent) REFERENCES parent".to_owned(),
        // And what follows the rules does so as before.
        "UPDATE parent SET id = 30 WHERE id = 3; DELETE FROM strict WHERE id = 8; DELETE FROM parent WHERE id = 1"
            .to_owned(),
        "INSERT INTO parent VALUES (1, 'new'); INSERT INTO child VALUES (1, 1); INSERT INTO other VALUES (9, 1)"
            .to_owned(),
        "UPDATE parent SET id = 10 WHERE id = 1".to_owned(),
        "TRUNCATE parent CASCADE".to_owned(),
    ]
    .into_iter()
    .enumerate()
    {
        server.sql("test", &statements).unwrap_or_else(|error| panic!("{statements}: {error}"));
        once(&settings, RunOptions::default()).await.unwrap_or_else(|error| panic!("{statements}: {error}"));
        // A first copy would reject rows that name none, so its edges wait for them.
        let mut fresh = of(&format!("fresh_{number}"));
        for table in &mut fresh.tables {
            table.edges.iter_mut().for_each(|edge| edge.missing = Some(hoplake_feed::Missing::Wait));
            if let Some(edge) = &mut table.edge {
                edge.missing = Some(hoplake_feed::Missing::Wait);
            }
        }
        once(&fresh, RunOptions::default()).await.unwrap_or_else(|error| panic!("{statements}: {error}"));
        let found = content(&settings).await;
        let expected = content(&fresh).await;
        assert!(found == expected, "{statements}: graph | tables\n{}", found.difference(&expected));
    }
}
