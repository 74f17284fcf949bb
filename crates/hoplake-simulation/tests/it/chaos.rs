//! Real processes are killed, and a real network breaks.

use std::{path::Path, process::Command};

#[test]
fn what_is_killed_and_broken_leaves_no_halves() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hoplake-simulation"));
    command.args(["chaos-test", "--minutes", "0.2", "--seed", "7"]);
    // It is built with the workspace, not for this crate alone.
    if !Path::new(env!("CARGO_BIN_EXE_hoplake-simulation")).with_file_name("hoplake").exists() {
        command.args(["--appliers", "0", "--servers", "0"]);
    }
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let failed = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}{failed}");
    // The run did something: a commit, and a kill.
    let number = |after: &str| {
        let rest = said.split_once(after).unwrap_or_else(|| panic!("{after:?} in {said}")).1;
        rest.split(|other: char| !other.is_ascii_digit()).next().unwrap().parse::<u64>().unwrap()
    };
    assert!(number("acknowledged: ") > 0 && number("kills: ") > 0, "{said}");
}
