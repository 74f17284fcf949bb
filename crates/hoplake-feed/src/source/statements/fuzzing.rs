//! Statements without a log, for the fuzz target.

use super::{Followed, effects, shown};
use crate::TableName;

/// What a statement that was given in the database `test` does to its tables `t` and `u`, and how an error shows it.
pub fn read_statement(statement: &str) -> (usize, String) {
    let names = |names: &[&str]| names.iter().map(|name| hoplake::Name::from(*name)).collect();
    let followed = Followed::from([
        (TableName::new("test", "t"), names(&["id", "v"])),
        (TableName::new("test", "u"), names(&["id"])),
    ]);
    (effects(statement, "test", &followed).len(), shown(statement, false))
}
