//! A run: threads are started, connect, begin together, and are added up.

mod background;
mod background_exchange;
mod client;
mod datagrams;
mod director;
mod failure;
mod http2;
mod idle_client;
mod link;
mod opener;
mod pace;
mod panics;
pub mod plan;
pub mod schedule;
mod scripted;
mod seconds;
mod shared;
mod slow_client;
mod thread;
pub mod turns;

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use net::signals::{self, Signals};
use net::{Mailbox, MailboxSender, mailbox};

use crate::results::{LoadKind, Results, Second};
use director::Director;
use plan::RunPlan;
use seconds::SecondCounts;
use thread::{ENDING, Ended, News, ThreadOrder};

/// The time from the last established connection to the first request.
const START_AHEAD: Duration = Duration::from_millis(5);

pub struct FinishedRun {
    pub results: Results,
    /// The error of a failed script, which ended it.
    pub failed: Option<String>,
    director: Option<Director>,
    /// Keeps the script states of threads alive.
    _orders: Vec<MailboxSender<ThreadOrder>>,
}

impl FinishedRun {
    /// Calls `done` of the script. An endless one can be interrupted.
    pub fn say_done(&self) -> Result<(), String> {
        let Some(director) = &self.director else { return Ok(()) };
        signals::unblock(ENDING).map_err(|error| error.to_string())?;
        director.done(&self.results).map_err(|error| error.to_string())
    }
}

/// Runs a plan. `begins` is called when scripts have begun and their output was printed; `watch`
/// gets every second at its end.
pub fn run(
    plan: &RunPlan,
    begins: &mut dyn FnMut() -> Result<(), String>,
    watch: &mut dyn FnMut(&Second),
) -> Result<FinishedRun, String> {
    let run = async {
        let (news, heard) = mailbox();
        // Until scripts have begun, a signal ends the program, because there are no results.
        signals::set_default(ENDING)?;
        let run = RunThreads::start(plan, &news)?;
        let signals = Signals::take(ENDING)?;
        begins().map_err(io::Error::other)?;
        run.tell_all(|| ThreadOrder::Connect);
        net::spawn(async move {
            let _ = signals.each(|_| news.send(News::Interrupt)).await;
        });
        run.finish(heard, watch).await
    };
    net::run(run).and_then(|done| done).map_err(|error| explained(&error, plan))
}

fn explained(error: &io::Error, plan: &RunPlan) -> String {
    match error.raw_os_error() {
        Some(net::listening::EMFILE) => {
            format!("{error}: ulimit -n is too low for {} connections", plan.connections)
        }
        _ => error.to_string(),
    }
}

struct RunThreads {
    plan: Arc<RunPlan>,
    orders: Vec<MailboxSender<ThreadOrder>>,
    director: Option<Director>,
    began: Instant,
    began_unix_ms: u64,
    interrupted: bool,
    ready: usize,
    ended: Vec<Ended>,
    seconds: SecondCounts,
}

impl RunThreads {
    fn start(plan: &RunPlan, news: &MailboxSender<News>) -> io::Result<Self> {
        let plan = Arc::new(plan.clone());
        let director = plan.script.as_ref().map(Director::load).transpose();
        let director = director.map_err(io::Error::other)?;
        let mut orders = Vec::new();
        for number in 0..plan.threads {
            let (sender, receiver) = mailbox();
            let (shared, news) = (Arc::clone(&plan), news.clone());
            std::thread::Builder::new()
                .name(format!("load {number}"))
                .spawn(move || thread::run(shared, number, receiver, &news))?;
            if let (Some(director), Some(script)) = (&director, &plan.script) {
                director.begin(&sender, script).map_err(io::Error::other)?;
            }
            orders.push(sender);
        }
        Ok(Self {
            plan,
            seconds: SecondCounts::of(orders.len()),
            orders,
            director,
            began: Instant::now(),
            began_unix_ms: unix_ms(),
            interrupted: false,
            ready: 0,
            ended: Vec::new(),
        })
    }

    async fn finish(
        mut self,
        mut heard: Mailbox<News>,
        watch: &mut dyn FnMut(&Second),
    ) -> io::Result<FinishedRun> {
        while self.ended.len() < self.orders.len() {
            match heard.next().await {
                Some(News::Ready) => self.is_ready(),
                Some(News::Second(number, tally)) => self.seconds.report(number, &tally),
                Some(News::Done(ended)) => self.has_ended(ended),
                Some(News::Failed(error)) => return Err(error),
                // An endless script cannot be stopped otherwise.
                Some(News::Interrupt) if self.interrupted => {
                    return Err(io::Error::other("interrupted again before the run could end"));
                }
                Some(News::Interrupt) => {
                    self.interrupted = true;
                    self.tell_all(|| ThreadOrder::Stop);
                }
                None => break,
            }
            while let Some(second) = self.seconds.next() {
                watch(second);
            }
        }
        let failed = self.ended.iter().find_map(|ended| ended.failed.clone());
        let orders = std::mem::take(&mut self.orders);
        let director = self.director.take();
        Ok(FinishedRun { results: self.results(watch), failed, director, _orders: orders })
    }

    /// Stops all threads if a script has failed.
    fn has_ended(&mut self, ended: Ended) {
        if ended.failed.is_some() {
            self.tell_all(|| ThreadOrder::Stop);
        }
        self.seconds.ended(ended.reported, &ended.tally);
        self.ended.push(ended);
    }

    /// Once all connections are established, all threads begin at the same time.
    fn is_ready(&mut self) {
        self.ready += 1;
        if self.ready == self.orders.len() {
            self.began = Instant::now() + START_AHEAD;
            self.began_unix_ms = unix_ms() + START_AHEAD.as_millis() as u64;
            let begin = self.began;
            self.tell_all(|| ThreadOrder::Go(begin));
        }
    }

    fn tell_all(&self, order: impl Fn() -> ThreadOrder) {
        for thread in &self.orders {
            thread.send(order());
        }
    }

    fn results(self, watch: &mut dyn FnMut(&Second)) -> Results {
        let elapsed = self.ended.iter().map(|ended| ended.elapsed).max().unwrap_or_default();
        let (seconds, tally) = self.seconds.finish(elapsed.as_secs_f64(), watch);
        Results {
            urls: self.plan.urls.clone(),
            threads: self.plan.threads,
            connections: self.plan.connections,
            duration: self.plan.duration,
            pace: match self.plan.rate {
                None => LoadKind::Closed,
                Some(rate) => {
                    let end = elapsed.min(self.plan.starts_end());
                    LoadKind::Open { from: rate.from, to: rate.at(end) }
                }
            },
            began_unix_ms: self.began_unix_ms,
            elapsed,
            tally,
            seconds,
            cpu: self.ended.iter().map(|ended| ended.on_cpu).sum(),
            busiest_thread: self.ended.iter().map(Ended::busiest).fold(0.0, f64::max),
            interrupted: self.interrupted,
            judged: Vec::new(),
        }
    }
}

fn unix_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64
}

#[cfg(test)]
mod tests;
