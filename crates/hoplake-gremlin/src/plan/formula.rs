//! Formulas of `math`: `sin(_) + a * 2`.

use exmex::{BinOp, Express, FlatEx, MakeOperators, Operator};

use super::Name;
use crate::error::GremlinError;

/// Characters of a formula, at most.
const LENGTH_MAX: usize = 2_000;

/// Brackets within brackets, at most.
const DEPTH_MAX: usize = 50;

/// The operators of exmex, and the remainder.
#[derive(Debug, Clone)]
struct Operators;

impl MakeOperators<f64> for Operators {
    fn make<'a>() -> Vec<Operator<'a, f64>> {
        let mut all = exmex::FloatOpsFactory::<f64>::make();
        all.push(Operator::make_bin("%", BinOp { apply: |left, right| left % right, prio: 3, is_commutative: false }));
        all
    }
}

/// A formula with variables.
#[derive(Debug, Clone)]
pub struct Formula {
    text: Box<str>,
    expression: FlatEx<f64, Operators>,
    /// In the order in which they first stand in it.
    variables: Vec<Name>,
    /// For each variable of the expression, which of these it is.
    order: Vec<usize>,
}

impl PartialEq for Formula {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Formula {
    /// Reads a formula.
    ///
    /// # Errors
    /// [`GremlinError::Invalid`].
    pub(super) fn parse(text: &str) -> Result<Self, GremlinError> {
        let wrong = |why: &str| GremlinError::invalid(format!("`math` cannot compute {text:?}: {why}"));
        if text.len() > LENGTH_MAX {
            return Err(GremlinError::invalid(format!("a formula of `math` has at most {LENGTH_MAX} bytes")));
        }
        let mut depth = 0_usize;
        for character in text.chars() {
            match character {
                '(' => depth += 1,
                ')' => depth = depth.saturating_sub(1),
                _ => {}
            }
            if depth > DEPTH_MAX {
                return Err(GremlinError::invalid(format!("a formula of `math` has at most {DEPTH_MAX} levels")));
            }
        }
        let expression = FlatEx::<f64, Operators>::parse(text).map_err(|error| wrong(&error.to_string()))?;
        let mut variables: Vec<Name> = expression.var_names().iter().map(|name| name.as_str().into()).collect();
        let first = |name: &Name| word_position(text, name);
        variables.sort_by_key(first);
        let order = expression.var_names().iter().map(|name| variables.iter().position(|other| **other == **name));
        let order = order.map(Option::unwrap_or_default).collect();
        Ok(Self { text: text.into(), expression, variables, order })
    }

    /// Its variables, in the order in which they first stand in it.
    pub fn variables(&self) -> &[Name] {
        &self.variables
    }

    /// Its value, for values of the variables.
    ///
    /// # Errors
    /// [`GremlinError::Type`].
    pub fn value(&self, values: &[f64]) -> Result<f64, GremlinError> {
        let ordered: Vec<f64> =
            self.order.iter().map(|place| values.get(*place).copied().unwrap_or(f64::NAN)).collect();
        self.expression.eval(&ordered).map_err(|error| GremlinError::wrong_type(format!("`math` failed: {error}")))
    }
}

/// Where a word first stands in a text.
fn word_position(text: &str, word: &str) -> usize {
    let is_word = |character: char| character.is_alphanumeric() || character == '_';
    let found = text
        .match_indices(word)
        .map(|(at, _)| at)
        .find(|at| !text[..*at].ends_with(is_word) && !text[at + word.len()..].starts_with(is_word));
    found.unwrap_or(text.len())
}
