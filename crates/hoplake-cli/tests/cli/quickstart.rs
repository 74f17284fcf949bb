//! The first command of a newcomer.

use crate::hoplake::Shell;

#[test]
fn quickstart_loads_asks_and_says_what_next() {
    let shell = Shell::empty();
    for version in ["version 1:", "version 3:"] {
        let run = shell.run(&["quickstart"]).ok();
        assert!(run.out.contains("3,749 vertices and 57,645 edges"), "{}", run.out);
        assert!(run.out.contains(version), "{}", run.out);
        // Counted by another program, from the files.
        for count in ["98", "945", "1,737"] {
            assert!(run.out.lines().any(|line| line.split_whitespace().nth(1) == Some(count)), "{count}: {}", run.out);
        }
        assert!(run.out.contains("Wellington"), "{}", run.out);
    }
}

#[test]
fn every_command_that_quickstart_suggests_works() {
    let shell = Shell::empty();
    let run = shell.run(&["quickstart", "--folder", "my graph"]).ok();
    let commands: Vec<_> = run.out.lines().filter_map(|line| line.trim().strip_prefix("hoplake ")).collect();
    assert!(commands.len() >= 6);
    for command in commands.iter().filter(|command| !command.contains("s3://BUCKET")) {
        let line = format!("\"$HOPLAKE\" {command}");
        let mut shell_run = std::process::Command::new("sh");
        shell_run.args(["-c", &line]).env("HOPLAKE", env!("CARGO_BIN_EXE_hoplake")).current_dir(shell.path());
        let output = shell_run.output().unwrap();
        assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
        assert!(!output.stdout.is_empty(), "{command}");
    }
}

#[test]
fn quickstart_keeps_off_folders_of_others() {
    let shell = Shell::empty();
    shell.write("mine/letter.txt", "dear");
    shell.run(&["quickstart", "--folder", "mine"]).fails(4, "exists already", "--folder");
    assert!(!shell.path().join("mine/files").exists());
}
