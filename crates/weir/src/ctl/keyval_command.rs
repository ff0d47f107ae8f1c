//! The words after `weir ctl keyval`.

use super::group::GroupArgument;
use crate::messages::{Reported, complain};

/// What is to be done with the tables.
#[derive(Debug, PartialEq)]
pub(super) enum KeyvalCommand {
    Zones,
    List(GroupArgument),
    Get { zone: GroupArgument, key: String },
    Set { zone: GroupArgument, key: String, value: String, expire_ms: Option<u64> },
    Delete { zone: GroupArgument, key: String },
    Clear(GroupArgument),
}

impl KeyvalCommand {
    /// Reads the words after `keyval`; `None`: they are wrong.
    pub(super) fn parse(words: &[&str]) -> Result<Option<Self>, Reported> {
        let zone = GroupArgument::parse;
        Ok(Some(match *words {
            [] | ["list"] => Self::Zones,
            ["list", name] => Self::List(zone(name)),
            ["get", name, key] => Self::Get { zone: zone(name), key: key.to_owned() },
            ["set", name, key, value] => Self::set(name, key, value, None),
            ["set", name, key, value, expire] => {
                Self::set(name, key, value, Some(expire_ms(expire)?))
            }
            ["delete", name, key] => Self::Delete { zone: zone(name), key: key.to_owned() },
            ["clear", name] => Self::Clear(zone(name)),
            _ => return Ok(None),
        }))
    }

    fn set(zone: &str, key: &str, value: &str, expire_ms: Option<u64>) -> Self {
        let (zone, key, value) = (GroupArgument::parse(zone), key.to_owned(), value.to_owned());
        Self::Set { zone, key, value, expire_ms }
    }
}

/// `expire=TIME`, as times are written in the configuration.
fn expire_ms(word: &str) -> Result<u64, Reported> {
    let time =
        word.strip_prefix("expire=").and_then(|time| conf::units::milliseconds(time.as_bytes()));
    time.filter(|time_ms| *time_ms > 0).ok_or_else(|| {
        complain(format_args!("ctl: invalid parameter \"{word}\"; expected expire=TIME"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_after_keyval() {
        let parse = |words: &str| KeyvalCommand::parse(&words.split(' ').collect::<Vec<_>>());
        let set = KeyvalCommand::set("z", "k", "v", Some(90_000));
        assert_eq!(parse("set z k v expire=90s").ok().flatten(), Some(set));
        assert!(parse("set z k v expire=0").is_err() && parse("set z k v 5s").is_err());
        assert_eq!(parse("get z").ok().flatten(), None);
    }
}
