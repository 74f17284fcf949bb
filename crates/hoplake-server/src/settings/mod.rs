//! All settings, with their defaults and their validation.
//!
//! Plain data: the command line fills it from a TOML file and its flags. Live components (stores, listeners) are
//! handed to the [`ServerBuilder`](crate::ServerBuilder).

use std::{fmt, net::SocketAddr, time::Duration};

use hoplake::{COMPACTION_MEMORY_BYTES_MIN, ReadSettings};
use hoplake_doors::parse_address;
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{Error, Visitor},
};

mod groups;

use self::groups::processors;
pub use self::groups::{GremlinSettings, InvalidSetting, JobSettings, LimitSettings, ResultSettings};
use crate::{access::parse_target, failure::Failure, shape};

/// Headers that any client may send, in bytes.
// Hyper panics on a smaller buffer of HTTP/1.1.
const HEADER_BYTES_MIN: usize = 8 << 10;
/// Memory in which a small query has room, in bytes.
const MEMORY_BYTES_MIN: u64 = 1 << 20;

/// Settings of a server. A TOML file has the same names; what it leaves out keeps its default.
///
/// ```
/// let settings = hoplake_server::Settings::from_toml("graphs = ['s3://b/g']\n[limits]\ntime_ms = 500").unwrap();
/// assert_eq!((settings.limits.time_ms, settings.queries_max), (500, 64));
/// settings.validate().unwrap();
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Where gRPC listens; port 0 takes a free one. Default `127.0.0.1:7480`.
    #[serde(deserialize_with = "address")]
    pub grpc: SocketAddr,
    /// Where HTTP listens; port 0 takes a free one. Default `127.0.0.1:7481`.
    #[serde(deserialize_with = "address")]
    pub http: SocketAddr,
    /// The sources of graphs. See [`Source`](crate::Source) for how an entry is read. None for an algorithm node.
    pub graphs: Vec<String>,
    /// The role of the server. Default [`Role::All`].
    pub role: Role,
    /// For an algorithm node: its access nodes, as `http://HOST:PORT`. All addresses of a host are nodes.
    pub access_nodes: Vec<String>,
    /// The token that every request must have, as `authorization: Bearer …`. Default none.
    pub token: Option<String>,
    /// The limits of each query.
    pub limits: LimitSettings,
    /// Settings of jobs: computations over whole graphs, which outlast their request.
    pub jobs: JobSettings,
    /// Gremlin over WebSocket, at `/gremlin` of the HTTP port.
    pub gremlin: GremlinSettings,
    /// The cache of results of Gremlin queries.
    pub results: ResultSettings,
    /// Memory of all queries and jobs together, in bytes: intermediate results, requests, and answers until their last
    /// byte is sent. Caches, indexes of open graphs and compaction are apart from it. Default 1 GiB.
    pub memory_bytes_max: u64,
    /// Threads that queries run on. Default: four for each processor, so that the system gives a small query its share next to large ones,
    /// of which a single value may take a tenth of a second.
    pub query_threads: usize,
    /// The maximum number of concurrent queries. A query runs until its answer is sent. Default 64.
    pub queries_max: usize,
    /// The maximum number of waiting queries; further ones are rejected. Default 256.
    pub queue_max: usize,
    /// How long a query waits before it is rejected, in milliseconds. Default 2,000.
    pub queue_wait_ms: u64,
    /// The maximum number of concurrent reads for algorithm nodes. As many wait; further ones are rejected. Default 1,024.
    pub fetches_max: usize,
    /// The maximum number of open client-driven traversals. Default 1,000.
    pub traversals_max: usize,
    /// A cursor that is idle for this long is closed, in milliseconds. Default 60,000.
    pub traversal_idle_ms: u64,
    /// The maximum number of open graphs. Default 16.
    pub graphs_open_max: usize,
    /// A graph that is idle for this long is closed, in milliseconds. Default 600,000.
    pub graph_idle_ms: u64,
    /// The interval between looks for a newer version of a graph in use, in milliseconds; 0 disables them. Default 60,000.
    pub refresh_ms: u64,
    /// Whether the server takes changes. Default false.
    pub writable: bool,
    /// The maximum number of batches of changes that are applied concurrently. As many wait; further ones are rejected. Default 256.
    pub changes_max: usize,
    /// Whether the server compacts graphs after a request found a newer version. Default false.
    pub compact: bool,
    /// Memory for compaction, in bytes, in addition to all other budgets. Default 256 MiB.
    pub compact_memory_bytes: u64,
    /// How stores are read, and the caches in memory and on disk that all graphs share. See [`ReadSettings`].
    pub read: ReadSettings,
    /// The largest request, in bytes. Default 4 MiB.
    pub message_bytes_max: usize,
    /// The maximum number of connections, over both ports. Beyond it, the oldest idle or half-open connection is closed. Default 1,000.
    pub connections_max: usize,
    /// The maximum number of half-open connections, without a complete request yet. Beyond it, the oldest is closed. Default 256.
    pub half_open_max: usize,
    /// The maximum number of concurrent streams of an HTTP/2 connection. Default 128.
    pub streams_max: u32,
    /// The maximum length of a request's headers, in bytes; at least 8 KiB. Default 32 KiB.
    pub header_bytes_max: usize,
    /// The timeout of the first headers of a connection, in milliseconds. Default 10,000.
    pub header_timeout_ms: u64,
    /// The timeout of the body of a request, or of a message of a stream once it has begun, in milliseconds. Default 30,000.
    pub body_timeout_ms: u64,
    /// A connection without a request, or a stream without a query, is closed after this, in milliseconds. Default
    /// 300,000.
    pub idle_timeout_ms: u64,
    /// A connection whose client reads nothing of an answer for this long is closed, in milliseconds. Default 30,000.
    pub send_timeout_ms: u64,
    /// The time between failing the readiness probe and refusing connections, in milliseconds. Default 1,000.
    pub notice_ms: u64,
    /// The time that running queries have to end after that, in milliseconds. Default 20,000.
    pub grace_ms: u64,
}

/// The role of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// It answers queries from its own stores, and serves their blocks too.
    #[default]
    All,
    /// It serves blocks of its stores to algorithm nodes, and answers no queries.
    Access,
    /// It answers queries with blocks from access nodes, and accesses no store.
    Algorithm,
}

impl Role {
    /// Whether it answers queries.
    pub(crate) fn traverses(self) -> bool {
        self != Self::Access
    }

    /// Whether it reads stores.
    pub(crate) fn has_stores(self) -> bool {
        self != Self::Algorithm
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            grpc: SocketAddr::from(([127, 0, 0, 1], 7480)),
            http: SocketAddr::from(([127, 0, 0, 1], 7481)),
            graphs: Vec::new(),
            role: Role::All,
            access_nodes: Vec::new(),
            token: None,
            limits: LimitSettings::default(),
            jobs: JobSettings::default(),
            gremlin: GremlinSettings::default(),
            results: ResultSettings::default(),
            memory_bytes_max: 1 << 30,
            query_threads: 4 * processors(),
            queries_max: 64,
            queue_max: 256,
            queue_wait_ms: 2_000,
            fetches_max: 1_024,
            traversals_max: 1_000,
            traversal_idle_ms: 60_000,
            graphs_open_max: 16,
            graph_idle_ms: 600_000,
            refresh_ms: 60_000,
            writable: false,
            changes_max: 256,
            compact: false,
            compact_memory_bytes: 256 << 20,
            read: ReadSettings::default(),
            message_bytes_max: 4 << 20,
            connections_max: 1_000,
            half_open_max: 256,
            streams_max: 128,
            header_bytes_max: 32 << 10,
            header_timeout_ms: 10_000,
            body_timeout_ms: 30_000,
            idle_timeout_ms: 300_000,
            send_timeout_ms: 30_000,
            notice_ms: 1_000,
            grace_ms: 20_000,
        }
    }
}

/// Accepts any type, so that `AddressVisitor` writes the error for a wrong one.
fn address<'de, D: Deserializer<'de>>(from: D) -> Result<SocketAddr, D::Error> {
    from.deserialize_any(AddressVisitor)
}

/// Reads an address from text, as the command line does.
struct AddressVisitor;

impl Visitor<'_> for AddressVisitor {
    type Value = SocketAddr;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("\"IP:PORT\", as in \"127.0.0.1:7481\"")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<SocketAddr, E> {
        parse_address(text).map_err(E::custom)
    }
}

/// The error of settings in TOML that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct UnreadableSettings {
    /// The line of the error, from 1 on, if it is known.
    pub line: Option<usize>,
    /// The key, the error, and what to write instead.
    pub why: String,
}

impl Settings {
    /// Reads settings in TOML; what is left out keeps its default. They are not [validated](Self::validate).
    ///
    /// # Errors
    /// The first line that cannot be read, with what to write there.
    pub fn from_toml(text: &str) -> Result<Self, UnreadableSettings> {
        let at = |error: &toml::de::Error, why: String| {
            // The parser reports a byte position; people count lines.
            let line = error.span().map(|span| text.bytes().take(span.start).filter(|byte| *byte == b'\n').count() + 1);
            UnreadableSettings { line, why }
        };
        let from = toml::Deserializer::parse(text)
            .map_err(|error| at(&error, format!("it is not TOML: {}; write KEY = VALUE", error.message())))?;
        shape::read(from).map_err(|(key, error)| {
            let key = if key.is_empty() { key } else { format!("{key}: ") };
            at(&error, format!("{key}{}", error.message()))
        })
    }

    /// Checks the settings.
    ///
    /// # Errors
    /// The first invalid setting.
    pub fn validate(&self) -> Result<(), InvalidSetting> {
        // 0 has no meaning for these. `queue_max` is not among them: with 0 no query waits.
        let at_least_one = [
            ("query_threads", self.query_threads),
            ("queries_max", self.queries_max),
            ("connections_max", self.connections_max),
            ("half_open_max", self.half_open_max),
            ("streams_max", self.streams_max as usize),
            ("graphs_open_max", self.graphs_open_max),
            ("fetches_max", self.fetches_max),
            ("changes_max", self.changes_max),
            ("traversals_max", self.traversals_max),
            ("message_bytes_max", self.message_bytes_max),
            ("limits.batch_max", self.limits.batch_max),
            ("limits.results_max", self.limits.results_max),
            ("limits.hops_max", self.limits.hops_max),
            ("limits.parallelism_max", self.limits.parallelism_max),
            ("jobs.running_max", self.jobs.running_max),
            ("jobs.threads", self.jobs.threads),
            ("jobs.kept_max", self.jobs.kept_max),
            ("gremlin.requests_max", self.gremlin.requests_max),
            ("gremlin.batch_size", self.gremlin.batch_size),
            ("gremlin.sessions_max", self.gremlin.sessions_max),
        ];
        if let Some((name, _)) = at_least_one.into_iter().find(|(_, value)| *value == 0) {
            return Err(InvalidSetting { name, why: "is 0; it must be at least 1".into() });
        }
        let times = [
            ("traversal_idle_ms", self.traversal_idle_ms),
            ("graph_idle_ms", self.graph_idle_ms),
            ("header_timeout_ms", self.header_timeout_ms),
            ("body_timeout_ms", self.body_timeout_ms),
            ("idle_timeout_ms", self.idle_timeout_ms),
            ("send_timeout_ms", self.send_timeout_ms),
            ("jobs.time_ms", self.jobs.time_ms),
            ("jobs.kept_ms", self.jobs.kept_ms),
            ("gremlin.session_idle_ms", self.gremlin.session_idle_ms),
        ];
        for (name, value) in times {
            if value == 0 {
                return Err(InvalidSetting { name, why: "is 0: nothing would stay open; give milliseconds".into() });
            }
        }
        self.validate_memory()?;
        self.jobs.validate(self.memory_bytes_max)?;
        self.gremlin.validate()?;
        if !self.limits.usd_max.is_finite() || self.limits.usd_max < 0.0 {
            let why = format!("is {}; give dollars, or 0 for no bound", self.limits.usd_max);
            return Err(InvalidSetting { name: "limits.usd_max", why });
        }
        // An empty token would accept `authorization: Bearer ` from anyone.
        if self.token.as_ref().is_some_and(String::is_empty) {
            return Err(InvalidSetting { name: "token", why: "is empty; leave it out to serve without one".into() });
        }
        // A header cannot contain other characters, so no request could have the token.
        if self.token.as_ref().is_some_and(|token| !token.bytes().all(|byte| byte.is_ascii_graphic())) {
            let why = "has a space or another character that is not visible ASCII".into();
            return Err(InvalidSetting { name: "token", why });
        }
        // Port 0 is a free one for each, so equal addresses do not collide.
        if self.grpc.port() != 0 && self.grpc == self.http {
            return Err(InvalidSetting { name: "http", why: format!("is {}, where gRPC listens", self.http) });
        }
        self.validate_compaction()?;
        self.validate_role()
    }

    /// A query, and the headers of a request, must fit the memory.
    fn validate_memory(&self) -> Result<(), InvalidSetting> {
        if self.header_bytes_max < HEADER_BYTES_MIN {
            let why = format!("is {}; it must be at least {HEADER_BYTES_MIN}", self.header_bytes_max);
            return Err(InvalidSetting { name: "header_bytes_max", why });
        }
        if self.memory_bytes_max < MEMORY_BYTES_MIN {
            let why = format!("is {}; it must be at least {MEMORY_BYTES_MIN}", self.memory_bytes_max);
            return Err(InvalidSetting { name: "memory_bytes_max", why });
        }
        Ok(())
    }

    fn validate_compaction(&self) -> Result<(), InvalidSetting> {
        let memory = self.compact_memory_bytes;
        let least = COMPACTION_MEMORY_BYTES_MIN;
        if self.compact && self.role != Role::All {
            let why = "needs role all: the other roles access no store, or do not look for newer versions".into();
            return Err(InvalidSetting { name: "compact", why });
        }
        if self.compact && memory < least {
            let why = format!("is {memory}; it must be at least {least}");
            return Err(InvalidSetting { name: "compact_memory_bytes", why });
        }
        Ok(())
    }

    /// Each role has either stores or nodes to read from.
    fn validate_role(&self) -> Result<(), InvalidSetting> {
        let wrong = |name, why: &str| Err(InvalidSetting { name, why: why.to_owned() });
        if self.writable && self.role != Role::All {
            return wrong("writable", "is for role all: other nodes have no store to write to, or take no calls");
        }
        match (self.role.has_stores(), self.graphs.is_empty(), self.access_nodes.is_empty()) {
            (true, true, _) => wrong("graphs", "is empty; name a URL, or NAME=URL"),
            (true, _, false) => wrong("access_nodes", "is for role algorithm; leave it out, or set that role"),
            (false, _, true) => wrong("access_nodes", "is empty; name http://HOST:PORT"),
            (false, false, _) => {
                wrong("graphs", "is for nodes with stores; an algorithm node has what access nodes have")
            }
            _ => {
                let invalid =
                    |failure: Failure| InvalidSetting { name: "access_nodes", why: format!("is wrong: {failure}") };
                self.access_nodes.iter().try_for_each(|url| parse_target(url).map(drop).map_err(invalid))
            }
        }
    }

    /// The memory that one request may take, at most the memory of all.
    pub(crate) fn query_memory(&self) -> u64 {
        match self.limits.memory_bytes_max {
            0 => self.memory_bytes_max,
            limit => limit.min(self.memory_bytes_max),
        }
    }

    pub(crate) fn queue_wait(&self) -> Duration {
        Duration::from_millis(self.queue_wait_ms)
    }

    pub(crate) fn refresh(&self) -> Option<Duration> {
        (self.refresh_ms > 0).then(|| Duration::from_millis(self.refresh_ms))
    }

    pub(crate) fn graph_idle(&self) -> Duration {
        Duration::from_millis(self.graph_idle_ms)
    }

    pub(crate) fn traversal_idle(&self) -> Duration {
        Duration::from_millis(self.traversal_idle_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_is_named() {
        let good = Settings { graphs: vec!["memory://x".into()], ..Settings::default() };
        good.validate().unwrap();
        let nodes = |urls: &[&str]| urls.iter().map(|url| (*url).to_owned()).collect();
        let algorithm = Settings { role: Role::Algorithm, access_nodes: nodes(&["http://a:1"]), ..Settings::default() };
        algorithm.validate().unwrap();
        let compact = Settings { compact: true, ..good.clone() };
        compact.validate().unwrap();
        let jobs = |jobs: JobSettings| Settings { jobs, ..good.clone() };
        let usual = JobSettings::default();
        let cases: [(&str, Settings); 19] = [
            ("jobs.running_max", jobs(JobSettings { running_max: 0, ..usual })),
            ("jobs.kept_ms", jobs(JobSettings { kept_ms: 0, ..usual })),
            ("jobs.time_ms", jobs(JobSettings { time_ms: 3_600_001, ..usual })),
            ("jobs.memory_bytes_max", jobs(JobSettings { memory_bytes_max: 2 << 30, ..usual })),
            ("compact", Settings { compact: true, ..algorithm.clone() }),
            ("compact_memory_bytes", Settings { compact_memory_bytes: 1 << 20, ..compact }),
            ("graphs", Settings { graphs: good.graphs.clone(), ..algorithm.clone() }),
            ("access_nodes", Settings { access_nodes: nodes(&["http://a:1", "b"]), ..algorithm.clone() }),
            ("access_nodes", Settings { access_nodes: Vec::new(), ..algorithm.clone() }),
            ("access_nodes", Settings { access_nodes: nodes(&["http://a:1"]), role: Role::Access, ..good.clone() }),
            ("graphs", Settings::default()),
            ("queries_max", Settings { queries_max: 0, ..good.clone() }),
            ("memory_bytes_max", Settings { memory_bytes_max: 0, ..good.clone() }),
            ("header_bytes_max", Settings { header_bytes_max: 100, ..good.clone() }),
            ("send_timeout_ms", Settings { send_timeout_ms: 0, ..good.clone() }),
            ("token", Settings { token: Some(String::new()), ..good.clone() }),
            ("token", Settings { token: Some("tökén".into()), ..good.clone() }),
            ("http", Settings { http: good.grpc, ..good.clone() }),
            ("limits.usd_max", Settings { limits: LimitSettings { usd_max: f64::NAN, ..good.limits }, ..good.clone() }),
        ];
        for (name, settings) in cases {
            assert_eq!(settings.validate().unwrap_err().name, name);
        }
    }

    #[test]
    fn what_cannot_be_read_is_said_with_its_line() {
        let cases = [
            ("queriesmax = 3", 1, "unknown field `queriesmax`, expected one of"),
            (
                "queries_max = 3\n\n[limits]\ntime_ms = 'abc'",
                4,
                "limits.time_ms: write a whole number, 0 or more, not \"abc\"",
            ),
            ("[limits]\ntime_ms = -1", 2, "limits.time_ms: write a whole number, 0 or more, not -1"),
            ("\n[limits]\nhops_max = 3\ntime = 1", 4, "limits: unknown field `time`"),
            ("graphs = 's3://b/g'", 1, "graphs: write a list, in [ ], not \"s3://b/g\""),
            ("compact = 'yes'", 1, "compact: write true or false, not \"yes\""),
            ("role = 'any'", 1, "role: write all, access or algorithm, not \"any\""),
            ("http = '7481'", 1, "http: \"7481\" is not an address to listen on; write IP:PORT, as in 127.0.0.1:7481"),
            ("http = 7481", 1, "http: write \"IP:PORT\", as in \"127.0.0.1:7481\", not 7481"),
            ("[read]\ndisk = { folder = '/x' }", 2, "read.disk: missing field `bytes_max`"),
            ("limits = 3", 1, "limits: write an object with time_ms"),
            ("[limits]\ntime_ms", 2, "it is not TOML: key with no value, expected `=`; write KEY = VALUE"),
        ];
        for (text, line, words) in cases {
            let wrong = Settings::from_toml(text).unwrap_err();
            assert!(wrong.line == Some(line) && wrong.why.contains(words), "{text}: {wrong:?}");
        }
        let settings = Settings::from_toml("http = 'localhost:1'\n[read.hedge]\nquantile = 0.5").unwrap();
        assert_eq!((settings.http.to_string(), settings.read.hedge.quantile), ("127.0.0.1:1".into(), 0.5));
    }
}
