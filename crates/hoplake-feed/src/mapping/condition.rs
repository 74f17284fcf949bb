//! Conditions on rows: `where = "deleted_at is null and kind in ('a', 'b')"`.
//!
//! The same condition is evaluated here of every row, whether it was copied, streamed or compared, so that no two paths
//! disagree on it. Text is compared byte by byte, whatever the column's collation; decimals as numbers; dates and
//! timestamps with text in ISO 8601. Null is SQL's: neither true nor false.

use std::{cmp::Ordering, str::FromStr};

use bigdecimal::{BigDecimal, ToPrimitive};
use hoplake::{Comparison, Formula, Name, Truth, Value};
use sqlparser::{
    ast::{BinaryOperator, Expr, InTarget, UnaryOperator, Value as Literal},
    dialect::GenericDialect,
    parser::Parser,
};

use crate::{Cell, value};

/// A condition on a row.
#[derive(Debug, Clone, PartialEq)]
pub struct RowCondition {
    formula: Formula<Test>,
    columns: Vec<Name>,
}

/// Whether a row matches a condition.
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
        let formula = formula(&expression, &mut columns)?;
        Ok(Self { formula, columns })
    }

    /// The columns that it looks at.
    pub fn columns(&self) -> &[Name] {
        &self.columns
    }

    /// Whether a row matches it, whose cells are given by the number of the column in [`Self::columns`].
    ///
    /// # Errors
    /// Why a cell cannot be compared.
    pub fn verdict<'a>(&self, cell: impl Fn(usize) -> &'a Cell) -> Result<Verdict, String> {
        let truth = self.formula.evaluate(|test| test.of_row(&cell));
        Ok(match truth.map_err(|(column, why)| format!("column {}: {why}", self.columns[column]))? {
            Truth::True => Verdict::Yes,
            Truth::False | Truth::Unknown => Verdict::No,
            Truth::Undecided => Verdict::Unsaid,
        })
    }
}

fn formula(expression: &Expr, columns: &mut Vec<Name>) -> Result<Formula<Test>, String> {
    Ok(match expression {
        Expr::Nested(inner) => formula(inner, columns)?,
        Expr::BinaryOp { left, op: BinaryOperator::And, right } => {
            formula(left, columns)?.and(formula(right, columns)?)
        }
        Expr::BinaryOp { left, op: BinaryOperator::Or, right } => formula(left, columns)?.or(formula(right, columns)?),
        Expr::BinaryOp { left, op, right } => Formula::test(comparison(left, op, right, columns)?),
        Expr::UnaryOp { op: UnaryOperator::Not, expr } => formula(expr, columns)?.negated(),
        Expr::IsNull(inner) => Formula::test(Test::IsNull(column(inner, columns)?)),
        Expr::IsNotNull(inner) => Formula::test(Test::IsNull(column(inner, columns)?)).negated(),
        Expr::In { expr, target: InTarget::List(items), negated, .. } => {
            let tested = column(expr, columns)?;
            let one = |item| Ok(Formula::test(Test::Compare(tested, Comparison::Equal, literal(item)?)));
            let any = Formula::any(items.iter().map(one).collect::<Result<Vec<_>, String>>()?);
            negate(any.ok_or_else(|| format!("{expression} has no values"))?, *negated)
        }
        Expr::Between { expr, negated, low, high } => {
            let tested = column(expr, columns)?;
            let low = Formula::test(Test::Compare(tested, Comparison::GreaterOrEqual, literal(low)?));
            let high = Formula::test(Test::Compare(tested, Comparison::LessOrEqual, literal(high)?));
            negate(low.and(high), *negated)
        }
        Expr::Identifier(_) | Expr::CompoundIdentifier(_) => Formula::test(Test::IsTrue(column(expression, columns)?)),
        other => return Err(format!("{other} is not supported; {SUPPORTED}")),
    })
}

fn comparison(left: &Expr, op: &BinaryOperator, right: &Expr, columns: &mut Vec<Name>) -> Result<Test, String> {
    let comparison = sign(op).ok_or_else(|| format!("{op} is not supported; {SUPPORTED}"))?;
    match (column(left, columns), column(right, columns)) {
        (Ok(tested), Err(_)) => Ok(Test::Compare(tested, comparison, literal(right)?)),
        (Err(_), Ok(tested)) => Ok(Test::Compare(tested, comparison.reversed(), literal(left)?)),
        _ => Err(format!("{left} {op} {right} is not supported; compare a column with a value")),
    }
}

fn sign(op: &BinaryOperator) -> Option<Comparison> {
    Some(match op {
        BinaryOperator::Eq => Comparison::Equal,
        BinaryOperator::NotEq => Comparison::NotEqual,
        BinaryOperator::Lt => Comparison::Less,
        BinaryOperator::LtEq => Comparison::LessOrEqual,
        BinaryOperator::Gt => Comparison::Greater,
        BinaryOperator::GtEq => Comparison::GreaterOrEqual,
        _ => return None,
    })
}

impl Test {
    /// An error has the number of the column.
    fn of_row<'a>(&self, cell: &impl Fn(usize) -> &'a Cell) -> Result<Truth, (usize, String)> {
        Ok(match self {
            Self::IsNull(column) => match cell(*column) {
                Cell::Absent => Truth::Undecided,
                Cell::Value(Value::Null) => Truth::True,
                _ => Truth::False,
            },
            Self::IsTrue(column) => match cell(*column) {
                Cell::Absent => Truth::Undecided,
                Cell::Value(Value::Null) => Truth::Unknown,
                Cell::Value(Value::Bool(it)) => Truth::from(*it),
                Cell::Value(Value::Int64(number)) => Truth::from(*number != 0),
                _ => return Err((*column, "it is not a condition".into())),
            },
            Self::Compare(column, comparison, with) => match cell(*column) {
                Cell::Absent => Truth::Undecided,
                Cell::Value(Value::Null) => Truth::Unknown,
                Cell::Bad(why) => return Err((*column, why.to_string())),
                Cell::Digits(digits) => {
                    let number =
                        if let Constant::Text(text) = with { text.parse().ok().map(Constant::Number) } else { None };
                    let order = compare(&Value::String(digits.to_string()), number.as_ref().unwrap_or(with));
                    Truth::from(comparison.holds(order.ok_or_else(|| (*column, incomparable(with)))?))
                }
                Cell::Value(value) => {
                    let order = compare(value, with).ok_or_else(|| (*column, incomparable(with)))?;
                    Truth::from(comparison.holds(order))
                }
            },
        })
    }
}

const SUPPORTED: &str = "conditions have =, <>, <, <=, >, >=, is null, in, between, and, or, not, columns and values";

fn negate(formula: Formula<Test>, negated: bool) -> Formula<Test> {
    if negated { formula.negated() } else { formula }
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

    /// The tables of SQL:2016 (true, false and null), and of a value that the log does not have: the result is decided only if no value
    /// changes it. `not` tells false from null, which are one verdict.
    #[test]
    fn the_logic_is_that_of_sql() {
        const LETTERS: [char; 4] = ['t', 'f', 'n', 'u'];
        let cells =
            [Cell::Value(Value::Bool(true)), Cell::Value(Value::Bool(false)), Cell::Value(Value::Null), Cell::Absent];
        let decided = |condition: &str, cells: &[(&str, Cell)]| match (
            verdict(condition, cells),
            verdict(&format!("not ({condition})"), cells),
        ) {
            (Verdict::Yes, Verdict::No) => 't',
            (Verdict::No, Verdict::Yes) => 'f',
            (Verdict::No, Verdict::No) => 'n',
            (Verdict::Unsaid, Verdict::Unsaid) => 'u',
            other => panic!("{condition}: {other:?}"),
        };
        // A row for each letter on the left, a column for each on the right.
        for (operator, table) in [("and", ["tfnu", "ffff", "nfnu", "ufuu"]), ("or", ["tttt", "tfnu", "tnnu", "tuuu"])] {
            for (row, left) in cells.iter().enumerate() {
                let found: String = cells
                    .iter()
                    .map(|right| decided(&format!("a {operator} b"), &[("a", left.clone()), ("b", right.clone())]))
                    .collect();
                assert_eq!(found, table[row], "{} {operator} …", LETTERS[row]);
            }
        }
        let number = |number| Cell::Value(Value::Int64(number));
        let null = || Cell::Value(Value::Null);
        for (condition, of_each) in [
            ("x is null", "fftu"),
            ("x is not null", "ttfu"),
            ("x = 1", "tfnu"),
            ("x <> 1", "ftnu"),
            ("x in (1, 3)", "tfnu"),
            ("x not in (1, 3)", "ftnu"),
            ("x between 0 and 1", "tfnu"),
            ("x not between 0 and 1", "ftnu"),
            ("x = 1 or x is null", "tftu"),
            ("not (x = 1 and x = 2)", "ttnu"),
        ] {
            let found: String = [number(1), number(2), null(), Cell::Absent]
                .map(|cell| decided(condition, &[("x", cell)]))
                .iter()
                .collect();
            assert_eq!(found, of_each, "{condition}");
        }
    }

    /// An error does not depend on what the tests before it decide.
    #[test]
    fn every_test_is_evaluated() {
        let condition = RowCondition::parse("a = 1 or b = 'x'").unwrap();
        let cells = [Cell::Value(Value::Int64(1)), Cell::Value(Value::Int64(2))];
        assert_eq!(condition.verdict(|column| &cells[column]), Err("column b: it cannot be compared with 'x'".into()));
    }

    #[test]
    fn what_is_not_supported_is_rejected() {
        for (condition, why) in [
            ("name like 'A%'", "is not supported"),
            ("lower(name) = 'ann'", "is not supported"),
            ("a = b", "compare a column with a value"),
            ("a = null", "write is null"),
            ("a = 1; drop table t", "follows the condition"),
            ("a =", "Expected"),
            ("a in ()", "Expected"),
            ("", "Expected"),
        ] {
            let error = RowCondition::parse(condition).unwrap_err();
            assert!(error.contains(why), "{condition}: {error}");
        }
    }
}
