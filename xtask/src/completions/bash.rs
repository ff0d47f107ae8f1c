//! bash: a function, and names of files where it has nothing to say.

use std::fmt::Write;

use super::command::{CompletedCommand, OptionValue};

pub(super) fn write(commands: &[CompletedCommand]) -> String {
    let mut text = String::from(
        "# bash completion of weir. Written by cargo xtask completions.

_weir() {
    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}
    local command= words=
    if ((COMP_CWORD > 1)); then
        case ${COMP_WORDS[1]} in
",
    );
    let is_nested = |command: &&CompletedCommand| command.path.contains(' ');
    let names = |nested: bool| {
        let paths = commands.iter().filter(|command| !command.path.is_empty());
        let paths = paths.filter(|command| is_nested(command) == nested);
        paths.map(|command| format!("'{}'", command.path)).collect::<Vec<_>>().join(" | ")
    };
    let _ = write!(
        text,
        "        {}) command=${{COMP_WORDS[1]}} ;;
        esac
    fi
    if ((COMP_CWORD > 2)); then
        case \"$command ${{COMP_WORDS[2]}}\" in
        {}) command+=\" ${{COMP_WORDS[2]}}\" ;;
        esac
    fi
    case \"$command $previous\" in
",
        names(false),
        names(true)
    );
    commands.iter().for_each(|command| values(&mut text, command));
    text += "    esac\n    case $command in\n";
    for command in commands {
        let options = command.options.iter().flat_map(|option| option.names.iter());
        let names = command.commands.iter().map(|(name, _)| name);
        let words: Vec<&str> = names.chain(options).map(String::as_str).collect();
        let _ = writeln!(text, "    '{}') words='{}' ;;", command.path, words.join(" "));
    }
    text + "    esac
    COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))
}

complete -o bashdefault -o default -F _weir weir
"
}

/// What follows an option with a value. Names of files are what bash completes without this.
fn values(text: &mut String, command: &CompletedCommand) {
    for option in &command.options {
        let reply = match option.kind() {
            OptionValue::Nothing => continue,
            OptionValue::File => "COMPREPLY=()".to_owned(),
            OptionValue::Folder => "COMPREPLY=($(compgen -d -- \"$current\"))".to_owned(),
            OptionValue::Words(words) => {
                format!("COMPREPLY=($(compgen -W '{}' -- \"$current\"))", words.join(" "))
            }
            OptionValue::Other => "compopt +o bashdefault +o default".to_owned(),
        };
        let names = option.names.iter().map(|name| format!("'{} {name}'", command.path));
        let names = names.collect::<Vec<_>>().join(" | ");
        let _ = writeln!(text, "    {names})\n        {reply}\n        return\n        ;;");
    }
}
