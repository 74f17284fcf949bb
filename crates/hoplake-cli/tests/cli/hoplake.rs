//! The binary, run in a folder of its own, and a small graph to run it on.

use std::{
    fs,
    io::Write,
    path::Path,
    process::{Command, Output, Stdio},
    thread,
    time::Duration,
};

use serde_json::Value;
use tempfile::TempDir;

pub const PEOPLE: &str = "\
~id,~label,name:String,age:Int,tags:String[]
1,Person,Ann,31,a;b
2,Person,Bob,42,
3,Person,Cid,53,c
4,Person,\"Dee, D.\",64,
10,Town,Ulm,,
";
pub const EDGES: &str = "\
~id,~from,~to,~label,since:Int
100,1,2,knows,2001
101,1,3,knows,2003
102,2,3,knows,2002
103,3,4,knows,2004
104,1,10,livesIn,
105,4,10,livesIn,
";

/// What a run printed.
pub struct Run {
    pub out: String,
    pub err: String,
    pub status: i32,
}

impl Run {
    /// What a process that is done printed.
    pub fn of(output: &Output) -> Self {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        Self { out: text(&output.stdout), err: text(&output.stderr), status: output.status.code().unwrap() }
    }

    /// The lines on standard output, as JSON.
    pub fn json(&self) -> Vec<Value> {
        self.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Asserts success.
    pub fn ok(self) -> Self {
        assert_eq!(self.status, 0, "{}", self.err);
        self
    }

    /// Asserts a status, and that error and hint are each one line with these words.
    pub fn fails(&self, status: i32, error: &str, hint: &str) {
        let lines: Vec<_> = self.err.lines().collect();
        assert_eq!((self.status, lines.len(), self.out.as_str()), (status, 2, ""), "{}", self.err);
        assert!(lines[0].starts_with("error: ") && lines[0].contains(error), "{}", self.err);
        assert!(lines[1].starts_with("hint: ") && lines[1].contains(hint), "{}", self.err);
    }
}

/// Runs a command with a text on its standard input, and returns what it printed, and the peak of its resident memory in bytes as the
/// system has it.
pub fn measured(mut command: Command, input: &str) -> (Run, u64) {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let status = format!("/proc/{}/status", child.id());
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_owned();
    // A process that ends early does not read it all.
    let writer = thread::spawn(move || drop(stdin.write_all(input.as_bytes())));
    let waiter = thread::spawn(move || child.wait_with_output().unwrap());
    let mut peak = 0;
    // The peak never falls, so the last one read is that of the process, short of its last moment.
    while !waiter.is_finished() {
        let text = fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
        peak = kib.map_or(peak, |kib| kib << 10);
        thread::sleep(Duration::from_millis(2));
    }
    writer.join().unwrap();
    (Run::of(&waiter.join().unwrap()), peak)
}

/// The names of the commands that a help lists.
pub fn listed(help: &str) -> Vec<String> {
    let list = help.split("Commands:").nth(1).unwrap_or_default().split("Options:").next().unwrap();
    let names = list.lines().filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    names.filter_map(|line| line.split_whitespace().next()).filter(|name| *name != "help").map(str::to_owned).collect()
}

/// A folder in which the binary runs.
pub struct Shell(TempDir);

impl Shell {
    /// An empty folder.
    pub fn empty() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// A folder with files of people and towns, loaded into `graph`.
    pub fn with_graph() -> Self {
        let shell = Self::empty();
        shell.write("data/people.csv", PEOPLE);
        shell.write("data/edges.csv", EDGES);
        shell.run(&["load", "graph", "--from", "data"]).ok();
        shell
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    pub fn write(&self, name: &str, text: &str) {
        let path = self.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path().join(name)).unwrap()
    }

    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hoplake"));
        command.args(args).current_dir(self.path());
        command
    }

    pub fn run(&self, args: &[&str]) -> Run {
        Run::of(&self.command(args).output().unwrap())
    }
}
