//! `feed.toml`: the source, the graph, and the mapping between them.
//!
//! Plain data, as in the file. Checks that need the database run later, when a [`Mapping`](crate::Mapping) is built from it.

use std::{collections::BTreeMap, path::Path, time::Duration};

use serde::{Deserialize, Serialize};

use crate::FeedError;

/// All settings of a feed.
///
/// ```
/// let text = r#"
/// graph = "s3://bucket/staff"
/// [source]
/// name = "hr"
/// url = "mysql://feed@127.0.0.1:3306/employee"
/// [[table]]
/// name = "department"
/// vertex = { label = "Department" }
/// "#;
/// let settings = hoplake_feed::Settings::parse(text).unwrap();
/// assert_eq!(settings.stream.linger_ms, 200);
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// The URL of the graph.
    pub graph: String,
    /// The database or change log that has the tables.
    pub source: SourceSettings,
    /// How changes become commits.
    #[serde(default, skip_serializing_if = "is_default")]
    pub stream: StreamSettings,
    /// How the first copy works.
    #[serde(default, skip_serializing_if = "is_default")]
    pub copy: CopySettings,
    /// When the running feed compares all rows with the graph.
    #[serde(default, skip_serializing_if = "is_default")]
    pub reconcile: ReconcileSettings,
    /// Probes and metrics of a running feed.
    #[serde(default, skip_serializing_if = "is_default")]
    pub http: HttpSettings,
    /// The tables, and what their rows become.
    #[serde(default, rename = "table")]
    pub tables: Vec<TableEntry>,
}

/// The database or change log that has the tables.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table with a name and a url")]
pub struct SourceSettings {
    /// The name under which the graph keeps the position.
    pub name: String,
    /// `mysql://user@host:port/database`, or several addresses of one database, which are tried in turn; or the log that another program
    /// writes of the database's changes: `file:/path`, `-`, `kafka://host:port/topic`, `kinesis://region/stream`.
    pub url: OneOrMore,
    /// The environment variable that contains the password.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password_env: Option<String>,
    /// The timeout of connecting, and then of silence on the connection, in milliseconds.
    #[serde(default = "default_timeout_ms")]
    pub timeout_ms: u64,
    /// The feed's replica id at a server of MariaDB or MySQL, which disconnects the older of two replicas with one id. Random by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_id: Option<u32>,
    /// The replication slot of PostgreSQL; by default `hoplake_`, the source's name and a hash of the graph's location.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slot: Option<String>,
    /// The publication of PostgreSQL; `hoplake_` and the source's name by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub publication: Option<String>,
    /// The program that writes the log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_format: Option<LogFormat>,
    /// The schema of the tables in a log: a file that `hoplake feed catalog` wrote, or the URL of the database.
    #[serde(default, alias = "catalogue", skip_serializing_if = "Option::is_none")]
    pub catalog: Option<String>,
    /// Debezium's setting of the same name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_precision_mode: Option<TimePrecision>,
    /// Debezium's setting of the same name.
    #[serde(default, skip_serializing_if = "is_default")]
    pub decimal_handling_mode: DecimalHandling,
    /// In a log that does not mark the ends of transactions, a transaction ends after this many milliseconds without a record.
    #[serde(default = "default_quiet_ms", skip_serializing_if = "is_default_quiet_ms")]
    pub quiet_ms: u64,
    /// Whether errors show all columns of a row instead of only those that identify it. Errors appear in logs and in `/status`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub show_rows: bool,
}

/// The program that writes a change log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LogFormat {
    /// Debezium, as JSON.
    Debezium,
    /// Maxwell, as JSON.
    Maxwell,
}

/// The units in which Debezium writes times: its `time.precision.mode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TimePrecision {
    /// Milliseconds or microseconds, by the column's precision: the default of its connector for PostgreSQL.
    Adaptive,
    /// The same, and times of day in microseconds: the default of its connectors for MariaDB and MySQL.
    AdaptiveTimeMicroseconds,
    /// Milliseconds.
    Connect,
    /// Text.
    Isostring,
    /// Microseconds.
    Microseconds,
    /// Nanoseconds.
    Nanoseconds,
}

/// How Debezium writes decimals: its `decimal.handling.mode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DecimalHandling {
    /// As bytes: its default.
    #[default]
    Precise,
    /// As text.
    String,
    /// As floating-point numbers, of which only those with at most fifteen digits are exact.
    Double,
}

impl SourceSettings {
    /// A source with defaults for all other settings.
    pub fn new(name: impl Into<String>, url: OneOrMore) -> Self {
        Self {
            name: name.into(),
            url,
            password_env: None,
            timeout_ms: default_timeout_ms(),
            server_id: None,
            slot: None,
            publication: None,
            log_format: None,
            catalog: None,
            time_precision_mode: None,
            decimal_handling_mode: DecimalHandling::default(),
            quiet_ms: default_quiet_ms(),
            show_rows: false,
        }
    }

    /// The password, if `password_env` is set.
    ///
    /// # Errors
    /// [`Invalid`](crate::FeedErrorKind::Invalid) if it is not set.
    pub fn password(&self) -> Result<Option<String>, FeedError> {
        let Some(name) = &self.password_env else { return Ok(None) };
        let unset = |_| FeedError::invalid(format!("source.password_env names {name}, which is not set"));
        std::env::var(name).map(Some).map_err(unset)
    }
}

/// How changes become commits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
pub struct StreamSettings {
    /// How long a transaction waits for others to share its commit, in milliseconds.
    pub linger_ms: u64,
    /// The maximum number of row changes in a commit, unless a single transaction has more.
    pub rows_max: usize,
    /// The maximum bytes of row changes in a commit, unless a single transaction has more.
    pub bytes_max: u64,
    /// The maximum bytes of an incomplete transaction of a change log, and of one record or message. The feed stops if one is larger.
    pub transaction_bytes_max: u64,
    /// The maximum bytes of one transaction of a database. The feed stops at a larger one. Row changes beyond `bytes_max` spill to a file.
    pub spill_bytes_max: u64,
    /// The maximum bytes that are read ahead during a commit.
    pub ahead_bytes_max: u64,
    /// How many attempts of a commit the graph rejects before the feed blames one of its rows.
    pub attempts: u32,
    /// How often the position is committed while no mapped table changes, in milliseconds.
    pub position_every_ms: u64,
    /// How long a running commit may take after the feed was asked to stop, in milliseconds.
    pub grace_ms: u64,
    /// Whether the feed compacts the graph when a compaction is due.
    pub compact: bool,
}

/// How the first copy works.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
pub struct CopySettings {
    /// The memory budget of the load, in bytes.
    pub memory_bytes: u64,
    /// The folder for rows until they are loaded, and for transactions that exceed memory until they are committed; by default the system's
    /// temporary folder.
    pub temp_dir: Option<std::path::PathBuf>,
}

impl CopySettings {
    /// The folder for temporary files.
    pub(crate) fn place(&self) -> std::path::PathBuf {
        self.temp_dir.clone().unwrap_or_else(std::env::temp_dir)
    }
}

/// When the running feed compares all rows with the graph.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
pub struct ReconcileSettings {
    /// How often, such as `24h`; never by default.
    pub every: Option<String>,
    /// Whether differences are repaired in the graph.
    pub repair: bool,
    /// The folder for the report of the last reconciliation.
    pub report: Option<std::path::PathBuf>,
}

impl ReconcileSettings {
    /// The interval.
    ///
    /// # Errors
    /// [`Invalid`](crate::FeedErrorKind::Invalid) if it is not a duration, or less than a second.
    pub fn every(&self) -> Result<Option<Duration>, FeedError> {
        let Some(text) = &self.every else { return Ok(None) };
        let every = text.parse::<jiff::SignedDuration>().ok().and_then(|it| Duration::try_from(it).ok());
        every.filter(|every| every.as_secs() > 0).map(Some).ok_or_else(|| {
            FeedError::invalid(format!("reconcile.every is {text:?} and has to be a time such as 24h or 30m"))
        })
    }
}

/// Probes and metrics of a running feed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
pub struct HttpSettings {
    /// An address to listen on, such as `127.0.0.1:9464`; by default the feed does not listen.
    pub listen: Option<String>,
    /// The maximum lag of the graph, in milliseconds, at which the feed is ready.
    pub ready_lag_ms: u64,
    /// After how long without an event the feed counts as stuck, in milliseconds.
    pub stuck_ms: u64,
}

/// A table whose rows become vertices or edges.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table with the name of a table")]
pub struct TableEntry {
    /// The table, with its schema or database if that is not the source's.
    pub name: String,
    /// Which rows: a condition in SQL; all by default.
    #[serde(default, rename = "where", skip_serializing_if = "Option::is_none")]
    pub condition: Option<String>,
    /// Columns that do not become properties.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ignore: Vec<String>,
    /// Columns that become properties although they are a key or a foreign key.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keep: Vec<String>,
    /// Names of properties, by column.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub rename: BTreeMap<String, String>,
    /// Types of properties, by column: `bool`, `int64`, `float64`, `string`, `date`, `timestamp`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub types: BTreeMap<String, String>,
    /// What happens to a row that cannot be applied.
    #[serde(default, skip_serializing_if = "is_default")]
    pub on_error: OnError,
    /// Whether the feed applies the database's cascades, where the log does not contain their row changes.
    #[serde(default, skip_serializing_if = "is_default")]
    pub cascades: Cascades,
    /// A row is a vertex.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vertex: Option<VertexEntry>,
    /// Its foreign keys are edges.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub edges: Vec<ForeignKeyEntry>,
    /// A row is an edge.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edge: Option<EdgeEntry>,
}

/// A row is a vertex.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table with a label, such as { label = \"Person\" }")]
pub struct VertexEntry {
    /// Its label.
    pub label: String,
    /// The columns of its key; those of the primary key by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<OneOrMore>,
}

/// A foreign key of a vertex is an edge.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table with a label, columns, and to or from")]
pub struct ForeignKeyEntry {
    /// The label of the edge.
    pub label: String,
    /// The columns of the foreign key.
    pub columns: OneOrMore,
    /// The label of the vertex that it names, if the edge goes there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// The label of the vertex that it names, if the edge comes from there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// What to do if the vertex does not exist. By default, the feed relies on a constraint of the database if there is one, and else the
    /// edge waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<Missing>,
    /// Columns that become properties of the edge.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub properties: Vec<String>,
}

/// A row is an edge.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table with a label, a source and a target")]
pub struct EdgeEntry {
    /// Its label.
    pub label: String,
    /// The vertex that it leaves.
    pub source: EndEntry,
    /// The vertex that it reaches.
    pub target: EndEntry,
    /// The columns that distinguish it from other edges between the two; the rest of the primary key by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<OneOrMore>,
    /// What to do if one of the two vertices does not exist, as for a foreign key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<Missing>,
}

/// An end of an edge.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table with a label and columns")]
pub struct EndEntry {
    /// The label of the vertex.
    pub label: String,
    /// The columns that name it.
    pub columns: OneOrMore,
}

/// What happens to a row that cannot be applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnError {
    /// The feed stops before its transaction.
    #[default]
    Stop,
    /// The row and all later changes of its key go to the dead letters, and the feed continues.
    DeadLetter,
}

/// What to do if a vertex that a row names does not exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Missing {
    /// The edge waits until the vertex exists.
    #[default]
    Wait,
    /// A vertex without properties is created.
    Stub,
    /// The row cannot be applied.
    Error,
}

/// Whether the feed applies the database's cascades, where the log does not contain their row changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cascades {
    /// Yes; a mapping for which this is impossible is rejected.
    #[default]
    Follow,
    /// No: the changes of cascades are missing until a reconciliation.
    Ignore,
}

/// A name, or several.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged, expecting = "a name, or a list of names")]
pub enum OneOrMore {
    /// One.
    One(String),
    /// Several, in their order.
    More(Vec<String>),
}

impl OneOrMore {
    /// All of them.
    pub fn all(&self) -> &[String] {
        match self {
            Self::One(one) => std::slice::from_ref(one),
            Self::More(more) => more,
        }
    }

    /// One name, or the list.
    pub fn of(names: impl IntoIterator<Item = String>) -> Self {
        let mut names: Vec<_> = names.into_iter().collect();
        match names.len() {
            1 => Self::One(names.remove(0)),
            _ => Self::More(names),
        }
    }
}

impl Default for StreamSettings {
    fn default() -> Self {
        Self {
            linger_ms: 200,
            rows_max: 20_000,
            bytes_max: 16 << 20,
            transaction_bytes_max: 128 << 20,
            spill_bytes_max: 4 << 30,
            ahead_bytes_max: 16 << 20,
            attempts: 3,
            position_every_ms: 600_000,
            grace_ms: 10_000,
            compact: true,
        }
    }
}

impl Default for CopySettings {
    fn default() -> Self {
        Self { memory_bytes: 192 << 20, temp_dir: None }
    }
}

impl Default for HttpSettings {
    fn default() -> Self {
        Self { listen: None, ready_lag_ms: 60_000, stuck_ms: 300_000 }
    }
}

impl Settings {
    /// Settings without tables, and with defaults for the rest.
    pub fn new(graph: impl Into<String>, source: SourceSettings) -> Self {
        let (stream, copy, reconcile, http) = Default::default();
        Self { graph: graph.into(), source, stream, copy, reconcile, http, tables: Vec::new() }
    }

    /// Reads `feed.toml`. A relative path of a graph is relative to the process's working directory.
    ///
    /// # Errors
    /// [`Invalid`](crate::FeedErrorKind::Invalid) with the line and what is wrong there.
    pub fn read(path: &Path) -> Result<Self, FeedError> {
        let text = std::fs::read_to_string(path).map_err(|error| {
            FeedError::invalid(format!("could not read {}: {}", path.display(), hoplake::system_text(&error)))
                .hint("hoplake feed infer writes such a file")
        })?;
        Self::parse(&text).map_err(|error| FeedError::invalid(format!("{}, {error}", path.display())))
    }

    /// Reads the text of a `feed.toml`.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn parse(text: &str) -> Result<Self, FeedError> {
        let settings: Self = toml::from_str(text).map_err(|error: toml::de::Error| {
            let line = error.span().map_or(1, |span| 1 + text[..span.start.min(text.len())].matches('\n').count());
            FeedError::invalid(format!("line {line}: {}", error.message().replace('\n', " ")))
        })?;
        settings.validate()?;
        Ok(settings)
    }

    /// Runs the checks that need no database.
    ///
    /// # Errors
    /// [`Invalid`](crate::FeedErrorKind::Invalid) with the setting.
    pub fn validate(&self) -> Result<(), FeedError> {
        let invalid = |why: String| Err(FeedError::invalid(why));
        let name = &self.source.name;
        if name.is_empty()
            || name.len() > 64
            || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
        {
            return invalid(format!("source.name {name:?} has to be 1 to 64 of A-Z, a-z, 0-9, -, _ and ."));
        }
        if self.source.url.all().is_empty() {
            return invalid("source.url has no address".into());
        }
        let StreamSettings { rows_max, bytes_max, transaction_bytes_max, spill_bytes_max, ahead_bytes_max, .. } =
            self.stream;
        // A batch of the engine has at most a million operations, and a row may be several.
        if !(1..=200_000).contains(&rows_max) {
            return invalid(format!("stream.rows_max is {rows_max} and has to be 1 to 200000"));
        }
        for (name, bytes) in [
            ("bytes_max", bytes_max),
            ("ahead_bytes_max", ahead_bytes_max),
            ("transaction_bytes_max", transaction_bytes_max),
            ("spill_bytes_max", spill_bytes_max),
        ] {
            if bytes < 64 << 10 {
                return invalid(format!("stream.{name} is {bytes} and has to be at least 65536"));
            }
        }
        self.reconcile.every()?;
        // An unreachable source is silent for the timeout of each address, and then for a pause.
        let addresses = self.source.url.all().len() as u64;
        let stuck_ms = self.http.stuck_ms;
        let silent_ms = addresses.saturating_mul(self.source.timeout_ms).saturating_add(60_000);
        if stuck_ms < silent_ms {
            return invalid(format!(
                "http.stuck_ms is {stuck_ms} and has to be at least {silent_ms}, source.timeout_ms for each address and a minute"
            ));
        }
        for table in &self.tables {
            table.validate().map_err(|why| FeedError::invalid(format!("table {}: {why}", table.name)))?;
        }
        Ok(())
    }
}

impl TableEntry {
    fn validate(&self) -> Result<(), String> {
        match (&self.vertex, &self.edge) {
            (Some(_), Some(_)) => {
                return Err("it is a vertex and an edge; write two entries for the table, one of each".into());
            }
            (None, None) => return Err("it is neither; give it a vertex or an edge".into()),
            (None, Some(_)) if !self.edges.is_empty() => {
                return Err("its rows are edges, so that its foreign keys cannot be; remove edges".into());
            }
            _ => {}
        }
        for edge in &self.edges {
            if edge.to.is_some() == edge.from.is_some() {
                return Err(format!(
                    "edges {} need one of to and from, the label of the vertex at the other end",
                    edge.label
                ));
            }
        }
        Ok(())
    }
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

fn default_timeout_ms() -> u64 {
    30_000
}

fn default_quiet_ms() -> u64 {
    2_000
}

fn is_default_quiet_ms(quiet_ms: &u64) -> bool {
    *quiet_ms == default_quiet_ms()
}
