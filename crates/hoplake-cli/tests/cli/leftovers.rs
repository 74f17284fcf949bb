//! What a load, an export and a mirror leave that are killed (SIGKILL) while they write an object, in a folder and in a bucket; and that
//! `hoplake vacuum PLACE` removes it.

use std::{
    collections::BTreeSet,
    fmt::Write,
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread::sleep,
    time::Duration,
};

use hoplake_testkit::{S3Server, generate::SplitMix64};

use crate::hoplake::{Run, Shell};

/// Verbs that write objects, with their arguments; `PLACE` is where.
const WRITERS: [(&str, &[&str]); 3] = [
    ("load", &["load", "PLACE", "--from", "data", "--temp-dir", "."]),
    ("export", &["export", "graph", "--to", "PLACE", "--format", "csv"]),
    ("mirror", &["mirror", "graph", "PLACE"]),
];

/// A graph whose table takes several parts of an upload: text that does not compress.
fn with_large_graph() -> Shell {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut random = SplitMix64::new(7);
    let mut text = "~id,~label,text\n".to_owned();
    for key in 0..16_000 {
        let _ = write!(text, "{key},P,");
        (0..1_000).for_each(|_| text.push(DIGITS[random.below(64) as usize].into()));
        text.push('\n');
    }
    let shell = Shell::empty();
    shell.write("data/p.csv", &text);
    shell.run(&["load", "graph", "--from", "data"]).ok();
    shell
}

/// All files below a folder.
fn files(folder: &Path) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        // Either may be gone meanwhile.
        for path in fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()) {
            match path.is_dir() {
                true => folders.push(path),
                false => drop(found.insert(path)),
            }
        }
    }
    found
}

/// Runs a command, and kills it as soon as it has files of an unfinished object. One that was faster is run again.
fn kill_while_writing(command: &mut Command, unfinished: impl Fn() -> BTreeSet<PathBuf>, place: &Path) {
    let before = unfinished();
    for _ in 0..20 {
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        while child.try_wait().unwrap().is_none() {
            if unfinished() != before {
                child.kill().unwrap();
            }
            sleep(Duration::from_millis(1));
        }
        if unfinished() != before {
            return;
        }
        let _ = fs::remove_dir_all(place);
    }
    panic!("{command:?} was never killed in the middle of an object");
}

/// What may be left: the version without content that a vacuum publishes, so that a load that was taken for dead cannot.
fn is_of_empty_version(name: &str) -> bool {
    name == "hint" || name.starts_with("manifest/")
}

fn in_place(args: &[&str], place: &str) -> Vec<String> {
    args.iter().map(|word| if *word == "PLACE" { place.to_owned() } else { (*word).to_owned() }).collect()
}

#[test]
fn a_vacuum_removes_what_killed_writers_left_in_a_folder() {
    let shell = with_large_graph();
    for (verb, args) in WRITERS {
        let place = shell.path().join(verb);
        let staged = || files(&place).into_iter().filter(|path| path.to_string_lossy().contains('#')).collect();
        let args = in_place(args, verb);
        let words: Vec<&str> = args.iter().map(String::as_str).collect();
        kill_while_writing(&mut shell.command(&words), staged, &place);
        // It may be a writer at work.
        shell.run(&["vacuum", verb]);
        assert!(!staged().is_empty(), "{verb}: what is young stays");
        let vacuumed = shell.run(&["vacuum", verb, "--min-age", "0s"]).ok();
        let left: Vec<_> = files(&place).iter().map(|path| path.strip_prefix(&place).unwrap().to_owned()).collect();
        let left: Vec<_> = left.iter().filter(|path| !is_of_empty_version(path.to_str().unwrap())).collect();
        assert!(left.is_empty(), "{verb}: {left:?}; {}", vacuumed.out);
    }
    shell.run(&["verify", "graph"]).ok();
}

#[test]
fn a_vacuum_removes_what_killed_writers_left_in_a_bucket() {
    let server = S3Server::start().unwrap();
    let shell = with_large_graph();
    for (verb, args) in WRITERS {
        let args = in_place(args, &server.url(verb));
        let words: Vec<&str> = args.iter().map(String::as_str).collect();
        // Parts of an unfinished upload, which are not objects: a rule of the bucket removes them.
        let parts = || files(&server.folder_of_bucket().join(".sgwtmp"));
        let objects = server.folder_of_bucket().join(verb);
        kill_while_writing(shell.command(&words).envs(server.env()), parts, &objects);
        let left = || -> Vec<PathBuf> {
            // The server keeps each object as a file of its name.
            let names = files(&objects).into_iter().map(|path| path.strip_prefix(&objects).unwrap().to_owned());
            names.filter(|path| !is_of_empty_version(path.to_str().unwrap())).collect()
        };
        // An object with which a store is tried stays for some seconds.
        for _ in 0..60 {
            let args = ["vacuum", &server.url(verb), "--min-age", "0s"];
            let run = Run::of(&shell.command(&args).envs(server.env()).output().unwrap());
            assert!(matches!(run.status, 0 | 3), "{verb}: {}", run.err);
            if left().is_empty() {
                break;
            }
            sleep(Duration::from_millis(500));
        }
        assert!(left().is_empty(), "{verb}: {:?}", left());
    }
}
