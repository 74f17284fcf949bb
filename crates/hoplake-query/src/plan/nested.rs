//! The traversals within a step.

use super::{By, Case, Choice, End, Given, Merging, NewKey, NewProperty, Repeat, StepKind, Steps, TextStep, Until};

type Visit<'a> = &'a mut dyn FnMut(&mut Steps);

impl StepKind {
    /// Whether there can be traversals within.
    pub fn has_nested(&self) -> bool {
        !matches!(
            self,
            Self::Vertices(_)
                | Self::Find(_)
                | Self::Edges(_)
                | Self::FindEdges(_)
                | Self::Hop(..)
                | Self::HopWhere(_)
                | Self::Ends(_)
                | Self::Is(_)
                | Self::Range(..)
                | Self::Values(_)
                | Self::Token(_)
                | Self::Constant(_)
                | Self::Inject(_)
                | Self::Compute(_)
        )
    }

    /// Visits each traversal within, which may be replaced. Traversals within those are not visited.
    pub fn for_each_nested(&mut self, visit: Visit<'_>) {
        match self {
            Self::HasSteps(_, steps)
            | Self::Where(steps)
            | Self::Not(steps)
            | Self::Map(steps)
            | Self::FlatMap(steps)
            | Self::Local(steps)
            | Self::Optional(steps)
            | Self::SideEffect(steps) => visit(steps),
            Self::And(all) | Self::Or(all) | Self::Union(all) | Self::Coalesce(all) => all.iter_mut().for_each(visit),
            Self::SelectSteps(_, steps, by) => {
                visit(steps);
                by.iter_mut().for_each(|by| of_by(by, visit));
            }
            Self::Choose(choice, cases, _) => {
                match choice {
                    Choice::Productive(steps) => visit(steps),
                    Choice::By(by) => of_by(by, visit),
                    Choice::Test(_) => {}
                }
                for (case, steps) in cases {
                    if let Case::Steps(steps) = case {
                        visit(steps);
                    }
                    visit(steps);
                }
            }
            Self::Repeat(Repeat { body, until, emit, .. }) => {
                visit(body);
                for (until, _) in [until, emit].into_iter().flatten() {
                    if let Until::Steps(steps) = until {
                        visit(steps);
                    }
                }
            }
            Self::Text(_, TextStep::Concat(all)) => all.iter_mut().for_each(|given| of_given(given, visit)),
            Self::List(_, given) | Self::DateDiff(given) => of_given(given, visit),
            Self::AddVertex(label, properties) => {
                of_given(label, visit);
                properties.iter_mut().for_each(|property| of_property(property, visit));
            }
            Self::AddEdge(label, from, to, properties) => {
                of_given(label, visit);
                for end in [from, to] {
                    if let End::Steps(steps) = end {
                        visit(steps);
                    }
                }
                properties.iter_mut().for_each(|property| of_property(property, visit));
            }
            Self::Property(property) => of_property(property, visit),
            Self::MergeVertex(merging) | Self::MergeEdge(merging) => of_merging(merging, visit),
            Self::ShortestPaths(search) => {
                search.target.iter_mut().for_each(&mut *visit);
                visit(&mut search.edges);
                search.distance.iter_mut().for_each(|by| of_by(by, visit));
            }
            other => other.bys().into_iter().for_each(|by| of_by(by, visit)),
        }
    }

    /// What it computes of its own items, or of what was met under labels.
    fn bys(&mut self) -> Vec<&mut By> {
        match self {
            Self::Has(by, _)
            | Self::Sample(_, _, by)
            | Self::GroupCount(_, by)
            | Self::SackWith(_, by)
            | Self::Aggregate(_, _, by) => vec![by],
            Self::Group(_, key, value) => vec![key, value],
            Self::Order(_, sortings) => sortings.iter_mut().map(|(by, _)| by).collect(),
            Self::SimplePath(_, part) | Self::Path(part) => part.by.iter_mut().collect(),
            Self::WherePredicate(_, _, by)
            | Self::Dedup(_, _, by)
            | Self::ValueMap(_, _, by)
            | Self::Select(_, _, by, _)
            | Self::Project(_, by)
            | Self::Tree(_, by)
            | Self::Math(_, by)
            | Self::Text(_, TextStep::Format(_, by)) => by.iter_mut().collect(),
            _ => Vec::new(),
        }
    }
}

fn of_by(by: &mut By, visit: Visit<'_>) {
    if let By::Steps(steps) = by {
        visit(steps);
    }
}

fn of_given(given: &mut Given, visit: Visit<'_>) {
    if let Given::Steps(steps) = given {
        visit(steps);
    }
}

fn of_property(property: &mut NewProperty, visit: Visit<'_>) {
    if let NewKey::Steps(steps) = &mut property.key {
        visit(steps);
    }
    of_given(&mut property.value, visit);
}

fn of_merging(merging: &mut Merging, visit: Visit<'_>) {
    of_given(&mut merging.sought, visit);
    for map in [&mut merging.on_create, &mut merging.on_match].into_iter().flatten() {
        of_given(&mut map.map, visit);
    }
    for end in [&mut merging.out_vertex, &mut merging.in_vertex].into_iter().flatten() {
        of_given(end, visit);
    }
}
