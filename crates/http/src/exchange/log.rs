//! An exchange's lines in the error log, with the context nginx gives them.

use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

use observe::{Errno, ErrorLog, KeptContext, Level, MessageContext, MessageSource};
use wire::Known;

use super::{BodyError, BodyLog, Exchange, FeatureState};

impl Exchange {
    /// Whether a message of that level would be written: call this before computing the message.
    pub fn logs(&self, level: Level) -> bool {
        self.error_log().enabled(level, self.client.source())
    }

    /// The log of the location; subrequests use the log of their main request.
    fn error_log(&self) -> &Arc<ErrorLog> {
        &self.generation.location(self.main_location()).core.error_log
    }

    /// Writes a message to the error log of the location, with client, server and request.
    pub fn log(&self, level: Level, message: fmt::Arguments<'_>) {
        self.error_log().write(level, self.source(), message, |context| self.describe(context));
    }

    fn source(&self) -> MessageSource<'_> {
        let tags = self.states.find::<LogTags>().map_or(&b""[..], |tags| &tags.0);
        MessageSource { tags, ..self.client.source() }
    }

    /// Writes a message to the debug log.
    #[inline]
    pub fn debug(&self, message: fmt::Arguments<'_>) {
        if self.logs(Level::DebugHttp) {
            self.log(Level::DebugHttp, message);
        }
    }

    /// `, client: ..., server: ..., request: "...", upstream: "...", host: "...", referrer: "..."`
    fn describe(&self, context: &mut MessageContext<'_>) {
        context.action(self.action);
        context.client("", self.client.address());
        context.server(&self.server().name);
        quoted(context, "request", Some(self.request.line()).filter(|line| !line.is_empty()));
        quoted(context, "subrequest", self.is_subrequest().then_some(&self.request.uri[..]));
        self.describe_backend(context);
        quoted(context, "host", self.request.field(Known::Host));
        quoted(context, "referrer", self.request.field(Known::Referer));
    }

    /// `, upstream: "http://127.0.0.1:8080/uri"`: the last server tried.
    fn describe_backend(&self, context: &mut MessageContext<'_>) {
        let Some(last) = self.backends.last().filter(|_| self.backends.named) else { return };
        let (schema, colon) =
            (self.backends.schema.as_bytes(), if last.is_unix() { ":" } else { "" });
        let parts = [schema, last.name(), colon.as_bytes(), &self.backends.uri];
        context.quoted("upstream", &parts);
    }
}

/// The tags of the location's error log that have variables, rendered.
#[derive(Default)]
pub(crate) struct LogTags(pub(crate) Vec<u8>);

impl FeatureState for LogTags {
    fn clear(&mut self) {
        self.0.clear();
    }
    fn redirected(&mut self) {
        self.0.clear();
    }
    /// A subrequest writes to the log of its main request.
    fn begin_subrequest(&mut self, parent: &Self) {
        self.0.clone_from(&parent.0);
    }
}

/// A log for messages about an exchange after its end.
pub(crate) struct DetachedLog {
    log: Arc<ErrorLog>,
    source: MessageSource<'static>,
    tags: Box<[u8]>,
    context: KeptContext,
}

impl Exchange {
    /// A log for messages after the end of this exchange.
    pub(crate) fn aside(&self) -> Rc<DetachedLog> {
        let log = self.error_log().clone();
        let context = log.keep(|context| self.describe(context));
        let (source, tags) = (self.client.source(), self.source().tags.into());
        Rc::new(DetachedLog { log, source, tags, context })
    }
}

impl DetachedLog {
    /// Writes a message with the exchange's context.
    pub(crate) fn write(&self, level: Level, message: fmt::Arguments<'_>) {
        let source = MessageSource { tags: &self.tags, ..self.source };
        self.log.write(level, source, message, |context| self.context.describe(context));
    }
}

impl BodyError {
    /// Logs why the body of this exchange's reply ended early.
    pub(crate) fn log(&self, x: &mut Exchange) {
        if !matches!(self, Self::Io(_) | Self::Truncated | Self::Coding(_) | Self::Subrequest) {
            x.action = "reading upstream";
        }
        match self {
            Self::Io(error) => {
                let reading = "reading the reply's body failed";
                x.log(Level::Alert, format_args!("{reading}{}", Errno(error)));
            }
            Self::Truncated | Self::Subrequest => {}
            Self::Request(error) => error.log(x),
            Self::UpstreamClosed => {
                x.log(Level::Error, format_args!("upstream prematurely closed connection"));
            }
            Self::UpstreamCutShort(message) | Self::Upstream(message) | Self::Coding(message) => {
                x.log(Level::Error, format_args!("{message}"));
            }
            Self::UpstreamTimedOut => {
                let error = net::timed_out();
                x.log(Level::Error, format_args!("upstream timed out{}", Errno(&error)));
            }
            Self::UpstreamRead(error) => {
                x.log(Level::Error, format_args!("recv() failed{}", Errno(error)));
            }
            Self::TempFile(call, path, error) => {
                let path = path.display();
                x.log(Level::Crit, format_args!("{call} \"{path}\" failed{}", Errno(error)));
            }
        }
    }
}

impl BodyLog for Exchange {
    fn note(&mut self, level: Level, message: fmt::Arguments<'_>) {
        let action = std::mem::replace(&mut self.action, "reading upstream");
        self.log(level, message);
        self.action = action;
    }
}

impl BodyLog for Rc<DetachedLog> {
    fn note(&mut self, level: Level, message: fmt::Arguments<'_>) {
        self.write(level, message);
    }
}

fn quoted(context: &mut MessageContext<'_>, name: &str, value: Option<&[u8]>) {
    if let Some(value) = value {
        context.quoted(name, &[value]);
    }
}

#[cfg(test)]
mod tests {
    use observe::Level;

    use crate::testing::site;

    #[test]
    fn a_location_logs_to_its_own_file_with_the_context() {
        let site = site(
            "error_log http.log info; server { server_name s; \
             location /a { error_log a.log; } location /b { } }",
        );
        for target in ["/a", "/b"] {
            let answer = site.get_with(target, "Referer: r\n");
            answer.x.log(Level::Error, format_args!("grave"));
            answer.x.log(Level::Info, format_args!("light"));
            assert_eq!(answer.x.logs(Level::Info), target == "/b");
        }
        let context = "while logging request, client: 127.0.0.1, server: s, \
                       request: \"GET /a HTTP/1.1\", host: \"localhost\", referrer: \"r\"\n";
        let log = site.log("a.log");
        assert!(log.ends_with(&format!(": *1 grave {context}")), "{log}");
        let log = site.log("http.log");
        assert!(!log.contains("GET /a ") && log.contains("[error]") && log.contains("[info]"));
    }
}
