//! Prepared queries of a graph: saved under a name, called with values.

use hoplake_engine::prepared;
pub use hoplake_engine::prepared::SavedQuery;
use hoplake_format::{PreparedQueries, PropertyType, QueryEdition, QueryParameter, ScalarType};
use hoplake_gremlin::graphson;
use hoplake_storage::Store;

use crate::{
    Error, ErrorKind, Graph,
    graph::reader,
    gremlin::{self, script::Statement, value::Value},
};

impl Graph {
    /// Saves a query of Gremlin under a name, in a version of its own. A name that exists gets another edition with the next number:
    /// the name means the newest edition, and `NAME@NUMBER` the one of that number. The number and the time of `query` do not count.
    ///
    /// ```
    /// # async fn example() -> Result<(), hoplake::Error> {
    /// use hoplake::{Graph, QueryEdition, Store, gremlin::value::Value};
    ///
    /// let store = Store::open("memory://docs/prepared")?;
    /// Graph::create(&store).await?;
    /// let text = "g.V().has('person', 'name', name).values('age')".into();
    /// let parameters = vec![hoplake::gremlin::parameter("name:string")?];
    /// Graph::save_query(&store, "age", &QueryEdition { text, parameters, ..QueryEdition::default() }).await?;
    ///
    /// let graph = Graph::open("memory://docs/prepared").await?;
    /// assert_eq!(graph.queries().find("age").unwrap().1.number, 1);
    /// assert_eq!(graph.call("age", [("name", "Ann".into())]).await?, [] as [Value; 0]);
    /// # Ok(())
    /// # }
    /// # tokio::runtime::Runtime::new().unwrap().block_on(example()).unwrap();
    /// ```
    ///
    /// # Errors
    /// [`Invalid`](ErrorKind::Invalid) if the text cannot be planned with values of its parameters' types, or a name or a size cannot be;
    /// the store's.
    pub async fn save_query(store: &Store, name: &str, query: &QueryEdition) -> Result<SavedQuery, Error> {
        hoplake_gremlin::prepared::check(name, query)?;
        Ok(prepared::save(&reader(store)?, name, query, &mut store.context().branch()).await?)
    }

    /// Deletes a prepared query, or with `NAME@NUMBER` one of its editions, and returns the version without it. Older versions keep it.
    ///
    /// # Errors
    /// [`NotFound`](ErrorKind::NotFound) if there is none; the store's.
    pub async fn delete_query(store: &Store, name: &str) -> Result<u64, Error> {
        Ok(prepared::delete(&reader(store)?, name, &mut store.context().branch()).await?)
    }

    /// The prepared queries of the open version. No request.
    pub fn queries(&self) -> &PreparedQueries {
        &self.manifest().queries
    }

    /// Calls a prepared query, which may read alone, and returns its results. In a [transaction](Self::gremlin) it can be called by
    /// text: `g.call('name', [parameter: 1])`.
    ///
    /// # Errors
    /// [`NotFound`](ErrorKind::NotFound) if there is none of that name; [`Invalid`](ErrorKind::Invalid) if a parameter is missing, unknown
    /// or of another type; as [`Results::next`](gremlin::Results::next).
    pub async fn call<'a>(
        &self,
        name: &str,
        parameters: impl IntoIterator<Item = (&'a str, Value)>,
    ) -> Result<Vec<Value>, Error> {
        self.check_query(name)?;
        let parameters = parameters.into_iter().map(|(name, value)| (name.into(), value)).collect();
        let script = gremlin::call(name, parameters);
        let transaction = self.gremlin_read_only();
        let Some(Statement::Traversal(traversal, _)) = script.statements.first() else { return Ok(Vec::new()) };
        let plan = transaction.plan(traversal, gremlin::Names::default())?;
        gremlin::all(transaction, &plan, &hoplake_storage::QueryContext::new()).await.map(|(results, _)| results)
    }

    /// Whether the open version has a prepared query, or an edition of it.
    ///
    /// # Errors
    /// [`NotFound`](ErrorKind::NotFound) if it has not.
    pub fn check_query(&self, name: &str) -> Result<(), Error> {
        let missing = || {
            let url = self.store().url();
            Error::new(
                ErrorKind::NotFound,
                format!("{url} has no prepared query {name:?} in version {}", self.version()),
            )
        };
        self.queries().find(name).map(drop).ok_or_else(missing)
    }
}

/// Reads a parameter of a prepared query: `NAME:TYPE` or `NAME:TYPE=DEFAULT`. A default is JSON; text and dates may stand without quotes.
///
/// # Errors
/// [`Invalid`](ErrorKind::Invalid) with the forms and types that there are.
pub fn parameter(text: &str) -> Result<QueryParameter, Error> {
    let wrong = |why: &str| {
        let forms = "write NAME:TYPE or NAME:TYPE=DEFAULT, as in id:string or most:int64=10";
        Error::new(ErrorKind::Invalid, format!("{text:?} is not a parameter: {why}; {forms}"))
    };
    let (name, rest) = text.split_once(':').ok_or_else(|| wrong("it has no type"))?;
    let (kind, default) = match rest.split_once('=') {
        Some((kind, default)) => (kind, Some(default)),
        None => (rest, None),
    };
    let kind = parameter_type(kind.trim())?;
    let is_text = matches!(kind, PropertyType::Scalar(ScalarType::String | ScalarType::Date | ScalarType::Timestamp));
    let default = default.map(|default| match graphson::read_value(default.as_bytes()) {
        Ok(value) if !is_text || matches!(value, Value::Text(_)) => default.to_owned(),
        _ if is_text => serde_json::Value::from(default).to_string(),
        _ => default.to_owned(),
    });
    Ok(QueryParameter { name: name.trim().to_owned(), kind, default })
}

/// The type of a parameter by its name.
///
/// # Errors
/// [`Invalid`](ErrorKind::Invalid) with the types that there are.
pub fn parameter_type(name: &str) -> Result<PropertyType, Error> {
    use ScalarType::{Bool, Date, Float64, Int64, String, Timestamp};
    let scalars = [String, Int64, Float64, Bool, Date, Timestamp].map(PropertyType::Scalar);
    let lists = [String, Int64].map(PropertyType::List);
    let known = || scalars.into_iter().chain(lists);
    let kind = PropertyType::from_name(name).filter(|kind| known().any(|other| other == *kind));
    kind.ok_or_else(|| {
        let known = known().map(|kind| kind.to_string()).collect::<Vec<_>>().join(", ");
        Error::new(ErrorKind::Invalid, format!("{name:?} is not the type of a parameter; there are {known}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_read() {
        let read = |text: &str| parameter(text).map(|read| (read.name, read.kind.to_string(), read.default));
        let parts =
            |name: &str, kind: &str, default: Option<&str>| (name.into(), kind.into(), default.map(str::to_owned));
        assert_eq!(read("id:string").unwrap(), parts("id", "string", None));
        assert_eq!(read("most:int64=10").unwrap(), parts("most", "int64", Some("10")));
        assert_eq!(read("name:string=a=b").unwrap(), parts("name", "string", Some("\"a=b\"")));
        assert_eq!(read("name:string=\"7\"").unwrap(), parts("name", "string", Some("\"7\"")));
        assert_eq!(read("name:string=7").unwrap(), parts("name", "string", Some("\"7\"")));
        assert_eq!(read("ids:list<int64>=[1]").unwrap(), parts("ids", "list<int64>", Some("[1]")));
        for wrong in ["id:text", "id:", "ids:list<date>"] {
            assert!(read(wrong).unwrap_err().to_string().contains("is not the type of a parameter"), "{wrong}");
        }
        assert!(read("id").unwrap_err().to_string().contains("it has no type"));
    }
}
