//! Applies transactions to the graph: fold, look up, commit, until it is known to be done.

use std::sync::Arc;

use hoplake::{ErrorKind, Graph, Operation};

use crate::{
    FeedError, FeedErrorKind, Position, Transaction,
    error::is_transient,
    fold::{Failure, Folded, Known, Plans, Waiting, fold, render},
    lookups,
    mapping::Mapping,
    reading::Pauses,
    state,
};

/// A fold that asks for more this often is a mistake: each time it asks for something new of a finite graph.
const FOLDS_MAX: usize = 10_000;

/// Where a graph is, and what it follows.
pub(crate) struct Applying {
    pub(crate) graph: Graph,
    pub(crate) mapping: Arc<Mapping>,
    /// The name of the source.
    pub(crate) name: String,
    pub(crate) position: Position,
    /// The name of this process in positions.
    pub(crate) writer: String,
    pub(crate) waiting: Waiting,
    pub(crate) plans: Plans,
}

/// What was applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Applied {
    /// Row changes.
    pub rows: u64,
    /// Operations of the commit.
    pub operations: u64,
    /// The version that has them.
    pub version: u64,
    /// How often the commit was tried.
    pub attempts: u64,
}

impl Applying {
    /// Applies whole transactions as one version, with the position behind the last of them.
    ///
    /// # Errors
    /// [`Row`](FeedErrorKind::Row) if a row cannot be applied: the transactions before its own are. [`Conflict`](FeedErrorKind::Conflict)
    /// if another feed has gone on. An error that may pass is waited for.
    pub(crate) async fn apply(&mut self, transactions: &[Transaction]) -> Result<Applied, FeedError> {
        let Some(last) = transactions.last() else { return Ok(Applied::default()) };
        let mut pauses = Pauses::new();
        let mut attempts = 0;
        let folded = loop {
            match self.folded(transactions).await {
                Err(error) if error.is_transient() => {
                    self.pause(&mut pauses, &error).await;
                    attempts += 1;
                }
                folded => break folded?,
            }
        };
        if let Some(failure) = folded.failures.first() {
            let error = row_error(transactions, failure);
            if failure.transaction > 0 {
                Box::pin(self.apply(&transactions[..failure.transaction])).await?;
            }
            return Err(error);
        }
        let rows = transactions.iter().map(|transaction| transaction.changes.len() as u64).sum();
        let waits = folded.waiting;
        let operations = render(folded.overlay, self.graph.schema());
        let mut applied =
            Applied { rows, operations: operations.len() as u64, version: self.graph.version(), attempts };
        let mut waiting = None;
        let mut state = self.position.state.clone();
        if !waits.is_empty() {
            let mut all = self.waiting.clone();
            all.apply(&waits);
            state = self.written(&all, &mut pauses).await?;
            waiting = Some(all);
        }
        let position =
            Position { of_source: last.position.clone(), is_copying: false, state, writer: self.writer.clone() };
        applied.version = self.commit(operations, &position, &mut pauses, &mut applied.attempts).await?;
        if let Some(waiting) = waiting {
            if let Some(before) = self.position.state.as_ref().filter(|before| position.state.as_ref() != Some(before))
            {
                state::remove(self.graph.store(), &self.name, before).await;
            }
            self.waiting = waiting;
        }
        self.position = position;
        Ok(applied)
    }

    /// Folds transactions until nothing more has to be known.
    async fn folded(&mut self, transactions: &[Transaction]) -> Result<Folded, FeedError> {
        let mut known = Known::default();
        for _ in 0..FOLDS_MAX {
            let folded = fold(&self.mapping, &mut self.plans, transactions, &known, &self.waiting)?;
            if folded.needs.is_empty() {
                return Ok(folded);
            }
            lookups::look_up(&self.graph, &self.mapping, &folded.needs, &mut known).await?;
        }
        Err(FeedError::invalid("the changes depend on ever more of the graph; report this as a mistake of the feed"))
    }

    /// Writes what waits, and returns the object's name, if anything does.
    async fn written(&self, waiting: &Waiting, pauses: &mut Pauses) -> Result<Option<String>, FeedError> {
        if waiting.is_empty() {
            return Ok(None);
        }
        loop {
            match state::write(self.graph.store(), &self.name, waiting).await {
                Err(error) if error.is_transient() => self.pause(pauses, &error).await,
                written => return written.map(Some),
            }
        }
    }

    /// Commits operations and position, on the condition of the position before.
    async fn commit(
        &mut self,
        operations: Vec<Operation>,
        position: &Position,
        pauses: &mut Pauses,
        attempts: &mut u64,
    ) -> Result<u64, FeedError> {
        let before = self.position.to_string();
        let mut batch = hoplake::Batch { operations, ..hoplake::Batch::default() };
        batch.if_positions.insert(self.name.clone(), Some(before.clone()));
        batch.source_positions.insert(self.name.clone(), position.to_string());
        let batch = Arc::new(batch);
        loop {
            *attempts += 1;
            let error = match self.graph.apply(batch.clone()).await {
                Ok(committed) => {
                    self.graph.advance();
                    return Ok(committed.version);
                }
                Err(error) => error,
            };
            match error.kind() {
                ErrorKind::Conflict | ErrorKind::Unknown => {}
                _ if is_transient(&error) => {}
                ErrorKind::Invalid | ErrorKind::Limit => {
                    let hint = "the graph refuses what the rows become; correct the mapping, or the graph";
                    return Err(FeedError::new(FeedErrorKind::Row, error.to_string()).hint(hint));
                }
                _ => return Err(error.into()),
            }
            let error = FeedError::from(error);
            self.pause(pauses, &error).await;
            // Its answer may have been lost, or another feed was faster.
            if let Err(error) = self.graph.refresh().await {
                if !is_transient(&error) {
                    return Err(error.into());
                }
                continue;
            }
            let found = self.graph.source_position(&self.name).unwrap_or_default();
            if found == position.to_string() {
                return Ok(self.graph.version());
            }
            if found != before {
                let why = format!(
                    "another feed of {} has gone on: the graph is at {found}, and this one was at {before}",
                    self.name
                );
                return Err(FeedError::new(FeedErrorKind::Conflict, why).hint("let one feed run for each source"));
            }
        }
    }

    async fn pause(&self, pauses: &mut Pauses, error: &FeedError) {
        let pause = pauses.next();
        tracing::warn!(error = %error, pause_ms = pause.as_millis() as u64, "the graph cannot be changed for now");
        tokio::time::sleep(pause).await;
    }
}

fn row_error(transactions: &[Transaction], failure: &Failure) -> FeedError {
    let transaction = &transactions[failure.transaction];
    let table = transaction.changes.get(failure.change).map(|change| change.table().to_string()).unwrap_or_default();
    let message = format!("table {table}, transaction {}: {}", transaction.position, failure.why);
    FeedError::new(FeedErrorKind::Row, message)
        .hint("correct the row and the mapping; the feed goes on before this transaction")
}
