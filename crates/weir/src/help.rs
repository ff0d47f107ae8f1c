//! What `-h` and `--help` print, and the advice below a command line that is refused.

use std::fmt::Write;
use std::path::Path;

use crate::name::{Name, name};
use crate::places::{Defaults, User};
use crate::subcommand::SUBCOMMANDS;

/// All of it. nginx's help, where the program is called so.
pub fn text() -> String {
    let Name { word, version, .. } = name();
    let mut text = format!("{word} version: {word}/{version}\n");
    match name().is_nginx() {
        true => nginx(&mut text),
        false => weir(&mut text),
    }
    text
}

/// Says how to go on after a complaint. nginx leaves it at that.
pub fn advise(guess: Option<String>, help: &str) {
    if !name().is_nginx() {
        guess.iter().for_each(|guess| observe::tell(format_args!("      {guess}\n")));
        observe::tell(format_args!("      \"{help}\" lists what there is\n"));
    }
}

fn nginx(text: &mut String) {
    let Name { word, prefix, error_log, conf, .. } = name();
    let indent = " ".repeat("Usage: ".len() + word.len() + 1);
    let _ = write!(
        text,
        "Usage: {word} [-?hvVtTq] [-s signal] [-p prefix]
{indent}[-e filename] [-c filename] [-g directives]

Options:
  -?,-h         : this help
  -v            : show version and exit
  -V            : show version and configure options then exit
  -t            : test configuration and exit
  -T            : test configuration, dump it and exit
  -q            : suppress non-error messages during configuration testing
  -s signal     : send signal to a master process: stop, quit, reopen, reload
  -p prefix     : set prefix path (default: {prefix})
  -e filename   : set error log file (default: {error_log})
  -c filename   : set configuration file (default: {conf})
  -g directives : set global directives out of configuration file

"
    );
}

fn weir(text: &mut String) {
    let Name { conf, .. } = name();
    let log = defaults().error_log;
    let log = log.as_deref().unwrap_or(Path::new("stderr"));
    let _ = write!(
        text,
        "Usage: weir [-?hvVtTq] [-s signal] [-p prefix] [-e filename] [-c filename]
            [-g directives] [--lenient]     serve, or test or signal
       weir [--port number]                 serve what is built in
       weir command [arguments]

Options:
  -?,-h,--help  : this help
  -v,--version  : show version and exit
  -V            : show version and configure options then exit
  -t            : test configuration and exit; creates no file
  -T            : test configuration, dump it and exit
  -q            : suppress non-error messages during configuration testing
  -s signal     : send signal to a master process: stop, quit, reopen, reload
                  (name the configuration that it was started with by -c)
  -c filename   : set configuration file (default: {conf}, or
                  what is built in where there is none)
  -p prefix     : set the directory that roots and logs are relative to
                  (default: the directory of the file that -c names)
  -e filename   : set error log file (default: {log})
  -g directives : set global directives out of configuration file
  --lenient     : start without directives that this version does not have
                  (as \"lenient on;\" or WEIR_LENIENT=1; weir check lists them)
  --port number : where what is built in listens (default: 8080)

Files named on the command line are relative to the current directory, files
that the configuration includes to the directory of the configuration.

Commands:
",
        log = log.display()
    );
    for subcommand in SUBCOMMANDS {
        let _ = writeln!(text, "  {:<13} : {}", subcommand.name, subcommand.summary);
    }
    text.push_str("\n\"weir help COMMAND\" and \"weir COMMAND --help\" say more.\n");
}

/// Where files are for this user.
fn defaults() -> Defaults {
    let command = crate::command_line::CommandLine::default();
    crate::places::Places::of(&command, name(), &User::current()).defaults
}
