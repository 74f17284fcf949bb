//! What every store of states does.

use proptest::prelude::*;

use super::*;

type State = (f64, u32);

/// Vertices of three chunks, the last of which is not full.
const VERTICES: u32 = 2 * CHUNK + 777;

fn stores(folder: &std::path::Path) -> Vec<(&'static str, Box<dyn StateStore<State>>)> {
    vec![
        ("memory", Box::new(MemoryStore::new(VERTICES))),
        ("compressed", Box::new(CompressedStore::new(VERTICES))),
        ("slots", Box::new(SlotStore::open(&folder.join("slots"), VERTICES).unwrap())),
        ("key-value", Box::new(KeyValueStore::open(&folder.join("states.redb"), VERTICES, 1 << 20).unwrap())),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn a_store_has_what_was_written_last(
        ranges in prop::collection::vec((0..VERTICES, 1..CHUNK + 100, any::<bool>()), 1..8)
    ) {
        let folder = tempfile::tempdir().unwrap();
        for (name, store) in stores(folder.path()) {
            let mut expected = vec![State::default(); VERTICES as usize];
            for (round, (first, length, whole)) in ranges.iter().enumerate() {
                let first = if *whole { first / CHUNK * CHUNK } else { *first };
                let end = if *whole { first.saturating_add(CHUNK) } else { first + length }.min(VERTICES);
                let mut states = store.take(first..end).unwrap();
                let own = &mut expected[first as usize..end as usize];
                prop_assert_eq!(&states[..], &own[..], "{} {}..{}", name, first, end);
                for (vertex, state) in (first..).zip(&mut states) {
                    *state = (f64::from(vertex) / 3.0, round as u32);
                }
                own.copy_from_slice(&states);
                store.put(first, states).unwrap();
            }
            prop_assert_eq!(store.take(0..VERTICES).unwrap(), expected, "{}", name);
            prop_assert!(store.bytes().memory + store.bytes().disk > 0);
        }
    }
}

#[test]
fn vertices_that_are_not_there_are_an_error() {
    let folder = tempfile::tempdir().unwrap();
    for (name, store) in stores(folder.path()) {
        assert!(store.take(VERTICES - 1..VERTICES + 1).is_err(), "{name}");
        assert!(store.put(VERTICES, vec![State::default()]).is_err(), "{name}");
        assert_eq!(store.take(VERTICES - 1..VERTICES).unwrap(), [State::default()], "{name}");
        assert!(store.take(7..7).unwrap().is_empty(), "{name}");
    }
}

#[test]
fn states_in_files_are_there_when_they_are_opened_again() {
    let folder = tempfile::tempdir().unwrap();
    let (slots, key_value) = (folder.path().join("slots"), folder.path().join("states.redb"));
    let states = vec![(0.5, 7); 3];
    SlotStore::open(&slots, VERTICES).unwrap().put(CHUNK - 1, states.clone()).unwrap();
    let again: SlotStore<State> = SlotStore::open(&slots, VERTICES).unwrap();
    assert_eq!(again.take(CHUNK - 1..CHUNK + 2).unwrap(), states);
    let error = SlotStore::<State>::open(&slots, VERTICES + 1).unwrap_err().to_string();
    assert!(error.contains("bytes, where the states of"), "{error}");
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
