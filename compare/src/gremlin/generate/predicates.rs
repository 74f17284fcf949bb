//! Literals and predicates.

use super::{Generator, Kind};
use crate::gremlin::world::{TEXTS, Type, literal};

const NUMBERS: [&str; 16] =
    ["0", "1", "2", "3", "5", "-1", "1l", "4l", "0.5", "1.0", "2.5d", "0.25f", "2b", "3s", "1.5m", "4n"];

impl Generator<'_> {
    /// A literal of a kind.
    pub(super) fn literal(&mut self, kind: &Kind) -> String {
        if self.one_in(60) {
            return self.pick(&["null", "NaN", "Infinity", "-Infinity", "[]", "[1, 2]", "''"]).to_owned();
        }
        match kind {
            Kind::Number => self.pick(&NUMBERS).to_owned(),
            Kind::Text => format!("'{}'", self.pick(&TEXTS)),
            Kind::Boolean => literal(Type::Boolean, &mut self.random),
            Kind::Date => literal(Type::Date, &mut self.random),
            _ => {
                let kind = self.pick(&[Kind::Number, Kind::Text, Kind::Boolean, Kind::Date]);
                self.literal(&kind)
            }
        }
    }

    /// A predicate on values of a kind.
    pub(super) fn predicate(&mut self, kind: &Kind) -> String {
        let kind = match kind {
            Kind::Number | Kind::Text | Kind::Boolean | Kind::Date if !self.one_in(12) => kind.clone(),
            _ => self.pick(&[Kind::Number, Kind::Text, Kind::Boolean, Kind::Date]),
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

    fn plain_predicate(&mut self, kind: &Kind) -> String {
        if *kind == Kind::Text && self.one_in(3) {
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
            let part = self.pick(&["a", "n", "b", "", "B", "^a", "n$", "[0-9]", ".*", "ö"]);
            return format!("TextP.{name}('{part}')");
        }
        let mut value = || self.literal(kind);
        let (one, other, third) = (value(), value(), value());
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
    pub(super) fn test(&mut self, kind: &Kind) -> String {
        if self.one_in(3) { self.literal(kind) } else { self.predicate(kind) }
    }
}
