//! A backend that answers requests, and echoes the frames of whoever asks for `websocket`.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::thread;

use super::client::frame;

/// Starts it. Its threads end with the program.
pub(super) fn start() -> std::io::Result<SocketAddr> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let address = listener.local_addr()?;
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || answer(stream));
        }
    });
    Ok(address)
}

fn answer(mut stream: TcpStream) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let (mut bytes, mut buffer) = (Vec::new(), [0; 4096]);
    loop {
        while let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            let head: Vec<u8> = bytes.drain(..end + 4).collect();
            if String::from_utf8_lossy(&head).contains("Upgrade: websocket\r\n") {
                let reply = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\
                    Connection: Upgrade\r\n\r\n";
                stream.write_all(reply.as_bytes())?;
                return echo(&mut stream, bytes);
            }
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok\n")?;
        }
        match stream.read(&mut buffer)? {
            0 => return Ok(()),
            length => bytes.extend_from_slice(&buffer[..length]),
        }
    }
}

fn echo(stream: &mut TcpStream, mut bytes: Vec<u8>) -> std::io::Result<()> {
    let mut buffer = [0; 4096];
    loop {
        while let Some((text, length)) = frame::read(&bytes) {
            bytes.drain(..length);
            stream.write_all(&frame::write(&text, None))?;
        }
        match stream.read(&mut buffer)? {
            0 => return Ok(()),
            length => bytes.extend_from_slice(&buffer[..length]),
        }
    }
}
