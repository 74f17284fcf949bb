//! Values between Python and Hoplake, in both directions.
//!
//! A value that the other side cannot hold is an exception that says which it was. What is rounded is what columns and files round, too:
//! decimals with a fraction, and moments with nanoseconds.

use std::time::{Duration, Instant};

use arrow_array::{Array, ArrayRef, RecordBatch};
use hoplake::{
    Key, StartKey, Value as PropertyValue,
    gremlin::{
        literal::Number,
        moment::Moment,
        value::{Edge, Path, Property, Tree, Value, Vertex, VertexProperty},
    },
};
use jiff::{
    SignedDuration,
    civil::{Date, DateTime},
    tz::Offset,
};
use num_bigint::BigInt;
use pyo3::{
    exceptions::PyOverflowError,
    intern,
    prelude::*,
    sync::PyOnceLock,
    types::{
        PyBool, PyBytes, PyDate, PyDateTime, PyDelta, PyDict, PyFloat, PyFrozenSet, PyInt, PyList, PySet, PyString,
        PyTuple, PyTzInfo,
    },
};

use crate::{errors, task::Stop};

/// Values within values, at most. A list that contains itself has more.
const DEPTH_MAX: usize = 64;

/// Items that a result writes out of a bulk set, at most.
const BULK_MAX: u64 = 10_000_000;

/// A row as a dict.
pub fn row<'py>(py: Python<'py>, batch: &RecordBatch, row: usize) -> PyResult<Bound<'py, PyDict>> {
    let values = PyDict::new(py);
    for (field, column) in batch.schema_ref().fields().iter().zip(batch.columns()) {
        values.set_item(field.name(), cell(py, column, row)?)?;
    }
    Ok(values)
}

/// A value of a column.
pub fn cell<'py>(py: Python<'py>, column: &ArrayRef, row: usize) -> PyResult<Bound<'py, PyAny>> {
    use arrow_array::{cast::AsArray, types::UInt64Type};
    match column.as_primitive_opt::<UInt64Type>() {
        // Not of a property: counts and distances.
        Some(numbers) if numbers.is_valid(row) => Ok(numbers.value(row).into_pyobject(py)?.into_any()),
        Some(_) => Ok(py.None().into_bound(py)),
        None => property(py, &PropertyValue::at(column, row)),
    }
}

/// A value of a property.
pub fn property<'py>(py: Python<'py>, value: &PropertyValue) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        PropertyValue::Null => py.None().into_bound(py),
        PropertyValue::Bool(value) => PyBool::new(py, *value).to_owned().into_any(),
        PropertyValue::Int64(value) => value.into_pyobject(py)?.into_any(),
        PropertyValue::Float64(value) => PyFloat::new(py, *value).into_any(),
        PropertyValue::String(value) => PyString::new(py, value).into_any(),
        PropertyValue::Date(days) => date(py, *days)?,
        PropertyValue::Timestamp(micros) => {
            let moment = Moment::since_epoch(SignedDuration::from_micros(*micros));
            datetime(py, moment.ok_or_else(|| far_away("a timestamp"))?)?
        }
        PropertyValue::List(items) => {
            let list = PyList::empty(py);
            for item in items {
                list.append(property(py, item)?)?;
            }
            list.into_any()
        }
    })
}

fn date(py: Python<'_>, days: i32) -> PyResult<Bound<'_, PyAny>> {
    let epoch = jiff::civil::date(1970, 1, 1);
    let date = epoch.checked_add(jiff::Span::new().try_days(days).map_err(|_| far_away("a date"))?);
    let date = date.map_err(|_| far_away("a date"))?;
    let year = i32::from(date.year());
    if year < 1 {
        return Err(far_away("a date"));
    }
    Ok(PyDate::new(py, year, date.month() as u8, date.day() as u8)?.into_any())
}

/// A moment with its offset. Python has microseconds, as a graph has.
fn datetime(py: Python<'_>, moment: Moment) -> PyResult<Bound<'_, PyAny>> {
    let local = moment.local();
    let (year, offset) = (i32::from(local.year()), moment.offset());
    if year < 1 {
        return Err(far_away("a moment"));
    }
    let zone = match offset.seconds() {
        0 => PyTzInfo::utc(py)?.to_owned(),
        seconds => PyTzInfo::fixed_offset(py, PyDelta::new(py, 0, seconds, 0, true)?)?,
    };
    let micros = (local.subsec_nanosecond() / 1_000) as u32;
    let [month, day, hour, minute, second] =
        [local.month(), local.day(), local.hour(), local.minute(), local.second()].map(|part| part as u8);
    Ok(PyDateTime::new(py, year, month, day, hour, minute, second, micros, Some(&zone))?.into_any())
}

fn far_away(what: &str) -> PyErr {
    PyOverflowError::new_err(format!(
        "{what} is outside of the years that Python has, 1 to 9999; take the column with to_arrow()"
    ))
}

/// A class of `hoplake.gremlin`.
fn class<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    static VALUES: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    let module = VALUES.get_or_try_init(py, || Ok::<_, PyErr>(py.import("hoplake.gremlin")?.unbind()))?;
    module.bind(py).getattr(name)
}

/// A result of Gremlin.
pub fn result<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        Value::Null => py.None().into_bound(py),
        Value::Boolean(value) => PyBool::new(py, *value).to_owned().into_any(),
        Value::Number(number) => self::number(py, number)?,
        Value::Text(text) => PyString::new(py, text).into_any(),
        Value::Char(letter) => PyString::new(py, letter.encode_utf8(&mut [0; 4])).into_any(),
        Value::DateTime(moment) => datetime(py, *moment)?,
        Value::Duration(duration) => {
            let micros = duration.as_micros();
            let days = i32::try_from(micros.div_euclid(86_400_000_000)).map_err(|_| far_away("a duration"))?;
            let rest = micros.rem_euclid(86_400_000_000);
            PyDelta::new(py, days, (rest / 1_000_000) as i32, (rest % 1_000_000) as i32, false)?.into_any()
        }
        Value::Uuid(uuid) => py.import("uuid")?.getattr("UUID")?.call1((uuid.to_string(),))?,
        Value::Bytes(bytes) => PyBytes::new(py, bytes).into_any(),
        Value::List(items) => list(py, items)?.into_any(),
        Value::Set(items) => {
            let items = list(py, items)?;
            // A set of Python has no lists and maps.
            match PySet::new(py, items.iter()) {
                Ok(set) if set.len() == items.len() => set.into_any(),
                _ => items.into_any(),
            }
        }
        Value::BulkSet(items) => {
            let count = items.iter().fold(0u64, |sum, (_, count)| sum.saturating_add(*count));
            if count > BULK_MAX {
                let message =
                    format!("a bulk set has {count} items, more than {BULK_MAX}; count them with groupCount()");
                return Err(errors::invalid(py, message));
            }
            let list = PyList::empty(py);
            for (item, count) in items {
                let item = result(py, item)?;
                for _ in 0..*count {
                    list.append(&item)?;
                }
            }
            list.into_any()
        }
        Value::Map(entries) => dict(py, entries.iter().map(|(key, value)| (key, value)))?,
        Value::Entry(entry) => dict(py, [(&entry.0, &entry.1)].into_iter())?,
        Value::Vertex(vertex) => self::vertex(py, vertex)?,
        Value::Edge(edge) => self::edge(py, edge)?,
        Value::VertexProperty(property) => vertex_property(py, property)?,
        Value::Property(property) => plain_property(py, property)?,
        Value::Path(path) => self::path(py, path)?,
        Value::Tree(tree) => self::tree(py, tree)?,
        Value::Graph(graph) => {
            let parts = (list(py, &graph.vertices)?.to_tuple(), list(py, &graph.edges)?.to_tuple());
            class(py, "Subgraph")?.call1(parts)?
        }
        Value::Token(token) => PyString::new(py, token.name()).into_any(),
        Value::Traverser(traverser) => result(py, &traverser.value)?,
        Value::Metrics(_) => {
            let json = value.to_json().to_string();
            py.import("json")?.getattr("loads")?.call1((json,))?
        }
        Value::Unread(_) => return Err(errors::panicked(py, "a result was not read")),
    })
}

fn number<'py>(py: Python<'py>, number: &Number) -> PyResult<Bound<'py, PyAny>> {
    Ok(match number {
        Number::Byte(value) => value.into_pyobject(py)?.into_any(),
        Number::Short(value) => value.into_pyobject(py)?.into_any(),
        Number::Int(value) => value.into_pyobject(py)?.into_any(),
        Number::Long(value) => value.into_pyobject(py)?.into_any(),
        Number::BigInteger(value) => value.into_pyobject(py)?.into_any(),
        Number::Float(value) => PyFloat::new(py, f64::from(*value)).into_any(),
        Number::Double(value) => PyFloat::new(py, *value).into_any(),
        Number::BigDecimal(value) => py.import("decimal")?.getattr("Decimal")?.call1((value.to_string(),))?,
    })
}

fn list<'py>(py: Python<'py>, items: &[Value]) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for item in items {
        list.append(result(py, item)?)?;
    }
    Ok(list)
}

/// A key of a dict: lists and dicts cannot be one, tuples can.
fn hashable<'py>(key: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = key.py();
    if let Ok(list) = key.cast::<PyList>() {
        let items = list.iter().map(hashable).collect::<PyResult<Vec<_>>>()?;
        return Ok(PyTuple::new(py, items)?.into_any());
    }
    if let Ok(dict) = key.cast::<PyDict>() {
        let items = dict.iter().map(|(key, value)| PyTuple::new(py, [hashable(key)?, hashable(value)?]));
        return Ok(PyTuple::new(py, items.collect::<PyResult<Vec<_>>>()?)?.into_any());
    }
    if let Ok(set) = key.cast::<PySet>() {
        return Ok(PyFrozenSet::new(py, set.iter())?.into_any());
    }
    Ok(key)
}

fn dict<'py, 'a>(
    py: Python<'py>,
    entries: impl Iterator<Item = (&'a Value, &'a Value)>,
) -> PyResult<Bound<'py, PyAny>> {
    of_entries(py, entries.map(|(key, value)| Ok((result(py, key)?, result(py, value)?))))
}

/// Entries as a dict, or as a list of pairs if two of them have keys such as 1, 1.0 and true, which are different in Gremlin and one in
/// Python.
fn of_entries<'py>(
    py: Python<'py>,
    entries: impl Iterator<Item = PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)>>,
) -> PyResult<Bound<'py, PyAny>> {
    let dict = PyDict::new(py);
    let pairs = PyList::empty(py);
    for entry in entries {
        let (key, value) = entry?;
        let key = hashable(key)?;
        dict.set_item(&key, &value)?;
        pairs.append((key, value))?;
    }
    Ok(if dict.len() == pairs.len() { dict.into_any() } else { pairs.into_any() })
}

fn vertex<'py>(py: Python<'py>, vertex: &Vertex) -> PyResult<Bound<'py, PyAny>> {
    let Vertex { id, label, properties } = vertex;
    let named = match properties {
        None => py.None().into_bound(py),
        Some(properties) => {
            let named = PyDict::new(py);
            for VertexProperty { key, value, .. } in properties {
                named.set_item(&**key, result(py, value)?)?;
            }
            named.into_any()
        }
    };
    class(py, "Vertex")?.call1((result(py, id)?, &**label, named))
}

fn edge<'py>(py: Python<'py>, edge: &Edge) -> PyResult<Bound<'py, PyAny>> {
    let Edge { id, label, out_vertex, in_vertex, properties } = edge;
    let named = match properties {
        None => py.None().into_bound(py),
        Some(properties) => {
            let named = PyDict::new(py);
            for Property { key, value } in properties {
                named.set_item(&**key, result(py, value)?)?;
            }
            named.into_any()
        }
    };
    let end = |(id, label): &(Value, Box<str>)| class(py, "Vertex")?.call1((result(py, id)?, &**label, py.None()));
    class(py, "Edge")?.call1((result(py, id)?, &**label, end(out_vertex)?, end(in_vertex)?, named))
}

fn vertex_property<'py>(py: Python<'py>, property: &VertexProperty) -> PyResult<Bound<'py, PyAny>> {
    class(py, "Property")?.call1((&*property.key, result(py, &property.value)?))
}

fn plain_property<'py>(py: Python<'py>, property: &Property) -> PyResult<Bound<'py, PyAny>> {
    class(py, "Property")?.call1((&*property.key, result(py, &property.value)?))
}

fn path<'py>(py: Python<'py>, path: &Path) -> PyResult<Bound<'py, PyAny>> {
    let objects = PyList::empty(py);
    let labels = PyList::empty(py);
    for (value, names) in &path.steps {
        objects.append(result(py, value)?)?;
        labels.append(PyFrozenSet::new(py, names.iter().map(|name| &**name))?)?;
    }
    class(py, "Path")?.call1((objects.to_tuple(), labels.to_tuple()))
}

fn tree<'py>(py: Python<'py>, tree: &Tree) -> PyResult<Bound<'py, PyAny>> {
    of_entries(py, tree.branches.iter().map(|(value, below)| Ok((result(py, value)?, self::tree(py, below)?))))
}

/// A parameter of a query of Gremlin.
pub fn parameter(value: &Bound<'_, PyAny>) -> PyResult<Value> {
    parameter_at(value, 0)
}

fn parameter_at(value: &Bound<'_, PyAny>, depth: usize) -> PyResult<Value> {
    let py = value.py();
    if depth > DEPTH_MAX {
        return Err(errors::invalid(py, format!("a value has more than {DEPTH_MAX} levels, or contains itself")));
    }
    if value.is_none() {
        return Ok(Value::Null);
    }
    if let Ok(value) = value.cast::<PyBool>() {
        return Ok(Value::Boolean(value.is_true()));
    }
    if value.is_instance_of::<PyInt>() {
        return integer(value);
    }
    if let Ok(value) = value.cast::<PyFloat>() {
        return Ok(Value::Number(Number::Double(value.value())));
    }
    if let Ok(value) = value.cast::<PyString>() {
        return Ok(Value::Text(text(value)?.into()));
    }
    if let Ok(value) = value.cast::<PyBytes>() {
        return Ok(Value::Bytes(value.as_bytes().into()));
    }
    // One of them is a datetime, which is a date, too.
    if is_missing(value)? {
        return Ok(Value::Null);
    }
    if value.is_instance_of::<PyDateTime>() {
        return Ok(Value::DateTime(moment(value)?));
    }
    if value.is_instance_of::<PyDate>() {
        let date = civil_date(value)?;
        return Ok(Value::DateTime(Moment::of_utc(date.to_datetime(jiff::civil::Time::midnight()))));
    }
    if value.is_instance_of::<PyDelta>() {
        let days: i64 = value.getattr(intern!(py, "days"))?.extract()?;
        let seconds: i64 = value.getattr(intern!(py, "seconds"))?.extract()?;
        let micros: i64 = value.getattr(intern!(py, "microseconds"))?.extract()?;
        let duration = days
            .checked_mul(86_400)
            .and_then(|secs| secs.checked_add(seconds))
            .and_then(|secs| SignedDuration::from_secs(secs).checked_add(SignedDuration::from_micros(micros)));
        return duration.map(Value::Duration).ok_or_else(|| errors::invalid(py, "a duration is out of range"));
    }
    if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
        let items = value.try_iter()?.map(|item| parameter_at(&item?, depth + 1));
        return Ok(Value::List(items.collect::<PyResult<_>>()?));
    }
    if value.is_instance_of::<PySet>() || value.is_instance_of::<PyFrozenSet>() {
        let items = value.try_iter()?.map(|item| parameter_at(&item?, depth + 1));
        return Ok(Value::Set(items.collect::<PyResult<_>>()?));
    }
    if let Ok(map) = value.cast::<PyDict>() {
        // A copy: reading a value may run code that changes the map.
        let entries: Vec<_> = map.copy()?.iter().collect();
        let entry = |(key, value): (Bound<'_, PyAny>, Bound<'_, PyAny>)| {
            Ok((parameter_at(&key, depth + 1)?, parameter_at(&value, depth + 1)?))
        };
        let entries = entries.into_iter().map(entry);
        return Ok(Value::Map(entries.collect::<PyResult<_>>()?));
    }
    if value.is_instance(&class(py, "Vertex")?)? {
        let id = parameter_at(&value.getattr("id")?, depth + 1)?;
        let label = text(value.getattr("label")?.cast::<PyString>()?)?.into();
        return Ok(Value::Vertex(Box::new(Vertex { id, label, properties: None })));
    }
    let kind = value.get_type();
    let name = kind.fully_qualified_name()?.to_string();
    match &*name {
        "decimal.Decimal" => {
            let digits = value.str()?.to_string();
            let parsed =
                digits.parse().map_err(|_| errors::invalid(py, format!("{digits} is not a decimal number")))?;
            Ok(Value::Number(Number::BigDecimal(parsed)))
        }
        "uuid.UUID" => {
            let parsed = value.str()?.to_string().parse();
            Ok(Value::Uuid(parsed.map_err(|_| errors::invalid(py, "a UUID could not be read"))?))
        }
        "numpy.bool" | "numpy.bool_" => Ok(Value::Boolean(value.is_truthy()?)),
        // Numbers of NumPy and others.
        _ if value.hasattr("__index__")? => integer(&value.call_method0("__index__")?),
        _ if is_numpy_float(&name) => Ok(Value::Number(Number::Double(value.extract()?))),
        _ => Err(errors::invalid(py, format!("a {name} cannot be a value of a query"))),
    }
}

fn integer(value: &Bound<'_, PyAny>) -> PyResult<Value> {
    if !value.is_instance_of::<PyInt>() {
        return Err(errors::invalid(value.py(), "__index__ did not return an integer"));
    }
    if let Ok(value) = value.extract::<i32>() {
        return Ok(Value::Number(Number::Int(value)));
    }
    if let Ok(value) = value.extract::<i64>() {
        return Ok(Value::Number(Number::Long(value)));
    }
    let bits: u64 = value.call_method0("bit_length")?.extract()?;
    if bits > 33_000 {
        return Err(errors::invalid(value.py(), format!("an integer has {bits} bits; 33,000 are the most")));
    }
    Ok(Value::Number(Number::BigInteger(value.extract::<BigInt>()?)))
}

/// A text. Python's may have halves of characters, which no text of a graph has.
pub fn text(value: &Bound<'_, PyString>) -> PyResult<String> {
    value.to_cow().map(|text| text.into_owned()).map_err(|_| {
        errors::invalid(
            value.py(),
            "a text has half of a character (a lone surrogate), which cannot be stored or compared",
        )
    })
}

fn civil_date(value: &Bound<'_, PyAny>) -> PyResult<Date> {
    let py = value.py();
    let part = |name: &str| value.getattr(name)?.extract::<i16>();
    let date = Date::new(part("year")?, part("month")? as i8, part("day")? as i8);
    date.map_err(|_| errors::invalid(py, "a date is out of range"))
}

/// A moment of a `datetime`: without a time zone it is of UTC, and what is finer than a microsecond is rounded down, as in columns and
/// files.
fn moment(value: &Bound<'_, PyAny>) -> PyResult<Moment> {
    let py = value.py();
    let offset = value.call_method0(intern!(py, "utcoffset"))?;
    let seconds: f64 = match offset.is_none() {
        true => 0.0,
        false => offset.call_method0("total_seconds")?.extract()?,
    };
    let date = civil_date(value)?;
    let part = |name: &str| value.getattr(name)?.extract::<i8>();
    let micros: i32 = value.getattr("microsecond")?.extract()?;
    let out_of_range = || errors::invalid(py, "a datetime is out of range");
    let local = DateTime::new(
        date.year(),
        date.month(),
        date.day(),
        part("hour")?,
        part("minute")?,
        part("second")?,
        micros.checked_mul(1_000).ok_or_else(out_of_range)?,
    );
    let local = local.map_err(|_| out_of_range())?;
    if seconds.fract() != 0.0 {
        return Err(errors::invalid(py, "a time zone has an offset with a fraction of a second"));
    }
    let offset = Offset::from_seconds(seconds as i32).map_err(|_| out_of_range())?;
    Moment::of_local(local, offset).ok_or_else(out_of_range)
}

/// A value of a property.
pub fn property_value(value: &Bound<'_, PyAny>) -> PyResult<PropertyValue> {
    if is_list(value) {
        return list_value(value);
    }
    if kind_of(value)? == "numpy.ndarray" {
        // Its moments become integers, without their unit.
        let kind: String = value.getattr("dtype")?.getattr("kind")?.extract()?;
        if matches!(&*kind, "M" | "m") {
            let message = "an array of NumPy with dates or durations cannot be a property; give a list of datetime";
            return Err(errors::invalid(value.py(), message));
        }
        let items = value.call_method0("tolist")?;
        return if is_list(&items) { list_value(&items) } else { scalar_value(&items) };
    }
    scalar_value(value)
}

fn is_list(value: &Bound<'_, PyAny>) -> bool {
    value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>()
}

fn list_value(value: &Bound<'_, PyAny>) -> PyResult<PropertyValue> {
    let items = value.try_iter()?.map(|item| scalar_value(&item?)).collect::<PyResult<_>>()?;
    Ok(PropertyValue::List(items))
}

fn kind_of(value: &Bound<'_, PyAny>) -> PyResult<String> {
    Ok(value.get_type().fully_qualified_name()?.to_string())
}

/// Whether it is None, or what pandas has in its place.
fn is_missing(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    let is_of_pandas = |kind: &str| {
        matches!(
            kind,
            "pandas._libs.missing.NAType"
                | "pandas.api.typing.NAType"
                | "pandas._libs.tslibs.nattype.NaTType"
                | "pandas.api.typing.NaTType"
        )
    };
    Ok(value.is_none() || is_of_pandas(&kind_of(value)?))
}

/// A value of a property that is not a list.
fn scalar_value(value: &Bound<'_, PyAny>) -> PyResult<PropertyValue> {
    let py = value.py();
    if let Ok(value) = value.cast::<PyBool>() {
        return Ok(PropertyValue::Bool(value.is_true()));
    }
    if value.is_instance_of::<PyInt>() {
        return Ok(PropertyValue::Int64(int64(value)?));
    }
    if let Ok(value) = value.cast::<PyFloat>() {
        return Ok(PropertyValue::Float64(value.value()));
    }
    if let Ok(value) = value.cast::<PyString>() {
        return Ok(PropertyValue::String(text(value)?));
    }
    // One of them is a datetime.
    if is_missing(value)? {
        return Ok(PropertyValue::Null);
    }
    if is_list(value) {
        return Err(errors::invalid(py, "a list within a list cannot be a property"));
    }
    if value.is_instance_of::<PyDateTime>() {
        return Ok(PropertyValue::Timestamp(moment(value)?.micros()));
    }
    if value.is_instance_of::<PyDate>() {
        let days = civil_date(value)?.since(jiff::civil::date(1970, 1, 1)).map(|span| span.get_days());
        return Ok(PropertyValue::Date(days.map_err(|_| errors::invalid(py, "a date is out of range"))?));
    }
    let kind = kind_of(value)?;
    match &*kind {
        "numpy.bool" | "numpy.bool_" => return Ok(PropertyValue::Bool(value.is_truthy()?)),
        "numpy.ndarray" => return Err(errors::invalid(py, "a list within a list cannot be a property")),
        _ if value.hasattr("__index__")? => {
            return Ok(PropertyValue::Int64(int64(&value.call_method0("__index__")?)?));
        }
        _ if is_numpy_float(&kind) => return Ok(PropertyValue::Float64(value.extract()?)),
        "decimal.Decimal" => return decimal(value),
        _ => {}
    }
    Err(errors::invalid(
        py,
        format!(
            "a {kind} cannot be a property; there are bool, int, float, str, date, datetime, Decimal and lists of these"
        ),
    ))
}

/// Values of a column between two looks at the time.
const ITEMS: usize = 1 << 10;
/// How long values are read before other threads get the interpreter lock, such as the one that waits for this one. A thread that waits
/// demands the lock after 5 ms without a release: shorter turns would keep it waiting, since this thread takes the lock back at once.
const TURN: Duration = Duration::from_millis(10);

/// A `Decimal` as columns and files have it: an integer if it has no digits after the point, and otherwise the nearest float.
fn decimal(value: &Bound<'_, PyAny>) -> PyResult<PropertyValue> {
    let exponent = value.call_method0("as_tuple")?.getattr("exponent")?;
    match exponent.extract::<i64>() {
        Ok(0) => Ok(PropertyValue::Int64(int64(&value.call_method0("__int__")?)?)),
        Ok(_) => Ok(PropertyValue::Float64(value.call_method0("__float__")?.extract()?)),
        Err(_) => Err(errors::invalid(value.py(), format!("{} is a Decimal without a finite value", value.str()?))),
    }
}

/// Columns as lists of values, one for each name. It ends early if the task is cancelled.
pub fn batch(columns: &Bound<'_, PyDict>, what: &str, stop: &Stop) -> PyResult<RecordBatch> {
    let py = columns.py();
    let mut arrays: Vec<(String, ArrayRef)> = Vec::new();
    // A copy: reading a value may run code that changes the columns.
    for (name, values) in columns.copy()? {
        let Ok(name) = name.cast::<PyString>() else {
            return Err(errors::invalid(py, format!("{what} has a column whose name is not a str")));
        };
        let name = text(name)?;
        let items = values
            .try_iter()
            .map_err(|_| errors::invalid(py, format!("{what}, column {name}: a column is a list of values")))?;
        let mut read = Vec::new();
        let mut turn = Instant::now();
        for item in items {
            if read.len() % ITEMS == 0 && turn.elapsed() >= TURN {
                py.detach(|| ());
                stop.check()?;
                turn = Instant::now();
            }
            read.push(property_value(&item?)?);
        }
        let items = read;
        let rows = arrays.first().map_or(items.len(), |(_, first)| first.len());
        if items.len() != rows {
            let message = format!("{what}: column {name} has {} values, and the first column {rows}", items.len());
            return Err(errors::invalid(py, message));
        }
        let column = py
            .detach(|| hoplake::tables::column(&items))
            .map_err(|why| errors::invalid(py, format!("{what}, column {name}: {why}")))?;
        arrays.push((name, column));
    }
    let batch = RecordBatch::try_from_iter_with_nullable(arrays.into_iter().map(|(name, column)| (name, column, true)));
    batch.map_err(|error| errors::invalid(py, format!("{what}: {error}")))
}

/// Floating-point numbers that are not Python's own. Others, such as fractions, are not exactly one.
fn is_numpy_float(kind: &str) -> bool {
    matches!(kind, "numpy.float16" | "numpy.float32" | "numpy.float64")
}

fn int64(value: &Bound<'_, PyAny>) -> PyResult<i64> {
    if !value.is_instance_of::<PyInt>() {
        return Err(errors::invalid(value.py(), "__index__ did not return an integer"));
    }
    value.extract::<i64>().map_err(|_| {
        errors::invalid(
            value.py(),
            "an integer needs more than 64 bits; write it as text, or as a float if it may be rounded",
        )
    })
}

/// A key of a vertex.
pub fn key(value: &Bound<'_, PyAny>) -> PyResult<Key> {
    if let Ok(value) = value.cast::<PyString>() {
        return Ok(Key::from(text(value)?));
    }
    if !value.is_instance_of::<PyBool>() && value.hasattr("__index__")? {
        return Ok(Key::from(int64(&value.call_method0("__index__")?)?));
    }
    let kind = value.get_type().fully_qualified_name()?;
    Err(errors::invalid(value.py(), format!("a {kind} cannot be a key; keys are int or str")))
}

/// A key as a result has it.
pub fn key_object<'py>(py: Python<'py>, key: &Key) -> PyResult<Bound<'py, PyAny>> {
    Ok(match key {
        Key::Int64(key) => key.into_pyobject(py)?.into_any(),
        Key::String(key) => PyString::new(py, key).into_any(),
    })
}

/// A vertex as a user names it: `"Person:933"`, `"airport[code = AUS]"` or `("Person", 933)`.
pub fn start(value: &Bound<'_, PyAny>) -> PyResult<StartKey> {
    let py = value.py();
    if let Ok(value) = value.cast::<PyString>() {
        return text(value)?.parse().map_err(|error| errors::raised(py, &error));
    }
    if let Ok(pair) = value.cast::<PyTuple>()
        && pair.len() == 2
        && let Ok(label) = pair.get_item(0)?.cast::<PyString>()
    {
        return Ok(StartKey::key(text(label)?, key(&pair.get_item(1)?)?.to_string()));
    }
    let kind = value.get_type().fully_qualified_name()?;
    let message =
        format!("a {kind} does not name a vertex; write \"Person:933\", (\"Person\", 933) or \"airport[code = AUS]\"");
    Err(errors::invalid(py, message))
}
