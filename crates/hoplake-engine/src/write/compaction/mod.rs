//! Compaction: adjacent runs of a label or an edge type become one, and no answer changes.
//!
//! ```text
//! plan: which runs ──▶ merge: streams of sections and rows ──▶ one object (and large tables) ──▶ publish on the newest
//! ```
//! Runs are a log-structured merge tree of their own for each label and edge type (O'Neil et al., *The log-structured
//! merge-tree*, 1996), compacted in tiers. A compaction reads a version that has nothing but the runs it merges, so it
//! uses what queries use, and writes what that version says. It announces itself (`lease`), publishes what it
//! merged on whatever is the newest version then, and takes its name out with the last of it: what is interrupted is
//! continued by the next.
//!
//! **Requests.** Merges that are small together are one group: their inputs come in one wave (`inputs`), what they become is
//! one object, and one version has all of it. A merge that is larger than that is a group by itself, and reads on while it
//! decodes (`engine/read/scan`).
//!
//! **Other writers.** What a merge became stands for the runs it was made of, as long as a version has them: commits only add
//! runs, so it is published on a version of theirs as it is. Only a merge of whose runs another compaction, a load or a
//! restored version has left some out is dropped, and repeated if it is still due.

mod inputs;
mod keys;
mod lists;
mod merging;
mod plan;
mod rows;
mod run_writer;
mod settings;
mod values;

use std::sync::Arc;

use futures::future::{BoxFuture, join};
use hoplake_format::{Change, ChangeKind, Manifest, VersionRange};
use hoplake_storage::{Branch, Cost, QueryContext, ReadPool, Reader, Store};

use crate::{
    EngineError, OpenSettings, Snapshot,
    write::{
        lease,
        publish::{amend_on, change, hint},
    },
};
pub(crate) use merging::Merging;
pub(crate) use run_writer::{RunWriter, WrittenRun};
pub(crate) use settings::read_settings;

pub use crate::owner::Owner;
use merging::Merged;
pub use plan::RunsOf;
pub(crate) use plan::spans;
use plan::{Merge, Sizes, groups, message, runs_of};
pub use settings::CompactionSettings;

/// The least budget: below it, buffers that cannot be smaller would not fit.
pub const MEMORY_BYTES_MIN: u64 = 64 << 20;

/// For taking its name out when its time is over.
const WITHDRAWAL_TIMEOUT_MS: u64 = 30_000;

/// What a compaction did.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Compacted {
    /// How often runs became one.
    pub merges: u64,
    /// Runs that were merged.
    pub runs: u64,
    /// Their bytes.
    pub bytes_read: u64,
    /// Bytes of what they became.
    pub bytes_written: u64,
    /// The newest version after it.
    pub version: u64,
    /// What it took, with looking for what was due and publication.
    pub cost: Cost,
}

/// Compacts a graph until nothing is due.
///
/// # Errors
/// [`EngineError::Invalid`] if the budget is too small; [`EngineError::Conflict`] if a vacuum took it for dead; the
/// store's. What was published until then stays.
pub fn compact<'a>(
    store: &'a Store,
    settings: &'a CompactionSettings,
    context: &'a QueryContext,
) -> BoxFuture<'a, Result<Compacted, EngineError>> {
    Box::pin(async move { compact_until(store, settings, std::future::pending(), context).await })
}

/// As [`compact`], but breaks off when `stop` is ready: then it takes its name out, and what it was writing is garbage
/// that a vacuum removes.
///
/// # Errors
/// As [`compact`].
pub async fn compact_until(
    store: &Store,
    settings: &CompactionSettings,
    stop: impl Future<Output = ()>,
    context: &QueryContext,
) -> Result<Compacted, EngineError> {
    let memory = settings.memory_bytes;
    if memory < MEMORY_BYTES_MIN {
        let why = format!("compaction needs at least {MEMORY_BYTES_MIN} bytes of memory, not {memory}");
        return Err(EngineError::Invalid(why));
    }
    let reader = Reader::new(store.metered_by(context), ReadPool::new(read_settings(settings))?);
    let mut run = Run {
        reader,
        memory,
        settings: *settings,
        writer: None,
        unhinted: None,
        number: 0,
        compacted: Compacted::default(),
    };
    context.give_time(settings.timeout_ms);
    let mut branch = context.branch();
    let outcome = tokio::select! {
        biased;
        outcome = run.all(&mut branch) => outcome,
        () = stop => Ok(()),
    };
    context.give_time(settings.timeout_ms.map(|_| WITHDRAWAL_TIMEOUT_MS));
    if let Some(writer) = &run.writer {
        let withdrawn = lease::withdraw(&run.reader, writer, &mut branch).await;
        // The first failure is the one to report.
        outcome?;
        run.compacted.version = withdrawn?.unwrap_or(run.compacted.version);
    } else {
        outcome?;
    }
    if run.unhinted.is_some() {
        run.hint_newest().await;
        branch.then(1);
    }
    Ok(Compacted { cost: run.compacted.cost + context.cost(), ..run.compacted })
}

/// Whether [`compact`] would merge something of a version. No request, if its indexes are in memory.
///
/// # Errors
/// The store's.
pub fn is_due<'a>(
    snapshot: &'a Snapshot,
    settings: &'a CompactionSettings,
    branch: &'a mut Branch,
) -> BoxFuture<'a, Result<bool, EngineError>> {
    Box::pin(async move { Ok(!Sizes::of(snapshot, branch).await?.due(settings).is_empty()) })
}

/// The sorted runs of each label and edge type of a version. No request, if its indexes are in memory.
///
/// # Errors
/// The store's.
pub fn runs<'a>(
    snapshot: &'a Snapshot,
    settings: &'a CompactionSettings,
    branch: &'a mut Branch,
) -> BoxFuture<'a, Result<Vec<RunsOf>, EngineError>> {
    Box::pin(async move { Ok(Sizes::of(snapshot, branch).await?.summary(settings)) })
}

/// A compaction under way.
struct Run {
    reader: Reader,
    memory: u64,
    settings: CompactionSettings,
    /// Its name, once it has announced itself.
    writer: Option<String>,
    /// The last version that it published, until the hint says so.
    unhinted: Option<Manifest>,
    /// Of the next object.
    number: u32,
    compacted: Compacted,
}

impl Run {
    async fn all(&mut self, branch: &mut Branch) -> Result<(), EngineError> {
        // Indexes come with what else is read of small objects.
        let settings = OpenSettings { index_bytes_max: 0, filter_bytes_max: 0, ..OpenSettings::default() };
        let opened = Snapshot::open(self.reader.clone(), &settings).await?;
        self.compacted.cost = opened.open_cost();
        let mut snapshot = Arc::new(opened);
        loop {
            self.compacted.version = snapshot.manifest().version;
            inputs::take_small(&snapshot, self.memory / 8, branch).await?;
            let mut sizes = Sizes::of(&snapshot, branch).await?;
            let due = sizes.due(&self.settings);
            if due.is_empty() {
                return Ok(());
            }
            let mut newest = self.announce(snapshot.manifest(), branch).await?;
            for group in groups(due, self.memory / 8) {
                let (met, published) = self.one_group(&snapshot, newest, group, &mut sizes, branch).await?;
                newest = met;
                if !published {
                    // The newest version does not have its runs, as after a restore: the due merges are planned again.
                    break;
                }
            }
            if self.writer.is_none() {
                return Ok(());
            }
            let advanced = snapshot.clone();
            let advanced = advanced.at(newest, branch);
            snapshot = join(self.hint_newest(), advanced).await.1?;
        }
    }

    /// Announces itself, once. Returns the newest version that it knows.
    async fn announce(&mut self, newest: &Manifest, branch: &mut Branch) -> Result<Manifest, EngineError> {
        if self.writer.is_some() {
            return Ok(newest.clone());
        }
        // From now on it may have been announced, and is taken out if this breaks off.
        let writer = self.writer.insert(self.reader.store().clock().ulid());
        let known = Some(newest.clone());
        let announced = lease::announce(&self.reader, ChangeKind::Compaction, writer, known, branch).await?;
        self.unhinted = Some(announced.clone());
        Ok(announced)
    }

    /// Lets readers know of what it published last, while other requests are in flight.
    async fn hint_newest(&mut self) {
        if let Some(manifest) = self.unhinted.take() {
            hint(self.reader.store(), &manifest).await;
        }
    }

    /// Does some merges, and publishes what they became, unless the newest version has none of their runs any more. Returns the
    /// newest version that it knows then, and whether it published.
    async fn one_group(
        &mut self,
        snapshot: &Arc<Snapshot>,
        newest: Manifest,
        group: Vec<Merge>,
        sizes: &mut Sizes,
        branch: &mut Branch,
    ) -> Result<(Manifest, bool), EngineError> {
        let writer = self.writer.clone().unwrap_or_default();
        let base = snapshot.manifest().version;
        let segments = self.settings.segments;
        let run = RunWriter::new(self.reader.store(), &writer, base, self.number, self.memory, segments)?;
        let memory = self.memory;
        let merged = join(self.hint_newest(), merge_group(snapshot, group, run, memory, branch)).await.1;
        let (run, merges) = merged?;
        self.number += run.objects.len() as u32;
        merges.iter().for_each(|(merge, merged)| sizes.replace(merge, merged.size));
        // With the last of it, its name goes.
        let last = sizes.due(&self.settings).is_empty();
        let mut met = newest.clone();
        let published = amend_on(&self.reader, Some(newest), branch, |newest| {
            lease::check(newest, &writer)?;
            met.clone_from(newest);
            let there = merges.iter().filter(|(merge, merged)| merge.is_in(newest, &merged.inputs));
            let there: Vec<_> = there.map(|(merge, merged)| (merge, merged)).collect();
            if there.is_empty() {
                return Ok(None);
            }
            let merges: Vec<_> = there.iter().map(|(merge, _)| *merge).collect();
            let change = change(self.reader.store(), ChangeKind::Compaction, message(&merges, newest));
            let mut next = replaced(newest, &there, &run, change, self.reader.store().clock().unix_ms());
            if last {
                next.leases.retain(|lease| lease.writer != writer);
            }
            Ok(Some(next))
        });
        let Some(manifest) = published.await? else {
            // What stays of it is garbage that a vacuum knows once this writer is done.
            self.reader.store().delete(&run.objects).await?;
            return Ok((met, false));
        };
        let done = |(merge, _): &&(Merge, Merged)| runs_of(&manifest, merge.owner).contains(&merge.versions());
        for (merge, _) in merges.iter().filter(done) {
            self.compacted.merges += 1;
            self.compacted.runs += merge.runs.len() as u64;
            self.compacted.bytes_read += merge.bytes;
        }
        self.compacted.bytes_written += run.bytes;
        self.compacted.version = manifest.version;
        if last {
            self.writer = None;
        }
        self.unhinted = Some(manifest.clone());
        Ok((manifest, true))
    }
}

/// Reads what some merges need, and writes what they become.
async fn merge_group(
    snapshot: &Arc<Snapshot>,
    group: Vec<Merge>,
    mut run: RunWriter,
    memory: u64,
    branch: &mut Branch,
) -> Result<(WrittenRun, Vec<(Merge, Merged)>), EngineError> {
    let within =
        |merge: &Merge, owner: Owner, versions: VersionRange| owner == merge.owner && merge.runs.contains(&versions);
    let any = |owner, versions| group.iter().any(|merge| within(merge, owner, versions));
    let all = Arc::new(snapshot.only(any)?);
    let mut merging = Merging { inputs: all.clone(), memory, branch };
    inputs::fetch(&mut merging, memory / 8).await?;
    let mut done = Vec::with_capacity(group.len());
    for merge in group {
        merging.inputs = Arc::new(all.only(|owner, versions| within(&merge, owner, versions))?);
        run.begin(merge.versions());
        let mut merged = match merge.owner {
            Owner::Label(label) => rows::merge_label(&mut merging, label, &merge, &mut run).await?,
            Owner::EdgeType(edge_type) => lists::merge_edges(&mut merging, edge_type, &merge, &mut run).await?,
            Owner::Index(index) => values::merge_index(&mut merging, index, &merge, &mut run).await?,
        };
        merged.size = run.end();
        merged.inputs = merging.inputs.manifest().objects().into_keys().map(str::to_owned).collect();
        done.push((merge, merged));
        // Decoding takes no wait: others have their turn.
        tokio::task::yield_now().await;
    }
    Ok((run.finish(&mut merging).await?, done))
}

/// The next version, with what some runs became in their place.
fn replaced(
    newest: &Manifest,
    merges: &[(&Merge, &Merged)],
    run: &WrittenRun,
    change: Change,
    now_unix_ms: u64,
) -> Manifest {
    let mut next = newest.next(change, now_unix_ms);
    let goes = |owner: Owner, versions: VersionRange| {
        merges.iter().any(|(merge, _)| owner == merge.owner && merge.runs.contains(&versions))
    };
    for section in next.segments.iter_mut().flat_map(|segment| &mut segment.sections) {
        let kind = section.kind;
        section.versions = section.versions.filter(|versions| !goes(Owner::of_section(kind), *versions));
    }
    next.tables.retain(|table| !goes(Owner::of_table(table.owner), table.versions));
    // Of merges that came too late the run has sections and tables that nobody names.
    let comes = |owner: Owner| merges.iter().any(|(merge, _)| owner == merge.owner);
    next.segments.extend(run.segments.iter().cloned().map(|mut segment| {
        for section in &mut segment.sections {
            section.versions = section.versions.filter(|_| comes(Owner::of_section(section.kind)));
        }
        segment
    }));
    next.segments.retain(|segment| segment.sections.iter().any(|section| section.versions.is_some()));
    next.tables.extend(run.tables.iter().filter(|table| comes(Owner::of_table(table.owner))).cloned());
    for (merge, merged) in merges {
        let Owner::EdgeType(edge_type) = merge.owner else { continue };
        let at = usize::from(edge_type.0);
        if let Some(count) = next.edge_counts.get_mut(at) {
            *count = count.saturating_sub(merge.edges) + merged.size.edges;
        }
        if let (Some(degrees), Some(found)) = (next.degrees.get_mut(at), &merged.degrees) {
            degrees.clone_from(found);
        }
    }
    next
}
