//! A session without secrecy that has all difficulties of TLS: a handshake, scrambled frames split
//! at any point, plaintext left in memory, control frames that need an answer, and an announced
//! end.

use std::collections::VecDeque;
use std::io::{self, IoSlice, Read as _, Write};

use crate::accept::Transport;
use crate::{SecureSession, SessionInput};

use super::RelaySide;

/// Maximum number of bytes per read.
const READ_MAX: usize = 7000;
/// Maximum number of bytes in a frame.
const FRAME_MAX: usize = 3000;
/// Maximum plaintext taken by one call.
const SENT_MAX: usize = 20_000;
/// A frame begins with its kind and its length.
const HEAD: usize = 3;

/// Kinds of frames.
const HELLO: u8 = 1;
const DATA: u8 = 2;
/// Ignored, like a session ticket.
const NOTE: u8 = 3;
/// Answered by a [`NOTE`], like a key update.
const ASK: u8 = 4;
/// The end of one side's output.
const END: u8 = 5;

/// A toy session.
pub struct Toy {
    side: RelaySide,
    is_greeted: bool,
    incoming: Vec<u8>,
    incoming_key: Key,
    plaintext: VecDeque<Vec<u8>>,
    is_ended: bool,
    outgoing: Vec<u8>,
    outgoing_key: Key,
    is_closed: bool,
    /// Whether it sends [`ASK`]; not for a side that closes without reading the answers.
    asks: bool,
    sent: u32,
}

/// Makes [`Toy`] sessions.
#[derive(Debug)]
pub struct ToyTransport(pub RelaySide);

impl Transport for ToyTransport {
    fn session(&self, received: &[u8]) -> io::Result<Box<dyn SecureSession>> {
        let mut toy = Toy::new(self.0, false);
        toy.take(received)?;
        Ok(Box::new(toy))
    }
}

impl Toy {
    pub fn new(side: RelaySide, asks: bool) -> Self {
        let (to_server, to_client) = (Key { seed: 7, at: 0 }, Key { seed: 11, at: 0 });
        let (outgoing_key, incoming_key) = match side {
            RelaySide::Client => (to_server, to_client),
            RelaySide::Server => (to_client, to_server),
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
            asks,
            sent: 0,
        };
        if side == RelaySide::Client {
            toy.put(HELLO, b"toy");
        }
        toy
    }

    /// Sends control frames.
    pub fn ask(&mut self) {
        self.put(NOTE, b"");
        if self.asks {
            self.put(ASK, b"?");
        }
    }

    fn put(&mut self, kind: u8, text: &[u8]) {
        if self.is_closed {
            return;
        }
        let [high, low] = (text.len() as u16).to_be_bytes();
        let start = self.outgoing.len();
        self.outgoing.extend_from_slice(&[kind, high, low]);
        self.outgoing.extend_from_slice(text);
        self.outgoing_key.apply(&mut self.outgoing[start..]);
    }

    fn take(&mut self, received: &[u8]) -> io::Result<()> {
        let start = self.incoming.len();
        self.incoming.extend_from_slice(received);
        self.incoming_key.apply(&mut self.incoming[start..]);
        while let Some((kind, text)) = self.next() {
            self.obey(kind, text)?;
        }
        Ok(())
    }

    /// Takes the next frame if it is complete.
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
                if self.side == RelaySide::Server {
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

impl SecureSession for Toy {
    fn is_handshaking(&self) -> bool {
        !self.is_greeted
    }

    fn receive(&mut self, socket: &mut SessionInput<'_>) -> io::Result<usize> {
        assert!(!self.has_plaintext(), "read past plaintext");
        let mut bytes = [0; READ_MAX];
        let count = socket.read(&mut bytes)?;
        self.take(&bytes[..count])?;
        Ok(count)
    }

    fn has_plaintext(&self) -> bool {
        !self.plaintext.is_empty()
    }

    fn take_plaintext(&mut self, buffer: &mut Vec<u8>, most: usize) -> usize {
        let Some(frame) = self.plaintext.front_mut() else { return 0 };
        let count = frame.len().min(most);
        buffer.extend_from_slice(&frame[..count]);
        frame.drain(..count);
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
        let mut bytes = Vec::with_capacity(SENT_MAX);
        for slice in plaintext {
            bytes.extend_from_slice(&slice[..slice.len().min(SENT_MAX - bytes.len())]);
        }
        for frame in bytes.chunks(FRAME_MAX) {
            self.sent += 1;
            if self.sent.is_multiple_of(3) {
                self.ask();
            }
            self.put(DATA, frame);
        }
        Ok(bytes.len())
    }

    fn close(&mut self) {
        self.put(END, b"");
        self.is_closed = true;
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

/// Differs for each byte position, so that lost, repeated or moved bytes are detected.
struct Key {
    seed: u64,
    at: u64,
}

impl Key {
    fn apply(&mut self, bytes: &mut [u8]) {
        let before = bytes.len().min(self.at.next_multiple_of(8).abs_diff(self.at) as usize);
        let (first, rest) = bytes.split_at_mut(before);
        self.apply_to_part(first);
        let (words, last) = rest.as_chunks_mut();
        for word in words {
            *word = (u64::from_le_bytes(*word) ^ self.word()).to_le_bytes();
            self.at += 8;
        }
        self.apply_to_part(last);
    }

    /// The key for the current eight bytes.
    fn word(&self) -> u64 {
        (self.at / 8 + self.seed).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    /// Applies the key to at most the rest of the current eight bytes.
    fn apply_to_part(&mut self, bytes: &mut [u8]) {
        let word = self.word().to_le_bytes();
        let word = &word[(self.at % 8) as usize..];
        bytes.iter_mut().zip(word).for_each(|(byte, key)| *byte ^= key);
        self.at += bytes.len() as u64;
    }
}
