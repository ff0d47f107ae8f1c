//! `wrk.format`: a request as text.
//!
//! It reads its tables as they are, past metatables: nothing here calls the script.

use mlua::{Lua, LuaString, Result, Table, Value};

use super::error::{kind, refuse};

/// What `wrk.format` needs at hand.
pub(super) struct RequestFormatter {
    wrk: Table,
    method: LuaString,
    path: LuaString,
    headers: LuaString,
    body: LuaString,
    host: LuaString,
    content_length: LuaString,
    /// The request under way; its memory serves the next one.
    out: Vec<u8>,
}

impl RequestFormatter {
    pub(super) fn new(lua: &Lua, wrk: &Table) -> Result<Self> {
        Ok(Self {
            wrk: wrk.clone(),
            method: lua.create_string("method")?,
            path: lua.create_string("path")?,
            headers: lua.create_string("headers")?,
            body: lua.create_string("body")?,
            host: lua.create_string("Host")?,
            content_length: lua.create_string("Content-Length")?,
            out: Vec::new(),
        })
    }

    /// The request of what is given and, where it is not, of what `wrk` holds. As in wrk the table
    /// of headers gets the fields `Host` and `Content-Length`, or loses the latter.
    pub(super) fn request(
        &mut self,
        lua: &Lua,
        (method, path, headers, body): (Value, Value, Value, Value),
    ) -> Result<LuaString> {
        let method = self.or(method, &self.method)?;
        let path = self.or(path, &self.path)?;
        let headers = self.complete(headers)?;
        let body = self.body(lua, body)?;
        let length = body.as_ref().map(|body| body.as_bytes().len());
        headers.raw_set(&self.content_length, length)?;

        let out = &mut self.out;
        out.clear();
        write(lua, out, "method", method)?;
        out.push(b' ');
        write(lua, out, "path", path)?;
        out.extend_from_slice(b" HTTP/1.1\r\n");
        headers.for_each(|name: Value, value: Value| {
            write(lua, out, "name of a header", name)?;
            out.extend_from_slice(b": ");
            write(lua, out, "value of a header", value)?;
            out.extend_from_slice(b"\r\n");
            Ok(())
        })?;
        out.extend_from_slice(b"\r\n");
        if let Some(body) = body {
            out.extend_from_slice(&body.as_bytes());
        }
        lua.create_string(out)
    }

    fn or(&self, given: Value, name: &LuaString) -> Result<Value> {
        match given {
            Value::Nil | Value::Boolean(false) => self.wrk.raw_get(name),
            given => Ok(given),
        }
    }

    /// The table of headers, with the field `Host`.
    fn complete(&self, given: Value) -> Result<Table> {
        let headers = match self.or(given, &self.headers)? {
            Value::Table(headers) => headers,
            other => return Err(refuse(wrong("headers", "a table", &other))),
        };
        if matches!(headers.raw_get(&self.host)?, Value::Nil | Value::Boolean(false)) {
            let Value::Table(defaults) = self.wrk.raw_get(&self.headers)? else {
                return Ok(headers);
            };
            headers.raw_set(&self.host, defaults.raw_get::<Value>(&self.host)?)?;
        }
        Ok(headers)
    }

    fn body(&self, lua: &Lua, given: Value) -> Result<Option<LuaString>> {
        let body = match self.or(given, &self.body)? {
            Value::Nil | Value::Boolean(false) => return Ok(None),
            body => body,
        };
        let problem = wrong("body", "a string", &body);
        lua.coerce_string(body)?.map(Some).ok_or_else(|| refuse(problem))
    }
}

/// Appends what Lua's `%s` would, of values that mean something in a request.
fn write(lua: &Lua, out: &mut Vec<u8>, what: &str, value: Value) -> Result<()> {
    match value {
        Value::String(text) => out.extend_from_slice(&text.as_bytes()),
        Value::Boolean(value) => out.extend_from_slice(if value { b"true" } else { b"false" }),
        number @ (Value::Integer(_) | Value::Number(_)) => {
            if let Some(text) = lua.coerce_string(number)? {
                out.extend_from_slice(&text.as_bytes());
            }
        }
        other => return Err(refuse(wrong(what, "a string", &other))),
    }
    Ok(())
}

fn wrong(what: &str, wanted: &str, found: &Value) -> String {
    format!("wrk.format: {what}: {}, not {wanted}", kind(found))
}
