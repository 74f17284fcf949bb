//! A real server of Kinesis' protocol for tests: moto, with its streams in memory.
//!
//! **Where it comes from.** The Python interpreter named by `HOPLAKE_MOTO`, which has the package; else that of a virtual
//! environment in the shared build folder, as [`DuckDb`](crate::DuckDb) has one.
//!
//! **How it ends.** By its process id when the [`KinesisServer`] is dropped, so also when a test panics.

use std::fs::{self, File};
use std::io;
use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::http::Request;
use hyper::http::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::port::ReservedPort;
use crate::programs::{Process, explain, folder_made_once, run};
use crate::sim::proxy::pass_on;

/// The version that is known to work.
const MOTO_VERSION: &str = "5.2.5";

/// Starts it, with shards that end.
const SERVER: &str = include_str!("kinesis.py");

/// What its server needs. Its own extra for servers brings those of all other services, too.
const SERVER_PACKAGES: [&str; 2] = ["flask==3.1.3", "flask-cors==6.0.5"];

const REGION: &str = "us-east-1";
const KEY_ID: &str = "test";
const SECRET: &str = "secret";
const READY_WITHIN: Duration = Duration::from_secs(60);

/// As many as one request may have.
const RECORDS_MAX: usize = 500;

/// A running server without streams, on a loopback port of its own.
#[derive(Debug)]
pub struct KinesisServer {
    process: Process,
    port: ReservedPort,
    // Dropped after the process, which writes into it.
    _folder: TempDir,
}

impl KinesisServer {
    /// Starts a server, and returns when it answers. Blocks: some seconds, or a minute if it must be installed first.
    ///
    /// # Errors
    /// If there is no Python, if the package cannot be installed, or if it does not answer within a minute.
    pub fn start() -> io::Result<Self> {
        let python = python()?;
        let folder = tempfile::Builder::new().prefix("hoplake-kinesis-").tempdir()?;
        let port = ReservedPort::new()?;
        let log = folder.path().join("log");
        let output = File::create(&log)?;
        let mut command = Command::new(&python);
        command.args(["-c", SERVER, "--host", "127.0.0.1", "--port", &port.to_string()]);
        command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output);
        let started =
            command.spawn().map_err(|error| explain(format!("could not start {}: {error}", python.display())))?;
        let mut process = Process(started);
        let deadline = Instant::now() + READY_WITHIN;
        while let Err(rejected) = TcpStream::connect((Ipv4Addr::LOCALHOST, port.number())) {
            if process.0.try_wait()?.is_some() || Instant::now() > deadline {
                let said = fs::read_to_string(&log).unwrap_or_default();
                return Err(explain(format!("moto does not answer ({rejected}): {}", said.trim())));
            }
            thread::sleep(Duration::from_millis(50));
        }
        Ok(Self { process, port, _folder: folder })
    }

    /// `http://127.0.0.1:<port>`.
    pub fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// The region of its streams.
    pub fn region(&self) -> &'static str {
        REGION
    }

    /// The environment in which a process may use it.
    pub fn env(&self) -> Vec<(String, String)> {
        let variables = [("AWS_ACCESS_KEY_ID", KEY_ID), ("AWS_SECRET_ACCESS_KEY", SECRET), ("AWS_REGION", REGION)];
        variables.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec()
    }

    /// Makes a stream.
    ///
    /// # Errors
    /// What the server says, such as that there is one.
    pub async fn create_stream(&self, name: &str, shards: u32) -> io::Result<()> {
        self.call("CreateStream", &json!({ "StreamName": name, "ShardCount": shards })).await?;
        Ok(())
    }

    /// Puts records, each a partition key and data, into a stream, in their order.
    ///
    /// # Errors
    /// What the server says, such as that there is no such stream.
    pub async fn put_records(&self, stream: &str, records: &[(&str, &[u8])]) -> io::Result<()> {
        for some in records.chunks(RECORDS_MAX) {
            let some = some.iter().map(|(key, data)| json!({ "PartitionKey": key, "Data": STANDARD.encode(data) }));
            let put = json!({ "StreamName": stream, "Records": some.collect::<Vec<_>>() });
            let answer = self.call("PutRecords", &put).await?;
            if answer["FailedRecordCount"] != 0 {
                return Err(explain(format!("some records were not put: {answer}")));
            }
        }
        Ok(())
    }

    /// Any operation of the protocol, such as `SplitShard`, with its JSON.
    ///
    /// # Errors
    /// What the server says.
    pub async fn call(&self, operation: &str, input: &Value) -> io::Result<Value> {
        // It does not check signatures, and looks there for the service.
        let signature = format!("AWS4-HMAC-SHA256 Credential={KEY_ID}/20260101/{REGION}/kinesis/aws4_request");
        let address = format!("127.0.0.1:{}", self.port);
        let request = Request::post("/").header(HOST, &address).header(AUTHORIZATION, signature);
        let request = request.header(CONTENT_TYPE, "application/x-amz-json-1.1");
        let request = request.header("x-amz-target", format!("Kinesis_20131202.{operation}"));
        let (head, ()) = request.body(()).map_err(io::Error::other)?.into_parts();
        let answer = pass_on(head, input.to_string().into(), &address).await.map_err(io::Error::other)?;
        match answer.status().is_success() {
            // Some operations answer nothing.
            true if answer.body().is_empty() => Ok(Value::Null),
            true => Ok(serde_json::from_slice(answer.body())?),
            false => Err(explain(format!("{operation} failed: {}", String::from_utf8_lossy(answer.body())))),
        }
    }

    /// The id of the server's process.
    pub fn process_id(&self) -> u32 {
        self.process.0.id()
    }
}

/// A Python interpreter that has the package.
fn python() -> io::Result<PathBuf> {
    if let Some(named) = std::env::var_os("HOPLAKE_MOTO") {
        return Ok(named.into());
    }
    Ok(folder_made_once(&format!("moto-{MOTO_VERSION}"), install)?.join("bin/python"))
}

fn install(folder: &Path) -> io::Result<()> {
    let hint = "install Python 3 with venv, or name an interpreter that has moto and flask in HOPLAKE_MOTO";
    run(Command::new("python3").args(["-m", "venv"]).arg(folder), hint)?;
    let mut pip = Command::new(folder.join("bin/python"));
    pip.args(["-m", "pip", "install", "--quiet", &format!("moto=={MOTO_VERSION}")]).args(SERVER_PACKAGES);
    run(&mut pip, hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The data of a shard's records.
    async fn records(server: &KinesisServer, stream: &str, shard: &Value) -> Vec<Vec<u8>> {
        let from = json!({ "StreamName": stream, "ShardId": shard, "ShardIteratorType": "TRIM_HORIZON" });
        let iterator = server.call("GetShardIterator", &from).await.unwrap();
        let answer = server.call("GetRecords", &json!({ "ShardIterator": iterator["ShardIterator"] })).await.unwrap();
        let records = answer["Records"].as_array().unwrap();
        records.iter().map(|record| STANDARD.decode(record["Data"].as_str().unwrap()).unwrap()).collect()
    }

    #[tokio::test]
    async fn it_has_what_was_put_and_ends_with_its_value() {
        let server = KinesisServer::start().unwrap();
        server.create_stream("changes", 3).await.unwrap();
        let data: Vec<_> = (0..600_u16).map(|number| number.to_string().into_bytes()).collect();
        let keys = ["a", "b", "c", "d"];
        let put: Vec<_> = data.iter().zip(keys.iter().cycle()).map(|(data, key)| (*key, data.as_slice())).collect();
        server.put_records("changes", &put).await.unwrap();
        let missing = server.put_records("other", &put).await.unwrap_err().to_string();
        assert!(missing.contains("PutRecords") && missing.contains("ResourceNotFound"), "{missing}");

        let shards = server.call("ListShards", &json!({ "StreamName": "changes" })).await.unwrap();
        let shards = shards["Shards"].as_array().unwrap();
        assert_eq!(shards.len(), 3);
        let mut all = Vec::new();
        for shard in shards {
            let found = records(&server, "changes", &shard["ShardId"]).await;
            // The records of a key are in one shard, in their order.
            assert!(
                found
                    .iter()
                    .filter_map(|data| data.strip_suffix(b"0"))
                    .is_sorted_by_key(|tens| (tens.len(), tens.to_vec()))
            );
            all.extend(found);
        }
        all.sort_by_key(|data| (data.len(), data.clone()));
        assert_eq!(all, data);
        let port = server.port.number();
        let process = server.process_id();
        drop(server);
        assert!(TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err());
        assert!(!Path::new(&format!("/proc/{process}")).exists());
    }
}
