use std::io::Read;
use std::path::Path;

use testing::Folder;

use super::*;
use crate::LogFiles;

struct Place {
    file: Arc<LogFile>,
    folder: Folder,
    _files: LogFiles,
}

impl Place {
    fn new(buffering: Option<Buffering>) -> Self {
        let (folder, mut files) = (Folder::new(), LogFiles::default());
        let file = files.at(&folder.join("log"));
        if let Some(buffering) = buffering {
            assert!(file.set_buffering(buffering));
        }
        assert!(files.open().is_ok());
        Self { file, folder, _files: files }
    }

    fn append(&self, line: &str) -> Option<u64> {
        append(&self.file, |out| out.extend_from_slice(line.as_bytes()))
    }

    fn text(&self) -> String {
        self.folder.read("log")
    }
}

fn buffer(size: usize, flush_ms: u64, gzip: u32) -> Option<Buffering> {
    Some(Buffering { size, flush_ms, gzip })
}

#[test]
fn lines_are_written_at_the_end_of_the_turn() {
    let place = Place::new(None);
    assert_eq!(place.append("one"), None);
    assert_eq!(place.append("two"), None);
    assert_eq!(place.text(), "");
    end_turn();
    assert_eq!(place.text(), "one\ntwo\n");
    place.append("three");
    end_turn();
    assert_eq!(place.text(), "one\ntwo\nthree\n");
}

#[test]
fn a_busy_turn_is_written_early() {
    let place = Place::new(None);
    let line = "x".repeat(1000);
    for _ in 0..66 {
        place.append(&line);
    }
    assert_eq!(place.text().len(), 66 * 1001);
    end_turn();
    assert_eq!(place.text().len(), 66 * 1001);
}

#[test]
fn a_buffer_holds_whole_lines_up_to_its_size() {
    let place = Place::new(buffer(10, 0, 0));
    place.append("1234");
    place.append("5678");
    end_turn();
    assert_eq!(place.text(), "");
    place.append("9");
    assert_eq!(place.text(), "1234\n5678\n");
    place.append("longer than the buffer");
    assert_eq!(place.text(), "1234\n5678\n9\nlonger than the buffer\n");
    place.append("rest");
    flush(&place.file);
    assert!(place.text().ends_with("rest\n"));
}

#[test]
fn an_ending_thread_writes_its_lines() {
    let place = Place::new(buffer(1000, 0, 0));
    let file = place.file.clone();
    std::thread::spawn(move || append(&file, |out| out.extend_from_slice(b"last"))).join().unwrap();
    assert_eq!(place.text(), "last\n");
}

#[test]
fn the_first_line_requests_a_flush() {
    let place = Place::new(buffer(10, 250, 0));
    assert_eq!(place.append("1234"), Some(250));
    assert_eq!(place.append("5678"), None);
    assert_eq!(place.append("90"), Some(250));
}

#[test]
fn compressed_lines_are_gzip_members() {
    let place = Place::new(buffer(1000, 0, 6));
    for part in ["one", "two"] {
        place.append(part);
        flush_all();
    }
    let mut text = String::new();
    let file = File::open(place.folder.join("log")).unwrap();
    flate2::read::MultiGzDecoder::new(file).read_to_string(&mut text).unwrap();
    assert_eq!(text, "one\ntwo\n");
}

#[test]
fn a_full_disk_loses_only_lines() {
    if !Path::new("/dev/full").exists() {
        return;
    }
    let mut files = LogFiles::default();
    let file = files.at(Path::new("/dev/full"));
    assert!(files.open().is_ok());
    let before = crate::lost_log_lines();
    append(&file, |out| out.extend_from_slice(b"lost"));
    append(&file, |out| out.extend_from_slice(b"lost at once"));
    end_turn();
    append(&file, |out| out.extend_from_slice(b"lost, too"));
    end_turn();
    assert!(crate::lost_log_lines() - before >= 3);
    WRITERS.with_borrow(|writers| {
        let writer = writers.list[file.number() as usize].as_ref().unwrap();
        assert!(writer.lines.is_empty() && writer.full_second > 0 && writer.told_second > 0);
    });
}

#[test]
fn a_reopened_file_gets_the_next_lines() {
    let place = Place::new(None);
    place.append("old");
    end_turn();
    std::fs::rename(place.folder.join("log"), place.folder.join("moved")).unwrap();
    assert!(place.file.reopen().is_ok());
    place.append("new");
    end_turn();
    assert_eq!(place.folder.read("moved"), "old\n");
    assert_eq!(place.text(), "new\n");
}

/// A thread that has written to a file, and then runs the functions sent to it.
fn busy_thread(file: &Arc<LogFile>) -> std::sync::mpsc::SyncSender<fn()> {
    let (sender, orders) = std::sync::mpsc::sync_channel::<fn()>(0);
    let weak = Arc::downgrade(file);
    std::thread::spawn(move || {
        if let Some(file) = weak.upgrade() {
            append(&file, |out| out.extend_from_slice(b"waits"));
        }
        orders.into_iter().for_each(|order| order());
    });
    sender
}

#[test]
fn a_file_shared_by_threads_is_closed_with_its_configuration() {
    let Place { file, folder, _files: files } = Place::new(buffer(1000, 0, 0));
    let threads = [busy_thread(&file), busy_thread(&file)];
    // Both have written once they receive a function.
    threads.iter().for_each(|thread| thread.send(|| ()).unwrap());
    let open = Arc::downgrade(&file.current().unwrap());
    drop((file, files));
    assert!(open.strong_count() > 0, "lines wait for it");
    for thread in &threads {
        thread.send(flush_all).unwrap();
        thread.send(|| ()).unwrap();
    }
    assert_eq!(open.strong_count(), 0, "nobody has it open");
    assert_eq!(folder.read("log"), "waits\nwaits\n");
}

#[test]
fn memory_for_a_long_line_is_not_kept() {
    for buffering in [None, buffer(1000, 0, 0), buffer(1000, 0, 1)] {
        let place = Place::new(buffering);
        place.append(&"x".repeat(8 * KEPT_MAX));
        end_turn();
        assert!(std::fs::metadata(place.folder.join("log")).unwrap().len() > 100);
        WRITERS.with_borrow_mut(|writers| {
            let writer = writers.of(&place.file);
            assert!(writer.lines.capacity() <= KEPT_MAX + 1000);
            assert!(writer.packed.capacity() <= KEPT_MAX + 1000);
        });
    }
}
