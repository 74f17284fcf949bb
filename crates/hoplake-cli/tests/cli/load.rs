//! Loading, looking at what was loaded, and looking after it.

use crate::hoplake::{EDGES, PEOPLE, Shell};

#[test]
fn load_and_info_agree() {
    let shell = Shell::empty();
    shell.write("data/people.csv", PEOPLE);
    shell.write("data/edges.csv", EDGES);
    let args = ["load", "graph", "--from", "data", "--memory", "64MiB", "--message", "hello", "--json"];
    let run = shell.run(&args).ok();
    let report = &run.json()[0];
    assert_eq!((&report["vertices"], &report["edges"], &report["version"]), (&5.into(), &6.into(), &1.into()));
    assert_eq!(run.err, "");
    let info = shell.run(&["info", "graph", "--json"]).ok().json().remove(0);
    assert_eq!((&info["vertices"], &info["edges"], &info["message"]), (&5.into(), &6.into(), &"hello".into()));
    let knows = info["edge_types"].as_array().unwrap().iter().find(|edge| edge["label"] == "knows").unwrap();
    assert_eq!((&knows["source"], &knows["target"], &knows["count"]), (&"Person".into(), &"Person".into(), &4.into()));
    assert_eq!(knows["degrees"]["out"]["max"], 2);
    assert_eq!(knows["degrees"]["out"]["vertices"], 3);
    let text = shell.run(&["info", "graph"]).ok().out;
    assert!(text.contains("5 vertices, 6 edges") && text.contains("Person -knows-> Person"), "{text}");
}

#[test]
fn a_graph_is_replaced_only_on_request_and_old_versions_stay() {
    let shell = Shell::with_graph();
    shell.run(&["load", "graph", "--from", "data"]).fails(4, "there is a graph", "--replace");
    shell.write("data/edges.csv", &EDGES[..EDGES.len() - "105,4,10,livesIn,\n".len()]);
    shell.run(&["load", "graph", "--from", "data", "--replace"]).ok();
    let edges = |version: &str| {
        let info = shell.run(&["info", "graph", "--json", "--version", version]).ok().json().remove(0);
        assert_eq!(info["versions"], serde_json::json!([1, 2, 3]), "version 2 announces the load");
        info["edges"].as_u64().unwrap()
    };
    assert_eq!((edges("1"), edges("3")), (6, 5));
    let args = ["traverse", "graph", "--start", "Person:4", "--hop", "out:livesIn", "--count", "--version"];
    assert_eq!(shell.run(&[&args[..], &["1"]].concat()).ok().out, "1\n");
    assert_eq!(shell.run(&[&args[..], &["3"]].concat()).ok().out, "0\n");
    shell.run(&["info", "graph", "--version", "9"]).fails(3, "no version 9", "hoplake log graph");
}

#[test]
fn a_bad_row_is_named_or_put_aside() {
    let shell = Shell::empty();
    shell.write("data/people.csv", &PEOPLE.replace("42", "old"));
    shell.write("data/edges.csv", &EDGES.replace("3,4,knows", "3,77,knows"));
    let run = shell.run(&["load", "graph", "--from", "data"]);
    run.fails(2, "people.csv, line 3, column age", "--bad-rows skip");
    assert!(run.err.contains("\"old\""), "{}", run.err);
    assert_eq!(shell.run(&["info", "graph"]).status, 3);
    let run = shell.run(&["load", "graph", "--from", "data", "--bad-rows", "skip", "--json"]).ok();
    assert!(run.err.contains("rejects.csv"), "{}", run.err);
    let rejects = shell.read("rejects.csv");
    let bad = run.json()[0]["bad_rows"].as_u64().unwrap() as usize;
    assert_eq!(rejects.lines().count(), bad + 1);
    assert!(
        rejects
            .lines()
            .any(|line| line.contains("people.csv,3,age:Int,old,") && line.ends_with(",\"2,Person,Bob,old,\"")),
        "{rejects}"
    );
    assert!(rejects.lines().any(|line| line.contains("edges.csv,5,") && line.contains("77")), "{rejects}");
}

#[test]
fn verify_reads_all_and_finds_damage() {
    let shell = Shell::with_graph();
    let verified = shell.run(&["verify", "graph", "--json"]).ok().json().remove(0);
    assert!(verified["blocks"].as_u64().unwrap() > 0);
    let data = std::fs::read_dir(shell.path().join("graph/data")).unwrap();
    let segment = data.map(|entry| entry.unwrap().path()).find(|path| path.extension().is_some_and(|end| end == "hls"));
    let segment = segment.unwrap();
    let mut bytes = std::fs::read(&segment).unwrap();
    bytes[9] ^= 1;
    std::fs::write(&segment, bytes).unwrap();
    let run = shell.run(&["verify", "graph"]);
    assert_eq!(run.status, 7, "{}", run.err);
    assert!(run.err.contains(".hls") && run.err.contains("hint: "), "{}", run.err);
}

#[test]
fn a_vacuum_that_verifies_keeps_the_version_that_is_intact() {
    let shell = Shell::with_graph();
    shell.write("one.jsonl", r#"{"op": "upsert_vertex", "label": "Person", "key": 1, "properties": {"age": 70}}"#);
    shell.run(&["apply", "graph", "one.jsonl"]).ok();
    shell.run(&["vacuum", "graph", "--keep-versions", "2", "--verify"]).ok();
    let data = shell.path().join("graph/data");
    let newest = std::fs::read_dir(data).unwrap().map(|entry| entry.unwrap().path()).max().unwrap();
    let mut bytes = std::fs::read(&newest).unwrap();
    bytes[20] ^= 1;
    std::fs::write(&newest, bytes).unwrap();
    let run = shell.run(&["vacuum", "graph", "--keep-versions", "1", "--verify"]);
    run.fails(7, "version 1 is intact", "hoplake restore graph --version 1");
    shell.run(&["restore", "graph", "--version", "1"]).ok();
    shell.run(&["vacuum", "graph", "--verify"]).ok();
}

#[test]
fn vacuum_spares_what_is_young_and_what_is_named() {
    let shell = Shell::with_graph();
    let leftover = "graph/data/00000000000000000001-01JDXFAKEFAKEFAKEFAKEFAKE0-000000.hls";
    shell.write(leftover, "leftover");
    assert_eq!(shell.run(&["vacuum", "graph", "--json"]).ok().json()[0]["objects"], 0);
    std::thread::sleep(std::time::Duration::from_millis(20));
    let run = shell.run(&["vacuum", "graph", "--min-age", "1ms", "--json"]).ok();
    assert_eq!((&run.json()[0]["objects"], &run.json()[0]["bytes"]), (&1.into(), &8.into()));
    shell.run(&["verify", "graph"]).ok();
}

#[cfg(unix)]
#[test]
fn an_interrupted_load_leaves_nothing_visible() {
    let shell = Shell::empty();
    // A pipe without a writer keeps the load waiting.
    let fifo = shell.path().join("edges.csv");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let mut load = shell.command(&["load", "graph", "--from", "edges.csv", "--temp-dir", "."]);
    let mut child = load.stderr(std::process::Stdio::piped()).spawn().unwrap();
    let begun = std::time::Instant::now();
    let temporary = || {
        std::fs::read_dir(shell.path())
            .unwrap()
            .any(|entry| entry.unwrap().file_name().to_string_lossy().starts_with("hoplake-load-"))
    };
    while !temporary() {
        assert!(begun.elapsed().as_secs() < 30, "the load did not begin");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    // The folder is made just before the signal is listened to.
    std::thread::sleep(std::time::Duration::from_millis(300));
    let pid = child.id().to_string();
    assert!(std::process::Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(!temporary());
    assert_eq!(shell.run(&["info", "graph"]).status, 3);
}

#[test]
fn a_quote_that_is_not_closed_loads_nothing() {
    let shell = Shell::empty();
    shell.write("data/people.csv", &format!("{PEOPLE}11,Town,\"Bonn,,\n12,Town,Kiel,,\n"));
    shell.write("data/edges.csv", EDGES);
    for policy in ["stop", "skip"] {
        let run = shell.run(&["load", "graph", "--from", "data", "--bad-rows", policy]);
        run.fails(2, "people.csv, line 7: a quote opens here and is not closed", "correct the file");
        assert!(!run.err.contains("--bad-rows"), "{}", run.err);
    }
    shell.run(&["info", "graph"]).fails(3, "graph", "load");
}

#[test]
fn a_field_beyond_the_bound_is_rejected_within_the_budget() {
    let shell = Shell::empty();
    shell.write("data/people.csv", &format!("~id,~label,name\n1,Person,{}\n", "x".repeat(9 << 20)));
    let run = shell.run(&["load", "graph", "--from", "data", "--memory", "64MiB"]);
    assert!(
        run.err.contains("people.csv, line 2: has a row of more than 4194304 bytes; raise the memory budget"),
        "{}",
        run.err
    );
    let run = shell.run(&["load", "graph", "--from", "data", "--field-bytes-max", "1MiB"]);
    assert!(run.err.contains("line 2: has a field of more than 1048576 bytes; raise field_bytes_max"), "{}", run.err);
    shell.run(&["info", "graph"]).fails(3, "graph", "load");
}

#[test]
fn a_file_without_a_good_row_is_no_empty_graph() {
    for (row, why) in
        [("1,Person", "has 2 fields where the header has 3"), ("1,Person,\"A\"nn", "has text after the quote")]
    {
        let shell = Shell::empty();
        shell.write("data/people.csv", &format!("~id,~label,name\n{row}\n"));
        for policy in ["stop", "skip"] {
            let run = shell.run(&["load", "graph", "--from", "data", "--bad-rows", policy]);
            assert!(run.status == 2 && run.err.contains(&format!("people.csv, line 2: {why}")), "{}", run.err);
        }
    }
}

/// An interrupted load over a graph, by Ctrl-C or SIGTERM, leaves no name in it, and what its message promises happens.
#[cfg(unix)]
#[test]
fn an_interrupted_load_over_a_graph_takes_its_name_out() {
    for signal in ["-INT", "-TERM"] {
        let shell = Shell::with_graph();
        let fifo = shell.path().join("edges.csv");
        assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
        let mut load = shell.command(&["load", "graph", "--replace", "--from", "edges.csv", "--temp-dir", "."]);
        let child = load.stderr(std::process::Stdio::piped()).spawn().unwrap();
        let begun = std::time::Instant::now();
        let announced = || shell.run(&["log", "graph", "--json", "--limit", "1"]).ok().out.contains("load begins");
        while !announced() {
            assert!(begun.elapsed().as_secs() < 30, "the load did not begin");
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        let pid = child.id().to_string();
        assert!(std::process::Command::new("kill").args([signal, &pid]).status().unwrap().success());
        let output = child.wait_with_output().unwrap();
        let err = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(130), "{err}");
        assert!(err.contains("interrupted") && err.contains("hoplake vacuum graph --min-age 0s"), "{err}");
        assert!(shell.run(&["log", "graph", "--json", "--limit", "1"]).ok().out.contains("load ends"));
        let vacuum = shell.run(&["vacuum", "graph", "--min-age", "0s"]).ok();
        assert!(!vacuum.err.contains("is at work"), "{}", vacuum.err);
        shell.run(&["verify", "graph"]).ok();
    }
}

#[test]
fn verify_lists_all_damage_and_says_what_can_be_restored() {
    let shell = Shell::with_graph();
    for key in 5..8 {
        let line =
            serde_json::json!({"op": "upsert_vertex", "label": "Person", "key": key, "properties": {"name": "P"}});
        shell.write("more.jsonl", &format!("{line}\n"));
        shell.run(&["apply", "graph", "more.jsonl", "--timeout", "1m"]).ok();
    }
    assert!(shell.run(&["verify", "graph"]).ok().out.starts_with("all 4 versions are intact, up to version 4: "));
    shell.write("graph/manifest/00000000000000000004.hlm", "");
    shell.write("graph/manifest/00000000000000000002.hlm", "");
    let run = shell.run(&["verify", "graph"]);
    assert_eq!(run.status, 7, "{}", run.err);
    for expected in ["damaged: version 4: ", "damaged: version 2: ", "2 damaged items", "version 3 is intact"] {
        assert!(run.err.contains(expected), "{expected}: {}", run.err);
    }
    assert!(run.err.contains("hint: hoplake restore graph --version 3 makes it the newest"), "{}", run.err);
    // Not even what a writer did not finish: after a loss of power it may be all there is of an object.
    let unfinished = "graph/data/00000000000000000003-01JDXAAAAAAAAAAAAAAAAAAAAA-000000.hls#1";
    shell.write(unfinished, "half");
    let vacuum = shell.run(&["vacuum", "graph", "--keep-versions", "9", "--min-age", "0s"]);
    vacuum.fails(7, "nothing is removed", "hoplake verify graph");
    assert!(shell.path().join(unfinished).exists());
    let restored = shell.run(&["restore", "graph", "--version", "3"]).ok();
    assert_eq!(restored.out, "version 5 has the content of version 3\n");
    let run = shell.run(&["verify", "graph", "--json"]);
    assert_eq!(run.status, 7, "{}", run.err);
    let found: serde_json::Value = serde_json::from_str(run.out.trim()).unwrap();
    assert_eq!(
        (&found["damaged_versions"], &found["intact_versions"]),
        (&serde_json::json!([2]), &serde_json::json!([1, 3, 5]))
    );
    assert!(run.err.contains("hoplake vacuum graph --keep-versions 1"), "{}", run.err);
    shell.run(&["vacuum", "graph", "--keep-versions", "1", "--min-age", "0s"]).ok();
    assert!(!shell.path().join(unfinished).exists());
    shell.run(&["verify", "graph"]).ok();
}
