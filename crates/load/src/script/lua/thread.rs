//! Threads as scripts hold them: their own, and in the main state each other one.

use std::cell::Cell;
use std::net::SocketAddr;
use std::rc::Rc;

use mlua::{Lua, MetaMethod, Result, UserData, UserDataFields, UserDataMethods};

use super::addr::Addr;
use super::error::refuse;
use super::value;
use crate::script::{LuaValue, ScriptThread};

/// What a script decides about its own thread.
#[derive(Default)]
pub(super) struct ThreadDecisions {
    addr: Cell<Option<SocketAddr>>,
    stopped: Cell<bool>,
}

impl ThreadDecisions {
    pub(super) fn addr(&self) -> Option<SocketAddr> {
        self.addr.get()
    }

    pub(super) fn set_addr(&self, addr: SocketAddr) {
        self.addr.set(Some(addr));
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stopped.get()
    }

    pub(super) fn run_on(&self) {
        self.stopped.set(false);
    }
}

/// `wrk.thread`, and the argument of `setup`.
pub(super) enum Handle {
    /// The thread whose state this is.
    Own(Rc<ThreadDecisions>),
    /// A thread with a state of its own.
    Other(Rc<dyn ScriptThread>),
}

impl Handle {
    fn get(&self, lua: &Lua, name: &str) -> Result<mlua::Value> {
        let value = match self {
            Self::Own(_) => value::from_lua(lua.globals().raw_get(name)?)?,
            Self::Other(thread) => thread.get(name).map_err(mlua::Error::external)?,
        };
        value::into_lua(lua, &value)
    }

    fn set(&self, lua: &Lua, name: &str, value: LuaValue) -> Result<()> {
        match self {
            Self::Own(_) => lua.globals().raw_set(name, value::into_lua(lua, &value)?),
            Self::Other(thread) => thread.set(name, value).map_err(mlua::Error::external),
        }
    }

    fn addr(&self) -> Option<SocketAddr> {
        match self {
            Self::Own(own) => own.addr(),
            Self::Other(thread) => thread.addr(),
        }
    }

    fn set_addr(&self, addr: SocketAddr) {
        match self {
            Self::Own(own) => own.set_addr(addr),
            Self::Other(thread) => thread.set_addr(addr),
        }
    }
}

impl UserData for Handle {
    fn add_fields<F: UserDataFields<Self>>(fields: &mut F) {
        fields.add_field_method_get("addr", |_, thread| Ok(thread.addr().map(Addr)));
    }

    fn add_methods<M: UserDataMethods<Self>>(methods: &mut M) {
        let set = |_: &Lua, thread: &Self, (key, value): (mlua::Value, mlua::Value)| {
            if key.as_string().is_none_or(|key| key != "addr") {
                return Err(refuse("only the field addr of a thread can be set"));
            }
            thread.set_addr(Addr::of(&value)?);
            Ok(())
        };
        methods.add_meta_method(MetaMethod::NewIndex, set);
        methods.add_method("get", |lua, thread, name: String| thread.get(lua, &name));
        methods.add_method("set", |lua, thread, (name, given): (String, mlua::Value)| {
            let value = value::from_lua(given)
                .map_err(|why| refuse(format!("thread:set(\"{name}\"): {why}")))?;
            thread.set(lua, &name, value)
        });
        // Of another thread it has no effect, in wrk as here: that one does not run yet, or no
        // longer.
        methods.add_method("stop", |_, thread, ()| {
            if let Self::Own(own) = thread {
                own.stopped.set(true);
            }
            Ok(())
        });
    }
}
