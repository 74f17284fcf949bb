//! What every store of states does.

use std::{
    path::Path,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

use proptest::prelude::*;

use super::*;

pub(super) type State = (f64, u32);

/// Vertices of three chunks, the last of which is not full.
pub(super) const VERTICES: u32 = 2 * CHUNK + 777;

/// Bytes of a chunk in memory.
pub(super) const CHUNK_BYTES: u64 = CHUNK as u64 * size_of::<State>() as u64;

pub(super) type Named = (String, Box<dyn StateStore<State>>);

fn stores(folder: &Path) -> Vec<Named> {
    let mut stores = plain(&folder.join("plain"));
    for policy in [CachePolicy::Lru, CachePolicy::Score] {
        for room in [1, 2] {
            let below = plain(&folder.join(format!("{policy:?}-{room}")));
            stores.extend(below.into_iter().map(|(name, below)| cached(&name, below, policy, room * CHUNK_BYTES)));
        }
    }
    stores
}

pub(super) fn cached(name: &str, below: Box<dyn StateStore<State>>, policy: CachePolicy, bytes_max: u64) -> Named {
    let below: Arc<dyn StateStore<State>> = below.into();
    let name = format!("{name} below a cache of {bytes_max} bytes by {policy:?}");
    (name, Box::new(CachedStore::new(below, VERTICES, policy, bytes_max).unwrap()))
}

/// All stores but caches.
fn plain(folder: &Path) -> Vec<Named> {
    std::fs::create_dir_all(folder).unwrap();
    let key_value = |name: &str| KeyValueStore::open(&folder.join(name), VERTICES, 1 << 20).unwrap();
    let stores: Vec<(&str, Box<dyn StateStore<State>>)> = vec![
        ("memory", Box::new(MemoryStore::new(VERTICES))),
        ("compressed", Box::new(CompressedStore::new(VERTICES))),
        ("generic", Box::new(CompressedStore::new(VERTICES).with_serialiser(Generic))),
        ("slots", Box::new(SlotStore::open(&folder.join("slots"), VERTICES).unwrap())),
        ("key-value", Box::new(key_value("states.redb"))),
        ("key-value, compressed", Box::new(key_value("other.redb").with_serialiser(Compressed(Generic)))),
    ];
    stores.into_iter().map(|(name, store)| (name.to_owned(), store)).collect()
}

/// Takes and puts these ranges: where they begin, how long they are, and whether they are whole chunks.
pub(super) fn has_what_was_written_last(stores: Vec<Named>, ranges: &[(u32, u32, bool)]) {
    for (name, store) in stores {
        let mut expected = vec![State::default(); VERTICES as usize];
        assert!(store.read(0..VERTICES).unwrap() == expected, "{name}");
        for (round, (first, length, whole)) in ranges.iter().enumerate() {
            let first = if *whole { first / CHUNK * CHUNK } else { *first };
            let end = if *whole { first.saturating_add(CHUNK) } else { first + length }.min(VERTICES);
            let mut states = store.take(first..end).unwrap();
            let own = &mut expected[first as usize..end as usize];
            // Tens of thousands of states are no message.
            assert!(states == own, "{name} {first}..{end}");
            for (vertex, state) in (first..).zip(&mut states) {
                *state = (f64::from(vertex) / 3.0, round as u32);
            }
            own.copy_from_slice(&states);
            store.put(first, states).unwrap();
        }
        store.flush().unwrap();
        // What is read stays as it is.
        assert!(store.read(0..VERTICES).unwrap() == expected, "{name}");
        assert!(store.take(0..VERTICES).unwrap() == expected, "{name}");
        assert!(store.bytes().memory + store.bytes().disk > 0);
    }
}

pub(super) fn ranges() -> impl Strategy<Value = Vec<(u32, u32, bool)>> {
    prop::collection::vec((0..VERTICES, 1..CHUNK + 100, any::<bool>()), 1..8)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn a_store_has_what_was_written_last(ranges in ranges()) {
        let folder = tempfile::tempdir().unwrap();
        has_what_was_written_last(plain(folder.path()), &ranges);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4, ..ProptestConfig::default() })]

    #[test]
    fn a_cache_has_what_was_written_last(ranges in ranges()) {
        let folder = tempfile::tempdir().unwrap();
        has_what_was_written_last(stores(folder.path()), &ranges);
    }
}

pub(super) fn have_no_other_vertices(stores: Vec<Named>) {
    for (name, store) in stores {
        assert!(store.take(VERTICES - 1..VERTICES + 1).is_err(), "{name}");
        assert!(store.put(VERTICES, vec![State::default()]).is_err(), "{name}");
        assert_eq!(store.take(VERTICES - 1..VERTICES).unwrap(), [State::default()], "{name}");
        assert!(store.take(7..7).unwrap().is_empty(), "{name}");
    }
}

#[test]
fn vertices_that_are_not_there_are_an_error() {
    let folder = tempfile::tempdir().unwrap();
    have_no_other_vertices(stores(folder.path()));
}

/// Ranges of one chunk, which threads change at the same time.
pub(super) fn do_not_undo_each_other(stores: Vec<Named>) {
    for (name, store) in stores {
        let shares = (0..8).map(|share| share * VERTICES / 8..(share + 1) * VERTICES / 8);
        std::thread::scope(|scope| {
            for share in shares {
                let store = &store;
                scope.spawn(move || {
                    for _ in 0..3 {
                        let mut states = store.take(share.clone()).unwrap();
                        states.iter_mut().zip(share.clone()).for_each(|(state, vertex)| state.1 += vertex);
                        store.put(share.start, states).unwrap();
                    }
                });
            }
        });
        let expected: Vec<State> = (0..VERTICES).map(|vertex| (0.0, 3 * vertex)).collect();
        assert!(store.read(0..VERTICES).unwrap() == expected, "{name}");
    }
}

#[test]
fn threads_that_share_a_chunk_do_not_undo_each_other() {
    let folder = tempfile::tempdir().unwrap();
    do_not_undo_each_other(stores(folder.path()));
}

/// A store that fails when it is asked to write, as a full disk does.
#[derive(Default)]
struct Failing {
    states: Mutex<Vec<(u32, State)>>,
    fails: AtomicBool,
}

impl StateStore<State> for Failing {
    fn read(&self, vertices: Range<u32>) -> Result<Vec<State>, StoreError> {
        let states = self.states.lock().unwrap();
        let of = |vertex| states.iter().rev().find(|(there, _)| *there == vertex).map(|(_, state)| *state);
        // One a chunk was written, its first: the others are never looked at.
        Ok(vertices.map(|vertex| if vertex % CHUNK == 0 { of(vertex).unwrap_or_default() } else { (0.0, 0) }).collect())
    }

    fn put(&self, first: u32, states: Vec<State>) -> Result<(), StoreError> {
        if self.fails.load(Relaxed) {
            return Err(StoreError::new("disk", "no space left"));
        }
        self.states.lock().unwrap().push((first, states[0]));
        Ok(())
    }

    fn bytes(&self) -> StoreBytes {
        StoreBytes::default()
    }
}

#[test]
fn a_state_that_cannot_be_written_back_is_an_error_until_it_is_written() {
    for policy in [CachePolicy::Lru, CachePolicy::Score] {
        let below = Arc::new(Failing::default());
        let cache = CachedStore::new(below.clone(), VERTICES, policy, CHUNK_BYTES).unwrap();
        let mut first = cache.take(0..CHUNK).unwrap();
        first[0] = (1.5, 2);
        cache.put(0, first).unwrap();
        below.fails.store(true, Relaxed);
        let error = cache.read(CHUNK..CHUNK + 1).unwrap_err().to_string();
        assert_eq!(error, "disk: no space left");
        assert!(cache.flush().is_err() && cache.flush().is_err());
        assert_eq!(cache.read(0..1).unwrap(), [(1.5, 2)], "{policy:?}");
        below.fails.store(false, Relaxed);
        cache.flush().unwrap();
        assert_eq!(below.read(0..1).unwrap(), [(1.5, 2)], "{policy:?}");
        // What has not changed since is not written again.
        let before = below.states.lock().unwrap().len();
        cache.flush().unwrap();
        assert_eq!(below.states.lock().unwrap().len(), before);
    }
}

/// Two passes over three chunks with room for two.
#[test]
fn a_cache_finds_what_its_policy_says() {
    let pass = |cache: &CachedStore<State, MemoryStore<State>>| {
        for first in [0, CHUNK, 2 * CHUNK] {
            let states = cache.take(first..VERTICES.min(first + CHUNK)).unwrap();
            cache.put(first, states).unwrap();
        }
    };
    // The last chunk has few states, but two and these are more than the cache has room for.
    let cache = |policy| CachedStore::new(MemoryStore::new(VERTICES), VERTICES, policy, 2 * CHUNK_BYTES).unwrap();
    let lru = cache(CachePolicy::Lru);
    pass(&lru);
    assert_eq!(lru.counts(), CacheCounts { hits: 3, misses: 3, reads: 3, writes: 1 });
    pass(&lru);
    assert_eq!(lru.counts(), CacheCounts { hits: 6, misses: 6, reads: 6, writes: 4 });
    lru.flush().unwrap();
    assert_eq!(lru.counts(), CacheCounts { hits: 6, misses: 6, reads: 6, writes: 6 });
    // The first chunk stays, and the others take turns.
    let scores = cache(CachePolicy::Score);
    pass(&scores);
    assert_eq!(scores.counts(), CacheCounts { hits: 3, misses: 3, reads: 3, writes: 1 });
    pass(&scores);
    assert_eq!(scores.counts(), CacheCounts { hits: 7, misses: 5, reads: 5, writes: 3 });
    // A whole chunk is not read to be written, and a part of one is.
    let scores = cache(CachePolicy::Score);
    scores.put(0, vec![State::default(); CHUNK as usize]).unwrap();
    assert_eq!(scores.counts(), CacheCounts { misses: 1, ..CacheCounts::default() });
    scores.put(CHUNK, vec![State::default(); 5]).unwrap();
    assert_eq!(scores.counts(), CacheCounts { misses: 2, reads: 1, ..CacheCounts::default() });
    assert_eq!(scores.bytes().memory, 2 * CHUNK_BYTES + MemoryStore::<State>::new(VERTICES).bytes().memory);
}

#[test]
fn a_cache_without_room_for_a_chunk_is_rejected() {
    let below = MemoryStore::<State>::new(VERTICES);
    let error = CachedStore::new(below, VERTICES, CachePolicy::Lru, CHUNK_BYTES - 1).unwrap_err().to_string();
    assert_eq!(error, "cache of states: 262143 bytes have no room for a chunk of states: give it 262144 or more");
}

fn serialisers() -> [(&'static str, Box<dyn Serialiser<State>>); 4] {
    [
        ("fixed", Box::new(FixedWidth)),
        ("generic", Box::new(Generic)),
        ("compressed", Box::new(Compressed(FixedWidth))),
        ("generic, compressed", Box::new(Compressed(Generic))),
    ]
}

proptest! {
    #[test]
    fn states_come_back_from_their_bytes_and_no_other_bytes_panic(
        states in prop::collection::vec((prop::num::f64::ANY, any::<u32>()), 0..50),
        noise in prop::collection::vec(any::<u8>(), 0..200),
        cut in any::<prop::sample::Index>(),
    ) {
        for (name, serialiser) in serialisers() {
            let bytes = serialiser.write(&states).unwrap();
            prop_assert!(bytes.len() <= serialiser.bytes_max(states.len()));
            let back = serialiser.read(&bytes, states.len()).unwrap();
            let bits = |states: &[State]| states.iter().map(|state| (state.0.to_bits(), state.1)).collect::<Vec<_>>();
            prop_assert_eq!(bits(&back), bits(&states), "{}", name);
            prop_assert!(serialiser.read(&bytes, states.len() + 1).is_err(), "{}", name);
            if !states.is_empty() {
                prop_assert!(serialiser.read(&bytes, states.len() - 1).is_err(), "{}", name);
                prop_assert!(serialiser.read(&bytes[..cut.index(bytes.len())], states.len()).is_err(), "{}", name);
            }
            let _ = serialiser.read(&noise, states.len());
        }
    }
}

#[test]
fn small_integers_take_a_byte_in_the_generic_form() {
    let states: Vec<u32> = (0..1000).map(|level| level % 7).collect();
    assert_eq!(Serialiser::<u32>::write(&FixedWidth, &states).unwrap().len(), 4000);
    assert_eq!(Generic.write(&states).unwrap().len(), 1000);
    assert!(Compressed(Generic).write(&states).unwrap().len() < 100);
    // A frame that says it is a gigabyte is not given one.
    let bomb = zstd::bulk::compress(&vec![0; 1 << 30], 1).unwrap();
    assert!(Serialiser::<u32>::read(&Compressed(FixedWidth), &bomb, 10).is_err());
}

#[test]
fn states_in_files_are_there_when_they_are_opened_again() {
    let folder = tempfile::tempdir().unwrap();
    let slots = folder.path().join("slots");
    let key_value = folder.path().join("states.redb");
    let states = vec![(0.5, 7); 3];
    SlotStore::open(&slots, VERTICES).unwrap().put(CHUNK - 1, states.clone()).unwrap();
    let again: SlotStore<State> = SlotStore::open(&slots, VERTICES).unwrap();
    assert_eq!(again.take(CHUNK - 1..CHUNK + 2).unwrap(), states);
    let error = SlotStore::<State>::open(&slots, VERTICES + 1).unwrap_err().to_string();
    assert!(error.contains("bytes, where the states of"), "{error}");
    let open = || KeyValueStore::<State>::open(&key_value, VERTICES, 1 << 20).unwrap();
    open().with_serialiser(Generic).put(CHUNK - 1, states.clone()).unwrap();
    let error = open().read(0..1).unwrap_err().to_string();
    assert!(error.contains("states.redb: chunk 0: ") && error.contains("are not 16384 states of 12 bytes"), "{error}");
    std::fs::write(&key_value, "no database").unwrap();
    assert!(KeyValueStore::<State>::open(&key_value, VERTICES, 1 << 20).is_err());
}

#[test]
fn states_that_are_alike_take_little_memory() {
    let store = CompressedStore::<u32>::new(100_000);
    store.put(0, (0..100_000).map(|vertex| 3 + vertex % 4).collect()).unwrap();
    assert!(store.bytes().memory < 10_000, "{:?}", store.bytes());
    // A part of a chunk leaves the rest of it as it is.
    store.put(20_000, vec![9; 10]).unwrap();
    assert_eq!(store.take(19_999..20_011).unwrap(), [6, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 5]);
}
