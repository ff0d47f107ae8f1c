//! A message and its context, in the two forms of lines: nginx's text, and JSON.

use std::fmt;

use crate::errno::split_errno;
use crate::json::JsonFields;
use crate::stamps::{iso8601_ms, unix_ms};
use crate::{Errno, LINE_MAX, Level, LineBuffer, Stamps, system};

/// The form of a log's lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ErrorLogForm {
    Text,
    Json,
}

/// The origin of a message.
#[derive(Clone, Copy, Debug, Default)]
pub struct MessageSource<'t> {
    /// The connection's number, after `*`.
    pub connection: Option<u64>,
    /// `debug_connection`: every level is enabled, regardless of the log.
    pub debug: bool,
    /// What [`ErrorLogTags::render`](crate::ErrorLogTags::render) wrote: tags with variables.
    pub tags: &'t [u8],
}

/// Writes the fields of a message's context, in the form of the line.
pub struct MessageContext<'l>(ContextForm<'l>);

enum ContextForm<'l> {
    Text(&'l mut LineBuffer),
    Json(&'l mut JsonFields),
}

use ContextForm::{Json, Text};

impl MessageContext<'_> {
    /// ` while ACTION`
    pub fn action(&mut self, action: &str) {
        match &mut self.0 {
            _ if action.is_empty() => {}
            Text(line) => line.format(format_args!(" while {action}")),
            Json(fields) => fields.text("action", &[action.as_bytes()]),
        }
    }

    /// `, client: ADDRESS`; `protocol` is `udp ` for a client of datagrams.
    pub fn client(&mut self, protocol: &str, address: &[u8]) {
        match &mut self.0 {
            Text(line) => {
                line.format(format_args!(", {protocol}client: "));
                line.push(address);
            }
            Json(fields) => fields.text("client", &[address]),
        }
    }

    /// `, server: NAME`
    pub fn server(&mut self, name: &[u8]) {
        match &mut self.0 {
            Text(line) => {
                line.push(b", server: ");
                line.push(name);
            }
            Json(_) if name.is_empty() => {}
            Json(fields) => fields.text("server", &[name]),
        }
    }

    /// The same for a server that is named by a listening address.
    pub fn listening_server(&mut self, address: &dyn fmt::Display) {
        let mut name = LineBuffer::new();
        name.format(format_args!("{address}"));
        self.server(name.as_bytes());
    }

    /// `, NAME: "VALUE"`, with a value made of these parts.
    pub fn quoted(&mut self, name: &str, parts: &[&[u8]]) {
        match &mut self.0 {
            Text(line) => {
                line.format(format_args!(", {name}: \""));
                parts.iter().for_each(|part| line.push(part));
                line.push(b"\"");
            }
            Json(fields) => fields.text(name, parts),
        }
    }

    /// Text that JSON has as fields of its own: see [`number`](Self::number).
    pub fn text(&mut self, text: fmt::Arguments<'_>) {
        if let Text(line) = &mut self.0 {
            line.format(text);
        }
    }

    /// A number, in JSON only.
    pub fn number(&mut self, name: &str, value: u64) {
        if let Json(fields) = &mut self.0 {
            fields.number(name, value);
        }
    }
}

/// The context of a session, kept for messages after its end.
pub struct KeptContext {
    text: LineBuffer,
    /// The same for logs in JSON, if there are any.
    json: Option<Box<JsonFields>>,
}

/// The most bytes of a context that is kept for JSON.
const KEPT_MAX: usize = 1024;

impl KeptContext {
    pub(super) fn new(has_json: bool, context: impl Fn(&mut MessageContext<'_>)) -> Self {
        let mut text = LineBuffer::new();
        context(&mut MessageContext(Text(&mut text)));
        let json = has_json.then(|| {
            let mut fields = Box::new(JsonFields::further(KEPT_MAX));
            context(&mut MessageContext(Json(&mut fields)));
            fields
        });
        Self { text, json }
    }

    /// Writes the context into a line.
    pub fn describe(&self, context: &mut MessageContext<'_>) {
        match (&mut context.0, &self.json) {
            (Text(line), _) => line.push(self.text.as_bytes()),
            (Json(fields), Some(kept)) => fields.written(kept.as_bytes()),
            (Json(_), None) => {}
        }
    }
}

/// A message before it is a line.
pub(super) struct LogMessage<'m> {
    pub(super) level: Level,
    pub(super) source: MessageSource<'m>,
    pub(super) text: fmt::Arguments<'m>,
    /// Writes the context, which debug messages do not have.
    pub(super) context: &'m dyn Fn(&mut MessageContext<'_>),
}

/// The most bytes of the fields after the context: the error and the tags.
const TAIL_MAX: usize = 1152;
/// The end of an object that was cut.
const CUT: &[u8] = br#","truncated":true"#;
const CLOSE: &[u8] = b"}";

impl LogMessage<'_> {
    /// Writes the line in nginx's form. Returns where the message begins.
    pub(super) fn write_text(&self, line: &mut LineBuffer) -> usize {
        line.push(&Stamps::now().error_log);
        let (pid, thread) = (std::process::id(), (system().thread_id)());
        line.format(format_args!(" [{}] {pid}#{thread}: ", self.level.name()));
        if let Some(connection) = self.source.connection {
            line.format(format_args!("*{connection} "));
        }
        let start = line.len();
        line.format(self.text);
        if !self.level.is_debug() {
            (self.context)(&mut MessageContext(Text(line)));
        }
        line.escape_controls(start);
        line.end();
        start
    }

    /// Makes the line in JSON, with the fields of NGINX Plus; `tags` are those without variables.
    pub(super) fn json(&self, tags: &[u8]) -> LineBuffer {
        let mut text = LineBuffer::new();
        text.format(self.text);
        let (text, error) = split_errno(text.as_bytes());
        let mut tail = JsonFields::further(TAIL_MAX);
        if let Some(error) = error {
            tail.number("errno", error.raw_os_error().unwrap_or_default().unsigned_abs().into());
            tail.text("errtext", &[Errno(&error).words().as_bytes()]);
        }
        tail.written(tags);
        tail.written(self.source.tags);
        let around = tail.as_bytes().len() + CUT.len() + CLOSE.len() + 1;
        let mut head = JsonFields::first(LINE_MAX - around);
        self.write_head(text, &mut head);
        let is_cut = head.is_cut() || tail.is_cut();
        let mut line = head.into_line();
        line.push(tail.as_bytes());
        line.push(if is_cut { CUT } else { b"" });
        line.push(CLOSE);
        line.end();
        line
    }

    fn write_head(&self, text: &[u8], head: &mut JsonFields) {
        head.text("level", &[self.level.name().as_bytes()]);
        head.text("timestamp", &[&iso8601_ms(unix_ms())]);
        head.number("pid", std::process::id().into());
        head.number("tid", (system().thread_id)().into());
        if let Some(connection) = self.source.connection {
            head.number("cnum", connection);
        }
        head.text("msg", &[text]);
        if !self.level.is_debug() {
            (self.context)(&mut MessageContext(Json(head)));
        }
    }
}
