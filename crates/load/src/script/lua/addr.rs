//! Addresses: `wrk.lookup`, `wrk.connect`, and what they hand to each other.

use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::time::Duration;

use mlua::{AnyUserData, Lua, MetaMethod, Result, Table, UserData, UserDataMethods, Value};

use super::error::{kind, refuse};

/// How long an address has to answer.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// An address as scripts hold it.
pub(super) struct Addr(pub(super) SocketAddr);

impl UserData for Addr {
    fn add_methods<M: UserDataMethods<Self>>(methods: &mut M) {
        // wrk sets no brackets around an IPv6 address.
        methods.add_meta_method(MetaMethod::ToString, |_, addr, ()| {
            Ok(format!("{}:{}", addr.0.ip(), addr.0.port()))
        });
    }
}

impl Addr {
    /// The address in a value of a script.
    pub(super) fn of(value: &Value) -> Result<SocketAddr> {
        let addr = value.as_userdata().and_then(|data: &AnyUserData| data.borrow::<Self>().ok());
        addr.map(|addr| addr.0).ok_or_else(|| {
            refuse(format!("expected an address from wrk.lookup, not {}", kind(value)))
        })
    }
}

/// `wrk.lookup`: every address of a host.
pub(super) fn lookup(lua: &Lua, (host, service): (Value, Value)) -> Result<Table> {
    let host = text(lua, "host", host)?;
    let (service, port) = match service {
        Value::Nil => (String::new(), 0),
        service => {
            let service = text(lua, "service", service)?;
            let port = port_of(&service);
            let unknown = || refuse(format!("wrk.lookup: unknown service {service}"));
            let port = port.ok_or_else(unknown)?;
            (service, port)
        }
    };
    let found = (host.as_str(), port).to_socket_addrs();
    let found =
        found.map_err(|why| refuse(format!("unable to resolve {host}:{service}: {why}")))?;
    let table = lua.create_table()?;
    for addr in found {
        table.raw_push(Addr(addr))?;
    }
    Ok(table)
}

/// A port, or one of the two names that a URL may begin with.
fn port_of(service: &str) -> Option<u16> {
    match service {
        "http" => Some(80),
        "https" => Some(443),
        number => number.parse().ok(),
    }
}

fn text(lua: &Lua, what: &str, value: Value) -> Result<String> {
    let wrong = kind(&value);
    match lua.coerce_string(value)? {
        Some(text) => Ok(text.to_string_lossy()),
        None => Err(refuse(format!("wrk.lookup: the {what} is {wrong}, not a string"))),
    }
}

/// `wrk.connect`: whether an address answers.
pub(super) fn connect(_: &Lua, addr: Value) -> Result<bool> {
    Ok(TcpStream::connect_timeout(&Addr::of(&addr)?, CONNECT_TIMEOUT).is_ok())
}
