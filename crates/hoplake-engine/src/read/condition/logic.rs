//! Formulas over tests, and the three-valued logic that evaluates them (Kleene's, as SQL's).
//!
//! | | `and` | `or` | `not` |
//! | --- | --- | --- | --- |
//! | unknown with true | unknown | true | |
//! | unknown with false | false | unknown | |
//! | unknown | unknown | unknown | unknown |
//!
//! A [`Formula`] does not know what its tests are: those of a [`Condition`](super::Condition) have verdicts on whole columns, those of a
//! feed's condition on one row.

use std::fmt::{self, Display, Formatter};

/// A verdict that can be joined with others.
pub trait ThreeValued: Sized {
    /// Whether both hold.
    #[must_use]
    fn and(self, other: Self) -> Self;
    /// Whether at least one holds.
    #[must_use]
    fn or(self, other: Self) -> Self;
    /// Whether it does not hold. Unknown stays unknown.
    #[must_use]
    fn negated(self) -> Self;
}

/// The verdict on one row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Truth {
    /// It holds.
    True,
    /// It does not hold.
    False,
    /// A value is absent, so it neither holds nor fails to.
    Unknown,
    /// It may be any of the others: what decides on it was not given.
    Undecided,
}

impl From<bool> for Truth {
    fn from(holds: bool) -> Self {
        if holds { Self::True } else { Self::False }
    }
}

impl ThreeValued for Truth {
    fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::False, _) | (_, Self::False) => Self::False,
            // Undecided prevails, because it may turn out to be false.
            (Self::Undecided, _) | (_, Self::Undecided) => Self::Undecided,
            (Self::Unknown, _) | (_, Self::Unknown) => Self::Unknown,
            (Self::True, Self::True) => Self::True,
        }
    }

    fn or(self, other: Self) -> Self {
        self.negated().and(other.negated()).negated()
    }

    fn negated(self) -> Self {
        match self {
            Self::True => Self::False,
            Self::False => Self::True,
            Self::Unknown | Self::Undecided => self,
        }
    }
}

/// How a test is shown within a formula.
pub trait ShownTest: Display {
    /// That it does not hold.
    ///
    /// # Errors
    /// As [`Display`].
    fn fmt_negated(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "not ({self})")
    }
}

/// Tests joined by `and`, `or` and `not`. It has at least one test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Formula<T>(pub(super) Node<T>);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Node<T> {
    /// Two or more; none of them is an `All`.
    All(Vec<Node<T>>),
    /// Two or more; none of them is an `Any`.
    Any(Vec<Node<T>>),
    Not(Box<Node<T>>),
    Test(T),
}

impl<T> Formula<T> {
    /// A single test.
    pub fn test(test: T) -> Self {
        Self(Node::Test(test))
    }

    /// All of some; `None` without any.
    pub fn all(parts: impl IntoIterator<Item = Self>) -> Option<Self> {
        let parts: Vec<_> = parts.into_iter().map(|part| part.0).collect();
        (!parts.is_empty()).then(|| Self(Node::all(parts)))
    }

    /// At least one of some; `None` without any.
    pub fn any(parts: impl IntoIterator<Item = Self>) -> Option<Self> {
        let parts: Vec<_> = parts.into_iter().map(|part| part.0).collect();
        (!parts.is_empty()).then(|| Self(Node::any(parts)))
    }

    /// Both.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self(Node::all(vec![self.0, other.0]))
    }

    /// Either or both.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self(Node::any(vec![self.0, other.0]))
    }

    /// What this one is false for; not what it is unknown for.
    #[must_use]
    pub fn negated(self) -> Self {
        Self(Node::Not(Box::new(self.0)))
    }

    /// Its only test, if it is one and is not negated.
    pub fn as_test(&self) -> Option<&T> {
        if let Node::Test(test) = &self.0 { Some(test) } else { None }
    }

    /// Whether something in it is negated.
    pub fn has_negation(&self) -> bool {
        self.0.has_negation()
    }

    /// Its tests, from the first to the last.
    pub fn tests(&self) -> Vec<&T> {
        let mut tests = Vec::new();
        self.0.collect(&mut tests);
        tests
    }

    /// Its verdict, from those of its tests. Every test is evaluated, in the order of [`Self::tests`], so that an error does not depend on
    /// the verdicts before it.
    ///
    /// # Errors
    /// The first error of a test.
    pub fn evaluate<V: ThreeValued, E>(&self, mut of_test: impl FnMut(&T) -> Result<V, E>) -> Result<V, E> {
        self.0.evaluate(&mut of_test)
    }
}

impl<T> Node<T> {
    /// All of at least one; nested ones become one.
    pub(super) fn all(parts: Vec<Self>) -> Self {
        let flat = parts.into_iter().flat_map(|part| match part {
            Self::All(inner) => inner,
            other => vec![other],
        });
        let mut flat: Vec<_> = flat.collect();
        if flat.len() == 1 { flat.swap_remove(0) } else { Self::All(flat) }
    }

    /// Any of at least one.
    pub(super) fn any(parts: Vec<Self>) -> Self {
        let flat = parts.into_iter().flat_map(|part| match part {
            Self::Any(inner) => inner,
            other => vec![other],
        });
        let mut flat: Vec<_> = flat.collect();
        if flat.len() == 1 { flat.swap_remove(0) } else { Self::Any(flat) }
    }

    fn has_negation(&self) -> bool {
        match self {
            Self::All(parts) | Self::Any(parts) => parts.iter().any(Self::has_negation),
            Self::Not(_) => true,
            Self::Test(_) => false,
        }
    }

    fn collect<'a>(&'a self, tests: &mut Vec<&'a T>) {
        match self {
            Self::All(parts) | Self::Any(parts) => parts.iter().for_each(|part| part.collect(tests)),
            Self::Not(inner) => inner.collect(tests),
            Self::Test(test) => tests.push(test),
        }
    }

    fn evaluate<V: ThreeValued, E>(&self, of_test: &mut impl FnMut(&T) -> Result<V, E>) -> Result<V, E> {
        let mut fold = |parts: &[Self], join: fn(V, V) -> V| {
            let (first, others) = parts.split_first().expect("a formula has at least two parts where it joins some");
            let first = first.evaluate(of_test)?;
            others.iter().try_fold(first, |joined, part| Ok(join(joined, part.evaluate(of_test)?)))
        };
        match self {
            Self::All(parts) => fold(parts, V::and),
            Self::Any(parts) => fold(parts, V::or),
            Self::Not(inner) => Ok(inner.evaluate(of_test)?.negated()),
            Self::Test(test) => of_test(test),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Truth; 4] = [Truth::True, Truth::False, Truth::Unknown, Truth::Undecided];

    #[test]
    fn undecided_stands_for_every_outcome() {
        let known = [Truth::True, Truth::False, Truth::Unknown];
        let outcomes = |of: Truth| if of == Truth::Undecided { known.to_vec() } else { vec![of] };
        for a in ALL {
            for b in ALL {
                for join in [Truth::and, Truth::or] {
                    let joined = join(a, b);
                    let possible =
                        outcomes(a).into_iter().flat_map(|a| outcomes(b).into_iter().map(move |b| join(a, b)));
                    let possible: Vec<_> = possible.collect();
                    let is_decided = possible.iter().all(|it| *it == possible[0]);
                    assert_eq!(joined, if is_decided { possible[0] } else { Truth::Undecided }, "{a:?} and {b:?}");
                }
            }
        }
    }

    #[test]
    fn a_formula_evaluates_every_test_in_order() {
        let test = |number| Formula::test(number);
        let formula = test(1).or(test(2).and(test(3).negated())).and(test(4));
        let mut seen = Vec::new();
        let verdict = formula.evaluate(|number| {
            seen.push(*number);
            Ok::<_, ()>(Truth::from(*number != 1))
        });
        assert_eq!(verdict, Ok(Truth::False));
        assert_eq!(seen, [1, 2, 3, 4]);
        assert_eq!(formula.tests(), [&1, &2, &3, &4]);
        let failing = formula.evaluate(|number| if *number > 2 { Err(*number) } else { Ok(Truth::True) });
        assert_eq!(failing, Err(3));
        assert_eq!(Formula::all(Vec::<Formula<u8>>::new()), None);
        assert!(formula.has_negation() && !test(1).or(test(2).and(test(3))).has_negation());
        assert_eq!(
            (test(1).as_test(), test(1).negated().as_test(), test(1).or(test(2)).as_test()),
            (Some(&1), None, None)
        );
    }
}
