//! The traversals within the parameters of an operator.

use crate::{
    plan::{By, Case, Choice, End, Given, MergeMap, Merging, NewKey, NewProperty, PathPart, Steps, Until},
    tokens::Order,
};

/// A parameter that may have traversals within it.
pub trait Nested {
    /// These, in their order.
    fn nested<'a>(&'a self, found: &mut Vec<&'a Steps>);
    /// The same, to be replaced.
    fn nested_mut<'a>(&'a mut self, found: &mut Vec<&'a mut Steps>);
}

/// Within an `impl Operator`: the traversals of some of its fields, in this order.
macro_rules! nested {
    ($($field:ident),+ $(,)?) => {
        fn nested<'a>(&'a self, found: &mut Vec<&'a $crate::plan::Steps>) {
            $($crate::operators::Nested::nested(&self.$field, found);)+
        }

        fn nested_mut<'a>(&'a mut self, found: &mut Vec<&'a mut $crate::plan::Steps>) {
            $($crate::operators::Nested::nested_mut(&mut self.$field, found);)+
        }
    };
}
pub(crate) use nested;

/// Within an `impl Operator` with a traversal in its field `steps`, which begins at the rows that come: where it leads. `passes` if the rows
/// themselves go on, `gives` if the results of the traversal do.
macro_rules! of_steps {
    (passes) => {
        $crate::operators::nested!(steps);

        fn reach(
            &self,
            reach: &mut $crate::operators::Reach<'_>,
            input: $crate::operators::Elements,
        ) -> $crate::operators::Elements {
            reach.steps(&self.steps, input.clone());
            input
        }
    };
    (gives) => {
        $crate::operators::nested!(steps);

        fn reach(
            &self,
            reach: &mut $crate::operators::Reach<'_>,
            input: $crate::operators::Elements,
        ) -> $crate::operators::Elements {
            reach.steps(&self.steps, input).others()
        }
    };
}
pub(crate) use of_steps;

impl Nested for Steps {
    fn nested<'a>(&'a self, found: &mut Vec<&'a Steps>) {
        found.push(self);
    }

    fn nested_mut<'a>(&'a mut self, found: &mut Vec<&'a mut Steps>) {
        found.push(self);
    }
}

impl<T: Nested> Nested for Vec<T> {
    fn nested<'a>(&'a self, found: &mut Vec<&'a Steps>) {
        self.iter().for_each(|one| one.nested(found));
    }

    fn nested_mut<'a>(&'a mut self, found: &mut Vec<&'a mut Steps>) {
        self.iter_mut().for_each(|one| one.nested_mut(found));
    }
}

impl<T: Nested> Nested for Option<T> {
    fn nested<'a>(&'a self, found: &mut Vec<&'a Steps>) {
        self.iter().for_each(|one| one.nested(found));
    }

    fn nested_mut<'a>(&'a mut self, found: &mut Vec<&'a mut Steps>) {
        self.iter_mut().for_each(|one| one.nested_mut(found));
    }
}

impl<A: Nested, B: Nested> Nested for (A, B) {
    fn nested<'a>(&'a self, found: &mut Vec<&'a Steps>) {
        self.0.nested(found);
        self.1.nested(found);
    }

    fn nested_mut<'a>(&'a mut self, found: &mut Vec<&'a mut Steps>) {
        self.0.nested_mut(found);
        self.1.nested_mut(found);
    }
}

/// Of an enumeration: some variants have parts with traversals in them, all others have none.
macro_rules! nested_variants {
    ($($kind:ident { $($variant:ident),+ })+) => {
        $(impl Nested for $kind {
            fn nested<'a>(&'a self, found: &mut Vec<&'a Steps>) {
                match self {
                    $(Self::$variant(part) => part.nested(found),)+
                    _ => {}
                }
            }

            fn nested_mut<'a>(&'a mut self, found: &mut Vec<&'a mut Steps>) {
                match self {
                    $(Self::$variant(part) => part.nested_mut(found),)+
                    _ => {}
                }
            }
        })+
    };
}

nested_variants! {
    By { Steps }
    Given { Steps }
    NewKey { Steps }
    End { Steps }
    Case { Steps }
    Choice { Productive, By }
    Until { Steps }
}

/// Of a structure: some fields have traversals in them.
macro_rules! nested_fields {
    ($($kind:ident { $($field:ident),+ })+) => {
        $(impl Nested for $kind {
            fn nested<'a>(&'a self, found: &mut Vec<&'a Steps>) {
                $(self.$field.nested(found);)+
            }

            fn nested_mut<'a>(&'a mut self, found: &mut Vec<&'a mut Steps>) {
                $(self.$field.nested_mut(found);)+
            }
        })+
    };
}

nested_fields! {
    NewProperty { key, value }
    MergeMap { map }
    Merging { sought, on_create, on_match, out_vertex, in_vertex }
    PathPart { by }
}

impl Nested for Order {
    fn nested<'a>(&'a self, _: &mut Vec<&'a Steps>) {}

    fn nested_mut<'a>(&'a mut self, _: &mut Vec<&'a mut Steps>) {}
}
