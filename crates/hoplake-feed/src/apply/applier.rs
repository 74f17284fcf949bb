//! Applies transactions to the graph: fold, look up, commit, until it is known to be done.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use hoplake::{Batch, ErrorKind, Graph, Operation, Reason, Value};
use tokio::time::Instant;
use tracing::{Instrument, field::Empty, info_span};

use crate::{
    Change, FeedError, FeedErrorKind, OnError, Position, Progress, RowChange, Settings, SpillSettings, Transaction,
    apply::{
        fold::{Aside, Failure, Folded, LookupResults, Origin, Plans, Rendered, SetAside, fold, render},
        letters::{self, Letter},
        lookups,
        progress::{Applied, At, Cause, Event},
        state::{self, FeedState},
    },
    backoff::Backoff,
    error::is_transient,
    mapping::{Mapping, showing::shown_change},
    source::Following,
};

/// A fold that asks for more this often is a mistake: each time it asks for something new of a finite graph.
const FOLDS_MAX: usize = 10_000;

/// Changes that fail, and why.
type Failing = BTreeMap<Origin, String>;

/// Where a graph is, and what it follows.
pub(crate) struct Applier {
    pub(crate) graph: Graph,
    pub(crate) mapping: Arc<Mapping>,
    /// The name of the source.
    pub(crate) name: String,
    pub(crate) position: Position,
    /// The name of this process in positions.
    pub(crate) writer: String,
    pub(crate) state: FeedState,
    pub(crate) plans: Plans,
    /// How often a commit that the graph rejects is tried.
    pub(crate) attempts_max: u32,
    /// Whether errors have whole rows.
    pub(crate) show_rows: bool,
    pub(crate) progress: Arc<dyn Progress>,
}

/// What became of a commit.
pub(crate) enum Outcome {
    /// It is this version.
    Committed(u64),
    /// The graph does not take one of its operations.
    Rejected(hoplake::Error, Arc<Batch>),
    /// Someone has changed what the feed remembers, at the same position of the source.
    Remembers,
}

impl Applier {
    /// A graph at a position; `writer` is the name of this process in positions. No one listens to its events.
    pub(crate) fn new(
        graph: Graph,
        settings: &Settings,
        mapping: Arc<Mapping>,
        position: Position,
        state: FeedState,
        writer: String,
    ) -> Self {
        Self {
            graph,
            mapping,
            name: settings.source.name.clone(),
            position,
            writer,
            state,
            plans: Plans::default(),
            attempts_max: settings.stream.attempts,
            show_rows: settings.source.show_rows,
            progress: Arc::new(()),
        }
    }

    /// Applies whole transactions as one version, with the position after the last of them.
    ///
    /// # Errors
    /// [`Row`](FeedErrorKind::Row) if a row cannot be applied: the transactions before its own are. [`Conflict`](FeedErrorKind::Conflict)
    /// if another feed has gone on. An error that may pass is waited for.
    pub(crate) async fn apply(&mut self, transactions: &[Transaction]) -> Result<Applied, FeedError> {
        let Some(last) = transactions.last() else { return Ok(Applied::default()) };
        let mut pauses = Backoff::new();
        let mut failing = Failing::new();
        let mut applied = Applied {
            rows: transactions.iter().map(|transaction| transaction.changes.len() as u64).sum(),
            transactions: transactions.iter().filter(|transaction| !transaction.changes.is_empty()).count() as u64,
            ..Applied::default()
        };
        let mut rejected = 0;
        loop {
            let folded = self.folded_without(transactions, &mut failing, &mut pauses, &mut applied.waves).await?;
            if let Some(failure) = folded.failures.first() {
                return Err(self.stopped_by(transactions, failure).await);
            }
            applied.set_aside = folded.set_aside.len() as u64;
            let mut state = self.next_state(transactions, &folded, rejected, &mut pauses).await?;
            let Rendered { operations, origins } = render(folded.overlay, self.graph.schema());
            applied.operations = operations.len() as u64;
            let of_source = last.position.clone();
            let committed = Some(last.committed_unix_ms);
            let position = self.position_with(of_source, committed, &mut state, &mut pauses).await?;
            let begun = Instant::now();
            let span = info_span!(target: "hoplake::spans", "commit", operations = applied.operations as i64, attempts = Empty);
            let outcome = self.commit(operations, &position, &mut pauses, &mut applied.attempts);
            let outcome = outcome.instrument(span.clone()).await?;
            span.record("attempts", applied.attempts as i64);
            applied.commit_time += begun.elapsed();
            match outcome {
                Outcome::Committed(version) => {
                    applied.version = version;
                    self.settle(position, state).await;
                    self.progress.report(&Event::Applied(&applied, At { version, ..self.at() }));
                    return Ok(applied);
                }
                Outcome::Remembers => {}
                Outcome::Rejected(error, batch) => {
                    rejected += 1;
                    if rejected < self.attempts_max {
                        let said = shown_rejection(&batch, &error, self.show_rows);
                        let error = FeedError::from(error).saying(said);
                        self.pause(&mut pauses, &error).await;
                        self.graph.refresh().await?;
                        continue;
                    }
                    let failure = self.blamed(&batch, &origins, &error)?;
                    let entry = &self.mapping.entries[failure.origin.entry];
                    if entry.on_error == OnError::Stop {
                        return Err(self.stopped_by(transactions, &failure).await);
                    }
                    failing.insert(failure.origin, failure.why);
                    rejected = 0;
                }
            }
        }
    }

    /// Applies the transactions before the one with a row that cannot be applied, and returns the error of that row, or of one before it.
    async fn stopped_by(&mut self, transactions: &[Transaction], failure: &Failure) -> FeedError {
        let error = self.row_error(transactions, failure);
        let before = &transactions[..failure.origin.transaction];
        Box::pin(self.apply(before)).await.err().unwrap_or(error)
    }

    /// Folds transactions without the changes that fail and may be set aside, which it adds to those known.
    async fn folded_without(
        &mut self,
        transactions: &[Transaction],
        failing: &mut Failing,
        pauses: &mut Backoff,
        waves: &mut u64,
    ) -> Result<Folded, FeedError> {
        loop {
            let aside = Aside { held: self.state.held.clone(), failing: failing.clone(), ..Aside::default() };
            let folded = match self.folded(transactions, &aside, waves).await {
                Err(error) if error.is_transient() => {
                    self.pause(pauses, &error).await;
                    continue;
                }
                folded => folded?,
            };
            let stops = |failure: &&Failure| self.mapping.entries[failure.origin.entry].on_error == OnError::Stop;
            let (stopping, others): (Vec<_>, Vec<_>) = folded.failures.iter().partition(stops);
            if !stopping.is_empty() || others.is_empty() {
                let failures = stopping.into_iter().cloned().collect();
                return Ok(Folded { failures, ..folded });
            }
            failing.extend(others.into_iter().map(|it| (it.origin, it.why.clone())));
        }
    }

    /// Folds transactions until nothing more has to be known.
    pub(crate) async fn folded(
        &mut self,
        transactions: &[Transaction],
        aside: &Aside,
        waves: &mut u64,
    ) -> Result<Folded, FeedError> {
        let mut known = LookupResults::default();
        for _ in 0..FOLDS_MAX {
            let folded = info_span!(target: "hoplake::spans", "fold")
                .in_scope(|| fold(&self.mapping, &mut self.plans, transactions, &known, &self.state.waiting, aside))?;
            if folded.needs.is_empty() {
                return Ok(folded);
            }
            let span =
                info_span!(target: "hoplake::spans", "look-ups", needs = folded.needs.len() as i64, waves = Empty);
            let taken = lookups::look_up(&self.graph, &self.mapping, &folded.needs, &mut known);
            let taken = taken.instrument(span.clone()).await?;
            span.record("waves", taken as i64);
            *waves += taken;
            self.progress.report(&Event::LookedUp);
        }
        Err(FeedError::invalid("the changes depend on ever more of the graph; report this as a mistake of the feed"))
    }

    /// What is to be remembered after a batch. Writes the letters of changes that it sets aside.
    async fn next_state(
        &self,
        transactions: &[Transaction],
        folded: &Folded,
        attempts: u32,
        pauses: &mut Backoff,
    ) -> Result<FeedState, FeedError> {
        let mut state = self.state.clone();
        state.waiting.apply(&folded.waiting);
        // An operator has decided, or it would not be here.
        state.stop = None;
        for (name, shape) in transactions.iter().flat_map(|transaction| &transaction.tables) {
            let table = state.tables.entry(name.clone()).or_default();
            table.carried.extend(table.shape.new_in(shape));
            table.shape.clone_from(shape);
        }
        if !folded.truncated.is_empty() && !state.letters.is_empty() {
            let all = self.letters().await?;
            let left: Vec<_> = all.into_iter().filter(|letter| !folded.truncated.contains(&letter.table)).collect();
            self.replace_letters(&mut state, &left).await?;
        }
        let changes = changes_at(transactions, &folded.set_aside)?;
        let letter = |aside: &SetAside| {
            let transaction = &transactions[aside.origin.transaction];
            let change = changes.get(&(aside.origin.transaction, aside.origin.change))?;
            Some(Letter {
                position: transaction.position.clone(),
                committed_unix_ms: transaction.committed_unix_ms,
                table: change.columns.table.clone(),
                label: self.mapping.entries[aside.origin.entry].label().clone(),
                names: aside.names.clone(),
                why: aside.why.clone(),
                attempts: i64::from(attempts.max(1)),
                change: change.clone(),
            })
        };
        let letters: Vec<_> = folded.set_aside.iter().filter_map(letter).collect();
        if !letters.is_empty() {
            let id = loop {
                match letters::write(self.graph.store(), &self.name, &letters).await {
                    Err(error) if error.is_transient() => self.pause(pauses, &error).await,
                    written => break written?,
                }
            };
            state.letters.push((id, letters.len() as u64));
            state.held.extend(letters.into_iter().flat_map(|letter| letter.names));
        }
        Ok(state)
    }

    /// The request for the transactions after its position.
    pub(crate) fn following(&self, settings: &Settings) -> Following {
        let mut tables = self.mapping.followed();
        let mut shapes = BTreeMap::new();
        for (name, known) in &self.state.tables {
            if let Some(carried) = tables.get_mut(name) {
                // Columns that the catalog no longer has, and the log still may.
                carried.extend(known.carried.iter().cloned());
                shapes.insert(name.clone(), known.shape.clone());
            }
        }
        let transaction_bytes_max = settings.stream.transaction_bytes_max;
        let spill = Some(SpillSettings::of(settings));
        let show_rows = settings.source.show_rows;
        let following = Following { tables, shapes, transaction_bytes_max, spill, show_rows, ..Following::default() };
        following.ignoring(self.mapping.ignored())
    }

    /// Commits what is to be remembered, at the position where the graph is.
    pub(crate) async fn remember(&mut self, change: impl Fn(&mut FeedState)) -> Result<(), FeedError> {
        loop {
            let mut state = self.state.clone();
            change(&mut state);
            if state == self.state {
                return Ok(());
            }
            let mut pauses = Backoff::new();
            let Position { of_source, committed_unix_ms, .. } = self.position.clone();
            let position = self.position_with(of_source, committed_unix_ms, &mut state, &mut pauses).await?;
            match self.commit(Vec::new(), &position, &mut pauses, &mut 0).await? {
                Outcome::Committed(_) => {
                    self.settle(position, state).await;
                    return Ok(());
                }
                Outcome::Remembers => {}
                Outcome::Rejected(error, _) => return Err(error.into()),
            }
        }
    }

    /// Takes over the graph as it is now.
    pub(crate) async fn adopt(&mut self) -> Result<(), FeedError> {
        self.graph.refresh().await?;
        (self.position, self.state) = remembered(&mut self.graph, &self.name).await?;
        Ok(())
    }

    /// All letters, oldest first.
    pub(crate) async fn letters(&self) -> Result<Vec<Letter>, FeedError> {
        let mut all = Vec::new();
        for (id, _) in &self.state.letters {
            all.extend(letters::read(self.graph.store(), &self.name, id).await?);
        }
        Ok(all)
    }

    /// Puts these letters in the place of all others.
    pub(crate) async fn replace_letters(&self, state: &mut FeedState, letters: &[Letter]) -> Result<(), FeedError> {
        state.letters.clear();
        state.held = letters.iter().flat_map(|letter| letter.names.iter().cloned()).collect();
        if !letters.is_empty() {
            let id = letters::write(self.graph.store(), &self.name, letters).await?;
            state.letters.push((id, letters.len() as u64));
        }
        Ok(())
    }

    /// A position of the source, with what is to be remembered there.
    pub(crate) async fn position_with(
        &self,
        of_source: String,
        committed_unix_ms: Option<i64>,
        state: &mut FeedState,
        pauses: &mut Backoff,
    ) -> Result<Position, FeedError> {
        let id = match state == &self.state && !state.is_empty() {
            true => self.position.state.clone(),
            false => loop {
                match state::write(self.graph.store(), &self.name, state).await {
                    Err(error) if error.is_transient() => self.pause(pauses, &error).await,
                    written => break written?,
                }
            },
        };
        Ok(Position { of_source, is_copying: false, state: id, committed_unix_ms, writer: self.writer.clone() })
    }

    /// Notes what was committed, and removes objects that no position names any more.
    pub(crate) async fn settle(&mut self, position: Position, state: FeedState) {
        let store = self.graph.store();
        if let Some(before) = self.position.state.as_ref().filter(|before| position.state.as_ref() != Some(before)) {
            state::remove(store, &self.name, before).await;
        }
        let is_gone = |id: &&String| !state.letters.iter().any(|(other, _)| other == *id);
        let gone: Vec<_> = self.state.letters.iter().map(|(id, _)| id).filter(is_gone).cloned().collect();
        if !gone.is_empty() {
            letters::remove(store, &self.name, &gone).await;
        }
        self.position = position;
        self.state = state;
    }

    /// Commits operations and position, on the condition of the position before.
    pub(crate) async fn commit(
        &mut self,
        operations: Vec<Operation>,
        position: &Position,
        pauses: &mut Backoff,
        attempts: &mut u64,
    ) -> Result<Outcome, FeedError> {
        let before = self.position.to_string();
        let mut batch = Batch { operations, ..Batch::default() };
        batch.if_positions.insert(self.name.clone(), Some(before.clone()));
        batch.source_positions.insert(self.name.clone(), position.to_string());
        let batch = Arc::new(batch);
        loop {
            *attempts += 1;
            let error = match self.graph.apply(batch.clone()).await {
                Ok(committed) => {
                    self.graph.advance();
                    return Ok(Outcome::Committed(committed.version));
                }
                Err(error) => error,
            };
            match error.kind() {
                ErrorKind::Conflict | ErrorKind::Unknown => {}
                _ if is_transient(&error) => {}
                ErrorKind::Invalid if error.operation().is_some() => return Ok(Outcome::Rejected(error, batch)),
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
            let found = self.graph.source_position(&self.name).unwrap_or_default().to_owned();
            let found_position = Position::parse(&found).ok();
            // A vacuum may have made it its own since. Only this feed names a state that it has just written.
            let is_new = position.state.is_some() && position.state != self.position.state;
            let is_own = |found: Position| is_new && found.is_but_for_writer(position);
            if found == position.to_string() || found_position.is_some_and(is_own) {
                return Ok(Outcome::Committed(self.graph.version()));
            }
            if found != before {
                return self.overtaken(&before).await;
            }
        }
    }

    /// The graph has a position that this process did not write.
    async fn overtaken(&mut self, before: &str) -> Result<Outcome, FeedError> {
        let (position, state) = remembered(&mut self.graph, &self.name).await?;
        if position.of_source == self.position.of_source && !position.is_copying {
            (self.position, self.state) = (position, state);
            return Ok(Outcome::Remembers);
        }
        let why = format!(
            "another feed of {} has gone on: the graph is at {position}, and this one was at {before}",
            self.name
        );
        Err(FeedError::new(FeedErrorKind::Conflict, why).hint("let one feed run for each source"))
    }

    /// The row change from which the operation comes that the graph rejects.
    fn blamed(&self, batch: &Batch, origins: &[Option<Origin>], error: &hoplake::Error) -> Result<Failure, FeedError> {
        let said = shown_rejection(batch, error, self.show_rows);
        let rejected =
            error.operation().and_then(|number| Some((batch.operations.get(number)?, (*origins.get(number)?)?)));
        match rejected {
            Some((operation, origin)) => {
                Ok(Failure { origin, why: why_rejected(&self.mapping, operation, error, &said) })
            }
            // What a truncation does, and what a reconciliation corrects, comes from no row.
            None => Err(FeedError::new(FeedErrorKind::Row, said).hint("correct the mapping, or the graph")),
        }
    }

    pub(crate) async fn pause(&self, pauses: &mut Backoff, error: &FeedError) {
        let pause = pauses.next();
        let cause = Cause::of_graph(error);
        tracing::warn!(
            source = self.name, cause = cause.name(), error = %error, pause_ms = pause.as_millis() as u64,
            "the graph cannot be changed for now"
        );
        self.progress.report(&Event::Retried { cause, error, pause });
        tokio::time::sleep(pause).await;
    }

    fn row_error(&self, transactions: &[Transaction], failure: &Failure) -> FeedError {
        let transaction = &transactions[failure.origin.transaction];
        let change = transaction.changes.iter().nth(failure.origin.change).and_then(Result::ok);
        let of = match change.as_deref() {
            Some(Change::Row(change)) => {
                let row = shown_change(&self.mapping.entries[failure.origin.entry], change, self.show_rows);
                format!("table {}, row {row}, ", change.columns.table)
            }
            Some(Change::Truncate(table)) => format!("table {table}, "),
            None => String::new(),
        };
        let message = format!("{of}transaction {}: {}", transaction.position, failure.why);
        let hint = "correct the row and the mapping, and the feed goes on before this transaction; or set such rows aside with on_error = \
                    \"dead-letter\"";
        FeedError::new(FeedErrorKind::Row, message).hint(hint)
    }

    /// Where the graph is.
    pub(crate) fn at(&self) -> At<'_> {
        At { position: &self.position, version: self.graph.version(), state: &self.state }
    }
}

/// Why the graph rejects an operation, with what the database thinks of it.
fn why_rejected(mapping: &Mapping, operation: &Operation, error: &hoplake::Error, said: &str) -> String {
    let Operation::UpsertEdge { label, source, target, .. } = operation else { return said.to_owned() };
    if error.reason() != Some(Reason::MissingEnd) {
        return said.to_owned();
    }
    let keys = mapping.compared_keys();
    let labels = [&source.label, &target.label];
    let key = keys.iter().find(|key| {
        let named = mapping.entries_of(&key.target).any(|(_, it)| labels.contains(&it.label()));
        let names = mapping.entries_of(&key.table).any(|(_, it)| it.label() == label || labels.contains(&it.label()));
        named && names
    });
    // Rows name what is there, so it was: a repair need not find it, if a later transaction makes it again.
    let deleted = "if something else than the feed has deleted it, run the feed with --resnapshot, which puts it back";
    match key {
        Some(key) => format!(
            "{said}; {} names it, which the database finds by {}, also where the text is another: if it is, let both tables have the same \
             text; {deleted}",
            key.columns.join(", "),
            key.compared_by
        ),
        None => format!("{said}; {deleted}"),
    }
}

/// Why the graph rejects an operation of a batch. It repeats a value that does not fit, which errors do not show.
fn shown_rejection(batch: &Batch, error: &hoplake::Error, show_rows: bool) -> String {
    let said = error.to_string();
    let operation = error.operation().and_then(|number| batch.operations.get(number));
    let (Some(Operation::UpsertVertex { properties, .. } | Operation::UpsertEdge { properties, .. }), false) =
        (operation, show_rows)
    else {
        return said;
    };
    let hide = |said: String, value: &Value| {
        let hidden = |said: String, [before, after]: [&str; 2]| {
            said.replace(&format!("{before}{value}{after}"), &format!("{before}its value{after}"))
        };
        [["which ", " is not"], ["cannot hold ", " exactly"], [", and ", " does not show"]]
            .into_iter()
            .fold(said, hidden)
    };
    properties.iter().fold(said, |said, (_, value)| hide(said, value))
}

/// The position of a graph, and what is remembered there; of a graph that moves meanwhile, the newer.
pub(crate) async fn remembered(graph: &mut Graph, name: &str) -> Result<(Position, FeedState), FeedError> {
    loop {
        let position = Position::parse(graph.source_position(name).unwrap_or_default())?;
        let Some(id) = &position.state else { return Ok((position, FeedState::default())) };
        if let Some(state) = state::read(graph.store(), name, id).await? {
            return Ok((position, state));
        }
        // A commit removes what the one before it names.
        let before = graph.version();
        graph.refresh().await?;
        if graph.version() == before {
            return Err(state::lost(name, id));
        }
    }
}

/// The row changes that were set aside, by transaction and change.
fn changes_at(
    transactions: &[Transaction],
    set_aside: &[SetAside],
) -> Result<BTreeMap<(usize, usize), RowChange>, FeedError> {
    let wanted: BTreeSet<_> = set_aside.iter().map(|aside| (aside.origin.transaction, aside.origin.change)).collect();
    let mut found = BTreeMap::new();
    let those: BTreeSet<_> = wanted.iter().map(|(transaction, _)| *transaction).collect();
    for transaction in those {
        for (number, change) in transactions[transaction].changes.iter().enumerate() {
            if let Change::Row(change) = &*change?
                && wanted.contains(&(transaction, number))
            {
                found.insert((transaction, number), change.clone());
            }
        }
    }
    Ok(found)
}
