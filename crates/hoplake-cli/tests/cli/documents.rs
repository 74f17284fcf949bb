//! README and `docs/`: each command that they show works, and prints what the page says.
//!
//! A page is one session of a shell, in a folder of its own. In blocks of `console`, a line that begins with `$ ` is a command, which
//! goes on until its quotes and pipes end; what follows is what it prints. A command has to succeed, unless the page shows an error. The
//! addresses of a page lead to servers of this test: buckets to a real S3 server, a database to a real one, ports to free ones.
//!
//! Comments before a block, which readers do not see, say what else the session does:
//!
//! ```text
//! <!-- not run: REASON -->     none of its commands is run
//! <!-- before: COMMAND -->     is run first
//! <!-- background -->          its last command runs until it is stopped; the session goes on once it has printed something
//! <!-- values differ -->       its last command prints JSON, with other numbers, and other texts where those of the page have digits
//! ```

mod pages;
mod session;

use std::{collections::BTreeSet, fs, path::Path};

use session::{Example, examples};

/// Commands that are not run, in all pages: one more has to be a decision.
const NOT_RUN: usize = 58;

/// The pages with commands, each of which has a test in `pages`.
const PAGES: &[&str] = &[
    "CONTRIBUTING.md",
    "README.md",
    "docs/analytics.md",
    "docs/changes.md",
    "docs/errors.md",
    "docs/exporting.md",
    "docs/feeding.md",
    "docs/fuzzing.md",
    "docs/gremlin.md",
    "docs/loading.md",
    "docs/local.md",
    "docs/querying.md",
    "docs/serving.md",
    "docs/simulation.md",
];

/// The root of the sources.
fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

fn read(page: &str) -> String {
    fs::read_to_string(root().join(page)).unwrap()
}

#[test]
fn every_command_of_the_documentation_is_run_or_says_why_not() {
    let in_docs = fs::read_dir(root().join("docs")).unwrap().map(|entry| entry.unwrap().file_name());
    let mut pages: Vec<String> = in_docs.map(|name| format!("docs/{}", name.to_str().unwrap())).collect();
    pages.retain(|name| name.ends_with(".md"));
    pages.extend(["README.md", "CONTRIBUTING.md", "ARCHITECTURE.md"].map(str::to_owned));
    let mut with_commands = BTreeSet::new();
    let mut not_run = Vec::new();
    for name in &pages {
        let page = read(name);
        assert_eq!(session::commands_elsewhere(&page), [""; 0], "{name}: commands are in blocks of `console`");
        for Example { line, command, not_run: reason, .. } in examples(&page) {
            with_commands.insert(name.as_str());
            if let Some(reason) = reason {
                assert!(reason.len() > 10, "{name}:{line}: say why");
                not_run.push(format!("{name}:{line}: {command}: {reason}"));
            }
        }
    }
    assert_eq!(with_commands, PAGES.iter().copied().collect::<BTreeSet<_>>());
    assert_eq!(not_run.len(), NOT_RUN, "commands that are not run:\n{}", not_run.join("\n"));
}
