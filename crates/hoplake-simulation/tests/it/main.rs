//! Seeded simulations, and the chaos test.

mod chaos;

use std::process::{Command, Output};

#[expect(clippy::unwrap_used, reason = "it is for a test")]
fn simulate(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hoplake-simulation"));
    command.arg("simulate").args(arguments).output().unwrap()
}

#[test]
fn a_seed_is_the_same_byte_for_byte_in_every_process() {
    for seed in ["7", "42", "139"] {
        let first = simulate(&["--seed", seed, "--trace"]);
        assert!(first.status.success(), "{}", String::from_utf8_lossy(&first.stderr));
        let lines = first.stdout.split(|byte| *byte == b'\n').count();
        assert!(lines > 50, "{lines} lines");
        assert_eq!(first.stdout, simulate(&["--seed", seed, "--trace"]).stdout, "seed {seed}");
    }
    assert_ne!(simulate(&["--seed", "7"]).stdout, simulate(&["--seed", "42"]).stdout);
}

#[test]
fn a_seed_is_the_same_after_others_in_one_process() {
    let alone = hoplake_simulation::run_seed(9, true);
    hoplake_simulation::run_seed(8, false);
    assert_eq!(alone, hoplake_simulation::run_seed(9, true));
}

#[test]
fn some_seeds_are_run_at_a_time_and_violate_nothing() {
    let ran = simulate(&["--seeds", "1..3"]);
    let said = String::from_utf8_lossy(&ran.stdout).into_owned();
    assert!(ran.status.success() && said.starts_with("3 seeds, "), "{said}");
}
