//! `weir-ingress plan` alone, without the rest of the program.

use std::process::ExitCode;

fn main() -> ExitCode {
    ingress::dry_run(&std::env::args().skip(1).collect::<Vec<_>>())
}
