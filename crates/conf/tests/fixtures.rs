//! Configurations and their results, as files.
//!
//! A fixture is a configuration, a dashed line, and the tree or the error. Between the two there
//! may be further files, each below `--- file NAME`, and the argument of `-g` below
//! `--- command line`. `UPDATE_EXPECT=1` writes the actual results into the fixtures. A real nginx,
//! if installed, must report the same errors, except for fixtures named `ours_*`.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs, str};

use conf::{Diagnostic, Directive, Disk, MemoryFiles, ParsedConfig, Sources};
use testing::Folder;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures");
const PREFIX: &str = "/etc/nginx/";
/// The environment variable with the nginx of `cargo xtask check messages`.
const NGINX: &str = "WEIR_TEST_NGINX";
const RESULT: &[u8] = b"----\n";

#[test]
fn fixtures_give_the_expected_results() {
    let fixtures = Fixture::all();
    assert!(fixtures.len() > 40);
    let wrong: Vec<_> = fixtures.iter().filter_map(Fixture::check).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn nginx_reports_the_same_errors() {
    let Some(nginx) = env::var_os(NGINX) else { return };
    let mut compared = 0;
    let mut differences = vec![];
    for fixture in Fixture::all().iter().filter(|fixture| !fixture.is_ours()) {
        let Some(ours) = fixture.error() else { continue };
        let theirs = fixture.ask_nginx(Path::new(&nginx));
        if ours != theirs {
            differences.push(format!("{}:\n  {ours}\n  {theirs}", fixture.path.display()));
        }
        compared += 1;
    }
    assert!(differences.is_empty(), "ours, theirs:\n{}", differences.join("\n"));
    assert!(compared >= 40, "only {compared} errors to compare");
}

#[test]
fn nginx_dumps_the_same() {
    let Some(nginx) = env::var_os(NGINX) else { return };
    let folder = Folder::new();
    let main = folder.write("nginx.conf", b"pid x.pid;\ninclude b;\ninclude *.inc;\nevents {}\n");
    folder.write("b", b"# no line feed");
    folder.write("2.inc", b"include b;\r\n");
    folder.write("1.inc", b"# \xff\n");
    let mut nginx = Command::new(nginx);
    nginx.args(["-T", "-q", "-e", "stderr", "-p"]).arg(&folder).arg("-c").arg(&main);
    let theirs = nginx.output().unwrap();
    assert!(theirs.status.success(), "{theirs:?}");
    let prefix = format!("{}/", folder.display());
    let name = main.to_str().unwrap();
    let ours = conf::parse(name.as_bytes(), prefix.as_bytes(), None, &mut Disk);
    let ours = conf::dump(&ours.sources);
    assert_eq!(ours.escape_ascii().to_string(), theirs.stdout.escape_ascii().to_string());
}

struct Fixture {
    path: PathBuf,
    main: Vec<u8>,
    files: Vec<(String, Vec<u8>)>,
    command_line: Option<Vec<u8>>,
    expected: Vec<u8>,
}

impl Fixture {
    fn all() -> Vec<Self> {
        let mut paths: Vec<_> =
            fs::read_dir(FOLDER).unwrap().map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        paths.into_iter().map(Self::read).collect()
    }

    fn read(path: PathBuf) -> Self {
        let bytes = fs::read(&path).unwrap();
        let mut fixture =
            Self { path, main: vec![], files: vec![], command_line: None, expected: vec![] };
        let mut section = &mut fixture.main;
        for line in bytes.split_inclusive(|&byte| byte == b'\n') {
            if line == RESULT {
                section = &mut fixture.expected;
            } else if line == b"--- command line\n" {
                section = fixture.command_line.insert(vec![]);
            } else if let Some(name) = line.strip_prefix(b"--- file ") {
                let name = str::from_utf8(name).unwrap().trim().to_owned();
                fixture.files.push((name, vec![]));
                section = &mut fixture.files.last_mut().unwrap().1;
            } else {
                section.extend_from_slice(line);
            }
        }
        fixture
    }

    fn is_ours(&self) -> bool {
        self.path.file_name().unwrap().to_str().unwrap().starts_with("ours_")
    }

    fn parse(&self) -> ParsedConfig {
        let mut files = MemoryFiles::default().with(format!("{PREFIX}nginx.conf"), &self.main);
        for (name, text) in &self.files {
            files = files.with(format!("{PREFIX}{name}"), text);
        }
        let command_line = self.command_line.as_deref().map(<[u8]>::trim_ascii);
        let main = format!("{PREFIX}nginx.conf");
        conf::parse(main.as_bytes(), PREFIX.as_bytes(), command_line, &mut files)
    }

    /// The difference from the expected result, if there is one.
    fn check(&self) -> Option<String> {
        let ParsedConfig { sources, tree, error } = self.parse();
        let mut result = String::new();
        match &error {
            Some(error) => result += &Diagnostic { error, sources: &sources }.render("nginx"),
            None => write_tree(&mut result, &tree.root, &sources, 0),
        }
        if result.as_bytes() == self.expected {
            return None;
        }
        if env::var_os("UPDATE_EXPECT").is_some() {
            self.update(&result);
            return None;
        }
        let expected = String::from_utf8_lossy(&self.expected);
        Some(format!("{}:\nexpected\n{expected}\ngot\n{result}", self.path.display()))
    }

    fn update(&self, result: &str) {
        let mut bytes = fs::read(&self.path).unwrap();
        bytes.truncate(bytes.len() - self.expected.len());
        if !bytes.ends_with(RESULT) {
            bytes.extend_from_slice(RESULT);
        }
        bytes.extend_from_slice(result.as_bytes());
        fs::write(&self.path, bytes).unwrap();
    }

    fn error(&self) -> Option<String> {
        let ParsedConfig { sources, error, .. } = self.parse();
        let error = error?;
        let headline = Diagnostic { error: &error, sources: &sources }.headline();
        Some(format!("[{}] {headline}", error.level))
    }

    /// nginx's first message, in our prefix.
    fn ask_nginx(&self, nginx: &Path) -> String {
        let folder = Folder::new();
        let main = folder.write("nginx.conf", &self.main);
        for (name, text) in &self.files {
            folder.write(name, text);
        }
        let mut nginx = Command::new(nginx);
        nginx.args(["-t", "-e", "stderr", "-p"]).arg(&folder).arg("-c").arg(&main);
        if let Some(text) = &self.command_line {
            nginx.arg("-g").arg(str::from_utf8(text).unwrap().trim());
        }
        let output = nginx.output().unwrap();
        let folder = format!("{}/", folder.display());
        let said = String::from_utf8_lossy(&output.stderr).replace(&folder, PREFIX);
        let complaint = said
            .lines()
            .find_map(|line| line.find("[emerg]").or(line.find("[crit]")).map(|at| &line[at..]));
        without_pid(complaint.unwrap_or("nothing"))
    }
}

/// A message without its process: a log has `[emerg] 12#12: message`, a terminal `[emerg] message`.
fn without_pid(line: &str) -> String {
    let (level, rest) = line.split_once(' ').unwrap_or((line, ""));
    let message = match rest.split_once(": ") {
        Some((pid, message)) if pid.bytes().all(|byte| b"0123456789#".contains(&byte)) => message,
        _ => rest,
    };
    format!("{level} {message}")
}

/// One directive a line: the line that nginx would name, the words, the lines of the block.
fn write_tree(out: &mut String, directives: &[Directive], sources: &Sources, depth: usize) {
    for directive in directives {
        let place = sources.place(directive.end);
        let place = place.trim_start_matches(" in ").trim_start_matches(PREFIX);
        let words = [&directive.name].into_iter().chain(&directive.args);
        let words: Vec<_> = words.map(|word| shown(&word.text)).collect();
        let brace = if directive.block.is_some() { " {" } else { "" };
        writeln!(out, "{place:20}{:depth$}{}{brace}", "", words.join(" ")).unwrap();
        if let Some(block) = &directive.block {
            write_tree(out, block, sources, depth + 2);
            let place = sources.place(directive.close.unwrap());
            let place = place.trim_start_matches(" in ").trim_start_matches(PREFIX);
            writeln!(out, "{place:20}{:depth$}}}", "").unwrap();
        }
    }
}

fn shown(word: &[u8]) -> String {
    let escaped = word.escape_ascii().to_string();
    let plain = !word.is_empty() && escaped.as_bytes() == word && !word.contains(&b' ');
    if plain { escaped } else { format!("\"{escaped}\"") }
}
