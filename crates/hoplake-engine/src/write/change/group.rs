//! All edges of a label between two vertices, as a batch makes them from what they were.

use super::{EdgeKey, Properties, Value};

/// Which edges of a group a change is of.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) enum Which {
    /// All: there is one after it, or none.
    #[default]
    All,
    /// The one with a key.
    Key(EdgeKey),
    /// The one with a number.
    Number(u32),
    /// One more.
    Another,
}

impl Which {
    pub(crate) fn of_key(key: &Option<EdgeKey>) -> Self {
        key.clone().map_or(Self::All, Self::Key)
    }
}

/// One change of a group: of one of its edges, or of the entire group.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Edit {
    pub(crate) which: Which,
    /// The new properties of the edge; `None` deletes it.
    pub(crate) properties: Option<Properties>,
    /// Whether properties that are not named become null.
    pub(crate) replace: bool,
}

impl Edit {
    /// Changes a group.
    pub(crate) fn apply(self, group: &mut Vec<Properties>) {
        let Self { which, properties, replace } = self;
        let key = match which {
            Which::All => None,
            Which::Key(key) => Some(key),
            Which::Number(number) => return edit_at(group, number as usize, properties, replace),
            Which::Another => return group.extend(properties),
        };
        // The edge keeps its place in the group: its number among parallel edges is part of its id. All other edges with the key go, so
        // that a key is unique after the change even if it was not before.
        let mut before = None;
        let mut position = group.len();
        let mut at = 0;
        group.retain_mut(|edge| {
            let goes = key.as_ref().is_none_or(|key| key.is_of(edge));
            if goes && before.is_none() {
                position = at;
                before = Some(std::mem::take(edge));
            }
            at += usize::from(!goes);
            !goes
        });
        let Some(properties) = properties else { return };
        let mut edge = before.filter(|_| !replace).unwrap_or_default();
        edge.extend(properties);
        // The key is a property too, which `replace` must not lose.
        edge.extend(key.map(|key| (key.property, key.value)));
        group.insert(position.min(group.len()), edge);
    }
}

/// Changes or deletes the edge with a number. Without one, another change of the batch has deleted it.
fn edit_at(group: &mut Vec<Properties>, number: usize, properties: Option<Properties>, replace: bool) {
    match (group.get_mut(number), properties) {
        (Some(edge), Some(properties)) if replace => *edge = properties,
        (Some(edge), Some(properties)) => edge.extend(properties),
        (Some(_), None) => drop(group.remove(number)),
        (None, _) => {}
    }
}

impl EdgeKey {
    /// Whether an edge with these properties has this key.
    fn is_of(&self, edge: &Properties) -> bool {
        // The key may be an int64 of a property that has become float64 since.
        let same = |found: &Value| {
            *found == self.value
                || found.property_type().is_some_and(|kind| self.value.clone().conform(kind).as_ref() == Some(found))
        };
        edge.get(&self.property).is_some_and(same)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edge(id: i64, weight: Option<i64>) -> Properties {
        let weight = weight.map(|weight| ("weight", Value::Int64(weight)));
        [("id", Value::Int64(id))].into_iter().chain(weight).collect()
    }

    fn edit(id: Option<i64>, properties: Option<Properties>, replace: bool) -> Edit {
        let key = id.map(|id| EdgeKey { property: "id".into(), value: Value::Int64(id) });
        Edit { which: Which::of_key(&key), properties, replace }
    }

    fn applied(edits: impl IntoIterator<Item = Edit>) -> Vec<Properties> {
        let mut group = vec![edge(1, Some(10)), edge(2, Some(20)), edge(3, None)];
        edits.into_iter().for_each(|edit| edit.apply(&mut group));
        group
    }

    #[test]
    fn a_key_tells_parallel_edges_apart() {
        assert_eq!(applied([edit(Some(2), None, false)]), [edge(1, Some(10)), edge(3, None)]);
        assert_eq!(applied([edit(Some(7), None, false)]).len(), 3);
        let kept = applied([edit(Some(2), Some(Properties::new()), false), edit(Some(4), Some(edge(4, None)), true)]);
        assert_eq!(kept, [edge(1, Some(10)), edge(2, Some(20)), edge(3, None), edge(4, None)]);
        let replaced = applied([edit(Some(1), Some(Properties::new()), true)]);
        assert_eq!(replaced[0], edge(1, None));
    }

    #[test]
    fn without_a_key_there_is_one_edge_or_none() {
        assert_eq!(applied([edit(None, None, false)]), Vec::<Properties>::new());
        assert_eq!(applied([edit(None, Some(edge(9, None)), true)]), [edge(9, None)]);
        assert_eq!(applied([edit(None, Some(edge(9, None)), false)]), [edge(9, Some(10))]);
    }

    #[test]
    fn edges_are_changed_by_number_and_added() {
        let at = |number: Option<u32>, properties| Edit {
            which: number.map_or(Which::Another, Which::Number),
            properties,
            replace: false,
        };
        let weight = |weight| Some(Properties::from([("weight", Value::Int64(weight))]));
        assert_eq!(applied([at(Some(2), weight(30))])[2], edge(3, Some(30)));
        assert_eq!(applied([at(Some(0), None), at(Some(0), None)]), [edge(3, None)]);
        assert_eq!(applied([at(None, Some(edge(1, Some(10))))]).len(), 4);
        assert_eq!(applied([at(Some(9), None), at(Some(9), weight(1))]).len(), 3);
    }

    #[test]
    fn a_key_that_was_widened_is_still_that_key() {
        let mut group = vec![Properties::from([("id", Value::Float64(2.0))])];
        edit(Some(2), None, false).apply(&mut group);
        assert_eq!(group, Vec::<Properties>::new());
    }
}
