//! What planning takes.

use hoplake_format::{PreparedQueries, PropertyType, QueryEdition, QueryParameter, ScalarType};
use hoplake_query::{plan, value::TABLES_MAX};
use hoplake_storage::MemoryBudget;

use super::*;
use crate::{prepared::Named, script::Statement, text};

fn planned(query: &str, names: &[Named], bytes: u64) -> Result<(), String> {
    let mut queries = PreparedQueries::default();
    let name = QueryParameter { name: "x".into(), kind: PropertyType::Scalar(ScalarType::String), default: None };
    let edition = QueryEdition {
        text: format!("g.inject({}x)", "x, ".repeat(1_000)),
        parameters: vec![name],
        ..QueryEdition::default()
    };
    queries.save("many", edition).unwrap();
    let budget = MemoryBudget::new("the query", bytes);
    let script = text::parse(query).unwrap();
    let Statement::Traversal(traversal, _) = &script.statements[0] else { panic!("{query}") };
    let outcome = lower_within(traversal, Names(names), &queries, &QueryContext::within(&budget));
    assert!(budget.peak() <= bytes);
    outcome.map(drop).map_err(|error| error.to_string())
}

/// Wherever an argument may stand, the value of a name may.
#[test]
fn values_of_names_are_counted_before_they_are_copied() {
    let names = [("x".into(), Value::from("x".repeat(10_000).as_str()))];
    let many = "x, ".repeat(1_000);
    for query in [
        format!("g.inject({many}x)"),
        format!("g.inject([{many}x])"),
        format!("g.inject([a: [{many}x]])"),
        format!("g.V().has('name', within({many}x))"),
        format!("g.V().where(__.values('name').is(within([{many}x])))"),
        format!("g.V(){}", ".has('name', x)".repeat(1_000)),
        format!("g.withSideEffect('s', [{many}x]).V()"),
        format!("g.addV('a'){}", ".property('name', x)".repeat(1_000)),
        "g.call('many', [x: x])".to_owned(),
        "g.call('many').with('x', x)".to_owned(),
    ] {
        let short: String = query.chars().take(60).collect();
        let error = planned(&query, &names, 8 << 20).expect_err(&short);
        assert!(error.contains("bytes of memory"), "{short}: {error}");
        planned(&query, &names, 256 << 20).unwrap_or_else(|error| panic!("{short}: {error}"));
    }
    // Those of the text are copied as well, and regular expressions are compiled.
    let regexes = ".has('name', regex('\\\\w{100}'))".repeat(8);
    let error = planned(&format!("g.V(){regexes}"), &[], 16 << 20).unwrap_err();
    assert!(error.contains("bytes of memory"), "{error}");
    planned(&format!("g.V(){regexes}"), &[], 256 << 20).unwrap();
    planned(&format!("g.V(){}", ".has('name', regex('a.c'))".repeat(8)), &[], 8 << 20).unwrap();
    for (regex, why) in [
        ("a".repeat(2_001), "2000 is the most"),
        (r"\w{1000}".to_owned(), "more than"),
        ("(".to_owned(), "unclosed group"),
    ] {
        let error = planned(&format!("g.V().has('name', regex('{}'))", regex.replace('\\', r"\\")), &[], 256 << 20)
            .unwrap_err();
        assert!(error.contains(why), "{error}");
    }
    let numbers = "1, ".repeat(100_000);
    assert!(planned(&format!("g.inject({numbers}1)"), &[], 4 << 20).is_err());
    let names: Vec<Named> = (0..=NAMES_MAX).map(|number| (format!("n{number}").into(), 1.into())).collect();
    assert!(planned("g.inject(n1)", &names, 1 << 30).unwrap_err().contains("1000 is the most"));
    planned("g.inject(n1)", &names[1..], 1 << 30).unwrap();
}

/// What waits to be run is counted by what its plan says.
#[test]
fn a_plan_says_what_it_takes() {
    for query in ["g.inject(1)", "g.V().out()", "g.V().out().explain()", "g.V().out().profile()"] {
        let script = text::parse(query).unwrap();
        let Statement::Traversal(traversal, _) = &script.statements[0] else { panic!("{query}") };
        let plan = lower_within(traversal, Names::default(), &PreparedQueries::default(), &QueryContext::new());
        assert!(plan.unwrap().settings.plan_bytes >= plan::STEP_BYTES, "{query}");
    }
}

/// However they come: in the text, in its parameters, and as the value of a name in a set of the text.
#[test]
fn sets_nest_to_a_bound() {
    let nested = |inner: &str, levels: usize| format!("{}{inner}{}", "{0, ".repeat(levels), "}".repeat(levels));
    let with = |query: &str, names: &[Named]| planned(query, names, 64 << 20);
    let too_deep = |outcome: Result<(), String>| outcome.unwrap_err().contains("pass inner sets as lists");
    let inject = |levels| format!("g.inject({})", nested("x", levels));
    let x = |value| [("x".into(), value)];
    with(&inject(TABLES_MAX), &x(1.into())).unwrap();
    assert!(too_deep(with(&inject(TABLES_MAX + 1), &x(1.into()))));
    let set = || Value::Set(vec![1.into(), 2.into()]);
    with(&inject(TABLES_MAX - 1), &x(set())).unwrap();
    assert!(too_deep(with(&inject(TABLES_MAX), &x(set()))));
    let context = QueryContext::new();
    parameters(&format!("[a: {}]", nested("1", TABLES_MAX)), &context).unwrap();
    let error = parameters(&format!("[a: {}]", nested("1", TABLES_MAX + 1)), &context).unwrap_err();
    assert!(too_deep(Err(error.to_string())));
}

/// Wherever an argument may stand, making its value ends with the query.
#[test]
fn arguments_are_lowered_until_the_deadline() {
    let many = "1, ".repeat(10_000);
    for query in [
        format!("g.inject({many}1)"),
        format!("g.inject([{many}1])"),
        format!("g.inject({{{many}1}})"),
        format!("g.inject([{}a: 1])", "a: 1, ".repeat(10_000)),
        format!("g.V().has('name', within({many}1))"),
        format!("g.V().where(__.values('name').is(within([{many}1])))"),
        format!("g.withSideEffect('s', [{many}1]).V()"),
        format!("g.V({many}1)"),
        format!("g.addV('a').property('list', [{many}1])"),
        format!("g.V().out({}'a')", "'a', ".repeat(9_999)),
        format!("g.call('many', [x: [{many}1]])"),
        "g.V().has('name', regex('a'))".to_owned(),
    ] {
        let short: String = query.chars().take(60).collect();
        let script = text::parse(&query).unwrap();
        let Statement::Traversal(traversal, _) = &script.statements[0] else { panic!("{query}") };
        let context = QueryContext::new();
        context.give_time(Some(0));
        let error = lower_within(traversal, Names::default(), &PreparedQueries::default(), &context);
        assert!(error.map(drop).expect_err(&short).to_string().contains("0 ms"), "{short}");
    }
    let context = QueryContext::new();
    context.give_time(Some(0));
    let error = parameters(&format!("[a: [{many}1]]"), &context).unwrap_err();
    assert!(error.to_string().contains("0 ms"), "{error}");
}
