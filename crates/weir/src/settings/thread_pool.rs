//! `thread_pool`: names for what reads files where the disk may be slow.

use std::ops::RangeInclusive;
use std::sync::Arc;

use conf::{Directive, Load, Result, Value, units};

use super::Settings;

conf::directives! {
    in MAIN;
    /// Names a pool of threads for `aio threads`.
    thread_pool: Vec<Pool>,
}

/// One pool.
#[derive(Clone)]
pub struct Pool {
    name: Box<[u8]>,
}

/// The pools named so far.
#[derive(Default)]
struct Names(Vec<Box<[u8]>>);

impl Value for Pool {
    const ARGS: RangeInclusive<usize> = 2..=3;
    fn parse(from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        let name = from.arg(0).text.clone();
        let names = &mut load.registry.of::<Names>().0;
        if names.contains(&name) {
            let name = from.arg(0);
            return Err(from.error_at(name, format!("duplicate thread pool \"{name}\"")));
        }
        names.push(name.clone());
        let mut threads = None;
        for word in &from.args[1..] {
            let invalid = |what| from.error_at(word, format!("invalid {what} value \"{word}\""));
            if let Some(number) = word.text.strip_prefix(b"threads=") {
                let number = units::number(number).filter(|number| *number > 0);
                threads = Some(number.ok_or_else(|| invalid("threads"))?);
            } else if let Some(number) = word.text.strip_prefix(b"max_queue=") {
                units::number(number).ok_or_else(|| invalid("max_queue"))?;
            }
        }
        if threads.is_none() {
            return Err(from.error("\"thread_pool\" must have \"threads\" parameter"));
        }
        Ok(Self { name })
    }
}

/// Nothing to hand over: one pool of threads serves all names.
pub fn install(conf: &Arc<Conf>, _: &mut Settings) -> Result<()> {
    let _ = conf.thread_pool.iter().map(|pool| &pool.name);
    Ok(())
}
