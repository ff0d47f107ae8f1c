//! Test fixtures: groups from the lines of an `upstream` block, requests to them, and shared
//! connections without sockets.

use std::cell::Cell;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use conf::{Layered, Load, MAIN, MemoryFiles as Files, Subsystem, UPSTREAM};
use net::{Address, clock};
use zones::Zones;

use crate::pool::{PoolKey, PoolOrigin, PoolProtocol, SharedConnection};
use crate::settings::{Groups, Layer};
use crate::{Ask, Attempt, Group, Lease, ServerChoice};

/// The group of an `upstream` block, and the warnings.
pub(crate) fn load(lines: &str) -> Result<(Arc<Group>, Vec<String>), String> {
    // Every test has a group of its own, because the process keeps the state of servers by group.
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let name = format!("u{}", NUMBER.fetch_add(1, Ordering::Relaxed));
    load_named(&name, lines)
}

pub(crate) fn load_named(name: &str, lines: &str) -> Result<(Arc<Group>, Vec<String>), String> {
    load_of(Subsystem::Http, name, lines)
}

pub(crate) fn load_of(
    subsystem: Subsystem,
    name: &str,
    lines: &str,
) -> Result<(Arc<Group>, Vec<String>), String> {
    load_from(Files::default(), subsystem, name, lines)
}

/// The group of an `upstream` block with `state /state`, whose file has this text.
pub(crate) fn load_state(state: Option<&str>, lines: &str) -> Result<Arc<Group>, String> {
    let files = Files::default();
    let files = match state {
        Some(text) => files.with("/state", text),
        None => files,
    };
    let lines = format!("state /state; {lines}");
    load_from(files, Subsystem::Http, "state", &lines).map(|(group, _)| group)
}

fn load_from(
    files: Files,
    subsystem: Subsystem,
    name: &str,
    lines: &str,
) -> Result<(Arc<Group>, Vec<String>), String> {
    let text = format!("upstream {name} {{ {lines} }}");
    let mut files = files.with("/nginx.conf", text);
    let (_, tree) = conf::parse(b"/nginx.conf", b"/", None, &mut files).into_result();
    let tree = tree.map_err(|error| error.message)?;
    let mut load = Load::new(&mut files, Path::new("/"), Path::new("/"));
    let (built, group) = load.within(subsystem, |load| {
        let built = read(&tree.root[0], load).map_err(|error| error.message);
        (built, load.own.of::<Groups>().find(name.as_bytes()).cloned())
    });
    let warnings = load.warnings.iter().map(|warning| warning.message.clone()).collect();
    built.map(|()| (group.unwrap(), warnings))
}

/// The groups of the lines of `http {}`, in order.
pub(crate) fn load_all(text: &str) -> Result<Vec<Arc<Group>>, String> {
    load_after(&Zones::default(), text).map(|(groups, _)| groups)
}

/// The same for a configuration that takes over from another.
pub(crate) fn load_after(before: &Zones, text: &str) -> Result<(Vec<Arc<Group>>, Zones), String> {
    let mut files = Files::default().with("/nginx.conf", text);
    let (_, tree) = conf::parse(b"/nginx.conf", b"/", None, &mut files).into_result();
    let tree = tree.map_err(|error| error.message)?;
    let mut load = Load::new(&mut files, Path::new("/"), Path::new("/"));
    *Zones::of(&mut load) = Zones::after(before);
    let mut main = Layer::default();
    for line in &tree.root {
        let read = match line.block {
            Some(_) => begin_and_end(line, &mut load),
            None => set(&mut main, line, MAIN, &mut load),
        };
        read.map_err(|error| error.message)?;
    }
    Groups::build(&main, None, &mut load).map_err(|error| error.message)?;
    let blocks = tree.root.iter().filter(|line| line.block.is_some());
    let groups = load.own.of::<Groups>();
    let groups = blocks.map(|block| groups.find(&block.arg(0).text).cloned().unwrap()).collect();
    Zones::of(&mut load).settle();
    Ok((groups, std::mem::take(Zones::of(&mut load))))
}

fn set(
    layer: &mut Layer,
    line: &conf::Directive,
    level: conf::Levels,
    load: &mut Load<'_>,
) -> conf::Result<()> {
    let row = conf::row::<Layer>("", line).unwrap();
    Layer::TABLE[row].admit(line, level)?;
    layer.set(row, line, load)
}

fn begin_and_end(block: &conf::Directive, load: &mut Load<'_>) -> conf::Result<()> {
    Groups::begin(block, load)?;
    let mut layer = Layer::default();
    for line in block.block.iter().flatten() {
        set(&mut layer, line, UPSTREAM, load)?;
    }
    Groups::end(layer, block, load)
}

fn read(block: &conf::Directive, load: &mut Load<'_>) -> conf::Result<()> {
    begin_and_end(block, load)?;
    Groups::build(&Layer::default(), None, load)
}

pub(crate) fn group(lines: &str) -> Arc<Group> {
    load(lines).unwrap_or_else(|error| panic!("{lines}: {error}")).0
}

/// The last number of the chosen server's address, after `10.0.0.`.
pub(crate) fn short(lease: &Lease) -> String {
    let name = String::from_utf8_lossy(lease.name());
    let name = name.strip_prefix("10.0.0.").unwrap_or(&name);
    name.strip_suffix(":80").unwrap_or(name).into()
}

/// The result of a first choice.
pub(crate) fn ask(group: &Arc<Group>, ask: Ask<'_>) -> ServerChoice {
    group.choose(&mut Attempt::default(), &ask)
}

pub(crate) fn lease(choice: ServerChoice) -> Lease {
    match choice {
        ServerChoice::Server(lease) => lease,
        other => panic!("{other:?}"),
    }
}

/// The servers of requests that are over at once, one after another.
pub(crate) fn sequence(group: &Arc<Group>, count: usize, now_ms: u64) -> String {
    let one = |_| short(&lease(ask(group, Ask { now_ms, ..Ask::default() })));
    (0..count).map(one).collect::<Vec<_>>().join(" ")
}

/// The key of a server's shared connections.
pub(crate) fn shared_key(server: u8) -> PoolKey {
    let to = Address::Ip(([10, 0, 0, server], 80).into());
    let protocol = PoolProtocol::Http2;
    let origin = PoolOrigin { from: None, secured: None, location: None, protocol };
    PoolKey { to, origin: Some(Arc::new(origin)) }
}

/// A shared connection that only counts its streams.
#[derive(Clone, Debug)]
pub(crate) struct FakeConnection(Rc<FakeStreams>);

#[derive(Debug)]
struct FakeStreams {
    max: usize,
    open: Cell<usize>,
    idle_since_ms: Cell<u64>,
    is_over: Cell<bool>,
    is_draining: Cell<bool>,
}

impl FakeConnection {
    /// A connection with at most `max` streams, the first of which is open.
    pub fn with_stream(max: usize) -> Self {
        Self(Rc::new(FakeStreams {
            max,
            open: Cell::new(1),
            idle_since_ms: Cell::new(clock::now_ms()),
            is_over: Cell::new(false),
            is_draining: Cell::new(false),
        }))
    }

    pub fn open_stream(&self) {
        assert!(self.free_streams() > 0 && !self.is_draining());
        self.0.open.update(|open| open + 1);
    }

    pub fn end_stream(&self) {
        self.0.open.update(|open| open - 1);
        self.0.idle_since_ms.set(clock::now_ms());
    }

    pub fn set_over(&self) {
        self.0.is_over.set(true);
    }

    pub fn is_draining(&self) -> bool {
        self.0.is_draining.get()
    }

    pub fn is_closed(&self) -> bool {
        self.is_draining() && self.0.open.get() == 0
    }

    /// The number of handles, including this one.
    pub fn handles(&self) -> usize {
        Rc::strong_count(&self.0)
    }
}

impl PartialEq for FakeConnection {
    fn eq(&self, other: &Self) -> bool {
        Rc::ptr_eq(&self.0, &other.0)
    }
}

impl SharedConnection for FakeConnection {
    fn free_streams(&self) -> usize {
        self.0.max - self.0.open.get()
    }

    fn is_over(&self) -> bool {
        self.0.is_over.get()
    }

    fn idle_since_ms(&self) -> Option<u64> {
        (self.0.open.get() == 0).then(|| self.0.idle_since_ms.get())
    }

    fn close_when_idle(&self) {
        self.0.is_draining.set(true);
    }
}
