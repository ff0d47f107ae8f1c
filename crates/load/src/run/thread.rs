//! A thread of a run: its clients, its share of the schedule, its tally.
//!
//! ```text
//! (Ask) --Connect--> clients connect --all have--> Ready --Go--> requests --no more--> Done (Ask)
//!                                                                   `- every second: Second
//! ```

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use net::accept::Transport;
use net::tls::{ClientTransport, TlsDetails};
use net::{Address, Alarm, Mailbox, MailboxSender, Task};

use super::client::LoadClient;
use super::datagrams::DatagramClient;
use super::http2::LoadHttp2Client;
use super::pace::Pace;
use super::panics::ClientPanics;
use super::plan::RunPlan;
use super::scripted::Scripted;
use crate::results::RunStats;
use crate::script::{Script, ScriptError};
use crate::target::TargetScheme;

/// Orders to a thread.
pub(super) enum ThreadOrder {
    /// Somebody has a question to its script.
    Ask(Box<dyn FnOnce(&Script) + Send>),
    /// Connections are opened.
    Connect,
    /// Requests begin then.
    Go(Instant),
    /// It is over.
    Stop,
}

/// Reports of a thread.
pub(super) enum News {
    /// Its connections stand, those that can.
    Ready,
    /// What it has counted in one second.
    Second(usize, RunStats),
    /// It has ended.
    Done(Ended),
    /// It could not go on.
    Failed(io::Error),
    /// Somebody wants everything to end.
    Interrupt,
}

/// A thread's end.
pub(super) struct Ended {
    /// What was counted since its last second.
    pub(super) tally: RunStats,
    /// How long it has sent requests and waited for replies.
    pub(super) elapsed: Duration,
    /// For how much of this it was on a CPU.
    pub(super) on_cpu: Duration,
    /// For how much of the second in which that was most.
    pub(super) on_cpu_most: Duration,
    /// How many seconds it has told of.
    pub(super) told: usize,
    /// Why it ended, if its script failed.
    pub(super) failed: Option<String>,
    /// Of a turn in a closed loop the replies that its rate is made of, and their time.
    pub(super) window: Option<(u64, Duration)>,
}

impl Ended {
    /// Replies a second in the window, if there is one.
    pub(super) fn window_rate(&self) -> Option<f64> {
        self.window.map(|(replies, time)| replies as f64 / time.as_secs_f64())
    }

    /// The share of a second that it was on a CPU, where it was most; of all its time, if that is
    /// shorter.
    pub(super) fn busiest(&self) -> f64 {
        match self.told {
            0 => self.on_cpu.as_secs_f64() / self.elapsed.as_secs_f64(),
            _ => self.on_cpu_most.as_secs_f64(),
        }
    }
}

/// A request of such a script is several: they can neither be counted out nor timed.
const SEVERAL_AT_ONCE: &str = "--requests and --rate cannot be used with a script that pipelines";

/// Turns that are due at once and given before the clients run.
const GIVEN_MAX: u32 = 1024;

/// The part of a turn (one in so many) in which a closed loop gets going.
const RAMP_UP: u32 = 10;
/// Timers are coarse; by so much a request may outlive its time.
const TIMER_SLACK: Duration = Duration::from_millis(500);

/// How often replies are counted for the figure of requests a second, as in wrk.
const SAMPLE: Duration = Duration::from_millis(100);
/// Samples in a second.
const SAMPLES_PER_SECOND: u32 = 10;

/// What the clients of a thread share.
pub(super) struct ThreadShared {
    pub(super) plan: Arc<RunPlan>,
    pub(super) pace: Pace,
    /// Since the last second was told.
    pub(super) tally: RefCell<RunStats>,
    pub(super) script: Option<Scripted>,
    /// What secures connections; sessions are resumed within a thread.
    pub(super) transport: Option<Arc<dyn Transport>>,
    started: Cell<u64>,
    last_reply: Cell<Option<Instant>>,
    /// Open loop: when the time of starts was over.
    starts_over: Cell<Option<Instant>>,
    /// Seconds that have been told of.
    told: Cell<usize>,
    /// The most that one of them took of a CPU.
    on_cpu_most: Cell<Duration>,
    halted: RefCell<Halted>,
    window: Cell<Option<(u64, Duration)>>,
}

/// Whether its script has ended the thread, and why.
#[derive(Default)]
struct Halted {
    why: Option<Result<(), String>>,
    watcher: Option<Waker>,
}

impl ThreadShared {
    /// The number of the next request, by which the mix knows it.
    pub(super) fn next_number(&self) -> u64 {
        let n = self.started.get();
        self.started.set(n + if self.plan.rate.is_some() { self.plan.threads } else { 1 });
        n
    }

    /// Counts a reply to a request that should have started at `begun`.
    pub(super) fn replied(&self, status: u16, begun: Instant, now: Instant) {
        let latency = now.saturating_duration_since(begun);
        self.last_reply.set(Some(now));
        let mut tally = self.tally.borrow_mut();
        tally.replies += 1;
        // What only comes back has none.
        if status > 0 {
            tally.statuses.count(status);
        }
        note(&mut tally.latency_us, latency.as_micros() as u64);
    }

    /// Ends the thread: its script wants it, or has failed.
    pub(super) fn halt(&self, why: Result<(), ScriptError>) {
        let mut halted = self.halted.borrow_mut();
        halted.why.get_or_insert(why.map_err(|error| error.to_string()));
        if let Some(watcher) = halted.watcher.take() {
            watcher.wake();
        }
    }

    fn poll_halted(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut halted = self.halted.borrow_mut();
        if halted.why.is_some() {
            return Poll::Ready(());
        }
        halted.watcher = Some(cx.waker().clone());
        Poll::Pending
    }

    /// Counts a connection that was opened and secured.
    pub(super) fn secured(&self, details: &TlsDetails, begun: Instant) {
        let mut tally = self.tally.borrow_mut();
        note(&mut tally.tls.connect_us, begun.elapsed().as_micros() as u64);
        tally.tls.count(crate::tls::agreed(details), details.is_resumed);
    }

    /// A request started so much after its time, though a client was free.
    pub(super) fn is_late(&self, late: Duration) {
        note(&mut self.tally.borrow_mut().lateness_us, late.as_micros() as u64);
    }
}

/// No value is larger: a day in microseconds, and more replies a second than there are.
const VALUE_MAX: u64 = 24 * 3600 * 1_000_000;

fn note(histogram: &mut Histogram<u64>, value: u64) {
    // It grows with its values; what is within the limit finds room.
    let _ = histogram.record(value.min(VALUE_MAX));
}

/// Runs one.
pub(super) fn run(
    plan: Arc<RunPlan>,
    number: u64,
    orders: Mailbox<ThreadOrder>,
    news: &MailboxSender<News>,
) {
    let work = || {
        net::signals::block(super::ENDING)?;
        net::run(async { LoadThread::new(plan, number)?.run_watched(orders, news).await })?
    };
    let ran = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
    // What a panic has to say it has said.
    if let Err(error) = ran.unwrap_or_else(|_| Err(io::Error::other("a thread panicked"))) {
        news.send(News::Failed(error));
    }
}

struct LoadThread {
    shared: Rc<ThreadShared>,
    number: u64,
    panics: Rc<ClientPanics>,
}

impl LoadThread {
    fn new(plan: Arc<RunPlan>, number: u64) -> io::Result<Self> {
        let script = plan.script.as_ref().map(Scripted::load).transpose();
        let shared = ThreadShared {
            script: script.map_err(io::Error::other)?,
            // Threads share out the requests of a run: by number in an open loop, else in parts.
            started: Cell::new(match (plan.rate, plan.requests) {
                (None, Some(total)) => plan.first(number, total),
                _ => number,
            }),
            transport: plan.tls.as_ref().map(own_transport),
            plan,
            pace: Pace::default(),
            tally: RefCell::default(),
            last_reply: Cell::new(None),
            starts_over: Cell::new(None),
            told: Cell::new(0),
            on_cpu_most: Cell::default(),
            halted: RefCell::default(),
            window: Cell::new(None),
        };
        Ok(Self { shared: Rc::new(shared), number, panics: Rc::default() })
    }

    /// Runs the thread until it ends or one of its clients panics.
    async fn run_watched(
        self,
        orders: Mailbox<ThreadOrder>,
        news: &MailboxSender<News>,
    ) -> io::Result<()> {
        let panics = Rc::clone(&self.panics);
        let panicked = poll_fn(|cx| panics.poll_any(cx));
        let ended = until(self.run(orders, news), panicked).await;
        ended.unwrap_or_else(|| Err(io::Error::other("a client panicked")))
    }

    fn spawn_client(&self, client: impl Future<Output = ()> + 'static) -> Task {
        net::spawn(Rc::clone(&self.panics).watch(client))
    }

    async fn run(
        self,
        mut orders: Mailbox<ThreadOrder>,
        news: &MailboxSender<News>,
    ) -> io::Result<()> {
        let mut ended = self.ended(Duration::ZERO, Duration::ZERO);
        if let Some(ThreadOrder::Connect) = self.next_order(&mut orders).await {
            let clients = self.connect()?;
            let mut next = self.begin(&mut orders, news).await;
            while let Some(begin) = next.take() {
                ended = self.measure(begin, &mut orders, news).await?;
                if self.shared.plan.in_turns {
                    let nothing = self.ended(Duration::ZERO, Duration::ZERO);
                    news.send(News::Done(std::mem::replace(&mut ended, nothing)));
                    next = self.next_turn(&mut orders).await;
                }
            }
            clients.iter().for_each(Task::stop);
        }
        // A turn has told of itself. Another word would be taken for the end of a turn that other
        // threads have by then.
        if !self.shared.plan.in_turns {
            news.send(News::Done(ended));
        }
        // Its state is asked for until nobody can ask any more.
        while self.next_order(&mut orders).await.is_some() {}
        Ok(())
    }

    /// The next order that is no question.
    async fn next_order(&self, orders: &mut Mailbox<ThreadOrder>) -> Option<ThreadOrder> {
        loop {
            match (orders.next().await?, &self.shared.script) {
                (ThreadOrder::Ask(question), Some(script)) => question(script.script()),
                (ThreadOrder::Ask(_), None) => {}
                (order, _) => return Some(order),
            }
        }
    }

    fn connect(&self) -> io::Result<Vec<Task>> {
        let plan = &self.shared.plan;
        let mut address = plan.address.clone();
        if let Some(script) = &self.shared.script {
            script.begin().map_err(io::Error::other)?;
            if script.at_once() > 1 && (plan.requests.is_some() || plan.rate.is_some()) {
                return Err(io::Error::other(SEVERAL_AT_ONCE));
            }
            if let Some(own) = script.script().addr() {
                address = Address::Ip(own);
            }
        }
        let address = Rc::new(address);
        let spawn = |number| {
            let (shared, number) = (Rc::clone(&self.shared), number * plan.threads + self.number);
            if plan.scheme == TargetScheme::Udp {
                let client = DatagramClient::new(shared, &address, number);
                return client.map(|client| self.spawn_client(client.run()));
            }
            if let Some(streams) = plan.streams {
                let client = LoadHttp2Client::new(shared, Rc::clone(&address), number, streams);
                return Some(self.spawn_client(client.run()));
            }
            let client = LoadClient::new(shared, Rc::clone(&address), number);
            Some(self.spawn_client(client.run()))
        };
        Ok((0..plan.share(self.number, plan.connections)).filter_map(spawn).collect())
    }

    /// Waits for the connections, and then for the word to begin.
    async fn begin(
        &self,
        orders: &mut Mailbox<ThreadOrder>,
        news: &MailboxSender<News>,
    ) -> Option<Instant> {
        until(self.quiet(), stop(orders)).await?;
        news.send(News::Ready);
        match orders.next().await? {
            ThreadOrder::Go(begin) => Some(begin),
            _ => None,
        }
    }

    /// When the next turn begins; it finds everything as the first one did.
    async fn next_turn(&self, orders: &mut Mailbox<ThreadOrder>) -> Option<Instant> {
        let Some(ThreadOrder::Go(begin)) = self.next_order(orders).await else { return None };
        self.shared.starts_over.set(None);
        self.shared.last_reply.set(None);
        Some(begin)
    }

    async fn measure(
        &self,
        begin: Instant,
        orders: &mut Mailbox<ThreadOrder>,
        news: &MailboxSender<News>,
    ) -> io::Result<Ended> {
        let mut alarm = Alarm::new()?;
        alarm.wait_until(begin).await;
        let on_cpu = net::clock::thread_cpu();
        // What a turn counts it tells at its end.
        let seconds = (!self.shared.plan.in_turns)
            .then(|| net::spawn(tell_seconds(Rc::clone(&self.shared), begin, alarm, news.clone())));
        let halted = poll_fn(|cx| self.shared.poll_halted(cx));
        let load = until(self.load(begin), halted);
        until(load, stop(orders)).await.flatten().transpose()?;
        seconds.iter().for_each(Task::stop);
        Ok(self.ended(self.elapsed(begin), net::clock::thread_cpu() - on_cpu))
    }

    fn ended(&self, elapsed: Duration, on_cpu: Duration) -> Ended {
        let mut tally = self.shared.tally.take();
        tally.unsent = self.shared.pace.unsent();
        // A run that is shorter than a sample is one.
        if tally.rate.is_empty() && elapsed < SAMPLE && !elapsed.is_zero() {
            note(&mut tally.rate, (tally.replies as f64 / elapsed.as_secs_f64()) as u64);
        }
        if let Some(script) = &self.shared.script {
            script.script().flush();
        }
        let why = self.shared.halted.borrow_mut().why.take();
        let failed = why.and_then(Result::err);
        let (told, on_cpu_most) = (self.shared.told.get(), self.shared.on_cpu_most.get());
        let window = self.shared.window.take();
        Ended { tally, elapsed, on_cpu, on_cpu_most, told, failed, window }
    }

    /// Until every request has its reply, or the time is up.
    async fn load(&self, begin: Instant) -> io::Result<()> {
        let plan = &self.shared.plan;
        let end = plan.duration.map(|duration| begin + duration);
        if plan.rate.is_some() {
            return self.load_open(begin).await;
        }
        let requests = plan.requests.map_or(u64::MAX, |total| plan.share(self.number, total));
        let at_once = self.shared.script.as_ref().map_or(plan.pipeline, Scripted::at_once);
        self.shared.pace.begin_closed(at_once, requests);
        match end {
            None => self.quiet().await,
            Some(end) if plan.in_turns => self.closed_turn(begin, end).await?,
            Some(end) => {
                let mut alarm = Alarm::new()?;
                until(self.quiet(), alarm.wait_until(end)).await;
            }
        }
        Ok(())
    }

    /// A turn of a closed loop. Its rate is that of the time in which every connection is at work;
    /// everything else is counted to the last reply, or slow ones would go missing.
    async fn closed_turn(&self, begin: Instant, end: Instant) -> io::Result<()> {
        let mut alarm = Alarm::new()?;
        let replies = || self.shared.tally.borrow().replies;
        alarm.wait_until(begin + (end - begin) / RAMP_UP).await;
        let (from, before) = (Instant::now(), replies());
        alarm.wait_until(end).await;
        self.shared.window.set(Some((replies() - before, from.elapsed())));
        self.shared.pace.end();
        self.shared.starts_over.set(Some(Instant::now()));
        self.drain(&mut alarm).await;
        Ok(())
    }

    /// Until all requests have their replies, or have had their time. Those whose time has come and
    /// that were not sent by then never are.
    async fn drain(&self, alarm: &mut Alarm) {
        let timeout = self.shared.plan.timeout + TIMER_SLACK;
        if until(self.quiet(), alarm.wait_until(Instant::now() + timeout)).await.is_none() {
            self.shared.pace.drop_due();
            until(self.quiet(), alarm.wait_until(Instant::now() + timeout)).await;
        }
    }

    /// Gives turns by the clock. What is on its way when the time is up still has the time that
    /// every request has: without it the slowest replies would go missing.
    async fn load_open(&self, begin: Instant) -> io::Result<()> {
        let (plan, pace) = (&self.shared.plan, &self.shared.pace);
        let Some(rate) = plan.rate else { return Ok(()) };
        pace.begin_open();
        let (mut alarm, end) = (Alarm::new()?, plan.starts_end());
        let (mut now, mut given) = (Instant::now(), 0);
        for n in (self.number..plan.requests.unwrap_or(u64::MAX)).step_by(plan.threads as usize) {
            let after = rate.start_of(n);
            let Some(at) = begin.checked_add(after).filter(|_| after < end) else { break };
            if at > now || given == GIVEN_MAX {
                (now, given) = (reach(&mut alarm, at).await, 0);
            }
            given += 1;
            pace.due(at);
        }
        if let Some(end) = begin.checked_add(end) {
            alarm.wait_until(end).await;
        }
        pace.end();
        self.shared.starts_over.set(Some(Instant::now()));
        if plan.in_turns {
            self.drain(&mut alarm).await;
            return Ok(());
        }
        until(self.quiet(), alarm.wait_until(Instant::now() + plan.timeout)).await;
        // They have had it, whether or not their own timers have told.
        self.shared.tally.borrow_mut().errors.timeout += pace.busy();
        Ok(())
    }

    /// Until every client is idle, and none has anything to do.
    async fn quiet(&self) {
        poll_fn(|cx| self.shared.pace.poll_quiet(cx)).await;
    }

    /// How long requests were sent and waited for. In an open loop that is the time of starts, or
    /// until the last reply: waiting for replies that never come is not part of it.
    fn elapsed(&self, begin: Instant) -> Duration {
        let over = self.shared.starts_over.get();
        let end = over.map(|over| self.shared.last_reply.get().map_or(over, |last| last.max(over)));
        end.unwrap_or_else(Instant::now).saturating_duration_since(begin)
    }
}

fn own_transport(of_all: &ClientTransport) -> Arc<dyn Transport> {
    let ClientTransport { tls, name } = of_all;
    Arc::new(ClientTransport { tls: tls.with_own_sessions(), name: name.clone() })
}

/// Once a second what was counted in it.
async fn tell_seconds(
    shared: Rc<ThreadShared>,
    begin: Instant,
    mut alarm: Alarm,
    news: MailboxSender<News>,
) {
    let (mut seen, mut before) = (0, begin);
    let mut on_cpu = net::clock::thread_cpu();
    for sample in 1.. {
        alarm.wait_until(begin + SAMPLE * sample).await;
        let mut tally = shared.tally.borrow_mut();
        let now = Instant::now();
        // As in wrk a stretch without replies belongs to the next sample.
        if tally.replies > seen {
            let seconds = now.saturating_duration_since(before).as_secs_f64();
            let rate = (tally.replies - seen) as f64 / seconds;
            note(&mut tally.rate, rate as u64);
            (seen, before) = (tally.replies, now);
        }
        if sample % SAMPLES_PER_SECOND == 0 {
            let number = (sample / SAMPLES_PER_SECOND) as usize;
            news.send(News::Second(number, std::mem::take(&mut tally)));
            shared.told.set(number);
            let spent = net::clock::thread_cpu() - on_cpu;
            shared.on_cpu_most.set(shared.on_cpu_most.get().max(spent));
            on_cpu += spent;
            seen = 0;
        }
    }
}

/// Waits until then. Where it has come already, whoever else has something to do does it first: at
/// a rate that nobody can keep up with that is always so.
async fn reach(alarm: &mut Alarm, at: Instant) -> Instant {
    match Instant::now() < at {
        true => alarm.wait_until(at).await,
        false => net::yield_now().await,
    }
    Instant::now()
}

/// Until there is no more to do: somebody says so, or is gone.
async fn stop(orders: &mut Mailbox<ThreadOrder>) {
    let _ = orders.next().await;
}

/// The result of the work, unless the end comes first.
async fn until<T>(work: impl Future<Output = T>, end: impl Future<Output = ()>) -> Option<T> {
    let (mut work, mut end) = (pin!(work), pin!(end));
    poll_fn(|cx| match work.as_mut().poll(cx) {
        Poll::Ready(done) => Poll::Ready(Some(done)),
        Poll::Pending => end.as_mut().poll(cx).map(|()| None),
    })
    .await
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::*;
    use crate::command::CalledAs;
    use crate::settings::{LoadSettings, RequestedRun};

    #[test]
    fn a_thread_ends_with_an_error_if_a_client_panics() {
        let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let words = [OsString::from(format!("http://{}/", server.local_addr().unwrap()))];
        let Ok(RequestedRun::Load(settings)) = LoadSettings::read(&words, CalledAs::Load) else {
            panic!("a run was asked for")
        };
        let plan = Arc::new(settings.plan().unwrap());
        let (orders, ordered) = net::mailbox();
        let (news, _heard) = net::mailbox();
        let ended = net::run(async {
            let thread = LoadThread::new(plan, 0).unwrap();
            thread.spawn_client(async { panic!("on purpose") });
            // Without the panic, the thread ends as soon as nobody can give it orders.
            net::spawn(async move {
                for _ in 0..8 {
                    net::yield_now().await;
                }
                drop(orders);
            });
            thread.run_watched(ordered, &news).await
        });
        assert_eq!(ended.unwrap().unwrap_err().to_string(), "a client panicked");
    }
}
