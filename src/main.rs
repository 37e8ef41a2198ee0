//! The `rowdeck` program.

fn main() {}
