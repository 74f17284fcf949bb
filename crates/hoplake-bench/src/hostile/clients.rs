//! Hostile clients, and some that are not: what each does, over HTTP ([`super::http`], [`super::http2`]), WebSockets
//! ([`super::websocket`]) and gRPC ([`super::grpc`]).

use anyhow::Result;
use hoplake_testkit::generate::SplitMix64;

use super::{grpc, http, http2, target::Target, websocket};

/// What a client does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    LongPath,
    ManyPaths,
    ManyNeighbors,
    UnreadNeighbors,
    UnreadRows,
    Rows,
    Leaves,
    SlowBody,
    HalfHeaders,
    NoGraph,
    GremlinGrows,
    GremlinTexts,
    UnreadPings,
    ClosedWindows,
    Pipelined,
    WellBehaved,
    GrpcManyPaths,
    GrpcUnreadStreams,
    GrpcUnreadQueries,
    GrpcLeaves,
    GrpcCursor,
    GrpcSilent,
    GrpcWellBehaved,
}

impl Kind {
    pub(super) const ALL: [Self; 23] = [
        Self::LongPath,
        Self::ManyPaths,
        Self::ManyNeighbors,
        Self::UnreadNeighbors,
        Self::UnreadRows,
        Self::Rows,
        Self::Leaves,
        Self::SlowBody,
        Self::HalfHeaders,
        Self::NoGraph,
        Self::GremlinGrows,
        Self::GremlinTexts,
        Self::UnreadPings,
        Self::ClosedWindows,
        Self::Pipelined,
        Self::WellBehaved,
        Self::GrpcManyPaths,
        Self::GrpcUnreadStreams,
        Self::GrpcUnreadQueries,
        Self::GrpcLeaves,
        Self::GrpcCursor,
        Self::GrpcSilent,
        Self::GrpcWellBehaved,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::LongPath => "paths of 20 hops, limit 1",
            Self::ManyPaths => "paths of 8 hops, all",
            Self::ManyNeighbors => "neighbors of 100,000",
            Self::UnreadNeighbors => "neighbors of 20,000, unread",
            Self::UnreadRows => "rows of 3 hops, unread",
            Self::Rows => "rows of 3 hops",
            Self::Leaves => "5 hops, and leaves",
            Self::SlowBody => "slow body",
            Self::HalfHeaders => "50 half-sent headers",
            Self::NoGraph => "random graph names",
            Self::GremlinGrows => "Gremlin: results that grow",
            Self::GremlinTexts => "Gremlin: texts of 4 MB",
            Self::UnreadPings => "WebSocket: pings, unread",
            Self::ClosedWindows => "128 open routes over HTTP/2, window 0",
            Self::Pipelined => "open routes, pipelined, unread",
            Self::WellBehaved => "one hop (well-behaved)",
            Self::GrpcManyPaths => "gRPC: paths of 8 hops, all",
            Self::GrpcUnreadStreams => "gRPC: 20 answers of a connection, unread",
            Self::GrpcUnreadQueries => "gRPC: stream of queries, answers unread",
            Self::GrpcLeaves => "gRPC: 5 hops, and leaves",
            Self::GrpcCursor => "gRPC: 100 cursors, left open",
            Self::GrpcSilent => "gRPC: 50 silent connections",
            Self::GrpcWellBehaved => "gRPC: one hop (well-behaved)",
        }
    }
}

/// Paths that need no token, and some that are rejected.
const OPEN_PATHS: [&str; 6] = ["/openapi.json", "/metrics", "/healthz", "/readyz", "/nothing", "/v1/graphs/g"];
/// The same over gRPC.
const OPEN_CALLS: [&str; 6] = [
    "/grpc.health.v1.Health/Check",
    "/grpc.health.v1.Health/Watch",
    "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
    "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
    "/hoplake.v1.Graphs/LookUp",
    "/no.such.Service/Call",
];

/// One attempt, and its outcome.
pub(super) async fn once(kind: Kind, target: Target, seed: u64) -> Result<String> {
    let mut random = SplitMix64::new(seed);
    let person = random.below(target.vertices);
    let hops = |count: usize| vec!["\"both:knows\""; count].join(",");
    let walk =
        |count: usize, more: &str| format!("{{\"starts\":[\"Person:{person}\"],\"hops\":[{}]{more}}}", hops(count));
    let mut first = |count: u64| random.below(target.vertices.saturating_sub(count).max(1));
    let mut many = |count: u64| {
        let first = first(count);
        let names: Vec<_> =
            (first..first + count.min(target.vertices)).map(|key| format!("\"Person:{key}\"")).collect();
        format!("{{\"vertices\":[{}],\"hop\":\"both:knows\"}}", names.join(","))
    };
    // The number of the client plus that of its attempt, so that a client tries one query after the other.
    let turn = (seed >> 32) + (seed & 0xffff_ffff);
    let rows = ",\"select\":[\"name\",\"city\"]";
    Ok(match kind {
        Kind::LongPath => http::answer(target, "paths", &walk(20, ",\"limit\":1")).await?,
        Kind::ManyPaths => http::answer(target, "paths", &walk(8, ",\"limit\":0,\"keys\":true")).await?,
        Kind::ManyNeighbors => http::answer(target, "neighbors", &many(100_000)).await?,
        Kind::UnreadNeighbors => http::unread(target, "neighbors", &many(20_000)).await?,
        Kind::UnreadRows => http::unread(target, "traverse", &walk(3, rows)).await?,
        Kind::Rows => http::answer(target, "traverse", &walk(3, rows)).await?,
        Kind::Leaves => http::leave(target, "traverse", &walk(5, "")).await?,
        Kind::SlowBody => http::slow_body(target).await?,
        Kind::HalfHeaders => http::half_headers(target).await?,
        Kind::NoGraph => http::get(target, &format!("none-{person}-{seed}")).await?,
        Kind::GremlinGrows => http::answer(target, "gremlin", &query(&growing(turn))).await?,
        Kind::GremlinTexts => http::answer(target, "gremlin", &query(&large(turn))).await?,
        Kind::UnreadPings => websocket::unread_pings(target, turn.is_multiple_of(2)).await?,
        Kind::ClosedWindows => match one_of(&[OPEN_PATHS, OPEN_CALLS].concat(), turn) {
            call if OPEN_CALLS.contains(&call) => {
                http2::closed_windows(target.grpc, call, http2::EMPTY_MESSAGE).await?
            }
            path => http2::closed_windows(target.http, path, "").await?,
        },
        Kind::Pipelined => http::pipelined(target, one_of(&OPEN_PATHS, turn)).await?,
        Kind::WellBehaved => http::answer(target, "traverse", &walk(1, ",\"limit\":10")).await?,
        Kind::GrpcManyPaths => grpc::paths(target, person, 8).await?,
        Kind::GrpcUnreadStreams => grpc::unread_streams(target, first(5_000)).await?,
        Kind::GrpcUnreadQueries => grpc::unread_queries(target, person).await?,
        Kind::GrpcLeaves => grpc::leave(target, person).await?,
        Kind::GrpcCursor => grpc::cursor(target, person).await?,
        Kind::GrpcSilent => grpc::silent(target).await?,
        Kind::GrpcWellBehaved => grpc::neighbors(target, person).await?,
    })
}

fn one_of(names: &[&'static str], turn: u64) -> &'static str {
    names[(turn % names.len() as u64) as usize]
}

fn query(text: &str) -> String {
    serde_json::json!({ "gremlin": text }).to_string()
}

/// A short text whose results grow with each step, of several kinds in turn.
fn growing(turn: u64) -> String {
    let letters = "a".repeat(10_000);
    match turn % 8 {
        0 => "g.V().both().both().both().fold()".to_owned(),
        1 => "g.V().both().both().both().path()".to_owned(),
        2 => "g.V().as('a').both().as('b').both().as('c').select('a','b','c').fold()".to_owned(),
        3 => "g.V().both().both().fold().product(V().both().both().fold())".to_owned(),
        4 => format!("g.inject('{letters}').replace('a','{letters}').replace('a','{letters}')"),
        5 => "g.inject([1,2,3]).repeat(product(identity())).times(6)".to_owned(),
        6 => "g.V().both().both().group().by(id()).by(both().fold())".to_owned(),
        _ => format!("g.V().both().both().both().constant('{letters}').aggregate('x').cap('x')"),
    }
}

/// A text that takes long to read or to plan, of several kinds in turn.
fn large(turn: u64) -> String {
    let many = |begin: &str, part: &str, end: &str| [begin, &part.repeat(3_900_000 / part.len()), end].concat();
    match turn % 8 {
        0 => many("g.inject(", "1,", "1)"),
        1 => many("g.inject(", "'',", "'')"),
        2 => many("g.inject([", "a:1,", "a:1])"),
        3 => many("g.inject(", "[],", "[])"),
        4 => many("g.V().has('name',within(", "1,", "1))"),
        5 => many("g.union(", "V(),", "V())"),
        6 => many("g.V()", ".id()", ""),
        _ => many("", "g.V();", "g.V()"),
    }
}
