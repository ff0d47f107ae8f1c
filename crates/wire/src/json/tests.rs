//! Documents accepted and refused.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use alloc::{format, vec};

use super::*;

const LIMITS: JsonLimits = JsonLimits { bytes_max: 1000, depth_max: 4, values_max: 20 };

fn read(text: &str) -> Result<JsonValue<'_>, JsonError> {
    parse(text.as_bytes(), LIMITS)
}

/// The error of an invalid document, with its place.
fn refusal(text: &[u8]) -> String {
    let error = parse(text, LIMITS).expect_err("a refused document");
    let JsonPosition { line, column } = error.position(text);
    format!("{}:{line}:{column}", error.problem)
}

fn text_of(document: &str) -> String {
    read(document).unwrap().as_text().unwrap().to_string()
}

#[test]
fn values_of_all_kinds() {
    let value = read(" {\"b\" : [1, null,true ,false],\r\n\t\"a\":{}, \"\": \"x\" } ").unwrap();
    let object = value.as_object().unwrap();
    let names: Vec<&str> = object.iter().map(|member| &*member.name).collect();
    assert_eq!(names, ["", "a", "b"]);
    assert_eq!(object.iter().map(|member| member.at).collect::<Vec<_>>(), [41, 33, 2]);
    assert_eq!(object.get("").unwrap().as_text(), Some("x"));
    assert!(object.get("a").unwrap().as_object().unwrap().is_empty());
    let JsonValue::List(list) = object.get("b").unwrap() else { panic!() };
    assert_eq!(list[0].as_u64(), Some(1));
    assert_eq!(list[1..], [JsonValue::Null, JsonValue::Bool(true), JsonValue::Bool(false)]);
    assert_eq!(object.get("c"), None);
}

#[test]
fn numbers() {
    for (text, whole) in [("0", Some(0)), ("18446744073709551615", Some(u64::MAX)), ("-1", None)] {
        assert_eq!(read(text).unwrap().as_u64(), whole, "{text}");
    }
    for text in ["-0", "0.5", "1e3", "1E+3", "10.25e-7", "18446744073709551616"] {
        let JsonValue::Number(number) = read(text).unwrap() else { panic!("{text}") };
        assert_eq!((number.as_str(), number.as_u64()), (text, None));
    }
    for text in ["01", "-", "1.", ".5", "1e", "1e+", "+1", "0x1", "1.5.5", "--1", "NaN"] {
        assert!(read(text).is_err(), "{text}");
    }
}

#[test]
fn escapes() {
    assert_eq!(text_of(r#""\"\\\/\b\f\n\r\t""#), "\"\\/\x08\x0c\n\r\t");
    assert_eq!(text_of(r#""a\u00e9b\uD83D\uDE00c""#), "a\u{e9}b\u{1f600}c");
    assert_eq!(text_of("\"\u{e9}\u{1f600}\x7f\""), "\u{e9}\u{1f600}\x7f");
    assert_eq!(text_of(r#""\u0000""#), "\0");
}

#[test]
fn errors_say_what_and_where() {
    let table: [(&[u8], &str); 27] = [
        (b"", "a value is expected:1:1"),
        (b" \n ", "a value is expected:2:2"),
        (b"nul", "a value is expected:1:1"),
        (b"[1,]", "a value is expected:1:4"),
        (b"[1 2]", "a comma or \"]\" is expected:1:4"),
        (b"[1", "a comma or \"]\" is expected:1:3"),
        (b"{\"a\":1 \"b\":2}", "a comma or \"}\" is expected:1:8"),
        (b"{\n\"a\":1,\n}", "a name in quotes is expected:3:1"),
        (b"{a:1}", "a name in quotes is expected:1:2"),
        (b"{\"a\" 1}", "a colon is expected:1:6"),
        (b"{\"a\":}", "a value is expected:1:6"),
        (b"{\"a\":1,\n \"b\":2,\n \"a\":3}", "the name occurs twice in the object:3:2"),
        (b"{\"a\":1,\"\\u0061\":3}", "the name occurs twice in the object:1:8"),
        (b"1 2", "there is text behind the end:1:3"),
        (b"nullx", "there is text behind the end:1:5"),
        (b"01", "the number is invalid:1:2"),
        (b"\"abc", "the text in quotes has no end:1:1"),
        (b"\"abc\\\"", "the text in quotes has no end:1:1"),
        (b"\"a\nb\"", "a control character must be escaped:1:3"),
        (b"\"a\\x\"", "the escape is invalid:1:3"),
        (b"\"\\u12\"", "the escape is invalid:1:2"),
        (b"\"\\u+123\"", "the escape is invalid:1:2"),
        (b"\"\\ud83d\"", "the escape is half of a character:1:2"),
        (b"\"\\ud83dx\\ude00\"", "the escape is half of a character:1:2"),
        (b"\"\\ude00\"", "the escape is half of a character:1:2"),
        (b"\"\\ud83d\\u0061\"", "the escape is half of a character:1:2"),
        (b"\"a\xff\"", "the text is not UTF-8:1:3"),
    ];
    for (text, expected) in table {
        assert_eq!(refusal(text), expected, "{}", text.escape_ascii());
    }
    assert_eq!(read("[}").unwrap_err().to_string(), "a value is expected at byte 1");
}

#[test]
fn an_escape_cut_by_the_end_is_refused() {
    let text = r#""\ud83d\ude00""#;
    for end in 0..text.len() {
        assert!(read(&text[..end]).is_err(), "{end}");
    }
    assert!(read("\"\\u00\u{e9}9\"").is_err());
}

#[test]
fn limits_hold() {
    assert!(read("[[[[]]]]").is_ok());
    assert_eq!(refusal(b"[[[[[]]]]]"), "too many lists and objects are inside each other:1:5");
    assert!(read("[[[]],[[[]]]]").is_ok());
    let list = |count| format!("[{}]", vec!["1"; count].join(","));
    assert!(read(&list(19)).is_ok());
    assert_eq!(refusal(list(20).as_bytes()), "there are too many values:1:40");
    let text = |length| format!("\"{}\"", "x".repeat(length));
    assert!(read(&text(998)).is_ok());
    assert_eq!(refusal(text(999).as_bytes()), "the text is too long:1:1001");
}

#[test]
fn only_texts_with_escapes_are_copied() {
    use alloc::borrow::Cow;
    let list = read(r#"["plain", "a\tb"]"#).unwrap();
    let JsonValue::List(list) = list else { panic!() };
    assert!(matches!(&list[0], JsonValue::Text(Cow::Borrowed("plain"))));
    assert!(matches!(&list[1], JsonValue::Text(Cow::Owned(text)) if text == "a\tb"));
}

#[test]
fn written_texts_are_read_again() {
    let all: String = (0..0x300).filter_map(char::from_u32).chain(['\u{1f600}']).collect();
    let mut out = Vec::new();
    write_text(all.as_bytes(), &mut out);
    let limits = JsonLimits { bytes_max: usize::MAX, ..LIMITS };
    assert_eq!(parse(&out, limits).unwrap().as_text(), Some(&*all));
}

#[test]
fn written_texts() {
    let table: [(&[u8], &str); 4] = [
        (b"", "\"\""),
        (b"a\"b\\c/\n\r\t\x01\x1f\x7f", "\"a\\\"b\\\\c/\\n\\r\\t\\u0001\\u001f\x7f\""),
        ("\u{e9}".as_bytes(), "\"\u{e9}\""),
        (b"a\xff\xc3b", "\"a\u{fffd}\u{fffd}b\""),
    ];
    for (text, expected) in table {
        let mut out = Vec::new();
        write_text(text, &mut out);
        assert_eq!(out, expected.as_bytes());
    }
}
