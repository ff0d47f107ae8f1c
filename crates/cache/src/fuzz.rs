//! The checks of the fuzz targets.
//!
//! Shared by the targets (`fuzz/`) and by the test that runs their seeds; not part of the crate
//! otherwise.

use crate::file_head::FileHead;
use crate::key::{CacheKey, KeyDigest};
use crate::purge::journal::{JournalContents, JournalEnd, write_record};
use crate::purge::rules::{PurgeRule, PurgeRules};
use crate::purge::tags::tags;

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

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    #[test]
    fn seeds_pass() {
        type Check = fn(&[u8]);
        let cache_file: Check = super::cache_file;
        for (name, check) in [("cache_file", cache_file), ("purge_journal", super::purge_journal)] {
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
