//! `weir reference`: the documentation of directives and variables, on the terminal and as pages in
//! docs/.
//!
//! It is generated from the tables by which configurations are read: names, contexts, arguments and
//! defaults from the declarations, texts from their doc comments ([`conf::Doc`]), modules from the
//! table of nginx's directives ([`conf::known`]). Deliberately absent: texts about single
//! directives, which belong to the declarations.

mod entry;
mod markdown;
mod terminal;
#[cfg(test)]
mod tests;
mod text;
mod variable;

use std::ffi::OsString;
use std::io::Write;

use crate::messages::Reported;

pub const HELP: &str = "Usage: weir reference [NAME...]
       weir reference --markdown | --variables | --unsupported

Explains directives: syntax, default and context, an example, and differences from nginx. Explains
variables as well: weir reference upstream_addr. Without NAME, lists all directives with one line
each.

Options:
  --markdown     print docs/directives.md, the reference of all directives
  --variables    print docs/variables.md, the list of all variables
  --unsupported  print docs/unsupported.md, the directives of nginx that Weir does not support
  -h, --help     print this help
";

/// Runs `weir reference` with these arguments.
pub fn run(arguments: &[OsString]) -> Result<(), Reported> {
    let words: Vec<_> = arguments.iter().map(|argument| argument.to_string_lossy()).collect();
    let words: Vec<&str> = words.iter().map(AsRef::as_ref).collect();
    match words[..] {
        [] => print(&terminal::list()),
        ["--markdown"] => print(&markdown::directives()),
        ["--variables"] => print(&variable::markdown()),
        ["--unsupported"] => print(&markdown::unsupported()),
        _ if words.iter().any(|word| matches!(*word, "-h" | "--help")) => print(HELP),
        _ => match words.iter().find(|word| word.starts_with('-')) {
            Some(option) => {
                Err(complain(&format!("unknown option {option}; see weir reference --help")))
            }
            None => names(&words),
        },
    }
}

/// Prints every directive or variable that exists, and an error for each that does not.
fn names(names: &[&str]) -> Result<(), Reported> {
    let mut result = Ok(());
    for (at, name) in names.iter().enumerate() {
        match terminal::page(name) {
            Ok(page) if at == 0 => print(&page)?,
            Ok(page) => print(&format!("\n{page}"))?,
            Err(why) => result = Err(complain(&why)),
        }
    }
    result
}

fn print(text: &str) -> Result<(), Reported> {
    std::io::stdout().write_all(text.as_bytes()).map_err(|_| Reported)
}

fn complain(why: &str) -> Reported {
    observe::tell(format_args!("weir reference: {why}\n"));
    Reported
}
