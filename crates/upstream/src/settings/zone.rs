//! `zone`: in nginx, memory that the workers share. Here the state of every group is shared, so a
//! zone is a name that is checked as nginx checks it.

use std::collections::HashMap;
use std::ops::RangeInclusive;

use conf::{Directive, Error, Load, Result, Span, Value, units};

/// The least size that nginx accepts: eight pages.
const SIZE_MIN: u64 = 8 * 4096;

/// A zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Zone {
    /// Its name.
    pub name: Box<[u8]>,
}

/// The zones by name, with the size that was said, if one was, and the first mention.
#[derive(Default)]
pub(super) struct Zones(HashMap<Box<[u8]>, (Option<u64>, Span)>);

impl Value for Zone {
    const ARGS: RangeInclusive<usize> = 1..=2;
    fn parse(from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        let name = from.arg(0);
        if name.text.is_empty() {
            return Err(from.error_at(name, format!("invalid zone name \"{name}\"")));
        }
        let said = from.args.get(1);
        let size = match said.map(|word| (word, units::size(&word.text))) {
            None => None,
            Some((word, None)) => {
                return Err(from.error_at(word, format!("invalid zone size \"{word}\"")));
            }
            Some((word, Some(size))) if size < SIZE_MIN => {
                return Err(from.error_at(word, format!("zone \"{name}\" is too small")));
            }
            Some((_, size)) => size,
        };
        let zones = load.registry.of::<Zones>();
        let (known, _) = zones.0.entry(name.text.clone()).or_insert((None, name.span));
        match (*known, size) {
            (Some(known), Some(size)) if known != size => {
                return Err(from.error(format!(
                    "the size {size} of shared memory zone \"{name}\" conflicts with already \
                     declared size {known}"
                )));
            }
            _ => *known = known.or(size),
        }
        Ok(Self { name: name.text.clone() })
    }
}

impl Zones {
    /// Refuses a zone whose size nothing says.
    pub fn check(&self) -> Result<()> {
        match self.0.iter().find(|(_, (size, _))| size.is_none()) {
            None => Ok(()),
            Some((name, (_, at))) => {
                let name = String::from_utf8_lossy(name);
                let message = format!("zero size shared memory zone \"{name}\"");
                Err(Error::bare(message).marked(*at))
            }
        }
    }
}
