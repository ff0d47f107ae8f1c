//! How a lenient server replaces unsupported directives.
//!
//! A location whose content handler was ignored must not serve files, which may be the sources that
//! the handler was meant to run: it answers 503. If a check of access was ignored, access is
//! refused: 403. Each such request is logged as an error, as nginx logs requests that its checks
//! refuse.
//!
//! `off` has its effect: with `auth_jwt off` in an inner block, access to that block is not refused
//! because of `auth_jwt` in an outer block.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use conf::lacking::{Class, Lack};
use conf::{Directive, Inherited, Load, Result, Value, assign};
use observe::Level;

use crate::exchange::{Exchange, Flow};
use crate::site::LocationBuilder;

conf::directives! {
    slots {
        /// Content handlers: they belong to their location alone.
        handlers: Option<IgnoredLines<false>>,
        /// Checks and filters, which hold in all blocks inside.
        everywhere: Option<IgnoredLines<true>>,
    }

    in MAIN;
}

/// The directives of a block that were ignored, those of outer blocks included.
#[derive(Clone, Default)]
pub struct IgnoredLines<const EVERYWHERE: bool>(Vec<One>);

/// An ignored directive.
#[derive(Clone)]
struct One {
    name: Box<str>,
    class: Class,
    /// Whether it has an effect here.
    active: bool,
    /// The directive with its position, for the log.
    shown: Arc<str>,
}

impl<const EVERYWHERE: bool> Value for IgnoredLines<EVERYWHERE> {
    const INHERITED: Inherited = if EVERYWHERE { Inherited::Always } else { Inherited::Nameless };

    fn parse(from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        let mut ignored = Self::default();
        ignored.repeat(from, load)?;
        Ok(ignored)
    }

    fn repeat(&mut self, _: &Directive, load: &mut Load<'_>) -> Result<()> {
        if let Some(lack) = load.lacks.last() {
            self.0.push(One::new(lack, load));
        }
        Ok(())
    }

    fn complete(&mut self, outer: &Self) {
        let own = self.0.len();
        let news = |one: &&One| self.0[..own].iter().all(|own| own.name != one.name);
        let inherited: Vec<_> = outer.0.iter().filter(news).cloned().collect();
        self.0.extend(inherited);
    }
}

impl One {
    fn new(lack: &Lack, load: &Load<'_>) -> Self {
        let place = load.sources.place(lack.at);
        let shown = format!("\"{}\"{place}", lack.what).into();
        Self { name: lack.what.clone(), class: lack.class, active: lack.active, shown }
    }
}

impl Layer {
    /// Records the line that was just ignored, the last of [`Load::lacks`].
    pub(crate) fn ignore(&mut self, line: &Directive, load: &mut Load<'_>) -> Result<()> {
        match load.lacks.last().map(|lack| lack.class) {
            Some(Class::Handler) => assign(&mut self.handlers, line, load),
            Some(Class::Protection | Class::Source) => assign(&mut self.everywhere, line, load),
            _ => Ok(()),
        }
    }
}

/// Adds handlers that refuse access or answer in place of unsupported handlers.
pub fn install(conf: &Arc<Conf>, location: &mut LocationBuilder<'_, '_>) -> Result<()> {
    let handlers = conf.handlers.iter().flat_map(|ignored| &ignored.0);
    let everywhere = conf.everywhere.iter().flat_map(|ignored| &ignored.0);
    let active: Vec<&One> = handlers.chain(everywhere).filter(|one| one.active).collect();
    let protects = |one: &&&One| one.class == Class::Protection;
    if let Some(one) = active.iter().find(protects) {
        let shown = one.shown.clone();
        location.preaccess(move |x| refuse(x, 403, "access denied", &shown));
    }
    for one in active.iter().filter(|one| !protects(one)) {
        let shown = one.shown.clone();
        location.exclusive(&one.name, move |x| refuse(x, 503, "not served", &shown));
    }
    Ok(())
}

fn refuse(x: &mut Exchange, status: u16, what: &str, shown: &str) -> Flow {
    let missing = "is not supported by this version of weir and was ignored";
    x.log(Level::Error, format_args!("{what}: directive {shown} {missing}"));
    Flow::Status(status)
}
