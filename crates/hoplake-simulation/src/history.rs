//! The oracle: requests, answers, and the content that each published version must have.
//!
//! It learns from the manifests, at the moment when the store takes one, which batches are in which version: each
//! batch has its number for a message. Everything is held against that.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use futures::FutureExt;
use hoplake::{Batch, ChangeKind, ErrorKind, Manifest, Operation, Store, VertexRef};
use hoplake_feed::{FeedError, Position, state};
use hoplake_format::{
    Slot,
    constants::{manifest_name, manifest_version},
};
use object_store::{ObjectStoreExt, memory::InMemory, path::Path};

use crate::{
    bucket::{Bucket, Stored},
    location::GraphLocation,
    model::{Changed, Model, Pair},
};

/// The outcome of a batch, as far as its caller knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// No answer, or no caller waits for it any more.
    None,
    /// It is in this version.
    Committed(u64),
    /// It is in none.
    Rejected(ErrorKind),
    /// The caller got `Unknown`.
    Unknown,
}

#[derive(Debug)]
struct Submitted {
    batch: Batch,
    /// The version that its caller could see.
    seen: u64,
    answer: Answer,
    published: Option<u64>,
}

/// A version, and what it changed.
#[derive(Debug)]
struct Version {
    model: Arc<Model>,
    changed: Changed,
    manifest: Manifest,
    /// The version that let it go, if a vacuum did.
    gone_by: Option<u64>,
    /// What a feed remembers there: later versions remove these objects.
    remembered: Bucket,
    /// Those of them that its positions name.
    named: BTreeSet<String>,
}

/// All versions and batches of a seed.
#[derive(Debug)]
pub struct History {
    location: GraphLocation,
    versions: BTreeMap<u64, Version>,
    batches: Vec<Submitted>,
    /// Whether a feed writes it: then its content is compared with tables, and not with batches.
    is_fed: bool,
    /// The newest version of which a feed has said that it is there.
    told: u64,
}

impl History {
    /// The history of a graph without a version.
    pub fn of(location: GraphLocation) -> Self {
        Self { location, versions: BTreeMap::new(), batches: Vec::new(), is_fed: false, told: 0 }
    }

    /// From now on a feed writes the graph.
    pub fn is_fed(&mut self) {
        self.is_fed = true;
    }

    /// A feed says that it has committed a version.
    pub fn told(&mut self, version: u64) {
        self.told = self.told.max(version);
    }

    /// What a feed remembers at a version.
    pub fn remembered(&self, version: u64) -> Bucket {
        self.versions.get(&version).map(|version| version.remembered.clone()).unwrap_or_default()
    }

    /// The manifest of a version.
    pub fn manifest(&self, version: u64) -> Option<&Manifest> {
        self.versions.get(&version).map(|version| &version.manifest)
    }

    /// Takes the first version of a clone, which must be one of the graph that it began as.
    pub fn begin_as(&mut self, manifest: Manifest, original: &Self, bucket: &Bucket) -> Result<(), String> {
        let url = self.location.url();
        let version = manifest.version;
        let of = original.location.url();
        let from = original.versions.get(&version).filter(|from| from.gone_by.is_none());
        let from = from.ok_or(format!("{url} begins as version {version} of {of}, which is not there"))?;
        if manifest.change.message != format!("version {version} of {of}") || manifest.reset != version {
            return Err(format!("{url} does not begin as a version of {of}: {:?}", manifest.change));
        }
        if manifest.source_positions != from.manifest.source_positions {
            return Err(format!("{url} does not begin with the source positions of version {version} of {of}"));
        }
        check_objects(self.location, &manifest, bucket)?;
        check_counts(&manifest, &from.model)?;
        self.begin(manifest, Model::clone(&from.model));
        Ok(())
    }

    /// Takes a version that was there before.
    pub fn begin(&mut self, manifest: Manifest, model: Model) {
        let version = Version {
            model: Arc::new(model),
            changed: Changed::default(),
            manifest,
            gone_by: None,
            remembered: Bucket::new(),
            named: BTreeSet::new(),
        };
        self.versions.insert(version.manifest.version, version);
    }

    /// The newest version.
    pub fn newest(&self) -> u64 {
        self.versions.last_key_value().map_or(0, |(version, _)| *version)
    }

    /// The oldest version after another.
    pub fn after(&self, version: u64) -> Option<u64> {
        self.versions.range(version + 1..).next().map(|(version, _)| *version)
    }

    /// All versions that can be opened.
    pub fn versions(&self) -> impl Iterator<Item = u64> {
        self.versions.iter().filter(|(_, version)| version.gone_by.is_none()).map(|(number, _)| *number)
    }

    /// Whether a vacuum let a version go.
    pub fn is_gone(&self, version: u64) -> bool {
        self.versions.get(&version).is_some_and(|version| version.gone_by.is_some())
    }

    /// The content of a version.
    pub fn model(&self, version: u64) -> Option<Arc<Model>> {
        self.versions.get(&version).map(|version| version.model.clone())
    }

    /// How many batches were submitted.
    pub fn batches(&self) -> usize {
        self.batches.len()
    }

    /// The newest acknowledged version.
    pub fn acknowledged(&self) -> u64 {
        let told = |submitted: &Submitted| match submitted.answer {
            Answer::Committed(version) => Some(version),
            _ => None,
        };
        self.batches.iter().filter_map(told).max().unwrap_or(0).max(self.told)
    }

    /// Takes the state after a loss of power: all acknowledged versions, and of the others none without those before
    /// it. What the lost ones decided has not happened.
    pub fn lost_power(&mut self, bucket: &Bucket) -> Result<(), String> {
        let slot = |version: u64| bucket.get(&self.location.in_bucket(&manifest_name(version)));
        let is_intact = |number: u64, version: &Version| match slot(number).map(|stored| Slot::decode(&stored.bytes)) {
            Some(Ok(Slot::Version(manifest))) => {
                let intact = version.gone_by.is_some() || check_objects(self.location, &manifest, bucket).is_ok();
                *manifest == version.manifest && intact
            }
            Some(Ok(Slot::Removed { .. })) => version.gone_by.is_some(),
            _ => false,
        };
        let Some(first) = self.versions.iter().find(|(number, it)| !is_intact(**number, it)).map(|(number, _)| *number)
        else {
            return Ok(());
        };
        let told = self.acknowledged();
        if first <= told {
            return Err(format!("the loss of power removed version {first}, but version {told} was acknowledged"));
        }
        if let Some((later, _)) = self.versions.range(first..).find(|(number, _)| slot(**number).is_some()) {
            return Err(format!("the loss of power spoilt version {first}, and left the manifest of version {later}"));
        }
        self.versions.retain(|number, _| *number < first);
        let live_again = self.versions.values_mut().filter(|it| it.gone_by.is_some_and(|by| by >= first));
        live_again.for_each(|it| it.gone_by = None);
        let undone = self.batches.iter_mut().filter(|it| it.published.is_some_and(|version| version >= first));
        undone.for_each(|it| it.published = None);
        Ok(())
    }

    /// The position of a source in a version.
    pub fn source_position(&self, version: u64, source: &str) -> Option<&str> {
        self.versions.get(&version)?.manifest.source_positions.get(source).map(String::as_str)
    }

    /// Takes a batch whose caller sees a version, and gives it a number for a message.
    pub fn submit(&mut self, batch: &mut Batch, seen: u64) -> usize {
        let number = self.batches.len();
        batch.message = format!("batch {number}");
        self.batches.push(Submitted { batch: batch.clone(), seen, answer: Answer::None, published: None });
        number
    }

    /// Where a batch was published.
    pub fn published_at(&self, number: usize) -> Option<u64> {
        self.batches[number].published
    }

    /// Checks the answer to a batch.
    pub fn answered(&mut self, number: usize, answer: Answer, excuse: bool) -> Result<(), String> {
        let submitted = &mut self.batches[number];
        submitted.answer = answer;
        let published = submitted.published;
        match answer {
            Answer::None => Ok(()),
            Answer::Unknown if excuse => Ok(()),
            Answer::Committed(version) if published == Some(version) => Ok(()),
            Answer::Committed(version) => Err(format!(
                "batch {number} was acknowledged in version {version}, but the store has it in {published:?}"
            )),
            Answer::Rejected(kind) if published.is_some() => {
                Err(format!("batch {number} was rejected as {kind:?}, but the store has it in version {published:?}"))
            }
            Answer::Rejected(ErrorKind::Conflict) => self.check_conflict(number),
            Answer::Rejected(ErrorKind::Invalid) => self.check_invalid(number),
            Answer::Rejected(ErrorKind::Unavailable | ErrorKind::Corrupt | ErrorKind::NotFound) if excuse => Ok(()),
            Answer::Unknown | Answer::Rejected(_) => {
                Err(format!("batch {number} is {answer:?}, and nothing excuses that"))
            }
        }
    }

    /// A rejection for a conflict must have one.
    fn check_conflict(&self, number: usize) -> Result<(), String> {
        let Submitted { batch, .. } = &self.batches[number];
        let Some(base) = batch.base else {
            return Err(format!("batch {number} has no base, but was rejected for a conflict"));
        };
        let touched = touched(batch);
        let mut since = self.versions.range(base + 1..).map(|(_, version)| version);
        let conflicts = since.any(|Version { changed, manifest, .. }| {
            let same = !changed.vertices.is_disjoint(&touched.vertices) || !changed.pairs.is_disjoint(&touched.pairs);
            // A run that a compaction merged from older and newer ones no longer shows which of its items are newer.
            same || matches!(manifest.change.kind, ChangeKind::Restore | ChangeKind::Compaction)
        });
        match conflicts {
            true => Ok(()),
            false => {
                Err(format!("batch {number} was rejected for a conflict, but nothing it touches changed since {base}"))
            }
        }
    }

    /// A rejection as invalid must be right on some version that the caller could mean.
    fn check_invalid(&self, number: usize) -> Result<(), String> {
        let Submitted { batch, seen, .. } = &self.batches[number];
        let mut since = self.versions.range(seen..).map(|(_, version)| &version.model);
        match since.any(|model| model.rejection(batch).is_some()) {
            true => Ok(()),
            false => Err(format!("batch {number} was rejected as invalid, but is allowed since version {seen}")),
        }
    }

    /// Checks a manifest that the store has just created.
    pub fn published(&mut self, manifest: Manifest, bucket: &Bucket) -> Result<(), String> {
        let version = manifest.version;
        let before = self.versions.get(&(version - 1)).ok_or(format!("version {version} follows no version"))?;
        if self.versions.contains_key(&version) {
            return Err(format!("version {version} was published twice"));
        }
        if manifest.created_unix_ms < before.manifest.created_unix_ms {
            return Err(format!("version {version} is older than the one before it"));
        }
        check_objects(self.location, &manifest, bucket)?;
        let mut positions = before.manifest.source_positions.clone();
        let mut model = Model::clone(&before.model);
        let mut changed = Changed::default();
        match manifest.change.kind {
            _ if self.is_fed => positions.clone_from(&manifest.source_positions),
            ChangeKind::Commit => {
                for number in numbers(&manifest.change.message) {
                    self.take_batch(number, version, &mut model, &mut changed)?;
                    positions.extend(self.batches[number].batch.source_positions.clone());
                }
            }
            ChangeKind::Restore => {
                let of = self.restored(&manifest)?;
                model = Model::clone(&of.model);
                positions = of.manifest.source_positions.clone();
            }
            _ => {}
        }
        if manifest.source_positions != positions {
            let found = &manifest.source_positions;
            return Err(format!("version {version} has source positions {found:?} where {positions:?} are due"));
        }
        if !self.is_fed {
            check_counts(&manifest, &model)?;
        }
        self.let_go(&manifest)?;
        let of_feed = |name: &str| self.is_fed && (name.starts_with("feeds/") || name.starts_with("dead-letters/"));
        let remembered = bucket.iter().filter(|(name, _)| of_feed(name));
        let remembered: Bucket = remembered.map(|(name, stored)| (name.clone(), stored.clone())).collect();
        let named = if self.is_fed { named_by_positions(&manifest, &remembered)? } else { BTreeSet::new() };
        let model = Arc::new(model);
        self.versions.insert(version, Version { model, changed, manifest, gone_by: None, remembered, named });
        Ok(())
    }

    /// Applies one of the batches of a version.
    fn take_batch(
        &mut self,
        number: usize,
        version: u64,
        model: &mut Model,
        changed: &mut Changed,
    ) -> Result<(), String> {
        let before = &self.versions[&(version - 1)];
        let submitted = self.batches.get(number).ok_or(format!("there is no batch {number}"))?;
        if let Some(first) = submitted.published {
            return Err(format!("batch {number} is in version {first} and again in {version}"));
        }
        if let Answer::Rejected(kind) = submitted.answer {
            return Err(format!("batch {number} was rejected as {kind:?}, and is now in version {version}"));
        }
        if let Some(why) = before.model.rejection(&submitted.batch) {
            return Err(format!("batch {number} is in version {version}, but is not allowed there: {why}"));
        }
        self.check_base(number, version)?;
        let of_batch = model.apply(&submitted.batch);
        let overlap = changed.vertices.intersection(&of_batch.vertices).next().map(|it| it.to_string());
        // A later batch may write a pair once more, if it replaces whatever there was.
        let replaced = replaced(&submitted.batch);
        let mut both = changed.pairs.intersection(&of_batch.pairs).filter(|pair| !replaced.contains(pair));
        let overlap = overlap.or(both.next().map(|it| format!("{it:?}")));
        if let Some(overlap) = overlap {
            return Err(format!("two batches of version {version} change {overlap}"));
        }
        changed.vertices.extend(of_batch.vertices);
        changed.reborn.extend(of_batch.reborn);
        changed.pairs.extend(of_batch.pairs);
        self.batches[number].published = Some(version);
        Ok(())
    }

    /// The version that a restoration makes the newest again.
    fn restored(&self, manifest: &Manifest) -> Result<&Version, String> {
        let of = manifest.change.message.strip_prefix("version ").and_then(|of| of.parse().ok());
        let of: u64 = of.ok_or(format!("version {} does not say what it restores", manifest.version))?;
        let gone = || format!("version {} restores {of}, which was removed", manifest.version);
        self.versions.get(&of).filter(|version| version.gone_by.is_none()).ok_or_else(gone)
    }

    /// Notes which versions can no longer be opened: only a vacuum removes versions, and none with a tag.
    fn let_go(&mut self, manifest: &Manifest) -> Result<(), String> {
        let version = manifest.version;
        let going = self.versions.iter().filter(|(number, it)| it.gone_by.is_none() && !manifest.has_version(**number));
        let going: Vec<u64> = going.map(|(number, _)| *number).collect();
        for number in &going {
            if manifest.change.kind != ChangeKind::Fence || manifest.change.message != "vacuum" {
                return Err(format!("version {version} is not a vacuum, but removes version {number}"));
            }
            if manifest.tags.values().any(|tagged| tagged == number) {
                return Err(format!("version {version} lets version {number} go, which has a tag"));
            }
            if let Some(it) = self.versions.get_mut(number) {
                it.gone_by = Some(version);
            }
        }
        match manifest.history.iter().flat_map(|range| range.since..=range.until).find(|number| self.is_gone(*number)) {
            Some(number) => Err(format!("version {version} has version {number} in its history, which was removed")),
            None => Ok(()),
        }
    }

    /// Takes a slot that was overwritten.
    pub fn removed(&self, version: u64) -> Result<(), String> {
        match self.versions.get(&version) {
            Some(it) if it.gone_by.is_some() => Ok(()),
            // A clone takes the first slot before all others.
            None if version == 1 && self.versions.is_empty() => Ok(()),
            _ => Err(format!("the manifest of version {version} was overwritten, but no vacuum removed that version")),
        }
    }

    /// A batch with a base must not be published over changes of the same items since.
    fn check_base(&self, number: usize, version: u64) -> Result<(), String> {
        let batch = &self.batches[number].batch;
        let Some(base) = batch.base else { return Ok(()) };
        let Version { model: before, manifest, .. } = &self.versions[&(version - 1)];
        if base < manifest.reset {
            let reset = manifest.reset;
            return Err(format!("batch {number} on version {base} is in version {version}, but {reset} replaced that"));
        }
        let missed = |what: String, at: u64| {
            Err(format!("batch {number} on version {base} is in version {version}, but {what} changed in version {at}"))
        };
        let mut reborn = BTreeSet::new();
        // An item that was added and deleted since counts as unchanged, and after a compaction this cannot be
        // distinguished.
        let none = |vertex: &VertexRef| {
            let then = self.versions.get(&base).is_some_and(|then| then.model.vertices.contains_key(vertex));
            !then && !before.vertices.contains_key(vertex)
        };
        let no_edge = |pair: &Pair| {
            let then = self.versions.get(&base).is_some_and(|then| then.model.edges.contains_key(pair));
            !then && !before.edges.contains_key(pair)
        };
        for (at, Version { changed, .. }) in self.versions.range(base + 1..version).rev() {
            for operation in &batch.operations {
                match operation {
                    Operation::UpsertVertex { vertex, .. } if changed.vertices.contains(vertex) && !none(vertex) => {
                        return missed(format!("vertex {vertex}"), *at);
                    }
                    Operation::DeleteVertex { vertex }
                        if changed.vertices.contains(vertex) && before.vertices.contains_key(vertex) =>
                    {
                        return missed(format!("vertex {vertex}"), *at);
                    }
                    Operation::UpsertEdge { label, source, target, .. }
                    | Operation::DeleteEdge { label, source, target, .. } => {
                        let pair = (label.clone(), source.clone(), target.clone());
                        let there = |end| before.vertices.contains_key(end) && !reborn.contains(end);
                        if changed.pairs.contains(&pair) && !no_edge(&pair) && there(source) && there(target) {
                            return missed(format!("edge {label} from {source} to {target}"), *at);
                        }
                    }
                    _ => {}
                }
            }
            // A vertex that returned is another one: it does not get the edges of the one before.
            reborn.extend(changed.reborn.clone());
        }
        Ok(())
    }

    /// An object of the bucket that goes must be named by no version that can be opened.
    pub fn deleted(&self, name: &str) -> Result<(), String> {
        let (location, below) = GraphLocation::of(name);
        if let Some(version) = manifest_version(below).filter(|_| location == self.location) {
            return self.removed(version);
        }
        let newest = self.versions.last_key_value().filter(|(_, newest)| newest.named.contains(name));
        if let Some((version, _)) = newest {
            return Err(format!("{name} was deleted, and the position of version {version}, the newest, names it"));
        }
        let from_here = if location == self.location { below.to_owned() } else { format!("/{name}") };
        let mut live = self.versions.iter().filter(|(_, version)| version.gone_by.is_none());
        match live.find(|(_, version)| version.manifest.objects().contains_key(from_here.as_str())) {
            Some((version, _)) => {
                Err(format!("{name} was deleted, and version {version} of {} names it", self.location.url()))
            }
            None => Ok(()),
        }
    }
}

/// The numbers of the batches in a version's message.
fn numbers(message: &str) -> Vec<usize> {
    message.split("; ").filter_map(|part| part.strip_prefix("batch ")?.parse().ok()).collect()
}

/// The pairs whose edges are the same after a batch, whatever there was before.
fn replaced(batch: &Batch) -> BTreeSet<Pair> {
    // With a base it is about what there was then.
    let operations = batch.operations.iter().filter(|_| batch.base.is_none());
    let replaced = operations.filter_map(|operation| match operation {
        Operation::UpsertEdge { label, source, target, key: None, replace: true, .. }
        | Operation::DeleteEdge { label, source, target, key: None } => {
            Some((label.clone(), source.clone(), target.clone()))
        }
        _ => None,
    });
    replaced.collect()
}

/// The items that a batch may change.
fn touched(batch: &Batch) -> Changed {
    let mut touched = Changed::default();
    for operation in &batch.operations {
        match operation {
            Operation::UpsertVertex { vertex, .. } | Operation::DeleteVertex { vertex } => {
                touched.vertices.insert(vertex.clone());
            }
            Operation::UpsertEdge { label, source, target, .. }
            | Operation::DeleteEdge { label, source, target, .. } => {
                touched.pairs.insert((label.clone(), source.clone(), target.clone()));
                if batch.create_missing {
                    touched.vertices.extend([source.clone(), target.clone()]);
                }
            }
            // Histories keep batches as single operations, and have no edges by number.
            Operation::EditEdge { .. } | Operation::UpsertColumns(_) => {}
        }
    }
    touched
}

/// Everything that a version names must be there when it appears.
fn check_objects(location: GraphLocation, manifest: &Manifest, bucket: &Bucket) -> Result<(), String> {
    let version = manifest.version;
    for (name, length) in manifest.objects() {
        match bucket.get(&location.in_bucket(name)) {
            None => return Err(format!("version {version} was published, but its object {name} is not there")),
            // An object may continue after the named bytes, with bytes that no version names any more.
            Some(stored) if (stored.bytes.len() as u64) < length => {
                let found = stored.bytes.len();
                return Err(format!("version {version} claims that {name} has {length} bytes, but it has {found}"));
            }
            Some(_) => {}
        }
    }
    Ok(())
}

/// The objects of feeds that the positions of a version name, which must be there when it appears.
fn named_by_positions(manifest: &Manifest, remembered: &Bucket) -> Result<BTreeSet<String>, String> {
    let version = manifest.version;
    let lost = |what: &str| format!("version {version} was published, but {what}");
    let mut named = BTreeSet::new();
    for (source, position) in &manifest.source_positions {
        let position = Position::parse(position).map_err(|error| lost(&error.to_string()))?;
        let Some(id) = position.state else { continue };
        let mut state = remembered.iter().filter(|(name, _)| name.starts_with(&format!("feeds/{source}/{id}.")));
        let (name, stored) = state.next().ok_or_else(|| lost(&format!("the state {id} of {source} is not there")))?;
        let letters = letters_of(source, &id, name, stored).map_err(|error| lost(&error.to_string()))?;
        named.insert(name.clone());
        for id in letters {
            let name = format!("dead-letters/{source}/{id}.parquet");
            if !remembered.contains_key(&name) {
                return Err(lost(&format!("its object {name} is not there")));
            }
            named.insert(name);
        }
    }
    Ok(named)
}

/// The letters that a state lists.
fn letters_of(source: &str, id: &str, name: &str, stored: &Stored) -> Result<Vec<String>, FeedError> {
    let objects = InMemory::new();
    let path = Path::from(name);
    let put = objects.put(&path, stored.bytes.clone().into()).now_or_never();
    put.expect("memory answers at once").expect("memory takes all");
    let store = Store::new(Arc::new(objects), Path::default(), "memory://remembered");
    let state = state::read(&store, source, id).now_or_never().expect("memory answers at once")?;
    Ok(state.into_iter().flat_map(|state| state.letters).map(|(id, _)| id).collect())
}

/// Counts of vertices are exact.
fn check_counts(manifest: &Manifest, model: &Model) -> Result<(), String> {
    for (label, count) in manifest.schema.vertex_labels.iter().zip(&manifest.vertex_counts) {
        let due = model.vertices.keys().filter(|end| end.label == label.name).count() as u64;
        if count.live() != due {
            let version = manifest.version;
            let name = &label.name;
            return Err(format!("version {version} counts {} vertices {name}, where there are {due}", count.live()));
        }
    }
    Ok(())
}
