//! The connection: `$connection_...`, `$server_name`, `$tcpinfo_...`.

use net::TcpInfo;

use crate::decimal;
use crate::exchange::Exchange;
use crate::variables::{BuiltIn, number, some};

pub(super) const TABLE: &[BuiltIn] = &[
    BuiltIn::fresh("connection_requests", |x, out| number(out, x.client.requests.get())),
    BuiltIn::fresh("connection_time", |x, out| {
        decimal::write_seconds(net::clock::now_ms() - x.client.accepted_ms, out);
        true
    }),
    BuiltIn::fresh("server_name", |x, out| some(out, &x.server().name)),
    BuiltIn::fresh("scheme", |x, out| some(out, x.client.scheme().0.as_bytes())),
    BuiltIn::fresh("https", |x, out| !x.client.is_secure.get() || some(out, b"on")),
    BuiltIn::fresh("tcpinfo_rtt", |x, out| tcp_info(x, out, |info| info.rtt_us)),
    BuiltIn::fresh("tcpinfo_rttvar", |x, out| tcp_info(x, out, |info| info.rttvar_us)),
    BuiltIn::fresh("tcpinfo_snd_cwnd", |x, out| tcp_info(x, out, |info| info.snd_cwnd)),
    BuiltIn::fresh("tcpinfo_rcv_space", |x, out| tcp_info(x, out, |info| info.rcv_space)),
];

fn tcp_info(x: &Exchange, out: &mut Vec<u8>, pick: fn(&TcpInfo) -> u32) -> bool {
    x.client.socket.tcp_info().is_some_and(|info| number(out, pick(&info).into()))
}
