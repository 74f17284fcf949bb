//! Prepared queries, and queries of Gremlin by text: from messages to calls and back.

use std::collections::HashMap;

use hoplake::{QueryEdition, QueryParameter, gremlin};

use super::{receive, writer::Writer};
use crate::{
    calls::{self, Call, GremlinOutcome},
    failure::Failure,
    v1,
};

pub(super) async fn gremlin(
    call: &mut Call,
    request: v1::GremlinRequest,
    writer: &mut Writer<v1::GremlinResponse>,
) -> Result<(), Failure> {
    let graph = receive::graph(request.graph)?;
    let names = values(request.bindings)?;
    let answered = calls::dynamic_query(call, graph, &request.gremlin, names, request.limits.into(), writer).await?;
    end(call, answered, writer);
    Ok(())
}

pub(super) async fn call_query(
    call: &mut Call,
    request: v1::CallQueryRequest,
    writer: &mut Writer<v1::GremlinResponse>,
) -> Result<(), Failure> {
    let graph = receive::graph(request.graph)?;
    let parameters = values(request.parameters)?;
    let answered = calls::call_query(call, graph, &request.query, parameters, request.limits.into(), writer).await?;
    end(call, answered, writer);
    Ok(())
}

fn end(call: &Call, GremlinOutcome { version, cached }: GremlinOutcome, writer: &mut Writer<v1::GremlinResponse>) {
    let last = writer.last();
    last.cost = Some(call.cost.into());
    last.version = version;
    last.cached = cached;
}

pub(super) async fn list_queries(
    call: &mut Call,
    request: v1::ListQueriesRequest,
) -> Result<v1::ListQueriesResponse, Failure> {
    let listed = calls::list_queries(call, &receive::graph(request.graph)?).await?;
    let query = |(name, edition): (String, QueryEdition)| {
        let QueryEdition { number, text, parameters, description, saved_unix_ms } = edition;
        let parameter =
            |QueryParameter { name, kind, default }| v1::QueryParameter { name, r#type: kind.to_string(), default };
        let parameters = parameters.into_iter().map(parameter).collect();
        v1::PreparedQuery { name, number, text, parameters, description, saved_unix_ms }
    };
    Ok(v1::ListQueriesResponse { queries: listed.editions.into_iter().map(query).collect(), version: listed.version })
}

pub(super) async fn save_query(
    call: &mut Call,
    request: v1::SaveQueryRequest,
) -> Result<v1::SaveQueryResponse, Failure> {
    let v1::SaveQueryRequest { graph, name, text, parameters, description } = request;
    let parameter = |v1::QueryParameter { name, r#type, default }| {
        Ok(QueryParameter { name, kind: gremlin::parameter_type(&r#type)?, default })
    };
    let parameters = parameters.into_iter().map(parameter).collect::<Result<_, Failure>>()?;
    let edition = QueryEdition { text, parameters, description, ..QueryEdition::default() };
    let saved = calls::save_query(call, &graph, &name, edition).await?;
    Ok(v1::SaveQueryResponse { number: saved.number, version: saved.version })
}

pub(super) async fn delete_query(
    call: &mut Call,
    request: v1::DeleteQueryRequest,
) -> Result<v1::DeleteQueryResponse, Failure> {
    Ok(v1::DeleteQueryResponse { version: calls::delete_query(call, &request.graph, &request.query).await? })
}

/// JSON as values of Gremlin.
fn values(json: HashMap<String, String>) -> Result<Vec<gremlin::Named>, Failure> {
    // By name: equal calls are equal results only if their parameters come in one order.
    let mut all = json.into_iter().collect::<Vec<_>>();
    all.sort_unstable();
    all.into_iter().map(|(name, json)| calls::named_value(&name, &json)).collect()
}
