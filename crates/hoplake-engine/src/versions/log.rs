//! Versions listed from the newest back, and found by their time of publication.
//!
//! A manifest lists the older versions that can still be opened, so that no listing is necessary. An entry of the log
//! takes its manifest, and the one before it for what changed; some are read at a time. Times never decrease from
//! version to version, so a time is found by bisection, with as many requests as the number of versions has binary
//! digits.

use std::collections::{BTreeMap, VecDeque};

use futures::future::BoxFuture;
use hoplake_format::{Change, FormatError, Manifest, Slot, WriterLease, constants::manifest_name};
use hoplake_storage::{Branch, Cost, QueryContext, Reader};

use crate::{EngineError, versions};

/// Manifests that are read at a time.
const AHEAD: usize = 16;

/// A version, as an entry of the log.
#[derive(Debug, Clone, PartialEq)]
pub struct LogEntry {
    /// The version.
    pub version: u64,
    /// When it was made, in milliseconds since 1970.
    pub created_unix_ms: u64,
    /// Its change: kind, writer, message and counts.
    pub change: Change,
    /// Up to where sources were read, of those that this version moved.
    pub source_positions: BTreeMap<String, String>,
    /// Its names, as the newest version has them.
    pub tags: Vec<String>,
}

/// The versions of a graph that can be opened, from the newest back.
#[derive(Debug)]
pub struct VersionLog {
    reader: Reader,
    newest: Manifest,
    /// Manifests that were read, newest first, and why others could not be.
    read: VecDeque<Result<Manifest, EngineError>>,
    /// The newest version that was not read; 0 if there is none.
    next: u64,
    branch: Branch,
}

impl VersionLog {
    /// Begins with the newest version.
    ///
    /// # Errors
    /// [`EngineError::NotFound`] if the graph does not exist; the store's.
    pub fn open(reader: Reader) -> BoxFuture<'static, Result<Self, EngineError>> {
        Box::pin(async move {
            let mut branch = QueryContext::new().branch();
            let newest = newest(&reader, &mut branch).await?;
            // From its own slot, too: the hint may be the only copy of its manifest that is left.
            let next = newest.version;
            Ok(Self { reader, newest, read: VecDeque::new(), next, branch })
        })
    }

    /// Writers that take long and are not done.
    pub fn leases(&self) -> &[WriterLease] {
        &self.newest.leases
    }

    /// The next older version; `None` after the oldest. After an error about one version, the next call goes on with the one before it.
    ///
    /// # Errors
    /// The store's; that a manifest is damaged or missing.
    pub fn next<'a>(&'a mut self) -> BoxFuture<'a, Result<Option<LogEntry>, EngineError>> {
        Box::pin(async move {
            // Two manifests: an entry has only the positions that its version moved, compared with the version before.
            while self.read.len() < 2 && self.next > 0 {
                self.read_on().await?;
            }
            let Some(manifest) = self.read.pop_front().transpose()? else { return Ok(None) };
            let before = self.read.front().and_then(|before| Some(&before.as_ref().ok()?.source_positions));
            let mut source_positions = manifest.source_positions;
            source_positions.retain(|name, position| before.and_then(|before| before.get(name)) != Some(position));
            let tags = self.newest.tags.iter().filter(|(_, version)| **version == manifest.version);
            Ok(Some(LogEntry {
                version: manifest.version,
                created_unix_ms: manifest.created_unix_ms,
                change: manifest.change,
                source_positions,
                tags: tags.map(|(name, _)| name.clone()).collect(),
            }))
        })
    }

    /// The cost so far.
    pub fn cost(&self) -> Cost {
        self.branch.context().cost()
    }

    async fn read_on(&mut self) -> Result<(), EngineError> {
        let older: Vec<u64> = self.newest.versions_before(self.next + 1).take(AHEAD).collect();
        self.next = older.last().map_or(0, |last| last - 1);
        let reader = &self.reader;
        let slots = self.branch.each(older, |version, mut line| async move {
            let slot = versions::slot(reader, version, &mut line).await.map_err(EngineError::from);
            match slot {
                Err(error) if !error.is_damage() => Err(error),
                // Of other versions there may be more to say.
                slot => Ok(((version, slot), line)),
            }
        });
        for (version, slot) in slots.await? {
            match slot {
                Ok(Some(Slot::Version(manifest))) => self.read.push_back(Ok(*manifest)),
                // A vacuum has removed it since.
                Ok(Some(Slot::Removed { .. })) => {}
                // A removed version leaves a tombstone.
                Ok(None) => {
                    let why = "it is missing, though the newest version says that it is there".to_owned();
                    let location = self.reader.store().location(&manifest_name(version));
                    self.read.push_back(Err(EngineError::format(location)(FormatError::corrupt("manifest", why))));
                }
                Err(error) => self.read.push_back(Err(error)),
            }
        }
        Ok(())
    }
}

/// The newest version that was made at or before a time, in milliseconds since 1970, of those that can be opened.
///
/// # Errors
/// [`EngineError::NotFound`] if there is no graph, or the oldest version is younger; the store's.
pub fn version_as_of<'a>(
    reader: &'a Reader,
    unix_ms: u64,
    branch: &'a mut Branch,
) -> BoxFuture<'a, Result<u64, EngineError>> {
    Box::pin(async move {
        let newest = newest(reader, branch).await?;
        if newest.created_unix_ms <= unix_ms {
            return Ok(newest.version);
        }
        // Ascending; the newest is too young. All before `low` are old enough, all from `high` on are not.
        let mut versions: Vec<u64> = newest.versions_before(newest.version).collect();
        versions.reverse();
        let mut low = 0;
        let mut high = versions.len();
        while low < high {
            let middle = low + (high - low) / 2;
            match versions::slot(reader, versions[middle], branch).await? {
                Some(Slot::Version(manifest)) if manifest.created_unix_ms <= unix_ms => low = middle + 1,
                Some(Slot::Version(_)) => high = middle,
                // A vacuum removed it since: any other version serves as well.
                _ => {
                    versions.remove(middle);
                    high -= 1;
                }
            }
        }
        let too_young = || {
            let url = reader.store().url();
            EngineError::NoVersion(format!(
                "{url} has no version of that time: the oldest that can be opened is younger"
            ))
        };
        low.checked_sub(1).and_then(|at| versions.get(at)).copied().ok_or_else(too_young)
    })
}

async fn newest(reader: &Reader, branch: &mut Branch) -> Result<Manifest, EngineError> {
    let missing = || EngineError::no_graph(reader.store().url());
    versions::newest(reader, branch).await?.ok_or_else(missing)
}
