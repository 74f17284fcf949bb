//! Conditions on elements as conditions of the engine, for elements whose properties have types: as far as both mean the same.

use std::{collections::BTreeSet, sync::Arc};

use hoplake_engine::{Comparison, Condition, Formula, PropertyName, PropertyOf, Requirement, ThreeValued, change};
use hoplake_format::{ItemType, Property, PropertyType, ScalarType, VertexLabel};

use crate::{
    error::Done,
    growth::Growth,
    literal::Number,
    plan::{ElementCondition, ElementTest, Name, PlanStep, Predicate, Test, every},
    value::{Value, equals, to_f64, to_i64, value_bytes},
};

/// Tests of a condition, at most: the engine has a verdict of each for every row, and rejects conditions of more than a thousand. A test between
/// two numbers of a float is three of the engine.
const TESTS_MAX: usize = 200;

/// Values of a condition that are looked at when only a guess is needed, and conditions.
const GUESSED_MAX: usize = 64;

/// How many times a value is there: in the condition, in its copy for a label, and in the column of the property's type.
const VALUE_COPIES: usize = 3;

/// Elements that conditions look at: vertices of a label, or edges of a type.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Owner<'a> {
    pub(crate) label: &'a str,
    pub(crate) properties: &'a [Property],
}

/// What the engine tests of some conditions.
#[derive(Debug)]
pub(crate) enum Tested {
    /// Nothing can match them.
    Never,
    /// Some or all of them.
    Some(TestedPart),
}

/// What the engine tests of some conditions, and what it does not.
#[derive(Debug, Default)]
pub(crate) struct TestedPart {
    /// A condition, if there is one.
    pub(crate) condition: Option<Condition>,
    /// What it takes.
    pub(crate) bytes: u64,
    /// Steps that test the others.
    pub(crate) left: Vec<Arc<PlanStep>>,
}

/// What the engine tests of some conditions, on elements of any of these kinds.
///
/// # Errors
/// A limit of the query; an error of a predicate on a label.
pub(crate) fn tested(
    of: PropertyOf,
    owners: &[Owner<'_>],
    conditions: &[ElementCondition],
    is_computed: impl Fn(&str) -> bool,
    growth: &Growth,
) -> Done<Tested> {
    let translation = Translation { of, owners, is_computed: &is_computed, growth };
    let mut part = TestedPart::default();
    let mut tests = 0;
    for ElementCondition { formula, step } in conditions {
        let count: usize = formula.tests().into_iter().map(test_count).sum();
        if tests + count > TESTS_MAX {
            part.left.push(step.clone());
            continue;
        }
        let mut copied_bytes = 0;
        for test in formula.tests() {
            // Nothing is copied of values for a property that the elements do not have.
            if let ElementTest::Property(name, predicate) = test
                && !translation.owned(name)?.is_empty()
            {
                predicate.values(&mut |value| copied_bytes += VALUE_COPIES * value_bytes(value));
            }
        }
        growth.take(copied_bytes)?;
        match translation.formula(formula)? {
            Meaning::Never => return Ok(Tested::Never),
            Meaning::Always => {}
            Meaning::Exactly(condition) => {
                tests += count;
                part.bytes += copied_bytes as u64;
                part.condition = Some(match part.condition.take() {
                    Some(before) => before.and(condition),
                    None => condition,
                });
            }
            Meaning::Unclear => part.left.push(step.clone()),
        }
    }
    Ok(Tested::Some(part))
}

/// Whether vertices of a label may be among those that match conditions: a guess, that costs little and may be wrong where one is.
pub(crate) fn is_possible(label: &VertexLabel, conditions: &[ElementCondition], growth: &Growth) -> bool {
    let owner = Owner { label: &label.name, properties: &label.properties };
    let translation = Translation { of: PropertyOf::Either, owners: &[owner], is_computed: &|_| false, growth };
    let is_small = |condition: &&ElementCondition| {
        condition.formula.tests().iter().all(|test| match test {
            ElementTest::Property(_, predicate) | ElementTest::Label(predicate) => predicate.has_at_most(GUESSED_MAX),
            ElementTest::HasProperty(_) | ElementTest::Id(_) => true,
        })
    };
    let is_never = |condition: &ElementCondition| matches!(translation.formula(&condition.formula), Ok(Meaning::Never));
    !conditions.iter().take(GUESSED_MAX).filter(is_small).any(is_never)
}

/// Whether a label matches predicates.
///
/// # Errors
/// A limit of the query.
pub(crate) fn matches<'a>(
    label: &str,
    predicates: impl IntoIterator<Item = &'a Predicate>,
    growth: &Growth,
) -> Done<bool> {
    let label = Value::from(label);
    every(predicates, |predicate| predicate.test(&label, growth))
}

fn test_count(test: &ElementTest) -> usize {
    match test {
        ElementTest::Property(_, predicate) => predicate.tests(),
        ElementTest::HasProperty(_) | ElementTest::Label(_) | ElementTest::Id(_) => 1,
    }
}

/// What a test or a formula means to the engine.
#[derive(Debug)]
enum Meaning {
    /// Nothing matches it.
    Never,
    /// Everything does.
    Always,
    /// What matches the condition.
    Exactly(Condition),
    /// The engine cannot say it.
    Unclear,
}

impl Meaning {
    fn known(is_always: bool) -> Self {
        if is_always { Self::Always } else { Self::Never }
    }
}

/// What is unclear stays so whatever it is joined with: the step that tests it may fail, and has to.
impl ThreeValued for Meaning {
    fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Unclear, _) | (_, Self::Unclear) => Self::Unclear,
            (Self::Never, _) | (_, Self::Never) => Self::Never,
            (Self::Always, it) | (it, Self::Always) => it,
            (Self::Exactly(left), Self::Exactly(right)) => Self::Exactly(left.and(right)),
        }
    }

    fn or(self, other: Self) -> Self {
        match (self, other) {
            (Self::Unclear, _) | (_, Self::Unclear) => Self::Unclear,
            (Self::Always, _) | (_, Self::Always) => Self::Always,
            (Self::Never, it) | (it, Self::Never) => it,
            (Self::Exactly(left), Self::Exactly(right)) => Self::Exactly(left.or(right)),
        }
    }

    fn negated(self) -> Self {
        match self {
            Self::Never => Self::Always,
            Self::Always => Self::Never,
            Self::Exactly(condition) => Self::Exactly(condition.negated()),
            Self::Unclear => Self::Unclear,
        }
    }
}

/// Makes conditions of the engine, for elements whose properties have types.
struct Translation<'a> {
    of: PropertyOf,
    owners: &'a [Owner<'a>],
    is_computed: &'a dyn Fn(&str) -> bool,
    growth: &'a Growth,
}

impl Translation<'_> {
    fn formula(&self, formula: &Formula<ElementTest>) -> Done<Meaning> {
        let is_negated = formula.has_negation();
        formula.evaluate(|test| match test {
            ElementTest::Property(name, predicate) => self.property(name, predicate, is_negated),
            ElementTest::HasProperty(name) => self.has_property(name),
            ElementTest::Label(predicate) => self.label(predicate),
            ElementTest::Id(_) => Ok(Meaning::Unclear),
        })
    }

    /// That a property matches a predicate. Here what lacks the property does not, and matches the opposite; for the engine both are unknown.
    /// So if something is negated, the condition says that there is a value.
    fn property(&self, name: &Name, predicate: &Predicate, is_negated: bool) -> Done<Meaning> {
        let owned = self.owned(name)?;
        let Some(first) = owned.first() else { return Ok(self.of_absent(name)) };
        // One value may stand for values of two types, which compare in other ways.
        let is_mixed = owned.iter().any(|other| (other.kind, other.logical) != (first.kind, first.logical));
        if is_mixed || (self.is_computed)(name) {
            return Ok(Meaning::Unclear);
        }
        Ok(match of_value(&self.name(name), first, predicate) {
            Meaning::Always => self.has_property(name)?,
            Meaning::Exactly(condition) if is_negated => Meaning::Exactly(condition.and(self.is_present(name))),
            other => other,
        })
    }

    fn has_property(&self, name: &Name) -> Done<Meaning> {
        let owned = self.owned(name)?;
        if owned.is_empty() || (self.is_computed)(name) {
            return Ok(self.of_absent(name));
        }
        let is_clear = owned.iter().all(|property| match property.kind {
            PropertyType::Scalar(kind) => !is_of_time(kind),
            // The values of a vertex are a list, of which there may be none.
            PropertyType::List(kind) => {
                !is_of_time(kind) && (self.of == PropertyOf::Edge || property.logical.collection.is_some())
            }
        });
        Ok(if is_clear { Meaning::Exactly(self.is_present(name)) } else { Meaning::Unclear })
    }

    /// A label is one of few: those that match the predicate.
    fn label(&self, predicate: &Predicate) -> Done<Meaning> {
        let mut matching = BTreeSet::new();
        let mut all = BTreeSet::new();
        for owner in self.owners {
            if all.insert(owner.label) && matches(owner.label, [predicate], self.growth)? {
                matching.insert(owner.label);
            }
        }
        if matching.is_empty() || matching.len() == all.len() {
            return Ok(Meaning::known(!matching.is_empty()));
        }
        let labels = matching.into_iter().map(|label| change::Value::from(label).into()).collect();
        let requirement = Requirement::OneOf(labels);
        Ok(Meaning::Exactly(match self.of {
            PropertyOf::Edge => Condition::edge_label(requirement),
            PropertyOf::Vertex | PropertyOf::Either => Condition::vertex_label(requirement),
        }))
    }

    /// A property that none of the elements has in the graph.
    fn of_absent(&self, name: &str) -> Meaning {
        if (self.is_computed)(name) { Meaning::Unclear } else { Meaning::Never }
    }

    fn is_present(&self, name: &str) -> Condition {
        Condition::is_null(self.name(name)).negated()
    }

    fn name(&self, name: &str) -> PropertyName {
        PropertyName { name: name.to_owned(), of: self.of }
    }

    fn owned(&self, name: &str) -> Done<Vec<&Property>> {
        let known: usize = self.owners.iter().map(|owner| owner.properties.len()).sum();
        self.growth.work(1 + known as u64 / 8)?;
        let owned = self.owners.iter().filter_map(|owner| owner.properties.iter().find(|it| it.name == *name));
        Ok(owned.collect())
    }
}

/// Steps fail on out-of-range dates even if they do not read the value, so dates stay steps.
fn is_of_time(kind: ScalarType) -> bool {
    matches!(kind, ScalarType::Date | ScalarType::Timestamp)
}

/// What a predicate means for the values of a property. `Always` if every value matches it.
fn of_value(name: &PropertyName, property: &Property, predicate: &Predicate) -> Meaning {
    let PropertyType::Scalar(kind) = property.kind else { return Meaning::Unclear };
    let each = |all: &[Predicate], begin: Meaning, join: fn(Meaning, Meaning) -> Meaning| {
        all.iter().map(|one| of_value(name, property, one)).fold(begin, join)
    };
    match predicate {
        Predicate::And(all) => each(all, Meaning::Always, Meaning::and),
        Predicate::Or(all) => each(all, Meaning::Never, Meaning::or),
        Predicate::Not(one) => of_value(name, property, one).negated(),
        // A regex never matches a number; neither does `notRegex`.
        Predicate::Regex(..) if kind == ScalarType::String || is_of_time(kind) => Meaning::Unclear,
        Predicate::Regex(..) => Meaning::Never,
        // A number of 32 bits is stored by its decimal form, and compared by its own.
        Predicate::Test(..) if property.logical.item == Some(ItemType::Float32) => Meaning::Unclear,
        // Texts are stored, and are not the values: what equals one may be pushed, and their order is another.
        Predicate::Test(test, values) if property.logical.item == Some(ItemType::Uuid) => match test {
            Test::Eq | Test::Neq | Test::Within | Test::Without => {
                of_test(name, property, *test, &texts_of_uuids(values))
            }
            _ => Meaning::Unclear,
        },
        Predicate::Test(test, values) => of_test(name, property, *test, values),
    }
}

fn of_test(name: &PropertyName, property: &Property, test: Test, values: &[Value]) -> Meaning {
    let PropertyType::Scalar(kind) = property.kind else { return Meaning::Unclear };
    let compare = |comparison: Comparison, value: &Value| match stored_as(property, value) {
        // A NaN is greater than all others for the engine, and than none here.
        Stored::As(value)
            if kind == ScalarType::Float64
                && matches!(comparison, Comparison::Greater | Comparison::GreaterOrEqual) =>
        {
            let greatest = change::Value::Float64(f64::INFINITY);
            let is_number = Condition::compare(name.clone(), Comparison::LessOrEqual, greatest);
            Meaning::Exactly(Condition::compare(name.clone(), comparison, value).and(is_number))
        }
        Stored::As(value) => Meaning::Exactly(Condition::compare(name.clone(), comparison, value)),
        // Values of two types are unequal, and have no order.
        Stored::Never => Meaning::known(comparison == Comparison::NotEqual),
        Stored::Unclear => Meaning::Unclear,
    };
    match (test, values) {
        (Test::Eq, [value, ..]) => compare(Comparison::Equal, value),
        (Test::Neq, [value, ..]) => compare(Comparison::NotEqual, value),
        (Test::Lt, [value, ..]) => compare(Comparison::Less, value),
        (Test::Lte, [value, ..]) => compare(Comparison::LessOrEqual, value),
        (Test::Gt, [value, ..]) => compare(Comparison::Greater, value),
        (Test::Gte, [value, ..]) => compare(Comparison::GreaterOrEqual, value),
        (Test::Between, [low, high]) => compare(Comparison::GreaterOrEqual, low).and(compare(Comparison::Less, high)),
        (Test::Inside, [low, high]) => compare(Comparison::Greater, low).and(compare(Comparison::Less, high)),
        (Test::Outside, [low, high]) => compare(Comparison::Less, low).or(compare(Comparison::Greater, high)),
        (Test::Within, _) => of_within(name, property, values),
        (Test::Without, _) => of_within(name, property, values).negated(),
        (
            Test::StartingWith
            | Test::NotStartingWith
            | Test::EndingWith
            | Test::NotEndingWith
            | Test::Containing
            | Test::NotContaining,
            [part, ..],
        ) => match (kind, part) {
            (ScalarType::Date | ScalarType::Timestamp, _) => Meaning::Unclear,
            (ScalarType::String, Value::Text(text)) => Meaning::Exactly(of_text(name, test, text)),
            // Both `startingWith` and `notStartingWith` are false for non-strings.
            _ => Meaning::Never,
        },
        _ => Meaning::Unclear,
    }
}

fn of_within(name: &PropertyName, property: &Property, values: &[Value]) -> Meaning {
    let mut stored = Vec::new();
    for value in values {
        match stored_as(property, value) {
            Stored::As(value) => stored.push(value),
            Stored::Never => {}
            Stored::Unclear => return Meaning::Unclear,
        }
    }
    match stored.is_empty() {
        true => Meaning::Never,
        false => Meaning::Exactly(Condition::one_of(name.clone(), stored)),
    }
}

fn of_text(name: &PropertyName, test: Test, text: &str) -> Condition {
    let is = |requirement| Condition::test(name.clone(), requirement);
    let starts = || is(Requirement::StartsWith(text.to_owned()));
    let ends = || is(Requirement::EndsWith(text.to_owned()));
    let contains = || is(Requirement::Contains(change::Value::from(text).into()));
    match test {
        Test::StartingWith => starts(),
        Test::NotStartingWith => starts().negated(),
        Test::EndingWith => ends(),
        Test::NotEndingWith => ends().negated(),
        Test::NotContaining => contains().negated(),
        _ => contains(),
    }
}

/// UUIDs as the texts that they are stored as; what is stored equals no other value.
fn texts_of_uuids(values: &[Value]) -> Vec<Value> {
    let text = |value: &Value| match value {
        Value::Uuid(uuid) => Value::Text(uuid.to_string().into()),
        _ => Value::Null,
    };
    values.iter().map(text).collect()
}

/// What a property's type has of a value.
enum Stored {
    /// This equals it.
    As(change::Value),
    /// No value of the type equals it.
    Never,
    /// One might.
    Unclear,
}

fn stored_as(property: &Property, value: &Value) -> Stored {
    let PropertyType::Scalar(kind) = property.kind else { return Stored::Unclear };
    match (kind, value) {
        (ScalarType::String, Value::Text(text)) => Stored::As(change::Value::from(&**text)),
        (ScalarType::Bool, Value::Boolean(boolean)) => Stored::As(change::Value::Bool(*boolean)),
        (ScalarType::Int64, Value::Number(number)) => {
            let rounded = to_i64(number);
            match equals(value, &rounded.into()) && rounded.unsigned_abs() < exact_below(property, number) {
                true => Stored::As(change::Value::Int64(rounded)),
                // Between two integers: equal to none, and greater than some.
                false => Stored::Unclear,
            }
        }
        (ScalarType::Float64, Value::Number(number)) => {
            let float = to_f64(number);
            match !float.is_nan() && equals(value, &float.into()) {
                true => Stored::As(change::Value::Float64(float)),
                false => Stored::Unclear,
            }
        }
        (
            ScalarType::String | ScalarType::Bool | ScalarType::Int64 | ScalarType::Float64,
            Value::Null | Value::Text(_) | Value::Boolean(_) | Value::Number(_),
        ) => Stored::Never,
        _ => Stored::Unclear,
    }
}

/// Integers are compared with a number as floats if it is one, and several integers are the same float beyond this. A float of 32 bits
/// is compared as one with integers of 32 bits or less.
fn exact_below(property: &Property, number: &Number) -> u64 {
    match (number, property.logical.item) {
        (Number::Float(_), Some(_)) => 1 << f32::MANTISSA_DIGITS,
        (Number::Float(_) | Number::Double(_), _) => 1 << f64::MANTISSA_DIGITS,
        _ => u64::MAX,
    }
}
