//! Memory per idle keepalive connection: many are opened, each asks once, then nothing happens.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::thread::sleep;
use std::time::Duration;

use super::answer::Answer;
use super::server::Server;
use super::{Sample, procfs};

const CONNECTIONS: usize = 10_000;
const IDLE: Duration = Duration::from_secs(10);

/// The row's configuration listens on 127.0.0.1 to 127.0.0.4.
const ADDRESSES: usize = 4;

const REPLY_MAX: Duration = Duration::from_secs(10);
const REQUEST: &[u8] = b"GET /null HTTP/1.1\r\nHost: localhost\r\n\r\n";
const REPLY_END: &[u8] = b"hello world";

/// The growth of the memory of all the server's processes, divided by the connections.
pub(super) fn sample(server: &Server, port: u16, answer: Answer) -> Result<Sample, String> {
    let before = procfs::memory(server.pid())?;
    let held = (0..CONNECTIONS).map(|n| open(n, port)).collect::<Result<Vec<_>, _>>();
    let held = held.map_err(|err| format!("an idle connection: {err}"))?;
    sleep(IDLE);
    let after = procfs::memory(server.pid())?;
    let closed = held.iter().filter(|connection| !is_open(connection)).count();
    let complaint = format!("{closed} of {CONNECTIONS} connections were closed by the server");
    Ok(Sample {
        figure: (after - before) / CONNECTIONS as f64,
        split: None,
        busy: None,
        complaint: (closed > 0).then_some(complaint),
        answer,
    })
}

/// A connection whose one request has been answered.
fn open(number: usize, port: u16) -> std::io::Result<TcpStream> {
    let host = 1 + (number % ADDRESSES) as u8;
    let mut connection = TcpStream::connect((Ipv4Addr::new(127, 0, 0, host), port))?;
    connection.set_read_timeout(Some(REPLY_MAX))?;
    connection.write_all(REQUEST)?;
    let mut reply = [0; 1024];
    let mut length = 0;
    while !reply[..length].ends_with(REPLY_END) {
        match connection.read(&mut reply[length..])? {
            0 => return Err(ErrorKind::UnexpectedEof.into()),
            more => length += more,
        }
    }
    Ok(connection)
}

/// Nothing to read, not even the end.
fn is_open(connection: &TcpStream) -> bool {
    let quiet = |err: std::io::Error| err.kind() == ErrorKind::WouldBlock;
    connection.set_nonblocking(true).is_ok() && connection.peek(&mut [0]).is_err_and(quiet)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn a_closed_connection_is_told_from_an_idle_one() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("its address").port();
        let server = std::thread::spawn(move || {
            let (mut connection, _) = listener.accept().expect("a client");
            connection.write_all(b"HTTP/1.1 200 OK\r\n\r\nhello ").expect("half a reply");
            connection.write_all(b"world").expect("the rest");
            connection
        });
        // Number 0 goes to 127.0.0.1.
        let client = open(0, port).expect("the reply is whole");
        let connection = server.join().expect("the server's thread");
        assert!(is_open(&client));
        drop(connection);
        client.set_nonblocking(false).expect("a socket");
        // Wait for the end to arrive before asking.
        let _ = client.peek(&mut [0]);
        assert!(!is_open(&client));
    }
}
