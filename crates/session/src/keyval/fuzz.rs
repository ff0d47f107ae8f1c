//! Properties that hold for any input, for the fuzz targets `keyval` and `keyval_record` and their
//! seeds; not part of the crate's interface.

use conf::Subsystem;

use super::change::{KeyvalChange, KeyvalOperation};
use super::key::KeyvalType;
use super::merge::KeyvalMerge;
use super::record::KeyvalRecord;
use super::replica::{KeyvalReplica, StoreMoment};
use super::request::KeyvalRequest;
use super::state::{KeyvalNow, read_state};
use super::table::KeyvalTable;
use super::zone::KeyvalZone;

const NOW: KeyvalNow = KeyvalNow { monotonic_ms: 5_000, unix_ms: 1_795_722_245_000 };
const BYTES_MAX: u64 = 1 << 16;

/// Bodies, state files and changes never panic; what they leave behind keeps its limits, and is the
/// same after it was written and read again.
pub fn keyval(input: &[u8]) {
    for kind in [KeyvalType::String, KeyvalType::Ip, KeyvalType::Prefix] {
        let mut table = KeyvalTable::new(kind, BYTES_MAX);
        for timeout_ms in [None, Some(60_000)] {
            let requests = [KeyvalRequest::add(input), KeyvalRequest::modify(input)];
            for request in requests.into_iter().flatten() {
                let before = content(&table);
                match table.accept(&request, timeout_ms, NOW.monotonic_ms) {
                    Ok(operation) => check_operation(&operation),
                    Err(_) => assert_eq!(content(&table), before),
                }
                check_table(&table);
            }
        }
        let mut table = KeyvalTable::new(kind, BYTES_MAX);
        if read_state(input, &mut table, NOW).is_ok() {
            check_table(&table);
        }
    }
    if let Some(change) = KeyvalChange::from_bytes(input) {
        check_operation(&change.operation);
        let table = KeyvalTable::new(KeyvalType::Ip, BYTES_MAX);
        let zone = KeyvalZone::new(change.subsystem, &change.zone, table);
        let _ = zone.apply(&change.operation, NOW.monotonic_ms);
        check_table(&zone.table());
    }
}

/// The first line is a field, the rest its record: whatever a store has, a table keeps its limits,
/// and what the node writes in turn is a record.
pub fn keyval_record(input: &[u8]) {
    let end = input.iter().position(|byte| *byte == b'\n').unwrap_or(input.len());
    let (field, record) = (&input[..end], input.get(end + 1..).unwrap_or_default());
    if let Some(read) = KeyvalRecord::parse(record) {
        assert_eq!(KeyvalRecord::parse(&read.to_bytes()), Some(read));
    }
    let at = StoreMoment { store_ms: NOW.unix_ms as i64, monotonic_ms: NOW.monotonic_ms };
    for kind in [KeyvalType::String, KeyvalType::Ip, KeyvalType::Prefix] {
        let mut table = KeyvalTable::new(kind, BYTES_MAX);
        let mut replica = KeyvalReplica::new(7, kind);
        replica.begin(table.clone());
        replica.hear(field, record, at);
        if let Some(keys) = replica.take_merge() {
            let (subsystem, zone) = (Subsystem::Http, (*b"zone").into());
            let merge = KeyvalMerge { subsystem, zone, keys };
            assert_eq!(KeyvalMerge::from_bytes(&merge.to_bytes()).as_ref(), Some(&merge));
            table.merge(merge.keys, NOW.monotonic_ms).iter().for_each(check_operation);
            check_table(&table);
            replica.look(table, at);
            replica.decided(true, at);
        }
        // The store has it already.
        assert!(replica.next_write(at).is_none());
        replica.begin_round();
        while replica.go_on(&mut replica.sweep(), usize::MAX, at) {}
        while let Some((_, record)) = replica.next_write(at) {
            assert_eq!(KeyvalRecord::parse(&record.to_bytes()), Some(record));
        }
    }
}

fn check_operation(operation: &KeyvalOperation) {
    let (zone, operation) = ((*b"zone").into(), operation.clone());
    let change = KeyvalChange { subsystem: Subsystem::Stream, zone, operation };
    let bytes = change.to_bytes();
    assert_eq!(KeyvalChange::from_bytes(&bytes).as_ref(), Some(&change));
    assert_eq!(KeyvalChange::from_bytes(&bytes[..bytes.len() - 1]), None);
}

/// Each key matches itself, and the state file says all.
fn check_table(table: &KeyvalTable) {
    for entry in table.live_entries(NOW.monotonic_ms) {
        let found = table.find(&entry.key, NOW.monotonic_ms).expect("its own text");
        assert_eq!((&found.key, &found.value), (&entry.key, &entry.value));
    }
    let state = table.to_state(NOW);
    let mut again = KeyvalTable::new(table.kind, BYTES_MAX);
    // A change may have bytes that JSON cannot say.
    let is_text = |entry: std::sync::Arc<super::entry::KeyvalEntry>| {
        std::str::from_utf8(&entry.key).is_ok() && std::str::from_utf8(&entry.value).is_ok()
    };
    if table.live_entries(NOW.monotonic_ms).all(is_text) {
        read_state(&state, &mut again, NOW).expect("its own state");
        assert_eq!(content(&again), content(table));
        assert_eq!(again.to_state(NOW), state);
    }
    let mut json = Vec::new();
    table.to_json(NOW.monotonic_ms).write(&mut json);
    assert!(json.starts_with(b"{") && json.ends_with(b"}"));
}

/// Key, value and deadline of each entry.
type Content = Vec<(Box<[u8]>, Box<[u8]>, Option<u64>)>;

fn content(table: &KeyvalTable) -> Content {
    let entries = table.live_entries(NOW.monotonic_ms);
    let mut content: Content =
        entries.map(|entry| (entry.key.clone(), entry.value.clone(), entry.deadline_ms)).collect();
    content.sort();
    content
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    /// Runs the seeds, so that earlier findings stay fixed without a fuzzer.
    fn run_seeds(target: &str, check: fn(&[u8])) {
        let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds").join(target);
        let mut count = 0;
        for entry in fs::read_dir(seeds).unwrap() {
            check(&fs::read(entry.unwrap().path()).unwrap());
            count += 1;
        }
        assert!(count > 3);
    }

    #[test]
    fn seeds_pass() {
        run_seeds("keyval", super::keyval);
        run_seeds("keyval_record", super::keyval_record);
    }
}
