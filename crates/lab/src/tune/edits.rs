//! Edits: the ways in which a candidate changes a configuration. An edit is data; applying it
//! changes a tree and returns each changed line. An edit is applied to the tree as it is, so that
//! several candidates can be applied one after another; it changes nothing that is in place
//! already.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use sandbox::{EditableDirective, EditableTree, LinePlace, ListenAddress};

/// An edit.
#[derive(Clone, Copy, Debug)]
pub(super) enum TuneEdit {
    /// A line directly in one block.
    Line(BlockLine),
    /// The last line of each `upstream` of `http {}`: nginx requires `keepalive` to follow the
    /// balancing directive.
    EachUpstream { line: &'static [&'static str] },
    /// A parameter of one `listen` line of each TCP address of `http {}`: nginx accepts the options
    /// of a socket in one line per address only.
    EachListen { parameter: &'static str },
    /// Parameters for each `access_log` of `http {}` that writes to a file without a buffer.
    EachAccessLog { parameters: &'static [&'static str] },
    /// `proxy_set_header Connection "";` in `http {}` and in each block that sets other headers.
    NoConnectionHeader,
    /// Lines with exactly the words `old`, in servers and in `http {}` itself, become `new`.
    OutsideLocations { old: &'static [&'static str], new: &'static [&'static str] },
}

/// A line that a block must have.
#[derive(Clone, Copy, Debug)]
pub(super) struct BlockLine {
    /// The names of the block and the blocks around it, the outermost first; empty for the whole
    /// file.
    pub(super) block: &'static [&'static str],
    /// The words of the line.
    pub(super) line: &'static [&'static str],
    /// Whether an existing line of this directive stays. If not it is replaced, in inner blocks as
    /// well, where it would override the new line.
    pub(super) stays: fn(&EditableDirective) -> bool,
}

/// A line that was changed or added.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TuneChange {
    /// The number of the changed directive; `None` if a line was added.
    pub number: Option<usize>,
    /// The place of the changed line, or of the block that got a line.
    pub place: LinePlace,
    /// The innermost block, such as `http` or `upstream app`; `None` outside all blocks.
    pub block: Option<String>,
    /// The old line; `None` if a line was added.
    pub old: Option<String>,
    /// The new line.
    pub new: String,
}

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
    /// Changes the tree and returns the changes.
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

/// Replaces the words of a directive.
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

/// Adds a line at the start of a block, if the block exists.
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

/// The parameters of `listen` that set options of the socket: nginx accepts them in one line per
/// address only.
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

/// The name in a parameter such as `backlog=511`.
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

/// For each TCP address without the parameter, the line that gets it.
fn listens_without(tree: &EditableTree, parameter: &str) -> BTreeSet<usize> {
    let mut by_address: BTreeMap<ListenAddress, Vec<&EditableDirective>> = BTreeMap::new();
    for line in tree.lines() {
        let is_listen = line.is_in(&["http", "server"]) && line.directive.is("listen");
        // Any port serves to tell addresses apart, because the default is the same for all lines.
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
            // The second argument is always the format.
            if line.words.len() == 2 {
                line.words.push(b"combined".to_vec());
            }
            line.words.extend(parameters.iter().map(|word| word.as_bytes().to_vec()));
        }));
    });
    changes
}

/// A log can have a buffer if it is a file whose name has no variables.
fn can_be_buffered(log: &EditableDirective) -> bool {
    let file = log.argument();
    !(file.is_empty()
        || ["off", "/dev/null"].contains(&file)
        || file.starts_with("syslog:")
        || file.contains('$'))
}

/// Files that have a buffer already: nginx requires the same parameters in all lines of a file.
fn buffered_logs(tree: &EditableTree) -> BTreeSet<String> {
    let is_buffered = |line: &EditableDirective| {
        let mut words = line.arguments().skip(1).map(parameter_name);
        line.is("access_log") && words.any(|name| ["buffer", "flush", "gzip"].contains(&name))
    };
    let lines = tree.lines();
    let logs = lines.iter().map(|line| line.directive).filter(|line| is_buffered(line));
    logs.map(|line| line.argument().to_owned()).collect()
}

/// A block that sets any header inherits none, so each such block needs the line.
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
