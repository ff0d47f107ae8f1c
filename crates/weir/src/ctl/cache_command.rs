//! The words after `weir ctl cache`.

use serde_json::{Value, json};

/// What is purged.
#[derive(Debug, PartialEq)]
pub(super) struct CacheCommand {
    pub(super) cache: String,
    pub(super) body: Value,
}

impl CacheCommand {
    /// Reads the words after `cache`; `None`: they are wrong.
    pub(super) fn parse(words: &[&str]) -> Option<Self> {
        let (cache, body) = match *words {
            ["purge", cache, _, ..] => (cache, json!({ "keys": words[2..] })),
            ["purge-tag", cache, _, ..] => (cache, json!({ "tags": words[2..] })),
            ["purge-all", cache] => (cache, json!({ "all": true })),
            _ => return None,
        };
        Some(Self { cache: cache.to_owned(), body })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_after_cache() {
        let parse = |words: &str| CacheCommand::parse(&words.split(' ').collect::<Vec<_>>());
        let command = |body| Some(CacheCommand { cache: "app".to_owned(), body });
        assert_eq!(parse("purge app a b*"), command(json!({ "keys": ["a", "b*"] })));
        assert_eq!(parse("purge-tag app t"), command(json!({ "tags": ["t"] })));
        assert_eq!(parse("purge-all app"), command(json!({ "all": true })));
        for wrong in ["", "purge", "purge app", "purge-all app x", "list"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
