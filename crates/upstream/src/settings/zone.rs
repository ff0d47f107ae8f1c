//! `zone`: in nginx, memory that the workers share. Here the state of every group is shared, so a
//! zone is a name that is checked as nginx checks it.

use std::ops::RangeInclusive;

use conf::{Directive, Load, Result, Value, units};
use zones::{TwoProcesses, ZoneState, Zones};

/// The least size that nginx accepts: eight pages.
const SIZE_MIN: u64 = 8 * 4096;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupZone {
    pub name: Box<[u8]>,
}

impl ZoneState for GroupZone {
    const DIRECTIVES: &'static [&'static str] = &["zone"];
    const TWO_PROCESSES: TwoProcesses = TwoProcesses::Private;
}

impl Value for GroupZone {
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
        Zones::of(load).mention::<Self>(&name.text, size, from)?;
        Ok(Self { name: name.text.clone() })
    }
    /// The last one counts.
    fn repeat(&mut self, from: &Directive, load: &mut Load<'_>) -> Result<()> {
        *self = Self::parse(from, load)?;
        Ok(())
    }
}
