//! Persons and their friends: the only state of the generator, some 16 MB at scale 1.
//!
//! Friendships follow the process of LDBC's generator (Pham, Boncz, Erling: S3G2, TPCTC 2012). Each person
//! has a number of friends to make, from a measured distribution. Persons stand in three orders, one
//! after the other: by where they live and studied, by what interests them, and at random; 45, 45 and
//! 10 % of the friends come from each. In an order everybody meets those who follow, and makes friends with
//! a probability that falls with the distance, until either has enough. That gives triangles, and friends
//! that are near in two hidden orders and in none that keys show.

use super::{
    places,
    shape::{FRIENDS, INTERESTS},
    time, topics,
};
use crate::generate::SplitMix64;

/// Shares of the friends made in the orders of places and of interests; the random one gets the rest.
const ORDER_SHARES: [f64; 2] = [0.45, 0.45];

/// The probability of a friendship falls by this with each person between, …
const NEARNESS: f64 = 0.95;

/// … but not below this.
const PROBABILITY_MIN: f64 = 0.35;

/// Nobody looks further than this.
const DISTANCE_MAX: usize = 10_000;

/// What a stream of random numbers is for; part of its seed.
#[derive(Debug, Clone, Copy)]
pub enum Purpose {
    Order = 1,
    Friends,
    Joined,
    Home,
    Interests,
    SharedInterests,
    Study,
    Work,
    Forums,
    Thread,
    Tags,
    Likes,
}

/// Random numbers that depend on nothing but these, so that whatever is generated from them can be had
/// again on its own.
pub fn stream(seed: u64, purpose: Purpose, first: u64, second: u64) -> SplitMix64 {
    let mut state = SplitMix64::new(seed ^ (purpose as u64) << 56).next_u64();
    for part in [first, second] {
        state = SplitMix64::new(state ^ part.wrapping_mul(0xd6e8_feb8_6659_fd93)).next_u64();
    }
    SplitMix64::new(state)
}

/// All persons, numbered from 0.
#[derive(Debug)]
pub struct People {
    pub seed: u64,
    pub friends_mean: f64,
    /// How many friends each would have if there were people enough.
    pub sociability: Vec<f32>,
    /// Ranks in the orders of places and of interests.
    ranks: [Vec<u32>; 2],
    offsets: Vec<u32>,
    friends: Vec<u32>,
}

impl People {
    pub fn new(count: u32, friends_mean: f64, seed: u64) -> Self {
        let orders = [0, 1, 2, 3].map(|order| shuffled(count, stream(seed, Purpose::Order, order, 0)));
        let unit = |rank: u32| (f64::from(rank) + 0.5) / f64::from(count);
        // Every count has the same quantiles: only who has which is random.
        let sociability: Vec<f32> =
            orders[3].iter().map(|&rank| (FRIENDS.at(unit(rank)) * friends_mean / FRIENDS.mean()) as f32).collect();
        let links = befriended(&orders[..3], &sociability, seed);
        let mut offsets = vec![0];
        let mut friends = Vec::with_capacity(links.iter().map(Vec::len).sum());
        for mut linked in links {
            linked.sort_unstable();
            friends.extend(linked);
            offsets.push(friends.len() as u32);
        }
        let ranks = [inverse(&orders[0]), inverse(&orders[1])];
        Self { seed, friends_mean, sociability, ranks, offsets, friends }
    }

    pub fn count(&self) -> u32 {
        self.sociability.len() as u32
    }

    /// The friends of a person, ascending.
    pub fn friends(&self, person: u32) -> &[u32] {
        let [start, end] = [0, 1].map(|next| self.offsets[person as usize + next] as usize);
        &self.friends[start..end]
    }

    /// When a person joined.
    pub fn joined_ms(&self, person: u32) -> u64 {
        stream(self.seed, Purpose::Joined, person.into(), 0).below(time::SPAN_MS)
    }

    pub fn key(&self, person: u32) -> i64 {
        time::key(self.joined_ms(person), person.into())
    }

    /// A person's city. One in ten lives anywhere.
    pub fn city(&self, person: u32) -> u64 {
        let mut random = stream(self.seed, Purpose::Home, person.into(), 0);
        let moved = random.below(10) == 0;
        places::city_at(if moved { random.unit() } else { self.position(0, person) })
    }

    pub fn country(&self, person: u32) -> u64 {
        places::country_of_city(self.city(person))
    }

    /// The tags that interest a person, each once: a third from a few that are popular in its country, and a
    /// third from a few that are shared by those nearby in the order of interests.
    pub fn interests(&self, person: u32) -> Vec<u64> {
        const SHARED: u64 = 80;
        const CIRCLES: f64 = 20.0;
        let mut random = stream(self.seed, Purpose::Interests, person.into(), 0);
        let wanted = INTERESTS.at(random.unit()) as usize;
        let circle = (self.position(1, person) * CIRCLES) as u64;
        let pools = [places::COUNTRIES + circle, self.country(person)];
        let mut interests = Vec::with_capacity(wanted);
        // Bounded, since the popular ones come again and again.
        for _ in 0..4 * wanted {
            let unit = match pools.get(random.below(3) as usize) {
                Some(&pool) => stream(self.seed, Purpose::SharedInterests, pool, random.below(SHARED)).unit(),
                None => random.unit(),
            };
            let tag = topics::interest(unit);
            if interests.len() < wanted && !interests.contains(&tag) {
                interests.push(tag);
            }
        }
        interests
    }

    /// The share of persons before this one in an order.
    fn position(&self, order: usize, person: u32) -> f64 {
        f64::from(self.ranks[order][person as usize]) / f64::from(self.count())
    }
}

/// The numbers below `count` in a random order (Fisher and Yates).
fn shuffled(count: u32, mut random: SplitMix64) -> Vec<u32> {
    let mut order: Vec<u32> = (0..count).collect();
    for last in (1..order.len()).rev() {
        order.swap(last, random.below(last as u64 + 1) as usize);
    }
    order
}

fn inverse(order: &[u32]) -> Vec<u32> {
    let mut ranks = vec![0; order.len()];
    (0..).zip(order).for_each(|(rank, &person)| ranks[person as usize] = rank);
    ranks
}

/// The friends of each, in no order. Nobody befriends more than a quarter of all others.
fn befriended(orders: &[Vec<u32>], sociability: &[f32], seed: u64) -> Vec<Vec<u32>> {
    let count = sociability.len();
    let most = (count.saturating_sub(1) / 4) as f32;
    let wanted: Vec<u32> = sociability.iter().map(|&friends| friends.min(most).round() as u32).collect();
    let mut links: Vec<Vec<u32>> = vec![Vec::new(); count];
    for (number, order) in orders.iter().enumerate() {
        let share = ORDER_SHARES.get(number);
        let left = |person: usize| match share {
            Some(share) => (f64::from(wanted[person]) * share).round() as u32,
            None => wanted[person].saturating_sub(links[person].len() as u32),
        };
        let mut left: Vec<u32> = (0..count).map(left).collect();
        let mut random = stream(seed, Purpose::Friends, number as u64, 0);
        for rank in 0..count {
            let person = order[rank] as usize;
            let mut probability = 1.0;
            for distance in 1..count.min(DISTANCE_MAX) {
                if left[person] == 0 {
                    break;
                }
                probability *= NEARNESS;
                let other = order[(rank + distance) % count] as usize;
                if left[other] > 0
                    && random.unit() < f64::max(probability, PROBABILITY_MIN)
                    && !links[person].contains(&(other as u32))
                {
                    links[person].push(other as u32);
                    links[other].push(person as u32);
                    left[person] -= 1;
                    left[other] -= 1;
                }
            }
        }
    }
    links
}
