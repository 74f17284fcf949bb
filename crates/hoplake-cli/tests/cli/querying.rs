//! The pages about queries: each command that they show prints what the page says.

use std::{os::unix::fs::symlink, process::Command};

use crate::hoplake::{Run, Shell};

/// A command of the page, and the lines that it shows below.
struct Example<'a> {
    command: &'a str,
    printed: String,
}

/// The examples of a page: in blocks of `console`, a line that begins with `$ ` is a command.
fn examples(page: &str) -> Vec<Example<'_>> {
    let mut examples: Vec<Example> = Vec::new();
    let mut is_console = false;
    for line in page.lines() {
        if line.starts_with("```") {
            is_console = line == "```console";
        } else if let Some(command) = line.strip_prefix("$ ").filter(|_| is_console) {
            examples.push(Example { command, printed: String::new() });
        } else if let Some(last) = examples.last_mut().filter(|_| is_console) {
            last.printed.push_str(line);
            last.printed.push('\n');
        }
    }
    examples
}

#[test]
fn the_examples_of_querying_print_what_it_says() {
    let page = include_str!("../../../../docs/querying.md");
    assert!(examples(page).len() >= 20, "{}", examples(page).len());
    assert_printed(page);
}

#[test]
fn the_examples_of_gremlin_print_what_it_says() {
    let page = include_str!("../../../../docs/gremlin.md");
    assert!(examples(page).len() >= 9, "{}", examples(page).len());
    assert_printed(page);
}

fn assert_printed(page: &str) {
    let shell = Shell::empty();
    shell.run(&["quickstart"]).ok();
    let programs = shell.path().join("bin");
    std::fs::create_dir(&programs).unwrap();
    symlink(env!("CARGO_BIN_EXE_hoplake"), programs.join("hoplake")).unwrap();
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    let mut wrong = String::new();
    for Example { command, printed } in &examples(page) {
        let folder = shell.path().join("hoplake-quickstart");
        let run = Command::new("sh").args(["-c", command]).env("PATH", &path).current_dir(folder).output().unwrap();
        let Run { out, err, .. } = Run::of(&run);
        if format!("{out}{err}") != *printed {
            wrong.push_str(&format!("$ {command}\n{out}{err}\n"));
        }
    }
    assert!(wrong.is_empty(), "these print something else now:\n{wrong}");
}
