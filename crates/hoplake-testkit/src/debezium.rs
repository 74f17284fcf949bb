//! A real Debezium for tests: its engine, which follows a database and writes each change as JSON, without schemas.
//!
//! **What it writes.** Rows that were there first (`"op":"r"`), then each transaction between its `BEGIN` and its `END`. Decimals
//! are text, and a `TRUNCATE` is written, which the engine leaves out by default. It writes to a file or to Kafka
//! ([`ChangeOutput`]). Options change that: they are the engine's own properties, and those of Kafka's producer with `kafka.`
//! before them.
//!
//! **Where it comes from.** The folder of jars named by `HOPLAKE_DEBEZIUM`; else the one in the shared build folder, which Maven
//! fills the first time. Java 17 or later runs it, with a small program that gives the engine its properties.
//!
//! **How it ends.** By its process id when the [`Debezium`] is dropped, so also when a test panics. [`kill`](Debezium::kill) ends
//! it at once, and [`restart`](Debezium::restart) starts it again from the offsets in its folder, which it stores once a second.
//! What it had written since comes again. It goes on within a transaction, which then has a second `BEGIN`, and an `END` that
//! counts only what came after that.

use std::fs;
use std::io;
use std::path::PathBuf;

use crate::java::JavaProgram;
use crate::kafka::LOGGER;
use crate::programs::{fetch_jars, folder_made_once};
use crate::{KafkaServer, MariaDbServer, PostgresServer};

/// The version that is known to work.
const DEBEZIUM_VERSION: &str = "3.5.0.Final";

const PROGRAM: &str = include_str!("Debezium.java");

/// It has copied what was there, or knows that it has.
const READY: &str = "Starting streaming";

/// Topics have names such as `hoplake.test.person`; that of transactions is `hoplake.transaction`.
const FIXED: [(&str, &str); 9] = [
    ("name", "hoplake"),
    ("topic.prefix", "hoplake"),
    ("database.hostname", "127.0.0.1"),
    ("offset.storage", "Debezium$Offsets"),
    ("key.converter.schemas.enable", "false"),
    ("value.converter.schemas.enable", "false"),
    ("decimal.handling.mode", "string"),
    ("provide.transaction.metadata", "true"),
    ("skipped.operations", "none"),
];

/// Everything goes to one topic, and the keys have the names of the others.
const ONE_TOPIC: [(&str, &str); 3] = [
    ("transforms", "one"),
    ("transforms.one.type", "io.debezium.transforms.ByLogicalTableRouter"),
    ("transforms.one.topic.regex", ".*"),
];

/// Where a producer writes the changes that it captures.
#[derive(Clone, Debug)]
pub enum ChangeOutput {
    /// To a file, which may be there: a line for each change, without its key.
    File(PathBuf),
    /// To Kafka, with keys, and a null after each deletion if the producer has them.
    Kafka {
        /// A server's address.
        broker: String,
        /// The topic of all tables; else each has its own, `hoplake.<database or schema>.<table>`.
        topic: Option<String>,
    },
}

impl ChangeOutput {
    /// One topic of a server.
    pub fn topic(server: &KafkaServer, topic: &str) -> Self {
        Self::Kafka { broker: server.broker(), topic: Some(topic.to_owned()) }
    }

    /// Topics of a server, one for each table.
    pub fn topics(server: &KafkaServer) -> Self {
        Self::Kafka { broker: server.broker(), topic: None }
    }
}

/// A running engine.
#[derive(Debug)]
pub struct Debezium {
    program: JavaProgram,
}

impl Debezium {
    /// Follows all tables of a database, and returns when it has copied them. Blocks for some ten seconds.
    ///
    /// # Errors
    /// If Java is not installed, the program cannot be fetched, or what it says if it ends or does not get there.
    pub fn follow_mariadb(
        server: &MariaDbServer,
        database: &str,
        output: &ChangeOutput,
        options: &[(&str, &str)],
    ) -> io::Result<Self> {
        let program = JavaProgram::new("Debezium", &jars()?)?;
        let history = program.path("history").display().to_string();
        let port = server.port().to_string();
        let connector = [
            ("connector.class", "io.debezium.connector.mariadb.MariaDbConnector"),
            ("database.port", &port),
            ("database.user", "test"),
            ("database.password", ""),
            ("database.server.id", "5401"),
            ("database.include.list", database),
            ("database.ssl.mode", "disable"),
            ("schema.history.internal", "io.debezium.storage.file.history.FileSchemaHistory"),
            ("schema.history.internal.file.filename", &history),
        ];
        Self::start(program, &connector, output, options)
    }

    /// The same of PostgreSQL, with a slot and a publication of its own.
    ///
    /// # Errors
    /// As [`Self::follow_mariadb`].
    pub fn follow_postgres(
        server: &PostgresServer,
        database: &str,
        output: &ChangeOutput,
        options: &[(&str, &str)],
    ) -> io::Result<Self> {
        let program = JavaProgram::new("Debezium", &jars()?)?;
        let port = server.port().to_string();
        let connector = [
            ("connector.class", "io.debezium.connector.postgresql.PostgresConnector"),
            ("plugin.name", "pgoutput"),
            ("database.port", &port),
            ("database.user", "postgres"),
            ("database.password", ""),
            ("database.dbname", database),
            // The server may hold the slot for a moment after the engine was killed.
            ("slot.max.retries", "100"),
            ("slot.retry.delay.ms", "200"),
        ];
        Self::start(program, &connector, output, options)
    }

    fn start(
        mut program: JavaProgram,
        connector: &[(&str, &str)],
        output: &ChangeOutput,
        options: &[(&str, &str)],
    ) -> io::Result<Self> {
        let offsets = program.path("offsets").display().to_string();
        let mut properties = FIXED.to_vec();
        properties.push(("offset.storage.file.filename", &offsets));
        properties.extend(connector);
        let file;
        match output {
            ChangeOutput::File(path) => {
                file = std::path::absolute(path)?.display().to_string();
                properties.push(("output.file", &file));
            }
            ChangeOutput::Kafka { broker, topic } => {
                properties.push(("kafka.bootstrap.servers", broker));
                if let Some(topic) = topic {
                    properties.extend(ONE_TOPIC);
                    properties.push(("transforms.one.topic.replacement", topic));
                }
            }
        }
        // The last line about a property counts.
        properties.extend(options);
        // Of the file's own characters only this one is in paths and patterns.
        let line = |(name, value): &(&str, &str)| format!("{name}={}\n", value.replace('\\', "\\\\"));
        let [source, settings] = ["Debezium.java", "properties"].map(|name| program.path(name));
        fs::write(&source, PROGRAM)?;
        fs::write(&settings, properties.iter().map(line).collect::<String>())?;
        program.argument("-Dorg.slf4j.simpleLogger.defaultLogLevel=warn");
        program.argument("-Dorg.slf4j.simpleLogger.log.io.debezium.pipeline.ChangeEventSourceCoordinator=info");
        program.argument(source).argument(settings);
        let mut engine = Self { program };
        engine.restart()?;
        Ok(engine)
    }

    /// Ends it at once.
    pub fn kill(&mut self) {
        self.program.kill();
    }

    /// Starts it again, and returns when it follows.
    ///
    /// # Errors
    /// As [`Self::follow_mariadb`].
    pub fn restart(&mut self) -> io::Result<()> {
        self.program.start(READY)
    }

    /// Returns when something is done that the engine does, such as to write a change. Blocks.
    ///
    /// # Errors
    /// What the engine says if it ends before that, or if it takes minutes; those of `is_done`.
    pub fn wait_until(&mut self, is_done: impl FnMut() -> io::Result<bool>) -> io::Result<()> {
        self.program.wait_until(is_done)
    }

    /// The id of its process.
    pub fn process_id(&self) -> Option<u32> {
        self.program.process_id()
    }
}

/// The folder of the program, fetched if need be.
fn jars() -> io::Result<PathBuf> {
    if let Some(named) = std::env::var_os("HOPLAKE_DEBEZIUM") {
        return Ok(named.into());
    }
    folder_made_once(&format!("debezium-{DEBEZIUM_VERSION}"), |folder| {
        let hint = "install Maven, or name a folder of its jars in HOPLAKE_DEBEZIUM";
        let part = |name| format!("io.debezium:debezium-{name}:{DEBEZIUM_VERSION}");
        let [engine, mariadb, postgres] = ["embedded", "connector-mariadb", "connector-postgres"].map(part);
        fetch_jars(folder, &[&engine, &mariadb, &postgres, LOGGER], hint)
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::{Value, json};

    use super::*;
    use crate::samples::{self, essence, lines};

    /// Does the changes of a sample, and more while the engine is ended.
    fn follows(engine: &mut Debezium, file: &Path, sample: &str, changes: &str, sql: impl Fn(&str)) {
        sql(changes);
        let expected: Vec<_> = sample.lines().map(essence).collect();
        engine.wait_until(|| Ok(lines(file).len() >= expected.len())).unwrap();
        let written: Vec<_> = lines(file).iter().map(|line| essence(line)).collect();
        for (number, (written, expected)) in written.iter().zip(&expected).enumerate() {
            assert_eq!(written, expected, "line {}", number + 1);
        }

        let process = engine.process_id().unwrap();
        engine.kill();
        assert!(!Path::new(&format!("/proc/{process}")).exists());
        sql("INSERT INTO person VALUES (7, 'Gus', NULL)");
        let before = lines(file).len();
        // As a process leaves its offsets and a line that is ended while it writes them.
        fs::write(engine.program.path("offsets"), "").unwrap();
        let torn = [fs::read(file).unwrap(), b"{\"before\":".to_vec()].concat();
        fs::write(file, torn).unwrap();
        engine.restart().unwrap();
        sql("DELETE FROM person WHERE id = 7");
        let has =
            |lines: &[String], op: &str| lines.iter().any(|line| line.contains("\"Gus\"") && essence(line)[0] == op);
        let is_deleted = |line: &String| essence(line)[0] == "d" && essence(line)[1]["id"] == 7;
        engine.wait_until(|| Ok(lines(file)[before..].iter().any(is_deleted))).unwrap();
        let after = &lines(file)[before..];
        assert!(has(after, "c") && after.iter().all(|line| essence(line)[0] != "r"), "{after:?}");
    }

    #[test]
    fn it_follows_mariadb_as_the_sample_says() {
        let server = MariaDbServer::start(&[]).unwrap();
        server.sql("test", samples::MARIADB_TABLES).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("changes.jsonl");
        let mut engine = Debezium::follow_mariadb(&server, "test", &ChangeOutput::File(file.clone()), &[]).unwrap();
        let sql = |statements: &str| drop(server.sql("test", statements).unwrap());
        follows(&mut engine, &file, samples::DEBEZIUM_MARIADB, samples::MARIADB_CHANGES, sql);
    }

    #[test]
    fn it_follows_postgres_as_the_sample_says() {
        let server = PostgresServer::start(&[]).unwrap();
        server.sql("test", samples::POSTGRES_TABLES).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("changes.jsonl");
        let mut engine = Debezium::follow_postgres(&server, "test", &ChangeOutput::File(file.clone()), &[]).unwrap();
        let sql = |statements: &str| drop(server.sql("test", statements).unwrap());
        follows(&mut engine, &file, samples::DEBEZIUM_POSTGRES, samples::POSTGRES_CHANGES, sql);
    }

    #[tokio::test]
    async fn it_writes_to_one_topic_or_to_one_of_each_table() {
        let kafka = KafkaServer::start().unwrap();
        let server = MariaDbServer::start(&[]).unwrap();
        server.sql("test", "CREATE TABLE a (id int PRIMARY KEY); CREATE TABLE b (id int PRIMARY KEY)").unwrap();
        server.sql("test", "INSERT INTO a VALUES (1); INSERT INTO b VALUES (2)").unwrap();
        let one = ChangeOutput::topic(&kafka, "changes");
        let _to_one = Debezium::follow_mariadb(&server, "test", &one, &[]).unwrap();
        let another = [("database.server.id", "5402"), ("tombstones.on.delete", "false")];
        let _to_each = Debezium::follow_mariadb(&server, "test", &ChangeOutput::topics(&kafka), &another).unwrap();
        server.sql("test", "DELETE FROM a; INSERT INTO b VALUES (3); UPDATE b SET id = 4 WHERE id = 3").unwrap();

        // Statements that make the tables, the copies, and three transactions, each between two records about it.
        let all = samples::keys_and_ops(&kafka, "changes", 8 + 2 + 4 + 3 + 5).await;
        let rows = |all: &[(Value, Option<String>)], table: &str| -> Vec<_> {
            let named = |(key, _): &&(Value, _)| key["__dbz__physicalTableIdentifier"].as_str() == Some(table);
            all.iter()
                .filter(named)
                .map(|(key, op)| (key["id"].as_i64().unwrap(), op.clone().unwrap_or_default()))
                .collect()
        };
        let expected = |rows: &[(i64, &str)]| rows.iter().map(|(id, op)| (*id, (*op).to_owned())).collect::<Vec<_>>();
        assert_eq!(rows(&all, "hoplake.test.a"), expected(&[(1, "r"), (1, "d"), (1, "")]));
        let moved = [(2, "r"), (3, "c"), (3, "d"), (3, ""), (4, "c")];
        assert_eq!(rows(&all, "hoplake.test.b"), expected(&moved));
        assert_eq!(all.last().unwrap().0["__dbz__physicalTableIdentifier"], "hoplake.transaction");

        let a = samples::keys_and_ops(&kafka, "hoplake.test.a", 2).await;
        assert_eq!(a, [(json!({ "id": 1 }), Some("r".to_owned())), (json!({ "id": 1 }), Some("d".to_owned()))]);
        let b = samples::keys_and_ops(&kafka, "hoplake.test.b", 4).await;
        assert_eq!(b.iter().map(|(key, _)| key["id"].as_i64().unwrap()).collect::<Vec<_>>(), [2, 3, 3, 4]);
        assert_eq!(samples::keys_and_ops(&kafka, "hoplake.transaction", 6).await.len(), 6);
    }
}
