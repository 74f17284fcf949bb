//! What cannot be written is found before anything is computed, or what was computed is printed.

use serde_json::json;

use crate::hoplake::Shell;

/// Every verb with `--output`, in the shortest way to write it. There is no graph: whatever opens it first says so.
const WITH_OUTPUT: [&[&str]; 10] = [
    &["get", "absent", "Person:1"],
    &["khop", "absent", "Person:1"],
    &["neighbors", "absent", "Person:1"],
    &["neighbors", "absent", "Person:1", "--count"],
    &["path", "absent", "--from", "Person:1", "--to", "Person:2"],
    &["run", "absent", "degrees"],
    &["scan", "absent"],
    &["scan", "absent", "--count"],
    &["traverse", "absent", "--start", "Person:1", "--hop", "out"],
    &["traverse", "absent", "--start", "Person:1", "--hop", "out", "--paths"],
];

#[test]
fn files_that_cannot_be_written_are_rejected_before_a_graph_is_opened() {
    let shell = Shell::empty();
    let help = shell.run(&["--help"]).ok().out;
    let verbs =
        help.lines().filter_map(|line| line.strip_prefix("  ")?.split(' ').next().filter(|word| !word.is_empty()));
    let mut with_output: Vec<_> =
        verbs.filter(|verb| shell.run(&[verb, "--help"]).out.contains("--output <FILE>")).collect();
    with_output.dedup();
    let mut tried: Vec<_> = WITH_OUTPUT.iter().map(|args| args[0]).collect();
    tried.dedup();
    with_output.sort_unstable();
    assert_eq!(tried, with_output, "all are tried");
    shell.write("folder/file", "");
    shell.write("there.csv", "mine");
    let all = WITH_OUTPUT.iter().map(|args| (args.to_vec(), "--output"));
    let run = &["run", "absent", "pagerank", "--lists", "streamed"][..];
    let others = [(run.to_vec(), "--checkpoint"), (run.to_vec(), "--states")];
    for (args, option) in all.chain(others) {
        for file in ["none/out.csv", "folder"] {
            let format = if option == "--output" { &["--format", "csv"][..] } else { &[] };
            let run = shell.run(&[&args, format, &[option, file]].concat());
            run.fails(if run.status == 2 { 2 } else { 5 }, file, "");
            assert!(!run.err.contains("absent"), "{args:?} {option} {file}: {}", run.err);
        }
    }
    // What is there stays as it is if the command fails, and what is not does not begin to be.
    for args in WITH_OUTPUT {
        shell.run(&[args, &["--output", "there.csv"]].concat()).fails(3, "absent", "");
        shell.run(&[args, &["--output", "new.csv"]].concat()).fails(3, "absent", "");
    }
    assert_eq!(shell.read("there.csv"), "mine");
    assert!(!shell.path().join("new.csv").exists());
    for plot in [
        &["cost", "--size", "1TB", "--accesses-per-second", "10", "--plot", "none/a.svg"][..],
        &["cache-sim", "absent.csv", "--plot", "none/a.svg"],
    ] {
        shell.run(plot).fails(5, "could not create none/a.svg", "folder exists");
    }
}

#[test]
fn properties_that_cannot_be_written_are_rejected_before_the_computation() {
    let shell = Shell::with_graph();
    let long = "x".repeat(70_000);
    for (algorithm, property, error) in [
        ("pagerank", "name", "name"),
        ("components", "name", "name"),
        ("components", "tags", "tags"),
        ("degrees", "~key", "~key"),
        ("degrees", &long, "message"),
    ] {
        let run = shell.run(&["run", "graph", algorithm, "--write", property]);
        // Two lines are the error and its hint: none says that something was computed.
        run.fails(2, error, "nothing was computed");
    }
    assert_eq!(shell.run(&["log", "graph"]).ok().out.lines().count(), 1);
    shell.run(&["run", "graph", "degrees", "--write", "age", "--top", "0"]).ok();
}

#[test]
fn what_was_computed_is_printed_if_it_cannot_be_written() {
    let shell = Shell::with_graph();
    // As a feed may do while a computation runs.
    shell.write(
        "changes.jsonl",
        &json!({"op": "upsert_vertex", "label": "Person", "key": 1, "properties": {"age": 32}}).to_string(),
    );
    shell.run(&["apply", "graph", "changes.jsonl"]).ok();
    let degrees = ["run", "graph", "degrees", "--version", "1", "--write", "degree", "--all", "--format", "json"];
    let run = shell.run(&degrees);
    assert_eq!((run.status, run.json().len()), (4, 5), "{}", run.err);
    assert!(run.err.contains("hint: nothing was written, and the values are printed"), "{}", run.err);
    let to_file = [&degrees[..8], &["--output", "degrees.jsonl"]].concat();
    assert_eq!(shell.run(&to_file).status, 4);
    assert_eq!(shell.read("degrees.jsonl"), run.out);
    let ranks = ["run", "graph", "pagerank", "--version", "1", "--write", "rank", "--checkpoint", "states"];
    assert_eq!(shell.run(&[&ranks[..], &["--checkpoint-every", "0s"]].concat()).status, 4);
    assert!(shell.path().join("states").exists(), "the checkpoint stays");
}
