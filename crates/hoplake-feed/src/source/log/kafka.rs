//! Records of topics of Kafka.
//!
//! Each partition is read from its own offset: the graph keeps these, and no consumer group is used.

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

use async_trait::async_trait;
use futures::future::join_all;
use rskafka::{
    BackoffConfig,
    client::{
        Client, ClientBuilder,
        error::{Error, ProtocolError},
        partition::{OffsetAt, PartitionClient, UnknownTopicHandling},
    },
    record::RecordAndOffset,
};

use super::{
    place::Offsets,
    rank::{Rank, rank},
    transport::{Log, Next, Record},
};
use crate::{FeedError, FeedErrorKind, error::COPY_ANEW};

/// Bytes of a request to a partition, unless one batch of records has more.
const FETCH_BYTES: i32 = 1 << 20;

/// How long a server may wait for records, if there are none.
const WAIT_MS: i32 = 100;

/// How often partitions that have no more are asked while others have.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Where topics are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct KafkaAddress {
    pub(super) brokers: Vec<String>,
    pub(super) topics: Vec<String>,
}

/// The partitions of some topics.
pub(super) struct Kafka {
    partitions: Vec<Partition>,
    timeout: Duration,
    looked: Instant,
}

struct Partition {
    /// `topic/0`.
    name: String,
    client: PartitionClient,
    /// Of the next request.
    offset: i64,
    records: VecDeque<RecordAndOffset>,
    /// Whether the last request found nothing.
    is_idle: bool,
}

impl KafkaAddress {
    /// Reads what follows `kafka://`: `host:port,host:port/topic,topic`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (brokers, topics) = text.split_once('/')?;
        let all = |list: &str| list.split(',').map(str::to_owned).collect::<Vec<_>>();
        let (brokers, topics) = (all(brokers), all(topics));
        let is_broker = |it: &String| {
            it.rsplit_once(':').is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok())
        };
        let is_topic = |it: &String| {
            !it.is_empty() && it.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
        };
        (brokers.iter().all(is_broker) && topics.iter().all(is_topic)).then_some(Self { brokers, topics })
    }

    async fn connect(&self, bytes_max: u64, timeout: Duration) -> Result<Client, FeedError> {
        let backoff =
            BackoffConfig { max_backoff: Duration::from_secs(1), deadline: Some(timeout), ..BackoffConfig::default() };
        let message_bytes = usize::try_from(bytes_max).unwrap_or(usize::MAX).saturating_add(FETCH_BYTES as usize);
        let builder = ClientBuilder::new(self.brokers.clone())
            .client_id("hoplake-feed")
            .max_message_size(message_bytes)
            .backoff_config(backoff);
        let what = format!("connect to Kafka at {}", self.brokers.join(", "));
        within(timeout, &what, builder.build()).await
    }

    /// Refuses topics that are not there.
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

    /// Opens all partitions behind some offsets. One of which there is none is opened at its beginning, which has to be there.
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
            partitions.push(Partition { name, client, offset, records: VecDeque::new(), is_idle: false });
        }
        Ok(Kafka { partitions, timeout, looked: Instant::now() })
    }
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
        match records.last() {
            Some(last) => self.offset = last.offset + 1,
            // Marks of transactions of producers, which are no records.
            None if self.offset < end => self.offset += 1,
            None => {}
        }
        self.records.extend(records);
        Ok(())
    }

    fn rank(&self) -> Option<Rank> {
        let record = &self.records.front()?.record;
        Some(rank(record.timestamp.timestamp_millis(), record.value.as_deref().unwrap_or_default()))
    }
}

#[async_trait]
impl Log for Kafka {
    async fn next(&mut self) -> Result<Next, FeedError> {
        loop {
            let is_due = self.looked.elapsed() >= LOOK_EVERY;
            let are_all_empty = self.partitions.iter().all(|it| it.records.is_empty());
            let timeout = self.timeout;
            let wait_ms = if are_all_empty { WAIT_MS } else { 1 };
            let is_wanted = |it: &&mut Partition| it.records.is_empty() && (are_all_empty || is_due || !it.is_idle);
            let wanted: Vec<_> = self.partitions.iter_mut().filter(is_wanted).collect();
            if !wanted.is_empty() {
                join_all(wanted.into_iter().map(|it| it.fetch(wait_ms, timeout)))
                    .await
                    .into_iter()
                    .collect::<Result<(), _>>()?;
                self.looked = Instant::now();
            }
            let first =
                self.partitions.iter_mut().filter_map(|it| Some((it.rank()?, it))).min_by_key(|(rank, _)| *rank);
            let Some((_, partition)) = first else { return Ok(Next::End) };
            let Some(RecordAndOffset { record, offset }) = partition.records.pop_front() else { continue };
            // A null says that what is behind a deletion may be forgotten.
            let Some(value) = record.value else { continue };
            return Ok(Next::Record(Record {
                part: partition.name.clone(),
                at: format!("{}:{offset}", partition.name),
                before: offset.to_string(),
                behind: (offset + 1).to_string(),
                value: value.into(),
                is_line: false,
                is_mark: false,
            }));
        }
    }

    fn is_split(&self) -> bool {
        self.partitions.len() > 1
    }

    fn offsets(&self) -> Offsets {
        self.partitions.iter().map(|it| (it.name.clone(), it.offset.to_string())).collect()
    }
}
