//! Messages with descriptors between the master and the worker process.
//!
//! The sockets preserve message boundaries. Descriptors travel with messages, in batches, since the
//! kernel accepts at most 253 in one call. Larger data is sent as the descriptor of a sealed file
//! in memory, which the sender cannot change any more.

use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut, Read, Seek, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{MemfdFlags, SealFlags};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType,
};

use crate::event_loop::{Interest, Watched};

/// Maximum number of descriptors in a message.
pub const DESCRIPTORS_MAX: usize = 200;
/// Maximum number of bytes in a message.
pub const MESSAGE_BYTES_MAX: usize = 4096;

/// The two ends of a channel; a process may pass one to a child.
pub fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    Ok(rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?)
}

/// One end of a channel, used by a worker.
pub struct Channel {
    fd: Watched,
}

/// A received message.
#[derive(Debug)]
pub struct ChannelMessage {
    pub bytes: Vec<u8>,
    pub descriptors: Vec<OwnedFd>,
}

impl Channel {
    /// Takes one end of a pair.
    pub fn new(fd: OwnedFd) -> io::Result<Self> {
        rustix::io::ioctl_fionbio(&fd, true)?;
        Ok(Self { fd: Watched::new(fd, Interest::ReadAndWrite)? })
    }

    pub async fn send(&self, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
        assert!(bytes.len() <= MESSAGE_BYTES_MAX && descriptors.len() <= DESCRIPTORS_MAX);
        Ok(self.fd.write(|fd| send(fd.as_fd(), bytes, descriptors)).await?)
    }

    /// Receives the next message; `None` once the other end is closed.
    pub async fn receive(&self) -> io::Result<Option<ChannelMessage>> {
        match self.fd.read(|fd| receive(fd.as_fd())).await {
            Err(Errno::CONNRESET) => Ok(None),
            done => Ok(Some(done?).filter(|message| !message.bytes.is_empty())),
        }
    }
}

fn send(fd: BorrowedFd<'_>, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) -> Result<(), Errno> {
    const SPACE: usize = rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX));
    let mut space = [MaybeUninit::uninit(); SPACE];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() {
        let fits = control.push(SendAncillaryMessage::ScmRights(descriptors));
        assert!(fits, "room for DESCRIPTORS_MAX");
    }
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    rustix::net::sendmsg(fd, &[IoSlice::new(bytes)], &mut control, flags).map(drop)
}

fn receive(fd: BorrowedFd<'_>) -> Result<ChannelMessage, Errno> {
    const SPACE: usize = rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX));
    let mut space = [MaybeUninit::uninit(); SPACE];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut bytes = vec![0; MESSAGE_BYTES_MAX];
    let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
    let read = rustix::net::recvmsg(fd, &mut [IoSliceMut::new(&mut bytes)], &mut control, flags)?;
    bytes.truncate(read.bytes);
    let mut descriptors = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(received) = message {
            descriptors.extend(received);
        }
    }
    Ok(ChannelMessage { bytes, descriptors })
}

/// A file in memory with these bytes, which cannot be changed any more.
pub fn sealed(bytes: &[u8]) -> io::Result<OwnedFd> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let mut file = File::from(rustix::fs::memfd_create("weir-bundle", flags)?);
    file.write_all(bytes)?;
    let seals = SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL;
    rustix::fs::fcntl_add_seals(&file, seals)?;
    Ok(file.into())
}

/// The bytes of a sealed file.
pub fn contents(file: OwnedFd) -> io::Result<Vec<u8>> {
    let mut file = File::from(file);
    let mut bytes = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_keep_their_borders_and_carry_descriptors() {
        crate::run(async {
            let (near, far) = pair().unwrap();
            let (near, far) = (Channel::new(near).unwrap(), Channel::new(far).unwrap());
            let file = sealed(b"contents").unwrap();
            let many = vec![file.as_fd(); DESCRIPTORS_MAX];
            near.send(b"one", &[]).await.unwrap();
            near.send(b"two", &many).await.unwrap();
            drop(near);
            let one = far.receive().await.unwrap().unwrap();
            assert_eq!((&one.bytes[..], one.descriptors.len()), (&b"one"[..], 0));
            let mut two = far.receive().await.unwrap().unwrap();
            assert_eq!((&two.bytes[..], two.descriptors.len()), (&b"two"[..], DESCRIPTORS_MAX));
            assert_eq!(contents(two.descriptors.remove(7)).unwrap(), b"contents");
            assert!(far.receive().await.unwrap().is_none());
        })
        .unwrap();
    }

    #[test]
    fn a_sealed_file_cannot_be_written() {
        let file = sealed(b"x").unwrap();
        let refused = File::from(file).write(b"y").unwrap_err();
        assert_eq!(refused.raw_os_error(), Some(libc::EPERM));
    }
}
