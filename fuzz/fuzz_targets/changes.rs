//! Changes in JSON Lines: any line is a change or an error, and a change that is written down again is read as the same change.

#![no_main]

use std::sync::LazyLock;

use hoplake::{
    Key, Operation, Value,
    changes::{ChangeReader, ChangeSettings, value_from_json, value_to_json},
};
use hoplake_format::Schema;
use hoplake_fuzz::{begin, bounded, golden};
use libfuzzer_sys::fuzz_target;
use serde_json::{Map, Value as Json, json};

static SCHEMA: LazyLock<Schema> = LazyLock::new(|| golden::newest().1.schema);

const LINE_BYTES_MAX: usize = 1 << 10;

fuzz_target!(
    init: {
        begin();
        LazyLock::force(&SCHEMA);
    },
    |text: &[u8]| bounded((1 << 20) + 256 * text.len(), || {
        let settings = ChangeSettings { line_bytes_max: LINE_BYTES_MAX };
        let mut reader = ChangeReader::new(&SCHEMA).with_settings(settings);
        for line in text.split_inclusive(|byte| *byte == b'\n') {
            let Some(Ok(change)) = reader.lines("file", std::io::Cursor::new(line.to_vec())).next() else { continue };
            assert!(line.len() <= LINE_BYTES_MAX + 1);
            let again = written(&change.operation);
            if again.len() <= LINE_BYTES_MAX {
                let read = reader.lines("file", std::io::Cursor::new(again.clone().into_bytes())).next();
                let read = read.expect("a line has a change").unwrap_or_else(|error| panic!("{again}: {error}"));
                // Equal values are the same here: each was held against its own JSON bit for bit.
                assert_eq!(read.operation, change.operation, "{again}");
            }
        }
    })
);

fn written(operation: &Operation) -> String {
    let end = |end: &hoplake::VertexRef| json!([end.label.as_str(), key(&end.key)]);
    let line = match operation {
        Operation::UpsertVertex { vertex, properties, replace } => {
            json!({"op": "upsert_vertex", "label": vertex.label.as_str(), "key": key(&vertex.key),
                "properties": members(properties), "replace": replace})
        }
        Operation::DeleteVertex { vertex } => {
            json!({"op": "delete_vertex", "label": vertex.label.as_str(), "key": key(&vertex.key)})
        }
        Operation::UpsertEdge { label, source, target, key, properties, replace } => {
            let key = key.as_ref().map(|key| json!({key.property.as_str(): value(&key.value)}));
            json!({"op": "upsert_edge", "label": label.as_str(), "source": end(source), "target": end(target),
                "edge_key": key, "properties": members(properties), "replace": replace})
        }
        Operation::DeleteEdge { label, source, target, key } => {
            let key = key.as_ref().map(|key| json!({key.property.as_str(): value(&key.value)}));
            json!({"op": "delete_edge", "label": label.as_str(), "source": end(source), "target": end(target),
                "edge_key": key})
        }
        Operation::EditEdge { .. } | Operation::UpsertColumns(_) => unreachable!("a line is one change by name"),
    };
    line.to_string()
}

fn key(key: &Key) -> Json {
    match key {
        Key::Int64(key) => json!(key),
        Key::String(key) => json!(key),
    }
}

fn members(properties: &hoplake::Properties) -> Map<String, Json> {
    properties.iter().map(|(name, it)| (name.to_string(), value(it))).collect()
}

/// A value in JSON, which is read as itself.
fn value(it: &Value) -> Json {
    let json = value_to_json(it);
    let read = value_from_json(&json.to_string());
    assert!(read.as_ref().is_ok_and(|read| read.is_same(it)), "{json}: {it:?} and {read:?}");
    json
}
