//! The cost that each verb reports is what a proxy before a real S3 server has seen: waves, requests and bytes.

use std::fs;

use hoplake_testkit::{Passed, RequestKind, S3Server, WaveProxy};
use serde_json::Value;
use tokio::task::block_in_place;

use crate::hoplake::{Run, Shell};

/// Waves, requests that read, their bytes.
type Told = [u64; 3];

struct Bench {
    shell: Shell,
    server: S3Server,
    proxy: WaveProxy,
    url: String,
}

impl Bench {
    /// A graph of people and places, in which neighbours are far apart, so that no two hops find their lists in one
    /// block.
    async fn with_graph() -> Self {
        let shell = Shell::empty();
        let server = S3Server::start().unwrap();
        let proxy = WaveProxy::start(&server.endpoint()).await.unwrap();
        let people: String = (0..2_000).map(|key| format!("{key},n{key},{}\n", key % 90)).collect();
        shell.write("data/P.csv", &format!(":ID(P),name,age:int\n{people}"));
        let places: String = (0..300).map(|key| format!("{key},p{key}\n")).collect();
        shell.write("data/C.csv", &format!(":ID(C),name\n{places}"));
        let knows = |edge: u64| {
            format!("{},{},knows,{}\n", edge % 2_000, (edge % 2_000 * 7_919 + edge / 2_000 * 613) % 2_000, edge % 100)
        };
        let knows: String = (0..12_000).map(knows).collect();
        shell.write("data/knows.csv", &format!(":START_ID(P),:END_ID(P),:TYPE,since:int\n{knows}"));
        let lives: String = (0..2_000).map(|key| format!("{key},{},livesIn\n", key % 300)).collect();
        shell.write("data/lives.csv", &format!(":START_ID(P),:END_ID(C),:TYPE\n{lives}"));
        let url = server.url("account");
        let bench = Self { shell, server, proxy, url };
        let load = ["load", &bench.url, "--from", "data", "--block-size", "1KiB"];
        bench.run_at(&bench.server.endpoint(), &load).ok();
        bench
    }

    fn run_at(&self, endpoint: &str, args: &[&str]) -> Run {
        let mut command = self.shell.command(args);
        command.envs(self.server.env_at(endpoint)).env_remove("HOPLAKE_DISK_CACHE");
        let output = block_in_place(|| command.output().unwrap());
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Run { out: text(output.stdout), err: text(output.stderr), status: output.status.code().unwrap() }
    }

    /// Runs a verb on the graph through the proxy.
    fn run(&self, verb: &str, args: &[&str]) -> (Run, Vec<Passed>) {
        self.proxy.take();
        let all: Vec<&str> = [&[verb, &*self.url], args].concat();
        let run = self.run_at(&self.proxy.endpoint(), &all).ok();
        (run, self.proxy.take())
    }

    /// The profile of a verb, which matches the proxy's counts.
    fn profile(&self, verb: &str, args: &[&str]) -> Value {
        let args = [args, &["--profile=json"]].concat();
        let mut tries = 0;
        loop {
            let (run, passed) = self.run(verb, &args);
            let profile: Value = serde_json::from_str(&run.err).unwrap();
            let told = told(&profile["total"]);
            let seen = seen(&passed);
            assert_eq!(told[1..], seen[1..], "{verb}: {passed:#?}");
            // On a busy machine the proxy may take one wave for two.
            tries += 1;
            if told[0] == seen[0] || tries == 3 {
                assert_eq!(told, seen, "{verb}: {passed:#?}");
                return profile;
            }
        }
    }
}

fn seen(passed: &[Passed]) -> Told {
    // Deletions are free. The hint is written at the end, and no one waits for it.
    let reads = || passed.iter().filter(|it| !matches!(it.kind, RequestKind::Put | RequestKind::Delete));
    let waves = passed.iter().filter(|it| !it.path.ends_with("/hint") || it.kind != RequestKind::Put);
    let mut waves: Vec<u64> = waves.map(|it| it.wave).collect();
    waves.dedup();
    [waves.len() as u64, reads().count() as u64, reads().map(|it| it.bytes).sum()]
}

/// A profile's or a writer's cost.
fn told(cost: &Value) -> Told {
    let bytes = cost.get("bytes").unwrap_or(&cost["store_bytes"]);
    [&cost["waits"], &cost["requests"], bytes].map(|it| it.as_u64().unwrap())
}

fn waves(step: &Value) -> u64 {
    step["waves"].as_u64().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_verb_that_reads_tells_what_was_seen() {
    let bench = Bench::with_graph().await;
    for (verb, args, promised) in [
        ("get", &["P:5", "C:7"][..], 4),
        ("neighbors", &["P:5", "--hop", "out:knows"], 5),
        ("neighbors", &["P:5", "--hop", "both", "--select", "since,name,age"], 5),
        ("neighbors", &["P:5", "--hop", "both", "--count"], 4),
        ("khop", &["P:5", "--hop", "out:knows", "--select", "age"], 6),
        ("khop", &["P:5", "--hop", "out:knows", "--count"], 5),
        ("traverse", &["--start", "P:5", "--hop", "out:knows", "--hop", "out:knows", "--count"], 5),
        ("traverse", &["--start", "P:5", "--hop", "out:knows", "--hop", "out", "--select", "name"], 6),
        ("traverse", &["--start", "P:5", "--hop", "out:knows", "--hop", "out:livesIn", "--paths"], 6),
        ("traverse", &["--start", "P:5", "--hop", "out:knows", "--strategy", "bfs-pipelined", "--count"], 4),
        ("scan", &["--label", "P", "--where", "age < 5", "--select", "name"], 5),
        ("scan", &["--label", "P", "--where", "name = n77", "--count"], 4),
        ("log", &[], 3),
    ] {
        let profile = bench.profile(verb, args);
        assert_eq!(waves(&profile["total"]), promised, "{verb} {args:?}: {profile}");
        assert_eq!(profile["background"]["requests"], 0);
    }
    bench.run_at(&bench.server.endpoint(), &["index", "create", &bench.url, "P.name"]).ok();
    let profile = bench.profile("scan", &["--label", "P", "--where", "name = n77", "--count"]);
    assert_eq!((waves(&profile["open"]), waves(&profile["total"])), (2, 3), "{profile}");
    // A path of n edges takes n waves at most, for which two look-ups are one, and its keys one.
    let profile = bench.profile("path", &["--from", "P:5", "--to", "P:1595", "--hop", "out:knows"]);
    assert_eq!((waves(&profile["search"]), waves(&profile["total"])), (1, 5), "{profile}");
    let profile = bench.profile("path", &["--from", "P:5", "--to", "P:250", "--hop", "out:knows"]);
    let search = waves(&profile["search"]);
    assert!((2..=8).contains(&search) && waves(&profile["total"]) == 4 + search, "{profile}");
}

#[tokio::test(flavor = "multi_thread")]
async fn depth_first_tells_its_waits_and_a_disk_cache_what_it_reads_for_later() {
    let bench = Bench::with_graph().await;
    let hops = ["--start", "P:5", "--hop", "out:knows", "--hop", "out:knows", "--count"];
    let profile = bench.profile("traverse", &[&hops[..], &["--strategy", "dfs"]].concat());
    let total = &profile["total"];
    assert!(waves(total) == 5 && total["waits"].as_u64() > Some(6), "{profile}");
    // Read for the next process, which finds it on the disk: this one does not wait for it.
    let args = [&hops[..], &["--disk-cache", "blocks", "--profile=json"]].concat();
    let (run, passed) = bench.run("traverse", &args);
    let profile: Value = serde_json::from_str(&run.err).unwrap();
    assert_eq!(told(&profile["total"])[1..], seen(&passed)[1..], "{profile}: {passed:#?}");
    assert!(profile["background"]["bytes"].as_u64() > Some(10_000), "{profile}");
    let sum: f64 =
        ["open", "look_up", "properties", "background"].iter().map(|it| profile[it]["usd"].as_f64().unwrap()).sum();
    let hops: f64 = profile["hops"].as_array().unwrap().iter().map(|it| it["usd"].as_f64().unwrap()).sum();
    assert!((profile["total"]["usd"].as_f64().unwrap() - sum - hops).abs() < 1e-12, "{profile}");
}

#[tokio::test(flavor = "multi_thread")]
async fn apply_tells_its_opening_and_leaves_its_hint() {
    let bench = Bench::with_graph().await;
    let edge = |target: u64| {
        format!(
            r#"{{"op":"upsert_edge","label":"knows","source":["P",5],"target":["P",{target}],"properties":{{"since":1}}}}"#
        )
    };
    bench.shell.write("change.jsonl", &edge(1_234));
    let (run, passed) = bench.run("apply", &["change.jsonl", "--json"]);
    let report: Value = serde_json::from_str(&run.out).unwrap();
    let cost = &report["cost"];
    assert_eq!(told(cost), seen(&passed), "{cost}: {passed:#?}");
    let puts: Vec<_> = passed.iter().filter(|it| it.kind == RequestKind::Put).collect();
    let bytes: u64 = puts.iter().map(|it| it.bytes).sum();
    assert_eq!((cost["puts"].as_u64(), cost["put_bytes"].as_u64()), (Some(puts.len() as u64), Some(bytes)));
    // The hint was written when the process ended, so that the next opening takes its two waves.
    assert!(puts.iter().any(|it| it.path.ends_with("/hint")), "{passed:#?}");
    let profile = bench.profile("get", &["P:5"]);
    assert_eq!(waves(&profile["open"]), 2);
    // To find a version by its tag or its time is a part of opening it.
    bench.run("tag", &["first", "--version", "1"]);
    for version in [["--version", "first"], ["--as-of", "2100-01-01"]] {
        let profile = bench.profile("get", &[&["P:5"][..], &version].concat());
        assert!(waves(&profile["open"]) > 2, "{profile}");
    }
}

/// The rows of the page's table of round trips: a change, and how many its `apply` takes.
fn documented() -> Vec<(String, u64)> {
    let page = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/changes.md")).unwrap();
    let table = page.split("| round trips |\n").nth(1).expect("the page has a table of round trips");
    let rows = table.lines().skip(1).map_while(|line| line.strip_prefix("| ")?.strip_suffix(" |")?.split_once(" | "));
    rows.map(|(change, waves)| (change.to_owned(), waves.parse().unwrap())).collect()
}

/// A line that is such a change of the graph. Other attempts change other vertices and edges.
fn line_of(change: &str, attempt: u64) -> String {
    let vertex = |op: &str, key: u64, more: &str| format!(r#"{{"op":"{op}","label":"P","key":{key}{more}}}"#);
    let named = r#","properties":{"name":"x"}"#;
    let edge = |op: &str, source: u64, target: u64, more: &str| {
        format!(r#"{{"op":"{op}","label":"knows","source":["P",{source}],"target":["P",{target}]{more}}}"#)
    };
    // As the graph is loaded, with edge 0 of each vertex.
    let known = |source: u64| source * 7_919 % 2_000;
    let at = attempt + 10;
    match change {
        "a vertex that is new" => vertex("upsert_vertex", 5_000 + at, named),
        "a vertex that is replaced" => vertex("upsert_vertex", 200 + at, &format!(r#","replace":true{named}"#)),
        "a vertex of which some properties are set"
        | "the same, where an earlier commit did so that is not compacted" => vertex("upsert_vertex", 300 + at, named),
        "an edge between two vertices that had none of its type" => {
            edge("upsert_edge", 400 + at, 1_000 + at, r#","properties":{"since":1}"#)
        }
        "an edge of which some properties are set" => {
            edge("upsert_edge", 500 + at, known(500 + at), r#","properties":{"since":1}"#)
        }
        "an edge that is deleted" => edge("delete_edge", 600 + at, known(600 + at), ""),
        "a vertex that is deleted" => vertex("delete_vertex", 700 + at, ""),
        other => panic!("there is no change here that is {other:?}: add one"),
    }
}

/// How many of what passed are creates of each kind: of objects with changes, of manifests, of the hint, and of the two that prove that
/// the store has conditional creates.
fn creates(passed: &[Passed]) -> [usize; 4] {
    let puts: Vec<_> = passed.iter().filter(|it| it.kind == RequestKind::Put).collect();
    let count =
        |part: &str, end: &str| puts.iter().filter(|it| it.path.contains(part) && it.path.ends_with(end)).count();
    [count("/data/", ".hls"), count("/manifest/", ".hlm"), count("/", "/hint"), count("/data/", ".probe")]
}

/// Requests that read, of each row of that table: two of the opening and one for each object that it reads, then what the change needs.
const READS: [u64; 8] = [6, 8, 10, 13, 10, 11, 8, 10];

#[tokio::test(flavor = "multi_thread")]
async fn apply_takes_the_round_trips_that_are_documented() {
    let bench = Bench::with_graph().await;
    // Edges have a property more, which no change below has: each leaves something as it was.
    bench.shell.write(
        "first.jsonl",
        r#"{"op":"upsert_edge","label":"knows","source":["P",1900],"target":["P",1],"properties":{"since":1,"until":2}}"#,
    );
    let directly = |args: &[&str]| drop(bench.run_at(&bench.server.endpoint(), args).ok());
    directly(&["apply", &bench.url, "first.jsonl"]);
    let documented = documented();
    assert_eq!(documented.len(), READS.len(), "{documented:?}");
    for ((change, waves), reads) in documented.into_iter().zip(READS) {
        let mut attempt = 0;
        loop {
            directly(&["compact", &bench.url, "--all"]);
            bench.shell.write("change.jsonl", &line_of(&change, attempt));
            if change.starts_with("the same") {
                directly(&["apply", &bench.url, "change.jsonl"]);
            }
            let (run, passed) = bench.run("apply", &["change.jsonl", "--json"]);
            let report: Value = serde_json::from_str(&run.out).unwrap();
            let cost = &report["cost"];
            let told = told(cost);
            let seen = seen(&passed);
            assert_eq!(told[1..], seen[1..], "{change}: {passed:#?}");
            // The last round trip is that of the hint, which only the end of the process waits for. The proof has none of its own.
            assert_eq!((told[0] + 1, told[1]), (waves, reads), "{change}: {cost}: {passed:#?}");
            assert_eq!((creates(&passed), &cost["puts"]), ([1, 1, 1, 2], &5.into()), "{change}: {passed:#?}");
            attempt += 1;
            if told[0] == seen[0] || attempt == 3 {
                assert_eq!(told, seen, "{change}: {passed:#?}");
                break;
            }
        }
    }
}
