//! The words of `valid_referers`, and the table that is built of them.

use std::ops::RangeInclusive;
use std::sync::{Arc, OnceLock};

use conf::{Directive, Error, Load, Result, Value, Word};

use crate::regex::Pattern;
use crate::site::ServerName;
use crate::wildcards::{WildcardError, Wildcards};

/// The required beginning of the path, by host.
type RefererNames = Wildcards<Arc<[u8]>>;

/// The lines of a block, before the names of its server are known.
#[derive(Clone)]
pub struct RefererLines {
    none: bool,
    blocked: bool,
    server_names: bool,
    /// Whether the server's regular expressions are inherited from an outer block.
    server_patterns: bool,
    names: RefererNames,
    /// Whether any word is a name.
    named: bool,
    patterns: Vec<Arc<Pattern>>,
    from: Directive,
    /// The table, built at its first use and shared by all blocks that inherit the lines. They
    /// belong to one server.
    table: Arc<OnceLock<Option<Arc<Valid>>>>,
}

/// The compiled table of valid referers.
pub struct Valid {
    /// Whether a missing `Referer` is valid.
    pub(super) none: bool,
    /// Whether a `Referer` without a URL is valid, because a proxy has removed it.
    pub(super) blocked: bool,
    pub(super) names: RefererNames,
    pub(super) server_patterns: Vec<Arc<Pattern>>,
    pub(super) patterns: Vec<Arc<Pattern>>,
}

impl Value for RefererLines {
    const ARGS: RangeInclusive<usize> = 1..=usize::MAX;
    fn parse(from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        let mut lines = Self {
            none: false,
            blocked: false,
            server_names: false,
            server_patterns: false,
            names: RefererNames::default(),
            named: false,
            patterns: Vec::new(),
            from: from.clone(),
            table: Arc::default(),
        };
        lines.repeat(from, load)?;
        Ok(lines)
    }
    fn repeat(&mut self, from: &Directive, _: &mut Load<'_>) -> Result<()> {
        from.args.iter().try_for_each(|word| self.word(word, from))
    }
    /// As in nginx, names replace those of outer blocks, and regular expressions replace outer
    /// ones.
    fn complete(&mut self, outer: &Self) {
        if self.patterns.is_empty() {
            self.patterns.clone_from(&outer.patterns);
        }
        self.server_patterns = !self.server_names && (outer.server_names || outer.server_patterns);
    }
}

impl RefererLines {
    fn word(&mut self, word: &Word, from: &Directive) -> Result<()> {
        match &*word.text {
            b"" => return Err(from.error_at(word, "invalid referer \"\"")),
            b"none" => self.none = true,
            b"blocked" => self.blocked = true,
            b"server_names" => self.server_names = true,
            b"~" => return Err(from.error_at(word, "empty regex in \"~\"")),
            [b'~', pattern @ ..] => {
                let pattern = Pattern::compile_alone(pattern, true, word, from)?;
                self.patterns.push(Arc::new(pattern));
            }
            text => {
                let (host, path) = text.split_at(memchr::memchr(b'/', text).unwrap_or(text.len()));
                add(&mut self.names, host, path, from).map_err(|e| e.marked(word.span))?;
                self.named = true;
            }
        }
        Ok(())
    }

    /// The table for a server with these names; `None` if everything is valid.
    pub(super) fn with_server_names(&self, names: &[ServerName]) -> Result<Option<Arc<Valid>>> {
        if let Some(table) = self.table.get() {
            return Ok(table.clone());
        }
        let table = self.build(names)?;
        Ok(self.table.get_or_init(|| table).clone())
    }

    fn build(&self, server: &[ServerName]) -> Result<Option<Arc<Valid>>> {
        let mut valid = Valid {
            none: self.none,
            blocked: self.blocked,
            names: self.names.clone(),
            server_patterns: Vec::new(),
            patterns: self.patterns.clone(),
        };
        let mut named = self.named;
        for name in server {
            match &name.pattern {
                Some(pattern) if self.server_names || self.server_patterns => {
                    valid.server_patterns.push(pattern.clone());
                }
                None if self.server_names => {
                    add(&mut valid.names, &name.text, b"", &self.from)?;
                    named = true;
                }
                _ => {}
            }
        }
        if (self.none || self.blocked) && !named {
            let words = "the \"none\" or \"blocked\" referers are specified in the \
                         \"valid_referers\" directive without any valid referer";
            return Err(Error::bare(words).marked(self.from.name.span));
        }
        let asks = named || !valid.patterns.is_empty() || !valid.server_patterns.is_empty();
        Ok(asks.then(|| Arc::new(valid)))
    }
}

fn add(names: &mut RefererNames, host: &[u8], path: &[u8], from: &Directive) -> Result<()> {
    names.add(host, path.into()).map_err(|refused| {
        let host = String::from_utf8_lossy(host);
        from.error(match refused {
            WildcardError::Invalid => format!("invalid hostname or wildcard \"{host}\""),
            WildcardError::Conflicting => {
                format!("conflicting parameter \"{}\"", host.to_ascii_lowercase())
            }
        })
    })
}
