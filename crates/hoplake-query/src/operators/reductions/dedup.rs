//! Each row once.

use std::collections::HashSet;

use foldhash::fast::RandomState;
use hoplake_format::VertexId;
use hoplake_storage::MemoryHold;

use crate::{
    operators::prelude::*,
    run::reduce::OwnedKey,
    value::{ELEMENT_BYTES, value_bytes},
};

/// Each row once, by what was met under names or what is computed.
#[derive(Debug, Clone, PartialEq)]
pub struct Dedup {
    /// The names; the item without.
    pub names: Vec<Name>,
    /// What of each, in turn.
    pub by: Vec<By>,
}

impl Operator for Dedup {
    nested!(by);

    fn is_stateful(&self) -> bool {
        true
    }

    fn reach(&self, reach: &mut Reach<'_>, input: Elements) -> Elements {
        let of = if self.names.is_empty() { input.clone() } else { input.clone().others() };
        reach.each_by(&self.by, &of);
        input
    }

    fn start(self: Arc<Self>) -> Running {
        Running::new(Deduplicating { operator: self, seen: DistinctItems::default() })
    }
}

#[derive(Debug)]
struct Deduplicating {
    operator: Arc<Dedup>,
    seen: DistinctItems,
}

impl Stage for Deduplicating {
    fn input<'a>(&'a mut self, run: &'a mut Run, batch: Batch, out: &'a mut Vec<Output>) -> BoxFuture<'a, Done<()>> {
        Box::pin(async move {
            let Dedup { names, by } = &*self.operator;
            out.push(Output::Same(run.dedup(batch, &mut self.seen, names, by).await?));
            Ok(())
        })
    }
}

/// What an entry of a set takes besides its item: a byte of control, in a table that is at least 7/16 full.
const ENTRY_BYTES: usize = 16;

/// The distinct items so far, by frame.
#[derive(Debug, Default)]
pub(crate) struct DistinctItems {
    /// Most that is deduplicated are vertices.
    vertices: HashSet<(u32, VertexId), RandomState>,
    others: HashSet<(u32, OwnedKey)>,
    bytes: u64,
    hold: Option<MemoryHold>,
}

impl DistinctItems {
    /// Whether a vertex has not come before.
    fn is_new(&mut self, frame: u32, vertex: VertexId) -> bool {
        let is_new = self.vertices.insert((frame, vertex));
        self.bytes += if is_new { (size_of::<(u32, VertexId)>() * 2 + ENTRY_BYTES) as u64 } else { 0 };
        is_new
    }

    fn is_new_value(&mut self, frame: u32, value: Value) -> bool {
        let bytes = (value_bytes(&value) * 2 + ENTRY_BYTES) as u64;
        let is_new = self.others.insert((frame, OwnedKey(value)));
        self.bytes += if is_new { bytes } else { 0 };
        is_new
    }
}

impl Run {
    /// The rows whose item, or what was met or is computed of them, has not come before.
    pub(crate) async fn dedup(
        &mut self,
        batch: Batch,
        seen: &mut DistinctItems,
        names: &[Name],
        by: &[By],
    ) -> Done<Batch> {
        let growth = self.growth.clone();
        let kept = if names.is_empty() && by.iter().all(|by| *by == By::Identity) {
            by_item(batch, seen, &growth)?
        } else {
            let keys = self.keys(&batch, names, by).await?;
            growth.take(keys.len() * ENTRY_BYTES * 4)?;
            let mut keys = keys.into_iter();
            kept(batch, |frame, _| keys.next().flatten().is_some_and(|key| seen.is_new_value(frame, key)))
        };
        growth.hand_over(&mut seen.hold, seen.bytes)?;
        Ok(kept)
    }

    async fn keys(&mut self, batch: &Batch, names: &[Name], by: &[By]) -> Done<Vec<Option<Value>>> {
        let identity = By::Identity;
        if names.is_empty() {
            return self.by(by.first().unwrap_or(&identity), batch).await;
        }
        let mut columns = Vec::with_capacity(names.len());
        for (number, name) in names.iter().enumerate() {
            let met = self.needed(name, "dedup", batch).await?.into_iter().map(Some).collect();
            let by = if by.is_empty() { &identity } else { &by[number % by.len()] };
            columns.push(self.by_of(by, batch, met).await?);
        }
        self.growth.take(batch.len() * (names.len() + 1) * size_of::<Value>())?;
        let mut row = |at: usize| columns.iter_mut().map(|column| column[at].take()).collect::<Option<Vec<_>>>();
        Ok((0..batch.len()).map(|at| row(at).map(Value::List)).collect())
    }
}

fn by_item(batch: Batch, seen: &mut DistinctItems, growth: &Growth) -> Done<Batch> {
    // A batch of other items may have vertices, too: all are in one set then.
    if let Items::Vertices(vertices) = &batch.items
        && seen.others.is_empty()
    {
        growth.take(vertices.len() * (size_of::<(u32, VertexId)>() * 3 + ENTRY_BYTES))?;
        let vertices = vertices.clone();
        return Ok(kept(batch, |frame, at| seen.is_new(frame, vertices[at])));
    }
    growth.take(seen.vertices.len() * (size_of::<(u32, OwnedKey)>() * 2 + ELEMENT_BYTES))?;
    for (frame, vertex) in seen.vertices.drain() {
        seen.others.insert((frame, OwnedKey(vertex.into())));
    }
    growth.take(batch.len() * ENTRY_BYTES * 4)?;
    let mut values = batch.items.copies(growth)?.into_iter();
    Ok(kept(batch, |frame, _| values.next().is_some_and(|value| seen.is_new_value(frame, value))))
}

/// The rows that are kept, each once.
fn kept(mut batch: Batch, mut is_kept: impl FnMut(u32, usize) -> bool) -> Batch {
    let mut places = Vec::new();
    for (at, row) in batch.rows.iter_mut().enumerate() {
        if is_kept(row.frame, at) {
            row.bulk = 1;
            places.push(at as u32);
        }
    }
    if places.len() == batch.len() {
        return batch;
    }
    let mut places = places.into_iter().peekable();
    batch.keep(|at| places.next_if_eq(&(at as u32)).is_some())
}
