//! The parameters of `health_check`.

use std::ops::RangeInclusive;
use std::sync::Arc;

use ::session::health::CheckParameters;
use conf::{Directive, Inherited, Load, Result, Value, Word, units};
use wire::grpc::{HEALTH_CHECK, STATUS_MAX};

use crate::health::GrpcCheck;
use crate::health::matching::{Match, Matches};

#[derive(Clone)]
pub struct HealthCheckLine {
    pub(super) parameters: CheckParameters,
    /// `uri=`
    uri: Option<Arc<[u8]>>,
    pub(super) keepalive_time_ms: u64,
    /// `type=grpc`
    pub(super) grpc: Option<GrpcCheck>,
}

impl Value for HealthCheckLine {
    const ARGS: RangeInclusive<usize> = 0..=usize::MAX;
    const INHERITED: Inherited = Inherited::Never;
    fn parse(from: &Directive, _: &mut Load<'_>) -> Result<Self> {
        let parameters = CheckParameters::new(from);
        let mut check = Self { parameters, uri: None, keepalive_time_ms: 0, grpc: None };
        for word in &from.args {
            match &mut check.grpc {
                Some(grpc) => parameter_of_grpc(grpc, word, from)?,
                None => check.parameter(word)?,
            }
        }
        let is_of_http = check.uri.is_some() || check.parameters.has_matching();
        match check.grpc.is_some() && is_of_http {
            true => Err(from.refuse("cannot have \"uri\" or \"match\" with \"type=grpc\"")),
            false => Ok(check),
        }
    }
}

impl HealthCheckLine {
    /// The path of requests.
    pub(super) fn uri(&self) -> Arc<[u8]> {
        match (&self.grpc, &self.uri) {
            (Some(_), _) => HEALTH_CHECK.into(),
            (None, Some(uri)) => uri.clone(),
            (None, None) => b"/"[..].into(),
        }
    }

    fn parameter(&mut self, word: &Word) -> Result<()> {
        let value = |name: &[u8]| word.text.strip_prefix(name);
        if let Some(path) = value(b"uri=").filter(|path| is_path(path)) {
            self.uri = Some(path.into());
        } else if let Some(time) = value(b"keepalive_time=") {
            let time_ms = units::milliseconds(time);
            self.keepalive_time_ms = time_ms.ok_or_else(|| self.parameters.invalid(word))?;
        } else if *word.text == *b"type=grpc" {
            self.grpc = Some(GrpcCheck::default());
        } else {
            self.parameters.set(word)?;
        }
        Ok(())
    }

    /// The `match` block for replies.
    pub(super) fn matching(&self, matches: &Matches) -> Result<Arc<Match>> {
        let found = self.parameters.matching(|name| matches.find(name).cloned());
        found.map(Option::unwrap_or_default)
    }
}

/// Takes a parameter after `type=grpc`, which is the last of the others.
fn parameter_of_grpc(grpc: &mut GrpcCheck, word: &Word, from: &Directive) -> Result<()> {
    let value = |name: &[u8]| word.text.strip_prefix(name);
    if let Some(service) = value(b"grpc_service=").filter(|name| !name.is_empty()) {
        grpc.service = service.into();
        return Ok(());
    }
    let Some(status) = value(b"grpc_status=") else {
        let message = format!(
            "only \"grpc_service\" and \"grpc_status\" may follow \"type=grpc\", not \"{word}\""
        );
        return Err(from.error_at(word, message));
    };
    let status = units::number(status).and_then(|status| u32::try_from(status).ok());
    let status = status.filter(|status| *status <= STATUS_MAX);
    grpc.status =
        status.ok_or_else(|| from.error_at(word, format!("invalid parameter \"{word}\"")))?;
    Ok(())
}

/// Whether it is a valid path of a request: it contains nothing that would end the request line.
fn is_path(text: &[u8]) -> bool {
    text.first() == Some(&b'/') && text.iter().all(|&byte| byte > b' ' && byte != 0x7f)
}
