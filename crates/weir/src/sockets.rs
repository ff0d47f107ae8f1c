//! The listening sockets of the server, kept by the process that opened them over every reload.
//!
//! A slot is an address with its sockets. Its number is never used for another address, so that it
//! identifies the socket of a connection, whatever configuration is read meanwhile. The process
//! that serves has copies of the descriptors: if it dies, connections wait here for the next one.
//!
//! ```text
//! prepare: bound --the process that accepts: listen--> listening --keep--> settled
//!            `------------------ roll_back: closed again
//! ```
//!
//! On a reload, sockets are only bound here. The kernel distributes new connections over all
//! sockets that listen on an address, so the process that will accept from a socket starts to
//! listen itself once it is ready (`control`). A rejected configuration has not taken any
//! connection.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use net::listening::{self, ListenError};
use net::{Address, SocketOptions};
use observe::{Errno, Level};

use crate::config_snapshot::SlotEntry;
use crate::log::{alert, emerg, notice};
use crate::messages::Reported;
use crate::parent;

/// The variable that names the sockets to take over.
pub const INHERITED: &str = "NGINX";
/// How often to try an address that is in use.
pub const TRIES_MAX: u32 = 5;
/// The pause between two tries.
pub const PAUSE: Duration = Duration::from_millis(500);

/// The result of trying to bind the addresses of a configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prepared {
    /// All addresses are bound.
    Ready,
    /// An address is in use, possibly temporarily: try again after [`PAUSE`].
    Taken,
    /// Binding failed, and nothing has changed.
    Failed,
}

/// Every address that is or was listened on.
#[derive(Default)]
pub struct ListenSockets {
    slots: Vec<ListenSlot>,
    /// The number of each address's slot. There may be thousands of addresses.
    numbers: HashMap<Address, u32>,
}

/// Ports in use here, and whether of UDP.
type PortsInUse = HashSet<(u16, bool)>;

struct ListenSlot {
    address: Address,
    options: SocketOptions,
    /// One socket for each worker, or the inherited ones; empty once the slot is given up.
    sockets: Vec<OwnedFd>,
    /// Inherited from another program.
    inherited: bool,
    /// How many sockets belong to the current configuration; the others to a pending one.
    settled: usize,
}

impl ListenSockets {
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
        if let Some(number) = self.numbers.get(&address) {
            let slot = &mut self.slots[*number as usize];
            slot.sockets.push(socket);
            slot.settled += 1;
            return;
        }
        self.put(ListenSlot {
            address,
            options: SocketOptions::default(),
            sockets: vec![socket],
            inherited: true,
            settled: 1,
        });
    }

    /// Adds a slot. An address keeps its number for ever, so that the number of slots is limited by
    /// that of addresses, however often the configuration changes.
    fn put(&mut self, slot: ListenSlot) {
        match self.numbers.get(&slot.address) {
            Some(number) => self.slots[*number as usize] = slot,
            None => {
                self.numbers.insert(slot.address.clone(), self.slots.len() as u32);
                self.slots.push(slot);
            }
        }
    }

    /// Opens the sockets of the first configuration, and listens: connections wait for the process
    /// that is about to start. Waits for an address in use.
    pub fn open(
        &mut self,
        wanted: &[(&Address, &SocketOptions)],
        workers: usize,
    ) -> Result<(), Reported> {
        for tries_left in (0..TRIES_MAX).rev() {
            let mut prepared = self.prepare(wanted, workers, tries_left);
            if prepared == Prepared::Ready {
                prepared = self.settle_try(self.listen(), tries_left);
            }
            match prepared {
                Prepared::Ready => return Ok(()),
                Prepared::Taken => std::thread::sleep(PAUSE),
                Prepared::Failed => return Err(Reported),
            }
        }
        Err(Reported)
    }

    /// Binds the addresses of a configuration that are not open yet. Unless that fails,
    /// [`keep`](Self::keep) or [`roll_back`](Self::roll_back) has to follow.
    pub fn prepare(
        &mut self,
        wanted: &[(&Address, &SocketOptions)],
        workers: usize,
        tries_left: u32,
    ) -> Prepared {
        // Wildcards first: they show whether a port is in use, and specific addresses share it.
        let (general, specific): (Vec<_>, Vec<_>) =
            wanted.iter().partition(|(address, _)| address.is_wildcard());
        let mut tried = Ok(());
        let mut ports = self.ports_in_use();
        for (address, options) in general.into_iter().chain(specific) {
            if let Err(error) = self.bind(address, options, workers, &mut ports) {
                let taken = report(&error);
                tried = Err(taken);
                if !taken.0 {
                    break;
                }
            }
        }
        self.settle_try(tried, tries_left)
    }

    /// The result of a try; a final failure has changed nothing.
    fn settle_try(&mut self, tried: Result<(), IsTaken>, tries_left: u32) -> Prepared {
        match tried {
            Ok(()) => return Prepared::Ready,
            Err(IsTaken(true)) => notice!("try again to bind() after 500ms"),
            Err(IsTaken(false)) => {
                self.roll_back();
                return Prepared::Failed;
            }
        }
        if tries_left > 0 {
            return Prepared::Taken;
        }
        emerg!("still could not bind()");
        self.roll_back();
        Prepared::Failed
    }

    fn listen(&self) -> Result<(), IsTaken> {
        for slot in &self.slots {
            for socket in &slot.sockets {
                listening::begin(socket.as_fd(), &slot.address, &slot.options)
                    .map_err(|error| report(&error))?;
            }
        }
        Ok(())
    }

    fn bind(
        &mut self,
        address: &Address,
        options: &SocketOptions,
        workers: usize,
        ports: &mut PortsInUse,
    ) -> Result<(), ListenError> {
        let shared = !matches!(address, Address::Unix(_));
        let wanted = if shared { workers.max(1) } else { 1 };
        if self.slot(address).is_none() {
            let alone =
                address.port().is_none_or(|port| !ports.contains(&(port, address.is_udp())));
            let sockets = vec![bind(address, options, alone)?];
            let (address, options) = (address.clone(), options.clone());
            self.put(ListenSlot { address, options, sockets, inherited: false, settled: 0 });
        }
        ports.extend(address.port().map(|port| (port, address.is_udp())));
        let Some(number) = self.slot(address) else { return Ok(()) };
        let slot = &mut self.slots[number as usize];
        while slot.sockets.len() < wanted && !slot.inherited {
            slot.sockets.push(bind(address, options, false)?);
        }
        Ok(())
    }

    /// The ports of the sockets here, which another socket must share.
    fn ports_in_use(&self) -> PortsInUse {
        let open = self.slots.iter().filter(|slot| !slot.sockets.is_empty());
        open.filter_map(|slot| Some((slot.address.port()?, slot.address.is_udp()))).collect()
    }

    /// The number of an address's slot.
    pub fn slot(&self, address: &Address) -> Option<u32> {
        let number = *self.numbers.get(address)?;
        (!self.slots[number as usize].sockets.is_empty()).then_some(number)
    }

    /// The slots of the current configuration, for a process that has none of them.
    pub fn entries_in_force(&self, wanted: &[(&Address, &SocketOptions)]) -> Vec<SlotEntry> {
        let mut entries = self.entries(wanted, |_| true);
        for entry in &mut entries {
            entry.sockets = self.slots[entry.slot as usize].settled as u32;
        }
        entries
    }

    /// The slots of a configuration, for a process that has all but the `new` ones.
    pub fn entries(
        &self,
        wanted: &[(&Address, &SocketOptions)],
        new: impl Fn(u32) -> bool,
    ) -> Vec<SlotEntry> {
        let entry = |slot: u32| {
            let open = &self.slots[slot as usize];
            let sockets = if new(slot) { open.sockets.len() as u32 } else { 0 };
            SlotEntry { slot, address: open.address.clone(), sockets }
        };
        self.numbers(wanted).into_iter().map(entry).collect()
    }

    /// The numbers of the slots of addresses, each once and in order.
    pub fn numbers(&self, wanted: &[(&Address, &SocketOptions)]) -> BTreeSet<u32> {
        wanted.iter().filter_map(|(address, _)| self.slot(address)).collect()
    }

    /// Copies of the sockets of the entries, in their order.
    pub fn copies(&self, entries: &[SlotEntry]) -> Vec<(u32, OwnedFd)> {
        let mut copies = Vec::new();
        for entry in entries.iter().filter(|entry| entry.sockets > 0) {
            let sockets = &self.slots[entry.slot as usize].sockets;
            for socket in sockets.iter().take(entry.sockets as usize) {
                match socket.try_clone() {
                    Ok(copy) => copies.push((entry.slot, copy)),
                    Err(error) => emerg!("dup() of a listening socket failed{}", Errno(&error)),
                }
            }
        }
        copies
    }

    /// The configuration becomes current: applies its options, and closes other sockets.
    pub fn keep(&mut self, wanted: &[(&Address, &SocketOptions)]) {
        let wanted: HashMap<_, _> = wanted.iter().copied().collect();
        for slot in self.slots.iter_mut().filter(|slot| !slot.sockets.is_empty()) {
            match wanted.get(&slot.address) {
                Some(options) => slot.configure(options),
                None => slot.give_up(),
            }
        }
    }

    /// The configuration is rejected: closes the sockets that were opened for it.
    pub fn roll_back(&mut self) {
        for slot in &mut self.slots {
            match slot.settled {
                0 => slot.close(true),
                settled => slot.sockets.truncate(settled),
            }
        }
    }

    /// Closes everything. Files of Unix sockets are removed unless another program has inherited
    /// them (`heir`).
    pub fn close_all(&mut self, heir: bool) {
        self.slots.iter_mut().for_each(|slot| slot.close(!heir && !slot.has_living_parent()));
    }

    /// The descriptors in the form passed to another program: `5;6;`.
    pub fn names(&self) -> String {
        self.descriptors().map(|fd| format!("{};", fd.as_raw_fd())).collect()
    }

    /// All descriptors of the current configuration.
    pub fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.slots.iter().flat_map(|slot| slot.sockets.iter().take(slot.settled)).map(AsFd::as_fd)
    }
}

/// Whether an address is in use.
#[derive(Clone, Copy)]
struct IsTaken(bool);

/// Logs an error. Returns whether the address is in use.
fn report(error: &ListenError) -> IsTaken {
    emerg!("{}{}", error.what, Errno(&error.error));
    IsTaken(error.is_taken())
}

fn bind(address: &Address, options: &SocketOptions, alone: bool) -> Result<OwnedFd, ListenError> {
    let socket = listening::bind(address, options, alone)?;
    // Options that the system rejects are reported when the configuration is in use.
    listening::apply(socket.as_fd(), address, options);
    Ok(socket)
}

impl ListenSlot {
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
        self.inherited && parent::has_first()
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
        let mut sockets = ListenSockets::default();
        sockets.open(&[(&first, &options)], 1).ok().unwrap();
        sockets.keep(&[(&first, &options)]);
        let both = [(&first, &options), (&second, &options)];
        assert_eq!(sockets.prepare(&both, 3, 0), Prepared::Ready);
        sockets.keep(&both);
        assert_eq!((sockets.slot(&first), sockets.slot(&second)), (Some(0), Some(1)));
        assert!(sockets.entries(&both, |_| true).iter().all(|entry| entry.sockets == 3));
        sockets.keep(&[(&second, &options)]);
        assert_eq!((sockets.slot(&first), sockets.slot(&second)), (None, Some(1)));
        assert_eq!(sockets.prepare(&[(&first, &options)], 1, 0), Prepared::Ready);
        assert_eq!(sockets.slot(&first), Some(0), "the number is the address's");
        assert_eq!(sockets.slots.len(), 2);
    }

    /// A bound socket starts to listen only when the accepting process says so.
    #[test]
    fn a_rejected_configuration_has_accepted_no_connection() {
        let (first, options) = loopback();
        let (second, _) = loopback();
        let mut sockets = ListenSockets::default();
        let before = [(&first, &options)];
        sockets.open(&before, 1).ok().unwrap();
        sockets.keep(&before);
        let after = [(&first, &options), (&second, &options)];
        assert_eq!(sockets.prepare(&after, 3, 0), Prepared::Ready);
        let listen = |slot: usize| {
            let sockets = sockets.slots[slot].sockets.iter();
            sockets.map(|socket| listening::is_listening(socket.as_fd())).collect::<Vec<_>>()
        };
        assert_eq!((listen(0), listen(1)), (vec![true, false, false], vec![false; 3]));
        let in_force = sockets.entries_in_force(&before);
        assert_eq!((in_force.len(), in_force[0].sockets), (1, 1));
        assert_eq!(sockets.copies(&in_force).len(), 1);
        assert_eq!(sockets.descriptors().count(), 1, "another program gets no others");
        sockets.roll_back();
        assert_eq!((sockets.slot(&first), sockets.slot(&second)), (Some(0), None));
        assert_eq!(sockets.slots[0].sockets.len(), 1);
    }

    #[test]
    fn an_address_in_use_is_tried_again() {
        let (address, options) = loopback();
        let taken = listening::open(&address, &options, true).unwrap();
        let mut sockets = ListenSockets::default();
        let wanted = [(&address, &options)];
        assert_eq!(sockets.prepare(&wanted, 2, 1), Prepared::Taken);
        drop(taken);
        assert_eq!(sockets.prepare(&wanted, 2, 0), Prepared::Ready);
        let mut others = ListenSockets::default();
        assert_eq!(others.prepare(&wanted, 2, 0), Prepared::Ready, "nobody listens yet");
        sockets.listen().ok().unwrap();
        assert!(others.listen().is_err());
    }
}
