//! Reads a version without faults, and compares it with the answers that writers got.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, bail, ensure};
use hoplake::{Graph, Hop, HopDirection, Key, Query, Value, VertexId};

use super::{
    ledger::{Ledger, Outcome},
    script::{Attempt, WINDOW, source, writer},
};

/// The batches in a version, by writer and number, each with the name of the attempt.
pub(super) type VersionBatches = BTreeMap<u32, BTreeMap<u64, String>>;

/// What a version has, if it does not contradict itself: each of the last [`WINDOW`] batches once and completely, and
/// rows, lamps and positions of sources that are of the last one.
pub(super) async fn read(graph: &Graph, writers: u32) -> anyhow::Result<VersionBatches> {
    let mut reading = Reading { query: graph.query(), graph };
    let mut seen = VersionBatches::new();
    for number in 1..=writers {
        let of_writer = reading.batches(number).await.with_context(|| format!("writer {number}"))?;
        seen.insert(number, of_writer);
    }
    Ok(seen)
}

struct Reading<'a> {
    query: Query,
    graph: &'a Graph,
}

/// An edge with the key of what it leads to and its property.
#[derive(Debug)]
struct Edge {
    from: VertexId,
    to: VertexId,
    key: String,
    batch: i64,
}

impl Reading<'_> {
    async fn batches(&mut self, number: u32) -> anyhow::Result<BTreeMap<u64, String>> {
        let end = writer(number);
        let id = self.query.vertex(&end.label, end.key).await?.context("it is not there")?;
        let wrote = self.edges(&[id], HopDirection::Out, "wrote").await?;
        let mut found: BTreeMap<Attempt, BTreeMap<u64, VertexId>> = BTreeMap::new();
        for edge in &wrote {
            let (attempt, item) = Attempt::of_item(&edge.key).with_context(|| format!("{edge:?} leads to no item"))?;
            ensure!(attempt.writer == number && attempt.batch as i64 == edge.batch, "{edge:?} leads elsewhere");
            ensure!(found.entry(attempt).or_default().insert(item, edge.to).is_none(), "{edge:?} occurs twice");
        }
        self.check_items(id, &wrote, &found).await?;
        let counts = found.into_iter().map(|(attempt, items)| (attempt, items.len() as u64)).collect();
        let batches = whole(&counts, Attempt::items)?;
        let last = self.check_last(id, number).await?;
        ensure!(batches.get(&last.batch) == Some(&last.name), "{last} is the last, items are of another attempt");
        Ok(batches)
    }

    /// Items are reached both ways and have their rows, and the edges between them.
    async fn check_items(
        &mut self,
        id: VertexId,
        wrote: &[Edge],
        found: &BTreeMap<Attempt, BTreeMap<u64, VertexId>>,
    ) -> anyhow::Result<()> {
        let items: Vec<VertexId> = wrote.iter().map(|edge| edge.to).collect();
        // Both directions are sections of their own: a half-applied batch may be whole in one of them.
        let back = self.edges(&items, HopDirection::In, "wrote").await?;
        let out: BTreeSet<_> = wrote.iter().map(|edge| (edge.to, edge.batch)).collect();
        let back_found: BTreeSet<_> = back.iter().map(|edge| (edge.from, edge.batch)).collect();
        ensure!(
            back.len() == wrote.len() && back_found == out && back.iter().all(|edge| edge.to == id),
            "{} items are reached forwards, {} backwards",
            out.len(),
            back_found.len()
        );
        let rows = self.rows(&items).await?;
        let next = self.edges(&items, HopDirection::Out, "next").await?;
        let next: BTreeSet<_> = next.into_iter().map(|edge| (edge.from, edge.to, edge.batch)).collect();
        let mut expected = BTreeSet::new();
        for (attempt, items) in found {
            let batch = attempt.batch as i64;
            for (number, item) in items {
                ensure!(rows.get(item) == Some(&batch), "item {number} of {attempt} has the row {:?}", rows.get(item));
                expected.extend(items.get(&(number + 1)).map(|after| (*item, *after, batch)));
            }
        }
        ensure!(next == expected, "of {} edges between items {} are there", expected.len(), next.len());
        Ok(())
    }

    /// The last batch, by position, row and lamp.
    async fn check_last(&mut self, id: VertexId, number: u32) -> anyhow::Result<Attempt> {
        let position = self.graph.source_position(&source(number)).context("its source has no position")?;
        let last = Attempt::at_position(number, position).with_context(|| format!("its position is {position:?}"))?;
        let row = self.rows(&[id]).await?.remove(&id);
        ensure!(row == Some(last.batch as i64), "its position is {position:?}, its row has {row:?}");
        let lit = self.edges(&[id], HopDirection::Out, "lit").await?;
        let lamp = last.lamp();
        let is_last = |edge: &Edge| Key::from(edge.key.as_str()) == lamp.key && edge.batch == last.batch as i64;
        // One batch lights a lamp and deletes the one before: two, or none, are half of it.
        ensure!(lit.len() == 1 && is_last(&lit[0]), "its position is {position:?}, its lamps are {lit:?}");
        if last.batch > 1 {
            let before = Attempt { batch: last.batch - 1, ..last.clone() }.lamp();
            let there = self.query.vertex(&before.label, before.key.clone()).await?;
            ensure!(there.is_none(), "lamp {before} is there, and so is {lamp}");
        }
        Ok(last)
    }

    async fn edges(&mut self, from: &[VertexId], direction: HopDirection, label: &str) -> anyhow::Result<Vec<Edge>> {
        let edges = self.query.neighbors(from, &Hop::along(direction, label)).await?;
        let keys = self.query.keys_of(edges.targets()).await?;
        // No batch has this number: an edge without the property then matches none.
        let mut batches = vec![-1; edges.len()];
        for rows in self.query.edge_properties(&edges, &["batch".to_owned()]).await? {
            for (row, at) in rows.positions.iter().enumerate() {
                batches[*at] = number(Value::at(rows.batch.column(0), row));
            }
        }
        let edge = |((edge, key), batch): ((hoplake::Neighbour, Key), i64)| Edge {
            from: edge.from,
            to: edge.to,
            key: key.to_string(),
            batch,
        };
        Ok(edges.iter().zip(keys).zip(batches).map(edge).collect())
    }

    /// The content of rows of one label.
    async fn rows(&mut self, vertices: &[VertexId]) -> anyhow::Result<BTreeMap<VertexId, i64>> {
        let sorted: BTreeSet<VertexId> = vertices.iter().copied().collect();
        let rows = self.query.properties(&sorted.iter().copied().collect(), &["batch".to_owned()]).await?;
        let [rows] = &rows[..] else { bail!("{} labels have rows", rows.len()) };
        let column = rows.batch.column_by_name("batch").context("rows have no property batch")?;
        Ok(sorted.into_iter().enumerate().map(|(row, id)| (id, number(Value::at(column, row)))).collect())
    }
}

/// The batches of a writer, by their number, from how many items each attempt has: each is there once, with as many as
/// it should have, and they are the last ones, without a gap.
pub(super) fn whole(
    counts: &BTreeMap<Attempt, u64>,
    due: impl Fn(&Attempt) -> u64,
) -> anyhow::Result<BTreeMap<u64, String>> {
    let mut batches = BTreeMap::new();
    for (attempt, count) in counts {
        ensure!(*count == due(attempt), "{attempt} has {count} of its {} items", due(attempt));
        // Each attempt has items of its own, so that a batch that was published twice is there under two names.
        let other = batches.insert(attempt.batch, attempt.name.clone());
        ensure!(other.is_none(), "{attempt} is there, and so is attempt {}", other.unwrap_or_default());
    }
    let last = batches.keys().last().copied().unwrap_or(0);
    let first = last.saturating_sub(WINDOW) + 1;
    ensure!(
        batches.keys().copied().eq(first..=last),
        "batches {first} to {last} are due, there are {:?}",
        batches.keys()
    );
    Ok(batches)
}

fn number(value: Value) -> i64 {
    if let Value::Int64(number) = value { number } else { -1 }
}

/// Compares a version with the answers, also later ones: an acknowledged or rejected batch was decided before.
pub(super) fn hold(seen: &VersionBatches, version: u64, ledger: &Ledger) -> anyhow::Result<()> {
    for (writer, batches) in seen {
        let last = batches.keys().last().copied().unwrap_or(0);
        for (attempt, outcome) in ledger.of_writer(*writer) {
            let found = batches.get(&attempt.batch);
            let is_there = found == Some(&attempt.name);
            // A deleted batch shows only by its successors.
            let is_due = |since: u64| since <= version && attempt.batch + WINDOW > last;
            match *outcome {
                Outcome::Acknowledged(since) if is_there != is_due(since) => {
                    bail!("{attempt} was acknowledged for version {since}; in version {version} there is {found:?}")
                }
                Outcome::Acknowledged(since) if since <= version && last < attempt.batch => {
                    bail!("{attempt} was acknowledged for version {since}; version {version} ends with batch {last}")
                }
                Outcome::Rejected if is_there => bail!("{attempt} was rejected; in version {version} it is there"),
                _ => {}
            }
        }
    }
    Ok(())
}

/// Compares a version with all attempts: it must not contain a batch that no writer began.
pub(super) fn hold_begun(seen: &VersionBatches, ledger: &Ledger) -> anyhow::Result<()> {
    for (writer, batches) in seen {
        for (batch, name) in batches {
            let attempt = Attempt { writer: *writer, batch: *batch, name: name.clone() };
            ensure!(ledger.attempts.contains_key(&attempt), "{attempt} exists, but no writer began it");
        }
    }
    Ok(())
}
