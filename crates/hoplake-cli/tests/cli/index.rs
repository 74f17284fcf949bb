//! Property indexes: made at load and later, listed, used and dropped.

use serde_json::{Value, json};

use crate::hoplake::{EDGES, PEOPLE, Shell};

fn names(shell: &Shell, condition: &str) -> Vec<Value> {
    let args = ["scan", "graph", "--label", "Person", "--where", condition, "--select", "name", "--format", "json"];
    shell.run(&args).ok().json().iter().map(|row| row["name"].clone()).collect()
}

fn listed(shell: &Shell) -> Value {
    shell.run(&["index", "list", "graph", "--json"]).ok().json().remove(0)
}

#[test]
fn an_index_is_made_at_load_and_later_and_dropped() {
    let shell = Shell::empty();
    shell.write("data/people.csv", PEOPLE);
    shell.write("data/edges.csv", EDGES);
    shell.run(&["load", "graph", "--from", "data", "--index", "Person.name", "--index", "Town.name"]).ok();
    assert_eq!(listed(&shell)[0]["index"], json!("Person.name"));
    assert_eq!(names(&shell, "name = Ann"), ["Ann"]);
    let built = shell.run(&["index", "create", "graph", "Person.age", "--json"]).ok().json().remove(0);
    assert_eq!((built["entries"].clone(), built["version"].clone()), (json!(4), json!(3)), "{built}");
    let ages = json!({
        "index": "Person.age", "type": "int64", "entries": 4, "bytes": listed(&shell)[2]["bytes"], "sorted_runs": 1,
        "ready": true,
    });
    assert_eq!(listed(&shell)[2], ages);
    assert_eq!(names(&shell, "age > 50 and name starts with C"), ["Cid"]);
    let info = shell.run(&["info", "graph"]).ok().out;
    assert!(info.contains("index: Person.age\n") && info.contains("index Town.name"), "{info}");
    let table = shell.run(&["index", "list", "graph"]).ok().out;
    assert!(table.contains("Town.name") && table.contains("ready"), "{table}");
    let dropped = shell.run(&["index", "drop", "graph", "Person.name"]).ok().out;
    assert_eq!(dropped, "version 4 has no index Person.name any more\n");
    assert_eq!(names(&shell, "name = Ann"), ["Ann"]);
    assert_eq!(
        shell.run(&["index", "list", "graph", "--version", "1", "--json"]).ok().json()[0][1]["index"],
        "Town.name"
    );
    shell.run(&["verify", "graph"]).ok();
}

#[test]
fn mistakes_are_explained() {
    let shell = Shell::with_graph();
    assert_eq!(shell.run(&["index", "list", "graph"]).ok().out, "no indexes\n");
    shell.run(&["index", "create", "graph", "Person.tags"]).fails(2, "lists have no index", "hoplake info graph");
    shell.run(&["index", "create", "graph", "Person.nothing"]).fails(
        2,
        "no property \"nothing\"",
        "hoplake info graph",
    );
    shell.run(&["index", "create", "graph", "age"]).fails(2, "written as label.property", "hoplake info graph");
    shell.run(&["index", "create", "graph", "Person.age"]).ok();
    shell.run(&["index", "create", "graph", "Person.age"]).fails(4, "already", "hoplake index list graph");
    shell.run(&["index", "drop", "graph", "Town.name"]).fails(
        3,
        "the graph has Person.age",
        "hoplake index list graph",
    );
    shell.run(&["index", "create", "nothing", "Person.age"]).fails(3, "there is no graph", "hoplake load nothing");
    shell.run(&["load", "other", "--from", "data", "--index", "Person.tags"]).fails(2, "lists have no index", "");
}
