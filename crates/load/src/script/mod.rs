//! wrk's Lua scripts: what a script may say about requests, delays, replies and the report.
//!
//! ```text
//! main state    load  setup(thread)...                 done(summary, latency, requests)
//!                       | get, set, addr (`ScriptThread`)      | get
//! thread state  load ---'-- init(args)  { delay() request() response() }...
//! ```
//!
//! One [`Script`] is one Lua state and stays in the thread that made it. The main state shapes the
//! run and its report; every load thread has a state of its own, and what crosses between states
//! is a [`LuaValue`]. Deliberately absent: the requests' sockets, threads and clocks; who runs the
//! load carries the messages. The one exception is wrk's own: a script may look up a name and try
//! whether an address answers.

#[cfg(not(feature = "script"))]
mod absent;
#[cfg(feature = "script")]
mod lua;
mod requests;

use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

#[cfg(not(feature = "script"))]
pub use absent::Script;
#[cfg(feature = "script")]
pub use lua::Script;
pub use requests::requests_in;

/// What the table `wrk` holds when the script begins: the request that was asked for.
#[derive(Clone, Debug, Default)]
pub struct ScriptTarget {
    /// `http` or `https`.
    pub scheme: String,
    /// The host, without the brackets of an IPv6 address.
    pub host: String,
    /// The port, where one was given.
    pub port: Option<u16>,
    /// The path and all that follows it.
    pub path: String,
    pub method: String,
    /// Header fields, as far as they were asked for: without `Host` one is made of host and port.
    pub headers: Vec<(String, String)>,
    /// The body, if there is one.
    pub body: Option<Vec<u8>>,
    /// `wrk.addrs`: the addresses of the host that answer.
    pub addrs: Vec<SocketAddr>,
}

/// What can cross between Lua states.
#[derive(Clone, Debug, PartialEq)]
pub enum LuaValue {
    Nil,
    Boolean(bool),
    /// A number: in LuaJIT each is a double.
    Number(f64),
    /// A string: bytes of any kind.
    String(Vec<u8>),
    /// The keys of a table with their values, in no order.
    Table(Vec<(LuaValue, LuaValue)>),
}

/// A load thread as `setup` and `done` see it, from outside.
///
/// wrk's `thread:stop()` belongs to a running thread's own script. The main state only runs before
/// and after, when it has no effect, in wrk as here.
pub trait ScriptThread {
    /// The address it connects to.
    fn addr(&self) -> Option<SocketAddr>;
    /// From now on it connects to this one.
    fn set_addr(&self, addr: SocketAddr);
    /// [`Script::get`] of its state.
    fn get(&self, name: &str) -> Result<LuaValue, ScriptError>;
    /// [`Script::set`] of its state.
    fn set(&self, name: &str, value: LuaValue) -> Result<(), ScriptError>;
}

/// What a run came to: the first argument of `done`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScriptSummary {
    pub duration: Duration,
    /// Complete replies.
    pub requests: u64,
    /// Bytes received.
    pub bytes: u64,
    /// Connections that were not made.
    pub connect: u64,
    /// Failures to read.
    pub read: u64,
    /// Failures to write.
    pub write: u64,
    /// Replies with a status above 399.
    pub status: u64,
    /// Replies that came too late.
    pub timeout: u64,
}

/// What is wrong with a script: one line, `script.lua:12: ...` where a line of it is to blame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptError(String);

impl ScriptError {
    pub fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }
}

impl fmt::Display for ScriptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ScriptError {}
