//! The connection, and where it came in: `$connection...`, `$server_...`, `$tcpinfo_...`.

use net::TcpInfo;

use crate::decimal;
use crate::exchange::Exchange;
use crate::variables::{BuiltIn, number, some};

pub(super) const TABLE: &[BuiltIn] = &[
    BuiltIn::fresh("connection", |x, out| number(out, x.client.serial)),
    BuiltIn::fresh("connection_requests", |x, out| number(out, x.client.requests.get())),
    BuiltIn::fresh("connection_time", |x, out| {
        decimal::write_seconds(net::clock::now_ms() - x.client.accepted_ms, out);
        true
    }),
    BuiltIn::fresh("server_addr", |x, out| match x.client.local() {
        Some(local) => text(out, format_args!("{}", local.ip())),
        // The socket file's own name, which the kernel would give, too.
        None => {
            let listen = x.generation.listen(x.client.listen);
            listen.is_some_and(|listen| text(out, format_args!("{}", listen.address)))
        }
    }),
    BuiltIn::fresh("server_port", |x, out| {
        x.client.local().is_none_or(|local| number(out, local.port().into()))
    }),
    BuiltIn::fresh("server_name", |x, out| some(out, &x.server().name)),
    BuiltIn::fresh("scheme", |x, out| some(out, x.client.scheme().0.as_bytes())),
    BuiltIn::fresh("https", |x, out| !x.client.is_secure.get() || some(out, b"on")),
    BuiltIn::fresh("tcpinfo_rtt", |x, out| tcp_info(x, out, |info| info.rtt_us)),
    BuiltIn::fresh("tcpinfo_rttvar", |x, out| tcp_info(x, out, |info| info.rttvar_us)),
    BuiltIn::fresh("tcpinfo_snd_cwnd", |x, out| tcp_info(x, out, |info| info.snd_cwnd)),
    BuiltIn::fresh("tcpinfo_rcv_space", |x, out| tcp_info(x, out, |info| info.rcv_space)),
];

fn text(out: &mut Vec<u8>, value: std::fmt::Arguments<'_>) -> bool {
    std::io::Write::write_fmt(out, value).is_ok()
}

fn tcp_info(x: &Exchange, out: &mut Vec<u8>, pick: fn(&TcpInfo) -> u32) -> bool {
    x.client.socket.tcp_info().is_some_and(|info| number(out, pick(&info).into()))
}
