use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex};

use conf::MemoryFiles;
use net::SocketOptions;
use session::{AdmitClient, LocalFuture, SubsystemSite};
use zones::Zones;

use super::*;
use crate::config_origin::ConfigOrigin;
use crate::config_snapshot::SlotEntry;
use crate::load;

/// The calls of the subsystems, in order.
type Calls = Arc<Mutex<Vec<String>>>;

struct ToySite {
    name: &'static str,
    calls: Calls,
}

struct ToySubsystem {
    name: &'static str,
    calls: Calls,
    /// Connections stay open.
    accepted: RefCell<Vec<Accepted>>,
}

impl SubsystemSite for ToySite {
    fn block(&self) -> &'static str {
        self.name
    }

    fn sockets(&self) -> Vec<(&Address, &SocketOptions)> {
        Vec::new()
    }

    fn upstream_groups(&self) -> &[Arc<upstream::Group>] {
        &[]
    }

    fn shown(&self) -> &session::status::SubsystemStatus {
        Box::leak(Box::default())
    }

    fn start(&self, _: SiteShare, _: Weak<dyn PassTargets>) -> Rc<dyn SubsystemWorker> {
        let (name, calls) = (self.name, self.calls.clone());
        Rc::new(ToySubsystem { name, calls, accepted: RefCell::default() })
    }
}

impl ToySubsystem {
    fn note(&self, what: &str) {
        self.calls.lock().unwrap().push(format!("{} {what}", self.name));
    }
}

impl SubsystemWorker for ToySubsystem {
    fn replace(self: Rc<Self>, _: SiteShare) {}

    fn start(self: Rc<Self>, accepted: Accepted, _: bool) {
        self.note(&format!("starts {}", accepted.slot));
        self.accepted.borrow_mut().push(accepted);
    }

    fn take_over(self: Rc<Self>, _: PassedConnection) {}

    fn receive(self: Rc<Self>, _: OwnedFd, slot: u32, _: AdmitClient) -> LocalFuture {
        self.note(&format!("receives {slot}"));
        Box::pin(async {})
    }

    fn slot_at(&self, _: &Address) -> Option<u32> {
        (self.name == "second").then_some(1)
    }

    fn cut_before(&self, _: u64) {}

    fn make_room(self: Rc<Self>) {
        self.note("makes room");
    }

    fn leave(self: Rc<Self>) -> LocalFuture {
        Box::pin(async {})
    }
}

/// Slot 0 belongs to the first subsystem, slot 1 to the second, slot 2 to none.
fn owners() -> SlotOwners {
    let text = "error_log stderr emerg; events {} http { server { listen 127.0.0.1:1; } }
                stream { server { listen 127.0.0.1:2; return x; } }";
    let mut files = MemoryFiles::default().with("/conf", text);
    let origin = ConfigOrigin { conf: b"/conf"[..].into(), ..ConfigOrigin::default() };
    let loaded = load::load_quietly(&Zones::default(), &origin, &mut files).unwrap();
    let entry = |slot: u32| {
        let address = Address::Ip(([127, 0, 0, 1], slot as u16 + 1).into());
        SlotEntry { slot, address, sockets: 0 }
    };
    SlotOwners::of(&[0, 1, 2].map(entry), &loaded.sites)
}

/// An acceptor with two subsystems and room for `worker_connections`.
fn acceptor(calls: &Calls, worker_connections: usize) -> Rc<Acceptor> {
    let (balancer, _handed) = net::balancer_handles(1).remove(0).begin();
    let share = |name| SiteShare {
        site: Arc::new(ToySite { name, calls: calls.clone() }),
        number: 1,
        slots: [].into(),
        end: Arc::new(()),
    };
    let acceptor = Acceptor::new(balancer, ["first", "second"].map(share).into());
    acceptor.set_limits(AcceptLimits { worker_connections, ..AcceptLimits::default() });
    acceptor.set_owners(owners());
    acceptor
}

fn connection() -> OwnedFd {
    let (near, _far) = UnixStream::pair().unwrap();
    near.set_nonblocking(true).unwrap();
    near.into()
}

fn arrival(slot: u32) -> Arrival {
    Arrival { fd: connection(), peer: None, slot }
}

#[test]
fn connections_go_to_the_owner_of_their_socket() {
    let calls = Calls::default();
    net::run(async {
        let acceptor = acceptor(&calls, 8);
        for slot in [1, 0, 2] {
            acceptor.take(arrival(slot)).await;
        }
        acceptor.clone().receive(connection(), 1).await;
        assert_eq!([0, 1, 2, 9].map(|slot| acceptor.listens(slot)), [true, true, false, false]);
        assert_eq!(acceptor.slot_at(&Address::Unix("/any".into())), Some(1));
    })
    .unwrap();
    let expected = ["second starts 1", "first starts 0", "first starts 2", "second receives 1"];
    assert_eq!(*calls.lock().unwrap(), expected);
}

#[test]
fn all_subsystems_make_room_when_connections_are_exhausted() {
    let calls = Calls::default();
    net::run(async {
        let acceptor = acceptor(&calls, 1);
        acceptor.take(arrival(0)).await;
        acceptor.take(arrival(0)).await;
    })
    .unwrap();
    let expected = ["first starts 0", "first makes room", "second makes room"];
    assert_eq!(*calls.lock().unwrap(), expected);
}
