//! The extension module of Hoplake's Python package, `hoplake._hoplake`.
//!
//! The package is `python/hoplake`, which has what users see: signatures, documentation, waiting and progress. Here is what needs Rust: calls
//! of the facade as tasks, tables of Arrow, and values: RFC 0014.

mod arrow;
mod changes;
mod columns;
mod compute;
mod describe;
mod errors;
mod graph;
mod gremlin;
mod load;
mod load_steps;
mod opened;
mod parts;
mod paths;
mod process;
mod sampling;
mod scan;
mod serve;
mod table;
mod task;
mod upkeep;
mod values;

use pyo3::prelude::*;

/// The module.
#[pymodule]
mod _hoplake {
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::{
        changes::Commit,
        columns::Program,
        compute::{Computation, algorithms},
        graph::Graph,
        load::load,
        load_steps::{EdgeRange, LoadSteps, RangeKeys, VertexRange, Written, batches, begin_load, give_up_load},
        parts::{Objects, Part},
        sampling::{Array, Batches, Sampler},
        scan::Scan,
        serve::{Server, serve},
        table::{Batch, Table},
        task::Task,
    };

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        crate::process::note_main_thread();
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
