//! A vertex that is found, or else added.

use std::{collections::HashMap, ops::Range};

use hoplake_format::{LabelId, VertexId};

use super::merging::{Sought, check_match, values_of_new};
use crate::{
    operators::prelude::*,
    plan::{MergeMap, Merging},
    run::{
        Element,
        by_value::{ByValue, Of},
        change::NewVertex,
        kept::distinct,
        properties::Wanted,
    },
};

/// A vertex that is found, or else added.
#[derive(Debug, Clone, PartialEq)]
pub struct MergeVertex {
    /// What it is.
    pub merging: Merging,
}

impl Operator for MergeVertex {
    nested!(merging);

    fn is_write(&self) -> bool {
        true
    }

    fn start(self: Arc<Self>) -> Running {
        AllInput::running(self)
    }
}

impl All for MergeVertex {
    async fn all(&self, run: &mut Run, all: Batch, _: &Frames) -> Done<Output> {
        if all.is_empty() {
            return Ok(Output::Same(all));
        }
        run.merge_vertices(all, &self.merging).await
    }
}

/// The vertices that a traverser merges into: existing ones, or one to add.
enum MergeTarget {
    There(Vec<VertexId>),
    /// The number of the new vertex.
    New(usize),
}

impl Run {
    pub(crate) async fn merge_vertices(&mut self, batch: Batch, merging: &Merging) -> Done<Output> {
        let growth = self.growth.clone();
        let maps = self.maps_of(&merging.sought, &batch, "mergeV").await?;
        let sought: Vec<Sought> =
            maps.iter().map(|entries| Sought::of_vertex(entries, "mergeV", &growth)).collect::<Done<_>>()?;
        let on_create = self.options_of(merging.on_create.as_ref(), &batch).await?;
        let on_match = merging.on_match.as_ref();
        check_match(on_match)?;
        let created = |at: usize| {
            let entries = on_create.as_ref().map_or(&[][..], |all| &all[at]);
            sought[at].created(&maps[at], entries, merging.on_create.as_ref(), &growth)
        };
        // A mistake in what is written is one whether something is found or not; one in what a traversal gives only if it is needed.
        if matches!(&merging.on_create, Some(MergeMap { map: Given::Value(_), .. })) {
            for at in 0..batch.len() {
                let mark = growth.begin();
                let worked = growth.done();
                drop(created(at)?);
                growth.end(&mark)?;
                self.rest_since(worked).await?;
            }
        }
        // One after the other if a match may change what is sought later.
        let together = on_match.is_none() || batch.len() == 1;
        let length = if together { batch.len().max(1) } else { 1 };
        let steps: Vec<_> = (0..batch.len()).step_by(length).map(|at| at..at + length).collect();
        let mut parents = Vec::new();
        let mut items = Vec::new();
        let mut worked = growth.done();
        for range in steps {
            let mut found = Vec::with_capacity(range.len());
            let mut new: Vec<NewVertex> = Vec::new();
            let known = self.vertices_like(&sought[range.clone()]).await?;
            // What the new ones have, as far as those seek it who find nothing else.
            let mut of_new = ByValue::new(&growth);
            let unknown = sought[range.clone()].iter().zip(&known).filter(|(_, known)| known.is_empty());
            for (of, value) in unknown.flat_map(|(sought, _)| sought.conditions_on_new()) {
                of_new.ask(of, &value)?;
            }
            for (at, known) in range.clone().zip(known) {
                self.rest_since(worked).await?;
                worked = growth.done();
                if !known.is_empty() {
                    found.push(MergeTarget::There(known));
                    continue;
                }
                let conditions: Vec<_> = sought[at].conditions_on_new().collect();
                if let Some(number) = of_new.find(0..new.len(), &conditions, 1)?.first() {
                    found.push(MergeTarget::New(*number));
                    continue;
                }
                let one = created(at)?;
                for (of, value) in values_of_new(&one) {
                    of_new.file(new.len(), of, &value)?;
                }
                found.push(MergeTarget::New(new.len()));
                new.push(one);
            }
            let added = match new.is_empty() {
                true => Vec::new(),
                false => self.added_vertices(&new.iter().collect::<Vec<_>>()).await?,
            };
            drop(of_new);
            let mut matched: Vec<(u32, Element)> = Vec::new();
            for (at, found) in range.zip(found) {
                let vertices = match found {
                    MergeTarget::New(number) => vec![added[number]],
                    MergeTarget::There(vertices) => {
                        growth.take(vertices.len() * size_of::<(u32, Element)>())?;
                        matched.extend(vertices.iter().map(|vertex| (at as u32, Element::Vertex(*vertex))));
                        vertices
                    }
                };
                growth.take(2 * vertices.len() * size_of::<(u32, VertexId)>())?;
                parents.extend(vertices.iter().map(|_| at as u32));
                items.extend(vertices);
            }
            if let Some(map) = on_match {
                self.match_changes(map, &batch, matched).await?;
            }
        }
        self.derived(&batch, &parents, Items::Vertices(items)).map(Output::Next)
    }

    /// The vertices that are like each of some maps.
    pub(super) async fn vertices_like(&mut self, sought: &[Sought]) -> Done<Vec<Vec<VertexId>>> {
        let mark = self.growth.begin();
        let found = self.looked_through(sought).await?;
        self.growth.end(&mark)?;
        let count = found.iter().map(|vertices| vertices.len()).sum::<usize>();
        self.growth.take(count * size_of::<VertexId>() + size_of_val(&found[..]))?;
        Ok(found)
    }

    /// As [`Self::vertices_like`]: the vertices of labels are read once for all maps, and found by a table.
    async fn looked_through(&mut self, sought: &[Sought]) -> Done<Vec<Vec<VertexId>>> {
        let growth = self.growth.clone();
        let (vertices, ranges) = self.candidates(sought).await?;
        let mut by_value = ByValue::new(&growth);
        let names = distinct(sought.iter().flat_map(|it| it.values.iter().map(|(name, ..)| name)));
        if !names.is_empty() {
            for (of, value) in sought.iter().flat_map(Sought::conditions) {
                by_value.ask(of, &value)?;
            }
            let mut elements = growth.column(vertices.len())?;
            elements.extend(vertices.iter().map(|vertex| Element::Vertex(*vertex)));
            let read = self.read(elements, Wanted::Named(&names)).await?;
            for (place, vertex) in vertices.iter().enumerate() {
                let worked = growth.done();
                for (name, values) in read.all(Element::Vertex(*vertex), &None) {
                    growth.work(1)?;
                    values.iter().try_for_each(|value| by_value.file(place, Of::Property(name), value))?;
                }
                self.rest_since(worked).await?;
            }
        }
        let mut all = growth.column(sought.len())?;
        for (sought, range) in sought.iter().zip(ranges) {
            let conditions: Vec<_> = sought.conditions().collect();
            let worked = growth.done();
            let found = by_value.find(range, &conditions, usize::MAX)?;
            self.rest_since(worked).await?;
            all.push(found.into_iter().map(|place| vertices[place]).collect());
        }
        Ok(all)
    }

    /// The vertices of the ids and labels of some maps, whatever their properties are, and which of them are those of each map.
    async fn candidates(&mut self, sought: &[Sought]) -> Done<(Vec<VertexId>, Vec<Range<usize>>)> {
        let ids = sought.iter().map(|sought| sought.id.as_ref().unwrap_or(&Value::Null));
        let ids = self.growth.copy_all(ids)?;
        let by_id = self.vertices_of(&ids).await?;
        let mut vertices: Vec<VertexId> = Vec::new();
        let mut of_labels: HashMap<Option<&Name>, Range<usize>> = HashMap::new();
        let mut ranges = self.growth.column(sought.len())?;
        for (sought, by_id) in sought.iter().zip(by_id) {
            let begin = vertices.len();
            if sought.id.is_some() {
                let is_labelled =
                    |vertex: &VertexId| sought.label.as_ref().is_none_or(|label| **label == *self.label_of(*vertex));
                self.growth.take(2 * by_id.len() * size_of::<VertexId>())?;
                vertices.extend(by_id.into_iter().filter(is_labelled));
                ranges.push(begin..vertices.len());
                continue;
            }
            if let Some(range) = of_labels.get(&sought.label.as_ref()) {
                ranges.push(range.clone());
                continue;
            }
            let schema = self.snapshot.schema();
            let labels: Vec<LabelId> = match &sought.label {
                Some(label) => schema.label_id(label).into_iter().collect(),
                None => (0..schema.vertex_labels.len()).map(|label| LabelId(label as u16)).collect(),
            };
            let snapshot = self.snapshot.clone();
            let found = snapshot.find_vertices(&labels, None, None, &mut self.branch).await?;
            self.growth.take(2 * found.len() as usize * size_of::<VertexId>())?;
            vertices.extend(found.vertices());
            of_labels.insert(sought.label.as_ref(), begin..vertices.len());
            ranges.push(begin..vertices.len());
        }
        Ok((vertices, ranges))
    }
}
