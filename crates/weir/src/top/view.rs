//! The lines of the screen. It only produces text; the screen knows the terminal and writes.

use std::cmp::Ordering;
use std::collections::VecDeque;

use super::amounts::{bytes, count, percent, span, time};
use super::figures::TopFigures;
use super::rows::{CacheRow, GroupRow, ServerRow, SiteKind, SiteRow, SlowRow, share};

/// What is chosen to be shown, and the rates so far.
#[derive(Default)]
pub(super) struct TopView {
    pub(super) page: TopPage,
    /// The column by which rows are sorted, of those that have an order.
    pub(super) order: TopOrder,
    pub(super) reversed: bool,
    /// The rows that are scrolled past.
    pub(super) skipped: usize,
    rates: VecDeque<f64>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum TopPage {
    #[default]
    All,
    Sites,
    Upstreams,
    Caches,
    Slow,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum TopOrder {
    #[default]
    Rate,
    Errors,
    Latency,
    Name,
}

pub(super) const PAGES: [TopPage; 5] =
    [TopPage::All, TopPage::Sites, TopPage::Upstreams, TopPage::Caches, TopPage::Slow];
pub(super) const ORDERS: [TopOrder; 4] =
    [TopOrder::Rate, TopOrder::Errors, TopOrder::Latency, TopOrder::Name];

/// How a line looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum LineStyle {
    #[default]
    Plain,
    Heading,
    Quiet,
    Bad,
}

#[derive(Debug)]
pub(super) struct ViewLine {
    pub(super) style: LineStyle,
    pub(super) text: String,
}

impl ViewLine {
    /// The line in so many columns. Control characters, which would be orders to the terminal, come
    /// out as question marks: names and requests are other people's text.
    pub(super) fn written(&self, columns: usize, has_colours: bool) -> String {
        let text: String = self.text.chars().take(columns).map(harmless).collect();
        match self.style {
            _ if !has_colours => text,
            LineStyle::Plain => text,
            LineStyle::Heading => format!("\x1b[1m{text}\x1b[0m"),
            LineStyle::Quiet => format!("\x1b[2m{text}\x1b[0m"),
            LineStyle::Bad => format!("\x1b[31m{text}\x1b[0m"),
        }
    }
}

fn harmless(c: char) -> char {
    if c.is_control() { '?' } else { c }
}

/// The most rates that are drawn.
const RATES_MAX: usize = 60;
/// The most warnings on a screen; more would leave no room.
const WARNINGS_MAX: usize = 5;
/// The rows of a table on the page with everything.
const FEW: usize = 8;

impl TopView {
    /// Everything without an end, for a pipe.
    pub(super) fn plain(figures: &TopFigures) -> String {
        let view = Self::default();
        let mut lines = view.head(figures);
        lines.extend(figures.warnings.iter().map(|words| bad(format!("! {words}"))));
        lines.extend(view.sites(figures, usize::MAX));
        lines.extend(view.upstreams(figures, usize::MAX));
        lines.extend(view.caches(figures, usize::MAX));
        lines.extend(view.slow(figures, usize::MAX));
        let text = |line: ViewLine| line.written(usize::MAX, false).trim_end().to_owned() + "\n";
        lines.into_iter().map(text).collect()
    }

    /// Remembers the rate of a snapshot.
    pub(super) fn note(&mut self, figures: &TopFigures) {
        self.rates.extend(figures.rate);
        while self.rates.len() > RATES_MAX {
            self.rates.pop_front();
        }
    }

    /// The lines that fit in so many rows; `words` is the last one.
    pub(super) fn lines(
        &mut self,
        figures: &TopFigures,
        words: ViewLine,
        rows: usize,
    ) -> Vec<ViewLine> {
        let mut lines = self.head(figures);
        lines.push(plain(self.history()));
        let warnings = figures.warnings.iter().take(WARNINGS_MAX);
        lines.extend(warnings.map(|words| bad(format!("! {words}"))));
        if let more @ 1.. = figures.warnings.len().saturating_sub(WARNINGS_MAX) {
            lines.push(bad(format!("! {more} more")));
        }
        let mut body = match self.page {
            TopPage::All => {
                let mut all = self.sites(figures, FEW);
                all.extend(self.upstreams(figures, FEW));
                if !figures.caches.is_empty() {
                    all.extend(self.caches(figures, FEW));
                }
                all.extend(self.slow(figures, FEW));
                all
            }
            TopPage::Sites => self.sites(figures, usize::MAX),
            TopPage::Upstreams => self.upstreams(figures, usize::MAX),
            TopPage::Caches => self.caches(figures, usize::MAX),
            TopPage::Slow => self.slow(figures, usize::MAX),
        };
        self.skipped = self.skipped.min(body.len().saturating_sub(1));
        body.drain(..self.skipped);
        lines.extend(body);
        lines.truncate(rows.saturating_sub(1));
        lines.push(words);
        lines
    }

    fn head(&self, figures: &TopFigures) -> Vec<ViewLine> {
        let up = figures.started_ms.map(|started| format!("up {}", span(figures.now_ms - started)));
        let title: Vec<_> = figures.title.iter().cloned().chain(up).collect();
        let numbers = [
            format!("requests {}/s", count(figures.rate)),
            format!("in progress {}", count(figures.in_progress)),
            format!("5xx {}", percent(figures.error_share)),
            format!("p50 {}", time(figures.p50)),
            format!("p99 {}", time(figures.p99)),
            format!("connections {}", count(figures.connections)),
            format!("idle {}", count(figures.idle)),
            format!("busy {}", percent(figures.busy)),
            format!("queue {}", count(figures.queued)),
        ];
        vec![heading(title.join("  ")), plain(numbers.join("   "))]
    }

    /// The rates so far as bars, relative to the highest.
    fn history(&self) -> String {
        const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
        let highest = self.rates.iter().copied().fold(0.0, f64::max);
        let bar = |rate: &f64| match rate / highest * (BARS.len() - 1) as f64 {
            nothing if nothing.is_nan() => BARS[0],
            height => BARS[height.round() as usize],
        };
        let bars: String = self.rates.iter().map(bar).collect();
        format!("{bars} up to {} requests/s", count(Some(highest)))
    }

    fn sites(&self, figures: &TopFigures, most: usize) -> Vec<ViewLine> {
        let mut rows: Vec<&SiteRow> = figures.sites.iter().collect();
        self.sort(&mut rows, |site| RowKeys {
            rate: site.rate,
            errors: share(site.classes),
            latency: site.times.quantile(0.99),
            name: &site.name,
        });
        let head = format!(
            "{:<28} {:>7} {:>5} {:>7} {:>6} {:>6} {:>7} {:>8} {:>8} {:>7} {:>7} {:>7}",
            "SITE",
            "REQ/S",
            "NOW",
            "2XX",
            "3XX",
            "4XX",
            "5XX",
            "IN/S",
            "OUT/S",
            "P50",
            "P95",
            "P99"
        );
        let hint = "no sites: status_zone NAME; in a server or location counts its requests";
        table(head, rows.iter().map(|site| site_line(site)), figures.sites.len(), most, hint)
    }

    fn upstreams(&self, figures: &TopFigures, most: usize) -> Vec<ViewLine> {
        let groups = figures.groups.iter();
        let mut rows: Vec<_> = groups
            .flat_map(|group| group.servers.iter().map(move |server| (group, server)))
            .collect();
        self.sort(&mut rows, |(_, server)| RowKeys {
            rate: server.rate,
            errors: share(server.classes),
            latency: server.times.quantile(0.99),
            name: &server.name,
        });
        // Servers in trouble come first, whatever the order.
        rows.sort_by_key(|(_, server)| !server.is_bad());
        let head = format!(
            "{:<28} {:<11} {:>7} {:>9} {:>7} {:>7} {:>7} {:>6} {:>6} {:>9}",
            "UPSTREAM", "STATE", "REQ/S", "ACTIVE", "P50", "P99", "5XX", "FAILS", "REUSE", "QUEUE"
        );
        let all = rows.len();
        let lines = rows.iter().map(|(group, server)| server_line(group, server));
        table(head, lines, all, most, "no upstream servers: upstream NAME { server ADDRESS; }")
    }

    fn caches(&self, figures: &TopFigures, most: usize) -> Vec<ViewLine> {
        let mut rows: Vec<&CacheRow> = figures.caches.iter().collect();
        self.sort(&mut rows, |cache| RowKeys {
            rate: cache.rate,
            errors: None,
            latency: None,
            name: &cache.name,
        });
        let head = format!(
            "{:<28} {:>7} {:>6} {:>8} {:>8} {:>15} {:>15} {:>7}",
            "CACHE", "REQ/S", "HITS", "OUT/S", "STORED/S", "SIZE", "ENTRIES", "PURGES"
        );
        let lines = rows.iter().map(|cache| cache_line(cache));
        table(head, lines, figures.caches.len(), most, "no caches: proxy_cache_path makes one")
    }

    fn slow(&self, figures: &TopFigures, most: usize) -> Vec<ViewLine> {
        let head =
            format!("{:<9} {:>7} {:>6}  {:<21} {}", "SLOW", "TOOK", "STATUS", "SERVER", "WHERE");
        let lines = figures.slow.iter().map(|slow| slow_line(slow, figures.now_ms));
        let hint = "no slow requests: slow_log FILE threshold=500ms; keeps some";
        table(head, lines, figures.slow.len(), most, hint)
    }

    /// Sorts by the chosen column, the largest first, names alphabetically.
    fn sort<R>(&self, rows: &mut [R], keys: impl Fn(&R) -> RowKeys<'_>) {
        rows.sort_by(|a, b| {
            let (a, b) = (keys(a), keys(b));
            let down =
                |a: Option<f64>, b: Option<f64>| b.unwrap_or(-1.0).total_cmp(&a.unwrap_or(-1.0));
            let order = match self.order {
                TopOrder::Rate => down(a.rate, b.rate),
                TopOrder::Errors => down(a.errors, b.errors),
                TopOrder::Latency => down(a.latency, b.latency),
                TopOrder::Name => Ordering::Equal,
            };
            let order = order.then_with(|| a.name.cmp(b.name));
            if self.reversed { order.reverse() } else { order }
        });
    }
}

/// What a row may be sorted by.
struct RowKeys<'r> {
    rate: Option<f64>,
    errors: Option<f64>,
    latency: Option<f64>,
    name: &'r str,
}

fn plain(text: String) -> ViewLine {
    ViewLine { style: LineStyle::Plain, text }
}

fn heading(text: String) -> ViewLine {
    ViewLine { style: LineStyle::Heading, text }
}

fn bad(text: String) -> ViewLine {
    ViewLine { style: LineStyle::Bad, text }
}

pub(super) fn quiet(text: String) -> ViewLine {
    ViewLine { style: LineStyle::Quiet, text }
}

fn table(
    head: String,
    lines: impl Iterator<Item = ViewLine>,
    all: usize,
    most: usize,
    hint: &str,
) -> Vec<ViewLine> {
    let mut table = vec![plain(String::new())];
    if all == 0 {
        table.push(quiet(hint.to_owned()));
        return table;
    }
    table.push(heading(head));
    table.extend(lines.take(most));
    if let more @ 1.. = all.saturating_sub(most) {
        table.push(quiet(format!("{more} more")));
    }
    table
}

/// A text in so many columns.
fn cut(text: &str, columns: usize) -> String {
    match text.char_indices().nth(columns) {
        None => text.to_owned(),
        Some(_) => text.chars().take(columns - 1).chain(['…']).collect(),
    }
}

fn site_line(site: &SiteRow) -> ViewLine {
    let name = match site.kind {
        SiteKind::Server => site.name.clone(),
        SiteKind::Location => format!("location {}", site.name),
        SiteKind::Stream => format!("stream {}", site.name),
    };
    let part = |class: usize| {
        let all: f64 = site.classes.iter().sum();
        percent((all > 0.0).then(|| site.classes[class] / all))
    };
    let times = [0.5, 0.95, 0.99].map(|share| time(site.times.quantile(share)));
    let text = format!(
        "{:<28} {:>7} {:>5} {:>7} {:>6} {:>6} {:>7} {:>8} {:>8} {:>7} {:>7} {:>7}",
        cut(&name, 28),
        count(site.rate),
        count(site.in_progress),
        part(2),
        part(3),
        part(4),
        part(5),
        bytes(site.received),
        bytes(site.sent),
        times[0],
        times[1],
        times[2],
    );
    if site.classes[5] > 0.0 { bad(text) } else { plain(text) }
}

fn cache_line(cache: &CacheRow) -> ViewLine {
    let of = |now: String, most: f64, shown: String| match most > 0.0 {
        true => format!("{now}/{shown}"),
        false => now,
    };
    let name = if cache.is_cold { format!("{} (is read)", cache.name) } else { cache.name.clone() };
    plain(format!(
        "{:<28} {:>7} {:>6} {:>8} {:>8} {:>15} {:>15} {:>7}",
        cut(&name, 28),
        count(cache.rate),
        percent(cache.hits),
        bytes(cache.sent),
        count(cache.stored),
        of(bytes(Some(cache.size)), cache.size_max, bytes(Some(cache.size_max))),
        of(count(cache.entries), cache.entries_max, count(Some(cache.entries_max))),
        count(cache.purge_rules),
    ))
}

fn server_line(group: &GroupRow, server: &ServerRow) -> ViewLine {
    let active = match server.limit {
        most if most > 0.0 => format!("{}/{}", count(Some(server.active)), count(Some(most))),
        _ => count(Some(server.active)),
    };
    let queue = match group.queue {
        Some((length, most)) if most > 0.0 => {
            format!("{}/{}", count(Some(length)), count(Some(most)))
        }
        Some((length, _)) => count(Some(length)),
        None => "-".to_owned(),
    };
    let text = format!(
        "{:<28} {:<11} {:>7} {:>9} {:>7} {:>7} {:>7} {:>6} {:>6} {:>9}",
        cut(&format!("{} {}", group.name, server.name), 28),
        cut(&server.state, 11),
        count(server.rate),
        active,
        time(server.times.quantile(0.5)),
        time(server.times.quantile(0.99)),
        percent(share(server.classes)),
        count(Some(server.fails)),
        percent(server.reuse),
        queue,
    );
    match &*server.state {
        _ if server.is_bad() => bad(text),
        "up" | "busy" => plain(text),
        _ => quiet(text),
    }
}

fn slow_line(slow: &SlowRow, now_ms: f64) -> ViewLine {
    let phases =
        slow.phases.iter().map(|(name, seconds)| format!("{name} {}", time(Some(*seconds))));
    let phases = phases.collect::<Vec<_>>().join(", ");
    plain(format!(
        "{:<9} {:>7} {:>6}  {:<21} {} ({phases})",
        span(now_ms - slow.at_ms),
        time(Some(slow.seconds)),
        slow.status,
        cut(&slow.upstream, 21),
        slow.request,
    ))
}
