//! The `hoplake` command.

fn main() {}
