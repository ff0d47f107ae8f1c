//! `acme_shared_zone`, which is read and has no effect.

use conf::{Directive, Load, Result, units};

#[derive(Default)]
struct SharedZoneSeen(bool);

pub(crate) fn declare(from: &Directive, load: &mut Load<'_>) -> Result<()> {
    let seen = load.own.of::<SharedZoneSeen>();
    if std::mem::replace(&mut seen.0, true) {
        return Err(from.refuse("is duplicate"));
    }
    let word = from.arg(0);
    let Some(zone) = word.text.strip_prefix(b"zone=") else {
        let message = format!("\"{}\" must have \"zone\" parameter", from.name);
        return Err(from.error_at(word, message));
    };
    let size = zone.iter().position(|byte| *byte == b':').map(|colon| &zone[colon + 1..]);
    match size.and_then(units::size) {
        Some(_) => Ok(()),
        None => {
            let shown = String::from_utf8_lossy(zone);
            Err(from.error_at(word, format!("invalid zone size \"{shown}\"")))
        }
    }
}
