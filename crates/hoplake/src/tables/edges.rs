//! Edges as tables.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

use arrow_array::{Array, ArrayRef, RecordBatch, StringArray, new_null_array};
use arrow_schema::{DataType, Field, Schema as ArrowSchema, SchemaRef};
use arrow_select::interleave::interleave;
use hoplake_engine::{Edges, EngineError};
use hoplake_format::{EdgeType, Schema, VertexId};

use super::{as_text, batch_of, keys};
use crate::{Described, Error, ErrorKind, Query, changes::property_column, edge_batch::edge_batch};

/// A column and its name.
type Named = (String, ArrayRef);

impl Query {
    /// Edges as a table, a row each: `edge`, their label; `direction`, `out` or `in`; `label` and `key` of the vertex that they lead to; and
    /// the properties that are named. A name is a property of the edge if its type has it, else of that vertex. `with_ids` puts the column
    /// `edge_id` before all others. One wave.
    ///
    /// # Errors
    /// [`NotFound`](ErrorKind::NotFound) if neither an edge nor a vertex has a property of a name; the store's.
    pub async fn edge_table(&mut self, edges: &Edges, select: &[String], with_ids: bool) -> Result<RecordBatch, Error> {
        self.check_select(select)?;
        table_of(self.edge_columns(edges, [select, select], with_ids).await?)
    }

    /// As [`Self::edge_table`], of edges that leave several vertices: the columns `from_label` and `from_key`, after `edge_id`, are label and
    /// key of the vertex that each edge was followed from.
    ///
    /// # Errors
    /// As [`Self::edge_table`].
    pub async fn edge_table_with_sources(
        &mut self,
        edges: &Edges,
        select: &[String],
        with_ids: bool,
    ) -> Result<RecordBatch, Error> {
        self.check_select(select)?;
        let sources = self.source_columns(edges, ["from_label", "from_key"]).await?;
        let mut columns = self.edge_columns(edges, [select, select], with_ids).await?;
        let at = usize::from(with_ids);
        columns.splice(at..at, sources);
        table_of(columns)
    }

    /// Labels and keys of the vertices that edges were followed from.
    async fn source_columns(&mut self, edges: &Edges, names: [&str; 2]) -> Result<[Named; 2], Error> {
        let sources: Vec<_> = edges.iter().map(|edge| edge.from).collect();
        let labels: StringArray = sources.iter().map(|vertex| Some(self.label_of(*vertex))).collect();
        let keys = keys(&self.keys_of(&sources).await?);
        Ok([(names[0].into(), Arc::new(labels)), (names[1].into(), keys)])
    }

    /// Edges as a table with the columns that [changes](crate::changes) have: `edge_id`, `label`, `source_label`, `source`, `target_label`,
    /// `target`, and these properties of the edges, or all that they have. One wave for the keys of sources, and one for the rest.
    ///
    /// # Errors
    /// [`NotFound`](ErrorKind::NotFound) if none of these edges has a property of a name; the store's.
    pub async fn full_edge_table(&mut self, edges: &Edges, select: Option<&[String]>) -> Result<RecordBatch, Error> {
        // Only of the edges that were named: a property that some other edge type has is a mistake here.
        let edge_types: BTreeSet<_> = edges.iter().map(|edge| edge.edge_type).collect();
        let schema = self.snapshot.schema();
        let properties = edge_types.iter().filter_map(|id| schema.edge_type(*id)).flat_map(|it| &it.properties);
        let known: BTreeSet<String> = properties.map(|property| property.name.clone()).collect();
        if let Some(missing) = select.into_iter().flatten().find(|name| !known.contains(name.as_str())) {
            let known: Vec<_> = known.into_iter().collect();
            let message = format!("these edges have no property {missing:?}; they have {}", known.join(", "));
            return Err(Error::new(ErrorKind::NotFound, message));
        }
        let names: Vec<String> = select.map_or_else(|| known.into_iter().collect(), <[String]>::to_vec);
        let sources = self.source_columns(edges, ["source_label", "source"]).await?;
        let mut columns = self.edge_columns(edges, [&names, &[]], true).await?;
        // All edges are seen from their source, so the direction is redundant.
        columns.retain(|(name, _)| name != "direction");
        for (column, name) in columns[1..].iter_mut().zip(["label", "target_label", "target"]) {
            column.0 = name.into();
        }
        columns.splice(2..2, sources);
        table_of(columns)
    }

    /// The columns of [`Self::edge_table`].
    async fn edge_columns(
        &mut self,
        edges: &Edges,
        [of_edges, of_vertices]: [&[String]; 2],
        with_ids: bool,
    ) -> Result<Vec<Named>, Error> {
        let select = of_edges;
        let schema = self.snapshot.schema();
        let of_edges = if has_edge_property(schema, of_edges) { of_edges } else { &[] };
        let of_vertices: Vec<_> =
            of_vertices.iter().filter(|name| has_vertex_property(schema, name)).cloned().collect();
        let described = self.describe(edges, of_edges, &of_vertices).await?;
        let schema = self.snapshot.schema();
        let batch = edge_batch(schema, edges.all())?;
        let own = [("edge_id", "id"), ("edge", "label"), ("direction", "direction"), ("label", "to_label")];
        let own = own.iter().filter(|(name, _)| with_ids || *name != "edge_id");
        let mut columns: Vec<Named> = own
            .filter_map(|(name, column)| Some(((*name).to_owned(), batch.column_by_name(column)?.clone())))
            .chain([("key".to_owned(), keys(&described.keys))])
            .collect();
        let cells = Cells::of(schema, edges, described.into_inner());
        for name in select {
            columns.push((property_column(name), cells.column(name, edges.len())?));
        }
        Ok(columns)
    }
}

/// Edges of a scan as a table with the columns that [changes](crate::changes) have, before their properties.
///
/// # Errors
/// [`Internal`](ErrorKind::Internal) if Arrow rejects the columns.
pub fn with_ends(label: &str, [source, target]: [&str; 2], batch: &RecordBatch) -> Result<RecordBatch, Error> {
    let named = |name: &str| -> ArrayRef { Arc::new(StringArray::from(vec![name; batch.num_rows()])) };
    let mut columns: Vec<Named> = vec![
        ("label".into(), named(label)),
        ("source_label".into(), named(source)),
        ("source".into(), batch.column(0).clone()),
        ("target_label".into(), named(target)),
        ("target".into(), batch.column(1).clone()),
    ];
    for (field, column) in batch.schema_ref().fields().iter().zip(batch.columns()).skip(2) {
        columns.push((property_column(field.name()), column.clone()));
    }
    table_of(columns)
}

/// Rejects a scan of edges of which there are none of that label between those labels, or no type with a property of a name.
///
/// # Errors
/// [`NotFound`](ErrorKind::NotFound).
pub fn check_edge_scan(
    schema: &Schema,
    found: &[&EdgeType],
    [label, source, target]: [&Option<String>; 3],
    select: &[String],
) -> Result<(), Error> {
    if found.is_empty() && [label, source, target].iter().any(|wanted| wanted.is_some()) {
        let part = |wanted: &Option<String>| wanted.as_deref().unwrap_or("*").to_owned();
        let mut known: Vec<_> = schema.edge_types.iter().map(|edge| edge.label.as_str()).collect();
        known.sort_unstable();
        known.dedup();
        let asked = format!("{} -{}-> {}", part(source), part(label), part(target));
        let message = format!("the graph has no edges {asked}; its edge labels are {}", known.join(", "));
        return Err(Error::new(ErrorKind::NotFound, message));
    }
    let has = |name: &&String| found.iter().any(|edge| edge.properties.iter().any(|property| property.name == **name));
    match select.iter().find(|name| !has(name)) {
        None => Ok(()),
        Some(missing) => {
            Err(Error::new(ErrorKind::NotFound, format!("no edge of the scan has a property {missing:?}")))
        }
    }
}

/// The columns of a type of edges, as [`with_ends`] names them.
pub fn schema_of_edge_type(schema: &Schema, edge_type: &EdgeType, select: &[String]) -> SchemaRef {
    let key = |label| schema.label(label).map_or(DataType::Utf8, |label| label.key_type.arrow());
    let text = |name| Field::new(name, DataType::Utf8, true);
    let mut fields = vec![
        text("label"),
        text("source_label"),
        Field::new("source", key(edge_type.source), true),
        text("target_label"),
        Field::new("target", key(edge_type.target), true),
    ];
    for name in select {
        let property = edge_type.properties.iter().find(|property| property.name == *name);
        fields.extend(property.map(|property| Field::new(property_column(name), property.kind.arrow(), true)));
    }
    Arc::new(ArrowSchema::new(fields))
}

fn table_of(columns: Vec<Named>) -> Result<RecordBatch, Error> {
    let fields = columns.iter().map(|(name, column)| Field::new(name, column.data_type().clone(), true)).collect();
    batch_of(fields, columns.into_iter().map(|(_, column)| column).collect())
}

/// Batches of properties, and for each of their rows the edges that it belongs to. Earlier batches win.
struct Cells(Vec<(RecordBatch, Vec<(usize, usize)>)>);

impl Cells {
    fn of(schema: &Schema, edges: &Edges, described: Described) -> Self {
        let mut batches = Vec::new();
        for rows in described.edges {
            let positions = rows.positions.iter().enumerate().map(|(row, edge)| (*edge, row)).collect();
            batches.push((rows.batch, positions));
        }
        let ends: BTreeSet<VertexId> = edges.targets().iter().copied().collect();
        for rows in described.vertices {
            let label = schema.label_id(&rows.label);
            let mine = ends.iter().filter(|end| Some(end.label()) == label);
            let row_of: HashMap<_, _> = mine.zip(0..).collect();
            let positions = edges.targets().iter().enumerate();
            let positions = positions.filter_map(|(at, end)| Some((at, *row_of.get(end)?)));
            batches.push((rows.batch, positions.collect()));
        }
        Self(batches)
    }

    /// The values of one property, one an edge; null where neither edge nor vertex has it.
    fn column(&self, name: &str, edges: usize) -> Result<ArrayRef, Error> {
        let mut sources: Vec<ArrayRef> = Vec::new();
        let mut positions: Vec<Option<(usize, usize)>> = vec![None; edges];
        for (batch, rows) in &self.0 {
            let Some(values) = batch.column_by_name(name) else { continue };
            for (edge, row) in rows {
                // 0 is the column of nulls that stands before all others.
                positions[*edge].get_or_insert((sources.len() + 1, *row));
            }
            sources.push(values.clone());
        }
        // A property can have one type on edges and another on vertices; a column has one, and text holds both.
        let first = sources.first().map_or(DataType::Utf8, |column| column.data_type().clone());
        let kind = if sources.iter().all(|column| *column.data_type() == first) { first } else { DataType::Utf8 };
        let texts =
            sources.into_iter().map(|column| if *column.data_type() == kind { column } else { as_text(&column) });
        let mut arrays = vec![new_null_array(&kind, 1)];
        arrays.extend(texts);
        let arrays: Vec<&dyn Array> = arrays.iter().map(AsRef::as_ref).collect();
        let positions: Vec<_> = positions.into_iter().map(|position| position.unwrap_or((0, 0))).collect();
        Ok(interleave(&arrays, &positions).map_err(EngineError::from)?)
    }
}

fn has_edge_property(schema: &Schema, names: &[String]) -> bool {
    schema.edge_types.iter().any(|edge| edge.properties.iter().any(|property| names.contains(&property.name)))
}

fn has_vertex_property(schema: &Schema, name: &str) -> bool {
    schema.vertex_labels.iter().any(|label| label.properties.iter().any(|property| property.name == name))
}
