//! Value types that many features share. Each reads nginx's notation and reports errors in its
//! words.

use std::ops::RangeInclusive;

use crate::{Directive, Load, Result, Template, Value, Values, advice, units};

impl Value for bool {
    const SYNTAX: &'static str = "on | off";
    fn parse(from: &Directive, _: &mut Load<'_>) -> Result<Self> {
        match from.arg(0).text.to_ascii_lowercase().as_slice() {
            b"on" => Ok(true),
            b"off" => Ok(false),
            _ => {
                let (value, name) = (from.arg(0), &from.name);
                let must = "it must be \"on\" or \"off\"";
                let message = format!("invalid value \"{value}\" in \"{name}\" directive, {must}");
                Err(from.error_at(value, message).guess(advice::switch(&value.text)))
            }
        }
    }
}

/// A directive without arguments, which is on if it is present.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Present;

impl Value for Present {
    const ARGS: RangeInclusive<usize> = 0..=0;
    fn parse(_: &Directive, _: &mut Load<'_>) -> Result<Self> {
        Ok(Self)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounded<const MIN: u64, const MAX: u64>(pub u64);

pub type Number = Bounded<0, NUMBER_MAX>;

/// The largest number; as a bound, it means no limit.
pub const NUMBER_MAX: u64 = i64::MAX as u64;

impl<const MIN: u64, const MAX: u64> Value for Bounded<MIN, MAX> {
    const SYNTAX: &'static str = "NUMBER";
    fn parse(from: &Directive, _: &mut Load<'_>) -> Result<Self> {
        let number = units::number(&from.arg(0).text).ok_or_else(|| invalid(from, "number"))?;
        if (MIN..=MAX).contains(&number) {
            return Ok(Self(number));
        }
        let must = match MAX {
            NUMBER_MAX => format!("value must be equal to or greater than {MIN}"),
            _ => format!("value must be between {MIN} and {MAX}"),
        };
        Err(from.error_at(from.arg(0), must))
    }
}

/// A number of bytes: `8k`, `1m`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size(pub u64);

impl Value for Size {
    const SYNTAX: &'static str = "SIZE";
    fn parse(from: &Directive, _: &mut Load<'_>) -> Result<Self> {
        units::size(&from.arg(0).text).map(Self).ok_or_else(|| invalid_size(from))
    }
}

/// A number of bytes in a file, which may also be given in `g`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offset(pub u64);

impl Value for Offset {
    const SYNTAX: &'static str = "SIZE";
    fn parse(from: &Directive, _: &mut Load<'_>) -> Result<Self> {
        units::offset(&from.arg(0).text).map(Self).ok_or_else(|| invalid_size(from))
    }
}

/// A number of buffers and the size of each: `4 8k`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buffers {
    pub number: u64,
    /// The size of each, in bytes.
    pub size: u64,
}

impl Value for Buffers {
    const SYNTAX: &'static str = "NUMBER SIZE";
    const ARGS: RangeInclusive<usize> = 2..=2;
    fn parse(from: &Directive, _: &mut Load<'_>) -> Result<Self> {
        let positive = |index: usize, read: fn(&[u8]) -> Option<u64>| {
            let number = read(&from.arg(index).text).filter(|number| *number > 0);
            number.ok_or_else(|| from.refuse("invalid value").marked(from.arg(index).span))
        };
        Ok(Self { number: positive(0, units::number)?, size: positive(1, units::size)? })
    }
}

/// A number of bytes that may depend on variables: `limit_rate $rate`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SizeTemplate {
    /// The same size for all requests.
    Fixed(u64),
    /// A size to be read from the text at run time.
    Computed(Template),
}

impl Value for SizeTemplate {
    const SYNTAX: &'static str = "SIZE";
    fn parse(from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        let template = Template::parse(from, load)?;
        match template.as_fixed() {
            Some(text) => {
                let size = units::size(text).map(Self::Fixed);
                size.ok_or_else(|| invalid_size(from))
            }
            None => Ok(Self::Computed(template)),
        }
    }
}

/// Strings of which one must be true, that is neither empty nor `0`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Predicates(Vec<Template>);

impl Value for Predicates {
    const SYNTAX: &'static str = "STRING...";
    const ARGS: RangeInclusive<usize> = 1..=usize::MAX;
    fn parse(from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        let mut predicates = Self(Vec::new());
        predicates.repeat(from, load)?;
        Ok(predicates)
    }
    fn repeat(&mut self, from: &Directive, load: &mut Load<'_>) -> Result<()> {
        for word in &from.args {
            self.0.push(Template::compile(word, from, load)?);
        }
        Ok(())
    }
}

impl Predicates {
    /// Whether one of them is true; those after it are not evaluated.
    pub fn any(&self, values: &mut impl Values) -> bool {
        let mut text = Vec::new();
        self.0.iter().any(|predicate| {
            text.clear();
            predicate.render(values, &mut text);
            !matches!(&text[..], b"" | b"0")
        })
    }
}

/// A time in milliseconds: `75s`, `1h30m`, `500ms`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Milliseconds(pub u64);

impl Value for Milliseconds {
    const SYNTAX: &'static str = "TIME";
    fn parse(from: &Directive, _: &mut Load<'_>) -> Result<Self> {
        units::milliseconds(&from.arg(0).text).map(Self).ok_or_else(|| invalid_time(from))
    }
}

/// A time in whole seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seconds(pub u64);

impl Value for Seconds {
    const SYNTAX: &'static str = "TIME";
    fn parse(from: &Directive, _: &mut Load<'_>) -> Result<Self> {
        units::seconds(&from.arg(0).text).map(Self).ok_or_else(|| invalid_time(from))
    }
}

/// Bytes as they were written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text(pub Box<[u8]>);

impl Value for Text {
    const SYNTAX: &'static str = "TEXT";
    fn parse(from: &Directive, _: &mut Load<'_>) -> Result<Self> {
        Ok(Self(from.arg(0).text.clone()))
    }
}

impl Value for Template {
    const SYNTAX: &'static str = "STRING";
    fn parse(from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        Self::compile(from.arg(0), from, load)
    }
}

fn invalid(from: &Directive, what: &str) -> crate::Error {
    from.refuse(format!("invalid {what}")).marked(from.arg(0).span)
}

fn invalid_size(from: &Directive) -> crate::Error {
    invalid(from, "value").guess(advice::size(&from.arg(0).text))
}

fn invalid_time(from: &Directive) -> crate::Error {
    invalid(from, "value").guess(advice::time(&from.arg(0).text))
}

/// Declares a type whose values are words: `words! { /// docs pub enum Satisfy { All = "all" } }`.
#[macro_export]
macro_rules! words {
    ($(#[$meta:meta])* pub enum $type:ident {
        $(#[$first_meta:meta])* $first:ident = $first_word:literal
        $(, $(#[$variant_meta:meta])* $variant:ident = $word:literal )* $(,)?
    }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $type { $(#[$first_meta])* $first, $( $(#[$variant_meta])* $variant, )* }

        impl $crate::Value for $type {
            const SYNTAX: &'static str = concat!($first_word, $(" | ", $word),*);
            fn parse(from: &$crate::Directive, _: &mut $crate::Load<'_>) -> $crate::Result<Self> {
                let word = from.arg(0);
                if word.text.eq_ignore_ascii_case($first_word.as_bytes()) {
                    return Ok(Self::$first);
                }
                $( if word.text.eq_ignore_ascii_case($word.as_bytes()) {
                    return Ok(Self::$variant);
                } )*
                let error = from.error_at(word, format!("invalid value \"{word}\""));
                Err(error.meant(&word.text, [$first_word, $( $word ),*]))
            }
        }
    };
}
