//! Records of topics of Kafka.
//!
//! Each partition is read from its own offset: the graph keeps these, and no consumer group is used.

use std::{
    collections::{HashMap, VecDeque},
    fmt,
    path::PathBuf,
    time::{Duration, Instant},
};

use async_trait::async_trait;
use bytes::Bytes;
use futures::future::join_all;
use rskafka::{
    BackoffConfig,
    client::{
        Client, ClientBuilder, Credentials, SaslConfig,
        error::{Error, ProtocolError},
        partition::{OffsetAt, PartitionClient, UnknownTopicHandling},
    },
    record::RecordAndOffset,
};

use super::{
    place::Offsets,
    transport::{LogConsumer, Next, Record},
};
use crate::{
    FeedError, FeedErrorKind,
    error::COPY_ANEW,
    source::tls::{Tls, Verified},
};

/// Bytes of a request to a partition, unless one batch of records has more.
const FETCH_BYTES: i32 = 1 << 20;

/// How long a server may wait for records, if there are none.
const WAIT_MS: i32 = 100;

/// How often partitions that have no more are asked while others have.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Where topics are, and how to get there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct KafkaAddress {
    brokers: Vec<String>,
    topics: Vec<String>,
    tls: Option<Tls>,
    login: Option<Login>,
}

/// Who this client is.
#[derive(Clone, PartialEq, Eq)]
struct Login {
    mechanism: Mechanism,
    user: String,
    password: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mechanism {
    Plain,
    ScramSha256,
    ScramSha512,
}

/// Without the password.
impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Login").field("mechanism", &self.mechanism).field("user", &self.user).finish_non_exhaustive()
    }
}

impl Login {
    fn config(&self) -> SaslConfig {
        let credentials = Credentials::new(self.user.clone(), self.password.clone());
        match self.mechanism {
            Mechanism::Plain => SaslConfig::Plain(credentials),
            Mechanism::ScramSha256 => SaslConfig::ScramSha256(credentials),
            Mechanism::ScramSha512 => SaslConfig::ScramSha512(credentials),
        }
    }
}

/// The partitions of some topics.
pub(super) struct Kafka {
    partitions: Vec<Partition>,
    timeout: Duration,
}

struct Partition {
    /// `topic/0`.
    name: String,
    client: PartitionClient,
    /// Of the next request.
    offset: i64,
    /// Behind the last record that was there at the beginning.
    end: i64,
    records: VecDeque<RecordAndOffset>,
    /// Whether the last request found nothing.
    is_idle: bool,
    /// When the last request was answered.
    looked: Instant,
    /// The offset of a transaction marker that the last request skipped.
    passed: Option<i64>,
}

impl KafkaAddress {
    /// Reads what follows `kafka://`: `user@host:port,host:port/topic,topic?tls=true&sasl=scram-sha-512`. The password is the one of the
    /// settings, or that after the user's name.
    ///
    /// # Errors
    /// Why it cannot be read.
    pub(super) fn parse(text: &str, password: Option<String>) -> Result<Self, String> {
        let (address, query) = text.split_once('?').unwrap_or((text, ""));
        let (user, address) = match address.rsplit_once('@') {
            Some((user, address)) => (Some(user), address),
            None => (None, address),
        };
        let (brokers, topics) = Self::places(address).ok_or("it is not understood")?;
        let query: HashMap<_, _> = url::form_urlencoded::parse(query.as_bytes()).into_owned().collect();
        let known = ["tls", "ca", "cert", "key", "sasl"];
        if let Some(unknown) = query.keys().find(|name| !known.contains(&name.as_str())) {
            return Err(format!("{unknown} is not one of {}", known.join(", ")));
        }
        Ok(Self { brokers, topics, tls: tls_of(&query)?, login: login_of(&query, user, password)? })
    }

    fn places(text: &str) -> Option<(Vec<String>, Vec<String>)> {
        let (brokers, topics) = text.split_once('/')?;
        let all = |list: &str| list.split(',').map(str::to_owned).collect::<Vec<_>>();
        let brokers = all(brokers);
        let topics = all(topics);
        let is_broker = |it: &String| {
            it.rsplit_once(':').is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok())
        };
        let is_topic = |it: &String| {
            !it.is_empty() && it.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
        };
        (brokers.iter().all(is_broker) && topics.iter().all(is_topic)).then_some((brokers, topics))
    }

    async fn connect(&self, bytes_max: u64, timeout: Duration) -> Result<Client, FeedError> {
        let backoff =
            BackoffConfig { max_backoff: Duration::from_secs(1), deadline: Some(timeout), ..BackoffConfig::default() };
        let message_bytes = usize::try_from(bytes_max).unwrap_or(usize::MAX).saturating_add(FETCH_BYTES as usize);
        let builder = ClientBuilder::new(self.brokers.clone())
            .client_id("hoplake-feed")
            .max_message_size(message_bytes)
            .backoff_config(backoff);
        let builder = match &self.tls {
            Some(tls) => builder.tls_config(tls.config()?),
            None => builder,
        };
        let builder = match &self.login {
            Some(login) => builder.sasl_config(login.config()),
            None => builder,
        };
        let what = format!("connect to Kafka at {}", self.brokers.join(", "));
        within(timeout, &what, builder.build()).await
    }

    /// Rejects topics that are not there.
    pub(super) async fn check(&self, bytes_max: u64, timeout: Duration) -> Result<(), FeedError> {
        self.partitions(&self.connect(bytes_max, timeout).await?, timeout).await.map(drop)
    }

    /// The partitions of all topics.
    async fn partitions(&self, client: &Client, timeout: Duration) -> Result<Vec<(&String, i32)>, FeedError> {
        let known = within(timeout, "ask for the topics", client.list_topics()).await?;
        let mut all = Vec::new();
        for topic in &self.topics {
            let found = known.iter().find(|it| it.name == *topic).ok_or_else(|| {
                let why = format!("Kafka at {} has no topic {topic}", self.brokers.join(", "));
                FeedError::unavailable(why).hint("correct source.url, or start the producer first")
            })?;
            all.extend(found.partitions.iter().map(|number| (topic, *number)));
        }
        Ok(all)
    }

    /// Opens all partitions after some offsets. One of which there is none is opened at its beginning, which has to be there.
    pub(super) async fn open(&self, from: &Offsets, bytes_max: u64, timeout: Duration) -> Result<Kafka, FeedError> {
        let client = self.connect(bytes_max, timeout).await?;
        let mut partitions = Vec::new();
        for (topic, number) in self.partitions(&client, timeout).await? {
            let name = format!("{topic}/{number}");
            let what = format!("read {name}");
            let opening = client.partition_client(topic, number, UnknownTopicHandling::Error);
            let client = within(timeout, &what, opening).await?;
            let first = within(timeout, &what, client.get_offset(OffsetAt::Earliest)).await?;
            let end = within(timeout, &what, client.get_offset(OffsetAt::Latest)).await?;
            let offset = match from.get(&name).map(|offset| offset.parse::<i64>()) {
                Some(Ok(offset)) if (first..=end).contains(&offset) => offset,
                Some(Ok(offset)) => {
                    return Err(purged(format!("{name} has records {first} to {end}, and none at {offset}")));
                }
                Some(Err(_)) => return Err(FeedError::invalid("the graph's position is not one of Kafka")),
                None if first == 0 => 0,
                None => {
                    let why = format!("{name} no longer has its beginning: its first record is {first}");
                    let hint = "let the producer write a new snapshot to a new topic, which Kafka keeps for longer";
                    return Err(FeedError::new(FeedErrorKind::Purged, why).hint(hint));
                }
            };
            let records = VecDeque::new();
            let looked = Instant::now();
            partitions.push(Partition { name, client, offset, end, records, is_idle: false, looked, passed: None });
        }
        Ok(Kafka { partitions, timeout })
    }
}

/// What a query says of TLS.
fn tls_of(query: &HashMap<String, String>) -> Result<Option<Tls>, String> {
    let path = |name: &str| query.get(name).map(PathBuf::from);
    let files = ["ca", "cert", "key"].map(path);
    match query.get("tls").map(String::as_str) {
        None | Some("false") if files.iter().all(Option::is_none) => return Ok(None),
        Some("true") => {}
        None | Some("false") => return Err("ca, cert and key need tls=true".into()),
        Some(other) => return Err(format!("tls={other} has to be true or false")),
    }
    let [authorities, certificate, key] = files;
    let client = match (certificate, key) {
        (None, None) => None,
        (Some(certificate), Some(key)) => Some((certificate, key)),
        _ => return Err("cert and key belong together".into()),
    };
    Ok(Some(Tls { verified: Verified::Name, authorities, client }))
}

/// Who logs in, and how.
fn login_of(
    query: &HashMap<String, String>,
    user: Option<&str>,
    password: Option<String>,
) -> Result<Option<Login>, String> {
    let mechanism = match query.get("sasl").map(|name| name.to_ascii_lowercase()).as_deref() {
        None if user.is_none() => return Ok(None),
        None => return Err("it has a user, and no sasl= that says how to log in".into()),
        Some("plain") => Mechanism::Plain,
        Some("scram-sha-256") => Mechanism::ScramSha256,
        Some("scram-sha-512") => Mechanism::ScramSha512,
        Some(other) => return Err(format!("sasl={other} has to be plain, scram-sha-256 or scram-sha-512")),
    };
    let user = user.ok_or("sasl= needs a user: write kafka://user@host:port/topic")?;
    let (user, of_url) = user.split_once(':').map_or((user, None), |(user, password)| (user, Some(password)));
    let decoded = |text: &str| {
        // A plus is itself outside of a query.
        let text = format!("x={}", text.replace('+', "%2B"));
        url::form_urlencoded::parse(text.as_bytes()).next().map(|(_, value)| value.into_owned()).unwrap_or_default()
    };
    let password = of_url.map(decoded).or(password);
    let password = password.ok_or("sasl= needs a password: set source.password_env to the variable that has it")?;
    Ok(Some(Login { mechanism, user: decoded(user), password }))
}

fn purged(why: String) -> FeedError {
    FeedError::new(FeedErrorKind::Purged, why).hint(format!("Kafka no longer has these changes; {COPY_ANEW}"))
}

/// Waits for an answer, and says what it was about if it is an error.
async fn within<T>(
    timeout: Duration,
    what: &str,
    answer: impl Future<Output = Result<T, Error>>,
) -> Result<T, FeedError> {
    match tokio::time::timeout(timeout, answer).await {
        Ok(Ok(it)) => Ok(it),
        Ok(Err(Error::ServerError { protocol_error: ProtocolError::OffsetOutOfRange, .. })) => {
            Err(purged(format!("could not {what}: the offset is not there")))
        }
        Ok(Err(error)) => Err(FeedError::unavailable(format!("could not {what}: {error}"))),
        Err(_) => Err(FeedError::unavailable(format!("could not {what}: no answer within {} ms", timeout.as_millis()))),
    }
}

impl Partition {
    async fn fetch(&mut self, wait_ms: i32, timeout: Duration) -> Result<(), FeedError> {
        let what = format!("read {} at {}", self.name, self.offset);
        let fetching = self.client.fetch_records(self.offset, 1..FETCH_BYTES, wait_ms);
        let (records, end) = within(timeout, &what, fetching).await?;
        self.is_idle = records.is_empty();
        self.looked = Instant::now();
        match records.last() {
            Some(last) => self.offset = last.offset + 1,
            // Either a marker of a producer's transaction, to be skipped, or records of a transaction that is not committed yet, which are not:
            // `Latest` is the offset before them.
            None if self.offset < end => {
                let latest = self.client.get_offset(OffsetAt::Latest);
                if self.offset < within(timeout, &what, latest).await? {
                    self.passed = Some(self.offset);
                    self.offset += 1;
                }
            }
            None => {}
        }
        self.records.extend(records);
        Ok(())
    }

    /// Records that the partition was read past an offset.
    fn mark(&self, offset: i64) -> Record {
        Record {
            part: self.name.clone(),
            at: format!("{}:{offset}", self.name),
            before: offset.to_string(),
            after: (offset + 1).to_string(),
            written_unix_ms: 0,
            value: Bytes::new(),
            is_line: false,
            is_mark: true,
        }
    }

    /// When the first of the records was written.
    fn first_ms(&self) -> Option<i64> {
        Some(self.records.front()?.record.timestamp.timestamp_millis())
    }
}

#[async_trait]
impl LogConsumer for Kafka {
    async fn next(&mut self) -> Result<Next, FeedError> {
        loop {
            let are_all_empty = self.partitions.iter().all(|it| it.records.is_empty());
            let timeout = self.timeout;
            let wait_ms = if are_all_empty { WAIT_MS } else { 1 };
            // An idle partition is asked often enough that no other is read much further than it.
            let is_due = |it: &Partition| are_all_empty || !it.is_idle || it.looked.elapsed() >= LOOK_EVERY;
            let wanted = self.partitions.iter_mut().filter(|it| it.records.is_empty() && is_due(it));
            join_all(wanted.map(|it| it.fetch(wait_ms, timeout))).await.into_iter().collect::<Result<(), _>>()?;
            if let Some(mark) = self.partitions.iter_mut().find_map(|it| it.passed.take().map(|at| it.mark(at))) {
                return Ok(Next::Record(mark));
            }
            // The earliest first: see `LogConsumer`.
            let first = self.partitions.iter_mut().filter_map(|it| Some((it.first_ms()?, it))).min_by_key(|it| it.0);
            let Some((written_unix_ms, partition)) = first else { return Ok(Next::End) };
            let Some(RecordAndOffset { record, offset }) = partition.records.pop_front() else { continue };
            let Some(value) = record.value else {
                // A tombstone, which lets Kafka compact the deletion before it.
                return Ok(Next::Record(partition.mark(offset)));
            };
            return Ok(Next::Record(Record {
                written_unix_ms,
                value: value.into(),
                is_mark: false,
                ..partition.mark(offset)
            }));
        }
    }

    fn is_split(&self) -> bool {
        self.partitions.len() > 1
    }

    fn offsets(&self) -> Offsets {
        self.partitions.iter().map(|it| (it.name.clone(), it.offset.to_string())).collect()
    }

    fn ends(&self) -> Offsets {
        self.partitions.iter().map(|it| (it.name.clone(), it.end.to_string())).collect()
    }

    fn is_past(&self, offset: &str, end: &str) -> bool {
        let number = |text: &str| text.parse::<i64>().ok();
        number(offset).zip(number(end)).is_some_and(|(offset, end)| offset >= end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_and_passwords_are_not_shown() {
        let read = |text: &str| KafkaAddress::parse(text, Some("of settings".into()));
        let plain = read("a:1,b:2/t,u").unwrap();
        assert_eq!((plain.brokers.len(), plain.topics.len(), &plain.tls, &plain.login), (2, 2, &None, &None));
        let all = read("u%40x:p%3Aq@a:1/t?tls=true&ca=/ca.pem&cert=/c.pem&key=/k.pem&sasl=SCRAM-SHA-512").unwrap();
        let login = all.login.as_ref().unwrap();
        assert_eq!((&*login.user, &*login.password, login.mechanism), ("u@x", "p:q", Mechanism::ScramSha512));
        assert!(all.tls.as_ref().unwrap().client.is_some() && !format!("{all:?}").contains("p:q"));
        assert_eq!(read("u@a:1/t?sasl=plain").unwrap().login.unwrap().password, "of settings");
        for (text, why) in [
            ("a/t", "not understood"),
            ("a:1/t?tls=yes", "true or false"),
            ("a:1/t?ca=/ca.pem", "need tls=true"),
            ("a:1/t?tls=true&cert=/c.pem", "belong together"),
            ("a:1/t?sasl=plain", "needs a user"),
            ("u@a:1/t", "no sasl="),
            ("u@a:1/t?sasl=gssapi", "has to be plain"),
            ("a:1/t?ssl=true", "ssl is not one of"),
        ] {
            let rejected = read(text).unwrap_err();
            assert!(rejected.contains(why), "{text}: {rejected}");
        }
        assert!(KafkaAddress::parse("u@a:1/t?sasl=plain", None).unwrap_err().contains("needs a password"));
    }
}
