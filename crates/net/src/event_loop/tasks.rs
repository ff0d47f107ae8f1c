//! The tasks of a worker, and their wakers.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::marker::PhantomData;
use std::mem;
use std::panic::{self, AssertUnwindSafe};
use std::pin::Pin;
use std::task::{Context, Poll, RawWaker, RawWakerVTable, Waker};

use super::inbox::wake;
use super::peaks::note_poll;
use super::task_id::{TaskId, WorkerNumber};
use crate::slots;

/// Work that a task may do without waiting before other tasks run: bytes read, or work of the same
/// duration. In tiny pieces, which take longest, this is about a millisecond.
const SHARE_BYTES: i64 = 256 * 1024;

/// The cost of a step in addition to its bytes.
const STEP_BYTES: i64 = 2048;

/// Ended tasks that make a trim of the memory worthwhile.
const ENDED_PER_TRIM: usize = 200;

/// The slot of the loop's main future, which is on the stack.
const MAIN: u32 = 0;

type BoxedTask = Pin<Box<dyn Future<Output = ()>>>;

thread_local! {
    static WORKER: Cell<Option<WorkerNumber>> = const { Cell::new(None) };
    static TASKS: RefCell<TaskTable> = const { RefCell::new(TaskTable::new()) };
    /// Work that the running task may still do before it yields. It falls below 0 when the last
    /// step costs more than was left. Outside a worker there is no limit.
    static SHARE_LEFT: Cell<i64> = const { Cell::new(i64::MAX) };
    static DEFERRALS: Cell<u64> = const { Cell::new(0) };
}

impl TaskId {
    /// Wakes the task from any thread.
    fn wake(self) {
        if WORKER.get() == Some(self.worker()) {
            self.wake_here();
        } else {
            wake(self);
        }
    }

    /// Wakes the task on its own worker.
    pub(super) fn wake_here(self) {
        TASKS.with_borrow_mut(|tasks| tasks.wake(self));
    }

    fn waker(self) -> Waker {
        let data = std::ptr::without_provenance(self.number());
        // SAFETY: the data is a number, which any thread may copy and drop.
        unsafe { Waker::new(data, &WAKER) }
    }
}

static WAKER: RawWakerVTable = RawWakerVTable::new(
    |data| RawWaker::new(data, &WAKER),
    |data| TaskId::of(data.addr()).wake(),
    |data| TaskId::of(data.addr()).wake(),
    |_| {},
);

/// A task under way, which continues when this is dropped.
pub struct Task {
    id: TaskId,
    not_send: PhantomData<*const ()>,
}

impl Task {
    /// Ends the task: its future is not polled again, and is dropped soon.
    pub fn stop(&self) {
        TASKS.with_borrow_mut(|tasks| tasks.stop(self.id));
    }

    /// Waits until the task is over. True if it completed; false if it panicked or was stopped.
    pub async fn ended(&mut self) -> bool {
        poll_fn(|cx| TASKS.with_borrow_mut(|tasks| tasks.poll_ended(self.id, cx))).await
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        // When the thread ends, the table may be gone before the last task.
        let _ = TASKS.try_with(|tasks| tasks.borrow_mut().let_go(self.id));
    }
}

/// The tasks of this worker.
pub fn task_count() -> usize {
    TASKS.with_borrow(|tasks| tasks.slots.len() - tasks.free.len())
}

/// Starts a task on this worker.
pub fn spawn(task: impl Future<Output = ()> + 'static) -> Task {
    let worker = WORKER.get().expect("tasks are started on a worker");
    let added = TASKS.with_borrow_mut(|tasks| tasks.add(worker, Box::pin(task)));
    let (id, refused) = added;
    drop(refused);
    Task { id, not_send: PhantomData }
}

/// Starts a task; outside a worker it is dropped.
pub fn spawn_if_running(task: impl Future<Output = ()> + 'static) {
    if WORKER.get().is_some() {
        spawn(task);
    }
}

/// Lets the other ready tasks run, and those whose events have arrived meanwhile.
pub async fn yield_now() {
    let mut has_yielded = false;
    poll_fn(|cx| {
        if mem::replace(&mut has_yielded, true) {
            return Poll::Ready(());
        }
        defer(cx.waker());
        Poll::Pending
    })
    .await;
}

/// Wakes a task after the others have run and the descriptors have been checked.
pub fn defer(waker: &Waker) {
    DEFERRALS.set(DEFERRALS.get() + 1);
    TASKS.with_borrow_mut(|tasks| tasks.deferred.push_back(waker.clone()));
}

/// The number of calls of [`defer`] so far: whether a task that waits has only let others go first.
pub fn deferrals() -> u64 {
    DEFERRALS.get()
}

/// Ready while the running task has some of its share left; this counts as a step. A task that has
/// used up its share is woken again once the other tasks have run.
///
/// Every loop that may iterate without waiting calls this, or reads from a stream, which calls it.
#[inline]
pub fn poll_share(cx: &mut Context<'_>) -> Poll<()> {
    if has_share() {
        SHARE_LEFT.set(SHARE_LEFT.get() - STEP_BYTES);
        return Poll::Ready(());
    }
    defer(cx.waker());
    Poll::Pending
}

/// Whether the running task has some of its share left.
#[inline]
pub fn has_share() -> bool {
    SHARE_LEFT.get() > 0
}

/// Counts bytes read by the running task, or work of the same duration.
#[inline]
pub fn spend(bytes: usize) {
    SHARE_LEFT.set(SHARE_LEFT.get().saturating_sub_unsigned(bytes as u64));
}

/// The work of the running task in this poll.
#[inline]
fn spent() -> u64 {
    SHARE_BYTES.abs_diff(SHARE_LEFT.get())
}

/// Whether many tasks, and a good part of all, have ended since this last returned true.
pub(crate) fn many_tasks_ended() -> bool {
    TASKS.with_borrow_mut(TaskTable::many_ended)
}

/// Frees the memory of former tasks.
pub(super) fn shrink() {
    TASKS.with_borrow_mut(TaskTable::shrink);
}

/// The next step of the loop.
pub(super) enum NextTask {
    Main,
    Task(u32),
    /// A deferred task's waker: waking it makes the task ready.
    Deferred(Waker),
    Nothing,
}

/// The task that has been ready for longest. If none is ready, a deferred task.
pub(super) fn next() -> NextTask {
    TASKS.with_borrow_mut(|tasks| match tasks.ready.pop_front() {
        None => tasks.resume_next().map_or(NextTask::Nothing, NextTask::Deferred),
        Some(index) => {
            tasks.slots[index as usize].is_ready = false;
            if index == MAIN { NextTask::Main } else { NextTask::Task(index) }
        }
    })
}

/// Whether no task is ready or deferred.
pub(super) fn all_wait() -> bool {
    TASKS.with_borrow(|tasks| tasks.ready.is_empty() && tasks.deferred.is_empty())
}

/// Begins a turn. The first deferred task is resumed in every turn, so that none starves.
pub(super) fn begin_turn() {
    let first = TASKS.with_borrow_mut(|tasks| {
        tasks.turn_bytes = 0;
        tasks.resumable = tasks.deferred.len().saturating_sub(1);
        tasks.deferred.pop_front()
    });
    first.into_iter().for_each(Waker::wake);
}

pub(super) fn poll_main<T>(main: Pin<&mut impl Future<Output = T>>) -> Poll<T> {
    let worker = WORKER.get().expect("a worker runs");
    let generation = TASKS.with_borrow(|tasks| tasks.slots[MAIN as usize].generation);
    SHARE_LEFT.set(SHARE_BYTES);
    let waker = TaskId::new(worker, generation, MAIN).waker();
    main.poll(&mut Context::from_waker(&waker))
}

pub(super) fn poll(index: u32) {
    let worker = WORKER.get().expect("a worker runs");
    let Some((mut task, generation, is_stopped)) = TASKS.with_borrow_mut(|tasks| tasks.take(index))
    else {
        return;
    };
    SHARE_LEFT.set(SHARE_BYTES);
    let waker = TaskId::new(worker, generation, index).waker();
    let polled = panic::catch_unwind(AssertUnwindSafe(move || {
        let is_over = is_stopped || task.as_mut().poll(&mut Context::from_waker(&waker)).is_ready();
        (!is_over).then_some(task)
    }));
    let spent = spent();
    note_poll(spent);
    let watcher = TASKS.with_borrow_mut(|tasks| {
        tasks.turn_bytes += spent;
        match polled {
            Ok(Some(task)) => {
                tasks.slots[index as usize].stage = TaskStage::Waits(task);
                None
            }
            Ok(None) => tasks.end(index, !is_stopped),
            Err(_) => tasks.end(index, false),
        }
    });
    watcher.into_iter().for_each(Waker::wake);
}

/// Makes this thread a worker.
pub(super) fn begin(worker: WorkerNumber) {
    assert!(WORKER.replace(Some(worker)).is_none(), "one worker on each thread");
    TASKS.with_borrow_mut(TaskTable::begin);
}

/// Drops all tasks, and those started by their destructors.
pub(super) fn drop_all() {
    TASKS.with_borrow_mut(|tasks| tasks.is_closed = true);
    let count = TASKS.with_borrow(|tasks| tasks.slots.len() as u32);
    for index in MAIN + 1..count {
        // A panic in a destructor has been reported already.
        let task = TASKS.with_borrow_mut(|tasks| tasks.take(index));
        let _ = panic::catch_unwind(AssertUnwindSafe(|| drop(task)));
        TASKS.with_borrow_mut(|tasks| tasks.end(index, false));
    }
}

/// Ends this thread's worker, and returns its number.
pub(super) fn end() -> Option<WorkerNumber> {
    TASKS.with_borrow_mut(TaskTable::finish);
    WORKER.take()
}

struct TaskTable {
    slots: Vec<TaskSlot>,
    free: Vec<u32>,
    /// The highest number of tasks since many had ended.
    most: usize,
    /// The generation of new slots, later than that of any removed slot.
    first_generation: u32,
    /// Ready tasks, each once.
    ready: VecDeque<u32>,
    /// Deferred tasks, in the order in which they deferred.
    deferred: VecDeque<Waker>,
    /// How many deferred tasks may still be resumed in this turn: those of earlier turns.
    resumable: usize,
    /// The work of all tasks in this turn, in bytes.
    turn_bytes: u64,
    /// Whether tasks are dropped instead of started.
    is_closed: bool,
}

struct TaskSlot {
    /// Number of tasks that the slot has had.
    generation: u32,
    /// Whether it is in `ready`.
    is_ready: bool,
    is_stopped: bool,
    /// Whether a `Task` refers to it.
    is_held: bool,
    stage: TaskStage,
    /// The task that waits for the end of this one.
    watcher: Option<Waker>,
}

enum TaskStage {
    Free,
    Waits(BoxedTask),
    /// It is being polled.
    Runs,
    /// Over; whether it completed.
    Over(bool),
}

impl TaskTable {
    const fn new() -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
            most: 0,
            first_generation: 0,
            ready: VecDeque::new(),
            deferred: VecDeque::new(),
            resumable: 0,
            turn_bytes: 0,
            is_closed: false,
        }
    }

    fn begin(&mut self) {
        if self.slots.is_empty() {
            self.slots.push(TaskSlot::new(TaskStage::Runs));
        }
        self.is_closed = false;
        self.make_ready(MAIN);
    }

    fn finish(&mut self) {
        for slot in &mut self.slots {
            // Wakers of its tasks must not wake those of this thread's next worker.
            slot.generation = slot.generation.wrapping_add(1);
            slot.is_ready = false;
        }
        self.ready.clear();
        self.deferred.clear();
    }

    /// Adds a task. Returns its id, and the task if it is not started because the table is closed.
    fn add(&mut self, worker: WorkerNumber, task: BoxedTask) -> (TaskId, Option<BoxedTask>) {
        let index = self.free.pop().unwrap_or_else(|| {
            let generation = self.first_generation;
            self.slots.push(TaskSlot { generation, ..TaskSlot::new(TaskStage::Free) });
            u32::try_from(self.slots.len() - 1).expect("fewer tasks than bytes of memory")
        });
        self.most = self.most.max(self.count());
        let slot = &mut self.slots[index as usize];
        slot.is_held = true;
        let id = TaskId::new(worker, slot.generation, index);
        if self.is_closed {
            slot.stage = TaskStage::Over(false);
            return (id, Some(task));
        }
        slot.stage = TaskStage::Waits(task);
        self.make_ready(index);
        (id, None)
    }

    fn count(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    fn shrink(&mut self) {
        let first = &mut self.first_generation;
        slots::shrink(&mut self.slots, &mut self.free, |slot| {
            *first = slot.generation.wrapping_add(1).max(*first);
            !slot.is_ready
        });
    }

    fn many_ended(&mut self) -> bool {
        let count = self.count();
        let ended = self.most - count.min(self.most);
        let many = ended >= ENDED_PER_TRIM && ended >= self.most / 4;
        if many {
            self.most = count;
        }
        many
    }

    /// The next deferred task, as long as the turn's tasks have done less than one share of work.
    /// After that the turn ends, so that new events wait for one share at most, not for one of
    /// each deferred task.
    fn resume_next(&mut self) -> Option<Waker> {
        if self.resumable == 0 || self.turn_bytes >= SHARE_BYTES.unsigned_abs() {
            return None;
        }
        self.resumable -= 1;
        self.deferred.pop_front()
    }

    fn make_ready(&mut self, index: u32) {
        if !mem::replace(&mut self.slots[index as usize].is_ready, true) {
            self.ready.push_back(index);
        }
    }

    fn wake(&mut self, id: TaskId) {
        let slot = self.slots.get(id.index() as usize);
        if slot.is_some_and(|slot| id.is_of(slot.generation)) {
            self.make_ready(id.index());
        }
    }

    /// A waiting task, with its generation and whether it was stopped. It is marked as running.
    fn take(&mut self, index: u32) -> Option<(BoxedTask, u32, bool)> {
        let slot = &mut self.slots[index as usize];
        match mem::replace(&mut slot.stage, TaskStage::Runs) {
            TaskStage::Waits(task) => Some((task, slot.generation, slot.is_stopped)),
            other => {
                slot.stage = other;
                None
            }
        }
    }

    /// Marks the running task as over. Returns the waker of the task that waits for that.
    fn end(&mut self, index: u32, well: bool) -> Option<Waker> {
        let slot = &mut self.slots[index as usize];
        if matches!(slot.stage, TaskStage::Runs) {
            slot.stage = TaskStage::Over(well);
            if !slot.is_held {
                self.free(index);
            }
        }
        self.slots[index as usize].watcher.take()
    }

    fn free(&mut self, index: u32) {
        let slot = &mut self.slots[index as usize];
        // If it is in `ready`, it stays there without effect.
        let is_ready = slot.is_ready;
        let generation = slot.generation.wrapping_add(1);
        *slot = TaskSlot { generation, is_ready, ..TaskSlot::new(TaskStage::Free) };
        self.free.push(index);
    }

    fn slot_of(&mut self, id: TaskId) -> Option<&mut TaskSlot> {
        let slot = self.slots.get_mut(id.index() as usize)?;
        id.is_of(slot.generation).then_some(slot)
    }

    fn stop(&mut self, id: TaskId) {
        let Some(slot) = self.slot_of(id) else { return };
        if matches!(slot.stage, TaskStage::Waits(_) | TaskStage::Runs) {
            slot.is_stopped = true;
            self.make_ready(id.index());
        }
    }

    fn poll_ended(&mut self, id: TaskId, cx: &mut Context<'_>) -> Poll<bool> {
        match self.slot_of(id) {
            // Its worker has ended, and dropped it.
            None => Poll::Ready(false),
            Some(TaskSlot { stage: TaskStage::Over(well), .. }) => Poll::Ready(*well),
            Some(slot) => {
                slot.watcher = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }

    /// The `Task` was dropped.
    fn let_go(&mut self, id: TaskId) {
        let Some(slot) = self.slot_of(id) else { return };
        slot.is_held = false;
        slot.watcher = None;
        if matches!(slot.stage, TaskStage::Over(_)) {
            self.free(id.index());
        }
    }
}

impl TaskSlot {
    const fn new(stage: TaskStage) -> Self {
        let (is_ready, is_stopped, is_held) = (false, false, false);
        Self { generation: 0, is_ready, is_stopped, is_held, stage, watcher: None }
    }
}
