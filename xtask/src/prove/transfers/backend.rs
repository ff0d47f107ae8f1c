//! A backend that checks the bodies it is sent, and sends those that are asked for.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use super::body::TransferBody;

/// A slow backend pauses after each piece it reads.
const SLOW_PAUSE: Duration = Duration::from_millis(1);

/// The reply to an upload that was complete and unchanged.
const UNCHANGED: &str = "unchanged";

pub(super) struct TransferBackend {
    pub(super) port: u16,
}

impl TransferBackend {
    /// Serves until this process ends.
    pub(super) fn start(bodies: Vec<TransferBody>) -> Result<Self, String> {
        let listener =
            TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(|err| err.to_string())?;
        let port = listener.local_addr().map_err(|err| err.to_string())?.port();
        let bodies: Arc<[TransferBody]> = bodies.into();
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let bodies = bodies.clone();
                // A client that goes away is seen by whoever waits for its reply.
                thread::spawn(move || serve(client, &bodies));
            }
        });
        Ok(Self { port })
    }
}

/// Serves one request: `PUT` with a body, or `GET`; the path ends with the speed and the stream.
fn serve(client: TcpStream, bodies: &[TransferBody]) -> io::Result<()> {
    let mut reader = BufReader::with_capacity(65_536, client.try_clone()?);
    let mut writer = client;
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let words: Vec<&str> = line.split([' ', '/']).collect();
    let stream = words.get(4).and_then(|word| word.parse::<usize>().ok());
    let body = stream.and_then(|stream| bodies.get(stream)).ok_or(io::ErrorKind::InvalidData)?;
    let (is_upload, is_slow) = (words[0] == "PUT", words[3] == "slow");
    let mut field = String::new();
    while reader.read_line(&mut field)? > 2 {
        field.clear();
    }
    if !is_upload {
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.length);
        writer.write_all(head.as_bytes())?;
        return body.write(&mut writer);
    }
    let pause = |_| {
        if is_slow {
            thread::sleep(SLOW_PAUSE);
        }
    };
    let verdict = match body.check(&mut reader, pause) {
        Ok(()) => UNCHANGED.to_owned(),
        Err(why) => why.to_string(),
    };
    write!(writer, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{verdict}", verdict.len())
}

/// Reads what the backend said of an upload.
pub(super) fn read_verdict(reply: &mut impl Read) -> io::Result<()> {
    let mut text = String::new();
    reply.read_to_string(&mut text)?;
    if text == UNCHANGED { Ok(()) } else { Err(io::Error::other(text)) }
}
