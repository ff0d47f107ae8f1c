//! `server` in an `upstream` block.

use std::ops::RangeInclusive;
use std::sync::Arc;

use conf::{Directive, Load, Result, Subsystem, Value, Word, units};

use super::method::GroupReading;
use crate::address::{self, Endpoint};
use crate::roster::{DEFAULT_PORT, ServerSpec};
use crate::server::ServerStatus;
use crate::sticky::SID_LENGTH_MAX;

#[derive(Clone, Debug)]
pub struct ServerLine {
    pub(super) place: Endpoint,
    pub(super) spec: ServerSpec,
    pub(super) from: Directive,
}

impl Value for ServerLine {
    const ARGS: RangeInclusive<usize> = 1..=usize::MAX;
    fn parse(from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        let text = from.arg(0);
        let mut line = Self {
            place: Endpoint::Named { host: Box::default(), port: DEFAULT_PORT },
            spec: ServerSpec::plain(&text.text),
            from: from.clone(),
        };
        for word in &from.args[1..] {
            line.parameter(word, from, load)?;
        }
        let of_service =
            |why: &str| from.error_at(text, format!("service upstream \"{text}\" {why}"));
        if line.spec.service.is_some() && !line.spec.resolve {
            return Err(of_service("requires \"resolve\" parameter"));
        }
        let parsed = address::parse(&text.text, DEFAULT_PORT);
        let parsed = parsed.map_err(|refusal| {
            let error = from.error_at(text, format!("{refusal} in upstream \"{text}\""));
            error.guess(address::meant(&text.text))
        })?;
        if line.spec.service.is_some() && parsed.port_said {
            return Err(of_service("may not have port"));
        }
        if line.spec.service.is_some() && matches!(parsed.place, Endpoint::At(_)) {
            return Err(of_service("requires domain name"));
        }
        let needs_port = load.subsystem == Subsystem::Stream && line.spec.service.is_none();
        if needs_port && parsed.lacks_port() {
            return Err(from.error_at(text, format!("no port in upstream \"{text}\"")));
        }
        line.place = parsed.place;
        Ok(line)
    }
}

impl ServerLine {
    fn parameter(&mut self, word: &Word, from: &Directive, load: &mut Load<'_>) -> Result<()> {
        let invalid = || from.error_at(word, format!("invalid parameter \"{word}\""));
        let refused = |refused: bool| match refused {
            false => Ok(()),
            true => {
                let why = "balancing method does not support parameter";
                Err(from.error_at(word, format!("{why} \"{word}\"")))
            }
        };
        let reading = load.own.of::<GroupReading>();
        let (name, value) = match word.text.iter().position(|&byte| byte == b'=') {
            Some(at) => word.text.split_at(at + 1),
            None => (&word.text[..], &b""[..]),
        };
        let number = || {
            let number = units::number(value).and_then(|number| u32::try_from(number).ok());
            number.ok_or_else(invalid)
        };
        let terms = &mut self.spec.terms;
        match name {
            b"weight=" => {
                terms.weight = number()?;
                if terms.weight == 0 {
                    return Err(invalid());
                }
            }
            b"max_conns=" => terms.max_conns = number()?,
            b"max_fails=" => terms.failure_policy.max_fails = number()?,
            b"fail_timeout=" => {
                let seconds = units::seconds(value).ok_or_else(invalid)?;
                terms.failure_policy.fail_timeout_ms = seconds.saturating_mul(1000);
            }
            b"slow_start=" => {
                refused(reading.refused.slow_start)?;
                terms.slow_start_ms = units::milliseconds(value).ok_or_else(invalid)?;
            }
            b"route=" | b"sid=" => terms.route = Some(route(value, word, from)?),
            b"backup" => {
                refused(reading.refused.backup)?;
                self.spec.backup = true;
            }
            b"resolve" => self.spec.resolve = true,
            b"service=" if value.is_empty() => {
                return Err(from.error_at(word, "service is empty"));
            }
            b"service=" => self.spec.service = Some(value.into()),
            b"down" => terms.status = ServerStatus::Down,
            b"drain" => terms.status = ServerStatus::Drain,
            _ => return Err(invalid().meant(name, PARAMETERS)),
        }
        Ok(())
    }
}

/// The parameters after the address.
const PARAMETERS: [&str; 12] = [
    "weight=",
    "max_conns=",
    "max_fails=",
    "fail_timeout=",
    "slow_start=",
    "route=",
    "sid=",
    "service=",
    "backup",
    "resolve",
    "down",
    "drain",
];

fn route(text: &[u8], word: &Word, from: &Directive) -> Result<Arc<[u8]>> {
    match text.len() {
        0 => Err(from.error_at(word, "route is empty")),
        1..=SID_LENGTH_MAX => Ok(text.into()),
        _ => Err(from.error_at(word, format!("route is longer than {SID_LENGTH_MAX}"))),
    }
}
