//! What the binary has made durable when it reports success: traced at the operations on files, which is all that a
//! loss of power leaves to look at.
//!
//! `strace` does it, which the gate installs; without it, or without the permission to trace, the test is skipped. That
//! the order is the right one on a disk that forgets is for the simulation.

use std::{collections::BTreeMap, path::Path, process::Command};

use crate::hoplake::Shell;

/// An operation on a file, with the times at which it began and ended, as line numbers.
#[derive(Debug)]
struct Operation {
    name: String,
    rest: String,
    began: usize,
    ended: usize,
}

impl Operation {
    /// What it was done to: a path in quotes, or that of a descriptor.
    fn paths(&self) -> Vec<&str> {
        match self.name.as_str() {
            "fsync" => self.rest.split(['<', '>']).skip(1).step_by(2).take(1).collect(),
            _ => self.rest.split('"').skip(1).step_by(2).collect(),
        }
    }

    fn names(&self, path: &str) -> bool {
        self.paths().last() == Some(&path)
    }
}

/// The operations of a trace. One that others interrupt has two lines.
fn operations(trace: &str) -> Vec<Operation> {
    let mut done = Vec::new();
    let mut under_way = BTreeMap::new();
    for (at, line) in trace.lines().enumerate() {
        let Some((process, line)) = line.split_once(' ') else { continue };
        let line = line.trim_start();
        if let Some(begun) = line.strip_suffix(" <unfinished ...>") {
            under_way.insert(process, (at, begun.to_owned()));
            continue;
        }
        let (began, line) = match line.strip_prefix("<... ").and_then(|line| line.split_once(" resumed>")) {
            Some((_, rest)) => {
                let Some((began, begun)) = under_way.remove(process) else { continue };
                (began, begun + rest)
            }
            None => (at, line.to_owned()),
        };
        if let Some((name, rest)) =
            line.split_once('(').filter(|_| line.trim_end().ends_with("= 0") || line.contains("write(1<"))
        {
            done.push(Operation { name: name.to_owned(), rest: rest.to_owned(), began, ended: at });
        }
    }
    done
}

/// Runs the binary traced in a folder; `None` if tracing is not possible here.
fn traced(shell: &Shell, args: &[&str]) -> Option<Vec<Operation>> {
    let trace = shell.path().join("trace");
    let mut command = Command::new("strace");
    command.args(["-f", "-y", "-s", "0", "-e", "trace=fsync,link,linkat,rename,renameat,renameat2,write", "-o"]);
    command.arg(&trace).arg(env!("CARGO_BIN_EXE_hoplake")).args(args).current_dir(shell.path());
    let ran = command.output().ok()?;
    let said = String::from_utf8_lossy(&ran.stderr).into_owned();
    if said.contains("ptrace") {
        return None;
    }
    assert!(ran.status.success(), "{said}");
    Some(operations(&std::fs::read_to_string(trace).unwrap()))
}

fn flushed(done: &[Operation], path: &Path, from: usize, until: usize) -> bool {
    let path = path.to_str().unwrap();
    done.iter().any(|it| it.name == "fsync" && it.names(path) && it.began >= from && it.ended <= until)
}

/// Checks that all was flushed, in its order: the bytes of each object, its name, and all of that before the manifest
/// has its name; and that name before the report. Returns how many objects there were.
fn check(done: &[Operation], graph: &Path) -> usize {
    let named: Vec<_> = done.iter().filter(|it| it.name.starts_with("link") || it.name.starts_with("rename")).collect();
    let manifests: Vec<_> = named.iter().filter(|it| it.name.starts_with("link")).collect();
    let [manifest] = manifests[..] else { panic!("one version is published: {manifests:?}") };
    let said = done.iter().find(|it| it.name == "write" && it.rest.starts_with("1<")).expect("it says what it did");
    for object in named.iter().filter(|it| !it.names(graph.join("hint").to_str().unwrap())) {
        let [staged, path] = object.paths()[..] else { panic!("{object:?}") };
        assert!(flushed(done, Path::new(staged), 0, object.began), "the bytes of {path}: {done:#?}");
        let until = if object.began == manifest.began { said.began } else { manifest.began };
        assert!(flushed(done, Path::new(path).parent().unwrap(), object.ended, until), "the name of {path}: {done:#?}");
    }
    named.len()
}

#[test]
fn what_is_said_to_be_done_survives_a_loss_of_power() {
    let shell = Shell::with_graph();
    let root = shell.path().canonicalize().unwrap();
    let Some(loaded) = traced(&shell, &["load", "new/graph", "--from", "data"]) else {
        return eprintln!("skipped: strace is not here, or may not trace");
    };
    let graph = root.join("new/graph");
    // Keys, rows and edges, a manifest, a hint; and every folder that is new, in the one that was there.
    assert!(check(&loaded, &graph) > 4);
    let published = loaded.iter().find(|it| it.name.starts_with("link")).unwrap().began;
    for folder in ["new/graph/data", "new/graph", "new", ""] {
        assert!(
            flushed(&loaded, &root.join(folder).components().collect::<std::path::PathBuf>(), 0, published),
            "{folder}"
        );
    }
    shell.write("changes.jsonl", "{\"op\": \"upsert_vertex\", \"label\": \"Person\", \"key\": 5}\n");
    let applied = traced(&shell, &["apply", "new/graph", "changes.jsonl"]).unwrap();
    // The object, the manifest; the hint, if there was time.
    assert!(check(&applied, &graph) >= 2);
}
