//! A log in Kinesis, whose shards are divided while it is followed, gives the graph that the same log in a file gives.

use hoplake_testkit::{KinesisServer, MariaDbServer};
use prost::Message;
use serde_json::{Value, json};

use crate::hoplake::{Run, Shell};

/// What Debezium wrote, and the tables.
const LOG: &str = include_str!("../../../hoplake-feed/tests/samples/debezium-mariadb.jsonl");
const TABLES: &str = include_str!("../../../hoplake-feed/tests/samples/tables-mariadb.sql");

const STREAM: &str = "changes";
const TRANSACTIONS: &str = "transactions";

/// What the Kinesis Producer Library puts into one record.
#[derive(Clone, PartialEq, Message)]
struct Aggregate {
    #[prost(string, repeated, tag = "1")]
    partition_keys: Vec<String>,
    #[prost(message, repeated, tag = "3")]
    records: Vec<InAggregate>,
}

#[derive(Clone, PartialEq, Message)]
struct InAggregate {
    #[prost(uint64, required, tag = "1")]
    partition_key: u64,
    #[prost(bytes = "vec", required, tag = "3")]
    data: Vec<u8>,
}

/// Whether a transaction begins or ends there.
fn is_bound(line: &&str) -> bool {
    line.contains(r#""status":"#)
}

fn aggregated(lines: &[&str]) -> Vec<u8> {
    let record = |line: &&str| InAggregate { partition_key: 0, data: line.as_bytes().to_vec() };
    let aggregate = Aggregate { partition_keys: vec!["a".into()], records: lines.iter().map(record).collect() };
    let mut bytes = vec![0xF3, 0x89, 0x9A, 0xC2];
    aggregate.encode(&mut bytes).unwrap();
    // The digest, which the reader leaves alone.
    bytes.extend([0; 16]);
    bytes
}

struct Following {
    shell: Shell,
    server: KinesisServer,
}

impl Following {
    fn run(&self, args: &[&str]) -> Run {
        let mut command = self.shell.command(args);
        command.envs(self.server.env()).env("AWS_ENDPOINT_URL_KINESIS", self.server.endpoint());
        Run::of(&command.output().unwrap())
    }

    /// Settings of a feed of a log to a graph of the same name.
    fn settings(&self, name: &str, url: &str) -> String {
        let inferred =
            self.run(&["feed", "infer", url, "--log-format", "debezium", "--catalog", "catalog.json", "--graph", name]);
        let text = inferred.ok().out.replace("[source]", "[source]\ndecimal_handling_mode = \"string\"");
        // Some of its columns are none that can be inferred.
        let tables: Vec<_> = text.split("[[table]]").filter(|table| !table.contains("\"kinds\"")).collect();
        let file = format!("{name}.toml");
        self.shell.write(&file, &tables.join("[[table]]"));
        file
    }

    /// The rows of a graph.
    fn graph(&self, name: &str) -> Vec<Value> {
        let mut rows = self.run(&["scan", name, "--select", "*", "--format", "json"]).ok().json();
        rows.sort_by_key(ToString::to_string);
        rows
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_whose_shards_are_divided_is_followed() {
    let shell = Shell::empty();
    let database = MariaDbServer::start(&[]).unwrap();
    // As they are in the end.
    database.sql("test", &format!("{TABLES}; ALTER TABLE visit ADD COLUMN stars INT")).unwrap();
    let server = KinesisServer::start().unwrap();
    let following = Following { shell, server };
    let Following { shell, server } = &following;
    shell.write("catalog.json", &following.run(&["feed", "catalog", &database.url("test")]).ok().out);
    let settings = following.settings("of-file", "file:log.jsonl");
    // It has the largest of keys, 2⁶⁴ − 1, which is none of 64 bits with a sign.
    let log = LOG.replace(r#":-1,"#, ":99,");
    shell.write("log.jsonl", &log);
    following.run(&["feed", "run", &settings, "--once"]).ok();

    let settings = following.settings("of-stream", &format!("kinesis://{}/{STREAM},{TRANSACTIONS}", server.region()));
    let run = || following.run(&["feed", "run", &settings, "--once"]);
    // Without --no-wait it would wait for the producer to make it.
    following.run(&["feed", "run", &settings, "--once", "--no-wait"]).fails(
        5,
        "could not ask for the shards of changes: ResourceNotFoundException",
        "correct source.url",
    );
    server.create_stream(STREAM, 1).await.unwrap();
    server.create_stream(TRANSACTIONS, 1).await.unwrap();
    let lines: Vec<_> = log.lines().collect();
    let is_last = |line: &&str| line.contains(r#""snapshot":"last""#);
    let (snapshot, stream) = lines.split_at(1 + lines.iter().position(is_last).unwrap());
    let (first, rest) = stream.split_at(stream.len() / 2);
    let plain: Vec<_> = snapshot.iter().map(|line| ("a", line.as_bytes())).collect();
    server.put_records(STREAM, &plain).await.unwrap();
    let (bounds, changes): (Vec<_>, Vec<_>) = first.iter().copied().partition(is_bound);
    server.put_records(TRANSACTIONS, &[("a", &aggregated(&bounds))]).await.unwrap();
    server.put_records(STREAM, &[("a", &aggregated(&changes))]).await.unwrap();
    run().ok();
    assert!(!following.graph("of-stream").is_empty());

    let shards = server.call("ListShards", &json!({ "StreamName": STREAM })).await.unwrap();
    let shard = &shards["Shards"][0]["ShardId"];
    let half = "170141183460469231731687303715884105728";
    let split = json!({ "StreamName": STREAM, "ShardToSplit": shard, "NewStartingHashKey": half });
    server.call("SplitShard", &split).await.unwrap();
    for (number, line) in rest.iter().enumerate() {
        // Each by another key, so that the changes of a transaction are in both shards.
        let to = if is_bound(line) { TRANSACTIONS } else { STREAM };
        server.put_records(to, &[(&number.to_string(), line.as_bytes())]).await.unwrap();
    }
    run().ok();
    assert_eq!(following.graph("of-stream"), following.graph("of-file"));
    // The shard that has ended is not asked for any more.
    run().ok();

    // Other streams of these names.
    for (stream, error) in [
        (
            TRANSACTIONS,
            "transactions/shardId-000000000000 no longer has the record 16, after which it is to be read on",
        ),
        (STREAM, "Kinesis no longer has changes/shardId-000000000001, which was not read to its end"),
    ] {
        server.call("DeleteStream", &json!({ "StreamName": stream })).await.unwrap();
        server.create_stream(stream, 1).await.unwrap();
        let gone = run();
        assert!(gone.status == 3 && gone.err.contains(error) && gone.err.contains("--resnapshot"), "{}", gone.err);
    }
}
