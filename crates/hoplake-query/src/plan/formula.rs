//! Formulas of `math`: `sin(_) + a * 2`.
//!
//! They are what the reference's library (exp4j) computes. `^` binds tighter than a sign and goes from the right: `-2 ^ 2` is −4, and
//! `2 ^ 3 ^ 2` is 512. `*`, `/` and `%` have one rank, and go from the left. A function without brackets takes all up to the end of
//! the brackets around it: `sin _ + 1` is `sin(_ + 1)`. Division by zero is an error. No crate for formulas has these ranks, so
//! Dijkstra's shunting yard is here: a formula becomes its operations in the order in which they are done, and needs no recursion.

use std::collections::HashMap;

use super::Name;
use crate::error::QueryError;

/// A formula with variables.
#[derive(Debug, Clone, PartialEq)]
pub struct Formula {
    text: Box<str>,
    /// In the order in which they are done: each takes what it needs from the end of the values so far.
    operations: Vec<Operation>,
    /// In the order in which they first stand in it.
    variables: Vec<Name>,
}

/// What is done next.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Operation {
    Number(f64),
    /// The value of one of the variables.
    Variable(usize),
    Sign(Sign),
    Binary(Binary),
    Function(Function),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sign {
    Plus,
    Minus,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Binary {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    Power,
}

/// A function, by its place in [`FUNCTIONS`].
type Function = usize;

/// The name of a function, and what computes it.
type NamedFunction = (&'static str, fn(f64) -> f64);

/// Names that the reference takes for functions, and what they compute.
const FUNCTIONS: [NamedFunction; 19] = [
    ("abs", f64::abs),
    ("acos", f64::acos),
    ("asin", f64::asin),
    ("atan", f64::atan),
    ("cbrt", f64::cbrt),
    ("ceil", f64::ceil),
    ("cos", f64::cos),
    ("cosh", f64::cosh),
    ("exp", f64::exp),
    ("floor", f64::floor),
    ("log", f64::ln),
    ("log10", f64::log10),
    ("log2", f64::log2),
    ("signum", signum),
    ("sin", f64::sin),
    ("sinh", f64::sinh),
    ("sqrt", f64::sqrt),
    ("tan", f64::tan),
    ("tanh", f64::tanh),
];

/// Functions of the library that the reference does not let through: it takes them for variables, and the library rejects those.
const RESERVED: [&str; 4] = ["cot", "expm1", "log1p", "pow"];

/// Constants of the library whose names the reference does not take for variables, as it does `pi` and `e`.
const CONSTANTS: [(char, f64); 2] = [('π', std::f64::consts::PI), ('φ', 1.618_033_988_74)];

/// An item on the operator stack, which waits for its operands.
#[derive(Debug, Clone, Copy, PartialEq)]
enum StackedOperator {
    Bracket,
    Operation(Operation),
}

/// What was read last: whether a sign or an operator comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Before {
    /// Nothing, an opening bracket or an operator.
    Open,
    Function,
    /// A number, a variable or a closing bracket.
    Operand,
}

impl Formula {
    /// Reads a formula.
    ///
    /// # Errors
    /// [`QueryError::Invalid`].
    pub fn parse(text: &str) -> Result<Self, QueryError> {
        let wrong = |why: String| QueryError::invalid(format!("`math` cannot compute {text:?}: {why}"));
        let mut reader = Reader::default();
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            rest = reader.token(first, rest).map_err(wrong)?;
        }
        let (operations, variables) = reader.finish().map_err(wrong)?;
        Ok(Self { text: text.into(), operations, variables })
    }

    /// Its variables, in the order in which they first stand in it.
    pub fn variables(&self) -> &[Name] {
        &self.variables
    }

    /// Its value, for values of the variables.
    ///
    /// # Errors
    /// [`QueryError::Type`] for a division by zero.
    pub fn value(&self, values: &[f64]) -> Result<f64, QueryError> {
        let mut stack: Vec<f64> = Vec::new();
        for operation in &self.operations {
            let mut operand = || stack.pop().expect("a formula that was read has its operands");
            let result = match *operation {
                Operation::Number(number) => number,
                Operation::Variable(number) => values.get(number).copied().unwrap_or(f64::NAN),
                Operation::Sign(Sign::Plus) => operand(),
                Operation::Sign(Sign::Minus) => -operand(),
                Operation::Function(function) => FUNCTIONS[function].1(operand()),
                Operation::Binary(binary) => {
                    let right = operand();
                    let left = operand();
                    let computed = binary.compute(left, right);
                    computed.ok_or_else(|| {
                        QueryError::wrong_type(format!("`math` cannot compute {:?}: Division by zero!", self.text))
                    })?
                }
            };
            stack.push(result);
        }
        Ok(stack.pop().expect("a formula that was read has one value"))
    }
}

impl Binary {
    fn of(symbol: char) -> Option<Self> {
        Some(match symbol {
            '+' => Self::Add,
            '-' => Self::Subtract,
            '*' => Self::Multiply,
            '/' => Self::Divide,
            '%' => Self::Remainder,
            '^' => Self::Power,
            _ => return None,
        })
    }

    /// `None` if it divides by zero.
    fn compute(self, left: f64, right: f64) -> Option<f64> {
        Some(match self {
            Self::Add => left + right,
            Self::Subtract => left - right,
            Self::Multiply => left * right,
            Self::Divide | Self::Remainder if right == 0.0 => return None,
            Self::Divide => left / right,
            Self::Remainder => left % right,
            Self::Power => power(left, right),
        })
    }
}

/// As `Math.pow` of Java: 1 to the power of NaN or of an infinity is NaN, where C says 1.
fn power(base: f64, exponent: f64) -> f64 {
    let is_unclear = exponent.is_nan() || base.abs() == 1.0 && exponent.is_infinite();
    if is_unclear { f64::NAN } else { base.powf(exponent) }
}

impl Operation {
    /// What binds tighter is done first. Functions are not among them.
    fn rank(self) -> u8 {
        match self {
            Self::Binary(Binary::Add | Binary::Subtract) => 1,
            Self::Binary(Binary::Multiply | Binary::Divide | Binary::Remainder) => 2,
            Self::Sign(_) => 3,
            _ => 4,
        }
    }

    /// Whether one that waits is done before this one.
    fn comes_after(self, waiting: Self) -> bool {
        match (self, waiting) {
            (_, Self::Function(_)) | (Self::Sign(_), Self::Binary(_)) => false,
            (Self::Sign(_) | Self::Binary(Binary::Power), waiting) => self.rank() < waiting.rank(),
            (_, waiting) => self.rank() <= waiting.rank(),
        }
    }

    fn operands(self) -> usize {
        match self {
            Self::Number(_) | Self::Variable(_) => 0,
            Self::Sign(_) | Self::Function(_) => 1,
            Self::Binary(_) => 2,
        }
    }
}

/// A formula that is being read.
struct Reader {
    operations: Vec<Operation>,
    variables: Vec<Name>,
    /// Where each of the variables is.
    places: HashMap<Name, usize>,
    waiting: Vec<StackedOperator>,
    before: Before,
    /// How many values there are after the operations so far.
    values: usize,
}

impl Default for Reader {
    fn default() -> Self {
        let operations = Vec::new();
        let variables = Vec::new();
        let waiting = Vec::new();
        Self { operations, variables, places: HashMap::new(), waiting, before: Before::Open, values: 0 }
    }
}

impl Reader {
    /// Reads a token, and returns what is behind it.
    fn token<'a>(&mut self, first: char, rest: &'a str) -> Result<&'a str, String> {
        let behind = &rest[first.len_utf8()..];
        match first {
            _ if first.is_whitespace() => Ok(behind),
            '0'..='9' | '.' => {
                let (number, behind) = number(rest);
                let number = number.parse().map_err(|_| format!("{number:?} is not a number"))?;
                self.operand(Operation::Number(number)).map(|()| behind)
            }
            '(' | '[' | '{' => {
                if self.before == Before::Operand {
                    return Err(format!("an operator is missing before {rest:?}"));
                }
                self.waiting.push(StackedOperator::Bracket);
                self.before = Before::Open;
                Ok(behind)
            }
            ')' | ']' | '}' => self.close().map(|()| behind),
            '_' | 'a'..='z' | 'A'..='Z' => {
                let end = rest.find(|it: char| !it.is_ascii_alphanumeric() && it != '_').unwrap_or(rest.len());
                self.word(&rest[..end]).map(|()| &rest[end..])
            }
            _ => {
                if let Some((_, value)) = CONSTANTS.iter().find(|(symbol, _)| *symbol == first) {
                    return self.operand(Operation::Number(*value)).map(|()| behind);
                }
                let binary = Binary::of(first).ok_or_else(|| format!("{first:?} is not an operator"))?;
                self.operator(match (self.before, first) {
                    (Before::Open, '-') => Operation::Sign(Sign::Minus),
                    (Before::Open, '+') => Operation::Sign(Sign::Plus),
                    _ => Operation::Binary(binary),
                })
                .map(|()| behind)
            }
        }
    }

    fn word(&mut self, word: &str) -> Result<(), String> {
        if let Some(function) = FUNCTIONS.iter().position(|(name, _)| *name == word) {
            if self.before == Before::Operand {
                return Err(format!("an operator is missing before {word:?}"));
            }
            self.waiting.push(StackedOperator::Operation(Operation::Function(function)));
            self.before = Before::Function;
            return Ok(());
        }
        if RESERVED.contains(&word) {
            return Err(format!("a variable cannot be called {word:?}, and there is no such function"));
        }
        let number = match self.places.get(word) {
            Some(number) => *number,
            None => {
                let name = Name::from(word);
                let number = self.variables.len();
                self.variables.push(name.clone());
                self.places.insert(name, number);
                number
            }
        };
        self.operand(Operation::Variable(number))
    }

    fn operand(&mut self, operation: Operation) -> Result<(), String> {
        if self.before == Before::Operand {
            return Err("an operator is missing between two values".to_owned());
        }
        self.before = Before::Operand;
        self.done(operation)
    }

    fn operator(&mut self, operation: Operation) -> Result<(), String> {
        while let Some(StackedOperator::Operation(waiting)) = self.waiting.last().copied() {
            if !operation.comes_after(waiting) {
                break;
            }
            self.waiting.pop();
            self.done(waiting)?;
        }
        self.waiting.push(StackedOperator::Operation(operation));
        self.before = Before::Open;
        Ok(())
    }

    fn close(&mut self) -> Result<(), String> {
        if self.before != Before::Operand {
            return Err("a value is missing before a closing bracket".to_owned());
        }
        loop {
            match self.waiting.pop() {
                Some(StackedOperator::Operation(operation)) => self.done(operation)?,
                Some(StackedOperator::Bracket) => break,
                None => return Err("a bracket closes that was not opened".to_owned()),
            }
        }
        if let Some(StackedOperator::Operation(function @ Operation::Function(_))) = self.waiting.last().copied() {
            self.waiting.pop();
            self.done(function)?;
        }
        Ok(())
    }

    fn done(&mut self, operation: Operation) -> Result<(), String> {
        let left = self.values.checked_sub(operation.operands());
        self.values = 1 + left.ok_or_else(|| "an operator has no value to compute with".to_owned())?;
        self.operations.push(operation);
        Ok(())
    }

    fn finish(mut self) -> Result<(Vec<Operation>, Vec<Name>), String> {
        while let Some(waiting) = self.waiting.pop() {
            match waiting {
                StackedOperator::Operation(operation) => self.done(operation)?,
                StackedOperator::Bracket => return Err("a bracket is not closed".to_owned()),
            }
        }
        match self.values {
            0 => Err("it is empty".to_owned()),
            1 => Ok((self.operations, self.variables)),
            _ => Err("an operator is missing between two values".to_owned()),
        }
    }
}

/// The number at the beginning of a text, and what is behind it. An `e` has its exponent behind it, or is a name.
fn number(text: &str) -> (&str, &str) {
    let bytes = text.as_bytes();
    let is_exponent = |at: usize| matches!(bytes.get(at), Some(b'e' | b'E'));
    let mut end = 1;
    while let Some(byte) = bytes.get(end) {
        match byte {
            b'0'..=b'9' | b'.' | b'e' | b'E' => end += 1,
            b'+' | b'-' if is_exponent(end - 1) => end += 1,
            _ => break,
        }
    }
    text.split_at(if is_exponent(end - 1) { end - 1 } else { end })
}

/// As the library: of NaN, too, it is zero.
fn signum(number: f64) -> f64 {
    if number > 0.0 {
        1.0
    } else if number < 0.0 {
        -1.0
    } else {
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_a_formula_is_rejected() {
        for text in [
            "",
            " ",
            "+",
            "_ +",
            "* _",
            "(_ + 1",
            "_ + 1)",
            "()",
            "2 3",
            "2_",
            "2(3)",
            "(2)(3)",
            "_ _",
            "1e",
            "2e * 3",
            "1.2.3",
            "sin()",
            "sin -_",
            "sin(1, 2)",
            "_ , 1",
            "_ & 1",
            "pow(_, 2)",
            "max(_, 2)",
            "é * 2",
            "_ sin(1)",
            ".",
            "1ee5",
        ] {
            assert!(Formula::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_long_formula_takes_no_stack() {
        let nested = format!("{}_{}", "sin(-(".repeat(10_000), "))".repeat(10_000));
        let formula = Formula::parse(&nested).unwrap();
        assert!(formula.value(&[0.0]).unwrap().abs() < 1e-9);
        assert_eq!(Formula::parse(&format!("_{}", " ^ _".repeat(10_000))).unwrap().value(&[1.0]).unwrap(), 1.0);
    }
}
