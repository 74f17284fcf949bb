//! What comes with the program: completions of shells and manual pages.

use std::{collections::BTreeSet, process::Command};

use crate::hoplake::{Shell, listed};

#[test]
fn every_verb_has_a_manual_page() {
    let shell = Shell::empty();
    let verbs: BTreeSet<_> = listed(&shell.run(&["--help"]).ok().out).into_iter().collect();
    assert!(verbs.len() > 20 && verbs.contains("traverse") && !verbs.contains("man"), "{verbs:?}");
    assert_eq!(shell.run(&["man", "--to", "pages"]).ok().out, "");
    for verb in &verbs {
        let page = shell.read(&format!("pages/hoplake-{verb}.1"));
        assert!(page.contains(".SH OPTIONS") && page.contains(".SH SYNOPSIS"), "{verb}");
    }
    let page = shell.run(&["man"]).ok().out;
    assert_eq!(page, shell.read("pages/hoplake.1"));
    assert!(page.contains("hoplake\\-traverse(1)"), "{page}");
    shell.write("file", "");
    shell.run(&["man", "--to", "file"]).fails(5, "write manual pages into file", "folder");
}

#[test]
fn shells_accept_their_completions() {
    let shell = Shell::empty();
    for (name, word) in [
        ("bash", "complete -F"),
        ("zsh", "#compdef hoplake"),
        ("fish", "complete -c hoplake"),
        ("elvish", "edit:completion"),
        ("powershell", "Register-ArgumentCompleter"),
    ] {
        let script = shell.run(&["completions", name]).ok().out;
        assert!(script.contains(word) && script.contains("traverse") && script.contains("--select"), "{name}");
        shell.write(&format!("hoplake.{name}"), &script);
    }
    let read = Command::new("bash").arg("-n").arg(shell.path().join("hoplake.bash")).output().unwrap();
    assert!(read.status.success() && read.stderr.is_empty(), "{}", String::from_utf8_lossy(&read.stderr));
    assert_eq!(shell.run(&["completions", "tcsh"]).status, 2);
}
