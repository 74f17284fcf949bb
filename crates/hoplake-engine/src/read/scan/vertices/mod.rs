//! Vertices of a label that match a condition, as a stream of rows in the order of their ordinals.
//!
//! ```text
//! row groups ── bounds say that none can match it? skipped ──▶ parts of some 8 MiB ──▶ columns of the condition
//!     ──▶ rows that match it ──▶ the other columns, of these alone
//! ```
//! A part is read by a task of its own, and several at a time, so that the network and both the processors have something to do;
//! they are handed out in order. What is read goes past the caches ([`Through::Extents`]).
//!
//! **Indexes.** If a property index leads to few enough vertices ([`crate::read::property_index`]), parts are of these alone: nothing else is
//! read, tested or skipped. With a vertex come the rows of its page, which parts count.
//!
//! **Changes.** The oldest row of a vertex is in the table of the run that added it. Which vertices newer runs changed, and which were
//! deleted, is read first and kept: some bytes for each. A row group may be skipped only but for the vertices that were changed.
//!
//! **Limits.** A caller who wants few rows does not pay for many: parts begin small, one at a time, and double.

mod alive;
mod changed;
mod find;
mod part;
mod plan;
mod query;
mod reading;
mod rows;
mod sorted;
mod stretches;

use std::{collections::VecDeque, ops::Range, sync::Arc};

use futures::future::{BoxFuture, try_join};
use hoplake_storage::Branch;

use crate::{
    EngineError, Held, Snapshot,
    read::{adjacency::vertex_property, property_index::Candidates, scan::OnItsWay},
};
use part::{COPIES, FIRST_PART_ROWS, PART_BYTES, PART_BYTES_MIN, PART_ROWS, PARTS_MAX, PartVertices, ScanPart};
use plan::Plan;
use stretches::Vertices;

pub use query::{FoundVertices, VertexQuery};
pub use sorted::{SortedBy, first_rows};

/// A part that is being read, and the branch that reads it.
type Coming = OnItsWay<(Held<FoundVertices>, Branch)>;

/// A scan under way, from [`Snapshot::scan_vertices`].
pub struct VertexScan {
    plan: Arc<Plan>,
    left: Left,
    /// Parts that are read now, in order, with what each takes.
    coming: VecDeque<(u64, Coming)>,
    part_bytes: u64,
    /// Rows of the next part, at most.
    part_rows: u64,
    /// Parts that are read at a time, at most.
    at_once: usize,
    /// What they take together, at most, unless it is one alone.
    at_once_bytes: u64,
}

/// What is left of a scan.
enum Left {
    /// Row groups, in order; the first perhaps in part.
    Groups(VecDeque<plan::Group>),
    /// What an index leads to, from a number on, and what their rows take.
    Candidates { all: Candidates, from: usize, rows: plan::SparseRows },
}

impl Snapshot {
    /// Scans the vertices of a label. If an index answers, one wave for it; else two for metadata of tables and for what was changed
    /// and deleted. What is known of tables already takes none.
    ///
    /// # Errors
    /// [`EngineError::NotFound`] if the label lacks a property that is to be returned; [`EngineError::Invalid`] if a value of the
    /// condition is none of its property's type; the store's.
    pub fn scan_vertices<'a>(
        self: &'a Arc<Self>,
        query: VertexQuery,
        branch: &'a mut Branch,
    ) -> BoxFuture<'a, Result<VertexScan, EngineError>> {
        Box::pin(async move {
            let wanted = query.wanted;
            let has_condition = query.condition.is_some();
            let (plan, left) = self.plan_scan(query, branch).await?;
            let memory_left = branch.context().memory().left();
            let part_bytes = (memory_left / (4 * COPIES)).clamp(PART_BYTES_MIN, PART_BYTES);
            // At least two parts, so that one is read while another is decoded.
            let by_network = self.ahead_bytes(branch.context()).max(2 * part_bytes);
            // One is read whatever is left, and fails if that is too little.
            let at_once_bytes = by_network.min(memory_left / 2 / COPIES).max(1);
            let (part_rows, at_once) = match wanted {
                None => (PART_ROWS, PARTS_MAX),
                // Without a condition every row is one that is wanted.
                Some(rows) if !has_condition => ((rows as u64).clamp(1, PART_ROWS), 1),
                Some(_) => (FIRST_PART_ROWS, 1),
            };
            Ok(VertexScan {
                plan: Arc::new(plan),
                left,
                coming: VecDeque::new(),
                part_bytes,
                part_rows,
                at_once,
                at_once_bytes,
            })
        })
    }

    async fn plan_scan(self: &Arc<Self>, query: VertexQuery, branch: &mut Branch) -> Result<(Plan, Left), EngineError> {
        let VertexQuery { label, condition, columns, wanted } = &query;
        if let Some(unknown) = columns.iter().find(|name| vertex_property(self.schema(), *label, name).is_none()) {
            return Err(plan::lacks(self, *label, &format!("{unknown:?}")));
        }
        let questions = match condition {
            Some(condition) => self.property_indexes().questions(*label, condition, branch.context())?,
            None => Vec::new(),
        };
        if !questions.is_empty() {
            let needs_rows = !columns.is_empty() || !questions.iter().any(|question| question.whole);
            let mut lines = [branch.clone(), branch.clone()];
            let [for_index, for_tables] = &mut lines;
            let tables = async {
                // The rows of what the index finds are then one wave more.
                match needs_rows {
                    true => self.tables().load_vertex_metadata(*label, for_tables).await,
                    false => Ok(()),
                }
            };
            let (found, ()) =
                try_join(self.property_indexes().candidates(*label, questions, *wanted, for_index), tables).await?;
            branch.join(&lines);
            if let Some(all) = found {
                let (plan, rows) = Plan::of_candidates(self, query, &all, branch).await?;
                return Ok((plan, Left::Candidates { all, from: 0, rows }));
            }
        }
        let (plan, groups) = Plan::new(self, query, branch).await?;
        Ok((plan, Left::Groups(groups.into())))
    }
}

impl VertexScan {
    /// The scan of those vertices alone whose ordinals are in a range.
    pub fn within(mut self, range: &Range<u64>) -> Self {
        match &mut self.left {
            Left::Groups(groups) => {
                for group in groups {
                    let start = group.rows.start.max(range.start);
                    group.rows = start..group.rows.end.min(range.end).max(start);
                }
            }
            Left::Candidates { all, .. } => all.ordinals.retain(|ordinal| range.contains(ordinal)),
        }
        self
    }

    /// The next vertices; `None` behind the last.
    ///
    /// # Errors
    /// The store's; [`EngineError::Table`] if a table is damaged; that a limit of the query was reached.
    pub fn next<'a>(
        &'a mut self,
        branch: &'a mut Branch,
    ) -> BoxFuture<'a, Result<Option<Held<FoundVertices>>, EngineError>> {
        Box::pin(async move {
            loop {
                while self.coming.len() < self.at_once
                    && self.bytes_coming() < self.at_once_bytes
                    && let Some(part) = self.next_part()
                {
                    let bytes = part.bytes;
                    let read = reading::read(self.plan.clone(), part, branch.clone());
                    self.coming.push_back((bytes, OnItsWay::begin(read)));
                }
                let Some((_, coming)) = self.coming.pop_front() else { return Ok(None) };
                let (found, came) = coming.arrived().await?;
                branch.join([&came]);
                self.part_rows = (self.part_rows * 2).min(PART_ROWS);
                self.at_once = (self.at_once * 2).min(PARTS_MAX);
                if found.len() > 0 {
                    return Ok(Some(found));
                }
            }
        })
    }

    fn bytes_coming(&self) -> u64 {
        self.coming.iter().map(|(bytes, _)| bytes).sum()
    }

    fn next_part(&mut self) -> Option<ScanPart> {
        let groups = match &mut self.left {
            Left::Groups(groups) => groups,
            Left::Candidates { all, from, rows } => {
                let (part, bytes) = rows.part(&all.ordinals[*from..], self.part_bytes, self.part_rows);
                *from += part.len();
                let vertices = PartVertices::Vertices(Vertices::These(part.to_vec()));
                return (!part.is_empty()).then_some(ScanPart { vertices, bytes });
            }
        };
        loop {
            let group = groups.front_mut()?;
            if group.rows.is_empty() {
                groups.pop_front();
                continue;
            }
            let start = group.rows.start;
            let changed = self.plan.changed_within(&group.rows);
            // A changed row may have a long value where the one that it replaces had none.
            let of_changed = if changed.is_empty() { 0 } else { self.plan.changed_row_bytes };
            let row_bytes = of_changed.max(group.row_bytes);
            let rows = (self.part_bytes / row_bytes).clamp(1, self.part_rows);
            let end = match group.may_match {
                true => group.rows.end.min(start + rows),
                false => match changed.get(rows as usize) {
                    Some(behind) => behind.ordinal,
                    None => group.rows.end,
                },
            };
            group.rows.start = end;
            let count = if group.may_match { end - start } else { rows.min(changed.len() as u64) };
            if count > 0 {
                let vertices = match group.may_match {
                    true => PartVertices::Vertices(Vertices::Stretch(start..end)),
                    false => PartVertices::Changed(start..end),
                };
                return Some(ScanPart { vertices, bytes: count * row_bytes });
            }
        }
    }
}
