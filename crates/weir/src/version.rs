//! The texts of `-v`, `-V` and `-h`.

use std::fmt::Write;

use crate::command_line::CommandLine;
use crate::name::{Name, name};

/// What the options ask for.
pub fn text(command: &CommandLine) -> String {
    let Name { word, version, .. } = name();
    let mut text = format!("{word} version: {word}/{version}\n");
    if command.show_help {
        help(&mut text);
    }
    if command.show_configure {
        let rustc = env!("WEIR_RUSTC");
        let _ = write!(text, "built by {rustc}\nconfigure arguments:{}\n", arguments());
    }
    text
}

fn help(text: &mut String) {
    let Name { word, prefix, error_log, conf, .. } = name();
    let indent = " ".repeat("Usage: ".len() + word.len() + 1);
    let _ = write!(
        text,
        "Usage: {word} [-?hvVtTq] [-s signal] [-p prefix]
{indent}[-e filename] [-c filename] [-g directives]

Options:
  -?,-h         : this help
  -v            : show version and exit
  -V            : show version and configure options then exit
  -t            : test configuration and exit
  -T            : test configuration, dump it and exit
  -q            : suppress non-error messages during configuration testing
  -s signal     : send signal to a master process: stop, quit, reopen, reload
  -p prefix     : set prefix path (default: {prefix})
  -e filename   : set error log file (default: {error_log})
  -c filename   : set configuration file (default: {conf})
  -g directives : set global directives out of configuration file
"
    );
    if *word == "weir" {
        text.push_str(BESIDES);
    }
    text.push('\n');
}

/// What nginx does not have.
const BESIDES: &str = "  --lenient     : start without directives that this version does not have
                  (as \"lenient on;\" or WEIR_LENIENT=1; weir check lists them)

Besides serving:
  weir load      : measure a server, as wrk does and beyond (weir load --help)
  weir backend   : be a server to measure, or to put behind a proxy (weir backend --help)
  weir check     : list what a configuration has and this version does not
  weir fmt       : format configurations
  weir reference : explain a directive, or list all (weir reference --help)
";

/// A part of nginx that its `configure` can leave out or put in.
struct Part {
    /// The option, after `--with-` or `--without-`.
    option: &'static str,
    /// Whether it is there unless left out.
    usual: bool,
    /// A directive that is there when the part is.
    mark: &'static str,
}

const fn usual(option: &'static str, mark: &'static str) -> Part {
    Part { option, usual: true, mark }
}

const fn extra(option: &'static str, mark: &'static str) -> Part {
    Part { option, usual: false, mark }
}

/// nginx's parts in the order of its `configure --help`. A part is there when its mark is in a
/// table of directives: nobody has to remember to list it.
const HTTP_PARTS: &[Part] = &[
    extra("http_ssl_module", "ssl_certificate"),
    extra("http_v2_module", "http2"),
    extra("http_v3_module", "http3"),
    extra("http_realip_module", "set_real_ip_from"),
    extra("http_addition_module", "add_before_body"),
    extra("http_sub_module", "sub_filter"),
    extra("http_dav_module", "dav_methods"),
    extra("http_flv_module", "flv"),
    extra("http_mp4_module", "mp4"),
    extra("http_gunzip_module", "gunzip"),
    extra("http_gzip_static_module", "gzip_static"),
    extra("http_auth_request_module", "auth_request"),
    extra("http_random_index_module", "random_index"),
    extra("http_secure_link_module", "secure_link"),
    extra("http_degradation_module", "degradation"),
    extra("http_slice_module", "slice"),
    extra("http_stub_status_module", "stub_status"),
    usual("http_charset_module", "charset"),
    usual("http_gzip_module", "gzip"),
    usual("http_ssi_module", "ssi"),
    usual("http_userid_module", "userid"),
    usual("http_access_module", "allow"),
    usual("http_auth_basic_module", "auth_basic"),
    usual("http_mirror_module", "mirror"),
    usual("http_autoindex_module", "autoindex"),
    usual("http_geo_module", "geo"),
    usual("http_map_module", "map"),
    usual("http_split_clients_module", "split_clients"),
    usual("http_referer_module", "valid_referers"),
    usual("http_rewrite_module", "rewrite"),
    usual("http_proxy_module", "proxy_pass"),
    usual("http_fastcgi_module", "fastcgi_pass"),
    usual("http_uwsgi_module", "uwsgi_pass"),
    usual("http_scgi_module", "scgi_pass"),
    usual("http_grpc_module", "grpc_pass"),
    usual("http_tunnel_module", "tunnel_pass"),
    usual("http_memcached_module", "memcached_pass"),
    usual("http_limit_conn_module", "limit_conn"),
    usual("http_limit_req_module", "limit_req"),
    usual("http_empty_gif_module", "empty_gif"),
    usual("http_browser_module", "ancient_browser"),
    usual("http_upstream_hash_module", "hash"),
    usual("http_upstream_ip_hash_module", "ip_hash"),
    usual("http_upstream_least_conn_module", "least_conn"),
    usual("http_upstream_least_time_module", "least_time"),
    usual("http_upstream_random_module", "random"),
    usual("http_upstream_keepalive_module", "keepalive"),
    usual("http_upstream_zone_module", "zone"),
    usual("http_upstream_sticky_module", "sticky"),
    usual("http-cache", "proxy_cache"),
];

/// What `configure` would have been told to make this.
fn arguments() -> String {
    let mut arguments = String::from(" --with-debug");
    for part in HTTP_PARTS {
        let way = match (part.usual, has(http::TABLES, part.mark)) {
            (true, false) => "without",
            (false, true) => "with",
            _ => continue,
        };
        let _ = write!(arguments, " --{way}-{}", part.option);
    }
    arguments
}

fn has(tables: &[(&str, &str, &[conf::Info])], directive: &str) -> bool {
    tables.iter().any(|(_, prefix, rows)| {
        let local = directive.strip_prefix(prefix);
        local.is_some_and(|local| rows.iter().any(|row| row.name == local))
    })
}
