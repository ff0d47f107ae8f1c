//! Tokens -> tree, `include`s in place.
//!
//! It knows the grammar and the one directive that is part of it, `include`. The kernel decides
//! whether a directive exists, is allowed in its place and takes a block. Directives before an
//! error stay in the tree, because nginx checks each directive as it reads it: to report the same
//! error first, check the tree before you report the parser's error.

use std::collections::HashMap;
use std::sync::Arc;

use crate::files::{Call, Files, MemoryFiles, full_name, has_magic};
use crate::lexer::{Lexer, TextOrigin, Token, unquote};
use crate::{
    Directive, Error, ErrorLevel, FileId, Info, MAIN, Result, SourceText, Sources, Span, Tree,
    Word, lua,
};

pub const BLOCKS_DEPTH_MAX: usize = 100;
/// The deepest nesting of `include`. nginx has no limit but its file descriptors.
pub const INCLUDES_DEPTH_MAX: usize = 32;
/// The most files that are read, each `include` counted.
pub const FILES_MAX: usize = 100_000;
pub const FILE_BYTES_MAX: usize = 256 << 20;
/// The most text that is read in all, a file counted as often as it is included.
pub const TEXT_BYTES_MAX: usize = 1 << 30;

/// The result of reading a configuration.
#[derive(Debug)]
pub struct ParsedConfig {
    /// Every file read.
    pub sources: Sources,
    /// The tree; after an error, the directives before it, including open blocks.
    pub tree: Tree,
    /// The error that ended the reading early.
    pub error: Option<Error>,
}

impl ParsedConfig {
    /// The tree or the error, for callers that do not care which error nginx would report first.
    pub fn into_result(self) -> (Sources, Result<Tree>) {
        (self.sources, self.error.map_or(Ok(self.tree), Err))
    }
}

/// Reads the configuration file `main` and all files it includes, with relative names against
/// `prefix` (the folder of the main file, with its last slash). The directives of `command_line`,
/// the argument of `-g`, come first.
pub fn parse(
    main: &[u8],
    prefix: &[u8],
    command_line: Option<&[u8]>,
    files: &mut dyn Files,
) -> ParsedConfig {
    let mut parser = ConfigParser::new(prefix, files);
    let mut tree = Tree::default();
    let error = parser.everything(main, command_line, &mut tree.root).err();
    ParsedConfig { sources: parser.sources, tree, error }
}

/// Reads one text without following its `include`s.
pub(crate) fn parse_alone(text: &[u8]) -> Result<Tree> {
    let mut nothing = MemoryFiles::default();
    let mut parser =
        ConfigParser { follow_includes: false, ..ConfigParser::new(b"", &mut nothing) };
    let mut tree = Tree::default();
    let source = parser.add(None, Some(b"the text"), text.into())?;
    parser.text(source, Inside::File, &mut tree.root)?;
    Ok(tree)
}

/// The directive that is part of the grammar, for the reference.
pub const INCLUDE: &[Info] = crate::rows! {
    /// Reads other files in place of this line. A MASK has wildcards; its files are read in the
    /// order of their names, and it is not an error if there are none. A relative name is relative
    /// to the directory of the main configuration file.
    ///
    /// Syntax: FILE
    /// Syntax: MASK
    /// Differs: includes can be nested at most 32 levels deep.
    ///
    /// ```nginx
    /// include conf.d/*.conf;
    /// ```
    include(1..=1) in MAIN;
};

/// Blocks of free entries in which `include` is an ordinary entry.
const WITHOUT_INCLUDE: [&[u8]; 2] = [b"charset_map", b"split_clients"];
/// Blocks of free entries that support `include`, with their own messages for a malformed one.
const WITH_OWN_INCLUDE: [&[u8]; 3] = [b"geo", b"map", b"types"];

struct ConfigParser<'a> {
    prefix: &'a [u8],
    files: &'a mut dyn Files,
    sources: Sources,
    by_path: HashMap<Box<[u8]>, FileId>,
    follow_includes: bool,
    blocks_depth: usize,
    includes_depth: usize,
    files_read: usize,
    bytes_read: usize,
}

/// The surroundings of the directives being read, which decide how they may end.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Inside {
    File,
    Block,
    CommandLine,
}

impl<'a> ConfigParser<'a> {
    fn new(prefix: &'a [u8], files: &'a mut dyn Files) -> Self {
        Self {
            prefix,
            files,
            sources: Sources::default(),
            by_path: HashMap::new(),
            follow_includes: true,
            blocks_depth: 0,
            includes_depth: 0,
            files_read: 0,
            bytes_read: 0,
        }
    }

    fn everything(
        &mut self,
        main: &[u8],
        command_line: Option<&[u8]>,
        out: &mut Vec<Directive>,
    ) -> Result<()> {
        if let Some(text) = command_line {
            let source = self.add(None, None, text.into())?;
            self.text(source, Inside::CommandLine, out)?;
        }
        self.file(main, None, out)
    }

    /// Reads a file named by the directive `from`, an `include`.
    fn file(
        &mut self,
        path: &[u8],
        from: Option<&Directive>,
        out: &mut Vec<Directive>,
    ) -> Result<()> {
        let source = match self.by_path.get(path) {
            Some(&known) => known,
            None => self.read(path, from)?,
        };
        self.count(source, from)?;
        self.text(source, Inside::File, out)
    }

    fn read(&mut self, path: &[u8], from: Option<&Directive>) -> Result<FileId> {
        let text = self.files.read(path).map_err(|error| match error.call {
            // nginx reports an error of reading without the place and at a lower level, unlike an
            // error of opening.
            Call::Read => Error::bare(error.describe(path)).level(ErrorLevel::Crit),
            _ => blame(from, error.describe(path)),
        })?;
        let id = self.add(from, Some(path), text)?;
        self.by_path.insert(path.into(), id);
        Ok(id)
    }

    fn add(
        &mut self,
        from: Option<&Directive>,
        path: Option<&[u8]>,
        text: Arc<[u8]>,
    ) -> Result<FileId> {
        let source = SourceText { path: path.map(Into::into), text };
        if source.text.len() > FILE_BYTES_MAX {
            let message = format!("{} is longer than {FILE_BYTES_MAX} bytes", source.name());
            return Err(blame(from, message));
        }
        Ok(self.sources.add(source))
    }

    /// Counts a file against the limits, which protect the machine from files that include each
    /// other.
    fn count(&mut self, source: FileId, from: Option<&Directive>) -> Result<()> {
        self.files_read += 1;
        self.bytes_read += self.sources[source].text.len();
        if self.files_read > FILES_MAX {
            return Err(blame(from, format!("more than {FILES_MAX} files are included")));
        }
        if self.bytes_read > TEXT_BYTES_MAX {
            let message = format!("the files have more than {TEXT_BYTES_MAX} bytes in total");
            return Err(blame(from, message));
        }
        Ok(())
    }

    fn text(&mut self, source: FileId, inside: Inside, out: &mut Vec<Directive>) -> Result<()> {
        let text = Arc::clone(&self.sources[source].text);
        let origin = match inside {
            Inside::CommandLine => TextOrigin::CommandLine,
            Inside::File | Inside::Block => TextOrigin::File,
        };
        self.directives(&mut Lexer::new(&text, source, origin), inside, b"", out).map(drop)
    }

    /// Reads directives up to the `}` of the block called `block` or the end of the text. Returns
    /// the token that was found.
    fn directives(
        &mut self,
        lexer: &mut Lexer<'_>,
        inside: Inside,
        block: &[u8],
        out: &mut Vec<Directive>,
    ) -> Result<(Token, Span)> {
        loop {
            let (name, args, token, end) = words(lexer)?;
            let Some(name) = name else {
                match token {
                    Token::End => return Ok((token, end)),
                    Token::Close if inside == Inside::Block => return Ok((token, end)),
                    _ => return Err(unexpected(lexer, end)),
                }
            };
            let directive = Directive { name, args, block: None, end, close: None };
            match token {
                Token::End => return Err(lexer.unfinished().marked(directive.words())),
                Token::Open if inside == Inside::CommandLine => {
                    let message = "block directives are not supported in -g option";
                    return Err(Error::at(end, message));
                }
                Token::Open | Token::Semicolon if self.is_include(&directive, token, block) => {
                    self.include(&directive, token, out)?;
                }
                Token::Open => self.block(lexer, directive, out)?,
                Token::Semicolon => out.push(directive),
                _ => {
                    let (name, line) = (&directive.name, directive.name.span.line);
                    let help = format!("directive \"{name}\" in line {line} is missing its \";\"");
                    return Err(unexpected(lexer, end).help(help));
                }
            }
        }
    }

    fn block(
        &mut self,
        lexer: &mut Lexer<'_>,
        directive: Directive,
        out: &mut Vec<Directive>,
    ) -> Result<()> {
        if self.blocks_depth == BLOCKS_DEPTH_MAX {
            let message = format!("blocks are nested more than {BLOCKS_DEPTH_MAX} levels deep");
            return Err(Error::at(directive.end, message));
        }
        let name = directive.name.clone();
        // The block is added before it is filled, so that an error keeps its directives.
        let at = out.len();
        out.push(Directive { block: Some(Vec::new()), ..directive });
        let inner = out[at].block.get_or_insert_default();
        self.blocks_depth += 1;
        let (token, end) = match lua::is_block_of(&name.text) {
            true => lexer.lua_block(),
            false => self.directives(lexer, Inside::Block, &name.text, inner)?,
        };
        self.blocks_depth -= 1;
        if token == Token::End {
            return Err(Error::at(end, r#"unexpected end of file, expecting "}""#)
                .marked(name.span)
                .help("this block is not closed"));
        }
        out[at].close = Some(end);
        Ok(())
    }

    /// Whether it is nginx's `include`, which no kernel sees. A malformed one stays in the tree if
    /// the block around it has its own message for it.
    fn is_include(&self, directive: &Directive, token: Token, block: &[u8]) -> bool {
        let well_formed = token == Token::Semicolon && directive.args.len() == 1;
        self.follow_includes
            && &*directive.name.text == b"include"
            && !WITHOUT_INCLUDE.contains(&block)
            && (well_formed || !WITH_OWN_INCLUDE.contains(&block))
    }

    fn include(
        &mut self,
        directive: &Directive,
        token: Token,
        out: &mut Vec<Directive>,
    ) -> Result<()> {
        if token == Token::Open {
            let message = r#"directive "include" is not terminated by ";""#;
            return Err(Error::at(directive.end, message).marked(directive.words()));
        }
        let [argument] = &*directive.args else {
            let message = r#"invalid number of arguments in "include" directive"#;
            return Err(Error::at(directive.end, message).marked(directive.name.span));
        };
        if self.includes_depth == INCLUDES_DEPTH_MAX {
            let message =
                format!("\"include\" is nested more than {INCLUDES_DEPTH_MAX} files deep");
            return Err(blame(Some(directive), message));
        }
        self.includes_depth += 1;
        let path = full_name(self.prefix, &argument.text);
        if has_magic(&path) {
            let found = self.files.glob(&path);
            for path in found.map_err(|error| blame(Some(directive), error.describe(&path)))? {
                self.file(&path, Some(directive), out)?;
            }
        } else {
            self.file(&path, Some(directive), out)?;
        }
        self.includes_depth -= 1;
        Ok(())
    }
}

/// The words up to the token after them: `;`, `{`, `}` or the end of the text.
fn words(lexer: &mut Lexer<'_>) -> Result<(Option<Word>, Vec<Word>, Token, Span)> {
    let mut name = None;
    let mut args = Vec::new();
    loop {
        let (token, span) = lexer.token()?;
        match token {
            Token::Comment => {}
            Token::Word => {
                let word = Word { text: unquote(lexer.raw(span)), span };
                match name {
                    None => name = Some(word),
                    Some(_) => {
                        if args.is_empty() {
                            // Most lines have one, and there may be a hundred thousand lines.
                            args.reserve_exact(1);
                        }
                        args.push(word);
                    }
                }
            }
            _ => return Ok((name, args, token, span)),
        }
    }
}

fn unexpected(lexer: &Lexer<'_>, span: Span) -> Error {
    let token = String::from_utf8_lossy(lexer.raw(span));
    Error::at(span, format!("unexpected \"{token}\""))
}

/// An error about a file, at the `include` that names it, if there is one.
fn blame(from: Option<&Directive>, message: String) -> Error {
    match from {
        None => Error::bare(message),
        Some(Directive { args, end, .. }) => {
            Error::at(*end, message).marked(args.first().map_or(*end, |word| word.span))
        }
    }
}

#[cfg(test)]
mod tests;
