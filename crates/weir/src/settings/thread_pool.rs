//! `thread_pool`: names of pools of threads that read files.
//!
//! There is one pool of threads; all names refer to it.

use std::ops::RangeInclusive;
use std::sync::Arc;

use conf::{Directive, Load, Result, Value, units};

use super::ProgramSettings;

conf::directives! {
    in MAIN;
    /// Defines a thread pool for `aio threads`.
    ///
    /// Syntax: NAME threads=NUMBER [max_queue=NUMBER]
    /// Default: default threads=32 max_queue=65536
    /// Differs: the numbers are checked but have no effect; threads are started as needed.
    thread_pool: Vec<ThreadPoolLine>,
}

/// A line that has been checked.
#[derive(Clone)]
pub struct ThreadPoolLine;

impl Value for ThreadPoolLine {
    const ARGS: RangeInclusive<usize> = 2..=3;
    fn parse(from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        let name = from.arg(0);
        if !load.registry.of::<http::ThreadPools>().0.insert(name.text.clone()) {
            return Err(from.error_at(name, format!("duplicate thread pool \"{name}\"")));
        }
        let mut has_threads = false;
        for word in &from.args[1..] {
            let number = |text| units::number(text).filter(|number| *number <= i32::MAX as u64);
            let invalid = |what| from.error_at(word, format!("invalid {what} value \"{word}\""));
            if let Some(text) = word.text.strip_prefix(b"threads=") {
                number(text).filter(|n| *n > 0).ok_or_else(|| invalid("threads"))?;
                has_threads = true;
            } else if let Some(text) = word.text.strip_prefix(b"max_queue=") {
                number(text).ok_or_else(|| invalid("max_queue"))?;
            }
        }
        if !has_threads {
            return Err(from.error("\"thread_pool\" must have \"threads\" parameter"));
        }
        Ok(Self)
    }
}

pub(crate) fn install(_: &Arc<Conf>, _: &mut ProgramSettings) -> Result<()> {
    Ok(())
}
