//! The values of the directives of locations.

use std::ops::RangeInclusive;

use conf::{Directive, Load, Result, Template, Value, VariableId, Word, units};

use super::encode;
use crate::exchange::Exchange;

/// The statuses of failures.
const FAILURE_LEAST: u16 = 500;

/// `otel_trace`
#[derive(Clone)]
pub struct TraceRule {
    pub(super) from: Directive,
    pub(super) value: TraceValue,
    pub(super) tail: TailRule,
}

#[derive(Clone)]
pub(super) enum TraceValue {
    Fixed(bool),
    Computed {
        template: Template,
        /// The variable `$otel_trace_id`.
        trace_id: VariableId,
    },
}

/// What is decided at the end of a request that is not sampled.
#[derive(Clone, Copy, Default)]
pub struct TailRule {
    errors: bool,
    slow_ms: Option<u64>,
}

impl Value for TraceRule {
    const ARGS: RangeInclusive<usize> = 1..=3;
    fn parse(from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        let template = Template::parse(from, load)?;
        let value = match template.as_fixed() {
            Some(b"on" | b"1") => TraceValue::Fixed(true),
            Some(b"off" | b"0" | b"") => TraceValue::Fixed(false),
            Some(_) => return Err(invalid(from, from.arg(0)).meant(&from.arg(0).text, WORDS)),
            None => {
                let trace_id = load.names.number(b"otel_trace_id", None);
                TraceValue::Computed { template, trace_id }
            }
        };
        let mut tail = TailRule::default();
        from.args[1..].iter().try_for_each(|word| tail.set(word, from))?;
        Ok(Self { from: from.clone(), value, tail })
    }
}

const WORDS: [&str; 2] = ["on", "off"];

fn invalid(from: &Directive, word: &Word) -> conf::Error {
    from.error_at(word, format!("invalid parameter \"{word}\""))
}

impl TailRule {
    fn set(&mut self, word: &Word, from: &Directive) -> Result<()> {
        match &*word.text {
            b"errors" => self.errors = true,
            text => {
                let time = text.strip_prefix(b"slow=").and_then(units::milliseconds);
                self.slow_ms = Some(time.ok_or_else(|| invalid(from, word))?);
            }
        }
        Ok(())
    }

    pub(super) fn applies_at_all(self) -> bool {
        self.errors || self.slow_ms.is_some()
    }

    pub(super) fn applies(self, x: &Exchange) -> bool {
        self.errors && is_failure(x.status()) || self.slow_ms.is_some_and(|ms| x.age_ms() >= ms)
    }
}

pub(super) fn is_failure(status: u16) -> bool {
    status >= FAILURE_LEAST
}

conf::words! {
    /// `otel_trace_context`
    pub enum Propagation {
        Ignore = "ignore",
        Extract = "extract",
        Inject = "inject",
        Propagate = "propagate",
    }
}

impl Propagation {
    pub(super) fn extracts(self) -> bool {
        matches!(self, Self::Extract | Self::Propagate)
    }

    pub(super) fn injects(self) -> bool {
        matches!(self, Self::Inject | Self::Propagate)
    }
}

/// `otel_span_attr`
#[derive(Clone)]
pub struct SpanAttribute {
    /// The key as it is sent.
    pub(super) key: Box<[u8]>,
    /// Whether the value is sent as a list.
    pub(super) is_list: bool,
    pub(super) value: Template,
}

impl Value for SpanAttribute {
    const ARGS: RangeInclusive<usize> = 2..=2;
    fn parse(from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        let name = &from.arg(0).text;
        let is_header = |prefix: &&[u8]| name.starts_with(prefix);
        let headers = [&b"http.request.header."[..], b"http.response.header."];
        let value = Template::compile(from.arg(1), from, load)?;
        Ok(Self { key: encode::key(name), is_list: headers.iter().any(is_header), value })
    }
}
