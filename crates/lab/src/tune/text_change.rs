//! Changes of the user's own text, which keep its comments and its layout, as a diff for `patch`.

use std::collections::BTreeMap;
use std::ops::Range;

use conf::{FileId, Sources, Span};

/// The place of a change in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TextSpot {
    /// The words of a directive, which are replaced.
    Words(Span),
    /// The start of the main file.
    FileStart,
    /// After the `{` of a block.
    BlockStart(Span),
    /// Before the `}` of a block.
    BlockEnd(Span),
}

const MAIN_FILE: FileId = FileId(0);

/// The indent of a block's contents beside the block's own.
const INDENT: &str = "    ";

/// The changes of all files as a unified diff, which `patch -p1 -d /` applies. Each change is a
/// place and the new line or lines there.
pub(super) fn diff<'c>(
    sources: &Sources,
    changes: impl IntoIterator<Item = (TextSpot, &'c str)>,
) -> String {
    let mut by_file = BTreeMap::<FileId, Vec<(Range<usize>, String)>>::new();
    for (spot, line) in changes {
        let file = spot.file();
        let Some(source) = sources.source(file) else { continue };
        by_file.entry(file).or_default().push(spot.replacement(&source.text, line));
    }
    let mut out = Vec::new();
    for (file, mut replacements) in by_file {
        let Some(source) = sources.source(file) else { continue };
        // Stable: lines added at one place stay in order, before the words that begin there.
        replacements.sort_by_key(|(at, _)| (at.start, at.end));
        let mut new = Vec::new();
        let mut copied = 0;
        for (at, text) in replacements {
            if at.start < copied {
                continue; // The same words of a file that is included twice.
            }
            new.extend_from_slice(&source.text[copied..at.start]);
            new.extend_from_slice(text.as_bytes());
            copied = at.end;
        }
        new.extend_from_slice(&source.text[copied..]);
        let name = source.name();
        let name = name.trim_start_matches('/');
        let names = [&*format!("a/{name}"), &*format!("b/{name}")];
        out.extend(conf::unified_diff(names, &source.text, &new));
    }
    String::from_utf8_lossy(&out).into_owned()
}

impl TextSpot {
    fn file(self) -> FileId {
        match self {
            Self::FileStart => MAIN_FILE,
            Self::Words(span) | Self::BlockStart(span) | Self::BlockEnd(span) => span.file,
        }
    }

    /// The bytes to replace, and their replacement.
    fn replacement(self, text: &[u8], line: &str) -> (Range<usize>, String) {
        match self {
            Self::Words(span) => {
                let words = line.strip_suffix(';').unwrap_or(line);
                (span.start as usize..span.end as usize, words.to_owned())
            }
            Self::FileStart => (0..0, format!("{line}\n")),
            Self::BlockStart(brace) => {
                let at = brace.end as usize;
                let indent = inner_indent(text, at);
                let mut added = format!("\n{}", indented(line, &indent));
                let rest = text[at..].split(|byte| *byte == b'\n').next().unwrap_or_default();
                if !matches!(rest.trim_ascii_start(), [] | [b'#', ..]) {
                    added.push('\n');
                }
                // A comment behind the brace stays there.
                let at = if added.ends_with('\n') { at } else { at + rest.len() };
                (at..at, added)
            }
            Self::BlockEnd(brace) => {
                let at = brace.start as usize;
                let start = line_start(text, at);
                let added = indented(line, &(indent_at(text, at) + INDENT));
                match text[start..at].trim_ascii_end() {
                    [] => (start..start, format!("{added}\n")),
                    before => (start + before.len()..at, format!("\n{added}\n")),
                }
            }
        }
    }
}

fn indented(lines: &str, indent: &str) -> String {
    let lines: Vec<_> = lines.lines().map(|line| format!("{indent}{line}")).collect();
    lines.join("\n")
}

/// The start of the line with the byte.
fn line_start(text: &[u8], at: usize) -> usize {
    text[..at].iter().rposition(|byte| *byte == b'\n').map_or(0, |newline| newline + 1)
}

/// The blanks at the start of the line with the byte.
fn indent_at(text: &[u8], at: usize) -> String {
    let line = &text[line_start(text, at)..];
    let blanks = line.iter().take_while(|byte| matches!(byte, b' ' | b'\t'));
    blanks.map(|byte| char::from(*byte)).collect()
}

/// The indent of the first line in a block whose `{` is before the byte, or a deeper one than the
/// block's own.
fn inner_indent(text: &[u8], after_brace: usize) -> String {
    let own = indent_at(text, after_brace - 1);
    let mut lines = text[after_brace..].split(|byte| *byte == b'\n').skip(1);
    let first = lines.find(|line| !line.trim_ascii().is_empty()).unwrap_or_default();
    let blanks = first.len() - first.trim_ascii_start().len();
    match first.trim_ascii_start().first() {
        Some(byte) if *byte != b'}' && blanks > own.len() => {
            String::from_utf8_lossy(&first[..blanks]).into_owned()
        }
        _ => format!("{own}{INDENT}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::tree;

    const TEXT: &str = "\
# mine
events {}
http {  # all sites
  gzip on;   # small
  server {
\tlisten 80; listen 81;
  }
  upstream u { server a; }
}
";

    /// The words to find a directive by, its spot, and the new line.
    type Change<'c> = (&'c [&'c str], fn(&sandbox::EditableDirective) -> TextSpot, &'c str);

    fn changed(spots: &[Change<'_>]) -> String {
        let tree = tree(TEXT);
        let changes = spots.iter().map(|(path, spot, line)| {
            let found = match path {
                [] => None,
                path => tree.lines().into_iter().map(|line| line.directive).find(|directive| {
                    directive.name() == path[0]
                        && path.get(1).is_none_or(|word| directive.argument() == *word)
                }),
            };
            (found.map_or(TextSpot::FileStart, spot), *line)
        });
        diff(&tree.sources, changes)
    }

    fn words(line: &sandbox::EditableDirective) -> TextSpot {
        TextSpot::Words(line.spans.expect("parsed").words)
    }

    fn start(line: &sandbox::EditableDirective) -> TextSpot {
        TextSpot::BlockStart(line.spans.expect("parsed").end)
    }

    fn end(line: &sandbox::EditableDirective) -> TextSpot {
        TextSpot::BlockEnd(line.spans.and_then(|spans| spans.close).expect("a block"))
    }

    #[test]
    fn comments_and_layout_stay() {
        let diff = changed(&[
            (&[], words, "worker_processes auto;"),
            (&["events"], start, "multi_accept on;"),
            (&["http"], start, "sendfile on;"),
            (&["gzip"], words, "gzip off;"),
            (&["listen", "81"], words, "listen 81 reuseport;"),
            (&["server"], end, "a b;"),
            (&["upstream"], end, "keepalive 32;"),
            (&["http"], end, "upstream v {\n    server b;\n}"),
        ]);
        assert_eq!(
            diff,
            "--- a/etc/nginx/nginx.conf
+++ b/etc/nginx/nginx.conf
@@ -1,9 +1,19 @@
+worker_processes auto;
 # mine
-events {}
+events {
+    multi_accept on;
+}
 http {  # all sites
-  gzip on;   # small
+  sendfile on;
+  gzip off;   # small
   server {
-\tlisten 80; listen 81;
+\tlisten 80; listen 81 reuseport;
+      a b;
   }
-  upstream u { server a; }
+  upstream u { server a;
+      keepalive 32;
+}
+    upstream v {
+        server b;
+    }
 }
"
        );
    }

    #[test]
    fn nothing_changed_is_an_empty_diff() {
        assert_eq!(changed(&[]), "");
    }
}
