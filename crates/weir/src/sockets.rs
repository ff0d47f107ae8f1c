//! The listening sockets of the server, kept by the process that opened them over every reload.
//!
//! A slot is an address with its sockets. Its number is never used again, so a connection knows by
//! it where it came in, whatever configuration is read meanwhile. The process that serves has
//! copies of the descriptors: when it dies, connections wait here for the next one.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use net::listening::{self, OpenError};
use net::{Address, SocketOptions};
use observe::{Errno, Level};

use crate::Told;
use crate::bundle::SlotEntry;
use crate::log::{alert, emerg, notice};

/// How often a taken address is tried.
const TRIES_MAX: u32 = 5;
/// How long between.
const PAUSE: Duration = Duration::from_millis(500);

/// Every address that is or was listened on.
#[derive(Default)]
pub struct Sockets {
    slots: Vec<Slot>,
}

/// One address.
struct Slot {
    /// Where.
    address: Address,
    options: SocketOptions,
    /// One socket for each worker, or what was inherited; none any more when the slot is given up.
    sockets: Vec<OwnedFd>,
    /// Came from the program that was here before.
    inherited: bool,
    /// How many of them are for a configuration that holds; the others await one.
    settled: usize,
}

impl Sockets {
    /// Takes sockets over from another program, which names them as nginx does: `5;6;`.
    pub fn inherit(&mut self, names: &str) {
        notice!("using inherited sockets from \"{names}\"");
        let mut rest = names;
        while let Some(end) = rest.find([';', ':']) {
            let (name, after) = (&rest[..end], &rest[end + 1..]);
            let Ok(number) = name.parse() else {
                emerg!(
                    "invalid socket number \"{rest}\" in NGINX environment variable, \
                     ignoring the rest of the variable"
                );
                return;
            };
            self.take(number);
            rest = after;
        }
        if !rest.is_empty() {
            emerg!("invalid socket number \"{rest}\" in NGINX environment variable, ignoring");
        }
    }

    fn take(&mut self, number: i32) {
        let taken = net::process::inherited(number).and_then(|socket| {
            let address = Address::of(socket.as_fd()).ok()?;
            net::process::set_nonblocking(&socket).ok()?;
            listening::is_listening(socket.as_fd()).then_some((socket, address))
        });
        let Some((socket, address)) = taken else {
            let text = format_args!("the inherited socket #{number} does not listen, ignored");
            return observe::log(Level::Crit, text);
        };
        match self.slots.iter_mut().find(|slot| slot.address == address) {
            Some(slot) => {
                slot.sockets.push(socket);
                slot.settled += 1;
            }
            None => self.slots.push(Slot {
                address,
                options: SocketOptions::default(),
                sockets: vec![socket],
                inherited: true,
                settled: 1,
            }),
        }
    }

    /// Opens what a configuration listens on and is not open yet. Where that fails, all is as
    /// before; else [`keep`](Self::keep) or [`roll_back`](Self::roll_back) decides about it.
    pub fn prepare(
        &mut self,
        wanted: &[(&Address, &SocketOptions)],
        workers: usize,
    ) -> Result<(), Told> {
        for tries in (0..TRIES_MAX).rev() {
            let mut taken = false;
            // Wildcards first: they tell whether a port is taken, and specific addresses share it.
            let (general, specific): (Vec<_>, Vec<_>) =
                wanted.iter().partition(|(address, _)| address.is_wildcard());
            for (address, options) in general.into_iter().chain(specific) {
                if let Err(error) = self.open(address, options, workers) {
                    emerg!("{}{}", error.what, Errno(&error.error));
                    if !error.is_taken() {
                        self.roll_back();
                        return Err(Told);
                    }
                    taken = true;
                }
            }
            if !taken {
                return Ok(());
            }
            notice!("try again to bind() after 500ms");
            if tries > 0 {
                std::thread::sleep(PAUSE);
            }
        }
        emerg!("still could not bind()");
        self.roll_back();
        Err(Told)
    }

    fn open(
        &mut self,
        address: &Address,
        options: &SocketOptions,
        workers: usize,
    ) -> Result<(), OpenError> {
        let shared = matches!(address, Address::Ip(_));
        let wanted = if shared { workers.max(1) } else { 1 };
        if self.slot(address).is_none() {
            let first = listening::open(address, options, !self.has_port(address))?;
            self.slots.push(Slot {
                address: address.clone(),
                options: options.clone(),
                sockets: vec![first],
                inherited: false,
                settled: 0,
            });
        }
        let Some(slot) = self.slots.iter_mut().find(|slot| slot.is(address)) else { return Ok(()) };
        while slot.sockets.len() < wanted && !slot.inherited {
            slot.sockets.push(listening::open(address, options, false)?);
        }
        Ok(())
    }

    /// Whether a socket here has the port, so that another one must share it.
    fn has_port(&self, address: &Address) -> bool {
        let port = address.port();
        port.is_some()
            && self.slots.iter().any(|s| !s.sockets.is_empty() && s.address.port() == port)
    }

    /// The number of an address's slot.
    pub fn slot(&self, address: &Address) -> Option<u32> {
        self.slots.iter().position(|slot| slot.is(address)).map(|number| number as u32)
    }

    /// The slots that a configuration listens on, for a process that has those not `new` to it.
    pub fn entries(
        &self,
        wanted: &[(&Address, &SocketOptions)],
        new: impl Fn(u32) -> bool,
    ) -> Vec<SlotEntry> {
        let entry = |(slot, open): (u32, &Slot)| {
            let sockets = if new(slot) { open.sockets.len() as u32 } else { 0 };
            SlotEntry { slot, address: open.address.clone(), sockets }
        };
        let slots = (0..).zip(&self.slots);
        let open = slots.filter(|(_, slot)| wanted.iter().any(|(address, _)| slot.is(address)));
        open.map(entry).collect()
    }

    /// Copies of the sockets that the entries speak of, in their order.
    pub fn copies(&self, entries: &[SlotEntry]) -> Vec<(u32, OwnedFd)> {
        let mut copies = Vec::new();
        for entry in entries.iter().filter(|entry| entry.sockets > 0) {
            for socket in &self.slots[entry.slot as usize].sockets {
                match socket.try_clone() {
                    Ok(copy) => copies.push((entry.slot, copy)),
                    Err(error) => emerg!("dup() of a listening socket failed{}", Errno(&error)),
                }
            }
        }
        copies
    }

    /// The configuration holds: applies its options, and gives up what it does not listen on.
    pub fn keep(&mut self, wanted: &[(&Address, &SocketOptions)]) {
        for slot in self.slots.iter_mut().filter(|slot| !slot.sockets.is_empty()) {
            match wanted.iter().find(|(address, _)| slot.is(address)) {
                Some((_, options)) => slot.configure(options),
                None => slot.give_up(),
            }
        }
    }

    /// The configuration does not hold: closes what was opened for it.
    pub fn roll_back(&mut self) {
        for slot in &mut self.slots {
            match slot.settled {
                0 => slot.close(true),
                settled => slot.sockets.truncate(settled),
            }
        }
    }

    /// Closes everything. A Unix socket's file goes unless `heir` says that another program has it.
    pub fn close_all(&mut self, heir: bool) {
        self.slots.iter_mut().for_each(|slot| slot.close(!heir && !slot.has_living_parent()));
    }

    /// The descriptors as another program is told of them: `5;6;`.
    pub fn names(&self) -> String {
        self.descriptors().map(|fd| format!("{};", fd.as_raw_fd())).collect()
    }

    /// Every descriptor.
    pub fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.slots.iter().flat_map(|slot| &slot.sockets).map(AsFd::as_fd)
    }
}

impl Slot {
    fn is(&self, address: &Address) -> bool {
        !self.sockets.is_empty() && self.address == *address
    }

    fn configure(&mut self, options: &SocketOptions) {
        self.settled = self.sockets.len();
        for socket in &self.sockets {
            let mut failures = listening::apply(socket.as_fd(), &self.address, options);
            if self.options.backlog != options.backlog {
                failures.extend(listening::listen(socket.as_fd(), &self.address, options).err());
            }
            failures.iter().for_each(|failure| alert!("{}{}", failure.what, Errno(&failure.error)));
        }
        self.options = options.clone();
    }

    fn give_up(&mut self) {
        if let Address::Unix(path) = &self.address {
            observe::log(Level::Warn, format_args!("deleting socket {}", path.display()));
        }
        self.close(true);
    }

    fn close(&mut self, unlink: bool) {
        let was_open = !std::mem::take(&mut self.sockets).is_empty();
        self.settled = 0;
        if was_open
            && unlink
            && let Err(error) = self.address.unlink()
        {
            emerg!("unlink() \"{}\" failed{}", self.address, Errno(&error));
        }
    }

    /// Whether the program that this one took the socket from still runs.
    fn has_living_parent(&self) -> bool {
        self.inherited && crate::start::has_first_parent()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loopback() -> (Address, SocketOptions) {
        let options = SocketOptions::default();
        let any = Address::Ip(([127, 0, 0, 1], 0).into());
        let socket = listening::bind(&any, &options, false).unwrap();
        (Address::of(socket.as_fd()).unwrap(), options)
    }

    #[test]
    fn a_slot_has_a_socket_for_each_worker_and_keeps_its_number() {
        let (first, options) = loopback();
        let (second, _) = loopback();
        let mut sockets = Sockets::default();
        sockets.prepare(&[(&first, &options)], 1).ok().unwrap();
        sockets.keep(&[(&first, &options)]);
        let both = [(&first, &options), (&second, &options)];
        sockets.prepare(&both, 3).ok().unwrap();
        sockets.keep(&both);
        assert_eq!((sockets.slot(&first), sockets.slot(&second)), (Some(0), Some(1)));
        assert!(sockets.entries(&both, |_| true).iter().all(|entry| entry.sockets == 3));
        sockets.keep(&[(&second, &options)]);
        assert_eq!((sockets.slot(&first), sockets.slot(&second)), (None, Some(1)));
        sockets.prepare(&[(&first, &options)], 1).ok().unwrap();
        assert_eq!(sockets.slot(&first), Some(2), "numbers are not used again");
    }

    #[test]
    fn rolling_back_closes_what_is_new_only() {
        let (first, options) = loopback();
        let (second, _) = loopback();
        let mut sockets = Sockets::default();
        sockets.prepare(&[(&first, &options)], 1).ok().unwrap();
        sockets.keep(&[(&first, &options)]);
        sockets.prepare(&[(&first, &options), (&second, &options)], 1).ok().unwrap();
        sockets.roll_back();
        assert_eq!((sockets.slot(&first), sockets.slot(&second)), (Some(0), None));
    }
}
