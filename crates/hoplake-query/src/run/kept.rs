//! Properties that were read for several steps at once ([`Together`]).

use std::{collections::HashSet, sync::Arc};

use super::{
    Run,
    batch::{Batch, Element, element_of},
};
use crate::{
    error::Done,
    plan::{By, Name, Together},
    run::properties::{Kept, Properties, Wanted},
    value::Value,
};

/// Elements of which more is read than the next step needs, at most: of more, many might not come to the steps behind it.
const ELEMENTS_MAX: usize = 4_096;

impl Run {
    /// Reads what a step and those behind it need of a batch's elements.
    pub(crate) async fn prepare(&mut self, batch: &Batch, together: &Together) -> Done<()> {
        let all = together.all || together.results && self.wanted.properties;
        if (together.names.len() + usize::from(all || together.results)) == 0 || batch.len() > ELEMENTS_MAX {
            return Ok(());
        }
        let elements: Vec<Element> = (0..batch.len()).filter_map(|at| batch.items.element(at)).collect();
        self.keep_ready(elements, if all { None } else { Some(&together.names) }).await
    }

    /// Reads properties of elements, all or those of some names, for the steps that are about to look at them.
    pub(crate) async fn keep_ready(&mut self, elements: Vec<Element>, names: Option<&[Name]>) -> Done<()> {
        let wanted = names.map_or(Wanted::All, Wanted::Named);
        let is_kept = |kept: &Kept| kept.of(&self.snapshot, &elements, wanted).is_some();
        if elements.is_empty() || self.kept.as_ref().is_some_and(is_kept) {
            return Ok(());
        }
        let properties = self.read_now(elements, wanted).await?;
        let hold = Arc::new(self.branch.context().hold(properties.bytes())?);
        let names = names.map(|names| names.iter().cloned().collect());
        self.kept =
            Some(Kept { snapshot: self.snapshot.clone(), names, properties: Arc::new(properties), _hold: hold });
        Ok(())
    }

    /// Reads the properties that several `by` read of elements in some columns.
    pub(crate) async fn keep_ready_of(&mut self, columns: &[Vec<Option<Value>>], by: &[By]) -> Done<()> {
        let names = distinct(by.iter().filter_map(|by| match by {
            By::Property(name) => Some(name),
            _ => None,
        }));
        let count: usize = columns.iter().map(Vec::len).sum();
        if names.is_empty() || columns.len() < 2 || count > ELEMENTS_MAX {
            return Ok(());
        }
        let elements = columns.iter().flatten().flatten().filter_map(element_of).collect();
        self.keep_ready(elements, Some(&names)).await
    }

    /// Reads properties of elements, those of vertices with their keys.
    pub(crate) async fn read(
        &mut self,
        elements: impl IntoIterator<Item = Element>,
        wanted: Wanted<'_>,
    ) -> Done<Arc<Properties>> {
        let elements: Vec<Element> = elements.into_iter().collect();
        if let Some(kept) = &self.kept
            && let Some(properties) = kept.of(&self.snapshot, &elements, wanted)
        {
            return Ok(properties);
        }
        Ok(Arc::new(self.read_now(elements, wanted).await?))
    }
}

/// Names, each once.
pub(crate) fn distinct<'a>(names: impl IntoIterator<Item = &'a Name>) -> Vec<Name> {
    let mut seen = HashSet::new();
    names.into_iter().filter(|name| seen.insert(*name)).cloned().collect()
}
