//! The past versions of a graph, read once: the objects that they name, and whether those that stay are intact.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use futures::{FutureExt, StreamExt, TryStreamExt, stream};
use hoplake_format::{Change, ChangeKind, Manifest, VersionRange};
use hoplake_storage::{Branch, ObjectInfo, Reader, Store};

use super::PARALLEL;
use crate::{EngineError, versions};

/// The fields of a manifest that a vacuum needs.
#[derive(Debug)]
struct Version {
    created_unix_ms: u64,
    kind: ChangeKind,
    writer: String,
    /// Objects and their lengths.
    objects: Vec<(String, u64)>,
}

impl Version {
    fn of(manifest: &Manifest) -> Self {
        let objects = manifest.objects().into_iter().map(|(name, length)| (name.to_owned(), length)).collect();
        let Change { kind, writer, .. } = &manifest.change;
        Self { created_unix_ms: manifest.created_unix_ms, kind: *kind, writer: writer.clone(), objects }
    }
}

/// Past versions, or why they cannot be read.
#[derive(Debug, Default)]
pub(super) struct Past(BTreeMap<u64, Result<Version, String>>);

impl Past {
    /// The versions in the history of the newest one.
    pub(super) async fn read(reader: &Reader, newest: &Manifest, branch: &mut Branch) -> Result<Self, EngineError> {
        let mut past = Self::default();
        past.read_more(reader, newest, branch).await?;
        Ok(past)
    }

    /// Those in the history of a newer version that were not read.
    pub(super) async fn read_more(
        &mut self,
        reader: &Reader,
        newest: &Manifest,
        branch: &mut Branch,
    ) -> Result<(), EngineError> {
        let mut unread = versions::past(reader, newest).await?;
        unread.retain(|version| !self.0.contains_key(version));
        let read = |(version, mut fork)| {
            async move {
                match versions::read(reader, version, &mut fork).await {
                    Ok(manifest) => Ok((version, Ok(Version::of(&manifest)), fork)),
                    // Kept, not returned: a damaged version stops the vacuum only if it is to stay.
                    Err(error) if error.is_damage() || matches!(error, EngineError::NoVersion(_)) => {
                        Ok((version, Err(error.to_string()), fork))
                    }
                    Err(error) => Err(error),
                }
            }
            .boxed()
        };
        let reads: Vec<_> = unread.into_iter().map(|version| read((version, branch.clone()))).collect();
        let mut reads = stream::iter(reads).buffer_unordered(PARALLEL);
        while let Some((version, manifest, fork)) = reads.try_next().await? {
            branch.join([&fork]);
            self.0.insert(version, manifest);
        }
        Ok(())
    }

    /// Whether it is known of all of them what they name.
    pub(super) fn is_readable(&self) -> bool {
        self.0.values().all(Result::is_ok)
    }

    /// The writer of a version.
    pub(super) fn writer(&self, version: u64) -> Option<&str> {
        let version = self.0.get(&version)?.as_ref().ok()?;
        Some(&version.writer)
    }

    /// The version that was the newest at a time; 0, if none was. Times never go back from one version to the next.
    pub(super) fn newest_at(&self, newest: &Manifest, unix_ms: u64) -> u64 {
        if newest.created_unix_ms <= unix_ms {
            return newest.version;
        }
        let then = |version: &Result<Version, String>| {
            version.as_ref().is_ok_and(|version| version.created_unix_ms <= unix_ms)
        };
        // The time of an unreadable version is unknown. The readable one before it is taken, so more stays rather than less.
        self.0.iter().rev().find(|(_, version)| then(version)).map_or(0, |(number, _)| *number)
    }

    /// Whether the decision needs a new version: not if it only deletes one without content of its own, such as the one
    /// that the last vacuum published, and has no object to itself.
    pub(super) fn is_worth_a_version(&self, newest: &Manifest, stays: &[VersionRange]) -> bool {
        let is_in = |ranges: &[VersionRange], version| ranges.iter().any(|range| range.contains(version));
        let past = newest.history.iter().flat_map(|range| range.since..=range.until);
        let mut going = past.filter(|version| !is_in(stays, *version));
        let Some(first) = going.next() else { return false };
        let alone = going.next().is_none();
        let Some(Ok(fence)) = self.0.get(&first).filter(|_| alone) else { return true };
        let staying = self.0.iter().filter(|(version, _)| is_in(stays, **version));
        let staying = staying.filter_map(|(_, version)| version.as_ref().ok()).flat_map(|version| &version.objects);
        // A fence that alone names an object, such as one that a compaction replaced, holds space: then the version pays off.
        let named: HashSet<_> = newest.objects().into_keys().chain(staying.map(|(name, _)| name.as_str())).collect();
        fence.kind != ChangeKind::Fence || fence.objects.iter().any(|(name, _)| !named.contains(name.as_str()))
    }

    /// All objects that a version names or one that can be opened when it is the newest.
    pub(super) fn named<'a>(&'a self, newest: &'a Manifest) -> HashSet<&'a str> {
        let past = self.0.iter().filter(|(version, _)| newest.has_version(**version));
        let past = past.filter_map(|(_, version)| version.as_ref().ok());
        let past = past.flat_map(|version| version.objects.iter().map(|(name, _)| name.as_str()));
        newest.objects().into_keys().chain(past).collect()
    }

    /// The damaged or missing objects of the newest version, and of past ones that stay.
    pub(super) async fn damages(
        &self,
        store: &Store,
        newest: &Manifest,
        stays: &[VersionRange],
        listed: &[ObjectInfo],
    ) -> Result<Vec<String>, EngineError> {
        let there: HashMap<_, _> = listed.iter().map(|object| (object.name.as_str(), object.bytes)).collect();
        let current = Version::of(newest);
        let mut damages = Vec::new();
        let mut unseen: BTreeMap<(&str, u64), u64> = BTreeMap::new();
        let past: BTreeSet<u64> = stays.iter().flat_map(|range| range.since..=range.until).collect();
        let past = self
            .0
            .iter()
            .filter(|(version, _)| past.contains(version))
            .map(|(number, version)| (*number, version.as_ref()));
        for (number, version) in past.chain([(newest.version, Ok(&current))]) {
            match version {
                Err(why) => damages.push(format!("version {number}: {why}")),
                Ok(version) => {
                    // An object may continue after the bytes that a version names, with bytes that only others name.
                    let whole =
                        |(name, length): &&(String, u64)| there.get(name.as_str()).is_some_and(|found| found >= length);
                    let absent = version.objects.iter().filter(|it| !whole(it));
                    unseen.extend(absent.map(|(name, length)| ((name.as_str(), *length), number)));
                }
            }
        }
        // A listing does not show objects of another prefix, which a clone names, and may lag.
        let look = |((name, length), version): ((&str, u64), u64)| {
            let name = name.to_owned();
            async move { Ok::<_, EngineError>((store.length(&name).await?, name, length, version)) }.boxed()
        };
        let looks: Vec<_> = unseen.into_iter().map(look).collect();
        let mut looks = stream::iter(looks).buffer_unordered(PARALLEL);
        while let Some((found, name, length, version)) = looks.try_next().await? {
            let location = store.location(&name);
            match found {
                Some(found) if found >= length => {}
                Some(found) => damages.push(format!("version {version}: {location} has {found} bytes of {length}")),
                None => damages.push(format!("version {version}: {location} of {length} bytes is missing")),
            }
        }
        damages.sort_unstable();
        Ok(damages)
    }
}
