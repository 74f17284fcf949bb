//! What a server tells of itself: counters, and the spans of its requests.

pub(crate) mod counters_text;
pub(crate) mod metrics;
pub(crate) mod traces;
