use std::path::Path;

use super::*;
use crate::{Directive, Error, ErrorLevel, Load, MemoryFiles, Sources, known};

/// The results for the last line of a block; the lines before it are its neighbours.
struct Met {
    error: Option<Error>,
    warnings: Vec<Error>,
    lack: Option<Lack>,
    forgotten: Vec<Box<[u8]>>,
}

fn meet_as(lines: &str, context: &str, change: impl FnOnce(&mut Load<'_>)) -> Met {
    let tree = crate::parser::parse_alone(lines.as_bytes()).unwrap();
    let mut files = MemoryFiles::default();
    let mut load = Load::new(&mut files, Path::new("/"), Path::new("/"));
    change(&mut load);
    let line: &Directive = tree.root.last().unwrap();
    let error = load.without_feature(line, EnclosingBlock { context, lines: &tree.root }).err();
    let forgotten = load.forgotten.into_keys().collect();
    Met { error, warnings: load.warnings, lack: load.lacks.pop(), forgotten }
}

fn meet(lines: &str, context: &str) -> Met {
    meet_as(lines, context, |_| {})
}

fn leniently(lines: &str, context: &str) -> Met {
    meet_as(lines, context, |load| load.lenient = true)
}

fn refusal(lines: &str, context: &str) -> (String, String) {
    let error = meet(lines, context).error.unwrap_or_else(|| panic!("{lines} passes"));
    (error.message, error.help.unwrap_or_default())
}

#[test]
fn unknown_misplaced_and_unsupported_directives_are_distinguished() {
    let (text, help) = refusal("add_header A max-age=1; includeSubDomains;", "server");
    assert_eq!(text, r#"unknown directive "includeSubDomains""#);
    assert_eq!(help, r#"if it belongs to "add_header", quote the value: it contains ";""#);
    assert_eq!(refusal("add_header A b;\nincludeSubDomains;", "server").1, "");
    let (text, help) = refusal("try_file a b;", "http");
    assert_eq!(text, r#"unknown directive "try_file""#);
    let meant = r#"did you mean "try_files"? It is allowed in server, location of http"#;
    assert_eq!(help, meant);
    let (text, help) = refusal("lisen 80;", "server");
    assert_eq!(text, r#"unknown directive "lisen""#);
    assert_eq!(help, r#"did you mean "listen"?"#);
    let (text, help) = refusal("listen 80;", "http");
    assert_eq!(text, r#""listen" directive is not allowed here"#);
    assert_eq!(help, "it is allowed in server of http; server of stream");
    let (text, help) = refusal("tunnel_pass a;", "location");
    assert_eq!(text, r#"directive "tunnel_pass" is not supported by this version of weir"#);
    assert!(help.contains("503"), "{help}");
}

#[test]
fn a_third_party_directive_names_its_module() {
    let (text, help) = refusal("brotli on;", "http");
    let belongs = "belongs to ngx_brotli, which this version of weir does not support";
    assert_eq!(text, format!("directive \"brotli\" {belongs}"));
    assert_eq!(help, "use --lenient to ignore it");
    let error = meet_as("brotli on;", "http", |load| load.as_nginx = true).error.unwrap();
    assert_eq!(error.message, r#"unknown directive "brotli""#);
    assert_eq!(error.help, Some(format!("it {belongs}")));
}

#[test]
fn protection_in_a_block_without_requests_is_refused_even_leniently() {
    for (line, context) in [("auth_jwt a;", "if-in-server"), ("modsecurity on;", "main")] {
        let error = leniently(line, context).error.unwrap();
        assert!(error.message.ends_with("directive is not allowed here"), "{}", error.message);
    }
    assert_eq!(leniently("brotli on;", "if-in-server").error, None);
}

#[test]
fn lenient_mode_ignores_only_unsupported_directives() {
    let met = leniently("tunnel_pass a;", "location");
    assert!(met.error.is_none() && met.lack.unwrap().class == Class::Handler);
    assert_eq!(met.warnings[0].level, ErrorLevel::Warn);
    let said = &met.warnings[0].message;
    assert!(said.ends_with("of weir: requests to its location are answered with 503"), "{said}");
    for (line, context) in [("listen 80;", "http"), ("lisen 80;", "server"), ("ssi maybe;", "http")]
    {
        assert!(leniently(line, context).error.is_some(), "{line}");
    }
}

#[test]
fn obsolete_directives_are_ignored_with_nginxs_warning() {
    for lenient in [false, true] {
        let met = meet_as("http2_push on;", "location", |load| load.lenient = lenient);
        assert!(met.error.is_none() && met.lack.is_none());
        assert_eq!(met.warnings[0].message, r#"the "http2_push" directive is obsolete, ignored"#);
    }
}

#[test]
fn inactive_directives_are_ignored_silently() {
    let lines = [
        ("xslt_param A b;", "http"),
        ("tunnel_buffer_size 16k;", "http"),
        ("ssi off;", "http"),
        ("ssl_protocols TLSv1.2 TLSv1.3;", "http"),
        ("ssl_session_cache shared:a:10m;", "http"),
        ("ssl_session_timeout 1d;", "http"),
        ("ssl_certificate a.pem;", "server"),
        ("ssl_verify_client off;", "server"),
        ("sub_filter_once off;", "location"),
        ("dav_methods off;", "location"),
        ("auth_jwt off;", "location"),
        ("brotli off;", "http"),
        ("brotli_types text/css;", "http"),
    ];
    for (line, context) in lines {
        let met = meet(line, context);
        assert_eq!(met.error, None, "{line}");
        assert!(met.warnings.is_empty() && !met.lack.unwrap().active, "{line}");
    }
}

#[test]
fn the_activating_directive_is_the_error() {
    for (line, context) in [
        ("ssi on;", "http"),
        ("ssl_verify_client on;", "server"),
        ("mail { }", "main"),
        ("proxy_pass a;", "stream-server"),
        ("auth_jwt realm;", "location"),
        ("SecRulesEnabled;", "location"),
    ] {
        let error = meet(line, context).error.unwrap_or_else(|| panic!("{line}"));
        assert!(error.lacks.is_some(), "{line}");
    }
}

#[test]
fn arguments_are_refused_in_nginxs_words() {
    let value = |of: &str| format!("\"{of}\" directive invalid value");
    let cases = [
        ("ssi on off;", "http", "invalid number of arguments in \"ssi\" directive".into()),
        (
            "ssi maybe;",
            "http",
            "invalid value \"maybe\" in \"ssi\" directive, it must be \"on\" or \"off\"".into(),
        ),
        ("tunnel_read_timeout soon;", "http", value("tunnel_read_timeout")),
        ("tunnel_buffer_size 4kb;", "http", value("tunnel_buffer_size")),
        ("ssl_session_timeout 1q;", "http", value("ssl_session_timeout")),
        ("ssl_protocols TLSv1.4;", "http", "invalid value \"TLSv1.4\"".into()),
        ("ssl_verify_client maybe;", "http", "invalid value \"maybe\"".into()),
        ("ssi off; ssi off;", "http", "\"ssi\" directive is duplicate".into()),
        ("mail;", "main", "directive \"mail\" has no opening \"{\"".into()),
        ("ssi on { }", "http", "directive \"ssi\" is not terminated by \";\"".into()),
        ("tunnel_pass a;", "http", "\"tunnel_pass\" directive is not allowed here".into()),
    ];
    for (line, context, expected) in cases {
        let (text, _): (String, _) = refusal(line, context);
        assert!(text.starts_with(&expected), "{line}: {text}");
        let expected: String = expected;
        let lenient = leniently(line, context).error.unwrap_or_else(|| panic!("{line}"));
        assert!(lenient.message.starts_with(&expected), "{line}: {}", lenient.message);
    }
    for line in ["xslt_param A b; xslt_param A c;", "ssl_protocols TLSv1.2; ssl_protocols TLSv1.3;"]
    {
        assert_eq!(meet(line, "http").error, None, "{line}");
    }
    let met = meet("ssl_protocols TLSv1.2 TLSv1.2;", "http");
    assert_eq!(met.warnings[0].message, "duplicate value \"TLSv1.2\"");
}

#[test]
fn the_variables_of_an_ignored_line_are_remembered() {
    let names = |line: &str, context: &str| {
        let mut names: Vec<_> = leniently(line, context)
            .forgotten
            .iter()
            .map(|name| String::from_utf8_lossy(name).into_owned())
            .collect();
        names.sort();
        names
    };
    assert_eq!(names("perl_set $a 'sub {}';", "http"), ["a"]);
    assert_eq!(names("js_set $A f;", "http"), ["a"]);
    assert_eq!(names("set_by_lua_block $b { return 1 }", "location"), ["b"]);
    assert_eq!(names("num_map $remote_addr $c {}", "http"), ["c"]);
    assert_eq!(names("geoip2 a.mmdb { auto_reload 5m; $d country; $e city; }", "http"), ["d", "e"]);
    assert!(names("xslt_param A $a;", "http").is_empty());
}

#[test]
fn rows_are_well_formed() {
    let all = || OWN.iter().chain(THIRD_PARTY.iter());
    for row in OWN.iter() {
        let mut known = known::all().iter();
        let found = known.any(|known| fits(row.module, known.module) && fits(row.name, known.name));
        assert!(found, "{row:?}");
        assert_eq!(row.class == Class::Nothing, !row.of.is_empty(), "{row:?}");
    }
    for table in [include_str!("../../lacking.tsv"), include_str!("../../third_party.tsv")] {
        assert!(table.starts_with("module\tdirective\tclass\tinert\tof\tdefines\n"));
    }
    for row in THIRD_PARTY.iter() {
        let name = row.name.trim_end_matches('*');
        assert!(known::find(row.name.as_bytes()).is_empty(), "{row:?} is nginx's");
        assert!(
            third_party(name.as_bytes())
                .is_some_and(|first| { std::ptr::eq(first, row) || row.name.ends_with('*') }),
            "{row:?} is hidden"
        );
    }
    for row in all().filter(|row| !row.of.is_empty()) {
        let of = row.of;
        let is_value = of.contains(' ') || of.starts_with('$');
        let exists = known::find(of.as_bytes()).iter().any(|known| super::of(known).is_some())
            || third_party(of.as_bytes()).is_some();
        assert!(is_value || exists, "{row:?}");
    }
    let columns = all().flat_map(|row| row.defines.split(','));
    for column in columns.filter(|column| !column.is_empty()) {
        let number = column.parse::<usize>().is_ok_and(|number| number > 0);
        assert!(number || column == "block" || column.starts_with('$'), "{column}");
    }
}

#[test]
fn files_of_modules_have_rows_for_their_directives() {
    assert!(include_str!("../../modules.tsv").starts_with("file\tmodule\n"));
    for (file, module) in module_files() {
        assert!(known::all().iter().all(|known| known.module != file), "{file} is nginx's");
        assert_eq!(module_files().filter(|(other, _)| *other == file).count(), 1, "{file}");
        // The kit only supports other modules, and all of traces is here.
        let is_without = ["ngx_devel_kit", "ngx_otel_module"].contains(&module);
        let has_rows = THIRD_PARTY.iter().any(|row| row.module == module);
        assert!(has_rows || is_without, "{module}");
    }
    assert!(is_module_file("ngx_http_lua_module") && !is_module_file("ngx_http_map_module"));
}

#[test]
fn variables_name_their_modules() {
    let module = |name: &str| of_variable(name.as_bytes()).map(|row| row.module);
    assert_eq!(module("geoip_country_code"), Some("ngx_http_geoip_module"));
    assert_eq!(module("ssl_preread_servername"), None, "all of TLS is here");
    assert_eq!(module("upstream_cache_status"), None, "caches are here");
    assert_eq!(module("remote_addr"), None);
}

#[test]
fn a_whole_check_continues_after_an_error() {
    let mut files = MemoryFiles::default();
    let mut load = Load::new(&mut files, Path::new("/"), Path::new("/"));
    assert!(load.tolerate::<()>(Err(Error::bare("no"))).is_err());
    load.checking = true;
    assert_eq!(load.tolerate::<()>(Err(Error::bare("no"))), Ok(None));
    assert_eq!(load.errors, [Error::bare("no")]);
    assert!(load.sources.iter().next().is_none());
    let _: Sources = load.sources;
}
