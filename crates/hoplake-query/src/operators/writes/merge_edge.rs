//! An edge that is found, or else added.

use std::collections::HashSet;

use hoplake_engine::{Frontier, Neighbour};
use hoplake_format::{LabelId, VertexId};

use super::merging::{Sought, check_match};
use crate::{
    operators::{hop_along, prelude::*},
    plan::{MergeMap, Merging},
    run::{Element, kept::distinct, properties::Wanted},
    tokens::{Direction, Merge, Token},
};

/// An edge that is found, or else added.
#[derive(Debug, Clone, PartialEq)]
pub struct MergeEdge {
    /// What it is.
    pub merging: Merging,
}

impl Operator for MergeEdge {
    nested!(merging);

    fn is_write(&self) -> bool {
        true
    }

    fn start(self: Arc<Self>) -> Running {
        AllInput::running(self)
    }
}

impl All for MergeEdge {
    async fn all(&self, run: &mut Run, all: Batch, _: &Frames) -> Done<Output> {
        if all.is_empty() {
            return Ok(Output::Same(all));
        }
        run.merge_edges(all, &self.merging).await
    }
}

impl Run {
    pub(crate) async fn merge_edges(&mut self, batch: Batch, merging: &Merging) -> Done<Output> {
        let sought = self.maps_of(&merging.sought, &batch, "mergeE").await?;
        let on_create = self.options_of(merging.on_create.as_ref(), &batch).await?;
        check_match(merging.on_match.as_ref())?;
        let create_is_given = matches!(&merging.on_create, Some(MergeMap { map: Given::Value(_), .. }));
        let ends = [
            self.end_option(merging.out_vertex.as_ref(), &batch).await?,
            self.end_option(merging.in_vertex.as_ref(), &batch).await?,
        ];
        let mut parents = Vec::new();
        let mut items = Vec::new();
        let growth = self.growth.clone();
        for (at, entries) in sought.into_iter().enumerate() {
            self.pace.rest(1).await?;
            let mark = growth.begin();
            let sought = Sought::of_edge(&entries, "mergeE", &growth)?;
            let own = |which: usize| ends[which].as_ref().and_then(|all| all[at].as_ref());
            let end = |value: &Option<Value>| {
                let value = match value {
                    // `Merge.outV` stands for what its option gives.
                    Some(Value::Token(Token::Merge(Merge::OutV))) => own(0),
                    Some(Value::Token(Token::Merge(Merge::InV))) => own(1),
                    other => other.as_ref(),
                };
                value.map(|value| growth.copy(value)).transpose()
            };
            let source = end(&sought.source)?;
            let target = end(&sought.target)?;
            let source = self.merged_end(source, "OUT").await?;
            let target = self.merged_end(target, "IN").await?;
            let mut edges = self.edges_like(&sought, source.as_ref(), target.as_ref()).await?;
            // What a traversal gives for a new edge is of no interest if there is one.
            let on_create = on_create.as_ref().filter(|_| edges.is_empty() || create_is_given);
            let more = match on_create {
                Some(maps) => Sought::of_edge(&maps[at], "option(onCreate)", &growth)?,
                None => Sought::default(),
            };
            if let (Some(maps), Some(option)) = (on_create, &merging.on_create) {
                option.reject_overrides(&entries, &maps[at])?;
            }
            let conflict = |what: &str| {
                QueryError::wrong_type(format!("option(onCreate) cannot override values from merge() argument: {what}"))
            };
            let own_source = self.merged_end(end(&more.source)?, "OUT").await?;
            let own_target = self.merged_end(end(&more.target)?, "IN").await?;
            if own_source.is_some() && source.is_some() && own_source != source {
                return Err(conflict("OUT"));
            }
            if own_target.is_some() && target.is_some() && own_target != target {
                return Err(conflict("IN"));
            }
            if edges.is_empty() {
                if more.id.is_some() || sought.id.is_some() {
                    return Err(crate::run::change::no_edge_ids());
                }
                let needs = |which: &str| {
                    QueryError::wrong_type(format!(
                        "{which} Vertex not specified in onCreate and no existing edge was found for mergeE()"
                    ))
                };
                let vertex = |found: Option<Vec<VertexId>>, which: &str| {
                    found.and_then(|found| found.first().copied()).ok_or_else(|| needs(which))
                };
                let source = vertex(own_source.or(source), "Out")?;
                let target = vertex(own_target.or(target), "In")?;
                let mut values = sought.values_besides(&more.values, &growth)?;
                values.extend(more.values);
                let label = more.label.or(sought.label).unwrap_or_else(|| "edge".into());
                edges = self.added_edges(vec![(label, source, target, values)]).await?;
            } else if let Some(map) = &merging.on_match {
                let matched = edges.iter().map(|edge| (at as u32, Element::Edge(*edge))).collect();
                self.match_changes(map, &batch, matched).await?;
                // What was changed has moved to another run.
                let ids: Vec<Value> = edges.iter().map(|edge| Value::Text(edge.id().to_string().into())).collect();
                edges = self.edges_of(&ids).await?.into_iter().flatten().collect();
            }
            growth.end(&mark)?;
            growth.take(2 * edges.len() * size_of::<(u32, Neighbour)>())?;
            parents.extend(edges.iter().map(|_| at as u32));
            items.extend(edges);
        }
        self.derived(&batch, &parents, Items::Edges(items)).map(Output::Next)
    }

    /// What `option(outV, …)` gives: a vertex, or a map that finds one.
    async fn end_option(&mut self, given: Option<&Given>, batch: &Batch) -> Done<Option<Vec<Option<Value>>>> {
        let Some(given) = given else { return Ok(None) };
        let mut values = self.given(given, batch).await?;
        let mut places = Vec::new();
        let mut sought = Vec::new();
        for (place, value) in values.iter().enumerate() {
            if let Some(Value::Map(entries)) = value {
                places.push(place);
                sought.push(Sought::of_vertex(entries, "mergeE", &self.growth)?);
            }
        }
        if !sought.is_empty() {
            let found = self.vertices_like(&sought).await?;
            for (place, found) in places.into_iter().zip(found) {
                values[place] = found.first().map(|vertex| (*vertex).into());
            }
        }
        Ok(Some(values))
    }

    /// The vertices of an end; `None` if the end is not named.
    async fn merged_end(&mut self, end: Option<Value>, which: &str) -> Done<Option<Vec<VertexId>>> {
        let Some(end) = end else { return Ok(None) };
        let found = self.vertices_of(std::slice::from_ref(&end)).await?.pop().unwrap_or_default();
        match found.is_empty() {
            true => {
                Err(QueryError::wrong_type(format!("Vertex id could not be resolved from mergeE at Direction.{which}")))
            }
            false => Ok(Some(found)),
        }
    }

    async fn edges_like(
        &mut self,
        sought: &Sought,
        source: Option<&Vec<VertexId>>,
        target: Option<&Vec<VertexId>>,
    ) -> Done<Vec<Neighbour>> {
        let mut edges: Vec<Neighbour> = if let Some(id) = &sought.id {
            self.edges_of(std::slice::from_ref(id)).await?.into_iter().flatten().collect()
        } else {
            let all: Vec<VertexId>;
            let (direction, near) = match (source, target) {
                (Some(source), _) => (Direction::Out, source),
                (None, Some(target)) => (Direction::In, target),
                (None, None) => {
                    let labels: Vec<LabelId> =
                        (0..self.snapshot.schema().vertex_labels.len()).map(|label| LabelId(label as u16)).collect();
                    let snapshot = self.snapshot.clone();
                    let found = snapshot.find_vertices(&labels, None, None, &mut self.branch).await?;
                    self.growth.take(found.len() as usize * size_of::<VertexId>())?;
                    all = found.vertices().collect();
                    (Direction::Out, &all)
                }
            };
            let label: Vec<Name> = sought.label.iter().cloned().collect();
            let Some(hop) = hop_along(&self.snapshot, direction, &label) else { return Ok(Vec::new()) };
            let frontier = Frontier::held(near, self.branch.context()).await?;
            let read = self.snapshot.adjacency().neighbours(&frontier, &hop, &mut self.branch).await?;
            self.growth.take(read.len() as usize * size_of::<Neighbour>())?;
            read.iter().collect()
        };
        let ends = [source, target].map(|all| all.map(|all| all.iter().collect::<HashSet<_>>()));
        let is_end = |which: usize, vertex: VertexId| ends[which].as_ref().is_none_or(|all| all.contains(&vertex));
        self.growth.work(edges.len() as u64)?;
        edges.retain(|edge| {
            let id = edge.id();
            is_end(0, id.source)
                && is_end(1, id.target)
                && sought.label.as_ref().is_none_or(|label| **label == *self.edge_label_of(edge))
        });
        if !sought.values.is_empty() {
            let names = distinct(sought.values.iter().map(|(name, ..)| name));
            let mut elements = self.growth.column(edges.len())?;
            elements.extend(edges.iter().map(|edge| Element::Edge(*edge)));
            let read = self.read(elements, Wanted::Named(&names)).await?;
            let mut like = self.growth.column(edges.len())?;
            for edge in edges {
                let all = read.all(Element::Edge(edge), &None);
                self.pace.rest(1 + all.len() as u64).await?;
                if sought.matches(&all, &self.growth)? {
                    like.push(edge);
                }
            }
            edges = like;
        }
        Ok(edges)
    }
}
