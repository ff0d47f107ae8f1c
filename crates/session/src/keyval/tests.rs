//! Requests, changes and state files on tables and zones.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use conf::Subsystem;

use super::state::KeyvalNow;
use super::*;

const NOW: KeyvalNow = KeyvalNow { monotonic_ms: 1_000, unix_ms: 1_795_722_245_000 };
const NOW_MS: u64 = NOW.monotonic_ms;

fn table(kind: KeyvalType) -> KeyvalTable {
    KeyvalTable::new(kind, 1 << 16)
}

fn post(table: &mut KeyvalTable, body: &str) -> Result<KeyvalOperation, KeyvalRefusal> {
    table.accept(&KeyvalRequest::add(body.as_bytes())?, Some(60_000), NOW_MS)
}

fn patch(table: &mut KeyvalTable, body: &str) -> Result<KeyvalOperation, KeyvalRefusal> {
    table.accept(&KeyvalRequest::modify(body.as_bytes())?, Some(60_000), NOW_MS)
}

fn value_at(table: &KeyvalTable, text: &str, now_ms: u64) -> Option<String> {
    let entry = table.find(text.as_bytes(), now_ms)?;
    Some(String::from_utf8_lossy(&entry.value).into_owned())
}

fn value(table: &KeyvalTable, text: &str) -> Option<String> {
    value_at(table, text, NOW_MS)
}

fn state(table: &KeyvalTable) -> String {
    String::from_utf8(table.to_state(NOW)).unwrap()
}

fn pair(key: &str, value: &str) -> KeyvalPair {
    let (key, value) = (key.as_bytes().into(), value.as_bytes().into());
    KeyvalPair { key, value, deadline_ms: None }
}

#[test]
fn requests_add_change_and_remove_entries() {
    let mut table = table(KeyvalType::String);
    post(&mut table, r#"{"a": "1", "b": {"value": "2", "expire": 5000}}"#).unwrap();
    let expected = "{\n\"a\": {\"value\": \"1\", \"expires_at\": 1795722305000},\n\
                    \"b\": {\"value\": \"2\", \"expires_at\": 1795722250000}\n}\n";
    assert_eq!(state(&table), expected);
    post(&mut table, r#"{"c": "\u00e9"}"#).unwrap();
    patch(&mut table, r#"{"b": {"expire": 7000}}"#).unwrap();
    assert_eq!(value_at(&table, "b", NOW_MS + 6_999).as_deref(), Some("2"));
    assert_eq!(value_at(&table, "b", NOW_MS + 7_000), None);
    patch(&mut table, r#"{"a": "one"}"#).unwrap();
    assert_eq!(value(&table, "a").as_deref(), Some("one"));
    assert_eq!(patch(&mut table, r#"{"a": null}"#), Ok(KeyvalOperation::Remove((*b"a").into())));
    assert_eq!((value(&table, "a"), value(&table, "c").as_deref()), (None, Some("\u{e9}")));
    table.accept(&KeyvalRequest::Clear, None, NOW_MS).unwrap();
    assert!(table.is_empty(NOW_MS));
}

#[test]
fn refusals_say_what_is_wrong() {
    let mut table = table(KeyvalType::Ip);
    post(&mut table, r#"{"10.0.0.1": "1"}"#).unwrap();
    let posts = [
        ("{", "415 JsonError JSON error: a name in quotes is expected, line 1, column 2"),
        ("[]", "400 KeyvalFormatError invalid JSON: a list in place of an object"),
        ("{}", "400 KeyvalFormatError key required: the object is empty"),
        (r#"{"": "1"}"#, "400 KeyvalFormatError key required: it is empty"),
        (r#"{"::1": null}"#, "400 KeyvalFormatError the value of key \"::1\" is missing"),
        (r#"{"::1": 7}"#, "400 KeyvalFormatError the value of key \"::1\" must be a text, not 7"),
        (
            r#"{"::1": {"value": []}}"#,
            "400 KeyvalFormatError the value of key \"::1\" must be a text, not a list",
        ),
        (
            r#"{"::1": {"value": "1", "expire": 0}}"#,
            "400 KeyvalFormatError the \"expire\" of key \"::1\" must be a number of milliseconds \
             above 0, not 0",
        ),
        (
            r#"{"::1": {"value": "1", "expires": 1}}"#,
            "400 KeyvalFormatError unknown parameter \"expires\" of key \"::1\"",
        ),
        (
            r#"{"a": "1"}"#,
            "400 KeyvalFormatError invalid key format: \"a\" is neither an address nor a network",
        ),
        (
            r#"{"::1": "1", "::2": "2"}"#,
            "400 KeyvalFormatError only one key can be added, unless the zone is empty",
        ),
        (r#"{"10.0.0.1/32": "2"}"#, "409 KeyvalKeyExists key \"10.0.0.1/32\" already exists"),
    ];
    let told = |refused: KeyvalRefusal| format!("{} {} {refused}", refused.status, refused.code);
    for (body, expected) in posts {
        assert_eq!(told(post(&mut table, body).unwrap_err()), expected, "{body}");
    }
    let patches = [
        (r#"{"::1": "1"}"#, "404 KeyvalKeyNotFound keyval key \"::1\" not found"),
        (r#"{"::1": null}"#, "404 KeyvalKeyNotFound keyval key \"::1\" not found"),
        (r#"{"::1": "", "::2": ""}"#, "400 KeyvalFormatError only one key can be updated"),
        (r#"{"::1": {}}"#, "400 KeyvalFormatError neither a value nor \"expire\" of key \"::1\""),
    ];
    for (body, expected) in patches {
        assert_eq!(told(patch(&mut table, body).unwrap_err()), expected, "{body}");
    }
    let expire = KeyvalRequest::modify(br#"{"10.0.0.1": {"expire": 1}}"#).unwrap();
    let refused = told(table.accept(&expire, None, NOW_MS).unwrap_err());
    assert!(
        refused.starts_with("400 KeyvalFormatError keyval timeout is not enabled"),
        "{refused}"
    );
    let twice = KeyvalRequest::add(br#"{"::1": "1", "::1/128": "2"}"#).unwrap();
    let mut empty = KeyvalTable::new(KeyvalType::Ip, 1 << 16);
    assert_eq!(empty.accept(&twice, None, NOW_MS).unwrap_err().code, "KeyvalKeyExists");
    assert!(empty.is_empty(NOW_MS));
}

#[test]
fn the_smallest_live_network_counts() {
    let mut table = table(KeyvalType::Ip);
    let body = r#"{"0.0.0.0/0": "all", "10.0.0.0/8": "8",
        "10.1.0.0/16": {"value": "16", "expire": 1}, "10.1.2.3": "host",
        "::/0": "six", "2001:db8::/32": "doc", "::ffff:192.0.2.0/120": "mapped",
        "255.255.255.255": "last"}"#;
    post(&mut table, body).unwrap();
    let cases = [
        ("10.1.2.3", "host"),
        ("10.1.2.4", "16"),
        ("10.1.0.0/17", "16"),
        ("10.1.0.0/16", "16"),
        ("10.0.0.0/15", "8"),
        ("10.255.0.1", "8"),
        ("192.0.2.9", "mapped"),
        ("11.0.0.1", "all"),
        ("255.255.255.255", "last"),
        ("::1", "six"),
        ("2001:db8:1::", "doc"),
    ];
    for (text, expected) in cases {
        assert_eq!(value(&table, text).as_deref(), Some(expected), "{text}");
    }
    assert_eq!(value_at(&table, "10.1.2.4", NOW_MS + 1).as_deref(), Some("8"));
    assert_eq!((value(&table, "junk"), value(&table, "")), (None, None));
    patch(&mut table, r#"{"0.0.0.0/0": null}"#).unwrap();
    assert_eq!(value(&table, "11.0.0.1"), None);
}

#[test]
fn a_prefix_is_found_at_any_length() {
    let mut table = table(KeyvalType::Prefix);
    let text = "x".repeat(KEY_BYTES_MAX);
    for length in [KEY_BYTES_MAX, 700, 64, 9, 8, 7, 1] {
        post(&mut table, &format!("{{\"{}\": \"{length}\"}}", &text[..length])).unwrap();
    }
    for (length, expected) in [(1, "1"), (6, "1"), (7, "7"), (63, "9"), (65, "64"), (1023, "700")] {
        assert_eq!(value(&table, &text[..length]).as_deref(), Some(expected), "{length}");
    }
    assert_eq!(value(&table, &format!("{text}y")).as_deref(), Some("1024"));
    assert_eq!((value(&table, ""), value(&table, "y")), (None, None));
}

#[test]
fn a_full_table_refuses_new_keys_until_others_end() {
    let mut table = KeyvalTable::new(KeyvalType::String, 4096);
    let key = |number: usize| format!("key{number:04}");
    let mut put = |number: usize, deadline_ms, now_ms| {
        let pair = KeyvalPair { deadline_ms, ..pair(&key(number), "value") };
        table.apply(&KeyvalOperation::Put(vec![pair]), now_ms).map_err(|refused| refused.status)
    };
    let count = (0..).take_while(|number| put(*number, Some(NOW_MS + 10), NOW_MS).is_ok()).count();
    assert_eq!(count, 4096 / (192 + 12));
    assert_eq!(put(0, Some(NOW_MS + 20), NOW_MS), Ok(()), "a key that is there");
    assert_eq!(put(count, None, NOW_MS + 9), Err(413));
    assert_eq!(put(count, None, NOW_MS + 10), Ok(()));
    let pairs = (0..count).map(|number| pair(&key(number), "more")).collect();
    let before = table.to_operation(NOW_MS + 10);
    assert!(matches!(&before, KeyvalOperation::Replace(pairs) if pairs.len() == 2));
    let all = KeyvalOperation::Put(pairs);
    assert_eq!(table.apply(&all, NOW_MS + 10).unwrap_err().status, 413, "all or none");
    assert_eq!(table.to_operation(NOW_MS + 10), before);
}

#[test]
fn entries_that_have_ended_are_removed_by_later_changes() {
    let mut table = KeyvalTable::new(KeyvalType::String, 1 << 20);
    let mut put = |number: u32, deadline_ms, now_ms| {
        let pair = KeyvalPair { deadline_ms, ..pair(&number.to_string(), "v") };
        table.apply(&KeyvalOperation::Put(vec![pair]), now_ms).unwrap();
        table.all().count()
    };
    for number in 0..100 {
        put(number, Some(NOW_MS + 1), NOW_MS);
    }
    let counts: Vec<usize> = (0..200).map(|_| put(1000, None, NOW_MS + 1)).collect();
    assert_eq!((counts[0], counts[199]), (101, 1));
}

#[test]
fn too_long_keys_and_values_are_refused() {
    let mut table = KeyvalTable::new(KeyvalType::String, 1 << 20);
    let mut put = |key: usize, value: usize| {
        let pair = pair(&"k".repeat(key), &"v".repeat(value));
        table.apply(&KeyvalOperation::Put(vec![pair]), NOW_MS).map_err(|refused| refused.text)
    };
    assert_eq!(put(KEY_BYTES_MAX, VALUE_BYTES_MAX), Ok(()));
    assert_eq!(put(KEY_BYTES_MAX + 1, 1), Err("the key is longer than 1024 bytes".into()));
    assert_eq!(put(1, VALUE_BYTES_MAX + 1), Err("the value is longer than 65536 bytes".into()));
}

#[test]
fn a_state_file_has_a_line_for_each_entry() {
    let mut table = table(KeyvalType::String);
    assert_eq!(state(&table), "{\n}\n");
    let pairs = vec![
        KeyvalPair { deadline_ms: Some(NOW_MS + 5), ..pair("b\n", "2\"") },
        KeyvalPair { deadline_ms: Some(NOW_MS), ..pair("c", "3") },
        pair("a", "1"),
    ];
    table.apply(&KeyvalOperation::Put(pairs), NOW_MS - 1).unwrap();
    let text =
        "{\n\"a\": \"1\",\n\"b\\n\": {\"value\": \"2\\\"\", \"expires_at\": 1795722245005}\n}\n";
    assert_eq!(state(&table), text);
    let later = KeyvalNow { monotonic_ms: 50, unix_ms: NOW.unix_ms + 4 };
    let mut again = KeyvalTable::new(KeyvalType::String, 1 << 16);
    read_state(text.as_bytes(), &mut again, later).unwrap();
    assert_eq!(value_at(&again, "b\n", 50).as_deref(), Some("2\""));
    assert_eq!(value_at(&again, "b\n", 51), None);
    let mut last = KeyvalTable::new(KeyvalType::String, 1 << 16);
    read_state(text.as_bytes(), &mut last, KeyvalNow { unix_ms: NOW.unix_ms + 5, ..later })
        .unwrap();
    assert_eq!(last.all().count(), 1);
}

#[test]
fn an_error_of_a_state_file_names_its_line() {
    let cases = [
        ("", "a value is expected in line 1"),
        ("{\n\"a\": \"1\",\n}\n", "a name in quotes is expected in line 3"),
        ("[]", "a list in place of an object in line 1"),
        ("{\n\"a\": 1\n}\n", "the value of key \"a\" is a number, not a text in line 2"),
        (
            "{\n\"b\": \"\",\n\"a\": \"\",\n\"b\": \"\"}",
            "the name occurs twice in the object in line 4",
        ),
        ("{\n\"a\": {\"expires_at\": 1}}", "key \"a\" has no text as its \"value\" in line 2"),
        ("{\"a\": {\"value\": \"\", \"x\": 1}}", "unknown parameter \"x\" of key \"a\" in line 1"),
        (
            "{\n\n\"a\": {\"value\": \"\", \"expires_at\": \"x\"}}",
            "\"expires_at\" of key \"a\" is no number of milliseconds in line 3",
        ),
        ("{\n\"\": \"1\"\n}\n", "key required: it is empty in line 2"),
    ];
    for (text, expected) in cases {
        let refused = read_state(text.as_bytes(), &mut table(KeyvalType::String), NOW);
        assert_eq!(refused.unwrap_err().to_string(), expected, "{text}");
    }
    let refused = read_state(
        b"{\n\"10.0.0.1\": \"1\",\n\"10.0.0.1/32\": \"1\"\n}",
        &mut table(KeyvalType::Ip),
        NOW,
    );
    assert_eq!(refused.unwrap_err().to_string(), "key \"10.0.0.1/32\" is there twice in line 3");
    let mut small = KeyvalTable::new(KeyvalType::String, 300);
    let refused = read_state(b"{\n\"a\": \"1\",\n\"b\": \"1\"\n}", &mut small, NOW).unwrap_err();
    assert!(refused.message.starts_with("keyval storage is full") && refused.line == 3);
}

#[test]
fn a_journal_continues_its_state_file() {
    let mut table = table(KeyvalType::Ip);
    let expiring = KeyvalPair { deadline_ms: Some(NOW_MS + 5), ..pair("10.0.0.3", "3") };
    let before = KeyvalOperation::Put(vec![pair("10.0.0.1", "1"), pair("10.0.0.2/32", "2")]);
    table.apply(&before, NOW_MS).unwrap();
    let state = table.to_state(NOW);
    let batches = [
        vec![KeyvalOperation::Put(vec![expiring, pair("10.0.0.4", "\n")])],
        vec![
            KeyvalOperation::Remove((*b"10.0.0.2").into()),
            KeyvalOperation::Put(vec![pair("10.0.0.1/32", "one")]),
        ],
    ];
    let of = StateMark::of(&state);
    let mut journal = of.journal_head();
    for batch in &batches {
        journal.extend(journal_line(batch, NOW).unwrap());
        batch.iter().for_each(|operation| table.apply(operation, NOW_MS).unwrap());
    }
    let text = String::from_utf8_lossy(&journal);
    let expected = "[{\"10.0.0.3\": {\"value\": \"3\", \"expires_at\": 1795722245005}}, \
                    {\"10.0.0.4\": \"\\n\"}]\n[{\"10.0.0.2\": null}, {\"10.0.0.1/32\": \"one\"}]\n";
    assert_eq!(text.split_once('\n').unwrap().1, expected);
    let read = |journal: &[u8], of: StateMark| {
        let mut again = KeyvalTable::new(KeyvalType::Ip, 1 << 16);
        read_state(&state, &mut again, NOW).unwrap();
        read_journal(journal, of, &mut again, NOW).map(|is_own| (is_own, again.to_state(NOW)))
    };
    assert_eq!(read(&journal, of), Ok((true, table.to_state(NOW))));
    assert_eq!(read(&journal, StateMark::of(b"{}")), Ok((false, state.clone())));
    let later = KeyvalNow { unix_ms: NOW.unix_ms + 5, ..NOW };
    let mut last = KeyvalTable::new(KeyvalType::Ip, 1 << 16);
    assert!(read_journal(&journal, of, &mut last, later).unwrap());
    assert_eq!(last.all().count(), 2, "one has ended, one was removed");
    for whole in [KeyvalOperation::Clear, KeyvalOperation::Replace(Vec::new())] {
        assert_eq!(journal_line(&[whole], NOW), None);
    }
}

#[test]
fn only_the_last_line_of_a_journal_may_be_torn() {
    let of = StateMark::of(b"{}");
    let line = |key: &str| journal_line(&[KeyvalOperation::Put(vec![pair(key, "1")])], NOW);
    let (head, one, two) = (of.journal_head(), line("a").unwrap(), line("b").unwrap());
    let read = |parts: &[&[u8]]| {
        let mut table = table(KeyvalType::String);
        let read = read_journal(&parts.concat(), of, &mut table, NOW);
        read.map(|is_own| (is_own, table.all().count())).map_err(|error| error.to_string())
    };
    for cut in 0..two.len() {
        assert_eq!(read(&[&head, &one, &two[..cut]]), Ok((true, 1)), "{cut}");
    }
    assert_eq!(read(&[&head, &one, &two]), Ok((true, 2)));
    assert_eq!(read(&[&head, &one, b"\0\0\0\n"]), Ok((true, 1)));
    assert_eq!(read(&[&head[..20]]), Ok((false, 0)));
    let refused = |line: &[u8]| read(&[&head, &one, line, &two]).unwrap_err();
    assert_eq!(refused(b"\0\n"), "a value is expected in line 3");
    assert_eq!(refused(b"{}\n"), "an object in place of a list in line 3");
    assert_eq!(
        refused(b"[{\"a\": 1}]\n"),
        "the value of key \"a\" is a number, not a text in line 3"
    );
}

#[test]
fn json_comes_in_pieces() {
    let mut table = table(KeyvalType::String);
    let json = |table: &KeyvalTable, bytes| {
        let (mut json, mut out, mut pieces) = (table.to_json(NOW_MS), Vec::new(), 1);
        while json.write_piece(bytes, &mut out) {
            pieces += 1;
        }
        (String::from_utf8(out).unwrap(), pieces)
    };
    assert_eq!(json(&table, 1), ("{}".into(), 1));
    post(&mut table, r#"{"a\"": "1"}"#).unwrap();
    assert_eq!(json(&table, 100), (r#"{"a\"":"1"}"#.into(), 1));
    post(&mut table, r#"{"b": "2"}"#).unwrap();
    let (whole, pieces) = json(&table, 1);
    let either = [r#"{"a\"":"1","b":"2"}"#, r#"{"b":"2","a\"":"1"}"#];
    assert!(either.contains(&&*whole) && pieces == 3, "{whole} {pieces}");
    let mut out = Vec::new();
    table.get(b"b", NOW_MS).unwrap().write_json(&mut out);
    assert_eq!(out, br#"{"b":"2"}"#);
}

#[test]
fn a_change_arrives_as_it_was_sent() {
    let pairs = || vec![pair("a", ""), KeyvalPair { deadline_ms: Some(7), ..pair("b", "\0") }];
    let operations = [
        KeyvalOperation::Put(pairs()),
        KeyvalOperation::Replace(pairs()),
        KeyvalOperation::Replace(Vec::new()),
        KeyvalOperation::Remove((*b"key").into()),
        KeyvalOperation::Clear,
    ];
    for operation in operations {
        let change = KeyvalChange { subsystem: Subsystem::Stream, zone: (*b"z").into(), operation };
        let bytes = change.to_bytes();
        assert_eq!(KeyvalChange::from_bytes(&bytes).as_ref(), Some(&change));
        assert_eq!(KeyvalChange::from_bytes(&[&bytes[..], b"x"].concat()), None);
    }
    assert_eq!(KeyvalChange::from_bytes(b""), None);
    assert_eq!(KeyvalChange::from_bytes(&[9; 40]), None);
}

#[test]
fn a_process_that_makes_all_changes_has_the_same_content() {
    let zone = || KeyvalZone::new(Subsystem::Http, b"z", table(KeyvalType::Prefix));
    let (decides, follows, late) = (zone(), zone(), zone());
    for body in [r#"{"a": "1", "b": "2"}"#, r#"{"c": "3"}"#] {
        let request = KeyvalRequest::add(body.as_bytes()).unwrap();
        let change = decides.accept(&request, NOW_MS).unwrap();
        assert_eq!((&*change.zone, change.subsystem), (&b"z"[..], Subsystem::Http));
        follows.apply(&change.operation, NOW_MS).unwrap();
    }
    late.apply(&decides.snapshot(NOW_MS).operation, NOW_MS).unwrap();
    for zone in [&follows, &late] {
        assert_eq!(state(&zone.table()), state(&decides.table()));
    }
    // It may be ahead: a key that is not there any more is no error.
    follows.apply(&KeyvalOperation::Remove((*b"x").into()), NOW_MS).unwrap();
}

/// Readers on other threads see whole changes, in order, while entries change.
#[test]
fn readers_see_each_change_whole() {
    const CHANGES: u32 = 2_000;
    let zone = KeyvalZone::new(Subsystem::Http, b"z", table(KeyvalType::String));
    let put = |number: u32| {
        let value = number.to_string();
        let pairs = ["a", "b"].map(|key| pair(key, &value)).to_vec();
        zone.apply(&KeyvalOperation::Put(pairs), NOW_MS).unwrap();
    };
    put(0);
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let (readers, mut last) = (KeyvalReaders::default(), 0);
                loop {
                    let ends = is_over.load(Ordering::SeqCst);
                    let number = readers.read(0, &zone, |table| {
                        let [a, b] = ["a", "b"].map(|key| value(table, key).unwrap());
                        assert_eq!(a, b);
                        a.parse::<u32>().unwrap()
                    });
                    assert!(number >= last, "{number} after {last}");
                    last = number;
                    if ends {
                        return assert_eq!(last, CHANGES);
                    }
                }
            });
        }
        (1..=CHANGES).for_each(put);
        is_over.store(true, Ordering::SeqCst);
    });
}
