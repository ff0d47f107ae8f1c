//! Memory per idle connection: many are opened, each talks for a moment, then nothing happens.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::thread::sleep;
use std::time::Duration;

use processes::procfs;
use processes::server::MeasuredServer;

use super::sample::Sample;

const IDLE: Duration = Duration::from_secs(10);

/// The row's configuration listens on 127.0.0.1 to 127.0.0.4.
const ADDRESSES: usize = 4;

const REPLY_MAX: Duration = Duration::from_secs(10);

/// What is opened, and what is said.
pub(super) struct IdleConnections {
    pub(super) connections: usize,
    /// What a connection sends, and what the reply to it ends with.
    pub(super) talk: &'static [(&'static str, &'static str)],
}

/// The growth of the memory of all the server's processes, divided by the connections.
pub(super) fn sample(
    server: &MeasuredServer,
    port: u16,
    idle: &IdleConnections,
) -> Result<Sample, String> {
    let before = procfs::memory(server.pid())?;
    let connections = idle.connections;
    let held = (0..connections).map(|n| open(n, port, idle.talk)).collect::<Result<Vec<_>, _>>();
    let held = held.map_err(|err| format!("an idle connection: {err}"))?;
    sleep(IDLE);
    let after = procfs::memory(server.pid())?;
    let closed = held.iter().filter(|connection| !is_open(connection)).count();
    let complaint = format!("{closed} of {connections} connections were closed by the server");
    Ok(Sample {
        figure: (after - before) / connections as f64,
        complaint: (closed > 0).then_some(complaint),
    })
}

/// A connection that has said all it has to say, and been answered.
fn open(number: usize, port: u16, talk: &[(&str, &str)]) -> std::io::Result<TcpStream> {
    let host = 1 + (number % ADDRESSES) as u8;
    let mut connection = TcpStream::connect((Ipv4Addr::new(127, 0, 0, host), port))?;
    connection.set_read_timeout(Some(REPLY_MAX))?;
    for (say, reply_end) in talk {
        connection.write_all(say.as_bytes())?;
        read_to(&mut connection, reply_end.as_bytes())?;
    }
    Ok(connection)
}

/// Reads until what has come ends with `end`.
pub(super) fn read_to(connection: &mut TcpStream, end: &[u8]) -> std::io::Result<()> {
    let mut bytes = [0; 1024];
    let mut length = 0;
    while !bytes[..length].ends_with(end) {
        match connection.read(&mut bytes[length..])? {
            0 => return Err(ErrorKind::UnexpectedEof.into()),
            more => length += more,
        }
    }
    Ok(())
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
        let client = open(0, port, &[("GET /", "hello world")]).expect("the reply is whole");
        let connection = server.join().expect("the server's thread");
        assert!(is_open(&client));
        drop(connection);
        client.set_nonblocking(false).expect("a socket");
        // Wait for the end to arrive before asking.
        let _ = client.peek(&mut [0]);
        assert!(!is_open(&client));
    }
}
