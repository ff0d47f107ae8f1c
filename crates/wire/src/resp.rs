//! RESP2, the protocol of Redis and Valkey: commands out, the replies to a pipeline of them in.
//!
//! ```text
//! +text CRLF | -error CRLF | :number CRLF | $LENGTH CRLF bytes CRLF | *COUNT CRLF items...
//! ```
//!
//! A reply is kept as the flat list of its items: no command that is sent needs the shape of nested
//! arrays. Whatever a store sends, a reader keeps no more than its limits.

use alloc::vec::Vec;
use core::fmt;

use memchr::memchr;

/// The longest line: a text, an error, a number or a length.
const LINE_BYTES_MAX: usize = 1024;

/// One item of a reply, within the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RespItem<'a> {
    /// A simple or a bulk string.
    Text(&'a [u8]),
    /// An error, in the store's words.
    Error(&'a [u8]),
    Number(i64),
    Null,
    /// So many items follow.
    Array(usize),
}

/// What a reply may be at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RespLimits {
    /// Bytes of a string.
    pub text_bytes_max: usize,
    /// Items of one reply.
    pub items_max: usize,
    /// Bytes of all replies of a pipeline.
    pub bytes_max: usize,
}

/// A value of a reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RespValue {
    Text(Vec<u8>),
    Number(i64),
    Null,
}

impl RespValue {
    /// The number, also if it is written as a string.
    pub fn as_number(&self) -> Option<i64> {
        match self {
            Self::Number(number) => Some(*number),
            Self::Text(text) => number(text),
            Self::Null => None,
        }
    }
}

/// The values of the reply to one command.
pub type RespReply = Vec<RespValue>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RespError {
    /// The bytes are not RESP2.
    Invalid,
    /// A limit is exceeded.
    TooLarge,
    /// The store refuses a command, with these words.
    Refused(Vec<u8>),
    /// There are bytes after the last reply.
    Unexpected,
}

impl fmt::Display for RespError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid => f.write_str("the answer is not RESP"),
            Self::TooLarge => f.write_str("too large an answer"),
            Self::Refused(words) => {
                write!(f, "it refuses a command: {}", words.escape_ascii())
            }
            Self::Unexpected => f.write_str("an answer to nothing"),
        }
    }
}

/// Commands that are sent together.
#[derive(Clone, Debug, Default)]
pub struct RespCommands {
    bytes: Vec<u8>,
    count: usize,
    reply_bytes: usize,
}

impl RespCommands {
    /// Adds a command with its arguments.
    pub fn add(&mut self, words: &[&[u8]]) {
        self.head(b'*', words.len());
        for word in words {
            self.head(b'$', word.len());
            self.bytes.extend_from_slice(word);
            self.bytes.extend_from_slice(b"\r\n");
        }
        self.count += 1;
    }

    /// Adds a command whose reply may have so many bytes.
    pub fn add_for(&mut self, reply_bytes: usize, words: &[&[u8]]) {
        self.reply_bytes = self.reply_bytes.saturating_add(reply_bytes);
        self.add(words);
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The bytes that the replies may have, beyond a short one to each command.
    pub fn reply_bytes(&self) -> usize {
        self.reply_bytes
    }

    pub fn count(&self) -> usize {
        self.count
    }

    /// Begins anew, with the same memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.count = 0;
        self.reply_bytes = 0;
    }

    fn head(&mut self, kind: u8, number: usize) {
        let mut digits = [0; 20];
        let mut at = digits.len();
        let mut rest = number;
        loop {
            at -= 1;
            digits[at] = b'0' + (rest % 10) as u8;
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        self.bytes.push(kind);
        self.bytes.extend_from_slice(&digits[at..]);
        self.bytes.extend_from_slice(b"\r\n");
    }
}

/// Reads the replies to a pipeline.
pub struct RespReader {
    limits: RespLimits,
    /// Replies that are not complete.
    replies_left: usize,
    /// Items of the current reply that are still to come.
    items_left: usize,
    current: RespReply,
    replies: Vec<RespReply>,
    /// The beginning of an item.
    incomplete: Vec<u8>,
    bytes: usize,
}

impl RespReader {
    /// For the replies to so many commands.
    pub fn new(commands: usize, limits: RespLimits) -> Self {
        Self {
            limits,
            replies_left: commands,
            items_left: 1,
            current: Vec::new(),
            replies: Vec::new(),
            incomplete: Vec::new(),
            bytes: 0,
        }
    }

    pub fn is_done(&self) -> bool {
        self.replies_left == 0
    }

    /// The complete replies.
    pub fn into_replies(self) -> Vec<RespReply> {
        self.replies
    }

    pub fn receive(&mut self, input: &[u8]) -> Result<(), RespError> {
        self.bytes = self.bytes.saturating_add(input.len());
        if self.bytes > self.limits.bytes_max {
            return Err(RespError::TooLarge);
        }
        if self.incomplete.is_empty() {
            let used = self.read(input)?;
            self.incomplete.extend_from_slice(&input[used..]);
            return Ok(());
        }
        let mut whole = core::mem::take(&mut self.incomplete);
        whole.extend_from_slice(input);
        let used = self.read(&whole)?;
        whole.drain(..used);
        self.incomplete = whole;
        Ok(())
    }

    /// Reads complete items; returns the number of their bytes.
    fn read(&mut self, input: &[u8]) -> Result<usize, RespError> {
        let mut used = 0;
        while used < input.len() {
            if self.is_done() {
                return Err(RespError::Unexpected);
            }
            let Some((item, bytes)) = item(&input[used..], self.limits.text_bytes_max)? else {
                break;
            };
            used += bytes;
            self.add(item)?;
        }
        Ok(used)
    }

    fn add(&mut self, item: RespItem<'_>) -> Result<(), RespError> {
        self.items_left -= 1;
        match item {
            RespItem::Error(words) => return Err(RespError::Refused(words.to_vec())),
            RespItem::Text(text) => self.current.push(RespValue::Text(text.to_vec())),
            RespItem::Number(number) => self.current.push(RespValue::Number(number)),
            RespItem::Null => self.current.push(RespValue::Null),
            RespItem::Array(count) => {
                let items = self.items_left.saturating_add(count);
                if items.saturating_add(self.current.len()) > self.limits.items_max {
                    return Err(RespError::TooLarge);
                }
                self.items_left = items;
            }
        }
        if self.items_left == 0 {
            self.replies.push(core::mem::take(&mut self.current));
            self.replies_left -= 1;
            self.items_left = 1;
        }
        Ok(())
    }
}

/// Reads one item, and says how many bytes it has; `None` if it is incomplete.
pub fn item(
    input: &[u8],
    text_bytes_max: usize,
) -> Result<Option<(RespItem<'_>, usize)>, RespError> {
    let Some((&kind, rest)) = input.split_first() else { return Ok(None) };
    if !b"+-:$*".contains(&kind) {
        return Err(RespError::Invalid);
    }
    let Some(lf) = memchr(b'\n', &rest[..rest.len().min(LINE_BYTES_MAX)]) else {
        let is_too_long = rest.len() >= LINE_BYTES_MAX;
        return if is_too_long { Err(RespError::TooLarge) } else { Ok(None) };
    };
    let line = rest[..lf].strip_suffix(b"\r").ok_or(RespError::Invalid)?;
    let head_bytes = lf + 2;
    let item = match kind {
        b'+' => RespItem::Text(line),
        b'-' => RespItem::Error(line),
        b':' => RespItem::Number(number(line).ok_or(RespError::Invalid)?),
        b'*' => match length(line)? {
            Some(count) => RespItem::Array(count),
            None => RespItem::Null,
        },
        _ => return bulk(length(line)?, input, head_bytes, text_bytes_max),
    };
    Ok(Some((item, head_bytes)))
}

/// The string after its head.
fn bulk(
    length: Option<usize>,
    input: &[u8],
    head_bytes: usize,
    text_bytes_max: usize,
) -> Result<Option<(RespItem<'_>, usize)>, RespError> {
    let Some(length) = length else { return Ok(Some((RespItem::Null, head_bytes))) };
    if length > text_bytes_max {
        return Err(RespError::TooLarge);
    }
    let (start, end) = (head_bytes, head_bytes + length);
    let Some(after) = input.get(end..end + 2) else { return Ok(None) };
    if after != b"\r\n" {
        return Err(RespError::Invalid);
    }
    Ok(Some((RespItem::Text(&input[start..end]), end + 2)))
}

/// A length or a count; `None` for the -1 of null.
fn length(line: &[u8]) -> Result<Option<usize>, RespError> {
    match number(line) {
        Some(-1) => Ok(None),
        Some(number) => usize::try_from(number).map(Some).map_err(|_| RespError::Invalid),
        None => Err(RespError::Invalid),
    }
}

fn number(text: &[u8]) -> Option<i64> {
    core::str::from_utf8(text).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    const LIMITS: RespLimits = RespLimits { text_bytes_max: 20, items_max: 8, bytes_max: 400 };

    fn read(commands: usize, input: &[u8]) -> Result<Vec<RespReply>, RespError> {
        let mut reader = RespReader::new(commands, LIMITS);
        reader.receive(input)?;
        assert!(reader.is_done(), "not done");
        Ok(reader.into_replies())
    }

    #[test]
    fn commands_are_arrays_of_strings() {
        let mut commands = RespCommands::default();
        commands.add(&[b"PING"]);
        commands.add(&[b"SET", b"", b"a\r\nb"]);
        let expected = b"*1\r\n$4\r\nPING\r\n*3\r\n$3\r\nSET\r\n$0\r\n\r\n$4\r\na\r\nb\r\n";
        assert_eq!((commands.bytes(), commands.count()), (&expected[..], 2));
        commands.clear();
        commands.add_for(500, &[b"0123456789"]);
        assert_eq!(commands.bytes(), b"*1\r\n$10\r\n0123456789\r\n");
        assert_eq!((commands.count(), commands.reply_bytes()), (1, 500));
    }

    #[test]
    fn replies_are_read_however_they_arrive() {
        let input =
            b"+OK\r\n:-7\r\n$3\r\na\r\n\r\n$-1\r\n*2\r\n:1\r\n*2\r\n$0\r\n\r\n:2\r\n*0\r\n*-1\r\n";
        let text = |text: &[u8]| RespValue::Text(text.to_vec());
        let expected = [
            vec![text(b"OK")],
            vec![RespValue::Number(-7)],
            vec![text(b"a\r\n")],
            vec![RespValue::Null],
            vec![RespValue::Number(1), text(b""), RespValue::Number(2)],
            vec![],
            vec![RespValue::Null],
        ];
        assert_eq!(read(7, input).unwrap(), expected);
        for cut in 0..input.len() {
            let mut reader = RespReader::new(7, LIMITS);
            reader.receive(&input[..cut]).unwrap();
            assert!(!reader.is_done());
            reader.receive(&input[cut..]).unwrap();
            assert_eq!(reader.into_replies(), expected, "cut at {cut}");
        }
    }

    #[test]
    fn what_is_not_a_reply_is_refused() {
        let long = [b"+".as_slice(), &[b'x'; 2000]].concat();
        let many = b":1\r\n".repeat(101);
        for (input, expected) in [
            (&b"HTTP/1.1 400 Bad Request\r\n"[..], RespError::Invalid),
            (b":x\r\n", RespError::Invalid),
            (b":\r\n", RespError::Invalid),
            (b"+OK\n", RespError::Invalid),
            (b"$2\r\nabc\r\n", RespError::Invalid),
            (b"$-2\r\n", RespError::Invalid),
            (b"$21\r\n", RespError::TooLarge),
            (b"*9\r\n", RespError::TooLarge),
            (b"*8\r\n*8\r\n", RespError::TooLarge),
            (b"*9223372036854775807\r\n", RespError::TooLarge),
            (b"$99999999999999999999\r\n", RespError::Invalid),
            (&long, RespError::TooLarge),
            (&many, RespError::TooLarge),
            (b":1\r\n:2\r\n", RespError::Unexpected),
            (b"-ERR no\r\n", RespError::Refused(b"ERR no".to_vec())),
            (b"*1\r\n-ERR no\r\n", RespError::Refused(b"ERR no".to_vec())),
        ] {
            assert_eq!(read(1, input), Err(expected), "{}", input.escape_ascii());
        }
    }

    #[test]
    fn numbers_may_be_strings() {
        assert_eq!(RespValue::Text(b"12".to_vec()).as_number(), Some(12));
        assert_eq!(RespValue::Text(b"x".to_vec()).as_number(), None);
        assert_eq!(RespValue::Null.as_number(), None);
    }
}
