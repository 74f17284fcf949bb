//! The network against what was counted in SNB.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use super::{SocialLabel, SocialNetwork, SocialRelation as R};

/// Degrees of an edge type in one direction.
#[derive(Debug)]
struct Degrees {
    mean: f64,
    /// The share of vertices that have none.
    without: f64,
    max_by_mean: f64,
    /// The share of the edges that the hundredth of highest degree has.
    top_share: f64,
}

fn degrees(network: &SocialNetwork, relation: R, incoming: bool) -> Degrees {
    let label = if incoming { relation.target() } else { relation.source() };
    let count = network.vertices(label).count();
    let mut of_key: HashMap<i64, u64> = HashMap::new();
    for (source, target) in network.edges(relation) {
        *of_key.entry(if incoming { target } else { source }).or_default() += 1;
        if relation == R::Knows {
            *of_key.entry(target).or_default() += 1;
        }
    }
    let mut degrees: Vec<u64> = of_key.into_values().collect();
    degrees.sort_unstable_by(|a, b| b.cmp(a));
    let edges = degrees.iter().sum::<u64>() as f64;
    let mean = edges / count as f64;
    Degrees {
        mean,
        without: 1.0 - degrees.len() as f64 / count as f64,
        max_by_mean: degrees[0] as f64 / mean,
        top_share: degrees.iter().take((count / 100).max(1)).sum::<u64>() as f64 / edges,
    }
}

#[test]
fn a_seed_names_a_network() {
    let [first, again, other] = [1, 1, 2].map(|seed| SocialNetwork::with_friends(200, 12.0, seed));
    for &relation in R::ALL {
        assert!(first.edges(relation).eq(again.edges(relation)), "{relation:?}");
        let fixed = matches!(relation.source(), SocialLabel::Tag | SocialLabel::TagClass | SocialLabel::Organisation)
            || relation == R::IsPartOf;
        assert_eq!(first.edges(relation).eq(other.edges(relation)), fixed, "{relation:?}");
    }
    for label in SocialLabel::ALL {
        assert!(first.vertices(label).eq(again.vertices(label)), "{label:?}");
    }
}

#[test]
fn vertices_are_in_proportion_to_the_scale() {
    // The official counts of SF10.
    let counts = [
        (SocialLabel::Person, 65_645.0),
        (SocialLabel::Forum, 595_453.0),
        (SocialLabel::Post, 7_435_696.0),
        (SocialLabel::Comment, 21_865_475.0),
    ];
    // A network of 66 persons is as much as its few busy ones are.
    for (scale, tolerance) in [(0.001, 0.3), (0.01, 0.15), (0.05, 0.1)] {
        let network = SocialNetwork::new(scale, 1);
        for (label, official) in counts {
            let ratio = network.vertices(label).count() as f64 / (official * scale);
            assert!((ratio - 1.0).abs() < tolerance, "{label:?} at {scale}: {ratio}");
        }
        let fixed = [SocialLabel::Tag, SocialLabel::TagClass, SocialLabel::Organisation, SocialLabel::Place];
        assert_eq!(fixed.map(|label| network.vertices(label).count()), [16_080, 71, 7_955, 1_460]);
    }
}

#[test]
fn edges_are_in_proportion_to_their_sources() {
    // What does not depend on the number of friends, as counted in SF0.1.
    let means = [
        (R::HasInterest, 23.2),
        (R::PersonIsLocatedIn, 1.0),
        (R::StudyAt, 0.79),
        (R::WorkAt, 2.17),
        (R::HasModerator, 1.0),
        (R::ForumHasTag, 3.46),
        (R::CommentHasTag, 1.30),
        (R::CommentIsLocatedIn, 1.0),
        (R::ReplyOfPost, 0.49),
        (R::ReplyOfComment, 0.51),
    ];
    for (scale, tolerance) in [(0.001, 0.2), (0.01, 0.1)] {
        let network = SocialNetwork::new(scale, 1);
        for (relation, counted) in means {
            let mean = degrees(&network, relation, false).mean;
            assert!((mean / counted - 1.0).abs() < tolerance, "{relation:?} at {scale}: {mean}");
        }
    }
}

/// Direction (whether incoming), mean, maximum by mean, and share of the top hundredth, as counted in SF0.1.
#[rustfmt::skip]
const COUNTED: [(R, bool, f64, f64, f64); 16] = [
    (R::Knows, false, 18.39, 19.7, 0.097),
    (R::HasMember, false, 9.02, 40.3, 0.126),
    (R::HasMember, true, 81.4, 20.2, 0.090),
    (R::ContainerOf, false, 9.92, 52.5, 0.063),
    (R::LikesPost, false, 32.7, 21.1, 0.089),
    (R::LikesPost, true, 0.365, 988.0, 0.727),
    (R::LikesComment, false, 44.9, 10.4, 0.058),
    (R::LikesComment, true, 0.417, 866.0, 0.941),
    (R::PostHasCreator, true, 89.6, 9.0, 0.049),
    (R::CommentHasCreator, true, 107.8, 25.5, 0.104),
    (R::ReplyOfPost, true, 0.59, 32.2, 0.184),
    (R::ReplyOfComment, true, 0.51, 27.5, 0.132),
    (R::HasInterest, true, 2.21, 102.9, 0.268),
    (R::CommentHasTag, true, 13.3, 66.8, 0.149),
    (R::WorkAt, true, 0.416, 76.8, 0.377),
    (R::PostIsLocatedIn, true, 93.7, 222.0, 0.584),
];

#[test]
fn degrees_are_skewed_as_in_snb() {
    let network = SocialNetwork::with_friends(1_528, 18.39, 1);
    for (relation, incoming, mean, max_by_mean, top_share) in COUNTED {
        let found = degrees(&network, relation, incoming);
        let near = |found: f64, counted: f64, factor: f64| found < counted * factor && found > counted / factor;
        assert!(near(found.mean, mean, 1.35), "{relation:?}, incoming {incoming}: {found:?} for {mean}");
        assert!(near(found.top_share, top_share, 1.6), "{relation:?}, incoming {incoming}: {found:?} for {top_share}");
        let max_is_near = near(found.max_by_mean, max_by_mean, 3.0);
        assert!(max_is_near, "{relation:?}, incoming {incoming}: {found:?} for {max_by_mean}");
    }
    let without = degrees(&network, R::Knows, false).without;
    assert!((without - 0.11).abs() < 0.05, "{without} have no friends");
}

#[test]
fn every_end_exists_and_no_edge_is_there_twice() {
    let network = SocialNetwork::new(0.001, 7);
    let keys = SocialLabel::ALL.map(|label| {
        let all: Vec<i64> = network.vertices(label).map(|vertex| vertex.key).collect();
        let distinct: BTreeSet<i64> = all.iter().copied().collect();
        assert_eq!(all.len(), distinct.len(), "keys of {label:?}");
        (label, distinct)
    });
    let keys = BTreeMap::from(keys);
    for &relation in R::ALL {
        let mut seen = HashSet::new();
        for (source, target) in network.edges(relation) {
            assert!(keys[&relation.source()].contains(&source), "{relation:?} from {source}");
            assert!(keys[&relation.target()].contains(&target), "{relation:?} to {target}");
            assert!(seen.insert((source, target)), "{relation:?} {source} {target} occurs twice");
            assert!(relation != R::Knows || source < target, "a pair is told from its lower key");
        }
        assert!(!seen.is_empty(), "{relation:?}");
    }
    let messages = [SocialLabel::Post, SocialLabel::Comment].map(|label| keys[&label].len());
    let has = |relation| network.edges(relation).count();
    assert_eq!([has(R::ContainerOf), has(R::ReplyOfPost) + has(R::ReplyOfComment)], messages);
}

#[test]
fn keys_grow_with_time_and_a_persons_posts_are_spread_over_it() {
    let network = SocialNetwork::new(0.01, 1);
    for label in [SocialLabel::Person, SocialLabel::Forum, SocialLabel::Post, SocialLabel::Comment] {
        let mut vertices: Vec<_> = network.vertices(label).map(|vertex| (vertex.key, vertex.created_unix_ms)).collect();
        vertices.sort_unstable();
        let dates: Vec<i64> = vertices.iter().map(|vertex| vertex.1.unwrap()).collect();
        // Within a period of 60 days keys follow persons, so a later key is at most that much older.
        let mut latest = i64::MIN;
        for &date in &dates {
            assert!(latest.saturating_sub(date) < 60 * 86_400_000, "{label:?}");
            latest = latest.max(date);
        }
        let sorted = dates.windows(2).filter(|pair| pair[0] <= pair[1]).count();
        assert!(sorted < dates.len() * 97 / 100, "{label:?} has no order but time");
    }
    let mut periods: HashMap<i64, (u64, BTreeSet<i64>)> = HashMap::new();
    for (post, person) in network.edges(R::PostHasCreator) {
        let (count, seen) = periods.entry(person).or_default();
        *count += 1;
        seen.insert(post >> 40);
    }
    let busy: Vec<usize> = periods.values().filter(|entry| entry.0 >= 100).map(|entry| entry.1.len()).collect();
    let mean = busy.iter().sum::<usize>() as f64 / busy.len() as f64;
    assert!(mean > 6.0, "{} busy persons posted in {mean} of 17 periods", busy.len());
}

#[test]
fn friends_have_friends_places_and_interests_in_common() {
    let network = SocialNetwork::with_friends(1_528, 18.39, 1);
    let pairs: Vec<(i64, i64)> = network.edges(R::Knows).collect();
    let mut friends: HashMap<i64, BTreeSet<i64>> = HashMap::new();
    for &(one, other) in &pairs {
        friends.entry(one).or_default().insert(other);
        friends.entry(other).or_default().insert(one);
    }
    let clustering = |these: &BTreeSet<i64>| {
        let known: usize = these.iter().map(|friend| friends[friend].intersection(these).count()).sum();
        known as f64 / (these.len() * (these.len() - 1)) as f64
    };
    let of_each: Vec<f64> = friends.values().filter(|these| these.len() > 1).map(clustering).collect();
    let mean = of_each.iter().sum::<f64>() / of_each.len() as f64;
    // Counted: 0.231; among random pairs it would be 0.012.
    assert!((0.16..0.3).contains(&mean), "{mean}");

    let city: HashMap<i64, i64> = network.edges(R::PersonIsLocatedIn).collect();
    let country: HashMap<i64, i64> = network.edges(R::IsPartOf).collect();
    let mut interests: HashMap<i64, BTreeSet<i64>> = HashMap::new();
    for (person, tag) in network.edges(R::HasInterest) {
        interests.entry(person).or_default().insert(tag);
    }
    let strangers = pairs.iter().zip(pairs.iter().rev()).map(|(pair, other)| (pair.0, other.1)).collect();
    let [of_friends, of_strangers] = [pairs, strangers].map(|pairs: Vec<(i64, i64)>| {
        let same = pairs.iter().filter(|(one, other)| country[&city[one]] == country[&city[other]]).count();
        let common: usize =
            pairs.iter().map(|(one, other)| interests[one].intersection(&interests[other]).count()).sum();
        [same, common].map(|sum| sum as f64 / pairs.len() as f64)
    });
    // Counted: 0.21 of friends are from one country, 0.05 of random pairs.
    assert!(of_friends[0] > 0.13 && of_friends[0] > 2.0 * of_strangers[0], "{of_friends:?} {of_strangers:?}");
    assert!(of_friends[1] > 1.1 * of_strangers[1], "{of_friends:?} {of_strangers:?}");
}

#[test]
fn members_write_and_like() {
    let network = SocialNetwork::new(0.002, 3);
    let mut members: HashMap<i64, HashSet<i64>> = HashMap::new();
    for (forum, person) in network.edges(R::HasMember) {
        members.entry(forum).or_default().insert(person);
    }
    let moderator: HashMap<i64, i64> = network.edges(R::HasModerator).collect();
    let forum_of: HashMap<i64, i64> = network.edges(R::ContainerOf).map(|(forum, post)| (post, forum)).collect();
    for (post, author) in network.edges(R::PostHasCreator) {
        let forum = forum_of[&post];
        assert!(moderator[&forum] == author || members[&forum].contains(&author));
    }
    for (liker, post) in network.edges(R::LikesPost) {
        assert!(members[&forum_of[&post]].contains(&liker));
    }
    let author: HashMap<i64, i64> = network.edges(R::CommentHasCreator).collect();
    for (comment, post) in network.edges(R::ReplyOfPost) {
        assert!(members[&forum_of[&post]].contains(&author[&comment]));
    }
}
