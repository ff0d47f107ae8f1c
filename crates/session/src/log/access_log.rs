//! `access_log path [format [buffer=size] [gzip[=level]] [flush=time] [if=condition]]`

use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::Arc;

use conf::{Directive, Error, Load, Result, Template, Value, Word, units};
use observe::{Buffering, LogFile, LogFiles, SyslogTarget};

use super::format::{Formats, LogFormat};
use super::json;
use super::logged::LoggedSession;
use super::path::LogPath;

/// The access logs of a block, as its lines name them.
pub struct AccessLogs<X> {
    off: bool,
    lines: Vec<Arc<AccessLogLine<X>>>,
}

struct AccessLogLine<X> {
    destination: Arc<AccessLogFile>,
    /// `None`: `json`, which a line further down may define.
    format: Option<Arc<LogFormat<X>>>,
    condition: Option<Arc<Template>>,
}

impl<X> Clone for AccessLogs<X> {
    fn clone(&self) -> Self {
        Self { off: self.off, lines: self.lines.clone() }
    }
}

/// An access log of a location or a server.
pub struct AccessLog<X> {
    pub(super) destination: Arc<AccessLogFile>,
    pub(super) format: Arc<LogFormat<X>>,
    /// The condition `if=`.
    condition: Option<Arc<Template>>,
}

pub(super) enum AccessLogFile {
    File(Arc<LogFile>),
    Syslog(Arc<SyslogTarget>),
    Path(LogPath),
}

/// nginx's default size of the buffer that `gzip` needs.
const GZIP_BUFFER_SIZE: u64 = 64 * 1024;
/// zlib's fastest level.
const GZIP_LEVEL: u32 = 1;

impl<X: LoggedSession> Value for AccessLogs<X> {
    const ARGS: RangeInclusive<usize> = 1..=usize::MAX;
    fn parse(from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        let mut logs = Self { off: false, lines: Vec::new() };
        logs.repeat(from, load)?;
        Ok(logs)
    }
    fn repeat(&mut self, from: &Directive, load: &mut Load<'_>) -> Result<()> {
        if &*from.arg(0).text != b"off" {
            self.lines.push(Arc::new(AccessLogLine::parse(from, load)?));
        } else if let Some(word) = from.args.get(1) {
            return Err(invalid_parameter(word, from));
        } else {
            self.off = true;
        }
        Ok(())
    }
}

impl<X: LoggedSession> AccessLogs<X> {
    /// The logs; none if a line has `off`. All lines of the configuration have been read.
    pub fn logs(&self, load: &mut Load<'_>) -> Box<[AccessLog<X>]> {
        let lines = if self.off { &[] } else { &self.lines[..] };
        lines.iter().map(|line| line.complete(load)).collect()
    }
}

impl<X: LoggedSession> AccessLogLine<X> {
    fn parse(from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        let destination = AccessLogFile::parse(from, load)?;
        let format = Self::format(from, load)?;
        let mut parameters = Parameters::default();
        for word in from.args.iter().skip(2) {
            parameters.read(word, from, load)?;
        }
        parameters.apply(&destination, from)?;
        let condition = parameters.condition.map(Arc::new);
        Ok(Self { destination: Arc::new(destination), format, condition })
    }

    /// The format that the line names; `None`: `json`, which is not defined so far.
    fn format(from: &Directive, load: &mut Load<'_>) -> Result<Option<Arc<LogFormat<X>>>> {
        let Some(name) = from.args.get(1) else {
            let missing = || from.error("log format is not specified");
            return Formats::combined(load).ok_or_else(missing).map(Some);
        };
        let found = Formats::named(&name.text, load);
        if found.is_none() && !name.text.eq_ignore_ascii_case(json::NAME) {
            return Err(from.error_at(name, format!("unknown log format \"{name}\"")));
        }
        Ok(found)
    }

    fn complete(&self, load: &mut Load<'_>) -> AccessLog<X> {
        let (destination, condition) = (self.destination.clone(), self.condition.clone());
        let format = self.format.clone().unwrap_or_else(|| Formats::json(load));
        AccessLog { destination, format, condition }
    }
}

impl<X: LoggedSession> AccessLog<X> {
    /// A log to a file in the format `combined`; `None` if that format is not built in.
    pub fn by_default(path: &Path, load: &mut Load<'_>) -> Option<Self> {
        let destination = AccessLogFile::File(load.registry.of::<LogFiles>().at(path));
        let format = Formats::combined(load)?;
        Some(Self { destination: Arc::new(destination), format, condition: None })
    }

    /// A log without a buffer to the place that the first argument names. Without a name of a
    /// format, `text` is its format.
    pub fn at_once(
        from: &Directive,
        format: Option<&Word>,
        text: &str,
        condition: Option<Template>,
        load: &mut Load<'_>,
    ) -> Result<Self> {
        let destination = Arc::new(AccessLogFile::parse(from, load)?);
        let format = match format {
            None => Formats::built_in(text, load),
            Some(name) if name.text.eq_ignore_ascii_case(json::NAME) => Formats::json(load),
            Some(name) => Formats::named(&name.text, load)
                .ok_or_else(|| from.error_at(name, format!("unknown log format \"{name}\"")))?,
        };
        Ok(Self { destination, format, condition: condition.map(Arc::new) })
    }

    /// Whether the condition `if=` admits the session.
    pub(super) fn wants(&self, x: &mut X) -> bool {
        let Some(condition) = &self.condition else { return true };
        let mut value = x.scratch();
        condition.render(x, &mut value);
        let wants = !matches!(&value[..], b"" | b"0");
        x.give_scratch(value);
        wants
    }
}

impl AccessLogFile {
    fn parse(from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        let word = from.arg(0);
        if let Some(target) = SyslogTarget::parse(word, from)? {
            return Ok(Self::Syslog(Arc::new(target)));
        }
        if word.text.contains(&b'$') {
            return LogPath::parse(word, from, load).map(Self::Path);
        }
        let path = load.path(&word.text);
        Ok(Self::File(load.registry.of::<LogFiles>().named(&path, Some(word.span))))
    }
}

/// The parameters after the format.
#[derive(Default)]
struct Parameters {
    size: u64,
    flush_ms: u64,
    gzip: u32,
    condition: Option<Template>,
}

impl Parameters {
    fn read(&mut self, word: &Word, from: &Directive, load: &mut Load<'_>) -> Result<()> {
        let invalid = |what: &str, value: &[u8]| {
            from.error_at(word, format!("invalid {what} \"{}\"", String::from_utf8_lossy(value)))
        };
        if let Some(value) = word.text.strip_prefix(b"buffer=") {
            self.size =
                positive(units::size(value)).ok_or_else(|| invalid("buffer size", value))?;
        } else if let Some(value) = word.text.strip_prefix(b"flush=") {
            let time = positive(units::milliseconds(value));
            self.flush_ms = time.ok_or_else(|| invalid("flush time", value))?;
        } else if &*word.text == b"gzip" {
            self.compress(GZIP_LEVEL);
        } else if let Some(value) = word.text.strip_prefix(b"gzip=") {
            let level = units::number(value).filter(|level| (1..=9).contains(level));
            self.compress(level.ok_or_else(|| invalid("compression level", value))? as u32);
        } else if let Some(value) = word.text.strip_prefix(b"if=") {
            self.condition = Some(Template::from_bytes(value, word, from, load)?);
        } else {
            return Err(invalid_parameter(word, from));
        }
        Ok(())
    }

    fn compress(&mut self, level: u32) {
        self.gzip = level;
        if self.size == 0 {
            self.size = GZIP_BUFFER_SIZE;
        }
    }

    fn apply(&self, destination: &AccessLogFile, from: &Directive) -> Result<()> {
        let path = from.arg(0);
        if self.size == 0 {
            return match self.flush_ms {
                0 => Ok(()),
                _ => {
                    Err(from
                        .error_at(path, format!("no buffer is defined for access_log \"{path}\"")))
                }
            };
        }
        let (size, flush_ms, gzip) = (self.size as usize, self.flush_ms, self.gzip);
        match destination {
            AccessLogFile::File(file) if file.set_buffering(Buffering { size, flush_ms, gzip }) => {
                Ok(())
            }
            AccessLogFile::File(_) => Err(from.error_at(
                path,
                format!("access_log \"{path}\" already defined with conflicting parameters"),
            )),
            AccessLogFile::Syslog(_) => {
                Err(from.error_at(path, "logs to syslog cannot be buffered"))
            }
            AccessLogFile::Path(_) => {
                Err(from.error_at(path, "buffered logs cannot have variables in name"))
            }
        }
    }
}

fn positive(value: Option<u64>) -> Option<u64> {
    value.filter(|value| *value > 0)
}

fn invalid_parameter(word: &Word, from: &Directive) -> Error {
    from.error_at(word, format!("invalid parameter \"{word}\""))
}
