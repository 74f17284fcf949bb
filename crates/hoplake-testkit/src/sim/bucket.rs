//! The limits of requests per second under one prefix.

use std::collections::HashMap;

use tokio::time::Instant;

use crate::RequestKind;

/// Which limit a request counts against.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Class {
    Reads,
    Writes,
}

/// A token bucket for each prefix and class of requests. It holds the requests of one second and begins full.
#[derive(Debug, Default)]
pub(super) struct Buckets(HashMap<(Class, String), Bucket>);

#[derive(Debug)]
struct Bucket {
    tokens: f64,
    at: Instant,
}

impl Buckets {
    /// Whether a request on `path` is within the limits of `reads` and `writes` per second.
    ///
    /// The prefix is all before the last `/`. A real service splits the key space as its load grows, where
    /// it sees fit; a folder is what a client can arrange for.
    pub(super) fn take(&mut self, kind: RequestKind, path: &str, reads: u32, writes: u32) -> bool {
        let (class, rate) = match kind {
            RequestKind::Get | RequestKind::Head | RequestKind::List => (Class::Reads, reads),
            RequestKind::Put | RequestKind::Delete => (Class::Writes, writes),
        };
        let rate = f64::from(rate);
        let prefix = path.rsplit_once('/').map_or("", |(prefix, _)| prefix);
        let now = Instant::now();
        let full = || Bucket { tokens: rate, at: now };
        let bucket = self.0.entry((class, prefix.to_owned())).or_insert_with(full);
        bucket.tokens = (bucket.tokens + rate * (now - bucket.at).as_secs_f64()).min(rate);
        bucket.at = now;
        let admitted = bucket.tokens >= 1.0;
        if admitted {
            bucket.tokens -= 1.0;
        }
        admitted
    }
}
