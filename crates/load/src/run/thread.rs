//! A thread of a run: its clients, its share of the schedule, its tally.
//!
//! ```text
//! (Ask) --Connect--> clients connect --all have--> Ready --Go--> requests --no more--> Done (Ask)
//!                                                                   `- every second: Second
//! ```

use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use net::signals::{self, SIGINT, SIGTERM};
use net::{Address, Alarm, Mailbox, MailboxSender, Task};

use super::client::LoadClient;
use super::datagrams::DatagramClient;
use super::http2::LoadHttp2Client;
use super::idle_client::IdleClient;
use super::panics::ClientPanics;
use super::plan::RunPlan;
use super::scripted::Scripted;
use super::shared::{ThreadShared, note};
use super::slow_client::SlowClient;
use crate::results::RunStats;
use crate::script::Script;
use crate::target::TargetScheme;

/// The signals that interrupt a run.
pub(super) const ENDING: &[signals::SignalNumber] = &[SIGINT, SIGTERM];

pub(super) enum ThreadOrder {
    /// A question to its script.
    Ask(Box<dyn FnOnce(&Script) + Send>),
    Connect,
    /// Start requests at this time.
    Go(Instant),
    Stop,
}

/// Reports of a thread.
pub(super) enum News {
    /// Its connections are established, as far as possible.
    Ready,
    /// Its counts of a second.
    Second(usize, RunStats),
    Done(Ended),
    Failed(io::Error),
    Interrupt,
}

/// A thread's end.
pub(super) struct Ended {
    /// Its counts since its last second.
    pub(super) tally: RunStats,
    /// The time of sending requests and waiting for replies.
    pub(super) elapsed: Duration,
    /// Its CPU time.
    pub(super) on_cpu: Duration,
    /// The highest CPU time of a second.
    pub(super) on_cpu_most: Duration,
    /// The number of reported seconds.
    pub(super) reported: usize,
    /// The error of its script, if that has failed.
    pub(super) failed: Option<String>,
    /// The replies and the time from which the rate of a turn in a closed loop is computed.
    pub(super) window: Option<(u64, Duration)>,
}

impl Ended {
    /// Replies per second in the window, if there is one.
    pub(super) fn window_rate(&self) -> Option<f64> {
        self.window.map(|(replies, time)| replies as f64 / time.as_secs_f64())
    }

    /// The highest share of a second that it used a CPU; of the whole time, if that is shorter.
    pub(super) fn busiest(&self) -> f64 {
        match self.reported {
            0 => self.on_cpu.as_secs_f64() / self.elapsed.as_secs_f64(),
            _ => self.on_cpu_most.as_secs_f64(),
        }
    }
}

/// A script that pipelines returns several requests at once, which cannot be counted or timed.
const SEVERAL_AT_ONCE: &str = "--requests and --rate cannot be used with a script that pipelines";

/// The most due turns to give before the clients run.
const GIVEN_MAX: u32 = 1024;

/// The part of a turn, as its inverse, in which a closed loop warms up.
const RAMP_UP: u32 = 10;
/// The tolerance of coarse timers.
const TIMER_SLACK: Duration = Duration::from_millis(500);

/// The interval of samples of the rate, as in wrk.
const SAMPLE: Duration = Duration::from_millis(100);
const SAMPLES_PER_SECOND: u32 = 10;

pub(super) fn run(
    plan: Arc<RunPlan>,
    number: u64,
    orders: Mailbox<ThreadOrder>,
    news: &MailboxSender<News>,
) {
    let work = || {
        signals::block(ENDING)?;
        net::run(async { LoadThread::new(plan, number)?.run_watched(orders, news).await })?
    };
    let ran = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
    // A panic has printed its message.
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
        let shared = ThreadShared::new(plan, number)?;
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
        // A turn has reported itself. Another report would be taken for the end of a turn that
        // other threads have by then.
        if !self.shared.plan.in_turns {
            news.send(News::Done(ended));
        }
        // Answers questions to its script until the channel is closed.
        while self.next_order(&mut orders).await.is_some() {}
        Ok(())
    }

    /// The next order that is not a question.
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
        let clients = (0..plan.share(self.number, plan.connections)).filter_map(spawn);
        let clients: Vec<Task> = clients.collect();
        Ok(clients.into_iter().chain(self.connect_background(&address)).collect())
    }

    /// Opens the connections beside the measured load.
    fn connect_background(&self, address: &Rc<Address>) -> Vec<Task> {
        let plan = &self.shared.plan;
        let client = |number: u64| {
            let number = number * plan.threads + self.number;
            (Rc::clone(&self.shared), Rc::clone(address), number)
        };
        let idle = (0..plan.share(self.number, plan.background.idle)).map(|number| {
            let (shared, address, number) = client(number);
            self.spawn_client(IdleClient::new(shared, address, number).run())
        });
        let slow = (0..plan.share(self.number, plan.background.slow)).map(|number| {
            let (shared, address, number) = client(number);
            self.spawn_client(SlowClient::new(shared, address, number).run())
        });
        idle.chain(slow).collect()
    }

    /// Waits for the connections, and then for the order to begin.
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

    /// Waits for the next turn, and resets the state for it.
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
        self.shared.background.set_measured(true);
        // A turn reports its counts at its end.
        let seconds = (!self.shared.plan.in_turns).then(|| {
            net::spawn(report_seconds(Rc::clone(&self.shared), begin, alarm, news.clone()))
        });
        let halted = poll_fn(|cx| self.shared.poll_halted(cx));
        let load = until(self.load(begin), halted);
        until(load, stop(orders)).await.flatten().transpose()?;
        seconds.iter().for_each(Task::stop);
        self.shared.background.set_measured(false);
        Ok(self.ended(self.elapsed(begin), net::clock::thread_cpu() - on_cpu))
    }

    fn ended(&self, elapsed: Duration, on_cpu: Duration) -> Ended {
        let mut tally = self.shared.tally.take();
        tally.unsent = self.shared.pace.unsent();
        let plan = &self.shared.plan;
        let share = |total| plan.share(self.number, total);
        tally.background.add(&self.shared.background.tell(&plan.background, share));
        // A run that is shorter than a sample counts as one.
        if tally.rate.is_empty() && elapsed < SAMPLE && !elapsed.is_zero() {
            note(&mut tally.rate, (tally.replies as f64 / elapsed.as_secs_f64()) as u64);
        }
        if let Some(script) = &self.shared.script {
            script.script().flush();
        }
        let why = self.shared.take_halted();
        let failed = why.and_then(Result::err);
        let (reported, on_cpu_most) = (self.shared.reported.get(), self.shared.on_cpu_most.get());
        let window = self.shared.window.take();
        Ended { tally, elapsed, on_cpu, on_cpu_most, reported, failed, window }
    }

    /// Runs until every request has its reply, or the duration is over.
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

    /// A turn of a closed loop. Its rate is that of the time in which every connection is busy;
    /// other figures include all replies up to the last, because slow ones would be missing
    /// otherwise.
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

    /// Waits until all requests have their replies or have timed out. Due requests that were not
    /// sent by then are dropped.
    async fn drain(&self, alarm: &mut Alarm) {
        let timeout = self.shared.plan.timeout + TIMER_SLACK;
        if until(self.quiet(), alarm.wait_until(Instant::now() + timeout)).await.is_none() {
            self.shared.pace.drop_due();
            until(self.quiet(), alarm.wait_until(Instant::now() + timeout)).await;
        }
    }

    /// Gives turns by the clock. Requests in progress at the end still have their whole timeout,
    /// because the slowest replies would be missing otherwise.
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
        // They have timed out, whether or not their own timers have fired.
        self.shared.tally.borrow_mut().errors.timeout += pace.busy();
        Ok(())
    }

    /// Waits until every client is idle and no turn is left.
    async fn quiet(&self) {
        poll_fn(|cx| self.shared.pace.poll_quiet(cx)).await;
    }

    /// The time of sending requests and waiting for replies. In an open loop, it ends with the
    /// starts or the last reply, and excludes waiting for missing replies.
    fn elapsed(&self, begin: Instant) -> Duration {
        let over = self.shared.starts_over.get();
        let end = over.map(|over| self.shared.last_reply.get().map_or(over, |last| last.max(over)));
        end.unwrap_or_else(Instant::now).saturating_duration_since(begin)
    }
}

/// Reports the counts once a second.
async fn report_seconds(
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
        // As in wrk, time without replies belongs to the next sample.
        if tally.replies > seen {
            let seconds = now.saturating_duration_since(before).as_secs_f64();
            let rate = (tally.replies - seen) as f64 / seconds;
            note(&mut tally.rate, rate as u64);
            (seen, before) = (tally.replies, now);
        }
        if sample % SAMPLES_PER_SECOND == 0 {
            let number = (sample / SAMPLES_PER_SECOND) as usize;
            news.send(News::Second(number, std::mem::take(&mut tally)));
            shared.reported.set(number);
            let spent = net::clock::thread_cpu() - on_cpu;
            shared.on_cpu_most.set(shared.on_cpu_most.get().max(spent));
            on_cpu += spent;
            seen = 0;
        }
    }
}

/// Waits until `at`. If that has passed, other tasks still run first, because at a rate that is too
/// high it has always passed.
async fn reach(alarm: &mut Alarm, at: Instant) -> Instant {
    match Instant::now() < at {
        true => alarm.wait_until(at).await,
        false => net::yield_now().await,
    }
    Instant::now()
}

/// Waits for the order to stop, or the end of the channel.
async fn stop(orders: &mut Mailbox<ThreadOrder>) {
    let _ = orders.next().await;
}

/// The result of `work`, unless `end` is ready first.
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
    use crate::called_as::CalledAs;
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
            // Without the panic, the thread ends when the channel of orders is closed.
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
