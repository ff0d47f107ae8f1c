use super::*;

const TEXT: &str = r#"
title = "t"
explanation = "e"
template = "worker_processes %%workers%%; %%more%% listen %%port%%; root %%dir%%;"
[load]
connections = 8
[factor.workers]
baseline = "1"
levels = ["2", "auto"]
[factor.more]
baseline = ""
levels = ["multi_accept on;"]
[[row]]
name = "default"
[[row]]
name = "2 workers"
set = { workers = "2" }
found = "+92 %"
[[row]]
name = "and multi_accept"
based_on = "2 workers"
set = { more = "multi_accept on;" }
"#;

fn places(port: u16, dir: &str) -> StudyPlaces<'_> {
    StudyPlaces { port, dir, backends: &[1001, 1002] }
}

#[test]
fn backends_and_loads_of_rows() {
    let text = TEXT
        .replace("root %%dir%%;", "proxy_pass http://%%backend2%%;")
        .replace("[load]", "[backend]\ncount = 2\n[load]")
        .replace("found = \"+92 %\"", "load = { path = \"/a\", close = true }\ndirect = true");
    let study = Study::parse("a.toml", &text).unwrap();
    let row = &study.rows[1];
    assert!(study.configuration(row, places(81, "/d")).contains("http://127.0.0.1:1002;"));
    let load = study.load_of(row);
    assert_eq!((load.path.as_str(), load.close, load.connections), ("/a", true, 8));
    assert!(row.direct && !study.load_of(&study.rows[0]).close);
}

fn problem(from: &str, to: &str) -> String {
    assert!(TEXT.contains(from), "{from}");
    Study::parse("a.toml", &TEXT.replace(from, to)).err().unwrap_or_default()
}

#[test]
fn rows_build_on_the_baseline_and_on_each_other() {
    let study = Study::parse("a.toml", TEXT).unwrap();
    let texts = study.rows.iter().map(|row| study.configuration(row, places(81, "/d")));
    let expected = [
        "worker_processes 1;  listen 81; root /d;",
        "worker_processes 2;  listen 81; root /d;",
        "worker_processes 2; multi_accept on; listen 81; root /d;",
    ];
    assert_eq!(texts.collect::<Vec<_>>(), expected);
    assert_eq!(study.rows[1].found.as_deref(), Some("+92 %"));
}

#[test]
fn what_is_wrong_is_said_before_anything_runs() {
    for (from, to, message) in [
        ("connections = 8", "connections = 0", "load.connections must be from 1 to 10000"),
        ("connections = 8", "connections = 8\nturn_ms = 1", "load.turn_ms must be from 50"),
        ("connections = 8", "connections = 8\npath = \"x\"", "load.path must begin with a slash"),
        ("%%workers%%", "%%work%%", "the template has %%work%%, but there is no such factor"),
        ("listen %%port%%;", "", "the template has no %%port%%"),
        ("%%dir%%", "%%backend1%%", "the template has %%backend1%%, but there is no such factor"),
        ("found = \"+92 %\"", "direct = true", "row 2 workers: direct needs a backend"),
        ("[load]", "[backend]\ncount = 99\n[load]", "backend.count must be at most 16"),
        ("%%more%%", "", "the factor more is not in the template"),
        ("\"2 workers\"\nset", "\"default\"\nset", "row default: there are two rows of this name"),
        ("based_on = \"2 workers\"", "based_on = \"x\"", "based_on names x, which is no row above"),
        ("workers = \"2\"", "workers = \"3\"", "the factor workers has no level \"3\""),
        ("workers = \"2\"", "worker = \"2\"", "there is no factor worker"),
        ("name = \"default\"", "name = \"d\"\nset = { workers = \"2\" }", "the first row is the"),
        ("title = \"t\"", "", "missing field `title`"),
        ("title = \"t\"", "title = \"t\"\ncolour = 1", "unknown field `colour`"),
        ("[[row]]", "[[row", "TOML parse error"),
    ] {
        let told = problem(from, to);
        assert!(told.starts_with("a.toml: ") && told.contains(message), "{to:?}: {told}");
    }
}

#[test]
fn the_studies_that_come_along_are_right() {
    for (name, text) in BUILT_IN {
        let study = Study::parse(name, text).unwrap_or_else(|error| panic!("{error}"));
        assert!(study.rows.len() >= 2 && !study.explanation.is_empty(), "{name}");
        for row in &study.rows {
            let text = study.configuration(row, places(80, "/srv"));
            assert!(!text.contains("%%"), "{name}, {}: {text}", row.name);
        }
    }
}
