//! The command line of the server, parsed as by nginx: letters may be joined, and values may follow
//! in the same word or the next; plus a few long options, which nginx does not have.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

#[derive(Debug, Default, PartialEq, Eq)]
pub struct CommandLine {
    /// `-h`, `-?`, `--help`
    pub show_help: bool,
    /// `-v`, `--version`, and `-h` and `-V` with it
    pub show_version: bool,
    /// `-V`
    pub show_configure: bool,
    /// `-t`, and `-T` with it
    pub test: bool,
    /// `-T`
    pub dump: bool,
    /// `-q`
    pub quiet: bool,
    /// `--strict`, with `-t`: a warning is an error.
    pub strict: bool,
    /// `--lenient`: an unsupported directive is a warning.
    pub lenient: bool,
    /// `--port`: the port of the built-in configuration.
    pub port: Option<u16>,
    /// `-p`
    pub prefix: Option<OsString>,
    /// `-e`; empty or `stderr`: the standard error
    pub error_log: Option<OsString>,
    /// `-c`
    pub conf: Option<OsString>,
    /// `-g`
    pub directives: Option<OsString>,
    /// `-s`
    pub signal: Option<SignalRequest>,
    /// `-l`: the path of the control socket.
    pub control_socket: Option<OsString>,
}

/// The request that `-s` sends to a running master.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignalRequest {
    /// End immediately.
    Stop,
    /// End after active requests.
    Quit,
    /// Open the logs again.
    Reopen,
    Reload,
}

/// An error in the command line.
#[derive(Debug, PartialEq, Eq)]
pub enum UsageError {
    /// A word where an option was expected.
    Word {
        word: String,
        /// Whether it is the first.
        first: bool,
    },
    /// There is no such option.
    Option(String),
    /// An option lacks its value.
    Missing {
        /// The option, with its dashes.
        option: String,
        /// The value it needs, in nginx's words.
        what: &'static str,
    },
    /// The value of `-s` is unknown.
    Signal(String),
    /// The value of `--port` is not a port.
    Port(String),
    /// The value of `-l` is not `unix:` and a path.
    Listen(String),
    /// `--strict` without `-t`.
    Untested,
}

impl CommandLine {
    /// Reads the arguments after the program's name.
    pub fn parse(arguments: &[OsString]) -> Result<Self, UsageError> {
        let mut line = Self::default();
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            let first = rest.len() + 1 == arguments.len();
            let word =
                |word: &OsString, first| UsageError::Word { word: shown(word.as_bytes()), first };
            match argument.as_bytes() {
                b"--" => match rest.next() {
                    Some(argument) => return Err(word(argument, false)),
                    None => break,
                },
                [b'-', b'-', name @ ..] => line.long(name, &mut rest)?,
                [b'-', letters @ ..] => line.letters(letters, &mut rest)?,
                _ => return Err(word(argument, first)),
            }
        }
        match line.strict && !line.test {
            true => Err(UsageError::Untested),
            false => Ok(line),
        }
    }

    fn long<'a>(
        &mut self,
        name: &[u8],
        further: &mut impl Iterator<Item = &'a OsString>,
    ) -> Result<(), UsageError> {
        match name {
            b"help" => (self.show_version, self.show_help) = (true, true),
            b"version" => self.show_version = true,
            b"lenient" => self.lenient = true,
            b"strict" => self.strict = true,
            b"port" => {
                let missing = UsageError::Missing { option: "--port".into(), what: "number" };
                self.port = Some(port(further.next().ok_or(missing)?.as_bytes())?);
            }
            _ => match name.strip_prefix(b"port=") {
                Some(number) => self.port = Some(port(number)?),
                None => return Err(UsageError::Option(format!("--{}", shown(name)))),
            },
        }
        Ok(())
    }

    fn letters<'a>(
        &mut self,
        letters: &[u8],
        further: &mut impl Iterator<Item = &'a OsString>,
    ) -> Result<(), UsageError> {
        for (at, letter) in letters.iter().enumerate() {
            if let Some(what) = needs(*letter) {
                let joined = &letters[at + 1..];
                let value = match joined.is_empty() {
                    true => further.next().cloned(),
                    false => Some(OsString::from_vec(joined.to_vec())),
                };
                let option = format!("-{}", char::from(*letter));
                return self.value(*letter, value.ok_or(UsageError::Missing { option, what })?);
            }
            self.letter(*letter)?;
        }
        Ok(())
    }

    fn letter(&mut self, letter: u8) -> Result<(), UsageError> {
        match letter {
            b'?' | b'h' => (self.show_version, self.show_help) = (true, true),
            b'v' => self.show_version = true,
            b'V' => (self.show_version, self.show_configure) = (true, true),
            b't' => self.test = true,
            b'T' => (self.test, self.dump) = (true, true),
            b'q' => self.quiet = true,
            _ => return Err(UsageError::Option(char::from(letter).into())),
        }
        Ok(())
    }

    fn value(&mut self, letter: u8, value: OsString) -> Result<(), UsageError> {
        match letter {
            b'p' => self.prefix = Some(value),
            b'e' => self.error_log = Some(value),
            b'c' => self.conf = Some(value),
            b'g' => self.directives = Some(value),
            b'l' => match value.as_bytes().strip_prefix(b"unix:").filter(|path| !path.is_empty()) {
                Some(path) => self.control_socket = Some(OsStr::from_bytes(path).to_owned()),
                None => return Err(UsageError::Listen(shown(value.as_bytes()))),
            },
            _ => self.signal = Some(SignalRequest::parse(&value)?),
        }
        Ok(())
    }
}

fn shown(word: &[u8]) -> String {
    String::from_utf8_lossy(word).into_owned()
}

fn port(text: &[u8]) -> Result<u16, UsageError> {
    let number = std::str::from_utf8(text).ok().and_then(|text| text.parse().ok());
    number.filter(|port| *port > 0).ok_or_else(|| UsageError::Port(shown(text)))
}

fn needs(letter: u8) -> Option<&'static str> {
    match letter {
        b'p' => Some("directory name"),
        b'e' | b'c' => Some("file name"),
        b'g' | b's' => Some("parameter"),
        b'l' => Some("socket"),
        _ => None,
    }
}

impl UsageError {
    /// The error message; nginx calls every unknown word an option.
    pub fn complaint(&self, as_nginx: bool) -> String {
        match self {
            Self::Word { word, first: true } if !as_nginx => format!("unknown command \"{word}\""),
            Self::Word { word, .. } if !as_nginx => format!("unexpected argument \"{word}\""),
            Self::Option(word) | Self::Word { word, .. } => format!("invalid option: \"{word}\""),
            Self::Missing { option, what } => format!("option \"{option}\" requires {what}"),
            Self::Signal(word) => format!("invalid option: \"-s {word}\""),
            Self::Listen(word) => format!("invalid control socket \"{word}\", use unix:PATH"),
            Self::Port(word) => format!("invalid port \"{word}\""),
            Self::Untested => "option \"--strict\" requires -t".into(),
        }
    }
}

impl SignalRequest {
    /// The values of `-s`.
    pub const WORDS: [(&str, Self); 4] = [
        ("stop", Self::Stop),
        ("quit", Self::Quit),
        ("reopen", Self::Reopen),
        ("reload", Self::Reload),
    ];

    fn parse(word: &OsStr) -> Result<Self, UsageError> {
        let found = Self::WORDS.iter().find(|(known, _)| word == *known);
        found.map(|(_, request)| *request).ok_or_else(|| UsageError::Signal(shown(word.as_bytes())))
    }

    pub fn number(self) -> net::signals::SignalNumber {
        match self {
            Self::Stop => net::signals::SIGTERM,
            Self::Quit => net::signals::SIGQUIT,
            Self::Reopen => net::signals::SIGUSR1,
            Self::Reload => net::signals::SIGHUP,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &str) -> Result<CommandLine, UsageError> {
        CommandLine::parse(
            &words.split(' ').filter(|w| !w.is_empty()).map(Into::into).collect::<Vec<_>>(),
        )
    }

    #[test]
    fn letters_and_values_may_be_joined() {
        let line = parse("-tq -p/srv -c x.conf -gdaemon").unwrap();
        assert!(line.test && line.quiet && !line.dump);
        assert_eq!(line.prefix, Some("/srv".into()));
        assert_eq!(line.conf, Some("x.conf".into()));
        assert_eq!(line.directives, Some("daemon".into()));
        let line = parse("-l unix:/run/weir.sock").unwrap();
        assert_eq!(line.control_socket, Some("/run/weir.sock".into()));
        for wrong in ["-l /run/weir.sock", "-lunix:", "-l 127.0.0.1:80"] {
            assert!(matches!(parse(wrong), Err(UsageError::Listen(_))), "{wrong}");
        }
        assert_eq!(parse("-tc a.conf").unwrap().conf, Some("a.conf".into()));
    }

    #[test]
    fn long_options_are_parsed() {
        assert!(parse("--help").unwrap().show_help);
        assert!(parse("--version").unwrap().show_version);
        assert!(parse("-t --lenient --").unwrap().lenient);
        assert!(parse("--strict -T").unwrap().strict);
        assert_eq!(parse("--strict"), Err(UsageError::Untested));
        assert_eq!(parse("--strict --"), Err(UsageError::Untested));
        assert_eq!(parse("--port 81").unwrap().port, Some(81));
        assert_eq!(parse("--port=81").unwrap().port, Some(81));
        for wrong in ["--port=0", "--port 65536", "--port=", "--port x"] {
            assert!(matches!(parse(wrong), Err(UsageError::Port(_))), "{wrong}");
        }
    }

    #[test]
    fn errors_have_nginx_words() {
        let complaint = |words| parse(words).unwrap_err().complaint(true);
        assert_eq!(complaint("x"), "invalid option: \"x\"");
        assert_eq!(complaint("-- -x"), "invalid option: \"-x\"");
        assert_eq!(complaint("-tz"), "invalid option: \"z\"");
        assert_eq!(complaint("-s halt"), "invalid option: \"-s halt\"");
        assert_eq!(complaint("-c"), "option \"-c\" requires file name");
        assert_eq!(complaint("-p"), "option \"-p\" requires directory name");
        assert_eq!(complaint("-s"), "option \"-s\" requires parameter");
    }

    #[test]
    fn commands_are_named_in_errors_of_weir() {
        let complaint = |words| parse(words).unwrap_err().complaint(false);
        assert_eq!(complaint("x"), "unknown command \"x\"");
        assert_eq!(complaint("-t x"), "unexpected argument \"x\"");
        assert_eq!(complaint("--hlep"), "invalid option: \"--hlep\"");
    }
}
