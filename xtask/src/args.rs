//! What a command was told: flags and options in any order, then the words that remain.
//!
//! Each question takes its answer out of the list, so that what is left at the end was not
//! understood and is refused.

use std::fmt::Display;
use std::str::FromStr;

/// The words after the command's name.
#[derive(Clone)]
pub(crate) struct Args(Vec<String>);

impl Args {
    pub(crate) fn new(words: &[String]) -> Self {
        Self(words.to_vec())
    }

    /// Whether `--name` is there.
    pub(crate) fn flag(&mut self, name: &str) -> bool {
        let place = self.0.iter().position(|word| word == name);
        place.map(|place| self.0.remove(place)).is_some()
    }

    /// The value of `--name VALUE` or `--name=VALUE`.
    pub(crate) fn option(&mut self, name: &str) -> Result<Option<String>, String> {
        let joined = |word: &String| {
            word.strip_prefix(name).and_then(|rest| rest.strip_prefix('=')).map(str::to_owned)
        };
        for place in 0..self.0.len() {
            if let Some(value) = joined(&self.0[place]) {
                self.0.remove(place);
                return Ok(Some(value));
            }
            if self.0[place] == name {
                if place + 1 == self.0.len() {
                    return Err(format!("{name} needs a value"));
                }
                self.0.remove(place);
                return Ok(Some(self.0.remove(place)));
            }
        }
        Ok(None)
    }

    /// The value of `--name`, read as a `T`.
    pub(crate) fn parsed<T: FromStr<Err: Display>>(
        &mut self,
        name: &str,
        default: T,
    ) -> Result<T, String> {
        match self.option(name)? {
            None => Ok(default),
            Some(text) => text.parse().map_err(|err| format!("{name} \"{text}\": {err}")),
        }
    }

    /// The values of an option that may repeat.
    pub(crate) fn each(&mut self, name: &str) -> Result<Vec<String>, String> {
        let mut values = Vec::new();
        while let Some(value) = self.option(name)? {
            values.push(value);
        }
        Ok(values)
    }

    /// The words that are not options.
    pub(crate) fn words(self) -> Result<Vec<String>, String> {
        match self.0.iter().find(|word| word.starts_with('-')) {
            Some(option) => Err(format!("unknown option \"{option}\"")),
            None => Ok(self.0),
        }
    }

    /// For a command that takes no words.
    pub(crate) fn end(self) -> Result<(), String> {
        match self.words()?.first() {
            Some(word) => Err(format!("unexpected \"{word}\"")),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(line: &str) -> Args {
        Args(line.split_whitespace().map(str::to_owned).collect())
    }

    #[test]
    fn options_stand_anywhere_and_in_both_forms() {
        let mut a = args("null --rounds 3 1k=0.9 --json=out --quick");
        assert!(a.flag("--quick"));
        assert!(!a.flag("--quick"));
        assert_eq!(a.parsed("--rounds", 5), Ok(3));
        assert_eq!(a.option("--json"), Ok(Some("out".into())));
        assert_eq!(a.parsed("--seconds", 2), Ok(2));
        assert_eq!(a.words(), Ok(vec!["null".into(), "1k=0.9".into()]));
    }

    #[test]
    fn repeated_options_keep_their_order() {
        let mut a = args("--file a --area x --file b");
        assert_eq!(a.each("--file"), Ok(vec!["a".into(), "b".into()]));
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        assert!(args("--json").option("--json").is_err());
        assert!(args("--rounds x").parsed("--rounds", 5).is_err());
        assert!(args("--bogus").words().is_err());
        assert!(args("word").end().is_err());
        assert_eq!(args("").end(), Ok(()));
    }
}
