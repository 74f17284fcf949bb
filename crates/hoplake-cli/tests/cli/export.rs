//! Exports on the command line, and loads of what they wrote.

use crate::hoplake::Shell;

#[test]
fn what_was_exported_loads_as_the_same_graph() {
    let shell = Shell::with_graph();
    let rows = |graph: &str| {
        let mut rows = shell.run(&["scan", graph, "--select", "*", "--format", "json"]).ok().json();
        rows.sort_by_key(ToString::to_string);
        rows
    };
    for format in ["parquet", "csv", "neo4j", "gremlin"] {
        let to = format!("out/{format}");
        let report = shell.run(&["export", "graph", "--to", &to, "--format", format, "--json"]).ok().json().remove(0);
        assert_eq!((&report["vertices"], &report["edges"], &report["files"]), (&5.into(), &6.into(), &4.into()));
        assert_eq!(report["mapping"], format!("{to}/mapping.toml"));
        let again = format!("again-{format}");
        shell.run(&["load", &again, "--mapping", &format!("{to}/mapping.toml")]).ok();
        assert_eq!(rows("graph"), rows(&again), "{format}");
    }
    assert_eq!(
        shell.read("out/gremlin/vertices/Person.csv").lines().nth(4).unwrap(),
        r#""Person:4","Person","Dee, D.",64,"#
    );
    assert_eq!(
        shell.read("out/neo4j/edges/Person-knows-Person.csv").lines().next().unwrap(),
        ":START_ID(Person),:END_ID(Person),:TYPE,id:long,since:long"
    );
    let run = shell.run(&["export", "graph", "--to", "out/xml", "--format", "graphml"]).ok();
    assert!(run.out.starts_with("exported 5 vertices and 6 edges of version 1 to out/xml: "), "{}", run.out);
    assert!(shell.read("out/xml/graph.graphml").contains("<node id=\"Town:10\">"));
}

#[test]
fn the_files_are_what_other_loaders_know() {
    let shell = Shell::with_graph();
    for format in ["neo4j", "gremlin"] {
        shell.run(&["export", "graph", "--to", format, "--format", format]).ok();
        let again = format!("again-{format}");
        // Without the mapping, their layout is recognised.
        let report = shell.run(&["load", &again, "--from", format, "--json"]).ok().json().remove(0);
        assert_eq!((&report["vertices"], &report["edges"]), (&5.into(), &6.into()), "{format}");
    }
}

#[test]
fn mistakes_are_told() {
    let shell = Shell::with_graph();
    shell.write("full/notes.txt", "mine");
    let args = ["export", "graph", "--to", "full", "--format", "csv"];
    shell.run(&args).fails(4, "is not empty", "--overwrite");
    shell.run(&[&args[..], &["--overwrite"]].concat()).ok();
    assert_eq!(shell.read("full/notes.txt"), "mine");
    // A mapping of one's own, and what it names, are not of an earlier export.
    let own = "[[vertices]]\nfile = \"vertices/people.csv\"\nlabel = \"P\"\nkey = \"id\"\n";
    shell.write("own/mapping.toml", own);
    shell.write("own/vertices/people.csv", "id\n1\n");
    let args = ["export", "graph", "--to", "own", "--format", "csv", "--overwrite"];
    shell.run(&args).fails(4, "mapping.toml that no export wrote", "");
    assert_eq!((shell.read("own/mapping.toml"), shell.read("own/vertices/people.csv")), (own.into(), "id\n1\n".into()));
    shell.run(&["export", "graph", "--to", "graph", "--format", "csv", "--overwrite"]).fails(4, "has a graph", "");
    shell.run(&["export", "graph", "--to", "new", "--format", "csv", "--label", "Nobody"]).fails(3, "\"Nobody\"", "");
    shell.run(&["export", "graph", "--to", "new", "--format", "csv", "--memory", "1MiB"]).fails(2, "too little", "32");
}
