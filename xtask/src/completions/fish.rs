//! fish: a `complete` for each option and command, with the condition under which it is offered.

use std::fmt::Write;

use super::command::{CompletedCommand, OptionValue};
use crate::help_text::HelpOption;

pub(super) fn write(commands: &[CompletedCommand]) -> String {
    let names = commands.first().map(|top| &top.commands[..]).unwrap_or_default();
    let names: Vec<&str> = names.iter().map(|(name, _)| name.as_str()).collect();
    let mut text = format!(
        "# fish completion of weir. Written by cargo xtask completions.

# Whether these commands are the first words.
function __weir_in
    set -l words (commandline -opc)
    set -e words[1]
    for command in $argv
        test \"$words[1]\" = $command; or return 1
        set -e words[1]
    end
end

# Whether no command is among the first words.
function __weir_alone
    set -l words (commandline -opc)
    test (count $words) -lt 2; or not contains -- $words[2] {}
end

",
        names.join(" ")
    );
    for command in commands {
        let condition = match &*command.path {
            "" => "__weir_alone".to_owned(),
            path => format!("__weir_in {path}"),
        };
        for (name, about) in &command.commands {
            let about = quoted(about);
            let _ = writeln!(text, "complete -c weir -n '{condition}' -a {name} -d {about}");
        }
        for option in &command.options {
            let _ = writeln!(text, "complete -c weir -n '{condition}'{}", flags(option));
        }
    }
    text
}

fn flags(option: &HelpOption) -> String {
    let mut flags = String::new();
    for name in &option.names {
        let _ = match name.strip_prefix("--") {
            Some(long) => write!(flags, " -l {long}"),
            None => write!(flags, " -s '{}'", name.trim_start_matches('-')),
        };
    }
    match option.kind() {
        OptionValue::Nothing => {}
        OptionValue::File => flags += " -r -F",
        OptionValue::Folder => flags += " -x -a '(__fish_complete_directories)'",
        OptionValue::Words(words) => {
            let _ = write!(flags, " -x -a '{}'", words.join(" "));
        }
        OptionValue::Other => flags += " -x",
    }
    format!("{flags} -d {}", quoted(&option.text))
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
}
