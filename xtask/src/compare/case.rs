//! A case file: what stands inside `http { }`, the files to make, and the requests to send.
//!
//! The notation is described in conformance/README.md. Nothing is expected here of an answer: what
//! the reference answers is the expectation, and `differs:` notes where Weir must not follow it.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::script::{self, BackendScript};
use super::text;

/// The name that requests without a Host field of their own are sent to.
const HOST: &str = "localhost";

/// Until the end of a backend's reply, and of its connection, has reached the server.
const AFTER_REPLY: Duration = Duration::from_millis(50);

#[derive(Debug)]
pub(super) struct Case {
    /// The file's name without `.case`.
    pub(super) name: String,
    /// What goes inside `http { }`, macros unexpanded.
    pub(super) config: String,
    /// What the server's folder holds before it starts.
    pub(super) files: Vec<CaseFile>,
    /// What is sent, in order, each on a connection of its own.
    pub(super) requests: Vec<CaseConnection>,
}

/// One line of `--- files`; paths are bytes, relative to the server's folder.
#[derive(Debug, PartialEq)]
pub(super) enum CaseFile {
    File(Vec<u8>, Vec<u8>),
    Folder(Vec<u8>),
    /// A symbolic link and what it points to.
    Link(Vec<u8>, Vec<u8>),
    Mode(u32, Vec<u8>),
    /// The modification time of a path, in seconds.
    Mtime(u64, Vec<u8>),
}

/// One connection: what is written to it and when its replies are read.
#[derive(Debug)]
pub(super) struct CaseConnection {
    /// Its line in the case file.
    pub(super) line: usize,
    pub(super) title: String,
    /// Which of the server's ports it goes to, from 0.
    pub(super) port: usize,
    pub(super) steps: Vec<ConnectionStep>,
    /// What the backends answer meanwhile.
    pub(super) script: Arc<BackendScript>,
    /// Whether of a reply with an error nothing but the status line is compared.
    pub(super) is_brief: bool,
    /// Set where Weir is meant to answer otherwise than the reference.
    pub(super) differs: Option<Differs>,
}

/// One thing done to a connection.
#[derive(Debug, PartialEq)]
pub(super) enum ConnectionStep {
    /// Write these bytes, macros unexpanded.
    Write(Vec<u8>),
    /// Read one reply; one to HEAD has no body.
    Read {
        /// Whether the reply answers HEAD.
        head: bool,
    },
    Wait(Duration),
    /// Close the writing half.
    Close,
    /// Read one reply, or close the writing half where none comes for a moment.
    Settle,
    /// Have curl ask, and read what it prints.
    Curl(CurlRequest),
    /// End this connection and go on with a new one to this port, from 0.
    Reopen(usize),
}

/// A request that curl makes, over TLS or HTTP/2.
#[derive(Debug, PartialEq)]
pub(super) struct CurlRequest {
    pub(super) front: CurlFront,
    /// The method, the target and the fields, macros unexpanded.
    pub(super) method: String,
    pub(super) target: String,
    pub(super) fields: Vec<String>,
    pub(super) body: Vec<u8>,
}

/// What a request is sent over.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum CurlFront {
    /// HTTP/1.1 over TLS.
    Tls,
    TlsHttp2,
    /// HTTP/2 without TLS, and without asking before.
    Http2,
}

/// Why Weir answers otherwise, and exactly in what.
#[derive(Debug, PartialEq)]
pub(super) struct Differs {
    pub(super) reason: String,
    /// The lines of the difference as a report prints them.
    pub(super) lines: Vec<String>,
}

impl Case {
    /// Reads and parses a case file; an error names file and line.
    pub(super) fn read(path: &Path) -> Result<Case, String> {
        let whole = std::fs::read_to_string(path);
        let whole = whole.map_err(|e| format!("{}: {e}", path.display()))?;
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        Case::parse(name, &whole).map_err(|e| format!("{}:{e}", path.display()))
    }

    /// The configuration, and of the case's text the lines since the request before this one.
    pub(super) fn text_of(&self, text: &str, request: usize) -> String {
        let before = request.checked_sub(1).map_or(0, |before| self.requests[before].line);
        let own = text.lines().take(self.requests[request].line).skip(before);
        own.fold(self.config.clone(), |text, line| text + "\n" + line)
    }

    /// Parses the text of a case; an error begins with its line.
    pub(super) fn parse(name: String, whole: &str) -> Result<Case, String> {
        let mut case = Case { name, config: String::new(), files: vec![], requests: vec![] };
        let mut section = Section::Config;
        let mut block = RawRequestLines::default();
        for (index, line) in whole.lines().enumerate() {
            let at = |e| format!("{}: {e}", index + 1);
            match line {
                "--- files" => section = Section::Files,
                "--- requests" => section = Section::Requests(LineForm::Short),
                "--- payloads" => section = Section::Requests(LineForm::Payload),
                "--- replies" => section = Section::Requests(LineForm::Reply),
                _ => match section {
                    Section::Config => case.config.extend([line, "\n"]),
                    Section::Files => case.files.extend(CaseFile::parse(line).map_err(at)?),
                    Section::Requests(form) => {
                        block.form = form;
                        block.line(index + 1, line, &mut case).map_err(at)?;
                    }
                },
            }
        }
        block.finish(&mut case);
        match case.requests.is_empty() {
            true => Err("1: no requests".into()),
            false => Ok(case),
        }
    }
}

#[derive(Clone, Copy)]
enum Section {
    Config,
    Files,
    Requests(LineForm),
}

/// What a line that is nothing else stands for.
#[derive(Clone, Copy, Default)]
enum LineForm {
    /// A request in the short form.
    #[default]
    Short,
    /// All bytes of a client, which go to the first two ports, one after the other.
    Payload,
    /// All bytes of a backend. It gets a request, and then another one.
    Reply,
}

impl CaseFile {
    fn parse(line: &str) -> Result<Option<CaseFile>, String> {
        if line.is_empty() || line.starts_with('#') {
            return Ok(None);
        }
        let entry = if let Some((mode, path)) = two_words(line, "mode ") {
            let mode = u32::from_str_radix(mode, 8).map_err(|e| format!("{mode}: {e}"))?;
            CaseFile::Mode(mode, text::bytes(path)?)
        } else if let Some((mtime, path)) = two_words(line, "mtime ") {
            let mtime = mtime.parse().map_err(|e| format!("{mtime}: {e}"))?;
            CaseFile::Mtime(mtime, text::bytes(path)?)
        } else if let Some((path, content)) = line.split_once(": ") {
            CaseFile::File(text::bytes(path)?, text::bytes(content)?)
        } else if let Some((path, target)) = line.split_once(" -> ") {
            CaseFile::Link(text::bytes(path)?, text::bytes(target)?)
        } else if let Some(path) = line.strip_suffix('/') {
            CaseFile::Folder(text::bytes(path)?)
        } else if let Some(path) = line.strip_suffix(':') {
            CaseFile::File(text::bytes(path)?, vec![])
        } else {
            return Err(format!("\"{line}\" is no file, folder, link, mode or mtime"));
        };
        Ok(Some(entry))
    }
}

fn two_words<'a>(line: &'a str, keyword: &str) -> Option<(&'a str, &'a str)> {
    line.strip_prefix(keyword)?.split_once(' ')
}

/// Gathers the lines of one raw request; a short one is complete at once.
#[derive(Default)]
struct RawRequestLines {
    form: LineForm,
    port: usize,
    open: Option<CaseConnection>,
    script: Arc<BackendScript>,
    script_open: Option<script::ScriptLines>,
}

impl RawRequestLines {
    fn line(&mut self, number: usize, line: &str, case: &mut Case) -> Result<(), String> {
        if self.in_block(number, line)? {
            return Ok(());
        }
        self.finish(case);
        if self.in_script(line)? {
            return Ok(());
        }
        if line.is_empty() || line.starts_with('#') {
            return Ok(());
        }
        if let Some(reason) = line.strip_prefix("differs: ") {
            let last = case.requests.last_mut().ok_or("differs: comes after a request")?;
            last.differs = Some(Differs { reason: reason.into(), lines: vec![] });
        } else if line.starts_with(['-', '+']) {
            let differs = case.requests.last_mut().and_then(|r| r.differs.as_mut());
            differs.ok_or("a line of difference comes after differs:")?.lines.push(line.into());
        } else if let Some(port) = line.strip_prefix("port ") {
            let port: usize = port.parse().map_err(|_| "port wants a number")?;
            self.port = port.checked_sub(1).ok_or("ports count from 1")?;
        } else {
            case.requests.push(match self.form {
                LineForm::Short => self.short(number, line)?,
                LineForm::Payload => self.payload(number, line)?,
                LineForm::Reply => self.reply(number, line)?,
            });
        }
        Ok(())
    }

    /// The line is the same to a server that buffers requests and to one that does not.
    fn payload(&self, number: usize, line: &str) -> Result<CaseConnection, String> {
        let bytes = text::bytes(line)?;
        let steps = twice(bytes.clone(), bytes, 1);
        Ok(brief(number, line, 0, steps, self.script.clone()))
    }

    /// `[close ]BYTES`; whatever the backend has sent too much must not reach the second request.
    fn reply(&self, number: usize, line: &str) -> Result<CaseConnection, String> {
        let (text, closes) = line.strip_prefix("close ").map_or((line, false), |l| (l, true));
        let get = |path: &str| format!("GET /{path} HTTP/1.1\r\nHost: {HOST}\r\n\r\n").into();
        let mut steps = twice(get("first"), get("second"), self.port);
        // What comes after the reply is there when the connection is used again.
        steps.insert(2, ConnectionStep::Wait(AFTER_REPLY));
        let script = Arc::new(BackendScript::raw(text::bytes(text)?, closes));
        Ok(brief(number, line, self.port, steps, script))
    }

    /// Whether the line says what the backends answer from here on.
    fn in_script(&mut self, line: &str) -> Result<bool, String> {
        if let Some(line) = line.strip_prefix('=') {
            self.script_open.get_or_insert_default().line(line)?;
            return Ok(true);
        }
        if let Some(lines) = self.script_open.take() {
            self.script = Arc::new(lines.finish());
        }
        Ok(false)
    }

    /// Whether the line belongs to a raw request, which a line beginning with `>` opens.
    fn in_block(&mut self, number: usize, line: &str) -> Result<bool, String> {
        if let Some(text) = line.strip_prefix('>') {
            self.in_script("")?;
            let (port, text) = (self.port, text.strip_prefix(' ').unwrap_or(text));
            let script = &self.script;
            let open = self.open.get_or_insert_with(|| CaseConnection {
                line: number,
                title: line.into(),
                port,
                steps: vec![],
                script: script.clone(),
                is_brief: false,
                differs: None,
            });
            write(&mut open.steps, text::line(text)?);
            return Ok(true);
        }
        let Some(open) = &mut self.open else { return Ok(false) };
        match line.split_once(' ').unwrap_or((line, "")) {
            ("<", "") => open.steps.push(ConnectionStep::Read { head: false }),
            ("<", "HEAD") => open.steps.push(ConnectionStep::Read { head: true }),
            ("<", count) => {
                let count: usize = count.parse().map_err(|_| "< wants HEAD or a count")?;
                open.steps.extend((0..count).map(|_| ConnectionStep::Read { head: false }));
            }
            ("wait", ms) => {
                let ms = ms.parse().map_err(|_| "wait wants milliseconds")?;
                open.steps.push(ConnectionStep::Wait(Duration::from_millis(ms)));
            }
            ("close", "") => open.steps.push(ConnectionStep::Close),
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn finish(&mut self, case: &mut Case) {
        let Some(mut request) = self.open.take() else { return };
        let written = request.steps.iter().rposition(|s| matches!(s, ConnectionStep::Write(_)));
        let read = request.steps.iter().rposition(|s| matches!(s, ConnectionStep::Read { .. }));
        if written > read {
            let head =
                matches!(&request.steps[0], ConnectionStep::Write(b) if b.starts_with(b"HEAD "));
            request.steps.push(ConnectionStep::Read { head });
        }
        case.requests.push(request);
    }

    /// `METHOD TARGET [| FIELD]... [|| BODY]`
    fn curl(
        &self,
        line: usize,
        title: &str,
        front: CurlFront,
        request: &str,
    ) -> Result<CaseConnection, String> {
        let (head, body) = request.split_once(" || ").unwrap_or((request, ""));
        let mut parts = head.split(" | ");
        let first = parts.next().unwrap_or_default();
        let (method, target) = first.split_once(' ').ok_or("curl wants METHOD TARGET")?;
        let text = |field: &str| Ok(String::from_utf8_lossy(&text::bytes(field)?).into_owned());
        let step = ConnectionStep::Curl(CurlRequest {
            front,
            method: method.into(),
            target: target.into(),
            fields: parts.map(text).collect::<Result<_, String>>()?,
            body: text::bytes(body)?,
        });
        let (port, script) = (self.port, self.script.clone());
        let (title, steps) = (title.into(), vec![step]);
        Ok(CaseConnection { line, title, port, steps, script, is_brief: false, differs: None })
    }

    /// `METHOD TARGET [VERSION] [| FIELD]... [|| BODY]`
    fn short(&self, number: usize, line: &str) -> Result<CaseConnection, String> {
        if let Some((front, request)) = curl_front(line) {
            return self.curl(number, line, front, request);
        }
        let (head, body) = line.split_once(" || ").unwrap_or((line, ""));
        let mut parts = head.split(" | ");
        let first = parts.next().unwrap_or_default();
        let words: Vec<&str> = first.split(' ').collect();
        let version = match words[..] {
            [_, _] => " HTTP/1.1",
            [_, _, _] => "",
            _ => return Err(format!("\"{first}\" is no METHOD TARGET [VERSION]")),
        };
        let fields: Vec<&str> = parts.collect();
        let mut bytes = text::bytes(&format!("{first}{version}"))?;
        if !fields.iter().any(|f| f.to_ascii_lowercase().starts_with("host:")) {
            bytes.extend(format!("\r\nHost: {HOST}").bytes());
        }
        for field in fields {
            bytes.extend_from_slice(b"\r\n");
            bytes.extend(text::bytes(field)?);
        }
        bytes.extend_from_slice(b"\r\n\r\n");
        bytes.extend(text::bytes(body)?);
        let steps =
            vec![ConnectionStep::Write(bytes), ConnectionStep::Read { head: words[0] == "HEAD" }];
        let (port, script) = (self.port, self.script.clone());
        let title = line.into();
        Ok(CaseConnection {
            line: number,
            title,
            port,
            steps,
            script,
            is_brief: false,
            differs: None,
        })
    }
}

/// What curl is to send, if the line says so.
fn curl_front(line: &str) -> Option<(CurlFront, &str)> {
    let (word, request) = line.split_once(' ')?;
    let front = match word {
        "tls" => CurlFront::Tls,
        "tls2" => CurlFront::TlsHttp2,
        "h2c" => CurlFront::Http2,
        _ => return None,
    };
    Some((front, request))
}

/// A payload or a reply, of whose answers only a part is compared.
fn brief(
    line: usize,
    title: &str,
    port: usize,
    steps: Vec<ConnectionStep>,
    script: Arc<BackendScript>,
) -> CaseConnection {
    CaseConnection { line, title: title.into(), port, steps, script, is_brief: true, differs: None }
}

/// Two connections, each for some bytes; the second one to this port.
fn twice(first: Vec<u8>, second: Vec<u8>, port: usize) -> Vec<ConnectionStep> {
    vec![
        ConnectionStep::Write(first),
        ConnectionStep::Settle,
        ConnectionStep::Reopen(port),
        ConnectionStep::Write(second),
        ConnectionStep::Settle,
    ]
}

/// Lines that follow each other go out in one write.
fn write(steps: &mut Vec<ConnectionStep>, bytes: Vec<u8>) {
    match steps.last_mut() {
        Some(ConnectionStep::Write(before)) => before.extend(bytes),
        _ => steps.push(ConnectionStep::Write(bytes)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: &str = "server { }
--- files
html/a.txt: one\\n
html/empty:
html/d/
html/l -> a.txt
mode 0400 html/a.txt
mtime 5 html/d
--- requests
# a comment
HEAD /a | X: 1
differs: because
- one
+ two

port 2
POST /b HTTP/1.0 | Host: x | Content-Length: 2 || hi
> GET / HTTP/1.1
>
<
wait 5
> tail\\
< HEAD
close
";

    fn sample() -> Case {
        Case::parse("sample".into(), SAMPLE).unwrap()
    }

    #[test]
    fn the_three_sections_are_read() {
        let case = sample();
        assert_eq!(case.config, "server { }\n");
        assert_eq!(case.files.len(), 6);
        assert_eq!(case.files[0], CaseFile::File(b"html/a.txt".into(), b"one\n".into()));
        assert_eq!(case.files[1], CaseFile::File(b"html/empty".into(), vec![]));
        assert_eq!(case.files[4], CaseFile::Mode(0o400, b"html/a.txt".into()));
        assert_eq!(case.requests.len(), 3);
    }

    #[test]
    fn a_short_request_gets_version_and_host_where_it_has_none() {
        let case = sample();
        let wire = b"HEAD /a HTTP/1.1\r\nHost: localhost\r\nX: 1\r\n\r\n".to_vec();
        assert_eq!(
            case.requests[0].steps,
            [ConnectionStep::Write(wire), ConnectionStep::Read { head: true }]
        );
        let wire = b"POST /b HTTP/1.0\r\nHost: x\r\nContent-Length: 2\r\n\r\nhi".to_vec();
        assert_eq!(case.requests[1].steps[0], ConnectionStep::Write(wire));
        assert_eq!((case.requests[0].port, case.requests[1].port), (0, 1));
    }

    #[test]
    fn a_raw_request_is_its_steps() {
        let steps = &sample().requests[2].steps;
        assert_eq!(steps[0], ConnectionStep::Write(b"GET / HTTP/1.1\r\n\r\n".into()));
        assert_eq!(steps[1], ConnectionStep::Read { head: false });
        assert_eq!(steps[2], ConnectionStep::Wait(Duration::from_millis(5)));
        assert_eq!(steps[3], ConnectionStep::Write(b"tail".into()));
        assert_eq!(steps[4..], [ConnectionStep::Read { head: true }, ConnectionStep::Close]);
    }

    #[test]
    fn a_difference_keeps_its_reason_and_lines() {
        let differs = sample().requests[0].differs.take().unwrap();
        assert_eq!((differs.reason.as_str(), differs.lines.len()), ("because", 2));
    }

    #[test]
    fn a_payload_goes_to_two_ports_and_a_reply_is_followed_by_a_request() {
        let text = "--- payloads\nGET /\\r\\n\ndiffers: why\n- a\n--- replies\nclose HTTP/1.1 2\n";
        let case = Case::parse("raw".into(), text).unwrap();
        let [payload, reply] = &case.requests[..] else { panic!("{case:?}") };
        assert_eq!(payload.steps, twice(b"GET /\r\n".into(), b"GET /\r\n".into(), 1));
        assert_eq!(payload.differs.as_ref().map(|differs| differs.lines.len()), Some(1));
        assert_eq!(*reply.script, BackendScript::raw(b"HTTP/1.1 2".into(), true));
        assert!(payload.is_brief && reply.is_brief);
    }

    #[test]
    fn a_slip_names_its_line() {
        let slip = Case::parse("slip".into(), "x\n--- requests\nGET\n").unwrap_err();
        assert!(slip.starts_with("3: "), "{slip}");
        assert!(Case::parse("none".into(), "server { }\n").is_err());
    }
}
