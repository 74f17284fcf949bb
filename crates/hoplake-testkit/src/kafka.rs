//! A real Kafka for tests: one node, which is its own controller (KRaft).
//!
//! **Where it comes from.** The folder of jars named by `HOPLAKE_KAFKA`; else the one in the shared build folder, which
//! Maven fills the first time. Java 17 or later runs it.
//!
//! **How it ends.** By its process id when the [`KafkaServer`] is dropped, so also when a test panics.
//! [`kill`](KafkaServer::kill) ends it at once, and [`restart`](KafkaServer::restart) starts it again on the same port over the
//! same files.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rskafka::BackoffConfig;
use rskafka::client::partition::{Compression, OffsetAt, UnknownTopicHandling};
use rskafka::client::{Client, ClientBuilder};
use rskafka::record::Record;

use crate::java::JavaProgram;
use crate::port::ReservedPort;
use crate::programs::{fetch_jars, folder_made_once, run};

/// The version that is known to work.
const KAFKA_VERSION: &str = "3.9.1";

/// What its version of the logging interface writes with.
pub(crate) const LOGGER: &str = "org.slf4j:slf4j-simple:1.7.36";

/// It must not begin with `-`, and stands for 16 bytes.
const CLUSTER_ID: &str = "hoplake-tests-00000001";

const READY: &str = "Kafka Server started";
const ANSWER_WITHIN: Duration = Duration::from_secs(60);

/// Mechanisms of logging in whose passwords the cluster keeps.
const SCRAM: [&str; 2] = ["SCRAM-SHA-256", "SCRAM-SHA-512"];

/// A running server without topics, on a loopback port of its own. A topic that a client names is made with one partition.
#[derive(Debug)]
pub struct KafkaServer {
    program: JavaProgram,
    ports: Ports,
    /// Whether it speaks TLS.
    has_tls: bool,
}

#[derive(Debug)]
struct Ports {
    broker: ReservedPort,
    controller: ReservedPort,
    /// With TLS, of those who show a certificate.
    certificates: ReservedPort,
    /// With TLS, of those who log in.
    logins: ReservedPort,
}

/// Files in PEM by which a server shows who it is, and knows its clients.
#[derive(Debug, Clone, Copy)]
pub struct KafkaKeys<'a> {
    /// The server's key, and after it its certificate for the name `localhost`.
    pub key_and_certificate: &'a Path,
    /// The certificates of authorities.
    pub authorities: &'a Path,
}

impl KafkaServer {
    /// The user who may log in, by SASL's PLAIN, SCRAM-SHA-256 and SCRAM-SHA-512, and the password.
    pub const USER: [&str; 2] = ["feed", "secret"];

    /// Starts a server, and returns when it answers. Blocks for some ten seconds.
    ///
    /// # Errors
    /// If Java is not installed, the program cannot be fetched, or if it does not answer.
    pub fn start() -> io::Result<Self> {
        Self::start_with(None)
    }

    /// The same, on two more ports with TLS.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub fn start_with_tls(keys: KafkaKeys<'_>) -> io::Result<Self> {
        Self::start_with(Some(keys))
    }

    fn start_with(keys: Option<KafkaKeys<'_>>) -> io::Result<Self> {
        let mut program = JavaProgram::new("Kafka", &jars()?)?;
        let [broker, controller, certificates, logins] = [(); 4].map(|()| ReservedPort::new());
        let ports = Ports { broker: broker?, controller: controller?, certificates: certificates?, logins: logins? };
        let settings = program.path("server.properties");
        let data = program.path("data");
        fs::write(&settings, server_properties(&ports, &data, keys))?;
        let mut format = program.command();
        format.args(["kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c"]).arg(&settings);
        let [user, password] = Self::USER;
        for mechanism in SCRAM.iter().filter(|_| keys.is_some()) {
            format.arg("--add-scram").arg(format!("{mechanism}=[name={user},password={password}]"));
        }
        run(&mut format, "install Java")?;
        // Only that it has started, and what is wrong.
        program.argument("-Dorg.slf4j.simpleLogger.defaultLogLevel=warn");
        program.argument("-Dorg.slf4j.simpleLogger.log.kafka.server.KafkaRaftServer=info");
        program.argument("kafka.Kafka").argument(settings);
        let mut server = Self { program, ports, has_tls: keys.is_some() };
        server.restart()?;
        Ok(server)
    }

    /// `127.0.0.1:<port>`.
    pub fn broker(&self) -> String {
        format!("127.0.0.1:{}", self.ports.broker)
    }

    /// The port on which TLS is spoken, and clients have to have a certificate of an authority.
    pub fn port_of_certificates(&self) -> Option<u16> {
        self.has_tls.then(|| self.ports.certificates.number())
    }

    /// The port on which TLS is spoken, and clients have to log in.
    pub fn port_of_logins(&self) -> Option<u16> {
        self.has_tls.then(|| self.ports.logins.number())
    }

    /// Makes a topic.
    ///
    /// # Errors
    /// What the server says, such as that there is one.
    pub async fn create_topic(&self, name: &str, partitions: i32) -> io::Result<()> {
        let controller = self.client().await?.controller_client().map_err(io::Error::other)?;
        controller.create_topic(name, partitions, 1, ANSWER_WITHIN.as_millis() as i32).await.map_err(io::Error::other)
    }

    /// The records of a partition, in their order.
    ///
    /// # Errors
    /// What the server says, such as that there is no such topic.
    pub async fn records(&self, topic: &str, partition: i32) -> io::Result<Vec<Record>> {
        let client = self.client().await?;
        let partition = client.partition_client(topic, partition, UnknownTopicHandling::Error).await;
        let partition = partition.map_err(io::Error::other)?;
        let mut next = partition.get_offset(OffsetAt::Earliest).await.map_err(io::Error::other)?;
        let end = partition.get_offset(OffsetAt::Latest).await.map_err(io::Error::other)?;
        let mut records = Vec::new();
        while next < end {
            let (fetched, _) = partition.fetch_records(next, 1..1_000_000, 1_000).await.map_err(io::Error::other)?;
            next = fetched.last().map_or(next, |last| last.offset + 1);
            records.extend(fetched.into_iter().map(|fetched| fetched.record));
        }
        Ok(records)
    }

    /// Writes records without keys to the first partition of a topic.
    ///
    /// # Errors
    /// As [`Self::records`].
    pub async fn write(&self, topic: &str, values: &[&str]) -> io::Result<()> {
        let client = self.client().await?;
        let partition = client.partition_client(topic, 0, UnknownTopicHandling::Error).await;
        let record = |value: &&str| Record {
            key: None,
            value: Some(value.as_bytes().to_vec()),
            headers: Default::default(),
            timestamp: std::time::SystemTime::now().into(),
        };
        let records = values.iter().map(record).collect();
        let written = partition.map_err(io::Error::other)?.produce(records, Compression::NoCompression).await;
        written.map(drop).map_err(io::Error::other)
    }

    async fn client(&self) -> io::Result<Client> {
        // By default the client retries without a limit.
        let patience = BackoffConfig { deadline: Some(ANSWER_WITHIN), ..BackoffConfig::default() };
        ClientBuilder::new(vec![self.broker()]).backoff_config(patience).build().await.map_err(io::Error::other)
    }

    /// Ends the server at once.
    pub fn kill(&mut self) {
        self.program.kill();
    }

    /// Starts the server again, and returns when it answers.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub fn restart(&mut self) -> io::Result<()> {
        self.program.start(READY)
    }

    /// The id of the server's process.
    pub fn process_id(&self) -> Option<u32> {
        self.program.process_id()
    }
}

fn server_properties(ports: &Ports, data: &Path, keys: Option<KafkaKeys<'_>>) -> String {
    let Ports { broker, controller, certificates, logins } = ports;
    let listeners = match keys {
        Some(_) => format!(",SSL://localhost:{certificates},SASL_SSL://localhost:{logins}"),
        None => String::new(),
    };
    let mut text = format!(
        "process.roles=broker,controller\n\
         node.id=1\n\
         controller.quorum.voters=1@127.0.0.1:{controller}\n\
         listeners=PLAINTEXT://127.0.0.1:{broker},CONTROLLER://127.0.0.1:{controller}{listeners}\n\
         controller.listener.names=CONTROLLER\n\
         offsets.topic.replication.factor=1\n\
         transaction.state.log.replication.factor=1\n\
         transaction.state.log.min.isr=1\n\
         log.dirs={}\n",
        data.display()
    );
    if let Some(KafkaKeys { key_and_certificate, authorities }) = keys {
        let ([user, password], [first, second]) = (KafkaServer::USER, SCRAM);
        let module = "org.apache.kafka.common.security";
        text += &format!(
            "listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_SSL:SASL_SSL\n\
             ssl.keystore.type=PEM\n\
             ssl.keystore.location={}\n\
             ssl.truststore.type=PEM\n\
             ssl.truststore.location={}\n\
             listener.name.ssl.ssl.client.auth=required\n\
             sasl.enabled.mechanisms=PLAIN,{first},{second}\n\
             listener.name.sasl_ssl.plain.sasl.jaas.config={module}.plain.PlainLoginModule required user_{user}=\"{password}\";\n",
            key_and_certificate.display(),
            authorities.display()
        );
        for mechanism in SCRAM.map(str::to_lowercase) {
            let key = format!("listener.name.sasl_ssl.{mechanism}.sasl.jaas.config");
            text += &format!("{key}={module}.scram.ScramLoginModule required;\n");
        }
    }
    text
}

/// The folder of the program, fetched if need be.
fn jars() -> io::Result<PathBuf> {
    if let Some(named) = std::env::var_os("HOPLAKE_KAFKA") {
        return Ok(named.into());
    }
    folder_made_once(&format!("kafka-{KAFKA_VERSION}"), |folder| {
        let hint = "install Maven, or name a folder of its jars in HOPLAKE_KAFKA";
        fetch_jars(folder, &[&format!("org.apache.kafka:kafka_2.13:{KAFKA_VERSION}"), LOGGER], hint)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn it_keeps_what_was_written_and_ends_with_its_value() {
        let mut server = KafkaServer::start().unwrap();
        server.create_topic("t", 3).await.unwrap();
        let again = server.create_topic("t", 3).await.unwrap_err().to_string();
        assert!(again.contains("TopicAlreadyExists"), "{again}");
        let record = Record {
            key: Some(b"k".to_vec()),
            value: None,
            headers: Default::default(),
            timestamp: std::time::SystemTime::now().into(),
        };
        let client = server.client().await.unwrap();
        let last = client.partition_client("t", 2, UnknownTopicHandling::Error).await.unwrap();
        last.produce(vec![record.clone()], Compression::NoCompression).await.unwrap();

        let broker = server.broker();
        let process = server.process_id().unwrap();
        server.kill();
        assert!(!Path::new(&format!("/proc/{process}")).exists());
        server.restart().unwrap();
        assert_eq!(server.broker(), broker);
        let kept = server.records("t", 2).await.unwrap();
        assert_eq!(kept.iter().map(|kept| (&kept.key, &kept.value)).collect::<Vec<_>>(), [(&record.key, &None)]);
        assert!(server.records("t", 0).await.unwrap().is_empty());
        assert!(server.records("other", 0).await.is_err());
        let process = server.process_id().unwrap();
        drop(server);
        assert!(!Path::new(&format!("/proc/{process}")).exists());
    }
}
