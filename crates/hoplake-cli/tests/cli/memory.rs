//! The limit of memory of `query`, `queries call` and `console`, with `--max-memory` and without it.
//!
//! Texts of some kilobytes would build values of megabytes or gigabytes. The query ends at its limit, and the peak of the process, as the
//! system has it, stays near it.

use serde_json::json;

use crate::hoplake::{Run, Shell, measured};

const MIB: u64 = 1 << 20;

/// The limit where one is given.
const LIMIT: u64 = 64 * MIB;

/// The limit where none is.
const DEFAULT: u64 = 2 << 30;

/// What a process may have beyond its limit and what a query of one number takes.
const HEADROOM: u64 = 64 * MIB;

/// A text of a thousand times as many letters, built from two short ones.
fn large(thousands: usize) -> String {
    format!("g.inject('{}').replace('a', '{}')", "a".repeat(10_000), "b".repeat(thousands / 10))
}

/// A text that is within the limit where it is the only one.
const PART: usize = 16_000;

/// Queries that would build more than the limit, by the step that does.
fn amplifiers() -> [(&'static str, String); 7] {
    let part = large(PART);
    let numbers = vec!["1"; 10_000].join(",");
    [
        ("replace", large(100_000)),
        ("product", "g.inject([1,2,3]).repeat(product(identity())).times(5)".into()),
        ("combine", "g.inject([1,2,3]).repeat(combine(identity())).times(40)".into()),
        ("conjoin", format!("g.inject([{numbers}]).conjoin('{}')", "b".repeat(10_000))),
        ("concat", format!("{part}.as('a'){}", ".concat(select('a'))".repeat(4))),
        ("format", format!("{part}.format('{}')", "%{_}".repeat(5))),
        ("split", format!("{part}.split('')")),
    ]
}

/// Arguments that give names to two texts and a list, from which queries without them build more than the default limit at once.
fn bound() -> Vec<String> {
    let text = |letter: &str| letter.repeat(100_000);
    [("a", json!(text("a"))), ("b", json!(text("b"))), ("l", json!(vec![1; 30_000]))]
        .into_iter()
        .flat_map(|(name, value)| ["--bind".to_owned(), format!("{name}={value}")])
        .collect()
}

const BEYOND_DEFAULT: [&str; 3] = ["g.inject(a).replace('a', b)", "g.inject(l).conjoin(b)", "g.inject(l).product(l)"];

struct Bench {
    shell: Shell,
    /// The peak of a query of one number.
    least: u64,
}

impl Bench {
    fn new() -> Self {
        let shell = Shell::with_graph();
        let (run, least) = measured(shell.command(&["query", "graph", "g.inject(1)"]), "");
        assert_eq!(run.ok().out, "1\n");
        Self { shell, least }
    }

    /// Runs a verb, whose peak is at most this much above that of a small query.
    fn within(&self, peak: u64, what: &str, args: &[&str], input: &str) -> Run {
        let (run, seen) = measured(self.shell.command(args), input);
        eprintln!("{what}: peak {} MiB, least {} MiB", seen / MIB, self.least / MIB);
        let above = seen.saturating_sub(self.least);
        assert!(above <= peak, "{what}: {above} bytes above a small query: {}", run.err);
        run
    }
}

/// What a query says that would take more than a limit.
fn message(limit: u64) -> String {
    format!("error: the query was ended at its limit of {limit} bytes of memory for the query")
}

/// The query is rejected, and nothing of its results is printed.
fn rejected(run: &Run, limit: u64) {
    run.fails(6, &message(limit)["error: ".len()..], "raise the limit");
}

/// Each of these queries is rejected in a console, which then answers the next.
fn all_rejected(run: &Run, queries: usize, limit: u64) {
    let rejected = run.err.lines().filter(|line| line.starts_with(&message(limit))).count();
    assert_eq!((rejected, run.out.as_str()), (queries, "7\n"), "{}", run.err);
    assert!(run.status == 2 && run.err.contains(&format!("error: {queries} queries failed")), "{}", run.err);
}

#[test]
fn queries_end_at_the_memory_that_they_are_given() {
    let bench = Bench::new();
    // What others are made of is not rejected itself.
    let fits =
        bench.within(LIMIT + HEADROOM, "part", &["query", "graph", "--max-memory", "64MiB", &large(PART)], "").ok();
    assert_eq!(fits.out.len(), PART * 1_000 + 1);
    for (step, query) in amplifiers() {
        for format in ["text", "json"] {
            let args = ["query", "graph", "--max-memory", "64MiB", "--format", format, &query];
            let what = format!("{step} as {format}");
            rejected(&bench.within(LIMIT + HEADROOM, &what, &args, ""), LIMIT);
        }
    }
    // As JSON a value is a tree and a text in addition, which count.
    let value = large(18_000);
    let args = |format| ["query", "graph", "--max-memory", "64MiB", "--format", format, &value];
    bench.within(LIMIT + HEADROOM, "printed as text", &args("text"), "").ok();
    rejected(&bench.within(LIMIT + HEADROOM, "printed as JSON", &args("json"), ""), LIMIT);
}

#[test]
fn a_console_ends_queries_at_the_memory_that_it_is_given() {
    let bench = Bench::new();
    let amplifiers = amplifiers();
    let queries: String = amplifiers.iter().map(|(_, query)| format!("{query}\n")).collect();
    let args = ["console", "graph", "--max-memory", "64MiB"];
    let run = bench.within(LIMIT + HEADROOM, "console", &args, &format!("{queries}g.inject(7)\n"));
    all_rejected(&run, amplifiers.len(), LIMIT);
    // The table that shows a value counts: one that is printed as text elsewhere may be rejected here, and none takes more.
    for thousands in [12_000, PART, 20_000] {
        let what = format!("console with {thousands} thousand letters");
        let run = bench.within(LIMIT + HEADROOM, &what, &args, &format!("{}\n", large(thousands)));
        let is_rejected = run.err.starts_with(&message(LIMIT)) && run.out.is_empty();
        assert!(is_rejected || (run.status == 0 && run.out.len() > thousands * 1_000), "{what}: {}", run.err);
        assert!(thousands == 20_000 || !is_rejected, "{what}: {}", run.err);
    }
}

#[test]
fn queries_without_a_limit_have_one() {
    let bench = Bench::new();
    let bound = bound();
    let bound: Vec<&str> = bound.iter().map(String::as_str).collect();
    for query in BEYOND_DEFAULT {
        // How long a list will be is known before it is begun. A text grows, and ends before the step that would be too large.
        let peak = if query.contains("product") { HEADROOM } else { DEFAULT };
        for format in ["text", "json"] {
            let args = [&["query", "graph", query, "--format", format][..], &bound].concat();
            rejected(&bench.within(peak, query, &args, ""), DEFAULT);
        }
    }
    let console = [&["console", "graph"][..], &bound].concat();
    let run = bench.within(DEFAULT, "console", &console, &format!("{}\ng.inject(7)\n", BEYOND_DEFAULT.join("\n")));
    all_rejected(&run, BEYOND_DEFAULT.len(), DEFAULT);
    let product = format!("{}\ng.inject(7)\n", [BEYOND_DEFAULT[2]; 2].join("\n"));
    all_rejected(&bench.within(HEADROOM, "product in a console", &console, &product), 2, DEFAULT);
    // A prepared query is one, too, and one that is given takes the place of the default.
    let parameters = ["--param", "l:list<int64>"];
    bench.shell.run(&[&["queries", "save", "graph", "big", BEYOND_DEFAULT[2]][..], &parameters].concat()).ok();
    let call = [&["queries", "call", "graph", "big"][..], &bound[4..]].concat();
    rejected(&bench.within(HEADROOM, "call", &call, ""), DEFAULT);
    for (verb, args) in [("query", &[&["query", "graph", BEYOND_DEFAULT[2]][..], &bound].concat()), ("call", &call)] {
        let args = [&args[..], &["--max-memory", "4GiB"]].concat();
        rejected(&bench.within(HEADROOM, verb, &args, ""), 4 << 30);
    }
}
