//! Logs of changes that another program writes: Debezium or Maxwell, to files, standard input, Kafka or Kinesis.
//!
//! ```text
//! transport   records with offsets: files, kafka, kinesis
//! debezium    a record -> what it says             maxwell   the same
//! values      JSON -> the values that the source of the database itself makes of a row
//! unfinished  a transaction of which not all has come
//! assembler   changes -> transactions, each once, in the order of their commits
//! place       positions: offsets in the log, and a place in the database
//! catalog     the tables, which a log does not have
//! ```
//!
//! **Exactly once.** Producers are at-least-once: one that was killed writes again what it had written. A position says where the log is
//! to be read on, and which transaction of the database was the last: what a log has of it and of those before it is passed over.
//!
//! **Whole transactions.** They end where the producer says so; the changes of one are counted, whatever the partitions they come by.

mod assembler;
mod catalog;
mod database;
mod debezium;
mod event;
mod files;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
#[cfg(feature = "kafka")]
mod kafka;
#[cfg(feature = "kinesis")]
mod kinesis;
mod maxwell;
mod place;
mod stream;
#[cfg(test)]
mod tests;
mod transport;
mod unfinished;
mod values;

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use hoplake::Name;
use serde::Deserialize;

pub use self::catalog::CatalogFile;
use self::{
    database::Database,
    event::{Event, Tables},
    files::{Files, Input},
    place::{LogPosition, Offsets},
    stream::{LogStream, Opened},
    transport::{LogConsumer, Record},
    values::{Style, brief, fault},
};
use super::{Following, Purpose, RowSink, Snapshot, Source, TransactionStream};
use crate::{
    Catalog, FeedError, LogFormat, OneOrMore, Settings, SourceSettings, TableName, TimePrecision,
    error::StopNote,
    source::shape::{Drift, TableShape},
};

/// Where a log is.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Address {
    /// A file, or a folder.
    Files(PathBuf),
    Input,
    #[cfg(feature = "kafka")]
    Kafka(kafka::KafkaAddress),
    #[cfg(feature = "kinesis")]
    Kinesis(kinesis::KinesisAddress),
}

/// Where the catalog is.
enum Tabled {
    File(Box<Catalog>),
    Database(Arc<dyn Source>),
}

/// A log of changes.
pub(crate) struct ChangeLog {
    address: Address,
    tabled: Tabled,
    schema: String,
    style: Style,
    quiet: Duration,
    #[cfg(any(feature = "kafka", feature = "kinesis"))]
    timeout: Duration,
    /// What was read last.
    catalog: Mutex<Option<Arc<Catalog>>>,
    /// Standard input, between the first copy and the stream.
    input: Mutex<Option<Opened>>,
    bytes_max: u64,
}

/// Whether a URL is one of a log.
pub(super) fn is_log(url: &str) -> bool {
    url == "-" || ["file:", "kafka:", "kinesis:"].iter().any(|scheme| url.starts_with(scheme))
}

impl ChangeLog {
    /// The log of some settings. Its catalog is read, if that is in a file.
    ///
    /// # Errors
    /// [`Invalid`](crate::FeedErrorKind::Invalid) if a setting is missing or wrong.
    pub(crate) fn new(settings: &Settings) -> Result<Self, FeedError> {
        let source = &settings.source;
        let [url] = source.url.all() else {
            return Err(FeedError::invalid("source.url names several logs").hint("write one"));
        };
        let format = source.log_format.ok_or_else(|| {
            FeedError::invalid("source.log_format is missing").hint("set it to \"debezium\" or \"maxwell\"")
        })?;
        let hint =
            "write one with hoplake feed catalog, and set source.catalog to its path; or set it to the database's URL";
        let named = source.catalog.as_deref().ok_or_else(|| {
            FeedError::invalid("source.catalog is missing: a log does not say what tables there are").hint(hint)
        })?;
        let (database, schema, tabled) = match Database::of_url(named) {
            Some(database) => {
                let mut of_database = settings.clone();
                of_database.source.url = OneOrMore::One(named.to_owned());
                let source = super::open(&of_database)?;
                (database, source.default_schema().to_owned(), Tabled::Database(source))
            }
            None => {
                let (database, schema, catalog) = CatalogFile::read(Path::new(named))?.into_parts();
                (database, schema, Tabled::File(Box::new(catalog)))
            }
        };
        if format == LogFormat::Maxwell && database == Database::Postgres {
            return Err(FeedError::invalid("the catalog is of PostgreSQL, which Maxwell does not follow"));
        }
        let usual = match database {
            Database::MariaDb => TimePrecision::AdaptiveTimeMicroseconds,
            Database::Postgres => TimePrecision::Adaptive,
        };
        let style = Style {
            format,
            database,
            times: source.time_precision_mode.unwrap_or(usual),
            decimals: source.decimal_handling_mode,
        };
        Ok(Self {
            address: address(url, source)?,
            tabled,
            schema,
            style,
            quiet: Duration::from_millis(source.quiet_ms),
            #[cfg(any(feature = "kafka", feature = "kinesis"))]
            timeout: Duration::from_millis(source.timeout_ms),
            catalog: Mutex::new(None),
            input: Mutex::new(None),
            bytes_max: settings.stream.transaction_bytes_max,
        })
    }

    /// The log after some offsets.
    async fn open(&self, from: &Offsets) -> Result<Box<dyn LogConsumer>, FeedError> {
        Ok(match &self.address {
            Address::Files(path) => {
                Box::new(Files::open(path, from.values().next().map(String::as_str), self.bytes_max).await?)
            }
            Address::Input => Box::new(Input::open(self.bytes_max)),
            #[cfg(feature = "kafka")]
            Address::Kafka(kafka) => Box::new(kafka.open(from, self.bytes_max, self.timeout).await?),
            #[cfg(feature = "kinesis")]
            Address::Kinesis(kinesis) => Box::new(kinesis.open(from, self.timeout).await?),
        })
    }

    async fn tables(&self, following: &Following) -> Result<Tables, FeedError> {
        let known = self.catalog.lock().ok().and_then(|known| known.clone());
        let catalog = match known {
            Some(known) => known,
            None => {
                let schemas = following.tables.keys().map(|table| table.schema.to_string()).collect();
                Arc::new(self.catalog(&schemas).await?)
            }
        };
        Ok(Tables::new(&catalog, following, self.style))
    }

    /// The tables that the catalog describes otherwise than the feed knows them, in nothing that matters.
    async fn compare(&self, from: &str, following: &Following) -> Result<Vec<(TableName, TableShape)>, FeedError> {
        let Some(catalog) = self.catalog.lock().ok().and_then(|known| known.clone()) else { return Ok(Vec::new()) };
        let mut changed = Vec::new();
        for (name, was) in &following.shapes {
            let (Some(table), Some(carried)) = (catalog.table(name), following.tables.get(name)) else { continue };
            let now = TableShape::of_table(table);
            let why = match was.drift(&now, carried, |was, is| was == is) {
                Drift::Same => continue,
                Drift::Stop(why) => Some(why),
                Drift::Harmless(_) => {
                    let filled = self.filled(name, &was.new_in(&now)).await?;
                    filled.map(|name| format!("column {name} is new, and each row has a value in it"))
                }
            };
            if let Some(why) = why.filter(|_| following.accepted.is_none()) {
                let why = format!("after {from}, the catalog has another table {name} than the feed followed: {why}");
                return Err(StopNote::new(from, why).error());
            }
            changed.push((name.clone(), now));
        }
        Ok(changed)
    }

    fn keep_input(&self, opened: Option<Opened>) -> Option<Opened> {
        self.input.lock().ok().and_then(|mut input| std::mem::replace(&mut *input, opened))
    }
}

fn address(
    url: &str,
    // Only a server of logs has a password.
    #[cfg_attr(not(feature = "kafka"), allow(unused_variables))] source: &SourceSettings,
) -> Result<Address, FeedError> {
    if url == "-" {
        return Ok(Address::Input);
    }
    // Without a password that it may have.
    let shown = match (url.split_once("://"), url.rsplit_once('@')) {
        (Some((scheme, _)), Some((_, rest))) => format!("{scheme}://{rest}"),
        _ => url.to_owned(),
    };
    let invalid = |why: &str, hint: &str| Err(FeedError::invalid(format!("source.url {shown:?}: {why}")).hint(hint));
    match url.split_once(':') {
        Some(("file", path)) => {
            let path = path.strip_prefix("//").unwrap_or(path);
            match path.is_empty() {
                true => invalid("it has no path", "write file:/path/to/log.jsonl"),
                false => Ok(Address::Files(path.into())),
            }
        }
        #[cfg(feature = "kafka")]
        Some(("kafka", rest)) => {
            let password = source.password()?;
            match kafka::KafkaAddress::parse(rest.strip_prefix("//").unwrap_or_default(), password) {
                Ok(kafka) => Ok(Address::Kafka(kafka)),
                Err(why) => invalid(
                    &why,
                    "write kafka://[user@]host:port[,host:port]/topic[,topic][?tls=true&ca=/path&sasl=scram-sha-512]",
                ),
            }
        }
        #[cfg(not(feature = "kafka"))]
        Some(("kafka", _)) => invalid("this build has no Kafka", "build it with the feature kafka"),
        #[cfg(feature = "kinesis")]
        Some(("kinesis", rest)) => match rest.strip_prefix("//").and_then(kinesis::KinesisAddress::parse) {
            Some(kinesis) => Ok(Address::Kinesis(kinesis)),
            None => invalid("it is not understood", "write kinesis://region/stream[,stream]"),
        },
        #[cfg(not(feature = "kinesis"))]
        Some(("kinesis", _)) => invalid("this build has no Kinesis", "build it with the feature kinesis"),
        _ => invalid(
            "it is not the address of a log",
            "write file:/path, -, kafka://host:port/topic or kinesis://region/stream",
        ),
    }
}

impl Style {
    /// What a record says.
    fn decode(self, record: &Record, tables: &Tables) -> Result<Event, FeedError> {
        if record.is_mark {
            return Ok(Event::Nothing);
        }
        let decoded = match std::str::from_utf8(&record.value) {
            Err(_) => Err(FeedError::invalid("it is not text in UTF-8")),
            Ok(text) => match self.format {
                LogFormat::Debezium => debezium::decode(text, tables),
                LogFormat::Maxwell => maxwell::decode(text, tables),
            },
        };
        match decoded {
            Err(_) if is_tombstone(&record.value) => Ok(Event::Nothing),
            // The producer was killed while it wrote the line, and writes the record again.
            Err(_) if record.is_line && is_cut(&record.value) => {
                tracing::warn!(at = record.at, "the log has a line that was not written to its end");
                Ok(Event::Nothing)
            }
            decoded => decoded.map_err(|error| record.located(error)),
        }
    }
}

/// Whether a record says that what is before it in a compacted topic may be forgotten, as producers write it after each deletion: a null,
/// in a log without nulls an empty record or the JSON `null`, and with schemas a null `payload`.
fn is_tombstone(value: &[u8]) -> bool {
    /// All that such an object may have.
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct WithSchema {
        #[serde(default, rename = "schema")]
        _schema: serde::de::IgnoredAny,
        #[serde(rename = "payload")]
        _payload: (),
    }
    match value.trim_ascii() {
        b"" | b"null" => true,
        object => serde_json::from_slice::<WithSchema>(object).is_ok(),
    }
}

/// Whether a text ends within JSON.
fn is_cut(text: &[u8]) -> bool {
    serde_json::from_slice::<serde::de::IgnoredAny>(text).is_err_and(|error| error.is_eof())
}

#[async_trait]
impl Source for ChangeLog {
    fn default_schema(&self) -> &str {
        &self.schema
    }

    async fn catalog(&self, schemas: &BTreeSet<String>) -> Result<Catalog, FeedError> {
        let catalog = match &self.tabled {
            Tabled::Database(source) => source.catalog(schemas).await?,
            Tabled::File(all) => {
                let mut catalog = Catalog::clone(all);
                catalog.tables.retain(|table| schemas.contains(table.name.schema.as_str()));
                catalog
            }
        };
        if let Ok(mut known) = self.catalog.lock() {
            *known = Some(Arc::new(catalog.clone()));
        }
        Ok(catalog)
    }

    async fn prepare(&self, _: &[TableName]) -> Result<(), FeedError> {
        match &self.address {
            // Nothing may be read of it before the feed runs.
            Address::Input => Ok(()),
            Address::Files(_) => self.open(&Offsets::new()).await.map(drop),
            // It may have lost its beginning since the first copy.
            #[cfg(feature = "kafka")]
            Address::Kafka(kafka) => kafka.check(self.bytes_max, self.timeout).await,
            #[cfg(feature = "kinesis")]
            Address::Kinesis(kinesis) => kinesis.check(self.timeout).await,
        }
    }

    async fn filled(&self, table: &TableName, columns: &[Name]) -> Result<Option<String>, FeedError> {
        match &self.tabled {
            Tabled::Database(source) => source.filled(table, columns).await,
            Tabled::File(catalog) => {
                let table = catalog.table(table);
                let is_filled = |name: &&Name| table.and_then(|it| it.column(name)).is_some_and(|it| !it.is_nullable);
                Ok(columns.iter().find(is_filled).map(ToString::to_string))
            }
        }
    }

    async fn snapshot<'a>(&'a self, purpose: Purpose) -> Result<Box<dyn Snapshot + 'a>, FeedError> {
        if purpose != Purpose::Copy {
            return Err(FeedError::invalid("a log of changes has no rows that could be compared with the graph").hint(
                "let a feed with another source.name and the URL of the database itself as source.url compare them",
            ));
        }
        Ok(Box::new(LogSnapshot { log: self, position: String::new() }))
    }

    async fn stream(&self, from: &str, following: Following) -> Result<Box<dyn TransactionStream>, FeedError> {
        let position = LogPosition::parse(from)?;
        let tables = self.tables(&following).await?;
        let changed = self.compare(from, &following).await?;
        let opened = match self.keep_input(None) {
            Some(opened) => opened,
            None => Opened::new(self.open(&position.offsets).await?),
        };
        Ok(Box::new(LogStream::new(opened, position, tables, following, changed, self.style, self.quiet)))
    }

    async fn position(&self) -> Result<String, FeedError> {
        Err(FeedError::invalid("a log does not say where its database is"))
    }
}

/// The rows at the beginning of a log.
struct LogSnapshot<'a> {
    log: &'a ChangeLog,
    position: String,
}

#[async_trait]
impl Snapshot for LogSnapshot<'_> {
    fn position(&self) -> &str {
        &self.position
    }

    async fn rows(&mut self, tables: &[TableName], rows: &mut dyn RowSink) -> Result<(), FeedError> {
        let log = self.log;
        let following = Following {
            tables: tables.iter().map(|table| (table.clone(), BTreeSet::new())).collect(),
            ..Following::default()
        };
        let tables = log.tables(&following).await?;
        let mut opened = Opened::new(log.open(&Offsets::new()).await?);
        self.position = stream::copy(&mut opened, &tables, log.style, log.quiet, rows).await?.to_string();
        if log.address == Address::Input {
            log.keep_input(Some(opened));
        }
        Ok(())
    }
}
