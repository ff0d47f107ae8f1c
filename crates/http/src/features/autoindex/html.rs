//! The list as a page, byte for byte as nginx writes it.

use std::io::Write as _;

use wire::date::Civil;
use wire::uri::{EscapeSet, escape, escape_html};

use super::entry::ListedEntry;

/// The longest name that is shown completely. Of a longer one, three characters fewer and `..>` are
/// shown.
const NAME_CHARS_MAX: usize = 50;
const CUT_NAME_CHARS: usize = NAME_CHARS_MAX - 3;

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// Options of the page.
pub(super) struct Style {
    /// Whether names are UTF-8, so that their length is counted in characters.
    pub(super) utf8: bool,
    pub(super) local_time: bool,
    pub(super) exact_size: bool,
}

pub(super) fn write(style: &Style, uri: &[u8], entries: &[ListedEntry], out: &mut Vec<u8>) {
    out.extend_from_slice(b"<html>\r\n<head><title>Index of ");
    escape_html(uri, out);
    out.extend_from_slice(b"</title></head>\r\n<body>\r\n<h1>Index of ");
    escape_html(uri, out);
    out.extend_from_slice(b"</h1><hr><pre><a href=\"../\">../</a>\r\n");
    let offset_s = if style.local_time { utc_offset_s() } else { 0 };
    for entry in entries {
        write_link(entry, style.utf8, out);
        write_time(entry.stat.modified + offset_s, out);
        match style.exact_size {
            true => write_exact_size(entry, out),
            false => write_rounded_size(entry, out),
        }
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(b"</pre><hr></body>\r\n</html>\r\n");
}

/// The current offset of local time from UTC. Like nginx, this ignores the offset at the file's
/// time.
fn utc_offset_s() -> i64 {
    let now_s = net::clock::unix_ms() / 1000;
    i64::from((observe::system().utc_offset_minutes)(now_s as i64)) * 60
}

fn write_link(entry: &ListedEntry, utf8: bool, out: &mut Vec<u8>) {
    let slash: &[u8] = if entry.stat.is_directory() { b"/" } else { b"" };
    out.extend_from_slice(b"<a href=\"");
    escape(EscapeSet::UriComponent, &entry.name, out);
    out.extend_from_slice(slash);
    out.extend_from_slice(b"\">");
    let name = DisplayName::of(&entry.name, utf8);
    escape_html(name.first(CUT_NAME_CHARS), out);
    if name.chars() > NAME_CHARS_MAX {
        out.extend_from_slice(b"..&gt;</a> ");
        return;
    }
    escape_html(&entry.name[name.first(CUT_NAME_CHARS).len()..], out);
    let mut room = NAME_CHARS_MAX - name.chars();
    if room > 0 {
        out.extend_from_slice(slash);
        room -= slash.len();
    }
    out.extend_from_slice(b"</a>");
    out.resize(out.len() + room + 1, b' ');
}

/// A name whose length is counted in characters or bytes.
enum DisplayName<'n> {
    Text(&'n str),
    Bytes(&'n [u8]),
}

impl<'n> DisplayName<'n> {
    fn of(name: &'n [u8], utf8: bool) -> Self {
        match std::str::from_utf8(name) {
            Ok(text) if utf8 => Self::Text(text),
            _ => Self::Bytes(name),
        }
    }

    fn chars(&self) -> usize {
        match self {
            Self::Text(text) => text.chars().count(),
            Self::Bytes(bytes) => bytes.len(),
        }
    }

    fn first(&self, chars: usize) -> &'n [u8] {
        match self {
            Self::Text(text) => {
                let end = text.char_indices().nth(chars).map_or(text.len(), |(at, _)| at);
                &text.as_bytes()[..end]
            }
            Self::Bytes(bytes) => &bytes[..chars.min(bytes.len())],
        }
    }
}

fn write_time(seconds: i64, out: &mut Vec<u8>) {
    let time = Civil::of(seconds);
    let month = MONTHS[time.month as usize - 1];
    let Civil { day, year, hour, minute, .. } = time;
    write!(out, "{day:02}-{month}-{year} {hour:02}:{minute:02} ")
        .expect("writing to memory succeeds");
}

fn write_exact_size(entry: &ListedEntry, out: &mut Vec<u8>) {
    let written = match entry.stat.is_directory() {
        true => write!(out, "{:>19}", '-'),
        false => write!(out, "{:>19}", entry.stat.size),
    };
    written.expect("writing to memory succeeds");
}

/// Writes the rounded size in the largest unit that fits; kilobytes from five digits on.
fn write_rounded_size(entry: &ListedEntry, out: &mut Vec<u8>) {
    const K: u64 = 1 << 10;
    const M: u64 = 1 << 20;
    const G: u64 = 1 << 30;
    let written = match entry.stat.size {
        _ if entry.stat.is_directory() => write!(out, "{:>7}", '-'),
        size @ G.. => write!(out, "{:>6}G", rounded(size, G)),
        size @ M.. => write!(out, "{:>6}M", rounded(size, M)),
        size @ 10_000.. => write!(out, "{:>6}K", rounded(size, K)),
        size => write!(out, "{size:>7}"),
    };
    written.expect("writing to memory succeeds");
}

fn rounded(size: u64, unit: u64) -> u64 {
    size / unit + u64::from(size % unit >= unit / 2)
}
