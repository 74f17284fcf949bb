//! Writes what the tables say in the place of what differs.

use std::{collections::BTreeMap, time::Duration};

use super::{
    comparing::Comparing,
    difference::{Difference, DifferenceKind},
    partitions::Parts,
    stretch::Stretch,
    view::Touched,
};
use crate::{
    Element, FeedError, FeedErrorKind, Reconciled, TableName,
    apply::{
        applier::{Applier, Outcome},
        fold::{Correction, Folded, LookupResults, correct, render},
        letters::Letter,
        lookups::look_up,
        state::FeedState,
    },
    backoff::Backoff,
    mapping::followed::FollowedTable,
    source::Source,
};

/// Corrections of a commit while a feed may run: short enough to fit between two of the feed's.
const BATCH_WITH_FEED: usize = 5_000;

/// Corrections of a commit while no feed runs.
const BATCH_ALONE: usize = 100_000;

/// How often a commit gives way to one of the feed.
const YIELDS_MAX: usize = 1_000;

/// Corrections, as commits.
pub(super) struct Repair<'a> {
    applier: Applier,
    dry_run: bool,
    mode: Mode<'a>,
    pending: Vec<Correction>,
}

#[expect(clippy::large_enum_variant, reason = "there is one of it")]
enum Mode<'a> {
    /// A feed may go on meanwhile.
    Beside { source: &'a dyn Source, stretch: Stretch, touched: Option<(usize, Touched)> },
    /// The graph gets this position with the last of them, these letters in the place of all, and the tables as they are there.
    UpTo { position: String, letters: Vec<Letter>, tables: BTreeMap<TableName, FollowedTable> },
}

impl<'a> Repair<'a> {
    /// While a feed may run; without `dry_run` they are committed.
    pub(super) fn beside(applier: Applier, source: &'a dyn Source, stretch: Stretch, dry_run: bool) -> Self {
        Self { applier, dry_run, mode: Mode::Beside { source, stretch, touched: None }, pending: Vec::new() }
    }

    /// While no feed runs; the graph gets this position with the last of them, and these letters in place of its own.
    pub(super) fn up_to(
        applier: Applier,
        position: String,
        letters: Vec<Letter>,
        tables: BTreeMap<TableName, FollowedTable>,
    ) -> Self {
        Self { applier, dry_run: false, mode: Mode::UpTo { position, letters, tables }, pending: Vec::new() }
    }

    /// Repairs all differences: vertices that are to be there before the edges between them, and those that are not after theirs.
    pub(super) async fn all(
        mut self,
        comparing: &mut Comparing<'_>,
        parts: Option<&Parts>,
        reconciled: &mut Reconciled,
    ) -> Result<(), FeedError> {
        let is_left_over = |difference: &Difference| difference.kind == DifferenceKind::LeftOver;
        for (range, leaves) in
            [(Parts::VERTICES, false), (Parts::EDGES, true), (Parts::EDGES, false), (Parts::VERTICES, true)]
        {
            for part in range {
                for difference in comparing.differences(parts, part)? {
                    // Rows that cannot be read stay as they are.
                    if is_left_over(&difference) != leaves || comparing.view.is_held(&difference.element) {
                        continue;
                    }
                    let correction = correction(comparing, difference);
                    self.pending.push(correction);
                    let at_once = if matches!(self.mode, Mode::Beside { .. }) { BATCH_WITH_FEED } else { BATCH_ALONE };
                    if self.pending.len() > at_once {
                        // One stays for the last commit.
                        let last = self.pending.pop();
                        self.commit(comparing, reconciled, false).await?;
                        self.pending.extend(last);
                    }
                }
            }
        }
        self.commit(comparing, reconciled, true).await
    }

    async fn commit(
        &mut self,
        comparing: &mut Comparing<'_>,
        reconciled: &mut Reconciled,
        is_last: bool,
    ) -> Result<(), FeedError> {
        let mut corrections = std::mem::take(&mut self.pending);
        for _ in 0..YIELDS_MAX {
            self.leave_touched(comparing, &mut corrections, reconciled).await?;
            if corrections.is_empty() && matches!(self.mode, Mode::Beside { .. }) {
                return Ok(());
            }
            match self.try_commit(&mut corrections, reconciled, is_last).await {
                Ok(true) => {
                    reconciled.repaired += corrections.len() as u64;
                    return Ok(());
                }
                Ok(false) => {}
                // The feed was faster.
                Err(error) if error.kind() == FeedErrorKind::Conflict && matches!(self.mode, Mode::Beside { .. }) => {
                    tokio::time::sleep(Duration::from_millis(fastrand::u64(1..50))).await;
                }
                Err(error) => return Err(error),
            }
        }
        let why = "the feed commits so often that no repair came between two of its commits";
        Err(FeedError::unavailable(why).hint("repair while less is written, or raise stream.linger_ms"))
    }

    /// Takes out what the log has changed since the sides were compared.
    async fn leave_touched(
        &mut self,
        comparing: &mut Comparing<'_>,
        corrections: &mut Vec<Correction>,
        reconciled: &mut Reconciled,
    ) -> Result<(), FeedError> {
        let Mode::Beside { source, stretch, touched } = &mut self.mode else { return Ok(()) };
        self.applier.adopt().await?;
        stretch.up_to_graph(*source, &self.applier.position.of_source).await?;
        // All of the stretch over the version that was compared: what a cascade reaches is looked up there.
        let count = stretch.transactions.len();
        if touched.as_ref().is_none_or(|(known, _)| *known != count) {
            *touched = Some((count, Touched::by(&mut comparing.view.applier, &stretch.transactions).await?));
        }
        let Some((_, touched)) = touched else { return Ok(()) };
        let before = corrections.len();
        corrections.retain(|correction| {
            let (Correction::Put { element, .. } | Correction::Drop(element)) = correction;
            !touched.has(element)
        });
        reconciled.changed_meanwhile += (before - corrections.len()) as u64;
        Ok(())
    }

    /// Whether it is done; if not, the graph has moved.
    async fn try_commit(
        &mut self,
        corrections: &mut Vec<Correction>,
        reconciled: &mut Reconciled,
        is_last: bool,
    ) -> Result<bool, FeedError> {
        let folded = loop {
            let folded = folded(&self.applier, corrections).await?;
            if folded.failures.is_empty() {
                break folded;
            }
            reconciled.not_repairable += folded.failures.len() as u64;
            for failure in folded.failures.iter().rev() {
                corrections.remove(failure.origin.change);
            }
        };
        if self.dry_run {
            return Ok(true);
        }
        let mut state = self.applier.state.clone();
        state.waiting.apply(&folded.waiting);
        let operations = render(folded.overlay, self.applier.graph.schema()).operations;
        let mut pauses = Backoff::new();
        let mut of_source = self.applier.position.of_source.clone();
        if let Mode::UpTo { position, letters, tables } = &self.mode
            && is_last
        {
            of_source.clone_from(position);
            // Nothing else is remembered of before, and no stop.
            state.tables.clone_from(tables);
            self.applier.replace_letters(&mut state, letters).await?;
        }
        let committed_unix_ms =
            self.applier.position.committed_unix_ms.filter(|_| of_source == self.applier.position.of_source);
        let mut position = self.applier.position_with(of_source, committed_unix_ms, &mut state, &mut pauses).await?;
        // Half of it is no state to go on from.
        position.is_copying = !is_last && matches!(self.mode, Mode::UpTo { .. });
        match self.applier.commit(operations, &position, &mut pauses, &mut 0).await? {
            Outcome::Committed(version) => {
                self.applier.settle(position, state).await;
                reconciled.repaired_in = Some(version);
                Ok(true)
            }
            Outcome::Remembers => {
                // What is remembered is not taken over; as at the beginning.
                if let Mode::UpTo { .. } = self.mode {
                    self.applier.state = FeedState::default();
                }
                Ok(false)
            }
            Outcome::Rejected(error, _) => Err(error.into()),
        }
    }
}

async fn folded(applier: &Applier, corrections: &[Correction]) -> Result<Folded, FeedError> {
    let Applier { graph, mapping, state, .. } = applier;
    let mut known = LookupResults::default();
    loop {
        let folded = correct(mapping, corrections, &known, &state.waiting);
        if folded.needs.is_empty() {
            return Ok(folded);
        }
        look_up(graph, mapping, &folded.needs, &mut known).await?;
    }
}

fn correction(comparing: &Comparing<'_>, difference: Difference) -> Correction {
    let Difference { kind, element, in_tables, .. } = difference;
    match (kind, in_tables) {
        (DifferenceKind::LeftOver, _) | (_, None) => Correction::Drop(element),
        (_, Some(properties)) => {
            let properties = comparing.scope.completed(&element, &properties);
            // Several that nothing distinguishes become one.
            let replaces = kind == DifferenceKind::Different && matches!(element, Element::Edge(_));
            Correction::Put { element, properties, replaces }
        }
    }
}
