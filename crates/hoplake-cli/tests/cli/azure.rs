//! A graph in Azure Blob Storage, with nothing but the usual variables: what it answers and costs.

use hoplake_testkit::AzuriteServer;

use crate::hoplake::{Run, Shell};

#[test]
fn a_graph_in_a_container_is_found_by_its_variables_and_has_azures_prices() {
    let shell = Shell::with_graph();
    let server = AzuriteServer::start().unwrap();
    let url = server.url("people");
    let run = |args: &[&str]| {
        let mut command = shell.command(args);
        Run::of(&command.envs(server.env()).env_remove("HOPLAKE_DISK_CACHE").output().unwrap())
    };
    run(&["load", &url, "--from", "data"]).ok();
    let args =
        ["traverse", &url, "--start", "Person:1", "--hop", "out:knows", "--hop", "out:knows", "--format", "json"];
    let found = run(&[&args[..], &["--profile=json"]].concat()).ok();
    let local = shell.run(&[
        "traverse",
        "graph",
        "--start",
        "Person:1",
        "--hop",
        "out:knows",
        "--hop",
        "out:knows",
        "--format",
        "json",
    ]);
    assert_eq!(found.out, local.ok().out);
    let profile: serde_json::Value = serde_json::from_str(&found.err).unwrap();
    assert_eq!(profile["prices"]["name"], "azure-hot");
    // Reads are $0.0004 a thousand.
    let total = &profile["total"];
    let dollars = total["requests"].as_f64().unwrap() * 0.0004 / 1_000.0;
    assert!(dollars > 0.0 && (total["usd"].as_f64().unwrap() - dollars).abs() < 1e-12, "{profile}");
    let scanned = run(&["scan", &url, "--where", "age > 42 and not (name = Cid)", "--format", "csv"]).ok();
    assert_eq!(
        scanned.out,
        shell.run(&["scan", "graph", "--where", "age > 42 and not (name = Cid)", "--format", "csv"]).ok().out
    );
    run(&["info", "az://no-such-container/graph"]).fails(
        5,
        "there is no such container",
        "make it first, or check its name",
    );
}
