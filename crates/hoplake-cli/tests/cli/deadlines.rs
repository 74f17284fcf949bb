//! Verbs that write end at `--timeout`, also if the network accepts what they send and never answers.

use hoplake_testkit::{S3Server, TcpFault, TcpProxy};
use tokio::task::block_in_place;

use crate::hoplake::{Run, Shell};

fn run_at(shell: &Shell, server: &S3Server, endpoint: &str, args: &[&str]) -> Run {
    let mut command = shell.command(args);
    command.envs(server.env_at(endpoint)).env_remove("HOPLAKE_DISK_CACHE");
    block_in_place(|| Run::of(&command.output().unwrap()))
}

#[tokio::test(flavor = "multi_thread")]
async fn verbs_end_in_their_time_when_nobody_answers() {
    let shell = Shell::empty();
    let server = S3Server::start().unwrap();
    let proxy = TcpProxy::start(&server.endpoint(), 7).await.unwrap();
    let url = server.url("deadlines");
    let clone = server.url("clone");
    shell.write("data/P.csv", ":ID(P),name\n1,a\n2,b\n");
    shell.write("more.jsonl", r#"{"op": "upsert_vertex", "label": "P", "key": 3}"#);
    run_at(&shell, &server, &server.endpoint(), &["load", &url, "--from", "data"]).ok();
    proxy.set_faults([(TcpFault::Hang, 1.0)]);
    // The status, the message, and its hint.
    let cases: [(&[&str], i32, &str, &str); 8] = [
        (&["tag", &url, "name"], 6, "not changed, within 1s; nothing is changed", "raise --timeout"),
        (&["tag", &url], 6, "the tags were not read", "raise --timeout"),
        (&["restore", &url, "--version", "1"], 6, "was not restored within 1s; nothing is changed", "raise --timeout"),
        (&["restore", &url, "--version", "name"], 6, "was not restored within 1s", "raise --timeout"),
        (&["clone", &url, &clone], 6, "was not cloned within 1s; nothing is changed", "raise --timeout"),
        (&["apply", &url, "more.jsonl"], 5, "was not opened within 1s", "nothing is changed"),
        (&["vacuum", &url], 6, "the vacuum was not done within 1s", "raise --timeout"),
        (&["vacuum", &url, "--verify"], 6, "the vacuum was not done within 1s", "hoplake verify by itself"),
    ];
    for (args, status, error, hint) in cases {
        let args = [args, &["--timeout", "1s"]].concat();
        run_at(&shell, &server, &proxy.endpoint(), &args).fails(status, error, hint);
    }
    proxy.set_faults([]);
    let log = run_at(&shell, &server, &server.endpoint(), &["log", &url, "--json"]).ok();
    assert_eq!(log.json().len(), 1, "{}", log.out);
}
