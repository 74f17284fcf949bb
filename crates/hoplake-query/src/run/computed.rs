//! Properties of vertices that were computed over the whole graph.

use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, Int64Array, StringArray};
use hoplake_engine::DenseIds;
use hoplake_format::LabelId;
use hoplake_storage::MemoryHold;

use crate::plan::Name;

/// A property that was computed.
#[derive(Debug)]
pub(crate) struct Computed {
    pub(crate) property: Name,
    pub(crate) ids: Arc<DenseIds>,
    pub(crate) column: Column,
    pub(crate) _hold: MemoryHold,
}

/// By dense id.
#[derive(Debug)]
pub(crate) enum Column {
    Numbers(Vec<f64>),
    /// Places in the order of ids, and what stands there.
    Vertices(Vec<u32>, Names),
}

/// The ids of all vertices, in their order as texts.
#[derive(Debug)]
pub(crate) struct Names {
    pub(crate) sorted: Vec<Box<str>>,
    /// Whether they are numbers, and are read as such.
    pub(crate) are_numbers: bool,
}

impl Computed {
    /// The values of some vertices of a label.
    pub(super) fn values(&self, label: LabelId, ordinals: &[u64]) -> ArrayRef {
        let ids = self.ids.of_label(label).unwrap_or_default();
        let of = |ordinal: &u64| {
            let id = ids.start.checked_add(*ordinal)?;
            ids.contains(&id).then_some(id as usize)
        };
        match &self.column {
            Column::Numbers(numbers) => {
                let values = ordinals.iter().map(|ordinal| numbers.get(of(ordinal)?).copied());
                Arc::new(values.collect::<Float64Array>())
            }
            Column::Vertices(places, names) => {
                let values = ordinals.iter().map(|ordinal| {
                    let place = *places.get(of(ordinal)?)?;
                    names.sorted.get(place as usize).map(|name| &**name)
                });
                match names.are_numbers {
                    true => Arc::new(values.map(|name| name?.parse::<i64>().ok()).collect::<Int64Array>()),
                    false => Arc::new(values.collect::<StringArray>()),
                }
            }
        }
    }
}
