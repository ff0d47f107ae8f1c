//! One table's part in the pipelines with a store.
//!
//! A hash, `PREFIXkeyval:ZONE`, has a record for each key. A stream, `PREFIXkeyval-changes:ZONE`,
//! tells which of them were written ([`super::feed`]).
//!
//! ```text
//! Due --its time--> Scanning --all records--> Sweeping --what the store lacks--> Due
//!  ^                                                                              |
//!  +--------- connected, content lost, or too late for the stream ----------------+
//! ```
//!
//! A comparison of everything comes after each connection, and now and then. An exchange reads and
//! writes no more than its limits; the rest waits for the next one.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use conf::Subsystem;
use wire::resp::{RespCommands, RespReply, RespValue};

use super::super::key::KEY_BYTES_MAX;
use super::super::merge::MergedKey;
use super::super::record::{KeyvalField, RECORD_BYTES_MAX};
use super::super::replica::{HeardRecord, KeyvalReplica, ReplicaSweep, StoreMoment};
use super::super::zone::KeyvalZone;
use super::feed::{ChangeFeed, Fed};
use crate::store::{MEMBER_COMMANDS_MAX, StoreTurn};

/// The fewest and the most records that are read in one exchange. It begins with few, because they
/// may be long, and reads more while they are short.
const READ_MIN: usize = 16;
const READ_MAX: usize = 1024;
/// Records of so many bytes in one exchange are short ones; of so many, long ones.
const SHORT_BYTES: usize = 256 * 1024;
const LONG_BYTES: usize = 1024 * 1024;
/// The most bytes of the replies to one command. Should records be longer, the connection fails,
/// and the next one begins with fewer of them.
const REPLY_BYTES_MAX: usize = 16 * 1024 * 1024;
/// A scan of a short hash returns all of it, whatever the count.
const SCAN_SLACK_BYTES: usize = 256 * 1024;
/// The most records that are written in one exchange, and about their bytes.
const WRITES_MAX: usize = 1000;
const WRITE_BYTES_MAX: usize = 1024 * 1024;
/// The changes that the stream keeps, about.
const STREAM_LENGTH: &[u8] = b"16384";
/// The commands for a record, and the other ones of an exchange.
const WRITE_COMMANDS: usize = 2;
const OTHER_COMMANDS: usize = 8;
const _: () = assert!(WRITES_MAX * WRITE_COMMANDS + OTHER_COMMANDS <= MEMBER_COMMANDS_MAX);
/// No more is read while so many changes wait to be passed on.
const OUTGOING_MAX: usize = 4096;
/// The most fields that wait to be read. If more have changed, everything is compared.
const UNREAD_MAX: usize = 65_536;
/// The most entries that a sweep looks at in one exchange.
const SWEPT_MAX: usize = 4096;

/// A process that has just started lets the one before it tell its last changes.
const SETTLE_MS: u64 = 300;
/// The time between two comparisons of everything.
const COMPARE_MS: u64 = 10 * 60 * 1000;
/// The time until the next comparison, if the deciding process has not answered.
const UNANSWERED_MS: u64 = 10_000;

pub(super) struct TableExchange {
    pub(super) zone: Arc<KeyvalZone>,
    pub(super) replica: Arc<Mutex<KeyvalReplica>>,
    /// The zone's version as of the last look.
    version: Option<u64>,
    /// The last turn.
    at: Option<StoreMoment>,
    /// The mark of the store's content. Another one: it has lost what it had.
    mark: Option<Vec<u8>>,
    feed: ChangeFeed,
    comparison: TableComparison,
    unread: VecDeque<KeyvalField>,
    outlived: Vec<KeyvalField>,
    read_most: usize,
    /// What the pipeline under way asks for.
    asked: AskedReplies,
    /// Records of the store that this table cannot have, since the last call.
    pub(super) invalid: u64,
}

enum TableComparison {
    Due { at_ms: u64 },
    Scanning { cursor: Vec<u8> },
    Sweeping(ReplicaSweep),
}

/// The replies that are to come, in the order of the fields.
#[derive(Default)]
struct AskedReplies {
    fields: Vec<KeyvalField>,
    has_scan: bool,
}

impl TableExchange {
    pub(super) fn new(
        zone: Arc<KeyvalZone>,
        replica: Arc<Mutex<KeyvalReplica>>,
        now_ms: u64,
    ) -> Self {
        Self {
            zone,
            replica,
            version: None,
            at: None,
            mark: None,
            feed: ChangeFeed::default(),
            comparison: TableComparison::Due { at_ms: now_ms + SETTLE_MS },
            unread: VecDeque::new(),
            outlived: Vec::new(),
            read_most: READ_MIN,
            asked: AskedReplies::default(),
            invalid: 0,
        }
    }

    pub(super) fn ask(&mut self, turn: &StoreTurn<'_>, commands: &mut RespCommands) {
        self.at = Some(StoreMoment { store_ms: turn.store_ms, monotonic_ms: turn.monotonic_ms });
        self.look();
        if self.mark.is_none() {
            // Others may have made later changes since the connection before.
            lock(&self.replica).write_nothing();
        }
        let hash = self.store_key(turn.prefix, "keyval:");
        let stream = self.store_key(turn.prefix, "keyval-changes:");
        let mark = format!("{:016x}", net::system::random());
        commands.add(&[b"HSETNX", &hash, b"", mark.as_bytes()]);
        commands.add(&[b"HGET", &hash, b""]);
        self.feed.ask(&stream, commands);
        self.asked.fields.clear();
        self.asked.has_scan = false;
        if lock(&self.replica).waiting().1 < OUTGOING_MAX {
            self.ask_for_fields(&hash, commands);
            self.ask_for_scan(&hash, turn, commands);
        }
        self.sweep(turn.now_ms);
        if !self.outlived.is_empty() {
            let mut words: Vec<&[u8]> = vec![b"HDEL", &hash];
            words.extend(self.outlived.iter().map(|field| &**field));
            commands.add(&words);
        }
        self.outlived.clear();
        let written = self.write((&hash, &stream), commands);
        let (unwritten, outgoing) = lock(&self.replica).waiting();
        let waiting = unwritten + outgoing + self.unread.len();
        turn.status.count_keys(written + self.asked.fields.len(), waiting);
    }

    pub(super) fn take(
        &mut self,
        turn: &StoreTurn<'_>,
        replies: &[RespReply],
    ) -> Result<(), &'static str> {
        self.at = Some(StoreMoment { store_ms: turn.store_ms, monotonic_ms: turn.monotonic_ms });
        self.look();
        let mut replies = replies.iter().skip(1);
        let Some([RespValue::Text(mark)]) = replies.next().map(Vec::as_slice) else {
            return Err("no mark of a table in its answer");
        };
        if self.mark.replace(mark.clone()).is_some_and(|before| before != *mark) {
            self.start_anew(turn.now_ms);
            return Ok(());
        }
        let news = self.feed.take(&mut replies)?;
        self.take_news(news, turn.now_ms);
        let mut bytes = 0;
        if !self.asked.fields.is_empty() {
            let records = replies.next().ok_or("no records in its answer")?;
            let fields = std::mem::take(&mut self.asked.fields);
            for (field, record) in fields.iter().zip(records) {
                if let RespValue::Text(record) = record {
                    bytes += record.len();
                    self.hear(field, record);
                }
            }
        }
        if self.asked.has_scan {
            let page = replies.next().ok_or("no records in its answer")?;
            bytes += self.take_scan(page)?;
        }
        self.read_most = match bytes {
            ..SHORT_BYTES => (self.read_most * 2).min(READ_MAX),
            LONG_BYTES.. => (self.read_most / 2).max(READ_MIN),
            _ => self.read_most,
        };
        Ok(())
    }

    /// The store is gone: whatever it does in the meantime is found by a comparison.
    pub(super) fn lost(&mut self) {
        self.mark = None;
        self.read_most = READ_MIN;
        self.start_anew(0);
    }

    /// Looks at the table while the store is gone, so that its changes have their own times.
    pub(super) fn look_without_store(&mut self, monotonic_ms: u64) {
        if let Some(at) = &mut self.at {
            let passed_ms = monotonic_ms.saturating_sub(at.monotonic_ms);
            at.store_ms = at.store_ms.saturating_add_unsigned(passed_ms);
            at.monotonic_ms = monotonic_ms;
        }
        self.look();
    }

    /// Changes for the process that decides.
    pub(super) fn take_merge(&mut self) -> Option<Vec<MergedKey>> {
        lock(&self.replica).take_merge()
    }

    /// Looks whether it has decided.
    pub(super) fn take_answer(&mut self, now_ms: u64) {
        let Some(at) = self.at else { return };
        let Some(is_decided) = lock(&self.replica).take_answer() else { return };
        self.look();
        let again = lock(&self.replica).decided(is_decided, at);
        again.into_iter().for_each(|field| self.read_later(field));
        if !is_decided {
            self.comparison = TableComparison::Due { at_ms: now_ms + UNANSWERED_MS };
        }
    }

    fn store_key(&self, prefix: &[u8], kind: &str) -> Vec<u8> {
        let subsystem = match self.zone.subsystem {
            Subsystem::Stream => "stream-",
            Subsystem::Main | Subsystem::Http => "",
        };
        [prefix, subsystem.as_bytes(), kind.as_bytes(), &self.zone.name].concat()
    }

    fn start_anew(&mut self, now_ms: u64) {
        self.feed.begin_anew();
        self.unread.clear();
        self.outlived.clear();
        self.comparison = TableComparison::Due { at_ms: now_ms };
    }

    fn look(&mut self) {
        let (version, Some(at)) = (self.zone.version(), self.at) else { return };
        if self.version != Some(version) {
            lock(&self.replica).look(self.zone.table(), at);
            self.version = Some(version);
        }
    }

    fn hear(&mut self, field: &[u8], record: &[u8]) {
        let Some(at) = self.at else { return };
        match lock(&self.replica).hear(field, record, at) {
            HeardRecord::Taken => {}
            HeardRecord::Outlived => self.outlived.push(field.into()),
            HeardRecord::Invalid => self.invalid += 1,
        }
    }

    fn read_later(&mut self, field: KeyvalField) {
        if self.unread.len() < UNREAD_MAX {
            self.unread.push_back(field);
        } else {
            self.start_anew(0);
        }
    }

    fn ask_for_fields(&mut self, hash: &[u8], commands: &mut RespCommands) {
        let count = self.unread.len().min(self.read_most);
        if count == 0 {
            return;
        }
        self.asked.fields.extend(self.unread.drain(..count));
        let mut words: Vec<&[u8]> = vec![b"HMGET", hash];
        words.extend(self.asked.fields.iter().map(|field| &**field));
        commands.add_for((count * RECORD_BYTES_MAX).min(REPLY_BYTES_MAX), &words);
    }

    fn ask_for_scan(&mut self, hash: &[u8], turn: &StoreTurn<'_>, commands: &mut RespCommands) {
        if let TableComparison::Due { at_ms } = self.comparison
            && at_ms <= turn.now_ms
        {
            lock(&self.replica).begin_round();
            self.comparison = TableComparison::Scanning { cursor: b"0".to_vec() };
        }
        let TableComparison::Scanning { cursor } = &self.comparison else { return };
        let count = self.read_most.to_string();
        let bytes = self.read_most * 2 * (RECORD_BYTES_MAX + KEY_BYTES_MAX) + SCAN_SLACK_BYTES;
        let words: [&[u8]; 5] = [b"HSCAN", hash, cursor, b"COUNT", count.as_bytes()];
        commands.add_for(bytes.min(REPLY_BYTES_MAX), &words);
        self.asked.has_scan = true;
    }

    fn take_news(&mut self, news: Fed, now_ms: u64) {
        let changes = match news {
            Fed::Changes(changes) => changes,
            Fed::Missed => return self.start_anew(now_ms),
        };
        for (stamp, field) in changes {
            let is_known = stamp.is_some_and(|stamp| lock(&self.replica).has_heard(&field, stamp));
            if !is_known {
                self.read_later(field);
            }
        }
    }

    /// Takes a page of the hash. Returns the bytes of its records.
    fn take_scan(&mut self, page: &RespReply) -> Result<usize, &'static str> {
        let Some((RespValue::Text(next), records)) = page.split_first() else {
            return Err("no cursor in its answer");
        };
        if next.is_empty() || next.len() > 20 || !next.iter().all(u8::is_ascii_digit) {
            return Err("no cursor in its answer");
        }
        let mut bytes = 0;
        for pair in records.chunks(2) {
            let [RespValue::Text(field), RespValue::Text(record)] = pair else {
                return Err("no record in its answer");
            };
            bytes += field.len() + record.len();
            if !field.is_empty() {
                self.hear(field, record);
            }
        }
        if let TableComparison::Scanning { cursor } = &mut self.comparison {
            cursor.clone_from(next);
            if next == b"0" {
                self.comparison = TableComparison::Sweeping(lock(&self.replica).sweep());
            }
        }
        Ok(bytes)
    }

    fn sweep(&mut self, now_ms: u64) {
        let (TableComparison::Sweeping(sweep), Some(at)) = (&mut self.comparison, self.at) else {
            return;
        };
        let mut replica = lock(&self.replica);
        // What others have written in the meantime is read first.
        let is_busy = !self.unread.is_empty() || replica.waiting().0 >= WRITES_MAX;
        if !is_busy && !replica.go_on(sweep, SWEPT_MAX, at) {
            let random_ms = net::system::random() % (COMPARE_MS / 2);
            self.comparison = TableComparison::Due { at_ms: now_ms + COMPARE_MS + random_ms };
        }
    }

    /// Writes records that the store lacks; returns how many.
    fn write(&mut self, (hash, stream): (&[u8], &[u8]), commands: &mut RespCommands) -> usize {
        let Some(at) = self.at else { return 0 };
        let mut replica = lock(&self.replica);
        let (mut written, mut bytes) = (0, 0);
        while written < WRITES_MAX
            && bytes < WRITE_BYTES_MAX
            && let Some((field, record)) = replica.next_write(at)
        {
            let stamp = record.stamp.to_string();
            let record = record.to_bytes();
            commands.add(&[b"HSET", hash, &field, &record]);
            let told: [&[u8]; 3] = [b"*", stamp.as_bytes(), &field];
            let words: [&[u8]; 5] = [b"XADD", stream, b"MAXLEN", b"~", STREAM_LENGTH];
            commands.add(&[&words[..], &told].concat());
            bytes += 2 * field.len() + record.len();
            written += 1;
        }
        written
    }
}

pub(super) fn lock(replica: &Mutex<KeyvalReplica>) -> MutexGuard<'_, KeyvalReplica> {
    replica.lock().unwrap_or_else(PoisonError::into_inner)
}
