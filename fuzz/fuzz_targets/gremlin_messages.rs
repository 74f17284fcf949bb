//! Requests of Gremlin drivers, and values, in both encodings: any bytes are one or an error, and a value that was read is written and
//! read as the same.

#![no_main]

use hoplake::gremlin::{self, Names, graphbinary, graphson, message::Query, script::Statement};
use hoplake_fuzz::{begin, bounded};
use libfuzzer_sys::fuzz_target;

fuzz_target!(init: begin(), |bytes: &[u8]| bounded((1 << 20) + 64 * bytes.len(), || {
    let requests = [graphbinary::read_request(bytes).ok(), graphson::read_request(bytes).ok()];
    for request in requests.into_iter().flatten() {
        if let Some(Query::Script(script)) = request.query {
            for statement in script.statements {
                if let Statement::Traversal(traversal, _) = statement {
                    let _ = gremlin::plan(&traversal, Names::default());
                }
            }
        }
    }
    if let Ok(value) = graphbinary::read_value(bytes) {
        let mut written = Vec::new();
        if graphbinary::write_value(&value, &mut written).is_ok() {
            let again = graphbinary::read_value(&written).expect("what was written is read");
            // As text, where NaN is itself.
            assert_eq!(format!("{again:?}"), format!("{value:?}"));
        }
    }
    let _ = graphson::read_value(bytes);
}));
