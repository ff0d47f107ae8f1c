//! The checks of the fuzz targets.
//!
//! Shared by the targets (`fuzz/`) and by the test that runs their seeds; not part of the crate
//! otherwise.

use wire::Slice;
use wire::reply::{FIELDS_MAX, ReplyField, ReplyHead, ReplyName};

use crate::file_head::{FileHead, TEXT_BYTES_MAX};
use crate::key::{CacheKey, KeyDigest};
use crate::purge::journal::{JournalContents, JournalEnd, write_record};
use crate::purge::rules::{PurgeRule, PurgeRules};
use crate::purge::tags::tags;
use crate::rules::Freshness;
use crate::rules::control::{SECONDS_MAX, directives};
use crate::rules::fields::{HeadText, HeadUpdate, is_of_connection};
use crate::rules::invalidation::{same_origin_target, sibling_key};
use crate::rules::request::{RequestControl, StoredAge};
use crate::rules::rfc9111::{ReplyFacts, StandardReply};
use crate::vary;

/// A cache file: whatever is accepted lies within the file, and is written as it was read. The key
/// is what the file says it is, so that the bytes after it are reached.
pub fn cache_file(input: &[u8]) {
    let line = input.get(342..).unwrap_or_default();
    let text = line.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let key = CacheKey::new(text);
    let mut bytes = input.to_vec();
    if let (Some(place), false) = (bytes.get_mut(48..52), text.is_empty()) {
        place.copy_from_slice(&key.crc32().to_ne_bytes());
    }
    let Ok(head) = FileHead::read(&bytes, bytes.len() as u64, &key) else { return };
    let (start, end) = (usize::from(head.head_start), usize::from(head.body_start));
    assert!(start < end && end <= bytes.len());
    let mut written = head.write(&key).to_vec();
    key.write_line(&mut written);
    written.extend_from_slice(&bytes[start..]);
    assert_eq!(FileHead::read(&written, written.len() as u64, &key).map(|h| h.vary), Ok(head.vary));
}

/// A journal of purges: what is read is written as it was read, up to where it is damaged, and each
/// rule has an effect. Tags are read from its texts.
pub fn purge_journal(input: &[u8]) {
    let contents = JournalContents::parse(input);
    let mut written = JournalContents::HEADER.to_vec();
    contents.rules.iter().for_each(|(rule, at_ns)| write_record(rule, *at_ns, &mut written));
    assert!(contents.rules.is_empty() || input.starts_with(&written));
    if contents.end == JournalEnd::Whole && !input.is_empty() {
        assert_eq!(written, input);
    }
    let mut rules = PurgeRules::default();
    for (rule, at_ns) in contents.rules {
        rules.add(rule.clone(), at_ns);
        let found = match &rule {
            PurgeRule::Key(digest) => rules.newest_about(b"", digest, std::iter::empty()),
            PurgeRule::Prefix(text) => {
                rules.newest_about(text, &KeyDigest::of(text), std::iter::empty())
            }
            PurgeRule::Tag(text) => {
                assert!(tags(text).all(|tag| !tag.is_empty() && tag.len() <= text.len()));
                rules.newest_about(b"", &KeyDigest::of(b""), std::iter::once(&**text))
            }
        };
        assert!(found >= at_ns);
    }
}

/// The time of all replies.
const NOW_S: i64 = 1_000_000_000;

/// Fields that the rules of caches read: three blocks of lines `Name: value` with an empty line
/// between them. The first has those of a stored reply, the second those of a 304 about it, the
/// third those of a request. What may be stored is what the fields allow, and a head stays a head.
pub fn cache_fields(input: &[u8]) {
    let mut rest = input;
    let [stored, newer, request] = [(); 3].map(|()| next_block(&mut rest));
    let [(stored, stored_text), (newer, newer_text), (request, request_text)] =
        [(stored, 200), (newer, 304), (request, 0)].map(|(text, status)| head_of(text, status));
    let stored = HeadText { head: &stored, text: &stored_text };
    let newer = HeadText { head: &newer, text: &newer_text };
    let request = HeadText { head: &request, text: &request_text };
    check_freshness(stored);
    check_update(stored, newer);
    check_request(request, stored);
}

/// The lines up to the next empty one.
fn next_block<'i>(rest: &mut &'i [u8]) -> &'i [u8] {
    let end = rest.windows(2).position(|two| two == b"\n\n");
    let (block, after) = match end {
        Some(end) => (&rest[..end], &rest[end + 2..]),
        None => (*rest, &b""[..]),
    };
    *rest = after;
    block
}

/// A head with these fields, as the parsers of replies deliver it: names are tokens, values have
/// neither spaces around them nor line feeds.
fn head_of(block: &[u8], status: u16) -> (ReplyHead, Vec<u8>) {
    let (mut head, mut text) =
        (ReplyHead { status, ..ReplyHead::default() }, b"HTTP/1.1 200 OK\r\n".to_vec());
    for line in block.split(|byte| *byte == b'\n').take(FIELDS_MAX) {
        let Some(colon) = line.iter().position(|byte| *byte == b':') else { continue };
        let is_token = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
        let is_text = |byte: &u8| !matches!(byte, b'\r' | b'\0');
        if name.is_empty() || !name.iter().all(is_token) || !value.iter().all(is_text) {
            continue;
        }
        let mut put = |part: &[u8], end: &[u8]| {
            let start = text.len() as u32;
            text.extend_from_slice(part);
            let slice = Slice { start, end: text.len() as u32 };
            text.extend_from_slice(end);
            slice
        };
        let (id, name) = (ReplyName::of(name), put(name, b": "));
        head.fields.push(ReplyField { name, value: put(value, b"\r\n"), id });
    }
    text.extend_from_slice(b"\r\n");
    (head, text)
}

/// By both rules, however the status is.
fn check_freshness(stored: HeadText<'_>) {
    let mut by_nginx = Freshness::default();
    for field in &stored.head.fields {
        by_nginx.add(field.id, field.value.of(stored.text), false, NOW_S);
    }
    let facts = ReplyFacts {
        asked_s: NOW_S - 1,
        now_s: NOW_S,
        is_authorized: false,
        configured_s: Some(60),
        key: b"http://app/x",
    };
    for (is_authorized, configured_s) in [(false, Some(60)), (true, None)] {
        let reply = StandardReply::of(stored.head, stored.text, |_| false);
        let allows_authorized = reply.allows_authorized();
        let freshness = reply.freshness(&ReplyFacts { is_authorized, configured_s, ..facts });
        assert!(freshness.made_s <= NOW_S);
        assert!((0..=SECONDS_MAX).contains(&freshness.updating_s));
        if !freshness.is_cacheable() {
            continue;
        }
        assert!(allows_authorized || !is_authorized);
        assert!(freshness.vary.len() <= TEXT_BYTES_MAX && freshness.valid_s != 0);
        let mut varying = freshness.vary.split(|byte| *byte == b',');
        assert!(!varying.any(|name| name.trim_ascii() == b"*"));
        let has_said_more = stored.first(ReplyName::XAccelExpires).is_some()
            || stored.values(b"cdn-cache-control").next().is_some();
        let mut control = stored.values(b"cache-control").flat_map(directives);
        assert!(
            has_said_more || !control.any(|d| d.argument.is_none() && d.is("private")),
            "a private reply is not stored"
        );
    }
}

/// A 304 changes fields, but neither what frames the body nor what cannot be stored.
fn check_update(stored: HeadText<'_>, newer: HeadText<'_>) {
    let connection: Vec<_> = newer.values(b"connection").collect();
    let drops = |name: &[u8]| is_of_connection(name, connection.iter().copied());
    let HeadUpdate::Changed(text) = stored.updated_by(newer, drops) else { return };
    assert!(text.starts_with(b"HTTP/1.1 200 OK\r\n") && text.ends_with(b"\r\n\r\n"));
    let block = text.iter().copied().filter(|byte| *byte != b'\r').collect::<Vec<_>>();
    let (head, own) = head_of(&block, 200);
    let changed = HeadText { head: &head, text: &own };
    for name in [&b"content-length"[..], b"transfer-encoding", b"content-encoding", b"vary"] {
        assert!(changed.values(name).eq(stored.values(name)));
    }
    let again = changed.updated_by(newer, drops);
    assert!(again == HeadUpdate::Same, "the same 304 changes nothing more: {again:?}");
}

/// The request's demands, its variant, and what it makes invalid.
fn check_request(request: HeadText<'_>, stored: HeadText<'_>) {
    let (control, pragma) = (request.values(b"cache-control"), request.values(b"pragma"));
    let control = RequestControl::of(control, pragma);
    let fresh = StoredAge { valid_s: NOW_S, made_s: NOW_S };
    assert!(control.is_demanding() || control.accepts(fresh, false, NOW_S));
    control.accepts_after_error(StoredAge { valid_s: i64::MIN, made_s: i64::MAX }, NOW_S);
    let (main, varying) = (KeyDigest::of(b"k"), stored.values(b"vary").collect::<Vec<_>>());
    let varying = varying.join(&b", "[..]);
    let values_of = |name: &[u8], add: &mut dyn FnMut(&[u8])| request.values(name).for_each(add);
    vary::variant(main, &varying, values_of);
    let spaced = |name: &[u8], add: &mut dyn FnMut(&[u8])| {
        let values = request.values(name);
        values.for_each(|value| add(&[b" ,", value, b", "].concat()));
    };
    let normal = vary::normalized_variant(main, &varying, values_of);
    assert_eq!(normal, vary::normalized_variant(main, &varying, spaced), "spaces do not matter");
    let [host, target] =
        [&b"host"[..], b"target"].map(|name| request.values(name).next().unwrap_or_default());
    for reference in stored.values(b"location") {
        let Some(other) = same_origin_target(reference, host, target) else { continue };
        let path = other.split(|byte| *byte == b'?').next().unwrap_or_default();
        assert!(path.starts_with(b"/") && !path.windows(4).any(|part| part == b"/../"));
        let key = [b"http://app", target].concat();
        if let Some(key) = sibling_key(&key, target, &other) {
            assert!(key.starts_with(b"http://app/"));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    #[test]
    fn seeds_pass() {
        type Check = fn(&[u8]);
        let cache_file: Check = super::cache_file;
        for (name, check) in [
            ("cache_file", cache_file),
            ("purge_journal", super::purge_journal),
            ("cache_fields", super::cache_fields),
        ] {
            let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds").join(name);
            let mut count = 0;
            for entry in fs::read_dir(seeds).unwrap() {
                check(&fs::read(entry.unwrap().path()).unwrap());
                count += 1;
            }
            assert!(count > 0, "{name} has no seeds");
        }
    }
}
