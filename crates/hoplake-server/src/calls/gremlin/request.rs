//! A request of Gremlin, and how its fields are read.
//!
//! A driver's options are the same in both of its protocols, and are answered alike; a field that is null counts as absent:
//!
//! | field | absent | 0 | negative, fraction, or of another type | too large |
//! | --- | --- | --- | --- | --- |
//! | `batchSize` | the protocol's default | rejected | rejected | [`BATCH_MAX`] |
//! | `evaluationTimeout`, `timeoutMillis` or `timeoutMs` | the server's limit | the server's limit | rejected | the server's limit |
//! | `materializeProperties` | `all` | rejected | rejected, unless `all` or `tokens` | – |
//! | `bulkResults` | the protocol's default | rejected | rejected, unless a boolean | – |
//! | `language` | Gremlin | rejected | rejected, unless `gremlin-lang` or `gremlin-groovy` | – |
//! | `bindings` or `parameters` | none | rejected | rejected, unless a map with names as keys | – |
//!
//! The limits of Hoplake's own protocols are those of all its calls: 0 is the server's limit, as is what exceeds it.

use hoplake::gremlin::{self, literal::Number, script::Script, value::Value};

use crate::{calls::requests::GraphRef, failure::Failure, limits::RequestedLimits};

/// Results that are taken at a time, if a request says nothing else.
const BATCH: usize = 1_000;
/// The most results that are taken at a time, or are in a message.
const BATCH_MAX: usize = 10_000;
/// The names that drivers have for the time of a request, in milliseconds.
const TIMEOUTS: [&str; 3] = ["evaluationTimeout", "timeoutMillis", "timeoutMs"];
/// The names of the language: Groovy's is what drivers of TinkerPop 3 call a text, whatever it uses of Groovy.
const LANGUAGES: [&str; 2] = ["gremlin-lang", "gremlin-groovy"];

/// A request of Gremlin, whatever its protocol.
#[derive(Debug)]
pub(crate) struct GremlinRequest {
    pub(crate) graph: GraphRef,
    /// Whether the name is what a driver calls the graph, which may be `g` for the usual one.
    pub(crate) is_alias: bool,
    pub(crate) script: Script,
    /// The prepared query that it calls, if that is all of it: that it does not exist is another failure than a wrong call.
    pub(crate) prepared: Option<String>,
    /// The values of names in it.
    pub(crate) names: Vec<gremlin::Named>,
    pub(crate) options: GremlinOptions,
    pub(crate) limits: RequestedLimits,
}

/// How results are returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct GremlinOptions {
    /// Results that are taken at a time.
    pub(crate) batch: usize,
    /// Whether equal results are one, with their number.
    pub(crate) is_bulked: bool,
    /// Whether elements come with their properties.
    pub(crate) properties: bool,
}

impl Default for GremlinOptions {
    fn default() -> Self {
        Self { batch: BATCH, is_bulked: false, properties: true }
    }
}

/// The options of a driver's request.
pub(crate) struct DriverOptions {
    pub(crate) options: GremlinOptions,
    pub(crate) limits: RequestedLimits,
}

impl DriverOptions {
    /// Reads them; `option` returns the value of a field by its name.
    ///
    /// # Errors
    /// [`Reason::Invalid`](crate::Reason::Invalid), with the name of the field and what it may be.
    pub(crate) fn read<'a>(
        option: impl Fn(&str) -> Option<&'a Value>,
        defaults: GremlinOptions,
    ) -> Result<Self, Failure> {
        let option = |name: &str| option(name).filter(|value| **value != Value::Null);
        let wrong = |name: &str, allowed: &str| Failure::invalid(format!("`{name}` must be {allowed}"));
        let batch = match option("batchSize").map(whole) {
            None => defaults.batch,
            Some(Some(batch @ 1..)) => usize::try_from(batch).map_or(BATCH_MAX, |batch| batch.min(BATCH_MAX)),
            Some(_) => return Err(wrong("batchSize", "a whole number, 1 or more")),
        };
        let mut limits = RequestedLimits::default();
        for name in TIMEOUTS {
            if let Some(time) = option(name) {
                limits.time_ms = whole(time).ok_or_else(|| wrong(name, "a whole number of milliseconds, 0 or more"))?;
            }
        }
        let properties = match option("materializeProperties") {
            None => defaults.properties,
            Some(Value::Text(text)) if &**text == "all" => true,
            Some(Value::Text(text)) if &**text == "tokens" => false,
            Some(_) => return Err(wrong("materializeProperties", "\"all\" or \"tokens\"")),
        };
        let is_bulked = match option("bulkResults") {
            None => defaults.is_bulked,
            Some(Value::Boolean(is_bulked)) => *is_bulked,
            Some(_) => return Err(wrong("bulkResults", "true or false")),
        };
        match option("language") {
            None => {}
            Some(Value::Text(language)) if LANGUAGES.contains(&&**language) => {}
            Some(_) => return Err(wrong("language", "gremlin-lang")),
        }
        Ok(Self { options: GremlinOptions { batch, is_bulked, properties }, limits })
    }
}

/// A whole number of 64 bits that is not negative.
fn whole(value: &Value) -> Option<u64> {
    match value {
        Value::Number(Number::Byte(number)) => u64::try_from(*number).ok(),
        Value::Number(Number::Short(number)) => u64::try_from(*number).ok(),
        Value::Number(Number::Int(number)) => u64::try_from(*number).ok(),
        Value::Number(Number::Long(number)) => u64::try_from(*number).ok(),
        _ => None,
    }
}

/// The values of names, from the field of a driver's request that has them.
///
/// # Errors
/// [`Reason::Invalid`](crate::Reason::Invalid) if it is not a map with names as keys.
pub(crate) fn names_of(field: &str, names: Value) -> Result<Vec<gremlin::Named>, Failure> {
    let wrong = || Failure::invalid(format!("`{field}` must be a map of names to values"));
    match names {
        Value::Null => Ok(Vec::new()),
        Value::Map(entries) => {
            let named = |(name, value)| match name {
                Value::Text(name) => Ok((name, value)),
                _ => Err(wrong()),
            };
            entries.into_iter().map(named).collect()
        }
        _ => Err(wrong()),
    }
}

/// A name and its value, which is JSON or GraphSON.
pub(crate) fn named_value(name: &str, json: &str) -> Result<gremlin::Named, Failure> {
    match gremlin::decode(json.len(), || gremlin::graphson::read_value(json.as_bytes())) {
        Ok(value) => Ok((name.into(), value)),
        Err(error) => Err(Failure::invalid(format!("the value of {name} cannot be read: {error}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(name: &str, value: Value) -> Result<DriverOptions, Failure> {
        let fields = [(name, value)];
        let option = |wanted: &str| fields.iter().find(|(name, _)| *name == wanted).map(|(_, value)| value);
        DriverOptions::read(option, GremlinOptions { batch: 64, ..GremlinOptions::default() })
    }

    /// The table above.
    #[test]
    fn each_field_is_read_by_its_rule() {
        let batch = |value: Value| read("batchSize", value).ok().map(|read| read.options.batch);
        assert_eq!([batch(Value::Null), batch(5.into()), batch(5_i64.into())], [Some(64), Some(5), Some(5)]);
        assert_eq!([batch(10_001.into()), batch(i64::MAX.into())], [Some(BATCH_MAX); 2]);
        for wrong in [0.into(), (-1).into(), 1.5.into(), "5".into(), true.into()] {
            assert_eq!(batch(wrong), None);
        }
        for name in TIMEOUTS {
            let time_ms = |value: Value| read(name, value).ok().map(|read| read.limits.time_ms);
            assert_eq!([time_ms(Value::Null), time_ms(0.into()), time_ms(7.into())], [Some(0), Some(0), Some(7)]);
            assert_eq!(time_ms(i64::MAX.into()), Some(i64::MAX as u64));
            for wrong in [(-1).into(), 1.5.into(), "5".into(), true.into()] {
                assert_eq!(time_ms(wrong), None, "{name}");
            }
        }
        let properties = |value: Value| read("materializeProperties", value).ok().map(|read| read.options.properties);
        let given = [properties(Value::Null), properties("all".into()), properties("tokens".into())];
        assert_eq!((given, properties("some".into())), ([Some(true), Some(true), Some(false)], None));
        let is_bulked = |value: Value| read("bulkResults", value).ok().map(|read| read.options.is_bulked);
        let given = [is_bulked(Value::Null), is_bulked(true.into()), is_bulked("true".into())];
        assert_eq!(given, [Some(false), Some(true), None]);
        let language = |value: Value| read("language", value).is_ok();
        assert!(language(Value::Null) && language("gremlin-lang".into()) && language("gremlin-groovy".into()));
        assert!(!language("sql".into()) && !language(1.into()));
        assert!(names_of("bindings", Value::Null).unwrap().is_empty());
        assert!(names_of("bindings", 1.into()).is_err());
        assert!(names_of("bindings", Value::Map(vec![(1.into(), 1.into())])).is_err());
    }
}
