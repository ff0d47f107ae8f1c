use std::fs::{self, File};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use super::walk::PurgeWalk;
use super::*;
use crate::file_head::FileHead;
use crate::folder::CacheFolder;
use crate::upkeep::StepBudget;
use crate::zone::FileFacts;

const BUDGET: StepBudget = StepBudget { files: 2, threshold_ms: 100, sleep_ms: 50 };

fn open(folder: &Path) -> Arc<CacheZone> {
    let folder = CacheFolder { path: folder.into(), levels: Default::default() };
    let zone = CacheZone::new(folder, 1 << 20);
    assert_eq!(zone.read_purges(5).unwrap(), JournalEnd::Whole);
    Arc::new(zone)
}

/// Stores a file of a key, with tags in place of the head, that was written at a time.
fn store(zone: &CacheZone, key: &str, tags: &str, modified_ns: u64) {
    let key = CacheKey::new(key.as_bytes());
    let head_start = key.head_start().unwrap();
    let body_start = head_start + tags.len() as u16;
    let mut bytes = FileHead { head_start, body_start, ..Default::default() }.write(&key).to_vec();
    key.write_line(&mut bytes);
    bytes.extend_from_slice(tags.as_bytes());
    let path = zone.folder().file(&key.digest());
    fs::write(&path, bytes).unwrap();
    let time = UNIX_EPOCH + Duration::from_nanos(modified_ns);
    File::options().write(true).open(&path).unwrap().set_modified(time).unwrap();
    zone.store(&key.digest(), FileFacts { inode: 1, blocks: 1 }, 5);
}

fn has_file(zone: &CacheZone, key: &str) -> bool {
    zone.folder().file(&KeyDigest::of(key.as_bytes())).exists()
}

fn subject(key: &str) -> (CacheKey, &'static [u8]) {
    (CacheKey::new(key.as_bytes()), b"")
}

fn admits(zone: &CacheZone, key: &str, tags: &str, begun_ns: u64) -> bool {
    let (key, _) = subject(key);
    zone.admit(&PurgeSubject::new(&key, tags.as_bytes()), begun_ns, 1).is_some()
}

fn is_purged(zone: &CacheZone, key: &str, tags: &str, modified_ns: u64) -> bool {
    let (key, _) = subject(key);
    let subject = PurgeSubject::new(&key, tags.as_bytes());
    zone.may_be_purged(modified_ns) && zone.is_purged(&subject, modified_ns)
}

fn purge(zone: &CacheZone, rule: &str, now_ns: u64) -> bool {
    let rule = match rule.strip_prefix('#') {
        Some(tag) => PurgeRule::Tag(tag.as_bytes().into()),
        None => PurgeRule::of_key(rule.as_bytes()),
    };
    zone.purge(vec![rule], now_ns).unwrap()
}

fn walk(zone: &CacheZone) {
    let mut walk = PurgeWalk::begin(zone);
    let steps = (1..1000).find(|_| walk.step(zone, &BUDGET, &|head| head.to_vec(), || 0));
    assert!(steps.is_some());
}

#[test]
fn what_is_older_than_a_purge_is_purged_and_nothing_else() {
    let folder = testing::Folder::new();
    let zone = open(&folder);
    assert!(!zone.may_be_purged(1));
    store(&zone, "k/a", "", 100);
    assert!(purge(&zone, "k/a", 200) && !has_file(&zone, "k/a"));
    assert!(!purge(&zone, "k/a", 300));
    for (key, modified_ns, expected) in
        [("k/a", 200, true), ("k/a", 300, true), ("k/a", 301, false), ("k/b", 200, false)]
    {
        assert_eq!(is_purged(&zone, key, "", modified_ns), expected, "{key} {modified_ns}");
    }
    purge(&zone, "#t", 400);
    assert!(is_purged(&zone, "k/b", "s t", 400) && !is_purged(&zone, "k/b", "s", 400));
}

#[test]
fn a_fill_that_began_before_a_purge_of_its_reply_is_not_kept() {
    let folder = testing::Folder::new();
    let zone = open(&folder);
    let before_ns = zone.newest_purge_ns();
    purge(&zone, "k/*", 100);
    let between_ns = zone.newest_purge_ns();
    purge(&zone, "#t", 100);
    let after_ns = zone.newest_purge_ns();
    assert!(before_ns < between_ns && between_ns < after_ns);
    assert!(!admits(&zone, "k/a", "", before_ns) && admits(&zone, "l", "", before_ns));
    assert!(admits(&zone, "k/a", "", between_ns) && !admits(&zone, "l", "t", between_ns));
    assert!(admits(&zone, "k/a", "t", after_ns));
}

/// The clock is set back: new files have an earlier time than the purge before them.
#[test]
fn a_file_that_is_kept_is_younger_than_all_purges_and_older_than_the_next() {
    let folder = testing::Folder::new();
    let zone = open(&folder);
    purge(&zone, "k", 1000);
    let (key, tags) = subject("k");
    let begun_ns = zone.newest_purge_ns();
    let earliest_ns = zone.admit(&PurgeSubject::new(&key, tags), begun_ns, 500).unwrap();
    assert!(!is_purged(&zone, "k", "", earliest_ns));
    purge(&zone, "k", 600);
    assert!(is_purged(&zone, "k", "", earliest_ns));
    // A file from the future.
    let begun_ns = zone.newest_purge_ns();
    zone.admit(&PurgeSubject::new(&key, tags), begun_ns, 5000).unwrap();
    purge(&zone, "k", 700);
    assert!(is_purged(&zone, "k", "", 5000));
}

#[test]
fn an_expired_reply_is_renewed_unless_it_was_purged() {
    let folder = testing::Folder::new();
    let zone = open(&folder);
    let (key, tags) = subject("k");
    let renew = |begun_ns| {
        let mut written = false;
        let write = |earliest_ns| {
            written = true;
            Ok(earliest_ns + 10)
        };
        zone.renew(&PurgeSubject::new(&key, tags), begun_ns, write).unwrap();
        written
    };
    assert!(renew(0));
    purge(&zone, "k", 1);
    assert!(is_purged(&zone, "k", "", 11) && !renew(0) && renew(zone.newest_purge_ns()));
}

#[test]
fn another_process_knows_what_was_purged() {
    let folder = testing::Folder::new();
    let zone = open(&folder);
    purge(&zone, "k/*", 100);
    purge(&zone, "#t", 200);
    drop(zone);
    let next = open(&folder);
    assert!(is_purged(&next, "k/a", "", 100) && !is_purged(&next, "k/a", "", 101));
    assert!(is_purged(&next, "l", "t", 200) && !admits(&next, "k/a", "", 0));
    purge(&next, "l", 50);
    assert!(is_purged(&open(&folder), "l", "", 201));
}

#[test]
fn two_processes_know_of_each_others_purges() {
    let folder = testing::Folder::new();
    let [old, new] = [open(&folder), open(&folder)];
    [&old, &new].iter().for_each(|zone| zone.watch_purges(true));
    purge(&old, "a", 100);
    assert!(is_purged(&new, "a", "", 100) && !admits(&new, "a", "", 0));
    purge(&new, "b*", 50);
    assert!(!admits(&old, "bc", "", 0) && is_purged(&old, "bc", "", 50));
    let begun_ns = old.newest_purge_ns();
    purge(&new, "c", 50);
    let (key, tags) = subject("c");
    let write = |_| -> io::Result<u64> { panic!("it was purged") };
    old.renew(&PurgeSubject::new(&key, tags), begun_ns, write).unwrap();
}

#[test]
fn a_damaged_journal_purges_everything_before() {
    let folder = testing::Folder::new();
    let zone = open(&folder);
    purge(&zone, "a", 100);
    let path = zone.journal_path();
    let mut bytes = fs::read(&path).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&path, &bytes).unwrap();
    let written_ns = modified_ns(&fs::metadata(&path).unwrap());
    let folder_of = CacheFolder { path: (*folder).into(), levels: Default::default() };
    let next = CacheZone::new(folder_of, 1 << 20);
    assert_eq!(next.read_purges(5).unwrap(), JournalEnd::Damaged);
    assert!(is_purged(&next, "z", "", written_ns) && !is_purged(&next, "z", "", written_ns + 1));
    assert!(is_purged(&open(&folder), "z", "", written_ns), "it was written anew");
}

#[test]
fn a_journal_that_cannot_be_read_purges_everything_before() {
    let folder = testing::Folder::new();
    fs::create_dir(folder.join(journal::FILE_NAME)).unwrap();
    let folder_of = CacheFolder { path: (*folder).into(), levels: Default::default() };
    let zone = CacheZone::new(folder_of, 1 << 20);
    assert!(zone.read_purges(100).is_err());
    assert!(is_purged(&zone, "a", "", 100) && !is_purged(&zone, "a", "", 101));
    assert!(zone.purge(vec![PurgeRule::of_key(b"a")], 200).is_err());
    assert!(is_purged(&zone, "a", "", 200), "it holds for this process");
}

#[test]
fn a_remembered_error_is_purged_by_its_key_and_by_any_tag() {
    let folder = testing::Folder::new();
    let zone = open(&folder);
    let (key, tags) = subject("k");
    let is_purged = |begun_ns| zone.is_error_purged(&PurgeSubject::new(&key, tags), begun_ns);
    purge(&zone, "other", 100);
    let begun_ns = zone.newest_purge_ns();
    assert!(!is_purged(0) && !is_purged(begun_ns));
    purge(&zone, "k", 200);
    assert!(is_purged(begun_ns) && !is_purged(zone.newest_purge_ns()));
    let begun_ns = zone.newest_purge_ns();
    purge(&zone, "#t", 300);
    assert!(is_purged(begun_ns));
}

#[test]
fn what_follows_a_record_that_was_cut_short_is_read() {
    let folder = testing::Folder::new();
    let zone = open(&folder);
    purge(&zone, "a", 100);
    purge(&zone, "b", 200);
    let path = zone.journal_path();
    let bytes = fs::read(&path).unwrap();
    fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
    let folder_of = CacheFolder { path: (*folder).into(), levels: Default::default() };
    let next = CacheZone::new(folder_of, 1 << 20);
    assert_eq!(next.read_purges(5).unwrap(), JournalEnd::Torn);
    purge(&next, "c", 300);
    let last = open(&folder);
    let purged = ["a", "b", "c"].map(|key| is_purged(&last, key, "", 100));
    assert_eq!(purged, [true, false, true]);
}

/// Emptying the directory removes the journal as well.
#[test]
fn a_journal_that_was_removed_is_written_anew() {
    let folder = testing::Folder::new();
    let zone = open(&folder);
    purge(&zone, "a", 100);
    fs::remove_file(zone.journal_path()).unwrap();
    purge(&zone, "b", 200);
    let next = open(&folder);
    assert!(is_purged(&next, "a", "", 100) && is_purged(&next, "b", "", 200));
}

#[test]
fn a_walk_removes_purged_files_and_their_rules_are_forgotten_later() {
    let folder = testing::Folder::new();
    let zone = open(&folder);
    for (key, tags, modified_ns) in
        [("k/a", "", 100), ("k/b", "", 400), ("l", "t", 100), ("m", "s", 100), ("n", "", 100)]
    {
        store(&zone, key, tags, modified_ns);
    }
    folder.write("notes.txt", b"mine");
    purge(&zone, "k/*", 200);
    purge(&zone, "#t", 300);
    assert_eq!(zone.purge_backlog(), PurgeBacklog { rules: 2, oldest_ns: 200, broadened: 0 });
    walk(&zone);
    let left = ["k/a", "k/b", "l", "m", "n"].map(|key| has_file(&zone, key));
    assert_eq!(left, [false, true, false, true, true]);
    assert!(folder.join("notes.txt").exists() && zone.entries() == 3);
    assert_eq!(zone.purge_backlog(), PurgeBacklog { rules: 2, oldest_ns: 0, broadened: 0 });
    zone.forget_purges(300 + FILL_MAX_NS - 1).unwrap();
    assert_eq!(zone.purge_backlog().rules, 1);
    zone.forget_purges(300 + FILL_MAX_NS).unwrap();
    assert_eq!(zone.purge_backlog().rules, 0);
    assert!(!zone.journal_path().exists());
    // A fill that began before them might be about what they were about.
    assert!(!admits(&zone, "z", "", 0) && admits(&zone, "z", "", zone.newest_purge_ns()));
}

#[test]
fn rules_after_the_beginning_of_a_walk_are_kept() {
    let folder = testing::Folder::new();
    let zone = open(&folder);
    purge(&zone, "a*", 100);
    let mut walk = PurgeWalk::begin(&zone);
    purge(&zone, "b*", 200);
    assert!((0..9).any(|_| walk.step(&zone, &BUDGET, &|_| Vec::new(), || 0)));
    zone.forget_purges(u64::MAX).unwrap();
    assert_eq!(zone.purge_backlog(), PurgeBacklog { rules: 1, oldest_ns: 200, broadened: 0 });
    assert!(is_purged(&open(&folder), "b", "", 200));
}
