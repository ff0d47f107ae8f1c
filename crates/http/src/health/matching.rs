//! `match`: tests of a reply to a health check.

use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::sync::Arc;

use ::session::health::{CheckFailure, Verdict};
use conf::{Directive, Error, Load, Result, Template, TemplatePart, Word, units};
use observe::Text;

use crate::exchange::Exchange;
use crate::regex::Pattern;

/// The names of the tests in log lines.
pub(crate) const CHECKING_STATUS: &str = "checking status code";
const CHECKING_HEADER: &str = "checking header";
const CHECKING_BODY: &str = "checking body";
const CHECKING_VARIABLES: &str = "checking variables";

/// All `match` blocks, by name.
#[derive(Default)]
pub(crate) struct Matches(HashMap<Box<[u8]>, Arc<Match>>);

/// A `match` block. The default only requires a status of 2xx or 3xx.
pub(crate) struct Match {
    name: Box<[u8]>,
    statuses: Vec<Statuses>,
    headers: Vec<HeaderMatch>,
    bodies: Vec<Compared>,
    required: Vec<(Box<[u8]>, Template)>,
}

struct Statuses {
    /// `!`
    negated: bool,
    ranges: Vec<RangeInclusive<u16>>,
}

struct HeaderMatch {
    name: Box<[u8]>,
    test: Presence,
}

enum Presence {
    Present,
    Absent,
    Compared(Compared),
}

/// `= text`, `~ pattern`, or their negation.
struct Compared {
    negated: bool,
    with: With,
}

enum With {
    Text(Box<[u8]>),
    Pattern(Pattern),
}

impl Default for Match {
    fn default() -> Self {
        let any = Statuses { negated: false, ranges: vec![200..=399] };
        Self { statuses: vec![any], ..Self::named(b"") }
    }
}

impl Matches {
    pub(crate) fn find(&self, name: &[u8]) -> Option<&Arc<Match>> {
        self.0.get(name)
    }
}

/// Reads a `match` block.
pub(crate) fn declare(from: &Directive, load: &mut Load<'_>) -> Result<()> {
    let name = from.arg(0);
    let mut block = Match::named(&name.text);
    for line in from.block.iter().flatten() {
        block.line(line, load)?;
    }
    match load.registry.of::<Matches>().0.insert(name.text.clone(), Arc::new(block)) {
        None => Ok(()),
        Some(_) => Err(from.error_at(name, format!("duplicate match \"{name}\""))),
    }
}

impl Match {
    fn named(name: &[u8]) -> Self {
        Self {
            name: name.into(),
            statuses: Vec::new(),
            headers: Vec::new(),
            bodies: Vec::new(),
            required: Vec::new(),
        }
    }

    pub(crate) fn name(&self) -> &[u8] {
        &self.name
    }

    pub(crate) fn needs_body(&self) -> bool {
        !self.bodies.is_empty()
    }

    fn line(&mut self, line: &Directive, load: &mut Load<'_>) -> Result<()> {
        if line.block.is_some() {
            return Err(line.error("unexpected \"{\""));
        }
        if line.args.is_empty() {
            let message = format!("invalid number of arguments in \"{}\" directive", line.name);
            return Err(line.error(message));
        }
        match &*line.name.text {
            b"status" => self.statuses.push(Statuses::read(line)?),
            b"header" => self.headers.push(HeaderMatch::read(line)?),
            b"body" => match &line.args[..] {
                [operator, pattern] if matches!(&*operator.text, b"~" | b"!~") => {
                    self.bodies.push(Compared::read(operator, pattern, line)?);
                }
                _ => return Err(invalid(&line.args[0], line)),
            },
            b"require" => self.require(line, load)?,
            _ => return Err(line.error(format!("unknown directive \"{}\"", line.name))),
        }
        Ok(())
    }

    fn require(&mut self, line: &Directive, load: &mut Load<'_>) -> Result<()> {
        for word in &line.args {
            let template = Template::compile(word, line, load)?;
            if !matches!(template.parts(), [TemplatePart::Variable(_)]) {
                return Err(line.error_at(word, format!("invalid variable name \"{word}\"")));
            }
            self.required.push((word.text.clone(), template));
        }
        Ok(())
    }

    /// Tests a reply, whose head is in the exchange. Returns the last test, or the failure.
    pub(crate) fn judge(&self, x: &mut Exchange, body: &[u8]) -> Verdict {
        let mut action = CHECKING_STATUS;
        let status = x.backends.head.status;
        if !self.statuses.iter().all(|statuses| statuses.has(status)) {
            return Err(unexpected_status(status));
        }
        for header in &self.headers {
            action = CHECKING_HEADER;
            if !header.matches(x) {
                let name = Text(&header.name);
                return Err(CheckFailure::new(action, format!("unexpected \"{name}\" header")));
            }
        }
        for compared in &self.bodies {
            action = CHECKING_BODY;
            if !compared.accepts(body, x) {
                return Err(CheckFailure::new(action, "unexpected body"));
            }
        }
        for (name, template) in &self.required {
            action = CHECKING_VARIABLES;
            let value = x.render(template);
            if matches!(&value[..], b"" | b"0") {
                let (name, value) = (Text(name), Text(&value));
                return Err(CheckFailure::new(action, format!("\"{name}\" is \"{value}\"")));
            }
        }
        Ok(action)
    }
}

/// The failure of a reply with an unexpected status.
pub(crate) fn unexpected_status(status: u16) -> CheckFailure {
    CheckFailure::new(CHECKING_STATUS, format!("unexpected status code {status}"))
}

impl Statuses {
    fn read(line: &Directive) -> Result<Self> {
        let (negated, words) = match &line.args[..] {
            [mark, words @ ..] if &*mark.text == b"!" => (true, words),
            words => (false, words),
        };
        let Some(_) = words.first() else { return Err(invalid(&line.args[0], line)) };
        let range = |word: &Word| range(&word.text).ok_or_else(|| invalid(word, line));
        let ranges = words.iter().map(range).collect::<Result<_>>()?;
        Ok(Self { negated, ranges })
    }

    fn has(&self, status: u16) -> bool {
        self.ranges.iter().any(|range| range.contains(&status)) != self.negated
    }
}

/// `200`, `301-303`
fn range(text: &[u8]) -> Option<RangeInclusive<u16>> {
    let status = |text: &[u8]| {
        let number = units::number(text).and_then(|number| u16::try_from(number).ok());
        number.filter(|status| (100..=999).contains(status))
    };
    let (first, last) = match text.iter().position(|&byte| byte == b'-') {
        None => (text, text),
        Some(dash) => (&text[..dash], &text[dash + 1..]),
    };
    let range = status(first)?..=status(last)?;
    (!range.is_empty()).then_some(range)
}

impl HeaderMatch {
    fn read(line: &Directive) -> Result<Self> {
        let (name, test) = match &line.args[..] {
            [mark, name] if &*mark.text == b"!" => (name, Presence::Absent),
            [name] if &*name.text != b"!" => (name, Presence::Present),
            [name, operator, value] => {
                (name, Presence::Compared(Compared::read(operator, value, line)?))
            }
            words => return Err(invalid(&words[0], line)),
        };
        Ok(Self { name: name.text.clone(), test })
    }

    fn matches(&self, x: &Exchange) -> bool {
        let (head, text) = (&x.backends.head, &x.backends.head_text);
        let named = head
            .fields
            .iter()
            .filter(|field| field.name.of(text).eq_ignore_ascii_case(&self.name))
            .map(|field| field.value.of(text));
        let mut values = named.peekable();
        let is_present = values.peek().is_some();
        match &self.test {
            Presence::Present => is_present,
            Presence::Absent => !is_present,
            // With negation, every field of the name must pass.
            Presence::Compared(test) if test.negated => {
                is_present && values.all(|value| test.accepts(value, x))
            }
            Presence::Compared(test) => values.any(|value| test.accepts(value, x)),
        }
    }
}

impl Compared {
    fn read(operator: &Word, value: &Word, line: &Directive) -> Result<Self> {
        let text = || Ok(With::Text(value.text.clone()));
        let pattern = || Pattern::compile_alone(&value.text, false, value, line).map(With::Pattern);
        let (negated, with) = match &*operator.text {
            b"=" => (false, text()),
            b"!=" => (true, text()),
            b"~" => (false, pattern()),
            b"!~" => (true, pattern()),
            _ => return Err(invalid(operator, line)),
        };
        Ok(Self { negated, with: with? })
    }

    /// Compares a text. If the match exceeds its limits, which is logged, the text fails.
    fn accepts(&self, subject: &[u8], x: &Exchange) -> bool {
        let found = match &self.with {
            With::Text(text) => Ok(*subject == **text),
            With::Pattern(pattern) => pattern.is_match(subject, x),
        };
        found.is_ok_and(|found| found != self.negated)
    }
}

fn invalid(word: &Word, line: &Directive) -> Error {
    line.error_at(word, format!("invalid parameter \"{word}\""))
}
