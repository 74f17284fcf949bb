//! Zipf's law: few things are popular.

use super::SplitMix64;

/// Draws numbers below some bound; number i has weight 1 / (i + 1)^skew.
#[derive(Debug, Clone)]
pub struct Zipf {
    /// The sum of the weights up to each number.
    sums: Vec<f64>,
}

impl Zipf {
    /// Over `count` numbers, at least one; a skew of 0 is uniform. Takes 8 bytes a number.
    pub fn new(count: usize, skew: f64) -> Self {
        let mut sum = 0.0;
        let weight = |number: usize| {
            sum += (number as f64 + 1.0).powf(-skew);
            sum
        };
        Self { sums: (0..count.max(1)).map(weight).collect() }
    }

    /// The next number; the most popular is 0.
    pub fn draw(&self, random: &mut SplitMix64) -> usize {
        let wanted = random.unit() * self.sums[self.sums.len() - 1];
        self.sums.partition_point(|sum| *sum < wanted).min(self.sums.len() - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_follow_the_law() {
        let zipf = Zipf::new(100, 1.0);
        let mut random = SplitMix64::new(1);
        let mut drawn = [0u32; 100];
        (0..100_000).for_each(|_| drawn[zipf.draw(&mut random)] += 1);
        // The hundredth harmonic number is 5.187.
        for number in [0, 1, 9, 99] {
            let expected = 100_000.0 / 5.187 / (number as f64 + 1.0);
            let found = f64::from(drawn[number]);
            assert!((found - expected).abs() < 4.0 * expected.sqrt(), "{number}: {found}, not {expected}");
        }
    }
}
