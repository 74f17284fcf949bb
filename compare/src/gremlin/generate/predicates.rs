//! Literals and predicates.

use super::{Generator, TraverserKind};
use crate::gremlin::world::{TEXTS, Type, literal};

const NUMBERS: [&str; 16] =
    ["0", "1", "2", "3", "5", "-1", "1l", "4l", "0.5", "1.0", "2.5d", "0.25f", "2b", "3s", "1.5m", "4n"];

/// Numbers of each type, some of them so large that a sum of few goes to the next type.
pub(super) const TYPED: [&[&str]; 8] = [
    &["1b", "2b", "-3b", "100b", "127b", "-128b"],
    &["1s", "3s", "-2s", "20000s", "32767s", "-32768s"],
    &["1", "2i", "-5", "2000000000", "2147483647", "-2147483648"],
    &["1l", "4l", "-7l", "5000000000000000000l", "9223372036854775807l"],
    &["1n", "4n", "-2n", "12345678901234567890123n"],
    &["1.5f", "0.25f", "-2.5f", "16777216f", "3e38f"],
    &["0.5", "1.0", "2.5d", "-0.75", "-0.0", "1e300"],
    &["1.5m", "2.50m", "-0.25m", "3m", "1e3m"],
];

impl Generator<'_> {
    /// A literal of a kind.
    pub(super) fn literal(&mut self, kind: &TraverserKind) -> String {
        if self.one_in(60) {
            return self.pick(&["null", "NaN", "Infinity", "-Infinity", "[]", "[1, 2]", "''"]).to_owned();
        }
        match kind {
            TraverserKind::Number if self.one_in(6) => {
                let of = self.pick(&TYPED);
                self.pick(of).to_owned()
            }
            TraverserKind::Number => self.pick(&NUMBERS).to_owned(),
            TraverserKind::Text => format!("'{}'", self.pick(&TEXTS)),
            TraverserKind::Boolean => literal(Type::Boolean, &mut self.random),
            // In another offset, which a graph does not store. No other date is the same point in time: TinkerPop tells two of those
            // apart, as its documentation does not.
            TraverserKind::Date if self.one_in(8) => {
                let date =
                    self.pick(&["2020-01-02T01:17:00+01:00", "2020-01-01T20:41:00-03:30", "9999-12-31T01:23:00+02:00"]);
                format!("datetime('{date}')")
            }
            TraverserKind::Date => literal(Type::Date, &mut self.random),
            _ => {
                let kind = self.pick(&[
                    TraverserKind::Number,
                    TraverserKind::Text,
                    TraverserKind::Boolean,
                    TraverserKind::Date,
                ]);
                self.literal(&kind)
            }
        }
    }

    /// A predicate on values of a kind.
    pub(super) fn predicate(&mut self, kind: &TraverserKind) -> String {
        let kind = match kind {
            TraverserKind::Number | TraverserKind::Text | TraverserKind::Boolean | TraverserKind::Date
                if !self.one_in(12) =>
            {
                kind.clone()
            }
            _ => self.pick(&[TraverserKind::Number, TraverserKind::Text, TraverserKind::Boolean, TraverserKind::Date]),
        };
        let one = self.plain_predicate(&kind);
        match self.random.below(12) {
            0 => format!("{one}.and({})", self.plain_predicate(&kind)),
            1 => format!("{one}.or({})", self.plain_predicate(&kind)),
            2 => format!("P.not({one})"),
            3 => format!("{one}.negate()"),
            _ => one,
        }
    }

    fn plain_predicate(&mut self, kind: &TraverserKind) -> String {
        if *kind == TraverserKind::Text && self.one_in(3) {
            let name = self.pick(&[
                "startingWith",
                "endingWith",
                "containing",
                "notStartingWith",
                "notEndingWith",
                "notContaining",
                "regex",
                "notRegex",
            ]);
            let part = self.pick(&["a", "n", "b", "", "B", "^a", "n$", "[0-9]", ".*", "ö", "😀", "a.n", "\\u00A0"]);
            return format!("TextP.{name}('{part}')");
        }
        let mut value = || self.literal(kind);
        let one = value();
        let other = value();
        let third = value();
        match self.random.below(14) {
            0 => format!("P.neq({one})"),
            1 => format!("P.lt({one})"),
            2 => format!("P.lte({one})"),
            3 => format!("P.gt({one})"),
            4 => format!("P.gte({one})"),
            5 => format!("P.between({one}, {other})"),
            6 => format!("P.inside({one}, {other})"),
            7 => format!("P.outside({one}, {other})"),
            8 => format!("P.within({one}, {other}, {third})"),
            9 => format!("P.without({one}, {other})"),
            10 => {
                format!("P.typeOf(GType.{})", self.pick(&["NUMBER", "STRING", "BOOLEAN", "DATETIME", "LONG", "DOUBLE"]))
            }
            _ => format!("P.eq({one})"),
        }
    }

    /// The argument of `is` and `has`: a predicate or a value.
    pub(super) fn test(&mut self, kind: &TraverserKind) -> String {
        if self.one_in(3) { self.literal(kind) } else { self.predicate(kind) }
    }
}
