//! Reads what a batch needs from the version before it: rows and groups of edges that it changes partly, edges that are deleted with a
//! vertex, and the items of property indexes for vertices that it changes or deletes.
//!
//! Rows and groups that are replaced completely are not read; their indexed values are.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use hoplake_format::{Direction, EdgeType, EdgeTypeId, LabelId, VertexId};
use hoplake_storage::Branch;

use super::{
    Name, Operation, Properties,
    names::Single,
    resolved::{Pair, Resolved, Vertex},
};
use crate::{
    Edges, EngineError, Expected, Frontier, Neighbour, Snapshot,
    read::{
        hop::{Hop, HopDirection},
        property_index::Items,
    },
};

/// How a batch determines the edges between two vertices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    /// There is one, as an operation has it.
    Replaced,
    /// They are those there were, changed.
    Edited,
}

/// The edges between two vertices, with their properties.
pub(super) type Groups = BTreeMap<Pair, Vec<Properties>>;

/// Edge types by the number of their label and the labels of their ends, as they were found.
#[derive(Default)]
struct EdgeTypes {
    found: BTreeMap<(u32, LabelId, LabelId), Option<usize>>,
}

impl EdgeTypes {
    /// The type of a pair of vertices that exist, if there is one.
    fn of<'a>(&mut self, resolved: &Resolved, pair: &Pair, snapshot: &'a Snapshot) -> Option<&'a EdgeType> {
        let (Vertex::Known(source), Vertex::Known(target)) = (pair.source, pair.target) else { return None };
        let types = &snapshot.schema().edge_types;
        let at = *self.found.entry((pair.label, source.label(), target.label())).or_insert_with(|| {
            let label = resolved.edge_label(pair.label);
            types.iter().position(|it| (&*it.label, it.source, it.target) == (label, source.label(), target.label()))
        });
        types.get(at?)
    }
}

impl Resolved {
    /// How each pair's edges are determined.
    pub(super) fn changes(&self, edits: &[(Pair, u32)], snapshot: &Snapshot) -> Vec<Change> {
        let mut types = EdgeTypes::default();
        let change = |edits: &[(Pair, u32)]| {
            // Several changes of a pair are applied one after the other to what there was.
            let [(pair, number)] = edits else { return Change::Edited };
            let change = self.change(*number).change;
            let names = |property: &str| match change {
                Single::Row(columns, row) => columns.names(row, property),
                Single::One(one) => one.properties().is_some_and(|all| all.get(property).is_some()),
            };
            if !matches!(change, Single::Row(..) | Single::One(Operation::UpsertEdge { key: None, .. })) {
                return Change::Edited;
            }
            // An upsert that names every property keeps nothing of the edge before it, so the edge is not read.
            let all_named =
                |of: Option<&EdgeType>| of.is_none_or(|of| of.properties.iter().all(|property| names(&property.name)));
            match self.resets(*number) || all_named(types.of(self, pair, snapshot)) {
                true => Change::Replaced,
                false => Change::Edited,
            }
        };
        edits.chunk_by(|a, b| a.0 == b.0).map(change).collect()
    }

    /// The rows of vertices that are changed in part, as they are now.
    pub(super) async fn complete_rows(
        &self,
        snapshot: &Snapshot,
        branch: &mut Branch,
    ) -> Result<Vec<(VertexId, Properties)>, EngineError> {
        let mut by_label: BTreeMap<LabelId, Vec<u64>> = BTreeMap::new();
        for (vertex, names) in self.partial_rows() {
            let Some(label) = snapshot.schema().label(vertex.label()) else { continue };
            // A row that names every property of its label is complete without a read.
            if label.properties.iter().any(|property| !names(&property.name)) {
                by_label.entry(vertex.label()).or_default().push(vertex.ordinal());
            }
        }
        let mut rows = Vec::new();
        let reads = branch.each(by_label, |(label, ordinals), mut line| async move {
            let label_of = snapshot.schema().label(label);
            let columns = label_of.into_iter().flat_map(|label| &label.properties).map(|it| it.name.clone());
            let columns: Vec<_> = columns.collect();
            let batch = snapshot.rows().of_vertices(label, &ordinals, &columns, &mut line).await?;
            Ok::<_, EngineError>(((label, ordinals, batch), line))
        });
        for (label, ordinals, batch) in reads.await? {
            for (row, ordinal) in ordinals.iter().enumerate() {
                rows.extend(VertexId::new(label, *ordinal).map(|vertex| (vertex, Properties::at(&batch, row))));
            }
        }
        Ok(rows)
    }

    /// The items of property indexes for the vertices that are changed or deleted.
    pub(super) async fn items_of_existing(
        &self,
        snapshot: &Snapshot,
        branch: &mut Branch,
    ) -> Result<Items, EngineError> {
        let manifest = snapshot.manifest();
        let mut by_label: BTreeMap<LabelId, Vec<u64>> = BTreeMap::new();
        for vertex in self.changed.keys().chain(self.gone.keys()) {
            if manifest.indexes_of(vertex.label()).next().is_some() {
                by_label.entry(vertex.label()).or_default().push(vertex.ordinal());
            }
        }
        let reads = branch.each(by_label, |(label, ordinals), mut line| async move {
            let columns: Vec<_> = manifest.indexes_of(label).map(|index| index.property.clone()).collect();
            let batch = snapshot.rows().of_vertices(label, &ordinals, &columns, &mut line).await?;
            Ok::<_, EngineError>(((label, ordinals, batch), line))
        });
        let mut items = Items::default();
        for (label, ordinals, batch) in reads.await? {
            let added = items.add(manifest.indexes_of(label), &batch, &ordinals);
            added.map_err(EngineError::format(snapshot.reader().store().url()))?;
        }
        Ok(items)
    }

    /// The current edges of the groups that are changed partly.
    pub(super) async fn groups_to_change(
        &self,
        edits: &[(Pair, u32)],
        changes: &[Change],
        snapshot: &Arc<Snapshot>,
        branch: &mut Branch,
    ) -> Result<Groups, EngineError> {
        let mut wanted: BTreeMap<u32, BTreeMap<VertexId, BTreeSet<VertexId>>> = BTreeMap::new();
        let edited = edits.chunk_by(|a, b| a.0 == b.0).zip(changes).filter(|(_, change)| **change == Change::Edited);
        for (edits, _) in edited {
            let (pair, first) = edits[0];
            let (Vertex::Known(source), Vertex::Known(target)) = (pair.source, pair.target) else { continue };
            // Otherwise the changes start without edges: the first one deletes them all, or the deletion of a vertex did.
            if !self.resets(first) && !self.is_cleared(&pair) {
                wanted.entry(pair.label).or_default().entry(source).or_default().insert(target);
            }
        }
        // Labels do not depend on each other: all of them are read in the same waves.
        let reads = branch.each(&wanted, |(number, sources), mut line| async move {
            let label = self.edge_label(*number);
            let types = || snapshot.schema().edge_types.iter().filter(|it| it.label == label);
            if types().next().is_none() {
                return Ok::<_, EngineError>((Vec::new(), line));
            }
            let frontier: Frontier = sources.keys().copied().collect();
            let hop = Hop::along(HopDirection::Out, label);
            // Lists are read by source, with all targets; the edges of other pairs are dropped.
            let mut near: Vec<_> = sources.keys().map(|source| source.label()).collect();
            near.dedup();
            // Their properties are read next.
            let edges = hop.edge_tables(snapshot.schema(), &near).into_iter().collect();
            let expected = Expected { edges, ..Expected::default() };
            let hop_to_all = async |snapshot: &Arc<Snapshot>, line: &mut Branch| {
                snapshot.adjacency().neighbours(&frontier, &hop, line).await
            };
            let edges = expected.alongside(snapshot, &mut line, hop_to_all).await?;
            let edges: Edges = edges.iter().filter(|edge| sources[&edge.from].contains(&edge.to)).collect();
            // Edge types with this label may have different properties; one read has the columns of all.
            let names: BTreeSet<_> = types().flat_map(|it| &it.properties).map(|it| it.name.clone()).collect();
            let names: Vec<_> = names.into_iter().collect();
            let batches = snapshot.properties().of_edges(&edges, &names, &mut line).await?;
            let mut rows = vec![Properties::new(); edges.len()];
            for (positions, batch) in batches {
                positions.into_iter().enumerate().for_each(|(row, at)| rows[at] = Properties::at(&batch, row));
            }
            let pair = |(edge, row): (Neighbour, Properties)| {
                let source = Vertex::Known(edge.from);
                let target = Vertex::Known(edge.to);
                (Pair { label: *number, source, target }, row)
            };
            Ok((edges.iter().zip(rows).map(pair).collect(), line))
        });
        let mut groups = Groups::new();
        for (pair, row) in reads.await?.into_iter().flatten() {
            groups.entry(pair).or_default().push(row);
        }
        Ok(groups)
    }

    /// The pairs that lose their edges because one of the two vertices is deleted, and the batch's edge labels with those of the pairs added.
    pub(super) async fn edges_of_deleted(
        &self,
        snapshot: &Arc<Snapshot>,
        branch: &mut Branch,
    ) -> Result<(BTreeSet<Pair>, Vec<Name>), EngineError> {
        let mut pairs = BTreeSet::new();
        let mut labels = self.names.edge_labels.clone();
        let frontier: Frontier = self.without_edges().collect();
        if frontier.is_empty() {
            return Ok((pairs, labels));
        }
        // Both directions: readers have no list of deleted vertices, so each pair with one gets a tombstone.
        let hop = Hop { direction: HopDirection::Both, ..Hop::default() };
        let edges = snapshot.adjacency().neighbours(&frontier, &hop, branch).await?;
        // By edge type: a vertex may have a million edges, and a batch many labels.
        let mut numbers: HashMap<EdgeTypeId, u32> = HashMap::new();
        for edge in edges.iter() {
            let (source, target) = match edge.direction {
                Direction::Out => (edge.from, edge.to),
                Direction::In => (edge.to, edge.from),
            };
            let Some(edge_type) = snapshot.schema().edge_type(edge.edge_type) else { continue };
            let label =
                *numbers.entry(edge.edge_type).or_insert_with(|| number_of(&mut labels, &Name::new(&edge_type.label)));
            pairs.insert(Pair { label, source: Vertex::Known(source), target: Vertex::Known(target) });
        }
        Ok((pairs, labels))
    }
}

/// The number of a label, which is added if it is new.
fn number_of(labels: &mut Vec<Name>, label: &Name) -> u32 {
    let at = labels.iter().position(|known| known == label).unwrap_or_else(|| {
        labels.push(label.clone());
        labels.len() - 1
    });
    at as u32
}
