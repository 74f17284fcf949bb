//! A social network with the shape of LDBC SNB.
//!
//! **What it is for.** Measurements at 30 million vertices and 175 million edges, which are too large to keep
//! in a repository, and the same in small, for tests. The official SNB SF10 has 29,987,835 and 176,623,445.
//!
//! **What is modelled**, from counts of SNB SF0.1 (`shape.rs`) and the official totals of SF10:
//!
//! - all labels and edge types of SNB, and how many of each there are;
//! - the distributions of friends, interests, forum sizes, threads, tags and likes, with their tails;
//! - who is near whom: friends are near in orders by place and by interest that keys do not show, members
//!   of forums are friends, authors and likers are members, tags come with tags they go with;
//! - time: forums and messages spread over the years after their person joined, and keys grow with it, period
//!   by period and person by person within, as SNB's do.
//!
//! **What is not**: names and texts (a creation date is the only property), events at which everybody
//! posts, the correlation of places with interests, languages, and dates of edges.
//!
//! **Sizes.** Persons are in proportion to the scale, and so are forums and messages. Places, organisations,
//! tags and their classes are the same at every scale, as in SNB. Nobody has more than a quarter
//! of all persons as friends, so below about scale 1/100 networks have fewer friends, members and likes
//! for each person.
//!
//! **State.** The persons and their friends, 16 MB at scale 1, shared by all iterators. Whatever a person
//! started is generated again for each edge type, from random numbers that depend on the seed and the
//! person alone.

mod activity;
mod edges;
mod layout;
mod people;
mod places;
mod relation;
mod shape;
#[cfg(test)]
mod tests;
mod time;
mod topics;

use std::sync::Arc;

pub use relation::{SocialLabel, SocialRelation};

use self::people::People;

/// An edge of a social network: the keys of its source and target.
pub type KeyedEdge = (i64, i64);

/// A vertex of a social network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SocialVertex {
    /// Its key, unique within its label.
    pub key: i64,
    /// When it was created, in milliseconds since 1970; persons, forums and messages have that.
    pub created_unix_ms: Option<i64>,
}

/// A network of people and what they write. Clones share their state.
#[derive(Debug, Clone)]
pub struct SocialNetwork {
    people: Arc<People>,
}

impl SocialNetwork {
    /// The network of a scale: 1 has the 65,645 persons of SNB SF10 with 59 friends each, 30 M vertices and 175 M
    /// edges.
    ///
    /// # Panics
    /// If that is fewer than one person or more than 2²⁰.
    pub fn new(scale: f64, seed: u64) -> Self {
        Self::with_friends((scale * shape::PERSONS).round() as u32, shape::FRIENDS_MEAN, seed)
    }

    /// A network with these numbers of persons and of friends on average, which SNB makes larger with
    /// its scale factors: SF0.1 has 1,528 and 18.4.
    ///
    /// # Panics
    /// If there are no persons or more than 2²⁰.
    pub fn with_friends(persons: u32, friends_mean: f64, seed: u64) -> Self {
        assert!((1..=1 << time::OWN_BITS).contains(&persons), "a network has 1 to 2^20 persons, not {persons}");
        Self { people: Arc::new(People::new(persons, friends_mean, seed)) }
    }

    /// How many persons there are.
    pub fn persons(&self) -> u32 {
        self.people.count()
    }

    /// The vertices of a label, each once; persons, forums and messages person by person, not by key.
    pub fn vertices(&self, label: SocialLabel) -> Box<dyn Iterator<Item = SocialVertex> + Send> {
        let fixed = |count: u64| -> Box<dyn Iterator<Item = SocialVertex> + Send> {
            Box::new((0..count as i64).map(|key| SocialVertex { key, created_unix_ms: None }))
        };
        match label {
            SocialLabel::Tag => fixed(topics::TAGS),
            SocialLabel::TagClass => fixed(topics::CLASSES),
            SocialLabel::Organisation => fixed(places::ORGANISATIONS),
            SocialLabel::Place => fixed(places::PLACES),
            _ => self.of_each_person(move |people, person, out| edges::vertices_of(people, person, label, out)),
        }
    }

    /// The edges of a type; those that persons, forums and messages have, person by person.
    pub fn edges(&self, relation: SocialRelation) -> Box<dyn Iterator<Item = KeyedEdge> + Send> {
        let keyed = |(source, target): super::Edge| (source as i64, target as i64);
        match relation {
            SocialRelation::HasType => Box::new(topics::types().map(keyed)),
            SocialRelation::IsSubclassOf => Box::new(topics::subclasses().map(keyed)),
            SocialRelation::OrganisationIsLocatedIn => Box::new(places::seats().map(keyed)),
            SocialRelation::IsPartOf => Box::new(places::parts().map(keyed)),
            _ => self.of_each_person(move |people, person, out| edges::of_person(people, person, relation, out)),
        }
    }

    /// All that `of_person` adds for each person in turn.
    fn of_each_person<T: Send + 'static>(
        &self,
        of_person: impl Fn(&People, u32, &mut Vec<T>) + Send + 'static,
    ) -> Box<dyn Iterator<Item = T> + Send> {
        let people = self.people.clone();
        Box::new((0..people.count()).flat_map(move |person| {
            let mut found = Vec::new();
            of_person(&people, person, &mut found);
            found
        }))
    }
}
