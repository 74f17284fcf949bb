//! Planning as the work of a query: it counts against the query's memory, and ends at its deadline.
//!
//! A text of a megabyte has a hundred thousand steps. A rule that looks at a traversal within another for each step that has it, or
//! copies it, does the square of that.

use std::collections::HashMap;

use hoplake_storage::{MemoryHold, PIECE_UNITS, Pace, QueryContext};

use super::{
    Names,
    pattern::{self, Failure, Pattern},
};
use crate::{
    deep::block_in_place_if,
    error::GremlinError,
    literal::Literal,
    run::value_bytes,
    script::{Argument, Traversal},
    value::Value,
};

/// What a step takes: its call, itself, and what runs it.
pub(crate) const STEP_BYTES: u64 = 1 << 10;

/// Names that values are passed for, at most: each use of a name looks through them. TinkerPop's server has 16 by default.
const NAMES_MAX: usize = 1_000;

/// How many times a value is there while its step is made: those of sets and maps are in a table, too, which finds equal ones.
const VALUE_COPIES: u64 = 2;

/// What the program of a regular expression may take: that of `\w{100}` takes 1.8 MB.
const PROGRAM_BYTES: [usize; 3] = [64 << 10, 1 << 20, 10 << 20];

/// Small regular expressions of a plan that are compiled without giving up the thread. One takes up to a few milliseconds.
const PATTERNS_IN_PLACE: usize = 2;

/// Units of work that a step is.
const STEP_UNITS: u64 = 16;

/// Units of work that an argument is.
const ARGUMENT_UNITS: u64 = 8;

/// The work of a plan.
#[derive(Debug)]
pub(super) struct Work {
    context: QueryContext,
    hold: MemoryHold,
    pace: Pace,
    /// Regular expressions that were compiled.
    patterns: usize,
    /// Why there is no more of it.
    failure: Option<GremlinError>,
}

impl Work {
    pub(super) fn new(context: &QueryContext) -> Result<Self, GremlinError> {
        Ok(Self { context: context.clone(), hold: context.hold(0)?, pace: context.pace(), patterns: 0, failure: None })
    }

    /// Brings the deadline forward.
    pub(super) fn give_time(&self, timeout_ms: u64) {
        // As in TinkerPop, 0 is no limit.
        if timeout_ms > 0 {
            self.context.give_time_at_most(timeout_ms);
        }
    }

    /// Notes steps that are looked at. After a failure there is nothing more to do.
    pub(super) fn looks_at(&mut self, steps: usize) -> bool {
        if self.failure.is_none() {
            self.failure = self.pace.check(1 + steps as u64 * STEP_UNITS).err().map(Into::into);
        }
        self.failure.is_none()
    }

    /// Notes arguments that become values.
    ///
    /// # Errors
    /// A limit, if the query's time is used up.
    pub(super) fn converts(&mut self, arguments: usize) -> Result<(), GremlinError> {
        Ok(self.pace.check(arguments as u64 * ARGUMENT_UNITS)?)
    }

    /// Compiles a regular expression. What it takes counts before it is there: its program as the smallest of some sizes that is enough,
    /// since how large one will be cannot be asked.
    ///
    /// # Errors
    /// A limit; that it is not a regular expression.
    pub(super) fn compiles(&mut self, text: &str) -> Result<Pattern, GremlinError> {
        let length = text.len();
        if length > pattern::LENGTH_MAX {
            return Err(GremlinError::invalid(format!(
                "a regular expression of {length} bytes: {} is the most. Write several, joined with `or`",
                pattern::LENGTH_MAX
            )));
        }
        self.patterns += 1;
        let has_many = self.patterns > PATTERNS_IN_PLACE;
        let before = self.hold.bytes();
        let wrong =
            |why: &str| GremlinError::invalid(format!("{text:?} is not a regular expression that is supported: {why}"));
        for bytes in PROGRAM_BYTES {
            // Twice: while it is made it is there in two forms.
            self.context.resize(&mut self.hold, before + (length * pattern::PARSED_BYTES + 2 * bytes) as u64)?;
            self.pace.check(PIECE_UNITS)?;
            let hold = |taken: usize| Ok(self.context.resize(&mut self.hold, before + taken as u64)?);
            let compile = || Pattern::compile(text, bytes, hold);
            match block_in_place_if(has_many || bytes > PROGRAM_BYTES[0], compile)? {
                Ok(pattern) => return Ok(pattern),
                Err(Failure::Wrong(why)) => return Err(wrong(&why)),
                Err(Failure::TooLarge) => {}
            }
        }
        Err(wrong(&format!("its program takes more than {} bytes", PROGRAM_BYTES[PROGRAM_BYTES.len() - 1])))
    }

    /// Notes steps that are made, before they are. After a failure there is nothing more to do.
    pub(super) fn makes(&mut self, steps: usize) -> bool {
        if self.looks_at(steps) {
            let bytes = self.hold.bytes().saturating_add(steps as u64 * STEP_BYTES);
            self.failure = self.context.resize(&mut self.hold, bytes).err().map(Into::into);
        }
        self.failure.is_none()
    }

    /// Notes bytes that a plan takes, before it does.
    ///
    /// # Errors
    /// A limit, if they do not fit the query's memory.
    pub(super) fn takes(&mut self, bytes: usize) -> Result<(), GremlinError> {
        let bytes = self.hold.bytes().saturating_add(bytes as u64);
        Ok(self.context.resize(&mut self.hold, bytes)?)
    }

    /// Notes the values that a plan has from a traversal, before they are copied. A name has a copy of its value wherever it is used: a
    /// megabyte that is used by a name of one letter would be a million megabytes.
    ///
    /// # Errors
    /// A limit, if they do not fit the query's memory; that there are too many names.
    pub(super) fn copies(&mut self, traversal: &Traversal, names: Names<'_>) -> Result<(), GremlinError> {
        let count = names.0.len();
        if count > NAMES_MAX {
            return Err(GremlinError::invalid(format!(
                "the query comes with values for {count} names, and {NAMES_MAX} is the most: pass a list or a map as one value"
            )));
        }
        let mut of_names: HashMap<&str, usize> = HashMap::with_capacity(count);
        for (name, value) in names.0 {
            of_names.entry(name).or_insert_with(|| value_bytes(value));
        }
        let mut bytes = 0_usize;
        traversal.visit_arguments(&mut |argument| {
            let one = match argument {
                Argument::Name(name) => of_names.get(&**name).copied().unwrap_or(0),
                Argument::Literal(Literal::Text(text)) => size_of::<Value>() + text.len(),
                _ => size_of::<Value>(),
            };
            bytes = bytes.saturating_add(one);
        });
        let bytes = VALUE_COPIES.saturating_mul(bytes as u64).saturating_add(self.hold.bytes());
        Ok(self.context.resize(&mut self.hold, bytes)?)
    }

    /// What has failed.
    ///
    /// # Errors
    /// A limit, if the query's memory or time is used up.
    pub(super) fn check(&mut self) -> Result<(), GremlinError> {
        self.failure.take().map_or(Ok(()), Err)
    }

    /// What the plan takes.
    pub(super) fn bytes(&self) -> u64 {
        self.hold.bytes()
    }
}

#[cfg(test)]
mod tests {
    use hoplake_format::{PreparedQueries, PropertyType, QueryEdition, QueryParameter, ScalarType};
    use hoplake_storage::MemoryBudget;

    use super::*;
    use crate::{
        plan::{lower_within, parameters},
        prepared::Named,
        script::Statement,
        text,
        value::TABLES_MAX,
    };

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
            assert!(plan.unwrap().settings.plan_bytes >= STEP_BYTES, "{query}");
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
}
