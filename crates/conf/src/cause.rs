//! Warnings grouped by cause: fifty sites that share a line of a template share its warning, which
//! is shown once.

use std::collections::HashMap;

use crate::{Diagnostic, Error, Sources};

/// Warnings that have the same cause.
#[derive(Clone, Copy, Debug)]
pub struct SharedCause<'a> {
    /// The first warning.
    pub first: &'a Error,
    /// The number of warnings.
    pub count: usize,
}

impl<'a> SharedCause<'a> {
    /// Groups warnings by level and cause, in the order of the first ones. A warning without a
    /// cause is grouped by its message.
    pub fn group(warnings: impl IntoIterator<Item = &'a Error>) -> Vec<Self> {
        let mut causes: Vec<Self> = Vec::new();
        let mut known = HashMap::new();
        for warning in warnings {
            let cause = warning.cause.as_deref().unwrap_or(&warning.message);
            let at = *known.entry((warning.level as u8, cause)).or_insert(causes.len());
            match causes.get_mut(at) {
                Some(shared) => shared.count += 1,
                None => causes.push(Self { first: warning, count: 1 }),
            }
        }
        causes
    }

    /// nginx's line for the first warning, and the number of all.
    pub fn headline(&self, sources: &Sources) -> String {
        self.counted(self.diagnostic(sources).headline())
    }

    /// Like [`headline`](Self::headline), for a log, which shows no lines below it.
    pub fn log_line(&self, sources: &Sources) -> String {
        self.counted(self.diagnostic(sources).log_line())
    }

    /// The first warning with the texts it refers to.
    pub fn diagnostic<'s>(&'s self, sources: &'s Sources) -> Diagnostic<'s> {
        Diagnostic { error: self.first, sources }
    }

    fn counted(&self, line: String) -> String {
        match self.count {
            1 => line,
            count => format!("{line} (the first of {count} places)"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorLevel;

    #[test]
    fn one_cause_is_shown_once() {
        let warn = |message: &str| Error::bare(message).level(ErrorLevel::Warn);
        let warnings = [
            warn("a"),
            warn("b of x").cause("b"),
            warn("a"),
            warn("b of y").cause("b"),
            warn("a").level(ErrorLevel::Notice),
            warn("a").help("c"),
        ];
        let sources = Sources::default();
        let causes = SharedCause::group(&warnings);
        let lines: Vec<_> = causes.iter().map(|cause| cause.headline(&sources)).collect();
        assert_eq!(lines, ["a (the first of 3 places)", "b of x (the first of 2 places)", "a"]);
        assert!(SharedCause::group([]).is_empty());
    }
}
