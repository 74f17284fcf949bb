//! Processes that are started, listened to, and killed.

use std::{
    io::{BufRead, BufReader},
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex},
    thread::JoinHandle,
};

use anyhow::{Context, ensure};
use hoplake_storage::planted::Bug;

use super::{ledger::Ledger, roles::Role};

/// What all processes are started with.
pub(super) struct Orders {
    pub(super) url: String,
    pub(super) environment: Vec<(String, String)>,
    pub(super) bug: Option<Bug>,
    pub(super) ledger: Arc<Mutex<Ledger>>,
}

/// A process, killed when it is dropped.
pub(super) struct Worker {
    pub(super) role: Role,
    child: Child,
    listener: Option<JoinHandle<()>>,
}

impl Worker {
    /// Starts this program in a role.
    pub(super) fn start(role: Role, seed: u64, orders: &Orders) -> anyhow::Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("worker").args(role.arguments()).args(["--url", &orders.url, "--seed", &seed.to_string()]);
        if let Some(bug) = orders.bug {
            command.args(["--bug", &format!("{bug:?}")]);
        }
        command.envs(orders.environment.iter().cloned()).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn().context("this program cannot be started again")?;
        let lines = BufReader::new(child.stdout.take().context("a process has an output")?);
        let ledger = orders.ledger.clone();
        let listen = move || {
            // A process that is killed while it writes leaves half a line: without its end it was not said.
            for line in lines.split(b'\n').map_while(Result::ok) {
                let line = String::from_utf8_lossy(&line);
                if let Some(line) = line.strip_suffix('.') {
                    ledger.lock().expect("nobody panics with the ledger").note(role, line);
                }
            }
        };
        Ok(Self { role, child, listener: Some(std::thread::spawn(listen)) })
    }

    /// Kills it, if it runs as it should, and waits until all that it said is noted.
    pub(super) fn kill(&mut self) -> anyhow::Result<()> {
        let ended = self.child.try_wait()?;
        self.child.kill()?;
        self.child.wait()?;
        let heard = self.listener.take().map(JoinHandle::join);
        ensure!(heard.is_none_or(|it| it.is_ok()), "listening to {:?} broke off", self.role);
        ensure!(ended.is_none(), "{:?} ended by itself, with {}", self.role, ended.unwrap_or_default());
        Ok(())
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // Both fail only if it has ended already.
        let _ = (self.child.kill(), self.child.wait());
    }
}
