//! Variables of the connection: `$connection_...`, `$server_name`, `$tcpinfo_...`.

use net::TcpInfo;

use crate::decimal;
use crate::exchange::Exchange;
use crate::variables::{BuiltIn, number, some};

pub(super) const TABLE: &[BuiltIn] = &[
    BuiltIn::fresh(
        "connection_requests",
        "The number of requests on this connection so far, this one included.",
        |x, out| number(out, x.client.requests.get()),
    ),
    BuiltIn::fresh(
        "connection_time",
        "The age of the connection, in seconds with milliseconds.",
        |x, out| {
            decimal::write_seconds(net::clock::now_ms() - x.client.accepted_ms, out);
            true
        },
    ),
    BuiltIn::fresh(
        "server_name",
        "The first name of the server block that answers the request.",
        |x, out| some(out, &x.server().name),
    ),
    BuiltIn::fresh("scheme", "`http` or `https`.", |x, out| {
        some(out, x.client.scheme().0.as_bytes())
    }),
    BuiltIn::fresh("https", "`on` on connections with TLS, otherwise empty.", |x, out| {
        !x.client.is_secure.get() || some(out, b"on")
    }),
    BuiltIn::fresh(
        "tcpinfo_rtt",
        "The round-trip time to the client that the kernel measured, in microseconds.",
        |x, out| tcp_info(x, out, |info| info.rtt_us),
    ),
    BuiltIn::fresh(
        "tcpinfo_rttvar",
        "The variation of the round-trip time that the kernel measured, in microseconds.",
        |x, out| tcp_info(x, out, |info| info.rttvar_us),
    ),
    BuiltIn::fresh(
        "tcpinfo_snd_cwnd",
        "The congestion window toward the client, in segments.",
        |x, out| tcp_info(x, out, |info| info.snd_cwnd),
    ),
    BuiltIn::fresh(
        "tcpinfo_rcv_space",
        "The receive window of the connection, in bytes.",
        |x, out| tcp_info(x, out, |info| info.rcv_space),
    ),
];

fn tcp_info(x: &Exchange, out: &mut Vec<u8>, pick: fn(&TcpInfo) -> u32) -> bool {
    x.client.socket.tcp_info().is_some_and(|info| number(out, pick(&info).into()))
}
