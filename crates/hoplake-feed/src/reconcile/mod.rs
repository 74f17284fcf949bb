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

mod digests;
mod partitions;
mod repair;
mod report;
mod scope;
mod stretch;
mod tables;
mod view;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
    time::Instant,
};

use hoplake::Properties;
use serde::Serialize;

use self::{
    digests::{Digests, Ranges},
    partitions::{Both, Partitions, Parts, Side},
    repair::Repair,
    report::Report,
    scope::Scope,
    stretch::Stretch,
    tables::{Letters, Tables},
    view::View,
};
use crate::{
    Element, Ends, FeedError, FeedErrorKind, Settings, TableName, feed,
    fold::Plans,
    followed::FollowedTable,
    mapping::Mapping,
    scratch::Scratch,
    source::{Purpose, Snapshot},
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

/// What a reconciliation found and did.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Reconciled {
    /// The position at which both sides were compared.
    pub position: String,
    /// The version of the graph that was compared.
    pub version: u64,
    /// Rows that were read, each time.
    pub rows: u64,
    /// Vertices and edges that they are.
    pub elements: u64,
    /// How often the tables were read.
    pub scans: u32,
    /// Those that the graph lacks.
    pub missing: u64,
    /// Those that the graph has and no row is.
    pub left_over: u64,
    /// Those that have other properties in the graph.
    pub different: u64,
    /// Those of which a change was set aside; they are not counted as differences.
    pub held: u64,
    /// Rows that cannot be read by the mapping.
    pub unreadable: u64,
    /// Differences that were repaired, or would be.
    pub repaired: u64,
    /// Differences that were left alone, since the log has changed them meanwhile.
    pub changed_meanwhile: u64,
    /// Differences that cannot be repaired: an end of an edge is not there.
    pub not_repairable: u64,
    /// The version that has the last repair.
    pub repaired_in: Option<u64>,
    /// How long it took, in milliseconds.
    pub ms: u64,
}

impl Reconciled {
    /// How many vertices and edges differ, or did before a repair.
    pub fn differences(&self) -> u64 {
        self.missing + self.left_over + self.different
    }

    /// Whether the graph is what the tables say.
    pub fn is_equal(&self) -> bool {
        self.differences() == 0
    }
}

/// How an element differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DifferenceKind {
    /// The graph does not have it.
    Missing,
    /// No row is it.
    LeftOver,
    /// It has other properties.
    Different,
}

/// An element that is not the same on both sides.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    /// How.
    pub kind: DifferenceKind,
    /// The vertex or edge.
    pub element: Element,
    /// What a row says.
    pub in_tables: Option<Properties>,
    /// What the graph has.
    pub in_graph: Option<Properties>,
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
    let (source, mut applying) = feed::checked_applying(ends, settings).await?;
    let mapping = applying.mapping.clone();
    let named = options.tables.iter().map(|name| TableName::parse(name, source.default_schema()));
    let scope = Scope::new(&mapping, &named.collect::<Vec<_>>())?;
    let mut stretch = loop {
        let before = applying.position.of_source.clone();
        match Stretch::begin(&*source, &before, applying.following(settings)).await {
            // A feed may have committed meanwhile, and confirmed to the source that it no longer needs what was before.
            Err(error) if error.kind() == FeedErrorKind::Purged => {
                applying.adopt().await?;
                if applying.position.of_source == before {
                    return Err(error);
                }
            }
            begun => break begun?,
        }
    };
    let snapshot = source.snapshot(Purpose::Compare).await?;
    stretch.up_to(&*source, snapshot.position()).await?;
    let view = View::new(applying, &stretch.transactions).await?;
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
        let applying = feed::applying(&ends.store, settings, comparing.mapping.clone()).await?;
        let repair = Repair::beside(applying, &*source, stretch, options.dry_run);
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
    let before = match feed::applying(&ends.store, settings, mapping.clone()).await {
        Ok(applying) => applying.state.tables,
        Err(error) if error.is_transient() => return Err(error),
        // What is remembered may be damaged, and is written anew.
        Err(_) => BTreeMap::new(),
    };
    let mut scope = Scope::new(mapping, &[])?;
    // What a mapping of before made of rows is no longer a row of any.
    scope.extend(&before);
    // Before the rows, so that the position does not go back. The comparison itself finds which edges wait.
    let view = View::at_its_position(feed::applying_without_state(&ends.store, settings, mapping.clone()).await?);
    let snapshot = ends.source.snapshot(Purpose::Renew).await?;
    let position = snapshot.position().to_owned();
    let folder = Scratch::new(settings)?;
    let mut comparing = Comparing::new(scope, mapping.clone(), snapshot, view);
    comparing.letters = Some(Letters { position: position.clone(), all: Vec::new() });
    let parts = comparing.compare(folder.path()).await?;
    let mut reconciled = comparing.reconciled.clone();
    let letters = comparing.letters.take().unwrap_or_default().all;
    let applying = feed::applying_without_state(&ends.store, settings, mapping.clone()).await?;
    let compared = &comparing.view.applying.position;
    // What has come since is not in the rows, and would stay in the graph.
    if !applying.position.is_but_for_writer(compared) {
        let why = format!("the graph has moved from {compared} to {} while all rows were compared", applying.position);
        return Err(
            FeedError::new(FeedErrorKind::Conflict, why).hint("let one feed run for each source, and begin again")
        );
    }
    let repair = Repair::up_to(applying, position, letters, tables);
    repair.all(&mut comparing, parts.as_ref(), &mut reconciled).await?;
    reconciled.ms = begun.elapsed().as_millis() as u64;
    Ok(reconciled)
}

/// Both sides, at one position.
pub(super) struct Comparing<'a> {
    scope: Scope,
    mapping: Arc<Mapping>,
    snapshot: Option<Box<dyn Snapshot + 'a>>,
    view: View,
    letters: Option<Letters>,
    reconciled: Reconciled,
}

impl<'a> Comparing<'a> {
    fn new(scope: Scope, mapping: Arc<Mapping>, snapshot: Box<dyn Snapshot + 'a>, view: View) -> Self {
        let reconciled = Reconciled {
            position: snapshot.position().to_owned(),
            version: view.applying.graph.version(),
            ..Reconciled::default()
        };
        Self { scope, mapping, snapshot: Some(snapshot), view, letters: None, reconciled }
    }

    /// Finds the ranges that differ, and then all that is in them.
    async fn compare(&mut self, folder: &Path) -> Result<Option<Parts>, FeedError> {
        let (mut of_tables, mut of_graph) = (Digests::new(), Digests::new());
        self.read_tables(false, &mut |element, properties, _| {
            of_tables.add(element, properties);
            Ok(())
        })
        .await?;
        self.view
            .elements(&self.scope, false, &mut |element, properties| {
                of_graph.add(&element, &properties);
                Ok(())
            })
            .await?;
        let ranges: Ranges = of_tables.differing(&of_graph);
        drop((of_tables, of_graph));
        if ranges.is_empty() && !self.scope.has_stubs() {
            return Ok(None);
        }
        tracing::info!(ranges = ranges.count(), "ranges differ; their rows are read");
        let mut partitions = Partitions::new(ranges, folder);
        self.read_tables(true, &mut |element, properties, anyway| {
            partitions.add(Side::Tables, element, properties, anyway)
        })
        .await?;
        self.view
            .elements(&self.scope, true, &mut |element, properties| {
                partitions.add(Side::Graph, &element, &properties, false)
            })
            .await?;
        partitions.finish().map(Some)
    }

    async fn read_tables(
        &mut self,
        again: bool,
        take: &mut (dyn FnMut(&Element, &Properties, bool) -> Result<(), FeedError> + Send),
    ) -> Result<(), FeedError> {
        let Some(snapshot) = &mut self.snapshot else { return Ok(()) };
        let mut tables = Tables {
            scope: &self.scope,
            mapping: self.mapping.clone(),
            plans: Plans::default(),
            view: &mut self.view,
            take,
            rows: 0,
            elements: 0,
            unreadable: 0,
            // Each row that cannot be read is set aside once.
            letters: self.letters.as_mut().filter(|_| !again),
            bare: again.then(Vec::new),
        };
        snapshot.rows(&self.scope.tables, &mut tables).await?;
        let Tables { rows, elements, unreadable, .. } = tables;
        let reconciled = &mut self.reconciled;
        (reconciled.rows, reconciled.elements, reconciled.unreadable) = (rows, elements, unreadable);
        reconciled.scans += 1;
        Ok(())
    }

    /// The differences of a part, also of what is held.
    fn differences(&self, parts: Option<&Parts>, part: usize) -> Result<Vec<Difference>, FeedError> {
        let found = parts.map_or_else(|| Ok(BTreeMap::new()), |parts| parts.differing(part))?;
        let difference = |(element, Both { mut tables, mut graph }): (Element, Both)| {
            let kind = match (tables.is_empty(), graph.is_empty()) {
                (false, true) => DifferenceKind::Missing,
                (true, _) => DifferenceKind::LeftOver,
                (false, false) => DifferenceKind::Different,
            };
            if let (DifferenceKind::LeftOver, Element::Vertex(vertex)) = (kind, &element)
                && graph.iter().all(|properties| self.scope.may_be_stub(vertex, properties))
            {
                return None;
            }
            Some(Difference { kind, element, in_tables: tables.pop(), in_graph: graph.pop() })
        };
        Ok(found.into_iter().filter_map(difference).collect())
    }
}
