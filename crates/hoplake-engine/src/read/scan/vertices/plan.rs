//! What a scan knows before it reads rows: of all vertices of a label, or of those that an index leads to.

use std::{ops::Range, sync::Arc};

use arrow_array::RecordBatch;
use arrow_buffer::BooleanBuffer;
use arrow_schema::Field;
use hoplake_format::{LabelId, PropertyType, TableOwner, constants::KEY_COLUMN, table::TableSettings};
use hoplake_storage::{Branch, MemoryHold, Pace};

use super::{
    alive::Alive,
    changed::{ChangedRow, all_changed_rows},
    part::COPIES,
    query::VertexQuery,
    rows::PartRows,
    stretches::{Stretches, Vertices},
};
use crate::{
    Condition, EngineError, PropertyName, PropertyOf, Snapshot, Test,
    read::{
        adjacency::vertex_property,
        condition::{Bounds, TypedTest, Verdicts},
        properties::Changed,
        property_index::Candidates,
        tables::{self, Layout, Table, Through},
    },
};

/// Rows found by an index are read through the caches if there are fewer than this: the query may need them again.
const FEW_ROWS: usize = 1 << 12;

/// What a row takes besides its columns: its ordinal, twice, and where its row is.
const ROW_BYTES: u64 = 40 / COPIES;

/// Vertices whose oldest rows are in one row group.
#[derive(Debug)]
pub(super) struct Group {
    /// Their ordinals.
    pub(super) rows: Range<u64>,
    /// What a row takes, its columns decompressed.
    pub(super) row_bytes: u64,
    /// Whether one of the rows may match the condition.
    pub(super) may_match: bool,
}

/// What the rows of some vertices take, of which few may be next to each other.
#[derive(Debug)]
pub(super) struct SparseRows {
    /// A row, its columns decompressed.
    row_bytes: u64,
    /// Rows read to get one of them (a page).
    page_rows: u64,
}

impl SparseRows {
    /// The first of some ascending ordinals that are a part, and what it takes. With a row come those of its page, unless they came
    /// with the row before.
    pub(super) fn part<'a>(&self, ordinals: &'a [u64], bytes_max: u64, rows_max: u64) -> (&'a [u64], u64) {
        let mut bytes = 0u64;
        let mut count = 0;
        let mut behind: Option<u64> = None;
        for ordinal in ordinals.iter().take(usize::try_from(rows_max).unwrap_or(usize::MAX)) {
            let rows = behind.map_or(self.page_rows, |behind| (ordinal + 1 - behind).min(self.page_rows));
            let more = self.row_bytes.saturating_mul(rows);
            if count > 0 && more > bytes_max.saturating_sub(bytes) {
                break;
            }
            bytes = more.saturating_add(bytes);
            count += 1;
            behind = Some(ordinal + 1);
        }
        (&ordinals[..count], bytes)
    }
}

/// A condition whose tests have the types of the label's properties.
pub(super) struct Tested {
    condition: Condition,
    tests: Vec<LabelTest>,
    pub(super) columns: Vec<String>,
}

/// A test on vertices of one label.
enum LabelTest {
    /// On one of the columns of [`Tested`].
    Of(TypedTest, usize),
    /// The same verdict on every vertex: on the label, or because it does not have the property.
    OfLabel(Option<bool>),
    /// By ordinal, ascending.
    OneOf(Vec<u64>),
}

pub(super) struct Plan {
    pub(super) snapshot: Arc<Snapshot>,
    pub(super) label: LabelId,
    pub(super) tested: Option<Tested>,
    /// The columns to return.
    pub(super) columns: Vec<String>,
    pub(super) alive: Alive,
    changed: Changes,
    /// What the columns of a changed row take, decompressed, in the table where that is most.
    pub(super) changed_row_bytes: u64,
    _memory: MemoryHold,
}

/// Which vertices have rows that newer runs wrote.
enum Changes {
    /// All of the label, by ordinal.
    Known(Vec<ChangedRow>),
    /// Looked up with the rows.
    Sought,
}

impl Plan {
    pub(super) async fn new(
        snapshot: &Arc<Snapshot>,
        query: VertexQuery,
        branch: &mut Branch,
    ) -> Result<(Self, Vec<Group>), EngineError> {
        let VertexQuery { label, condition, columns, .. } = query;
        let tested = condition.map(|condition| Tested::new(snapshot, label, condition)).transpose()?;
        let tables = snapshot.tables().of(TableOwner::Vertices(label), None);
        let mut lines = [branch.clone(), branch.clone(), branch.clone(), branch.clone()];
        let [for_layouts, for_changed, for_changes, for_alive] = &mut lines;
        // What the parts need to know of the tables of changed rows comes in the same wave.
        let changed_tables = snapshot.tables().of(TableOwner::Changed(label), None);
        let (layouts, changed_layouts, (changed, memory), alive) = futures::future::try_join4(
            snapshot.tables().layouts(tables.iter().copied(), for_layouts),
            snapshot.tables().layouts(changed_tables.iter().copied(), for_changed),
            all_changed_rows(snapshot, label, for_changes),
            Alive::of(snapshot, label, for_alive),
        )
        .await?;
        branch.join(&lines);
        let mut groups = Vec::new();
        let names = tested.iter().flat_map(|tested| &tested.columns).chain(&columns);
        let names: Vec<_> = names.cloned().collect();
        let changed_row_bytes =
            changed_layouts.iter().flat_map(|layout| layout.groups(&names)).map(|group| row_bytes(&group)).max();
        let mut pace = branch.context().pace();
        for (table, layout) in tables.iter().zip(layouts) {
            let may = tested.as_ref().map(|tested| tested.may_match(snapshot, label, table, layout)).transpose()?;
            let of_table = layout.groups(&names).into_iter().enumerate().map(|(number, group)| Group {
                row_bytes: row_bytes(&group),
                rows: table.reference.first_row + group.rows.start..table.reference.first_row + group.rows.end,
                may_match: may.as_ref().is_none_or(|may| may.value(number)),
            });
            groups.extend(of_table);
            let tests = tested.as_ref().map_or(1, |tested| tested.tests.len());
            pace.rest(layout.groups(&[]).len() as u64 * tests as u64).await?;
        }
        // Tables may be in any order in the manifest.
        groups.sort_by_key(|group| group.rows.start);
        let changed = Changes::Known(changed);
        let snapshot = snapshot.clone();
        let changed_row_bytes = changed_row_bytes.unwrap_or(0);
        let plan = Self { snapshot, label, tested, columns, alive, changed, changed_row_bytes, _memory: memory };
        Ok((plan, groups))
    }

    /// The plan for vertices that an index leads to, and the most that their rows take. What is to be known of tables was read, so that
    /// nothing waits.
    pub(super) async fn of_candidates(
        snapshot: &Arc<Snapshot>,
        query: VertexQuery,
        candidates: &Candidates,
        branch: &mut Branch,
    ) -> Result<(Self, SparseRows), EngineError> {
        let VertexQuery { label, condition, columns, .. } = query;
        let condition = condition.filter(|_| !candidates.exact);
        let tested = condition.map(|condition| Tested::new(snapshot, label, condition)).transpose()?;
        let names: Vec<_> = tested.iter().flat_map(|tested| &tested.columns).chain(&columns).cloned().collect();
        let mut rows = SparseRows { row_bytes: ROW_BYTES, page_rows: 1 };
        if !names.is_empty() {
            let owners = [TableOwner::Vertices(label), TableOwner::Changed(label)];
            let tables = owners.into_iter().flat_map(|owner| snapshot.tables().of(owner, None));
            let layouts = snapshot.tables().layouts(tables, branch).await?;
            let groups = layouts.iter().flat_map(|layout| layout.groups(&names));
            let row_bytes = groups.map(|group| row_bytes(&group)).max().unwrap_or(ROW_BYTES);
            let TableSettings { page_rows, page_bytes, .. } = TableSettings::default();
            // A page of each column, which ends at a number of rows or of bytes.
            let of_bytes = (names.len() * page_bytes) as u64 / row_bytes + 1;
            rows = SparseRows { row_bytes, page_rows: of_bytes.min(page_rows as u64) };
        }
        let memory = branch.context().hold(0)?;
        // An index has no item of a vertex that was deleted.
        let alive = Alive::All;
        let changed = Changes::Sought;
        let snapshot = snapshot.clone();
        let plan = Self { snapshot, label, tested, columns, alive, changed, changed_row_bytes: 0, _memory: memory };
        Ok((plan, rows))
    }

    /// The changed vertices among some ordinals.
    pub(super) fn changed_within(&self, ordinals: &Range<u64>) -> &[ChangedRow] {
        let Changes::Known(changed) = &self.changed else { return &[] };
        let from = changed.partition_point(|row| row.ordinal < ordinals.start);
        let until = changed.partition_point(|row| row.ordinal < ordinals.end);
        &changed[from..until]
    }

    /// Where the row of each of some ascending ordinals is; nothing if none of them was changed.
    async fn rows_of(&self, ordinals: &[u64], branch: &mut Branch) -> Result<Vec<Changed>, EngineError> {
        if let Changes::Sought = self.changed {
            return self.snapshot.rows().changed(self.label, ordinals, 0, branch).await;
        }
        let (Some(first), Some(last)) = (ordinals.first(), ordinals.last()) else { return Ok(Vec::new()) };
        let changed = self.changed_within(&(*first..last + 1));
        if changed.is_empty() {
            return Ok(Vec::new());
        }
        let mut changed = changed.iter().peekable();
        let row = |ordinal: &u64| {
            while changed.next_if(|row| row.ordinal < *ordinal).is_some() {}
            changed.next_if(|row| row.ordinal == *ordinal).map(|row| row.row)
        };
        Ok(ordinals.iter().map(row).collect())
    }

    /// Some columns of some vertices.
    pub(super) async fn rows(
        &self,
        vertices: &Vertices,
        columns: &[String],
        branch: &mut Branch,
    ) -> Result<PartRows<'_>, EngineError> {
        let through = match self.changed {
            Changes::Sought if vertices.len() < FEW_ROWS => Through::Caches,
            _ => Through::Extents,
        };
        let is_sought = matches!(self.changed, Changes::Sought);
        if is_sought || !self.changed_within(&vertices.bounds()).is_empty() {
            let ordinals: Vec<u64> = vertices.ordinals().collect();
            let rows_of = self.rows_of(&ordinals, branch).await?;
            if !rows_of.is_empty() {
                let batch = self.snapshot.rows().at(self.label, &ordinals, &rows_of, columns, through, branch).await?;
                return Ok(PartRows::OfRuns { schema: batch.schema(), batch: Some(batch) });
            }
        }
        let Stretches { rows, chosen } = vertices.stretches();
        let cells = self.snapshot.rows().added_stretches(self.label, &rows, columns, through, branch).await?;
        Ok(PartRows::OfTable { cells, chosen, at: 0 })
    }
}

/// What a row of a row group takes, about.
fn row_bytes(group: &tables::Group) -> u64 {
    group.row_bytes() + ROW_BYTES
}

impl Tested {
    fn new(snapshot: &Snapshot, label: LabelId, condition: Condition) -> Result<Self, EngineError> {
        let mut columns: Vec<String> = Vec::new();
        let mut tests = Vec::new();
        for test in condition.tests() {
            let (property, requirement) = match test {
                Test::Property(property, requirement) => (property, requirement),
                Test::VertexLabel(requirement) => {
                    let name = snapshot.schema().label(label).map_or("", |label| &label.name);
                    tests.push(LabelTest::OfLabel(requirement.of_label(name)?));
                    continue;
                }
                Test::EdgeLabel(requirement) => {
                    tests.push(LabelTest::OfLabel(requirement.of_absent()));
                    continue;
                }
                Test::Vertex(vertices) => {
                    let of_label = vertices.iter().filter(|vertex| vertex.label() == label);
                    tests.push(LabelTest::OneOf(of_label.map(|vertex| vertex.ordinal()).collect()));
                    continue;
                }
            };
            let name = &property.name;
            let Some(kind) = snapshot.property_tested(label, property) else {
                tests.push(LabelTest::OfLabel(requirement.of_absent()));
                continue;
            };
            let column = columns.iter().position(|column| column == name).unwrap_or_else(|| {
                columns.push(name.clone());
                columns.len() - 1
            });
            tests.push(LabelTest::Of(requirement.typed(name, kind)?, column));
        }
        Ok(Self { condition, tests, columns })
    }

    /// The memory of the verdicts of its tests: two bits a row each.
    pub(super) fn verdict_bytes(&self, rows: usize) -> u64 {
        (rows as u64).div_ceil(4) * self.tests.len() as u64
    }

    /// Whether a test looks at ordinals.
    pub(super) fn has_ordinals(&self) -> bool {
        self.tests.iter().any(|test| matches!(test, LabelTest::OneOf(_)))
    }

    /// The rows that match the condition, of a batch with its columns. `ordinals` are those of the rows, if it [has](Self::has_ordinals)
    /// any.
    pub(super) async fn matching(
        &self,
        batch: &RecordBatch,
        ordinals: &[u64],
        pace: &mut Pace,
    ) -> Result<BooleanBuffer, EngineError> {
        let mut of_tests = Vec::with_capacity(self.tests.len());
        for test in &self.tests {
            of_tests.push(match test {
                LabelTest::Of(test, column) => test.of_column(batch.column(*column), pace).await?,
                LabelTest::OfLabel(verdict) => Verdicts::all(batch.num_rows(), *verdict),
                LabelTest::OneOf(sought) => {
                    pace.rest(ordinals.len() as u64 * 4).await?;
                    Verdicts::known(BooleanBuffer::collect_bool(ordinals.len(), |row| {
                        sought.binary_search(&ordinals[row]).is_ok()
                    }))
                }
            });
        }
        Ok(self.condition.combine(of_tests).matching())
    }

    /// Which row groups of a table may have rows that match the condition.
    fn may_match(
        &self,
        snapshot: &Snapshot,
        label: LabelId,
        table: &Table,
        layout: &Layout,
    ) -> Result<BooleanBuffer, EngineError> {
        let location = snapshot.reader().store().location(&table.reference.name);
        let fields = snapshot.rows().fields(TableOwner::Vertices(label), &self.columns);
        let bounds = |field: &Field| layout.bounds(field, &location);
        let bounds: Vec<Option<Bounds>> = fields.iter().map(bounds).collect::<Result<_, _>>()?;
        let groups = layout.groups(&[]).len();
        let of_tests = self.tests.iter().map(|test| match test {
            LabelTest::Of(test, column) => {
                bounds[*column].as_ref().map_or_else(|| Ok(Verdicts::any(groups)), |bounds| test.possible(bounds))
            }
            LabelTest::OfLabel(verdict) => Ok(Verdicts::all(groups, *verdict)),
            LabelTest::OneOf(_) => Ok(Verdicts::any(groups)),
        });
        Ok(self.condition.combine(of_tests.collect::<Result<_, _>>()?).matching())
    }
}

impl Snapshot {
    /// The type of the property that a test of vertices names; `None` if the label does not have it.
    pub(crate) fn property_tested(&self, label: LabelId, name: &PropertyName) -> Option<PropertyType> {
        (name.of != PropertyOf::Edge).then(|| vertex_property(self.schema(), label, &name.name))?
    }

    /// Rejects a condition that names a property which none of some labels has, or that cannot be one on all of those that have it.
    ///
    /// # Errors
    /// [`EngineError::NotFound`]; [`EngineError::Invalid`] if a value is none of its property's type.
    pub fn check_vertex_condition(&self, labels: &[LabelId], condition: &Condition) -> Result<(), EngineError> {
        condition.check_size()?;
        for test in condition.tests() {
            let (property, requirement) = match test {
                Test::Property(property, requirement) => (property, requirement),
                Test::VertexLabel(requirement) | Test::EdgeLabel(requirement) => {
                    requirement.of_label("")?;
                    continue;
                }
                Test::Vertex(_) => continue,
            };
            let of_labels: Vec<_> = labels.iter().filter_map(|label| self.property_tested(*label, property)).collect();
            for kind in &of_labels {
                requirement.typed(&property.name, *kind)?;
            }
            if let ([], Some(label)) = (&of_labels[..], labels.first()) {
                return Err(lacks(self, *label, &property.to_string()));
            }
        }
        Ok(())
    }
}

pub(super) fn lacks(snapshot: &Snapshot, label: LabelId, name: &str) -> EngineError {
    let Some(label) = snapshot.schema().label(label) else {
        return EngineError::NotFound("the graph has no such vertex label".into());
    };
    let known = label.properties.iter().map(|property| property.name.as_str()).chain([KEY_COLUMN]);
    let known: Vec<_> = known.collect();
    EngineError::NotFound(format!("vertices of {} have no property {name}; they have {}", label.name, known.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_scattered_rows_count_their_pages() {
        let rows = SparseRows { row_bytes: 10, page_rows: 100 };
        // A page for the first, a row for its neighbour, 49 rows to the next, and a page for the last.
        let ordinals = [1_000, 1_001, 1_050, 9_000];
        assert_eq!(rows.part(&ordinals, 2_500, 10), (&ordinals[..], 1_000 + 10 + 490 + 1_000));
        assert_eq!(rows.part(&ordinals, 2_499, 10), (&ordinals[..3], 1_500));
        assert_eq!(rows.part(&ordinals, 2_500, 2), (&ordinals[..2], 1_010));
        // One is read whatever it takes.
        assert_eq!(rows.part(&ordinals, 1, 10), (&ordinals[..1], 1_000));
        assert_eq!(rows.part(&[], 1, 10), (&[][..], 0));
    }
}
