//! The areas: a grammar for each, and the files and the log that all share.

use super::grammar::Grammar;

/// A part of the configuration language.
pub(super) struct GrammarArea {
    pub(super) name: &'static str,
    grammar: &'static str,
}

pub(super) const AREAS: &[GrammarArea] = &[
    GrammarArea { name: "rewrite", grammar: include_str!("areas/rewrite.txt") },
    GrammarArea { name: "locations", grammar: include_str!("areas/locations.txt") },
    GrammarArea { name: "fields", grammar: include_str!("areas/fields.txt") },
    GrammarArea { name: "access", grammar: include_str!("areas/access.txt") },
    GrammarArea { name: "files", grammar: include_str!("areas/files.txt") },
    GrammarArea { name: "proxy", grammar: include_str!("areas/proxy.txt") },
    GrammarArea { name: "tables", grammar: include_str!("areas/tables.txt") },
    GrammarArea { name: "stream", grammar: include_str!("areas/stream.txt") },
    GrammarArea { name: "fastcgi", grammar: include_str!("areas/fastcgi.txt") },
    GrammarArea { name: "secure", grammar: include_str!("areas/secure.txt") },
];

/// Rules that every area may use.
const SHARED: &str = include_str!("areas/shared.txt");

/// The files that every case has.
const FILES: &str = include_str!("areas/files_of_all.txt");

/// A certificate and its key.
const CERTIFICATE: [&str; 2] = [
    include_str!("../../../../crates/net/src/testing/tls/ecdsa.pem"),
    include_str!("../../../../crates/net/src/testing/tls/ecdsa.key"),
];

/// Variables of the log, each on a line of its own, so that one that differs stands alone.
const VARIABLES: &str = "uri request_uri args is_args request_method request_filename \
    document_root document_uri host http_host server_name server_protocol status body_bytes_sent \
    bytes_sent content_length content_type request_body remote_user request_length \
    request_completion https scheme server_addr sent_http_location sent_http_content_type \
    sent_http_content_length sent_http_last_modified sent_http_etag sent_http_connection \
    sent_http_transfer_encoding sent_http_cache_control sent_http_x_a upstream_addr \
    upstream_status upstream_http_x_a upstream_cookie_c upstream_http_location \
    upstream_http_content_type cookie_c arg_x http_x_a gzip_ratio limit_rate invalid_referer \
    query_string realpath_root binary_remote_addr proxy_host proxy_port \
    proxy_add_x_forwarded_for limit_req_status limit_conn_status ssl_protocol http2 v1 v2";

/// The grammar of an area, without what `version` of the reference lacks.
pub(super) fn grammar(area: &GrammarArea, version: &str) -> Result<Grammar, String> {
    let mut grammar = Grammar::default();
    grammar.add(SHARED, version).map_err(|e| format!("shared.txt:{e}"))?;
    grammar.add(area.grammar, version).map_err(|e| format!("{}.txt:{e}", area.name))?;
    match grammar.undefined() {
        Some(name) => Err(format!("{}: nothing is called <{name}>", area.name)),
        None => Ok(grammar),
    }
}

/// The lines of `--- files`.
pub(super) fn files() -> String {
    format!("{FILES}cert.pem: {}\n", CERTIFICATE.concat().replace('\n', "\\n"))
}

/// The log that compares variables.
pub(super) fn log_format() -> String {
    let lines = VARIABLES.split_whitespace().map(|name| format!("$remote_port {name}=${name}"));
    let lines: Vec<String> = lines.collect();
    // `set` in every server declares them. The default for backends depends on nginx's version.
    let rest = "access_log logs/vars.log vars;\nproxy_http_version 1.1;\n";
    format!("log_format vars '{}';\n{rest}", lines.join("\n"))
}
