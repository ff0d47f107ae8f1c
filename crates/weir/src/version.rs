//! The texts of `-v` and `-V`.

use std::fmt::Write;

use crate::command_line::CommandLine;
use crate::defaults::Defaults;
use crate::name::{ProgramName, name};
use crate::places::{StartingUser, UserFiles};
use crate::settings;

/// The text that the options select.
pub fn text(command: &CommandLine) -> String {
    let ProgramName { word, version, .. } = name();
    let mut text = format!("{word} version: {word}/{version}\n");
    if command.show_configure {
        let rustc = env!("WEIR_RUSTC");
        let (places, parts) = (places(), parts());
        let tls = tls();
        let _ = write!(text, "built by {rustc}\n{tls}configure arguments:{places}{parts}\n");
    }
    text
}

/// The lines about TLS and SNI, which certbot looks for, in the words of nginx builds with the same
/// library, AWS-LC.
fn tls() -> String {
    let library = match name().is_nginx() {
        true => "OpenSSL 1.1.1 (compatible; AWS-LC)",
        false => "rustls and AWS-LC",
    };
    format!("built with {library}\nTLS SNI support enabled\n")
}

/// Paths that only nginx uses, which tools look for.
const NGINX_ONLY: &str = " --lock-path=/var/lock/nginx.lock --modules-path=/usr/lib/nginx/modules";

/// The default paths, as arguments of nginx's `configure`, by which tools find the configuration.
fn places() -> String {
    let places = UserFiles::of(&CommandLine::default(), name(), &StartingUser::current());
    let UserFiles { conf, prefix, defaults } = places;
    let Defaults { error_log, access_log, pid, client_body_temp, proxy_temp } = defaults;
    let error_log = error_log.unwrap_or("stderr".into());
    // Without the final slash.
    let prefix = prefix.components().as_path().to_owned();
    let families = http::FAMILIES
        .map(|family| (format!("http-{family}-temp-path"), http::family_temp(&proxy_temp, family)));
    let rows = [
        ("prefix", Some(prefix)),
        ("conf-path", Some(conf)),
        ("error-log-path", Some(error_log)),
        ("http-log-path", access_log),
        ("pid-path", Some(pid)),
        ("http-client-body-temp-path", Some(client_body_temp)),
        ("http-proxy-temp-path", Some(proxy_temp)),
    ];
    let mut text = String::new();
    let families = families.iter().map(|(option, path)| (&**option, Some(path.clone())));
    for (option, path) in rows.into_iter().chain(families) {
        path.iter().for_each(|path| _ = write!(text, " --{option}={}", path.display()));
    }
    if name().is_nginx() {
        text.push_str(NGINX_ONLY);
    }
    text
}

/// A part of nginx that its `configure` can leave out or put in.
struct BuildOption {
    /// The option, after `--with-` or `--without-`.
    option: &'static str,
    /// Whether it is included by default.
    usual: bool,
    /// A directive that exists if the part does.
    mark: &'static str,
}

const fn usual(option: &'static str, mark: &'static str) -> BuildOption {
    BuildOption { option, usual: true, mark }
}

const fn extra(option: &'static str, mark: &'static str) -> BuildOption {
    BuildOption { option, usual: false, mark }
}

/// nginx's parts in the order of its `configure --help`. A part is listed if its marker directive
/// is in a table of directives, so the list maintains itself. The marker is never a directive that
/// is accepted with the value `off` without the part.
const HTTP_PARTS: &[BuildOption] = &[
    extra("http_ssl_module", "ssl_certificate_key"),
    extra("http_v2_module", "http2_recv_buffer_size"),
    extra("http_v3_module", "http3_stream_buffer_size"),
    extra("http_realip_module", "set_real_ip_from"),
    extra("http_addition_module", "add_before_body"),
    extra("http_sub_module", "sub_filter"),
    extra("http_dav_module", "dav_methods"),
    extra("http_flv_module", "flv"),
    extra("http_mp4_module", "mp4"),
    extra("http_gunzip_module", "gunzip_buffers"),
    extra("http_gzip_static_module", "gzip_static"),
    extra("http_auth_request_module", "auth_request"),
    extra("http_random_index_module", "random_index"),
    extra("http_secure_link_module", "secure_link"),
    extra("http_degradation_module", "degradation"),
    extra("http_slice_module", "slice"),
    extra("http_stub_status_module", "stub_status"),
    usual("http_charset_module", "charset"),
    usual("http_gzip_module", "gzip_comp_level"),
    usual("http_ssi_module", "ssi_value_length"),
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
    usual("http-cache", "proxy_cache_path"),
];

const STREAM_PARTS: &[BuildOption] = &[
    extra("stream", "tcp_nodelay"),
    extra("stream_ssl_module", "ssl_certificate_key"),
    extra("stream_realip_module", "set_real_ip_from"),
    extra("stream_ssl_preread_module", "ssl_preread"),
    usual("stream_limit_conn_module", "limit_conn"),
    usual("stream_access_module", "allow"),
    usual("stream_geo_module", "geo"),
    usual("stream_map_module", "map"),
    usual("stream_split_clients_module", "split_clients"),
    usual("stream_return_module", "return"),
    usual("stream_pass_module", "pass"),
    usual("stream_set_module", "set"),
    usual("stream_upstream_hash_module", "hash"),
    usual("stream_upstream_least_conn_module", "least_conn"),
    usual("stream_upstream_least_time_module", "least_time"),
    usual("stream_upstream_random_module", "random"),
    usual("stream_upstream_zone_module", "zone"),
];

/// The `configure` arguments that correspond to this build.
fn parts() -> String {
    let mut arguments = String::from(" --with-debug");
    let http = HTTP_PARTS.iter().map(|part| (part, has(http::TABLES, part.mark)));
    let stream = STREAM_PARTS.iter().map(|part| (part, stream_has(part.mark)));
    for (part, is_here) in http.chain(stream) {
        let way = match (part.usual, is_here) {
            (true, false) => "without",
            (false, true) => "with",
            _ => continue,
        };
        let _ = write!(arguments, " --{way}-{}", part.option);
    }
    arguments
}

/// Modules from elsewhere whose directives Weir has.
const THIRD_PARTY: [&str; 1] = ["ngx_http_headers_more_filter_module"];

/// Whether one of nginx's modules is here, by the name of its file: `ngx_http_map_module`.
pub fn has_module(module: &str) -> bool {
    let mut directives = conf::known::all().iter().filter(|known| known.module == module);
    let is_block = |name: &str| settings::BLOCKS.iter().any(|block| block.name == name);
    let has = |name: &str| match module.split('_').nth(1) {
        Some("http") => has(http::TABLES, name),
        Some("stream") => stream_has(name) || is_block(name),
        _ => false,
    };
    THIRD_PARTY.contains(&module) || directives.any(|known| has(known.name))
}

fn stream_has(directive: &str) -> bool {
    stream::directives().any(|(prefix, row)| directive.strip_prefix(prefix) == Some(row.name))
}

fn has(tables: &[(&str, &str, &[conf::Info])], directive: &str) -> bool {
    tables.iter().any(|(_, prefix, rows)| {
        let local = directive.strip_prefix(prefix);
        local.is_some_and(|local| rows.iter().any(|row| row.name == local))
    })
}
