//! Operators that read or change what a traverser carries: its path, its bindings, its sack, the loops that it is in.

mod bindings;
mod identity;
mod loops;
mod norm_sack;
mod path;
mod sack;
mod simple_path;

pub use self::{
    bindings::{EndAt, StartAt},
    identity::Identity,
    loops::Loops,
    norm_sack::NormSack,
    path::Path,
    sack::{Sack, SackWith},
    simple_path::SimplePath,
};
