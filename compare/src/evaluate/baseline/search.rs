//! Textbook searches, one vertex at a time.

use std::collections::{HashSet, VecDeque};

use anyhow::Result;
use hoplake::HopDirection;

use super::{
    Files,
    adjacency::{Edge, label, target},
};

/// A hop: the numbers of its labels, and its direction.
pub type Hop = (Vec<u16>, HopDirection);

/// (vertex, depth)
type Visit = (u64, usize);

/// The visits that are to come, in the order of the search.
trait Agenda: Default {
    fn add(&mut self, visit: Visit);
    fn next(&mut self) -> Option<Visit>;
}

impl Agenda for VecDeque<Visit> {
    fn add(&mut self, visit: Visit) {
        self.push_back(visit);
    }

    fn next(&mut self) -> Option<Visit> {
        self.pop_front()
    }
}

impl Agenda for Vec<Visit> {
    fn add(&mut self, visit: Visit) {
        self.push(visit);
    }

    fn next(&mut self) -> Option<Visit> {
        self.pop()
    }
}

/// The vertices that walks of all hops lead to, ascending, and how many vertices were expanded: breadth-first.
pub async fn breadth_first(files: &Files, start: u64, hops: &[Hop]) -> Result<(Vec<u64>, u64)> {
    search::<VecDeque<Visit>>(files, start, hops).await
}

/// The same, depth-first.
pub async fn depth_first(files: &Files, start: u64, hops: &[Hop]) -> Result<(Vec<u64>, u64)> {
    search::<Vec<Visit>>(files, start, hops).await
}

async fn search<A: Agenda>(files: &Files, start: u64, hops: &[Hop]) -> Result<(Vec<u64>, u64)> {
    let mut agenda = A::default();
    let mut seen: HashSet<Visit, foldhash::fast::RandomState> = HashSet::default();
    let mut found = Vec::new();
    let mut expanded = 0;
    agenda.add((start, 0));
    while let Some((vertex, depth)) = agenda.next() {
        let Some((labels, direction)) = hops.get(depth) else {
            found.push(vertex);
            continue;
        };
        expanded += 1;
        let file = files.holding(vertex).await?;
        let [incoming, outgoing] = file.lists(vertex);
        let wanted = |edge: &&Edge| labels.contains(&label(**edge));
        let come = incoming.iter().filter(|_| *direction != HopDirection::Out);
        let go = outgoing.iter().filter(|_| *direction != HopDirection::In);
        for edge in come.chain(go).filter(wanted) {
            let visit = (target(*edge), depth + 1);
            if seen.insert(visit) {
                agenda.add(visit);
            }
        }
    }
    found.sort_unstable();
    Ok((found, expanded))
}

#[cfg(test)]
mod tests {
    use hoplake::{Store, StoreProfile};
    use object_store::path::Path;

    use super::*;
    use crate::evaluate::baseline::{Adjacency, Partitions};

    /// 0 -a-> 1, 2; 1 -b-> 3; 2 -b-> 3, 4; 4 -a-> 0; 3 -a-> 3
    fn example() -> Adjacency {
        Adjacency::of_edges(5, &[(0, 0, 1), (0, 0, 2), (1, 1, 3), (2, 1, 3), (2, 1, 4), (4, 0, 0), (3, 0, 3)])
    }

    async fn files(partition_bytes: u64, cache_bytes_max: u64) -> (Files, Partitions) {
        let partitions = Partitions::cut(&example(), partition_bytes).await.unwrap();
        let store = Store::new(partitions.objects.clone(), Path::default(), "memory://baseline");
        (Files::new(&partitions, store.with_profile(StoreProfile::local()), cache_bytes_max), partitions)
    }

    #[tokio::test]
    async fn both_searches_find_what_walks_reach() {
        let (files, partitions) = files(60, 1 << 20).await;
        assert!(partitions.len() > 1, "{} files", partitions.len());
        let a = 0;
        let b = 1;
        for (start, hops, expected) in [
            (0, vec![(vec![a], HopDirection::Out), (vec![b], HopDirection::Out)], vec![3, 4]),
            (3, vec![(vec![b], HopDirection::In)], vec![1, 2]),
            (0, vec![(vec![a], HopDirection::Both)], vec![1, 2, 4]),
            (3, vec![(vec![a, b], HopDirection::Both); 2], vec![0, 1, 2, 3, 4]),
            (1, vec![(vec![a], HopDirection::Out)], vec![]),
        ] {
            assert_eq!(breadth_first(&files, start, &hops).await.unwrap().0, expected, "{start}, {hops:?}");
            assert_eq!(depth_first(&files, start, &hops).await.unwrap().0, expected, "{start}, {hops:?}");
        }
    }

    #[tokio::test]
    async fn a_budget_holds_so_many_files() {
        let around = vec![(vec![0, 1], HopDirection::Both); 3];
        let (all, _) = files(60, 1 << 20).await;
        let (_, accesses) = breadth_first(&all, 0, &around).await.unwrap();
        let (none, _) = files(60, 0).await;
        breadth_first(&none, 0, &around).await.unwrap();
        assert_eq!(none.hits(), 0);
        assert!(all.hits() > accesses / 2 && all.hits() < accesses, "{} of {accesses}", all.hits());
    }
}
