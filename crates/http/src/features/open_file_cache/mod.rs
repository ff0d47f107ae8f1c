//! `open_file_cache` and its companions: results of looking files up are cached for a while.
//!
//! The cache is in `files`. Deliberately absent: kernel events about files, which nginx uses with
//! kqueue only.

use std::ops::RangeInclusive;
use std::sync::Arc;

use conf::{Directive, Load, Number, Result, Seconds, Value, units};
use session::WorkerSlot;

use crate::files::{CacheRules, Caches};
use crate::site::{Generation, LocationBuilder};

conf::directives! {
    in MAIN | SERVER | LOCATION;

    /// Caches open files with their sizes, times and errors: up to `max=` files, each for
    /// `inactive=` after its last use (60s).
    ///
    /// Syntax: max=NUMBER [inactive=TIME]
    /// Syntax: off
    /// Default: off
    ///
    /// ```nginx
    /// open_file_cache max=10000 inactive=60s;
    /// open_file_cache_valid 30s;
    /// ```
    open_file_cache: Option<OpenFileCache>,
    /// How long cached information is used before the file is checked again.
    ///
    /// ```nginx
    /// open_file_cache_valid 30s;
    /// ```
    open_file_cache_valid: Seconds = "60s",
    /// How often a file must be used within `inactive=` to stay open.
    ///
    /// ```nginx
    /// open_file_cache_min_uses 2;
    /// ```
    open_file_cache_min_uses: Number = "1",
    /// Whether errors such as a missing file are cached.
    ///
    /// ```nginx
    /// open_file_cache_errors on;
    /// ```
    open_file_cache_errors: bool = "off",
    /// No effect on Linux, as in nginx.
    ///
    /// Syntax: on | off
    open_file_cache_events: Events = "off",
}

/// Passes the settings to the core.
pub fn install(conf: &Arc<Conf>, location: &mut LocationBuilder<'_, '_>) -> Result<()> {
    let Events = conf.open_file_cache_events;
    if let Some(OpenFileCache::On { number, max, inactive_ms }) = conf.open_file_cache {
        location.worker_slot::<Caches>();
        location.core.files.cache = Some(CacheRules {
            number,
            max,
            inactive_ms,
            valid_ms: conf.open_file_cache_valid.0.saturating_mul(1000),
            min_uses: u32::try_from(conf.open_file_cache_min_uses.0).unwrap_or(u32::MAX),
            errors: conf.open_file_cache_errors,
        });
    }
    Ok(())
}

/// Every worker has its own caches, and a reload begins with empty ones.
impl WorkerSlot<Generation> for Caches {}

/// One cache, shared by all blocks that inherit it.
#[derive(Clone, Copy)]
enum OpenFileCache {
    Off,
    On { number: usize, max: usize, inactive_ms: u64 },
}

/// The default of `inactive`.
const INACTIVE_S: u64 = 60;

/// The number of caches in the configuration so far.
#[derive(Default)]
struct NamedCache(usize);

impl Value for OpenFileCache {
    const ARGS: RangeInclusive<usize> = 1..=2;
    fn parse(from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        let (mut off, mut max, mut inactive_s) = (false, 0, INACTIVE_S);
        for word in &from.args {
            let understood = if let Some(number) = word.text.strip_prefix(b"max=") {
                max = units::number(number).unwrap_or(0);
                max > 0
            } else if let Some(time) = word.text.strip_prefix(b"inactive=") {
                let seconds = units::seconds(time);
                inactive_s = seconds.unwrap_or(0);
                seconds.is_some()
            } else {
                off = *word.text == *b"off";
                off
            };
            if !understood {
                let message = format!("invalid \"open_file_cache\" parameter \"{word}\"");
                return Err(from.error_at(word, message));
            }
        }
        if off {
            return Ok(Self::Off);
        }
        if max == 0 {
            return Err(from.error("\"open_file_cache\" must have the \"max\" parameter"));
        }
        let named = load.registry.of::<NamedCache>();
        named.0 += 1;
        let inactive_ms = inactive_s.saturating_mul(1000);
        Ok(Self::On { number: named.0 - 1, max: max as usize, inactive_ms })
    }
}

/// A flag that has no effect.
#[derive(Clone, Copy)]
struct Events;

impl Value for Events {
    fn parse(from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        if bool::parse(from, load)? {
            load.warn(from.error("\"open_file_cache_events\" has no effect on this platform"));
        }
        Ok(Self)
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{refusal, site};

    #[test]
    fn invalid_caches_are_refused() {
        let cases = [
            ("max=0", "invalid \"open_file_cache\" parameter \"max=0\":1"),
            ("max=1 inactive=x", "invalid \"open_file_cache\" parameter \"inactive=x\":1"),
            ("max=1 on", "invalid \"open_file_cache\" parameter \"on\":1"),
            ("inactive=1s", "\"open_file_cache\" must have the \"max\" parameter:1"),
            ("off; open_file_cache max=1", "\"open_file_cache\" directive is duplicate:1"),
        ];
        for (text, message) in cases {
            assert_eq!(refusal(&format!("open_file_cache {text};")), message);
        }
    }

    #[test]
    fn open_file_cache_events_causes_one_warning() {
        let site = site("open_file_cache_events on; server { location / { } location /a { } }");
        assert_eq!(site.warnings, ["\"open_file_cache_events\" has no effect on this platform:1"]);
    }

    #[test]
    fn blocks_share_a_cache_unless_they_name_their_own() {
        let site = site(
            "open_file_cache max=9;
             server { location /a { } location /b { open_file_cache max=1; }
                      location /c { open_file_cache off; } }",
        );
        let rules = |path| site.get(path).x.location().core.files.cache;
        assert_eq!(rules("/a").map(|rules| (rules.number, rules.max)), Some((0, 9)));
        assert_eq!(rules("/b").map(|rules| (rules.number, rules.max)), Some((1, 1)));
        assert_eq!(rules("/c"), None);
    }
}
