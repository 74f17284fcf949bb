//! Weights of edges: a property of all of them that is a number, 0 or more.

use std::collections::HashSet;

use arrow_array::{
    ArrayRef,
    cast::AsArray,
    types::{Float64Type, Int64Type},
};
use futures::future::BoxFuture;
use hoplake_format::{Direction, EdgeType, EdgeTypeId, PropertyType, ScalarType, VertexId};
use hoplake_storage::Branch;

use crate::{Edges, EngineError, Held, Neighbour, Snapshot, vertex_text};

/// The greatest integer up to which each has a float64 of its own.
const EXACT_MAX: u64 = 1 << 53;

/// Why an edge value is not a valid weight.
#[derive(Debug)]
pub(crate) enum Flaw {
    /// There is none.
    Missing,
    /// It is not a number at all.
    NotANumber,
    /// The value, and the reason.
    Value(String, &'static str),
}

impl Flaw {
    /// The error that says it about an edge.
    pub(crate) fn of(self, property: &str, edge: &str) -> EngineError {
        EngineError::Invalid(match self {
            Self::Missing => format!("{edge} has no value for the weight property {property:?}"),
            Self::NotANumber => format!("property {property:?} of {edge} is not a number"),
            Self::Value(value, why) => format!("{edge} has {property} = {value}, but {why}"),
        })
    }
}

/// Rejects a property that cannot be a weight of edges of a type.
pub(crate) fn check_weight(edge_type: &EdgeType, property: &str) -> Result<(), EngineError> {
    let label = &edge_type.label;
    let Some(found) = edge_type.properties.iter().find(|found| found.name == property) else {
        return Err(EngineError::NotFound(format!(
            "edge type {label} has no property {property:?} to use as a weight"
        )));
    };
    match found.kind {
        PropertyType::Scalar(ScalarType::Int64 | ScalarType::Float64) => Ok(()),
        kind => {
            Err(EngineError::Invalid(format!("property {property:?} of edges {label} is of type {kind}, not a number")))
        }
    }
}

/// A column as weights: each has to be there, not negative, and exact. Otherwise returns the first invalid row and the
/// reason.
pub(crate) fn numbers(column: &ArrayRef) -> Result<Vec<f64>, (usize, Flaw)> {
    if let Some(floats) = column.as_primitive_opt::<Float64Type>() {
        return floats.iter().enumerate().map(|(row, value)| float(value).map_err(|flaw| (row, flaw))).collect();
    }
    let integers = column.as_primitive_opt::<Int64Type>().ok_or((0, Flaw::NotANumber))?;
    integers.iter().enumerate().map(|(row, value)| integer(value).map_err(|flaw| (row, flaw))).collect()
}

fn float(value: Option<f64>) -> Result<f64, Flaw> {
    match value.ok_or(Flaw::Missing)? {
        value if value.is_nan() || value < 0.0 => Err(Flaw::Value(value.to_string(), "a weight must be 0 or more")),
        value => Ok(value),
    }
}

fn integer(value: Option<i64>) -> Result<f64, Flaw> {
    match value.ok_or(Flaw::Missing)? {
        value if value < 0 => Err(Flaw::Value(value.to_string(), "a weight must be 0 or more")),
        value if value.unsigned_abs() > EXACT_MAX => {
            Err(Flaw::Value(value.to_string(), "a float64 cannot hold it exactly"))
        }
        value => Ok(value as f64),
    }
}

impl Snapshot {
    /// The weights of edges, in their order: a property that each has, as a number of 0 or more. One wave, and one before it if the tables
    /// were not read before.
    ///
    /// # Errors
    /// [`EngineError::NotFound`] if the edges of a type have no such property; [`EngineError::Invalid`] if it is not a number, or if an edge,
    /// which the error names, has none or a negative one; the store's.
    pub fn edge_weights<'a>(
        &'a self,
        edges: &'a Edges,
        property: &'a str,
        branch: &'a mut Branch,
    ) -> BoxFuture<'a, Result<Held<Vec<f64>>, EngineError>> {
        Box::pin(async move {
            let types: HashSet<EdgeTypeId> = edges.lists().map(|list| list.edge_type).collect();
            for edge_type in types.iter().filter_map(|id| self.schema().edge_type(*id)) {
                check_weight(edge_type, property)?;
            }
            let context = branch.context().clone();
            let memory = context.hold(edges.len() as u64 * 8)?;
            // Those of each type and run, before they are put in their order.
            let _found = context.hold(edges.len() as u64 * 8)?;
            let mut weights = vec![0.0; edges.len()];
            let mut pace = context.pace();
            let names = [property.to_owned()];
            for (positions, rows) in self.properties().of_edges(edges, &names, branch).await? {
                let column = rows.column_by_name(property);
                let found = column.map_or(Err((0, Flaw::Missing)), numbers);
                let found = match found {
                    Ok(found) => found,
                    Err((row, flaw)) => {
                        let edge = positions.get(row).and_then(|at| edges.get(*at));
                        let edge = self.edge_text(edge, branch).await?;
                        return Err(flaw.of(property, &edge));
                    }
                };
                positions.iter().zip(&found).for_each(|(at, weight)| weights[*at] = *weight);
                pace.rest(found.len() as u64).await?;
            }
            Ok(Held::new(weights, memory))
        })
    }

    /// An edge as a user knows it: its label, its source and its target. One wave, which reads their keys.
    ///
    /// # Errors
    /// The store's.
    pub async fn edge_text(&self, edge: Option<Neighbour>, branch: &mut Branch) -> Result<String, EngineError> {
        let Some(edge) = edge else { return Ok("an edge".into()) };
        let ends = match edge.direction {
            Direction::Out => [edge.from, edge.to],
            Direction::In => [edge.to, edge.from],
        };
        let keys = self.keys().of(&ends, branch).await?;
        let label = |vertex: VertexId| self.schema().label(vertex.label()).map_or("", |label| label.name.as_str());
        let [source, target] = [0, 1].map(|at| vertex_text(label(ends[at]), &keys[at]));
        let label = self.schema().edge_type(edge.edge_type).map_or("", |edge| edge.label.as_str());
        Ok(format!("the edge {label} from {source} to {target}"))
    }
}
