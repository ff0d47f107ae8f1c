//! What the PROXY protocol's header said: `$proxy_protocol_...`.

use observe::Level;
use wire::proxy_protocol::{Endpoint, Header, TlvError, TlvName};

use crate::exchange::Exchange;
use crate::variables::{BuiltIn, Getter, number, some};

pub(super) const TABLE: &[BuiltIn] = &[
    BuiltIn::fresh("proxy_protocol_addr", |x, out| address(header(x).map(|h| &h.source), out)),
    BuiltIn::fresh("proxy_protocol_port", |x, out| port(header(x).map(|h| &h.source), out)),
    BuiltIn::fresh("proxy_protocol_server_addr", |x, out| {
        address(header(x).map(|h| &h.destination), out)
    }),
    BuiltIn::fresh("proxy_protocol_server_port", |x, out| {
        port(header(x).map(|h| &h.destination), out)
    }),
    BuiltIn::prefix("proxy_protocol_tlv_", tlv).cached_each(),
];

fn header(x: &Exchange) -> Option<&Header> {
    x.client.proxy_protocol.get().map(|header| &**header)
}

fn address(end: Option<&Endpoint>, out: &mut Vec<u8>) -> bool {
    end.is_some_and(|end| some(out, &end.address))
}

/// 0 is no port, but there: nothing is written.
fn port(end: Option<&Endpoint>, out: &mut Vec<u8>) -> bool {
    end.is_some_and(|end| end.port == 0 || number(out, end.port.into()))
}

fn tlv(name: Box<[u8]>) -> Getter {
    let wanted = TlvName::parse(&name);
    Box::new(move |x, out| {
        let found = header(x).map(|header| header.tlv(wanted, out));
        let wrong = match found {
            None => return false,
            Some(Ok(found)) => return found,
            Some(Err(TlvError::Broken)) => {
                x.log(Level::Error, format_args!("broken PROXY protocol TLV"));
                return false;
            }
            Some(Err(TlvError::UnknownName)) => "unknown",
            Some(Err(TlvError::InvalidName)) => "invalid",
        };
        let name = observe::Text(&name);
        x.log(Level::Error, format_args!("{wrong} PROXY protocol TLV \"{name}\""));
        false
    })
}
