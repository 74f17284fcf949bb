//! Hostile and broken input. What drivers write is in `tests/codecs.rs`.

use hoplake_query::{
    literal::Number,
    value::{BULK_SET_TABLES, Metrics, TABLES_MAX, TraversalMetrics},
};
use proptest::prelude::*;

use super::*;

fn error(json: &str) -> String {
    read_value(json.as_bytes()).unwrap_err().to_string()
}

#[test]
fn what_is_wrong_is_told_with_its_place() {
    assert!(error("{").starts_with("line 1, column 1: "));
    assert_eq!(error(r#"{"@type":"g:Int32","@value":3000000000}"#), "g:Int32: its value is not one of this type");
    assert_eq!(error(r#"{"@type":"x:Y","@value":1}"#), "x:Y: this type or this value of it is not supported");
    assert_eq!(error(r#"{"@type":"g:Map","@value":[1]}"#), "g:Map: a key has no value");
    assert_eq!(
        error(r#"{"@type":"g:List","@value":[{"@type":"g:Vertex","@value":{"id":1}}]}"#),
        "g:List, g:Vertex: `label` is missing"
    );
    assert_eq!(error(r#"{"@type":"g:Lambda","@value":{}}"#), "g:Lambda: lambdas are refused: they are code");
    assert_eq!(error(r#"{"@type":"g:Order","@value":"x"}"#), "g:Order: this type or this value of it is not supported");
    assert!(error(&"[".repeat(100_000)).contains("recursion limit"));
    let sets = |levels| format!("{}1{}", r#"{"@type":"g:Set","@value":[0,"#.repeat(levels), "]}".repeat(levels));
    assert!(read_value(sets(TABLES_MAX).as_bytes()).is_ok());
    assert!(error(&sets(TABLES_MAX + 1)).contains("pass inner sets as lists"));
    let bulk = r#"{"@type":"g:Int64","@value":1}"#;
    let bulk_sets = |levels: usize| {
        let begin = format!(r#"{{"@type":"g:BulkSet","@value":[0,{bulk},"#);
        format!("{}1{}", begin.repeat(levels), format!(",{bulk}]}}").repeat(levels))
    };
    assert!(read_value(bulk_sets(TABLES_MAX / BULK_SET_TABLES).as_bytes()).is_ok());
    assert!(error(&bulk_sets(TABLES_MAX / BULK_SET_TABLES + 1)).contains("pass inner sets as lists"));
    let digits = format!(r#"{{"@type":"gx:BigInteger","@value":{}}}"#, "9".repeat(20_000));
    assert!(error(&digits).contains("20000 characters"));
    let digits = "7".repeat(10_001);
    for kind in ["gx:BigDecimal", "gx:BigInteger"] {
        assert!(
            error(&format!(r#"{{"@type":"{kind}","@value":"{digits}"}}"#)).contains("more than 10000 digits"),
            "{kind}"
        );
    }
    assert!(error(r#"{"@type":"gx:BigDecimal","@value":1e-999999999}"#).contains("beyond 20000"));
}

#[test]
fn numbers_keep_their_digits() {
    let digits = "123456789012345678901234567890";
    let expected = Value::Number(Number::BigInteger(digits.parse().unwrap()));
    for json in [
        format!(r#"{{"@type":"gx:BigInteger","@value":{digits}}}"#),
        format!(r#"{{"@type":"gx:BigInteger","@value":"{digits}"}}"#),
    ] {
        assert_eq!(read_value(json.as_bytes()), Ok(expected.clone()));
    }
    assert_eq!(read_value(b"9007199254740993"), Ok(9_007_199_254_740_993_i64.into()));
    assert_eq!(read_value(br#"{"@value":1,"@type":"g:Int64"}"#), Ok(1_i64.into()));
    assert_eq!(read_value(br#"{"@type":"g:Double","@value":1}"#), Ok(1.0.into()));
}

#[test]
fn metrics_are_those_of_tinkerpop() {
    let step = Metrics { id: "0".into(), name: "a".into(), duration_nanos: 1_500_000, ..Metrics::default() };
    let metrics = Value::Metrics(Box::new(TraversalMetrics { duration_nanos: 2_000_000, steps: vec![step] }));
    let write = |version| {
        let mut text = String::new();
        write_value(&metrics, version, &mut text).unwrap();
        text
    };
    let double = |number: &str| format!(r#"{{"@type":"g:Double","@value":{number}}}"#);
    assert_eq!(
        write(Version::Third),
        format!(
            r#"{{"@type":"g:TraversalMetrics","@value":{{"@type":"g:Map","@value":["dur",{},"metrics",{{"@type":"g:List","@value":[{{"@type":"g:Metrics","@value":{{"@type":"g:Map","@value":["dur",{},"counts",{{"@type":"g:Map","@value":[]}},"name","a","annotations",{{"@type":"g:Map","@value":[]}},"id","0"]}}}}]}}]}}}}"#,
            double("2.0"),
            double("1.5")
        )
    );
    assert_eq!(
        write(Version::Second),
        format!(
            r#"{{"@type":"g:TraversalMetrics","@value":{{"dur":{},"metrics":[{{"@type":"g:Metrics","@value":{{"dur":{},"counts":{{}},"name":"a","annotations":{{}},"id":"0"}}}}]}}}}"#,
            double("2.0"),
            double("1.5")
        )
    );
}

#[test]
fn version_2_has_bounds_of_its_own() {
    let write = |value: &Value| write_value(value, Version::Second, &mut String::new());
    assert_eq!(write(&Value::BulkSet(vec![("a".into(), u64::MAX)])), Err(EncodeError::Bulk));
    assert_eq!(write(&Value::Map(vec![(Value::List(vec![]), 1.into())])), Err(EncodeError::Key));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4_000, ..ProptestConfig::default() })]

    #[test]
    fn no_bytes_stop_the_reader(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
        drop(read_value(&bytes));
        drop(read_request(&bytes));
    }

    #[test]
    fn no_typed_value_stops_the_reader(json in typed()) {
        if let Ok(value) = read_value(json.as_bytes()) {
            let mut again = String::new();
            if write_value(&value, Version::Third, &mut again).is_ok() {
                let read = read_value(again.as_bytes());
                prop_assert!(read.is_ok(), "{json} {again} {read:?}");
            }
        }
    }
}

fn typed() -> impl Strategy<Value = String> {
    let plain = proptest::sample::select(vec![
        "1",
        "-1",
        "1.5",
        "1e400",
        "300",
        "\"a\"",
        "\"NaN\"",
        "\"PT1S\"",
        "null",
        "true",
        "{}",
        "[]",
        "\"AAH/\"",
        "99999999999999999999",
        "\"2024-01-01T00:00:00Z\"",
        "{\"predicate\":\"gt\",\"value\":1}",
        "{\"id\":1,\"label\":\"a\"}",
        "{\"step\":[[\"V\"]]}",
    ])
    .prop_map(str::to_owned);
    let kinds = proptest::sample::select(vec![
        "g:Int32",
        "g:Int64",
        "g:Float",
        "g:Double",
        "gx:Byte",
        "gx:Int16",
        "gx:BigInteger",
        "gx:BigDecimal",
        "gx:Char",
        "g:UUID",
        "g:Date",
        "gx:Duration",
        "gx:OffsetDateTime",
        "gx:ByteBuffer",
        "g:List",
        "g:Set",
        "g:Map",
        "g:BulkSet",
        "g:Vertex",
        "g:Edge",
        "g:VertexProperty",
        "g:Property",
        "g:Path",
        "g:Tree",
        "g:Traverser",
        "g:P",
        "g:TextP",
        "g:Bytecode",
        "g:Binding",
        "g:T",
        "g:Class",
        "g:ReadOnlyStrategy",
    ]);
    plain.prop_recursive(4, 16, 3, move |inner| {
        prop_oneof![
            (kinds.clone(), inner.clone()).prop_map(|(kind, json)| format!(r#"{{"@type":"{kind}","@value":{json}}}"#)),
            proptest::collection::vec(inner, 0..4).prop_map(|items| format!("[{}]", items.join(","))),
        ]
    })
}
