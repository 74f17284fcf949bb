//! Hostile and broken input. What drivers write is in `tests/codecs.rs`.

use hoplake_query::{
    literal::Number,
    value::{
        BULK_SET_TABLES, Edge, Graph, Metrics, TABLES_MAX, TraversalMetrics, Traverser, Tree, Vertex, VertexProperty,
    },
};
use proptest::prelude::*;

use super::*;

fn error(bytes: &[u8]) -> String {
    read_value(bytes).unwrap_err().to_string()
}

#[test]
fn what_is_wrong_is_told_with_its_place() {
    assert_eq!(error(&[]), "byte 0: 1 bytes are missing, and 0 are left");
    assert_eq!(error(&[0x00, 0, 0, 0, 0]), "byte 0: custom types are not supported");
    assert_eq!(error(&[0x1d, 0]), "byte 0: lambdas are refused: they are code");
    assert_eq!(error(&[0x10, 0]), "byte 0: a graph (type 0x10) is not supported");
    assert_eq!(error(&[0x7f, 0]), "byte 0: 0x7f is not a type of GraphBinary 1");
    assert_eq!(error(&[0x01, 2, 0, 0, 0, 0]), "byte 1: the flag of a value is 0 or 1, and not 2");
    assert_eq!(error(&[0xfe, 0]), "byte 1: a null has the flag 1");
    assert_eq!(error(&[0x01, 1, 9]), "byte 2: 1 bytes follow the end");
    assert_eq!(error(&[0x03, 0, 0, 0, 0, 2, b'a', 0xff]), "byte 7: a text is not UTF-8");
    assert_eq!(error(&[0x03, 0, 0, 0, 0, 9, b'a']), "byte 2: a length is 9, and 1 bytes are left");
    assert_eq!(error(&[0x09, 0, 0xff, 0xff, 0xff, 0xff]), "byte 2: a length is -1, and 0 bytes are left");
    assert_eq!(error(&[0x27, 0, 2]), "byte 2: a boolean is 0 or 1, and not 2");
    assert_eq!(error(&[0x1a, 0, 0x03, 0, 0, 0, 0, 1, b'x']), "byte 0: Order has no value \"x\"");
    assert_eq!(error(&[0x15, 0, 0, 0, 0, 0, 0, 0, 0, 0]), "byte 0: a traversal is not a value");
    assert!(error(&[0x22, 0, 0x7f, 0, 0, 0, 0, 0, 0, 1, 1]).contains("a decimal has the scale"));
    assert!(error(&[0x04, 0, 0x7f, 0, 0, 0, 0, 0, 0, 0]).contains("beyond the years"));
    assert!(error(&[0x80, 0, 0xc3]).contains("2 bytes are missing"));
    let mut long = vec![0x23, 0, 0, 0, 0x27, 0x10];
    long.extend([1; 10_000]);
    assert_eq!(error(&long), "byte 2: a number has 10000 bytes, and 4166 at most");
    assert!(read_request(&[0x01]).unwrap_err().to_string().contains("begins with 0x81"));
}

#[test]
fn null_has_a_type_or_none() {
    for bytes in [[0xfe, 1], [0x01, 1], [0x09, 1], [0x11, 1], [0x1e, 1]] {
        assert_eq!(read_value(&bytes), Ok(Value::Null));
    }
}

#[test]
fn nesting_has_a_bound() {
    let nested = |levels: usize| {
        let mut bytes = [0x09, 0, 0, 0, 0, 1].repeat(levels);
        bytes.extend([0xfe, 1]);
        bytes
    };
    assert!(read_value(&nested(DEPTH_MAX - 1)).is_ok());
    assert!(error(&nested(100_000)).contains("deeper than 128 levels"));
    // Trees nest without codes of types.
    let branch = [0, 0, 0, 1, 0xfe, 1];
    let mut tree = vec![0x2b, 0];
    tree.extend(branch.repeat(100_000));
    assert!(error(&tree).contains("deeper than 128 levels"));
    // Sets, each of null and the next, and one of null alone.
    let sets = |levels: usize| {
        let mut bytes = [0x0b, 0, 0, 0, 0, 2, 0xfe, 1].repeat(levels);
        bytes.extend([0x0b, 0, 0, 0, 0, 1, 0xfe, 1]);
        bytes
    };
    assert!(read_value(&sets(TABLES_MAX)).is_ok());
    assert!(error(&sets(TABLES_MAX + 1)).contains("pass inner sets as lists"));
    let bulk_sets = |levels: usize| {
        let mut bytes = [0x2a, 0, 0, 0, 0, 2, 0xfe, 1, 0, 0, 0, 0, 0, 0, 0, 1].repeat(levels);
        bytes.extend([0xfe, 1]);
        bytes.extend([0, 0, 0, 0, 0, 0, 0, 1].repeat(levels));
        bytes
    };
    assert!(read_value(&bulk_sets(TABLES_MAX / BULK_SET_TABLES)).is_ok());
    assert!(error(&bulk_sets(TABLES_MAX / BULK_SET_TABLES + 1)).contains("pass inner sets as lists"));
    // A list of lists that all claim the rest of the message.
    let mut lists = Vec::new();
    for _ in 0..100 {
        lists.extend([0x09, 0, 0, 0, 0x10, 0]);
    }
    lists.extend([0; 20_000]);
    assert!(read_value(&lists).is_err());
}

#[test]
fn a_decoded_item_is_small() {
    // The bound in the docs of the module: two bytes become one of them, and a vector has up to twice the room.
    assert!(size_of::<crate::script::Argument>() <= 56, "{}", size_of::<crate::script::Argument>());
    assert!(size_of::<Value>() <= 56, "{}", size_of::<Value>());
}

#[test]
fn metrics_come_back() {
    let step = Metrics {
        id: "1.0.0()".into(),
        name: "V".into(),
        duration_nanos: 5,
        counts: vec![("traverserCount".into(), 6)],
        annotations: vec![("percentDur".into(), 100.0.into())],
        nested: vec![Metrics { id: "n".into(), ..Metrics::default() }],
    };
    let metrics = Value::Metrics(Box::new(TraversalMetrics { duration_nanos: 7, steps: vec![step] }));
    let mut bytes = Vec::new();
    write_value(&metrics, &mut bytes).unwrap();
    assert_eq!(read_value(&bytes), Ok(metrics));
}

#[test]
fn what_no_field_holds_is_rejected() {
    let write = |value: &Value| write_value(value, &mut Vec::new());
    let bulk = Value::Traverser(Box::new(Traverser { value: Value::Null, bulk: u64::MAX }));
    assert!(write(&bulk).unwrap_err().to_string().starts_with("a bulk is 18446744073709551615"));
    let decimal = Value::Number(Number::BigDecimal("1e-9999999999".parse().unwrap()));
    assert!(write(&decimal).unwrap_err().to_string().starts_with("the scale of a decimal is 9999999999"));
    assert_eq!(write(&Value::Tree(Tree::default())), Ok(()));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4_000, ..ProptestConfig::default() })]

    #[test]
    fn no_bytes_stop_the_reader(mut bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        drop(read_value(&bytes));
        drop(read_response(&bytes));
        bytes.insert(0, 0x81);
        drop(read_request(&bytes));
        drop(read_response(&bytes));
    }

    /// Codes of types, flags and short lengths: most of these get further than a byte.
    #[test]
    fn no_row_of_pieces_stops_the_reader(pieces in proptest::collection::vec(piece(), 0..40)) {
        let bytes = pieces.concat();
        if let Ok(value) = read_value(&bytes) {
            let mut again = Vec::new();
            if write_value(&value, &mut again).is_ok() {
                // As text, where `NaN` is itself.
                let value = format!("{value:?}");
                prop_assert_eq!(read_value(&again).map(|value| format!("{value:?}")), Ok(value));
            }
        }
    }
}

fn piece() -> impl Strategy<Value = Vec<u8>> {
    let code = prop_oneof![0x01..0x31_u8, 0x80..0x8f_u8, Just(0xfe)];
    prop_oneof![
        code.prop_map(|code| vec![code, 0]),
        Just(vec![0xfe, 1]),
        (0..3_u8).prop_map(|length| vec![0, 0, 0, length]),
        Just(vec![0x03, 0, 0, 0, 0, 1, b'a']),
        Just(vec![0, 0, 0, 1, b'a']),
        proptest::collection::vec(any::<u8>(), 0..9),
    ]
}

#[test]
fn a_duration_that_has_no_form_is_rejected() {
    let longest = Value::Duration(jiff::SignedDuration::new(i64::MIN, -1));
    assert!(matches!(write_value(&longest, &mut Vec::new()), Err(EncodeError::OutOfRange { .. })));
}

#[test]
fn a_graph_is_written_as_drivers_read_it() {
    let vertex = |id: i32| {
        let property =
            VertexProperty { id: "p".into(), key: "name".into(), value: "a".into(), properties: Some(Vec::new()) };
        Value::Vertex(Box::new(Vertex { id: id.into(), label: "v".into(), properties: Some(vec![property]) }))
    };
    let edge = Edge {
        id: "e".into(),
        label: "knows".into(),
        out_vertex: (1.into(), "v".into()),
        in_vertex: (2.into(), "v".into()),
        properties: None,
    };
    let graph = Graph { vertices: vec![vertex(1), vertex(2)], edges: vec![Value::Edge(Box::new(edge))] };
    let mut bytes = Vec::new();
    write_value(&Value::Graph(Box::new(graph)), &mut bytes).unwrap();
    let int = |number: u8| vec![1, 0, 0, 0, 0, number];
    // A list of one text, without a type of its own.
    let label = |text: &str| [&[0, 0, 0, 1, 3, 0, 0, 0, 0, text.len() as u8], text.as_bytes()].concat();
    let text = |text: &str| [&[3, 0, 0, 0, 0, text.len() as u8], text.as_bytes()].concat();
    let null = vec![0xfe, 1];
    let none = vec![0, 0, 0, 0];
    let vertex = |id| {
        [int(id), label("v"), vec![0, 0, 0, 1], text("p"), label("name"), text("a"), null.clone(), none.clone()]
            .concat()
    };
    let edge = [text("e"), label("knows"), int(2), null.clone(), int(1), null.clone(), null.clone(), none.clone()];
    let expected = [vec![0x10, 0, 0, 0, 0, 2], vertex(1), vertex(2), vec![0, 0, 0, 1], edge.concat()].concat();
    assert_eq!(bytes, expected);
}
