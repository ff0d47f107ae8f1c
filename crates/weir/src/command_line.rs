//! The command line, as nginx reads it: letters joined, values joined or apart.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

/// What the command line says.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct CommandLine {
    /// `-h`, `-?`
    pub show_help: bool,
    /// `-v`, and `-h` and `-V` with it
    pub show_version: bool,
    /// `-V`
    pub show_configure: bool,
    /// `-t`, and `-T` with it
    pub test: bool,
    /// `-T`
    pub dump: bool,
    /// `-q`
    pub quiet: bool,
    /// `--lenient`: what this version does not have is a warning.
    pub lenient: bool,
    /// `-p`
    pub prefix: Option<Box<[u8]>>,
    /// `-e`; empty: the standard error
    pub error_log: Option<Box<[u8]>>,
    /// `-c`
    pub conf: Option<Box<[u8]>>,
    /// `-g`
    pub directives: Option<Box<[u8]>>,
    /// `-s`
    pub signal: Option<Request>,
}

/// What `-s` asks of a running master.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// Leave at once.
    Stop,
    /// Leave when all is answered.
    Quit,
    /// Open the logs again.
    Reopen,
    /// Read the configuration again.
    Reload,
}

impl CommandLine {
    /// Reads the arguments after the program's name; the error is nginx's complaint.
    pub fn parse(arguments: &[OsString]) -> Result<Self, String> {
        let mut line = Self::default();
        let mut arguments = arguments.iter().cloned().map(OsString::into_vec);
        while let Some(argument) = arguments.next() {
            if argument == b"--lenient" {
                line.lenient = true;
                continue;
            }
            let Some(letters) = argument.strip_prefix(b"-") else {
                let text = String::from_utf8_lossy(&argument);
                return Err(format!("invalid option: \"{text}\""));
            };
            line.letters(letters, &mut arguments)?;
        }
        Ok(line)
    }

    fn letters(
        &mut self,
        letters: &[u8],
        further: &mut impl Iterator<Item = Vec<u8>>,
    ) -> Result<(), String> {
        for (at, letter) in letters.iter().enumerate() {
            if let Some(what) = needs(*letter) {
                let joined = &letters[at + 1..];
                let value = if joined.is_empty() { further.next() } else { Some(joined.to_vec()) };
                let value = value.ok_or_else(|| {
                    format!("option \"-{}\" requires {what}", char::from(*letter))
                })?;
                return self.value(*letter, value.into());
            }
            self.letter(*letter)?;
        }
        Ok(())
    }

    fn letter(&mut self, letter: u8) -> Result<(), String> {
        match letter {
            b'?' | b'h' => (self.show_version, self.show_help) = (true, true),
            b'v' => self.show_version = true,
            b'V' => (self.show_version, self.show_configure) = (true, true),
            b't' => self.test = true,
            b'T' => (self.test, self.dump) = (true, true),
            b'q' => self.quiet = true,
            _ => return Err(format!("invalid option: \"{}\"", char::from(letter))),
        }
        Ok(())
    }

    fn value(&mut self, letter: u8, value: Box<[u8]>) -> Result<(), String> {
        match letter {
            b'p' => self.prefix = Some(value),
            b'e' if &*value == b"stderr" => self.error_log = Some(Box::default()),
            b'e' => self.error_log = Some(value),
            b'c' => self.conf = Some(value),
            b'g' => self.directives = Some(value),
            _ => self.signal = Some(Request::parse(&value)?),
        }
        Ok(())
    }

    /// The prefix, with its last slash.
    pub fn prefix(&self) -> Vec<u8> {
        let prefix = self.prefix.as_deref().unwrap_or(crate::name::name().prefix.as_bytes());
        let mut prefix = prefix.to_vec();
        if !prefix.is_empty() && !prefix.ends_with(b"/") {
            prefix.push(b'/');
        }
        prefix
    }

    /// The configuration file.
    pub fn conf(&self) -> Vec<u8> {
        let conf = self.conf.as_deref().unwrap_or(crate::name::name().conf.as_bytes());
        conf::full_name(&self.prefix(), conf)
    }

    /// The directory of the configuration file, with its last slash.
    pub fn conf_prefix(&self) -> Vec<u8> {
        let conf = self.conf();
        match conf.iter().rposition(|byte| *byte == b'/') {
            Some(at) if at > 0 => conf[..=at].to_vec(),
            _ => self.prefix(),
        }
    }

    /// The error log until the configuration names one; `None`: the standard error.
    pub fn error_log(&self) -> Option<Vec<u8>> {
        let named = self.error_log.as_deref();
        let log = named.unwrap_or(crate::name::name().error_log.as_bytes());
        (!log.is_empty()).then(|| conf::full_name(&self.prefix(), log))
    }
}

fn needs(letter: u8) -> Option<&'static str> {
    match letter {
        b'p' => Some("directory name"),
        b'e' | b'c' => Some("file name"),
        b'g' | b's' => Some("parameter"),
        _ => None,
    }
}

impl Request {
    fn parse(word: &[u8]) -> Result<Self, String> {
        match word {
            b"stop" => Ok(Self::Stop),
            b"quit" => Ok(Self::Quit),
            b"reopen" => Ok(Self::Reopen),
            b"reload" => Ok(Self::Reload),
            _ => Err(format!("invalid option: \"-s {}\"", String::from_utf8_lossy(word))),
        }
    }

    /// The signal that says it.
    pub fn number(self) -> net::signals::Number {
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

    fn parse(words: &str) -> Result<CommandLine, String> {
        CommandLine::parse(
            &words.split(' ').filter(|w| !w.is_empty()).map(Into::into).collect::<Vec<_>>(),
        )
    }

    #[test]
    fn letters_join_and_values_stand_apart_or_not() {
        let line = parse("-tq -p/srv -c x.conf -gdaemon").unwrap();
        assert!(line.test && line.quiet && !line.dump);
        assert_eq!(line.prefix(), b"/srv/");
        assert_eq!(line.conf(), b"/srv/x.conf");
        assert_eq!(line.conf_prefix(), b"/srv/");
        assert_eq!(line.directives.as_deref(), Some(&b"daemon"[..]));
        assert_eq!(parse("-tc a.conf").unwrap().conf.as_deref(), Some(&b"a.conf"[..]));
    }

    #[test]
    fn complaints_are_nginxs() {
        let complaint = |words| parse(words).unwrap_err();
        assert_eq!(complaint("x"), "invalid option: \"x\"");
        assert_eq!(complaint("-tz"), "invalid option: \"z\"");
        assert_eq!(complaint("-s halt"), "invalid option: \"-s halt\"");
        assert_eq!(complaint("-c"), "option \"-c\" requires file name");
        assert_eq!(complaint("-p"), "option \"-p\" requires directory name");
        assert_eq!(complaint("-s"), "option \"-s\" requires parameter");
    }

    #[test]
    fn the_error_log_may_be_the_terminal() {
        assert_eq!(parse("-e stderr").unwrap().error_log(), None);
        assert_eq!(parse("-p /x -e e.log").unwrap().error_log(), Some(b"/x/e.log".to_vec()));
    }
}
