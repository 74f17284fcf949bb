//! Where a feed is, by what it reported.

use std::{collections::VecDeque, time::Duration};

use crate::{Applied, At, Cause, Event, FeedError, apply::progress, source::Backlog};

/// The time: of the day, which may jump, and since the start.
#[derive(Debug, Clone, Copy)]
pub(super) struct Now {
    pub(super) unix_ms: i64,
    pub(super) running: Duration,
}

/// The phase that a feed is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum FeedPhase {
    Starting,
    Copying,
    Following,
    WaitingForSource,
    WaitingForStore,
    Stopping,
    Stopped,
}

impl FeedPhase {
    pub(super) const ALL: [Self; 7] = [
        Self::Starting,
        Self::Copying,
        Self::Following,
        Self::WaitingForSource,
        Self::WaitingForStore,
        Self::Stopping,
        Self::Stopped,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Copying => "copying",
            Self::Following => "following",
            Self::WaitingForSource => "waiting_for_source",
            Self::WaitingForStore => "waiting_for_store",
            Self::Stopping => "stopping",
            Self::Stopped => "stopped",
        }
    }
}

/// An error, when it was one.
#[derive(Debug, Clone)]
pub(super) struct Noted {
    pub(super) message: String,
    pub(super) hint: String,
    pub(super) unix_ms: i64,
}

/// The first copy, if this process makes or made it.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Copying {
    pub(super) rows: u64,
    pub(super) begun: Duration,
    pub(super) ended: Option<Duration>,
}

/// What the graph has.
#[derive(Debug, Clone, Default)]
pub(super) struct Graph {
    pub(super) position: String,
    pub(super) committed_unix_ms: Option<i64>,
    pub(super) version: u64,
    pub(super) dead_letters: u64,
    pub(super) held_keys: u64,
    pub(super) edges_waiting: u64,
    pub(super) state_bytes: u64,
}

impl From<&At<'_>> for Graph {
    fn from(at: &At<'_>) -> Self {
        Self {
            position: at.position.of_source.clone(),
            committed_unix_ms: at.position.committed_unix_ms,
            version: at.version,
            dead_letters: at.state.dead_letters(),
            held_keys: at.state.held.len() as u64,
            edges_waiting: at.state.waiting.len() as u64,
            state_bytes: at.state.bytes,
        }
    }
}

/// Numbers of what was done, or is still to be.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Amount {
    pub(super) rows: u64,
    pub(super) transactions: u64,
    pub(super) commits: u64,
}

impl Amount {
    fn add(&mut self, other: Self) {
        self.rows += other.rows;
        self.transactions += other.transactions;
        self.commits += other.commits;
    }
}

/// How long what was done counts as of late.
const LATELY: Duration = Duration::from_secs(60);

/// The health of a feed, from the events that it reported.
#[derive(Debug)]
pub(super) struct FeedHealth {
    pub(super) phase: FeedPhase,
    /// Since when it is that, in milliseconds since 1970.
    pub(super) since_unix_ms: i64,
    stage: FeedPhase,
    is_source_away: bool,
    is_store_away: bool,
    /// To the log of the source.
    pub(super) connections: u64,
    pub(super) last_error: Option<Noted>,
    pub(super) copying: Option<Copying>,
    pub(super) graph: Option<Graph>,
    /// What was read and is not committed.
    pub(super) pending: Amount,
    /// When the source last had no more, if nothing has come since.
    caught_up_unix_ms: Option<i64>,
    /// When the source committed what was read last.
    read_unix_ms: Option<i64>,
    /// The graph has all that the source had then.
    fresh_unix_ms: Option<i64>,
    is_applying: bool,
    heard_of_commits: Duration,
    heard_of_source: Duration,
    /// What was done, by seconds since the start.
    lately: VecDeque<(u64, Amount)>,
    /// When graph and tables were compared, and how many vertices and edges differ.
    pub(super) reconciled: Option<(i64, u64)>,
    /// What the source said last.
    pub(super) backlog: Backlog,
}

impl FeedHealth {
    pub(super) fn new(now: Now) -> Self {
        Self {
            phase: FeedPhase::Starting,
            since_unix_ms: now.unix_ms,
            stage: FeedPhase::Starting,
            is_source_away: false,
            is_store_away: false,
            connections: 0,
            last_error: None,
            copying: None,
            graph: None,
            pending: Amount::default(),
            caught_up_unix_ms: None,
            read_unix_ms: None,
            fresh_unix_ms: None,
            is_applying: false,
            heard_of_commits: now.running,
            heard_of_source: now.running,
            lately: VecDeque::new(),
            reconciled: None,
            backlog: Backlog::default(),
        }
    }

    pub(super) fn record(&mut self, event: &Event<'_>, now: Now) {
        match *event {
            Event::Connected | Event::CaughtUp | Event::Read { .. } => {
                self.heard_of_source = now.running;
                self.is_source_away = false;
            }
            Event::Retried { cause, error, .. } => {
                self.last_error = Some(noted(error, now));
                if cause == Cause::Source {
                    self.heard_of_source = now.running;
                    self.is_source_away = true;
                    self.caught_up_unix_ms = None;
                } else {
                    self.heard_of_commits = now.running;
                    self.is_store_away = cause == Cause::Store;
                }
            }
            Event::Compacted(_) | Event::Reconciled(_) | Event::Backlog(_) => {}
            _ => self.heard_of_commits = now.running,
        }
        match event {
            Event::Copying(rows) => {
                self.stage = FeedPhase::Copying;
                (self.is_source_away, self.is_store_away) = (false, false);
                self.copying.get_or_insert(Copying { begun: now.running, ..Copying::default() }).rows = *rows;
            }
            Event::Copied(_) => {
                self.copying.iter_mut().for_each(|copying| copying.ended = Some(now.running));
            }
            Event::Following(at) => {
                self.stage = FeedPhase::Following;
                (self.is_source_away, self.is_store_away) = (false, false);
                (self.pending, self.is_applying) = (Amount::default(), false);
                (self.caught_up_unix_ms, self.read_unix_ms) = (None, None);
                self.arrived_at(at);
            }
            Event::Read { rows, committed_unix_ms, .. } => self.read(*rows, *committed_unix_ms),
            Event::CaughtUp => {
                self.caught_up_unix_ms = Some(now.unix_ms);
                self.all_applied();
            }
            Event::Applying => self.is_applying = true,
            Event::LookedUp => self.is_store_away = false,
            Event::Applied(applied, at) => self.applied(applied, at, now),
            Event::Reconciled(reconciled) => self.reconciled = Some((now.unix_ms, reconciled.differences())),
            Event::Stopping => self.stage = FeedPhase::Stopping,
            Event::Stopped(error) => {
                self.stage = FeedPhase::Stopped;
                if let Some(error) = error {
                    self.last_error = Some(noted(error, now));
                }
            }
            Event::Backlog(backlog) => self.backlog = *backlog,
            Event::Connected => self.connections += 1,
            Event::Retried { .. } | Event::Compacted(_) => {}
        }
        let phase = match self.stage {
            FeedPhase::Starting | FeedPhase::Copying | FeedPhase::Following if self.is_store_away => {
                FeedPhase::WaitingForStore
            }
            FeedPhase::Starting | FeedPhase::Copying | FeedPhase::Following if self.is_source_away => {
                FeedPhase::WaitingForSource
            }
            stage => stage,
        };
        if phase != self.phase {
            (self.phase, self.since_unix_ms) = (phase, now.unix_ms);
        }
    }

    fn read(&mut self, rows: u64, committed_unix_ms: i64) {
        self.caught_up_unix_ms = None;
        self.read_unix_ms = Some(committed_unix_ms);
        if rows == 0 {
            // It changes nothing that is mapped: it is applied with all before it.
            return self.all_applied();
        }
        self.pending.add(Amount { rows, transactions: 1, commits: 0 });
    }

    fn applied(&mut self, applied: &Applied, at: &progress::At<'_>, now: Now) {
        let Applied { rows, transactions, .. } = *applied;
        self.is_applying = false;
        self.is_store_away = false;
        self.pending.rows = self.pending.rows.saturating_sub(rows);
        self.pending.transactions = self.pending.transactions.saturating_sub(transactions);
        self.arrived_at(at);
        self.all_applied();
        let second = now.running.as_secs();
        if self.lately.back().is_none_or(|(last, _)| *last != second) {
            self.lately.push_back((second, Amount::default()));
        }
        if let Some((_, amount)) = self.lately.back_mut() {
            amount.add(Amount { rows, transactions, commits: 1 });
        }
        while self.lately.front().is_some_and(|(first, _)| first + LATELY.as_secs() < second) {
            self.lately.pop_front();
        }
    }

    fn arrived_at(&mut self, at: &progress::At<'_>) {
        let graph = Graph::from(at);
        self.fresh_unix_ms = self.fresh_unix_ms.max(graph.committed_unix_ms);
        self.graph = Some(graph);
    }

    /// If all that was read is applied, the graph has what the source had then.
    fn all_applied(&mut self) {
        if self.pending.transactions == 0 {
            self.fresh_unix_ms = self.fresh_unix_ms.max(self.read_unix_ms).max(self.caught_up_unix_ms);
        }
    }

    /// Whether the source has more than was read, as far as it is known.
    pub(super) fn has_more(&self) -> bool {
        self.caught_up_unix_ms.is_none()
    }

    /// How far the graph is behind the source, in milliseconds; `None` if that is not known yet.
    pub(super) fn lag_ms(&self, now: Now) -> Option<i64> {
        if self.pending.transactions == 0 && !self.has_more() {
            return Some(0);
        }
        Some((now.unix_ms - self.fresh_unix_ms?).max(0))
    }

    /// For how long nothing was heard of a feed that follows.
    pub(super) fn silent(&self, now: Now) -> Duration {
        let heard = match self.stage {
            FeedPhase::Following if self.is_applying => self.heard_of_commits,
            FeedPhase::Following => self.heard_of_commits.max(self.heard_of_source),
            // A copy takes as long as it takes, and the end has its own deadline.
            _ => return Duration::ZERO,
        };
        now.running.saturating_sub(heard)
    }

    /// What was done in the last minute, and how long that is since the start.
    pub(super) fn lately(&self, now: Now) -> (Amount, Duration) {
        let since = now.running.as_secs().saturating_sub(LATELY.as_secs());
        let mut sum = Amount::default();
        self.lately.iter().filter(|(second, _)| *second >= since).for_each(|(_, amount)| sum.add(*amount));
        (sum, now.running.clamp(Duration::from_secs(1), LATELY))
    }

    pub(super) fn readiness(&self, now: Now, lag_ms_max: u64) -> Result<(), String> {
        let because = self.last_error.as_ref().map(|error| format!(": {}", error.message)).unwrap_or_default();
        match self.phase {
            FeedPhase::Starting => Err("the feed is starting".into()),
            FeedPhase::Copying => {
                let rows = self.copying.unwrap_or_default().rows;
                Err(format!("the first copy is not complete: {rows} rows read"))
            }
            FeedPhase::WaitingForSource => Err(format!("the source is away{because}")),
            FeedPhase::WaitingForStore => Err(format!("the store is away{because}")),
            FeedPhase::Stopping => Err("the feed is stopping".into()),
            FeedPhase::Stopped => Err(format!("the feed has stopped{because}")),
            FeedPhase::Following => match self.lag_ms(now) {
                None => Err("the source was not read yet".into()),
                Some(lag) if lag.unsigned_abs() > lag_ms_max => {
                    Err(format!("the graph is {lag} ms behind, and http.ready_lag_ms is {lag_ms_max}"))
                }
                Some(_) => Ok(()),
            },
        }
    }
}

fn noted(error: &FeedError, now: Now) -> Noted {
    Noted { message: error.to_string(), hint: error.what_to_do().to_owned(), unix_ms: now.unix_ms }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Position, apply::state};

    fn at(ms: i64) -> Now {
        Now { unix_ms: ms, running: Duration::from_millis(ms.unsigned_abs()) }
    }

    /// Hears events that have a position of this time.
    fn following(health: &mut FeedHealth, committed_unix_ms: i64, now: i64) {
        let position = Position { committed_unix_ms: Some(committed_unix_ms), ..Position::new("0-1-1") };
        let remembered = state::FeedState::default();
        health.record(&Event::Following(At { position: &position, version: 1, state: &remembered }), at(now));
    }

    fn read(health: &mut FeedHealth, rows: u64, committed_unix_ms: i64, now: i64) {
        health.record(&Event::Read { rows, bytes: 100, committed_unix_ms }, at(now));
    }

    fn applied(health: &mut FeedHealth, transactions: u64, committed_unix_ms: i64, now: i64) {
        let position = Position { committed_unix_ms: Some(committed_unix_ms), ..Position::new("0-1-2") };
        let remembered = state::FeedState::default();
        let applied = Applied { rows: transactions, transactions, ..Applied::default() };
        let there = At { position: &position, version: 2, state: &remembered };
        health.record(&Event::Applied(&applied, there), at(now));
    }

    #[test]
    fn the_lag_is_the_age_of_what_the_graph_has() {
        let mut health = FeedHealth::new(at(0));
        assert_eq!(health.lag_ms(at(0)), None);
        following(&mut health, 1_000, 50_000);
        assert_eq!(health.lag_ms(at(50_000)), Some(49_000));
        health.record(&Event::CaughtUp, at(60_000));
        assert_eq!((health.lag_ms(at(69_000)), health.has_more()), (Some(0), false));
        // After a long silence of the source it is not as old as the transaction before.
        read(&mut health, 1, 70_000, 70_100);
        assert_eq!(health.lag_ms(at(70_200)), Some(10_200));
        read(&mut health, 1, 70_500, 70_600);
        applied(&mut health, 1, 70_000, 70_700);
        assert_eq!((health.lag_ms(at(71_000)), health.pending.transactions), (Some(1_000), 1));
        // Caught up with what is read, which is not applied yet.
        health.record(&Event::CaughtUp, at(72_000));
        assert_eq!(health.lag_ms(at(72_000)), Some(2_000));
        applied(&mut health, 1, 70_500, 72_500);
        assert_eq!(health.lag_ms(at(99_000)), Some(0));
        // What changes nothing that is mapped is not behind, however long its position waits for a commit.
        read(&mut health, 0, 100_000, 100_100);
        assert_eq!(health.lag_ms(at(100_300)), Some(300));
        // Away, it is behind by all that may come meanwhile.
        let error = FeedError::unavailable("away");
        health.record(&Event::CaughtUp, at(101_000));
        health.record(&Event::Retried { cause: Cause::Source, error: &error, pause: Duration::ZERO }, at(102_000));
        assert_eq!((health.lag_ms(at(103_000)), health.phase), (Some(2_000), FeedPhase::WaitingForSource));
        assert_eq!(health.since_unix_ms, 102_000);
        assert_eq!(health.readiness(at(103_000), 60_000).unwrap_err(), "the source is away: away");
        health.record(&Event::Connected, at(104_000));
        assert_eq!(health.phase, FeedPhase::Following);
        let late = health.readiness(at(200_000), 60_000).unwrap_err();
        assert_eq!(late, "the graph is 99000 ms behind, and http.ready_lag_ms is 60000");
    }

    #[test]
    fn a_commit_of_which_nothing_is_heard_is_stuck_although_the_source_talks() {
        let mut health = FeedHealth::new(at(0));
        health.record(&Event::Copying(7), at(0));
        assert_eq!(health.silent(at(9_000_000)), Duration::ZERO);
        following(&mut health, 0, 1_000);
        health.record(&Event::CaughtUp, at(9_000));
        assert_eq!(health.silent(at(10_000)), Duration::from_secs(1));
        health.record(&Event::Applying, at(10_000));
        health.record(&Event::CaughtUp, at(20_000));
        assert_eq!(health.silent(at(20_000)), Duration::from_secs(10));
        health.record(&Event::LookedUp, at(21_000));
        assert_eq!(health.silent(at(21_000)), Duration::ZERO);
        applied(&mut health, 1, 0, 22_000);
        health.record(&Event::CaughtUp, at(30_000));
        assert_eq!(health.silent(at(30_000)), Duration::ZERO);
    }

    #[test]
    fn what_was_done_lately_is_forgotten_after_a_minute() {
        let mut health = FeedHealth::new(at(0));
        applied(&mut health, 3, 0, 1_000);
        applied(&mut health, 4, 0, 1_900);
        let (done, time) = health.lately(at(10_000));
        assert_eq!((done, time), (Amount { rows: 7, transactions: 7, commits: 2 }, Duration::from_secs(10)));
        assert_eq!(health.lately(at(61_000)).0.rows, 7);
        assert_eq!(health.lately(at(62_000)), (Amount::default(), LATELY));
        applied(&mut health, 1, 0, 99_000);
        assert_eq!(health.lately.len(), 1);
    }
}
