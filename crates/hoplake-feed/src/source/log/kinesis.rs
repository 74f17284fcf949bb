//! Records of streams of Kinesis.
//!
//! ```text
//! stream ──▶ shards ──▶ records ──▶ what producers put together in one record
//! ```
//! Each shard is read from its own offset, `SEQUENCE/N`: after `N` of the changes in the record with that sequence number. That record
//! has to be there still, or what came after it may be gone, too. A shard that was split or merged ends (`end`), and only then those
//! that came of it are read.

use std::{
    collections::{BTreeSet, VecDeque},
    time::{Duration, Instant},
};

use async_trait::async_trait;
use aws_config::{BehaviorVersion, Region, retry::RetryConfig, timeout::TimeoutConfig};
use aws_sdk_kinesis::{
    Client,
    config::http::HttpResponse,
    error::{DisplayErrorContext, ProvideErrorMetadata, SdkError},
    types::{Shard as Described, ShardIteratorType},
};
use aws_smithy_http_client::{
    Builder,
    tls::{Provider, rustls_provider::CryptoMode},
};
use bytes::Bytes;
use futures::future::join_all;
use prost::Message;

use super::{
    place::Offsets,
    transport::{LogConsumer, Next, Record},
};
use crate::{FeedError, FeedErrorKind, error::COPY_ANEW};

/// Records that are asked for at a time, of all shards together and at least of each. An answer has 10 MB at most.
const RECORDS_MAX: usize = 4_000;
const RECORDS_MIN: usize = 100;

/// How often a shard is read. Kinesis allows five requests a second, of all that read it.
const READ_EVERY: Duration = Duration::from_millis(500);

/// The offset of a shard that was read to its end.
const END: &str = "end";

/// What a record begins with in which the Kinesis Producer Library put several together.
const AGGREGATED: [u8; 4] = [0xF3, 0x89, 0x9A, 0xC2];

/// And the digest that it ends with.
const DIGEST_BYTES: usize = 16;

/// Where streams are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct KinesisAddress {
    region: String,
    streams: Vec<String>,
}

/// The shards of some streams.
pub(super) struct Kinesis {
    client: Client,
    shards: Vec<Shard>,
}

struct Shard {
    stream: String,
    id: String,
    /// `stream/shard`.
    name: String,
    /// The shards that it came of, by name, which have to end first.
    parents: BTreeSet<String>,
    /// What has to come first, where something was read of it before.
    resumes: Option<Offset>,
    iterator: ShardIterator,
    records: VecDeque<Change>,
    read: Option<Instant>,
    /// Whether all that was written so far has been read.
    is_at_end: bool,
}

/// Where a shard is read on.
enum ShardIterator {
    /// It has to be asked for.
    Unknown,
    At(String),
    /// The shard has ended, and that was not passed on.
    Ending,
    Ended,
}

/// Behind `taken` of the changes in a record.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Offset {
    sequence: String,
    taken: usize,
}

/// A change in a record.
struct Change {
    arrived_ms: i64,
    before: Offset,
    data: Bytes,
}

impl Offset {
    fn parse(text: &str) -> Option<Self> {
        let (sequence, taken) = text.split_once('/')?;
        let is_number = !sequence.is_empty() && sequence.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then_some(Self { sequence: sequence.to_owned(), taken: taken.parse().ok()? })
    }

    fn text(&self) -> String {
        format!("{}/{}", self.sequence, self.taken)
    }

    fn next(&self) -> Self {
        Self { sequence: self.sequence.clone(), taken: self.taken + 1 }
    }
}

/// What the Kinesis Producer Library makes of several records.
#[derive(Clone, PartialEq, Message)]
struct Aggregate {
    #[prost(message, repeated, tag = "3")]
    records: Vec<InAggregate>,
}

#[derive(Clone, PartialEq, Message)]
struct InAggregate {
    #[prost(bytes = "bytes", tag = "3")]
    data: Bytes,
}

/// What producers put into a record.
fn parts(data: Bytes) -> Vec<Bytes> {
    let aggregate = data.strip_prefix(&AGGREGATED).and_then(|rest| rest.len().checked_sub(DIGEST_BYTES));
    let aggregate = aggregate.map(|length| data.slice(AGGREGATED.len()..AGGREGATED.len() + length));
    match aggregate.and_then(|bytes| Aggregate::decode(bytes).ok()) {
        Some(aggregate) => aggregate.records.into_iter().map(|record| record.data).collect(),
        None => vec![data],
    }
}

impl KinesisAddress {
    /// Reads what follows `kinesis://`: `region/stream,stream`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (region, streams) = text.split_once('/')?;
        let is_named = |text: &str, others: &[u8]| {
            !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || others.contains(&byte))
        };
        let streams: Vec<_> = streams.split(',').map(str::to_owned).collect();
        let is_valid = is_named(region, b"-") && streams.iter().all(|stream| is_named(stream, b"._-"));
        is_valid.then(|| Self { region: region.to_owned(), streams })
    }

    async fn client(&self, timeout: Duration) -> Client {
        let http = Builder::new().tls_provider(Provider::Rustls(CryptoMode::Ring)).build_https();
        let timeouts = TimeoutConfig::builder().operation_timeout(timeout).connect_timeout(timeout).build();
        let config = aws_config::defaults(BehaviorVersion::latest())
            .region(Region::new(self.region.clone()))
            .http_client(http)
            .retry_config(RetryConfig::standard())
            .timeout_config(timeouts);
        Client::new(&config.load().await)
    }

    /// Rejects streams that are not there.
    pub(super) async fn check(&self, timeout: Duration) -> Result<(), FeedError> {
        let client = self.client(timeout).await;
        for stream in &self.streams {
            shards(&client, stream).await?;
        }
        Ok(())
    }

    /// Opens all shards after some offsets. One of which there is none is opened at its beginning.
    pub(super) async fn open(&self, from: &Offsets, timeout: Duration) -> Result<Kinesis, FeedError> {
        let client = self.client(timeout).await;
        let mut kinesis = Kinesis { client, shards: Vec::new() };
        for stream in &self.streams {
            let described = shards(&kinesis.client, stream).await?;
            let ids: BTreeSet<_> = described.iter().map(|shard| shard.shard_id.clone()).collect();
            let mut read = from.iter().filter_map(|(name, offset)| Some((name.strip_prefix(&**stream)?, offset)));
            let gone = read.find(|(id, offset)| {
                let id = id.strip_prefix('/');
                id.is_some_and(|id| !ids.contains(id)) && *offset != END
            });
            if let Some((id, _)) = gone {
                return Err(purged(format!("Kinesis no longer has {stream}{id}, which was not read to its end")));
            }
            for shard in described {
                let opened = Shard::new(stream, shard, &ids, from)?;
                kinesis.shards.push(opened);
            }
        }
        Ok(kinesis)
    }
}

/// The shards of a stream.
async fn shards(client: &Client, stream: &str) -> Result<Vec<Described>, FeedError> {
    let what = format!("ask for the shards of {stream}");
    let mut all = Vec::new();
    let mut token = None::<String>;
    loop {
        let asked = match token.take() {
            Some(token) => client.list_shards().next_token(token),
            None => client.list_shards().stream_name(stream),
        };
        let answer = asked.send().await.map_err(|error| failed(&what, error))?;
        all.extend(answer.shards.unwrap_or_default());
        token = answer.next_token;
        if token.is_none() {
            return Ok(all);
        }
    }
}

fn purged(why: String) -> FeedError {
    let hint = format!("let the stream keep its records for longer than nothing changes, and {COPY_ANEW}");
    FeedError::new(FeedErrorKind::Purged, why).hint(hint)
}

fn failed<E>(what: &str, error: SdkError<E, HttpResponse>) -> FeedError
where
    E: ProvideErrorMetadata + std::error::Error + 'static,
{
    let service = error.as_service_error();
    let code = service.and_then(|error| error.code());
    let why = match (code, service.and_then(|error| error.message())) {
        (Some(code), Some(message)) => format!("{code}, {message}"),
        _ => DisplayErrorContext(&error).to_string(),
    };
    let hint = match code {
        Some("ResourceNotFoundException") => "correct source.url, or start the producer first",
        _ => "are the region, the network and the credentials right?",
    };
    FeedError::unavailable(format!("could not {what}: {why}")).hint(hint)
}

impl Shard {
    /// One of which nothing was read in this process.
    fn new(stream: &str, described: Described, listed: &BTreeSet<String>, from: &Offsets) -> Result<Self, FeedError> {
        let id = described.shard_id;
        let name = format!("{stream}/{id}");
        let invalid = || FeedError::invalid("the graph's position is not one of Kinesis");
        let (resumes, iterator) = match from.get(&name).map(String::as_str) {
            None => (None, ShardIterator::Unknown),
            Some(END) => (None, ShardIterator::Ended),
            Some(offset) => (Some(Offset::parse(offset).ok_or_else(invalid)?), ShardIterator::Unknown),
        };
        let parents = [described.parent_shard_id, described.adjacent_parent_shard_id].into_iter().flatten();
        // Those that are not listed any more were read to their ends, or there never was anything of them.
        let parents = parents.filter(|id| listed.contains(id)).map(|id| format!("{stream}/{id}"));
        let parents = parents.filter(|name| from.get(name).is_none_or(|offset| offset != END)).collect();
        let stream = stream.to_owned();
        let records = VecDeque::new();
        Ok(Self { stream, id, name, parents, resumes, iterator, records, read: None, is_at_end: false })
    }

    /// Whether its turn has come.
    fn is_readable(&self) -> bool {
        self.parents.is_empty() && !matches!(self.iterator, ShardIterator::Ended)
    }

    /// Whether it is to be read before anything of it can be passed on.
    fn is_wanted(&self) -> bool {
        self.records.is_empty() && !self.has_ended()
    }

    /// Whether all of it was passed on, but that it has ended.
    fn has_ended(&self) -> bool {
        self.records.is_empty() && matches!(self.iterator, ShardIterator::Ending)
    }

    fn due_in(&self) -> Duration {
        self.read.map_or(Duration::ZERO, |read| READ_EVERY.saturating_sub(read.elapsed()))
    }

    async fn read(&mut self, client: &Client, records_max: usize) -> Result<(), FeedError> {
        let what = format!("read {}", self.name);
        self.read = Some(Instant::now());
        let iterator = match &self.iterator {
            ShardIterator::At(iterator) => iterator.clone(),
            _ => self.begin(client).await?,
        };
        let reading = client.get_records().shard_iterator(iterator).limit(records_max as i32);
        let answer = reading.send().await.map_err(|error| failed(&what, error))?;
        self.is_at_end = answer.records.is_empty() && answer.millis_behind_latest.unwrap_or_default() == 0;
        self.iterator = match answer.next_shard_iterator {
            Some(next) => ShardIterator::At(next),
            None => ShardIterator::Ending,
        };
        for record in answer.records {
            let arrived_ms =
                record.approximate_arrival_timestamp.and_then(|it| it.to_millis().ok()).unwrap_or_default();
            let mut skipped = 0;
            if let Some(resumes) = self.resumes.take() {
                if resumes.sequence != record.sequence_number {
                    return Err(self.lost(&resumes));
                }
                skipped = resumes.taken;
            }
            let sequence = record.sequence_number;
            let changes = parts(Bytes::from(record.data.into_inner())).into_iter().enumerate().skip(skipped);
            self.records.extend(changes.map(|(taken, data)| {
                let before = Offset { sequence: sequence.clone(), taken };
                Change { arrived_ms, before, data }
            }));
        }
        let has_all = self.is_at_end || matches!(self.iterator, ShardIterator::Ending);
        match self.resumes.take() {
            Some(resumes) if has_all => Err(self.lost(&resumes)),
            resumes => {
                self.resumes = resumes;
                Ok(())
            }
        }
    }

    async fn begin(&self, client: &Client) -> Result<String, FeedError> {
        let what = format!("begin with {}", self.name);
        let asked = client.get_shard_iterator().stream_name(&self.stream).shard_id(&self.id);
        let asked = match &self.resumes {
            None => asked.shard_iterator_type(ShardIteratorType::TrimHorizon),
            Some(resumes) => asked
                .shard_iterator_type(ShardIteratorType::AtSequenceNumber)
                .starting_sequence_number(&resumes.sequence),
        };
        let answer = asked.send().await.map_err(|error| {
            let is_unknown = error.as_service_error().and_then(|it| it.code()) == Some("InvalidArgumentException");
            match self.resumes.as_ref().filter(|_| is_unknown) {
                Some(resumes) => self.lost(resumes),
                None => failed(&what, error),
            }
        })?;
        answer.shard_iterator.ok_or_else(|| FeedError::unavailable(format!("could not {what}: no answer")))
    }

    fn lost(&self, resumes: &Offset) -> FeedError {
        purged(format!("{} no longer has the record {}, after which it is to be read on", self.name, resumes.sequence))
    }

    /// When the first of the records arrived.
    fn first_ms(&self) -> Option<i64> {
        self.records.front().map(|change| change.arrived_ms)
    }

    /// The first of the records.
    fn pop(&mut self) -> Option<Record> {
        let Change { arrived_ms, before, data } = self.records.pop_front()?;
        Some(Record {
            part: self.name.clone(),
            at: format!("{}:{}", self.name, before.text()),
            before: before.text(),
            after: before.next().text(),
            written_unix_ms: arrived_ms,
            value: data,
            is_line: false,
            is_mark: false,
        })
    }

    /// That it has ended.
    fn end(&mut self) -> Record {
        self.iterator = ShardIterator::Ended;
        Record {
            part: self.name.clone(),
            at: format!("{}:{END}", self.name),
            before: END.to_owned(),
            after: END.to_owned(),
            written_unix_ms: 0,
            value: Bytes::new(),
            is_line: false,
            is_mark: true,
        }
    }
}

/// How long to wait before shards are read: for each that may have more, so that no other is read much further; and if none has anything
/// left, for the next one that is due.
fn pause(shards: &[&mut Shard]) -> Duration {
    let wanted = || shards.iter().filter(|it| it.is_wanted());
    let due = wanted().filter(|it| !it.is_at_end).map(|it| it.due_in()).max();
    let is_empty = shards.iter().all(|it| it.is_wanted());
    due.or_else(|| wanted().map(|it| it.due_in()).min().filter(|_| is_empty)).unwrap_or_default()
}

#[async_trait]
impl LogConsumer for Kinesis {
    async fn next(&mut self) -> Result<Next, FeedError> {
        let mut shards: Vec<_> = self.shards.iter_mut().filter(|it| it.is_readable()).collect();
        let pause = pause(&shards);
        // Even none would last until the next millisecond, for each record.
        if !pause.is_zero() {
            tokio::time::sleep(pause).await;
        }
        let records_max = (RECORDS_MAX / shards.len().max(1)).max(RECORDS_MIN);
        let due = shards.iter_mut().filter(|it| it.is_wanted() && it.due_in().is_zero());
        join_all(due.map(|it| it.read(&self.client, records_max))).await.into_iter().collect::<Result<(), _>>()?;
        if let Some(ended) = shards.iter_mut().find(|it| it.has_ended()) {
            let ended = ended.end();
            let mut has_children = false;
            for shard in &mut self.shards {
                has_children |= shard.parents.remove(&ended.part);
            }
            if !has_children {
                let why = format!("{} was divided or merged: its stream is opened again", ended.part);
                return Err(FeedError::unavailable(why));
            }
            return Ok(Next::Record(ended));
        }
        let is_at_end = shards.iter().all(|it| it.records.is_empty() && it.is_at_end);
        // The earliest, so that no shard is read much further than the others.
        let first = shards.into_iter().filter_map(|it| Some((it.first_ms()?, it))).min_by_key(|it| it.0);
        Ok(match first.and_then(|(_, shard)| shard.pop()) {
            Some(record) => Next::Record(record),
            None if is_at_end => Next::End,
            None => Next::Nothing,
        })
    }

    fn is_split(&self) -> bool {
        self.shards.iter().filter(|it| !matches!(it.iterator, ShardIterator::Ended)).count() > 1
    }

    fn offsets(&self) -> Offsets {
        let next = |it: &Shard| Some((it.name.clone(), it.resumes.as_ref()?.text()));
        self.shards.iter().filter_map(next).collect()
    }
}
