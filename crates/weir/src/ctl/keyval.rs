//! `weir ctl keyval`: shows and changes tables.

use serde_json::{Value, json};

use super::client::ControlReply;
use super::group::{GroupArgument, percent_encoded};
use super::keyval_command::KeyvalCommand;
use super::{Ctl, refused};
use crate::messages::{Reported, print};

fn path(zone: &GroupArgument) -> String {
    format!("/9/{}/keyvals/{}", zone.block(), percent_encoded(&zone.name))
}

impl Ctl {
    pub(super) fn keyval(&self, command: &KeyvalCommand) -> Result<(), Reported> {
        match command {
            KeyvalCommand::Zones => self.zones(),
            KeyvalCommand::List(zone) => self.read(&path(zone), entries),
            KeyvalCommand::Get { zone, key } => {
                self.read(&format!("{}?key={}", path(zone), percent_encoded(key)), values)
            }
            KeyvalCommand::Set { zone, key, value, expire_ms } => {
                self.set_entry(zone, key, value, *expire_ms)
            }
            KeyvalCommand::Delete { zone, key } => self.change_table(
                "DELETE",
                &format!("{}/{}", path(zone), percent_encoded(key)),
                None,
            ),
            KeyvalCommand::Clear(zone) => self.change_table("DELETE", &path(zone), None),
        }
    }

    /// The names of all tables.
    fn zones(&self) -> Result<(), Reported> {
        let names = |block: &str| -> Result<Value, Reported> {
            let reply = self.client.ask("GET", &format!("/9/{block}/keyvals?fields="), None)?;
            if reply.is_good() { Ok(reply.body) } else { Err(refused(&reply)) }
        };
        let all = json!({ "http": names("http")?, "stream": names("stream")? });
        if self.json {
            return print(format!("{all}\n"));
        }
        let names = |block: &str, prefix: &str| -> String {
            let names = all[block].as_array().into_iter().flatten().filter_map(Value::as_str);
            names.map(|name| format!("{prefix}{name}\n")).collect()
        };
        print(names("http", "") + &names("stream", "stream/"))
    }

    fn read(&self, path: &str, show: fn(&Value) -> String) -> Result<(), Reported> {
        let reply = self.client.ask("GET", path, None)?;
        if reply.is_good() { self.print(&reply, show) } else { Err(refused(&reply)) }
    }

    /// Adds an entry, or changes the one that is there.
    fn set_entry(
        &self,
        zone: &GroupArgument,
        key: &str,
        value: &str,
        expire_ms: Option<u64>,
    ) -> Result<(), Reported> {
        let value = match expire_ms {
            Some(expire_ms) => json!({ "value": value, "expire": expire_ms }),
            None => json!(value),
        };
        let (path, body) = (path(zone), json!({ key: value }).to_string());
        let reply = self.client.ask("PATCH", &path, Some(&body))?;
        match reply.body["error"]["code"] == "KeyvalKeyNotFound" {
            true => self.change_table("POST", &path, Some(&body)),
            false => self.table_changed(&reply),
        }
    }

    fn change_table(&self, method: &str, path: &str, body: Option<&str>) -> Result<(), Reported> {
        self.table_changed(&self.client.ask(method, path, body)?)
    }

    fn table_changed(&self, reply: &ControlReply) -> Result<(), Reported> {
        if !reply.is_good() {
            return Err(refused(reply));
        }
        if !self.json {
            reply.notes("\"state=\" of the zone").iter().for_each(|note| {
                observe::tell(format_args!("weir: {note}\n"));
            });
        }
        Ok(())
    }
}

/// One entry a line.
fn entries(reply: &Value) -> String {
    let line = |(key, value): (&String, &Value)| {
        let value = value.as_str().unwrap_or_default();
        format!("{}\t{}\n", printable(key), printable(value))
    };
    reply.as_object().into_iter().flatten().map(line).collect()
}

/// The value alone, for scripts.
fn values(reply: &Value) -> String {
    let values = reply.as_object().into_iter().flatten().filter_map(|(_, value)| value.as_str());
    values.map(|value| format!("{value}\n")).collect()
}

/// A text that stays in its line.
fn printable(text: &str) -> String {
    let escaped = |one: char| match one.is_control() || one == '\\' {
        true => one.escape_default().to_string(),
        false => one.to_string(),
    };
    text.chars().map(escaped).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_a_line() {
        let reply = json!({ "a": "1", "b\nc": "x\ty" });
        assert_eq!(entries(&reply), "a\t1\nb\\nc\tx\\ty\n");
        assert_eq!(values(&json!({ "a": "x y" })), "x y\n");
        assert_eq!(path(&GroupArgument::parse("stream/a b")), "/9/stream/keyvals/a%20b");
    }
}
