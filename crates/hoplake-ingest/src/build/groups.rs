//! Which tables are read together: those that share inputs.

use std::collections::BTreeSet;

use crate::{Dataset, Feed, Phase};

/// Tables and all inputs that feed them in one phase.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Group {
    /// Positions in the data set's vertex or edge tables, ascending.
    pub(crate) tables: Vec<usize>,
    /// Positions in the data set's inputs, ascending.
    pub(crate) inputs: Vec<usize>,
}

/// The tables of a phase by shared inputs: every table is in one group, and every input in at most one.
pub(crate) fn groups(dataset: &Dataset, phase: Phase) -> Vec<Group> {
    let count = match phase {
        Phase::Vertices => dataset.vertex_tables.len(),
        Phase::Edges => dataset.edge_tables.len(),
    };
    let feeds = |input: &dyn crate::Input| -> BTreeSet<usize> {
        let table = |feed: &Feed| match (phase, *feed) {
            (Phase::Vertices, Feed::Vertices { table } | Feed::ListValues { table, .. }) => Some(table),
            (Phase::Edges, Feed::Edges { table }) => Some(table),
            _ => None,
        };
        input.feeds().iter().filter_map(table).collect()
    };
    let mut groups: Vec<(BTreeSet<usize>, Vec<usize>)> =
        (0..count).map(|table| (BTreeSet::from([table]), Vec::new())).collect();
    for (number, input) in dataset.inputs.iter().enumerate() {
        let tables = feeds(input.as_ref());
        let (mut joined, others): (Vec<_>, Vec<_>) =
            groups.into_iter().partition(|(group, _)| !group.is_disjoint(&tables));
        groups = others;
        if let Some((mut group, mut inputs)) = joined.pop() {
            for (more, more_inputs) in joined {
                group.extend(more);
                inputs.extend(more_inputs);
            }
            inputs.push(number);
            groups.push((group, inputs));
        }
    }
    let mut groups: Vec<_> = groups
        .into_iter()
        .map(|(tables, mut inputs)| {
            inputs.sort_unstable();
            Group { tables: tables.into_iter().collect(), inputs }
        })
        .collect();
    groups.sort_unstable_by_key(|group| group.tables.first().copied());
    groups
}
