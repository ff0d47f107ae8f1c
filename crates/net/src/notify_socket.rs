//! The datagram socket of a service manager, to which a service tells its state (sd_notify(3)).
//!
//! A message is sent at once. If the manager does not keep up, it waits for room in a task, behind
//! earlier ones, and is dropped after [`ROOM_WAIT_MAX_MS`]. The service never waits.

use std::cell::Cell;
use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::rc::Rc;

use rustix::io::Errno;
use rustix::net::SendFlags;

use crate::event_loop::{Interest, Watched};
use crate::{Mailbox, MailboxSender, Timer, mailbox, spawn};

/// How long a message waits for room in the manager's queue.
const ROOM_WAIT_MAX_MS: u64 = 10_000;
/// How many messages wait; later ones are dropped.
const WAITING_MAX: usize = 16;

/// The socket that `NOTIFY_SOCKET` names.
pub struct NotifySocket {
    address: SocketAddr,
    late: MailboxSender<Box<[u8]>>,
    waiting: Rc<Cell<usize>>,
}

impl NotifySocket {
    /// A path, or `@` and a name in the abstract namespace. Must be called on a worker.
    pub fn new(name: &[u8]) -> io::Result<Self> {
        let address = match name {
            [b'/', ..] => SocketAddr::from_pathname(OsStr::from_bytes(name))?,
            [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
            _ => return Err(io::ErrorKind::Unsupported.into()),
        };
        let (late, mailbox) = mailbox();
        let waiting = Rc::new(Cell::new(0));
        spawn(deliver(address.clone(), mailbox, waiting.clone()));
        Ok(Self { address, late, waiting })
    }

    /// Sends a message, or keeps it until the manager has room for it.
    pub fn send(&self, message: &[u8]) -> io::Result<()> {
        if self.waiting.get() == 0 {
            match connect(&self.address).and_then(|fd| Ok(send(fd.as_fd(), message)?)) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                done => return done,
            }
        }
        if self.waiting.get() >= WAITING_MAX {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        self.waiting.set(self.waiting.get() + 1);
        self.late.send(message.into());
        Ok(())
    }
}

/// A new socket for each message: the manager may have been started again.
fn connect(address: &SocketAddr) -> io::Result<OwnedFd> {
    let socket = UnixDatagram::unbound()?;
    socket.set_nonblocking(true)?;
    socket.connect_addr(address)?;
    Ok(socket.into())
}

fn send(fd: BorrowedFd<'_>, message: &[u8]) -> Result<(), Errno> {
    rustix::net::send(fd, message, SendFlags::NOSIGNAL).map(drop)
}

async fn deliver(address: SocketAddr, mut late: Mailbox<Box<[u8]>>, waiting: Rc<Cell<usize>>) {
    let timer = Timer::new();
    while let Some(message) = late.next().await {
        let socket = connect(&address).and_then(|fd| Watched::new(fd, Interest::ReadAndWrite));
        if let Ok(socket) = socket {
            timer.set(ROOM_WAIT_MAX_MS);
            // A manager that is gone is told nothing.
            let _ = timer.limit(socket.write(|fd| send(fd.as_fd(), &message))).await;
        }
        waiting.set(waiting.get() - 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn receive(manager: &UnixDatagram) -> Vec<u8> {
        let mut buffer = [0; 64];
        let length = manager.recv(&mut buffer).unwrap();
        buffer[..length].to_vec()
    }

    #[test]
    fn a_message_reaches_a_name_in_the_abstract_namespace() {
        let name = format!("weir-test-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let manager = UnixDatagram::bind_addr(&address).unwrap();
        crate::run(async {
            let socket = NotifySocket::new(format!("@{name}").as_bytes()).unwrap();
            socket.send(b"READY=1").unwrap();
        })
        .unwrap();
        assert_eq!(receive(&manager), b"READY=1");
    }

    #[test]
    fn messages_wait_in_order_for_a_slow_manager() {
        let path = std::env::temp_dir().join(format!("weir-notify-{}", std::process::id()));
        let manager = UnixDatagram::bind(&path).unwrap();
        manager.set_nonblocking(true).unwrap();
        let sent = crate::run(async {
            let socket = NotifySocket::new(path.as_os_str().as_bytes()).unwrap();
            let mut sent = 0_u32;
            while socket.waiting.get() < 3 {
                socket.send(&sent.to_be_bytes()).unwrap();
                sent += 1;
            }
            let mut expected = 0;
            while expected < sent {
                let mut number = [0; 4];
                match manager.recv(&mut number) {
                    Ok(_) => assert_eq!(u32::from_be_bytes(number), expected),
                    Err(_) => {
                        crate::sleep(std::time::Duration::from_millis(1)).await;
                        continue;
                    }
                }
                expected += 1;
            }
            (sent, socket.waiting.get())
        });
        std::fs::remove_file(path).unwrap();
        let (sent, waiting) = sent.unwrap();
        assert!(sent > 3 && waiting == 0, "{sent}, {waiting}");
    }

    #[test]
    fn only_paths_and_abstract_names_are_sockets() {
        crate::run(async {
            for name in ["", "vsock:2:1", "run/notify"] {
                let refused = NotifySocket::new(name.as_bytes()).err().unwrap();
                assert_eq!(refused.kind(), io::ErrorKind::Unsupported, "{name}");
            }
        })
        .unwrap();
    }
}
