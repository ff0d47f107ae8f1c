use std::net::{Ipv4Addr, SocketAddrV4};

use super::*;

const TEXT: &str = r#"
title = "t"
explanation = "e"
template = "worker_processes %%workers%%; %%more%% listen %%listen%%; root %%dir%%;"
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
    const fn backend(host: Ipv4Addr, port: u16) -> BackendAddress {
        let [http, udp] = [SocketAddrV4::new(host, port), SocketAddrV4::new(host, port + 1000)];
        BackendAddress { http, udp }
    }
    const BACKENDS: [BackendAddress; 2] =
        [backend(Ipv4Addr::LOCALHOST, 1001), backend(Ipv4Addr::new(10, 91, 2, 2), 1002)];
    let listen = SocketAddrV4::new(Ipv4Addr::LOCALHOST, port);
    let listen_tls = SocketAddrV4::new(Ipv4Addr::LOCALHOST, port + 1);
    StudyPlaces { listen, listen_tls, dir, backends: &BACKENDS, processors: 3 }
}

fn with(from: &str, to: &str) -> String {
    assert!(TEXT.contains(from), "{from}");
    TEXT.replace(from, to)
}

#[test]
fn backends_have_addresses() {
    let text = with("root %%dir%%;", "proxy_pass http://%%backend2%%;")
        .replace("[load]", "[backend]\ncount = 2\n[load]")
        .replace("found = \"+92 %\"", "direct = true");
    let study = Study::parse("a.toml", &text).unwrap();
    let row = &study.rows[1];
    assert!(study.configuration(row, places(81, "/d")).contains("http://10.91.2.2:1002;"));
    assert!(row.direct);
}

/// The setting of the second row, with an added factor.
fn setting(factor: &str, level: &str) -> Result<RowSetting, String> {
    let factor = format!("{factor}\n[[row]]\nname = \"default\"");
    let set = format!("{{ workers = \"2\", other = \"{level}\" }}");
    let text = with("[[row]]\nname = \"default\"", &factor);
    let text = text
        .replace("{ workers = \"2\" }", &set)
        .replace("listen %%listen%%", "listen %%listen%% %%listen_tls%%");
    let study = Study::parse("a.toml", &text)?;
    RowSetting::of(&study, &study.rows[1])
}

#[test]
fn factors_set_the_load() {
    let of = |sets: &str, baseline: &str, level: &str| {
        let factor = format!(
            "[factor.other]\nsets = \"load.{sets}\"\nbaseline = \"{baseline}\"\n\
             levels = [\"{level}\"]"
        );
        setting(&factor, level)
    };
    assert_eq!(of("connections", "1", "9").unwrap().load.connections, 9);
    assert_eq!(of("path", "/", "/a").unwrap().load.path, "/a");
    let mixed = of("path", "/", "/a /b").unwrap().load;
    assert_eq!(mixed.paths().collect::<Vec<_>>(), ["/a", "/b"]);
    assert_eq!(of("idle", "0", "50000").unwrap().load.idle, 50_000);
    assert!(of("close", "off", "on").unwrap().load.close);
    let options = of("options", "", "--h2 -H 'A: b'").unwrap().load.options;
    assert_eq!(options, ["--h2", "-H", "A: b"]);
    assert!(of("udp", "off", "on").unwrap().load.udp);
    let tls = of("tls", "off", "on").unwrap();
    assert!(tls.load.tls && !tls.needs_namespaces());
    for (sets, baseline, level, message) in [
        ("connections", "1", "none", "row 2 workers: \"none\" is no number of connections"),
        ("connections", "1", "0", "row 2 workers: load.connections must be from 1"),
        ("close", "off", "yes", "row 2 workers: \"yes\" must be on or off"),
        ("idle", "0", "600000", "row 2 workers: load.idle must be at most 500000"),
        ("path", "/", "/a b", "row 2 workers: load.path must begin with a slash"),
        ("options", "", "-c9", "row 2 workers: load.options has -c9, but may have --h2"),
        ("colour", "off", "on", "unknown variant `load.colour`"),
    ] {
        let told = of(sets, baseline, level).err().unwrap_or_default();
        assert!(told.contains(message), "{told}");
    }
}

#[test]
fn rows_differ_by_their_generators() {
    let told = |level: &str| {
        let factor = "[factor.other]\nsets = \"generator\"\nbaseline = \"weir load\"\nlevels = ";
        setting(&format!("{factor}[\"{level}\"]"), level).err().unwrap_or_default()
    };
    // The turns are of 300 ms.
    let short = told("wrk");
    assert!(short.ends_with("the generator wrk requires turns of whole seconds"), "{short}");
    let told = told("curl");
    assert!(told.ends_with("\"curl\" is no generator: weir load, wrk, ab, h2load"), "{told}");
    let text = BUILT_IN.iter().find(|(name, _)| *name == "generators").unwrap().1;
    let study = Study::parse("generators", text).unwrap();
    assert!(study.compares_generators());
    let kinds = study.rows.iter().map(|row| RowSetting::of(&study, row).unwrap().load.generator);
    let names: Vec<_> = kinds.map(GeneratorKind::name).collect();
    assert_eq!(names, ["weir load", "wrk", "ab", "h2load"]);
    for (more, message) in [
        ("options = [\"--h2\"]", "the generator wrk requires no load.options"),
        ("path = \"/a /b\"", "the generator wrk requires one path"),
        ("close = true", "the generator h2load requires kept connections"),
    ] {
        let told = Study::parse("a", &text.replace("[load]", &format!("[load]\n{more}")));
        let told = told.err().unwrap_or_default();
        assert!(told.ends_with(message), "{told}");
    }
}

#[test]
fn factors_set_kernels_hosts_and_links() {
    let of = |sets: &str, text: &str| {
        let factor = format!(
            "[factor.other]\nsets = \"{sets}\"\nbaseline = \"\"\nlevels = [\"on\"]\n\
             text = {{ on = \"{text}\" }}"
        );
        setting(&factor, "on")
    };
    let kernel = of("kernel", "net.core.somaxconn=1; net.ipv4.ip_local_port_range = 1024 65535;");
    let kernel = kernel.unwrap();
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let port_range = pair("net.ipv4.ip_local_port_range", "1024 65535");
    assert_eq!(kernel.kernel, [pair("net.core.somaxconn", "1"), port_range]);
    assert!(kernel.needs_namespaces());
    let hosts = of("hosts", "a b b").unwrap();
    assert_eq!((&*hosts.hosts.client, &*hosts.hosts.backend), ("a", "b"));
    assert!(hosts.needs_namespaces() && of("link", "delay 5ms").unwrap().link == "delay 5ms");
    for (sets, text, message) in [
        ("kernel", "vm.swappiness=1", "\"vm.swappiness=1\" is no kernel setting net.NAME=VALUE"),
        ("kernel", "net.a/../b=1", "is no kernel setting"),
        ("hosts", "a b", "\"a b\" must name three hosts"),
    ] {
        let told = of(sets, text).err().unwrap_or_default();
        assert!(told.contains(message), "{told}");
    }
}

#[test]
fn factors_set_routes_and_processors() {
    let of = |sets: &str, text: &str| {
        let factor =
            format!("[factor.other]\nsets = \"{sets}\"\nbaseline = \"\"\nlevels = [\"{text}\"]");
        setting(&factor, text)
    };
    let route = of("route", "quickack 1").unwrap();
    assert!(route.route == "quickack 1" && route.needs_namespaces());
    let cores = of("cores", "first 1").unwrap();
    assert!(cores.cores.is_some() && !cores.needs_namespaces());
    let told = of("route", "quickack").err().unwrap_or_default();
    assert!(told.contains("row 2 workers: \"quickack\" is no option of a route"), "{told}");
    let told = of("cores", "all").err().unwrap_or_default();
    assert!(told.contains("row 2 workers: \"all\" must choose processors"), "{told}");
    let study =
        Study::parse("a.toml", &with("%%workers%%", "%%workers%%%%server_processors%%")).unwrap();
    assert!(study.configuration(&study.rows[0], places(81, "/d")).contains("processes 13;"));
}

#[test]
fn rows_are_compared_with_the_first_or_another() {
    let text = with("based_on = \"2 workers\"", "compared_with = \"2 workers\"");
    let study = Study::parse("a.toml", &text).unwrap();
    assert_eq!([0, 1, 2].map(|row| study.baseline_of(row)), [0, 0, 1]);
    assert_eq!(study.label(1), "2 workers");
    assert_eq!(study.label(2), "and multi_accept (to 2 workers)");
}

#[test]
fn a_factorial_study_has_all_combinations() {
    let rows = TEXT.find("[[row]]").unwrap();
    let text = with("title", "factorial = [\"workers\", \"more\"]\ntitle");
    let text = text[..text.len() - (TEXT.len() - rows)].to_owned();
    let found = "[found]\n\"workers 2, more \" = \"9\"\n";
    let study = Study::parse("a.toml", &format!("{text}{found}")).unwrap();
    let names: Vec<&str> = study.rows.iter().map(|row| row.name.as_str()).collect();
    assert_eq!(names[..2], ["workers 1, more ", "workers 1, more multi_accept on;"]);
    assert_eq!((names.len(), study.rows[2].found.as_deref()), (6, Some("9")));
    // A record has the study together with its rows.
    Study::parse("a.toml", &toml::to_string(&study).unwrap()).unwrap();
    for (more, message) in [
        ("[found]\nx = \"9\"\n", "found names x, which is no combination"),
        ("[[row]]\nname = \"x\"\n", "a factorial study has all combinations for rows"),
    ] {
        let told = Study::parse("a.toml", &format!("{text}{more}")).err().unwrap_or_default();
        assert!(told.contains(message), "{told}");
    }
}

fn problem(from: &str, to: &str) -> String {
    Study::parse("a.toml", &with(from, to)).err().unwrap_or_default()
}

#[test]
fn rows_build_on_the_baseline_and_on_each_other() {
    let study = Study::parse("a.toml", TEXT).unwrap();
    let texts = study.rows.iter().map(|row| study.configuration(row, places(81, "/d")));
    let expected = [
        "worker_processes 1;  listen 127.0.0.1:81; root /d;",
        "worker_processes 2;  listen 127.0.0.1:81; root /d;",
        "worker_processes 2; multi_accept on; listen 127.0.0.1:81; root /d;",
    ];
    assert_eq!(texts.collect::<Vec<_>>(), expected);
    assert_eq!(study.rows[1].found.as_deref(), Some("+92 %"));
}

#[test]
fn errors_in_a_study_are_found_when_it_is_read() {
    for (from, to, message) in [
        ("connections = 8", "connections = 0", "load.connections must be from 1 to 10000"),
        ("connections = 8", "connections = 8\nturn_ms = 1", "load.turn_ms must be from 50"),
        ("connections = 8", "connections = 8\npath = \"x\"", "load.path must begin with a slash"),
        ("%%workers%%", "%%work%%", "the template has %%work%%, but there is no such factor"),
        ("listen %%listen%%;", "", "row default: its configuration has no %%listen%% to listen on"),
        ("%%dir%%", "%%backend1%%", "the template has %%backend1%%, but there is no such factor"),
        ("found = \"+92 %\"", "direct = true", "row 2 workers: direct needs a backend"),
        ("[load]", "[backend]\ncount = 99\n[load]", "backend.count must be at most 16"),
        ("%%more%%", "", "the factor more is not in the template"),
        ("\"auto\"]", "\"auto\"]\nsets = \"kernel\"", "the factor workers is also in the template"),
        ("\"auto\"]", "\"auto\"]\ntext = { 9 = \"\" }", "has a text for \"9\", but no such level"),
        ("title", "scaling = \"x\"\ntitle", "there is no factor x"),
        (
            "title",
            "columns = [\"x\"]\ntitle",
            "there is no column \"x\": it must be found, or one of",
        ),
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
fn the_built_in_studies_are_valid() {
    for (name, text) in BUILT_IN {
        let study = Study::parse(name, text).unwrap_or_else(|error| panic!("{error}"));
        assert!(study.rows.len() >= 2 && !study.explanation.is_empty(), "{name}");
        let written = toml::to_string(&study).unwrap();
        assert_eq!(Study::parse(name, &written).unwrap().rows, study.rows, "{name}");
    }
}

#[test]
fn rows_are_kept_with_those_that_they_refer_to() {
    let rows = |names: &[&str]| {
        let mut study = Study::parse("a.toml", TEXT).unwrap();
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        study.keep_rows(&names)?;
        Ok::<_, String>(study.rows.into_iter().map(|row| row.name).collect::<Vec<_>>())
    };
    let all = ["default", "2 workers", "and multi_accept"];
    assert_eq!(rows(&[]).unwrap(), all);
    assert_eq!(rows(&["and multi_accept"]).unwrap(), all);
    assert_eq!(rows(&["2 workers"]).unwrap(), all[..2]);
    let told = rows(&["3 workers"]).unwrap_err();
    assert!(told.ends_with("no row \"3 workers\", but default, 2 workers, and multi_accept"));
}

#[test]
fn a_backend_has_an_address_for_datagrams() {
    let text = with("root %%dir%%;", "proxy_pass %%backend1_udp%%;");
    let udp = text.replace("[load]", "[backend]\ncount = 1\nudp = true\n[load]");
    let study = Study::parse("a.toml", &udp).unwrap();
    let text = study.configuration(&study.rows[0], places(81, "/d"));
    assert!(text.contains("proxy_pass 127.0.0.1:2001;"), "{text}");
    let told = Study::parse("a.toml", &udp.replace("udp = true", "")).unwrap_err();
    assert!(told.contains("%%backend1_udp%%, but there is no such factor"), "{told}");
}
