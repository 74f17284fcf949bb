//! Conditions on the edges of a hop and on the vertices that they reach.

use std::collections::BTreeMap;

use hoplake_format::{LabelId, PropertyType, TableOwner};
use hoplake_storage::Branch;

use crate::{
    Edges, EngineError, Frontier, Held, Predicate, Snapshot,
    edges::{EdgesBuilder, Piece, Stored},
    hop::{EdgesOf, Hop},
    memory::bytes_of,
    pieces::STEP,
    rows::RowsOf,
};

impl Snapshot {
    /// The edges that fulfil all conditions of a hop. The properties of all conditions are one wave.
    pub(super) async fn keep_fulfilling(
        &self,
        edges: Held<Edges>,
        hop: &Hop,
        branch: &mut Branch,
    ) -> Result<Held<Edges>, EngineError> {
        if hop.predicates.is_empty() {
            return Ok(edges);
        }
        // Conditions on one property (`since>=2011`, `since<2012`) share one read of its column.
        let mut of_property: BTreeMap<&str, Vec<&Predicate>> = BTreeMap::new();
        hop.predicates.iter().for_each(|it| of_property.entry(&it.property).or_default().push(it));
        let of = &edges;
        let checks = branch.each(&of_property, |(name, conditions), mut line| async move {
            Ok::<_, EngineError>((self.fulfilling(of, name, conditions, &mut line).await?, line))
        });
        let masks = checks.await?;
        let context = branch.context().clone();
        let (mut kept, mut pace) = (EdgesBuilder::new(&context)?, context.pace());
        let is_kept = |edge: usize| masks.iter().all(|mask| mask[edge]);
        let mut at = 0;
        while at < edges.len() {
            let from = at;
            let end = edges.len().min(at + STEP);
            // Edges move in stretches of the same verdict: a list of which all edges pass stays one list.
            let keep = is_kept(at);
            while at < end && is_kept(at) == keep {
                at += 1;
            }
            if keep {
                kept.append(edges.slice(from..at), &mut pace).await?;
            }
            pace.rest((at - from) as u64 + 16).await?;
        }
        Ok(kept.finish())
    }

    /// Where a condition of a hop along an edge type finds its property.
    fn property_owner(&self, of: EdgesOf, name: &str) -> Option<PropertyOwner> {
        let (edge, far) = (self.schema().edge_type(of.edge_type)?, of.far);
        // The edge's own property hides one of the same name of the vertex.
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
        edges: &Edges,
        property: &str,
        conditions: &[&Predicate],
        branch: &mut Branch,
    ) -> Result<Vec<bool>, EngineError> {
        let context = branch.context().clone();
        let mut rows: BTreeMap<RowsOf, (PropertyOwner, Vec<u64>)> = BTreeMap::new();
        // Its row's number, twice as vectors grow, and its place in the masks of its rows and of all.
        let _memory = context.hold(bytes_of::<(u64, u64, bool, bool)>(edges.len()))?;
        let mut pace = context.pace();
        // Row numbers in the order of the pieces. The second pass below takes the masks in the same order, so rows need no positions.
        for piece in edges.pieces() {
            if let Some((owner, of)) = self.rows_of(&piece, property) {
                let numbers = &mut rows.entry(of).or_insert((owner, Vec::new())).1;
                match owner.of_edge {
                    true => numbers.extend((piece.position..).take(piece.targets.len())),
                    false => numbers.extend(piece.targets.iter().map(|vertex| vertex.ordinal())),
                }
            }
            pace.rest(8 + piece.targets.len() as u64).await?;
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
        let mut all = Vec::with_capacity(edges.len());
        for piece in edges.pieces() {
            let mask = self.rows_of(&piece, property).and_then(|(_, of)| masks.get_mut(&of));
            match mask {
                Some(mask) => all.extend(mask.take(piece.targets.len())),
                // Edges of a type without the property do not fulfil a condition on it.
                None => all.extend(piece.targets.iter().map(|_| false)),
            }
            pace.rest(8 + piece.targets.len() as u64).await?;
        }
        Ok(all)
    }

    /// Where the rows of a property of these edges, or of the vertices that they reach, are.
    fn rows_of(&self, piece: &Piece<'_>, property: &str) -> Option<(PropertyOwner, RowsOf)> {
        let Stored { edge_type, direction, run } = piece.stored;
        let owner = self.property_owner(EdgesOf::new(self.schema(), edge_type, direction)?, property)?;
        let rows = match owner.of_edge {
            true => RowsOf::Edges(edge_type, direction, run),
            false => RowsOf::Vertices(owner.far),
        };
        Some((owner, rows))
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
