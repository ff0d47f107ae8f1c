//! A configuration in a uniform layout: `weir fmt`.
//!
//! One directive a line, four spaces a level, `{` at the end of its line, at most one empty line
//! between directives and none at the edges of a block. Words stay as written, including quotes; a
//! line break between two arguments stays, with one more level; comments stay, at the end of a line
//! or on their own. Nothing is aligned and no `include` is followed. The words that nginx would
//! read never change: the result is read again and compared.

use crate::lexer::{Lexer, PARAMETER_BYTES_MAX, TextOrigin, Token};
use crate::parser::parse_alone;
use crate::{Directive, Error, FileId, Result, Span, lua};

const INDENT: &[u8] = b"    ";

/// The text in the uniform layout, or why it is not a configuration: places are in file 0.
pub fn format(text: &[u8]) -> Result<Vec<u8>> {
    if let Some(line) = lua_block(&parse_alone(text)?.root) {
        return Err(line.error("a block of Lua is not formatted"));
    }
    let mut layout = Layout {
        text,
        out: Vec::with_capacity(text.len()),
        depth: 0,
        inside: false,
        opened: false,
        last: None,
    };
    let mut lexer = Lexer::new(text, FileId(0), TextOrigin::File);
    loop {
        match lexer.token()? {
            (Token::End, _) => break,
            (token, span) => layout.token(token, span),
        }
    }
    if !layout.out.is_empty() {
        layout.out.push(b'\n');
    }
    if meaning(text).ok() != meaning(&layout.out).ok() {
        return Err(Error::bare("formatting would change what this file means"));
    }
    Ok(layout.out)
}

/// The first directive with a block of Lua, whose grammar is not known here.
fn lua_block(lines: &[Directive]) -> Option<&Directive> {
    lines.iter().find_map(|line| match &line.block {
        Some(_) if lua::is_block_of(&line.name.text) => Some(line),
        inner => lua_block(inner.as_deref().unwrap_or_default()),
    })
}

/// The contents of a text: directives and comments.
pub(crate) fn meaning(text: &[u8]) -> Result<Vec<(Token, &[u8])>> {
    let mut lexer = Lexer::new(text, FileId(0), TextOrigin::File);
    let mut tokens = Vec::new();
    loop {
        match lexer.token()? {
            (Token::End, _) => return Ok(tokens),
            (token, span) => tokens.push((token, as_kept(token, lexer.raw(span)))),
        }
    }
}

struct Layout<'a> {
    text: &'a [u8],
    out: Vec<u8>,
    depth: usize,
    /// Whether a directive has begun and not ended.
    inside: bool,
    /// Whether the block contains nothing so far, except a comment on the line of the `{`.
    opened: bool,
    last: Option<(Token, Span)>,
}

impl Layout<'_> {
    fn token(&mut self, token: Token, span: Span) {
        if token == Token::Close {
            self.depth -= 1;
        }
        if let Some((last, last_span)) = self.last {
            let gap = &self.text[last_span.end as usize..span.start as usize];
            let line_feeds = gap.iter().filter(|&&byte| byte == b'\n').count();
            self.space(last, token, gap.is_empty(), line_feeds);
            self.opened &= token == Token::Comment && line_feeds == 0;
        }
        let raw = &self.text[span.start as usize..span.end as usize];
        self.out.extend_from_slice(as_kept(token, raw));
        match token {
            Token::Word => self.inside = true,
            Token::Comment => {}
            _ => self.inside = false,
        }
        if token == Token::Open {
            self.depth += 1;
            self.opened = true;
        }
        self.last = Some((token, span));
    }

    /// Writes the space between the last token and this one, in place of the gap.
    fn space(&mut self, last: Token, token: Token, adjacent: bool, line_feeds: usize) {
        let continues = self.depth + 1;
        match token {
            Token::Comment if line_feeds == 0 => self.out.push(b' '),
            Token::Comment if self.inside => self.line(continues),
            Token::Word if self.inside && line_feeds > 0 => self.line(continues),
            Token::Word if self.inside && adjacent => {}
            Token::Word if self.inside => self.out.push(b' '),
            Token::Word | Token::Comment => {
                if line_feeds > 1 && !self.opened {
                    self.out.push(b'\n');
                }
                self.line(self.depth);
            }
            Token::Semicolon if last == Token::Comment => self.line(continues),
            Token::Open if last == Token::Comment => self.line(self.depth),
            Token::Open if adjacent && self.last_is_longest() => {}
            Token::Open => self.out.push(b' '),
            Token::Close => self.line(self.depth),
            Token::Semicolon | Token::End => {}
        }
    }

    fn line(&mut self, depth: usize) {
        self.out.push(b'\n');
        self.out.extend(INDENT.repeat(depth));
    }

    /// Whether the last word is so long that nginx can read it only without a space after it.
    fn last_is_longest(&self) -> bool {
        self.last.is_some_and(|(_, span)| span.end - span.start >= PARAMETER_BYTES_MAX as u32 - 1)
    }
}

/// The bytes of a token that are kept: all but the space at the end of a comment.
fn as_kept(token: Token, raw: &[u8]) -> &[u8] {
    if token == Token::Comment { raw.trim_ascii_end() } else { raw }
}

#[cfg(test)]
mod tests;
