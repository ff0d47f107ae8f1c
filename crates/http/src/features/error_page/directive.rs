//! `error_page code ... [=[code]] uri`

use std::ops::RangeInclusive;

use conf::{Directive, Load, Result, Template, Value, Word};

use crate::site::policy::ErrorPage;

impl Value for ErrorPage {
    const ARGS: RangeInclusive<usize> = 2..=usize::MAX;
    fn parse(from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        let (target, before) = from.args.split_last().expect("two arguments at least");
        let (statuses, overwrite) = match before.split_last() {
            Some((word, statuses)) if word.text.starts_with(b"=") => {
                (statuses, Some(overwrite(word, statuses, from)?))
            }
            _ => (before, None),
        };
        let target = Template::compile(target, from, load)?;
        let statuses = statuses.iter().map(|word| status(word, from)).collect::<Result<_>>()?;
        Ok(Self { statuses, overwrite, target })
    }
}

fn overwrite(word: &Word, statuses: &[Word], from: &Directive) -> Result<u16> {
    let number = match &word.text[1..] {
        b"" => Some(0),
        digits => conf::units::number(digits).and_then(|number| u16::try_from(number).ok()),
    };
    number.filter(|_| !statuses.is_empty()).ok_or_else(|| invalid(word, from))
}

fn status(word: &Word, from: &Directive) -> Result<u16> {
    match conf::units::number(&word.text) {
        None | Some(499) => Err(invalid(word, from)),
        Some(number @ 300..=599) => Ok(number as u16),
        Some(_) => {
            let message = format!("value \"{word}\" must be between 300 and 599");
            Err(from.error_at(word, message))
        }
    }
}

fn invalid(word: &Word, from: &Directive) -> conf::Error {
    from.error_at(word, format!("invalid value \"{word}\""))
}
