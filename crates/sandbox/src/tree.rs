//! A configuration as a tree that can be edited and written again.
//!
//! Unlike the tree of crate `conf`, it owns its words and outlives the texts that it was parsed
//! from. Included files are inserted in place; each directive knows its line. Directives are not
//! interpreted. Lua blocks do not follow the grammar: they are refused, or left empty.

use std::fmt;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use conf::{Directive, Files, Sources, Span};

use crate::writing::quoted;

/// A parsed configuration.
#[derive(Clone, Debug)]
pub struct EditableTree {
    /// The main file.
    pub file: PathBuf,
    /// The directives, including those of included files.
    pub root: Vec<EditableDirective>,
    /// The texts of all files.
    pub sources: Arc<Sources>,
}

/// A directive: its words, and the contents of its block.
#[derive(Clone, Debug)]
pub struct EditableDirective {
    /// A unique number among the parsed directives; `None` for an added one.
    pub number: Option<usize>,
    /// Where it was parsed; for an added directive, the place of its block.
    pub place: LinePlace,
    /// The name and the arguments, without quotes.
    pub words: Vec<Vec<u8>>,
    /// The contents of the braces; `None`: it ends with `;`.
    pub block: Option<Vec<Self>>,
    /// Its parts in the text; `None` for an added one.
    pub spans: Option<DirectiveSpans>,
}

/// The parts of a directive in its text.
#[derive(Clone, Copy, Debug)]
pub struct DirectiveSpans {
    /// The name and the arguments.
    pub words: Span,
    /// The `;` or `{`.
    pub end: Span,
    /// The `}` of a block.
    pub close: Option<Span>,
}

/// A line of a file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LinePlace {
    /// The file name with which it was opened.
    pub file: Arc<str>,
    /// The line number, from 1.
    pub line: u32,
}

/// `FILE:LINE`
impl fmt::Display for LinePlace {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}", self.file, self.line)
    }
}

/// Places are not compared.
impl PartialEq for EditableDirective {
    fn eq(&self, other: &Self) -> bool {
        self.words == other.words && self.block == other.block
    }
}

/// File names are not compared.
impl PartialEq for EditableTree {
    fn eq(&self, other: &Self) -> bool {
        self.root == other.root
    }
}

impl EditableTree {
    /// Parses a file and its included files; an error is a message in nginx's words.
    pub fn read(path: &Path, files: &mut dyn Files) -> Result<Self, String> {
        Self::read_with(path, files, false)
    }

    /// Like [`read`](Self::read), for a server that ignores Lua: Lua blocks are left empty.
    pub fn read_without_lua(path: &Path, files: &mut dyn Files) -> Result<Self, String> {
        Self::read_with(path, files, true)
    }

    fn read_with(path: &Path, files: &mut dyn Files, ignores_lua: bool) -> Result<Self, String> {
        let file = std::path::absolute(path).map_err(|error| error.to_string())?;
        let folder = file.parent().unwrap_or(Path::new("/")).as_os_str().as_bytes();
        let prefix = [folder, b"/"].concat();
        let parsed = conf::parse(file.as_os_str().as_bytes(), &prefix, None, files);
        if let Some(error) = parsed.error {
            let place = error.span.map_or(String::new(), |at| parsed.sources.place(at));
            return Err(format!("{}{place}", error.message));
        }
        let mut reader = TreeReader { sources: &parsed.sources, ignores_lua, read: 0 };
        let root = reader.block(&parsed.tree.root)?;
        Ok(Self { file, root, sources: Arc::new(parsed.sources) })
    }

    /// The folder of the main file; relative names of certificates and the like are relative to it.
    pub fn folder(&self) -> &Path {
        self.file.parent().unwrap_or(Path::new("/"))
    }

    /// The beginning of the main file: the place for lines added outside all blocks.
    pub fn beginning(&self) -> LinePlace {
        LinePlace { file: self.file.to_string_lossy().into(), line: 1 }
    }

    /// The text of the configuration, without `include`: one directive per line.
    pub fn write(&self) -> Vec<u8> {
        let mut out = Vec::new();
        write(&self.root, 0, &mut out);
        out
    }

    /// The first block at the end of this path of names, such as `["http"]`.
    pub fn block(&self, path: &[&str]) -> Option<&EditableDirective> {
        let (last, around) = path.split_last()?;
        let lines = match around {
            [] => &self.root[..],
            around => self.block(around)?.inner(),
        };
        lines.iter().find(|line| line.is(last) && line.block.is_some())
    }

    /// All directives, except those in blocks of free entries such as `types`.
    pub fn lines(&self) -> Vec<EditableLine<'_>> {
        let mut found = Vec::new();
        collect(&self.root, &[], &mut found);
        found
    }

    /// Calls a function with all directives, which it may change, and the names of the enclosing
    /// blocks.
    pub fn change(&mut self, change: &mut dyn FnMut(&[String], &mut EditableDirective)) {
        change_all(&mut self.root, &mut Vec::new(), change);
    }
}

/// A directive, and its enclosing blocks, the outermost first.
#[derive(Clone, Debug)]
pub struct EditableLine<'t> {
    /// The enclosing blocks.
    pub around: Vec<&'t EditableDirective>,
    pub directive: &'t EditableDirective,
}

impl EditableLine<'_> {
    /// Whether the enclosing blocks have exactly these names.
    pub fn is_in(&self, path: &[&str]) -> bool {
        self.around.len() == path.len()
            && self.around.iter().zip(path).all(|(block, name)| block.is(name))
    }

    /// Whether the outermost enclosing block has this name.
    pub fn is_within(&self, name: &str) -> bool {
        self.around.first().is_some_and(|block| block.is(name))
    }
}

impl EditableDirective {
    /// A new line, to be added to the block at this place.
    pub fn new(place: LinePlace, words: &[&str]) -> Self {
        let words = words.iter().map(|word| word.as_bytes().to_vec()).collect();
        Self { number: None, place, words, block: None, spans: None }
    }

    /// Whether it has this name.
    pub fn is(&self, name: &str) -> bool {
        self.words.first().is_some_and(|word| word == name.as_bytes())
    }

    /// The name; empty if it is not UTF-8.
    pub fn name(&self) -> &str {
        self.words.first().and_then(|word| std::str::from_utf8(word).ok()).unwrap_or_default()
    }

    /// The arguments that are UTF-8.
    pub fn arguments(&self) -> impl Iterator<Item = &str> {
        self.words.iter().skip(1).filter_map(|word| std::str::from_utf8(word).ok())
    }

    /// The first argument; empty if there is none.
    pub fn argument(&self) -> &str {
        self.arguments().next().unwrap_or_default()
    }

    /// The contents of its block.
    pub fn inner(&self) -> &[Self] {
        self.block.as_deref().unwrap_or_default()
    }

    /// The first directive of this name directly in its block.
    pub fn own(&self, name: &str) -> Option<&Self> {
        self.inner().iter().find(|line| line.is(name))
    }

    /// The line as text, without the contents of its block: `listen 80;` or `http {`.
    pub fn shown(&self) -> String {
        String::from_utf8_lossy(&self.line()).into_owned()
    }

    /// The directive as text, with the contents of its block.
    pub fn text(&self) -> String {
        let mut out = Vec::new();
        write(std::slice::from_ref(self), 0, &mut out);
        String::from_utf8_lossy(out.trim_ascii_end()).into_owned()
    }

    /// The line up to its `;` or `{`.
    fn line(&self) -> Vec<u8> {
        let words: Vec<_> = self.words.iter().map(|word| quoted(word)).collect();
        let end: &[u8] = if self.block.is_some() { b" {" } else { b";" };
        [&words.join(&b' '), end].concat()
    }
}

const INDENT: &[u8] = b"    ";

fn write(lines: &[EditableDirective], depth: usize, out: &mut Vec<u8>) {
    for directive in lines {
        out.extend(INDENT.repeat(depth));
        out.extend(directive.line());
        out.push(b'\n');
        if let Some(inner) = &directive.block {
            write(inner, depth + 1, out);
            out.extend(INDENT.repeat(depth));
            out.extend(b"}\n");
        }
    }
}

/// The blocks that contain directives. Other blocks, such as `types` and `map`, may contain entries
/// of any name.
const BLOCKS_OF_DIRECTIVES: [&str; 9] =
    ["events", "http", "if", "limit_except", "location", "mail", "server", "stream", "upstream"];

fn holds_directives(line: &EditableDirective) -> bool {
    line.block.is_some() && BLOCKS_OF_DIRECTIVES.contains(&line.name())
}

fn collect<'t>(
    lines: &'t [EditableDirective],
    around: &[&'t EditableDirective],
    found: &mut Vec<EditableLine<'t>>,
) {
    for directive in lines {
        found.push(EditableLine { around: around.to_vec(), directive });
        if holds_directives(directive) {
            let around: Vec<_> = around.iter().copied().chain([directive]).collect();
            collect(directive.inner(), &around, found);
        }
    }
}

fn change_all(
    lines: &mut [EditableDirective],
    around: &mut Vec<String>,
    change: &mut dyn FnMut(&[String], &mut EditableDirective),
) {
    for line in lines {
        change(around, line);
        if holds_directives(line) {
            around.push(line.name().to_owned());
            change_all(line.block.as_deref_mut().unwrap_or_default(), around, change);
            around.pop();
        }
    }
}

struct TreeReader<'s> {
    sources: &'s Sources,
    ignores_lua: bool,
    read: usize,
}

impl TreeReader<'_> {
    fn block(&mut self, lines: &[Directive]) -> Result<Vec<EditableDirective>, String> {
        lines.iter().map(|line| self.directive(line)).collect()
    }

    fn directive(&mut self, line: &Directive) -> Result<EditableDirective, String> {
        let place = self.place(line);
        if !self.ignores_lua && line.block.is_some() && line.name.text.ends_with(b"_by_lua_block") {
            return Err(format!("{place}: {}: Lua cannot be carried over", line.name));
        }
        let number = Some(self.read);
        self.read += 1;
        let words = [&line.name].into_iter().chain(&line.args);
        let words = words.map(|word| word.text.to_vec()).collect();
        let block = line.block.as_deref().map(|inner| self.block(inner)).transpose()?;
        let spans = Some(DirectiveSpans { words: line.words(), end: line.end, close: line.close });
        Ok(EditableDirective { number, place, words, block, spans })
    }

    fn place(&self, line: &Directive) -> LinePlace {
        let span = line.name.span;
        let file = self.sources.source(span.file).map(|source| source.name().into());
        LinePlace { file: file.unwrap_or_else(|| "".into()), line: span.line }
    }
}

#[cfg(test)]
mod tests {
    use conf::{Disk, MemoryFiles};

    use super::*;
    use crate::testing::tree;

    fn again(tree: &EditableTree) -> EditableTree {
        let mut files = MemoryFiles::default().with("/etc/nginx/nginx.conf", tree.write());
        EditableTree::read(Path::new("/etc/nginx/nginx.conf"), &mut files).unwrap()
    }

    /// Words with quotes, with escapes, and with neither are parsed and written unchanged.
    #[test]
    fn words_with_quotes_and_escapes_survive() {
        for text in [
            "set $x \"a b\";",
            r#"set $x 'say "no"'; set $y "it's"; set $z "it's \"no\"";"#,
            r"location ~ \.php$ { return 200 'a\nb\tc\\d'; }",
            r#"location ~ "^/a{2,3}\d+;$" { rewrite ^/(.*)\.html$ "/$1?a=b;c" last; }"#,
            "if ($http_cookie ~* \"id=([^;]+)(?:;|$)\") { set $id ${1}x; }",
            "if ($a = \"b\") { return 403; }",
            "log_format main '$remote_addr \"$request\" ' '$status #1';",
            "add_header X \"\"; add_header Y '#'; add_header Z a#b; add_header W a}b;",
            "map $a $b { default 0; \"\" ''; ~^\\d+$ 1; \"~*a{2}\" \"{}\"; '}' ';'; }",
            "types { text/html html htm; } events {} ",
            r"add_header A '\\'; add_header B '\\\\'; add_header C '\\\d';",
            "add_header A a\\ b; add_header B \"a\\;b\"; add_header C '\\\"';",
            "add_header A \"\\\\\"; add_header B '\\\\n'; add_header C \"two\nlines\\\r\";",
            "\"quoted name\" x; if ( \"$a\" ) {} set $x a\"b c\"d; set $y a'b#c;",
            "a ${b} x${c}d \"${f}\" $g{} h $\\{i; j $ {} k $$; l a${ b;",
        ] {
            let Ok(first) =
                EditableTree::read(Path::new("/x"), &mut MemoryFiles::default().with("/x", text))
            else {
                panic!("{text} is no configuration");
            };
            assert_eq!(again(&first), first, "{text}\n{}", first.write().escape_ascii());
        }
    }

    /// All triples of special bytes within a word are unchanged.
    #[test]
    fn all_triples_of_special_bytes_survive() {
        let special = b"\\\"'${};# \t\r\nntr.\xff";
        for first in special {
            for second in special {
                for third in special {
                    let mut tree = tree("a b;");
                    tree.root[0].words[1] = vec![*first, *second, *third];
                    assert_eq!(again(&tree), tree, "{}", tree.write().escape_ascii());
                }
            }
        }
    }

    #[test]
    fn the_projects_configurations_survive() {
        let project = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let seen: usize = ["conf", "examples", "crates", "conformance"]
            .iter()
            .map(|folder| survive(&project.join(folder)))
            .sum();
        assert!(seen > 30, "{seen}");
    }

    /// Returns the number of configurations in a folder that were parsed; those with intended
    /// errors are skipped. In fixtures, the expected result follows a dashed line.
    fn survive(folder: &Path) -> usize {
        let mut seen = 0;
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                seen += survive(&path);
            } else if path.extension().is_some_and(|extension| extension == "conf") {
                let text = std::fs::read(&path).unwrap();
                let end = text.windows(6).position(|bytes| bytes == b"\n----\n");
                let mut files = MemoryFiles::default()
                    .with(path.as_os_str().as_bytes(), &text[..end.unwrap_or(text.len())]);
                let alone = EditableTree::read(&path, &mut files);
                for tree in [alone, EditableTree::read(&path, &mut Disk)].into_iter().flatten() {
                    assert_eq!(again(&tree), tree, "{}", path.display());
                    seen += 1;
                }
            }
        }
        seen
    }

    #[test]
    fn included_lines_have_their_own_file() {
        let mut files = MemoryFiles::default()
            .with("/c/nginx.conf", "events {}\nhttp {\n  include sites/*.conf;\n}\n")
            .with("/c/sites/a.conf", "server {\n  listen 80;\n}\n")
            .with("/c/sites/b.conf", "server {\n\n  listen 81;\n}\n");
        let tree = EditableTree::read(Path::new("/c/nginx.conf"), &mut files).unwrap();
        let listens = tree.lines();
        let listens = listens.iter().filter(|line| line.is_in(&["http", "server"]));
        let places: Vec<_> = listens
            .map(|line| format!("{} {}", line.directive.place, line.directive.shown()))
            .collect();
        assert_eq!(places, ["/c/sites/a.conf:2 listen 80;", "/c/sites/b.conf:3 listen 81;"]);
    }

    #[test]
    fn lua_and_missing_files_are_refused() {
        let text = "http {\n server {\n content_by_lua_block { ngx.say('}') } } }";
        let mut files = MemoryFiles::default().with("/c/lua", text).with("/c/x", "include y;");
        let mut read = |path: &str| EditableTree::read(Path::new(path), &mut files).unwrap_err();
        assert_eq!(read("/c/lua"), "/c/lua:3: content_by_lua_block: Lua cannot be carried over");
        assert!(read("/c/x").ends_with("in /c/x:1"), "{}", read("/c/x"));
        let tree = EditableTree::read_without_lua(Path::new("/c/lua"), &mut files).unwrap();
        assert!(String::from_utf8_lossy(&tree.write()).contains("content_by_lua_block {\n"));
    }

    #[test]
    fn entries_of_free_blocks_are_not_directives() {
        let tree = tree("http { map $a $listen { listen 1; } server { listen 80; } }");
        let lines = tree.lines();
        assert_eq!(lines.iter().filter(|line| line.directive.is("listen")).count(), 1);
        assert!(
            tree.block(&["http", "server"]).is_some_and(|server| server.own("listen").is_some())
        );
    }
}
