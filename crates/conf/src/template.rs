//! Strings with variables, compiled once: literal pieces, variables by number, captures.
//!
//! Deliberately absent: the values of variables. The renderer supplies them by number.

use std::collections::HashMap;

use crate::{Directive, Load, Result, Span, Word};

/// The number of a variable's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct VariableId(pub u32);

/// The names of all variables that a configuration mentions, numbered in order of appearance.
#[derive(Default)]
pub struct VariableNames {
    numbers: HashMap<Box<[u8]>, VariableId>,
    mentions: Vec<(Box<[u8]>, Option<Span>)>,
}

impl VariableNames {
    /// The number of a name; as in nginx, names are compared without regard to case.
    pub fn number(&mut self, name: &[u8], at: Option<Span>) -> VariableId {
        let name: Box<[u8]> = name.to_ascii_lowercase().into();
        if let Some(&id) = self.numbers.get(&name) {
            return id;
        }
        let id = VariableId(self.mentions.len() as u32);
        self.numbers.insert(name.clone(), id);
        self.mentions.push((name, at));
        id
    }

    /// Every name with the place of its first mention, in order of number.
    pub fn mentions(&self) -> impl Iterator<Item = (&[u8], Option<Span>)> {
        self.mentions.iter().map(|(name, span)| (&name[..], *span))
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TemplatePart {
    Text(Box<[u8]>),
    Variable(VariableId),
    /// `$1` to `$9`: a group of the last regular expression that matched.
    Capture(u8),
}

/// A string with variables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    parts: Box<[TemplatePart]>,
}

/// The source of values.
pub trait Values {
    /// Appends a variable's value. Returns false if it has none.
    fn variable(&mut self, id: VariableId, out: &mut Vec<u8>) -> bool;
    /// Appends a captured group.
    fn capture(&mut self, group: u8, out: &mut Vec<u8>);
}

impl Template {
    /// Compiles an argument of a directive.
    pub fn compile(word: &Word, from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        Self::from_bytes(&word.text, word, from, load)
    }

    /// Compiles a part of an argument.
    pub fn from_bytes(
        text: &[u8],
        word: &Word,
        from: &Directive,
        load: &mut Load<'_>,
    ) -> Result<Self> {
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some(dollar) = rest.iter().position(|&b| b == b'$') {
            if dollar > 0 {
                parts.push(TemplatePart::Text(rest[..dollar].into()));
            }
            let (part, after) = reference(&rest[dollar + 1..], word, load)
                .map_err(|message| from.error_at(word, message))?;
            parts.push(part);
            rest = after;
        }
        if !rest.is_empty() {
            parts.push(TemplatePart::Text(rest.into()));
        }
        Ok(Self { parts: parts.into() })
    }

    /// A template without variables.
    pub fn fixed(text: &[u8]) -> Self {
        let parts =
            if text.is_empty() { Vec::new() } else { vec![TemplatePart::Text(text.into())] };
        Self { parts: parts.into() }
    }

    /// A template that is one variable.
    pub fn variable(id: VariableId) -> Self {
        Self { parts: [TemplatePart::Variable(id)].into() }
    }

    /// The text, if it has no variables.
    pub fn as_fixed(&self) -> Option<&[u8]> {
        match &*self.parts {
            [] => Some(b""),
            [TemplatePart::Text(text)] => Some(text),
            _ => None,
        }
    }

    /// The variable, if it is nothing else.
    pub fn as_variable(&self) -> Option<VariableId> {
        match *self.parts {
            [TemplatePart::Variable(id)] => Some(id),
            _ => None,
        }
    }

    pub fn parts(&self) -> &[TemplatePart] {
        &self.parts
    }

    /// Appends the text with the values of its variables.
    pub fn render(&self, values: &mut impl Values, out: &mut Vec<u8>) {
        for part in &self.parts {
            match part {
                TemplatePart::Text(text) => out.extend_from_slice(text),
                TemplatePart::Variable(id) => {
                    values.variable(*id, out);
                }
                TemplatePart::Capture(group) => values.capture(*group, out),
            }
        }
    }
}

/// Parses the text after a `$`: a digit, a name, or a name in braces. nginx reads `$10` as `$1` and
/// `0`, and a digit in braces as a name.
fn reference<'t>(
    text: &'t [u8],
    word: &Word,
    load: &mut Load<'_>,
) -> Result<(TemplatePart, &'t [u8]), String> {
    if let Some(digit @ b'1'..=b'9') = text.first() {
        return Ok((TemplatePart::Capture(digit - b'0'), &text[1..]));
    }
    let braces = text.first() == Some(&b'{');
    let text = &text[usize::from(braces)..];
    let (name, mut rest) = text.split_at(name_length(text));
    if braces && !text.is_empty() {
        rest = rest.strip_prefix(b"}").ok_or_else(|| {
            let name = String::from_utf8_lossy(name);
            format!("the closing bracket in \"{name}\" variable is missing")
        })?;
    }
    if name.is_empty() {
        return Err("invalid variable name".into());
    }
    Ok((TemplatePart::Variable(load.names.number(name, Some(word.span))), rest))
}

fn name_length(text: &[u8]) -> usize {
    text.iter().take_while(|b| b.is_ascii_alphanumeric() || **b == b'_').count()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::MemoryFiles;

    /// The pieces as text, or the message.
    fn compile(text: &str) -> String {
        let mut files = MemoryFiles::default();
        let mut load = Load::new(&mut files, Path::new("/"), Path::new("/"));
        let line = Directive::sample("name", "value");
        let template = Template::from_bytes(text.as_bytes(), line.arg(0), &line, &mut load);
        let template = match template {
            Ok(template) => template,
            Err(error) => return error.message,
        };
        let names: Vec<_> = load.names.mentions().map(|(name, _)| name.to_vec()).collect();
        let part = |part: &TemplatePart| match part {
            TemplatePart::Text(text) => String::from_utf8_lossy(text).into_owned(),
            TemplatePart::Variable(id) => {
                format!("<{}>", String::from_utf8_lossy(&names[id.0 as usize]))
            }
            TemplatePart::Capture(group) => format!("${group}"),
        };
        template.parts().iter().map(part).collect::<Vec<_>>().join("|")
    }

    #[test]
    fn pieces() {
        let table = [
            ("", ""),
            ("text", "text"),
            ("a$b", "a|<b>"),
            ("$a$B_1-", "<a>|<b_1>|-"),
            ("${a}b", "<a>|b"),
            ("$1$10", "$1|$1|0"),
            ("${1}", "<1>"),
            ("$a$a", "<a>|<a>"),
            ("a}", "a}"),
        ];
        for (text, expected) in table {
            assert_eq!(compile(text), expected, "{text}");
        }
    }

    #[test]
    fn nginx_messages() {
        let table = [
            ("$", "invalid variable name"),
            ("a$-", "invalid variable name"),
            ("${", "invalid variable name"),
            ("${}", "invalid variable name"),
            ("${a", "the closing bracket in \"a\" variable is missing"),
            ("${a-b}", "the closing bracket in \"a\" variable is missing"),
            ("${-}", "the closing bracket in \"\" variable is missing"),
        ];
        for (text, expected) in table {
            assert_eq!(compile(text), expected, "{text}");
        }
    }
}
