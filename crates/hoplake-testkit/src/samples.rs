//! Samples of what producers wrote, as the tests of `hoplake-feed` have them: a producer that runs here has to write the same.

use std::fs;
use std::path::Path;

use std::time::Duration;

use serde_json::Value;

use crate::KafkaServer;

pub(crate) const MARIADB_TABLES: &str = include_str!("../../hoplake-feed/tests/samples/tables-mariadb.sql");
pub(crate) const MARIADB_CHANGES: &str = include_str!("../../hoplake-feed/tests/samples/changes-mariadb.sql");
pub(crate) const POSTGRES_TABLES: &str = include_str!("../../hoplake-feed/tests/samples/tables-postgres.sql");
pub(crate) const POSTGRES_CHANGES: &str = include_str!("../../hoplake-feed/tests/samples/changes-postgres.sql");
pub(crate) const DEBEZIUM_MARIADB: &str = include_str!("../../hoplake-feed/tests/samples/debezium-mariadb.jsonl");
pub(crate) const DEBEZIUM_POSTGRES: &str = include_str!("../../hoplake-feed/tests/samples/debezium-postgres.jsonl");
pub(crate) const MAXWELL: &str = include_str!("../../hoplake-feed/tests/samples/maxwell.jsonl");

/// The lines of a file that is being written.
pub(crate) fn lines(file: &Path) -> Vec<String> {
    let text = fs::read_to_string(file).unwrap_or_default();
    let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
    whole.lines().map(str::to_owned).collect()
}

/// What a change says without its times, positions and numbers of transactions: the same whenever the same is done.
pub(crate) fn essence(change: &str) -> Vec<Value> {
    let change: Value = serde_json::from_str(change).unwrap();
    // First those of Debezium, then those of Maxwell.
    let kept = [
        "/op",
        "/before",
        "/after",
        "/source/table",
        "/source/snapshot",
        "/transaction/total_order",
        "/status",
        "/event_count",
        "/data_collections",
        "/ddl",
        "/database",
        "/table",
        "/type",
        "/primary_key",
        "/data",
        "/old",
        "/commit",
        "/xoffset",
        "/sql",
    ];
    kept.iter().map(|kept| change.pointer(kept).cloned().unwrap_or_default()).collect()
}

/// The keys of the records in the one partition of a topic, when there are as many, and what Debezium says is done, or Maxwell;
/// nothing of a null.
pub(crate) async fn keys_and_ops(server: &KafkaServer, topic: &str, count: usize) -> Vec<(Value, Option<String>)> {
    let read = async {
        loop {
            // There is none before the first record.
            let records = server.records(topic, 0).await.unwrap_or_default();
            if records.len() >= count {
                break records;
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    };
    let records = tokio::time::timeout(Duration::from_secs(120), read).await.expect("the records come");
    let json = |bytes: &Vec<u8>| serde_json::from_slice::<Value>(bytes).unwrap();
    let op = |value: Value| value["op"].as_str().or(value["type"].as_str()).unwrap_or_default().to_owned();
    let pair = |record: &rskafka::record::Record| {
        (record.key.as_ref().map(json).unwrap_or_default(), record.value.as_ref().map(|value| op(json(value))))
    };
    records.iter().map(pair).collect()
}
