//! The text of `-h` and `--help`.

use std::fmt::Write;

use crate::name::{ProgramName, name};

/// The whole text, with the summary of each command: nginx's help if the program is called `nginx`.
pub fn text(commands: impl Iterator<Item = (&'static str, &'static str)>) -> String {
    let mut text = String::new();
    match name().is_nginx() {
        true => nginx(&mut text),
        false => weir(commands, &mut text),
    }
    text
}

fn nginx(text: &mut String) {
    let ProgramName { word, version, prefix, error_log, conf, .. } = name();
    let indent = " ".repeat("Usage: ".len() + word.len() + 1);
    let _ = write!(
        text,
        "{word} version: {word}/{version}
Usage: {word} [-?hvVtTq] [-s signal] [-p prefix]
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

fn weir(commands: impl Iterator<Item = (&'static str, &'static str)>, text: &mut String) {
    let ProgramName { conf, error_log, .. } = name();
    let _ = write!(
        text,
        "Usage: weir [OPTIONS]
       weir COMMAND [ARGUMENTS]

Serves a configuration, tests it, or signals a running server.

Options:
  -?, -h, --help  print this help
  -v, --version   print the version
  -V              print the version and the configure options
  -t              test the configuration and exit; creates no file
  -T              test the configuration, print it and exit
  --strict        with -t: treat warnings as errors
  -q              suppress non-error messages during configuration testing
  -s SIGNAL       send a signal to a running server: stop, quit, reopen, reload
                  (name its configuration with -c)
  -c FILE         set the configuration file (default: {conf},
                  or the built-in configuration if that file does not exist)
  -p PREFIX       set the directory that roots and logs are relative to
                  (default: the directory of the file given with -c)
  -e FILE         set the error log file
                  (default: standard error, or {error_log} as root)
  -g DIRECTIVES   set global directives outside the configuration file
  -l unix:PATH    answer \"weir ctl\" and requests of the API at this socket
  --lenient       start without directives that this version does not support
                  (like \"lenient on;\" or WEIR_LENIENT=1; \"weir check\" lists them)
  --port NUMBER   serve the built-in configuration on this port (default: 8080)

Commands:
"
    );
    for (name, summary) in commands {
        let _ = writeln!(text, "  {name:<14}  {summary}");
    }
    text.push_str(
        "
File names on the command line are relative to the current directory. Files
included by a configuration are relative to the configuration's directory.

\"weir help COMMAND\" and \"weir COMMAND --help\" explain a command.
",
    );
}
