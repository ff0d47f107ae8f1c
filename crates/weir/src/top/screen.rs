//! The terminal while `weir top` runs: keys, signals and data come in, one view after the other
//! goes out. Whatever ends it, the terminal is as before.

use std::io::{self, Read, Write};
use std::process::ExitCode;
use std::time::Duration;

use net::signals::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGWINCH, SignalNumber, Signals};
use net::{MailboxSender, RawTerminal, mailbox};
use serde_json::Value;

use super::arguments::TopArguments;
use super::figures::TopFigures;
use super::growth::TopSnapshot;
use super::keys::{self, TopKey};
use super::source::TopSource;
use super::view::{LineStyle, ORDERS, PAGES, TopView, ViewLine, quiet};

const SIGNALS: [SignalNumber; 5] = [SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH];
/// What a shell calls the end by a signal.
const SIGNALLED: i32 = 128;
/// The size of a terminal that does not know its own.
const UNKNOWN_SIZE: (usize, usize) = (80, 24);

enum TopEvent {
    Keys(Vec<u8>),
    Signal(SignalNumber),
    Data(Result<Value, String>),
}

/// Runs until a key or a signal ends it.
pub(super) fn run(source: TopSource, arguments: &TopArguments) -> Result<ExitCode, String> {
    if net::terminal_size().is_none() {
        return Err("standard output is not a terminal; --once prints to a pipe".into());
    }
    let ended = net::run(live(source, arguments.delay));
    ended.map_err(|error| error.to_string())?
}

async fn live(mut source: TopSource, delay: Duration) -> Result<ExitCode, String> {
    let told = |error: io::Error| error.to_string();
    // Threads inherit that signals are blocked.
    let signals = Signals::take(&SIGNALS).map_err(told)?;
    let mut top = Top::new(source.url.clone());
    // What is wrong with the URL is told on an ordinary screen.
    top.take(Ok(source.fetch().await?));
    let screen = TopScreen::open().map_err(told)?;
    let (sender, mut events) = mailbox();
    let keys = sender.clone();
    std::thread::spawn(move || read_keys(&keys));
    let noted = sender.clone();
    net::spawn(async move {
        let _ = signals.each(|signal| noted.send(TopEvent::Signal(signal.number))).await;
    });
    net::spawn(async move {
        loop {
            net::sleep(delay).await;
            sender.send(TopEvent::Data(source.fetch().await));
        }
    });
    loop {
        screen.draw(&mut top).map_err(told)?;
        match events.next().await {
            Some(TopEvent::Keys(bytes)) => {
                if !keys::parse(&bytes).into_iter().all(|key| top.press(key)) {
                    return Ok(ExitCode::SUCCESS);
                }
            }
            Some(TopEvent::Signal(SIGWINCH)) => {}
            Some(TopEvent::Signal(number)) => {
                return Ok(
                    u8::try_from(SIGNALLED + number).map_or(ExitCode::FAILURE, ExitCode::from)
                );
            }
            Some(TopEvent::Data(data)) => top.take(data),
            None => return Ok(ExitCode::SUCCESS),
        }
    }
}

/// Sends what is typed. Ends when the terminal does; the signal tells then.
fn read_keys(events: &MailboxSender<TopEvent>) {
    let mut bytes = [0; 64];
    while let Ok(count @ 1..) = io::stdin().lock().read(&mut bytes) {
        events.send(TopEvent::Keys(bytes[..count].to_vec()));
    }
}

/// What is known and chosen.
struct Top {
    url: String,
    view: TopView,
    now: Option<TopSnapshot>,
    figures: Option<TopFigures>,
    failure: Option<String>,
    is_paused: bool,
}

impl Top {
    fn new(url: String) -> Self {
        let view = TopView::default();
        Self { url, view, now: None, figures: None, failure: None, is_paused: false }
    }

    fn take(&mut self, data: Result<Value, String>) {
        if self.is_paused {
            return;
        }
        match data {
            Ok(tree) => {
                let next = TopSnapshot::of(tree);
                let figures = TopFigures::new(&next, self.now.as_ref());
                self.view.note(&figures);
                (self.now, self.figures, self.failure) = (Some(next), Some(figures), None);
            }
            // Differences across a gap would be averages of the gap.
            Err(why) => (self.now, self.failure) = (None, Some(why)),
        }
    }

    /// False ends the program.
    fn press(&mut self, key: TopKey) -> bool {
        let view = &mut self.view;
        match key {
            TopKey::Quit => return false,
            TopKey::Page(page) => (view.page, view.skipped) = (PAGES[page], 0),
            TopKey::NextPage => (view.page, view.skipped) = (next(&PAGES, view.page), 0),
            TopKey::NextOrder => (view.order, view.reversed) = (next(&ORDERS, view.order), false),
            TopKey::Reverse => view.reversed = !view.reversed,
            TopKey::Pause => self.is_paused = !self.is_paused,
            TopKey::Scroll(lines) => view.skipped = view.skipped.saturating_add_signed(lines),
            TopKey::Top => view.skipped = 0,
        }
        true
    }

    fn lines(&mut self, rows: usize) -> Vec<ViewLine> {
        let last = match &self.failure {
            Some(why) => ViewLine { style: LineStyle::Bad, text: format!("no data: {why}") },
            None if self.is_paused => quiet("paused; Space goes on".into()),
            None => quiet(format!(
                "1 all  2 sites  3 upstreams  4 slow   s order: {:?}   r reverse   q quit   {}",
                self.view.order, self.url
            )),
        };
        match &self.figures {
            Some(figures) => self.view.lines(figures, last, rows),
            None => vec![last],
        }
    }
}

/// The one after, in a circle.
fn next<T: Copy + PartialEq>(all: &[T], one: T) -> T {
    let at = all.iter().position(|other| *other == one).unwrap_or(0);
    all[(at + 1) % all.len()]
}

/// The terminal's second screen, in which keys come one by one. Dropping it shows the first again.
struct TopScreen {
    has_colours: bool,
    _raw: RawTerminal,
}

impl TopScreen {
    fn open() -> io::Result<Self> {
        let raw = RawTerminal::enter()?;
        let has_colours = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        let screen = Self { has_colours, _raw: raw };
        // The second screen, without a cursor, where long lines do not wrap.
        write_all("\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[2J")?;
        Ok(screen)
    }

    fn draw(&self, top: &mut Top) -> io::Result<()> {
        let (columns, rows) = match net::terminal_size() {
            Some((columns, rows)) if columns > 0 && rows > 0 => (columns, rows),
            _ => UNKNOWN_SIZE,
        };
        let mut text = String::from("\x1b[H");
        let lines = top.lines(rows);
        for (at, line) in lines.iter().enumerate() {
            // The last line is at the bottom.
            if at + 1 == lines.len() {
                text += &format!("\x1b[J\x1b[{rows};1H");
            }
            text += &line.written(columns, self.has_colours);
            text += if at + 1 == lines.len() { "\x1b[K" } else { "\x1b[K\r\n" };
        }
        write_all(&text)
    }
}

impl Drop for TopScreen {
    fn drop(&mut self) {
        let _ = write_all("\x1b[?7h\x1b[?25h\x1b[?1049l");
    }
}

fn write_all(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}
