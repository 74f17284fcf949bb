//! Edges of a type: pairs of vertices of which own runs have entries, by the keys of both.

use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    sync::Arc,
};

use hoplake_format::{Direction, EdgeTypeId, Key, LabelId, VertexId};

use super::{
    Both, Difference, PAGE, Replaced,
    entries::Entries,
    same, triples,
    vertices::{key_sources, ordinals, properties_at},
};
use crate::{
    Edges, EngineError, Frontier, Neighbour,
    read::{
        hop::{Hop, HopDirection},
        scan::{Decode, ListRange, Source, decode_lists},
    },
    write::change::{Name, Properties, VertexRef},
};

/// An edge type to compare: the edge's label, and those of its ends.
#[derive(Debug)]
pub(super) struct EdgeWork {
    names: [String; 3],
    candidates: Candidates,
}

/// Where its candidates come from.
#[derive(Debug)]
enum Candidates {
    /// All sources, by their keys.
    Keys(Entries<Key>),
    /// Pairs of ordinals. Before them the sources that went and came back are compared: `done` of them, and then `compared` has
    /// their ordinals in both versions.
    Pairs { pairs: Entries<(u64, u64)>, done: usize, compared: Option<[HashSet<u64>; 2]> },
}

type Pairs = BTreeSet<(u64, u64)>;

impl EdgeWork {
    pub(super) fn new(names: [String; 3], both: &Both) -> Self {
        let candidates = if both.same_ids {
            Candidates::Pairs { pairs: Entries::new(pair_sources(&names, both)), done: 0, compared: None }
        } else {
            Candidates::Keys(Entries::new(key_sources(&names[1], both)))
        };
        Self { names, candidates }
    }

    /// The differences among some more candidates; `None` if there are none left.
    pub(super) async fn page(
        &mut self,
        both: &mut Both,
        replaced: &Replaced,
    ) -> Result<Option<Vec<Difference>>, EngineError> {
        let replaced = replaced.get(&self.names[1]).map_or(&[][..], Vec::as_slice);
        let (sources, pairs) = match &mut self.candidates {
            Candidates::Keys(keys) if keys.is_empty() => return Ok(None),
            Candidates::Keys(keys) => {
                let keys = keys.page(PAGE, |_, _| false, &mut both.branch).await?;
                let before = ordinals(&self.names[1], &keys, 0, both).await?.into_iter().flatten().collect();
                let after = ordinals(&self.names[1], &keys, 1, both).await?.into_iter().flatten().collect();
                ([before, after], None)
            }
            Candidates::Pairs { done, .. } if *done < replaced.len() => {
                let page = &replaced[*done..replaced.len().min(*done + PAGE)];
                *done += page.len();
                ([0, 1].map(|side| page.iter().map(|ordinals| ordinals[side]).collect()), None)
            }
            Candidates::Pairs { pairs, .. } if pairs.is_empty() => return Ok(None),
            Candidates::Pairs { pairs, compared, .. } => {
                let pairs = pairs.page(PAGE, |a, b| a.0 == b.0, &mut both.branch).await?;
                // All their edges were compared before the pairs: their ordinals differ between the versions.
                let of_side = |side: usize| replaced.iter().map(|ordinals| ordinals[side]).collect();
                let compared = compared.get_or_insert_with(|| [0, 1].map(of_side));
                let sources = [0, 1].map(|side: usize| {
                    let sources = pairs.iter().map(|(source, _)| *source);
                    sources.filter(|source| !compared[side].contains(source)).collect::<Vec<_>>()
                });
                (sources, Some(pairs.into_iter().collect::<Pairs>()))
            }
        };
        // By the keys of the ends, since ordinals of one edge may differ between the versions.
        let mut groups: BTreeMap<(Key, Key), [Vec<Properties>; 2]> = BTreeMap::new();
        for (side, sources) in sources.into_iter().enumerate() {
            for (ends, properties) in self.edges(sources, pairs.as_ref(), side, both).await? {
                groups.entry(ends).or_default()[side].push(properties);
            }
        }
        let mut differences = Vec::new();
        groups.into_iter().for_each(|(ends, groups)| self.compare(ends, groups, &mut differences));
        Ok(Some(differences))
    }

    fn id(&self, side: usize, both: &Both) -> Option<EdgeTypeId> {
        id_of(&self.names, side, both)
    }

    /// Edges from these sources in one version, between these pairs only if there are any, by the keys of their ends.
    async fn edges(
        &self,
        sources: Vec<u64>,
        pairs: Option<&Pairs>,
        side: usize,
        both: &mut Both,
    ) -> Result<Vec<((Key, Key), Properties)>, EngineError> {
        let snapshot = both.snapshots[side].clone();
        let Some(id) = self.id(side, both) else { return Ok(Vec::new()) };
        let Some(described) = snapshot.schema().edge_type(id) else { return Ok(Vec::new()) };
        let near: LabelId = described.source;
        let frontier: Frontier = sources.into_iter().filter_map(|source| VertexId::new(near, source)).collect();
        let hop = Hop::along(HopDirection::Out, &self.names[0]);
        let edges = snapshot.adjacency().neighbours(&frontier, &hop, &mut both.branch).await?;
        let wanted = |edge: &Neighbour| {
            let pair = (edge.from.ordinal(), edge.to.ordinal());
            // The hop follows a label, which types between other vertex labels may share.
            edge.edge_type == id && pairs.is_none_or(|pairs| pairs.contains(&pair))
        };
        let edges: Edges = edges.iter().filter(wanted).collect();
        let ends: BTreeSet<VertexId> = edges.iter().flat_map(|edge| [edge.from, edge.to]).collect();
        let ends: Vec<VertexId> = ends.into_iter().collect();
        let names: Vec<_> = described.properties.iter().map(|property| property.name.clone()).collect();
        // Keys and rows depend on the lists alone: one wave for both.
        let mut line = both.branch.clone();
        let keys = snapshot.keys().of(&ends, &mut line);
        let rows = snapshot.properties().of_edges(&edges, &names, &mut both.branch);
        let (keys, rows) = futures::future::try_join(keys, rows).await?;
        both.branch.join([&line]);
        let keys: BTreeMap<VertexId, Key> = ends.into_iter().zip(keys).collect();
        let mut properties = vec![Properties::new(); edges.len()];
        for (positions, batch) in rows {
            positions.iter().enumerate().for_each(|(row, at)| properties[*at] = properties_at(&batch, row));
        }
        let keyed = |edge: Neighbour| Some((keys.get(&edge.from)?.clone(), keys.get(&edge.to)?.clone()));
        Ok(edges.iter().zip(properties).filter_map(|(edge, properties)| Some((keyed(edge)?, properties))).collect())
    }

    /// All edges between two vertices: those that both versions have are left out, and one that is left of each is one that
    /// was changed. Of more than one nobody can say which became which: those are removed, and added.
    fn compare(&self, (from, to): (Key, Key), groups: [Vec<Properties>; 2], into: &mut Vec<Difference>) {
        let [mut before, mut after] = groups;
        before.retain(|edge| match after.iter().position(|other| same(edge, other)) {
            Some(at) => {
                after.remove(at);
                false
            }
            None => true,
        });
        let [label, source, target] = self.names.clone();
        let source = VertexRef::new(source, from);
        let target = VertexRef::new(target, to);
        let difference = |before, after| Difference::Edge {
            label: Name::new(&label),
            source: source.clone(),
            target: target.clone(),
            before,
            after,
        };
        if before.len() == 1 && after.len() == 1 {
            return into.push(difference(before.pop(), after.pop()));
        }
        into.extend(before.into_iter().map(|edge| difference(Some(edge), None)));
        into.extend(after.into_iter().map(|edge| difference(None, Some(edge))));
    }
}

fn id_of(names: &[String; 3], side: usize, both: &Both) -> Option<EdgeTypeId> {
    let at = triples(both.schemas()[side]).iter().position(|it| it == names)?;
    both.schemas()[side].edge_types().nth(at).map(|(id, _)| id)
}

/// The own runs of either version that have entries of pairs.
fn pair_sources(names: &[String; 3], both: &Both) -> Vec<Source<(u64, u64)>> {
    let mut sources = Vec::new();
    for (side, snapshot) in both.snapshots.iter().enumerate() {
        let Some(id) = id_of(names, side, both) else { continue };
        let range = ListRange::all(id, Direction::Out);
        let all = range.sources.clone();
        let pairs = move |block: &_| Ok(decode_lists(block, &all)?.iter().map(|it| (it.source, it.target)).collect());
        let decode: Decode<(u64, u64)> = Arc::new(pairs);
        let runs = range.kinds().into_iter().flat_map(|kind| both.own(side, kind));
        sources.extend(runs.map(|run| Source::new(snapshot, run, &decode)));
    }
    sources
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::Value;

    /// What a diff reports of the edges between two vertices, by a property of each.
    fn told(before: &[i64], after: &[i64]) -> Vec<[Option<i64>; 2]> {
        let work = EdgeWork {
            names: ["knows".into(), "person".into(), "person".into()],
            candidates: Candidates::Pairs { pairs: Entries::new(Vec::new()), done: 0, compared: None },
        };
        let edges = |since: &[i64]| since.iter().map(|since| Properties::from([("since", *since)])).collect();
        let mut found = Vec::new();
        work.compare((Key::Int64(1), Key::Int64(2)), [edges(before), edges(after)], &mut found);
        let since = |edge: Option<Properties>| match edge?["since"] {
            Value::Int64(since) => Some(since),
            _ => None,
        };
        let side = |difference| match difference {
            Difference::Edge { before, after, .. } => [since(before), since(after)],
            other => panic!("{other:?}"),
        };
        found.into_iter().map(side).collect()
    }

    #[test]
    fn edges_that_both_versions_have_are_left_out() {
        assert_eq!(told(&[1, 2], &[2, 1]), [[None, None]; 0]);
        // Of two that are alike, one goes.
        assert_eq!(told(&[1, 1], &[1]), [[Some(1), None]]);
    }

    #[test]
    fn one_that_is_left_of_each_was_changed() {
        assert_eq!(told(&[1, 2], &[2, 3]), [[Some(1), Some(3)]]);
        assert_eq!(told(&[1, 2], &[3]), [[Some(1), None], [Some(2), None], [None, Some(3)]]);
    }
}
