//! Mistakes: the message, the hint, and the status.

use crate::hoplake::Shell;

#[test]
fn names_that_are_not_there() {
    let shell = Shell::with_graph();
    let run = |args: &str| shell.run(&args.split(' ').collect::<Vec<_>>());
    run("info nowhere").fails(3, "there is no graph", "hoplake load nowhere --from PATH");
    run("traverse graph --start Robot:1").fails(3, "no vertex label \"Robot\"; it has", "hoplake info graph");
    run("traverse graph --start Person:99").fails(3, "there is no vertex Person:99", "hoplake info graph");
    run("traverse graph --start Person:1 --hop out:hates").fails(
        3,
        "no edge label \"hates\"; it has knows, livesIn",
        "info",
    );
    run("neighbors graph Person:1 --hop out:hates").fails(3, "no edge label \"hates\"", "knows, livesIn");
    run("neighbors graph Person:1 --select size").fails(
        3,
        "\"size\"; they have age, id, name, since, tags",
        "hoplake info graph",
    );
    run("traverse graph --start Person:1 --select size").fails(3, "property \"size\"", "hoplake info graph");
}

#[test]
fn requests_that_cannot_be() {
    let shell = Shell::with_graph();
    let run = |args: &str| shell.run(&args.split(' ').collect::<Vec<_>>());
    run("traverse graph --start Person:x").fails(2, "\"x\" is not a valid key of Person", "--help");
    run("traverse graph --start Person:1 --strategy dfs --visit global").fails(2, "breadth-first", "--help");
    run("traverse graph --start Person:1 --paths --format parquet").fails(2, "walks", "--format json");
    run("load other --from missing.csv").fails(2, "could not read missing.csv", "check that it exists");
    for (args, words) in [
        ("traverse graph", "--start"),
        ("traverse graph --start Person", "LABEL:KEY"),
        ("traverse graph --start Person:1 --hop up:knows", "is not a valid hop"),
        ("traverse graph --start Person:1 --count --select name", "cannot be used with"),
        ("load other --from data --memory lots", "lots"),
        ("vacuum graph --min-age soon", "soon"),
        ("fly graph", "fly"),
    ] {
        let run = run(args);
        assert_eq!((run.status, run.out.as_str()), (2, ""), "{args}: {}", run.err);
        assert!(run.err.starts_with("error: ") && run.err.contains(words) && run.err.contains("--help"), "{}", run.err);
    }
}

#[test]
fn limits_end_a_query() {
    let shell = Shell::with_graph();
    let run = |limit: &str, value: &str| {
        shell.run(&["traverse", "graph", "--start", "Person:1", "--hop", "both", "--hop", "both", limit, value])
    };
    run("--max-vertices", "2").fails(6, "limit of 2 vertices", "raise the limit");
    run("--max-requests", "1").fails(6, "limit of 1 requests", "raise the limit");
    run("--max-bytes", "1B").fails(6, "limit of 1 bytes", "raise the limit");
    assert_eq!(run("--timeout", "10m").status, 0);
    let neighbors = ["neighbors", "graph", "Person:1", "--hop", "both", "--max-bytes", "1B"];
    shell.run(&neighbors).fails(6, "limit of 1 bytes", "raise the limit");
}

/// Only verbs that visit vertices offer the limit of vertices, and all that query a graph the others.
#[test]
fn limits_are_offered_where_they_have_an_effect() {
    let shell = Shell::empty();
    let visiting = ["traverse", "khop", "path", "scan"];
    let others = ["neighbors", "run", "query", "console"];
    for verb in visiting.iter().chain(&others) {
        let help = shell.run(&[verb, "--help"]).ok().out;
        for limit in ["--timeout", "--max-requests", "--max-bytes", "--max-usd", "--max-memory"] {
            assert!(help.contains(&format!("      {limit} ")), "{verb} {limit}: {help}");
        }
        assert_eq!(help.contains("--max-vertices"), visiting.contains(verb), "{verb}: {help}");
    }
}

#[test]
fn every_verb_has_an_example() {
    let shell = Shell::empty();
    for verb in [
        "quickstart",
        "load",
        "info",
        "traverse",
        "neighbors",
        "path",
        "khop",
        "get",
        "verify",
        "vacuum",
        "cost",
        "cache-sim",
    ] {
        let help = shell.run(&[verb, "--help"]).ok().out;
        assert!(help.contains("Example") && help.contains(&format!("  hoplake {verb} ")), "{help}");
    }
}
