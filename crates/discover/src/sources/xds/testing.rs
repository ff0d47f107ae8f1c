//! A control plane that plays scripts, and messages for it.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;

use testing::PATIENCE;
use wire::grpc::{framed, write_framed};
use wire::http2::{Http2Code, Http2Config, Http2Endpoint, Http2Event, Http2Role, StreamKey};
use wire::protobuf::{
    ProtobufFieldValue, ProtobufFields, write_bytes, write_message, write_number,
};
use wire::xds::{ASSIGNMENT, CLUSTER};

use crate::http::HttpPlace;

/// A control plane on an address of its own, which plays a script for each stream.
pub(in crate::sources) struct FakeControlPlane {
    pub(in crate::sources) address: SocketAddr,
    requests: Mutex<Receiver<String>>,
}

impl FakeControlPlane {
    pub(in crate::sources) fn playing(
        script: impl Fn(FakeStream) -> Option<()> + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let (sender, requests) = channel();
        let script = Arc::new(script);
        thread::spawn(move || {
            for (number, socket) in listener.incoming().map_while(Result::ok).enumerate() {
                let (script, sender) = (script.clone(), sender.clone());
                thread::spawn(move || {
                    FakeStream::accept(socket, number, sender).and_then(|stream| script(stream))
                });
            }
        });
        Self { address, requests: requests.into() }
    }

    pub(in crate::sources) fn place(&self) -> HttpPlace {
        HttpPlace::parse(&format!("http://{}", self.address), Path::new("")).unwrap()
    }

    /// The next request, as [`shown_request`] shows it.
    pub(in crate::sources) fn asked(&self) -> String {
        self.requests.lock().unwrap().recv_timeout(PATIENCE).expect("a request")
    }
}

/// A stream of a client. Its methods return `None` once the client has gone.
pub(in crate::sources) struct FakeStream {
    /// How many streams there were before.
    pub(in crate::sources) number: usize,
    pub(in crate::sources) socket: TcpStream,
    pub(in crate::sources) path: String,
    pub(in crate::sources) authorization: Option<String>,
    endpoint: Http2Endpoint,
    stream: StreamKey,
    received: Vec<u8>,
    input: Vec<u8>,
    requests: Sender<String>,
}

impl FakeStream {
    fn accept(mut socket: TcpStream, number: usize, requests: Sender<String>) -> Option<Self> {
        let mut endpoint = Http2Endpoint::new(Http2Role::Server, Http2Config::default());
        let mut input = Vec::new();
        loop {
            let received = endpoint.receive(&input).ok()?;
            input.drain(..received.consumed);
            match received.event {
                Some(Http2Event::Head { stream, .. }) => {
                    let text = |name: &str| {
                        let value = endpoint.fields().get(name.as_bytes())?;
                        Some(String::from_utf8_lossy(value).into_owned())
                    };
                    assert_eq!(text("te").as_deref(), Some("trailers"));
                    let (path, authorization) = (text(":path")?, text("authorization"));
                    let received = Vec::new();
                    return Some(Self {
                        number,
                        socket,
                        path,
                        authorization,
                        endpoint,
                        stream,
                        received,
                        input,
                        requests,
                    });
                }
                Some(_) => {}
                None => {
                    write_out(&mut socket, &mut endpoint)?;
                    read_in(&mut socket, &mut input)?;
                }
            }
        }
    }

    /// Waits for the next request, which is shown to the test.
    pub(in crate::sources) fn request(&mut self) -> Option<String> {
        loop {
            if let Some(range) = framed(&self.received).unwrap()
                && range.end <= self.received.len()
            {
                let shown =
                    shown_request(&self.received[range.clone()], self.path.contains("Delta"));
                self.received.drain(..range.end);
                // The test may not wait for it any more.
                let _ = self.requests.send(shown.clone());
                return Some(shown);
            }
            self.turn()?;
        }
    }

    /// Processes an event, or reads.
    fn turn(&mut self) -> Option<()> {
        let received = self.endpoint.receive(&self.input).ok()?;
        if let Some(Http2Event::Data { range, .. }) = &received.event {
            self.received.extend_from_slice(&self.input[range.clone()]);
            self.endpoint.raise_window(self.stream, 65_536);
        }
        self.input.drain(..received.consumed);
        write_out(&mut self.socket, &mut self.endpoint)?;
        match received.event {
            None => read_in(&mut self.socket, &mut self.input),
            Some(_) => Some(()),
        }
    }

    /// Begins the reply.
    pub(in crate::sources) fn head(&mut self) -> Option<()> {
        let mut head = self.endpoint.begin_fields(self.stream)?;
        head.status(200);
        head.field(b"content-type", b"application/grpc");
        head.finish(false);
        write_out(&mut self.socket, &mut self.endpoint)
    }

    /// Sends a message as fast as the client takes it.
    pub(in crate::sources) fn send(&mut self, message: &[u8]) -> Option<()> {
        let mut data = Vec::new();
        write_framed(&mut data, |out| out.extend_from_slice(message));
        while !data.is_empty() {
            let count = self.endpoint.sendable(self.stream).min(data.len());
            if count == 0 {
                self.turn()?;
                continue;
            }
            self.endpoint.send_data(self.stream, &data[..count], false, usize::MAX);
            data.drain(..count);
            write_out(&mut self.socket, &mut self.endpoint)?;
        }
        Some(())
    }

    /// Refuses the call.
    pub(in crate::sources) fn end(&mut self, status: &str, message: &str) -> Option<()> {
        let mut trailers = self.endpoint.begin_fields(self.stream)?;
        trailers.status(200);
        trailers.field(b"content-type", b"application/grpc");
        trailers.field(b"grpc-status", status.as_bytes());
        trailers.field(b"grpc-message", message.as_bytes());
        trailers.finish(true);
        write_out(&mut self.socket, &mut self.endpoint)?;
        self.hold()
    }

    pub(in crate::sources) fn go_away(&mut self, code: Http2Code) -> Option<()> {
        self.endpoint.go_away(code);
        write_out(&mut self.socket, &mut self.endpoint)?;
        self.hold()
    }

    /// Waits for the end of the client, without a reply to anything.
    pub(in crate::sources) fn hold(&mut self) -> Option<()> {
        loop {
            read_in(&mut self.socket, &mut Vec::new())?;
        }
    }

    /// Waits for the end of the client, and answers its PINGs.
    pub(in crate::sources) fn idle(&mut self) -> Option<()> {
        loop {
            self.turn()?;
        }
    }
}

fn write_out(socket: &mut TcpStream, endpoint: &mut Http2Endpoint) -> Option<()> {
    let length = endpoint.output().len();
    socket.write_all(endpoint.output()).ok()?;
    endpoint.advance_output(length);
    Some(())
}

fn read_in(socket: &mut TcpStream, input: &mut Vec<u8>) -> Option<()> {
    let mut buffer = [0; 4096];
    match socket.read(&mut buffer).ok()? {
        0 => None,
        count => {
            input.extend_from_slice(&buffer[..count]);
            Some(())
        }
    }
}

/// A request in a line: the type, `+names`, `-names`, `known@version`, `v=`, `n=`, `error=`.
pub(in crate::sources) fn shown_request(message: &[u8], is_delta: bool) -> String {
    let mut words = vec![String::new()];
    for field in ProtobufFields::new(message).map(Result::unwrap) {
        let text = |value: ProtobufFieldValue<'_>| value.text().unwrap().to_owned();
        match (field.0, field.1, is_delta) {
            (4, value, false) | (2, value, true) => {
                let kind = text(value);
                words[0] = if kind == CLUSTER { "CDS" } else { "EDS" }.to_owned();
                assert!(kind == CLUSTER || kind == ASSIGNMENT, "{kind}");
            }
            (2, _, false) | (1, _, true) => words.push("node".to_owned()),
            (1, value, false) => words.push(format!("v={}", text(value))),
            (3, value, _) => words.push(format!("+{}", text(value))),
            (4, value, true) => words.push(format!("-{}", text(value))),
            (5, value, true) => words.push(texts(value).join("@")),
            (5, value, false) | (6, value, true) => words.push(format!("n={}", text(value))),
            (6, value, false) | (7, value, true) => {
                words.push(format!("error={}", texts(value).join("")));
            }
            (number, ..) => panic!("field {number}"),
        }
    }
    words.join(" ")
}

/// The texts of a message.
fn texts(value: ProtobufFieldValue<'_>) -> Vec<String> {
    let fields = ProtobufFields::new(value.bytes().unwrap()).map(Result::unwrap);
    fields.filter_map(|(_, value)| value.text().ok().map(str::to_owned)).collect()
}

pub(in crate::sources) fn message(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    write(&mut out);
    out
}

/// A cluster with endpoints `of-NAME` in the same stream.
pub(in crate::sources) fn eds_cluster(name: &str) -> Vec<u8> {
    message(|out| {
        write_bytes(1, name.as_bytes(), out);
        write_number(2, 3, out);
        write_message(3, out, |out| {
            write_message(1, out, |out| write_bytes(3, b"", out));
            write_bytes(2, format!("of-{name}").as_bytes(), out);
        });
    })
}

/// Endpoints in one locality.
pub(in crate::sources) fn assignment(name: &str, addresses: &[&str]) -> Vec<u8> {
    let endpoints: Vec<_> = addresses.iter().map(|address| lb_endpoint(address, 0, 0)).collect();
    localities(name, &[locality(&endpoints, 0, 0)])
}

pub(in crate::sources) fn localities(name: &str, localities: &[Vec<u8>]) -> Vec<u8> {
    message(|out| {
        write_bytes(1, name.as_bytes(), out);
        localities.iter().for_each(|locality| write_bytes(2, locality, out));
    })
}

pub(in crate::sources) fn locality(endpoints: &[Vec<u8>], weight: u64, priority: u64) -> Vec<u8> {
    message(|out| {
        endpoints.iter().for_each(|endpoint| write_bytes(2, endpoint, out));
        write_weight(3, weight, out);
        write_number(5, priority, out);
    })
}

/// An endpoint at an address or at a path; a weight of 0 is none.
pub(in crate::sources) fn lb_endpoint(address: &str, health: u64, weight: u64) -> Vec<u8> {
    let address = message(|out| match address.rsplit_once(':') {
        None => write_message(2, out, |out| write_bytes(1, address.as_bytes(), out)),
        Some((host, port)) => write_message(1, out, |out| {
            write_bytes(2, host.as_bytes(), out);
            write_number(3, port.parse().unwrap(), out);
        }),
    });
    message(|out| {
        write_message(1, out, |out| write_bytes(1, &address, out));
        write_number(2, health, out);
        write_weight(4, weight, out);
    })
}

fn write_weight(number: u32, weight: u64, out: &mut Vec<u8>) {
    if weight > 0 {
        write_message(number, out, |out| write_number(1, weight, out));
    }
}

/// A response of the state of the world, whose version is its nonce.
pub(in crate::sources) fn state_of(kind: &str, nonce: &str, resources: &[Vec<u8>]) -> Vec<u8> {
    message(|out| {
        write_bytes(1, nonce.as_bytes(), out);
        resources.iter().for_each(|resource| write_any(2, kind, resource, out));
        write_bytes(4, kind.as_bytes(), out);
        write_bytes(5, nonce.as_bytes(), out);
    })
}

/// A response of changes: names and resources, and which names are gone.
pub(in crate::sources) fn changes_of(
    kind: &str,
    nonce: &str,
    resources: &[(&str, Vec<u8>)],
    removed: &[&str],
) -> Vec<u8> {
    message(|out| {
        for (name, resource) in resources {
            write_message(2, out, |out| {
                write_bytes(1, nonce.as_bytes(), out);
                write_any(2, kind, resource, out);
                write_bytes(3, name.as_bytes(), out);
            });
        }
        write_bytes(4, kind.as_bytes(), out);
        write_bytes(5, nonce.as_bytes(), out);
        removed.iter().for_each(|name| write_bytes(6, name.as_bytes(), out));
    })
}

fn write_any(number: u32, kind: &str, resource: &[u8], out: &mut Vec<u8>) {
    write_message(number, out, |out| {
        write_bytes(1, kind.as_bytes(), out);
        write_bytes(2, resource, out);
    });
}
