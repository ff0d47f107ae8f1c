//! The page of metrics on an address of its own.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// How long a client may take.
const CLIENT_MAX: Duration = Duration::from_secs(2);
/// The bytes of a request that are read.
const REQUEST_BYTES: usize = 4096;

/// A page of parts, each of which somebody else keeps.
#[derive(Clone, Debug)]
pub struct MetricsPage(Arc<Mutex<BTreeMap<&'static str, String>>>);

impl MetricsPage {
    /// Serves the page on an address, one client at a time.
    pub fn serve(address: &str) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        let page = Self(Arc::default());
        let served = page.clone();
        thread::spawn(move || {
            for client in listener.incoming() {
                match client {
                    // A client that has gone is no concern of the page.
                    Ok(client) => drop(served.answer(client)),
                    // Such as too many open files: it passes.
                    Err(_) => thread::sleep(Duration::from_millis(100)),
                }
            }
        });
        Ok(page)
    }

    pub fn set(&self, part: &'static str, text: String) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(part, text);
    }

    fn text(&self) -> String {
        let parts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        parts.values().map(String::as_str).collect()
    }

    fn answer(&self, mut client: TcpStream) -> io::Result<()> {
        client.set_read_timeout(Some(CLIENT_MAX))?;
        client.set_write_timeout(Some(CLIENT_MAX))?;
        let count = client.read(&mut [0; REQUEST_BYTES])?;
        if count == 0 {
            return Ok(());
        }
        let text = self.text();
        let length = text.len();
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\nConnection: close\r\n\
             Content-Length: {length}\r\n\r\n"
        );
        client.write_all(format!("{head}{text}").as_bytes())
    }
}
