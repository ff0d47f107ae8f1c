use std::net::UdpSocket;
use std::time::Duration;

use conf::{Load, MemoryFiles, Value};
use testing::Folder;

use super::*;
use crate::LogFiles;

fn read(text: &str) -> Result<(ErrorLog, LogFiles), String> {
    let mut files = MemoryFiles::default();
    let mut load = Load::new(&mut files, "/".as_ref(), "/".as_ref());
    let mut names = MemoryFiles::default().with("/t", text);
    let (_, tree) = conf::parse(b"/t", b"/", None, &mut names).into_result();
    let tree = tree.map_err(|error| error.message)?;
    let mut log = ErrorLog::default();
    for line in &tree.root {
        log.repeat(line, &mut load).map_err(|error| error.message)?;
    }
    Ok((log, std::mem::take(load.registry.of::<LogFiles>())))
}

/// The number of lines of a file.
fn lines(folder: &Folder, file: &str) -> usize {
    folder.read(file).lines().count()
}

fn say(log: &ErrorLog, level: Level) {
    let source = MessageSource { connection: Some(7), debug: false };
    log.write(level, source, format_args!("it failed"), |line| line.push(b", client: \xff"));
}

#[test]
fn a_line_has_nginxs_format() {
    let folder = Folder::new();
    let (log, files) = read(&format!("error_log {} info;", folder.name("log"))).unwrap();
    assert!(files.open().is_ok());
    say(&log, Level::Info);
    say(&log, Level::DebugHttp);
    let text = std::fs::read(folder.join("log")).unwrap();
    let pid = std::process::id();
    let tail =
        [format!(" [info] {pid}#{pid}: *7 it failed").as_bytes(), b", client: \xff\n"].concat();
    assert_eq!(&text[19..], tail);
    assert!(text[..19].iter().all(|b| b.is_ascii_digit() || b"/ :".contains(b)));
}

#[test]
fn every_destination_has_its_own_level() {
    let folder = Folder::new();
    let text =
        format!("error_log {} crit; error_log {};", folder.name("grave"), folder.name("light"));
    let (log, files) = read(&text).unwrap();
    assert!(files.open().is_ok());
    for level in [Level::Crit, Level::Error, Level::Warn] {
        say(&log, level);
    }
    assert_eq!((lines(&folder, "grave"), lines(&folder, "light")), (1, 2));
}

#[test]
fn a_debugged_connection_is_logged_at_every_level() {
    let folder = Folder::new();
    let (log, files) = read(&format!("error_log {} alert;", folder.name("log"))).unwrap();
    assert!(files.open().is_ok());
    let source = MessageSource { connection: None, debug: true };
    assert!(
        !log.enabled(Level::DebugHttp, MessageSource::default())
            && log.enabled(Level::DebugHttp, source)
    );
    log.write(Level::DebugHttp, source, format_args!("heard"), |_| unreachable!("no context"));
    assert!(folder.read("log").contains("[debug]"));
}

#[test]
fn a_reopened_file_gets_the_next_messages() {
    let folder = Folder::new();
    let (log, files) = read(&format!("error_log {};", folder.name("log"))).unwrap();
    assert!(files.open().is_ok());
    say(&log, Level::Error);
    std::fs::rename(folder.join("log"), folder.join("moved")).unwrap();
    say(&log, Level::Error);
    assert!(files.reopen().is_empty());
    say(&log, Level::Error);
    assert_eq!((lines(&folder, "moved"), lines(&folder, "log")), (2, 1));
}

#[test]
fn syslog_messages_have_a_header() {
    let server = UdpSocket::bind("127.0.0.1:0").unwrap();
    server.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    let address = server.local_addr().unwrap();
    let text = format!("error_log syslog:server={address},facility=user,tag=t_1 notice;");
    let (log, _) = read(&text).unwrap();
    say(&log, Level::Warn);
    let mut message = [0; 512];
    let length = server.recv(&mut message).unwrap();
    let message = String::from_utf8_lossy(&message[..length]).into_owned();
    assert!(message.starts_with("<12>"), "{message}");
    assert!(message.contains(" localhost t_1: "), "{message}");
    assert!(message.contains("[warn]") && !message.ends_with('\n'), "{message}");
}

#[test]
fn invalid_parameters_are_refused_in_nginxs_words() {
    let cases = [
        ("error_log a bad;", "invalid log level \"bad\""),
        ("error_log a info warn;", "duplicate log level \"warn\""),
        ("error_log a info debug_http;", "invalid log level \"debug_http\""),
        ("error_log a debug_http info;", "duplicate log level \"info\""),
        ("error_log syslog:tag=x;", "no syslog server specified"),
        ("error_log syslog:server=[::1;", "invalid host in syslog server \"[::1\""),
        ("error_log syslog:server=127.0.0.1:0;", "invalid port in syslog server \"127.0.0.1:0\""),
        ("error_log syslog:server=127.0.0.1,server=127.0.0.2;", "duplicate syslog \"server\""),
        ("error_log syslog:facility=x;", "unknown syslog facility \"x\""),
        ("error_log syslog:severity=x;", "unknown syslog severity \"x\""),
        ("error_log syslog:x;", "unknown syslog parameter \"x\""),
        (
            "error_log syslog:tag=a-b;",
            "syslog \"tag\" only allows alphanumeric characters and underscore",
        ),
    ];
    for (text, message) in cases {
        assert_eq!(read(text).err().as_deref(), Some(message), "{text}");
    }
}
