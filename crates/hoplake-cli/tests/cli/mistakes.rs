//! The mistakes people make, through the command line as they make them: the sentence, the one hint, the status. No
//! output may have names of types or of libraries, or what a store answered in full.

use hoplake_testkit::{ReservedPort, S3Server};

use crate::hoplake::{Run, Shell};

/// What no person should have to read.
const NOISE: [&str; 14] = [
    "<?xml",
    "</",
    "Generic ",
    "LocalFileSystem",
    "object_store",
    "serde",
    "Error {",
    "Error(",
    "Some(",
    "os error",
    "ParquetError",
    "Arrow",
    "panicked",
    "RetryError",
];

fn check(run: &Run, args: &str, status: i32, error: &str, hint: &str) {
    let noise = NOISE.iter().find(|noise| run.err.contains(**noise));
    assert_eq!(noise, None, "{args}: {}", run.err);
    let lines: Vec<_> = run.err.lines().collect();
    assert_eq!((run.status, lines.len()), (status, 2), "{args}: {}", run.err);
    assert!(lines[0].starts_with("error: ") && lines[0].contains(error), "{args}: {}", run.err);
    assert!(lines[1].starts_with("hint: ") && lines[1].contains(hint), "{args}: {}", run.err);
}

fn tries(shell: &Shell, mistakes: &[(&str, i32, &str, &str)]) {
    for (args, status, error, hint) in mistakes {
        let run = shell.run(&args.split(' ').collect::<Vec<_>>());
        check(&run, args, *status, error, hint);
    }
}

#[test]
fn places() {
    let shell = Shell::with_graph();
    shell.write("file", "x");
    tries(
        &shell,
        &[
            ("info nowhere", 3, "there is no graph at file:///", "hoplake load nowhere --from PATH"),
            ("log nowhere", 3, "there is no graph at file:///", "hoplake load nowhere --from PATH"),
            ("vacuum nowhere", 3, "there is no graph at", "hoplake load nowhere"),
            ("compact nowhere", 3, "there is no graph at", "hoplake load nowhere"),
            ("tag nowhere", 3, "there is no graph at", "hoplake load nowhere"),
            ("get nowhere Person:1", 3, "there is no graph at", "hoplake load nowhere"),
            ("restore nowhere --version 1", 3, "there is no graph at", "hoplake load nowhere"),
            ("diff nowhere 1", 3, "there is no graph at", "hoplake load nowhere"),
            ("info ftp://host/graph", 2, "unknown URL scheme `ftp`", "s3://bucket/prefix"),
            ("info s3://", 2, "it has no bucket; write s3://bucket/prefix", "s3://bucket/prefix"),
            ("info s3:/bucket/graph", 2, "write s3://, with two slashes", "s3://bucket/prefix"),
            ("info graph --version 9", 3, "has no version 9", "hoplake log graph lists"),
            ("info graph --version spring", 3, "has no tag spring", "hoplake tag "),
            ("info graph --as-of 2001-01-01", 3, "no version of that time", "hoplake log graph lists"),
            ("tag graph spring --version 9", 3, "has no version 9", "hoplake log graph lists"),
            ("tag graph spring --delete", 3, "has no tag spring", "hoplake tag "),
            ("load graph --from data", 4, "there is a graph at file:///", "--replace"),
            ("info file", 5, "could not read file:///", "try again later"),
        ],
    );
    // A path may go up.
    std::fs::create_dir(shell.path().join("below")).unwrap();
    shell.run(&["info", "below/../graph"]).ok();
}

#[test]
fn names_and_words() {
    let shell = Shell::with_graph();
    tries(
        &shell,
        &[
            ("get graph Robot:1", 3, "no vertex label \"Robot\"", "hoplake info graph lists"),
            ("get graph Person:99", 3, "there is no vertex Person:99", "hoplake info graph lists"),
            ("get graph Person:x", 2, "\"x\" is not a valid key of Person, whose keys are int64", "hoplake get --help"),
            ("get graph Person:1 --select size", 3, "property \"size\"", "hoplake info graph lists"),
            ("neighbors graph Person:1 --hop out:hates", 3, "no edge label \"hates\"", "knows, livesIn"),
            ("traverse graph --start Person:1 --hop out:knows[size>3]", 3, "property \"size\"", "hoplake info graph"),
            ("traverse graph --start Person:1 --hop out:knows[since>soon]", 2, "\"soon\" is not an int64", "--help"),
            ("traverse graph --start Person:1 --hop both --timeout 1ns", 6, "limit of 1 ms", "raise the limit"),
            ("traverse graph --start Person:1 --hop both --max-vertices 1", 6, "limit of 1 vert", "raise the limit"),
            ("scan graph --label Person --max-vertices 1", 6, "limit of 1 vert", "raise the limit"),
            ("scan graph --where ~key>0 --count --max-vertices 1", 6, "limit of 1 vert", "raise the limit"),
            (
                "path graph --from Person:2 --to Town:10 --hop in:knows",
                3,
                "there is no path from Person:2 to Town:10 along in:knows",
                "allow other edges with --hop",
            ),
            (
                "path graph --from Person:2 --to Person:4 --hop out:knows --max-depth 1",
                6,
                "there is no path from Person:2 to Person:4 along out:knows of at most 1 edges",
                "there may be a longer one: raise --max-depth",
            ),
            (
                "get graph Person:1 --trace none/trace.csv",
                5,
                "could not create none/trace.csv: no such file",
                "folder exists",
            ),
            (
                "get graph Person:1 --output none/rows.csv",
                5,
                "could not create none/rows.csv: no such file",
                "folder exists",
            ),
        ],
    );
    for (args, words) in [
        ("fly graph", "unrecognized subcommand 'fly'"),
        ("get graph Person", "does not name a vertex; write LABEL:KEY"),
        ("get graph \"a:1", "has a \" that is not closed"),
        ("traverse graph --start Person:1 --hop up:knows", "does not begin with a direction"),
        ("traverse graph --start Person:1 --hop out:knows[since", "ends where a comparison"),
        ("load other --from data --memory lots", "invalid value 'lots'"),
    ] {
        let run = shell.run(&args.split(' ').collect::<Vec<_>>());
        assert_eq!((run.status, run.out.as_str()), (2, ""), "{args}: {}", run.err);
        assert!(run.err.contains(words) && run.err.contains("--help"), "{args}: {}", run.err);
        assert_eq!(NOISE.iter().find(|noise| run.err.contains(**noise)), None, "{}", run.err);
    }
}

#[test]
fn files() {
    let shell = Shell::with_graph();
    shell.write("empty.csv", "");
    shell.write("empty.jsonl", "");
    shell.write("broken.csv.gz", "this is not gzip");
    shell.write("broken.jsonl.zst", "this is not zstd");
    shell.write("broken.parquet", "PAR1 this is not Parquet");
    shell.write("odd.xml", "<a/>");
    shell.write(
        "day.jsonl",
        r#"{"op": "upsert_vertex", "label": "Person", "key": 1, "properties": {"age": {"date": "2026-03-01"}}}"#,
    );
    shell.write(
        "missing.jsonl",
        r#"{"op": "upsert_edge", "label": "knows", "source": ["Person", 1], "target": ["Person", 9]}"#,
    );
    tries(
        &shell,
        &[
            ("load new --from none.csv", 2, "could not read none.csv", "check that it exists"),
            ("load new --from broken.csv.gz", 2, "could not read broken.csv.gz", "gzip -t"),
            ("load new --from s3:/bucket/files", 2, "write s3://, with two slashes", ""),
            ("load new --from none/*.csv", 3, "no file matches none/*.csv", "check that it exists"),
            ("apply graph none.jsonl", 2, "could not read none.jsonl", "check that it exists"),
            ("apply graph broken.jsonl.zst", 2, "broken.jsonl.zst", ""),
            (
                "apply graph broken.parquet",
                2,
                "broken.parquet: is not a Parquet file that can be read",
                "correct the file or write it again",
            ),
            ("apply graph s3://bucket/changes.jsonl", 2, "is a URL", "copy the files"),
            (
                "apply graph odd.xml",
                2,
                "odd.xml: has an unknown extension; changes are read from .jsonl",
                "hoplake apply --help",
            ),
            ("apply graph data", 2, "data: is a folder; changes are read from .jsonl", "hoplake apply --help"),
            (
                "apply graph day.jsonl",
                2,
                "property age of Person is int64, which 2026-03-01 is not",
                "correct the file",
            ),
            (
                "apply graph missing.jsonl",
                2,
                "line 1: upsert of edge Person:1 -knows-> Person:9 is refused: there is no vertex Person:9",
                "--create-missing",
            ),
        ],
    );
    shell.run(&["apply", "graph", "empty.jsonl"]).ok();
}

fn on_s3(shell: &Shell, args: &str, server: &S3Server, changed: &[(&str, &str)], removed: &[&str]) -> Run {
    let mut command = shell.command(&args.split(' ').collect::<Vec<_>>());
    // Nothing of the machine's own settings.
    command.env_clear().envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
    let kept = server.env().into_iter().filter(|(name, _)| !removed.contains(&name.as_str()));
    command.envs(kept).envs(changed.iter().copied());
    Run::of(&command.output().unwrap())
}

#[test]
fn stores() {
    let shell = Shell::with_graph();
    let server = S3Server::start().unwrap();
    let at = server.url("mistakes");
    let missing = "s3://no-such-bucket/graph";
    let load = |url: &str| format!("load {url} --from data");
    let closed = ReservedPort::new().unwrap();
    let nobody = format!("http://127.0.0.1:{closed}");
    let key = "AWS_ACCESS_KEY_ID";
    let secret = "AWS_SECRET_ACCESS_KEY";
    let endpoint = "AWS_ENDPOINT_URL";
    /// The command, with variables set and removed, its message, and its hint.
    type Case<'a> = (String, &'a [(&'a str, &'a str)], &'a [&'a str], &'a str, &'a str);
    let cases: [Case<'_>; 6] = [
        (load(missing), &[], &[], "there is no such bucket", "make it first, or check its name"),
        (format!("info {missing}"), &[], &[], "there is no such bucket", "make it first, or check its name"),
        (load(&at), &[(secret, "wrong")], &[], "it does not accept the secret key", "set AWS_ACCESS_KEY_ID"),
        (load(&at), &[(key, "nobody")], &[], "it does not know the access key", "set AWS_ACCESS_KEY_ID"),
        (format!("info {at}"), &[], &[key, secret], "there are no credentials for it", "set AWS_ACCESS_KEY_ID"),
        (
            format!("info {at}"),
            &[(endpoint, &nobody)],
            &[],
            "it cannot be reached: connection refused",
            "AWS_ENDPOINT_URL",
        ),
    ];
    for (args, changed, removed, error, hint) in cases {
        let run = on_s3(&shell, &args, &server, changed, removed);
        check(&run, &args, 5, error, hint);
        assert!(run.err.len() < 500, "{}", run.err);
    }
}
