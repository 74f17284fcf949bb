//! Conditions on the edges of a hop and on the vertices that they reach.

use std::collections::BTreeMap;

use hoplake_format::{LabelId, PropertyType, TableOwner};
use hoplake_storage::Branch;

use super::Neighbour;
use crate::{
    EngineError, Frontier, Held, Predicate, Snapshot,
    hop::{EdgesOf, Hop},
    memory::bytes_of,
    pieces::STEP,
    rows::RowsOf,
};

impl Snapshot {
    /// The edges that fulfil all conditions of a hop. The properties of all conditions are one wave.
    pub(super) async fn keep_fulfilling(
        &self,
        edges: Held<Vec<Neighbour>>,
        hop: &Hop,
        branch: &mut Branch,
    ) -> Result<Held<Vec<Neighbour>>, EngineError> {
        if hop.predicates.is_empty() {
            return Ok(edges);
        }
        let mut of_property: BTreeMap<&str, Vec<&Predicate>> = BTreeMap::new();
        hop.predicates.iter().for_each(|it| of_property.entry(&it.property).or_default().push(it));
        let of = &edges;
        let checks = branch.each(&of_property, |(name, conditions), mut line| async move {
            Ok::<_, EngineError>((self.fulfilling(of, name, conditions, &mut line).await?, line))
        });
        let masks = checks.await?;
        let mut edges = edges;
        let (mut kept, mut pace) = (0, branch.context().pace());
        for start in (0..edges.len()).step_by(STEP) {
            let end = (start + STEP).min(edges.len());
            for row in start..end {
                edges[kept] = edges[row];
                kept += usize::from(masks.iter().all(|mask| mask[row]));
            }
            pace.rest((end - start) as u64).await?;
        }
        edges.truncate(kept);
        Ok(edges)
    }

    /// Where a condition of a hop along an edge type finds its property.
    fn property_owner(&self, of: EdgesOf, name: &str) -> Option<PropertyOwner> {
        let (edge, far) = (self.schema().edge_type(of.edge_type)?, of.far);
        if let Some(property) = edge.properties.iter().find(|property| property.name == name) {
            return Some(PropertyOwner { of_edge: true, far, kind: property.kind });
        }
        let property = self.schema().label(far)?.properties.iter().find(|property| property.name == name)?;
        Some(PropertyOwner { of_edge: false, far, kind: property.kind })
    }

    /// Refuses conditions that nothing along the hop could ever fulfil for want of the property.
    ///
    /// # Errors
    /// [`EngineError::NotFound`] if nothing has the property; [`EngineError::Invalid`] if a value is none of its type.
    pub(crate) fn check_predicates(&self, hop: &Hop) -> Result<(), EngineError> {
        for predicate in &hop.predicates {
            let mut known = false;
            for of in hop.edges(self.schema()) {
                if let Some(owner) = self.property_owner(of, &predicate.property) {
                    predicate.literal(owner.kind)?;
                    known = true;
                }
            }
            if !known {
                let message = format!(
                    "neither the edges of {hop} nor the vertices they reach have a property {:?}",
                    predicate.property
                );
                return Err(EngineError::NotFound(message));
            }
        }
        Ok(())
    }

    pub(super) async fn load_predicate_metadata(
        &self,
        frontier: &Frontier,
        hop: &Hop,
        branch: &mut Branch,
    ) -> Result<(), EngineError> {
        let mut loads = Vec::new();
        for predicate in &hop.predicates {
            for (near, _) in frontier.by_label() {
                for of in hop.edges_from(self.schema(), near) {
                    let owner = self.property_owner(of, &predicate.property);
                    loads.extend(owner.map(|owner| (owner, TableOwner::Edges(of.edge_type, of.direction))));
                }
            }
        }
        let loads = branch.each(loads, |(owner, edges), mut line| async move {
            match owner.of_edge {
                true => self.load_table_metadata(edges, &mut line).await?,
                false => self.load_vertex_metadata(owner.far, &mut line).await?,
            }
            Ok::<_, EngineError>(((), line))
        });
        loads.await.map(drop)
    }

    /// Which edges fulfil all `conditions`, which are on one property.
    async fn fulfilling(
        &self,
        edges: &[Neighbour],
        property: &str,
        conditions: &[&Predicate],
        branch: &mut Branch,
    ) -> Result<Vec<bool>, EngineError> {
        let context = branch.context().clone();
        let mut rows: BTreeMap<RowsOf, (PropertyOwner, Vec<u64>)> = BTreeMap::new();
        // Its row's number, twice as vectors grow, its owner, and its place in the mask.
        let _memory = context.hold(bytes_of::<(u64, u64, Option<RowsOf>, bool)>(edges.len()))?;
        let mut pace = context.pace();
        let mut owners = Vec::with_capacity(edges.len());
        for edge in edges {
            let of = EdgesOf::new(self.schema(), edge.edge_type, edge.direction);
            let owner = of.and_then(|of| self.property_owner(of, property));
            let row = owner.map(|owner| match owner.of_edge {
                true => (owner, RowsOf::Edges(edge.edge_type, edge.direction, edge.run), edge.position),
                false => (owner, RowsOf::Vertices(owner.far), edge.to.ordinal()),
            });
            owners.push(row.map(|(_, of, _)| of));
            if let Some((owner, of, row)) = row {
                rows.entry(of).or_insert((owner, Vec::new())).1.push(row);
            }
            pace.rest(8).await?;
        }
        let column = [property.to_owned()];
        let column = &column;
        let reads = branch.each(&rows, |(of, (_, rows)), mut line| async move {
            Ok::<_, EngineError>((self.rows(*of, rows, column, &mut line).await?, line))
        });
        let read = reads.await?;
        let mut masks = BTreeMap::new();
        for ((of, (owner, _)), batch) in rows.iter().zip(read) {
            let mut mask = vec![true; batch.num_rows()];
            for condition in conditions {
                let fulfilled = condition.evaluate(batch.column(0), &condition.literal(owner.kind)?)?;
                mask.iter_mut().zip(fulfilled).for_each(|(all, one)| *all &= one);
                pace.rest(mask.len() as u64).await?;
            }
            masks.insert(*of, mask.into_iter());
        }
        let mut fulfils = |of: Option<RowsOf>| of.and_then(|of| masks.get_mut(&of)?.next()) == Some(true);
        let mut all = Vec::with_capacity(owners.len());
        for step in owners.chunks(STEP) {
            all.extend(step.iter().map(|of| fulfils(*of)));
            pace.rest(step.len() as u64 * 2).await?;
        }
        Ok(all)
    }
}

#[derive(Debug, Clone, Copy)]
struct PropertyOwner {
    /// Whether it is the edge's, not the vertex's that it reaches.
    of_edge: bool,
    /// The label of that vertex.
    far: LabelId,
    kind: PropertyType,
}
