//! Conditions on rows: `where = "deleted_at is null and kind in ('a', 'b')"`.
//!
//! The same condition is evaluated here of every row, whether it was copied, streamed or compared, so that no two paths
//! disagree on it. Text is compared byte by byte, whatever the column's collation; decimals as numbers; dates and
//! timestamps with text in ISO 8601. Null is SQL's: neither true nor false.

use std::{cmp::Ordering, str::FromStr};

use bigdecimal::{BigDecimal, ToPrimitive};
use hoplake::{Name, Value};
use sqlparser::{
    ast::{BinaryOperator, Expr, InTarget, UnaryOperator, Value as Literal},
    dialect::GenericDialect,
    parser::Parser,
};

use crate::{Cell, value};

/// A condition on a row.
#[derive(Debug, Clone, PartialEq)]
pub struct RowCondition {
    test: Test,
    columns: Vec<Name>,
}

/// Whether a row fulfils a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It does.
    Yes,
    /// It does not, or SQL does not know because something is null.
    No,
    /// The log does not have a cell that decides on it.
    Unsaid,
}

#[derive(Debug, Clone, PartialEq)]
enum Test {
    All(Vec<Test>),
    Any(Vec<Test>),
    Not(Box<Test>),
    IsNull(usize),
    Compare(usize, Comparison, Constant),
    /// A column that is a condition itself.
    IsTrue(usize),
}

/// A value in a condition. The cell that it is compared with decides what a text means.
#[derive(Debug, Clone, PartialEq)]
enum Constant {
    Bool(bool),
    Number(BigDecimal),
    Text(String),
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// What SQL, or the log, knows of a test.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Truth {
    True,
    False,
    Null,
    Unsaid,
}

impl RowCondition {
    /// Parses a condition.
    ///
    /// # Errors
    /// What is wrong with it, as the end of a sentence.
    pub fn parse(text: &str) -> Result<Self, String> {
        let dialect = GenericDialect {};
        let mut parser = Parser::new(&dialect).try_with_sql(text).map_err(|error| error.to_string())?;
        let expression = parser.parse_expr().map_err(|error| error.to_string())?;
        if parser.peek_token().token != sqlparser::tokenizer::Token::EOF {
            return Err(format!("{} follows the condition", parser.peek_token()));
        }
        let mut columns = Vec::new();
        let test = Test::of(&expression, &mut columns)?;
        Ok(Self { test, columns })
    }

    /// The columns that it looks at.
    pub fn columns(&self) -> &[Name] {
        &self.columns
    }

    /// Whether a row fulfils it, whose cells are given by the number of the column in [`Self::columns`].
    ///
    /// # Errors
    /// Why a cell cannot be compared.
    pub fn verdict<'a>(&self, cell: impl Fn(usize) -> &'a Cell) -> Result<Verdict, String> {
        Ok(
            match self.test.of_row(&cell).map_err(|(column, why)| format!("column {}: {why}", self.columns[column]))? {
                Truth::True => Verdict::Yes,
                Truth::False | Truth::Null => Verdict::No,
                Truth::Unsaid => Verdict::Unsaid,
            },
        )
    }
}

impl Test {
    fn of(expression: &Expr, columns: &mut Vec<Name>) -> Result<Self, String> {
        let both = |left: &Expr, right: &Expr, columns: &mut Vec<Name>| -> Result<Vec<Self>, String> {
            Ok(vec![Self::of(left, columns)?, Self::of(right, columns)?])
        };
        Ok(match expression {
            Expr::Nested(inner) => Self::of(inner, columns)?,
            Expr::BinaryOp { left, op: BinaryOperator::And, right } => Self::All(both(left, right, columns)?),
            Expr::BinaryOp { left, op: BinaryOperator::Or, right } => Self::Any(both(left, right, columns)?),
            Expr::BinaryOp { left, op, right } => Self::comparison(left, op, right, columns)?,
            Expr::UnaryOp { op: UnaryOperator::Not, expr } => Self::Not(Box::new(Self::of(expr, columns)?)),
            Expr::IsNull(inner) => Self::IsNull(column(inner, columns)?),
            Expr::IsNotNull(inner) => Self::Not(Box::new(Self::IsNull(column(inner, columns)?))),
            Expr::In { expr, target: InTarget::List(items), negated, .. } => {
                let tested = column(expr, columns)?;
                let one = |item| Ok(Self::Compare(tested, Comparison::Equal, literal(item)?));
                negate(Self::Any(items.iter().map(one).collect::<Result<_, String>>()?), *negated)
            }
            Expr::Between { expr, negated, low, high } => {
                let tested = column(expr, columns)?;
                let low = Self::Compare(tested, Comparison::GreaterOrEqual, literal(low)?);
                let high = Self::Compare(tested, Comparison::LessOrEqual, literal(high)?);
                negate(Self::All(vec![low, high]), *negated)
            }
            Expr::Identifier(_) | Expr::CompoundIdentifier(_) => Self::IsTrue(column(expression, columns)?),
            other => return Err(format!("{other} is not supported; {SUPPORTED}")),
        })
    }

    fn comparison(left: &Expr, op: &BinaryOperator, right: &Expr, columns: &mut Vec<Name>) -> Result<Self, String> {
        let comparison = Comparison::of(op).ok_or_else(|| format!("{op} is not supported; {SUPPORTED}"))?;
        match (column(left, columns), column(right, columns)) {
            (Ok(tested), Err(_)) => Ok(Self::Compare(tested, comparison, literal(right)?)),
            (Err(_), Ok(tested)) => Ok(Self::Compare(tested, comparison.reversed(), literal(left)?)),
            _ => Err(format!("{left} {op} {right} is not supported; compare a column with a value")),
        }
    }

    /// An error has the number of the column.
    fn of_row<'a>(&self, cell: &impl Fn(usize) -> &'a Cell) -> Result<Truth, (usize, String)> {
        Ok(match self {
            Self::All(tests) => {
                tests.iter().try_fold(Truth::True, |all, test| Ok::<_, (usize, String)>(all.and(test.of_row(cell)?)))?
            }
            Self::Any(tests) => tests
                .iter()
                .try_fold(Truth::True, |none, test| Ok::<_, (usize, String)>(none.and(test.of_row(cell)?.not())))?
                .not(),
            Self::Not(test) => test.of_row(cell)?.not(),
            Self::IsNull(column) => match cell(*column) {
                Cell::Absent => Truth::Unsaid,
                Cell::Value(Value::Null) => Truth::True,
                _ => Truth::False,
            },
            Self::IsTrue(column) => match cell(*column) {
                Cell::Absent => Truth::Unsaid,
                Cell::Value(Value::Null) => Truth::Null,
                Cell::Value(Value::Bool(it)) => Truth::of(*it),
                Cell::Value(Value::Int64(number)) => Truth::of(*number != 0),
                _ => return Err((*column, "it is not a condition".into())),
            },
            Self::Compare(column, comparison, with) => match cell(*column) {
                Cell::Absent => Truth::Unsaid,
                Cell::Value(Value::Null) => Truth::Null,
                Cell::Bad(why) => return Err((*column, why.to_string())),
                Cell::Digits(digits) => {
                    let number =
                        if let Constant::Text(text) = with { text.parse().ok().map(Constant::Number) } else { None };
                    let order = compare(&Value::String(digits.to_string()), number.as_ref().unwrap_or(with));
                    Truth::of(comparison.holds(order.ok_or_else(|| (*column, incomparable(with)))?))
                }
                Cell::Value(value) => {
                    let order = compare(value, with).ok_or_else(|| (*column, incomparable(with)))?;
                    Truth::of(comparison.holds(order))
                }
            },
        })
    }
}

const SUPPORTED: &str = "conditions have =, <>, <, <=, >, >=, is null, in, between, and, or, not, columns and values";

fn negate(test: Test, negated: bool) -> Test {
    if negated { Test::Not(Box::new(test)) } else { test }
}

/// Without the value, which errors do not show.
fn incomparable(constant: &Constant) -> String {
    let constant = match constant {
        Constant::Bool(it) => it.to_string(),
        Constant::Number(number) => number.to_string(),
        Constant::Text(text) => format!("'{text}'"),
    };
    format!("it cannot be compared with {constant}")
}

/// The number of a column among those that the condition looks at.
fn column(expression: &Expr, columns: &mut Vec<Name>) -> Result<usize, String> {
    let name = match expression {
        Expr::Identifier(name) => &name.value,
        Expr::CompoundIdentifier(names) if !names.is_empty() => &names[names.len() - 1].value,
        Expr::Nested(inner) => return column(inner, columns),
        other => return Err(format!("{other} is not a column")),
    };
    let known = columns.iter().position(|column| column == name);
    Ok(known.unwrap_or_else(|| {
        columns.push(name.as_str().into());
        columns.len() - 1
    }))
}

fn literal(expression: &Expr) -> Result<Constant, String> {
    match expression {
        Expr::Value(value) => match &value.value {
            Literal::Number(number, _) => {
                BigDecimal::from_str(number).map(Constant::Number).map_err(|_| format!("{number} is not a number"))
            }
            Literal::SingleQuotedString(text) | Literal::DoubleQuotedString(text) => Ok(Constant::Text(text.clone())),
            Literal::Boolean(it) => Ok(Constant::Bool(*it)),
            Literal::Null => Err("nothing equals null; write is null".into()),
            other => Err(format!("{other} is not a value that conditions have")),
        },
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => match literal(expr)? {
            Constant::Number(number) => Ok(Constant::Number(-number)),
            _ => Err(format!("-{expr} is not a number")),
        },
        Expr::Nested(inner) => literal(inner),
        other => Err(format!("{other} is not a value")),
    }
}

/// The order of a cell and a constant, if they can be compared.
fn compare(cell: &Value, constant: &Constant) -> Option<Ordering> {
    match (cell, constant) {
        (Value::Bool(cell), Constant::Bool(it)) => Some(cell.cmp(it)),
        (Value::Bool(cell), Constant::Text(text)) => Some(cell.cmp(&value::bool_of_text(text)?)),
        (Value::Bool(cell), Constant::Number(number)) => Some(BigDecimal::from(i32::from(*cell)).cmp(number)),
        (Value::Int64(number), Constant::Bool(it)) => Some((*number != 0).cmp(it)),
        (Value::Int64(cell), Constant::Number(number)) => Some(BigDecimal::from(*cell).cmp(number)),
        (Value::Int64(cell), Constant::Text(text)) => {
            Some(BigDecimal::from(*cell).cmp(&BigDecimal::from_str(text).ok()?))
        }
        (Value::Float64(cell), Constant::Number(number)) => cell.partial_cmp(&number.to_f64()?),
        (Value::Float64(cell), Constant::Text(text)) => cell.partial_cmp(&f64::from_str(text).ok()?),
        // Decimals are text: 1.50 is 1.5.
        (Value::String(cell), Constant::Number(number)) => Some(BigDecimal::from_str(cell).ok()?.cmp(number)),
        (Value::String(cell), Constant::Text(text)) => Some(cell.as_str().cmp(text)),
        (Value::Date(days), Constant::Text(text)) => Some(days.cmp(&value::date_of_text(text)?)),
        (Value::Timestamp(micros), Constant::Text(text)) => Some(micros.cmp(&value::timestamp_of_text(text)?)),
        _ => None,
    }
}

impl Comparison {
    fn of(op: &BinaryOperator) -> Option<Self> {
        Some(match op {
            BinaryOperator::Eq => Self::Equal,
            BinaryOperator::NotEq => Self::NotEqual,
            BinaryOperator::Lt => Self::Less,
            BinaryOperator::LtEq => Self::LessOrEqual,
            BinaryOperator::Gt => Self::Greater,
            BinaryOperator::GtEq => Self::GreaterOrEqual,
            _ => return None,
        })
    }

    /// With the sides exchanged.
    fn reversed(self) -> Self {
        match self {
            Self::Less => Self::Greater,
            Self::LessOrEqual => Self::GreaterOrEqual,
            Self::Greater => Self::Less,
            Self::GreaterOrEqual => Self::LessOrEqual,
            same => same,
        }
    }

    fn holds(self, order: Ordering) -> bool {
        match self {
            Self::Equal => order.is_eq(),
            Self::NotEqual => order.is_ne(),
            Self::Less => order.is_lt(),
            Self::LessOrEqual => order.is_le(),
            Self::Greater => order.is_gt(),
            Self::GreaterOrEqual => order.is_ge(),
        }
    }
}

impl Truth {
    fn of(it: bool) -> Self {
        if it { Self::True } else { Self::False }
    }

    fn not(self) -> Self {
        match self {
            Self::True => Self::False,
            Self::False => Self::True,
            other => other,
        }
    }

    fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::False, _) | (_, Self::False) => Self::False,
            (Self::Unsaid, _) | (_, Self::Unsaid) => Self::Unsaid,
            (Self::Null, _) | (_, Self::Null) => Self::Null,
            _ => Self::True,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(condition: &str, cells: &[(&str, Cell)]) -> Verdict {
        let condition = RowCondition::parse(condition).unwrap();
        let cell = |column: usize| &cells.iter().find(|(name, _)| *name == condition.columns()[column]).unwrap().1;
        condition.verdict(cell).unwrap()
    }

    #[test]
    fn conditions_are_those_of_sql() {
        let text = |text: &str| Cell::Value(Value::String(text.into()));
        let row = [
            ("n", Cell::Value(Value::Int64(7))),
            ("price", text("1.50")),
            ("name", text("Ann")),
            ("gone", Cell::Value(Value::Null)),
            ("day", Cell::Value(Value::Date(20_513))),
            ("on", Cell::Value(Value::Bool(true))),
            ("unsaid", Cell::Absent),
        ];
        for (condition, expected) in [
            ("gone is null", Verdict::Yes),
            ("gone IS NOT NULL", Verdict::No),
            ("n = 7 and price = 1.5", Verdict::Yes),
            ("n between 8 and 9", Verdict::No),
            ("n not between 8 and 9", Verdict::Yes),
            ("-7 < n", Verdict::Yes),
            ("name in ('Bob', 'Ann')", Verdict::Yes),
            ("name = 'ann'", Verdict::No),
            ("`day` >= '2026-03-01' and not (day > '2026-03-01')", Verdict::Yes),
            ("t.on", Verdict::Yes),
            ("on = false", Verdict::No),
            // SQL does not know, so neither it nor its opposite holds.
            ("gone = 1", Verdict::No),
            ("not gone = 1", Verdict::No),
            ("gone = 1 or n = 7", Verdict::Yes),
            ("unsaid = 1", Verdict::Unsaid),
            ("unsaid = 1 or n = 7", Verdict::Yes),
            ("unsaid = 1 and n = 8", Verdict::No),
        ] {
            assert_eq!(verdict(condition, &row), expected, "{condition}");
        }
    }

    #[test]
    fn what_is_not_supported_is_refused() {
        for (condition, why) in [
            ("name like 'A%'", "is not supported"),
            ("lower(name) = 'ann'", "is not supported"),
            ("a = b", "compare a column with a value"),
            ("a = null", "write is null"),
            ("a = 1; drop table t", "follows the condition"),
            ("a =", "Expected"),
            ("", "Expected"),
        ] {
            let error = RowCondition::parse(condition).unwrap_err();
            assert!(error.contains(why), "{condition}: {error}");
        }
    }
}
