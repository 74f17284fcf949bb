//! Clients that mean it ill, and some that do not: what each does, over HTTP ([`super::http`]) and gRPC
//! ([`super::grpc`]).

use std::{net::SocketAddr, time::Duration};

use anyhow::Result;
use hoplake_testkit::generate::SplitMix64;

use super::{grpc, http};

/// What is attacked.
#[derive(Debug, Clone, Copy)]
pub(super) struct Target {
    pub(super) http: SocketAddr,
    pub(super) grpc: SocketAddr,
    /// Persons have the keys below it.
    pub(super) vertices: u64,
}

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
    pub(super) const ALL: [Self; 18] = [
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

/// How long a client waits that does not read, or does not go on.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

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
