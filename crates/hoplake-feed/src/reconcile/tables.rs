//! The rows of a snapshot as elements.

use std::sync::Arc;

use async_trait::async_trait;
use hoplake::{Properties, VertexRef};

use super::{
    scope::{Scope, edge_of_key},
    view::View,
};
use crate::{
    Columns, Element, FeedError, FeedErrorKind, Images, OnError, Row, RowChange,
    apply::{
        fold::{EdgeId, Plans},
        letters::Letter,
    },
    copy::SET_ASIDE_MAX,
    mapping::{BadRow, Entry, Image, Item, Mapping, Target},
    source::RowSink,
};

/// Passes on what rows are.
pub(super) struct Tables<'a> {
    pub(super) scope: &'a Scope,
    pub(super) mapping: Arc<Mapping>,
    pub(super) plans: Plans,
    pub(super) view: &'a mut View,
    pub(super) take: &'a mut (dyn FnMut(&Element, &Properties, bool) -> Result<(), FeedError> + Send),
    pub(super) rows: u64,
    pub(super) elements: u64,
    pub(super) unreadable: u64,
    /// Rows that cannot be read, as letters, if they are to be set aside.
    pub(super) letters: Option<&'a mut Letters>,
    /// Vertices that look like stubs: whether they are there is looked up. Not in the first reading.
    pub(super) bare: Option<Vec<VertexRef>>,
}

#[async_trait]
impl RowSink for Tables<'_> {
    async fn rows(&mut self, columns: &Arc<Columns>, rows: Vec<Row>) -> Result<(), FeedError> {
        self.rows += rows.len() as u64;
        let mapping = self.mapping.clone();
        let mut plans = std::mem::take(&mut self.plans);
        for (number, plan) in plans.of(&mapping, columns)? {
            let entry = &mapping.entries[*number];
            for row in &rows {
                match plan.image(entry, columns, row) {
                    Ok(image) => self.image(entry, image)?,
                    Err(BadRow { why }) => {
                        self.unreadable += 1;
                        let name = plan.name(entry, columns, row);
                        if let Some(letters) = &mut self.letters {
                            letters.add(entry, columns, row, name.clone(), why)?;
                        }
                        name.into_iter().for_each(|name| self.view.hold(name));
                    }
                }
            }
        }
        self.plans = plans;
        self.look_up_bare().await
    }
}

/// Rows that cannot be read, at one position.
#[derive(Default)]
pub(super) struct Letters {
    pub(super) position: String,
    pub(super) all: Vec<Letter>,
}

impl Letters {
    fn add(
        &mut self,
        entry: &Entry,
        columns: &Arc<Columns>,
        row: &Row,
        name: Option<String>,
        why: String,
    ) -> Result<(), FeedError> {
        if entry.on_error == OnError::Stop || self.all.len() == SET_ASIDE_MAX {
            let name = name.unwrap_or_else(|| format!("a row of {}", entry.table));
            return Err(FeedError::new(FeedErrorKind::Row, format!("{name}: {why}"))
                .hint("correct the row, or the mapping, or let it be set aside (on_error = \"dead-letter\")"));
        }
        self.all.push(Letter {
            position: self.position.clone(),
            committed_unix_ms: 0,
            table: entry.table.clone(),
            label: entry.label().clone(),
            names: name.into_iter().collect(),
            why: Some(why),
            attempts: 1,
            change: RowChange::new(columns.clone(), Images::Insert(row.clone())),
        });
        Ok(())
    }
}

impl Tables<'_> {
    fn image(&mut self, entry: &Entry, image: Image) -> Result<(), FeedError> {
        match (image, &entry.item) {
            (Image::Vertex(image), Item::Vertex(map)) => {
                for (key, (target, properties)) in map.edges.iter().zip(image.targets) {
                    if let Target::Vertex(other) = target {
                        self.element(Element::Edge(edge_of_key(key, &image.vertex, other)), properties)?;
                    }
                }
                self.element(Element::Vertex(image.vertex), image.properties)
            }
            (Image::Edge(image), _) => {
                let key = image.key.map(Into::into);
                let id = EdgeId { label: entry.label().clone(), source: image.source, target: image.target, key };
                self.element(Element::Edge(id), image.properties)
            }
            _ => Ok(()),
        }
    }

    fn element(&mut self, element: Element, properties: Properties) -> Result<(), FeedError> {
        if !self.scope.has(&element) {
            return Ok(());
        }
        self.elements += 1;
        let properties = self.scope.compared(&element, properties);
        match element {
            Element::Vertex(vertex) if self.scope.may_be_stub(&vertex, &properties) => {
                let Some(bare) = &mut self.bare else { return Ok(()) };
                bare.push(vertex.clone());
                (self.take)(&Element::Vertex(vertex), &properties, false)
            }
            element => (self.take)(&element, &properties, false),
        }
    }

    async fn look_up_bare(&mut self) -> Result<(), FeedError> {
        let Some(bare) = self.bare.as_mut().filter(|bare| !bare.is_empty()) else { return Ok(()) };
        for (vertex, is_there) in self.view.exist(std::mem::take(bare)).await? {
            if !is_there {
                (self.take)(&Element::Vertex(vertex), &Properties::new(), true)?;
            }
        }
        Ok(())
    }
}
