//! `weir lab` as a program.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Two rows that differ in what is answered, and few turns.
const STUDY: &str = r#"
title = "Two replies"
explanation = "A reply and a longer one."
template = """
events { worker_connections 100; }
http { access_log off; server { listen 127.0.0.1:%%port%%; return 200 '%%text%%'; } }
"""
[load]
connections = 2
turn_ms = 50
pinned = false
[blocks]
quick = 3
full = 4
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

/// A folder that is gone when the test is.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("weir-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, text).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn lab(words: &[&str], file: &Path, out: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
    command.arg("lab").arg(words[0]).arg(file).args(&words[1..]);
    if words[0] == "run" {
        command.arg("--out").arg(out);
    }
    command.output().unwrap()
}

fn text(output: &[u8]) -> String {
    String::from_utf8_lossy(output).into_owned()
}

#[test]
fn a_study_is_run_kept_and_continued() {
    let folder = Folder::new("lab-run");
    let (file, out) = (folder.write("replies.toml", STUDY), folder.0.join("out"));
    let quick = lab(&["run", "--quick"], &file, &out);
    let report = text(&quick.stdout);
    assert!(quick.status.success(), "{}", text(&quick.stderr));
    for part in ["Two replies", "\nshort ", "\nlong ", "baseline", "+1 %", "3 blocks of turns"] {
        assert!(report.contains(part), "{part:?} in {report}");
    }
    assert!(fs::read_to_string(out.join("report.md")).unwrap().starts_with("# Two replies\n"));
    let again = lab(&["run"], &file, &out);
    assert!(!again.status.success());
    assert!(text(&again.stderr).contains("--resume or --out"), "{}", text(&again.stderr));
    let full = lab(&["run", "--resume"], &file, &out);
    assert!(text(&full.stdout).contains("4 blocks of turns"), "{}", text(&full.stderr));
}

#[test]
fn a_study_that_cannot_run_fails_before_anything_does() {
    let folder = Folder::new("lab-refused");
    let out = folder.0.join("out");
    let refused = |from: &str, to: &str| {
        let file = folder.write("refused.toml", &STUDY.replace(from, to));
        let output = lab(&["run"], &file, &out);
        assert!(!output.status.success() && !out.exists());
        text(&output.stderr)
    };
    let told = refused("%%text%%", "%%texts%%");
    assert!(told.contains("the template has %%texts%%, but there is no such factor"), "{told}");
    let told = refused("access_log off;", "acces_log off;");
    assert!(told.contains("weir refuses row \"short\"") && told.contains("acces_log"), "{told}");
}

#[test]
fn the_doctor_says_what_hurts() {
    let folder = Folder::new("lab-doctor");
    let bad = folder.write("bad.conf", "events {} http { gzip_comp_level 9; }");
    let output = lab(&["doctor", "--json"], &bad, &folder.0);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stdout).contains("\"check\": \"gzip-level\""));
    let missing = lab(&["doctor"], &folder.0.join("none.conf"), &folder.0);
    assert_eq!(missing.status.code(), Some(2));
    assert!(text(&missing.stderr).contains("none.conf"), "{}", text(&missing.stderr));
}
