//! A real MariaDB for tests, with a binlog that can be followed.
//!
//! **Where it comes from.** The program named by `HOPLAKE_MARIADBD`; else `mariadbd` of the system, as Debian's package
//! `mariadb-server` has it.
//!
//! **How it ends.** By its process id when the [`MariaDbServer`] is dropped, so also when a test panics. [`kill`](MariaDbServer::kill)
//! ends it as a loss of power would, and [`restart`](MariaDbServer::restart) starts it again on the same port over the same files.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::port::ReservedPort;
use crate::programs::{Process, explain, run};

const READY_WITHIN: Duration = Duration::from_secs(60);

/// A user that may do everything, without a password, and one that may follow, with one.
const USERS: &str = "
CREATE USER IF NOT EXISTS 'test'@'127.0.0.1';
GRANT ALL ON *.* TO 'test'@'127.0.0.1' WITH GRANT OPTION;
CREATE USER IF NOT EXISTS 'feed'@'127.0.0.1' IDENTIFIED BY 'secret';
GRANT SELECT, BINLOG MONITOR, REPLICATION SLAVE ON *.* TO 'feed'@'127.0.0.1';
CREATE DATABASE IF NOT EXISTS test;
";

/// A running server on a loopback port of its own.
#[derive(Debug)]
pub struct MariaDbServer {
    process: Option<Process>,
    port: ReservedPort,
    options: Vec<String>,
    // Dropped after the process, which writes into it.
    folder: TempDir,
}

impl MariaDbServer {
    /// Starts a server with an empty database `test`, and returns when it answers. Blocks for some seconds. The options are added to
    /// those that a feed needs, which they may override, such as `--binlog-row-metadata=MINIMAL`.
    ///
    /// # Errors
    /// If the program is not installed, or does not answer within a minute.
    pub fn start(options: &[&str]) -> io::Result<Self> {
        let folder = tempfile::Builder::new().prefix("hoplake-mariadb-").tempdir()?;
        let mut install = Command::new("mariadb-install-db");
        install.arg("--no-defaults").arg(format!("--datadir={}", folder.path().join("data").display()));
        install.args(["--auth-root-authentication-method=normal", "--skip-test-db", "--skip-name-resolve"]);
        // The server that it runs for a moment removes the temporary tables of others from a folder that they share.
        install.arg(format!("--user={}", user())).env("TMPDIR", folder.path());
        run(&mut install, HINT)?;
        fs::write(folder.path().join("users.sql"), USERS.replace('\n', " ").replace("; ", ";\n"))?;
        let port = ReservedPort::new()?;
        let options = options.iter().map(ToString::to_string).collect();
        let mut server = Self { process: None, port, options, folder };
        server.restart()?;
        Ok(server)
    }

    /// The address of a database for a user who may do everything.
    pub fn url(&self, database: &str) -> String {
        format!("mysql://test@127.0.0.1:{}/{database}", self.port)
    }

    /// The address of a database for a user who may read and follow, and whose password is `secret`.
    pub fn feed_url(&self, database: &str) -> String {
        format!("mysql://feed@127.0.0.1:{}/{database}", self.port)
    }

    /// The port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port.number()
    }

    /// Runs statements, and returns what they select: a line for each row, with tabs between columns.
    ///
    /// # Errors
    /// What the server or its client says.
    pub fn sql(&self, database: &str, statements: &str) -> io::Result<String> {
        let input = self.folder.path().join(format!("{:?}.sql", std::thread::current().id()));
        fs::write(&input, statements)?;
        self.sql_file(database, &input)
    }

    /// Runs the statements of a file.
    ///
    /// # Errors
    /// As [`Self::sql`].
    pub fn sql_file(&self, database: &str, file: &Path) -> io::Result<String> {
        let mut client = Command::new("mariadb");
        client.args(["--no-defaults", "--host=127.0.0.1", "--user=test", "--batch", "--skip-column-names"]);
        client.args(["--default-character-set=utf8mb4", "--abort-source-on-error"]);
        client.arg(format!("--port={}", self.port)).arg(database).stdin(File::open(file)?);
        // Where scripts look for the files that they name.
        client.current_dir(file.parent().unwrap_or(Path::new(".")));
        let ran = client.output().map_err(|error| explain(format!("could not run mariadb: {error}; {HINT}")))?;
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
        let log = File::options().create(true).append(true).open(self.folder.path().join("log"))?;
        let mut command = Command::new(program());
        command.arg("--no-defaults").arg(format!("--datadir={}", data.display()));
        command.arg(format!("--socket={}", self.folder.path().join("socket").display()));
        // Servers name temporary tables by numbers that they share.
        command.arg(format!("--tmpdir={}", self.folder.path().display()));
        command.arg(format!("--pid-file={}", self.folder.path().join("pid").display()));
        command.arg(format!("--init-file={}", self.folder.path().join("users.sql").display()));
        command.args(["--bind-address=127.0.0.1", "--skip-name-resolve", "--server-id=1", "--log-bin=binlog"]);
        command.args(["--binlog-format=ROW", "--binlog-row-image=FULL", "--binlog-row-metadata=FULL"]);
        command.args(["--sync-binlog=1", "--innodb-flush-log-at-trx-commit=1", "--innodb-buffer-pool-size=64M"]);
        command.arg(format!("--user={}", user())).arg(format!("--port={}", self.port)).args(&self.options);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        let started = command.spawn().map_err(|error| explain(format!("could not start mariadbd: {error}; {HINT}")))?;
        self.process = Some(Process(started));
        let begun = Instant::now();
        loop {
            match self.sql("", "SELECT 1 FROM mysql.user WHERE user = 'feed'") {
                Ok(answer) if !answer.is_empty() => return Ok(()),
                _ if begun.elapsed() < READY_WITHIN => sleep(Duration::from_millis(100)),
                answer => {
                    let said = fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
                    let last: Vec<_> = said.lines().rev().take(5).collect();
                    return Err(explain(format!("mariadbd does not answer ({answer:?}): {}", last.join(" | "))));
                }
            }
        }
    }

    /// The id of the server's process.
    pub fn process_id(&self) -> Option<u32> {
        self.process.as_ref().map(|process| process.0.id())
    }
}

const HINT: &str = "install MariaDB (Debian: mariadb-server), or name the program in HOPLAKE_MARIADBD";

fn program() -> PathBuf {
    let named = std::env::var_os("HOPLAKE_MARIADBD").map(PathBuf::from);
    named.unwrap_or_else(|| {
        let in_system = PathBuf::from("/usr/sbin/mariadbd");
        if in_system.exists() { in_system } else { "mariadbd".into() }
    })
}

/// The user who runs the tests: the server refuses to run as root unless that is said.
fn user() -> String {
    std::env::var("USER").ok().filter(|user| !user.is_empty()).unwrap_or_else(|| "root".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_keeps_what_was_committed_and_ends_with_its_value() {
        let mut server = MariaDbServer::start(&[]).unwrap();
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
