//! Reconciliation: are the tables and the graph the same at one position, and if not, where?
//!
//! ```text
//! source ──snapshot at P──▶ rows ──mapping──▶ elements ──▶ digests of ranges ─┐
//!                                                                             ├─▶ ranges that differ ─▶ read again: elements
//! graph ──version at G──▶ elements, with the transactions of G..P over them ──┘      ──▶ differences ──▶ report, corrections
//! ```
//! Both sides are at the same position P, and both may go on: the snapshot is a transaction that reads, the graph one version of it, and
//! the few transactions between the version's own position and P are read from the log and folded. So a difference is one. The tables are
//! read twice at most: once for the digests, and once more if some differ.
//!
//! A correction is committed at whatever position the graph is by then, on the condition that it still is. What the log has changed
//! since P may be right already, so it is left alone, and counted.

mod comparing;
mod difference;
mod digests;
mod partitions;
mod repair;
mod report;
mod scope;
mod stretch;
mod tables;
mod view;

use std::{collections::BTreeMap, path::PathBuf, sync::Arc, time::Instant};

pub use self::difference::{Difference, DifferenceKind};
use self::{
    comparing::Comparing, partitions::Parts, repair::Repair, report::Report, scope::Scope, stretch::Stretch,
    tables::Letters, view::View,
};
use crate::{
    Ends, FeedError, FeedErrorKind, Reconciled, Settings, TableName,
    apply::opening,
    mapping::{Mapping, followed::FollowedTable},
    scratch::Scratch,
    source::Purpose,
};

/// What is compared, and what becomes of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReconcileOptions {
    /// The tables; all that are mapped without any.
    pub tables: Vec<String>,
    /// Whether what differs is written to the graph.
    pub repair: bool,
    /// Whether nothing is written even so: only how much it would be.
    pub dry_run: bool,
    /// The folder for `differences.jsonl` and `differences.parquet`.
    pub report: Option<PathBuf>,
}

/// Compares the tables of a feed with its graph, while both may go on.
///
/// # Errors
/// Those of [`check`](crate::check) and [`Feed::open`](crate::Feed::open); [`Unavailable`](crate::FeedErrorKind::Unavailable) if the graph
/// is far behind.
pub async fn reconcile(settings: &Settings, options: &ReconcileOptions) -> Result<Reconciled, FeedError> {
    reconcile_on(&Ends::open(settings)?, settings, options).await
}

/// [`reconcile`] on other ends than those that the settings name.
///
/// # Errors
/// As [`reconcile`].
pub async fn reconcile_on(
    ends: &Ends,
    settings: &Settings,
    options: &ReconcileOptions,
) -> Result<Reconciled, FeedError> {
    let begun = Instant::now();
    // The graph before the snapshot: so it is not ahead of it.
    let (source, mut applier) = opening::checked_applier(ends, settings).await?;
    let mapping = applier.mapping.clone();
    let named = options.tables.iter().map(|name| TableName::parse(name, source.default_schema()));
    let scope = Scope::new(&mapping, &named.collect::<Vec<_>>())?;
    let mut stretch = loop {
        let before = applier.position.of_source.clone();
        match Stretch::begin(&*source, &before, applier.following(settings)).await {
            // A feed may have committed meanwhile, and confirmed to the source that it no longer needs what was before.
            Err(error) if error.kind() == FeedErrorKind::Purged => {
                applier.adopt().await?;
                if applier.position.of_source == before {
                    return Err(error);
                }
            }
            begun => break begun?,
        }
    };
    let snapshot = source.snapshot(Purpose::Compare).await?;
    stretch.up_to(&*source, snapshot.position()).await?;
    let view = View::new(applier, &stretch.transactions).await?;
    let folder = Scratch::new(settings)?;
    let mut comparing = Comparing::new(scope, mapping, snapshot, view);
    let parts = comparing.compare(folder.path()).await?;
    let mut reconciled = comparing.reconciled.clone();
    let mut report = options.report.as_deref().map(Report::begin).transpose()?;
    for part in Parts::VERTICES.chain(Parts::EDGES) {
        for difference in comparing.differences(parts.as_ref(), part)? {
            if comparing.view.is_held(&difference.element) {
                reconciled.held += 1;
                continue;
            }
            *match difference.kind {
                DifferenceKind::Missing => &mut reconciled.missing,
                DifferenceKind::LeftOver => &mut reconciled.left_over,
                DifferenceKind::Different => &mut reconciled.different,
            } += 1;
            if let Some(report) = &mut report {
                report.add(&difference)?;
            }
        }
    }
    report.map(Report::finish).transpose()?;
    // The rows are read; the server need not keep them any longer.
    comparing.snapshot = None;
    if options.repair && !reconciled.is_equal() {
        let applier = opening::applier(&ends.store, settings, comparing.mapping.clone()).await?;
        let repair = Repair::beside(applier, &*source, stretch, options.dry_run);
        repair.all(&mut comparing, parts.as_ref(), &mut reconciled).await?;
    }
    reconciled.ms = begun.elapsed().as_millis() as u64;
    Ok(reconciled)
}

/// Makes of a graph what the tables are now, whatever it is, and lets the feed go on from there.
///
/// # Errors
/// As [`reconcile`]; [`Row`](crate::FeedErrorKind::Row) if a row cannot be read, and is not to be set aside.
pub(crate) async fn resnapshot(
    ends: &Ends,
    settings: &Settings,
    mapping: &Arc<Mapping>,
    tables: BTreeMap<TableName, FollowedTable>,
) -> Result<Reconciled, FeedError> {
    let begun = Instant::now();
    let before = match opening::applier(&ends.store, settings, mapping.clone()).await {
        Ok(applier) => applier.state.tables,
        Err(error) if error.is_transient() => return Err(error),
        // What is remembered may be damaged, and is written again.
        Err(_) => BTreeMap::new(),
    };
    let mut scope = Scope::new(mapping, &[])?;
    // What a mapping of before made of rows is no longer a row of any.
    scope.extend(&before);
    // Before the rows, so that the position does not go back. The comparison itself finds which edges wait.
    let view = View::at_its_position(opening::applier_without_state(&ends.store, settings, mapping.clone()).await?);
    let snapshot = ends.source.snapshot(Purpose::Renew).await?;
    let position = snapshot.position().to_owned();
    let folder = Scratch::new(settings)?;
    let mut comparing = Comparing::new(scope, mapping.clone(), snapshot, view);
    comparing.letters = Some(Letters { position: position.clone(), all: Vec::new() });
    let parts = comparing.compare(folder.path()).await?;
    let mut reconciled = comparing.reconciled.clone();
    let letters = comparing.letters.take().unwrap_or_default().all;
    let applier = opening::applier_without_state(&ends.store, settings, mapping.clone()).await?;
    let compared = &comparing.view.applier.position;
    // What has come since is not in the rows, and would stay in the graph.
    if !applier.position.is_but_for_writer(compared) {
        let why = format!("the graph has moved from {compared} to {} while all rows were compared", applier.position);
        return Err(
            FeedError::new(FeedErrorKind::Conflict, why).hint("let one feed run for each source, and begin again")
        );
    }
    let repair = Repair::up_to(applier, position, letters, tables);
    repair.all(&mut comparing, parts.as_ref(), &mut reconciled).await?;
    reconciled.ms = begun.elapsed().as_millis() as u64;
    Ok(reconciled)
}
