//! Operators that make values of elements and maps.

mod constant;
mod element_map;
mod project;
mod properties;
mod property_map;
mod select;
mod select_column;
mod select_steps;
mod token;
mod unfold;
mod value_map;

pub use self::{
    constant::Constant,
    element_map::ElementMap,
    project::Project,
    properties::{Properties, Values},
    property_map::PropertyMap,
    select::Select,
    select_column::SelectColumn,
    select_steps::SelectSteps,
    token::Token,
    unfold::Unfold,
    value_map::ValueMap,
};
use crate::{
    plan::{By, Name},
    run::{Element, properties::Wanted},
    value::{ALLOCATION_BYTES, Unread, UnreadProperty, Value, value_bytes},
};

/// What the names of a map take, as its keys.
fn names_bytes(names: &[Name]) -> usize {
    let entry = |name: &Name| size_of::<(Value, Value)>() + ALLOCATION_BYTES + name.len();
    size_of::<Value>() + ALLOCATION_BYTES + names.iter().map(entry).sum::<usize>()
}

fn entries_bytes(entries: &[(Value, Value)]) -> usize {
    entries.iter().map(|(key, value)| value_bytes(key) + value_bytes(value)).sum()
}

fn wanted(names: &[Name]) -> Wanted<'_> {
    if names.is_empty() { Wanted::All } else { Wanted::Named(names) }
}

fn nth(by: &[By], number: usize) -> &By {
    if by.is_empty() { &By::Identity } else { &by[number % by.len()] }
}

fn property(element: Element, key: &str, value: Value, number: u32) -> Value {
    let key = key.into();
    Value::Unread(Box::new(match element {
        Element::Vertex(element) => Unread::VertexProperty(UnreadProperty { element, key, value, number }),
        Element::Edge(element) => Unread::Property(UnreadProperty { element, key, value, number }),
    }))
}
