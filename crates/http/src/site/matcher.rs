//! The words after `location`: which paths it matches.

use conf::{Directive, Error, Load, Result, Word};

use crate::regex::Pattern;

/// The paths that a location matches.
pub(crate) enum Matcher {
    /// `=`: this path.
    Exact(Box<[u8]>),
    /// Paths with this prefix; `true` for `^~`, over which regular expressions take no precedence.
    Prefix(Box<[u8]>, bool),
    /// `~` or `~*`
    Pattern(Pattern),
    /// `@name`: no path. Other directives lead here.
    Named(Box<[u8]>),
}

impl Matcher {
    /// Parses a modifier and a name, which may be one word.
    pub(crate) fn parse(from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        let (modifier, name, word) = match &from.args[..] {
            [modifier, name] => (&*modifier.text, &*name.text, name),
            _ => {
                let word = from.arg(0);
                let (modifier, name) = split(&word.text);
                (modifier, name, word)
            }
        };
        match modifier {
            b"" if name.starts_with(b"@") => Ok(Self::Named(name.into())),
            b"" if from.args.len() == 1 => Ok(Self::Prefix(name.into(), false)),
            b"=" => Ok(Self::Exact(name.into())),
            b"^~" => Ok(Self::Prefix(name.into(), true)),
            b"~" | b"~*" => {
                let caseless = modifier.len() == 2;
                Pattern::compile(name, caseless, word, from, load).map(Self::Pattern)
            }
            _ => {
                let word: &Word = from.arg(0);
                Err(from.error_at(word, format!("invalid location modifier \"{word}\"")))
            }
        }
    }

    /// The name, without modifier.
    pub(crate) fn name(&self) -> &[u8] {
        match self {
            Self::Exact(name) | Self::Prefix(name, _) | Self::Named(name) => name,
            Self::Pattern(pattern) => pattern.text(),
        }
    }

    /// Rejects a location that could never be reached inside `outer`.
    pub(crate) fn check_inside(&self, outer: &Self, from: &Directive) -> Result<()> {
        let text = |matcher: &Self| String::from_utf8_lossy(matcher.name()).into_owned();
        let (name, outer_name) = (text(self), text(outer));
        let inside = |what: &str| {
            from.error(format!("location \"{name}\" cannot be inside the {what} \"{outer_name}\""))
        };
        let outside: Error = match (self, outer) {
            (_, Self::Exact(_)) => inside("exact location"),
            (_, Self::Named(_)) => inside("named location"),
            (Self::Named(_), _) => {
                from.error(format!("named location \"{name}\" can be on the server level only"))
            }
            (Self::Pattern(_), _) => return Ok(()),
            _ if self.name().starts_with(outer.name()) => return Ok(()),
            _ => from.error(format!("location \"{name}\" is outside location \"{outer_name}\"")),
        };
        Err(outside)
    }
}

/// Splits a modifier off the name that follows it in the same word.
fn split(text: &[u8]) -> (&[u8], &[u8]) {
    let modifiers: [&[u8]; 4] = [b"=", b"^~", b"~*", b"~"];
    let length = modifiers.into_iter().find(|modifier| text.starts_with(modifier));
    text.split_at(length.map_or(0, <[u8]>::len))
}
