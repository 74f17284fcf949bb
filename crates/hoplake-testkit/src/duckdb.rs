//! DuckDB, another database to hold answers against: one process of Python, which takes SQL and returns rows.
//!
//! **Why in Python.** Its package has the database built; the crate would compile it for half an hour.
//!
//! **Where it comes from.** The Python interpreter named by `HOPLAKE_DUCKDB`, which has the package; else that of a virtual environment
//! in the shared build folder (`HOPLAKE_BUILD_DIR`, else `hoplake` in the user's cache folder), which the first test that needs it
//! makes there, in some seconds, while others wait. `./test` does so beforehand.
//!
//! **How it ends.** By its process id when the [`DuckDb`] is dropped, so also when a test panics.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, ChildStdout, Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use crate::programs::{Process, explain, folder_made_once, run};

/// The version that is known to work; `./test` reads it from this line.
const DUCKDB_VERSION: &str = "2.0.0";

const PROGRAM: &str = include_str!("duckdb.py");

/// A running database in memory, without tables.
///
/// ```no_run
/// let mut database = hoplake_testkit::DuckDb::start().expect("Python is installed");
/// assert_eq!(database.rows("SELECT 6 * 7").unwrap(), [[42]]);
/// ```
#[derive(Debug)]
pub struct DuckDb {
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    log: TempDir,
    _process: Process,
}

impl DuckDb {
    /// Starts a database, and returns when it answers. Blocks: half a second, or some if the package must be installed first.
    ///
    /// # Errors
    /// If there is no Python, if the package cannot be installed, or if it does not answer.
    pub fn start() -> io::Result<Self> {
        let python = python()?;
        let log = tempfile::Builder::new().prefix("hoplake-duckdb-").tempdir()?;
        let mut command = Command::new(&python);
        command.args(["-c", PROGRAM]).stdin(Stdio::piped()).stdout(Stdio::piped());
        command.stderr(File::create(log.path().join("log"))?);
        let started =
            command.spawn().map_err(|error| explain(format!("could not start {}: {error}", python.display())))?;
        let mut process = Process(started);
        let missing = || explain("a pipe to Python is missing".to_owned());
        let input = process.0.stdin.take().ok_or_else(missing)?;
        let output = BufReader::new(process.0.stdout.take().ok_or_else(missing)?);
        let mut database = Self { input, output, log, _process: process };
        database.answer()?;
        Ok(database)
    }

    /// The rows that SQL returns, each with its columns; none of a statement.
    ///
    /// # Errors
    /// What is wrong with the SQL; that the process ended.
    pub fn rows(&mut self, sql: &str) -> io::Result<Vec<Vec<Value>>> {
        serde_json::to_writer(&mut self.input, sql)?;
        self.input.write_all(b"\n")?;
        self.input.flush()?;
        match self.answer()? {
            Value::Array(rows) => Ok(rows.into_iter().map(|row| row.as_array().cloned().unwrap_or_default()).collect()),
            failed => Err(explain(format!("{sql}: {failed}"))),
        }
    }

    fn answer(&mut self) -> io::Result<Value> {
        let mut line = String::new();
        if self.output.read_line(&mut line)? == 0 {
            let said = std::fs::read_to_string(self.log.path().join("log")).unwrap_or_default();
            return Err(explain(format!("DuckDB's process ended: {}", said.trim())));
        }
        Ok(serde_json::from_str(&line)?)
    }
}

/// A Python interpreter that has the package.
fn python() -> io::Result<PathBuf> {
    if let Some(named) = std::env::var_os("HOPLAKE_DUCKDB") {
        return Ok(named.into());
    }
    Ok(folder_made_once(&format!("duckdb-{DUCKDB_VERSION}"), install)?.join("bin/python"))
}

fn install(folder: &Path) -> io::Result<()> {
    let hint = "install Python 3 with venv, or name an interpreter that has DuckDB in HOPLAKE_DUCKDB";
    run(Command::new("python3").args(["-m", "venv"]).arg(folder), hint)?;
    let package = format!("duckdb=={DUCKDB_VERSION}");
    run(Command::new(folder.join("bin/python")).args(["-m", "pip", "install", "--quiet", "--no-deps", &package]), hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_answers_and_says_what_is_wrong() {
        let mut database = DuckDb::start().unwrap();
        assert!(database.rows("CREATE TABLE t AS SELECT 'it''s' AS a, NULL AS b").unwrap().len() <= 1);
        assert_eq!(database.rows("SELECT a, b FROM t").unwrap(), [[Value::from("it's"), Value::Null]]);
        let wrong = database.rows("SELECT c FROM t").unwrap_err().to_string();
        assert!(wrong.contains("SELECT c FROM t") && wrong.contains("not found"), "{wrong}");
        assert_eq!(database.rows("SELECT count(*) FROM t").unwrap(), [[1]]);
    }
}
