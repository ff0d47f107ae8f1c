use std::os::unix::fs::symlink;

use testing::Folder;

use super::*;

#[test]
fn patterns_match_as_in_glob_3() {
    let cases: &[(&str, &[&str], &[&str])] = &[
        ("*.conf", &["a.conf", "a.b.conf"], &[".conf", ".a.conf", "a.conf~", "conf"]),
        ("*", &["a", "a.b"], &[".a"]),
        (".*", &[".a"], &["a"]),
        ("a?c", &["abc", "a.c"], &["ac", "abbc"]),
        ("?a", &["xa"], &[".a", "a"]),
        ("[ab]*", &["a", "bcd"], &["c", ".a"]),
        ("[!ab]", &["c"], &["a", "b", "cc", "."]),
        ("[^ab]", &["c"], &["a"]),
        ("[a-c]x", &["ax", "bx", "cx"], &["dx", "-x"]),
        ("[a-]x", &["ax", "-x"], &["bx"]),
        ("[]a]x", &["]x", "ax"], &["x"]),
        ("[!]a]x", &["bx"], &["]x", "ax"]),
        ("[[:digit:]_]x", &["1x", "_x"], &["ax", ":x"]),
        ("[ab", &["[ab"], &["a", "b"]),
        ("[", &["["], &["a"]),
        ("a\\*b", &["a*b"], &["axb", "a\\*b"]),
        ("[\\]]x", &["]x"], &["\\x"]),
        ("\\.a*", &[".ab"], &["ab"]),
        ("[.]a", &[], &[".a"]),
        ("*a*b*c*", &["abc", "xaxbxcx", "aabbcc"], &["acb", "ab"]),
        ("**", &["a"], &[".a"]),
    ];
    for (pattern, yes, no) in cases {
        for name in *yes {
            assert!(glob::matches(pattern.as_bytes(), name.as_bytes()), "{pattern} {name}");
        }
        for name in *no {
            assert!(!glob::matches(pattern.as_bytes(), name.as_bytes()), "{pattern} {name}");
        }
    }
}

#[test]
fn a_pattern_of_many_stars_is_fast() {
    let pattern = b"*a".repeat(1000);
    assert!(!glob::matches(&pattern, &b"a".repeat(999)));
    assert!(!glob::matches(&[&pattern[..], b"b"].concat(), &b"a".repeat(4000)));
}

#[test]
fn disk_finds_matching_files() {
    let folder = Folder::new();
    for name in ["b/x.conf", "b/y.conf", "a/x.conf", ".h/x.conf", "a/.x.conf", "B/x.conf", "c*d"] {
        folder.write(name, name);
    }
    symlink("nowhere", folder.name("a/dangling.conf")).unwrap();
    let cases: &[(&str, &[&str])] = &[
        ("*/x.conf", &["B/x.conf", "a/x.conf", "b/x.conf"]),
        ("a/*.conf", &["a/dangling.conf", "a/x.conf"]),
        ("[ab]/?.conf", &["a/x.conf", "b/x.conf", "b/y.conf"]),
        ("*/none.conf", &[]),
        ("none/*.conf", &[]),
        ("c\\*d", &["c*d"]),
        ("c\\*e", &[]),
        ("*/", &["B/", "a/", "b/"]),
        ("b//x*", &["b//x.conf"]),
        ("b/../a/x*", &["b/../a/x.conf"]),
        ("*/../c*", &["B/../c*d", "a/../c*d", "b/../c*d"]),
    ];
    for (pattern, expected) in cases {
        let found = Disk.glob(folder.name(pattern).as_bytes()).unwrap();
        let found: Vec<_> = found.iter().map(|path| str::from_utf8(path).unwrap()).collect();
        let expected: Vec<_> = expected.iter().map(|name| folder.name(name)).collect();
        assert_eq!(found, expected, "{pattern}");
    }
}

#[test]
fn errors_have_the_words_of_nginx() {
    let folder = Folder::new();
    let path = folder.name("none");
    let error = Disk.read(path.as_bytes()).unwrap_err();
    assert!(error.is_not_found());
    let expected = format!("open() \"{path}\" failed (2: No such file or directory)");
    assert_eq!(error.describe(path.as_bytes()), expected);
    folder.write("file", "");
    let error = Disk.read(folder.name("file/x").as_bytes()).unwrap_err();
    assert_eq!(error.to_string(), "20: Not a directory");
    let error = Disk.read(b"a\0b").unwrap_err();
    assert_eq!(error.to_string(), "22: Invalid argument");
}

#[test]
fn a_device_can_be_read() {
    assert_eq!(Disk.read(b"/dev/null").as_deref(), Ok(&b""[..]));
}

#[test]
fn a_replay_answers_as_the_disk_did() {
    let files =
        MemoryFiles::default().with("/a", "1\0\n").with("/b", "").with("/c", vec![0xff; 100_000]);
    let mut recorder = Recorder::new(files);
    let paths: [&[u8]; 4] = [b"/a", b"/b", b"/c", b"/none"];
    let patterns: [&[u8]; 2] = [b"/*", b"/x*"];
    let seen = (paths.map(|path| recorder.read(path)), patterns.map(|name| recorder.glob(name)));
    let mut replay = Replay::from_bytes(&recorder.to_bytes()).unwrap();
    let again = (paths.map(|path| replay.read(path)), patterns.map(|name| replay.glob(name)));
    assert_eq!(seen, again);
    assert_eq!(seen.1[0].as_ref().map(Vec::len), Ok(3));
    assert_eq!(replay.read(b"/d").unwrap_err().call, Call::Replay);
    assert_eq!(replay.glob(b"/a*").unwrap_err().call, Call::Replay);
}

#[test]
fn a_recorder_sees_one_state_of_the_disk() {
    let folder = Folder::new();
    folder.write("a", "old");
    let mut recorder = Recorder::new(Disk);
    let (path, pattern) = (folder.name("a"), folder.name("*"));
    let before = (recorder.read(path.as_bytes()), recorder.glob(pattern.as_bytes()));
    folder.write("a", "new");
    folder.write("b", "new");
    let after = (recorder.read(path.as_bytes()), recorder.glob(pattern.as_bytes()));
    assert_eq!(before, after);
}

#[test]
fn a_damaged_recording_is_refused() {
    let mut recorder = Recorder::new(MemoryFiles::default().with("/a", "text"));
    recorder.read(b"/a").unwrap();
    recorder.glob(b"/*").unwrap();
    recorder.read(b"/none").unwrap_err();
    let bytes = recorder.to_bytes();
    let whole = (0..=bytes.len()).filter(|&len| Replay::from_bytes(&bytes[..len]).is_ok());
    assert_eq!(whole.count(), 4, "after each entry and nowhere else");
    assert!(Replay::from_bytes(b"\x04\0\0\0\0").is_err());
    assert!(Replay::from_bytes(b"\x02\0\0\0\0\xff\xff\xff\xff").is_err());
    assert!(Replay::from_bytes(b"\x01\0\0\0\0\x09\0\0\0\0").is_err());
}

#[test]
fn files_of_another_root_have_their_names_there() {
    let folder = Folder::new();
    for name in ["etc/nginx/a.conf", "etc/nginx/b.conf"] {
        folder.write(name, name);
    }
    let root = format!("{}/", folder.display());
    let mut files = FilesBelow::new(root.as_bytes(), Disk);
    assert_eq!(&*files.read(b"/etc/nginx/a.conf").unwrap(), b"etc/nginx/a.conf");
    let found = files.glob(b"/etc/nginx/*.conf").unwrap();
    assert_eq!(found, [b"/etc/nginx/a.conf"[..].into(), b"/etc/nginx/b.conf"[..].into()]);
    assert!(files.read(b"/etc/passwd").unwrap_err().is_not_found());
    // `..` does not lead out, as in the root of a machine.
    assert!(files.read(b"/../../../../etc/passwd").unwrap_err().is_not_found());
    assert_eq!(&*files.read(b"/../etc/./x/../nginx/a.conf").unwrap(), b"etc/nginx/a.conf");
}
