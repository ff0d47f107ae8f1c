//! How a candidate changes a configuration. An edit is data; applying it changes a tree and notes
//! each line that it changed. Edits look at the tree as it is, so that several candidates can be
//! applied one after another; one that finds everything in place changes nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use sandbox::{EditableDirective, EditableTree, LinePlace, ListenAddress};

/// An edit.
#[derive(Clone, Copy, Debug)]
pub(super) enum TuneEdit {
    /// A line directly in the block at that path of names.
    Line(BlockLine),
    /// The last line of each `upstream` of `http {}`. Last, because nginx wants `keepalive` after
    /// the directive that balances.
    EachUpstream { line: &'static [&'static str] },
    /// A parameter of one `listen` line of each TCP address of `http {}`. nginx takes the options
    /// of a socket from one line only.
    EachListen { parameter: &'static str },
    /// Parameters of each `access_log` of `http {}` that writes a file without a buffer.
    EachAccessLog { parameters: &'static [&'static str] },
    /// `proxy_set_header Connection "";` wherever the header is not set.
    NoConnectionHeader,
    /// Lines of servers and of `http {}` itself with exactly these words get others.
    OutsideLocations { old: &'static [&'static str], new: &'static [&'static str] },
}

/// A line that a block is to have.
#[derive(Clone, Copy, Debug)]
pub(super) struct BlockLine {
    /// The names of the blocks from the outermost on; none: outside all blocks.
    pub(super) block: &'static [&'static str],
    /// The words.
    pub(super) line: &'static [&'static str],
    /// Whether a line of this directive that is there already is to stay. One that is not is
    /// replaced, also further in, where it would undo the new one.
    pub(super) stays: fn(&EditableDirective) -> bool,
}

/// A line that was changed or added.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TuneChange {
    /// The number of the directive that was changed; `None`: a line was added.
    pub number: Option<usize>,
    /// The changed line, or the line of the block that one was added to.
    pub place: LinePlace,
    /// The block around: `http`, `upstream app`; `None`: none.
    pub block: Option<String>,
    /// The line as it was.
    pub old: Option<String>,
    /// The line as it is now.
    pub new: String,
}

/// The place, and what changes there.
impl fmt::Display for TuneChange {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "@ {}", self.place)?;
        if let Some(block) = &self.block {
            write!(out, " in {block}")?;
        }
        if let Some(old) = &self.old {
            write!(out, "\n- {old}")?;
        }
        write!(out, "\n+ {}", self.new)
    }
}

impl TuneEdit {
    /// Changes the tree; answers what was changed.
    pub(super) fn apply(self, tree: &mut EditableTree) -> Vec<TuneChange> {
        match self {
            Self::Line(line) => line.apply(tree),
            Self::EachUpstream { line } => each_upstream(tree, line),
            Self::EachListen { parameter } => each_listen(tree, parameter),
            Self::EachAccessLog { parameters } => each_access_log(tree, parameters),
            Self::NoConnectionHeader => no_connection_header(tree),
            Self::OutsideLocations { old, new } => outside_locations(tree, old, new),
        }
    }
}

impl BlockLine {
    fn apply(self, tree: &mut EditableTree) -> Vec<TuneChange> {
        let Some((name, _)) = self.line.split_first() else { return Vec::new() };
        let mut changes = Vec::new();
        let mut is_there = false;
        tree.change(&mut |around, line| {
            let is_within = around.iter().zip(self.block).all(|(own, block)| own == block);
            let is_below = around.len() >= self.block.len() && is_within;
            // `keepalive_requests` of an upstream is another setting of the same name.
            let is_other = around.iter().any(|block| block == "upstream");
            let is_deeper_in_main = self.block.is_empty() && !around.is_empty();
            if !line.is(name) || !is_below || is_other || is_deeper_in_main {
                return;
            }
            is_there |= around.len() == self.block.len();
            if !(self.stays)(line) {
                changes.push(replace(line, around, self.line));
            }
        });
        if !is_there {
            changes.extend(insert(tree, self.block, self.line));
        }
        changes
    }
}

/// Gives a directive other words.
fn replace(line: &mut EditableDirective, around: &[String], words: &[&str]) -> TuneChange {
    change(line, around, |line| {
        line.words = words.iter().map(|word| word.as_bytes().to_vec()).collect();
    })
}

fn change(
    line: &mut EditableDirective,
    around: &[String],
    change: impl FnOnce(&mut EditableDirective),
) -> TuneChange {
    let old = line.shown();
    change(line);
    TuneChange {
        number: line.number,
        place: line.place.clone(),
        block: around.last().cloned(),
        old: Some(old),
        new: line.shown(),
    }
}

/// Adds the first line of a block, if that exists.
fn insert(tree: &mut EditableTree, path: &[&str], words: &[&str]) -> Option<TuneChange> {
    let beginning = tree.beginning();
    let (name, around) = match path {
        [] => {
            let line = EditableDirective::new(beginning, words);
            let change = added(&line, None);
            tree.root.insert(0, line);
            return Some(change);
        }
        [name, around @ ..] => (name, around),
    };
    let mut block = tree.root.iter_mut().find(|line| line.is(name) && line.block.is_some())?;
    for name in around {
        let inner = block.block.as_deref_mut()?;
        block = inner.iter_mut().find(|line| line.is(name) && line.block.is_some())?;
    }
    Some(add(block, words, TuneEnd::First))
}

#[derive(Clone, Copy)]
enum TuneEnd {
    First,
    Last,
}

fn add(block: &mut EditableDirective, words: &[&str], end: TuneEnd) -> TuneChange {
    let line = EditableDirective::new(block.place.clone(), words);
    let change = added(&line, Some(block));
    let inner = block.block.get_or_insert_default();
    let at = if matches!(end, TuneEnd::First) { 0 } else { inner.len() };
    inner.insert(at, line);
    change
}

fn added(line: &EditableDirective, block: Option<&EditableDirective>) -> TuneChange {
    let title = |block: &EditableDirective| {
        let shown = block.shown();
        shown.strip_suffix(" {").unwrap_or(&shown).to_owned()
    };
    TuneChange {
        number: None,
        place: line.place.clone(),
        block: block.map(title),
        old: None,
        new: line.shown(),
    }
}

fn each_upstream(tree: &mut EditableTree, words: &[&str]) -> Vec<TuneChange> {
    let mut changes = Vec::new();
    tree.change(&mut |around, line| {
        let is_group = around == ["http"] && line.is("upstream");
        if is_group && words.first().is_some_and(|name| line.own(name).is_none()) {
            changes.push(add(line, words, TuneEnd::Last));
        }
    });
    changes
}

/// What a `listen` line may say of its socket: nginx wants all of it in one line of an address.
const SOCKET_OPTIONS: [&str; 12] = [
    "accept_filter",
    "backlog",
    "bind",
    "deferred",
    "fastopen",
    "ipv6only",
    "multipath",
    "rcvbuf",
    "reuseport",
    "setfib",
    "sndbuf",
    "so_keepalive",
];

/// The name of a parameter such as `backlog=511`.
fn parameter_name(word: &str) -> &str {
    word.split('=').next().unwrap_or_default()
}

fn each_listen(tree: &mut EditableTree, parameter: &str) -> Vec<TuneChange> {
    let chosen = listens_without(tree, parameter_name(parameter));
    let mut changes = Vec::new();
    tree.change(&mut |around, line| {
        if line.number.is_some_and(|number| chosen.contains(&number)) {
            changes.push(change(line, around, |line| line.words.push(parameter.into())));
        }
    });
    changes
}

/// For each TCP address none of whose lines has that parameter, the line that may get it.
fn listens_without(tree: &EditableTree, parameter: &str) -> BTreeSet<usize> {
    let mut by_address: BTreeMap<ListenAddress, Vec<&EditableDirective>> = BTreeMap::new();
    for line in tree.lines() {
        let is_listen = line.is_in(&["http", "server"]) && line.directive.is("listen");
        // The default port is the same for all lines, so any will do to tell addresses apart.
        if is_listen
            && let Ok(address @ ListenAddress::Tcp(_)) = ListenAddress::of(line.directive, 80)
        {
            by_address.entry(address).or_default().push(line.directive);
        }
    }
    let names = |line: &EditableDirective, wanted: &dyn Fn(&str) -> bool| {
        line.arguments().skip(1).any(|word| wanted(parameter_name(word)))
    };
    let free = by_address
        .into_values()
        .filter(|lines| !lines.iter().any(|line| names(line, &|name| name == parameter)));
    free.filter_map(|lines| {
        let with_options =
            |line: &&&EditableDirective| names(line, &|name| SOCKET_OPTIONS.contains(&name));
        lines.iter().find(with_options).or(lines.first())?.number
    })
    .collect()
}

fn each_access_log(tree: &mut EditableTree, parameters: &[&str]) -> Vec<TuneChange> {
    let buffered = buffered_logs(tree);
    let mut changes = Vec::new();
    tree.change(&mut |around, line| {
        let is_log = around.first().is_some_and(|name| name == "http") && line.is("access_log");
        if !is_log || !can_be_buffered(line) || buffered.contains(line.argument()) {
            return;
        }
        changes.push(change(line, around, |line| {
            // The second word is always the format.
            if line.words.len() == 2 {
                line.words.push(b"combined".to_vec());
            }
            line.words.extend(parameters.iter().map(|word| word.as_bytes().to_vec()));
        }));
    });
    changes
}

/// Names of files with variables cannot have a buffer, and syslog cannot.
fn can_be_buffered(log: &EditableDirective) -> bool {
    let file = log.argument();
    !(file.is_empty()
        || ["off", "/dev/null"].contains(&file)
        || file.starts_with("syslog:")
        || file.contains('$'))
}

/// The files that have a buffer already: nginx wants all lines of a file to have the same.
fn buffered_logs(tree: &EditableTree) -> BTreeSet<String> {
    let is_buffered = |line: &EditableDirective| {
        let mut words = line.arguments().skip(1).map(parameter_name);
        line.is("access_log") && words.any(|name| ["buffer", "flush", "gzip"].contains(&name))
    };
    let lines = tree.lines();
    let logs = lines.iter().map(|line| line.directive).filter(|line| is_buffered(line));
    logs.map(|line| line.argument().to_owned()).collect()
}

/// A block that sets any header inherits none, so each of these needs the line.
fn no_connection_header(tree: &mut EditableTree) -> Vec<TuneChange> {
    const WORDS: [&str; 3] = ["proxy_set_header", "Connection", ""];
    let mut changes = Vec::new();
    tree.change(&mut |around, line| {
        let is_http = around.is_empty() && line.is("http");
        let is_inside = around.first().is_some_and(|name| name == "http");
        let sets = || line.inner().iter().filter(|line| line.is(WORDS[0]));
        let sets_connection = sets().any(|set| set.argument().eq_ignore_ascii_case(WORDS[1]));
        if (is_http || (is_inside && sets().next().is_some())) && !sets_connection {
            changes.push(add(line, &WORDS, TuneEnd::Last));
        }
    });
    changes
}

fn outside_locations(tree: &mut EditableTree, old: &[&str], new: &[&str]) -> Vec<TuneChange> {
    let mut changes = Vec::new();
    tree.change(&mut |around, line| {
        let is_outside = around == ["http"] || around == ["http", "server"];
        let has_words = line.words.iter().map(Vec::as_slice).eq(old.iter().map(|w| w.as_bytes()));
        if is_outside && has_words {
            changes.push(replace(line, around, new));
        }
    });
    changes
}
