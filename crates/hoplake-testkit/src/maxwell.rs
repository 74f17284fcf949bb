//! A real Maxwell for tests, which follows a MariaDB and writes each change as JSON, to a file or to Kafka ([`ChangeOutput`]).
//!
//! **What it needs.** It takes MariaDB for MySQL, so the server has to be started with [`Maxwell::SERVER_OPTIONS`].
//!
//! **What it gets wrong.** It writes nothing of a `TRUNCATE`. It writes another time for one that is negative or longer than a
//! day; its bootstrap fails at those, and reverses the bytes of `BIT`. It does not know the types `uuid` and `inet6`, nor the
//! charset `utf8mb3`.
//!
//! **Where it comes from.** The folder of jars named by `HOPLAKE_MAXWELL`, with a class that Java 17 lacks (below); else the one
//! in the shared build folder, which Maven fills the first time. Java 17 or later runs it, and compiles that class.
//!
//! **How it ends.** By its process id when the [`Maxwell`] is dropped, so also when a test panics. [`kill`](Maxwell::kill) ends
//! it at once, and [`restart`](Maxwell::restart) starts it again from the position that it keeps in the database `maxwell`. What
//! it had written behind it comes again, by whole transactions.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::java::JavaProgram;
use crate::programs::{explain, fetch_jars, folder_made_once, run};
use crate::{ChangeOutput, MariaDbServer};

/// The version that is known to work.
const MAXWELL_VERSION: &str = "1.22.6";

const READY: &str = "Binlog connected.";

/// It loads the class of an engine for scripts that left Java with version 15, also where it runs none.
const LEFT_JAVA: &str = "package jdk.nashorn.api.scripting; public class ScriptObjectMirror {}";

/// It may read and follow everything, and write to its own database. Its client of the binlog ends without a password.
const USER: &str = "
CREATE USER IF NOT EXISTS maxwell@127.0.0.1 IDENTIFIED BY 'secret';
GRANT SELECT, REPLICATION CLIENT, REPLICATION SLAVE ON *.* TO maxwell@127.0.0.1;
GRANT ALL ON maxwell.* TO maxwell@127.0.0.1;
";

/// The first two are its own; with the third the charset `utf8` of its own tables is one that it knows.
const CONNECTION: &str = "zeroDateTimeBehavior=convertToNull&connectTimeout=5000&sessionVariables=old_mode=''";

/// A running Maxwell.
#[derive(Debug)]
pub struct Maxwell {
    program: JavaProgram,
}

impl Maxwell {
    /// Options for [`MariaDbServer::start`]: no names of columns in the log, at which its client fails; a version of MySQL that
    /// has fractions of seconds; no statements in the log, at which it warns.
    pub const SERVER_OPTIONS: [&str; 3] =
        ["--binlog-row-metadata=NO_LOG", "--version=5.7.10-MariaDB", "--binlog-annotate-row-events=OFF"];

    /// Follows all tables of a database from now on, and returns when it does. Blocks for some ten seconds. The options are those
    /// of its command line.
    ///
    /// # Errors
    /// If the server was not started with the options that it needs, if there is no Java, if the program cannot be fetched, or
    /// what it says if it ends or does not get there.
    pub fn follow(server: &MariaDbServer, database: &str, output: &ChangeOutput, options: &[&str]) -> io::Result<Self> {
        if server.sql("", "SELECT @@binlog_row_metadata, @@version")?.trim() != "NO_LOG\t5.7.10-MariaDB" {
            return Err(explain("Maxwell loses rows: start MariaDB with Maxwell::SERVER_OPTIONS".to_owned()));
        }
        server.sql("", USER)?;
        let mut program = JavaProgram::new("Maxwell", &jars()?)?;
        program.argument("com.zendesk.maxwell.Maxwell");
        let fixed = ["--host=127.0.0.1", "--user=maxwell", "--password=secret", "--output_ddl=true"];
        let columns =
            ["--output_binlog_position=true", "--output_primary_keys=true", "--output_primary_key_columns=true"];
        for option in fixed.into_iter().chain(columns) {
            program.argument(option);
        }
        program.argument(format!("--port={}", server.port()));
        program.argument(format!("--jdbc_options={CONNECTION}"));
        program.argument(format!("--filter=exclude: *.*, include: {database}.*"));
        match output {
            ChangeOutput::File(path) => {
                program.argument("--producer=file");
                program.argument(format!("--output_file={}", std::path::absolute(path)?.display()));
            }
            ChangeOutput::Kafka { broker, topic } => {
                program.argument("--producer=kafka").argument(format!("--kafka.bootstrap.servers={broker}"));
                let topic = topic.as_deref().unwrap_or("hoplake.%{database}.%{table}");
                program.argument(format!("--kafka_topic={topic}"));
            }
        }
        for option in options {
            program.argument(*option);
        }
        let mut maxwell = Self { program };
        maxwell.restart()?;
        Ok(maxwell)
    }

    /// Has it write all rows of tables, and returns when it has. The rows by which it is asked to are in its output, too.
    ///
    /// # Errors
    /// What the database says, or Maxwell if it ends before that or takes minutes.
    pub fn bootstrap(&mut self, server: &MariaDbServer, database: &str, tables: &[&str]) -> io::Result<()> {
        let rows: Vec<_> = tables.iter().map(|table| format!("('{database}', '{table}')")).collect();
        let ask = format!("INSERT INTO bootstrap (database_name, table_name) VALUES {}", rows.join(", "));
        server.sql("maxwell", &ask)?;
        let count_left = "SELECT count(*) FROM bootstrap WHERE NOT is_complete";
        self.wait_until(|| Ok(server.sql("maxwell", count_left)?.trim() == "0"))
    }

    /// Ends it at once.
    pub fn kill(&mut self) {
        self.program.kill();
    }

    /// Starts it again, and returns when it follows.
    ///
    /// # Errors
    /// As [`Self::follow`].
    pub fn restart(&mut self) -> io::Result<()> {
        self.program.start(READY)
    }

    /// Returns when something is done that it does, such as to write a change. Blocks.
    ///
    /// # Errors
    /// What it says if it ends before that, or if it takes minutes; those of `is_done`.
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
    if let Some(named) = std::env::var_os("HOPLAKE_MAXWELL") {
        return Ok(named.into());
    }
    folder_made_once(&format!("maxwell-{MAXWELL_VERSION}"), fetch)
}

fn fetch(folder: &Path) -> io::Result<()> {
    let hint = "install Java with its compiler and Maven, or name a folder of its jars in HOPLAKE_MAXWELL";
    fetch_jars(folder, &[&format!("com.zendesk:maxwell:{MAXWELL_VERSION}")], hint)?;
    let source = folder.join("ScriptObjectMirror.java");
    fs::write(&source, LEFT_JAVA)?;
    run(Command::new("javac").arg("-d").arg(folder).arg(&source), hint)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::KafkaServer;
    use crate::samples::{self, essence, keys_and_ops, lines};

    #[test]
    fn it_follows_as_the_sample_says() {
        let unfit = MariaDbServer::start(&[]).unwrap();
        let output = ChangeOutput::File("unused".into());
        let rejected = Maxwell::follow(&unfit, "test", &output, &[]).unwrap_err().to_string();
        assert!(rejected.contains("SERVER_OPTIONS"), "{rejected}");
        drop(unfit);

        let server = MariaDbServer::start(&Maxwell::SERVER_OPTIONS).unwrap();
        server.sql("test", samples::MARIADB_TABLES).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("changes.jsonl");
        let mut maxwell = Maxwell::follow(&server, "test", &ChangeOutput::File(file.clone()), &[]).unwrap();
        maxwell.bootstrap(&server, "test", &["kinds", "person", "member", "visit"]).unwrap();
        server.sql("test", samples::MARIADB_CHANGES).unwrap();
        let expected: Vec<_> = samples::MAXWELL.lines().map(essence).collect();
        maxwell.wait_until(|| Ok(lines(&file).len() >= expected.len())).unwrap();
        let written: Vec<_> = lines(&file).iter().map(|line| essence(line)).collect();
        for (number, (written, expected)) in written.iter().zip(&expected).enumerate() {
            assert_eq!(written, expected, "line {}", number + 1);
        }

        let process = maxwell.process_id().unwrap();
        maxwell.kill();
        assert!(!Path::new(&format!("/proc/{process}")).exists());
        server.sql("test", "INSERT INTO person VALUES (7, 'Gus', NULL)").unwrap();
        maxwell.restart().unwrap();
        maxwell.wait_until(|| Ok(lines(&file).iter().any(|line| line.contains("\"Gus\"")))).unwrap();
    }

    #[tokio::test]
    async fn it_writes_to_a_topic_of_each_table() {
        let kafka = KafkaServer::start().unwrap();
        let server = MariaDbServer::start(&Maxwell::SERVER_OPTIONS).unwrap();
        server.sql("test", "CREATE TABLE a (id int PRIMARY KEY); CREATE TABLE b (id int PRIMARY KEY)").unwrap();
        let _maxwell = Maxwell::follow(&server, "test", &ChangeOutput::topics(&kafka), &[]).unwrap();
        server
            .sql("test", "INSERT INTO a VALUES (1), (2); DELETE FROM a WHERE id = 1; INSERT INTO b VALUES (3)")
            .unwrap();
        let op = |table: &str, id: i32, op: &str| {
            (json!({ "database": "test", "table": table, "pk.id": id }), Some(op.to_owned()))
        };
        let a = keys_and_ops(&kafka, "hoplake.test.a", 3).await;
        assert_eq!(a, [op("a", 1, "insert"), op("a", 2, "insert"), op("a", 1, "delete")]);
        assert_eq!(keys_and_ops(&kafka, "hoplake.test.b", 1).await, [op("b", 3, "insert")]);
    }
}
