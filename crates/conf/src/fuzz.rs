//! Properties that hold for any input, as functions that panic if they do not.
//!
//! Shared by the fuzz targets (`fuzz/`) and by the tests below; not part of the crate's interface.

use crate::fmt::{format, meaning};
use crate::lexer::PARAMETER_BYTES_MAX;
use crate::{Diagnostic, Directive, Files, MemoryFiles, ParsedConfig, Replay, Sources, parse};

/// Panics if a property does not hold.
pub type Property = fn(&[u8]);

/// The checks by the names of their fuzz targets.
pub const CHECKS: [(&str, Property); 3] =
    [("conf_lexer", conf_lexer), ("conf_fmt", conf_fmt), ("conf_replay", conf_replay)];

/// Reading never panics, spans are within the text and nested, and an error can be shown.
pub fn conf_lexer(text: &[u8]) {
    let mut files = MemoryFiles::default().with("/main", text).with("/other", "a { b; }");
    for command_line in [None, Some(text)] {
        let ParsedConfig { sources, tree, error } = parse(b"/main", b"/", command_line, &mut files);
        spans(&tree.root, &sources);
        if let Some(error) = error {
            let shown = Diagnostic { error: &error, sources: &sources }.render("weir");
            assert!(shown.starts_with("weir: ["));
        }
    }
}

fn spans(directives: &[Directive], sources: &Sources) {
    for Directive { name, args, block, end, close } in directives {
        for word in [name].into_iter().chain(args) {
            assert_eq!(word.span.file, end.file);
            assert!(!sources.raw(word.span).is_empty() && word.span.end <= end.start);
        }
        let ends_with: &[u8] = if block.is_some() { b"{" } else { b";" };
        assert_eq!(sources.raw(*end), ends_with);
        assert!(close.is_none_or(|close| sources.raw(close) == b"}" && close.start >= end.end));
        spans(block.as_deref().unwrap_or_default(), sources);
    }
}

/// Formatting keeps every token, and formatting again changes nothing.
pub fn conf_fmt(text: &[u8]) {
    match format(text) {
        Ok(formatted) => {
            assert_eq!(meaning(text), meaning(&formatted));
            assert_eq!(format(&formatted).as_ref(), Ok(&formatted));
        }
        // Formatting adds a line feed, which makes a word or comment of the greatest length too
        // long.
        Err(error) => assert!(error.span.is_some() || text.len() >= PARAMETER_BYTES_MAX),
    }
}

/// Any bytes may be given as a recording.
pub fn conf_replay(recording: &[u8]) {
    if let Ok(mut replay) = Replay::from_bytes(recording) {
        let _ = (replay.read(b"/"), replay.glob(b"*"));
        parse(b"", b"", None, &mut replay);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    const PIECES: [&[u8]; 28] = [
        b"a",
        b"bc",
        b" ",
        b"\t",
        b"\n",
        b"\r\n",
        b";",
        b"{",
        b"}",
        b"\"",
        b"'",
        b"\\",
        b"$",
        b"${",
        b"#",
        b")",
        b"\xff",
        b"\xc3\xa9",
        b"include ",
        b"other",
        b"main",
        b"*",
        b"\0",
        b"",
        b"x_by_lua_block {",
        b"--",
        b"[[",
        b"]]",
    ];

    /// Pseudo-random numbers that are the same each time: Steele and Vigna's splitmix64.
    struct Numbers(u64);

    impl Numbers {
        fn below(&mut self, limit: usize) -> usize {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            ((z ^ (z >> 31)) % limit as u64) as usize
        }
    }

    #[test]
    fn it_holds_for_random_pieces_of_configuration() {
        let mut numbers = Numbers(1);
        for _ in 0..20_000 {
            let len = numbers.below(40);
            let text: Vec<_> = (0..len).map(|_| PIECES[numbers.below(PIECES.len())]).collect();
            let text = text.concat();
            conf_lexer(&text);
            conf_fmt(&text);
        }
    }

    #[test]
    fn it_holds_for_the_fixtures_and_their_beginnings() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures");
        for entry in fs::read_dir(folder).unwrap() {
            let text = fs::read(entry.unwrap().path()).unwrap();
            for len in (0..text.len()).step_by(7).chain([text.len()]) {
                CHECKS.iter().for_each(|(_, check)| check(&text[..len]));
            }
        }
    }

    #[test]
    fn it_holds_for_damaged_recordings() {
        let mut recorder = crate::Recorder::new(MemoryFiles::default().with("/a", "b;"));
        recorder.read(b"/a").unwrap();
        recorder.read(b"").unwrap_err();
        recorder.glob(b"*").unwrap();
        let bytes = recorder.to_bytes();
        let mut numbers = Numbers(2);
        for _ in 0..20_000 {
            let mut damaged = bytes.clone();
            for _ in 0..=numbers.below(3) {
                let at = numbers.below(damaged.len());
                damaged[at] = numbers.below(256) as u8;
            }
            conf_replay(&damaged);
        }
    }
}
