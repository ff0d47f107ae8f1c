//! Bytes -> tokens, by nginx's rules.
//!
//! It knows words (quotes, escapes, `${`, the length limit), but not how words form directives.
//! Tokens are spans. They include comments, which the parser skips, for `fmt`. [`unquote`] removes
//! quotes and escapes from the bytes of a word.

use crate::{Error, FileId, Result, Span, lua};

/// nginx reads files through a buffer of this size, into which a parameter or a comment must fit.
pub(crate) const PARAMETER_BYTES_MAX: usize = 4096;

/// The most bytes of a too long parameter that the message shows.
const TOO_LONG_SHOWN_BYTES: usize = 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Token {
    Word,
    Semicolon,
    /// `{`
    Open,
    /// `}`
    Close,
    /// From `#` to the end of the line, which is not included.
    Comment,
    /// The end of the text, repeated for each further call.
    End,
}

const UNCLOSED: &str = "this quote is not closed";

/// The origin of a text; the length limit and some messages depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TextOrigin {
    File,
    /// The argument of `-g`, which nginx has in memory as a whole.
    CommandLine,
}

pub(crate) struct Lexer<'a> {
    text: &'a [u8],
    file: FileId,
    origin: TextOrigin,
    at: usize,
    line: u32,
}

#[derive(Clone, Copy)]
struct TokenStart {
    at: usize,
    line: u32,
    /// The offset from which nginx counts the length: after an opening quote.
    counted: usize,
    /// The open quote.
    quote: Option<u8>,
}

impl<'a> Lexer<'a> {
    /// `text` must be shorter than 4 GiB, which [`FILE_BYTES_MAX`](crate::FILE_BYTES_MAX) ensures.
    pub(crate) fn new(text: &'a [u8], file: FileId, origin: TextOrigin) -> Self {
        Self { text, file, origin, at: 0, line: 1 }
    }

    pub(crate) fn token(&mut self) -> Result<(Token, Span)> {
        while self.text.get(self.at).is_some_and(|&byte| is_space(byte)) {
            self.bump();
        }
        let start = TokenStart { at: self.at, line: self.line, counted: self.at, quote: None };
        let token = match self.text.get(self.at) {
            None => Token::End,
            Some(b';') => self.single(Token::Semicolon),
            Some(b'{') => self.single(Token::Open),
            Some(b'}') => self.single(Token::Close),
            Some(b'#') => self.comment(start)?,
            Some(&quote @ (b'"' | b'\'')) => self.quoted(start, quote)?,
            Some(_) => self.bare(start)?,
        };
        Ok((token, self.span_from(start)))
    }

    /// Skips a block of Lua and its `}`. Returns that token, or the end of the text.
    pub(crate) fn lua_block(&mut self) -> (Token, Span) {
        let len = lua::end_of_block(&self.text[self.at..]);
        let end = len.map_or(self.text.len(), |len| self.at + len);
        while self.at < end {
            self.bump();
        }
        let start = TokenStart { at: self.at, line: self.line, counted: self.at, quote: None };
        let token = if len.is_some() { self.single(Token::Close) } else { Token::End };
        (token, self.span_from(start))
    }

    /// The bytes of a token as written.
    pub(crate) fn raw(&self, span: Span) -> &'a [u8] {
        &self.text[span.start as usize..span.end as usize]
    }

    /// The error for a text that ends inside a word or a directive.
    pub(crate) fn unfinished(&self) -> Error {
        let message = match self.origin {
            TextOrigin::File => r#"unexpected end of file, expecting ";" or "}""#,
            TextOrigin::CommandLine => r#"unexpected end of parameter, expecting ";""#,
        };
        Error::at(self.here(), message)
    }

    fn single(&mut self, token: Token) -> Token {
        self.bump();
        token
    }

    fn comment(&mut self, start: TokenStart) -> Result<Token> {
        while self.peek(start)?.is_some_and(|byte| byte != b'\n') {
            self.bump();
        }
        Ok(Token::Comment)
    }

    fn bare(&mut self, start: TokenStart) -> Result<Token> {
        let mut after_dollar = false;
        while let Some(byte) = self.peek(start)? {
            match byte {
                b'{' if after_dollar => {}
                b' ' | b'\t' | b'\r' | b'\n' => {
                    self.check_beyond_space(start)?;
                    return Ok(Token::Word);
                }
                b';' | b'{' => return Ok(Token::Word),
                _ => after_dollar = self.step_over(byte, start)?,
            }
            self.bump();
        }
        Err(self.unfinished().marked(self.span_from(start)))
    }

    fn quoted(&mut self, start: TokenStart, quote: u8) -> Result<Token> {
        self.bump();
        let start = TokenStart { counted: self.at, quote: Some(quote), ..start };
        while let Some(byte) = self.peek(start)? {
            if byte == quote {
                self.bump();
                return self.after_quote(TokenStart { quote: None, ..start });
            }
            self.step_over(byte, start)?;
            self.bump();
        }
        Err(self.unfinished().marked(first_byte(self.span_from(start))).help(UNCLOSED))
    }

    /// Checks `byte` of a word; a backslash also takes the byte after it. Returns whether a `{` may
    /// follow without ending the word.
    fn step_over(&mut self, byte: u8, start: TokenStart) -> Result<bool> {
        if byte == b'\\' {
            self.bump();
            self.peek(start)?;
        }
        Ok(byte == b'$')
    }

    /// Only a space, `;`, `{` or `)` may follow a closing quote; `)` begins a new word there.
    fn after_quote(&mut self, start: TokenStart) -> Result<Token> {
        match self.peek(start)? {
            None => Err(self.unfinished().marked(self.span_from(start))),
            Some(b' ' | b'\t' | b'\r' | b'\n') => {
                self.check_beyond_space(start)?;
                Ok(Token::Word)
            }
            Some(b';' | b'{' | b')') => Ok(Token::Word),
            Some(_) => {
                let shown = first_character(&self.text[self.at..]);
                let mark = Span { end: self.at as u32 + shown.len() as u32, ..self.here() };
                Err(Error::at(mark, format!("unexpected \"{}\"", String::from_utf8_lossy(shown))))
            }
        }
    }

    /// The current byte, if the token still fits into nginx's buffer.
    fn peek(&self, start: TokenStart) -> Result<Option<u8>> {
        match self.text.get(self.at) {
            Some(_) if !self.fits(start, self.at) => Err(self.too_long(start)),
            byte => Ok(byte.copied()),
        }
    }

    /// nginx completes a word only when it reads the byte after the space that ends it.
    fn check_beyond_space(&self, start: TokenStart) -> Result<()> {
        let beyond = self.at + 1;
        if beyond < self.text.len() && !self.fits(start, beyond) {
            return Err(self.too_long(start));
        }
        Ok(())
    }

    fn fits(&self, start: TokenStart, at: usize) -> bool {
        self.origin == TextOrigin::CommandLine || at - start.counted < PARAMETER_BYTES_MAX
    }

    fn too_long(&self, start: TokenStart) -> Error {
        let message = match start.quote {
            Some(quote) => format!(
                "too long parameter, probably missing terminating \"{}\" character",
                char::from(quote)
            ),
            None => {
                let shown = &self.text[start.counted..start.counted + TOO_LONG_SHOWN_BYTES];
                let shown = String::from_utf8_lossy(shown);
                format!("too long parameter \"{shown}...\" started")
            }
        };
        Error::at(first_byte(self.span_from(start)), message)
    }

    fn here(&self) -> Span {
        let at = self.at as u32;
        Span { file: self.file, line: self.line, start: at, end: at }
    }

    fn span_from(&self, start: TokenStart) -> Span {
        let (from, to) = (start.at as u32, self.at as u32);
        Span { file: self.file, line: start.line, start: from, end: to }
    }

    fn bump(&mut self) {
        if self.text.get(self.at) == Some(&b'\n') {
            self.line += 1;
        }
        self.at = self.text.len().min(self.at + 1);
    }
}

/// The meaning of a word as written: without its quotes and escapes.
///
/// Of the escapes nginx knows `\"`, `\'`, `\\`, `\t`, `\r` and `\n`; any other pair stays as it is,
/// which regular expressions rely on.
pub(crate) fn unquote(raw: &[u8]) -> Box<[u8]> {
    let raw = match raw {
        [quote @ (b'"' | b'\''), inner @ .., last] if quote == last => inner,
        _ => raw,
    };
    if !raw.contains(&b'\\') {
        return raw.into();
    }
    let mut text = Vec::with_capacity(raw.len());
    let mut rest = raw;
    while let [byte, after @ ..] = rest {
        let (byte, after) = match (byte, after) {
            (b'\\', [escaped @ (b'"' | b'\'' | b'\\'), after @ ..]) => (*escaped, after),
            (b'\\', [b't', after @ ..]) => (b'\t', after),
            (b'\\', [b'r', after @ ..]) => (b'\r', after),
            (b'\\', [b'n', after @ ..]) => (b'\n', after),
            _ => (*byte, after),
        };
        text.push(byte);
        rest = after;
    }
    text.into()
}

fn first_byte(span: Span) -> Span {
    Span { end: span.start + 1, ..span }
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}

/// The first character as bytes: a whole UTF-8 character (nginx prints its first byte, which no
/// terminal can show), or else one byte.
fn first_character(text: &[u8]) -> &[u8] {
    let up_to = &text[..text.len().min(4)];
    let valid = up_to.utf8_chunks().next().map_or("", |chunk| chunk.valid());
    let len = valid.chars().next().map_or(1, char::len_utf8);
    &text[..len.min(text.len())]
}
