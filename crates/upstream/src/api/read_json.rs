//! The body of a request to the API: an object with parameters of a server.

use conf::{Subsystem, units};
use wire::json::{self, JsonLimits, JsonMember, JsonValue};

use super::patch::SpecPatch;
use super::rules::SpecRefusal;
use crate::roster::ROSTER_LINES_MAX;

/// The bounds of a body with one server.
const LIMITS: JsonLimits = JsonLimits { bytes_max: 64 * 1024, depth_max: 4, values_max: 100 };
/// The bounds of a body with all servers of a group.
const LIST_LIMITS: JsonLimits =
    JsonLimits { bytes_max: 1 << 20, depth_max: 4, values_max: ROSTER_LINES_MAX * 12 };

impl SpecPatch {
    /// Reads the parameters of a server of that subsystem.
    pub fn from_json(body: &[u8], subsystem: Subsystem) -> Result<Self, SpecRefusal> {
        let read = json::parse(body, LIMITS);
        let value = read.map_err(|error| SpecRefusal::new(415, error.to_string(), "JsonError"))?;
        Self::of_value(&value, subsystem)
    }

    /// Reads the parameters of all servers of a group.
    pub(super) fn list_from_json(
        body: &[u8],
        subsystem: Subsystem,
    ) -> Result<Vec<Self>, SpecRefusal> {
        let read = json::parse(body, LIST_LIMITS);
        let value = read.map_err(|error| SpecRefusal::new(415, error.to_string(), "JsonError"))?;
        let list = value.as_list().ok_or_else(|| format_error("a list is expected"))?;
        let entries = list.iter().enumerate().map(|(at, entry)| {
            Self::of_value(entry, subsystem).map_err(|refused| refused.in_entry(at))
        });
        entries.collect()
    }

    fn of_value(value: &JsonValue<'_>, subsystem: Subsystem) -> Result<Self, SpecRefusal> {
        let object = value.as_object().ok_or_else(|| format_error("an object is expected"))?;
        let mut patch = Self::default();
        for member in object {
            patch.take(member, subsystem)?;
        }
        Ok(patch)
    }

    fn take(&mut self, member: &JsonMember<'_>, subsystem: Subsystem) -> Result<(), SpecRefusal> {
        let (name, value) = (&*member.name, &member.value);
        if matches!(value, JsonValue::List(_) | JsonValue::Object(_)) {
            return Err(format_error("nested object or list"));
        }
        let number = |code| {
            let number = value.as_u64().and_then(|number| u32::try_from(number).ok());
            number.map(Some).ok_or_else(|| invalid(name, code))
        };
        let text = || value.as_text().map(|text| Some(text.as_bytes().into())).ok_or(name);
        let flag = || value.as_bool().map(Some).ok_or(name);
        let wrong_kind = |name: &str| invalid(name, "UpstreamConfFormatError");
        match name {
            // It is in the path.
            "id" => {}
            "server" => self.server = text().map_err(wrong_kind)?,
            "service" => self.service = text().map_err(wrong_kind)?,
            "route" if subsystem != Subsystem::Stream => {
                self.route = text().map_err(|name| invalid(name, "UpstreamBadRoute"))?;
            }
            "weight" => self.weight = number("UpstreamBadWeight")?,
            "max_conns" => self.max_conns = number("UpstreamBadMaxConns")?,
            "max_fails" => self.max_fails = number("UpstreamBadMaxFails")?,
            "fail_timeout" => {
                let time_ms = time(value, |text| Some(units::seconds(text)?.saturating_mul(1000)));
                self.fail_timeout_ms =
                    Some(time_ms.ok_or_else(|| invalid(name, "UpstreamBadFailTimeout"))?);
            }
            "slow_start" => {
                let time_ms = time(value, units::milliseconds);
                self.slow_start_ms =
                    Some(time_ms.ok_or_else(|| invalid(name, "UpstreamBadSlowStart"))?);
            }
            "backup" => self.backup = flag().map_err(wrong_kind)?,
            "down" => self.status.down = flag().map_err(wrong_kind)?,
            "drain" => self.status.drain = flag().map_err(wrong_kind)?,
            _ => return Err(format_error(&format!("unknown parameter \"{name}\""))),
        }
        Ok(())
    }
}

/// A time: a text as in the configuration, or a number of seconds.
fn time(value: &JsonValue<'_>, read: impl Fn(&[u8]) -> Option<u64>) -> Option<u64> {
    match value {
        JsonValue::Text(text) => read(text.as_bytes()),
        value => value.as_u64()?.checked_mul(1000),
    }
}

fn invalid(name: &str, code: &'static str) -> SpecRefusal {
    SpecRefusal::new(400, format!("invalid \"{name}\""), code)
}

fn format_error(text: &str) -> SpecRefusal {
    SpecRefusal::new(400, text, "UpstreamConfFormatError")
}
