//! `weir-ingress`, which `weir ingress` executes.

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> =
        std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    ingress::run(&arguments)
}
