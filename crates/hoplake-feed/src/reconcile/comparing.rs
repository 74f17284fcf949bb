//! Both sides of a comparison, read once for digests of ranges, and once more for the ranges that differ.

use std::{collections::BTreeMap, path::Path, sync::Arc};

use hoplake::Properties;

use super::{
    difference::{Difference, DifferenceKind},
    digests::{Digests, Ranges},
    partitions::{Both, Partitions, Parts, Side},
    scope::Scope,
    tables::{Letters, Tables},
    view::View,
};
use crate::{Element, FeedError, Reconciled, apply::fold::Plans, mapping::Mapping, source::Snapshot};

/// Both sides, at one position.
pub(super) struct Comparing<'a> {
    pub(super) scope: Scope,
    pub(super) mapping: Arc<Mapping>,
    pub(super) snapshot: Option<Box<dyn Snapshot + 'a>>,
    pub(super) view: View,
    pub(super) letters: Option<Letters>,
    pub(super) reconciled: Reconciled,
}

impl<'a> Comparing<'a> {
    pub(super) fn new(scope: Scope, mapping: Arc<Mapping>, snapshot: Box<dyn Snapshot + 'a>, view: View) -> Self {
        let reconciled = Reconciled {
            position: snapshot.position().to_owned(),
            version: view.applier.graph.version(),
            ..Reconciled::default()
        };
        Self { scope, mapping, snapshot: Some(snapshot), view, letters: None, reconciled }
    }

    /// Finds the ranges that differ, and then all that is in them.
    pub(super) async fn compare(&mut self, folder: &Path) -> Result<Option<Parts>, FeedError> {
        let mut of_tables = Digests::new();
        let mut of_graph = Digests::new();
        self.read_tables(false, &mut |element, properties, _| {
            of_tables.add(element, properties);
            Ok(())
        })
        .await?;
        self.view
            .elements(&self.scope, false, &mut |element, properties| {
                of_graph.add(&element, &properties);
                Ok(())
            })
            .await?;
        let ranges: Ranges = of_tables.differing(&of_graph);
        drop((of_tables, of_graph));
        if ranges.is_empty() && !self.scope.has_stubs() {
            return Ok(None);
        }
        tracing::info!(ranges = ranges.count(), "ranges differ; their rows are read");
        let mut partitions = Partitions::new(ranges, folder);
        self.read_tables(true, &mut |element, properties, anyway| {
            partitions.add(Side::Tables, element, properties, anyway)
        })
        .await?;
        self.view
            .elements(&self.scope, true, &mut |element, properties| {
                partitions.add(Side::Graph, &element, &properties, false)
            })
            .await?;
        partitions.finish().map(Some)
    }

    async fn read_tables(
        &mut self,
        again: bool,
        take: &mut (dyn FnMut(&Element, &Properties, bool) -> Result<(), FeedError> + Send),
    ) -> Result<(), FeedError> {
        let Some(snapshot) = &mut self.snapshot else { return Ok(()) };
        let mut tables = Tables {
            scope: &self.scope,
            mapping: self.mapping.clone(),
            plans: Plans::default(),
            view: &mut self.view,
            take,
            rows: 0,
            elements: 0,
            unreadable: 0,
            // Each row that cannot be read is set aside once.
            letters: self.letters.as_mut().filter(|_| !again),
            bare: again.then(Vec::new),
        };
        snapshot.rows(&self.scope.tables, &mut tables).await?;
        let Tables { rows, elements, unreadable, .. } = tables;
        let reconciled = &mut self.reconciled;
        (reconciled.rows, reconciled.elements, reconciled.unreadable) = (rows, elements, unreadable);
        reconciled.scans += 1;
        Ok(())
    }

    /// The differences of a part, also of what is held.
    pub(super) fn differences(&self, parts: Option<&Parts>, part: usize) -> Result<Vec<Difference>, FeedError> {
        let found = parts.map_or_else(|| Ok(BTreeMap::new()), |parts| parts.differing(part))?;
        let difference = |(element, Both { mut tables, mut graph }): (Element, Both)| {
            let kind = match (tables.is_empty(), graph.is_empty()) {
                (false, true) => DifferenceKind::Missing,
                (true, _) => DifferenceKind::LeftOver,
                (false, false) => DifferenceKind::Different,
            };
            if let (DifferenceKind::LeftOver, Element::Vertex(vertex)) = (kind, &element)
                && graph.iter().all(|properties| self.scope.may_be_stub(vertex, properties))
            {
                return None;
            }
            Some(Difference { kind, element, in_tables: tables.pop(), in_graph: graph.pop() })
        };
        Ok(found.into_iter().filter_map(difference).collect())
    }
}
