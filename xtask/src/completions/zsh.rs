//! zsh: `_arguments` for each command.

use std::fmt::Write;

use super::command::{CompletedCommand, OptionValue};

pub(super) fn write(commands: &[CompletedCommand]) -> String {
    let mut text = String::from(
        "#compdef weir
# zsh completion of weir. Written by cargo xtask completions.

_weir() {
    local -a commands
    local command=
    if (( CURRENT > 2 )); then
        command=$words[2]
        if (( CURRENT > 3 )) && [[ $command == lab ]]; then
            command=\"lab $words[3]\"
            shift words
            (( CURRENT-- ))
        fi
        shift words
        (( CURRENT-- ))
    fi
    case $command in
",
    );
    let (top, others) = commands.split_first().expect("weir itself is the first command");
    for command in others {
        let _ = writeln!(text, "    ('{}')", command.path);
        arguments(&mut text, command);
        text += "        ;;\n";
    }
    text += "    (*)\n";
    arguments(&mut text, top);
    text + "        ;;\n    esac\n}\n\n_weir \"$@\"\n"
}

fn arguments(text: &mut String, command: &CompletedCommand) {
    if !command.commands.is_empty() {
        text.push_str("        commands=(\n");
        for (name, about) in &command.commands {
            let _ = writeln!(text, "            '{name}:{}'", escaped(about));
        }
        text.push_str("        )\n");
    }
    text.push_str("        _arguments -s");
    for option in &command.options {
        let all = option.names.join(" ");
        let value = match option.kind() {
            OptionValue::Nothing => String::new(),
            OptionValue::File => ":file:_files".to_owned(),
            OptionValue::Folder => ":directory:_files -/".to_owned(),
            OptionValue::Words(words) => format!(":word:({})", words.join(" ")),
            OptionValue::Other => {
                format!(":{}: ", escaped(option.value.as_deref().unwrap_or_default()))
            }
        };
        let before = if option.is_repeatable() { "*".to_owned() } else { format!("({all})") };
        for name in option.names.iter().filter(|name| *name != "-?") {
            let about = escaped(&option.text);
            let _ = write!(text, " \\\n            '{before}{name}[{about}]{value}'");
        }
    }
    let rest = match command.commands.is_empty() {
        true => "'*:file:_files'",
        false => "'1:command:{_describe command commands}' '*:file:_files'",
    };
    let _ = writeln!(text, " \\\n            {rest}");
}

/// Text between single quotes, brackets and colons.
fn escaped(text: &str) -> String {
    let mut out = String::new();
    for letter in text.chars() {
        match letter {
            '\'' => out += "'\\''",
            '[' | ']' | ':' | '\\' => {
                out.push('\\');
                out.push(letter);
            }
            _ => out.push(letter),
        }
    }
    out
}
