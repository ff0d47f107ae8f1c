//! `weir-ingress`, which `weir ingress` executes.

fn main() {}
