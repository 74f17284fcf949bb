//! A real server on free ports, asked by real clients of both protocols.
#![allow(clippy::unwrap_used)]

mod answers;
mod changes;
mod compaction;
mod cursor;
mod finding;
mod graphs;
mod gremlin;
mod gremlin_drivers;
mod gremlin_requests;
mod held_store;
mod hostile;
mod http;
mod jobs;
mod limits;
mod malformed;
mod nodes;
mod number_types;
mod operations;
mod prepared;
mod process;
mod roles;
mod running;
mod sample;
mod shapes;
mod shortage;
mod shutdown;
mod starting;
mod stream;
mod tinkerpop;
mod tokens;
mod unread;
