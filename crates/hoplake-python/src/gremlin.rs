//! Gremlin and prepared queries.

use hoplake::{
    Error, Limits, QueryContext, QueryEdition, Store,
    gremlin::{
        self, Names, Wanted,
        script::{Script, Statement},
        value::{Value, value_bytes},
    },
};
use pyo3::{
    prelude::*,
    types::{PyDict, PyList},
};

use crate::{
    errors,
    graph::{Graph, object, with_memory},
    task::Task,
    values,
};

/// Results that are taken at a time.
const RESULTS: usize = 1_000;

/// Values and how many times each stands there.
type Results = Vec<(Value, u64)>;

fn named(parameters: &Bound<'_, PyDict>) -> PyResult<Vec<gremlin::Named>> {
    let one = |(name, value): (Bound<'_, PyAny>, Bound<'_, PyAny>)| {
        Ok((values::text(name.cast()?)?.into(), values::parameter(&value)?))
    };
    // A copy: reading a value may run code that changes it.
    parameters.copy()?.iter().map(one).collect()
}

fn context(limits: &Limits) -> QueryContext {
    let context = QueryContext::new();
    with_memory(limits).apply(&context);
    context
}

/// Runs the statements of a script, and returns the results of the last and the version that its changes are.
async fn run(
    graph: &hoplake::Graph,
    script: &Script,
    names: &[gremlin::Named],
    commit: bool,
    context: &QueryContext,
) -> Result<(Results, Option<u64>), Error> {
    let mut transaction = if commit { graph.gremlin() } else { graph.gremlin_read_only() };
    let mut last = Vec::new();
    let mut memory = context.hold(0)?;
    for statement in &script.statements {
        let Statement::Traversal(traversal, _) = statement else { continue };
        let plan = transaction.plan_within(traversal, Names(names), context)?;
        let mut results = transaction.run(&plan, Wanted { properties: true }, context)?;
        last.clear();
        context.resize(&mut memory, 0)?;
        loop {
            let next = results.next(RESULTS).await?;
            if next.is_empty() {
                break;
            }
            // Python has an object for each result, a reference for each time that it stands there.
            let bytes =
                |(value, bulk): &(Value, u64)| (value_bytes(value) as u64).saturating_add(bulk.saturating_mul(8));
            let bytes = next.iter().map(bytes).fold(0u64, u64::saturating_add);
            let all = memory.bytes().saturating_add(bytes);
            context.resize(&mut memory, all)?;
            last.extend(next);
        }
        transaction = results.into_transaction();
    }
    let committed = if transaction.has_changes() { transaction.commit().await? } else { None };
    Ok((last, committed.map(|committed| committed.version)))
}

/// Results as a list.
fn list<'py>(py: Python<'py>, results: &Results) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for (value, bulk) in results {
        let value = values::result(py, value)?;
        for _ in 0..*bulk {
            list.append(&value)?;
        }
    }
    Ok(list)
}

#[pymethods]
impl Graph {
    /// Runs a query of Gremlin.
    fn query(&self, py: Python<'_>, text: &str, parameters: &Bound<'_, PyDict>, commit: bool) -> PyResult<Task> {
        let context = context(&self.limits);
        let script = gremlin::parse_within(text, &context).map_err(|error| errors::raised(py, &error))?;
        self.gremlin(script, named(parameters)?, commit)
    }

    /// Calls a prepared query.
    fn call(&self, name: &str, parameters: &Bound<'_, PyDict>) -> PyResult<Task> {
        let script = gremlin::call(name, named(parameters)?);
        self.gremlin(script, Vec::new(), false)
    }

    /// Saves a text under a name, and returns its number and the version that has it.
    #[pyo3(signature = (name, text, parameters, description))]
    fn save_query(
        &self,
        py: Python<'_>,
        name: String,
        text: String,
        parameters: Vec<String>,
        description: String,
    ) -> PyResult<Task> {
        let parameters = parameters.iter().map(|parameter| gremlin::parameter(parameter)).collect::<Result<_, _>>();
        let parameters = parameters.map_err(|error| errors::raised(py, &error))?;
        let edition = QueryEdition { text, parameters, description, ..QueryEdition::default() };
        let save = move |store: Store| async move { hoplake::Graph::save_query(&store, &name, &edition).await };
        self.at_store(save, |py, saved| object(py, (saved.number, saved.version)))
    }

    /// Deletes a prepared query or one of its editions, and returns the version without it.
    fn delete_query(&self, name: String) -> PyResult<Task> {
        let delete = move |store: Store| async move { hoplake::Graph::delete_query(&store, &name).await };
        self.at_store(delete, |py, version| object(py, version))
    }

    /// The prepared queries: name, number, text, parameters as `save_query` takes them, description.
    fn queries(&self) -> PyResult<Task> {
        Task::spawn(self.opened.graph(), |py, graph| {
            let list = PyList::empty(py);
            for (name, query) in &graph.queries().0 {
                for edition in &query.editions {
                    let parameters = edition.parameters.iter().map(|it| match &it.default {
                        Some(default) => format!("{}:{}={default}", it.name, it.kind),
                        None => format!("{}:{}", it.name, it.kind),
                    });
                    let parameters: Vec<String> = parameters.collect();
                    list.append((name, edition.number, &edition.text, parameters, &edition.description))?;
                }
            }
            Ok(list.into_any())
        })
    }
}

impl Graph {
    fn gremlin(&self, script: Script, names: Vec<gremlin::Named>, commit: bool) -> PyResult<Task> {
        let limits = with_memory(&self.limits);
        self.ask(
            move |graph, mut query| async move {
                query.limit(&limits);
                let answer = run(&graph, &script, &names, commit, query.context()).await?;
                Ok((answer, query))
            },
            |py, (results, version): (Results, Option<u64>), priced| {
                let results = list(py, &results).map_err(|error| match version {
                    None => error,
                    // What was published is not a failure of the query: it would be repeated.
                    Some(version) => errors::invalid(
                        py,
                        format!("the changes are published as version {version}, but a result is no value of Python: {error}"),
                    ),
                })?;
                object(py, (results, version, priced.object(py)?))
            },
        )
    }
}
