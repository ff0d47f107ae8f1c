use std::cell::{Cell, RefCell};
use std::future::{pending, poll_fn};
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::rc::Rc;
use std::task::{Context, Waker};
use std::thread;

use super::*;

#[test]
fn a_task_reports_how_it_ended() {
    run(async {
        let mut well = spawn(async {});
        let mut badly = spawn(async { panic!("on purpose") });
        let mut stopped = spawn(pending());
        stopped.stop();
        assert!(well.ended().await);
        assert!(!badly.ended().await && !stopped.ended().await);
        // A second call, after the end, has the same result.
        assert!(well.ended().await);
    })
    .unwrap();
}

/// Records its drop.
struct Dropped(Rc<Cell<bool>>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.set(true);
    }
}

#[test]
fn a_task_can_stop_itself_and_is_dropped() {
    run(async {
        let dropped = Rc::new(Cell::new(false));
        let (inside, own) = (Dropped(dropped.clone()), Rc::new(RefCell::new(None::<Task>)));
        let task = own.clone();
        *own.borrow_mut() = Some(spawn(async move {
            let _inside = inside;
            task.borrow().as_ref().unwrap().stop();
            pending::<()>().await;
        }));
        while !dropped.get() {
            yield_now().await;
        }
    })
    .unwrap();
}

#[test]
fn remaining_tasks_and_those_started_by_their_drops_are_dropped() {
    struct StartsAnother(Rc<Cell<bool>>);
    impl Drop for StartsAnother {
        fn drop(&mut self) {
            let last = Dropped(self.0.clone());
            spawn(async move {
                let _last = last;
                pending::<()>().await;
            });
        }
    }
    let dropped = Rc::new(Cell::new(false));
    let left = StartsAnother(dropped.clone());
    run(async {
        spawn(async move {
            let _left = left;
            pending::<()>().await;
        });
        yield_now().await;
    })
    .unwrap();
    assert!(dropped.get());
}

#[test]
fn an_old_waker_does_not_wake_the_next_task_of_a_slot() {
    run(async {
        let waker = Rc::new(RefCell::new(None::<Waker>));
        let stored = waker.clone();
        let mut first = spawn(poll_fn(move |cx| {
            *stored.borrow_mut() = Some(cx.waker().clone());
            Poll::Ready(())
        }));
        assert!(first.ended().await);
        drop(first);
        let polls = Rc::new(Cell::new(0));
        let counted = polls.clone();
        let _second = spawn(poll_fn(move |_| {
            counted.set(counted.get() + 1);
            Poll::<()>::Pending
        }));
        yield_now().await;
        waker.borrow().as_ref().unwrap().wake_by_ref();
        yield_now().await;
        assert_eq!(polls.get(), 1);
    })
    .unwrap();
}

#[test]
fn another_thread_wakes_a_task() {
    const TIMES: usize = 1_000;
    run(async {
        let (sender, mut wakers) = crate::mailbox::<Waker>();
        let thread = thread::spawn(move || {
            run(async move {
                while let Some(waker) = wakers.next().await {
                    waker.wake();
                }
            })
            .unwrap();
        });
        for _ in 0..TIMES {
            let mut is_sent = false;
            poll_fn(|cx| {
                if std::mem::replace(&mut is_sent, true) {
                    return Poll::Ready(());
                }
                sender.send(cx.waker().clone());
                Poll::Pending
            })
            .await;
        }
        drop(sender);
        thread.join().unwrap();
    })
    .unwrap();
}

#[test]
fn a_waker_outlives_its_worker() {
    let waker = run(poll_fn(|cx| Poll::Ready(cx.waker().clone()))).unwrap();
    waker.wake_by_ref();
    run(async { yield_now().await }).unwrap();
    thread::spawn(move || waker.wake()).join().unwrap();
}

/// Reads all available bytes.
fn poll_all(watched: &Watched<UnixStream>, cx: &mut Context<'_>) -> Poll<usize> {
    std::task::ready!(watched.watch().poll_readable(cx));
    let mut bytes = Vec::new();
    let _ = watched.get().read_to_end(&mut bytes);
    watched.watch().clear_readable();
    Poll::Ready(bytes.len())
}

#[test]
fn a_descriptor_is_readable_until_it_is_emptied() {
    run(async {
        let (mut near, far) = UnixStream::pair().unwrap();
        far.set_nonblocking(true).unwrap();
        let watched = Watched::new(far, Interest::Read).unwrap();
        let is_readable =
            || poll_fn(|cx| Poll::Ready(watched.watch().poll_readable(cx).is_ready()));
        yield_now().await;
        assert!(!is_readable().await);
        near.write_all(b"12").unwrap();
        assert_eq!(poll_fn(|cx| poll_all(&watched, cx)).await, 2);
        yield_now().await;
        assert!(!is_readable().await);
        near.write_all(b"3").unwrap();
        assert_eq!(poll_fn(|cx| poll_all(&watched, cx)).await, 1);
        drop(near);
        // An end is reported for ever.
        for _ in 0..2 {
            assert_eq!(poll_fn(|cx| poll_all(&watched, cx)).await, 0);
        }
        assert!(watched.watch().is_read_ended());
    })
    .unwrap();
}

#[test]
fn events_of_a_closed_descriptor_reach_no_other() {
    run(async {
        let (mut near, far) = UnixStream::pair().unwrap();
        // A second descriptor keeps the file open, and so in the epoll set.
        let (first, kept) =
            (EventWatch::new(&far, Interest::Read).unwrap(), far.try_clone().unwrap());
        drop((first, far));
        let (_other, silent) = UnixStream::pair().unwrap();
        let second = EventWatch::new(&silent, Interest::Read).unwrap();
        near.write_all(b"x").unwrap();
        yield_now().await;
        assert!(!second.is_readable());
        drop(kept);
    })
    .unwrap();
}

#[test]
fn a_task_that_never_waits_lets_others_run() {
    run(async {
        let (mut near, far) = UnixStream::pair().unwrap();
        near.write_all(b"x").unwrap();
        let watch = EventWatch::new(&far, Interest::Read).unwrap();
        // It never clears the readiness.
        spawn(async move {
            loop {
                poll_fn(|cx| watch.poll_readable(cx)).await;
            }
        });
        for _ in 0..3 {
            yield_now().await;
        }
    })
    .unwrap();
}

#[test]
fn a_socket_with_many_bytes_lets_others_run() {
    const PIECE: usize = 512;
    run(async {
        let (mut near, far) = UnixStream::pair().unwrap();
        for end in [&near, &far] {
            end.set_nonblocking(true).unwrap();
        }
        let mut written = 0;
        while let Ok(count) = near.write(&[0; 4096]) {
            written += count;
        }
        let mut stream = crate::Stream::new(far.into());
        let (mut reads, mut polls) = (0, Vec::new());
        let read_all = poll_fn(|cx| {
            let before = reads;
            while reads * PIECE < written {
                let mut buffer = Vec::with_capacity(PIECE);
                if stream.poll_read(cx, &mut buffer).is_pending() {
                    polls.push(reads - before);
                    return Poll::Pending;
                }
                reads += 1;
            }
            Poll::Ready(())
        });
        read_all.await;
        assert!(polls.len() > 1 && polls.iter().all(|reads| *reads <= 128), "{polls:?}");
    })
    .unwrap();
}

#[test]
fn the_end_of_many_tasks_is_noticed_once() {
    const COUNT: usize = 1000;
    run(async {
        let mut tasks: Vec<Task> = (0..COUNT).map(|_| spawn(pending())).collect();
        assert!(!many_tasks_ended());
        let mut end = async |count: usize| {
            let ending = tasks.split_off(tasks.len() - count);
            ending.iter().for_each(Task::stop);
            drop(ending);
            yield_now().await;
        };
        end(COUNT / 5).await;
        assert!(!many_tasks_ended(), "a fifth of them");
        end(COUNT / 5).await;
        assert!(many_tasks_ended() && !many_tasks_ended());
        end(100).await;
        assert!(!many_tasks_ended(), "few");
        end(500).await;
        assert!(many_tasks_ended());
    })
    .unwrap();
}

#[test]
fn events_of_a_removed_entry_reach_no_other() {
    run(async {
        let (mut near, far) = UnixStream::pair().unwrap();
        let pairs: Vec<_> = (0..300).map(|_| UnixStream::pair().unwrap()).collect();
        let watch = |fd: &UnixStream| EventWatch::new(fd, Interest::Read).unwrap();
        let many: Vec<_> = pairs.iter().map(|(_, far)| watch(far)).collect();
        // A second descriptor keeps the file open, and so in the epoll set.
        let (first, kept) = (watch(&far), far.try_clone().unwrap());
        drop((first, far, many));
        shrink();
        let again: Vec<_> = pairs.iter().map(|(near, _)| watch(near)).collect();
        let (_other, silent) = UnixStream::pair().unwrap();
        let second = watch(&silent);
        near.write_all(b"x").unwrap();
        yield_now().await;
        assert!(!second.is_readable() && !again.iter().any(EventWatch::is_readable));
        drop(kept);
    })
    .unwrap();
}

#[test]
fn tasks_start_and_wake_after_the_table_has_shrunk() {
    run(async {
        for _ in 0..3 {
            let many: Vec<Task> = (0..1000).map(|_| spawn(pending())).collect();
            let early = spawn(pending());
            many.iter().for_each(Task::stop);
            drop(many);
            shrink();
            yield_now().await;
            shrink();
            assert!(spawn(yield_now()).ended().await);
            early.stop();
        }
    })
    .unwrap();
}

#[test]
fn each_busy_task_runs_once_per_round() {
    const TASKS: usize = 5;
    run(async {
        let polls = Rc::new(Cell::new(0));
        for _ in 0..TASKS {
            let polls = polls.clone();
            spawn(poll_fn(move |cx| {
                polls.set(polls.get() + 1);
                spend(1 << 20);
                assert!(poll_share(cx).is_pending());
                Poll::<()>::Pending
            }));
        }
        yield_now().await;
        let begin = polls.get();
        // Between two polls of this task, each of the others runs once.
        for turn in 1..4 {
            yield_now().await;
            assert_eq!(polls.get() - begin, turn * TASKS, "{turn}");
        }
        // An event is handled after at most one of them.
        let (mut near, far) = UnixStream::pair().unwrap();
        let watch = EventWatch::new(&far, Interest::Read).unwrap();
        let heard = Rc::new(Cell::new(None));
        let (told, counted) = (heard.clone(), polls.clone());
        spawn(async move {
            poll_fn(|cx| watch.poll_readable(cx)).await;
            told.set(Some(counted.get()));
        });
        yield_now().await;
        let before = polls.get();
        near.write_all(b"x").unwrap();
        yield_now().await;
        assert!(heard.get().is_some_and(|count| count - before <= 1), "{before} {heard:?}");
    })
    .unwrap();
}
