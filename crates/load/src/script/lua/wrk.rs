//! The table `wrk` of a new state.

use std::cell::Cell;

use mlua::{Error, Function, Lua, Result, Table, Value};

use super::addr::{self, Addr};
use super::error::{kind, refuse};
use super::format::RequestFormatter;
use crate::script::ScriptTarget;

/// The table, filled with what the command line says.
pub(super) fn table(lua: &Lua, target: &ScriptTarget) -> Result<Table> {
    let wrk = lua.create_table()?;
    wrk.raw_set("scheme", target.scheme.as_str())?;
    wrk.raw_set("host", target.host.as_str())?;
    wrk.raw_set("port", target.port.map(|port| port.to_string()))?;
    wrk.raw_set("method", target.method.as_str())?;
    wrk.raw_set("path", target.path.as_str())?;
    wrk.raw_set("headers", headers(lua, target)?)?;
    if let Some(body) = &target.body {
        wrk.raw_set("body", lua.create_string(body)?)?;
    }
    let addrs = lua.create_table()?;
    for addr in &target.addrs {
        addrs.raw_push(Addr(*addr))?;
    }
    wrk.raw_set("addrs", addrs)?;
    add_functions(lua, &wrk)?;
    Ok(wrk)
}

/// A function of the table, which the script may have replaced.
pub(super) fn function(wrk: &Table, name: &str) -> Result<Function> {
    match wrk.raw_get(name)? {
        Value::Function(function) => Ok(function),
        other => Err(missing(name, "a function", &other)),
    }
}

fn missing(name: &str, wanted: &str, found: &Value) -> Error {
    refuse(format!("wrk.{name} is {}, not {wanted}", kind(found)))
}

fn headers(lua: &Lua, target: &ScriptTarget) -> Result<Table> {
    let headers = target.headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    lua.create_table_from(headers)
}

fn add_functions(lua: &Lua, wrk: &Table) -> Result<()> {
    let mut format = RequestFormatter::new(lua, wrk)?;
    let format = lua.create_function_mut(move |lua, given| format.request(lua, given))?;
    wrk.raw_set("format", format)?;
    wrk.raw_set("lookup", lua.create_function(addr::lookup)?)?;
    wrk.raw_set("connect", lua.create_function(addr::connect)?)?;
    wrk.raw_set("init", init(lua, wrk.clone())?)?;
    wrk.raw_set("setup", setup(lua)?)
}

/// `wrk.setup`: calls the script's.
fn setup(lua: &Lua) -> Result<Function> {
    let within = Within::default();
    lua.create_function(move |lua, thread: Value| within.call(lua, "setup", thread))
}

/// `wrk.init`: makes the field `Host`, calls the script's `init`, and composes the request that
/// serves where the script has no `request`.
///
/// Scripts of wrk before 4 call it out of their `init`: then the rest of it is done.
fn init(lua: &Lua, wrk: Table) -> Result<Function> {
    let within = Within::default();
    lua.create_function(move |lua, args: Value| {
        add_host(&wrk)?;
        within.call(lua, "init", args)?;
        let request: Value = within.guard(|| function(&wrk, "format")?.call(()))?;
        let request = lua.create_function(move |_, ()| Ok(request.clone()))?;
        wrk.raw_set("request", request)
    })
}

fn add_host(wrk: &Table) -> Result<()> {
    let headers = match wrk.raw_get("headers")? {
        Value::Table(headers) => headers,
        other => return Err(missing("headers", "a table", &other)),
    };
    if headers.raw_get::<Option<Value>>("Host")?.is_some() {
        return Ok(());
    }
    let mut host: String = wrk.raw_get("host")?;
    if host.contains(':') {
        host = format!("[{host}]");
    }
    if let Some(port) = wrk.raw_get::<Option<String>>("port")? {
        host = format!("{host}:{port}");
    }
    headers.raw_set("Host", host)
}

/// How often a function stands in itself: each time takes of the C stack, which has an end.
#[derive(Default)]
struct Within(Cell<usize>);

impl Within {
    /// Calls a global function of the script, if there is one and it is not what called us.
    fn call(&self, lua: &Lua, name: &str, argument: Value) -> Result<()> {
        match lua.globals().raw_get(name)? {
            Value::Function(function) if self.0.get() == 0 => {
                self.guard(|| function.call(argument))
            }
            _ => Ok(()),
        }
    }

    fn guard<T>(&self, work: impl FnOnce() -> Result<T>) -> Result<T> {
        let depth = self.0.get();
        if depth > 1 {
            return Err(refuse("a function of wrk calls itself endlessly"));
        }
        self.0.set(depth + 1);
        let result = work();
        self.0.set(depth);
        result
    }
}
