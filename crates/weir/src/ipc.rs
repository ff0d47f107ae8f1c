//! Messages between the master and the worker process: bytes and descriptors.
//!
//! A message has a kind, a number, and any number of bytes and descriptors, split over as many
//! packets as necessary. Bulk data is one descriptor of a sealed file.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use net::channel::{Channel, DESCRIPTORS_MAX, MESSAGE_BYTES_MAX};

/// The kind of a message. Orders come from the master, reports from the worker process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum MessageKind {
    /// Serve a configuration: a snapshot, and its descriptors.
    Serve = 1,
    /// The reopened logs of the generation with that number.
    Reopen,
    /// End after active requests.
    Quit,
    Terminate,
    /// Report: the generation with that number is being served.
    Serving,
    /// Report: it cannot be served.
    Refused,
    /// A change of a group of servers; its number is that of the change.
    Change,
    /// Report: the changes up to that number were made. Its bytes are why the last one does not
    /// outlive the process, if it does not.
    Changed,
    /// Report: a request of the API, to be answered under that number. As an order: a request for
    /// a page about the program.
    Ask,
    /// The answer to a request.
    Answer,
    /// Whether load balancers are to send clients here: the number is 1, or 0.
    Readiness,
}

/// A message of any length with descriptors.
#[derive(Debug)]
pub struct Message {
    pub kind: MessageKind,
    /// The number of a generation, or of what the kind says.
    pub number: u64,
    pub bytes: Vec<u8>,
    pub descriptors: Vec<OwnedFd>,
}

impl Message {
    pub fn new(kind: MessageKind, number: u64) -> Self {
        Self { kind, number, bytes: Vec::new(), descriptors: Vec::new() }
    }

    /// Sends it, in as many packets as necessary.
    pub async fn send(&self, channel: &Channel) -> io::Result<()> {
        let mut batches = self.descriptors.chunks(DESCRIPTORS_MAX);
        let mut parts = self.bytes.chunks(PART_BYTES_MAX);
        let packets = batches.len().max(parts.len()).max(1) as u64;
        for rest in (0..packets).rev() {
            let head = [&[self.kind as u8][..], &self.number.to_le_bytes(), &rest.to_le_bytes()];
            let packet = [&head.concat(), parts.next().unwrap_or_default()].concat();
            let batch = batches.next().unwrap_or_default();
            let borrowed: Vec<_> = batch.iter().map(AsFd::as_fd).collect();
            channel.send(&packet, &borrowed).await?;
        }
        Ok(())
    }

    /// Receives a message; `None` if the other end is gone.
    pub async fn receive(channel: &Channel) -> io::Result<Option<Self>> {
        let (mut bytes, mut descriptors) = (Vec::new(), Vec::new());
        while let Some(message) = channel.receive().await? {
            let (kind, number, rest) = read_head(&message.bytes)
                .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "invalid message"))?;
            bytes.extend_from_slice(&message.bytes[HEAD_BYTES..]);
            descriptors.extend(message.descriptors);
            if rest == 0 {
                return Ok(Some(Self { kind, number, bytes, descriptors }));
            }
        }
        Ok(None)
    }
}

/// A kind, and two numbers.
const HEAD_BYTES: usize = 17;
const PART_BYTES_MAX: usize = MESSAGE_BYTES_MAX - HEAD_BYTES;

fn read_head(bytes: &[u8]) -> Option<(MessageKind, u64, u64)> {
    const KINDS: [MessageKind; 11] = [
        MessageKind::Serve,
        MessageKind::Reopen,
        MessageKind::Quit,
        MessageKind::Terminate,
        MessageKind::Serving,
        MessageKind::Refused,
        MessageKind::Change,
        MessageKind::Changed,
        MessageKind::Ask,
        MessageKind::Answer,
        MessageKind::Readiness,
    ];
    let (kind, rest) = bytes.split_first()?;
    let (number, rest) = rest.split_first_chunk()?;
    let (batches, _) = rest.split_first_chunk()?;
    let kind = KINDS.into_iter().find(|known| *known as u8 == *kind)?;
    Some((kind, u64::from_le_bytes(*number), u64::from_le_bytes(*batches)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_bytes_and_descriptors_are_one_message() {
        net::run(async {
            let (near, far) = net::channel::pair().unwrap();
            let (near, far) = (Channel::new(near).unwrap(), Channel::new(far).unwrap());
            let file = net::channel::sealed(b"x").unwrap();
            let descriptors = (0..DESCRIPTORS_MAX + 1).map(|_| file.try_clone().unwrap()).collect();
            let bytes = vec![7; PART_BYTES_MAX * 2 + 1];
            let sent = Message { kind: MessageKind::Serve, number: 3, bytes, descriptors };
            sent.send(&near).await.unwrap();
            Message::new(MessageKind::Quit, 0).send(&near).await.unwrap();
            drop(near);
            let first = Message::receive(&far).await.unwrap().unwrap();
            assert_eq!((first.kind, first.number), (MessageKind::Serve, 3));
            assert_eq!(first.descriptors.len(), DESCRIPTORS_MAX + 1);
            assert_eq!(first.bytes, sent.bytes);
            let second = Message::receive(&far).await.unwrap().unwrap();
            assert_eq!((second.kind, second.descriptors.len()), (MessageKind::Quit, 0));
            assert!(Message::receive(&far).await.unwrap().is_none());
        })
        .unwrap();
    }
}
