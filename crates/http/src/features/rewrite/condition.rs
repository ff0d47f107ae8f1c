//! The condition of an `if`.

use std::sync::Arc;

use conf::{Directive, Error, Load, Result, Template, VariableId};
use net::file::Stat;

use crate::regex::Pattern;

#[derive(Clone)]
pub(super) enum Condition {
    /// `$variable`: neither empty nor `0`.
    True(VariableId),
    /// `$variable = text`
    Equal { variable: VariableId, to: Template, not: bool },
    /// `$variable ~ pattern`
    Matches { variable: VariableId, pattern: Arc<Pattern>, not: bool },
    /// `-f path`
    File { path: Template, is: FileTest, not: bool },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileTest {
    Regular,
    Directory,
    Exists,
    Executable,
}

impl Condition {
    pub(super) fn parse(from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        let texts = between_parentheses(from)?;
        let last = from.args.last().expect("the number of arguments was checked");
        match texts[..] {
            [[b'$', name @ ..]] if !name.is_empty() => {
                Ok(Self::True(load.names.number(name, Some(from.arg(0).span))))
            }
            [[b'$', name @ ..], operator, operand] if !name.is_empty() => {
                let variable = load.names.number(name, Some(from.arg(0).span));
                let not = operator.starts_with(b"!");
                match &operator[usize::from(not)..] {
                    b"=" => {
                        let to = Template::from_bytes(operand, last, from, load)?;
                        Ok(Self::Equal { variable, to, not })
                    }
                    tilde @ (b"~" | b"~*") => {
                        let caseless = tilde.len() == 2;
                        let pattern = Pattern::compile(operand, caseless, last, from, load)?;
                        Ok(Self::Matches { variable, pattern: Arc::new(pattern), not })
                    }
                    _ => {
                        let meant = match operator {
                            b"==" | b"===" => Some("="),
                            b"=~" => Some("~"),
                            b"!==" => Some("!="),
                            _ => None,
                        };
                        let operator = String::from_utf8_lossy(operator);
                        let message = format!("unexpected \"{operator}\" in condition");
                        Err(from.error(message).guess(meant))
                    }
                }
            }
            [operator @ ([b'-', letter] | [b'!', b'-', letter]), path] => {
                let Some(is) = FileTest::of(*letter) else {
                    return Err(invalid(operator, from));
                };
                let path = Template::from_bytes(path, last, from, load)?;
                Ok(Self::File { path, is, not: operator.len() == 3 })
            }
            _ => Err(invalid(texts[0], from)),
        }
    }
}

/// The arguments without the parentheses, which may be words of their own or part of others.
fn between_parentheses(from: &Directive) -> Result<Vec<&[u8]>> {
    let mut texts: Vec<&[u8]> = from.args.iter().map(|word| &*word.text).collect();
    let Some(first) = texts[0].strip_prefix(b"(") else { return Err(invalid(texts[0], from)) };
    texts[0] = first;
    if first.is_empty() && texts.len() > 1 {
        texts.remove(0);
    }
    let last = texts.pop().expect("one is left");
    match last.strip_suffix(b")") {
        // For an empty condition, nginx's message shows the parenthesis.
        Some([]) if texts.is_empty() => Err(invalid(last, from)),
        Some([]) => Ok(texts),
        Some(rest) => {
            texts.push(rest);
            Ok(texts)
        }
        None if last.is_empty() => Err(unclosed(b"(", from)),
        None => Err(unclosed(last, from)),
    }
}

fn unclosed(text: &[u8], from: &Directive) -> Error {
    invalid(text, from).help("\")\" is missing before the \"{\"")
}

fn invalid(text: &[u8], from: &Directive) -> Error {
    from.error(format!("invalid condition \"{}\"", String::from_utf8_lossy(text)))
}

impl FileTest {
    fn of(letter: u8) -> Option<Self> {
        match letter {
            b'f' => Some(Self::Regular),
            b'd' => Some(Self::Directory),
            b'e' => Some(Self::Exists),
            b'x' => Some(Self::Executable),
            _ => None,
        }
    }

    /// The result of the test. As in nginx, only files and directories exist.
    pub(super) fn holds(self, file: &Stat) -> bool {
        match self {
            Self::Regular => file.is_regular(),
            Self::Directory => file.is_directory(),
            Self::Exists => file.is_regular() || file.is_directory(),
            Self::Executable => file.is_executable(),
        }
    }
}
