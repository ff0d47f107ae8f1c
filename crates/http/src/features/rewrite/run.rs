//! Runs programs.

use conf::Values;
use observe::{Level, Text};
use session::evaluate;
use wire::uri::{Unescape, unescape};

use super::condition::Condition;
use super::program::{Code, Program, Return, Rewrite, SetVariable, Then};
use super::replacement::{render, was_escaped};
use crate::exchange::{Bytes, Exchange, Flow, Jump, Phase, TooLong};
use crate::paths;
use crate::regex::Pattern;
use crate::site::LocationId;

/// The compiled program of a location.
pub(super) struct Machine {
    codes: Box<[Code]>,
    /// The locations of its `if` blocks.
    ifs: Box<[LocationId]>,
    log: bool,
}

struct Run<'m, 'x> {
    machine: &'m Machine,
    x: &'x mut Exchange,
    /// `rewrite_log`
    log: bool,
    /// A buffer for texts.
    text: Vec<u8>,
    /// Whether the path was rewritten, so that the location has to be chosen again.
    uri_changed: bool,
    /// Whether groups are escaped in the values of `set` and `if`, as nginx does until a `rewrite`
    /// matches.
    escapes: bool,
}

/// The result of a line.
enum ProgramStep {
    Next,
    To(usize),
    End,
    Answer(Flow),
}

impl Machine {
    pub(super) fn new(program: Program, ifs: &[LocationId], log: bool) -> Self {
        Self { codes: program.codes.into(), ifs: ifs.into(), log }
    }

    pub(super) fn run(&self, x: &mut Exchange) -> Flow {
        let in_location = x.stage.phase == Phase::Rewrite;
        let (log, text) = (self.log || x.logs(Level::DebugHttp), x.scratch());
        let mut run = Run { machine: self, x, log, text, uri_changed: false, escapes: true };
        let flow = run.all(in_location);
        let text = run.text;
        x.give_scratch(text);
        flow
    }
}

impl Run<'_, '_> {
    fn all(&mut self, in_location: bool) -> Flow {
        let mut at = 0;
        while let Some(code) = self.machine.codes.get(at) {
            at += 1;
            let step = match code {
                Code::Set(set) => self.set(set),
                Code::If(block) => match self.holds(&block.condition) {
                    Ok(true) => {
                        if in_location {
                            self.x.location = self.machine.ifs[block.number];
                        }
                        ProgramStep::Next
                    }
                    Ok(false) => ProgramStep::To(block.end),
                    Err(flow) => ProgramStep::Answer(flow),
                },
                Code::Rewrite(rewrite) => self.rewrite(rewrite),
                Code::Return(answer) => ProgramStep::Answer(self.answer(answer)),
                Code::Break => self.end_here(),
            };
            match step {
                ProgramStep::Next => {}
                ProgramStep::To(line) => at = line,
                ProgramStep::End => break,
                ProgramStep::Answer(flow) => return flow,
            }
        }
        // In the server's own block, the location is chosen afterwards anyway.
        if self.uri_changed && in_location { Flow::Jump(Jump::Relocate) } else { Flow::Next }
    }

    fn set(&mut self, set: &SetVariable) -> ProgramStep {
        let value = match set.value.as_fixed() {
            Some(value) => value,
            None => {
                self.text.clear();
                self.value(&set.value);
                &self.text
            }
        };
        let done = match set.set {
            None => evaluate::set(self.x, set.variable, value),
            Some(setter) => {
                setter(self.x, value);
                Ok(())
            }
        };
        match done {
            Ok(()) => ProgramStep::Next,
            Err(TooLong) => ProgramStep::Answer(Flow::Status(500)),
        }
    }

    /// Appends a value of `set` or `if`.
    fn value(&mut self, template: &conf::Template) {
        let escaped = self.escapes && was_escaped(self.x);
        render(template, escaped, self.x, &mut self.text);
    }

    fn holds(&mut self, condition: &Condition) -> Result<bool, Flow> {
        self.text.clear();
        match condition {
            Condition::True(variable) => {
                self.x.variable(*variable, &mut self.text);
                Ok(!matches!(&self.text[..], b"" | b"0"))
            }
            Condition::Equal { variable, to, not } => {
                self.x.variable(*variable, &mut self.text);
                let equal = match to.as_fixed() {
                    Some(to) => self.text == to,
                    None => {
                        let end = self.text.len();
                        self.value(to);
                        self.text[..end] == self.text[end..]
                    }
                };
                Ok(equal != *not)
            }
            Condition::Matches { variable, pattern, not } => {
                self.x.variable(*variable, &mut self.text);
                let subject = std::mem::take(&mut self.text);
                let matches = self.matches(pattern, &subject);
                self.text = subject;
                Ok(matches? != *not)
            }
            Condition::File { path, is, not } => {
                self.value(path);
                let file = paths::test(self.x, &self.text);
                if let Err(failed) = &file
                    && !failed.is_not_found()
                {
                    paths::log_failed(self.x, Level::Crit, &self.text, failed);
                }
                Ok(file.is_ok_and(|file| is.holds(&file)) != *not)
            }
        }
    }

    /// Matches and logs the result. Without a match, clears the groups of an earlier one.
    fn matches(&mut self, pattern: &Pattern, subject: &[u8]) -> Result<bool, Flow> {
        let matches = pattern.matches(subject, self.x).map_err(|_| Flow::Status(500))?;
        if !matches {
            self.x.captures.groups.clear();
        }
        if self.log {
            let does = if matches { "matches" } else { "does not match" };
            let (pattern, subject) = (Text(pattern.text()), Text(subject));
            self.x.log(Level::Notice, format_args!("\"{pattern}\" {does} \"{subject}\""));
        }
        Ok(matches)
    }

    fn rewrite(&mut self, rewrite: &Rewrite) -> ProgramStep {
        let uri = std::mem::take(&mut self.x.request.uri);
        let matches = self.matches(&rewrite.pattern, &uri);
        self.x.request.uri = uri;
        match matches {
            Ok(true) => {}
            Ok(false) => return ProgramStep::Next,
            Err(flow) => return ProgramStep::Answer(flow),
        }
        self.x.internal = true;
        self.x.request.uri_unchanged = false;
        self.text.clear();
        if let Then::Redirect(status) = rewrite.then {
            return ProgramStep::Answer(self.redirect(rewrite, status));
        }
        self.uri_changed = true;
        self.replace(rewrite);
        self.escapes = false;
        if self.x.request.uri.is_empty() {
            self.x.log(Level::Error, format_args!("the rewritten URI has a zero length"));
            return ProgramStep::Answer(Flow::Status(500));
        }
        match rewrite.then {
            Then::Last => ProgramStep::End,
            Then::Break => self.end_here(),
            _ => ProgramStep::Next,
        }
    }

    /// Replaces path and arguments.
    fn replace(&mut self, rewrite: &Rewrite) {
        let replacement = &rewrite.replacement;
        render(&replacement.path, false, self.x, &mut self.text);
        let path_end = self.text.len();
        if let Some(args) = &replacement.args {
            render(args, was_escaped(self.x), self.x, &mut self.text);
            if replacement.add_args && !self.x.request.args.is_empty() {
                self.text.push(b'&');
                self.text.extend_from_slice(&self.x.request.args);
            }
        }
        let request = &mut self.x.request;
        if replacement.args.is_some() || !replacement.add_args {
            request.args.clear();
            request.args.extend_from_slice(&self.text[path_end..]);
            request.has_args |= replacement.args.is_some();
        }
        request.uri.clear();
        request.uri.extend_from_slice(&self.text[..path_end]);
        if self.log {
            let (uri, args) = (Text(&self.x.request.uri), Text(&self.x.request.args));
            let message = format_args!("rewritten data: \"{uri}\", args: \"{args}\"");
            self.x.log(Level::Notice, message);
        }
    }

    fn redirect(&mut self, rewrite: &Rewrite, status: u16) -> Flow {
        let replacement = &rewrite.replacement;
        render(&replacement.path, was_escaped(self.x), self.x, &mut self.text);
        let mut location = std::mem::take(&mut self.x.reply.location);
        location.clear();
        unescape(Unescape::Redirect, &self.text, &mut location);
        let args = &self.x.request.args;
        if replacement.add_args && !args.is_empty() {
            location.push(if replacement.has_args { b'&' } else { b'?' });
            location.extend_from_slice(args);
        }
        if self.log {
            let location = Text(&location);
            self.x.log(Level::Notice, format_args!("rewritten redirect: \"{location}\""));
        }
        self.x.reply.set_location(location);
        Flow::Status(status)
    }

    /// Ends the program and stays in the location, even if the path was rewritten.
    fn end_here(&mut self) -> ProgramStep {
        if self.uri_changed {
            self.x.request.valid_location = false;
            self.uri_changed = false;
        }
        ProgramStep::End
    }

    fn answer(&mut self, answer: &Return) -> Flow {
        let Return { status, text } = answer;
        if text.as_fixed() == Some(b"") && *status >= 400 {
            return Flow::Status(*status);
        }
        if let Some(refused) = self.x.discard_body() {
            return refused;
        }
        // The text may contain `$status`.
        self.x.reply.status = *status;
        if matches!(status, 301 | 302 | 303 | 307 | 308) {
            let mut location = std::mem::take(&mut self.x.reply.location);
            location.clear();
            text.render(self.x, &mut location);
            self.x.reply.set_location(location);
            return Flow::Status(*status);
        }
        let mut body = self.x.reply.text();
        text.render(self.x, &mut body);
        self.x.set_content_type_of_uri();
        self.x.reply.set_bytes(Bytes::Owned(body));
        Flow::Done
    }
}
