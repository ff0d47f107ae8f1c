//! A server as a source describes it: JSON, a line of words, or labels.

use serde_json::{Map, Value, json};

/// Numbers, texts and flags among the parameters of the API.
const NUMBERS: [&str; 3] = ["weight", "max_conns", "max_fails"];
const TEXTS: [&str; 4] = ["fail_timeout", "slow_start", "route", "service"];
const FLAGS: [&str; 3] = ["backup", "down", "drain"];

/// A server with its parameters, in the names of the API.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerEntry(Map<String, Value>);

impl ServerEntry {
    pub fn new(address: &str) -> Self {
        Self(Map::from_iter([("server".to_owned(), json!(address))]))
    }

    /// Reads an object of the API, or the text of an address.
    pub fn from_json(value: &Value) -> Result<Self, String> {
        let object = match value {
            Value::String(address) => return Self::of_address(address),
            Value::Object(object) => object,
            _ => return Err("a server is an object or a text".to_owned()),
        };
        let address =
            object.get("server").and_then(Value::as_str).ok_or("\"server\" is missing")?;
        let mut entry = Self::of_address(address)?;
        for (name, value) in object.iter().filter(|(name, _)| !["server", "id"].contains(&&***name))
        {
            entry.take(name, value.clone())?;
        }
        Ok(entry)
    }

    /// Reads the arguments of a `server` line.
    pub fn from_words(words: &[&str]) -> Result<Self, String> {
        let (address, rest) = words.split_first().ok_or("an address is missing")?;
        let mut entry = Self::of_address(address)?;
        for word in rest {
            match word.split_once('=') {
                Some((name, text)) => entry.set(name, text)?,
                // A name is always resolved at run time.
                None if *word == "resolve" => {}
                None => entry.set(word, "true")?,
            }
        }
        Ok(entry)
    }

    fn of_address(address: &str) -> Result<Self, String> {
        let is_good = !address.is_empty() && !address.contains(char::is_whitespace);
        is_good.then(|| Self::new(address)).ok_or_else(|| format!("invalid server \"{address}\""))
    }

    /// Sets a parameter whose value is a text, as in a line or a label.
    pub fn set(&mut self, name: &str, text: &str) -> Result<(), String> {
        let invalid = || format!("invalid {name} \"{text}\"");
        let value = if NUMBERS.contains(&name) {
            json!(text.parse::<u32>().map_err(|_| invalid())?)
        } else if FLAGS.contains(&name) {
            json!(text.parse::<bool>().map_err(|_| invalid())?)
        } else {
            json!(text)
        };
        self.take(name, value)
    }

    fn take(&mut self, name: &str, value: Value) -> Result<(), String> {
        let is_number = || value.as_u64().is_some_and(|number| u32::try_from(number).is_ok());
        let is_known = [&NUMBERS[..], &TEXTS, &FLAGS].iter().any(|names| names.contains(&name));
        let is_good = NUMBERS.contains(&name) && is_number()
            || TEXTS.contains(&name) && value.is_string()
            || FLAGS.contains(&name) && value.is_boolean();
        if !is_good {
            let what = if is_known { "invalid" } else { "unknown" };
            return Err(format!("{what} parameter \"{name}\""));
        }
        self.0.insert(name.to_owned(), value);
        Ok(())
    }

    fn address(&self) -> &str {
        self.0["server"].as_str().unwrap_or_default()
    }

    fn is_backup(&self) -> bool {
        self.0.get("backup") == Some(&Value::Bool(true))
    }
}

/// The servers of a group as the body of a request, sorted, so that the same servers are the same
/// text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerList {
    pub json: std::sync::Arc<str>,
    pub count: usize,
    /// Whether the source knows the servers; if not, those that there are stay.
    pub is_known: bool,
}

/// The most servers of a group; the server has the same limit.
pub const SERVERS_MAX: usize = 4096;

impl ServerList {
    pub fn empty() -> Self {
        Self { json: "[]".into(), count: 0, is_known: true }
    }

    /// The list of a group that the source names, without having told its servers yet.
    pub fn unknown() -> Self {
        Self { is_known: false, ..Self::empty() }
    }

    /// Servers listed twice in the same way are one.
    pub fn new(mut servers: Vec<ServerEntry>) -> Result<Self, String> {
        let key = |one: &ServerEntry| (one.is_backup(), one.address().to_owned());
        servers.sort_by_cached_key(key);
        servers.dedup();
        if let Some(pair) = servers.windows(2).find(|pair| key(&pair[0]) == key(&pair[1])) {
            let address = pair[0].address();
            return Err(format!("the server {address} is listed with different parameters"));
        }
        if servers.len() > SERVERS_MAX {
            return Err(format!("more than {SERVERS_MAX} servers"));
        }
        let count = servers.len();
        let list = Value::Array(servers.into_iter().map(|one| Value::Object(one.0)).collect());
        Ok(Self { json: list.to_string().into(), count, is_known: true })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_read_from_words_and_json() {
        let line = ServerEntry::from_words(&["10.0.0.1:80", "weight=2", "fail_timeout=5s", "down"]);
        let object = json!({"id": 7, "server": "10.0.0.1:80", "weight": 2, "fail_timeout": "5s",
            "down": true});
        assert_eq!(line, ServerEntry::from_json(&object));
        let text = ServerEntry::from_json(&json!("a.test"));
        assert_eq!(text, ServerEntry::from_words(&["a.test", "resolve"]));
        for wrong in [
            &["10.0.0.1", "weight=x"][..],
            &["10.0.0.1", "wieght=2"],
            &["10.0.0.1", "up"],
            &["10.0.0.1", "max_conns=-1"],
            &[],
        ] {
            assert!(ServerEntry::from_words(wrong).is_err(), "{wrong:?}");
        }
        for wrong in [
            json!(7),
            json!({}),
            json!({"server": 1}),
            json!({"server": "a b"}),
            json!({"server": "a", "weight": "2"}),
            json!({"server": "a", "weight": 4294967296_u64}),
            json!({"server": "a", "backup": null}),
        ] {
            assert!(ServerEntry::from_json(&wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_same_servers_are_the_same_text() {
        let list = |lines: &[&str]| {
            let entry = |line: &&str| {
                ServerEntry::from_words(&line.split(' ').collect::<Vec<_>>()).unwrap()
            };
            ServerList::new(lines.iter().map(entry).collect())
        };
        let one = list(&["10.0.0.2", "10.0.0.1 weight=2", "10.0.0.2"]).unwrap();
        assert_eq!(Ok(one.clone()), list(&["10.0.0.1 weight=2", "10.0.0.2"]));
        assert_eq!(&*one.json, r#"[{"server":"10.0.0.1","weight":2},{"server":"10.0.0.2"}]"#);
        assert!(list(&["10.0.0.1", "10.0.0.1 weight=2"]).is_err());
        assert_eq!(list(&["10.0.0.1", "10.0.0.1 backup"]).unwrap().count, 2);
    }
}
