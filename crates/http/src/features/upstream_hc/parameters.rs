//! The parameters of `health_check`.

use std::ops::RangeInclusive;
use std::sync::Arc;

use ::session::health::CheckParameters;
use conf::lacking::Class;
use conf::{Directive, Inherited, Load, Result, Value, Word, units};

use crate::health::matching::{Match, Matches};

#[derive(Clone)]
pub struct HealthCheckLine {
    pub(super) parameters: CheckParameters,
    pub(super) uri: Arc<[u8]>,
    pub(super) keepalive_time_ms: u64,
}

impl Value for HealthCheckLine {
    const ARGS: RangeInclusive<usize> = 0..=usize::MAX;
    const INHERITED: Inherited = Inherited::Never;
    fn parse(from: &Directive, _: &mut Load<'_>) -> Result<Self> {
        let parameters = CheckParameters::new(from);
        let mut check = Self { parameters, uri: b"/"[..].into(), keepalive_time_ms: 0 };
        for word in &from.args {
            check.parameter(word, from)?;
        }
        Ok(check)
    }
}

impl HealthCheckLine {
    fn parameter(&mut self, word: &Word, from: &Directive) -> Result<()> {
        let value = |name: &[u8]| word.text.strip_prefix(name);
        if let Some(path) = value(b"uri=").filter(|path| is_path(path)) {
            self.uri = path.into();
        } else if let Some(time) = value(b"keepalive_time=") {
            let time_ms = units::milliseconds(time);
            self.keepalive_time_ms = time_ms.ok_or_else(|| self.parameters.invalid(word))?;
        } else if *word.text == *b"type=grpc" {
            let why = "health checks of gRPC servers are not supported";
            return Err(from.error_at(word, why).lacks(Class::Behavior));
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

/// Whether it is a valid path of a request: it contains nothing that would end the request line.
fn is_path(text: &[u8]) -> bool {
    text.first() == Some(&b'/') && text.iter().all(|&byte| byte > b' ' && byte != 0x7f)
}
