use super::*;

const NAME: &[u8] = b"/c/nginx.conf";

fn parsed(text: impl AsRef<[u8]>) -> ParsedConfig {
    parse(NAME, b"/c/", None, &mut MemoryFiles::default().with(NAME, text))
}

fn message(text: impl AsRef<[u8]>) -> String {
    parsed(text).error.map_or_else(|| "ok".into(), |error| error.message)
}

/// The lengths were measured with nginx 1.22.1.
#[test]
fn a_parameter_may_have_as_many_bytes_as_in_nginx() {
    let a = |count| "a".repeat(count);
    let shown = r#"too long parameter "aaaaaaaaaa..." started"#;
    let unclosed = r#"too long parameter, probably missing terminating """ character"#;
    let cases = [
        (format!("env {};", a(4095)), "ok"),
        (format!("env {};", a(4096)), shown),
        (format!("env {} ;", a(4094)), "ok"),
        (format!("env {} ;", a(4095)), shown),
        (format!("env \n{}\n;", a(4094)), "ok"),
        (format!("env \n{}\n;", a(4095)), shown),
        (format!("env \"{}\";", a(4094)), "ok"),
        (format!("env \"{}\";", a(4095)), shown),
        (format!("env \"{}\";", a(4096)), unclosed),
        (format!("env \"{}\\\" ;", a(4095)), unclosed),
        (format!("env \"{}\" ;", a(4093)), "ok"),
        (format!("env \"{}\" ;", a(4094)), shown),
        (format!("env \"{}\")x;", a(4094)), "ok"),
        (format!("#{}\n", a(4094)), "ok"),
        (format!("#{}\n", a(4095)), r##"too long parameter "#aaaaaaaaa..." started"##),
        (format!("#{}", a(4095)), "ok"),
        (format!("env {}", a(4096)), r#"unexpected end of file, expecting ";" or "}""#),
        (format!("env {}", a(4097)), shown),
    ];
    for (text, expected) in cases {
        let (start, len) = (&text[..6], text.len());
        assert_eq!(message(&text), expected, "{start}... with {len} bytes");
    }
}

#[test]
fn a_parameter_in_the_command_line_may_have_any_length() {
    let text = format!("env {};", "a".repeat(10_000));
    let parsed =
        parse(NAME, b"/c/", Some(text.as_bytes()), &mut MemoryFiles::default().with(NAME, ""));
    assert_eq!(parsed.error, None);
}

#[test]
fn the_text_may_end_without_a_line_feed() {
    for text in ["a;", "a{}", "a; # b", "a;\r", "a;\n\n "] {
        assert_eq!(message(text), "ok", "{text:?}");
    }
    for text in ["a", "a 'b", "a 'b'", "a \\", "a $", "a ${", "'a'"] {
        assert_eq!(message(text), r#"unexpected end of file, expecting ";" or "}""#, "{text:?}");
    }
}

#[test]
fn directives_before_an_error_stay_in_the_tree() {
    let ParsedConfig { tree, error, .. } = parsed("a; b { c d; e { f; } g");
    assert!(error.is_some());
    let [a, b] = &tree.root[..] else { panic!("{tree:?}") };
    assert_eq!((a.name.to_string().as_str(), b.name.to_string().as_str()), ("a", "b"));
    let [c, e] = &b.block.as_ref().unwrap()[..] else { panic!("{b:?}") };
    assert_eq!((&*c.args[0].text, b.close), (&b"d"[..], None));
    assert!(e.close.is_some() && e.block.as_ref().unwrap().len() == 1);
}

#[test]
fn spans_cover_words_as_written() {
    let ParsedConfig { sources, tree, .. } = parsed("a\n \"b \\\" c\" d\\ e\n{ }");
    let directive = &tree.root[0];
    let raw: Vec<_> = directive.args.iter().map(|word| sources.raw(word.span)).collect();
    assert_eq!(raw, [&b"\"b \\\" c\""[..], b"d\\ e"]);
    assert_eq!(directive.args[0].span.line, 2);
    assert_eq!((sources.raw(directive.end), directive.end.line), (&b"{"[..], 3));
    assert_eq!(sources.raw(directive.close.unwrap()), b"}");
    assert_eq!(sources.raw(directive.words()), b"a\n \"b \\\" c\" d\\ e");
}

#[test]
fn a_file_included_twice_is_read_once() {
    let mut files =
        MemoryFiles::default().with(NAME, "include a; b { include a; }").with("/c/a", "x;");
    let ParsedConfig { sources, tree, .. } = parse(NAME, b"/c/", None, &mut files);
    assert_eq!(sources.iter().count(), 2);
    assert_eq!((tree.root.len(), tree.root[1].block.as_ref().unwrap().len()), (2, 1));
}

#[test]
fn files_that_include_each_other_often_hit_a_limit() {
    let mut files = MemoryFiles::default().with("/c/5", "");
    for level in 0..5 {
        files = files.with(format!("/c/{level}"), format!("include {}; ", level + 1).repeat(10));
    }
    let error = parse(b"/c/0", b"/c/", None, &mut files).error.unwrap();
    assert_eq!(error.message, "more than 100000 files are included");
}

#[test]
fn blocks_may_nest_to_their_limit_and_words_may_be_many() {
    let deep = |depth| "a {".repeat(depth) + &"}".repeat(depth);
    assert_eq!(message(deep(BLOCKS_DEPTH_MAX)), "ok");
    assert_eq!(message(deep(1_000_000)), "blocks are nested more than 100 levels deep");
    assert_eq!(message("a ".repeat(1_000_000) + ";"), "ok");
}

#[test]
fn a_missing_main_file_has_no_line() {
    let parsed = parse(b"/c/none", b"/c/", None, &mut MemoryFiles::default());
    let error = parsed.error.unwrap();
    let expected = r#"open() "/c/none" failed (2: No such file or directory)"#;
    assert_eq!((error.message.as_str(), error.span), (expected, None));
}

#[test]
fn a_folder_is_not_a_file() {
    let folder = std::env::temp_dir();
    let folder = folder.to_str().unwrap();
    let error = parse(folder.as_bytes(), b"/", None, &mut crate::Disk).error.unwrap();
    let expected = format!("pread() \"{folder}\" failed (21: Is a directory)");
    assert_eq!((error.message, error.level), (expected, ErrorLevel::Crit));
}
