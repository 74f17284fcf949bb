//! Steps on numbers, texts, dates, lists, maps and paths.

use super::{At, Generator, TraverserKind, predicates::TYPED};
use crate::gremlin::{
    tree::{Argument, bare, step},
    world::{TEXTS, Type, literal},
};

/// Steps that make one number of several.
const REDUCTIONS: [&str; 4] = ["sum", "min", "max", "mean"];

/// Steps that make a text of a text.
const TEXT_STEPS: [&str; 6] = ["toUpper", "toLower", "trim", "lTrim", "rTrim", "reverse"];

/// Operators of formulas: those that others could be confused with are drawn more often.
const OPERATORS: [&str; 9] = ["+", "-", "*", "/", "%", "^", "^", "%", "-"];

/// Functions of formulas.
const FUNCTIONS: [&str; 7] = ["abs", "floor", "ceil", "signum", "sqrt", "sin", "cbrt"];

/// What no formula is.
pub const MALFORMED: [&str; 9] = ["_ +", "2 3", "_ _", "1e", "1.2.3", "(_ + 1", "sin -_", "pow(_, 2)", "_ & 1"];

impl Generator<'_> {
    pub(super) fn number(&mut self, at: &mut At) {
        match self.random.below(10) {
            0 | 1 => self.test_value(at, &TraverserKind::Number),
            2 => {
                let name = self.pick(&REDUCTIONS);
                self.reduce(at, bare(name), TraverserKind::Number);
            }
            3 | 4 => self.math(at),
            5 => {
                at.push(bare("asString")).becomes(TraverserKind::Text);
            }
            6 => {
                let of = self.pick(&["INT", "LONG", "DOUBLE", "BYTE", "SHORT", "FLOAT", "BIGINT", "BIGDECIMAL"]);
                at.push(step("asNumber", [format!("GType.{of}")]));
            }
            7 => {
                at.push(bare("asBool")).becomes(TraverserKind::Boolean);
            }
            _ => self.general(at),
        }
    }

    /// Numbers of few types, and what a reduction makes of them: its type is that of the sum, not of the numbers.
    pub(super) fn reduced_numbers(&mut self) -> At {
        let types = [self.pick(&TYPED), self.pick(&TYPED)];
        let has_one_type = self.one_in(2);
        let mut values = Vec::new();
        for _ in 0..1 + self.random.below(4) {
            let of = if has_one_type { types[0] } else { self.pick(&types) };
            values.push(self.pick(of).to_owned());
        }
        let mut at = At::new(TraverserKind::Number);
        let name = self.pick(&REDUCTIONS);
        if self.one_in(3) {
            at.push(step("inject", [format!("[{}]", values.join(", "))])).push(step(name, ["Scope.local"]));
            return at;
        }
        at.push(step("inject", values));
        match self.random.below(6) {
            0 => at.push(bare("barrier")),
            1 => at.push(step("union", [vec![bare("identity")], vec![bare("identity")]])),
            _ => &mut at,
        };
        self.reduce(&mut at, bare(name), TraverserKind::Number);
        at
    }

    fn math(&mut self, at: &mut At) {
        let of = at.kind.clone();
        let formula = match self.random.below(12) {
            0 => self.pick(&MALFORMED).to_owned(),
            1 => format!("{} + none", self.formula()),
            2 | 3 if self.depth == 0 && !at.is_tangled && !self.scope.is_empty() => {
                let (label, kind) = self.pick(&self.scope.clone());
                let operator = self.pick(&OPERATORS);
                at.push(step("math", [format!("'{label} {operator} {}'", self.formula())]))
                    .becomes(TraverserKind::Number);
                if kind != TraverserKind::Number || self.one_in(2) {
                    // In the order of the variables: the label's, and that of `_`.
                    let by = self.by(&kind);
                    at.push(by);
                    if of != TraverserKind::Number || self.one_in(2) {
                        at.push(step("by", [vec![step("constant", ["2"])]]));
                    }
                }
                return;
            }
            _ => self.formula(),
        };
        at.push(step("math", [format!("'{formula}'")])).becomes(TraverserKind::Number);
    }

    /// A formula: mostly operators in a row, where what binds tighter and from which side it is computed make a difference.
    fn formula(&mut self) -> String {
        let mut formula = self.operand(2);
        for _ in 0..self.random.below(4) {
            let operator = self.pick(&OPERATORS);
            let space = self.pick(&[" ", ""]);
            // Numbers stay small: what a remainder or a difference leaves of large ones is rounding.
            let right = match operator {
                "^" => self.pick(&["2", "3", "0", "-1", "-_ ^ 0", "0.5", "(1 / 2)"]).to_owned(),
                _ => self.operand(2),
            };
            formula += &format!("{space}{operator}{space}{right}");
        }
        formula
    }

    fn operand(&mut self, depth: u8) -> String {
        match self.random.below(14) {
            0..=4 => "_".to_owned(),
            5 => format!("-{}", self.operand(depth)),
            6 => format!("+{}", self.operand(depth)),
            7 if depth > 0 => {
                let operator = self.pick(&OPERATORS);
                format!("({} {operator} {})", self.operand(depth - 1), self.operand(depth - 1))
            }
            8 if depth > 0 => {
                let function = self.pick(&FUNCTIONS);
                format!("{function}({})", self.operand(depth - 1))
            }
            // Without brackets it takes all up to the end.
            9 if depth > 0 => format!("{} {}", self.pick(&FUNCTIONS), self.pick(&["_", "2", "(_ - 1)"])),
            _ => self.pick(&["0", "1", "2", "3", "0.5", "4", ".25", "2.", "1e3", "5E-1", "1e+1", "π"]).to_owned(),
        }
    }

    fn test_value(&mut self, at: &mut At, kind: &TraverserKind) {
        let test = self.test(kind);
        at.push(step("is", [test]));
    }

    pub(super) fn text(&mut self, at: &mut At) {
        let word = self.pick(&TEXTS);
        match self.random.below(13) {
            0 | 1 => self.test_value(at, &TraverserKind::Text),
            2 | 3 => {
                at.push(bare(self.pick(&TEXT_STEPS)));
            }
            4 => {
                at.push(bare("length")).becomes(TraverserKind::Number);
            }
            5 => {
                let begin = self.random.below(6) as i64 - 3;
                let end = self.random.below(7) as i64 - 2;
                at.push(match self.one_in(2) {
                    true => step("substring", [begin.to_string()]),
                    false => step("substring", [begin.to_string(), end.to_string()]),
                });
            }
            6 => {
                let by = self.pick(&["' '", "''", "'n'", "null", "'😀'", "'\\u00A0'", "'\\u001F'"]);
                at.push(step("split", [by])).becomes(TraverserKind::List(true, Box::new(TraverserKind::Text)));
            }
            7 => {
                let of = self.pick(&["'n'", "'n'", "''", "'😀'", "'\\u00A0'", "' '", "null"]);
                let by = self.pick(&["'x'", "''", "'nn'", "'😀'", "'$1'"]);
                at.push(step("replace", [of, by]));
            }
            8 => {
                at.push(step("concat", [format!("'{word}'"), "'+'".to_owned()]));
            }
            9 => {
                let (mut child, _) = self.scalar(&TraverserKind::Text);
                child.push(bare("asString"));
                at.push(step("concat", [child]));
            }
            10 => {
                at.push(bare("asNumber")).becomes(TraverserKind::Number);
            }
            11 => {
                at.push(bare("asBool")).becomes(TraverserKind::Boolean);
            }
            _ => self.general(at),
        }
    }

    pub(super) fn date(&mut self, at: &mut At) {
        match self.random.below(6) {
            0 | 1 => self.test_value(at, &TraverserKind::Date),
            2 => {
                let unit = self.pick(&["DT.day", "DT.hour", "DT.minute", "DT.second"]);
                let count = match self.one_in(4) {
                    true => self.pick(&[-1_000_000, -86_400, 90, 31_622_400]),
                    false => self.random.below(9) as i64 - 4,
                };
                at.push(step("dateAdd", [unit.to_owned(), count.to_string()]));
            }
            3 => {
                let other = literal(Type::Date, &mut self.random);
                at.push(step("dateDiff", [other])).becomes(TraverserKind::Number);
            }
            4 => {
                let (name, kind) = self.pick(&[("asString", TraverserKind::Text), ("asNumber", TraverserKind::Number)]);
                at.push(bare(name)).becomes(kind);
            }
            _ => self.general(at),
        }
    }

    pub(super) fn mixed(&mut self, at: &mut At) {
        match self.random.below(4) {
            0 | 1 => self.test_value(at, &TraverserKind::Mixed),
            2 => {
                at.push(bare("asString")).becomes(TraverserKind::Mixed);
            }
            _ => self.general(at),
        }
    }

    pub(super) fn list(&mut self, at: &mut At, is_ordered: bool, items: TraverserKind) {
        let values = (0..self.random.below(3)).map(|_| self.literal(&items)).collect::<Vec<_>>().join(", ");
        let constant = format!("[{values}]");
        let same = TraverserKind::List(is_ordered, Box::new(items.clone()));
        match self.random.below(17) {
            0..=2 => {
                at.push(bare("unfold")).becomes(items);
                at.is_ordered &= is_ordered;
                at.is_tangled = true;
            }
            3 => {
                at.push(step("count", ["Scope.local"])).becomes(TraverserKind::Number);
            }
            4 => {
                let name = self.pick(&REDUCTIONS);
                at.push(step(name, ["Scope.local"])).becomes(TraverserKind::Number);
            }
            5 => {
                at.push(step("dedup", ["Scope.local"]));
            }
            6 if !matches!(
                items,
                TraverserKind::Vertex
                    | TraverserKind::Edge
                    | TraverserKind::Property
                    | TraverserKind::Path
                    | TraverserKind::Map(..)
            ) =>
            {
                at.push(step("order", ["Scope.local"])).becomes(TraverserKind::List(true, Box::new(items)));
            }
            7 if is_ordered => {
                let count = self.random.below(4);
                at.push(match self.random.below(4) {
                    0 => step("limit", ["Scope.local".to_owned(), count.to_string()]),
                    1 => step("tail", ["Scope.local".to_owned(), count.to_string()]),
                    2 => step("skip", ["Scope.local".to_owned(), count.to_string()]),
                    _ => step("range", ["Scope.local".to_owned(), count.to_string(), (count + 2).to_string()]),
                });
                at.becomes(TraverserKind::Mixed);
            }
            8 if is_ordered => {
                at.push(bare("reverse"));
            }
            9 if is_ordered => {
                at.push(step("conjoin", ["'-'"])).becomes(TraverserKind::Text);
            }
            10 => {
                at.push(step(self.pick(&["combine", "merge", "difference", "disjunct", "intersect"]), [constant]));
                self.lists_are_ordered &= is_ordered;
                // Sets of the step have any order.
                at.becomes(TraverserKind::List(false, Box::new(items)));
                self.lists_are_ordered = false;
            }
            11 => {
                at.push(step("product", [constant]))
                    .becomes(TraverserKind::List(is_ordered, Box::new(TraverserKind::Mixed)));
            }
            12 => {
                let predicate = self.predicate(&items);
                at.push(step(self.pick(&["all", "any", "none"]), [predicate]));
            }
            13 => {
                let by = self.child(&same).0;
                at.push(step("local", [by])).becomes(TraverserKind::Mixed);
                at.is_ordered = false;
            }
            14 if is_ordered => {
                at.push(bare("index")).becomes(TraverserKind::Mixed);
            }
            15 if items == TraverserKind::Text => {
                let is_length = self.one_in(3);
                // All but `reverse`, which takes no scope.
                let name = if is_length { "length" } else { self.pick(&TEXT_STEPS[..5]) };
                at.push(step(name, ["Scope.local"]));
                at.becomes(TraverserKind::List(
                    is_ordered,
                    Box::new(if is_length { TraverserKind::Number } else { TraverserKind::Text }),
                ));
            }
            _ => self.general(at),
        }
    }

    pub(super) fn map(&mut self, at: &mut At, has_names: bool, values: TraverserKind) {
        match self.random.below(8) {
            0 => {
                at.push(step("select", ["Column.values"])).becomes(TraverserKind::List(false, Box::new(values)));
                self.lists_are_ordered = false;
            }
            1 => {
                at.push(step("select", ["Column.keys"]))
                    .becomes(TraverserKind::List(false, Box::new(TraverserKind::Mixed)));
                self.lists_are_ordered = false;
            }
            2 => {
                at.push(bare("unfold")).becomes(TraverserKind::Mixed);
                at.is_ordered = false;
            }
            3 => {
                at.push(step("count", ["Scope.local"])).becomes(TraverserKind::Number);
            }
            4 => {
                at.push(step("order", ["Scope.local"]));
                if values == TraverserKind::Number && self.one_in(2) {
                    at.push(step("by", [Argument::from("Column.values"), "desc".into()]));
                }
                at.push(step("by", ["Column.keys"]));
                at.has_ordered_maps = true;
            }
            5 if has_names => {
                let key = self.key(&TraverserKind::Vertex);
                at.push(step("select", [format!("'{key}'")])).becomes(TraverserKind::Mixed);
                at.is_tangled = true;
            }
            6 => {
                at.push(bare("unfold"));
                at.push(step("select", [self.pick(&["Column.keys", "Column.values"])])).becomes(TraverserKind::Mixed);
                at.is_ordered = false;
            }
            _ => self.general(at),
        }
    }

    pub(super) fn path(&mut self, at: &mut At) {
        match self.random.below(4) {
            0 => {
                at.push(step("count", ["Scope.local"])).becomes(TraverserKind::Number);
            }
            1 => {
                at.push(bare("unfold")).becomes(TraverserKind::Mixed);
                at.is_tangled = true;
            }
            2 => {
                at.push(step("limit", ["Scope.local", "1"])).becomes(TraverserKind::Mixed);
            }
            _ => self.general(at),
        }
    }
}
