use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use super::request::{self, FastcgiRequest, LengthPairs, RECORD_BYTES_MAX, STDIN_END, TooBig};
use super::*;
use crate::cgi;

fn record(kind: u8, data: &[u8], padding: usize) -> Vec<u8> {
    let [high, low] = (data.len() as u16).to_be_bytes();
    let head = [1, kind, 0, 1, high, low, padding as u8, 0];
    [&head[..], data, &vec![b'!'; padding]].concat()
}

/// Decodes records that arrive in pieces with these ends. Returns both kinds of output,
/// concatenated.
fn decoded(input: &[u8], ends: &[usize]) -> Result<[String; 2], RecordError> {
    let mut decoder = RecordDecoder::default();
    let (mut out, mut errors, mut at) = (String::new(), String::new(), 0);
    for &end in ends {
        loop {
            let base = at;
            at = match decoder.decode(&input[base..end])? {
                RecordDecoded::Stdout(range) => {
                    out += &input[base..][range.clone()].escape_ascii().to_string();
                    base + range.end
                }
                RecordDecoded::Stderr(range) => {
                    errors += &input[base..][range.clone()].escape_ascii().to_string();
                    base + range.end
                }
                RecordDecoded::StdoutEnd(used) => {
                    out += "|";
                    base + used
                }
                RecordDecoded::EndRequest(used) => {
                    out += "(";
                    base + used
                }
                RecordDecoded::Done(used) => {
                    assert!(decoder.is_done());
                    out += &format!("){}", input.len() - base - used);
                    return Ok([out, errors]);
                }
                RecordDecoded::More => {
                    at = end;
                    break;
                }
            };
        }
    }
    Ok([out, errors])
}

#[test]
fn records_decode_alike_in_any_split() {
    let input = [
        record(STDERR, b"careful\n", 0),
        record(STDOUT, b"Status: 200\r\n", 3),
        record(STDERR, b"", 2),
        record(STDOUT, b"\r\nbody", 0),
        record(STDOUT, b"", 1),
        record(END_REQUEST, &[0; 8], 4),
        b"next".to_vec(),
    ]
    .concat();
    let whole = ["Status: 200\\r\\n\\r\\nbody|()4".to_string(), "careful\\n".to_string()];
    assert_eq!(decoded(&input, &[input.len()]), Ok(whole.clone()));
    for at in 0..input.len() {
        let pieces = decoded(&input, &[at, input.len()]).unwrap();
        assert_eq!(pieces, whole, "{at}");
    }
    let bytewise: Vec<usize> = (0..=input.len()).collect();
    assert_eq!(decoded(&input, &bytewise), Ok(whole));
}

#[test]
fn invalid_records_are_refused() {
    let table: [(&[u8], RecordError, &str); 6] = [
        (b"\x02", RecordError::Version(2), "unsupported FastCGI protocol version: 2"),
        (b"HTTP", RecordError::Version(72), "unsupported FastCGI protocol version: 72"),
        (b"\x01\x05", RecordError::Type(5), "invalid FastCGI record type: 5"),
        (b"\x01\x0b", RecordError::Type(11), "invalid FastCGI record type: 11"),
        (
            b"\x01\x06\x01\x01",
            RecordError::RequestIdHigh(1),
            "unexpected FastCGI request id high byte: 1",
        ),
        (
            b"\x01\x06\x00\x02",
            RecordError::RequestIdLow(2),
            "unexpected FastCGI request id low byte: 2",
        ),
    ];
    for (input, error, words) in table {
        assert_eq!(RecordDecoder::default().decode(input), Err(error));
        assert_eq!(error.to_string(), words);
    }
}

#[test]
fn a_request() {
    let mut out = Vec::new();
    let request = FastcgiRequest::begin(true, &mut out);
    cgi::write::<LengthPairs>(b"A", b"bc", &mut out).unwrap();
    cgi::write::<LengthPairs>(b"EMPTY", b"", &mut out).unwrap();
    request.end_params(&mut out).unwrap();
    let expected = b"\x01\x01\0\x01\0\x08\0\0\0\x01\x01\0\0\0\0\0\
        \x01\x04\0\x01\0\x0c\x04\0\x01\x02Abc\x05\0EMPTY\0\0\0\0\
        \x01\x04\0\x01\0\0\0\0";
    assert_eq!(out, expected, "{}", out.escape_ascii());
}

#[test]
fn lengths_above_127_take_four_bytes() {
    for (name, value, lengths) in [
        (127, 127, vec![127, 127]),
        (1, 128, vec![1, 0x80, 0, 0, 128]),
        (128, 1, vec![0x80, 0, 0, 128, 1]),
        (300, 70_000, vec![0x80, 0, 1, 44, 0x80, 1, 0x11, 0x70]),
    ] {
        let (name, value) = (vec![b'n'; name], vec![b'v'; value]);
        let mut out = Vec::new();
        cgi::write::<LengthPairs>(&name, &value, &mut out).unwrap();
        assert_eq!(out, [lengths, name, value].concat());
    }
}

#[test]
fn variables_fit_into_one_record() {
    for (length, fits) in
        [(RECORD_BYTES_MAX - 6, Ok(())), (RECORD_BYTES_MAX - 5, Err(TooBig(65_536)))]
    {
        let mut out = Vec::new();
        let request = FastcgiRequest::begin(false, &mut out);
        cgi::write::<LengthPairs>(b"A", &vec![b'v'; length], &mut out).unwrap();
        assert_eq!(request.end_params(&mut out), fits);
    }
}

#[test]
fn data_is_padded() {
    for length in 0..=32 {
        let head = request::stdin_head(length);
        assert_eq!(usize::from(head[6]), request::padding(length).len());
        assert_eq!((length + usize::from(head[6])) % 8, 0);
        assert_eq!(usize::from(head[5]), length);
    }
    assert_eq!(STDIN_END, *b"\x01\x05\0\x01\0\0\0\0");
}

#[test]
fn error_log_text_loses_its_line_end() {
    for (text, kept) in [("PHP Warning. \r\n", "PHP Warning"), ("a", "a"), ("\n\n", "\n"), ("", "")]
    {
        assert_eq!(trim_stderr(text.as_bytes()), kept.as_bytes());
    }
}
