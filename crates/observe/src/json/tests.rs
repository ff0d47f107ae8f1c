use super::*;

fn read(json: &[u8]) -> serde_json::Value {
    serde_json::from_slice(json).unwrap_or_else(|error| panic!("{error}: {}", json.escape_ascii()))
}

fn string(text: &[u8]) -> String {
    let mut json = b"\"".to_vec();
    json_text(text, &mut json);
    json.push(b'"');
    read(&json).as_str().unwrap().to_owned()
}

#[test]
fn a_reader_gets_the_text_back() {
    let text = "\"\\/\n\r\t\u{8}\u{c}\0\u{1f}\u{7f}\u{80}\u{9f}\u{a0}caf\u{e9}\u{10ffff}";
    assert_eq!(string(text.as_bytes()), text);
}

#[test]
fn bytes_that_are_not_utf8_are_shown_in_hexadecimal() {
    assert_eq!(string(b"/caf\xe9\xff?"), "/caf\\xE9\\xFF?");
    assert_eq!(string(b"\xf0\x9f"), "\\xF0\\x9F");
}

#[test]
fn nothing_that_a_terminal_executes_is_left() {
    let mut json = Vec::new();
    json_text("\u{1b}[2J\u{9b}31m\u{7f}".as_bytes(), &mut json);
    assert_eq!(json, br"\u001B[2J\u009B31m\u007F");
}

#[test]
fn plain_text_is_unchanged() {
    for byte in 0..=255 {
        let mut json = Vec::new();
        json_text(&[byte], &mut json);
        assert_eq!(is_plain_json(&[byte]), json == [byte] && byte.is_ascii(), "{byte}");
    }
}

#[test]
fn fields_are_whole_at_every_length() {
    let text = "a\u{e9}\"\u{1b}".repeat(300);
    for max in 2..600 {
        let mut fields = JsonFields::first(max - 1);
        fields.text("one", &[b"\xff", text.as_bytes(), b"end"]);
        fields.number("two", u64::MAX);
        fields.text("three", &[b"x"]);
        let mut json = fields.as_bytes().to_vec();
        assert!(json.len() < max && fields.is_cut());
        if json.is_empty() {
            json.push(b'{');
        }
        json.push(b'}');
        assert!(read(&json).is_object());
    }
}

#[test]
fn a_long_value_leaves_room_for_others() {
    let mut fields = JsonFields::first(2000);
    fields.text("one", &[&[b'x'; 3000]]);
    fields.text("two", &[b"y"]);
    let json = [fields.as_bytes(), b"}"].concat();
    let json = read(&json);
    assert_eq!(json["one"].as_str().unwrap().len(), VALUE_MAX);
    assert_eq!(json["two"], "y");
}

#[test]
fn written_fields_are_added_whole_or_not_at_all() {
    let mut part = JsonFields::further(100);
    part.number("two", 2);
    for (max, is_cut) in [(14, true), (16, false)] {
        let mut fields = JsonFields::first(max);
        fields.written(b"");
        fields.line.push(b"{\"one\":1");
        fields.written(part.as_bytes());
        let json = read(&[fields.as_bytes(), b"}"].concat());
        assert_eq!((json["one"].as_u64(), fields.is_cut()), (Some(1), is_cut));
        assert_eq!(json.get("two").is_none(), is_cut);
    }
}
