//! Processes that are started, listened to, and killed.

use std::{
    io::{BufRead, BufReader},
    os::unix::process::CommandExt,
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex, MutexGuard},
    thread::JoinHandle,
};

use anyhow::{Context, ensure};
use rustix::process::{Pid, Signal, kill_process_group};

use super::{ledger::Ledger, roles::Role};

/// What all processes are started with.
pub(super) struct Orders {
    pub(super) url: String,
    pub(super) environment: Vec<(String, String)>,
    /// The `hoplake` command, if there is one.
    pub(super) hoplake: Option<PathBuf>,
    pub(super) ledger: Arc<Mutex<Ledger>>,
}

impl Orders {
    pub(super) fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().expect("no thread panics with the ledger")
    }
}

/// A process, killed when it is dropped, with those that it started.
#[derive(Debug)]
pub(super) struct Process(Child);

impl Process {
    pub(super) fn start(mut command: Command) -> anyhow::Result<Self> {
        // A group of its own, so that what it starts ends with it.
        command.process_group(0).stdin(Stdio::null()).stdout(Stdio::piped());
        Ok(Self(command.spawn().with_context(|| format!("{command:?} cannot be started"))?))
    }

    pub(super) fn id(&self) -> u32 {
        self.0.id()
    }

    /// Its standard output, once.
    pub(super) fn output(&mut self) -> anyhow::Result<impl BufRead + Send + 'static> {
        Ok(BufReader::new(self.0.stdout.take().context("a process has an output")?))
    }

    /// Kills it; an error if it had ended by itself.
    pub(super) fn kill(&mut self) -> anyhow::Result<()> {
        let ended = self.0.try_wait()?;
        self.kill_group();
        self.0.wait()?;
        ensure!(ended.is_none(), "it ended by itself, with {}", ended.unwrap_or_default());
        Ok(())
    }

    fn kill_group(&self) {
        if let Some(group) = i32::try_from(self.id()).ok().and_then(Pid::from_raw) {
            // It fails only if all of them have ended already.
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill_group();
        let _ = self.0.wait();
    }
}

/// This program in a role.
pub(super) struct Worker {
    pub(super) role: Role,
    process: Process,
    listener: Option<JoinHandle<()>>,
    ledger: Arc<Mutex<Ledger>>,
}

impl Worker {
    /// Starts this program in a role.
    pub(super) fn start(role: Role, seed: u64, orders: &Orders) -> anyhow::Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("worker").args(role.arguments()).args(["--url", &orders.url, "--seed", &seed.to_string()]);
        if let Some(hoplake) = &orders.hoplake {
            command.arg("--hoplake").arg(hoplake);
        }
        command.envs(orders.environment.iter().cloned());
        let mut process = Process::start(command)?;
        let lines = process.output()?;
        let ledger = orders.ledger.clone();
        let heard = ledger.clone();
        let listen = move || {
            // A process that is killed while it writes leaves half a line: an unfinished line does not count.
            for line in lines.split(b'\n').map_while(Result::ok) {
                let line = String::from_utf8_lossy(&line);
                if let Some(line) = line.strip_suffix('.') {
                    heard.lock().expect("no thread panics with the ledger").note(role, line);
                }
            }
        };
        Ok(Self { role, process, listener: Some(std::thread::spawn(listen)), ledger })
    }

    pub(super) fn process_id(&self) -> u32 {
        self.process.id()
    }

    /// Kills it, if it runs as it should, and waits until all its lines are noted.
    pub(super) fn kill(&mut self) -> anyhow::Result<()> {
        let killed = self.process.kill();
        let heard = self.listener.take().map(JoinHandle::join);
        ensure!(heard.is_none_or(|it| it.is_ok()), "listening to {:?} broke off", self.role);
        self.ledger.lock().expect("no thread panics with the ledger").killed(self.role);
        killed.with_context(|| format!("{:?}", self.role))
    }
}
