//! Prepared queries: a text that a graph keeps under a name, called with values of declared types.
//!
//! A call is the step `call` at the beginning of a traversal: it stands for the steps of the text, in which the parameters have
//! values. So a call passes through everything that a traversal does, and each protocol has it without a word of its own.
//!
//! The text is parsed and planned with each call: that takes microseconds, and conditions are planned with the values that they have.

use hoplake_format::{PreparedQueries, PropertyType, QueryEdition, QueryParameter, ScalarType};
use hoplake_query::{
    error::QueryError,
    literal::{Literal, Number},
    moment::Moment,
    value::{Value, to_f64, to_i64},
};
use hoplake_storage::{MemoryBudget, QueryContext};
use jiff::civil::{Date, Time};

pub use crate::lower::Named;
use crate::{
    graphson,
    lower::{Names, lower_within},
    script::{Argument, Call, Script, Statement, Terminal, Traversal},
    text,
};

/// The longest text, as the manifest has it.
const TEXT_BYTES_MAX: usize = 16 << 10;

/// What the plan of one may take, which its regular expressions need most of.
const PLAN_BYTES_MAX: u64 = 64 << 20;

/// The script that calls a prepared query.
pub fn call(name: &str, parameters: Vec<Named>) -> Script {
    let text = |text: &str| Argument::Literal(Literal::Text(text.into()));
    let entries = parameters.into_iter().map(|(name, value)| (text(&name), value.into())).collect();
    let call = Call { name: "call".into(), arguments: vec![text(name), Argument::Map(entries)] };
    let traversal = Traversal { source: Vec::new(), steps: vec![call] };
    Script { statements: vec![Statement::Traversal(traversal, Terminal::All)] }
}

/// Checks what is to be saved: one traversal that can be planned with values of the parameters' types.
///
/// # Errors
/// [`QueryError::Syntax`], [`QueryError::Unsupported`] and [`QueryError::Invalid`].
pub fn check(name: &str, edition: &QueryEdition) -> Result<(), QueryError> {
    // Before the text is read: a step of a few letters takes a kilobyte.
    if edition.text.len() > TEXT_BYTES_MAX {
        let bytes = edition.text.len();
        return Err(QueryError::Invalid(format!(
            "the text of query {name:?} has {bytes} bytes; {TEXT_BYTES_MAX} is the most"
        )));
    }
    let traversal = traversal(name, edition)?;
    for QueryParameter { name: parameter, default, kind } in &edition.parameters {
        if let Some(json) = default
            && default_value(json, *kind).is_none()
        {
            let why =
                format!("the default of parameter {parameter} of query {name:?} is {json}, which is not a {kind}");
            return Err(QueryError::Invalid(why));
        }
        if is_word(parameter) {
            let why = format!(
                "{parameter} cannot be a parameter of query {name:?}: it is a word of Gremlin; give it another name"
            );
            return Err(QueryError::Invalid(why));
        }
        if !traversal.names().contains(&&**parameter) {
            let why = format!("parameter {parameter} of query {name:?} does not occur in its text");
            return Err(QueryError::Invalid(why));
        }
    }
    let sample = |parameter: &QueryParameter| {
        let default = parameter.default.as_ref().and_then(|json| default_value(json, parameter.kind));
        (parameter.name.as_str().into(), default.unwrap_or_else(|| sample(parameter.kind)))
    };
    let names: Vec<Named> = edition.parameters.iter().map(sample).collect();
    let context = QueryContext::within(&MemoryBudget::new("a prepared query", PLAN_BYTES_MAX));
    let plan = lower_within(&traversal, Names(&names), &PreparedQueries::default(), &context);
    plan.map(drop).map_err(|error| within(name, error))
}

/// Whether a name stands for something else in a text, as `id` stands for `T.id`.
fn is_word(name: &str) -> bool {
    let script = text::parse(&format!("g.inject({name})"));
    let argument = script.as_ref().ok().and_then(|script| match &script.statements[..] {
        [Statement::Traversal(traversal, _)] => traversal.steps.first()?.arguments.first(),
        _ => None,
    });
    !matches!(argument, Some(Argument::Name(_)))
}

/// What the names of a text are in a call that gives these values.
///
/// # Errors
/// [`QueryError::Call`] if a value is missing, is of another type, or has a name that is not a parameter.
pub fn bind(name: &str, edition: &QueryEdition, given: Vec<Named>) -> Result<Vec<Named>, QueryError> {
    let invalid = |why: String| Err(QueryError::Call(format!("query {name:?} {why}")));
    let mut bound: Vec<Named> = Vec::with_capacity(edition.parameters.len());
    for (parameter, value) in given {
        let Some(known) = edition.parameters.iter().find(|known| known.name == *parameter) else {
            return invalid(format!("has no parameter {parameter}; {}", signature(edition)));
        };
        if bound.iter().any(|(other, _)| *other == parameter) {
            return invalid(format!("is called with two values of parameter {parameter}"));
        }
        match typed(&value, known.kind) {
            Some(value) => bound.push((parameter, value)),
            None => {
                let kind = known.kind;
                let value = shortened(&value.to_string());
                return invalid(format!("takes a {kind} as parameter {parameter}, and {value} is not one"));
            }
        }
    }
    for QueryParameter { name: parameter, kind, default } in &edition.parameters {
        if bound.iter().any(|(other, _)| **other == **parameter) {
            continue;
        }
        match default.as_ref().and_then(|json| default_value(json, *kind)) {
            Some(value) => bound.push((parameter.as_str().into(), value)),
            None => return invalid(format!("needs parameter {parameter}; {}", signature(edition))),
        }
    }
    Ok(bound)
}

/// The traversal of a text.
pub(crate) fn traversal(name: &str, edition: &QueryEdition) -> Result<Traversal, QueryError> {
    let script = text::parse(&edition.text).map_err(|error| within(name, error))?;
    match <[Statement; 1]>::try_from(script.statements) {
        Ok([Statement::Traversal(traversal, _)]) if traversal.calls() => {
            Err(QueryError::Invalid(format!("query {name:?} calls a prepared query; it cannot call another")))
        }
        Ok([Statement::Traversal(traversal, Terminal::All | Terminal::List)]) => Ok(traversal),
        _ => Err(QueryError::Invalid(format!(
            "query {name:?} is not one traversal: a prepared query has one statement, which returns all of its results"
        ))),
    }
}

/// The edition that a call means.
pub(crate) fn find<'a>(queries: &'a PreparedQueries, call: &str) -> Result<(&'a str, &'a QueryEdition), QueryError> {
    queries.find(call).ok_or_else(|| {
        let known = match queries.0.is_empty() {
            true => "the graph has none".to_owned(),
            false => format!("the graph has {}", shortened(&Vec::from_iter(queries.0.keys().cloned()).join(", "))),
        };
        QueryError::Call(format!("there is no prepared query {call:?}; {known}"))
    })
}

/// What a query takes, for messages.
pub fn signature(edition: &QueryEdition) -> String {
    let parameter = |QueryParameter { name, kind, default }: &QueryParameter| match default {
        Some(default) => format!("{name}: {kind} = {default}"),
        None => format!("{name}: {kind}"),
    };
    match &edition.parameters[..] {
        [] => "it takes none".into(),
        all => format!("it takes {}", all.iter().map(parameter).collect::<Vec<_>>().join(", ")),
    }
}

fn within(name: &str, error: QueryError) -> QueryError {
    match error {
        QueryError::Unsupported(why) => QueryError::Unsupported(format!("query {name:?}: {why}")),
        QueryError::Invalid(why) => QueryError::Invalid(format!("query {name:?}: {why}")),
        QueryError::Syntax(why) => QueryError::Syntax(format!("query {name:?}: {why}")),
        other => other,
    }
}

/// A text for a message, which is not to be longer for a long value.
fn shortened(text: &str) -> String {
    const MOST: usize = 100;
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

fn default_value(json: &str, kind: PropertyType) -> Option<Value> {
    typed(&graphson::read_value(json.as_bytes()).ok()?, kind)
}

/// A value as one of a type, if it is one.
fn typed(value: &Value, kind: PropertyType) -> Option<Value> {
    match (kind, value) {
        (PropertyType::Scalar(kind), value) => scalar(value, kind),
        (PropertyType::List(kind), Value::List(items) | Value::Set(items)) => {
            items.iter().map(|item| scalar(item, kind)).collect::<Option<Vec<_>>>().map(Value::List)
        }
        (PropertyType::List(_), _) => None,
    }
}

fn scalar(value: &Value, kind: ScalarType) -> Option<Value> {
    Some(match (kind, value) {
        (ScalarType::String, Value::Text(text)) => Value::Text(text.clone()),
        (ScalarType::Bool, Value::Boolean(boolean)) => (*boolean).into(),
        (ScalarType::Int64, Value::Number(number)) if is_integer(number) => to_i64(number).into(),
        (ScalarType::Float64, Value::Number(number @ (Number::Float(_) | Number::Double(_)))) => to_f64(number).into(),
        (ScalarType::Float64, Value::Number(number)) if is_integer(number) => to_f64(number).into(),
        (ScalarType::Date, Value::Text(text)) => {
            Value::DateTime(Moment::of_utc(text.parse::<Date>().ok()?.at(0, 0, 0, 0)))
        }
        (ScalarType::Date, Value::DateTime(moment)) if moment.utc().time() == Time::midnight() => {
            Value::DateTime(Moment::of_utc(moment.utc()))
        }
        (ScalarType::Timestamp, Value::Text(text)) => Value::DateTime(Moment::parse(text)?),
        (ScalarType::Timestamp, Value::DateTime(..)) => value.clone(),
        _ => return None,
    })
}

fn is_integer(number: &Number) -> bool {
    matches!(number, Number::Byte(_) | Number::Short(_) | Number::Int(_) | Number::Long(_))
}

/// A value of a type, to plan with.
fn sample(kind: PropertyType) -> Value {
    let scalar = |kind| match kind {
        ScalarType::Bool => true.into(),
        ScalarType::Int64 => 1_i64.into(),
        ScalarType::Float64 => 1.0.into(),
        ScalarType::String => "a".into(),
        ScalarType::Date | ScalarType::Timestamp => {
            Value::DateTime(Moment::of_utc(Date::constant(1970, 1, 1).at(0, 0, 0, 0)))
        }
    };
    match kind {
        PropertyType::Scalar(kind) => scalar(kind),
        PropertyType::List(kind) => Value::List(vec![scalar(kind)]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parameter(name: &str, kind: PropertyType, default: Option<&str>) -> QueryParameter {
        QueryParameter { name: name.into(), kind, default: default.map(str::to_owned) }
    }

    fn edition(text: &str, parameters: Vec<QueryParameter>) -> QueryEdition {
        QueryEdition { text: text.into(), parameters, ..QueryEdition::default() }
    }

    const TEXT: PropertyType = PropertyType::Scalar(ScalarType::String);
    const INT: PropertyType = PropertyType::Scalar(ScalarType::Int64);

    #[test]
    fn what_is_saved_can_be_planned() {
        let team = edition(
            "g.V(who).in('reportsTo').limit(most)",
            vec![parameter("who", TEXT, None), parameter("most", INT, Some("10"))],
        );
        check("team", &team).unwrap();
        let rejected = |text: &str, parameters| check("q", &edition(text, parameters)).unwrap_err().to_string();
        let long = format!("g.V(){}", ".identity()".repeat(TEXT_BYTES_MAX));
        assert!(rejected(&long, vec![]).contains("16384 is the most"));
        assert!(rejected("g.V(", vec![]).starts_with("query \"q\": line 1, column 5"));
        assert!(rejected("g.V(who)", vec![]).contains("`who` has no value"));
        assert!(rejected("g.V().program()", vec![]).contains("`program` is not supported"));
        assert!(rejected("g.V(); g.E()", vec![]).contains("is not one traversal"));
        assert!(rejected("g.tx().commit()", vec![]).contains("is not one traversal"));
        assert!(rejected("g.V().next()", vec![]).contains("is not one traversal"));
        assert!(rejected("g.call('other')", vec![]).contains("cannot call another"));
        assert!(rejected("g.V().limit(most)", vec![parameter("most", TEXT, None)]).contains("takes an integer"));
        assert!(rejected("g.V()", vec![parameter("who", TEXT, None)]).contains("does not occur in its text"));
        assert!(rejected("g.V(who)", vec![parameter("who", TEXT, Some("7"))]).contains("which is not a string"));
        assert!(rejected("g.V(id)", vec![parameter("id", TEXT, None)]).contains("it is a word of Gremlin"));
        assert!(rejected("g.V(g)", vec![parameter("desc", TEXT, None)]).contains("it is a word of Gremlin"));
    }

    #[test]
    fn values_are_checked_by_their_types() {
        let scalar = PropertyType::Scalar;
        let json = |kind, json: &str| typed(&graphson::read_value(json.as_bytes()).unwrap(), kind);
        assert_eq!(json(INT, "7"), Some(Value::from(7_i64)));
        assert_eq!(json(scalar(ScalarType::Float64), "7"), Some(Value::from(7.0)));
        assert_eq!(json(TEXT, "\"a\""), Some(Value::from("a")));
        let list = Value::List(vec![Value::from(1_i64), Value::from(2_i64)]);
        assert_eq!(json(PropertyType::List(ScalarType::Int64), "[1, 2]"), Some(list));
        let day = json(scalar(ScalarType::Date), "\"2024-02-29\"").unwrap();
        assert_eq!(
            day.to_string(),
            json(scalar(ScalarType::Timestamp), "\"2024-02-29T00:00:00Z\"").unwrap().to_string()
        );
        for (kind, wrong) in [
            (INT, "\"7\""),
            (INT, "7.5"),
            (INT, "9223372036854775808"),
            (INT, "null"),
            (TEXT, "7"),
            (scalar(ScalarType::Float64), "\"7\""),
            (scalar(ScalarType::Bool), "1"),
            (scalar(ScalarType::Date), "\"2024-02-30\""),
            (scalar(ScalarType::Timestamp), "\"soon\""),
            (PropertyType::List(ScalarType::Int64), "[1, \"a\"]"),
            (PropertyType::List(ScalarType::Int64), "1"),
        ] {
            assert_eq!(json(kind, wrong), None, "{kind} {wrong}");
        }
    }

    #[test]
    fn parameters_are_those_that_were_declared() {
        let team =
            edition("g.V(who).limit(most)", vec![parameter("who", TEXT, None), parameter("most", INT, Some("10"))]);
        let bound = |given: &[(&str, Value)]| {
            bind("team", &team, given.iter().map(|(name, value)| ((*name).into(), value.clone())).collect())
        };
        let all = [("who".into(), Value::from("a")), ("most".into(), Value::from(10_i64))];
        assert_eq!(bound(&[("who", "a".into())]).unwrap(), all);
        let rejected = |given: &[(&str, Value)]| bound(given).unwrap_err().to_string();
        assert_eq!(rejected(&[]), "query \"team\" needs parameter who; it takes who: string, most: int64 = 10");
        assert!(rejected(&[("who", 7.into())]).contains("takes a string as parameter who, and 7 is not one"));
        assert!(rejected(&[("WHO", "a".into())]).contains("has no parameter WHO; it takes who"));
        assert!(rejected(&[("who", "a".into()), ("who", "b".into())]).contains("two values"));
        assert!(rejected(&[("most", "x".repeat(5_000).as_str().into())]).len() < 250);
    }
}
