//! Text forms that a user types: hops, conditions, names of vertices, times. Any text is one or an error, and what was read is
//! written so that it is read again as the same.

#![no_main]

use hoplake::{Condition, Hop, StartKey, parse_time, vertex_text};
use hoplake_engine::split_vertex;
use hoplake_fuzz::{begin, bounded};
use libfuzzer_sys::fuzz_target;

fuzz_target!(init: begin(), |text: &str| bounded((64 << 10) + 64 * text.len(), || {
    if let Ok(hop) = text.parse::<Hop>() {
        let written = hop.to_string();
        assert_eq!(written.parse::<Hop>().as_ref().ok(), Some(&hop), "{written}");
        assert_eq!(hop.reversed().reversed(), hop);
    }
    if let Ok(condition) = text.parse::<Condition>() {
        let written = condition.to_string();
        assert_eq!(written.parse::<Condition>().as_ref().ok(), Some(&condition), "{written}");
    }
    if let Ok((label, key)) = split_vertex(text) {
        let written = vertex_text(&label, &key);
        assert_eq!(split_vertex(&written), Ok((label, key)), "{written}");
        assert!(text.parse::<StartKey>().is_ok(), "{text}");
    }
    if let Ok(start) = text.parse::<StartKey>() {
        let written = start.to_string();
        assert_eq!(written.parse::<StartKey>().as_ref().ok(), Some(&start), "{written}");
    }
    let _ = parse_time(text);
}));
