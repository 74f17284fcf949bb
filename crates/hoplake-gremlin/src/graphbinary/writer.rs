//! From requests, responses and values to bytes.

use hoplake_query::{
    literal::Number,
    moment::Moment,
    tokens::Token,
    value::{Edge, Graph, Metrics, Path, Property, TraversalMetrics, Tree, Value, Vertex, VertexProperty},
};
use jiff::SignedDuration;
use num_bigint::BigInt;

use super::{
    EncodeError,
    types::{BULKED, GRAPH, NULL, Type, VERSION},
};
use crate::message::{Query, Request, Response};

type EncodeResult = Result<(), EncodeError>;

/// The versions of GraphBinary that are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    First,
    Fourth,
}

pub struct Writer<'a>(pub &'a mut Vec<u8>, pub Version);

impl Writer<'_> {
    pub fn request(&mut self, request: &Request) -> EncodeResult {
        self.0.push(VERSION);
        self.0.extend(request.id.as_bytes());
        self.text(&request.op)?;
        self.text(&request.processor)?;
        self.length(request.arguments.len() + usize::from(request.query.is_some()))?;
        match &request.query {
            Some(Query::Text(text)) => {
                self.typed_text("gremlin")?;
                self.typed_text(text)?;
            }
            Some(Query::Script(_)) => return Err(EncodeError::Script),
            None => {}
        }
        for (name, value) in &request.arguments {
            self.typed_text(name)?;
            self.value(value)?;
        }
        Ok(())
    }

    pub fn response(&mut self, response: &Response) -> EncodeResult {
        self.0.push(VERSION);
        match response.request_id {
            Some(id) => {
                self.0.push(0);
                self.0.extend(id.as_bytes());
            }
            None => self.0.push(1),
        }
        self.int(response.status);
        match &response.message {
            Some(message) => {
                self.0.push(0);
                self.text(message)?;
            }
            None => self.0.push(1),
        }
        self.entries(&response.attributes)?;
        self.entries(&response.meta)?;
        self.value(&response.data)
    }

    pub fn value(&mut self, value: &Value) -> EncodeResult {
        match value {
            Value::Null => self.null(),
            Value::Boolean(boolean) => {
                self.begin(Type::Boolean);
                self.0.push(u8::from(*boolean));
            }
            Value::Number(number) => self.number(number)?,
            Value::Text(text) => self.typed_text(text)?,
            Value::Char(character) => {
                self.begin(Type::Char);
                self.0.extend(character.encode_utf8(&mut [0; 4]).as_bytes());
            }
            Value::DateTime(moment) => self.time(*moment),
            Value::Duration(duration) => self.duration(*duration)?,
            Value::Uuid(uuid) => {
                self.begin(Type::Uuid);
                self.0.extend(uuid.as_bytes());
            }
            Value::Bytes(bytes) => {
                self.begin(Type::Bytes);
                self.length(bytes.len())?;
                self.0.extend(bytes);
            }
            Value::List(items) => self.list(Type::List, items)?,
            Value::Set(items) => self.list(Type::Set, items)?,
            Value::BulkSet(items) => self.bulk_set(items)?,
            Value::Map(entries) => {
                self.begin(Type::Map);
                self.entries(entries)?;
            }
            Value::Entry(entry) => {
                self.begin(Type::Map);
                self.entries(std::slice::from_ref(entry))?;
            }
            Value::Unread(_) => return Err(EncodeError::Unread),
            Value::Vertex(vertex) => self.vertex(vertex)?,
            Value::Edge(edge) => self.edge(edge)?,
            Value::VertexProperty(property) => self.vertex_property(property)?,
            Value::Property(property) => self.property(property)?,
            Value::Path(path) => self.path(path)?,
            Value::Tree(tree) => {
                self.begin(Type::Tree);
                self.tree(tree)?;
            }
            Value::Graph(graph) => self.graph(graph)?,
            Value::Token(token) => self.token(*token)?,
            Value::Traverser(traverser) => {
                self.begin(Type::Traverser);
                self.bulk(traverser.bulk)?;
                self.value(&traverser.value)?;
            }
            Value::Metrics(metrics) if self.is_fourth() => self.value(&metrics_map(metrics))?,
            Value::Metrics(metrics) => self.traversal_metrics(metrics)?,
        }
        Ok(())
    }

    fn is_fourth(&self) -> bool {
        self.1 == Version::Fourth
    }

    /// A type, and that it is not null.
    fn begin(&mut self, code: Type) {
        self.0.extend([code as u8, 0]);
    }

    fn null(&mut self) {
        self.0.extend([NULL, 1]);
    }

    fn number(&mut self, number: &Number) -> EncodeResult {
        match number {
            Number::Byte(number) => self.fixed(Type::Byte, &number.to_be_bytes()),
            Number::Short(number) => self.fixed(Type::Short, &number.to_be_bytes()),
            Number::Int(number) => self.fixed(Type::Int, &number.to_be_bytes()),
            Number::Long(number) => self.fixed(Type::Long, &number.to_be_bytes()),
            Number::Float(number) => self.fixed(Type::Float, &number.to_be_bytes()),
            Number::Double(number) => self.fixed(Type::Double, &number.to_be_bytes()),
            Number::BigInteger(number) => {
                self.begin(Type::BigInteger);
                self.big_integer(number)?;
            }
            Number::BigDecimal(number) => {
                self.begin(Type::BigDecimal);
                let (digits, scale) = number.as_bigint_and_exponent();
                let number = scale.to_string();
                let scale = i32::try_from(scale)
                    .map_err(|_| EncodeError::OutOfRange { what: "the scale of a decimal", number })?;
                self.int(scale);
                self.big_integer(&digits)?;
            }
        }
        Ok(())
    }

    fn fixed(&mut self, code: Type, bytes: &[u8]) {
        self.begin(code);
        self.0.extend(bytes);
    }

    fn big_integer(&mut self, number: &BigInt) -> EncodeResult {
        let bytes = number.to_signed_bytes_be();
        self.length(bytes.len())?;
        self.0.extend(bytes);
        Ok(())
    }

    /// With its offset, as drivers have had it since 3.8.
    fn time(&mut self, moment: Moment) {
        let local = moment.local();
        // Version 4 has one type of time, with the code of one that version 1 had.
        self.begin(if self.is_fourth() { Type::Date } else { Type::OffsetDateTime });
        self.int(i32::from(local.year()));
        self.0.extend(local.month().to_be_bytes());
        self.0.extend(local.day().to_be_bytes());
        let since_midnight = local.time().duration_since(jiff::civil::Time::midnight());
        let nanos = since_midnight.as_secs() * 1_000_000_000 + i64::from(since_midnight.subsec_nanos());
        self.long(nanos);
        self.int(moment.offset().seconds());
    }

    /// Seconds, and nanoseconds that are never negative.
    fn duration(&mut self, duration: SignedDuration) -> EncodeResult {
        let (seconds, nanos) = match (duration.as_secs(), duration.subsec_nanos()) {
            (seconds, nanos @ ..0) => (seconds.checked_sub(1), nanos + 1_000_000_000),
            (seconds, nanos) => (Some(seconds), nanos),
        };
        let too_long = || EncodeError::OutOfRange { what: "a duration in seconds", number: duration.to_string() };
        self.begin(Type::Duration);
        self.long(seconds.ok_or_else(too_long)?);
        self.int(nanos);
        Ok(())
    }

    fn list(&mut self, code: Type, items: &[Value]) -> EncodeResult {
        self.begin(code);
        self.length(items.len())?;
        items.iter().try_for_each(|item| self.value(item))
    }

    fn bulk_set(&mut self, items: &[(Value, u64)]) -> EncodeResult {
        // In version 4 it is a list whose items have numbers.
        match self.1 {
            Version::First => self.begin(Type::BulkSet),
            Version::Fourth => self.0.extend([Type::List as u8, BULKED]),
        }
        self.length(items.len())?;
        items.iter().try_for_each(|(item, bulk)| {
            self.value(item)?;
            self.bulk(*bulk)
        })
    }

    fn entries(&mut self, entries: &[(Value, Value)]) -> EncodeResult {
        self.length(entries.len())?;
        entries.iter().try_for_each(|(key, value)| {
            self.value(key)?;
            self.value(value)
        })
    }

    fn vertex(&mut self, vertex: &Vertex) -> EncodeResult {
        self.begin(Type::Vertex);
        self.value(&vertex.id)?;
        self.label(&vertex.label)?;
        self.list_or_null(vertex.properties.as_deref(), Self::vertex_property)
    }

    fn edge(&mut self, edge: &Edge) -> EncodeResult {
        self.begin(Type::Edge);
        self.value(&edge.id)?;
        self.label(&edge.label)?;
        for (id, label) in [&edge.in_vertex, &edge.out_vertex] {
            self.value(id)?;
            self.label(label)?;
        }
        // The place of its parent.
        self.null();
        self.list_or_null(edge.properties.as_deref(), Self::property)
    }

    /// In both versions labels are lists of one, and where an element has a parent or the labels of its ends there is null.
    fn graph(&mut self, graph: &Graph) -> EncodeResult {
        self.0.extend([GRAPH, 0]);
        self.length(graph.vertices.len())?;
        for vertex in &graph.vertices {
            let Value::Vertex(vertex) = vertex else { return Err(EncodeError::Unread) };
            let properties = vertex.properties.as_deref().unwrap_or_default();
            self.value(&vertex.id)?;
            self.labels(&vertex.label)?;
            self.length(properties.len())?;
            for property in properties {
                self.value(&property.id)?;
                self.labels(&property.key)?;
                self.value(&property.value)?;
                self.null();
                self.properties(property.properties.as_deref().unwrap_or_default())?;
            }
        }
        self.length(graph.edges.len())?;
        for edge in &graph.edges {
            let Value::Edge(edge) = edge else { return Err(EncodeError::Unread) };
            self.value(&edge.id)?;
            self.labels(&edge.label)?;
            for (id, _) in [&edge.in_vertex, &edge.out_vertex] {
                self.value(id)?;
                self.null();
            }
            self.null();
            self.properties(edge.properties.as_deref().unwrap_or_default())?;
        }
        Ok(())
    }

    /// The label of an element: a text, and a list of one in version 4.
    fn label(&mut self, label: &str) -> EncodeResult {
        if self.is_fourth() { self.labels(label) } else { self.text(label) }
    }

    fn labels(&mut self, label: &str) -> EncodeResult {
        self.length(1)?;
        self.typed_text(label)
    }

    fn properties(&mut self, properties: &[Property]) -> EncodeResult {
        self.length(properties.len())?;
        properties.iter().try_for_each(|property| self.property(property))
    }

    fn vertex_property(&mut self, property: &VertexProperty) -> EncodeResult {
        self.begin(Type::VertexProperty);
        self.value(&property.id)?;
        self.label(&property.key)?;
        self.value(&property.value)?;
        self.null();
        self.list_or_null(property.properties.as_deref(), Self::property)
    }

    fn list_or_null<T>(&mut self, items: Option<&[T]>, write: fn(&mut Self, &T) -> EncodeResult) -> EncodeResult {
        match items {
            Some(items) => {
                self.begin(Type::List);
                self.length(items.len())?;
                items.iter().try_for_each(|item| write(self, item))
            }
            None => {
                self.null();
                Ok(())
            }
        }
    }

    fn property(&mut self, property: &Property) -> EncodeResult {
        self.begin(Type::Property);
        self.text(&property.key)?;
        self.value(&property.value)?;
        self.null();
        Ok(())
    }

    fn path(&mut self, path: &Path) -> EncodeResult {
        self.begin(Type::Path);
        self.begin(Type::List);
        self.length(path.steps.len())?;
        for (_, labels) in &path.steps {
            self.begin(Type::Set);
            self.length(labels.len())?;
            labels.iter().try_for_each(|label| self.typed_text(label))?;
        }
        self.begin(Type::List);
        self.length(path.steps.len())?;
        path.steps.iter().try_for_each(|(value, _)| self.value(value))
    }

    fn tree(&mut self, tree: &Tree) -> EncodeResult {
        self.length(tree.branches.len())?;
        tree.branches.iter().try_for_each(|(value, below)| {
            self.value(value)?;
            self.tree(below)
        })
    }

    fn token(&mut self, token: Token) -> EncodeResult {
        // Version 4 has no types of the others.
        if self.is_fourth() && !matches!(token, Token::T(_) | Token::Direction(_) | Token::Merge(_)) {
            return self.typed_text(token.name());
        }
        self.begin(match token {
            Token::T(_) => Type::T,
            Token::Order(_) => Type::Order,
            Token::Scope(_) => Type::Scope,
            Token::Pop(_) => Type::Pop,
            Token::Column(_) => Type::Column,
            Token::Direction(_) => Type::Direction,
            Token::Cardinality(_) => Type::Cardinality,
            Token::BinaryOperator(_) => Type::Operator,
            Token::Pick(_) => Type::Pick,
            Token::Merge(_) => Type::Merge,
            Token::Dt(_) => Type::Dt,
            Token::Barrier(_) => Type::Barrier,
            Token::GType(_) => Type::Kind,
        });
        self.typed_text(token.name())
    }

    fn traversal_metrics(&mut self, metrics: &TraversalMetrics) -> EncodeResult {
        self.begin(Type::TraversalMetrics);
        self.long(metrics.duration_nanos);
        self.metrics_list(&metrics.steps)
    }

    fn metrics_list(&mut self, all: &[Metrics]) -> EncodeResult {
        self.length(all.len())?;
        all.iter().try_for_each(|metrics| self.metrics(metrics))
    }

    fn metrics(&mut self, metrics: &Metrics) -> EncodeResult {
        self.begin(Type::Metrics);
        self.text(&metrics.id)?;
        self.text(&metrics.name)?;
        self.long(metrics.duration_nanos);
        self.length(metrics.counts.len())?;
        for (name, count) in &metrics.counts {
            self.typed_text(name)?;
            self.number(&Number::Long(*count))?;
        }
        self.length(metrics.annotations.len())?;
        for (name, value) in &metrics.annotations {
            self.typed_text(name)?;
            self.value(value)?;
        }
        self.metrics_list(&metrics.nested)
    }

    fn bulk(&mut self, bulk: u64) -> EncodeResult {
        let bulk =
            i64::try_from(bulk).map_err(|_| EncodeError::OutOfRange { what: "a bulk", number: bulk.to_string() })?;
        self.long(bulk);
        Ok(())
    }

    fn typed_text(&mut self, text: &str) -> EncodeResult {
        self.begin(Type::Text);
        self.text(text)
    }

    fn text(&mut self, text: &str) -> EncodeResult {
        self.length(text.len())?;
        self.0.extend(text.as_bytes());
        Ok(())
    }

    fn length(&mut self, length: usize) -> EncodeResult {
        self.int(i32::try_from(length).map_err(|_| EncodeError::TooLong(length))?);
        Ok(())
    }

    fn int(&mut self, number: i32) {
        self.0.extend(number.to_be_bytes());
    }

    fn long(&mut self, number: i64) {
        self.0.extend(number.to_be_bytes());
    }
}

/// Metrics, of which version 4 has no type, as maps.
fn metrics_map(metrics: &TraversalMetrics) -> Value {
    fn step(metrics: &Metrics) -> Value {
        let counts = metrics.counts.iter().map(|(name, count)| ((&**name).into(), (*count).into())).collect();
        let annotations = metrics.annotations.iter().map(|(name, value)| ((&**name).into(), value.clone())).collect();
        Value::Map(vec![
            ("id".into(), (&*metrics.id).into()),
            ("name".into(), (&*metrics.name).into()),
            ("dur".into(), metrics.duration_nanos.into()),
            ("counts".into(), Value::Map(counts)),
            ("annotations".into(), Value::Map(annotations)),
            ("metrics".into(), Value::List(metrics.nested.iter().map(step).collect())),
        ])
    }
    Value::Map(vec![
        ("dur".into(), metrics.duration_nanos.into()),
        ("metrics".into(), Value::List(metrics.steps.iter().map(step).collect())),
    ])
}
