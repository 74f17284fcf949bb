//! `hoplake cache-sim` on traces whose answers are known.

use crate::hoplake::Shell;

const HEADER: &str = "query,wave,object,position,bytes,served\n";

/// Four blocks, ten times round, each access a query.
fn textbook_loop() -> String {
    let line = |query: u64| format!("{query},0,data/a,{},1000,store\n", query % 4 * 100_000);
    HEADER.to_string() + &(0..40).map(line).collect::<String>()
}

#[test]
fn a_loop_over_more_than_the_cache() {
    let shell = Shell::empty();
    shell.write("loop.csv", &textbook_loop());
    // Room for three of the four, with 160 bytes of books each; and for all.
    let args = ["cache-sim", "loop.csv", "--sizes", "3500B,4700B", "--policies", "lru,lfu"];
    let json = &shell.run(&[&args[..], &["--json"]].concat()).ok().json()[0];
    assert_eq!(json["trace"]["accesses"], 40);
    assert_eq!(json["trace"]["cache_bytes"], 4 * 1_160);
    assert_eq!(json["trace"]["served"]["store"], 40);
    let outcomes: Vec<_> = json["outcomes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|outcome| {
            (outcome["policy"].as_str().unwrap(), outcome["hits"].as_u64().unwrap(), outcome["requests"].as_u64())
        })
        .collect();
    let expected = [
        ("lru", 0, Some(40)),
        ("lru", 36, Some(4)),
        ("lfu", 0, Some(40)),
        ("lfu", 36, Some(4)),
        // Three stay for good, and the fourth passes by.
        ("belady", 27, Some(13)),
        ("belady", 36, Some(4)),
        // 40 accesses × 3,500 bytes pay for 30 times 4 accesses × 1,160 bytes.
        ("bound", 30, None),
        ("bound", 36, None),
    ];
    assert_eq!(outcomes, expected);

    let text = shell.run(&args).ok().out;
    assert!(text.starts_with("40 accesses in 40 queries: 39.1 KiB of 4 blocks, and 4.5 KiB in a cache\n"), "{text}");
    assert!(text.contains("When recorded, served from: store 100.0 %"), "{text}");
    let row = |name: &str| text.lines().find(|line| line.trim_start().starts_with(name)).unwrap();
    let cells = |name: &str| row(name).split_whitespace().map(String::from).collect::<Vec<_>>().join(" ");
    assert_eq!(cells("belady"), "belady 3.4 KiB 67.5 % 67.5 % 0.0 % 13 12.7 KiB");
    assert_eq!(cells("bound"), "bound 3.4 KiB 75.0 % 75.4 % 0.0 % – –");
}

#[test]
fn curves_are_drawn_for_every_contender_with_and_without_read_ahead() {
    let shell = Shell::empty();
    shell.write("loop.csv", &textbook_loop());
    let args = ["cache-sim", "loop.csv", "--prefetch", "2", "--plot", "curves.svg", "--json"];
    let json = &shell.run(&args).ok().json()[0];
    // Eight policies with and without, Belady and the bound; six sizes.
    assert_eq!(json["outcomes"].as_array().unwrap().len(), (8 * 2 + 2) * 6);
    let svg = shell.read("curves.svg");
    for words in
        ["Object hit ratio", "Byte hit ratio", "lrfu:0.0001+retention-cost", "s3-fifo, 2 ahead", "belady", "bound"]
    {
        assert!(svg.contains(words), "{words}");
    }
    assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"));
    // A point for each outcome in both panels.
    assert_eq!(svg.matches("<circle").count(), (8 * 2 + 2) * 6 * 2);
}

#[test]
fn mistakes_in_traces_and_names() {
    let shell = Shell::empty();
    shell.write("trace.csv", &(HEADER.to_string() + "0,0,data/a,0,10,store\n0,1,data/a,0,ten,store\n"));
    shell.write("other.csv", "id,name\n");
    let run = |args: &str| shell.run(&args.split(' ').collect::<Vec<_>>());
    run("cache-sim none.csv").fails(3, "could not read trace none.csv", "check its name");
    run("cache-sim trace.csv").fails(2, "trace.csv, line 3, column bytes: \"ten\" is not a whole number", "--help");
    run("cache-sim other.csv").fails(2, "other.csv, line 1: the header should be query,wave,object", "--help");
    run("cache-sim trace.csv --plot curves.png").fails(2, "curves.png is not a name for a plot", ".svg");
    let run = run("cache-sim trace.csv --policies lru,mru");
    assert!(run.status == 2 && run.err.contains("\"mru\" is not a cache policy: write lru, lfu"), "{}", run.err);
}
