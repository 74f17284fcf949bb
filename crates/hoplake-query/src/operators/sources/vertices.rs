//! Vertices, all or by id.

use hoplake_engine::split_vertex;
use hoplake_format::{Key, KeyType};

use super::{
    by_id::{ById, LookedUp},
    scan::{Scan, Scanned},
};
use crate::{operators::prelude::*, plan::write_values, run::conditions::matches};

/// Vertices, for each row.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Vertices {
    /// Their ids; all without.
    pub ids: Option<Vec<Value>>,
    /// What the labels of those with ids fulfil.
    pub labels: Vec<Arc<Predicate>>,
}

impl Operator for Vertices {
    fn parameters(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write_values(f, self.ids.as_deref().unwrap_or_default())?;
        self.labels.iter().try_for_each(|predicate| write!(f, " label {predicate}"))
    }

    fn reach(&self, reach: &mut Reach<'_>, _: Elements) -> Elements {
        match &self.ids {
            Some(ids) => of_ids(ids, reach, &self.labels),
            None => reach.vertices_if(|_, _| true),
        }
    }

    fn start(self: Arc<Self>) -> Running {
        match self.ids {
            Some(_) => LookedUp::running(self),
            None => Scanned::running(|run, batch| Ok(Scan::of_vertices(run, batch, Vec::new()))),
        }
    }
}

impl ById for Vertices {
    async fn found(&self, run: &mut Run) -> Done<Items> {
        let found = run.vertices_with(self.ids.as_deref().unwrap_or_default(), &self.labels).await?;
        Ok(Items::Vertices(found.into_iter().flatten().collect()))
    }
}

/// Those of the labels that vertices of some ids may have that fulfil predicates.
fn of_ids(ids: &[Value], reach: &Reach<'_>, labels: &[Arc<Predicate>]) -> Elements {
    let Some(schema) = reach.schema() else { return Elements::default() };
    let mut found = Elements::default();
    for id in ids {
        let id = match id {
            Value::Vertex(vertex) => &vertex.id,
            id => id,
        };
        let named = match id {
            Value::Text(text) => split_vertex(text).ok().and_then(|(label, _)| schema.label_id(&label)),
            _ => None,
        };
        match (named, id) {
            (Some(label), _) => drop(found.vertices.insert(label)),
            (None, Value::Text(text)) => {
                found.join(reach.vertices_if(|label, _| Key::parse(text, label.key_type).is_some()));
            }
            _ => found.join(reach.vertices_if(|label, _| label.key_type == KeyType::Int64)),
        }
    }
    if !labels.is_empty() {
        let is_one = |name: &str, growth: &Growth| matches(name, labels.iter().map(|it| &**it), growth);
        let fulfilling = reach.vertices_if(|label, growth| is_one(&label.name, growth).unwrap_or(true));
        found.vertices.retain(|label| fulfilling.vertices.contains(label));
    }
    found
}
