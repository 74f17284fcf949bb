//! The oracle: what was asked, what was answered, and what each published version must say.
//!
//! It learns from the manifests, at the moment when the store takes one, which batches are in which version: each
//! batch has its number for a message. Everything is held against that.

use std::{collections::BTreeMap, sync::Arc};

use hoplake::{Batch, ChangeKind, ErrorKind, Manifest, Operation};

use crate::{
    model::{Changed, Model},
    world::Bucket,
};

/// What became of a batch, as far as its caller knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// There is none, or nobody waits for it any more.
    None,
    /// It is in this version.
    Committed(u64),
    /// It is in none.
    Refused(ErrorKind),
    /// The caller was told that it is not known.
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
}

/// All versions and batches of a seed.
#[derive(Debug, Default)]
pub struct History {
    versions: BTreeMap<u64, Version>,
    batches: Vec<Submitted>,
}

impl History {
    /// Takes a version that was there before.
    pub fn begin(&mut self, manifest: Manifest, model: Model) {
        let version = Version { model: Arc::new(model), changed: Changed::default(), manifest };
        self.versions.insert(version.manifest.version, version);
    }

    /// The newest version.
    pub fn newest(&self) -> u64 {
        self.versions.last_key_value().map_or(0, |(version, _)| *version)
    }

    /// All versions that can be opened.
    pub fn versions(&self) -> impl Iterator<Item = u64> {
        self.versions.keys().copied()
    }

    /// What a version says.
    pub fn model(&self, version: u64) -> Option<Arc<Model>> {
        self.versions.get(&version).map(|version| version.model.clone())
    }

    /// How many batches were submitted.
    pub fn batches(&self) -> usize {
        self.batches.len()
    }

    /// The newest version of which somebody was told.
    pub fn acknowledged(&self) -> u64 {
        let told = |submitted: &Submitted| match submitted.answer {
            Answer::Committed(version) => Some(version),
            _ => None,
        };
        self.batches.iter().filter_map(told).max().unwrap_or(0)
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

    /// Takes the answer to a batch, and says what is wrong with it.
    pub fn answered(&mut self, number: usize, answer: Answer, excuse: bool) -> Result<(), String> {
        let submitted = &mut self.batches[number];
        submitted.answer = answer;
        let published = submitted.published;
        match answer {
            Answer::None | Answer::Unknown => Ok(()),
            Answer::Committed(version) if published == Some(version) => Ok(()),
            Answer::Committed(version) => Err(format!(
                "batch {number} was acknowledged in version {version}, but the store has it in {published:?}"
            )),
            Answer::Refused(kind) if published.is_some() => {
                Err(format!("batch {number} was refused as {kind:?}, but the store has it in version {published:?}"))
            }
            Answer::Refused(ErrorKind::Conflict) => self.check_conflict(number),
            Answer::Refused(ErrorKind::Invalid | ErrorKind::NotFound) => self.check_invalid(number),
            Answer::Refused(ErrorKind::Unavailable | ErrorKind::Corrupt) if excuse => Ok(()),
            Answer::Refused(kind) => Err(format!("batch {number} was refused as {kind:?}, and nothing excuses that")),
        }
    }

    /// A refusal for a conflict must have one.
    fn check_conflict(&self, number: usize) -> Result<(), String> {
        let Submitted { batch, .. } = &self.batches[number];
        let Some(base) = batch.base else {
            return Err(format!("batch {number} has no base, but was refused for a conflict"));
        };
        let touched = touched(batch);
        let since = self.versions.range(base + 1..).map(|(_, version)| &version.changed);
        let conflicts = since.into_iter().any(|changed| {
            !changed.vertices.is_disjoint(&touched.vertices) || !changed.pairs.is_disjoint(&touched.pairs)
        });
        match conflicts {
            true => Ok(()),
            false => {
                Err(format!("batch {number} was refused for a conflict, but nothing it touches changed since {base}"))
            }
        }
    }

    /// A refusal as invalid must be right on some version that the caller could mean.
    fn check_invalid(&self, number: usize) -> Result<(), String> {
        let Submitted { batch, seen, .. } = &self.batches[number];
        let mut since = self.versions.range(seen..).map(|(_, version)| &version.model);
        match since.any(|model| model.refusal(batch).is_some()) {
            true => Ok(()),
            false => Err(format!("batch {number} was refused as invalid, but is allowed since version {seen}")),
        }
    }

    /// Takes a manifest that the store has just created, and says what is wrong with it.
    pub fn published(&mut self, manifest: Manifest, bucket: &Bucket) -> Result<(), String> {
        let version = manifest.version;
        let before = self.versions.get(&(version - 1)).ok_or(format!("version {version} follows no version"))?;
        if self.versions.contains_key(&version) {
            return Err(format!("version {version} was published twice"));
        }
        if manifest.created_unix_ms < before.manifest.created_unix_ms {
            return Err(format!("version {version} is older than the one before it"));
        }
        check_objects(&manifest, bucket)?;
        let mut model = Model::clone(&before.model);
        let mut changed = Changed::default();
        let mut positions = before.manifest.source_positions.clone();
        let numbers = match manifest.change.kind {
            ChangeKind::Commit => numbers(&manifest.change.message),
            _ => Vec::new(),
        };
        for number in numbers {
            let submitted = self.batches.get(number).ok_or(format!("there is no batch {number}"))?;
            if let Some(first) = submitted.published {
                return Err(format!("batch {number} is in version {first} and again in {version}"));
            }
            if let Answer::Refused(kind) = submitted.answer {
                return Err(format!("batch {number} was refused as {kind:?}, and is now in version {version}"));
            }
            if let Some(why) = before.model.refusal(&submitted.batch) {
                return Err(format!("batch {number} is in version {version}, but is not allowed there: {why}"));
            }
            self.check_base(number, version)?;
            let of_batch = model.apply(&submitted.batch);
            let overlap = changed.vertices.intersection(&of_batch.vertices).next().map(|it| it.to_string());
            let overlap = overlap.or(changed.pairs.intersection(&of_batch.pairs).next().map(|it| format!("{it:?}")));
            if let Some(overlap) = overlap {
                return Err(format!("two batches of version {version} change {overlap}"));
            }
            changed.vertices.extend(of_batch.vertices);
            changed.reborn.extend(of_batch.reborn);
            changed.pairs.extend(of_batch.pairs);
            positions.extend(submitted.batch.source_positions.clone());
            self.batches[number].published = Some(version);
        }
        if manifest.source_positions != positions {
            let found = &manifest.source_positions;
            return Err(format!("version {version} has source positions {found:?} where {positions:?} are due"));
        }
        check_counts(&manifest, &model)?;
        self.versions.insert(version, Version { model: Arc::new(model), changed, manifest });
        Ok(())
    }

    /// A batch with a base must not be published over changes of the same items since.
    fn check_base(&self, number: usize, version: u64) -> Result<(), String> {
        let batch = &self.batches[number].batch;
        let Some(base) = batch.base else { return Ok(()) };
        let before = &self.versions[&(version - 1)].model;
        let missed = |what: String, at: u64| {
            Err(format!("batch {number} on version {base} is in version {version}, but {what} changed in version {at}"))
        };
        let mut since = self.versions.range(base + 1..version).rev();
        let mut reborn = std::collections::BTreeSet::new();
        while let Some((at, Version { changed, .. })) = since.next() {
            for operation in &batch.operations {
                match operation {
                    Operation::UpsertVertex { vertex, .. } if changed.vertices.contains(vertex) => {
                        return missed(format!("vertex {vertex}"), *at);
                    }
                    Operation::DeleteVertex { vertex }
                        if changed.vertices.contains(vertex) && before.vertices.contains_key(vertex) =>
                    {
                        return missed(format!("vertex {vertex}"), *at);
                    }
                    Operation::UpsertEdge { label, source, target, .. }
                    | Operation::DeleteEdge { label, source, target } => {
                        let pair = (label.clone(), source.clone(), target.clone());
                        let there = |end| before.vertices.contains_key(end) && !reborn.contains(end);
                        if changed.pairs.contains(&pair) && there(source) && there(target) {
                            return missed(format!("edge {label} from {source} to {target}"), *at);
                        }
                    }
                    _ => {}
                }
            }
            // A vertex that came back is another: edges of the one before it are nobody's.
            reborn.extend(changed.reborn.clone());
        }
        Ok(())
    }

    /// An object that goes must be named by no version.
    pub fn deleted(&self, name: &str) -> Result<(), String> {
        let naming = self.versions.iter().find(|(_, version)| version.manifest.objects().contains_key(name));
        match naming {
            Some((version, _)) => Err(format!("{name} was deleted, and version {version} names it")),
            None if hoplake_format::constants::manifest_version(name)
                .is_some_and(|it| self.versions.contains_key(&it)) =>
            {
                Err(format!("{name} was deleted, and nobody let it go"))
            }
            None => Ok(()),
        }
    }
}

/// The numbers of the batches in a version's message.
fn numbers(message: &str) -> Vec<usize> {
    message.split("; ").filter_map(|part| part.strip_prefix("batch ")?.parse().ok()).collect()
}

/// What a batch may change.
fn touched(batch: &Batch) -> Changed {
    let mut touched = Changed::default();
    for operation in &batch.operations {
        match operation {
            Operation::UpsertVertex { vertex, .. } | Operation::DeleteVertex { vertex } => {
                touched.vertices.insert(vertex.clone());
            }
            Operation::UpsertEdge { label, source, target, .. } | Operation::DeleteEdge { label, source, target } => {
                touched.pairs.insert((label.clone(), source.clone(), target.clone()));
                if batch.create_missing {
                    touched.vertices.extend([source.clone(), target.clone()]);
                }
            }
        }
    }
    touched
}

/// Everything that a version names must be there when it appears.
fn check_objects(manifest: &Manifest, bucket: &Bucket) -> Result<(), String> {
    let version = manifest.version;
    for (name, length) in manifest.objects() {
        match bucket.get(name) {
            None => return Err(format!("version {version} was published, but its object {name} is not there")),
            Some(stored) if stored.bytes.len() as u64 != length => {
                let found = stored.bytes.len();
                return Err(format!("version {version} says that {name} has {length} bytes, but it has {found}"));
            }
            Some(_) => {}
        }
    }
    Ok(())
}

/// Counts of vertices are exact.
fn check_counts(manifest: &Manifest, model: &Model) -> Result<(), String> {
    for (label, count) in manifest.schema.vertex_labels.iter().zip(&manifest.vertex_counts) {
        let due = model.vertices.keys().filter(|end| end.label == label.name).count() as u64;
        if count.live() != due {
            let (version, name) = (manifest.version, &label.name);
            return Err(format!("version {version} counts {} vertices {name}, where there are {due}", count.live()));
        }
    }
    Ok(())
}
