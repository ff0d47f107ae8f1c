//! Programs: the parsed directives of a block, line by line.

use std::ops::RangeInclusive;
use std::sync::Arc;

use conf::{Directive, Inherited, Load, Result, Template, Value, VariableId, Word, units};
use observe::{Level, Text};

use super::condition::Condition;
use super::replacement::Replacement;
use crate::regex::Pattern;
use crate::variables::{self, Setter, Variable};

/// The lines of a block.
#[derive(Clone, Default)]
pub struct Program {
    pub(super) codes: Vec<Code>,
    /// The number of `if` lines.
    ifs: usize,
}

#[derive(Clone)]
pub(super) enum Code {
    Set(SetVariable),
    If(If),
    Rewrite(Arc<Rewrite>),
    Return(Return),
    Break,
}

#[derive(Clone)]
pub(super) struct SetVariable {
    pub(super) variable: VariableId,
    pub(super) value: Template,
    /// Called instead of storing the value, if the variable has a setter.
    pub(super) set: Option<Setter>,
}

#[derive(Clone)]
pub(super) struct If {
    pub(super) condition: Condition,
    /// The number of the `if` in its block.
    pub(super) number: usize,
    /// The line after those inside.
    pub(super) end: usize,
}

pub(super) struct Rewrite {
    pub(super) pattern: Pattern,
    pub(super) replacement: Replacement,
    pub(super) then: Then,
}

/// What follows a rewrite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Then {
    Next,
    /// `last`: the location is chosen again.
    Last,
    /// `break`: the location stays.
    Break,
    /// `redirect` and `permanent`: a redirect with this status.
    Redirect(u16),
}

#[derive(Clone)]
pub(super) struct Return {
    pub(super) status: u16,
    pub(super) text: Template,
}

impl Value for Program {
    const ARGS: RangeInclusive<usize> = 0..=usize::MAX;
    const INHERITED: Inherited = Inherited::Never;
    fn parse(from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        let mut program = Self::default();
        program.repeat(from, load)?;
        Ok(program)
    }
    fn repeat(&mut self, from: &Directive, load: &mut Load<'_>) -> Result<()> {
        let code = match &*from.name.text {
            b"set" => Code::Set(SetVariable::parse(from, load)?),
            b"if" => {
                self.ifs += 1;
                let (condition, number) = (Condition::parse(from, load)?, self.ifs - 1);
                Code::If(If { condition, number, end: self.codes.len() + 1 })
            }
            b"rewrite" => Code::Rewrite(Arc::new(Rewrite::parse(from, load)?)),
            b"return" => Code::Return(Return::parse(from, load)?),
            _ => Code::Break,
        };
        self.codes.push(code);
        Ok(())
    }
}

impl Program {
    /// Appends the lines inside the last `if`.
    pub(super) fn merge_if_block(&mut self, inside: Option<Self>) {
        let inside = inside.unwrap_or_default().codes;
        if let Some(Code::If(last)) = self.codes.last_mut() {
            last.end += inside.len();
        }
        self.codes.extend(inside);
    }
}

impl SetVariable {
    fn parse(from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        let (variable, set) = variables::define_set(from.arg(0), from, load, uninitialized)?;
        Ok(Self { variable, set, value: Template::compile(from.arg(1), from, load)? })
    }
}

/// The value of a variable that has a `set` somewhere, before any was run.
fn uninitialized(name: &[u8]) -> Variable {
    let name: Box<[u8]> = name.into();
    Variable::cached(move |x, _| {
        if x.location().core.uninitialized_variable_warn {
            let name = Text(&name);
            x.log(Level::Warn, format_args!("using uninitialized \"{name}\" variable"));
        }
        true
    })
}

impl Rewrite {
    fn parse(from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        let (pattern, replacement) = (from.arg(0), from.arg(1));
        if replacement.text.is_empty() {
            return Err(from.error_at(replacement, "empty replacement"));
        }
        let pattern = Pattern::compile(&pattern.text, false, pattern, from, load)?;
        let then = Then::parse(&replacement.text, from.args.get(2), from)?;
        let redirects = matches!(then, Then::Redirect(_));
        let replacement = Replacement::compile(redirects, replacement, from, load)?;
        Ok(Self { pattern, replacement, then })
    }
}

impl Then {
    fn parse(replacement: &[u8], flag: Option<&Word>, from: &Directive) -> Result<Self> {
        let then = match flag.map(|flag| (flag, &*flag.text)) {
            None => Self::Next,
            Some((_, b"last")) => Self::Last,
            Some((_, b"break")) => Self::Break,
            Some((_, b"redirect")) => Self::Redirect(302),
            Some((_, b"permanent")) => Self::Redirect(301),
            Some((flag, _)) => {
                let error = from.error_at(flag, format!("invalid parameter \"{flag}\""));
                return Err(error.meant(&flag.text, ["last", "break", "redirect", "permanent"]));
            }
        };
        match then {
            Self::Redirect(_) => Ok(then),
            _ if is_url(replacement) => Ok(Self::Redirect(302)),
            _ => Ok(then),
        }
    }
}

impl Return {
    fn parse(from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        let (first, text) = (from.arg(0), from.args.get(1));
        let (status, text) = match units::number(&first.text) {
            Some(status @ 0..=999) => (status as u16, text),
            None if text.is_none() && is_url(&first.text) => (302, Some(first)),
            _ => return Err(from.error_at(first, format!("invalid return code \"{first}\""))),
        };
        let text = match text {
            Some(text) => Template::compile(text, from, load)?,
            None => Template::fixed(b""),
        };
        Ok(Self { status, text })
    }
}

/// Whether a text begins like a URL.
fn is_url(text: &[u8]) -> bool {
    [&b"http://"[..], b"https://", b"$scheme"].iter().any(|start| text.starts_with(start))
}
