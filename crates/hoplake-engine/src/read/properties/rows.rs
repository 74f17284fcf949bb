//! Rows of vertices and edges, wherever the newest run that has them is.
//!
//! An edge is in one run, whose table has its row. A vertex is in the run that added it, by its ordinal, until a
//! newer run writes its row anew: such a run says for each ordinal that it changed which row of its own table it
//! is, in blocks of keys whose keys are ordinals.

use std::{collections::BTreeMap, ops::Range, sync::Arc};

use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_schema::{Field, Schema as ArrowSchema};
use arrow_select::interleave::interleave_record_batch;
use hoplake_format::{Direction, EdgeTypeId, Key, LabelId, TableOwner, constants::KEY_COLUMN, segment::SectionKind};
use hoplake_storage::Branch;

use crate::{
    EngineError, Snapshot,
    read::{
        keys::{Sought, entries},
        tables::{Cells, Through},
    },
};

/// Whose rows: vertices of a label, by ordinal, or edges of a type, direction and run, by position.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum RowsOf {
    Vertices(LabelId),
    Edges(EdgeTypeId, Direction, u64),
}

/// Where the row of a vertex is: in the table of the run that changed it last, or of the one that added it.
pub(crate) type Changed = Option<(u64, u64)>;

/// The rows of a version.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rows<'a> {
    snapshot: &'a Snapshot,
}

impl<'a> Rows<'a> {
    pub(crate) fn new(snapshot: &'a Snapshot) -> Self {
        Self { snapshot }
    }

    /// The cells of `rows` (any order, repeats allowed) in those of `columns` that the owner has, in the order of both. One
    /// wave, and one before it for metadata that is not loaded.
    pub(crate) async fn of(
        self,
        of: RowsOf,
        rows: &[u64],
        columns: &[String],
        branch: &mut Branch,
    ) -> Result<RecordBatch, EngineError> {
        match of {
            RowsOf::Vertices(label) => self.of_vertices(label, rows, columns, branch).await,
            RowsOf::Edges(edge_type, direction, run) => {
                let fields = self.fields(TableOwner::Edges(edge_type, direction), columns);
                let tables = self.snapshot.tables().of(TableOwner::Edges(edge_type, direction), Some(run));
                if tables.is_empty() {
                    // The type had no properties then.
                    return nulls(&fields, rows.len());
                }
                self.snapshot.tables().cells(&tables, rows, &fields, Through::Caches, branch).await
            }
        }
    }

    /// As [`Self::of`], of vertices by ordinal. The keys are in column `~key`.
    pub(crate) async fn of_vertices(
        self,
        label: LabelId,
        ordinals: &[u64],
        columns: &[String],
        branch: &mut Branch,
    ) -> Result<RecordBatch, EngineError> {
        // Nothing to look up or to group for each vertex: this is what conditions on a million of them wait for.
        if self.snapshot.sections().runs(SectionKind::Rows(label)).is_empty() {
            return self.added(label, ordinals, columns, Through::Caches, branch).await;
        }
        let rows_of = self.changed(label, ordinals, 0, branch).await?;
        self.at(label, ordinals, &rows_of, columns, Through::Caches, branch).await
    }

    /// As [`Self::of_vertices`], where the row of each vertex is known.
    pub(crate) async fn at(
        self,
        label: LabelId,
        ordinals: &[u64],
        rows_of: &[Changed],
        columns: &[String],
        through: Through,
        branch: &mut Branch,
    ) -> Result<RecordBatch, EngineError> {
        let fields = self.fields(TableOwner::Vertices(label), columns);
        if fields.is_empty() {
            return nulls(&fields, ordinals.len());
        }
        let mut groups: BTreeMap<Option<u64>, (Vec<usize>, Vec<u64>)> = BTreeMap::new();
        for (at, (changed, ordinal)) in rows_of.iter().zip(ordinals).enumerate() {
            let (run, row) = changed.map_or((None, *ordinal), |(run, row)| (Some(run), row));
            let group = groups.entry(run).or_default();
            group.0.push(at);
            group.1.push(row);
        }
        let fields = &fields;
        let reads = branch.each(&groups, |(run, (_, rows)), mut line| async move {
            let owner = run.map_or(TableOwner::Vertices(label), |_| TableOwner::Changed(label));
            let batch = self
                .snapshot
                .tables()
                .cells(&self.snapshot.tables().of(owner, *run), rows, fields, through, &mut line)
                .await?;
            Ok::<_, EngineError>((batch, line))
        });
        let batches = reads.await?;
        // Usually no row was changed, and all are in one table in the order asked for.
        if let [only] = &batches[..] {
            return Ok(only.clone());
        }
        let mut order = vec![(0, 0); ordinals.len()];
        for (group, (positions, _)) in groups.values().enumerate() {
            positions.iter().enumerate().for_each(|(row, at)| order[*at] = (group, row));
        }
        match batches.len() {
            0 => nulls(fields, 0),
            _ => Ok(interleave_record_batch(&batches.iter().collect::<Vec<_>>(), &order)?),
        }
    }

    /// As [`Self::at`], of vertices whose rows no run has changed.
    pub(crate) async fn added(
        self,
        label: LabelId,
        ordinals: &[u64],
        columns: &[String],
        through: Through,
        branch: &mut Branch,
    ) -> Result<RecordBatch, EngineError> {
        let owner = TableOwner::Vertices(label);
        let fields = self.fields(owner, columns);
        if fields.is_empty() || ordinals.is_empty() {
            return nulls(&fields, ordinals.len());
        }
        self.snapshot.tables().cells(&self.snapshot.tables().of(owner, None), ordinals, &fields, through, branch).await
    }

    /// The same of stretches of ordinals, to be decoded some at a time.
    pub(crate) async fn added_stretches(
        self,
        label: LabelId,
        ordinals: &[Range<u64>],
        columns: &[String],
        through: Through,
        branch: &mut Branch,
    ) -> Result<Cells<'a>, EngineError> {
        let owner = TableOwner::Vertices(label);
        let tables = self.snapshot.tables().of(owner, None);
        let fields = self.fields(owner, columns);
        self.snapshot.tables().cells_of_stretches(&tables, ordinals, &fields, through, branch).await
    }

    /// For each ordinal the newest run that changed its row, and which row of that run's table it is, among the runs
    /// that have changes of later versions than `newer_than`.
    pub(crate) async fn changed(
        self,
        label: LabelId,
        ordinals: &[u64],
        newer_than: u64,
        branch: &mut Branch,
    ) -> Result<Vec<Changed>, EngineError> {
        let mut runs: Vec<_> =
            self.snapshot.sections().runs(SectionKind::Rows(label)).iter().map(|run| (run, false)).collect();
        runs.retain(|(run, _)| run.versions.until > newer_than);
        if runs.is_empty() {
            return Ok(vec![None; ordinals.len()]);
        }
        // Ordinals have 48 bits, so their order as int64 keys is the same.
        let keys: Vec<_> = ordinals.iter().map(|ordinal| Key::Int64(*ordinal as i64)).collect();
        let mut sought: Vec<_> = keys.iter().zip(0..).collect();
        sought.sort_unstable();
        let entries =
            entries(self.snapshot, &[Sought { runs, keys: sought, table: None }], ordinals.len(), branch).await?;
        Ok(entries.into_iter().map(|entry| entry.map(|entry| (entry.until, entry.number))).collect())
    }

    /// The fields of those columns that an owner has now.
    pub(crate) fn fields(self, owner: TableOwner, columns: &[String]) -> Vec<Field> {
        let (key, properties) = match owner {
            TableOwner::Vertices(label) | TableOwner::Changed(label) => match self.snapshot.schema().label(label) {
                Some(label) => (Some(label.key_type), label.properties.as_slice()),
                None => (None, &[][..]),
            },
            TableOwner::Edges(edge_type, _) => {
                (None, self.snapshot.schema().edge_type(edge_type).map_or(&[][..], |edge| edge.properties.as_slice()))
            }
        };
        let field = |column: &String| match key.filter(|_| column == KEY_COLUMN) {
            Some(key) => Some(Field::new(KEY_COLUMN, key.arrow(), false)),
            None => properties.iter().find(|property| property.name == *column).map(|property| property.arrow()),
        };
        columns.iter().filter_map(field).collect()
    }
}

/// Rows in which nothing is known.
pub(crate) fn nulls(fields: &[Field], rows: usize) -> Result<RecordBatch, EngineError> {
    let schema = Arc::new(ArrowSchema::new(fields.to_vec()));
    let columns = fields.iter().map(|field| arrow_array::new_null_array(field.data_type(), rows)).collect();
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    Ok(RecordBatch::try_new_with_options(schema, columns, &options)?)
}
