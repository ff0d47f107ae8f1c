//! That the comparison can fail: servers that differ in one thing must be seen to differ in it.

use super::case::Differs;
use super::report::{RequestVerdict, judge};
use super::side::ServerTranscript;
use super::*;

const NGINX: &str = "/usr/sbin/nginx";

/// Two configurations to the same nginx, `GET / HTTP/1.1` to each, and what is found to differ.
/// None where no nginx is installed.
fn difference(name: &str, left: &str, right: &str) -> Option<Vec<String>> {
    if !Path::new(NGINX).exists() {
        eprintln!("skipped: {NGINX} is not installed");
        return None;
    }
    let scratch = std::env::temp_dir().join(format!("weir-compare-{name}-{}", std::process::id()));
    let scratch = ComparisonFolder(scratch);
    let nginx = ComparedProgram::reference(Path::new(NGINX)).unwrap();
    let side = |config: &str, dir: &str| {
        let text =
            format!("server {{ listen 127.0.0.1:%%PORT%%; {config} }}\n--- requests\nGET /a?b=c\n");
        let path = scratch.0.join(format!("{dir}.case"));
        std::fs::create_dir_all(&scratch.0).unwrap();
        std::fs::write(&path, text).unwrap();
        ServerTranscript::play(&nginx, &Case::read(&path).unwrap(), &scratch.0.join(dir), false)
            .unwrap()
    };
    let (left, right) = (side(left, "left-"), side(right, "right"));
    Some(diff::diff(&left.transcripts[0], &right.transcripts[0]))
}

/// Where there is a difference, its lines begin so.
fn assert_found(found: Option<Vec<String>>, lines: &[&str]) {
    let Some(found) = found else { return };
    let begins = found.iter().zip(lines).all(|(line, begin)| line.starts_with(begin));
    assert!(found.len() == lines.len() && begins, "{found:#?}");
}

#[test]
fn servers_of_one_configuration_do_not_differ() {
    let config = "return 200 $server_port-$document_root;";
    assert_found(difference("same", config, config), &[]);
}

#[test]
fn another_status_is_seen() {
    let found = difference("status", "return 201 x;", "return 202 x;");
    let lines =
        ["- HTTP/1.1 201 Created", "+ HTTP/1.1 202 Accepted", "- access.log", "+ access.log"];
    assert_found(found, &lines);
}

#[test]
fn another_field_and_another_order_are_seen() {
    let one = "add_header X-A 1; add_header X-B 2; return 200 x;";
    let two = "add_header X-B 2; add_header X-A 1; return 200 x;";
    assert_found(difference("order", one, two), &["- X-A: 1", "+ X-A: 1"]);
    let two = "add_header X-A 1; add_header X-B 3; return 200 x;";
    assert_found(difference("field", one, two), &["- X-B: 2", "+ X-B: 3"]);
}

#[test]
fn another_body_of_the_same_length_is_seen() {
    assert_found(difference("body", "return 200 x;", "return 200 y;"), &["- x", "+ y"]);
}

#[test]
fn another_end_of_the_connection_is_seen() {
    let one = "location / { return 200 x; }";
    let found = difference("end", one, "location / { keepalive_timeout 0; return 200 x; }");
    let lines = ["- Connection: keep-alive", "+ Connection: close", "- (kept)", "+ (closed)"];
    assert_found(found, &lines);
    let found = difference("silent", "return 204;", "return 444;");
    assert!(found.is_none_or(|lines| lines.contains(&"+ (closed)".to_owned())));
}

#[test]
fn another_log_line_is_seen() {
    let found = difference("log", "return 200 x;", "access_log off; return 200 x;");
    assert_found(found, &["- access.log: 127.0.0.1 - - [TIME] \"GET /a?b=c HTTP/1.1\" 200 1"]);
}

fn differs(lines: &[&str]) -> Differs {
    let lines = lines.iter().map(|&line| line.to_owned()).collect();
    Differs { reason: "because".into(), lines }
}

fn judged(diff: &[&str], expected: Option<&Differs>) -> RequestVerdict {
    judge(diff.iter().map(|&line| line.to_owned()).collect(), expected, false, true)
}

#[test]
fn a_difference_is_explained_only_by_its_very_lines() {
    let expected = differs(&["- a", "+ b"]);
    assert_eq!(judged(&["- a", "+ b"], Some(&expected)), RequestVerdict::Explained);
    assert_eq!(judged(&[], None), RequestVerdict::Same);
    assert!(matches!(judged(&["- a", "+ b"], None), RequestVerdict::Different(_)));
    assert!(matches!(judged(&["- a", "+ c"], Some(&expected)), RequestVerdict::Different(_)));
    assert!(matches!(
        judged(&["- a", "+ b", "+ c"], Some(&expected)),
        RequestVerdict::Different(_)
    ));
    assert!(matches!(judged(&[], Some(&expected)), RequestVerdict::Different(_)));
}
