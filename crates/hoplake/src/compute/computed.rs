//! What a computation leaves: a value for each vertex.

use std::{borrow::Cow, cmp::Ordering, sync::Arc};

use arrow_array::{ArrayRef, Float64Array, Int64Array, new_null_array};
use arrow_schema::DataType;
use hoplake_analytics::registry::{AlgorithmSpec, Figure, KernelResult, Values};
use hoplake_engine::{DenseIds, Held};
use hoplake_format::{LabelId, VertexId};

/// A value for each vertex, or figures for the whole graph.
#[derive(Debug)]
pub struct Computed {
    /// What its values are called.
    pub(super) name: Cow<'static, str>,
    /// Whether vertices with the same value are a group.
    pub(super) has_groups: bool,
    /// How many supersteps, iterations or steps it took, if it took any.
    pub supersteps: Option<usize>,
    /// How many times vertices have collected, in an asynchronous computation.
    pub collections: Option<u64>,
    /// Whether lists were streamed.
    pub streamed: bool,
    /// Numbers for the whole graph, by name.
    pub figures: Vec<(&'static str, Figure)>,
    pub(super) ids: Arc<DenseIds>,
    /// Ids of deleted vertices, ascending.
    pub(super) deleted: Held<Vec<u32>>,
    /// `None` if the result is a figure.
    pub(super) values: Option<Held<Values>>,
    /// Further values of each vertex, which a program may have, with their names.
    pub(super) others: Vec<(String, Held<Values>)>,
}

impl Computed {
    pub(super) fn by_kernel(
        spec: &'static AlgorithmSpec,
        ids: Arc<DenseIds>,
        deleted: Held<Vec<u32>>,
        found: KernelResult,
    ) -> Self {
        let KernelResult { iterations: supersteps, values, figures } = found;
        let (name, has_groups) = (spec.value_name().into(), spec.has_groups());
        let (collections, streamed, others) = (None, false, Vec::new());
        Self { name, has_groups, supersteps, collections, streamed, figures, ids, deleted, values, others }
    }

    /// What its values are called: [`Algorithm::name`](super::Algorithm::name), or what a program calls them.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether each vertex has a row; otherwise all that there is are [`Self::figures`].
    pub fn has_values(&self) -> bool {
        self.values.is_some()
    }

    /// A figure by its name.
    pub fn figure(&self, name: &str) -> Option<Figure> {
        self.figures.iter().find(|(known, _)| *known == name).map(|(_, figure)| *figure)
    }

    /// How many vertices have been computed.
    pub fn len(&self) -> usize {
        self.ids.len() as usize - self.deleted.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All vertices, by label and ordinal.
    pub fn vertices(&self) -> impl Iterator<Item = VertexId> + '_ {
        self.numbers().filter_map(|id| self.ids.vertex(id.into()))
    }

    /// The ids that come first by value, `most` of them, and whether others have the same value as the last. 8 bytes an id.
    pub(super) fn leading(&self, most: usize) -> (Vec<u32>, bool) {
        if most == 0 {
            return (Vec::new(), false);
        }
        // With room for twice as many, a selection among them is due so seldom that it costs a step a vertex.
        let room = self.len().min(most.saturating_mul(2));
        let mut ids: Vec<u32> = Vec::with_capacity(room);
        let order = |a: &u32, b: &u32| self.order(*a, *b).then(a.cmp(b));
        for id in self.numbers() {
            if ids.len() == room {
                ids.select_nth_unstable_by(most, order);
                ids.truncate(most);
            }
            ids.push(id);
        }
        ids.sort_unstable_by(order);
        ids.truncate(most);
        let Some(last) = ids.last().copied() else { return (ids, false) };
        let alike = |id: &u32| self.order(*id, last) == Ordering::Equal;
        let more =
            ids.len() < self.len() && self.numbers().filter(alike).count() > ids.iter().filter(|id| alike(id)).count();
        (ids, more)
    }

    /// How many components or communities there are, and how many vertices the largest has; `None` of other values.
    pub fn groups(&self) -> Option<(u64, u64)> {
        let Some(Values::Integers(values)) = self.values.as_deref().filter(|_| self.has_groups) else {
            return None;
        };
        let mut sizes = vec![0u32; values.len()];
        self.numbers().for_each(|id| sizes[values[id as usize] as usize] += 1);
        let groups = sizes.iter().filter(|size| **size > 0).count();
        Some((groups as u64, sizes.iter().copied().max().unwrap_or(0).into()))
    }

    /// The values of some vertices, as a column of int64 or float64; null where there is none.
    pub fn column(&self, vertices: &[VertexId]) -> ArrayRef {
        self.column_of(self.values.as_deref(), vertices)
    }

    /// The labels of its vertices.
    pub fn labels(&self) -> Vec<LabelId> {
        self.ids.by_label().filter(|(_, ids)| !ids.is_empty()).map(|(label, _)| label).collect()
    }

    /// Further values of some vertices, each with its name.
    pub fn other_columns(&self, vertices: &[VertexId]) -> Vec<(&str, ArrayRef)> {
        let others = self.others.iter();
        others.map(|(name, values)| (name.as_str(), self.column_of(Some(values), vertices))).collect()
    }

    fn column_of(&self, values: Option<&Values>, vertices: &[VertexId]) -> ArrayRef {
        let number = |vertex: &VertexId| {
            let id = self.ids.of_vertex(*vertex)? as u32;
            self.deleted.binary_search(&id).is_err().then_some(id as usize)
        };
        let numbers = vertices.iter().map(number);
        match values {
            None => new_null_array(&DataType::Null, vertices.len()),
            Some(Values::Integers(values)) => {
                let value = |number: Option<usize>| number.map(|at| values[at]).filter(|value| *value != u32::MAX);
                Arc::new(numbers.map(|number| value(number).map(i64::from)).collect::<Int64Array>())
            }
            Some(Values::Lengths(values)) => {
                let value = |number: Option<usize>| number.map(|at| values[at]).filter(|value| value.is_finite());
                Arc::new(numbers.map(value).collect::<Float64Array>())
            }
            Some(Values::Numbers(values)) => {
                Arc::new(numbers.map(|number| number.map(|at| values[at])).collect::<Int64Array>())
            }
            Some(Values::Counts(values)) => {
                Arc::new(numbers.map(|number| number.map(|at| values[at] as i64)).collect::<Int64Array>())
            }
            Some(Values::Floats(values)) => {
                let value = |number: Option<usize>| number.map(|at| values[at]).filter(|value| !value.is_nan());
                Arc::new(numbers.map(value).collect::<Float64Array>())
            }
        }
    }

    fn numbers(&self) -> impl Iterator<Item = u32> + '_ {
        let mut deleted = self.deleted.iter().peekable();
        (0..self.ids.len() as u32).filter(move |id| deleted.next_if_eq(&id).is_none())
    }

    /// How two ids compare by their values alone.
    pub(super) fn order(&self, a: u32, b: u32) -> Ordering {
        match self.values.as_deref() {
            None => Ordering::Equal,
            Some(Values::Integers(values)) => values[a as usize].cmp(&values[b as usize]),
            Some(Values::Counts(values)) => values[b as usize].cmp(&values[a as usize]),
            Some(Values::Numbers(values)) => values[b as usize].cmp(&values[a as usize]),
            // Of numbers, the least is not below minus infinity.
            Some(Values::Floats(values)) => {
                let [a, b] = [a, b].map(|id| values[id as usize]).map(|value| value.max(f64::NEG_INFINITY));
                b.total_cmp(&a)
            }
            Some(Values::Lengths(values)) => values[a as usize].total_cmp(&values[b as usize]),
        }
    }
}

#[cfg(test)]
mod tests {
    use hoplake_storage::QueryContext;

    use super::*;

    #[test]
    fn the_top_is_the_head_of_all_in_order() {
        let hold = || QueryContext::new().hold(0).unwrap();
        let scattered: Vec<f64> = (0..1000u32).map(|id| f64::from(id.wrapping_mul(2_654_435_761) % 97)).collect();
        let computed = Computed {
            name: "rank".into(),
            has_groups: false,
            supersteps: None,
            collections: None,
            streamed: false,
            figures: Vec::new(),
            ids: Arc::new(DenseIds::new([(LabelId(0), 1000)])),
            deleted: Held::new(vec![3, 500], hold()),
            values: Some(Held::new(Values::Floats(scattered.clone()), hold())),
            others: Vec::new(),
        };
        let mut expected: Vec<u32> = (0..1000).filter(|id| ![3, 500].contains(id)).collect();
        expected.sort_by(|a, b| scattered[*b as usize].total_cmp(&scattered[*a as usize]));
        for most in [0, 1, 7, 498, 499, 500, 997, 998, 5000, usize::MAX] {
            let (top, more) = computed.leading(most);
            assert_eq!(top, expected[..most.min(998)], "{most}");
            let value = |at: usize| expected.get(at).map(|id| scattered[*id as usize]);
            assert_eq!(more, most > 0 && most < 998 && value(most - 1) == value(most), "{most}");
        }
    }
}
