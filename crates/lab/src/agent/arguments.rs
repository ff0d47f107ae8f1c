//! The arguments of `weir lab agent`.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;

use crate::run::program;

/// The text that `--help` prints.
pub const USAGE: &str = "Usage: weir lab agent --stdio [OPTIONS]
       weir lab agent --listen IP:PORT --token-file FILE [OPTIONS]

Does the part of a study that `weir lab run --host` gives to this machine: it starts servers,
backends and generators, and tells what they used. Everything it started ends with the connection.

Options:
  --stdio               speak over standard input and output; this is what ssh runs
  --listen IP:PORT      wait for controllers on a TCP port, which is not encrypted; port 0 is a free
                        one
  --token-file FILE     a file with the secret that controllers must know: at least 16 bytes, and
                        readable by its owner alone
  --allow-program PATH  a server that may be started besides this weir (repeatable), such as nginx
  -h, --help            print this help

docs/lab.md says what an agent may do.
";

/// The arguments after `agent`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AgentArguments {
    /// Whether to print the usage.
    pub help: bool,
    pub(super) listen: Option<SocketAddr>,
    pub(super) token_file: Option<PathBuf>,
    pub(super) programs: Vec<PathBuf>,
}

impl AgentArguments {
    /// Reads the words after `agent`.
    pub fn parse(words: &[OsString]) -> Result<Self, String> {
        let (mut arguments, mut stdio) = (Self::default(), false);
        let mut words = words.iter().map(|word| word.to_string_lossy().into_owned());
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or_else(|| format!("{word} requires a value"));
            match word.as_str() {
                "--help" | "-h" => arguments.help = true,
                "--stdio" => stdio = true,
                "--listen" => arguments.listen = Some(address(&value()?)?),
                "--token-file" => arguments.token_file = Some(value()?.into()),
                "--allow-program" => arguments.programs.push(program(&value()?)?),
                _ => return Err(format!("unknown option {word}")),
            }
        }
        arguments.complete(stdio)
    }

    fn complete(self, stdio: bool) -> Result<Self, String> {
        match (stdio, self.listen.is_some(), self.token_file.is_some()) {
            _ if self.help => Ok(self),
            (true, true, _) => Err("--stdio and --listen exclude each other".to_owned()),
            (false, false, _) => Err("--stdio or --listen is required".to_owned()),
            (false, true, false) => Err("--listen requires --token-file".to_owned()),
            (true, false, true) => Err("--token-file is for --listen".to_owned()),
            _ => Ok(self),
        }
    }
}

fn address(word: &str) -> Result<SocketAddr, String> {
    word.parse().map_err(|_| format!("--listen {word}: expected an address such as 10.0.0.3:7700"))
}

fn program(word: &str) -> Result<PathBuf, String> {
    let found = match word.starts_with('/') {
        true => Some(word.into()),
        false => program::in_path(word).filter(|_| !word.contains('/')),
    };
    found.ok_or_else(|| format!("--allow-program {word}: there is no such program here"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_parsed() {
        let parse = |words: &str| {
            let words = words.split_whitespace().map(OsString::from).collect::<Vec<_>>();
            AgentArguments::parse(&words)
        };
        let stdio = parse("--stdio --allow-program /usr/sbin/nginx").unwrap();
        assert_eq!(stdio.programs, [PathBuf::from("/usr/sbin/nginx")]);
        let tcp = parse("--listen 127.0.0.1:0 --token-file t").unwrap();
        assert!(tcp.listen.is_some() && parse("--help").unwrap().help);
        for (words, message) in [
            ("", "--stdio or --listen is required"),
            ("--listen 127.0.0.1:0", "--listen requires --token-file"),
            ("--stdio --listen 127.0.0.1:0", "--stdio and --listen exclude each other"),
            ("--stdio --token-file t", "--token-file is for --listen"),
            ("--listen 7700", "--listen 7700: expected an address"),
            ("--stdio --allow-program no-such", "--allow-program no-such: there is no such"),
            ("--stdio --allow-program ../sh", "--allow-program ../sh: there is no such"),
            ("--stdio --shell", "unknown option --shell"),
            ("--listen", "--listen requires a value"),
        ] {
            let told = parse(words).err().unwrap_or_default();
            assert!(told.starts_with(message), "{words}: {told}");
        }
    }
}
