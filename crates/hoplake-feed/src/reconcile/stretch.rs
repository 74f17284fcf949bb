//! The transactions after a graph's position, up to some other position.

use std::time::Duration;

use tokio::time::Instant;

use crate::{
    FeedError, Transaction,
    source::{Following, Source, TransactionStream},
};

/// How long a transaction that the graph has already may take to come from the source.
const PATIENCE: Duration = Duration::from_secs(60);

/// What the transactions may take: they are in memory, and the graph is to be near its source.
const BYTES_MAX: usize = 32 << 20;

/// Transactions in their order, and the stream that has more.
pub(super) struct Stretch {
    stream: Box<dyn TransactionStream>,
    pub(super) transactions: Vec<Transaction>,
    /// One that is beyond the stretch, and was read.
    beyond: Option<Transaction>,
    /// The position after the last of them.
    reached: String,
    bytes: usize,
}

impl Stretch {
    /// Begins after a position.
    pub(super) async fn begin(source: &dyn Source, from: &str, following: Following) -> Result<Self, FeedError> {
        let stream = source.stream_aside(from, following).await?;
        Ok(Self { stream, transactions: Vec::new(), beyond: None, reached: from.to_owned(), bytes: 0 })
    }

    /// Reads up to a position of which the source says that it was there already when the stretch began.
    pub(super) async fn up_to(&mut self, source: &dyn Source, position: &str) -> Result<(), FeedError> {
        while !source.is_within(position, &self.reached)? && self.read(source, position).await? == Read::One {}
        Ok(())
    }

    /// Reads up to a position that the graph has.
    pub(super) async fn up_to_graph(&mut self, source: &dyn Source, position: &str) -> Result<(), FeedError> {
        let until = Instant::now() + PATIENCE;
        while !source.is_within(position, &self.reached)? {
            match self.read(source, position).await? {
                Read::Beyond => break,
                Read::Nothing if Instant::now() > until => {
                    let why = format!("the source has no transaction that ends at the graph's position {position}");
                    return Err(FeedError::unavailable(why));
                }
                Read::One | Read::Nothing => {}
            }
        }
        Ok(())
    }

    async fn read(&mut self, source: &dyn Source, position: &str) -> Result<Read, FeedError> {
        let next = match self.beyond.take() {
            Some(next) => Some(next),
            None => self.stream.next().await?,
        };
        let Some(next) = next else { return Ok(Read::Nothing) };
        if !source.is_within(&next.position, position)? {
            self.beyond = Some(next);
            return Ok(Read::Beyond);
        }
        self.reached.clone_from(&next.position);
        self.bytes += next.bytes;
        if self.bytes > BYTES_MAX {
            let why = format!("the graph is behind its source by more than {BYTES_MAX} bytes of row changes");
            return Err(
                FeedError::unavailable(why).hint("let the feed catch up (hoplake feed run --once), and begin again")
            );
        }
        if !next.changes.is_empty() {
            self.transactions.push(next);
        }
        Ok(Read::One)
    }
}

/// What was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Read {
    /// A transaction of the stretch.
    One,
    /// One beyond it.
    Beyond,
    /// None for now.
    Nothing,
}
