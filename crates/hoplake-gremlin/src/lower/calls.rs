//! `call(…)`: the steps of a prepared query, at the beginning of a traversal.

use std::collections::HashSet;

use hoplake_format::{PreparedQueries, QueryEdition};
use hoplake_query::{error::QueryError, operators::sources, plan::Steps, value::Value};

use super::{
    arguments::{Arguments, Bindings},
    bytes_of_values,
    lowering::{Lowered, Lowering, Names, only},
};
use crate::{
    prepared::{self, Named},
    script::{Argument, Call},
};

/// TinkerPop's name of the service that lists the others.
const DIRECTORY: &str = "--list";

impl Lowering<'_> {
    /// All steps of a traversal, which may begin with a call.
    pub(super) fn steps_on(&mut self, calls: &[Call], queries: &PreparedQueries) -> Lowered<Steps> {
        let Some((call, rest)) = calls.split_first().filter(|(first, _)| is_call(first)) else {
            return self.steps(calls);
        };
        let options = rest.iter().take_while(|call| &*call.name == "with").count();
        let (options, rest) = rest.split_at(options);
        let (service, given) = self.service(call, options)?;
        let called = match &*service {
            DIRECTORY => directory(queries, given)?,
            service => {
                let (name, edition) = prepared::find(queries, service)?;
                self.called(name, edition, given)?
            }
        };
        if rest.is_empty() {
            return Ok(called);
        }
        Ok(called.iter().chain(self.steps(rest)?.iter()).cloned().collect())
    }

    /// What is called, and with which values.
    fn service(&self, call: &Call, options: &[Call]) -> Lowered<(Box<str>, Vec<Named>)> {
        let names = self.names;
        let mut arguments = Arguments::new(call);
        if arguments.len() == 0 && options.is_empty() {
            return Ok((DIRECTORY.into(), Vec::new()));
        }
        let service = match arguments.len() {
            0 => DIRECTORY.into(),
            _ => arguments.text(&names, "the name of a prepared query")?,
        };
        let mut given = Vec::new();
        match arguments.take() {
            None => {}
            Some(Argument::Traversal(_)) => {
                return Err(QueryError::unsupported("`call` takes parameters as a map, and not from a traversal"));
            }
            Some(argument) => match names.value(argument)? {
                Value::Map(entries) => {
                    for (name, value) in entries {
                        // A word such as `id` is a token, and no parameter: the message has it as it was written.
                        let name = if let Value::Text(name) = name { name } else { name.to_string().into() };
                        given.push((name, value));
                    }
                }
                _ => return Err(arguments.wrong("takes a map of parameters after the name")),
            },
        }
        arguments.end()?;
        for option in options {
            let mut arguments = Arguments::new(option);
            let name = arguments.text(&names, "the name of a parameter")?;
            let value = arguments.take().map_or(Ok(true.into()), |value| names.value(value))?;
            arguments.end()?;
            given.push(((&*name).into(), value));
        }
        Ok(((&*service).into(), given))
    }

    /// The steps of a prepared query. What the source of the call asks for holds for them, too.
    fn called(&mut self, name: &str, edition: &QueryEdition, given: Vec<Named>) -> Lowered<Steps> {
        let bound = prepared::bind(name, edition, given)?;
        let traversal = prepared::traversal(name, edition)?;
        let mut inner = Lowering {
            names: Bindings::new(Names(&bound), self.work),
            settings: std::mem::take(&mut self.settings),
            rejects_unlabelled: self.rejects_unlabelled,
            reserved: std::mem::take(&mut self.reserved),
            restrictions: self.restrictions.take(),
            seen: HashSet::new(),
            collecting: std::mem::take(&mut self.collecting),
            work: self.work,
        };
        inner.settings.varies |= traversal.varies();
        self.work.borrow_mut().copies(bytes_of_values(&traversal, Names(&bound))?)?;
        traversal.source.iter().try_for_each(|call| inner.configure(call))?;
        let steps = inner.steps(&traversal.steps)?;
        let Lowering { settings, rejects_unlabelled, reserved, restrictions, seen, collecting, .. } = inner;
        self.collecting = collecting;
        self.settings = settings;
        self.rejects_unlabelled = rejects_unlabelled;
        self.reserved = reserved;
        self.restrictions = restrictions;
        self.seen = seen;
        Ok(steps)
    }
}

/// Whether a step is a call of a prepared query.
fn is_call(step: &Call) -> bool {
    &*step.name == "call"
}

/// The names of all queries; with `verbose`, what each takes and is for, as a map.
fn directory(queries: &PreparedQueries, options: Vec<Named>) -> Lowered<Steps> {
    let mut verbose = false;
    for (name, value) in options {
        match (&*name, value) {
            ("verbose", Value::Boolean(is_verbose)) => verbose = is_verbose,
            _ => return Err(QueryError::invalid("the list of prepared queries has the option `verbose` alone")),
        }
    }
    let parameters = |edition: &QueryEdition| {
        let parameter = |parameter: &hoplake_format::QueryParameter| {
            (parameter.name.as_str().into(), parameter.kind.to_string().as_str().into())
        };
        Value::Map(edition.parameters.iter().map(parameter).collect())
    };
    let described = |(name, edition): (&String, &QueryEdition)| match verbose {
        false => name.as_str().into(),
        true => Value::Map(vec![
            ("name".into(), name.as_str().into()),
            ("number".into(), i64::from(edition.number).into()),
            ("parameters".into(), parameters(edition)),
            ("description".into(), edition.description.as_str().into()),
        ]),
    };
    let newest = queries.0.iter().filter_map(|(name, query)| Some((name, query.editions.last()?)));
    let inject = sources::Inject { values: newest.map(described).collect() };
    Ok(only(inject))
}

#[cfg(test)]
mod tests {
    use hoplake_format::{PropertyType, QueryParameter, ScalarType};

    use super::*;
    use crate::{
        lower::{lower, lower_on},
        script::Statement,
        text,
    };
    use hoplake_query::plan::Plan;

    fn queries() -> PreparedQueries {
        let parameter = |name: &str, kind, default: Option<&str>| QueryParameter {
            name: name.into(),
            kind: PropertyType::Scalar(kind),
            default: default.map(str::to_owned),
        };
        let mut queries = PreparedQueries::default();
        let mut save = |name: &str, text: &str, parameters| {
            queries.save(name, QueryEdition { text: text.into(), parameters, ..QueryEdition::default() }).unwrap();
        };
        save(
            "team",
            "g.V(who).in('reportsTo').limit(most)",
            vec![parameter("who", ScalarType::String, None), parameter("most", ScalarType::Int64, Some("10"))],
        );
        save("drawn", "g.V().sample(1)", Vec::new());
        save("add", "g.addV('person')", Vec::new());
        queries
    }

    fn plan(query: &str) -> Lowered<Plan> {
        let script = text::parse(query).unwrap();
        let Statement::Traversal(traversal, _) = &script.statements[0] else { panic!("{query}") };
        let mut plan = lower_on(traversal, Names(&[("most".into(), 3.into())]), &queries())?;
        // The call itself counts as well.
        plan.settings.plan_bytes = 0;
        Ok(plan)
    }

    #[test]
    fn a_call_stands_for_its_steps() {
        let same = |call: &str, text: &str| assert_eq!(plan(call).unwrap(), plan(text).unwrap(), "{call}");
        same("g.call('team', [who: 'a'])", "g.V('a').in('reportsTo').limit(10)");
        same("g.call('team@1', [who: 'a', most: most])", "g.V('a').in('reportsTo').limit(3)");
        same(
            "g.call('team').with('who', 'a').with('most', 2).out().count()",
            "g.V('a').in('reportsTo').limit(2).out().count()",
        );
        same(
            "g.withStrategies(SubgraphStrategy(vertices: __.has('x'))).call('team', [who: 'a'])",
            "g.withStrategies(SubgraphStrategy(vertices: __.has('x'))).V('a').in('reportsTo').limit(10)",
        );
        same("g.call()", "g.inject('add', 'drawn', 'team')");
        same("g.call('--list')", "g.inject('add', 'drawn', 'team')");
        assert!(plan("g.call('drawn')").unwrap().settings.varies);
        assert!(plan("g.call('add')").unwrap().settings.writes);
        assert!(plan("g.withStrategies(ReadOnlyStrategy).call('add')").is_err());
    }

    #[test]
    fn calls_that_cannot_be_are_rejected() {
        let rejected = |query: &str| plan(query).unwrap_err().to_string();
        assert_eq!(rejected("g.call('x')"), "there is no prepared query \"x\"; the graph has add, drawn, team");
        assert!(rejected("g.call('team')").contains("needs parameter who"));
        assert!(rejected("g.call('team', [who: 7])").contains("takes a string"));
        assert!(rejected("g.call('team', [who: 'a', x: 1])").contains("has no parameter x"));
        assert!(rejected("g.call('team', [who: 'a', id: 1])").contains("has no parameter id"));
        assert!(rejected("g.call('team', 'a')").contains("takes a map"));
        assert!(rejected("g.call('team', __.V())").contains("not from a traversal"));
        assert!(rejected("g.call('--list').with('x')").contains("`verbose` alone"));
        assert!(rejected("g.V().call('team')").contains("begins a traversal"));
        assert!(rejected("g.inject(1).map(call('drawn'))").contains("begins a traversal"));
        let script = text::parse("g.call('team')").unwrap();
        let Statement::Traversal(traversal, _) = &script.statements[0] else { panic!() };
        assert!(lower(traversal, Names::default()).unwrap_err().to_string().contains("the graph has none"));
    }
}
