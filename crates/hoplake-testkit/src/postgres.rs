//! A real PostgreSQL for tests, with logical replication.
//!
//! **Where it comes from.** The folder of programs named by `HOPLAKE_POSTGRES`; else the newest of Debian's, in `/usr/lib/postgresql`.
//!
//! **Who runs it.** It refuses to run as root: then the system's user `nobody` does.
//!
//! **How it ends.** By its process id when the [`PostgresServer`] is dropped, so also when a test panics.
//! [`kill`](PostgresServer::kill) ends it as a loss of power would, and [`restart`](PostgresServer::restart) starts it again on the same
//! port over the same files.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::port::ReservedPort;
use crate::programs::{Process, explain, run};

const READY_WITHIN: Duration = Duration::from_secs(60);

/// The user `nobody` and its group.
const NOBODY: (u32, u32) = (65_534, 65_534);

const HINT: &str = "install PostgreSQL (Debian: postgresql), or name the folder of its programs in HOPLAKE_POSTGRES";

/// A running server on a loopback port of its own.
#[derive(Debug)]
pub struct PostgresServer {
    process: Option<Process>,
    port: ReservedPort,
    programs: PathBuf,
    options: Vec<String>,
    // Dropped after the process, which writes into it.
    folder: TempDir,
}

impl PostgresServer {
    /// Starts a server with an empty database `test`, and returns when it answers. Blocks for some seconds. The options are added to
    /// those that a feed needs, such as `wal_level=replica`.
    ///
    /// # Errors
    /// If the programs are not installed, or the server does not answer within a minute.
    pub fn start(options: &[&str]) -> io::Result<Self> {
        let programs = programs()?;
        let folder = tempfile::Builder::new().prefix("hoplake-postgres-").tempdir()?;
        if is_root(folder.path())? {
            chown(folder.path(), Some(NOBODY.0), Some(NOBODY.1))?;
        }
        let mut initdb = as_user(&programs.join("initdb"), folder.path())?;
        initdb.args(["--username=postgres", "--auth=trust", "--encoding=UTF8", "--locale=C.UTF-8", "--pgdata"]);
        initdb.arg(folder.path().join("data"));
        run(&mut initdb, HINT)?;
        let port = ReservedPort::new()?;
        let options = options.iter().map(ToString::to_string).collect();
        let mut server = Self { process: None, port, programs, options, folder };
        server.restart()?;
        server.sql("postgres", "CREATE DATABASE test")?;
        server.sql("test", "CREATE USER feed WITH REPLICATION PASSWORD 'secret'; GRANT pg_read_all_data TO feed")?;
        Ok(server)
    }

    /// The address of a database for its owner.
    pub fn url(&self, database: &str) -> String {
        format!("postgres://postgres@127.0.0.1:{}/{database}", self.port)
    }

    /// The address of a database for a user who may read and replicate, and whose password is `secret`.
    pub fn feed_url(&self, database: &str) -> String {
        format!("postgres://feed@127.0.0.1:{}/{database}", self.port)
    }

    /// The port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port.number()
    }

    /// Runs statements, and returns what they select: a line for each row, with `|` between columns.
    ///
    /// # Errors
    /// What the server or its client says.
    pub fn sql(&self, database: &str, statements: &str) -> io::Result<String> {
        let mut client = Command::new("psql");
        client.args([
            "--no-psqlrc",
            "--host=127.0.0.1",
            "--username=postgres",
            "--quiet",
            "--tuples-only",
            "--no-align",
        ]);
        client.args(["--set=ON_ERROR_STOP=1", &format!("--port={}", self.port), &format!("--dbname={database}")]);
        client.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut client = client.spawn().map_err(|error| explain(format!("could not run psql: {error}; {HINT}")))?;
        if let Some(mut input) = client.stdin.take() {
            // A client that has given up says why.
            let _ = input.write_all(statements.as_bytes());
        }
        let ran = client.wait_with_output()?;
        match ran.status.success() {
            true => Ok(String::from_utf8_lossy(&ran.stdout).into_owned()),
            false => Err(explain(String::from_utf8_lossy(&ran.stderr).trim().to_owned())),
        }
    }

    /// Ends the server at once, as a loss of power would.
    pub fn kill(&mut self) {
        self.process = None;
    }

    /// Starts the server again, and returns when it answers.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub fn restart(&mut self) -> io::Result<()> {
        self.process = None;
        let data = self.folder.path().join("data");
        // What a server that was killed leaves: its children end by themselves, and the file would stop the next one.
        let _ = fs::remove_file(data.join("postmaster.pid"));
        let log = File::options().create(true).append(true).open(self.folder.path().join("log"))?;
        let mut command = as_user(&self.programs.join("postgres"), self.folder.path())?;
        command.arg("-D").arg(&data).arg("-k").arg(self.folder.path());
        let port = format!("port={}", self.port);
        let fixed = [
            "listen_addresses=127.0.0.1",
            "wal_level=logical",
            "max_wal_senders=10",
            "max_replication_slots=10",
            "shared_buffers=32MB",
        ];
        for option in fixed.into_iter().chain([port.as_str()]).chain(self.options.iter().map(String::as_str)) {
            command.args(["-c", option]);
        }
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        let begun = Instant::now();
        let started = command.spawn().map_err(|error| explain(format!("could not start postgres: {error}; {HINT}")))?;
        self.process = Some(Process(started));
        loop {
            match self.sql("postgres", "SELECT 1") {
                Ok(_) => return Ok(()),
                Err(error) if begun.elapsed() >= READY_WITHIN => {
                    let said = fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
                    let last: Vec<_> = said.lines().rev().take(5).collect();
                    return Err(explain(format!("postgres does not answer ({error}): {}", last.join(" | "))));
                }
                Err(_) => {
                    // The children of a server that was killed may have held its memory for a moment.
                    let has_ended =
                        self.process.as_mut().is_some_and(|process| matches!(process.0.try_wait(), Ok(Some(_))));
                    sleep(Duration::from_millis(100));
                    if has_ended {
                        return self.restart_before(begun + READY_WITHIN);
                    }
                }
            }
        }
    }

    fn restart_before(&mut self, end: Instant) -> io::Result<()> {
        if Instant::now() >= end {
            return Err(explain("postgres ends as soon as it is started".to_owned()));
        }
        self.restart()
    }

    /// The id of the server's process.
    pub fn process_id(&self) -> Option<u32> {
        self.process.as_ref().map(|process| process.0.id())
    }
}

/// A program that is not run as root.
fn as_user(program: &Path, folder: &Path) -> io::Result<Command> {
    let mut command = Command::new(program);
    command.current_dir(folder).env("LC_ALL", "C.UTF-8");
    // Of the folder, which the user who runs it owns.
    let owner = fs::metadata(folder)?;
    if owner.uid() == NOBODY.0 {
        command.uid(NOBODY.0).gid(NOBODY.1);
    }
    Ok(command)
}

/// Whether this is root, who owns what it makes.
fn is_root(folder: &Path) -> io::Result<bool> {
    Ok(fs::metadata(folder)?.uid() == 0)
}

fn programs() -> io::Result<PathBuf> {
    if let Some(named) = std::env::var_os("HOPLAKE_POSTGRES") {
        return Ok(named.into());
    }
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let newest =
        versions.filter_map(|entry| Some((entry.file_name().to_str()?.parse::<u32>().ok()?, entry.path()))).max();
    newest.map(|(_, path)| path.join("bin")).ok_or_else(|| explain(format!("PostgreSQL is not installed; {HINT}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_keeps_what_was_committed_and_ends_with_its_value() {
        let mut server = PostgresServer::start(&[]).unwrap();
        server.sql("test", "CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (7)").unwrap();
        server.kill();
        assert!(server.sql("test", "SELECT id FROM t").is_err());
        server.restart().unwrap();
        assert_eq!(server.sql("test", "SELECT id FROM t").unwrap(), "7\n");
        let process = server.process_id().unwrap();
        drop(server);
        assert!(!Path::new(&format!("/proc/{process}")).exists());
    }
}
