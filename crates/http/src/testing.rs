//! The base of tests of features: a site from a few lines of configuration, and requests that run
//! through its phases and filters without a socket.
//!
//! ```text
//! let site = site("server { location / { return 200 hello; } }");
//! assert_eq!(site.get("/").body(), "hello");
//! ```
//!
//! Absent: the framing of HTTP/1 and the bytes of heads, which `h1` tests. Every request has an
//! event loop of its own.

#![allow(dead_code, reason = "what one feature's tests do not ask for, another's will")]

use std::fs::{self, File};
use std::net::SocketAddr;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use ::testing::Folder;
use conf::{Directive, Load, MemoryFiles};
use net::accept::Transport;
use net::testing::{RelaySide, ToyTransport, simulate};
use observe::LogFiles;
use wire::http1::request::{HeadProgress, RequestHeadParser};
use zones::Zones;

use crate::client::Client;
use crate::compile;
use crate::exchange::{
    BackgroundTasks, Body, BodyError, BodyFilter, Chunk, Exchange, Fields, FilteredBody, Flow,
};
use crate::h1;
use crate::phases::{self, Ran};
use crate::site::{Exclusive, Generation, Site};

/// A site whose `http {}` contains this text. It writes no access log by default, and its files are
/// in a directory of its own.
pub(crate) fn site(http: &str) -> TestSite {
    site_with(http, |_| {})
}

/// A prefix with the folder of the default root.
fn folder() -> Folder {
    let folder = Folder::new();
    fs::create_dir(folder.join("html")).unwrap();
    folder
}

/// The same for a text that depends on the site's directory.
pub(crate) fn site_in(http: impl FnOnce(&Path) -> String) -> TestSite {
    let folder = folder();
    let http = http(&folder);
    let loaded = load(&http, &folder, false).unwrap_or_else(|refusal| panic!("{refusal}"));
    loaded.into_site(folder)
}

/// The same, modified after it was compiled, for handlers that no directive installs.
pub(crate) fn site_with(http: &str, change: impl FnOnce(&mut Site)) -> TestSite {
    let folder = folder();
    let mut loaded = load(http, &folder, false).unwrap_or_else(|refusal| panic!("{refusal}"));
    change(&mut loaded.site);
    loaded.into_site(folder)
}

/// Sets a handler that answers all requests of the location with that name.
pub(crate) fn handle(
    site: &mut Site,
    name: &str,
    handler: impl Fn(&mut Exchange) -> Flow + Send + Sync + 'static,
) {
    let location = site.locations.iter_mut().find(|location| *location.name == *name.as_bytes());
    location.unwrap().exclusive = Some(Exclusive::Handler(Box::new(handler)));
}

/// A site that is loaded with `--lenient`.
pub(crate) fn lenient_site(http: &str) -> TestSite {
    let folder = folder();
    let loaded = load(http, &folder, true).unwrap_or_else(|refusal| panic!("{refusal}: {http}"));
    loaded.into_site(folder)
}

/// The error of an invalid text, with its line.
pub(crate) fn refusal(http: &str) -> String {
    refusal_of(http, false)
}

/// The same with `--lenient`.
pub(crate) fn refusal_of_lenient(http: &str) -> String {
    refusal_of(http, true)
}

fn refusal_of(http: &str, lenient: bool) -> String {
    match load(http, Path::new("/nowhere"), lenient) {
        Ok(_) => panic!("accepted: {http}"),
        Err(refusal) => refusal,
    }
}

/// Checks the error of an invalid text, here and, if [`NGINX`] names one, with a real nginx. Use
/// [`refusal`] for directives that nginx lacks.
pub(crate) fn refused(http: &str, expected: &str) {
    assert_eq!(refusal(http), expected, "{http}");
    if let Some(nginx) = std::env::var_os(NGINX) {
        assert_eq!(refusal_of_nginx(Path::new(&nginx), http), expected, "nginx: {http}");
    }
}

/// The transport of the tests' connections: a toy session, if the suite runs over one.
pub(crate) fn transport(side: RelaySide) -> Option<Arc<dyn Transport>> {
    std::env::var_os(TRANSPORT).map(|_| Arc::new(ToyTransport(side)) as Arc<dyn Transport>)
}

/// The environment variable of a run over toy sessions.
pub(crate) const TRANSPORT: &str = "WEIR_TEST_TRANSPORT";

const PEER: &str = "127.0.0.1:12345";

/// The environment variable with the nginx of `cargo xtask check messages`.
const NGINX: &str = "WEIR_TEST_NGINX";

fn refusal_of_nginx(nginx: &Path, http: &str) -> String {
    let folder = folder();
    let file = folder.join("nginx.conf");
    fs::write(&file, format!("http {{ {http}\n}} events {{ }}")).unwrap();
    let mut nginx = Command::new(nginx);
    let globals = ["-t", "-q", "-e", "log", "-g", "pid pid;", "-p"];
    nginx.args(globals).arg(&folder).arg("-c").arg(&file);
    let said = String::from_utf8(nginx.output().unwrap().stderr).unwrap();
    let emerg = said.lines().find_map(|line| line.strip_prefix("nginx: [emerg] "));
    let emerg = emerg.unwrap_or_else(|| panic!("nginx accepts {http}: {said}"));
    emerg.replace(&format!(" in {}", file.display()), "")
}

struct Loaded {
    site: Site,
    log_files: LogFiles,
    zones: Zones,
    warnings: Vec<String>,
    lacks: usize,
}

impl Loaded {
    fn into_site(self, folder: Folder) -> TestSite {
        let Self { site, log_files, zones, warnings, lacks } = self;
        let generation = Generation::new(Arc::new(site), 1);
        TestSite { generation, folder, log_files, zones, warnings, lacks }
    }
}

fn load(http: &str, prefix: &Path, lenient: bool) -> Result<Loaded, String> {
    let text = format!("http {{ access_log off; {http}\n}}");
    let mut files = MemoryFiles::default().with("/nginx.conf", text);
    let (sources, tree) = conf::parse(b"/nginx.conf", b"/", None, &mut files).into_result();
    let tree = tree.map_err(message)?;
    let mut load = Load::new(&mut files, prefix, Path::new("/"));
    (load.lenient, load.sources) = (lenient, sources);
    let http: &Directive = &tree.root[0];
    let site = compile::read(http, &mut load).and_then(|plan| plan.compile(&mut load));
    let site = site.map_err(message)?;
    load.registry.of::<LogFiles>().open().map_err(|error| error.to_string())?;
    let warnings = std::mem::take(&mut load.warnings).into_iter().map(message).collect();
    let log_files = std::mem::take(load.registry.of::<LogFiles>());
    let zones = std::mem::take(Zones::of(&mut load));
    Ok(Loaded { site, log_files, zones, warnings, lacks: load.lacks.len() })
}

/// `message:line`, with lines of the text counted from 1.
fn message(error: conf::Error) -> String {
    match error.span {
        Some(span) => format!("{}:{}", error.message, span.line),
        None => error.message,
    }
}

pub(crate) struct TestSite {
    pub(crate) generation: Rc<Generation>,
    folder: Folder,
    log_files: LogFiles,
    /// The state that the site shares with its successors.
    pub(crate) zones: Zones,
    /// Warnings of loading it, each as `message:line`.
    pub(crate) warnings: Vec<String>,
    /// The number of lines with unsupported directives.
    pub(crate) lacks: usize,
}

impl TestSite {
    /// Writes a file below the default root, `html`; folders are created.
    pub(crate) fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        self.folder.write(&format!("html/{name}"), content)
    }

    /// The lines of a log file so far: `[level] message`, without the context of the request.
    pub(crate) fn messages(&self, name: &str) -> Vec<String> {
        let text = fs::read_to_string(self.folder.join(name)).unwrap();
        let brief = |line: &str| {
            let (start, message) = line.split_once(": ").unwrap();
            let level = start.split(' ').find(|word| word.starts_with('[')).unwrap();
            let message = message.split(", client: ").next().unwrap();
            let message = message.split_once(' ').filter(|(id, _)| id.starts_with('*'));
            format!("{level} {}", message.unwrap().1)
        };
        text.lines().map(brief).collect()
    }

    /// Opens the log files, which do not exist before.
    pub(crate) fn open_logs(&self) {
        assert!(self.log_files.open().is_ok());
    }

    /// The text of a log, by its name in the configuration.
    pub(crate) fn log(&self, name: &str) -> String {
        observe::flush_all();
        self.folder.read(name)
    }

    /// Empties a log.
    pub(crate) fn forget(&self, name: &str) {
        observe::flush_all();
        fs::write(self.folder.join(name), "").unwrap();
    }

    /// Sends a `GET` request of HTTP/1.1.
    pub(crate) fn get(&self, target: &str) -> TestAnswer {
        self.get_with(target, "")
    }

    /// The same with more header lines, each ending in a line feed.
    pub(crate) fn get_with(&self, target: &str, fields: &str) -> TestAnswer {
        self.send(&format!("GET {target} HTTP/1.1\nHost: localhost\n{fields}\n"))
    }

    /// Sends the head of a request, whose lines end in line feeds, to the first socket.
    pub(crate) fn send(&self, head: &str) -> TestAnswer {
        self.send_to(0, head)
    }

    /// Sends to the socket with that number.
    pub(crate) fn send_to(&self, listen: u32, head: &str) -> TestAnswer {
        self.ask(Some(PEER.parse().unwrap()), listen, head)
    }

    /// Sends to the first socket, from that address or from a Unix socket.
    pub(crate) fn send_from(&self, peer: Option<SocketAddr>, head: &str) -> TestAnswer {
        self.ask(peer, 0, head)
    }

    fn ask(&self, peer: Option<SocketAddr>, listen: u32, head: &str) -> TestAnswer {
        let client = Rc::new(Client::new(1, peer, net::SocketProbe::NONE, listen));
        let x = Box::new(Exchange::new(client.clone(), self.generation.clone()));
        self.ask_with(x, &client, head)
    }

    /// Sends another request of the same client, with the exchange of an earlier one.
    pub(crate) fn send_again(&self, earlier: TestAnswer, head: &str) -> TestAnswer {
        let mut x = earlier.x;
        x.release();
        self.ask_with(x, &Rc::new(test_client()), head)
    }

    fn ask_with(&self, mut x: Box<Exchange>, client: &Rc<Client>, head: &str) -> TestAnswer {
        x.reset(client, &self.generation);
        x.request.received = head.replace('\n', "\r\n").into_bytes();
        let limits = x.server().reading.head;
        let mut parser = RequestHeadParser::default();
        match parser.parse(&mut x.request.head, &x.request.received, &limits) {
            Ok(HeadProgress::Complete { len }) => x.request.head_bytes = len,
            other => panic!("{other:?} of {head:?}"),
        }
        let (replied, took_ms) = simulate(run(&mut x, &parser)).unwrap();
        let mut answer = TestAnswer { took_ms, ..TestAnswer::read(x, replied) };
        phases::log(&mut answer.x);
        answer
    }
}

/// Whether there is a reply. Background tasks have ended when this returns.
async fn run(x: &mut Exchange, parser: &RequestHeadParser) -> bool {
    let mut ran = match h1::settle(x, parser) {
        Ok(()) => phases::run(x),
        Err(status) => phases::step(x, Flow::Status(status)),
    };
    while let Ran::Waits(wait) = ran {
        let generation = x.generation.clone();
        let flow = wait.begin(x, &generation).await;
        ran = phases::resume(x, flow);
    }
    BackgroundTasks::ended(&x.generation).await;
    matches!(ran, Ran::Replied)
}

/// A reply whose body was read.
pub(crate) struct TestAnswer {
    pub(crate) x: Box<Exchange>,
    /// False if the connection would be closed without a reply.
    pub(crate) replied: bool,
    /// How long the reply took, by a clock that runs only while the exchange waits.
    pub(crate) took_ms: u64,
    /// Whether a piece of the body was a range of a file.
    pub(crate) from_file: bool,
    /// Whether the body was incomplete.
    pub(crate) broken: bool,
    bytes: Vec<u8>,
}

fn test_client() -> Client {
    Client::new(1, Some(PEER.parse().unwrap()), net::SocketProbe::NONE, 0)
}

/// A body behind a filter.
pub(crate) struct TestedFilter {
    pub(crate) x: Box<Exchange>,
    body: FilteredBody,
}

impl TestedFilter {
    pub(crate) fn new(body: Body, filter: impl BodyFilter + 'static) -> Self {
        let (client, generation) = (Rc::new(test_client()), site("server { }").generation.clone());
        let mut x = Box::new(Exchange::new(client.clone(), generation.clone()));
        x.reset(&client, &generation);
        x.reply.body = body;
        x.reply.filter_body(filter);
        Self { body: FilteredBody::take(&mut x.reply), x }
    }

    pub(crate) fn poll(&mut self) -> Poll<Result<Option<Chunk>, BodyError>> {
        self.poll_with(&mut Context::from_waker(Waker::noop()))
    }

    pub(crate) fn poll_with(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Chunk>, BodyError>> {
        self.body.poll_chunk(&mut self.x, cx)
    }

    /// The whole text; fails if the body is pending or incomplete.
    pub(crate) fn text(mut self) -> Vec<u8> {
        let mut text = Vec::new();
        loop {
            match self.poll() {
                Poll::Ready(Ok(Some(Chunk::Bytes(bytes)))) => {
                    text.extend_from_slice(bytes.as_ref())
                }
                Poll::Ready(Ok(None)) => return text,
                _ => panic!("neither bytes nor the end"),
            }
        }
    }
}

impl TestAnswer {
    fn read(mut x: Box<Exchange>, replied: bool) -> Self {
        let body = FilteredBody::take(&mut x.reply);
        let bytes = Vec::new();
        let mut answer = Self { x, replied, took_ms: 0, from_file: false, broken: false, bytes };
        answer.read_body(body);
        if answer.x.reply.expect_trailers {
            phases::end_body(&mut answer.x);
        }
        answer
    }

    fn read_body(&mut self, mut body: FilteredBody) {
        loop {
            match body.poll_chunk(&mut self.x, &mut Context::from_waker(Waker::noop())) {
                Poll::Ready(Ok(Some(chunk))) => self.take(chunk),
                Poll::Ready(Ok(None)) => return,
                Poll::Ready(Err(_)) => {
                    self.broken = true;
                    return;
                }
                Poll::Pending => panic!("a body that is not there at once"),
            }
        }
    }

    fn take(&mut self, chunk: Chunk) {
        match chunk {
            Chunk::Bytes(bytes) => self.bytes.extend_from_slice(bytes.as_ref()),
            Chunk::File(slice) => {
                self.from_file = true;
                let start = self.bytes.len();
                self.bytes.resize(start + slice.len() as usize, 0);
                read_exact(&slice.file, &mut self.bytes[start..], slice.start);
            }
            Chunk::Flush | Chunk::Pause | Chunk::Trailers(_) => {}
        }
    }

    pub(crate) fn status(&self) -> u16 {
        self.x.reply.status
    }

    pub(crate) fn body(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The value of a field; several values are joined by `, `.
    pub(crate) fn field(&self, name: &str) -> Option<String> {
        let values: Vec<String> = self
            .head()
            .iter()
            .filter_map(|line| line.split_once(": "))
            .filter(|(own, _)| own.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.to_owned())
            .collect();
        (!values.is_empty()).then(|| values.join(", "))
    }

    pub(crate) fn trailers(&self) -> Vec<String> {
        lines(&self.x.reply.trailers)
    }

    /// All fields as `Name: value`; first those that the reply stores separately.
    pub(crate) fn head(&self) -> Vec<String> {
        let reply = &self.x.reply;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let mut head = Vec::new();
        if !reply.content_type.is_empty() {
            let charset = match &reply.charset[..] {
                b"" => String::new(),
                charset => format!("; charset={}", text(charset)),
            };
            head.push(format!("Content-Type: {}{charset}", text(&reply.content_type)));
        }
        head.extend(reply.content_length.map(|length| format!("Content-Length: {length}")));
        if let Some(modified) = reply.last_modified
            && reply.fields.values(b"Last-Modified").next().is_none()
        {
            head.push(format!("Last-Modified: {}", text(&wire::date::http(modified))));
        }
        if !reply.location.is_empty() {
            head.push(format!("Location: {}", text(&reply.location)));
        }
        head.append(&mut lines(&reply.fields));
        head
    }
}

fn lines(fields: &Fields) -> Vec<String> {
    let text = |bytes| String::from_utf8_lossy(bytes);
    fields.iter().map(|(name, value)| format!("{}: {}", text(name), text(value))).collect()
}

fn read_exact(file: &File, out: &mut [u8], start: u64) {
    file.read_exact_at(out, start).unwrap();
}

#[test]
fn return_answers_with_a_text() {
    let answer = site("server { location / { return 200 hello; } }").get("/");
    assert_eq!((answer.status(), answer.body().as_str()), (200, "hello"));
    assert_eq!(answer.head(), ["Content-Type: text/plain", "Content-Length: 5"]);
}

#[test]
fn a_file_is_served() {
    let site = site("server { }");
    site.file("deep/a.html", "<p>");
    let answer = site.get("/deep/a.html");
    assert_eq!((answer.status(), answer.body().as_str()), (200, "<p>"));
    assert_eq!(answer.field("content-type").unwrap(), "text/html");
    assert_eq!(site.get("/b.html").status(), 404);
}

#[test]
fn an_unknown_directive_is_refused() {
    assert_eq!(refusal("server {\n root a; root b; }"), "\"root\" directive is duplicate:2");
    assert_eq!(refusal("server {\n"), "unexpected end of file, expecting \"}\":3");
}
