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
    let (mut found, mut expanded) = (Vec::new(), 0);
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
