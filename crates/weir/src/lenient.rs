//! Who may ask for a lenient server: the command line, the environment, and the configuration.
//!
//! Sending a signal, testing a configuration and starting a service also read the configuration,
//! and often cannot pass `--lenient`. `lenient on;` counts anywhere in the main context, so it is
//! searched for before anything is read.

use conf::Directive;

use crate::command_line::CommandLine;

/// The variable that asks for it: `1` or `on`.
pub const VARIABLE: &str = "WEIR_LENIENT";

/// Whether the command line or the environment asks for it.
pub fn is_asked(command: &CommandLine) -> bool {
    let said = std::env::var_os(VARIABLE);
    command.lenient || said.is_some_and(|said| said == "1" || said == "on")
}

/// Whether the configuration asks for it.
pub fn is_said(root: &[Directive]) -> bool {
    let lines = root.iter().filter(|line| &*line.name.text == b"lenient");
    let mut values = lines.filter_map(|line| line.args.first());
    values.any(|value| value.text.eq_ignore_ascii_case(b"on"))
}
