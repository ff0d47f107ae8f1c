//! The program: command line, processes, signals.
fn main() {}
