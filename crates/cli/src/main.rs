//! The `trunkline` command.

fn main() {}
