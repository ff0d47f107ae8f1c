//! `weir lab` as a program.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use testing::Folder;

/// Two rows that differ in what is answered, and few turns.
const STUDY: &str = r#"
title = "Two replies"
explanation = "A reply and a longer one."
template = """
events { worker_connections 100; }
http { access_log off; server { listen %%listen%%; return 200 '%%text%%'; } }
"""
[load]
connections = 2
turn_ms = 50
pinned = false
[blocks]
quick = 6
full = 7
[factor.text]
baseline = "short"
levels = ["a longer one"]
[[row]]
name = "short"
[[row]]
name = "long"
set = { text = "a longer one" }
found = "+1 %"
"#;

fn lab(words: &[&str], file: &Path, out: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
    command.arg("lab").arg(words[0]).arg(file).args(&words[1..]);
    if words[0] == "run" {
        command.arg("--out").arg(out);
    }
    command.output().unwrap()
}

/// Whatever rights the test has, the study runs as it does without root.
const LOOPBACK: [&str; 2] = ["run", "--loopback"];

fn text(output: &[u8]) -> String {
    String::from_utf8_lossy(output).into_owned()
}

#[test]
fn a_study_is_run_kept_and_continued() {
    let folder = Folder::new();
    let (file, out) = (folder.write("replies.toml", STUDY), folder.join("out"));
    let quick = lab(&["run", "--loopback", "--quick"], &file, &out);
    let report = text(&quick.stdout);
    assert!(quick.status.success(), "{}", text(&quick.stderr));
    for part in ["Two replies", "\nshort ", "\nlong ", "baseline", "+1 %", "6 blocks of turns"] {
        assert!(report.contains(part), "{part:?} in {report}");
    }
    assert!(fs::read_to_string(out.join("report.md")).unwrap().starts_with("# Two replies\n"));
    let again = lab(&LOOPBACK, &file, &out);
    assert!(!again.status.success());
    assert!(text(&again.stderr).contains("add --resume to go on"), "{}", text(&again.stderr));
    let full = lab(&["run", "--loopback", "--resume"], &file, &out);
    assert!(text(&full.stdout).contains("7 blocks of turns"), "{}", text(&full.stderr));
}

/// As in a terminal, where Ctrl-C reaches the generators and servers as well.
#[test]
fn an_interrupted_study_reports_its_complete_blocks() {
    let folder = Folder::new();
    let long = STUDY.replace("full = 7", "full = 1000");
    let file = folder.write("long.toml", long);
    for (name, limits, code) in
        [("out", &[][..], 130), ("limited", &["--fail-if", "rate<-99%"][..], 4)]
    {
        let out = folder.join(name);
        let mut run = Command::new(env!("CARGO_BIN_EXE_weir"));
        run.args(["lab", "run", "--loopback"]).arg(&file).arg("--out").arg(&out).args(limits);
        run.process_group(0).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut run = run.spawn().unwrap();
        while !out.join("record.json").exists() && run.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_millis(10));
        }
        let group = format!("-{}", run.id());
        assert!(Command::new("kill").args(["-INT", "--", &group]).status().unwrap().success());
        let output = run.wait_with_output().unwrap();
        let report = text(&output.stdout);
        assert_eq!(output.status.code(), Some(code), "{report}{}", text(&output.stderr));
        let (first, rest) = report.split_once('\n').unwrap();
        assert!(first.starts_with("Interrupted after ") && first.contains(" of 1000 b"), "{first}");
        assert!(rest.contains("Two replies"), "{rest}");
        assert!(fs::read_to_string(out.join("report.md")).unwrap().contains(first), "{report}");
        assert!(fs::read_to_string(out.join("report.html")).unwrap().contains(first), "{report}");
    }
}

#[test]
fn a_study_that_cannot_run_fails_before_anything_does() {
    let folder = Folder::new();
    let out = folder.join("out");
    let refused = |from: &str, to: &str| {
        assert!(STUDY.contains(from), "{from}");
        let file = folder.write("refused.toml", STUDY.replace(from, to));
        let output = lab(&LOOPBACK, &file, &out);
        assert!(!output.status.success() && !out.join("record.json").exists(), "{to}");
        text(&output.stderr)
    };
    let told = refused("%%text%%", "%%texts%%");
    assert!(told.contains("the template has %%texts%%, but there is no such factor"), "{told}");
    let told = refused("access_log off;", "acces_log off;");
    assert!(told.contains("weir refuses row \"short\"") && told.contains("acces_log"), "{told}");
}

#[test]
fn a_row_that_answers_errors_is_not_measured_unless_the_study_expects_it() {
    let folder = Folder::new();
    let broken = STUDY.replace("return 200 '%%text%%';", "return %%text%%;");
    let broken = broken.replace("\"short\"\nlevels", "\"200\"\nlevels");
    let broken = broken.replace("\"a longer one\"", "\"404\"");
    let (file, out) = (folder.write("errors.toml", &broken), folder.join("out"));
    let output = lab(&LOOPBACK, &file, &out);
    assert_eq!(output.status.code(), Some(1));
    let told = text(&output.stderr);
    assert!(told.contains("row \"long\": GET / was answered with 404 by weir\n"), "{told}");
    assert!(told.contains("errors = true") && !told.contains("\"short\""), "{told}");
    assert!(!out.join("record.json").exists());

    let expected = broken.replace("[load]", "[load]\nerrors = true");
    let file = folder.write("expected.toml", &expected);
    let output = lab(&["run", "--loopback", "--quick"], &file, &out);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(!text(&output.stdout).contains("had errors"), "{}", text(&output.stdout));
}

#[test]
fn rows_that_need_hosts_are_left_out_on_loopback_addresses() {
    let folder = Folder::new();
    let kernel = "[factor.kernel]\nsets = \"kernel\"\nbaseline = \"\"\n\
                  levels = [\"net.core.somaxconn=9\"]\n[factor.text]";
    let text_of = STUDY.replace("[factor.text]", kernel);
    let text_of =
        text_of.replace("set = { text", "set = { kernel = \"net.core.somaxconn=9\", text");
    let third = "[[row]]\nname = \"third\"\nset = { text = \"a longer one\" }\n";
    let file = folder.write("kernel.toml", &(text_of + third));
    let output = lab(&["run", "--loopback", "--quick"], &file, &folder.join("out"));
    let report = text(&output.stdout);
    assert!(report.contains("left out: long"), "{report}{}", text(&output.stderr));
}

/// As root on hosts of their own, else on loopback addresses; the report says which.
#[test]
fn a_study_with_hosts_says_which_network_it_has() {
    let folder = Folder::new();
    let file = folder.write("hosts.toml", STUDY);
    let output = lab(&["run", "--quick"], &file, &folder.join("out"));
    let report = text(&output.stdout);
    let says = |part: &str| report.contains(part);
    assert!(
        says("hosts are network namespaces joined by veth pairs")
            || says("all parts share loopback addresses: network namespaces need root")
            || says("all parts share loopback addresses: there are no network namespaces"),
        "{report}{}",
        text(&output.stderr)
    );
}

#[test]
fn tune_refuses_what_it_cannot_copy() {
    let folder = Folder::new();
    let tune = |configuration: &str, url: &str| {
        let file = folder.write("nginx.conf", configuration);
        let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
        let output = command.args(["lab", "tune", url, "-c"]).arg(file).output().unwrap();
        assert!(!output.status.success());
        text(&output.stderr)
    };
    let plain = "events {} http { server { listen 8080; return 200 x; } }";
    let told = tune(plain, "http://127.0.0.1:9999/");
    assert!(told.contains("127.0.0.1:9999"), "{told}");
    let misspelled = plain.replace("http {", "http { acces_log off;");
    let told = tune(&misspelled, "http://127.0.0.1:8080/");
    assert!(told.contains("refuses the configuration") && told.contains("acces_log"), "{told}");
    let missing = tune(&plain.replace("return 200 x", "return 404"), "http://127.0.0.1:8080/");
    assert!(missing.contains("failed or had another status than 2xx"), "{missing}");
}

#[test]
fn a_port_in_use_is_told_before_anything_is_measured() {
    let folder = Folder::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let listen = format!("listen %%listen%%; listen 127.0.0.1:{port};");
    let file = folder.write("port.toml", STUDY.replace("listen %%listen%%;", &listen));
    let output = lab(&LOOPBACK, &file, &folder.join("out"));
    let told = text(&output.stderr);
    assert!(!output.status.success(), "{told}");
    assert!(
        told.contains("row \"short\"") && told.contains(&format!("127.0.0.1:{port}")),
        "{told}"
    );
}

#[test]
fn the_doctor_reports_costly_settings() {
    let folder = Folder::new();
    let bad = folder.write("bad.conf", "events {} http { gzip_comp_level 9; }");
    let output = lab(&["doctor", "--json"], &bad, &folder);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stdout).contains("\"check\": \"gzip-level\""));
    let missing = lab(&["doctor"], &folder.join("none.conf"), &folder);
    assert_eq!(missing.status.code(), Some(2));
    assert!(text(&missing.stderr).contains("none.conf"), "{}", text(&missing.stderr));
}
