//! Servers that are loaded in turns: two within one run, or one whenever the caller says so, which
//! has turns of other servers in between.
//!
//! ```text
//! (connect A, connect B, a turn of each to warm up, 4 turns: ABBA or BAAB) for each block
//! ```
//!
//! While one server has its turn, nothing is in progress at the other: a turn ends when every
//! request has its reply or has timed out. The order within a block is random, so changes of the
//! machine, slow or in step with the turns, favour neither server. Each block opens new
//! connections, because the assignment of connections to a server's threads is random, and if it
//! lasted for a whole run it would look like a difference.

use std::future::poll_fn;
use std::io;
use std::task::Poll;
use std::time::{Duration, Instant};

use net::signals::Signals;
use net::{Mailbox, MailboxSender, mailbox};

use super::plan::RunPlan;
use super::thread::{ENDING, Ended, News, ThreadOrder};
use super::{RunThreads, START_AHEAD, explained, unix_ms};
use crate::results::{
    ComparedSide, LoadKind, MeasuredTurn, Moment, Results, RunStats, Second, TurnBlock, Turns,
};

/// Loads both servers. `watch` gets each block at its end.
pub fn run_in_turns(
    plans: &[RunPlan; 2],
    blocks: u64,
    watch: &mut dyn FnMut(&TurnBlock),
) -> Result<Turns, String> {
    let run = async {
        let alternation = Alternation {
            plans,
            turns: TurnTaker::new()?,
            began: Instant::now(),
            began_unix_ms: unix_ms(),
            sides: Default::default(),
            interrupted: false,
        };
        alternation.run(blocks, watch).await
    };
    net::run(run).and_then(|done| done).map_err(|error| explained(&error, &plans[0]))
}

/// Loads a server in turns, one for each message that a thread with `order` sends; its connections
/// stay open in between. `report` is given the rate of a turn and all that was counted.
pub fn run_on_demand(
    plan: &RunPlan,
    order: impl FnOnce(MailboxSender<()>) + Send + 'static,
    report: &mut dyn FnMut(f64, &Results) -> Result<(), String>,
) -> Result<(), String> {
    let run = async {
        let mut turns = TurnTaker::new()?;
        // After signals are blocked, which threads inherit.
        let (sender, mut orders) = mailbox();
        std::thread::spawn(move || order(sender));
        let Some(run) = turns.connect(plan).await? else { return Ok(()) };
        while turns.is_ordered(&mut orders).await {
            let began_unix_ms = unix_ms();
            let Some(ended) = turns.turn(&run).await? else { break };
            let mut sum = TurnSum::default();
            let (rate, _) = sum.add(&ended);
            report(rate, &sum.results(plan, began_unix_ms, false)).map_err(io::Error::other)?;
        }
        Ok(())
    };
    net::run(run).and_then(|done| done).map_err(|error| explained(&error, plan))
}

struct Alternation<'p> {
    plans: &'p [RunPlan; 2],
    turns: TurnTaker,
    began: Instant,
    began_unix_ms: u64,
    sides: [TurnSum; 2],
    interrupted: bool,
}

/// Has the threads of a server take turns, until a signal ends the run.
struct TurnTaker {
    news: MailboxSender<News>,
    heard: Mailbox<News>,
}

/// What a server's turns add up to.
#[derive(Default)]
struct TurnSum {
    tally: RunStats,
    elapsed: Duration,
    cpu: Duration,
    busiest_thread: f64,
}

impl Alternation<'_> {
    async fn run(mut self, count: u64, watch: &mut dyn FnMut(&TurnBlock)) -> io::Result<Turns> {
        let mut blocks = Vec::new();
        for _ in 0..count {
            let Some(block) = self.block().await? else {
                self.interrupted = true;
                break;
            };
            watch(&block);
            blocks.push(block);
        }
        let [a, b] = std::mem::take(&mut self.sides);
        let sides = [self.results(0, a), self.results(1, b)];
        Ok(Turns { turn: self.plans[0].duration.unwrap_or_default(), sides, blocks })
    }

    /// Four turns; `None` if the run was interrupted. An incomplete block does not count.
    async fn block(&mut self) -> io::Result<Option<TurnBlock>> {
        let [a, b] = self.plans;
        let runs = [self.turns.connect(a).await?, self.turns.connect(b).await?];
        let [Some(a), Some(b)] = &runs else { return Ok(None) };
        let runs = [a, b];
        for run in runs {
            if self.turns.turn(run).await?.is_none() {
                return Ok(None);
            }
        }
        let mut turns = Vec::new();
        for side in order(net::system::random()) {
            let ended = self.turns.turn(runs[side as usize]).await?;
            let Some(ended) = ended else { return Ok(None) };
            turns.push((side, ended, self.began.elapsed()));
        }
        let turns = turns.into_iter().map(|(side, ended, at)| self.count(side, ended, at));
        Ok(Some(TurnBlock { turns: turns.collect() }))
    }

    fn count(&mut self, side: ComparedSide, ended: Vec<Ended>, at: Duration) -> MeasuredTurn {
        let (rate, tally) = self.sides[side as usize].add(&ended);
        let second = Second { at: at.as_secs_f64(), tally };
        MeasuredTurn { side, rate, moment: Moment::from(&second) }
    }

    fn results(&self, side: usize, sum: TurnSum) -> Results {
        sum.results(&self.plans[side], self.began_unix_ms, self.interrupted)
    }
}

impl TurnTaker {
    fn new() -> io::Result<Self> {
        let (news, heard) = mailbox();
        let signals = Signals::take(ENDING)?;
        let told = news.clone();
        net::spawn(async move {
            let _ = signals.each(|_| told.send(News::Interrupt)).await;
        });
        Ok(Self { news, heard })
    }

    /// Threads of a server, with their connections.
    async fn connect(&mut self, plan: &RunPlan) -> io::Result<Option<RunThreads>> {
        let run = RunThreads::start(plan, &self.news)?;
        run.tell_all(|| ThreadOrder::Connect);
        for _ in 0..run.orders.len() {
            loop {
                match self.heard.next().await {
                    Some(News::Ready) => break,
                    Some(News::Failed(error)) => return Err(error),
                    Some(News::Interrupt) | None => return Ok(None),
                    Some(News::Second(..) | News::Done(_)) => {}
                }
            }
        }
        Ok(Some(run))
    }

    /// Waits for the order to begin a turn. `false`: no more will come, or a signal ends the run.
    async fn is_ordered(&mut self, orders: &mut Mailbox<()>) -> bool {
        poll_fn(|cx| {
            while let Poll::Ready(news) = self.heard.poll_next(cx) {
                if matches!(news, Some(News::Interrupt) | None) {
                    return Poll::Ready(false);
                }
            }
            orders.poll_next(cx).map(|order| order.is_some())
        })
        .await
    }

    /// A turn of a server. Its connections are idle between its turns.
    async fn turn(&mut self, run: &RunThreads) -> io::Result<Option<Vec<Ended>>> {
        let begin = Instant::now() + START_AHEAD;
        run.tell_all(|| ThreadOrder::Go(begin));
        let mut ended = Vec::new();
        while ended.len() < run.orders.len() {
            match self.heard.next().await {
                Some(News::Done(one)) => ended.push(one),
                Some(News::Failed(error)) => return Err(error),
                Some(News::Interrupt) | None => return Ok(None),
                Some(News::Second(..) | News::Ready) => {}
            }
        }
        Ok(Some(ended))
    }
}

impl TurnSum {
    /// Adds a turn. Returns its replies a second while every connection was at work, and all that
    /// its threads counted.
    fn add(&mut self, ended: &[Ended]) -> (f64, RunStats) {
        let mut tally = RunStats::default();
        ended.iter().for_each(|ended| tally.add(&ended.tally));
        let elapsed = ended.iter().map(|ended| ended.elapsed).max().unwrap_or_default();
        let rate = match ended.iter().map(Ended::window_rate).sum::<Option<f64>>() {
            Some(rate) => rate,
            None => tally.replies as f64 / elapsed.as_secs_f64(),
        };
        self.tally.add(&tally);
        self.elapsed += elapsed;
        self.cpu += ended.iter().map(|ended| ended.on_cpu).sum::<Duration>();
        self.busiest_thread = ended.iter().map(Ended::busiest).fold(self.busiest_thread, f64::max);
        (rate, tally)
    }

    fn results(self, plan: &RunPlan, began_unix_ms: u64, interrupted: bool) -> Results {
        Results {
            urls: plan.urls.clone(),
            threads: plan.threads,
            connections: plan.connections,
            duration: plan.duration,
            pace: match plan.rate {
                None => LoadKind::Closed,
                Some(rate) => LoadKind::Open { from: rate.from, to: rate.to },
            },
            began_unix_ms,
            elapsed: self.elapsed,
            tally: self.tally,
            seconds: Vec::new(),
            cpu: self.cpu,
            busiest_thread: self.busiest_thread,
            interrupted,
            judged: Vec::new(),
        }
    }
}

/// The order of a block, from random bits.
pub(crate) fn order(random: u64) -> [ComparedSide; 4] {
    match random % 2 {
        0 => [ComparedSide::A, ComparedSide::B, ComparedSide::B, ComparedSide::A],
        _ => [ComparedSide::B, ComparedSide::A, ComparedSide::A, ComparedSide::B],
    }
}
