//! The workload through access nodes, in tables.

use super::{Numbers, Page, bytes, count, percent, row};
use crate::evaluate::nodes::{Figures, Round, Turn};

/// What the figures depend on.
const READING: &str = "\
What the figures show:

- **Nodes add their memory.** If one node holds everything that the workload reads (SNB SF0.1), more nodes change \
nothing. If it does not, *again* sends fewer requests to the store with each node, until together they hold nearly \
everything, and its time follows. One access node and its algorithm node are already two caches, against the one of a \
single server.
- **Another algorithm node** reads what the access nodes have cached: almost nothing remains for the store if they \
hold the workload, the rest if they do not.
- **The hop between nodes costs little**: from empty caches the small workload takes as long through nodes as without, \
because its time is the store's; a round without store requests shows the cost of processor and hop together.
- **Shares are uneven.** A node has whole stretches of 4 MiB, the workload reads from some of them, and the nodes' \
addresses (here: their ports, which are random) determine their node; so of two nodes one may evict while the other \
has free capacity. There are hardly more requests: few begin in one stretch and end in the next.
- **A hedge goes to the next node.** If that node answers first, the slow read of the right node is cancelled, and the \
block is not where later queries look for it: the next query reads it once more.";

/// A table a graph.
pub fn write(page: &mut Page<'_>, graphs: &[Numbers]) {
    page.say("## One and more access nodes");
    page.command("--part nodes");
    page.say(
        "The workload breadth-first over gRPC, as a client sees it: none is one server that reads the store; one to \
         three are access nodes, each in front of its own store, and an algorithm node in front of them. *First* \
         begins with empty caches, *again* repeats the same queries, *another* goes through a second algorithm node \
         that has just started (without access nodes: a second server with its own cache). The open of the graph is \
         excluded. Answers are equal to the embedded graph's. **This is real time** on a machine of two cores which \
         all nodes and the client share: waits for a store or for cache capacity scale as on separate machines, \
         processor-bound work does not.",
    );
    for numbers in graphs {
        let Some(figures) = &numbers.nodes else { continue };
        let memory = figures.cache_bytes_max >> 20;
        page.say(&format!(
            "### {}\n\n{memory} MiB of memory in each node, the algorithm node too:",
            numbers.facts.name
        ));
        let mut rows = vec![row([
            "at once",
            "access nodes",
            "round",
            "total, s",
            "processor, s",
            "p50, ms",
            "p99, ms",
            "to access nodes",
            "hedges",
            "store requests",
            "of the busiest node",
            "bytes",
            "dollars",
        ])];
        let mut sorted: Vec<&Round> = figures.rounds.iter().collect();
        sorted.sort_by_key(|round| round.at_once);
        rows.extend(sorted.into_iter().map(cells));
        page.table(&rows);
        beside_the_study(figures).into_iter().for_each(|text| page.say(&text));
    }
    page.say(READING);
}

/// The study's figure: how much faster two nodes are than one; none where one has all in memory.
fn beside_the_study(figures: &Figures) -> Option<String> {
    let again = |access_nodes, at_once| {
        let wanted = (access_nodes, at_once, Turn::Again);
        figures.rounds.iter().find(|round| (round.access_nodes, round.at_once, round.turn) == wanted)
    };
    let gain = |nodes, at_once| Some(again(1, at_once)?.seconds / again(nodes, at_once)?.seconds);
    again(1, 1).filter(|round| round.requests[0] > 0)?;
    Some(format!(
        "*Again*, compared with one access node: two are {:.1} × as fast with one query at a time and {:.1} × with 10 at \
         once, three are {:.1} × and {:.1} ×. The study found two 3 × as fast as one.",
        gain(2, 1)?,
        gain(2, 10)?,
        gain(3, 1)?,
        gain(3, 10)?
    ))
}

fn name(turn: Turn) -> &'static str {
    match turn {
        Turn::First => "first",
        Turn::Again => "again",
        Turn::Another => "another",
    }
}

fn cells(round: &Round) -> Vec<String> {
    let requests = round.requests.iter().sum::<u64>();
    let busiest = round.requests.iter().max();
    let share = busiest.filter(|_| round.access_nodes > 1 && requests > 0);
    let fetches = if round.access_nodes > 0 { count(round.fetches) } else { "–".into() };
    vec![
        round.at_once.to_string(),
        round.access_nodes.to_string(),
        name(round.turn).into(),
        format!("{:.2}", round.seconds),
        format!("{:.2}", round.processor_s),
        format!("{:.1}", round.ms.p50),
        format!("{:.1}", round.ms.p99),
        fetches,
        count(round.hedges),
        count(requests),
        share.map_or("–".into(), |busiest| percent(*busiest as f64 / requests as f64)),
        bytes(round.bytes as f64),
        format!("{:.6}", round.usd),
    ]
}
