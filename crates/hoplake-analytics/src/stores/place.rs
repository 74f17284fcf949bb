//! Where the states of a program are while it runs, and how that is written.

use std::{
    path::{Path, PathBuf},
    str::FromStr,
    sync::Arc,
};

use hoplake_engine::EngineError;
use hoplake_storage::{Branch, MemoryHold};

use super::{CachePolicy, CachedStore, KeyValueStore, MemoryStore, SlotStore, StateStore};
use crate::{RunError, Value, Workers};

/// The most pages of a key-value store in memory.
const KEY_VALUE_CACHE_BYTES: u64 = 64 << 20;
/// Part of the memory that is left for them, as for lists that are read ahead.
const KEY_VALUE_CACHE_PART: u64 = 4;

/// Where states are kept while a program runs.
///
/// ```
/// use hoplake_analytics::stores::States;
///
/// assert_eq!("states".parse::<States>().unwrap(), States::Slots("states".into()));
/// assert_eq!("redb:states".parse::<States>().unwrap(), States::KeyValue("states".into()));
/// assert!("sqlite:states".parse::<States>().is_err());
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum States {
    /// In memory.
    #[default]
    Memory,
    /// In this file, each in a slot of its own: `slots:FILE`, or `FILE`.
    Slots(PathBuf),
    /// In a key-value store in this file: `redb:FILE`.
    KeyValue(PathBuf),
}

/// A cache of states that are not in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StatesCache {
    /// The most that it takes; a chunk of 16,384 states has to have room.
    pub bytes: u64,
    /// Which states leave when it is full.
    pub policy: CachePolicy,
}

impl StatesCache {
    /// A cache of this size, by the policy that suits supersteps.
    pub fn new(bytes: u64) -> Self {
        Self { bytes, policy: CachePolicy::default() }
    }
}

impl States {
    /// The file of states, if they are in one. A computation makes it, and leaves it where it is.
    pub fn file(&self) -> Option<&Path> {
        match self {
            Self::Slots(path) | Self::KeyValue(path) => Some(path),
            Self::Memory => None,
        }
    }

    /// `key_value_cache_bytes` are of the key-value store alone.
    fn open<S: Value>(
        &self,
        vertices: u32,
        key_value_cache_bytes: u64,
        cache: Option<StatesCache>,
    ) -> Result<Arc<dyn StateStore<S>>, RunError> {
        let store: Arc<dyn StateStore<S>> = match self {
            Self::Memory => Arc::new(MemoryStore::new(vertices)),
            Self::Slots(path) => Arc::new(SlotStore::open(path, vertices)?),
            Self::KeyValue(path) => Arc::new(KeyValueStore::open(path, vertices, key_value_cache_bytes as usize)?),
        };
        let Some(StatesCache { bytes, policy }) = cache else { return Ok(store) };
        let cached = CachedStore::new(store, vertices, policy, bytes);
        Ok(Arc::new(cached.map_err(|error| EngineError::Invalid(error.to_string()))?))
    }
}

impl FromStr for States {
    type Err = EngineError;

    /// What is not `KIND:…` is a file of slots. A file whose name has a colon is written with its folder: `./a:b`.
    fn from_str(text: &str) -> Result<Self, EngineError> {
        let forms = "write FILE, slots:FILE or redb:FILE";
        let invalid = |why: String| EngineError::Invalid(format!("{why}: {forms}"));
        let named = text.split_once(':').filter(|(kind, _)| !kind.contains(['/', '.']));
        let (kind, rest) = named.unwrap_or(("slots", text));
        if rest.is_empty() {
            return Err(invalid("the file name for states is empty".into()));
        }
        match kind {
            "slots" => Ok(Self::Slots(rest.into())),
            "redb" => Ok(Self::KeyValue(rest.into())),
            kind => Err(invalid(format!("unknown kind of states `{kind}`"))),
        }
    }
}

/// The store of a run, and what it has in memory, which is held first.
pub(crate) async fn open_states<S: Value>(
    states: &States,
    cache: Option<StatesCache>,
    vertices: u32,
    workers: &Workers,
    branch: &Branch,
) -> Result<(Arc<dyn StateStore<S>>, MemoryHold), RunError> {
    let context = branch.context();
    let all = u64::from(vertices) * size_of::<S>() as u64;
    let key_value_bytes = match states {
        States::KeyValue(_) => KEY_VALUE_CACHE_BYTES.min(context.memory().left() / KEY_VALUE_CACHE_PART),
        _ => 0,
    };
    let memory = match (states, cache) {
        (States::Memory, None) => all,
        (States::Memory, Some(_)) => {
            let message = "a cache of states needs states in a file: set `states`, or leave out `states_cache`";
            return Err(EngineError::Invalid(message.into()).into());
        }
        (_, None) => key_value_bytes,
        (_, Some(cache)) => {
            key_value_bytes + CachedStore::<S, MemoryStore<S>>::memory_bytes(vertices, cache.bytes, workers.threads())
        }
    };
    let memory = context.hold(memory)?;
    // On a worker: opening a file blocks.
    let states = states.clone();
    let store = workers.run(context, move |_| states.open(vertices, key_value_bytes, cache)).await??;
    Ok((store, memory))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_of_states_is_read_from_text() {
        let parsed = |text: &str| text.parse::<States>().map_err(|error| error.to_string());
        for (text, path) in [("states", "states"), ("slots:a:b", "a:b"), ("./a:b", "./a:b"), ("/c/d:e", "/c/d:e")] {
            assert_eq!(parsed(text), Ok(States::Slots(path.into())));
        }
        assert_eq!(parsed("redb:/tmp/states"), Ok(States::KeyValue("/tmp/states".into())));
        let forms = "write FILE, slots:FILE or redb:FILE";
        assert_eq!(parsed("rocksdb:states"), Err(format!("unknown kind of states `rocksdb`: {forms}")));
        for text in ["", "redb:", "slots:"] {
            assert_eq!(parsed(text), Err(format!("the file name for states is empty: {forms}")), "{text}");
        }
    }
}
