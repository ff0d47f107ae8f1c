//! A session that hides nothing but has all that makes TLS hard: a handshake, scrambled frames that
//! come in any pieces, plaintext left in memory, frames that are no data and want an answer, and an
//! end of its own.

use std::collections::VecDeque;
use std::io::{self, IoSlice, Read, Write};

use crate::Session;
use crate::accept::Transport;

use super::Side;

/// Bytes read from a socket at once.
const READ_MAX: usize = 1000;
/// Bytes in a frame.
const FRAME_MAX: usize = 300;
/// Plaintext taken at once.
const SENT_MAX: usize = 5000;
/// A frame begins with its kind and its length.
const HEAD: usize = 3;

/// Kinds of frames.
const HELLO: u8 = 1;
const DATA: u8 = 2;
/// Says nothing, as a session ticket.
const NOTE: u8 = 3;
/// Wants a [`NOTE`] back, as a key update.
const ASK: u8 = 4;
/// The end of what one side sends.
const END: u8 = 5;

/// See above.
pub struct Toy {
    side: Side,
    is_greeted: bool,
    incoming: Vec<u8>,
    incoming_key: Key,
    /// Frame by frame.
    plaintext: VecDeque<Vec<u8>>,
    is_ended: bool,
    outgoing: Vec<u8>,
    outgoing_key: Key,
    is_closed: bool,
    sent: u32,
}

/// Makes [`Toy`] sessions.
#[derive(Debug)]
pub struct ToyTransport(pub Side);

impl Transport for ToyTransport {
    fn session(&self) -> io::Result<Box<dyn Session>> {
        Ok(Box::new(Toy::new(self.0)))
    }
}

impl Toy {
    /// A new session.
    pub fn new(side: Side) -> Self {
        let keys = [Key(7), Key(1_000_003)];
        let [outgoing_key, incoming_key] = match side {
            Side::Client => keys,
            Side::Server => [keys[1].clone(), keys[0].clone()],
        };
        let mut toy = Self {
            side,
            is_greeted: false,
            incoming: Vec::new(),
            incoming_key,
            plaintext: VecDeque::new(),
            is_ended: false,
            outgoing: Vec::new(),
            outgoing_key,
            is_closed: false,
            sent: 0,
        };
        if side == Side::Client {
            toy.put(HELLO, b"toy");
        }
        toy
    }

    /// Frames that are no data.
    pub fn ask(&mut self) {
        self.put(NOTE, b"");
        self.put(ASK, b"?");
    }

    fn put(&mut self, kind: u8, text: &[u8]) {
        let [high, low] = (text.len() as u16).to_be_bytes();
        let start = self.outgoing.len();
        self.outgoing.extend_from_slice(&[kind, high, low]);
        self.outgoing.extend_from_slice(text);
        self.outgoing_key.apply(&mut self.outgoing[start..]);
    }

    /// Takes the next frame, if all of it is there.
    fn next(&mut self) -> Option<(u8, Vec<u8>)> {
        let [kind, high, low, ..] = self.incoming[..] else { return None };
        let end = HEAD + usize::from(u16::from_be_bytes([high, low]));
        let text = self.incoming.get(HEAD..end)?.to_vec();
        self.incoming.drain(..end);
        Some((kind, text))
    }

    fn obey(&mut self, kind: u8, text: Vec<u8>) -> io::Result<()> {
        match kind {
            HELLO if !self.is_greeted && text == b"toy" => {
                self.is_greeted = true;
                if self.side == Side::Server {
                    self.put(HELLO, b"toy");
                }
                self.ask();
            }
            DATA if self.is_greeted && !self.is_ended => {
                if !text.is_empty() {
                    self.plaintext.push_back(text);
                }
            }
            NOTE => {}
            ASK => self.put(NOTE, b""),
            END => self.is_ended = true,
            _ => return Err(io::ErrorKind::InvalidData.into()),
        }
        Ok(())
    }
}

impl Session for Toy {
    fn is_handshaking(&self) -> bool {
        !self.is_greeted
    }

    fn receive(&mut self, socket: &mut dyn Read) -> io::Result<usize> {
        assert!(!self.has_plaintext(), "read past plaintext");
        let start = self.incoming.len();
        self.incoming.resize(start + READ_MAX, 0);
        let read = socket.read(&mut self.incoming[start..]);
        self.incoming.truncate(start + *read.as_ref().unwrap_or(&0));
        self.incoming_key.apply(&mut self.incoming[start..]);
        while let Some((kind, text)) = self.next() {
            self.obey(kind, text)?;
        }
        read
    }

    fn has_plaintext(&self) -> bool {
        !self.plaintext.is_empty()
    }

    fn take_plaintext(&mut self, buffer: &mut Vec<u8>, most: usize) -> usize {
        let Some(frame) = self.plaintext.front_mut() else { return 0 };
        let count = frame.len().min(most);
        buffer.extend(frame.drain(..count));
        if frame.is_empty() {
            self.plaintext.pop_front();
        }
        count
    }

    fn is_ended(&self) -> bool {
        self.is_ended && self.plaintext.is_empty()
    }

    fn send(&mut self, plaintext: &[IoSlice<'_>]) -> io::Result<usize> {
        assert!(!self.wants_flush() && !self.is_closed, "sent out of turn");
        let mut room = SENT_MAX;
        for slice in plaintext {
            for frame in slice[..slice.len().min(room)].chunks(FRAME_MAX) {
                self.sent += 1;
                if self.sent.is_multiple_of(3) {
                    self.ask();
                }
                self.put(DATA, frame);
                room -= frame.len();
            }
        }
        Ok(SENT_MAX - room)
    }

    fn close(&mut self) {
        if !std::mem::replace(&mut self.is_closed, true) {
            self.put(END, b"");
        }
    }

    fn wants_flush(&self) -> bool {
        !self.outgoing.is_empty()
    }

    fn flush(&mut self, socket: &mut dyn Write) -> io::Result<usize> {
        let written = socket.write(&self.outgoing)?;
        self.outgoing.drain(..written);
        Ok(written)
    }
}

/// Changes with every byte, so that none may be lost, repeated or moved.
#[derive(Clone)]
struct Key(u32);

impl Key {
    fn apply(&mut self, bytes: &mut [u8]) {
        for byte in bytes {
            self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            *byte ^= (self.0 >> 24) as u8;
        }
    }
}
