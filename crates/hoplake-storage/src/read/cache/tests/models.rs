//! What each policy documents, implemented naively: lists, and all scores recomputed each time.

use std::collections::VecDeque;

use crate::read::cache::eviction::sketch::Sketch;
use crate::read::cache::hash_of;

/// A policy over blocks known by their position.
pub trait Model {
    fn hit(&mut self, position: u64);
    fn remove(&mut self, position: u64);
    /// Inserts a block, for which `gone` was evicted. Asserts that the policy would have chosen so.
    fn insert(&mut self, position: u64, weight: u64, retention_cost: f64, gone: &[u64], budget: u64);
}

/// LRU, LFU and LRFU: the block of the lowest score goes.
pub struct Scored {
    blocks: Vec<Block>,
    now: u64,
    score: Score,
    /// Scores this close, relatively, count as equal: a sum and its logarithm round differently.
    tolerance: f64,
}

/// Of a block, at a time.
type Score = Box<dyn Fn(&Block, u64) -> f64>;

pub struct Block {
    position: u64,
    weight: u64,
    retention_cost: f64,
    uses: Vec<u64>,
}

impl Scored {
    pub fn lru() -> Self {
        Self::new(0.0, |block, _| block.uses[block.uses.len() - 1] as f64)
    }

    pub fn lfu() -> Self {
        Self::new(0.0, |block, _| block.uses.len() as f64 * block.retention_cost)
    }

    pub fn lrfu(lambda: f64) -> Self {
        let crf = move |block: &Block, now: u64| -> f64 {
            let faded = block.uses.iter().map(|used| 0.5f64.powf(lambda * (now - used) as f64));
            faded.sum::<f64>() * block.retention_cost
        };
        Self::new(1e-6, crf)
    }

    fn new(tolerance: f64, score: impl Fn(&Block, u64) -> f64 + 'static) -> Self {
        Self { blocks: Vec::new(), now: 0, score: Box::new(score), tolerance }
    }

    fn index_of(&self, position: u64) -> usize {
        self.blocks.iter().position(|block| block.position == position).unwrap()
    }
}

impl Model for Scored {
    fn hit(&mut self, position: u64) {
        self.now += 1;
        let index = self.index_of(position);
        self.blocks[index].uses.push(self.now);
    }

    fn remove(&mut self, position: u64) {
        self.blocks.remove(self.index_of(position));
    }

    fn insert(&mut self, position: u64, weight: u64, retention_cost: f64, gone: &[u64], budget: u64) {
        let mut gone = gone.to_vec();
        let rank = |block: &Block| ((self.score)(block, self.now), block.uses[block.uses.len() - 1]);
        while self.blocks.iter().map(|block| block.weight).sum::<u64>() + weight > budget {
            let of_gone = self.blocks.iter().filter(|block| gone.contains(&block.position));
            let chosen = of_gone.min_by(|a, b| rank(a).partial_cmp(&rank(b)).unwrap()).expect("too few were evicted");
            for other in &self.blocks {
                let near = rank(chosen).0 <= rank(other).0 * (1.0 + self.tolerance);
                let least = if self.tolerance > 0.0 { near } else { rank(chosen) <= rank(other) };
                assert!(
                    least,
                    "{} went at {:?}, {} stayed at {:?}",
                    chosen.position,
                    rank(chosen),
                    other.position,
                    rank(other)
                );
            }
            let chosen = chosen.position;
            gone.retain(|position| *position != chosen);
            self.blocks.retain(|block| block.position != chosen);
        }
        assert!(gone.is_empty(), "{gone:?} need not have been evicted");
        self.now += 1;
        self.blocks.push(Block { position, weight, retention_cost, uses: vec![self.now] });
    }
}

/// A block in a queue: position, weight, and a note.
type Queued<T> = (u64, u64, T);

fn bytes<T>(queue: &VecDeque<Queued<T>>) -> u64 {
    queue.iter().map(|block| block.1).sum()
}

fn take<T>(queue: &mut VecDeque<Queued<T>>, position: u64) -> Option<Queued<T>> {
    let index = queue.iter().position(|block| block.0 == position)?;
    queue.remove(index)
}

/// S3-FIFO after the paper's Algorithm 1. The front of a queue is its oldest.
pub struct S3FifoModel {
    small: VecDeque<Queued<u8>>,
    main: VecDeque<Queued<u8>>,
    ghost: VecDeque<Queued<bool>>,
    small_max: u64,
    ghost_max: u64,
}

impl S3FifoModel {
    pub fn new(budget: u64) -> Self {
        let (small, main, ghost) = Default::default();
        Self { small, main, ghost, small_max: budget / 10, ghost_max: budget - budget / 10 }
    }

    fn evict(&mut self) -> u64 {
        loop {
            if !self.small.is_empty() && (bytes(&self.small) >= self.small_max || self.main.is_empty()) {
                let (position, weight, uses) = self.small.pop_front().unwrap();
                if uses > 1 {
                    self.main.push_back((position, weight, 0));
                    continue;
                }
                self.ghost.iter_mut().filter(|gone| gone.0 == position).for_each(|gone| gone.2 = false);
                self.ghost.push_back((position, weight, true));
                while bytes(&self.ghost) > self.ghost_max {
                    self.ghost.pop_front();
                }
                return position;
            }
            let (position, weight, uses) = self.main.pop_front().unwrap();
            if uses == 0 {
                return position;
            }
            self.main.push_back((position, weight, uses - 1));
        }
    }
}

impl Model for S3FifoModel {
    fn hit(&mut self, position: u64) {
        let block = self.small.iter_mut().chain(&mut self.main).find(|block| block.0 == position).unwrap();
        block.2 = (block.2 + 1).min(3);
    }

    fn remove(&mut self, position: u64) {
        take(&mut self.small, position).or_else(|| take(&mut self.main, position)).unwrap();
    }

    fn insert(&mut self, position: u64, weight: u64, _: f64, gone: &[u64], budget: u64) {
        let mut chosen = Vec::new();
        while bytes(&self.small) + bytes(&self.main) + weight > budget {
            chosen.push(self.evict());
        }
        chosen.sort_unstable();
        assert_eq!(chosen, gone);
        match self.ghost.iter_mut().find(|gone| gone.0 == position && gone.2) {
            Some(ghost) => {
                ghost.2 = false;
                self.main.push_back((position, weight, 0));
            }
            None => self.small.push_back((position, weight, 0)),
        }
    }
}

/// W-TinyLFU with the real sketch, which has a test of its own. The front of a queue is its oldest; notes are retention
/// costs.
pub struct WTinyLfuModel {
    window: VecDeque<Queued<f64>>,
    probation: VecDeque<Queued<f64>>,
    protected: VecDeque<Queued<f64>>,
    sketch: Sketch,
    window_max: u64,
    main_max: u64,
}

impl WTinyLfuModel {
    pub fn new(budget: u64) -> Self {
        let (window, probation, protected) = Default::default();
        // A quarter: the budget of the tests is too small for more than that.
        let window_max = budget / 4;
        let sketch = Sketch::new((budget / (16 << 10)) as usize);
        Self { window, probation, protected, sketch, window_max, main_max: budget - window_max }
    }

    fn appeal(&self, block: &Queued<f64>) -> f64 {
        f64::from(self.sketch.estimate(hash_of((1, block.0).into()))) * block.2
    }

    fn evict(&mut self) -> u64 {
        while bytes(&self.window) > self.window_max
            && bytes(&self.probation) + bytes(&self.protected) + self.window[0].1 <= self.main_max
        {
            self.probation.extend(self.window.pop_front());
        }
        let over = bytes(&self.window) > self.window_max;
        let from_probation = !self.probation.is_empty();
        let main = if from_probation { &mut self.probation } else { &mut self.protected };
        let Some(victim) = main.pop_front() else { return self.window.pop_front().unwrap().0 };
        if !over {
            return victim.0;
        }
        let candidate = self.window.pop_front().unwrap();
        if self.appeal(&candidate) > self.appeal(&victim) {
            self.probation.push_back(candidate);
            return victim.0;
        }
        let main = if from_probation { &mut self.probation } else { &mut self.protected };
        main.push_front(victim);
        candidate.0
    }
}

impl Model for WTinyLfuModel {
    fn hit(&mut self, position: u64) {
        self.sketch.count(hash_of((1, position).into()));
        if let Some(block) = take(&mut self.window, position) {
            self.window.push_back(block);
        } else if let Some(block) = take(&mut self.protected, position) {
            self.protected.push_back(block);
        } else {
            self.protected.extend(take(&mut self.probation, position));
            while bytes(&self.protected) > self.main_max / 5 * 4 {
                self.probation.extend(self.protected.pop_front());
            }
        }
    }

    fn remove(&mut self, position: u64) {
        let main = take(&mut self.probation, position).or_else(|| take(&mut self.protected, position));
        main.or_else(|| take(&mut self.window, position)).unwrap();
    }

    fn insert(&mut self, position: u64, weight: u64, retention_cost: f64, gone: &[u64], budget: u64) {
        let mut chosen = Vec::new();
        while bytes(&self.window) + bytes(&self.probation) + bytes(&self.protected) + weight > budget {
            chosen.push(self.evict());
        }
        chosen.sort_unstable();
        assert_eq!(chosen, gone);
        self.sketch.count(hash_of((1, position).into()));
        self.window.push_back((position, weight, retention_cost));
    }
}
