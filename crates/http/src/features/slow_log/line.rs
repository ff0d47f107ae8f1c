//! One `slow_log` line.

use std::sync::Arc;

use conf::{Directive, Load, Result, Template, Word, units};
use observe::{ErrorLog, Level, MessageSource, Text};
use session::log::AccessLog;

use super::rate::LineRate;
use crate::exchange::Exchange;

/// The format without a name.
const FORMAT: &str = "$time_iso8601 $remote_addr \"$request\" $host $status ${request_time}s \
                      $upstream_addr $request_timing";

/// Lines a second without `rate=`.
const RATE: u64 = 10;

/// A place that slow requests are logged to.
pub struct SlowLog {
    pub(super) log: AccessLog<Exchange>,
    pub(super) threshold_ms: u64,
    pub(super) rate: LineRate,
    /// The place, for messages.
    place: Box<[u8]>,
}

/// The parameters after the format.
#[derive(Default)]
struct SlowLogParameters {
    threshold_ms: Option<u64>,
    rate: Option<LineRate>,
    condition: Option<Template>,
}

impl SlowLog {
    pub(super) fn parse(from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        let words = &from.args[1..];
        let (format, words) = match words {
            [name, rest @ ..] if !name.text.contains(&b'=') => (Some(name), rest),
            words => (None, words),
        };
        let mut parameters = SlowLogParameters::default();
        for word in words {
            parameters.read(word, from, load)?;
        }
        let SlowLogParameters { threshold_ms, rate, condition } = parameters;
        let threshold_ms = threshold_ms
            .ok_or_else(|| from.error("\"slow_log\" must have \"threshold\" parameter"))?;
        let rate = rate.unwrap_or_else(|| LineRate::new(RATE, 1000));
        let log = AccessLog::at_once(from, format, FORMAT, condition, load)?;
        Ok(Self { log, threshold_ms, rate, place: from.arg(0).text.clone() })
    }

    /// Tells the error log how many slow requests this log lacks.
    pub(super) fn tell_left_out(&self, count: u64, log: &Arc<ErrorLog>) {
        if count == 0 {
            return;
        }
        let (place, rate) = (Text(&self.place), &self.rate);
        let message = format_args!("slow requests left out of \"{place}\" by {rate}: {count}");
        log.write(Level::Warn, MessageSource::default(), message, |_| {});
    }
}

impl SlowLogParameters {
    fn read(&mut self, word: &Word, from: &Directive, load: &mut Load<'_>) -> Result<()> {
        let invalid = |what: &str| from.error_at(word, format!("invalid {what} \"{word}\""));
        let text = &*word.text;
        if let Some(value) = text.strip_prefix(b"threshold=") {
            let time = units::milliseconds(value).ok_or_else(|| invalid("time"))?;
            self.threshold_ms = Some(time);
        } else if let Some(value) = text.strip_prefix(b"rate=") {
            self.rate = Some(LineRate::parse(value).ok_or_else(|| invalid("rate"))?);
        } else if let Some(value) = text.strip_prefix(b"if=") {
            self.condition = Some(Template::from_bytes(value, word, from, load)?);
        } else {
            return Err(invalid("parameter").meant(text, ["threshold=", "rate=", "if="]));
        }
        Ok(())
    }
}
