//! Backends that send as much as they are let, in pieces as small as can be.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

/// What a backend answers every request with: a beginning, and what comes after it without end.
#[derive(Clone, Copy)]
pub(super) struct HostileReply {
    begin: &'static [u8],
    again: &'static [u8],
}

/// Chunks of one byte.
pub(super) const PIECES: HostileReply = HostileReply {
    begin: b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
    again: b"1\r\nx\r\n",
};

/// FastCGI records of standard error (type 7, request 1), a line each.
pub(super) const ERRORS: HostileReply =
    HostileReply { begin: b"", again: b"\x01\x07\x00\x01\x00\x05\x03\x00warn\n\0\0\0" };

/// A server that asks too much waits no longer than this for a reader.
const WRITE_MAX: Duration = Duration::from_secs(10);

/// Serves until this program ends. Its port.
pub(super) fn start(reply: HostileReply) -> Result<u16, String> {
    let fail = |err: std::io::Error| format!("a hostile backend: {err}");
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(fail)?;
    let port = listener.local_addr().map_err(fail)?.port();
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            thread::spawn(move || answer(client, reply));
        }
    });
    Ok(port)
}

/// Ends with the first write that fails: the server has closed.
fn answer(mut client: TcpStream, reply: HostileReply) -> std::io::Result<()> {
    client.set_write_timeout(Some(WRITE_MAX))?;
    let _ = client.read(&mut [0; 4096])?;
    client.write_all(reply.begin)?;
    let batch = reply.again.repeat(4096);
    loop {
        client.write_all(&batch)?;
    }
}
