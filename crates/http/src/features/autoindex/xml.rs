//! The list as XML.

use std::io::Write as _;

use wire::date::Civil;
use wire::uri::escape_html;

use super::entry::ListedEntry;

pub(super) fn write(entries: &[ListedEntry], out: &mut Vec<u8>) {
    out.extend_from_slice(b"<?xml version=\"1.0\"?>\r\n<list>\r\n");
    for entry in entries {
        out.push(b'<');
        out.extend_from_slice(entry.kind());
        write_time(entry.stat.modified, out);
        if entry.stat.is_regular() {
            write!(out, " size=\"{}\"", entry.stat.size).expect("writing to memory succeeds");
        }
        out.push(b'>');
        escape_html(&entry.name, out);
        out.extend_from_slice(b"</");
        out.extend_from_slice(entry.kind());
        out.extend_from_slice(b">\r\n");
    }
    out.extend_from_slice(b"</list>\r\n");
}

fn write_time(seconds: i64, out: &mut Vec<u8>) {
    let Civil { year, month, day, hour, minute, second, .. } = Civil::of(seconds);
    write!(out, " mtime=\"{year:4}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z\"")
        .expect("writing to memory succeeds");
}
