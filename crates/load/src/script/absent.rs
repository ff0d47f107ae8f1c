//! A build without LuaJIT: loading a script is an error.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::time::Duration;

use hdrhistogram::Histogram;

use super::{LuaValue, ScriptError, ScriptSummary, ScriptTarget, ScriptThread};

/// A script; there is none in this build.
pub struct Script(Infallible);

impl Script {
    pub fn load(_name: &str, _source: &[u8], _target: &ScriptTarget) -> Result<Self, ScriptError> {
        Err(ScriptError::new("-s requires a build with the feature \"script\""))
    }

    pub fn set(&self, _name: &str, _value: &LuaValue) -> Result<(), ScriptError> {
        match self.0 {}
    }

    pub fn get(&self, _name: &str) -> Result<LuaValue, ScriptError> {
        match self.0 {}
    }

    pub fn addr(&self) -> Option<SocketAddr> {
        match self.0 {}
    }

    pub fn set_addr(&self, _addr: SocketAddr) {
        match self.0 {}
    }

    pub fn init(&self, _args: &[String]) -> Result<(), ScriptError> {
        match self.0 {}
    }

    pub fn has_request(&self) -> bool {
        match self.0 {}
    }

    pub fn request(&self, _out: &mut Vec<u8>) -> Result<(), ScriptError> {
        match self.0 {}
    }

    pub fn has_delay(&self) -> bool {
        match self.0 {}
    }

    pub fn delay(&self) -> Result<Duration, ScriptError> {
        match self.0 {}
    }

    pub fn wants_response(&self) -> bool {
        match self.0 {}
    }

    pub fn response<'h>(
        &self,
        _status: u16,
        _headers: impl Iterator<Item = (&'h [u8], &'h [u8])>,
        _body: &[u8],
    ) -> Result<(), ScriptError> {
        match self.0 {}
    }

    pub fn stopped(&self) -> bool {
        match self.0 {}
    }

    pub fn setup(&self, _thread: impl ScriptThread + 'static) -> Result<(), ScriptError> {
        match self.0 {}
    }

    pub fn has_done(&self) -> bool {
        match self.0 {}
    }

    pub fn done(
        &self,
        _summary: &ScriptSummary,
        _latency: &Histogram<u64>,
        _requests: &Histogram<u64>,
    ) -> Result<(), ScriptError> {
        match self.0 {}
    }

    pub fn flush(&self) {
        match self.0 {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_without_scripts_says_so() {
        let refused = Script::load("a.lua", b"", &ScriptTarget::default()).err();
        let expected = "-s requires a build with the feature \"script\"";
        assert_eq!(refused.map(|error| error.to_string()), Some(expected.into()));
    }
}
