//! Transfers over TCP that are long enough to use a pipe.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, LazyLock};
use std::thread::{self, JoinHandle};

use crate::site::StreamGeneration;
use testing::Folder;

use crate::tests::{load, logged, serve_with};

/// Much more than a direction copies before it uses a pipe, and more than the sockets' buffers.
const LENGTH: usize = 24 << 20;
/// The bytes to read before a reset.
const PART: usize = LENGTH / 8;

/// Bytes that reveal a wrong order.
static NUMBERED: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let mut bytes = vec![0; LENGTH];
    for (number, word) in bytes.as_chunks_mut().0.iter_mut().enumerate() {
        *word = (number as u32).to_be_bytes();
    }
    bytes
});

/// A backend with one connection.
fn backend<T: Send + 'static>(
    part: impl FnOnce(TcpStream) -> T + Send + 'static,
) -> (SocketAddr, JoinHandle<T>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    (address, thread::spawn(move || part(listener.accept().unwrap().0)))
}

/// The bytes that the client received, the access log and the error log.
fn passed(
    backend: SocketAddr,
    client: impl FnOnce(TcpStream) -> Vec<u8> + Send + 'static,
) -> (Vec<u8>, String, String) {
    let folder = Folder::new();
    let text = format!(
        "log_format f '$status $bytes_received $bytes_sent $upstream_bytes_sent \
         $upstream_bytes_received'; access_log a.log f; error_log e.log info;
         server {{ listen 127.0.0.1:1; proxy_half_close on; proxy_pass {backend}; }}"
    );
    let generation = StreamGeneration::new(Arc::new(load(&text, &folder, false).unwrap()), 1);
    let got = net::run(async move { serve_with(generation, client).await }).unwrap();
    (got, logged(&folder, "a.log"), logged(&folder, "e.log"))
}

#[test]
fn long_transfers_arrive_in_order_both_ways() {
    let (address, served) = backend(|mut stream| {
        let mut reader = stream.try_clone().unwrap();
        let reading = thread::spawn(move || {
            let mut got = Vec::new();
            reader.read_to_end(&mut got).unwrap();
            got
        });
        stream.write_all(&NUMBERED).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        reading.join().unwrap()
    });
    let (got, log, errors) = passed(address, |mut stream| {
        let mut writer = stream.try_clone().unwrap();
        let writing = thread::spawn(move || {
            writer.write_all(&NUMBERED).unwrap();
            writer.shutdown(Shutdown::Write).unwrap();
        });
        let mut got = Vec::new();
        stream.read_to_end(&mut got).unwrap();
        writing.join().unwrap();
        got
    });
    assert!(got == *NUMBERED && served.join().unwrap() == *NUMBERED, "{errors}");
    assert_eq!(log, format!("200 {LENGTH} {LENGTH} {LENGTH} {LENGTH}\n"));
}

/// Sends until the receiver is gone.
fn send(mut stream: TcpStream) {
    while stream.write_all(&NUMBERED).is_ok() {}
}

/// Reads the first bytes of a transfer, and resets the connection by leaving the others unread.
fn leave(mut stream: TcpStream) -> Vec<u8> {
    let mut got = vec![0; PART];
    stream.read_exact(&mut got).unwrap();
    // Without unread bytes, closing would not be a reset.
    stream.peek(&mut [0]).unwrap();
    got
}

#[test]
fn a_client_that_resets_a_long_transfer_ends_it() {
    let (address, served) = backend(send);
    let (got, log, errors) = passed(address, leave);
    served.join().unwrap();
    assert!(got == NUMBERED[..PART], "{errors}");
    let counts: Vec<usize> = log.split_whitespace().map(|count| count.parse().unwrap()).collect();
    let [200, 0, sent, 0, received] = counts[..] else { panic!("{log}") };
    assert!(PART <= sent && sent <= received, "{log}");
}

#[test]
fn a_server_that_resets_a_long_transfer_ends_it() {
    let (address, served) = backend(leave);
    let (_, log, errors) = passed(address, |stream| {
        send(stream);
        Vec::new()
    });
    assert!(served.join().unwrap() == NUMBERED[..PART], "{errors}");
    let counts: Vec<usize> = log.split_whitespace().map(|count| count.parse().unwrap()).collect();
    let [200, received, 0, sent, 0] = counts[..] else { panic!("{log}") };
    assert!(PART <= sent && sent <= received, "{log}");
}
