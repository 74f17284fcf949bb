//! Every policy against a naive model of it, the budget at every step, and threads.

mod models;

use std::{
    collections::{BTreeMap, BTreeSet},
    thread,
};

use hoplake_testkit::generate::SplitMix64;
use proptest::{collection::vec, prelude::*};

use self::models::{Model, S3FifoModel, Scored, WTinyLfuModel};
use super::*;

/// In one shard: some twenty of the blocks below.
const BUDGET: u64 = 40_000;

#[derive(Debug, Clone, Copy)]
enum Step {
    /// A get, and an insert if it found nothing.
    Use(u64),
    Get(u64),
    Insert(u64),
    Remove(u64),
    Clear,
}

/// Blocks of a graph are of one size each; these are from none to more than the budget.
fn length(position: u64) -> usize {
    match position % 48 {
        45 => 20_000,
        // Just fits, and just does not.
        46 => 39_840,
        47 => 39_841,
        other => [0, 100, 300, 1_000, 1_600, 1_600, 2_500, 5_000][other as usize % 8],
    }
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        // The square makes low positions popular.
        200 => (0u64..12, 0u64..12).prop_map(|(a, b)| Step::Use(a * b)),
        10 => (0u64..12, 0u64..12).prop_map(|(a, b)| Step::Get(a * b)),
        10 => (0u64..48).prop_map(Step::Insert),
        3 => (0u64..48).prop_map(Step::Remove),
        1 => Just(Step::Clear),
    ];
    vec(step, 1..1_000)
}

fn model(policy: Policy) -> Box<dyn Model> {
    match policy {
        Policy::Lru => Box::new(Scored::lru()),
        Policy::Lfu => Box::new(Scored::lfu()),
        Policy::Lrfu { lambda } => Box::new(Scored::lrfu(lambda)),
        Policy::S3Fifo => Box::new(S3FifoModel::new(BUDGET)),
        Policy::WTinyLfu => Box::new(WTinyLfuModel::new(BUDGET)),
    }
}

/// A cache, the model of its policy, and what both should hold.
struct Pair {
    cache: MemoryCache,
    policy: Policy,
    model: Box<dyn Model>,
    held: BTreeSet<u64>,
    /// The bytes last inserted at each position.
    blocks: BTreeMap<u64, Bytes>,
    insertions: u8,
}

impl Pair {
    fn new(policy: Policy, fetch_cost: Option<FetchCost>) -> Self {
        let cache = MemoryCache::new(CacheSettings { cache_bytes_max: BUDGET, policy, fetch_cost });
        assert_eq!(cache.shards.len(), 1);
        let (held, blocks, insertions) = Default::default();
        Self { cache, policy, model: model(policy), held, blocks, insertions }
    }

    /// Whether it was there.
    fn get(&mut self, position: u64) -> bool {
        let found = self.cache.get((1, position));
        assert_eq!(found.is_some(), self.held.contains(&position), "{position}");
        if found.is_some() {
            assert_eq!(found.as_ref(), self.blocks.get(&position));
            self.model.hit(position);
        }
        found.is_some()
    }

    fn insert(&mut self, position: u64) {
        self.insertions = self.insertions.wrapping_add(1);
        let block = Bytes::from(vec![self.insertions; length(position)]);
        let arrival = Arrival::new((1, position).into(), 0, block.len() as u64, self.cache.fetch_cost.as_ref());
        self.cache.insert((1, position), block.clone());
        self.blocks.insert(position, block);
        if self.held.contains(&position) {
            self.model.hit(position);
        } else if arrival.weight <= BUDGET {
            let cache = &self.cache;
            let gone: Vec<_> = self.held.extract_if(.., |held| !cache.contains((1, *held))).collect();
            self.model.insert(position, arrival.weight, arrival.retention_cost.into(), &gone, BUDGET);
            self.held.insert(position);
        }
    }

    fn remove(&mut self, position: u64) {
        let removed = self.cache.remove((1, position));
        assert_eq!(removed.is_some(), self.held.remove(&position));
        if removed.is_some() {
            assert_eq!(removed.as_ref(), self.blocks.get(&position));
            self.model.remove(position);
        }
    }

    fn take(&mut self, step: Step) {
        match step {
            Step::Get(position) => drop(self.get(position)),
            Step::Insert(position) => self.insert(position),
            Step::Use(position) => {
                if !self.get(position) {
                    self.insert(position);
                }
            }
            Step::Remove(position) => self.remove(position),
            Step::Clear => {
                self.cache.clear();
                self.held.clear();
                self.model = model(self.policy);
            }
        }
    }
}

/// Takes the steps, and asserts after each that the cache holds exactly what the model holds, within the budget.
fn check(policy: Policy, fetch_cost: Option<FetchCost>, steps: &[Step]) {
    let mut pair = Pair::new(policy, fetch_cost);
    for step in steps {
        pair.take(*step);
        let Pair { cache, held, .. } = &pair;
        let weight: u64 = held.iter().map(|position| weight_of(length(*position) as u64)).sum();
        assert!(held.iter().all(|position| cache.contains((1, *position))), "{step:?} lost a block");
        assert_eq!((cache.counts().bytes, cache.counts().blocks), (weight, held.len() as u64));
        assert!(weight <= BUDGET);
    }
}

proptest! {
    #[test]
    fn every_policy_agrees_with_its_model(steps in steps(), policy in 0usize..5, by_retention_cost: bool) {
        check(Policy::ALL[policy], by_retention_cost.then_some(FetchCost::STANDARD), &steps);
    }

    #[test]
    fn lrfu_agrees_with_the_sum_of_its_definition(steps in steps(), lambda in prop_oneof![0.0..=1.0, 0.0..0.01], by_retention_cost: bool) {
        check(Policy::Lrfu { lambda }, by_retention_cost.then_some(FetchCost::STANDARD), &steps);
    }
}

#[test]
fn lambda_0_is_lfu_and_lambda_1_is_lru() {
    let mut random = SplitMix64::new(3);
    let accesses: Vec<_> = (0..20_000).map(|_| random.below(60) * random.below(60) / 40).collect();
    let hits = |policy| {
        let cache = MemoryCache::new(CacheSettings { cache_bytes_max: 30_000, policy, fetch_cost: None });
        let hit = |position: &u64| {
            let hit = cache.get((0, *position)).is_some();
            if !hit {
                cache.insert((0, *position), Bytes::from_static(&[0; 1_000]));
            }
            hit
        };
        accesses.iter().map(hit).collect::<Vec<_>>()
    };
    assert_eq!(hits(Policy::Lrfu { lambda: 0.0 }), hits(Policy::Lfu));
    assert_eq!(hits(Policy::Lrfu { lambda: 1.0 }), hits(Policy::Lru));
    assert_ne!(hits(Policy::Lfu), hits(Policy::Lru));
}

#[test]
fn retention_cost_keeps_the_smaller_of_equally_used_blocks() {
    let survivors = |fetch_cost| {
        let settings = CacheSettings { cache_bytes_max: 70_000, policy: Policy::Lrfu { lambda: 0.001 }, fetch_cost };
        let cache = MemoryCache::new(settings);
        cache.insert((0, 0), Bytes::from(vec![0; 300]));
        cache.insert((0, 1), Bytes::from(vec![1; 60_000]));
        cache.insert((0, 2), Bytes::from(vec![2; 20_000]));
        [0, 1, 2].map(|position| cache.contains((0, position)))
    };
    assert_eq!(survivors(None), [false, false, true]);
    assert_eq!(survivors(Some(FetchCost::STANDARD)), [true, false, true]);
}

#[test]
fn budgets_make_shards_that_share_evenly() {
    let cache = |mib: u64| MemoryCache::new(CacheSettings { cache_bytes_max: mib << 20, ..CacheSettings::default() });
    assert_eq!([0, 1, 15, 16, 256, 1_000, 100_000].map(|mib| cache(mib).shards.len()), [1, 1, 1, 2, 32, 64, 64]);
    // Blocks of 16 KiB one after the other, as in a segment: none of 32 shards has a tenth more than its share.
    let cache = cache(256);
    let mut blocks = vec![0; 32];
    for object in 0..4u32 {
        for position in 0..16_384u64 {
            let hash = hash_of((object, position * 16_380).into());
            blocks[cache.shards.iter().position(|shard| std::ptr::eq(shard, cache.shard(hash))).unwrap()] += 1;
        }
    }
    assert!(blocks.iter().all(|blocks| (1_843..2_253).contains(blocks)), "{blocks:?}");
    cache.insert((0, 0), Bytes::from(vec![0; 4 << 20]));
    assert!(cache.contains((0, 0)));
    cache.insert((0, 1), Bytes::from(vec![0; 9 << 20]));
    assert_eq!((cache.contains((0, 1)), cache.counts().refusals), (false, 1));
}

#[test]
fn a_block_of_another_size_replaces_the_first() {
    let cache = MemoryCache::new(CacheSettings { cache_bytes_max: 1_000, ..CacheSettings::default() });
    cache.insert((0, 0), Bytes::from_static(b"first"));
    cache.insert((0, 0), Bytes::from_static(b"other"));
    assert_eq!((cache.get((0, 0)), cache.bytes()), (Some(Bytes::from_static(b"other")), 5 + ENTRY_BYTES));
    cache.insert((0, 0), Bytes::from_static(b"longer"));
    assert_eq!((cache.get((0, 0)), cache.bytes()), (Some(Bytes::from_static(b"longer")), 6 + ENTRY_BYTES));
    cache.insert((1, 0), Bytes::from_static(b"of another object"));
    cache.remove_object(0);
    assert_eq!((cache.contains((0, 0)), cache.contains((1, 0))), (false, true));
    // Now one that is too large for the cache: the old bytes must not be served instead.
    cache.insert((1, 0), Bytes::from(vec![0; 1_000]));
    assert_eq!((cache.contains((1, 0)), cache.bytes()), (false, 0));
}

#[test]
fn threads_see_only_what_was_inserted() {
    for policy in Policy::ALL {
        let cache =
            MemoryCache::<Bytes>::new(CacheSettings { cache_bytes_max: 32 << 20, policy, ..CacheSettings::default() });
        thread::scope(|scope| {
            for seed in 0..4 {
                let cache = &cache;
                scope.spawn(move || {
                    let mut random = SplitMix64::new(seed);
                    for step in 0..20_000 {
                        let position = random.below(64) * random.below(64);
                        match random.below(64) {
                            0 => drop(cache.remove((0, position))),
                            1 if seed == 0 && step % 1_000 < 50 => cache.clear(),
                            _ => match cache.get((0, position)) {
                                Some(block) => assert_eq!(block[..8], position.to_le_bytes()),
                                None => cache.insert((0, position), position.to_le_bytes().repeat(2_048).into()),
                            },
                        }
                    }
                });
            }
        });
        let counts = cache.counts();
        assert!(counts.bytes <= 32 << 20 && counts.hits > 10_000, "{policy}: {counts:?}");
        let blocks = (0..4_096).filter(|position| cache.contains((0, *position))).count() as u64;
        assert_eq!((blocks, counts.blocks * (16_384 + ENTRY_BYTES)), (counts.blocks, counts.bytes));
    }
}
