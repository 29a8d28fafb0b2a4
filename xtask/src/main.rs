//! `cargo xtask`: set-up, tests, benches, tidy.

fn main() {}
