//! Steps on numbers, texts, dates, lists, maps and paths.

use super::{At, Generator, Kind};
use crate::gremlin::{
    tree::{Argument, bare, step},
    world::TEXTS,
};

impl Generator<'_> {
    pub(super) fn number(&mut self, at: &mut At) {
        match self.random.below(10) {
            0 | 1 => self.test_value(at, &Kind::Number),
            2 => {
                let name = self.pick(&["sum", "min", "max", "mean"]);
                self.reduce(at, bare(name), Kind::Number);
            }
            3 | 4 => {
                let formula = self.pick(&[
                    "_ + 1",
                    "_ * 2",
                    "_ - 0.5",
                    "_ / 4",
                    "-_",
                    "abs(_)",
                    "_ ^ 2",
                    "(_ + 1) * (_ - 1)",
                    "floor(_)",
                ]);
                at.push(step("math", [format!("'{formula}'")])).becomes(Kind::Number);
            }
            5 => {
                at.push(bare("asString")).becomes(Kind::Text);
            }
            6 => {
                let of =
                    self.pick(&["GType.INT", "GType.LONG", "GType.DOUBLE", "GType.BYTE", "GType.SHORT", "GType.FLOAT"]);
                at.push(step("asNumber", [of]));
            }
            7 => {
                at.push(bare("asBool")).becomes(Kind::Boolean);
            }
            _ => self.general(at),
        }
    }

    fn test_value(&mut self, at: &mut At, kind: &Kind) {
        let test = self.test(kind);
        at.push(step("is", [test]));
    }

    pub(super) fn text(&mut self, at: &mut At) {
        let word = self.pick(&TEXTS);
        match self.random.below(13) {
            0 | 1 => self.test_value(at, &Kind::Text),
            2 | 3 => {
                at.push(bare(self.pick(&["toUpper", "toLower", "trim", "lTrim", "rTrim", "reverse"])));
            }
            4 => {
                at.push(bare("length")).becomes(Kind::Number);
            }
            5 => {
                let begin = self.random.below(5) as i64 - 2;
                let end = self.random.below(6) as i64 - 2;
                at.push(match self.one_in(2) {
                    true => step("substring", [begin.to_string()]),
                    false => step("substring", [begin.to_string(), end.to_string()]),
                });
            }
            6 => {
                let by = self.pick(&["' '", "''", "'n'", "null"]);
                at.push(step("split", [by])).becomes(Kind::List(true, Box::new(Kind::Text)));
            }
            7 => {
                let by = self.pick(&["'x'", "''", "'nn'"]);
                at.push(step("replace", ["'n'", by]));
            }
            8 => {
                at.push(step("concat", [format!("'{word}'"), "'+'".to_owned()]));
            }
            9 => {
                let (mut child, _) = self.scalar(&Kind::Text);
                child.push(bare("asString"));
                at.push(step("concat", [child]));
            }
            10 => {
                at.push(bare("asNumber")).becomes(Kind::Number);
            }
            11 => {
                at.push(bare("asBool")).becomes(Kind::Boolean);
            }
            _ => self.general(at),
        }
    }

    pub(super) fn date(&mut self, at: &mut At) {
        match self.random.below(5) {
            0 | 1 => self.test_value(at, &Kind::Date),
            2 => {
                let unit = self.pick(&["DT.day", "DT.hour", "DT.minute", "DT.second"]);
                let count = self.random.below(9) as i64 - 4;
                at.push(step("dateAdd", [unit.to_owned(), count.to_string()]));
            }
            3 => {
                at.push(step("dateDiff", ["datetime('2020-01-02T00:00:00Z')"])).becomes(Kind::Number);
            }
            _ => self.general(at),
        }
    }

    pub(super) fn mixed(&mut self, at: &mut At) {
        match self.random.below(4) {
            0 | 1 => self.test_value(at, &Kind::Mixed),
            2 => {
                at.push(bare("asString")).becomes(Kind::Mixed);
            }
            _ => self.general(at),
        }
    }

    pub(super) fn list(&mut self, at: &mut At, is_ordered: bool, items: Kind) {
        let values = (0..self.random.below(3)).map(|_| self.literal(&items)).collect::<Vec<_>>().join(", ");
        let constant = format!("[{values}]");
        let same = Kind::List(is_ordered, Box::new(items.clone()));
        match self.random.below(16) {
            0..=2 => {
                at.push(bare("unfold")).becomes(items);
                at.is_ordered &= is_ordered;
                at.is_tangled = true;
            }
            3 => {
                at.push(step("count", ["Scope.local"])).becomes(Kind::Number);
            }
            4 => {
                let name = self.pick(&["sum", "min", "max", "mean"]);
                at.push(step(name, ["Scope.local"])).becomes(Kind::Number);
            }
            5 => {
                at.push(step("dedup", ["Scope.local"]));
            }
            6 if !matches!(items, Kind::Vertex | Kind::Edge | Kind::Property | Kind::Path | Kind::Map(..)) => {
                at.push(step("order", ["Scope.local"])).becomes(Kind::List(true, Box::new(items)));
            }
            7 if is_ordered => {
                let count = self.random.below(4);
                at.push(match self.random.below(4) {
                    0 => step("limit", ["Scope.local".to_owned(), count.to_string()]),
                    1 => step("tail", ["Scope.local".to_owned(), count.to_string()]),
                    2 => step("skip", ["Scope.local".to_owned(), count.to_string()]),
                    _ => step("range", ["Scope.local".to_owned(), count.to_string(), (count + 2).to_string()]),
                });
                at.becomes(Kind::Mixed);
            }
            8 if is_ordered => {
                at.push(bare("reverse"));
            }
            9 if is_ordered => {
                at.push(step("conjoin", ["'-'"])).becomes(Kind::Text);
            }
            10 => {
                at.push(step(self.pick(&["combine", "merge", "difference", "disjunct", "intersect"]), [constant]));
                self.lists_are_ordered &= is_ordered;
                // Sets of the step have any order.
                at.becomes(Kind::List(false, Box::new(items)));
                self.lists_are_ordered = false;
            }
            11 => {
                at.push(step("product", [constant])).becomes(Kind::List(is_ordered, Box::new(Kind::Mixed)));
            }
            12 => {
                let predicate = self.predicate(&items);
                at.push(step(self.pick(&["all", "any", "none"]), [predicate]));
            }
            13 => {
                let by = self.child(&same).0;
                at.push(step("local", [by])).becomes(Kind::Mixed);
                at.is_ordered = false;
            }
            14 if is_ordered => {
                at.push(bare("index")).becomes(Kind::Mixed);
            }
            _ => self.general(at),
        }
    }

    pub(super) fn map(&mut self, at: &mut At, has_names: bool, values: Kind) {
        match self.random.below(8) {
            0 => {
                at.push(step("select", ["Column.values"])).becomes(Kind::List(false, Box::new(values)));
                self.lists_are_ordered = false;
            }
            1 => {
                at.push(step("select", ["Column.keys"])).becomes(Kind::List(false, Box::new(Kind::Mixed)));
                self.lists_are_ordered = false;
            }
            2 => {
                at.push(bare("unfold")).becomes(Kind::Mixed);
                at.is_ordered = false;
            }
            3 => {
                at.push(step("count", ["Scope.local"])).becomes(Kind::Number);
            }
            4 => {
                at.push(step("order", ["Scope.local"]));
                if values == Kind::Number && self.one_in(2) {
                    at.push(step("by", [Argument::from("Column.values"), "desc".into()]));
                }
                at.push(step("by", ["Column.keys"]));
                at.has_ordered_maps = true;
            }
            5 if has_names => {
                let key = self.key(&Kind::Vertex);
                at.push(step("select", [format!("'{key}'")])).becomes(Kind::Mixed);
                at.is_tangled = true;
            }
            6 => {
                at.push(bare("unfold"));
                at.push(step("select", [self.pick(&["Column.keys", "Column.values"])])).becomes(Kind::Mixed);
                at.is_ordered = false;
            }
            _ => self.general(at),
        }
    }

    pub(super) fn path(&mut self, at: &mut At) {
        match self.random.below(4) {
            0 => {
                at.push(step("count", ["Scope.local"])).becomes(Kind::Number);
            }
            1 => {
                at.push(bare("unfold")).becomes(Kind::Mixed);
                at.is_tangled = true;
            }
            2 => {
                at.push(step("limit", ["Scope.local", "1"])).becomes(Kind::Mixed);
            }
            _ => self.general(at),
        }
    }
}
