//! `hoplake run`: values of all vertices, printed, in files, and as properties.

use serde_json::{Value, json};

use crate::hoplake::Shell;

/// A column of all rows, by label and key.
fn values(shell: &Shell, column: &str, more: &[&str]) -> Vec<(String, Value)> {
    let args = [&["run", "graph"], more, &["--all", "--format", "json"]].concat();
    let rows = shell.run(&args).ok().json().into_iter();
    rows.map(|row| (format!("{}:{}", row["label"].as_str().unwrap(), row["key"]), row[column].clone())).collect()
}

fn expected<const N: usize>(values: [(&str, Value); N]) -> Vec<(String, Value)> {
    values.into_iter().map(|(vertex, value)| (vertex.to_owned(), value)).collect()
}

#[test]
fn levels_and_components_are_those_of_the_edges_that_take_part() {
    let shell = Shell::with_graph();
    for lists in ["memory", "streamed"] {
        let levels = |hop| values(&shell, "level", &["levels", "--from", "Person:2", "--edges", hop, "--lists", lists]);
        let person =
            |two, three, four| [("Person:1", two), ("Person:2", json!(0)), ("Person:3", three), ("Person:4", four)];
        assert_eq!(levels("out:knows"), expected(person(Value::Null, json!(1), json!(2))));
        assert_eq!(levels("both:knows"), expected(person(json!(1), json!(1), json!(2))));
        let all = levels("both");
        assert_eq!(all.last().unwrap(), &("Town:10".to_owned(), json!(2)), "by way of person 1");
        let components = ["components", "--edges", "out:knows", "--label", "Town", "--lists", lists];
        let components = values(&shell, "component", &components);
        assert!(components[..4].iter().all(|(_, component)| *component == components[0].1), "{components:?}");
        assert_ne!(components[4].1, components[0].1, "nobody knows a town");
    }
}

#[test]
fn packed_and_mapped_lists_give_the_same_values() {
    let shell = Shell::with_graph();
    for (column, more) in [
        ("level", &["levels", "--from", "Person:2", "--edges", "both"][..]),
        ("component", &["components", "--label", "Town"]),
        ("component", &["strong-components"]),
        ("degree", &["degrees", "--edges", "in"]),
        ("clustering", &["clustering", "--edges", "both"]),
        ("core", &["cores"]),
        ("closeness", &["closeness"]),
        ("betweenness", &["betweenness", "--edges", "both:knows"]),
        ("similarity", &["similarity", "--from", "Person:2"]),
        ("length", &["paths", "--from", "Person:1"]),
        ("rank", &["pagerank", "--edges", "out:knows"]),
    ] {
        let of = |lists: &[&str]| values(&shell, column, &[more, lists].concat());
        let expected = of(&["--lists", "memory"]);
        assert_eq!(of(&["--lists", "packed"]), expected, "{more:?}");
        assert_eq!(of(&["--lists", "packed", "--mapped"]), expected, "{more:?}, mapped");
    }
    let triangles = |lists| shell.run(&["run", "graph", "triangles", "--lists", lists]).ok().out;
    assert_eq!(triangles("packed"), triangles("memory"));
    for (more, why) in [
        (&["paths", "--from", "Person:1", "--edges", "out:knows", "--weight", "since"][..], "do not support weights"),
        (&["pagerank", "--edges", "out:knows[since > 2000]"], "do not support conditions on edges"),
        (&["communities"], "which has no packed lists"),
        (&["pagerank", "--asynchronous"], "which has no packed lists"),
    ] {
        let run = shell.run(&[&["run", "graph", "--lists", "packed"], more].concat());
        assert!(run.err.contains(why), "{more:?}: {}", run.err);
    }
}

#[test]
fn asynchronous_values_are_those_of_supersteps() {
    let shell = Shell::with_graph();
    for lists in ["memory", "streamed"] {
        let both = |column, more: &[&str]| {
            let more = [more, &["--lists", lists]].concat();
            let asynchronous = [&more[..], &["--asynchronous", "--staleness", "2", "--threshold", "1e-12"]].concat();
            [values(&shell, column, &more), values(&shell, column, &asynchronous)]
        };
        for (column, more) in [
            ("level", &["levels", "--from", "Person:2", "--edges", "both"][..]),
            ("length", &["paths", "--from", "Person:1", "--edges", "out:knows", "--weight", "since"]),
            ("component", &["components", "--edges", "out:knows", "--label", "Town"]),
        ] {
            let [expected, found] = both(column, more);
            assert_eq!(found, expected, "{more:?}");
        }
        for more in [&["pagerank"][..], &["pagerank", "--from", "Person:2"]] {
            let more = [more, &["--tolerance", "1e-9"]].concat();
            let rank = |values: &[(String, Value)]| -> Vec<f64> {
                values.iter().map(|(_, rank)| rank.as_f64().unwrap()).collect()
            };
            let [expected, found] = both("rank", &more).map(|values| rank(&values));
            assert!(expected.iter().zip(&found).all(|(a, b)| (a - b).abs() < 1e-7), "{found:?}, not {expected:?}");
        }
    }
    let run = shell.run(&["run", "graph", "levels", "--from", "Person:2", "--asynchronous"]);
    assert!(run.err.contains(" collections, lists in memory"), "{}", run.err);
}

#[test]
fn paths_are_as_long_as_the_property_says() {
    let shell = Shell::with_graph();
    let since = |lists| {
        let paths = ["paths", "--from", "Person:1", "--edges", "out:knows", "--weight", "since", "--lists", lists];
        values(&shell, "length", &paths)
    };
    let lengths = [
        ("Person:1", json!(0.0)),
        ("Person:2", json!(2001.0)),
        ("Person:3", json!(2003.0)),
        ("Person:4", json!(4007.0)),
    ];
    assert_eq!(since("memory"), expected(lengths.clone()));
    assert_eq!(since("streamed"), expected(lengths));
    let edges = values(&shell, "length", &["paths", "--from", "Person:2", "--edges", "out:knows"]);
    let lengths =
        [("Person:1", Value::Null), ("Person:2", json!(0.0)), ("Person:3", json!(1.0)), ("Person:4", json!(2.0))];
    assert_eq!(edges, expected(lengths));
    let run = |weight: &str| shell.run(&["run", "graph", "paths", "--from", "Person:1", "--weight", weight]);
    let ranks = ["pagerank", "--edges", "out:knows", "--weight", "since"];
    let sum: f64 = values(&shell, "rank", &ranks).iter().map(|(_, rank)| rank.as_f64().unwrap()).sum();
    assert!((sum - 1.0).abs() < 1e-9);
    let streamed = [&["run", "graph"], &ranks[..], &["--lists", "streamed"]].concat();
    shell.run(&streamed).fails(2, "ranks by weight are computed from lists in memory", "");
    run("since").fails(3, "edge type livesIn has no property \"since\"", "hoplake info");
    run("length").fails(3, "has no property \"length\"", "hoplake info");
}

#[test]
fn ranks_add_up_to_1_and_become_a_property() {
    let shell = Shell::with_graph();
    let ranks = |lists| values(&shell, "rank", &["pagerank", "--tolerance", "1e-13", "--lists", lists]);
    let in_memory: Vec<f64> = ranks("memory").iter().map(|(_, rank)| rank.as_f64().unwrap()).collect();
    let streamed: Vec<f64> = ranks("streamed").iter().map(|(_, rank)| rank.as_f64().unwrap()).collect();
    assert_eq!(in_memory.len(), 5);
    assert!((in_memory.iter().sum::<f64>() - 1.0).abs() < 1e-12, "{in_memory:?}");
    assert!(in_memory.iter().zip(&streamed).all(|(a, b)| (a - b).abs() < 1e-12), "{in_memory:?} {streamed:?}");
    let run = shell
        .run(&["run", "graph", "pagerank", "--write", "rank", "--top", "2", "--select", "name", "--format", "json"])
        .ok();
    assert!(run.err.contains("version 2 has rank of 5 vertices"), "{}", run.err);
    let top = run.json();
    let greatest = in_memory.iter().copied().fold(0.0, f64::max);
    assert_eq!((top.len(), top[0]["label"].as_str()), (2, Some("Town")));
    assert!(
        (top[0]["rank"].as_f64().unwrap() - greatest).abs() < 1e-5 && top[0]["rank"].as_f64() > top[1]["rank"].as_f64()
    );
    let found = shell.run(&["get", "graph", "Town:10", "--format", "json"]).ok().json();
    assert_eq!(found[0]["rank"], top[0]["rank"]);
    // Ranks are a property like any other now, and no vertex of the graph was lost.
    let rank = format!("{}", top[0]["rank"]);
    let hop = format!("out[rank>={rank}]");
    let rich = shell.run(&["traverse", "graph", "--start", "Person:1", "--hop", &hop, "--format", "json"]).ok().json();
    assert_eq!(rich, [json!({"label": "Town", "key": 10})]);
}

#[test]
fn what_has_no_value_any_more_is_removed() {
    let shell = Shell::with_graph();
    let write = |from: &str| {
        let run =
            shell.run(&["run", "graph", "levels", "--edges", "out:knows", "--from", from, "--write", "level"]).ok();
        run.err.lines().last().unwrap().to_owned()
    };
    let level = |vertex: &str| shell.run(&["get", "graph", vertex, "--format", "json"]).ok().json()[0]["level"].clone();
    assert_eq!(write("Person:1"), "version 2 has level of 4 vertices");
    assert_eq!((level("Person:1"), level("Person:4")), (json!(0), json!(2)));
    assert_eq!(write("Person:4"), "version 3 has level of 1 vertices");
    assert_eq!((level("Person:1"), level("Person:4")), (Value::Null, json!(0)));
}

#[test]
fn communities_end_after_their_iterations_and_files_of_states_are_removed() {
    let shell = Shell::with_graph();
    let communities = ["communities", "--edges", "both:knows", "--lists", "streamed", "--states", "states"];
    let found = values(&shell, "community", &communities);
    assert_eq!(found.len(), 4);
    let summary = shell.run(&[&["run", "graph"], &communities[..]].concat()).ok().err;
    assert!(summary.starts_with("community of 4 vertices after ") && summary.contains("lists streamed: "), "{summary}");
    assert!(!shell.path().join("states").exists());
    assert_eq!(values(&shell, "community", &[&communities[..], &["--iterations", "1"]].concat()).len(), 4);
    shell.write("states", "mine");
    let args = [&["run", "graph"], &communities[..]].concat();
    shell.run(&args).fails(2, "states exists", "--states");
    shell.run(&[&args[..args.len() - 1], &["redb:states"]].concat()).fails(2, "states exists", "--states");
    assert_eq!(std::fs::read_to_string(shell.path().join("states")).unwrap(), "mine");
}

#[test]
fn states_are_the_same_wherever_they_are() {
    let shell = Shell::with_graph();
    let ranks = ["pagerank", "--edges", "both:knows", "--lists", "streamed", "--iterations", "7"];
    let expected = values(&shell, "rank", &ranks);
    for place in ["slots:states", "redb:states"] {
        for cache in [&[][..], &["--states-cache", "1MiB"]] {
            assert_eq!(
                values(&shell, "rank", &[&ranks[..], &["--states", place], cache].concat()),
                expected,
                "{place}"
            );
            assert!(!shell.path().join("states").exists());
        }
    }
    let fails = |options: &[&str], status, message, hint| {
        shell.run(&[&["run", "graph"], &ranks[..], options].concat()).fails(status, message, hint);
    };
    let rejected = shell.run(&[&["run", "graph"], &ranks[..], &["--states", "sqlite:states"]].concat());
    assert!(
        rejected.err.contains("unknown kind of states `sqlite`: write FILE, slots:FILE or redb:FILE"),
        "{}",
        rejected.err
    );
    fails(&["--states", "redb:no/states"], 5, "could not create no/states", "folder");
    fails(&["--states", "states", "--states-cache", "8"], 2, "8 bytes have no room for a chunk of states", "--help");
    let rejected = shell.run(&[&["run", "graph"], &ranks[..], &["--states-cache", "1MiB"]].concat());
    assert!(rejected.err.contains("--states <PLACE>"), "{}", rejected.err);
}

/// A circle of three vertices, and a way from it to two more: 1 → 2 → 3 → 1, 3 → 4 → 5.
fn circle() -> Shell {
    let shell = Shell::empty();
    shell.write("edges.csv", "1,2\n2,3\n3,1\n3,4\n4,5\n");
    shell.run(&["load", "graph", "--from", "edges.csv"]).ok();
    shell
}

/// A column of all rows, by key.
fn column(shell: &Shell, column: &str, more: &[&str]) -> Vec<Value> {
    values(shell, column, more).into_iter().map(|(_, value)| value).collect()
}

/// The numbers of a column, and whether they are these.
fn assert_near(found: &[Value], expected: [f64; 5]) {
    let found: Vec<f64> = found.iter().map(|value| value.as_f64().unwrap_or(f64::NAN)).collect();
    let near = |(found, expected): (&f64, &f64)| (found - expected).abs() < 1e-9 || found.is_nan() && expected.is_nan();
    assert!(found.len() == 5 && found.iter().zip(&expected).all(near), "{found:?}, not {expected:?}");
}

#[test]
fn what_is_central_and_what_belongs_together() {
    let shell = circle();
    let strong = column(&shell, "component", &["strong-components"]);
    assert!(strong[0] == strong[1] && strong[1] == strong[2], "{strong:?}");
    assert!(strong[2] != strong[3] && strong[3] != strong[4] && strong[2] != strong[4], "{strong:?}");
    assert_eq!(column(&shell, "degree", &["degrees"]), [1, 1, 2, 1, 0]);
    assert_eq!(column(&shell, "degree", &["degrees", "--edges", "in"]), [1, 1, 1, 1, 1]);
    assert_eq!(column(&shell, "degree", &["degrees", "--edges", "both"]), [2, 2, 3, 2, 1]);
    assert_eq!(column(&shell, "core", &["cores"]), [2, 2, 2, 1, 1]);
    assert_near(&column(&shell, "clustering", &["clustering"]), [0.5, 0.5, 1.0 / 6.0, 0.0, 0.0]);
    let undirected = column(&shell, "clustering", &["clustering", "--edges", "both"]);
    assert_near(&undirected, [1.0, 1.0, 1.0 / 3.0, 0.0, 0.0]);
    let third = 1.0 / 3.0;
    assert_near(&column(&shell, "closeness", &["closeness"]), [third, third, third, 0.375, 0.4]);
    let one = column(&shell, "closeness", &["closeness", "--sample", "2", "--seed", "7"]);
    assert_eq!(one.iter().filter(|value| value.is_null()).count(), 3, "{one:?}");
    assert_near(&column(&shell, "betweenness", &["betweenness"]), [1.0, 3.0, 5.0, 3.0, 0.0]);
    // One vertex of five, though it is named twice.
    let from = ["betweenness", "--from", "vertex:1", "--from", "vertex:1"];
    assert_near(&column(&shell, "betweenness", &from), [0.0, 15.0, 10.0, 5.0, 0.0]);
    let undirected =
        |more: &[&str]| column(&shell, "betweenness", &[&["betweenness", "--edges", "both"], more].concat());
    assert_near(&undirected(&[]), [0.0, 0.0, 4.0, 3.0, 0.0]);
    assert_near(&undirected(&["--sample", "5"]), [0.0, 0.0, 4.0, 3.0, 0.0]);
    let similar = column(&shell, "similarity", &["similarity", "--from", "vertex:1", "--edges", "both"]);
    assert_near(&similar, [f64::NAN, third, 0.25, third, f64::NAN]);
    let triangles = shell.run(&["run", "graph", "triangles", "--format", "json"]).ok().json();
    assert_eq!(triangles, [json!({"triangles": 1})]);
    assert_eq!(column(&shell, "triangles", &["triangles-per-vertex"]), [1, 1, 1, 0, 0]);
    let multiplicity = shell.run(&["run", "graph", "multiplicity", "--format", "json"]).ok().json();
    assert_eq!(multiplicity, [json!({"self_loops": 0, "parallel_edges": 0})]);
    // The third links to two, and the others to one each.
    let exact = ["--tolerance", "1e-15", "--iterations", "10000"];
    assert_near(&column(&shell, "hub", &[&["hubs"][..], &exact].concat()), [0.0, 0.0, 1.0, 0.0, 0.0]);
    assert_near(&column(&shell, "authority", &[&["authorities"][..], &exact].concat()), [0.5, 0.0, 0.0, 0.5, 0.0]);
    // The eigenvalue is 1: each vertex has what the one before it has.
    let root = 5f64.sqrt();
    let eigenvector = column(&shell, "centrality", &[&["eigenvector"][..], &exact].concat());
    assert_near(&eigenvector, [1.0 / root; 5]);
    let run = shell.run(&["run", "graph", "leiden", "--all", "--format", "json"]).ok();
    assert!(run.err.contains(", modularity 0.22"), "{}", run.err);
    let communities: Vec<Value> = run.json().iter().map(|row| row["community"].clone()).collect();
    assert_eq!(communities, [0, 0, 0, 3, 3]);
}

#[test]
fn the_greatest_come_first_and_those_without_a_value_last() {
    let shell = circle();
    let keys = |more: &[&str]| {
        let rows = shell.run(&[&["run", "graph"], more, &["--format", "json"]].concat()).ok().json();
        rows.iter().map(|row| row["key"].as_i64().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(keys(&["betweenness", "--top", "2"]), [3, 2]);
    assert_eq!(keys(&["cores", "--top", "4"]), [1, 2, 3, 4]);
    assert_eq!(keys(&["degrees"]), [3, 1, 2, 4, 5]);
    assert_eq!(keys(&["similarity", "--from", "vertex:1", "--edges", "both"]), [2, 4, 3, 1, 5]);
}

#[test]
fn ranks_are_seen_from_some_vertices() {
    let shell = circle();
    for lists in ["memory", "streamed"] {
        let ranks = |from: &[&str]| {
            let exact = ["pagerank", "--tolerance", "1e-13", "--iterations", "1000", "--lists", lists];
            let args = [&exact[..], from].concat();
            column(&shell, "rank", &args)
        };
        assert_near(&ranks(&["--from", "vertex:5"]), [0.0, 0.0, 0.0, 0.0, 1.0]);
        // The fourth gets 0.15, and all that the last has; the last gets 0.85 of the fourth's.
        assert_near(&ranks(&["--from", "vertex:4"]), [0.0, 0.0, 0.0, 1.0 / 1.85, 0.85 / 1.85]);
        let two = ranks(&["--from", "vertex:4", "--from", "vertex:5", "--from", "vertex:4"]);
        let fourth = two[3].as_f64().unwrap();
        let fifth = two[4].as_f64().unwrap();
        assert!((fourth + fifth - 1.0).abs() < 1e-9 && fourth > 0.3 && fourth < fifth, "{two:?}");
    }
}

/// Each level is a superstep, so that a long path keeps a run busy until it is killed.
#[test]
fn a_run_that_is_killed_goes_on_to_the_same_result() {
    const VERTICES: usize = 3000;
    let shell = Shell::empty();
    let edges: String = (1..VERTICES).map(|key| format!("{key},{}\n", key + 1)).collect();
    shell.write("edges.csv", &edges);
    shell.run(&["load", "graph", "--from", "edges.csv"]).ok();
    let args = ["levels", "--from", "vertex:1", "--checkpoint", "states"];
    let endless = [&["run", "graph"], &args[..], &["--checkpoint-every", "0s", "--top", "0"]].concat();
    let mut child = shell.command(&endless).spawn().unwrap();
    let checkpoint = shell.path().join("states");
    while !checkpoint.exists() && child.try_wait().unwrap().is_none() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let header: Value =
        serde_json::from_slice(std::fs::read(&checkpoint).unwrap().split(|byte| *byte == b'\n').next().unwrap())
            .unwrap();
    let superstep = header["superstep"].as_u64().unwrap() as usize;
    assert!((1..VERTICES).contains(&superstep), "{header}");
    // Neither another start nor another version.
    let other = shell.run(&["run", "graph", "levels", "--from", "vertex:2", "--checkpoint", "states"]);
    other.fails(
        2,
        "it is of levels from 0, and this run is levels from 1",
        "hint: remove it to compute from the beginning",
    );
    let changed =
        shell.run(&["run", "graph", "levels", "--edges", "in", "--from", "vertex:1", "--checkpoint", "states"]);
    changed.fails(2, "it is of out of version 1", "");
    let whole = std::fs::read(&checkpoint).unwrap();
    for damage in [0, whole.len() / 2, whole.len() - 1] {
        let mut damaged = whole.clone();
        damaged[damage] ^= 1;
        std::fs::write(&checkpoint, damaged).unwrap();
        let run = shell.run(&[&["run", "graph"], &args[..]].concat());
        run.fails(2, "checkpoint states: ", "hint: remove it to compute from the beginning");
    }
    std::fs::write(&checkpoint, whole).unwrap();
    let expected: Vec<Value> = (0..VERTICES).map(|level| json!(level)).collect();
    assert_eq!(column(&shell, "level", &args), expected);
    assert!(!checkpoint.exists(), "the result is out");
}

#[test]
fn edges_take_part_if_they_match_a_condition() {
    let shell = Shell::with_graph();
    let degrees = |edges: &str, more: &[&str]| {
        let args = ["run", "graph", "degrees", "--edges", edges, "--all", "--format", "csv"];
        shell.run(&[&args[..], more].concat()).ok().out
    };
    let expected = "label,key,degree\nPerson,1,1\nPerson,2,0\nPerson,3,1\nPerson,4,0\n";
    assert_eq!(degrees("out:knows[since > 2002]", &[]), expected);
    // On the vertex that an edge reaches, whichever end its lists are of.
    assert_eq!(degrees("out:knows[vertex.age > 50]", &[]).lines().filter(|line| line.ends_with(",0")).count(), 1);
    let fails = |edges: &str, more: &[&str], status, why: &str| {
        let args = ["run", "graph", "components", "--edges", edges];
        shell.run(&[&args[..], more].concat()).fails(status, why, "");
    };
    fails("out:knows[colour = red]", &[], 3, "have a property \"colour\"");
    fails("out:knows[since = red]", &[], 2, "since");
    fails("both:knows[vertex.age > 50]", &[], 2, "needs a direction");
    fails("out:knows[since > 2002]", &["--lists", "packed"], 2, "packed lists do not support conditions on edges");
}

#[test]
fn what_cannot_be_computed_is_rejected_with_a_sentence() {
    let shell = Shell::with_graph();
    let fails = |more: &[&str], status, error: &str, hint: &str| {
        shell.run(&[&["run", "graph"], more].concat()).fails(status, error, hint);
    };
    fails(&["pagerank", "--edges", "out:hates"], 3, "no edge label \"hates\"", "hoplake info");
    fails(&["pagerank", "--label", "Planet"], 3, "no vertex label \"Planet\"", "hoplake info");
    fails(&["pagerank", "--edges", "out:knows[colour=red]"], 3, "a property \"colour\"", "");
    fails(&["levels", "--from", "Person:99"], 3, "Person:99", "");
    fails(
        &["levels", "--from", "Town:10", "--edges", "out:knows"],
        2,
        "no selected edge can have Town:10 at an end",
        "",
    );
    fails(&["pagerank", "--max-memory", "100B"], 6, "100 bytes of memory", "");
    fails(&["degrees", "--from", "Person:1"], 2, "--from has no effect on degrees", "leave out --from");
    fails(&["triangles", "--all"], 2, "--all has no effect on triangles", "leave out --all");
    fails(&["closeness", "--seed", "1"], 2, "--seed has no effect without --sample", "add --sample N");
    fails(&["pagerank", "--seed", "1"], 2, "--seed has no effect on pagerank", "leave out --seed");
    let both = ["betweenness", "--sample", "1", "--from", "Person:1"];
    fails(&both, 2, "betweenness takes --from or --sample, and got both", "leave one of them out");
    fails(&["triangles", "--top", "5"], 2, "--top has no effect on triangles", "leave out --top");
    let two = ["levels", "--from", "Person:1", "--from", "Person:2"];
    fails(&two, 2, "levels has one vertex", "leave all but one --from out");
    fails(&["cores", "--checkpoint", "states"], 2, "--checkpoint has no effect on cores", "leave out --checkpoint");
    fails(&["communities", "--asynchronous"], 2, "community is not computed asynchronously: label propagation", "");
    fails(&["cores", "--asynchronous"], 2, "core is not computed asynchronously: it has no vertex program", "");
    fails(&["triangles", "--asynchronous"], 2, "--asynchronous has no effect on triangles", "leave out --asynchronous");
    let both = ["pagerank", "--asynchronous", "--checkpoint", "states"];
    fails(&both, 2, "an asynchronous computation has no checkpoints", "--asynchronous or --checkpoint");
    fails(&["pagerank", "--checkpoint", "no/states"], 5, "could not create no/states", "folder");
    fails(&["pagerank", "--checkpoint", "data"], 5, "could not create data", "folder");
    fails(&["similarity"], 2, "similarity needs a vertex", "--from LABEL:KEY");
    fails(&["cores", "--lists", "streamed"], 2, "core is computed from lists in memory", "");
    fails(&["triangles", "--lists", "streamed"], 2, "triangles is computed from lists in memory", "");
    fails(&["levels", "--from", "Person:1", "--iterations", "2"], 2, "--iterations has no effect on levels", "");
    fails(&["components", "--states", "states"], 2, "states are in memory", "--lists streamed");
    fails(&["components", "--lists", "streamed", "--states", "no/states"], 5, "could not create no/states", "folder");
    let usage = shell.run(&["run", "graph", "components", "--write", ""]);
    assert!(usage.status == 2 && usage.err.contains("the name of a property"), "{}", usage.err);
    let usage = shell.run(&["run", "graph", "pagerank", "--tolerance", "-1"]);
    assert!(usage.status == 2 && usage.err.contains("0 or more"), "{}", usage.err);
    let usage = shell.run(&["run", "graph", "levels"]);
    assert!(usage.status == 2 && usage.err.contains("--from"), "{}", usage.err);
    for (more, range) in [
        (["pagerank", "--damping", "1.5"], "write a number from 0 to 1"),
        (["closeness", "--sample", "0"], "write a whole number, 1 or more"),
        (["communities", "--iterations", "0"], "write a whole number, 1 or more"),
        (["leiden", "--seed", "-1"], "write a whole number, 0 or more"),
        (["leiden", "--resolution", "inf"], "write a number, 0 or more"),
        (["pagerank", "--weight", ""], "write the name of a property"),
    ] {
        let usage = shell.run(&[&["run", "graph"], &more[..]].concat());
        assert!(usage.status == 2 && usage.err.contains(range), "{}", usage.err);
    }
}

/// The help of options is that of the registry: what an option does, in which algorithms, and what it defaults to.
#[test]
fn help_has_all_algorithms_and_their_options() {
    let help = Shell::empty().run(&["run", "--help"]).ok().out;
    let words = help.split_whitespace().collect::<Vec<_>>().join(" ");
    for expected in [
        "- triangles-per-vertex: triangles: the number of triangles that contain the vertex",
        "--damping <PART> The fraction of a rank that is passed on along edges (pagerank: default 0.85)",
        "--resolution <NUMBER> The resolution of the modularity: a higher one yields smaller communities (leiden: default 1)",
        "The maximum number of iterations (pagerank, eigenvector, hubs, authorities: default 100; communities, leiden: default 10)",
    ] {
        assert!(words.contains(expected), "{expected}: {words}");
    }
}
