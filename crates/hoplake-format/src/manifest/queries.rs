//! Prepared queries in a manifest: to their messages and back.

use super::{
    corrupt,
    messages::{EditionMessage, ParameterMessage, QueryMessage},
    wire::{kind_number, property_type},
};
use crate::{FormatError, PreparedQueries, PreparedQuery, QueryEdition, QueryParameter};

pub(super) fn messages(queries: &PreparedQueries) -> Vec<QueryMessage> {
    let parameter = |parameter: &QueryParameter| ParameterMessage {
        name: parameter.name.clone(),
        kind: kind_number(parameter.kind),
        default: parameter.default.clone(),
    };
    let edition = |edition: &QueryEdition| EditionMessage {
        number: edition.number,
        text: edition.text.clone(),
        parameters: edition.parameters.iter().map(parameter).collect(),
        description: edition.description.clone(),
        saved_unix_ms: edition.saved_unix_ms,
    };
    let query = |(name, query): (&String, &PreparedQuery)| QueryMessage {
        name: name.clone(),
        last: query.last,
        editions: query.editions.iter().map(edition).collect(),
    };
    queries.0.iter().map(query).collect()
}

pub(super) fn read(messages: Vec<QueryMessage>) -> Result<PreparedQueries, FormatError> {
    let mut queries = PreparedQueries::default();
    for QueryMessage { name, last, editions } in messages {
        let editions = editions.into_iter().map(edition).collect::<Result<_, _>>()?;
        if queries.0.insert(name.clone(), PreparedQuery { last, editions }).is_some() {
            return Err(corrupt(format!("it has query {name:?} twice")));
        }
    }
    queries.check().map_err(|error| corrupt(error.to_string()))?;
    Ok(queries)
}

fn edition(message: EditionMessage) -> Result<QueryEdition, FormatError> {
    let EditionMessage { number, text, parameters, description, saved_unix_ms } = message;
    let parameter =
        |ParameterMessage { name, kind, default }| Ok(QueryParameter { name, kind: property_type(kind)?, default });
    let parameters = parameters.into_iter().map(parameter).collect::<Result<_, FormatError>>()?;
    Ok(QueryEdition { number, text, parameters, description, saved_unix_ms })
}
