//! Tags, their classes, and which tags go together; the same in every network.

use super::shape::{INTEREST_RANKS, Quantiles, TOPIC_RANKS};
use crate::generate::{Edge, SplitMix64};

pub const TAGS: u64 = 16_080;
pub const CLASSES: u64 = CLASS_TREE.len() as u64;

/// How many tags are talked about together with a tag.
const RELATED: u64 = 100;

/// The classes of SNB: the class above, and how many tags the class has itself. The first is the root.
#[rustfmt::skip]
const CLASS_TREE: [(u64, u64); 71] = [
    (0, 32), (0, 0), (0, 0), (0, 0), (1, 1), (1, 0), (2, 1530), (2, 0), (3, 0), (6, 438),
    (6, 125), (6, 88), (6, 79), (6, 77), (6, 45), (6, 36), (6, 20), (6, 16), (6, 11), (6, 7),
    (6, 6), (6, 5), (6, 3), (6, 3), (6, 2), (6, 0), (6, 0), (6, 0), (5, 5061), (5, 4311),
    (5, 529), (7, 2), (7, 2), (7, 1), (8, 1000), (30, 56), (12, 899), (12, 359), (12, 67), (12, 34),
    (12, 8), (17, 48), (17, 32), (17, 27), (17, 13), (17, 9), (17, 6), (17, 3), (19, 5), (21, 394),
    (21, 48), (21, 42), (21, 40), (21, 29), (21, 24), (21, 23), (21, 14), (21, 13), (21, 11), (21, 4),
    (21, 4), (21, 3), (21, 2), (21, 1), (25, 1), (26, 49), (26, 40), (27, 305), (40, 1), (61, 4),
    (63, 32),
];

/// A tag by its rank in popularity. A multiplier without a factor in common with 16,080 scatters popular
/// tags over all numbers and classes.
fn tag_of_rank(rank: f64) -> u64 {
    (rank as u64).min(TAGS - 1) * 7_919 % TAGS
}

fn drawn(ranks: &Quantiles, unit: f64) -> u64 {
    tag_of_rank(ranks.at(unit))
}

/// A tag that interests somebody; the same for the same `unit`, which lies between 0 and 1.
pub fn interest(unit: f64) -> u64 {
    drawn(&INTEREST_RANKS, unit)
}

/// A tag that is talked about where `tag` is: one of a few, the same for everybody.
pub fn related(tag: u64, random: &mut SplitMix64) -> u64 {
    let pair = tag * RELATED + random.below(RELATED);
    drawn(&TOPIC_RANKS, SplitMix64::new(pair.wrapping_mul(0x9e6c_63d0_876a_68de)).unit())
}

/// `tag hasType tagclass`.
pub fn types() -> impl Iterator<Item = Edge> {
    let classes = (0..).zip(CLASS_TREE).flat_map(|(class, (_, tags))| (0..tags).map(move |_| class));
    // Another scattering, so that a class has tags of all ranks.
    (0..TAGS).map(|number| number * 4_673 % TAGS).zip(classes)
}

/// `tagclass isSubclassOf tagclass`: a tree.
pub fn subclasses() -> impl Iterator<Item = Edge> {
    (0..).zip(CLASS_TREE).skip(1).map(|(class, (above, _))| (class, above))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_tag_has_one_class_and_every_class_leads_to_the_root() {
        let types: Vec<Edge> = types().collect();
        assert_eq!(types.iter().map(|edge| edge.0).collect::<BTreeSet<_>>().len() as u64, TAGS);
        assert_eq!(types.len() as u64, TAGS);
        assert_eq!((0..TAGS).map(|rank| tag_of_rank(rank as f64)).collect::<BTreeSet<_>>().len() as u64, TAGS);
        for (class, above) in subclasses() {
            assert!(above < class, "{class} is below {above}");
        }
    }
}
