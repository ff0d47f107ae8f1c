//! Declarations contain everything that the reference needs, and it is true.

use conf::{Directive, MemoryFiles};

use super::entry::{self, DirectiveEntry};
use super::{markdown, terminal, variable};
use crate::config_origin::ConfigOrigin;
use crate::load;

fn entries() -> Vec<DirectiveEntry> {
    entry::supported().into_values().flatten().collect()
}

#[test]
fn every_directive_has_a_description_and_a_syntax() {
    for entry in entries() {
        let (name, contexts) = (&entry.name, entry.contexts());
        assert!(!entry.doc.paragraphs.is_empty(), "{name} in {contexts}: no text");
        assert!(!contexts.is_empty(), "{name}: no context");
        let has_arguments = |form: &String| form.trim_start_matches(name.as_str()).starts_with(' ');
        assert!(
            entry.info.args.0 == 0 || entry.syntax().iter().all(has_arguments),
            "{name} in {contexts}: what are its arguments? Its type says it by Value::SYNTAX, or \
             its docs by a line \"Syntax: ...\""
        );
    }
}

#[test]
fn every_directive_that_nginx_lacks_has_an_example_and_an_origin() {
    let beyond: Vec<_> = entries().into_iter().filter(|e| e.in_nginx().is_none()).collect();
    assert!(beyond.iter().any(|entry| entry.name == "health_check"));
    let of_others: Vec<_> = entries().into_iter().filter(|e| !e.doc.example.is_empty()).collect();
    for entry in beyond {
        let name = &entry.name;
        // A setting of several families is documented under one of them.
        let model = of_others.iter().find(|other| std::ptr::eq(other.info, entry.info));
        let entry = model.unwrap_or(&entry);
        assert!(
            !entry.doc.differs.is_empty(),
            "{name} is not in nginx: its docs say so, and where it comes from, by a line \
             \"Differs: not in nginx's sources; as in ...\""
        );
        let without_effect = entry.doc.differs.iter().any(|text| text.contains("no effect:"));
        assert!(!entry.doc.example.is_empty() || without_effect, "{name}: no example");
    }
}

const SAME: &str = "the same in other words";
const PATH: &str = "a path of the installation";
const PAGE: &str = "nginx takes the page size, which is 4k on x86-64 and may be more elsewhere";
const BITS: &str = "nginx's depends on the processor; this is x86-64's";
const EFFECT: &str = "it has no effect here";

/// Defaults that differ from nginx's: directive, nginx's default, ours, and the reason.
const DEFAULTS: &[(&str, &str, &str, &str)] = &[
    ("access_log", "logs/access.log combined", "the installation's access.log in combined", PATH),
    ("client_body_buffer_size", "2 pages (8k)", "8k", PAGE),
    ("connection_pool_size", "64 * sizeof(void *)", "512", BITS),
    ("debug_points", "0", "", EFFECT),
    ("epoll_events", "512", "", EFFECT),
    ("error_log", "logs/error.log error", "the installation's error.log at error", PATH),
    ("error_log", "inherits", "that of the block around", SAME),
    ("gunzip_buffers", "32 4k (128k total)", "32 4k", SAME),
    ("gzip_buffers", "32 4k (128k total)", "32 4k", SAME),
    ("gzip_hash", "128k", "64k", "nginx says so where it counts, and takes zlib's level 8: 64k"),
    ("keepalive_timeout", "75s (no header)", "75s", SAME),
    (
        "listen",
        "*:80 (root) or *:8000",
        "*:80, or *:8000 where the user may not bind port 80",
        SAME,
    ),
    ("pid", "build path", "the installation's", PATH),
    ("proxy_buffer_size", "page size (4k)", "4k", PAGE),
    ("proxy_buffers", "8 page", "8 4k", PAGE),
    ("proxy_busy_buffers_size", "2 x max(buffer_size, one buffer)", "", EFFECT),
    ("proxy_max_temp_file_size", "1g", "1024m", SAME),
    ("proxy_store_access", "0600", "user:rw", SAME),
    (
        "proxy_temp_file_write_size",
        "2 x max(buffer_size, one buffer)",
        "twice the larger of proxy_buffer_size and one of proxy_buffers",
        SAME,
    ),
    ("server_names_hash_bucket_size", "CPU cache line", "64", BITS),
    ("source_charset", "off", "", SAME),
    ("subrequest_output_buffer_size", "page size (4k)", "4k", PAGE),
    ("timer_resolution", "0", "", EFFECT),
    ("types", "html, gif, jpg only", "html, gif and jpg only", SAME),
    ("use", "best (epoll on Linux)", "epoll", SAME),
    (
        "user",
        "nobody + its group",
        "the user who starts the server, or nobody if that is root",
        SAME,
    ),
    ("userid_path", "; path=/", "/", SAME),
    ("worker_aio_requests", "32", "", EFFECT),
];

#[test]
fn defaults_are_those_of_nginx_except_with_a_reason() {
    let mut wrong = String::new();
    let mut used = Vec::new();
    for entry in entries() {
        // Without a default in the table, a handler of nginx decides.
        let known = entry.in_nginx().filter(|known| !matches!(known.default, "" | "-"));
        let Some(known) = known else { continue };
        let (ours, theirs) = (entry.default().unwrap_or(""), known.default);
        let (name, ours) = (as_proxy(&entry.name), as_proxy(ours));
        let row = (name.as_str(), theirs, ours.as_str());
        let excuse = DEFAULTS.iter().position(|(name, nginx, weir, _)| row == (name, nginx, weir));
        match excuse {
            Some(at) => used.push(at),
            None if ours == as_proxy(theirs) => {}
            None => wrong += &format!("{row:?}\n"),
        }
    }
    assert!(wrong.is_empty(), "defaults that are not nginx's (name, nginx, Weir):\n{wrong}");
    for (at, row) in DEFAULTS.iter().enumerate() {
        assert!(used.contains(&at), "{row:?} is no difference any more");
    }
}

#[test]
fn the_files_of_variables_are_accepted() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../conf/");
    let files = [
        ("fastcgi.conf", "fastcgi"),
        ("fastcgi_params", "fastcgi"),
        ("scgi_params", "scgi"),
        ("uwsgi_params", "uwsgi"),
    ];
    for (file, family) in files {
        let lines = std::fs::read_to_string(format!("{folder}{file}")).unwrap();
        assert!(lines.lines().filter(|line| line.contains("_param ")).count() > 10, "{file}");
        let text = format!(
            "events {{}} http {{ server {{ location / {{
             {family}_pass unix:/a; include {file}; }} }} }}"
        );
        let mut files = MemoryFiles::default()
            .with("/nginx.conf", &*text)
            .with(format!("/{file}").as_str(), &*lines);
        let origin = ConfigOrigin {
            conf: (*b"/nginx.conf").into(),
            conf_prefix: (*b"/").into(),
            ..ConfigOrigin::default()
        };
        assert!(load::load(&origin, &mut files).is_ok(), "{file}");
    }
}

/// Replaces a family's name by `proxy`, so that one reason applies to all families.
fn as_proxy(text: &str) -> String {
    let families = http::FAMILIES.iter().chain(&["grpc", "memcached"]);
    families.fold(text.to_owned(), |text, family| text.replace(&format!("{family}_"), "proxy_"))
}

/// The files that examples name.
const CERTIFICATE: &str = include_str!("../../../net/src/testing/tls/ecdsa.pem");
const KEY: &str = include_str!("../../../net/src/testing/tls/ecdsa.key");

#[test]
fn every_example_is_a_configuration_that_is_accepted() {
    let with_example: Vec<_> =
        entries().into_iter().filter(|entry| !entry.doc.example.is_empty()).collect();
    assert!(with_example.len() > 100, "{}", with_example.len());
    for entry in with_example {
        let (text, lines) = parsed(&entry);
        assert!(mentions(&lines, &entry.name), "{} is not in its example:\n{text}", entry.name);
        let whole = around(&entry, &lines, &text);
        let mut files = MemoryFiles::default()
            .with("/nginx.conf", &*whole)
            .with("/etc/weir/example.com.pem", CERTIFICATE)
            .with("/etc/weir/example.com.key", KEY)
            .with("/etc/weir/clients.pem", CERTIFICATE)
            .with("/etc/weir/tls.pass", "password\n")
            .with("/etc/weir/ticket.key", [7; 80])
            .with("/etc/ssl/certs/ca-certificates.crt", CERTIFICATE);
        let origin = ConfigOrigin { conf: (*b"/nginx.conf").into(), ..ConfigOrigin::default() };
        let loaded = load::load(&origin, &mut files);
        assert!(loaded.is_ok(), "the example of {}:\n{whole}", entry.name);
    }
}

/// An example and its lines.
fn parsed(entry: &DirectiveEntry) -> (String, Vec<Directive>) {
    let text = entry.doc.example.join("\n");
    let mut files = MemoryFiles::default().with("/example", &*text);
    let (_, tree) = conf::parse(b"/example", b"/", None, &mut files).into_result();
    match tree {
        Ok(tree) => (text, tree.root),
        Err(error) => panic!("the example of {}: {}\n{text}", entry.name, error.message),
    }
}

/// Whether these lines contain a directive.
fn mentions(lines: &[Directive], name: &str) -> bool {
    name == "include"
        || lines.iter().any(|line| {
            *line.name.text == *name.as_bytes()
                || mentions(line.block.as_deref().unwrap_or_default(), name)
        })
}

/// Encloses an example in the outermost block in which all of its lines are allowed.
fn around(entry: &DirectiveEntry, lines: &[Directive], text: &str) -> String {
    let all = entry::all();
    let allows = |entry: &DirectiveEntry, context: &str| {
        entry.contexts().split(", ").any(|allowed| allowed == context || allowed == "any")
    };
    let may_stand = |line: &Directive, context: &str| {
        if *line.name.text == *entry.name.as_bytes() {
            return allows(entry, context);
        }
        let name = String::from_utf8_lossy(&line.name.text);
        all.get(&*name).is_some_and(|entries| entries.iter().any(|entry| allows(entry, context)))
    };
    // Each entry of a name that both subsystems have has its own example.
    let is_other = |context: &str| {
        context.starts_with("stream") != entry.contexts().starts_with("stream")
            && !matches!(context, "main" | "events")
    };
    let fits = |context: &str| {
        let is_inside = lines.iter().all(|line| *line.name.text != *entry.name.as_bytes());
        !is_other(context) && (is_inside || allows(entry, context))
    };
    let context = CONTEXTS
        .iter()
        .find(|(context, _)| fits(context) && lines.iter().all(|line| may_stand(line, context)));
    let Some((_, form)) = context else { panic!("{}: where may it stand?\n{text}", entry.name) };
    let has = |name: &str| lines.iter().any(|line| *line.name.text == *name.as_bytes());
    let events = if has("events") || form.contains("events") { "" } else { "events {}\n" };
    form.replace("EXAMPLE", text) + events
}

const CONTEXTS: [(&str, &str); 9] = [
    ("main", "EXAMPLE\n"),
    ("events", "events {\nEXAMPLE\n}\n"),
    ("http", "http {\nEXAMPLE\n}\n"),
    ("server", "http { server {\nEXAMPLE\n} }\n"),
    ("location", "http { server { location / {\nEXAMPLE\n} } }\n"),
    ("upstream", "http { upstream u {\nEXAMPLE\n} }\n"),
    ("stream", "stream {\nEXAMPLE\n}\n"),
    ("stream server", "stream { server {\nEXAMPLE\n} }\n"),
    ("stream upstream", "stream { upstream u {\nEXAMPLE\n} }\n"),
];

#[test]
fn directives_of_one_name_are_distinguished() {
    let page = markdown::directives();
    let (_, section) = page.split_once("\n## keepalive_timeout\n").unwrap();
    let (section, _) = section.split_once("\n## ").unwrap();
    let (of_clients, of_servers) = section.split_once("### keepalive_timeout in upstream").unwrap();
    assert!(of_clients.contains("- **Default:** `75s`\n- **Context:** http, server, location\n"));
    assert!(of_servers.contains("- **Default:** `60s`\n- **Context:** upstream\n"));

    let page = terminal::page("server").unwrap();
    assert!(page.contains("server { ... }\n") && page.contains("server ADDRESS"), "{page}");
}

#[test]
fn unsupported_directives_are_reported_as_missing() {
    let page = terminal::page("tunnel_pass").unwrap();
    assert!(page.contains("This version of Weir does not support"), "{page}");
    let page = terminal::page("ntlm").unwrap();
    assert!(page.contains("configuration with this directive: connections to servers"), "{page}");
    let missing = markdown::unsupported();
    assert!(missing.contains("| `tunnel_pass` | server, location, if in location |"), "{missing}");
    assert!(missing.contains("| `ntlm` | connections to servers"));
    assert!(!missing.contains("| `proxy_pass` | location"), "the one of streams is");
    let (_, obsolete) = missing.split_once("## Obsolete").unwrap();
    assert!(obsolete.contains("`http2_push`"));
}

#[test]
fn an_unknown_name_is_answered_with_the_nearest_one() {
    let why = |name| terminal::page(name).unwrap_err();
    assert_eq!(why("locaton"), "there is no directive \"locaton\"; did you mean \"location\"?");
    assert_eq!(
        why("slow_start"),
        "there is no directive \"slow_start\"; it is a parameter of: server"
    );
    assert!(why("optimize_server_names").contains("it was removed in nginx 0.7.1"));
    assert!(why("qqqqqqqq").contains("weir reference lists all directives"));
}

#[test]
fn every_variable_has_a_sentence() {
    let all = variable::all();
    assert!(all.len() > 200, "{}", all.len());
    for entry in all {
        let (name, text) = (entry.shown(), entry.doc.text);
        let first = text.chars().next().unwrap_or(' ');
        assert!(text.len() > 10 && text.ends_with('.'), "{name}: {text:?} is no sentence");
        assert!(first.is_ascii_uppercase() || first == '`', "{name}: {text:?} is no sentence");
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(words, text, "{name}: spaces");
        assert_eq!(text.matches('`').count() % 2, 0, "{name}: {text:?}");
    }
}

#[test]
fn a_variable_is_found_with_its_dollar_and_without() {
    let page = terminal::page("$upstream_addr").unwrap();
    assert_eq!(Ok(&page), terminal::page("upstream_addr").as_ref());
    assert!(page.starts_with("$upstream_addr\n\n  Context:  http, stream\n"), "{page}");
    assert!(page.contains("  Module:   ngx_http_upstream_module, ngx_stream_upstream_module\n"));
    assert!(page.contains("\n  Docs:     docs/variables.md\n"), "{page}");

    let page = terminal::page("$Limit_Upstream_Waiting").unwrap();
    assert!(page.contains("  Module:   not in nginx\n"), "{page}");
    assert!(page.contains("  Docs:     docs/variables.md, docs/limit.md\n"), "{page}");
    assert!(terminal::page("$http_x_y").unwrap().starts_with("$http_...\n"));
    assert!(terminal::page("$http_host").unwrap().starts_with("$http_host\n"));
    let page = terminal::page("$bytes_sent").unwrap();
    assert!(page.contains("In http {}: ") && page.contains("In stream {}: "), "{page}");
}

#[test]
fn a_name_that_is_a_directive_and_a_variable_has_both_pages() {
    let page = terminal::page("limit_rate").unwrap();
    assert!(page.starts_with("limit_rate\n") && page.contains("\n\n$limit_rate\n"), "{page}");
    assert!(terminal::page("$limit_rate").unwrap().starts_with("$limit_rate\n"));
}

#[test]
fn an_unknown_variable_is_answered_with_the_nearest_one() {
    let why = |name| terminal::page(name).unwrap_err();
    assert_eq!(
        why("$upstream_adr"),
        "there is no variable \"$upstream_adr\"; did you mean \"$upstream_addr\"?"
    );
    assert!(why("upstream_adr").ends_with("did you mean \"$upstream_addr\"?"));
    assert!(why("$geoip_city").contains("belongs to ngx_http_geoip_module"));
    assert!(why("$qqqqqqqq").contains("docs/variables.md lists all variables"));
    assert!(why("").contains("single quotes"));
}

#[test]
fn the_directive_of_http_comes_before_that_of_stream() {
    let all = entry::supported();
    let mut both = 0;
    for (name, entries) in &all {
        let of_stream: Vec<bool> =
            entries.iter().map(|entry| entry.contexts().starts_with("stream")).collect();
        assert!(of_stream.is_sorted(), "{name}");
        both += usize::from(of_stream.contains(&true) && of_stream.contains(&false));
    }
    assert!(both > 10, "{both}");
    let page = terminal::page("proxy_pass").unwrap();
    let (http, stream) = (page.find("location").unwrap(), page.find("stream server").unwrap());
    assert!(http < stream, "{page}");
}

#[test]
fn lines_of_the_pages_fit() {
    for page in [markdown::directives(), markdown::unsupported(), variable::markdown()] {
        let long = page.lines().find(|line| line.chars().count() > 100 && !line.starts_with('|'));
        assert_eq!(long, None);
    }
    let pages = entries().into_iter().map(|entry| terminal::page(&entry.name).unwrap());
    for page in pages {
        let long = page.lines().find(|line| line.chars().count() > 100);
        assert_eq!(long, None);
    }
}

#[test]
fn the_list_has_every_directive() {
    let list = terminal::list();
    assert_eq!(list.lines().count(), entries().len());
    assert!(list.lines().any(|line| line.starts_with("health_check ")), "{list}");
}

#[test]
fn a_directive_that_one_subsystem_lacks_is_reported_as_missing_there() {
    let page = terminal::page("proxy_timeout").unwrap();
    let missing = "Not supported by this version in: mail, mail server \
                   (ngx_mail_proxy_module).";
    let words = page.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains(missing), "{page}");
    assert!(!terminal::page("return").unwrap().contains("Not supported"));
}
