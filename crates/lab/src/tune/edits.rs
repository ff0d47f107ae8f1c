//! Edits: the ways in which a candidate changes a configuration. An edit is data; applying it
//! changes a tree and returns each changed line. An edit is applied to the tree as it is, so that
//! several candidates can be applied one after another; it changes nothing that is in place
//! already.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use sandbox::{EditableDirective, EditableLine, EditableTree, LinePlace, ListenAddress};

use super::text_change::TextSpot;

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
    /// Lines with the words `old`, anywhere in `http {}`, become `new`.
    Everywhere { old: &'static [&'static str], new: &'static [&'static str] },
    /// An `upstream` with this number of kept connections for each address that a `proxy_pass`
    /// names. Only where the request's `Host` is set: by default it is the name in `proxy_pass`.
    GroupOfEachAddress { keepalive: &'static str },
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
    /// The new line; of an added block all lines.
    pub new: String,
    /// The place in the text; `None` if the block was added itself.
    pub(super) spot: Option<TextSpot>,
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
            Self::OutsideLocations { old, new } => replace_all(tree, old, new, |around| {
                around == ["http"] || around == ["http", "server"]
            }),
            Self::Everywhere { old, new } => replace_all(tree, old, new, |around| {
                around.first().is_some_and(|name| name == "http")
            }),
            Self::GroupOfEachAddress { keepalive } => group_of_each_address(tree, keepalive),
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
        spot: line.spans.map(|spans| TextSpot::Words(spans.words)),
    }
}

/// Adds a line at the start of a block, if the block exists.
fn insert(tree: &mut EditableTree, path: &[&str], words: &[&str]) -> Option<TuneChange> {
    let beginning = tree.beginning();
    let (name, around) = match path {
        [] => {
            let line = EditableDirective::new(beginning, words);
            let change = added(&line, None, Some(TextSpot::FileStart));
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
    add_line(block, line, end)
}

fn add_line(block: &mut EditableDirective, line: EditableDirective, end: TuneEnd) -> TuneChange {
    let spot = block.spans.and_then(|spans| match end {
        TuneEnd::First => Some(TextSpot::BlockStart(spans.end)),
        TuneEnd::Last => spans.close.map(TextSpot::BlockEnd),
    });
    let change = added(&line, Some(block), spot);
    let inner = block.block.get_or_insert_default();
    let at = if matches!(end, TuneEnd::First) { 0 } else { inner.len() };
    inner.insert(at, line);
    change
}

fn added(
    line: &EditableDirective,
    block: Option<&EditableDirective>,
    spot: Option<TextSpot>,
) -> TuneChange {
    let title = |block: &EditableDirective| {
        let shown = block.shown();
        shown.strip_suffix(" {").unwrap_or(&shown).to_owned()
    };
    TuneChange {
        number: None,
        place: line.place.clone(),
        block: block.map(title),
        old: None,
        new: line.text(),
        spot,
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

/// Replaces lines with the words `old`; names of fields have no case.
fn replace_all(
    tree: &mut EditableTree,
    old: &[&str],
    new: &[&str],
    is_meant: impl Fn(&[String]) -> bool,
) -> Vec<TuneChange> {
    let mut changes = Vec::new();
    tree.change(&mut |around, line| {
        let is_same = |(own, old): (&Vec<u8>, &&str)| own.eq_ignore_ascii_case(old.as_bytes());
        let has_words = line.words.len() == old.len() && line.words.iter().zip(old).all(is_same);
        if is_meant(around) && has_words {
            changes.push(replace(line, around, new));
        }
    });
    changes
}

fn group_of_each_address(tree: &mut EditableTree, keepalive: &str) -> Vec<TuneChange> {
    let passes = passes_to_addresses(tree);
    let addresses: BTreeSet<&String> = passes.values().collect();
    let groups: BTreeMap<String, String> =
        addresses.into_iter().map(|address| (address.clone(), group_name(tree, address))).collect();
    let mut changes = Vec::new();
    if let Some(http) = tree.root.iter_mut().find(|line| line.is("http")) {
        for (address, name) in &groups {
            let mut group = EditableDirective::new(http.place.clone(), &["upstream", name]);
            let line = |words: &[&str]| EditableDirective::new(http.place.clone(), words);
            group.block = Some(vec![line(&["server", address]), line(&["keepalive", keepalive])]);
            changes.push(add_line(http, group, TuneEnd::First));
        }
    }
    tree.change(&mut |around, line| {
        let Some(address) = line.number.and_then(|number| passes.get(&number)) else { return };
        let url = line.argument().replacen(address, &groups[address], 1);
        changes.push(change(line, around, |line| line.words[1] = url.into_bytes()));
    });
    changes
}

/// The address of each `proxy_pass` that can become a group, by the directive's number.
pub(super) fn passes_to_addresses(tree: &EditableTree) -> BTreeMap<usize, String> {
    let lines = tree.lines();
    let groups: BTreeSet<&str> = lines
        .iter()
        .filter(|line| line.is_in(&["http"]) && line.directive.is("upstream"))
        .map(|line| line.directive.argument())
        .collect();
    let address = |line: &EditableLine<'_>| {
        let url = line.directive.argument();
        let is_meant = line.is_within("http") && line.directive.is("proxy_pass");
        let rest = url.strip_prefix("http://").filter(|_| is_meant && !url.contains('$'))?;
        let address = rest.split(['/', '?']).next().unwrap_or_default();
        let is_address = !address.is_empty() && !address.starts_with("unix:");
        (is_address && !groups.contains(address) && sets_host(&line.around))
            .then(|| Some((line.directive.number?, address.to_owned())))?
    };
    lines.iter().filter_map(address).collect()
}

/// Whether requests have a `Host` that does not depend on `proxy_pass`.
fn sets_host(around: &[&EditableDirective]) -> bool {
    let sets = |block: &&&EditableDirective| block.own("proxy_set_header").is_some();
    let fields = around.iter().rev().find(sets).map_or(&[][..], |block| block.inner());
    fields.iter().filter(|line| line.is("proxy_set_header")).any(|line| {
        let words: Vec<&str> = line.arguments().collect();
        matches!(words[..], [name, value]
            if name.eq_ignore_ascii_case("host") && !value.contains("$proxy_"))
    })
}

/// A name that no group has.
fn group_name(tree: &EditableTree, address: &str) -> String {
    let letter = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '_' };
    let mut name = format!("backend_{}", address.chars().map(letter).collect::<String>());
    let is_taken = |name: &str| {
        let mut lines = tree.lines().into_iter().map(|line| line.directive);
        lines.any(|line| line.is("upstream") && line.argument() == name)
    };
    while is_taken(&name) {
        name.push('_');
    }
    name
}
