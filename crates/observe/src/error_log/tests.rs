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
    let source = MessageSource { connection: Some(7), ..MessageSource::default() };
    log.write(level, source, format_args!("it failed"), |context| context.client("", b"\xff"));
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
    let source = MessageSource { debug: true, ..MessageSource::default() };
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

/// The lines of a file as JSON.
fn objects(folder: &Folder, file: &str) -> Vec<serde_json::Value> {
    let text = folder.read(file);
    text.lines().map(|line| serde_json::from_str(line).expect(line)).collect()
}

#[test]
fn a_line_in_json_has_the_fields_of_nginx_plus() {
    let folder = Folder::new();
    let text =
        format!("error_log {} error json; error_log {};", folder.name("a"), folder.name("b"));
    let (log, files) = read(&text).unwrap();
    assert!(files.open().is_ok());
    let source = MessageSource { connection: Some(7), ..MessageSource::default() };
    let error = std::io::Error::from_raw_os_error(111);
    let message = format_args!("connect() failed{}", crate::Errno(&error));
    log.write(Level::Error, source, message, |context| {
        context.action("connecting to upstream");
        context.client("udp ", b"10.0.0.1");
        context.server(b"s");
        context.quoted("upstream", &[b"http://", b"a:1", b"/x"]);
        context.text(format_args!(", bytes {}", 5));
        context.number("bytes_sent", 5);
    });
    let lines = objects(&folder, "a");
    let mut line = lines[0].as_object().unwrap().clone();
    let (pid, time) = (std::process::id(), line.remove("timestamp").unwrap());
    assert_eq!(time.as_str().unwrap().len(), "2026-05-04T10:30:15.042+00:00".len());
    let expected = serde_json::json!({
        "level": "error", "pid": pid, "tid": pid, "cnum": 7, "msg": "connect() failed",
        "action": "connecting to upstream", "client": "10.0.0.1", "server": "s",
        "upstream": "http://a:1/x", "bytes_sent": 5, "errno": 111, "errtext": "Connection refused",
    });
    assert_eq!(serde_json::Value::Object(line), expected);
    let text = folder.read("b");
    let expected = "*7 connect() failed (111: Connection refused) while connecting to upstream, \
                    udp client: 10.0.0.1, server: s, upstream: \"http://a:1/x\", bytes 5\n";
    assert!(text.ends_with(expected), "{text}");
}

#[test]
fn levels_of_logs_in_json_and_in_text_are_independent() {
    let folder = Folder::new();
    let text =
        format!("error_log {0} json; error_log {1} info;", folder.name("a"), folder.name("b"));
    let (log, files) = read(&text).unwrap();
    assert!(files.open().is_ok() && log.has_json());
    say(&log, Level::Info);
    say(&log, Level::Crit);
    assert_eq!((lines(&folder, "a"), lines(&folder, "b")), (1, 2));
    assert_eq!(objects(&folder, "a")[0]["level"], "crit");
}

#[test]
fn any_bytes_give_a_line_of_valid_json() {
    let mut state = 26_u64;
    let mut random = move |below: usize| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    for round in 0..3000 {
        let mut bytes = |longest: usize| -> Vec<u8> {
            let length = random(longest);
            (0..length).map(|_| [random(256), random(128), 0xc2][round % 3] as u8).collect()
        };
        let longest = [40, 900, 5000][round % 3];
        let texts = [bytes(longest), bytes(longest), bytes(longest), bytes(longest / 3)];
        let mut tags = crate::json::JsonFields::further(512);
        tags.text("tag", &[&texts[3]]);
        let context = |context: &mut MessageContext<'_>| {
            context.client("", b"127.0.0.1");
            context.quoted("request", &[&texts[1], &texts[2]]);
            context.number("bytes_sent", u64::MAX);
            context.quoted("host", &[&texts[2]]);
        };
        let kept = KeptContext::new(true, context);
        for kept in [None, Some(kept)] {
            let message = LogMessage {
                level: Level::Error,
                source: MessageSource { tags: tags.as_bytes(), ..MessageSource::default() },
                text: format_args!("{} (2: No such file or directory)", crate::Text(&texts[0])),
                context: &|out| match &kept {
                    Some(kept) => kept.describe(out),
                    None => context(out),
                },
            };
            let line = message.json(b",\"fixed\":\"yes\"");
            let line = line.as_bytes();
            assert!(line.len() <= crate::LINE_MAX);
            let (last, rest) = line.split_last().unwrap();
            assert!(*last == b'\n' && rest.iter().all(|byte| *byte >= b' ' && *byte != 0x7f));
            let object: serde_json::Value = serde_json::from_slice(rest).unwrap();
            assert_eq!((&object["level"], &object["fixed"]), (&"error".into(), &"yes".into()));
            assert!(object["tag"].is_string() && object["msg"].is_string());
            let whole = texts.iter().map(Vec::len).sum::<usize>() < 100;
            assert!(!whole || (object["truncated"].is_null() && object["errno"] == 2));
        }
    }
}

#[test]
fn a_message_that_is_too_long_keeps_tags_and_says_that_it_is_cut() {
    let folder = Folder::new();
    let (mut log, files) = read(&format!("error_log {} error json;", folder.name("log"))).unwrap();
    assert!(files.open().is_ok());
    log.tags = (*b",\"tag\":1").into();
    let (source, long) = (MessageSource::default(), "x".repeat(5000));
    log.write(Level::Error, source, format_args!("{long}"), |context| {
        context.quoted("request", &[long.as_bytes()]);
        context.quoted("host", &[b"h"]);
        context.quoted("referrer", &[long.as_bytes()]);
    });
    let line = &objects(&folder, "log")[0];
    assert_eq!((&line["tag"], &line["truncated"]), (&1.into(), &true.into()));
    assert!(line["msg"].as_str().unwrap().len() > 700);
    assert_eq!(line["host"], "h");
}

fn read_tags<T: Value>(text: &str) -> Result<T, String> {
    let mut files = MemoryFiles::default();
    let mut load = Load::new(&mut files, "/".as_ref(), "/".as_ref());
    let mut names = MemoryFiles::default().with("/t", text);
    let (_, tree) = conf::parse(b"/t", b"/", None, &mut names).into_result();
    let tree = tree.map_err(|error| error.message)?;
    let mut tags = T::parse(&tree.root[0], &mut load).map_err(|error| error.message)?;
    for line in &tree.root[1..] {
        tags.repeat(line, &mut load).map_err(|error| error.message)?;
    }
    Ok(tags)
}

#[test]
fn tags_are_fields_of_lines_in_json() {
    let folder = Folder::new();
    let (mut log, files) = read(&format!("error_log {} error json;", folder.name("log"))).unwrap();
    assert!(files.open().is_ok());
    log.set_tags(&read_tags("error_log_tag a 'x\"y'; error_log_tag b.c-d '';").unwrap());
    say(&log, Level::Error);
    let line = &objects(&folder, "log")[0];
    assert_eq!((&line["a"], &line["b.c-d"]), (&"x\"y".into(), &"".into()));
}

#[test]
fn invalid_tags_are_refused() {
    let long = format!("error_log_tag a {};", "x".repeat(600));
    let cases = [
        ("error_log_tag msg x;", "the tag \"msg\" is a field that the log has anyway"),
        ("error_log_tag 'a b' x;", "invalid tag name \"a b\""),
        ("error_log_tag '' x;", "invalid tag name \"\""),
        ("error_log_tag a x; error_log_tag a y;", "duplicate tag \"a\""),
        (&long, "the values of tags are longer than 512 bytes together"),
    ];
    for (text, message) in cases {
        assert_eq!(read_tags::<ErrorLogTags>(text).err().as_deref(), Some(message), "{text}");
        assert_eq!(read_tags::<MainLogTags>(text).err().as_deref(), Some(message), "{text}");
    }
    let message = "variables are not available outside of \"http\" and \"stream\"";
    let found = read_tags::<MainLogTags>("error_log_tag a $b;").err();
    assert_eq!(found.as_deref(), Some(message));
}

#[test]
fn lines_that_cannot_be_written_are_counted() {
    let folder = Folder::new();
    let (socket, text) = (folder.name("absent"), "nohostname error");
    let (log, _) = read(&format!("error_log syslog:server=unix:{socket},{text};")).unwrap();
    let before = crate::lost_log_lines();
    say(&log, Level::Error);
    assert!(crate::lost_log_lines() > before, "there is no server");
    let (log, files) = read(&format!("error_log {};", folder.name("log"))).unwrap();
    let before = crate::lost_log_lines();
    say(&log, Level::Error);
    assert!(crate::lost_log_lines() > before, "the file is not open");
    assert!(files.open().is_ok());
}

#[test]
fn invalid_parameters_are_refused_in_nginxs_words() {
    let cases = [
        ("error_log a bad;", "invalid log level \"bad\""),
        ("error_log a json info;", "invalid log level \"json\""),
        ("error_log a json json;", "invalid log level \"json\""),
        ("error_log a info format=json;", "invalid log level \"format=json\""),
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
