//! The measured distributions of LDBC SNB that the generator draws from.
//!
//! All were counted in the SNB SF0.1 data set (1,528 persons, 342,392 vertices, 1,561,676 edges) that
//! LDBC's own generator wrote; the counts at larger sizes are the official ones of SF10.

use crate::generate::SplitMix64;

/// The persons of SF10, which is the network of scale 1.
pub const PERSONS: f64 = 65_645.0;

/// The mean number of friends at SF10: 1,938,516 pairs of 65,645 persons.
pub const FRIENDS_MEAN: f64 = 59.06;

/// The mean number of friends where everything here was counted.
pub const FRIENDS_MEAN_MEASURED: f64 = 18.39;

/// A distribution by some of its quantiles, straight lines between them: (share below, value).
pub struct Quantiles(pub &'static [(f64, f64)]);

impl Quantiles {
    /// The value below which a share of `unit` lies.
    pub fn at(&self, unit: f64) -> f64 {
        let after = self.0.partition_point(|&(share, _)| share < unit).clamp(1, self.0.len() - 1);
        let [(low, from), (high, to)] = [self.0[after - 1], self.0[after]];
        from + (to - from) * ((unit - low) / (high - low)).clamp(0.0, 1.0)
    }

    /// The mean value.
    pub fn mean(&self) -> f64 {
        self.0.windows(2).map(|pair| (pair[1].0 - pair[0].0) * (pair[0].1 + pair[1].1) / 2.0).sum()
    }
}

/// Friends of a person, as multiples of the mean. The largest is 20 times the mean.
pub const FRIENDS: Quantiles = Quantiles(&[
    (0.0, 0.0),
    (0.11, 0.0),
    (0.15, 0.054),
    (0.2, 0.109),
    (0.3, 0.218),
    (0.4, 0.326),
    (0.5, 0.489),
    (0.6, 0.761),
    (0.7, 1.088),
    (0.8, 1.577),
    (0.85, 1.958),
    (0.9, 2.502),
    (0.93, 3.1),
    (0.95, 3.59),
    (0.97, 4.242),
    (0.98, 4.732),
    (0.99, 5.384),
    (0.995, 6.309),
    (0.998, 13.162),
    (1.0, 19.743),
]);

/// Tags that interest a person.
pub const INTERESTS: Quantiles = Quantiles(&[
    (0.0, 1.0),
    (0.2, 1.6),
    (0.3, 4.0),
    (0.4, 8.0),
    (0.5, 14.0),
    (0.6, 23.0),
    (0.7, 34.0),
    (0.8, 45.0),
    (0.9, 61.0),
    (0.95, 70.0),
    (1.0, 81.0),
]);

/// Hours between a comment and what it replies to.
pub const REPLY_HOURS: Quantiles = Quantiles(&[
    (0.0, 0.003),
    (0.1, 0.08),
    (0.25, 0.76),
    (0.5, 4.25),
    (0.75, 11.66),
    (0.9, 18.45),
    (0.99, 23.41),
    (1.0, 24.0),
]);

/// Popularity of tags as interests: the share of all interests in the tags up to a rank.
pub const INTEREST_RANKS: Quantiles = Quantiles(&[
    (0.0, 0.0),
    (0.0064, 1.0),
    (0.0098, 2.0),
    (0.0161, 4.0),
    (0.0321, 10.0),
    (0.075, 30.0),
    (0.191, 100.0),
    (0.3146, 200.0),
    (0.5044, 400.0),
    (0.7128, 700.0),
    (0.8417, 1_000.0),
    (0.9081, 1_500.0),
    (0.9371, 2_000.0),
    (0.9696, 3_000.0),
    (1.0, 16_080.0),
]);

/// Popularity of tags as topics of comments, likewise.
pub const TOPIC_RANKS: Quantiles = Quantiles(&[
    (0.0, 0.0),
    (0.0042, 1.0),
    (0.0081, 2.0),
    (0.0131, 4.0),
    (0.0249, 10.0),
    (0.0564, 30.0),
    (0.1144, 100.0),
    (0.1699, 200.0),
    (0.306, 500.0),
    (0.4879, 1_000.0),
    (0.6189, 1_500.0),
    (0.6969, 2_000.0),
    (0.8525, 4_000.0),
    (0.9591, 7_000.0),
    (0.998, 10_000.0),
    (1.0, 16_080.0),
]);

/// How often a count occurred, by the count.
pub struct Counts(pub &'static [u32]);

impl Counts {
    /// A count, as likely as it was frequent.
    pub fn draw(&self, random: &mut SplitMix64) -> usize {
        let mut left = random.below(self.0.iter().map(|&times| u64::from(times)).sum());
        let chosen = self.0.iter().position(|&times| {
            let here = left < u64::from(times);
            left = left.saturating_sub(u64::from(times));
            here
        });
        chosen.expect("the draw is below the sum")
    }
}

/// Tags of a post that is not a photograph.
pub const POST_TAGS: Counts = Counts(&[0, 5227, 1910, 2118, 2223, 1981, 1484, 890, 496, 233, 87, 34, 14, 6, 1]);

/// Tags of a comment.
pub const COMMENT_TAGS: Counts = Counts(&[
    109_756, 9037, 12_641, 7013, 6652, 5979, 4615, 3490, 2317, 1417, 827, 406, 235, 129, 69, 42, 15, 6, 5, 3, 2, 0, 1,
]);

/// Companies that a person works for.
pub const EMPLOYERS: Counts = Counts(&[321, 261, 285, 291, 241, 129]);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_lines_between_their_points() {
        let line = Quantiles(&[(0.0, 0.0), (0.5, 10.0), (1.0, 30.0)]);
        assert_eq!([0.0, 0.25, 0.5, 0.75, 1.0].map(|unit| line.at(unit)), [0.0, 5.0, 10.0, 20.0, 30.0]);
        assert_eq!(line.mean(), 12.5);
    }

    #[test]
    fn the_tables_have_the_means_that_were_counted() {
        for (mean, counted) in [(FRIENDS.mean(), 1.0), (INTERESTS.mean(), 23.2), (REPLY_HOURS.mean(), 7.0)] {
            assert!((mean / counted - 1.0).abs() < 0.05, "{mean} for {counted}");
        }
        let mut random = SplitMix64::new(1);
        for (counts, counted) in [(POST_TAGS, 3.41), (COMMENT_TAGS, 1.304), (EMPLOYERS, 2.168)] {
            let mean = (0..100_000).map(|_| counts.draw(&mut random)).sum::<usize>() as f64 / 1e5;
            assert!((mean / counted - 1.0).abs() < 0.03, "{mean} for {counted}");
        }
    }
}
