//! A Lua state with the table `wrk` and a script in it.
//!
//! The globals `request`, `delay` and `response` are looked up at each call, by a name that Lua
//! already holds: scripts replace them while they run (a login first, then the rest), and wrk
//! follows them.

mod addr;
mod error;
mod format;
mod statistics;
mod thread;
mod value;
mod wrk;

#[cfg(test)]
mod tests;

use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use hdrhistogram::Histogram;
use mlua::chunk::ChunkMode;
use mlua::{Function, Lua, LuaOptions, LuaString, StdLib, Table};

use super::{LuaValue, ScriptError, ScriptSummary, ScriptTarget, ScriptThread};
use thread::{Handle, ThreadDecisions};

/// The longest delay before a request that a script can ask for: a day.
const DELAY_MAX_MS: f64 = 24.0 * 3600.0 * 1000.0;

/// A script in a Lua state of its own.
pub struct Script {
    name: String,
    lua: Lua,
    globals: Table,
    wrk: Table,
    names: ScriptGlobals,
    own: Rc<ThreadDecisions>,
    flush: Function,
}

/// The globals a run asks for again and again.
struct ScriptGlobals {
    request: LuaString,
    delay: LuaString,
    response: LuaString,
}

impl Script {
    /// Runs the script's text in a new state. `name` is what errors call it, as a rule its path.
    pub fn load(name: &str, source: &[u8], target: &ScriptTarget) -> Result<Self, ScriptError> {
        let script = Self::new(name, target).map_err(|error| error::shown(name, &error))?;
        let chunk = script.lua.load(without_shebang(source)).set_name(format!("@{name}"));
        script.shown(chunk.set_mode(ChunkMode::Text).exec())?;
        script.flush();
        Ok(script)
    }

    fn new(name: &str, target: &ScriptTarget) -> mlua::Result<Self> {
        // Rust code that scripts call does not panic, so `pcall` stays LuaJIT's own.
        let options = LuaOptions::new().catch_rust_panics(false);
        let lua = Lua::new_with(StdLib::ALL_SAFE, options)?;
        let wrk = wrk::table(&lua, target)?;
        let globals = lua.globals();
        globals.raw_set("wrk", &wrk)?;
        let names = ScriptGlobals {
            request: lua.create_string("request")?,
            delay: lua.create_string("delay")?,
            response: lua.create_string("response")?,
        };
        let flush = flush_of(&globals)?;
        Ok(Self { name: name.into(), lua, globals, wrk, names, own: Rc::default(), flush })
    }

    /// Sets a global.
    pub fn set(&self, name: &str, value: &LuaValue) -> Result<(), ScriptError> {
        self.shown(
            value::into_lua(&self.lua, value).and_then(|value| self.globals.raw_set(name, value)),
        )
    }

    /// Reads a global; one that cannot cross is an error.
    pub fn get(&self, name: &str) -> Result<LuaValue, ScriptError> {
        self.shown(self.globals.raw_get(name).and_then(value::from_lua))
    }

    /// The address its connections go to: `wrk.thread.addr`.
    pub fn addr(&self) -> Option<SocketAddr> {
        self.own.addr()
    }

    /// Sets the address its connections go to.
    pub fn set_addr(&self, addr: SocketAddr) {
        self.own.set_addr(addr);
    }

    /// Begins a thread: the script's `init(args)`, then the request of a script without
    /// `request`. `args` are the URL and the words after `--`, which it finds at 1, 2, ...
    pub fn init(&self, args: &[String]) -> Result<(), ScriptError> {
        let begun = self.begin(args);
        // As in wrk: before its thread runs a script stops nothing.
        self.own.run_on();
        self.flush();
        self.shown(begun)
    }

    fn begin(&self, args: &[String]) -> mlua::Result<()> {
        self.wrk.raw_set("thread", Handle::Own(self.own.clone()))?;
        let words = self.lua.create_table()?;
        for (index, word) in args.iter().enumerate() {
            words.raw_set(index, word.as_str())?;
        }
        wrk::function(&self.wrk, "init")?.call(words)
    }

    /// Whether `request` is asked before each request. Without, one does for all. wrk asks this
    /// and the next two once, after `init`, and of the first thread only.
    pub fn has_request(&self) -> bool {
        self.function(&self.names.request).is_some()
    }

    /// Replaces `out` by the bytes of the next request, or of several. wrk has the first thread
    /// make one that is never sent, to count them ([`requests_in`](super::requests_in)).
    pub fn request(&self, out: &mut Vec<u8>) -> Result<(), ScriptError> {
        self.shown(self.ask_request(out))
    }

    fn ask_request(&self, out: &mut Vec<u8>) -> mlua::Result<()> {
        let request = match self.function(&self.names.request) {
            Some(request) => request,
            None => wrk::function(&self.wrk, "request")?,
        };
        out.clear();
        match request.call(())? {
            mlua::Value::String(bytes) => out.extend_from_slice(&bytes.as_bytes()),
            other => return Err(error::refuse(unexpected("request", "a string", &other))),
        }
        Ok(())
    }

    /// Whether `delay` is asked before each request.
    pub fn has_delay(&self) -> bool {
        self.function(&self.names.delay).is_some()
    }

    /// How long to wait before the next request: whole milliseconds, as in wrk.
    pub fn delay(&self) -> Result<Duration, ScriptError> {
        self.shown(self.ask_delay())
    }

    fn ask_delay(&self) -> mlua::Result<Duration> {
        let Some(delay) = self.function(&self.names.delay) else { return Ok(Duration::ZERO) };
        let answer: mlua::Value = delay.call(())?;
        if answer.is_nil() {
            return Ok(Duration::ZERO);
        }
        let ms = self.lua.coerce_number(answer.clone())?;
        let ms = ms.ok_or_else(|| error::refuse(unexpected("delay", "a number", &answer)))?;
        Ok(Duration::from_millis(ms.clamp(0.0, DELAY_MAX_MS) as u64))
    }

    /// Whether `response` is to be told of each reply.
    pub fn wants_response(&self) -> bool {
        self.function(&self.names.response).is_some()
    }

    /// Tells `response` of a reply. Of header lines with the same name the last one counts.
    pub fn response<'h>(
        &self,
        status: u16,
        headers: impl Iterator<Item = (&'h [u8], &'h [u8])>,
        body: &[u8],
    ) -> Result<(), ScriptError> {
        self.shown(self.tell_response(status, headers, body))
    }

    fn tell_response<'h>(
        &self,
        status: u16,
        headers: impl Iterator<Item = (&'h [u8], &'h [u8])>,
        body: &[u8],
    ) -> mlua::Result<()> {
        let Some(response) = self.function(&self.names.response) else { return Ok(()) };
        let table = self.lua.create_table()?;
        for (name, value) in headers {
            table.raw_set(self.lua.create_string(name)?, self.lua.create_string(value)?)?;
        }
        response.call((status, table, self.lua.create_string(body)?))
    }

    /// Whether the script has ended its thread by `wrk.thread:stop()`.
    pub fn stopped(&self) -> bool {
        self.own.is_stopped()
    }

    /// In the main state, for each thread before its `init`: the script's `setup(thread)`.
    pub fn setup(&self, thread: impl ScriptThread + 'static) -> Result<(), ScriptError> {
        let handle = Handle::Other(Rc::new(thread));
        let done = wrk::function(&self.wrk, "setup").and_then(|setup| setup.call::<()>(handle));
        self.flush();
        self.shown(done)
    }

    pub fn has_done(&self) -> bool {
        self.globals.raw_get("done").is_ok_and(|done: mlua::Value| done.is_function())
    }

    /// In the main state, at the end: the script's `done`. Latencies are in microseconds.
    pub fn done(
        &self,
        summary: &ScriptSummary,
        latency: &Histogram<u64>,
        requests: &Histogram<u64>,
    ) -> Result<(), ScriptError> {
        if !self.has_done() {
            return Ok(());
        }
        let done = statistics::done(&self.lua, summary, latency, requests);
        self.flush();
        self.shown(done)
    }

    /// What the script has printed goes out. C's standard output has a buffer of its own, so that
    /// it would come after ours; the calls before and after a run do this by themselves.
    pub fn flush(&self) {
        // A closed standard output is told to whoever writes to it.
        let _ = self.flush.call::<mlua::Value>(());
    }

    fn function(&self, name: &LuaString) -> Option<Function> {
        match self.globals.raw_get(name) {
            Ok(mlua::Value::Function(function)) => Some(function),
            _ => None,
        }
    }

    fn shown<T>(&self, result: mlua::Result<T>) -> Result<T, ScriptError> {
        result.map_err(|error| error::shown(&self.name, &error))
    }
}

/// `io.stdout:flush`, taken before the script can replace it.
fn flush_of(globals: &Table) -> mlua::Result<Function> {
    use mlua::ObjectLike;
    let stdout = globals.raw_get::<Table>("io")?.raw_get::<mlua::AnyUserData>("stdout")?;
    stdout.get::<Function>("flush")?.bind(stdout)
}

/// A first line that begins with "#" is the system's. Its end stays: lines count from 1.
fn without_shebang(source: &[u8]) -> &[u8] {
    match source {
        [b'#', ..] => {
            let end = source.iter().position(|byte| *byte == b'\n').unwrap_or(source.len());
            &source[end..]
        }
        _ => source,
    }
}

fn unexpected(function: &str, wanted: &str, found: &mlua::Value) -> String {
    format!("{function}() returned {}, not {wanted}", error::kind(found))
}
