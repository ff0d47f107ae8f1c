//! Single steps, written out. The handoff is a number.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::SeqCst;
use std::task::{Context, Poll, Wake, Waker};

use super::*;

const GROUP: u64 = 1;

/// Counts how often it was called.
#[derive(Default)]
struct Bell(AtomicUsize);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, SeqCst);
    }
}

impl Bell {
    fn rung(&self) -> usize {
        self.0.load(SeqCst)
    }
}

fn queue(max: &[u32]) -> (Arc<WaitQueue<u32>>, Vec<Arc<ServerSlots<u32>>>) {
    let queue = WaitQueue::new();
    let name = |index: usize| format!("10.0.0.{index}:80");
    let servers =
        max.iter().enumerate().map(|(index, max)| queue.slots(name(index).as_bytes(), *max));
    (Arc::clone(&queue), servers.collect())
}

fn request(servers: &[Arc<ServerSlots<u32>>]) -> JoinRequest<'_, u32> {
    JoinRequest {
        servers,
        tried: &[],
        group: GROUP,
        backlog: Backlog::OfServer(1000),
        worker: None,
        now_ms: 0,
    }
}

fn join(servers: &[Arc<ServerSlots<u32>>]) -> Waiter<u32> {
    servers[0].queue().join(request(servers)).expect("there is room")
}

fn poll(waiter: &mut Waiter<u32>) -> Poll<WaiterAnswer<u32>> {
    waiter.poll(&mut Context::from_waker(Waker::noop()), 0)
}

fn granted(waiter: &mut Waiter<u32>) -> Grant<u32> {
    match poll(waiter) {
        Poll::Ready(WaiterAnswer::Granted(grant)) => grant,
        Poll::Ready(WaiterAnswer::NoServer) => panic!("no server"),
        Poll::Pending => panic!("still waiting"),
    }
}

fn waits(waiter: &mut Waiter<u32>) -> bool {
    poll(waiter).is_pending()
}

#[test]
fn no_more_than_the_maximum_is_in_use() {
    let (_, servers) = queue(&[2]);
    let first = servers[0].try_take().expect("one of two");
    let second = servers[0].try_take().expect("two of two");
    assert!(servers[0].try_take().is_none() && servers[0].is_full());
    drop(first);
    assert_eq!(servers[0].in_progress(), 1);
    assert!(servers[0].try_take().is_some());
    assert_eq!(second.release_with(7), Some(7), "nobody waits for the handoff");
    assert_eq!(servers[0].in_progress(), 0);
}

#[test]
fn a_slot_and_its_handoff_go_to_the_oldest_waiter() {
    let (queue, servers) = queue(&[1]);
    let slot = servers[0].try_take().expect("free");
    let (mut first, mut second) = (join(&servers), join(&servers));
    assert_eq!((first.position(), second.position()), (1, 2));
    assert!(waits(&mut first) && waits(&mut second));
    assert_eq!(slot.release_with(7), None);
    assert!(servers[0].try_take().is_none(), "nobody overtakes");
    let grant = granted(&mut first);
    assert_eq!(grant.handoff, Some(7));
    assert!(waits(&mut second));
    drop(grant);
    assert_eq!(granted(&mut second).handoff, None);
    assert_eq!(queue.stats().in_progress, 0);
}

#[test]
fn a_handoff_goes_to_a_waiter_that_needs_one() {
    let (_, servers) = queue(&[1, 1]);
    let slots: Vec<_> = servers.iter().filter_map(ServerSlots::try_take).collect();
    assert!(!servers[0].awaits_handoff(1), "nobody waits");
    let join =
        |worker| servers[0].queue().join(JoinRequest { worker, ..request(&servers[..1]) }).unwrap();
    let first = join(None);
    let second = join(Some(1));
    assert!(!servers[0].awaits_handoff(2), "the first wants none");
    drop(first);
    assert!(
        servers[0].awaits_handoff(2)
            && !servers[0].awaits_handoff(1)
            && !servers[1].awaits_handoff(2)
    );
    drop((second, slots));
}

#[test]
fn a_slot_that_became_free_before_joining_is_granted_at_once() {
    let (queue, servers) = queue(&[1]);
    let mut waiter = join(&servers);
    assert_eq!(waiter.position(), 0);
    drop(granted(&mut waiter));
    assert_eq!((queue.stats().queued, servers[0].in_progress()), (0, 0));
    drop(join(&servers));
    assert_eq!(servers[0].in_progress(), 0, "never asked for, and back");
}

#[test]
fn a_waiter_for_several_servers_takes_the_first_free_one() {
    let (_, servers) = queue(&[1, 1]);
    let slots: Vec<_> = servers.iter().filter_map(ServerSlots::try_take).collect();
    let mut only_first = join(&servers[..1]);
    let mut either = join(&servers);
    let mut slots = slots.into_iter();
    let (first, second) = (slots.next(), slots.next());
    drop(second);
    let grant = granted(&mut either);
    assert!(Arc::ptr_eq(grant.slot.slots(), &servers[1]));
    assert!(waits(&mut only_first));
    assert_eq!(servers[0].waiting(), 1, "who has the one no longer waits for the other");
    drop(first);
    granted(&mut only_first);
}

#[test]
fn a_grant_that_was_not_taken_is_passed_on_with_its_handoff() {
    let (queue, servers) = queue(&[1]);
    let slot = servers[0].try_take().expect("free");
    let (first, mut second) = (join(&servers), join(&servers));
    assert_eq!(slot.release_with(7), None);
    drop(first);
    let grant = granted(&mut second);
    assert_eq!(grant.handoff, Some(7));
    drop((grant, second));
    let stats = queue.stats();
    assert_eq!((stats.queued, stats.granted, stats.abandoned), (2, 1, 1));
    assert_eq!((stats.in_progress, stats.waiting), (0, 0));
}

#[test]
fn the_backlog_has_a_bound_at_each_server() {
    let (queue, servers) = queue(&[0, 0]);
    let request = || JoinRequest { backlog: Backlog::OfServer(1), ..request(&servers) };
    let kept: Vec<_> = (0..4).map(|_| queue.join(request()).ok()).collect();
    assert_eq!(kept.iter().map(Option::is_some).collect::<Vec<_>>(), [true, true, false, false]);
    assert_eq!([servers[0].stats().waiting, servers[1].stats().waiting], [1, 1]);
    assert_eq!((queue.stats().rejected, servers[0].stats().rejected), (2, 2));
    drop(kept);
    assert_eq!((servers[0].waiting(), queue.stats().waiting), (0, 0));
}

#[test]
fn the_backlog_has_a_bound_for_the_queue() {
    let (queue, servers) = queue(&[0, 0]);
    let request = || JoinRequest { backlog: Backlog::OfQueue(1), ..request(&servers) };
    let _kept = queue.join(request());
    assert!(queue.join(request()).is_err());
}

#[test]
fn without_a_backlog_free_slots_are_given_and_no_request_waits() {
    let (queue, servers) = queue(&[1]);
    let request = || JoinRequest { backlog: Backlog::OfServer(0), ..request(&servers) };
    let kept = queue.join(request());
    assert!(kept.is_ok());
    assert_eq!(queue.join(request()).err(), Some(QueueFull));
    drop(kept);
    assert_eq!(servers[0].waiting(), 0);
    assert!(servers[0].try_take().is_some());
}

#[test]
fn a_raised_maximum_lets_in_and_a_lowered_one_does_not() {
    let (_, servers) = queue(&[1]);
    let slot = servers[0].try_take().expect("free");
    let mut waiters = [join(&servers), join(&servers), join(&servers)];
    servers[0].set_max(3);
    let [first, second, third] = &mut waiters;
    let grants = (granted(first), granted(second));
    assert!(waits(third));
    servers[0].set_max(1);
    assert_eq!(slot.release_with(7), Some(7), "above the maximum nothing is passed on");
    drop(grants.0);
    assert!(waits(third));
    assert_eq!(servers[0].in_progress(), 1);
    drop(grants.1);
    granted(third);
}

#[test]
fn a_wait_ends_when_the_last_server_is_withdrawn() {
    let (queue, servers) = queue(&[1, 1]);
    let _slots: Vec<_> = servers.iter().filter_map(ServerSlots::try_take).collect();
    let bell = Arc::new(Bell::default());
    let mut waiter = join(&servers);
    let waker = Arc::clone(&bell).into();
    let mut context = Context::from_waker(&waker);
    assert!(waiter.poll(&mut context, 0).is_pending());
    servers[0].withdraw(GROUP + 1);
    servers[0].withdraw(GROUP);
    assert_eq!((servers[0].waiting(), servers[1].waiting(), bell.rung()), (0, 1, 0));
    assert_eq!((servers[0].stats().waiting, servers[1].stats().waiting), (0, 1));
    servers[1].withdraw(GROUP);
    assert_eq!(bell.rung(), 1);
    assert!(matches!(waiter.poll(&mut context, 0), Poll::Ready(WaiterAnswer::NoServer)));
    assert_eq!((queue.stats().stranded, queue.stats().waiting), (1, 0));
}

#[test]
fn an_admitted_server_serves_the_oldest_that_has_not_tried_it() {
    let (queue, servers) = queue(&[0, 1]);
    let tried = &servers[1..];
    let mut first = queue.join(JoinRequest { tried, ..request(&servers[..1]) }).expect("room");
    let mut second = join(&servers[..1]);
    let mut third =
        queue.join(JoinRequest { group: GROUP + 1, ..request(&servers[..1]) }).expect("room");
    servers[1].admit(GROUP);
    assert!(waits(&mut first) && waits(&mut third));
    assert!(Arc::ptr_eq(granted(&mut second).slot.slots(), &servers[1]));
}

#[test]
fn waiting_is_measured_by_the_waiter() {
    let (queue, servers) = queue(&[1]);
    let slot = servers[0].try_take().expect("free");
    let mut first = queue.join(JoinRequest { now_ms: 100, ..request(&servers) }).expect("room");
    let second = queue.join(JoinRequest { now_ms: 110, ..request(&servers) }).expect("room");
    drop(slot);
    let answer = first.poll(&mut Context::from_waker(Waker::noop()), 130);
    assert!(matches!(answer, Poll::Ready(WaiterAnswer::Granted(Grant { waited_ms: 30, .. }))));
    drop(answer);
    let grant = second.give_up(170).expect("granted in the last moment");
    assert_eq!(grant.waited_ms, 60);
    let third = queue.join(JoinRequest { now_ms: 200, ..request(&servers) }).expect("room");
    assert!(third.give_up(205).is_none());
    let stats = servers[0].stats();
    assert_eq!((stats.granted, stats.timed_out), (2, 1));
    assert_eq!((stats.waited_ms, stats.waited_ms_max, stats.waiting_max), (95, 60, 2));
}

#[test]
fn an_address_named_twice_counts_once() {
    let (queue, servers) = queue(&[1]);
    let twice = [Arc::clone(&servers[0]), Arc::clone(&servers[0])];
    let slot = servers[0].try_take().expect("free");
    let mut waiter = join(&twice);
    assert_eq!(servers[0].waiting(), 1);
    drop(slot);
    drop(granted(&mut waiter));
    assert!(servers[0].try_take().is_some());
    assert!(Arc::ptr_eq(&queue.slots(servers[0].name(), 9), &servers[0]));
}

#[test]
fn an_unused_server_is_forgotten() {
    let (queue, servers) = queue(&[1, 2]);
    assert_eq!(queue.servers().len(), 2);
    let slot = servers[1].try_take();
    drop(servers);
    assert_eq!((queue.servers().len(), queue.stats().in_progress), (1, 1));
    drop(slot);
    assert_eq!(queue.servers().len(), 0);
    assert_eq!(queue.slots(b"10.0.0.1:80", 5).max(), 5);
}

#[test]
fn a_maximum_too_large_to_count_is_the_largest() {
    let (_, servers) = queue(&[u32::MAX]);
    assert_eq!(servers[0].max(), SLOTS_MAX);
    servers[0].set_max(SLOTS_MAX + 1);
    assert_eq!((servers[0].max(), servers[0].in_progress()), (SLOTS_MAX, 0));
}

#[test]
fn the_waker_of_the_last_poll_is_called() {
    let (_, servers) = queue(&[1]);
    let slot = servers[0].try_take().expect("free");
    let mut waiter = join(&servers);
    let bells = [Arc::new(Bell::default()), Arc::new(Bell::default())];
    for bell in &bells {
        let waker = Arc::clone(bell).into();
        assert!(waiter.poll(&mut Context::from_waker(&waker), 0).is_pending());
    }
    drop(slot);
    assert_eq!((bells[0].rung(), bells[1].rung()), (0, 1));
    granted(&mut waiter);
}

#[test]
fn a_server_s_debug_output_shows_its_counts() {
    let (_, servers) = queue(&[1]);
    let slot = servers[0].try_take().expect("free");
    let _waiter = join(&servers);
    assert_eq!(format!("{slot:?}"), "a slot of 10.0.0.0:80: 1 of 1 in use, 1 wait");
}
