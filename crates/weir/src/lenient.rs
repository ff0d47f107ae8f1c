//! Lenient mode can be set by the command line, the environment, and the configuration.
//!
//! Sending a signal, testing a configuration and starting a service read the configuration as well,
//! and often cannot pass `--lenient`. `lenient on;` has its effect anywhere in the main context, so
//! it is looked for before anything is read.

use conf::Directive;

use crate::command_line::CommandLine;

/// The environment variable that sets it, to `1` or `on`.
pub const VARIABLE: &str = "WEIR_LENIENT";

/// Whether the command line or the environment sets it.
pub fn is_requested(command: &CommandLine) -> bool {
    let value = std::env::var_os(VARIABLE);
    command.lenient || value.is_some_and(|value| value == "1" || value == "on")
}

pub fn is_configured(root: &[Directive]) -> bool {
    let lines = root.iter().filter(|line| &*line.name.text == b"lenient");
    let mut values = lines.filter_map(|line| line.args.first());
    values.any(|value| value.text.eq_ignore_ascii_case(b"on"))
}
