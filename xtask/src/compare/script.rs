//! What the backend of a case answers, and when: the lines of a case that begin with `=`.
//!
//! Nothing is checked here: a script may say what no server should.

use std::time::Duration;

use super::text;

/// The answers to the requests that one client's request brings about, in order; the last one
/// serves for all that follow.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct BackendScript(Vec<ScriptedAnswer>);

/// What happens to one request.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ScriptedAnswer(pub(super) Vec<Act>);

/// One thing that the backend does.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Act {
    /// Reads the head of a request.
    ReadHead,
    /// Reads what is left of it.
    Read,
    /// Reads a request that is not HTTP, up to these bytes.
    ReadUntil(Vec<u8>),
    /// Writes these bytes, macros unexpanded.
    Write(Vec<u8>),
    /// Writes these bytes one at a time.
    Drip(Vec<u8>),
    Wait(Duration),
    Close,
}

const PLAIN: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok\n";

impl Default for BackendScript {
    fn default() -> Self {
        BackendScript(vec![ScriptedAnswer(vec![
            Act::ReadHead,
            Act::Read,
            Act::Write(PLAIN.to_vec()),
        ])])
    }
}

impl BackendScript {
    /// These bytes to the first request, and what follows is answered plainly.
    pub(super) fn raw(bytes: Vec<u8>, closes: bool) -> BackendScript {
        let mut first = vec![Act::ReadHead, Act::Read, Act::Write(bytes)];
        if closes {
            first.push(Act::Close);
        }
        let mut answers = vec![ScriptedAnswer(first)];
        answers.extend(BackendScript::default().0);
        BackendScript(answers)
    }

    /// The answer to request number `turn`, from 0.
    pub(super) fn answer(&self, turn: usize) -> &ScriptedAnswer {
        &self.0[turn.min(self.0.len() - 1)]
    }
}

/// Gathers the lines of a script; a line of another kind ends it.
#[derive(Default)]
pub(super) struct ScriptLines {
    answers: Vec<ScriptedAnswer>,
    drips: bool,
    unread: bool,
}

impl ScriptLines {
    /// The line without its `=`.
    pub(super) fn line(&mut self, line: &str) -> Result<(), String> {
        if self.answers.is_empty() && line != "ok" {
            self.answers.push(ScriptedAnswer::default());
        }
        match line.split_once(' ').unwrap_or((line, "")) {
            ("", text) => self.write(text::line(text)?),
            ("ok", "") => self.answers.extend(BackendScript::default().0),
            ("next", "") => {
                (self.drips, self.unread) = (false, false);
                self.answers.push(ScriptedAnswer::default());
            }
            ("unread", "") => self.unread = true,
            ("head", "") => self.act(Act::ReadHead),
            ("read", "") => self.act(Act::Read),
            ("until", end) => self.act(Act::ReadUntil(text::bytes(end)?)),
            ("stdout", text) => self.write(record(STDOUT, &text::bytes(text)?)),
            ("stderr", text) => self.write(record(STDERR, &text::bytes(text)?)),
            ("end", "") => self.write([record(STDOUT, b""), record(END, &[0; 8])].concat()),
            ("drip", "") => self.drips = true,
            ("close", "") => self.act(Act::Close),
            ("wait", ms) => {
                let ms = ms.parse().map_err(|_| "=wait wants milliseconds")?;
                self.act(Act::Wait(Duration::from_millis(ms)));
            }
            _ => return Err(format!("\"={line}\" is nothing that a backend does")),
        }
        Ok(())
    }

    pub(super) fn finish(self) -> BackendScript {
        BackendScript(self.answers)
    }

    /// The request is read before anything else, unless the script says when.
    fn act(&mut self, act: Act) {
        let unread = self.unread;
        let answer = self.answers.last_mut().expect("line() makes the first one");
        let reads = matches!(act, Act::ReadHead | Act::ReadUntil(_));
        if answer.0.is_empty() && !unread && !reads {
            answer.0.extend([Act::ReadHead, Act::Read]);
        }
        match (answer.0.last_mut(), act) {
            (Some(Act::Write(before)), Act::Write(bytes)) => before.extend(bytes),
            (Some(Act::Drip(before)), Act::Drip(bytes)) => before.extend(bytes),
            (_, act) => answer.0.push(act),
        }
    }

    fn write(&mut self, bytes: Vec<u8>) {
        match self.drips {
            true => self.act(Act::Drip(bytes)),
            false => self.act(Act::Write(bytes)),
        }
    }
}

/// Types of FastCGI records (FastCGI specification, 8).
const END: u8 = 3;
const STDOUT: u8 = 6;
const STDERR: u8 = 7;

/// A FastCGI record of request 1, without padding.
fn record(kind: u8, content: &[u8]) -> Vec<u8> {
    let [high, low] = (content.len() as u16).to_be_bytes();
    [&[1, kind, 0, 1, high, low, 0, 0], content].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn script(text: &str) -> BackendScript {
        let mut lines = ScriptLines::default();
        text.lines().for_each(|line| lines.line(line).unwrap());
        lines.finish()
    }

    #[test]
    fn a_request_is_read_before_it_is_answered() {
        let wire = Act::Write(b"HTTP/1.0 200 OK\r\n\r\nhi".to_vec());
        let expected = ScriptedAnswer(vec![Act::ReadHead, Act::Read, wire, Act::Close]);
        assert_eq!(*script(" HTTP/1.0 200 OK\n\n hi\\\nclose").answer(0), expected);
    }

    #[test]
    fn unless_the_script_says_otherwise() {
        let early = script("unread\nclose");
        assert_eq!(*early.answer(0), ScriptedAnswer(vec![Act::Close]));
        let records = script("until \\0\n x\\");
        let (until, x) = (Act::ReadUntil(vec![0]), Act::Write(b"x".to_vec()));
        assert_eq!(*records.answer(0), ScriptedAnswer(vec![until, x]));
        let middle = script("head\n x\\\nread\ndrip\n y\\");
        let (x, y) = (Act::Write(b"x".to_vec()), Act::Drip(b"y".to_vec()));
        assert_eq!(*middle.answer(0), ScriptedAnswer(vec![Act::ReadHead, x, Act::Read, y]));
    }

    #[test]
    fn fastcgi_records_have_their_lengths() {
        let records = script("until x\nstdout ab\nend");
        let bytes = b"\x01\x06\0\x01\0\x02\0\0ab\x01\x06\0\x01\0\0\0\0\x01\x03\0\x01\0\x08\0\0";
        let expected = [&bytes[..], &[0; 8]].concat();
        assert_eq!(records.answer(0).0[1], Act::Write(expected));
    }

    #[test]
    fn the_last_answer_serves_for_all_that_follow() {
        let two = script("close\nnext\n x");
        assert_ne!(two.answer(0), two.answer(1));
        assert_eq!(two.answer(1), two.answer(9));
        assert!(ScriptLines::default().line("clsoe").is_err());
    }
}
