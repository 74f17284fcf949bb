//! From bytes to requests, responses and values.

use bigdecimal::BigDecimal;
use hoplake_query::{
    literal::{Literal, Number, SCALE_MAX},
    moment::Moment,
    tokens::Token,
    value::{Edge, Metrics, Path, Property, TraversalMetrics, Traverser, Tree, Value, Vertex, VertexProperty},
};
use jiff::{SignedDuration, civil, tz::Offset};
use num_bigint::BigInt;
use uuid::Uuid;

use super::{
    DEPTH_MAX, DecodeError, NUMBER_BYTES_MAX,
    types::{NULL, Type, VERSION},
};
use crate::{
    bytecode::{self, Bytecode},
    message::{Query, Request, Response},
    script::{Argument, Call},
};

/// The bytes of the least value: a code and a flag.
const VALUE_BYTES_MIN: usize = 2;

/// Items that room is made for before they have been read: lists in lists claim their lengths at once.
const ROOM_MAX: usize = 64;

type Read<T> = Result<T, DecodeError>;

pub struct Reader<'a> {
    bytes: &'a [u8],
    position: usize,
    depth: usize,
    /// Whether what is read is an argument of a step, where a vertex is a reference.
    in_bytecode: bool,
}

impl<'a> Reader<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, position: 0, depth: 0, in_bytecode: false }
    }

    pub fn request(mut self) -> Read<Request> {
        self.version()?;
        let id = self.uuid()?;
        let op = self.text()?;
        let processor = self.text()?;
        let count = self.count(2 * VALUE_BYTES_MIN)?;
        let mut query = None;
        let mut arguments = Vec::with_capacity(count.min(ROOM_MAX));
        for _ in 0..count {
            let name = self.typed_text()?;
            match &*name {
                "gremlin" => query = Some(self.query()?),
                _ => arguments.push((name, self.value()?)),
            }
        }
        self.end()?;
        Ok(Request { id, op, processor, query, arguments })
    }

    pub fn response(mut self) -> Read<Response> {
        self.version()?;
        let request_id = if self.is_null()? { None } else { Some(self.uuid()?) };
        let status = self.int()?;
        let message = if self.is_null()? { None } else { Some(self.text()?) };
        let attributes = self.entries()?;
        let meta = self.entries()?;
        let data = self.value()?;
        self.end()?;
        Ok(Response { request_id, status, message, attributes, data, meta })
    }

    pub fn single_value(mut self) -> Read<Value> {
        let value = self.value()?;
        self.end()?;
        Ok(value)
    }

    fn version(&mut self) -> Read<()> {
        match self.byte()? {
            VERSION => Ok(()),
            other => {
                Err(self.wrong_at(0, format!("a message begins with 0x{VERSION:02x}, and not with 0x{other:02x}")))
            }
        }
    }

    fn end(&self) -> Read<()> {
        match self.left() {
            0 => Ok(()),
            left => Err(self.wrong(format!("{left} bytes follow the end"))),
        }
    }

    fn query(&mut self) -> Read<Query> {
        let begin = self.position;
        match (self.code()?, self.is_null()?) {
            (Type::Text, false) => self.text().map(Query::Text),
            (Type::Bytecode, false) => {
                let bytecode = self.bytecode()?;
                bytecode.into_script().map(Query::Script).map_err(|why| self.wrong_at(begin, why))
            }
            _ => Err(self.wrong_at(begin, "`gremlin` is neither text nor bytecode")),
        }
    }

    /// A value with its type, where only values may stand.
    fn value(&mut self) -> Read<Value> {
        let begin = self.position;
        let argument = self.argument()?;
        argument.try_into().map_err(|error: bytecode::NotAValue| self.wrong_at(begin, error.to_string()))
    }

    /// A value with its type, or what else may be an argument of a step.
    fn argument(&mut self) -> Read<Argument> {
        self.nested(|reader| {
            if reader.bytes.get(reader.position) == Some(&NULL) {
                reader.position += 1;
                return match reader.is_null()? {
                    true => Ok(Argument::Literal(Literal::Null)),
                    false => Err(reader.wrong_at(reader.position - 1, "a null has the flag 1")),
                };
            }
            let begin = reader.position;
            let code = reader.code()?;
            if reader.is_null()? {
                return Ok(Argument::Literal(Literal::Null));
            }
            reader.of_type(code, begin)
        })
    }

    fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Read<T>) -> Read<T> {
        if self.depth == DEPTH_MAX {
            return Err(self.wrong(format!("values nest deeper than {DEPTH_MAX} levels")));
        }
        self.depth += 1;
        let read = read(self);
        self.depth -= 1;
        read
    }

    fn of_type(&mut self, code: Type, begin: usize) -> Read<Argument> {
        let literal = match code {
            Type::Boolean => Literal::Boolean(self.boolean()?),
            Type::Text => Literal::Text(self.text()?),
            Type::Uuid => Literal::Uuid(self.uuid()?),
            Type::Char => Literal::Char(self.character()?),
            Type::Bytes => {
                let length = self.count(1)?;
                Literal::Bytes(self.take(length)?.into())
            }
            Type::Date | Type::Timestamp | Type::Instant | Type::OffsetDateTime | Type::ZonedDateTime => {
                Literal::DateTime(self.time(code)?)
            }
            Type::Duration => Literal::Duration(self.duration()?),
            Type::Byte | Type::Short | Type::Int | Type::Long => Literal::Number(self.integer(code)?),
            Type::Float => Literal::Number(Number::Float(f32::from_be_bytes(self.array()?))),
            Type::Double => Literal::Number(Number::Double(f64::from_be_bytes(self.array()?))),
            Type::BigInteger => Literal::Number(Number::BigInteger(self.big_integer()?)),
            Type::BigDecimal => Literal::Number(Number::BigDecimal(self.big_decimal()?)),
            _ => return self.composite(code, begin),
        };
        Ok(Argument::Literal(literal))
    }

    fn composite(&mut self, code: Type, begin: usize) -> Read<Argument> {
        if let Some(enumeration) = code.enumeration() {
            let name = self.typed_text()?;
            let token = Token::qualified(enumeration, &name);
            return token
                .map(Argument::Token)
                .ok_or_else(|| self.wrong_at(begin, format!("{enumeration} has no value {name:?}")));
        }
        Ok(match code {
            Type::List => Argument::List(self.items(VALUE_BYTES_MIN, Self::argument)?),
            Type::Set => Argument::Set(self.items(VALUE_BYTES_MIN, Self::argument)?),
            Type::Map => Argument::Map(self.items(2 * VALUE_BYTES_MIN, |it| Ok((it.argument()?, it.argument()?)))?),
            Type::Class => bytecode::class(&self.text()?),
            Type::Binding => {
                // The value alone counts: its name is of use to caches of compiled scripts.
                self.text()?;
                self.argument()?
            }
            Type::Bytecode => {
                let bytecode = self.bytecode()?;
                bytecode.into_argument().map_err(|why| self.wrong_at(begin, why))?
            }
            Type::Predicate | Type::TextPredicate => {
                let name = self.text()?;
                let values = self.items(VALUE_BYTES_MIN, Self::argument)?;
                let predicate = bytecode::predicate(&name, values).map_err(|why| self.wrong_at(begin, why))?;
                Argument::Predicate(predicate)
            }
            Type::Strategy => {
                let class = self.text()?;
                let options = self.items(2 * VALUE_BYTES_MIN, |it| Ok((it.typed_text()?, it.argument()?)))?;
                bytecode::strategy(&class, options)
            }
            Type::Vertex => {
                let vertex = self.vertex()?;
                match self.in_bytecode {
                    true => Argument::Vertex(
                        Box::new(vertex.id.into()),
                        Box::new(Argument::Literal(Literal::Text(vertex.label))),
                    ),
                    false => Argument::Value(Box::new(Value::Vertex(Box::new(vertex)))),
                }
            }
            _ => Argument::Value(Box::new(self.result(code)?)),
        })
    }

    /// What results have, and steps seldom take.
    fn result(&mut self, code: Type) -> Read<Value> {
        Ok(match code {
            Type::Edge => Value::Edge(Box::new(self.edge()?)),
            Type::VertexProperty => Value::VertexProperty(Box::new(self.vertex_property()?)),
            Type::Property => Value::Property(Box::new(self.property()?)),
            Type::Path => Value::Path(Box::new(self.path()?)),
            Type::Tree => Value::Tree(self.tree()?),
            Type::BulkSet => {
                let begin = self.position;
                let items = self.items(VALUE_BYTES_MIN + 8, |it| Ok((it.value()?, it.bulk()?)))?;
                bytecode::bulk_set(items).map_err(|error| self.wrong_at(begin, error.to_string()))?
            }
            Type::Traverser => {
                let bulk = self.bulk()?;
                Value::Traverser(Box::new(Traverser { bulk, value: self.value()? }))
            }
            Type::Metrics => {
                Value::Metrics(Box::new(TraversalMetrics { duration_nanos: 0, steps: vec![self.metrics()?] }))
            }
            Type::TraversalMetrics => {
                let duration_nanos = self.long()?;
                Value::Metrics(Box::new(TraversalMetrics { duration_nanos, steps: self.metrics_list()? }))
            }
            other => return Err(self.wrong(format!("{other:?} does not stand here"))),
        })
    }

    /// Items after their number.
    fn items<T>(&mut self, bytes_min: usize, mut item: impl FnMut(&mut Self) -> Read<T>) -> Read<Vec<T>> {
        let count = self.count(bytes_min)?;
        let mut items = Vec::with_capacity(count.min(ROOM_MAX));
        for _ in 0..count {
            items.push(item(self)?);
        }
        Ok(items)
    }

    fn entries(&mut self) -> Read<Vec<(Value, Value)>> {
        self.items(2 * VALUE_BYTES_MIN, |it| Ok((it.value()?, it.value()?)))
    }

    fn bytecode(&mut self) -> Read<Bytecode> {
        let outer = std::mem::replace(&mut self.in_bytecode, true);
        let steps = self.items(8, Self::instruction)?;
        let sources = self.items(8, Self::instruction)?;
        self.in_bytecode = outer;
        Ok(Bytecode { sources, steps })
    }

    fn instruction(&mut self) -> Read<Call> {
        let name = self.text()?;
        Ok(Call { name, arguments: self.items(VALUE_BYTES_MIN, Self::argument)? })
    }

    fn vertex(&mut self) -> Read<Vertex> {
        let id = self.value()?;
        let label = self.text()?;
        let properties = self.properties(|value| match value {
            Value::VertexProperty(property) => Some(*property),
            _ => None,
        })?;
        Ok(Vertex { id, label, properties })
    }

    fn edge(&mut self) -> Read<Edge> {
        let id = self.value()?;
        let label = self.text()?;
        let in_vertex = (self.value()?, self.text()?);
        let out_vertex = (self.value()?, self.text()?);
        self.parent()?;
        Ok(Edge { id, label, out_vertex, in_vertex, properties: self.plain_properties()? })
    }

    fn vertex_property(&mut self) -> Read<VertexProperty> {
        let id = self.value()?;
        let key = self.text()?;
        let value = self.value()?;
        self.parent()?;
        Ok(VertexProperty { id, key: key.into(), value, properties: self.plain_properties()? })
    }

    fn property(&mut self) -> Read<Property> {
        let key = self.text()?;
        let value = self.value()?;
        self.parent()?;
        Ok(Property { key: key.into(), value })
    }

    /// The element that something belongs to: a place that is kept for it, and null.
    fn parent(&mut self) -> Read<()> {
        self.value().map(drop)
    }

    fn plain_properties(&mut self) -> Read<Option<Vec<Property>>> {
        self.properties(|value| match value {
            Value::Property(property) => Some(*property),
            _ => None,
        })
    }

    fn properties<T>(&mut self, property: impl Fn(Value) -> Option<T>) -> Read<Option<Vec<T>>> {
        let begin = self.position;
        let wrong = |it: &Self| it.wrong_at(begin, "properties are a list of properties, or null");
        match self.value()? {
            Value::Null => Ok(None),
            Value::List(items) => {
                items.into_iter().map(property).collect::<Option<Vec<_>>>().map(Some).ok_or_else(|| wrong(self))
            }
            _ => Err(wrong(self)),
        }
    }

    fn path(&mut self) -> Read<Path> {
        let begin = self.position;
        let labels = self.value()?;
        let objects = self.value()?;
        let wrong = |it: &Self| it.wrong_at(begin, "a path is a list of sets of labels and a list of as many values");
        let (Value::List(labels), Value::List(objects)) = (labels, objects) else { return Err(wrong(self)) };
        if labels.len() != objects.len() {
            return Err(wrong(self));
        }
        let labels = labels.into_iter().map(|set| match set {
            Value::Set(labels) | Value::List(labels) => labels.into_iter().map(text_of).collect::<Option<Vec<_>>>(),
            _ => None,
        });
        let steps = objects.into_iter().zip(labels).map(|(object, labels)| Some((object, labels?)));
        Ok(Path { steps: steps.collect::<Option<_>>().ok_or_else(|| wrong(self))? })
    }

    fn tree(&mut self) -> Read<Tree> {
        // A branch is a value and the number of branches below it.
        let branches = self.items(VALUE_BYTES_MIN + 4, |it| Ok((it.value()?, it.nested(Self::tree)?)))?;
        Ok(Tree { branches })
    }

    fn metrics_list(&mut self) -> Read<Vec<Metrics>> {
        let begin = self.position;
        self.items(VALUE_BYTES_MIN, |it| {
            it.nested(|it| match (it.code()?, it.is_null()?) {
                (Type::Metrics, false) => it.metrics(),
                _ => Err(it.wrong_at(begin, "metrics have a list of metrics")),
            })
        })
    }

    fn metrics(&mut self) -> Read<Metrics> {
        let id = self.text()?;
        let name = self.text()?;
        let duration_nanos = self.long()?;
        let counts = self.items(2 * VALUE_BYTES_MIN, |it| {
            let name = it.typed_text()?;
            let begin = it.position;
            match it.value()? {
                Value::Number(Number::Long(count)) => Ok((name, count)),
                _ => Err(it.wrong_at(begin, "a count of metrics is a long")),
            }
        })?;
        let annotations = self.items(2 * VALUE_BYTES_MIN, |it| Ok((it.typed_text()?, it.value()?)))?;
        Ok(Metrics { id, name, duration_nanos, counts, annotations, nested: self.metrics_list()? })
    }

    fn integer(&mut self, code: Type) -> Read<Number> {
        Ok(match code {
            Type::Byte => Number::Byte(i8::from_be_bytes(self.array()?)),
            Type::Short => Number::Short(i16::from_be_bytes(self.array()?)),
            Type::Int => Number::Int(self.int()?),
            _ => Number::Long(self.long()?),
        })
    }

    fn big_integer(&mut self) -> Read<BigInt> {
        let begin = self.position;
        let length = self.count(1)?;
        if length > NUMBER_BYTES_MAX {
            return Err(self.wrong_at(begin, format!("a number has {length} bytes, and {NUMBER_BYTES_MAX} at most")));
        }
        let number = BigInt::from_signed_bytes_be(self.take(length)?);
        let too_long = Number::BigInteger(number.clone()).beyond();
        too_long.map_or(Ok(number), |limit| Err(self.wrong_at(begin, limit)))
    }

    fn big_decimal(&mut self) -> Read<BigDecimal> {
        let begin = self.position;
        let scale = self.int()?;
        if u64::from(scale.unsigned_abs()) > SCALE_MAX {
            return Err(self.wrong_at(begin, format!("a decimal has the scale {scale}, and {SCALE_MAX} at most")));
        }
        Ok(BigDecimal::new(self.big_integer()?, i64::from(scale)))
    }

    fn boolean(&mut self) -> Read<bool> {
        match self.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(self.wrong_at(self.position - 1, format!("a boolean is 0 or 1, and not {other}"))),
        }
    }

    fn character(&mut self) -> Read<char> {
        let begin = self.position;
        let wrong = |it: &Self| it.wrong_at(begin, "a character is not UTF-8");
        let first = self.bytes.get(begin).ok_or_else(|| self.missing(1))?;
        let length = match first {
            0..0x80 => 1,
            0xc0..0xe0 => 2,
            0xe0..0xf0 => 3,
            0xf0..0xf8 => 4,
            _ => return Err(wrong(self)),
        };
        let text = std::str::from_utf8(self.take(length)?).map_err(|_| wrong(self))?;
        text.chars().next().ok_or_else(|| wrong(self))
    }

    fn duration(&mut self) -> Read<SignedDuration> {
        let begin = self.position;
        let seconds = SignedDuration::from_secs(self.long()?);
        let nanos = SignedDuration::from_nanos(i64::from(self.int()?));
        seconds.checked_add(nanos).ok_or_else(|| self.wrong_at(begin, "a duration is beyond its range"))
    }

    fn time(&mut self, code: Type) -> Read<Moment> {
        let begin = self.position;
        let time = match code {
            Type::Date | Type::Timestamp => Moment::since_epoch(SignedDuration::from_millis(self.long()?)),
            Type::Instant => {
                let seconds = self.long()?;
                let nanos = self.int()?;
                let nanos = SignedDuration::from_nanos(nanos.into());
                SignedDuration::from_secs(seconds).checked_add(nanos).and_then(Moment::since_epoch)
            }
            _ => self.local_time()?,
        };
        time.ok_or_else(|| self.wrong_at(begin, "a point in time is beyond the years -9999 to 9999"))
    }

    /// A date, a time of day and an offset; `None` if the calendar does not have it.
    fn local_time(&mut self) -> Read<Option<Moment>> {
        let year = self.int()?;
        let [month, day] = self.array()?.map(|it: u8| i8::try_from(it).unwrap_or(i8::MAX));
        let nanos = self.long()?;
        let offset = self.int()?;
        Ok((|| {
            let date = civil::Date::new(i16::try_from(year).ok()?, month, day).ok()?;
            let time = civil::Time::midnight().checked_add(SignedDuration::from_nanos(nanos)).ok()?;
            let offset = Offset::from_seconds(offset).ok()?;
            Moment::of_local(date.to_datetime(time), offset)
        })())
    }

    fn bulk(&mut self) -> Read<u64> {
        let begin = self.position;
        let bulk = self.long()?;
        u64::try_from(bulk).map_err(|_| self.wrong_at(begin, format!("a bulk is {bulk}")))
    }

    fn uuid(&mut self) -> Read<Uuid> {
        self.array().map(Uuid::from_bytes)
    }

    fn int(&mut self) -> Read<i32> {
        self.array().map(i32::from_be_bytes)
    }

    fn long(&mut self) -> Read<i64> {
        self.array().map(i64::from_be_bytes)
    }

    /// A text after its type.
    fn typed_text(&mut self) -> Read<Box<str>> {
        let begin = self.position;
        match (self.code()?, self.is_null()?) {
            (Type::Text, false) => self.text(),
            _ => Err(self.wrong_at(begin, "a text is missing here")),
        }
    }

    fn text(&mut self) -> Read<Box<str>> {
        let length = self.count(1)?;
        let begin = self.position;
        let text = std::str::from_utf8(self.take(length)?);
        text.map(Into::into).map_err(|error| self.wrong_at(begin + error.valid_up_to(), "a text is not UTF-8"))
    }

    /// How many items follow; each has at least `bytes_min` bytes.
    fn count(&mut self, bytes_min: usize) -> Read<usize> {
        let begin = self.position;
        let count = self.int()?;
        let fits = |count: &usize| count.checked_mul(bytes_min).is_some_and(|least| least <= self.left());
        usize::try_from(count)
            .ok()
            .filter(fits)
            .ok_or_else(|| self.wrong_at(begin, format!("a length is {count}, and {} bytes are left", self.left())))
    }

    fn code(&mut self) -> Read<Type> {
        let code = self.byte()?;
        Type::of(code).map_err(|why| self.wrong_at(self.position - 1, why))
    }

    fn is_null(&mut self) -> Read<bool> {
        match self.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(self.wrong_at(self.position - 1, format!("the flag of a value is 0 or 1, and not {other}"))),
        }
    }

    fn byte(&mut self) -> Read<u8> {
        self.array().map(|[byte]| byte)
    }

    fn array<const N: usize>(&mut self) -> Read<[u8; N]> {
        let bytes = self.bytes[self.position..].first_chunk::<N>().ok_or_else(|| self.missing(N))?;
        self.position += N;
        Ok(*bytes)
    }

    fn take(&mut self, length: usize) -> Read<&'a [u8]> {
        let bytes = self.bytes[self.position..].get(..length).ok_or_else(|| self.missing(length))?;
        self.position += length;
        Ok(bytes)
    }

    fn left(&self) -> usize {
        self.bytes.len() - self.position
    }

    fn missing(&self, length: usize) -> DecodeError {
        let left = self.left();
        let are = if self.left() == 1 { "is" } else { "are" };
        self.wrong(format!("{length} bytes are missing, and {left} {are} left"))
    }

    fn wrong(&self, message: impl Into<String>) -> DecodeError {
        self.wrong_at(self.position, message)
    }

    fn wrong_at(&self, position: usize, message: impl Into<String>) -> DecodeError {
        DecodeError { position, message: message.into() }
    }
}

fn text_of(value: Value) -> Option<Box<str>> {
    match value {
        Value::Text(text) => Some(text),
        _ => None,
    }
}
