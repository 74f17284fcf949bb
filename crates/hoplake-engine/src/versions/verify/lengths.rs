//! Whether objects end where the last of their content does.
//!
//! Reading by positions never sees what was appended to an object; and something that appends to objects that never change damages others
//! in ways that are seen too late. How long an object was written, the manifest says that its writer published. If a vacuum has removed that
//! version, a table at the end of the object may be one that no version names any more; such an object still ends as a Parquet
//! file does.

use std::collections::{BTreeMap, HashMap, HashSet};

use hoplake_format::{
    FormatError, Manifest,
    constants::{DATA_FOLDER, data_writer, own_name},
};
use hoplake_storage::Store;

use super::findings::Findings;
use crate::EngineError;

/// How Parquet files end.
const PARQUET_MAGIC: &[u8] = b"PAR1";

/// What some versions say of the lengths of objects.
#[derive(Debug, Default)]
pub(super) struct Lengths {
    /// For each object the newest version that names it, and the end of the last of its content that any version names.
    named: BTreeMap<String, (u64, u64)>,
    /// The writers of these versions.
    writers: HashSet<String>,
}

impl Lengths {
    /// Adds a version; newer ones come first.
    pub(super) fn add(&mut self, manifest: &Manifest) {
        self.writers.insert(manifest.change.writer.clone());
        for (name, end) in manifest.objects() {
            match self.named.get_mut(name) {
                Some((_, length)) => *length = end.max(*length),
                None => drop(self.named.insert(name.to_owned(), (manifest.version, end))),
            }
        }
    }

    /// Notes each object that has more bytes than were written. Those that are missing or too short, reading them has found.
    pub(super) async fn check(&self, store: &Store, found: &mut Findings) -> Result<(), EngineError> {
        let listed = store.list(DATA_FOLDER).await?;
        let listed: HashMap<&str, u64> = listed.iter().map(|object| (object.name.as_str(), object.bytes)).collect();
        for (name, (version, end)) in &self.named {
            // Objects of another graph, which a clone names, are not below its own prefix.
            let bytes = match listed.get(name.as_str()) {
                Some(bytes) => *bytes,
                None => store.length(name).await?.unwrap_or_default(),
            };
            if bytes <= *end || !self.is_known(name) && ends_as_parquet(store, name, bytes).await? {
                continue;
            }
            found.of_version(Some(*version));
            let why = format!(
                "it has {bytes} bytes where {end} were written: something else wrote to it. What was written can be read; a compaction of everything \
                 replaces the object"
            );
            found.note::<()>(Err(EngineError::format(store.location(name))(FormatError::corrupt("object", why))))?;
        }
        Ok(())
    }

    /// Whether these versions name all that an object was written with.
    fn is_known(&self, name: &str) -> bool {
        let name = own_name(name);
        name.ends_with(".parquet") || data_writer(name).is_some_and(|writer| self.writers.contains(writer))
    }
}

async fn ends_as_parquet(store: &Store, name: &str, bytes: u64) -> Result<bool, EngineError> {
    let end = store.get_range(name, bytes.saturating_sub(PARQUET_MAGIC.len() as u64)..bytes).await?;
    Ok(end == PARQUET_MAGIC)
}
