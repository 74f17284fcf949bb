//! The verbs, one file each: its arguments, and what it does.

pub mod apply;
pub mod cache_sim;
pub mod clone;
pub mod compact;
pub mod completions;
pub mod console;
pub mod cost;
pub mod diff;
pub mod export;
#[cfg(feature = "feed")]
pub mod feed;
pub mod get;
pub mod index;
pub mod info;
pub mod khop;
mod limits;
pub mod load;
pub mod log;
pub mod man;
pub mod mirror;
pub mod neighbors;
pub mod path;
mod paths;
pub mod queries;
pub mod query;
mod query_args;
pub mod quickstart;
pub mod restore;
pub mod run;
pub mod scan;
#[cfg(feature = "serve")]
pub mod serve;
pub mod tag;
pub mod traverse;
pub mod vacuum;
pub mod verify;
