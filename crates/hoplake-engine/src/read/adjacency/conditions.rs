//! The condition of a hop: on its edges and on the vertices that they reach.

use std::collections::BTreeMap;

use arrow_buffer::BooleanBuffer;
use hoplake_format::{KeyType, LabelId, PropertyType, ScalarType, Schema, TableOwner, constants::KEY_COLUMN};
use hoplake_storage::{Branch, QueryContext};

use crate::{
    Condition, Edges, EngineError, Frontier, Held, PropertyName, PropertyOf, Requirement, Snapshot, Test,
    memory::bytes_of,
    pieces::STEP,
    read::{
        condition::{Verdicts, VerdictsBuilder},
        edges::{EdgeStretch, EdgesBuilder, Stored},
        hop::{EdgesOf, Hop},
        properties::RowsOf,
    },
};

/// Whose properties are meant where a condition names the vertex of an edge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// The vertex that the edge leads to.
    Far,
    /// The vertex from which it was followed.
    Near,
}

impl End {
    fn label(self, of: EdgesOf) -> LabelId {
        match self {
            Self::Far => of.far,
            Self::Near => of.near,
        }
    }
}

/// The conditions of hops, on edges and on the vertices at one end of them.
#[derive(Debug, Clone, Copy)]
pub(super) struct EdgeConditions<'a> {
    snapshot: &'a Snapshot,
    end: End,
}

impl<'a> EdgeConditions<'a> {
    pub(super) fn new(snapshot: &'a Snapshot, end: End) -> Self {
        Self { snapshot, end }
    }

    /// The edges that match a condition. The properties of all its tests are one wave.
    pub(super) async fn keep_matching(
        self,
        edges: Held<Edges>,
        condition: Option<&Condition>,
        branch: &mut Branch,
    ) -> Result<Held<Edges>, EngineError> {
        let Some(matching) = self.matching(&edges, condition, branch).await? else { return Ok(edges) };
        let context = branch.context().clone();
        let mut kept = EdgesBuilder::new(&context)?;
        let mut pace = context.pace();
        // Edges move in stretches: a list of which all edges pass stays one list.
        for (from, end) in matching.set_slices() {
            for from in (from..end).step_by(STEP) {
                let stretch = from..end.min(from + STEP);
                let edges_of_it = stretch.len() as u64;
                kept.append(edges.slice(stretch), &mut pace).await?;
                pace.rest(edges_of_it + 16).await?;
            }
        }
        Ok(kept.finish())
    }

    /// Which edges match a condition; `None` without one. The properties of all its tests are one wave.
    pub(super) async fn matching(
        self,
        edges: &Edges,
        condition: Option<&Condition>,
        branch: &mut Branch,
    ) -> Result<Option<BooleanBuffer>, EngineError> {
        let Some(condition) = condition else { return Ok(None) };
        let tests = condition.tests();
        let context = branch.context().clone();
        // Two bits of each test, and while two are joined as many again.
        let _memory = context.hold(((tests.len() + 2) * edges.len()) as u64 / 2)?;
        // Tests of one property (`since >= 2011 and since < 2012`) share one read of its column.
        let mut of_property: BTreeMap<&PropertyName, Vec<(usize, &Requirement)>> = BTreeMap::new();
        let mut verdicts: Vec<(usize, Verdicts)> = Vec::with_capacity(tests.len());
        for (number, test) in tests.iter().enumerate() {
            match test {
                Test::Property(property, requirement) => {
                    of_property.entry(property).or_default().push((number, requirement));
                }
                others => verdicts.push((number, self.verdicts_without_columns(edges, others, &context).await?)),
            }
        }
        let checks = branch.each(&of_property, |(name, tests), mut line| async move {
            Ok::<_, EngineError>((self.verdicts(edges, name, tests, &mut line).await?, line))
        });
        let of_columns = checks.await?.into_iter().flatten();
        verdicts.extend(of_property.values().flatten().map(|(number, _)| *number).zip(of_columns));
        verdicts.sort_by_key(|(number, _)| *number);
        let verdicts = verdicts.into_iter().map(|(_, verdicts)| verdicts).collect();
        Ok(Some(condition.combine(verdicts).matching()))
    }

    /// Starts to read what the condition of a hop needs to know of tables.
    pub(super) async fn load_metadata(
        self,
        frontier: &Frontier,
        hop: &Hop,
        branch: &mut Branch,
    ) -> Result<(), EngineError> {
        let mut loads = Vec::new();
        for test in hop.condition.iter().flat_map(Condition::tests) {
            let Test::Property(property, _) = test else { continue };
            for (near, _) in frontier.by_label() {
                for of in hop.edges_from(self.snapshot.schema(), near) {
                    let owner = property_owner(self.snapshot.schema(), of, self.end, property);
                    let load = owner.map(|owner| match owner.of_edge {
                        true => TableOwner::Edges(of.edge_type, of.direction),
                        false => TableOwner::Vertices(owner.label),
                    });
                    loads.extend(load.filter(|load| !loads.contains(load)));
                }
            }
        }
        let loads = branch.each(loads, |owner, mut line| async move {
            match owner {
                TableOwner::Vertices(label) => self.snapshot.tables().load_vertex_metadata(label, &mut line).await?,
                owner => self.snapshot.tables().load_table_metadata(owner, &mut line).await?,
            }
            Ok::<_, EngineError>(((), line))
        });
        loads.await.map(drop)
    }

    /// The verdicts of some tests, which are of one property, on edges.
    async fn verdicts(
        self,
        edges: &Edges,
        property: &PropertyName,
        tests: &[(usize, &Requirement)],
        branch: &mut Branch,
    ) -> Result<Vec<Verdicts>, EngineError> {
        let context = branch.context().clone();
        let mut rows: BTreeMap<RowsOf, (PropertyOwner, Vec<u64>)> = BTreeMap::new();
        // Its row's number, twice as vectors grow.
        let _memory = context.hold(bytes_of::<[u64; 2]>(edges.len()))?;
        let mut pace = context.pace();
        // Row numbers in the order of the pieces. Verdicts are taken in the same order below, so rows need no positions.
        for piece in edges.pieces() {
            if let Some((owner, of)) = rows_of(self.snapshot.schema(), &piece, self.end, property) {
                let numbers = &mut rows.entry(of).or_insert((owner, Vec::new())).1;
                let count = piece.targets.len();
                match (owner.of_edge, self.end) {
                    (true, _) => numbers.extend((piece.position..).take(count)),
                    (false, End::Far) => numbers.extend(piece.targets.iter().map(|vertex| vertex.ordinal())),
                    (false, End::Near) => numbers.extend(std::iter::repeat_n(piece.from.ordinal(), count)),
                }
            }
            pace.rest(8 + piece.targets.len() as u64).await?;
        }
        let column = [property.name.clone()];
        let column = &column;
        let reads = branch.each(&rows, |(of, (_, rows)), mut line| async move {
            Ok::<_, EngineError>((self.snapshot.rows().of(*of, rows, column, &mut line).await?, line))
        });
        let columns = reads.await?;
        let columns = rows.iter().zip(columns).map(|((of, (owner, _)), batch)| (*of, owner.kind, batch));
        let columns: Vec<_> = columns.collect();
        let mut all = Vec::with_capacity(tests.len());
        for (_, requirement) in tests {
            // Of each group of rows: the verdicts, and how many of them were taken.
            let mut of_rows = BTreeMap::new();
            for (of, kind, batch) in &columns {
                let typed = requirement.typed(&property.name, *kind)?;
                let verdicts = typed.of_column(batch.column(0), &mut pace).await?;
                of_rows.insert(*of, (verdicts, 0));
            }
            let mut verdicts = VerdictsBuilder::new(edges.len());
            for piece in edges.pieces() {
                let count = piece.targets.len();
                match rows_of(self.snapshot.schema(), &piece, self.end, property)
                    .and_then(|(_, of)| of_rows.get_mut(&of))
                {
                    Some((found, taken)) => {
                        verdicts.append(found, *taken, count);
                        *taken += count;
                    }
                    // To edges of a type without the property, its value is absent.
                    None => verdicts.append_n(count, requirement.of_absent()),
                }
                pace.rest(8 + count as u64 / 8).await?;
            }
            all.push(verdicts.finish());
        }
        Ok(all)
    }

    /// The verdicts of a test of labels or vertices, which reads nothing.
    async fn verdicts_without_columns(
        self,
        edges: &Edges,
        test: &Test,
        context: &QueryContext,
    ) -> Result<Verdicts, EngineError> {
        let mut pace = context.pace();
        let mut verdicts = VerdictsBuilder::new(edges.len());
        // Lists of one type are next to each other, and a verdict on a label may be a search among thousands.
        let mut last: Option<(EdgesOf, Option<bool>)> = None;
        for piece in edges.pieces() {
            let count = piece.targets.len();
            match test {
                Test::Vertex(vertices) => match self.end {
                    End::Far => piece.targets.iter().for_each(|it| verdicts.append_n(1, Some(vertices.contains(it)))),
                    End::Near => verdicts.append_n(count, Some(vertices.contains(&piece.from))),
                },
                other => {
                    let Stored { edge_type, direction, .. } = piece.stored;
                    let of = EdgesOf::new(self.snapshot.schema(), edge_type, direction);
                    let verdict = match (last, of) {
                        (Some((last, verdict)), Some(of)) if last == of => verdict,
                        (_, of) => {
                            let verdict = of.map(|of| self.verdict_of_labels(of, other)).transpose()?.flatten();
                            last = of.map(|of| (of, verdict));
                            verdict
                        }
                    };
                    verdicts.append_n(count, verdict);
                }
            }
            pace.rest(8 + count as u64).await?;
        }
        Ok(verdicts.finish())
    }

    /// The verdict of a test of labels on all edges of a type.
    fn verdict_of_labels(self, of: EdgesOf, test: &Test) -> Result<Option<bool>, EngineError> {
        match test {
            Test::VertexLabel(requirement) => {
                let label = self.snapshot.schema().label(self.end.label(of));
                label.map_or(Ok(requirement.of_absent()), |label| requirement.of_label(&label.name))
            }
            Test::EdgeLabel(requirement) => {
                let edge = self.snapshot.schema().edge_type(of.edge_type);
                edge.map_or(Ok(requirement.of_absent()), |edge| requirement.of_label(&edge.label))
            }
            Test::Property(_, requirement) => Ok(requirement.of_absent()),
            Test::Vertex(_) => Ok(None),
        }
    }
}

/// Where a test of edges finds its property.
fn property_owner(schema: &Schema, of: EdgesOf, end: End, name: &PropertyName) -> Option<PropertyOwner> {
    let edge = schema.edge_type(of.edge_type)?;
    let label = end.label(of);
    // The edge's own property hides one of the same name of the vertex.
    let own = edge.properties.iter().find(|property| property.name == name.name && name.of != PropertyOf::Vertex);
    if let Some(property) = own {
        return Some(PropertyOwner { of_edge: true, label, kind: property.kind });
    }
    let kind = (name.of != PropertyOf::Edge).then(|| vertex_property(schema, label, &name.name))??;
    Some(PropertyOwner { of_edge: false, label, kind })
}

/// The type of a property of a label, or of its keys.
pub(crate) fn vertex_property(schema: &Schema, label: LabelId, name: &str) -> Option<PropertyType> {
    let label = schema.label(label)?;
    if name == KEY_COLUMN {
        return Some(PropertyType::Scalar(match label.key_type {
            KeyType::Int64 => ScalarType::Int64,
            KeyType::String => ScalarType::String,
        }));
    }
    label.properties.iter().find(|property| property.name == name).map(|property| property.kind)
}

/// Rejects a hop along labels that the graph does not have, or with a condition that cannot be.
pub(crate) fn check_hop(schema: &Schema, hop: &Hop) -> Result<(), EngineError> {
    for label in &hop.labels {
        if !schema.edge_types.iter().any(|edge| edge.label == *label) {
            let mut known: Vec<_> = schema.edge_types.iter().map(|edge| edge.label.as_str()).collect();
            known.sort_unstable();
            known.dedup();
            let message = format!("the graph has no edge label {label:?}; it has {}", known.join(", "));
            return Err(EngineError::NotFound(message));
        }
    }
    check_condition(schema, hop)
}

/// Rejects a condition that nothing along the hop could ever match for want of a property.
///
/// # Errors
/// [`EngineError::NotFound`] if nothing has a property; [`EngineError::Invalid`] if a value is none of its type.
fn check_condition(schema: &Schema, hop: &Hop) -> Result<(), EngineError> {
    let Some(condition) = &hop.condition else { return Ok(()) };
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
        let mut known = false;
        for of in hop.edges(schema) {
            if let Some(owner) = property_owner(schema, of, End::Far, property) {
                requirement.typed(&property.name, owner.kind)?;
                known = true;
            }
        }
        if !known {
            let bare = Hop { condition: None, ..hop.clone() };
            let who = match property.of {
                PropertyOf::Either => format!("neither the edges of {bare} nor the vertices they reach have"),
                PropertyOf::Edge => format!("the edges of {bare} do not have"),
                PropertyOf::Vertex => format!("the vertices that {bare} reaches do not have"),
            };
            return Err(EngineError::NotFound(format!("{who} a property {:?}", property.name)));
        }
    }
    Ok(())
}

/// Whether the condition of a hop is on the vertices that it reaches, and not on its edges alone.
pub(crate) fn is_on_vertices(schema: &Schema, hop: &Hop) -> bool {
    let tests = hop.condition.iter().flat_map(Condition::tests);
    tests.into_iter().any(|test| match test {
        Test::Property(property, _) => hop
            .edges(schema)
            .filter_map(|of| property_owner(schema, of, End::Far, property))
            .any(|owner| !owner.of_edge),
        Test::VertexLabel(_) | Test::Vertex(_) => true,
        Test::EdgeLabel(_) => false,
    })
}

/// Where the rows of a property of these edges, or of the vertices at one end of them, are.
fn rows_of(
    schema: &Schema,
    piece: &EdgeStretch<'_>,
    end: End,
    property: &PropertyName,
) -> Option<(PropertyOwner, RowsOf)> {
    let Stored { edge_type, direction, run } = piece.stored;
    let owner = property_owner(schema, EdgesOf::new(schema, edge_type, direction)?, end, property)?;
    let rows = match owner.of_edge {
        true => RowsOf::Edges(edge_type, direction, run),
        false => RowsOf::Vertices(owner.label),
    };
    Some((owner, rows))
}

#[derive(Debug, Clone, Copy)]
struct PropertyOwner {
    /// Whether it is the edge's, not the vertex's at its end.
    of_edge: bool,
    /// The label of that vertex.
    label: LabelId,
    kind: PropertyType,
}
