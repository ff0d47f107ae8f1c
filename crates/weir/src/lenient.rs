//! Who may ask for a lenient server: the command line, the environment, and the configuration.
//!
//! Whoever sends a signal, tests a configuration or starts a service reads the configuration, too,
//! and mostly cannot be told `--lenient`. `lenient on;` counts wherever it stands in the main
//! context, so it is looked for before anything is read.

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
