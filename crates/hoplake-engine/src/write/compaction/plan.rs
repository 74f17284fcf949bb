//! Which runs are merged next.
//!
//! Tiers: a run's tier is the logarithm of its bytes to the base of [`FACTOR`]. Where [`FACTOR`] adjacent runs are of
//! one tier, they become one, which is then of the next tier. A run that is smaller than a newer one goes along with
//! it, so that tiers descend. The oldest run is left alone until the others together have a `FACTOR`th of its bytes. So
//! each byte is rewritten about once for each tier, and a label or an edge type has some three runs in each.

use std::collections::{BTreeMap, BTreeSet};

use hoplake_format::{Direction, Manifest, PropertyIndex, VersionRange, segment::SectionKind};
use hoplake_storage::Branch;

use super::settings::CompactionSettings;
use crate::{EngineError, Snapshot, owner::Owner};

/// How many runs of a tier become one of the next.
const FACTOR: usize = 4;

/// Labels and edge types that a log names.
const NAMES_MAX: usize = 4;

/// Adjacent runs of one owner that are to become one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Merge {
    pub(crate) owner: Owner,
    /// Oldest first.
    pub(crate) runs: Vec<VersionRange>,
    /// Whether none is older: tombstones need not be kept.
    pub(crate) oldest: bool,
    pub(crate) bytes: u64,
    /// Edges in them, those that newer ones remove included.
    pub(crate) edges: u64,
}

/// How large a run is.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Size {
    pub(crate) bytes: u64,
    /// Edges, of an edge type.
    pub(crate) edges: u64,
}

impl Size {
    pub(crate) fn add_section(&mut self, kind: SectionKind, items: u64, bytes: u64) {
        self.bytes += bytes;
        if let SectionKind::Adjacency(_, Direction::Out) = kind {
            self.edges += items;
        }
    }
}

impl Merge {
    /// The versions that what they become stands for.
    pub(crate) fn versions(&self) -> VersionRange {
        let since = self.runs.first().map_or(1, |run| run.since);
        VersionRange { since, until: self.runs.last().map_or(since, |run| run.until) }
    }

    /// Whether the runs are in a version as they were, and its oldest if they were that.
    pub(crate) fn is_in(&self, manifest: &Manifest, objects: &BTreeSet<String>) -> bool {
        let there = runs_of(manifest, self.owner);
        let all = self.runs.iter().all(|run| there.contains(run));
        let bounds = self.versions();
        let between = there.iter().filter(|run| run.since <= bounds.until && run.until >= bounds.since).count();
        // A merge of the oldest runs drops their tombstones. If a restore has brought back an older run since, items that these
        // tombstones delete would reappear.
        let oldest = there.first() == self.runs.first();
        let named = manifest.objects();
        all && between == self.runs.len()
            && oldest == self.oldest
            && objects.iter().all(|object| named.contains_key(object.as_str()))
    }

    /// What it is of, by name.
    pub(crate) fn name(&self, manifest: &Manifest) -> String {
        let name = match self.owner {
            Owner::Label(label) => manifest.schema.label(label).map(|label| label.name.clone()),
            Owner::EdgeType(edge_type) => manifest.schema.edge_type(edge_type).map(|edge| edge.label.clone()),
            Owner::Index(index) => manifest.index(index).and_then(|index| {
                let label = manifest.schema.label(index.label)?;
                Some(format!("index {}.{}", label.name, index.property))
            }),
        };
        name.unwrap_or_default()
    }
}

/// Cuts what is due into groups that are read together, as many at a time as `bytes_max` holds; what is larger is by itself.
pub(crate) fn groups(due: Vec<Merge>, bytes_max: u64) -> Vec<Vec<Merge>> {
    let mut groups: Vec<Vec<Merge>> = Vec::new();
    let mut bytes = 0;
    for merge in due {
        match groups.last_mut().filter(|_| bytes + merge.bytes <= bytes_max) {
            Some(group) => {
                bytes += merge.bytes;
                group.push(merge);
            }
            None => {
                bytes = merge.bytes;
                groups.push(vec![merge]);
            }
        }
    }
    groups
}

/// What a log says of some merges.
pub(crate) fn message(merges: &[&Merge], manifest: &Manifest) -> String {
    let runs: usize = merges.iter().map(|merge| merge.runs.len()).sum();
    let since = merges.iter().map(|merge| merge.versions().since).min().unwrap_or(1);
    let until = merges.iter().map(|merge| merge.versions().until).max().unwrap_or(since);
    let mut names: Vec<String> = merges.iter().take(NAMES_MAX).map(|merge| merge.name(manifest)).collect();
    names.dedup();
    let more = match merges.len().saturating_sub(NAMES_MAX) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{runs} sorted runs of {}{more}, of versions {since} to {until}", names.join(", "))
}

/// Whether a run of an owner has changes of a version and of later ones: it does not say which are which, nor, if none is
/// older, what was deleted.
pub(crate) fn spans(manifest: &Manifest, owner: Owner, version: u64) -> bool {
    runs_of(manifest, owner).iter().any(|run| run.since <= version && run.until > version)
}

/// The runs of an owner, oldest first.
pub(super) fn runs_of(manifest: &Manifest, owner: Owner) -> BTreeSet<VersionRange> {
    let sections = manifest.segments.iter().flat_map(|segment| &segment.sections);
    let sections = sections.filter(|section| Owner::of_section(section.kind) == owner);
    let tables = manifest.tables.iter().filter(|table| Owner::of_table(table.owner) == owner);
    sections.filter_map(|section| section.versions).chain(tables.map(|table| table.versions)).collect()
}

/// How large the runs of each owner are.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sizes(BTreeMap<Owner, BTreeMap<VersionRange, Size>>);

impl Sizes {
    /// Those of a version. No request, if its indexes are in memory.
    pub(crate) async fn of(snapshot: &Snapshot, branch: &mut Branch) -> Result<Self, EngineError> {
        let mut owners: BTreeMap<Owner, BTreeMap<VersionRange, Size>> = BTreeMap::new();
        // The oldest run of an index that is being built is not there yet: what the others say went would be forgotten.
        let waits = |owner| matches!(owner, Owner::Index(id) if !snapshot.manifest().index(id).is_some_and(PropertyIndex::is_ready));
        for (versions, section) in snapshot.section_roots(branch).await? {
            if waits(Owner::of_section(section.kind)) {
                continue;
            }
            let size = owners.entry(Owner::of_section(section.kind)).or_default().entry(versions).or_default();
            let blocks = section.blocks();
            size.add_section(section.kind, section.items, blocks.end - blocks.start);
        }
        for table in &snapshot.manifest().tables {
            let size = owners.entry(Owner::of_table(table.owner)).or_default().entry(table.versions).or_default();
            size.bytes += table.length;
        }
        Ok(Self(owners))
    }

    /// What is to be merged now, or with `everything` all that is in more than one run or has tombstones.
    pub(crate) fn due(&self, settings: &CompactionSettings) -> Vec<Merge> {
        let merge = |(owner, runs): (&Owner, &BTreeMap<VersionRange, Size>)| {
            let runs: Vec<_> = runs.iter().collect();
            let bytes: Vec<_> = runs.iter().map(|(_, size)| size.bytes).collect();
            let all = || (runs.len() > 1).then_some(0..runs.len());
            let chosen = if settings.everything { all() } else { due(&bytes, settings.lowest_tier_bytes) }?;
            let merged = &runs[chosen.clone()];
            Some(Merge {
                owner: *owner,
                runs: merged.iter().map(|(versions, _)| **versions).collect(),
                oldest: chosen.start == 0,
                bytes: merged.iter().map(|(_, size)| size.bytes).sum(),
                edges: merged.iter().map(|(_, size)| size.edges).sum(),
            })
        };
        self.0.iter().filter_map(merge).collect()
    }

    /// Puts what some runs became in their place.
    pub(crate) fn replace(&mut self, merge: &Merge, by: Size) {
        let runs = self.0.entry(merge.owner).or_default();
        runs.retain(|versions, _| !merge.runs.contains(versions));
        if by.bytes > 0 {
            runs.insert(merge.versions(), by);
        }
    }
}

/// The sorted runs of a label, an edge type or a property index. A look-up or a hop reads each of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunsOf {
    /// Whose they are.
    pub owner: Owner,
    /// How many.
    pub runs: usize,
    /// Bytes of all of them.
    pub bytes: u64,
    /// Bytes of all but the oldest: what commits and merges of them have written.
    pub delta_bytes: u64,
    /// Whether a compaction with the settings asked for would merge some of them.
    pub due: bool,
}

impl Sizes {
    /// The runs of each owner, labels first.
    pub(crate) fn summary(&self, settings: &CompactionSettings) -> Vec<RunsOf> {
        let due: BTreeSet<Owner> = self.due(settings).iter().map(|merge| merge.owner).collect();
        let runs_of = |(owner, runs): (&Owner, &BTreeMap<VersionRange, Size>)| RunsOf {
            owner: *owner,
            runs: runs.len(),
            bytes: runs.values().map(|size| size.bytes).sum(),
            delta_bytes: runs.values().skip(1).map(|size| size.bytes).sum(),
            due: due.contains(owner),
        };
        self.0.iter().map(runs_of).collect()
    }
}

/// Which of some runs, given by their bytes from the oldest on, become one.
fn due(bytes: &[u64], lowest_bytes: u64) -> Option<std::ops::Range<usize>> {
    let (oldest, newer) = bytes.split_first()?;
    if !newer.is_empty() && newer.iter().sum::<u64>() >= oldest / FACTOR as u64 && *oldest > lowest_bytes {
        return Some(0..bytes.len());
    }
    let tiers: Vec<_> = bytes.iter().map(|bytes| bytes.max(&lowest_bytes).ilog(FACTOR as u64)).collect();
    // Tiers descend from the oldest to the newest, or what is too small for its place goes along with the next.
    if let Some(newer) = (1..tiers.len()).find(|newer| tiers[newer - 1] < tiers[*newer]) {
        let smaller = tiers[..newer].iter().rev().take_while(|tier| **tier < tiers[newer]).count();
        return Some(newer - smaller..newer + 1);
    }
    let mut end = tiers.len();
    // The newest tier first: its runs are the smallest, and so is the work.
    let mut runs = tiers.chunk_by(|a, b| a == b).rev().map(|run| {
        end -= run.len();
        end..end + run.len()
    });
    runs.find(|run| run.len() >= FACTOR)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const KIB: u64 = 1 << 10;
    const LOWEST: u64 = 64 * KIB;

    #[test]
    fn adjacent_runs_of_a_tier_become_one() {
        assert_eq!(due(&[], LOWEST), None);
        assert_eq!(due(&[1], LOWEST), None);
        assert_eq!(due(&[1, 1, 1], LOWEST), None);
        assert_eq!(due(&[1, 1, 1, 1], LOWEST), Some(0..4));
        let large = 100_000 * KIB;
        assert_eq!(due(&[large, 1, 2, 3], LOWEST), None);
        assert_eq!(due(&[large, 1, 2, 3, 4], LOWEST), Some(1..5));
        // Three are not enough; what is smaller than a newer one goes along with it.
        assert_eq!(due(&[large, 300 * KIB, 300 * KIB, 300 * KIB, 1, 1], LOWEST), None);
        assert_eq!(due(&[large, 300 * KIB, 1, 2, 300 * KIB, 300 * KIB], LOWEST), Some(2..5));
    }

    #[test]
    fn the_oldest_waits_until_the_others_weigh_a_quarter_of_it() {
        assert_eq!(due(&[4_000 * KIB, 999 * KIB], LOWEST), None);
        assert_eq!(due(&[4_000 * KIB, 1_000 * KIB], LOWEST), Some(0..2));
    }

    proptest! {
        /// However commits come, merging what is due ends, and few runs are left.
        #[test]
        fn few_runs_are_left(sizes in proptest::collection::vec(1u64..5_000_000, 1..400)) {
            let mut runs: Vec<u64> = Vec::new();
            let mut written = 0;
            let mut committed = 0;
            for size in sizes {
                runs.push(size);
                committed += size.max(LOWEST);
                while let Some(run) = due(&runs, LOWEST) {
                    let merged = runs[run.clone()].iter().sum();
                    written += merged;
                    runs.splice(run, [merged]);
                }
            }
            let tiers = runs.iter().sum::<u64>().max(LOWEST).ilog(4) - LOWEST.ilog(4) + 1;
            prop_assert!(runs.len() <= 4 * tiers as usize, "{runs:?}");
            // Each byte is written again about once a tier, and for the oldest run.
            prop_assert!(written <= committed * (u64::from(tiers) + 6), "{written} of {committed} in {tiers} tiers");
        }
    }
}
