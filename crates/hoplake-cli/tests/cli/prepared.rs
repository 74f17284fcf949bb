//! Prepared queries on the command line: saved, listed, shown, called, deleted, and in the log.

use serde_json::json;

use crate::hoplake::Shell;

const TEXT: &str = "g.V().has('Person', 'name', name).out().limit(most).values('name')";

#[test]
fn a_query_is_saved_called_and_deleted() {
    let shell = Shell::with_graph();
    assert_eq!(shell.run(&["queries", "list", "graph"]).ok().out, "no prepared queries\n");
    let save = ["queries", "save", "graph", "near", TEXT, "--param", "name:string", "--param", "most:int64=10"];
    assert_eq!(shell.run(&save).ok().out, "version 2 has near@1\n");
    assert_eq!(shell.run(&save).ok().out, "near@1 is the same already\n");
    let text = TEXT.replace("name)", "'Ann')").replace("most", "10");
    let expected = shell.run(&["query", "graph", &text]).ok().out;
    assert!(!expected.is_empty());
    let call = ["queries", "call", "graph", "near", "--bind", "name=\"Ann\""];
    assert_eq!(shell.run(&call).ok().out, expected);
    let listed = shell.run(&["queries", "list", "graph", "--json"]).ok().json().remove(0);
    let parameters = json!([
        {"name": "name", "type": "string", "default": null}, {"name": "most", "type": "int64", "default": 10}
    ]);
    assert_eq!((&listed[0]["name"], &listed[0]["parameters"]), (&json!("near"), &parameters), "{listed}");
    assert!(shell.run(&["queries", "list", "graph"]).ok().out.contains("near@1"));
    let log = shell.run(&["log", "graph"]).ok().out;
    assert!(log.contains("query       near@1 saved"), "{log}");
    assert_eq!(shell.run(&["queries", "delete", "graph", "near"]).ok().out, "version 3 has no near any more\n");
    shell.run(&call).fails(2, "there is no prepared query \"near\"", "hoplake queries list graph");
    // A version before still has it.
    let past = ["queries", "call", "graph", "near", "--bind", "name=\"Ann\"", "--version", "2"];
    assert_eq!(shell.run(&past).ok().out, expected);
    shell.run(&["verify", "graph"]).ok();
}

#[test]
fn mistakes_are_explained() {
    let shell = Shell::with_graph();
    shell.run(&["queries", "save", "graph", "a", "g.V("]).fails(2, "line 1, column 5", "docs/gremlin.md");
    shell.run(&["queries", "save", "graph", "a", "g.V(who)"]).fails(2, "`who` has no value", "");
    let wrong = ["queries", "save", "graph", "a", "g.V(who)", "--param", "who:text"];
    shell.run(&wrong).fails(2, "\"text\" is not the type of a parameter", "");
    shell.run(&["queries", "save", "graph", "a@1", "g.V()"]).fails(2, "cannot be the name of a query", "");
    shell.run(&["queries", "delete", "graph", "a"]).fails(3, "no prepared query \"a\"", "hoplake queries list graph");
    shell.run(&["queries", "show", "graph", "a"]).fails(3, "no prepared query \"a\"", "hoplake queries list graph");
    shell.run(&["queries", "save", "graph", "add", "g.addV('Person').property(T.id, '77')"]).ok();
    shell.run(&["queries", "call", "graph", "add"]).fails(2, "changes the graph", "--commit");
    shell.run(&["queries", "call", "graph", "add", "--commit"]).ok();
    assert_eq!(shell.run(&["query", "graph", "g.V('Person:77').count()"]).ok().out, "1\n");
}
