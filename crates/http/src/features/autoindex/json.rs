//! The list as JSON, and as a JSONP call.

use std::io::Write as _;

use super::entry::ListedEntry;

pub(super) fn write_call(callback: &[u8], entries: &[ListedEntry], out: &mut Vec<u8>) {
    out.extend_from_slice(b"/* callback */\r\n");
    out.extend_from_slice(callback);
    out.push(b'(');
    write(entries, out);
    out.extend_from_slice(b");");
}

pub(super) fn write(entries: &[ListedEntry], out: &mut Vec<u8>) {
    out.push(b'[');
    for (at, entry) in entries.iter().enumerate() {
        let open: &[u8] = if at == 0 { b"\r\n{ \"name\":\"" } else { b",\r\n{ \"name\":\"" };
        out.extend_from_slice(open);
        write_escaped(&entry.name, out);
        out.extend_from_slice(b"\", \"type\":\"");
        out.extend_from_slice(entry.kind());
        out.extend_from_slice(b"\", \"mtime\":\"");
        out.extend_from_slice(&wire::date::http(entry.stat.modified));
        out.push(b'"');
        if entry.stat.is_regular() {
            write!(out, ", \"size\":{}", entry.stat.size).expect("writing to memory succeeds");
        }
        out.extend_from_slice(b" }");
    }
    out.extend_from_slice(b"\r\n]");
}

fn write_escaped(text: &[u8], out: &mut Vec<u8>) {
    for &byte in text {
        let letter = match byte {
            b'\\' | b'"' => byte,
            b'\n' => b'n',
            b'\r' => b'r',
            b'\t' => b't',
            0x08 => b'b',
            0x0c => b'f',
            0..=0x1f => {
                write!(out, "\\u{byte:04X}").expect("writing to memory succeeds");
                continue;
            }
            _ => {
                out.push(byte);
                continue;
            }
        };
        out.extend_from_slice(&[b'\\', letter]);
    }
}
