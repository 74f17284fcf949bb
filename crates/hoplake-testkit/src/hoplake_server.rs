//! `hoplake serve` as a process of its own.
//!
//! The system chooses the ports, and the first line of the command's output names them. The process ends with the [`HoplakeServer`],
//! so also when a test panics.

use std::io::{self, BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Command, ExitStatus, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::programs::{Process, explain};

/// A running server on loopback ports of its own.
#[derive(Debug)]
pub struct HoplakeServer {
    process: Process,
    grpc: SocketAddr,
    http: SocketAddr,
    /// Reads standard error to its end, so that a full pipe does not stop the server.
    log: Option<JoinHandle<io::Result<String>>>,
}

impl HoplakeServer {
    /// Starts a command, which is `hoplake serve` without its addresses, and returns when the server listens. The caller chooses
    /// environment, settings, and where standard error goes; if that is a pipe, [`Self::into_log`] returns what was written.
    ///
    /// # Errors
    /// If the command cannot be started, or ends before it listens.
    pub fn start(command: &mut Command) -> io::Result<Self> {
        command.args(["--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0"]).stdin(Stdio::null()).stdout(Stdio::piped());
        let program = command.get_program().display().to_string();
        let started = command.spawn().map_err(|error| explain(format!("could not start {program}: {error}")))?;
        let mut process = Process(started);
        let log = process.0.stderr.take().map(|stderr| thread::spawn(|| io::read_to_string(stderr)));
        let mut line = String::new();
        BufReader::new(process.0.stdout.as_mut().expect("the output is a pipe")).read_line(&mut line)?;
        let address = |name| line.split_whitespace().find_map(|word| word.strip_prefix(name)?.parse().ok());
        let (Some(grpc), Some(http)) = (address("grpc="), address("http=")) else {
            drop(process);
            let said = written(log)?;
            return Err(explain(format!("{program} printed {line:?} instead of its addresses: {}", said.trim())));
        };
        Ok(Self { process, grpc, http, log })
    }

    /// Where it listens for gRPC.
    pub fn grpc(&self) -> SocketAddr {
        self.grpc
    }

    /// Where it listens for HTTP.
    pub fn http(&self) -> SocketAddr {
        self.http
    }

    /// The id of the server's process.
    pub fn process_id(&self) -> u32 {
        self.process.0.id()
    }

    /// Its exit status, if it has ended.
    ///
    /// # Errors
    /// If the system does not tell.
    pub fn status(&mut self) -> io::Result<Option<ExitStatus>> {
        self.process.0.try_wait()
    }

    /// Sends SIGTERM, as an orchestrator does, and returns the exit status; `None` if the server runs for longer than `within`.
    ///
    /// # Errors
    /// If the signal cannot be sent.
    pub fn terminate(&mut self, within: Duration) -> io::Result<Option<ExitStatus>> {
        let begun = Instant::now();
        if self.status()?.is_none() {
            kill_process(Pid::from_child(&self.process.0), Signal::TERM)?;
        }
        while self.status()?.is_none() && begun.elapsed() < within {
            thread::sleep(Duration::from_millis(10));
        }
        self.status()
    }

    /// Kills it, as a loss of power would.
    ///
    /// # Errors
    /// If it had ended by itself.
    pub fn kill(&mut self) -> io::Result<()> {
        if let Some(status) = self.status()? {
            return Err(explain(format!("it ended by itself, with {status}")));
        }
        self.process.0.kill()?;
        self.process.0.wait()?;
        Ok(())
    }

    /// Kills it if it still runs, and returns what it wrote to standard error; nothing if that was not a pipe.
    ///
    /// # Errors
    /// If that is not UTF-8.
    pub fn into_log(self) -> io::Result<String> {
        let Self { process, log, .. } = self;
        drop(process);
        written(log)
    }
}

fn written(log: Option<JoinHandle<io::Result<String>>>) -> io::Result<String> {
    log.map_or(Ok(String::new()), |log| log.join().expect("reading does not panic"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(30);

    /// A shell that does what the server would.
    fn start(script: &str) -> io::Result<HoplakeServer> {
        HoplakeServer::start(Command::new("sh").args(["-c", script]).stderr(Stdio::piped()))
    }

    /// A shell that listens, and ends with status 3 on SIGTERM.
    fn listening() -> HoplakeServer {
        let trap = "trap 'echo asked to end >&2; exit 3' TERM; echo listening grpc=127.0.0.1:1 http=127.0.0.1:2";
        start(&format!("{trap}; while :; do sleep 0.01; done")).unwrap()
    }

    #[test]
    fn it_has_addresses_a_status_and_a_log() {
        let mut server = listening();
        assert_eq!([server.grpc().port(), server.http().port()], [1, 2]);
        assert_eq!(server.status().unwrap(), None);
        assert_eq!(server.terminate(LONG).unwrap().and_then(|status| status.code()), Some(3));
        let late = server.kill().unwrap_err().to_string();
        assert!(late.contains("ended by itself, with exit status: 3"), "{late}");
        assert_eq!(server.into_log().unwrap(), "asked to end\n");
    }

    #[test]
    fn it_is_killed_and_a_start_that_fails_is_quoted() {
        let mut server = listening();
        server.kill().unwrap();
        assert_eq!(server.terminate(LONG).unwrap().and_then(|status| status.code()), None);
        let error = start("echo no graph >&2; exit 2").unwrap_err().to_string();
        assert!(error.contains("sh printed \"\" instead of its addresses: no graph"), "{error}");
        assert!(HoplakeServer::start(&mut Command::new("no-such-program")).is_err());
    }
}
