//! A property that holds for any objects, as a function that panics if it does not hold.
//!
//! The fuzz target (`fuzz/`) and tests share it; it is not part of the crate's interface.

use std::collections::BTreeSet;

use conf::{Directive, MemoryFiles};
use serde_json::Value;

use super::{Plan, PlanFaults, ServiceGroupName, Settings, dry_run, plan, servers};
use crate::Objects;

const FOLDER: &str = "/plan";

/// Any objects, as JSON, give a configuration that has only the directives and variables that we
/// write, and files within the folder; the same objects give the same plan.
pub fn ingress_plan(input: &[u8]) {
    let mut objects = Objects::default();
    for value in serde_json::Deserializer::from_slice(input).into_iter::<Value>() {
        let Ok(value) = value else { break };
        let _ = dry_run::insert(value, &mut objects);
    }
    check(&objects);
}

pub(crate) fn check(objects: &Objects) -> Plan {
    let planned = plan(objects, &settings());
    assert_eq!(planned, plan(objects, &settings()));
    let mut files = MemoryFiles::default();
    for (name, bytes) in &planned.files {
        let is_plain = |part: &str| !part.is_empty() && part != "." && part != "..";
        assert!(name.split('/').all(is_plain) && !name.contains('\0'), "{name:?}");
        files = files.with(format!("{FOLDER}/{name}"), bytes);
    }
    let main = format!("{FOLDER}/nginx.conf");
    let (_, tree) = conf::parse(main.as_bytes(), b"/", None, &mut files).into_result();
    let tree = tree.unwrap_or_else(|error| panic!("not a configuration: {error:?}"));
    tree.root.iter().for_each(|directive| check_directive(directive, ""));
    let all = planned.services.iter().map(ServiceGroupName::service_key).collect();
    assert_eq!(servers(objects, &planned.services, &all), planned.groups);
    planned
}

pub(crate) fn settings() -> Settings {
    Settings {
        controller_name: "weir.dev/ingress".to_owned(),
        allow_snippets: false,
        addresses: vec!["192.0.2.1".to_owned()],
        gateway_addresses: Vec::new(),
        trusted_proxies: Vec::new(),
        folder: FOLDER.to_owned(),
        control_socket: "unix:/plan/control.sock".to_owned(),
        faults: PlanFaults::default(),
        now: "2026-01-01T00:00:00Z".to_owned(),
    }
}

fn check_directive(directive: &Directive, around: &str) {
    let name = std::str::from_utf8(&directive.name.text).expect("UTF-8");
    if matches!(around, "map" | "split_clients" | "geo") {
        assert!(directive.args.len() == 1 && directive.block.is_none(), "{name}");
        check_variables(&directive.args[0].text, around);
        return;
    }
    assert!(DIRECTIVES.contains(&name), "{name} in {around}");
    // Expressions have dollars that are no variables.
    let patterns = match name {
        "location" | "if" => directive.args.len(),
        "rewrite" => 1,
        _ => 0,
    };
    for word in &directive.args[patterns..] {
        check_variables(&word.text, name);
    }
    let inside = directive.block.as_deref().unwrap_or_default();
    inside.iter().for_each(|directive| check_directive(directive, name));
    let mut locations = BTreeSet::new();
    for location in inside.iter().filter(|one| &*one.name.text == b"location") {
        let words: Vec<_> = location.args.iter().map(|word| &word.text).collect();
        assert!(locations.insert(words), "a location twice: {:?}", location.args);
    }
}

fn check_variables(word: &[u8], directive: &str) {
    let text = std::str::from_utf8(word).expect("UTF-8");
    if directive == "geo" {
        return;
    }
    for part in text.split('$').skip(1) {
        let part = part.strip_prefix('{').unwrap_or(part);
        let is_of_name = |next: char| next.is_ascii_alphanumeric() || next == '_';
        let end = part.find(|next| !is_of_name(next)).unwrap_or(part.len());
        let name = &part[..end];
        let is_known = VARIABLES.contains(&name)
            || PREFIXES.iter().any(|prefix| name.starts_with(prefix))
            || name.bytes().all(|byte| byte.is_ascii_digit()) && !name.is_empty();
        assert!(is_known, "${name} in {directive}: {text}");
    }
}

/// Of the variables that objects name: fields of requests and answers, cookies and arguments.
const PREFIXES: &[&str] = &[
    "arg_",
    "argument_",
    "choice_",
    "condition_",
    "cookie_",
    "grpcroute_",
    "http_",
    "httproute_",
    "ingress_",
    "tcproute_",
    "tlsroute_",
    "upstream_http_",
];

const VARIABLES: &[&str] = &[
    "args",
    "binary_remote_addr",
    "client_host",
    "client_scheme",
    "connection",
    "connection_upgrade",
    "dollar",
    "host",
    "is_args",
    "is_from_proxy",
    "msec",
    "query_string",
    "redirect_port",
    "remote_addr",
    "remote_port",
    "request_id",
    "request_method",
    "request_uri",
    "scheme",
    "server_name",
    "server_port",
    "uri",
];

const DIRECTIVES: &[&str] = &[
    "access_log",
    "allow",
    "auth_basic",
    "auth_basic_user_file",
    "auth_request",
    "auth_request_set",
    "client_body_buffer_size",
    "client_max_body_size",
    "control_socket",
    "deny",
    "error_log",
    "error_page",
    "events",
    "geo",
    "grpc_connect_timeout",
    "grpc_errors",
    "grpc_intercept_errors",
    "grpc_next_upstream",
    "grpc_next_upstream_timeout",
    "grpc_next_upstream_tries",
    "grpc_pass",
    "grpc_read_timeout",
    "grpc_send_timeout",
    "grpc_set_header",
    "grpc_ssl_certificate",
    "grpc_ssl_certificate_key",
    "grpc_ssl_name",
    "grpc_ssl_server_name",
    "grpc_ssl_trusted_certificate",
    "grpc_ssl_verify",
    "grpc_ssl_verify_depth",
    "hash",
    "http",
    "http2",
    "if",
    "internal",
    "least_conn",
    "least_time",
    "limit_conn",
    "limit_conn_zone",
    "limit_req",
    "limit_req_zone",
    "listen",
    "location",
    "map",
    "mirror",
    "more_clear_headers",
    "more_clear_input_headers",
    "more_set_headers",
    "more_set_input_headers",
    "pass",
    "pid",
    "proxy_buffer_size",
    "proxy_buffering",
    "proxy_buffers",
    "proxy_busy_buffers_size",
    "proxy_connect_timeout",
    "proxy_http_version",
    "proxy_intercept_errors",
    "proxy_max_temp_file_size",
    "proxy_method",
    "proxy_next_upstream",
    "proxy_next_upstream_timeout",
    "proxy_next_upstream_tries",
    "proxy_pass",
    "proxy_pass_request_body",
    "proxy_read_timeout",
    "proxy_request_buffering",
    "proxy_send_timeout",
    "proxy_set_header",
    "proxy_ssl_certificate",
    "proxy_ssl_certificate_key",
    "proxy_ssl_name",
    "proxy_ssl_server_name",
    "proxy_ssl_trusted_certificate",
    "proxy_ssl_verify",
    "proxy_ssl_verify_depth",
    "recursive_error_pages",
    "return",
    "rewrite",
    "satisfy",
    "server",
    "server_name",
    "server_tokens",
    "split_clients",
    "ssl_certificate",
    "ssl_certificate_key",
    "ssl_client_certificate",
    "ssl_preread",
    "ssl_reject_handshake",
    "ssl_verify_client",
    "ssl_verify_depth",
    "state",
    "sticky",
    "stream",
    "upstream",
    "worker_connections",
    "worker_processes",
];
