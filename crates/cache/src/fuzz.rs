//! The checks of the fuzz target.
//!
//! Shared by the target (`fuzz/`) and by the test that runs its seeds; not part of the crate
//! otherwise.

use crate::file_head::FileHead;
use crate::key::CacheKey;

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

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    #[test]
    fn seeds_pass() {
        let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds/cache_file");
        let mut count = 0;
        for entry in fs::read_dir(seeds).unwrap() {
            super::cache_file(&fs::read(entry.unwrap().path()).unwrap());
            count += 1;
        }
        assert!(count > 0, "there are no seeds");
    }
}
