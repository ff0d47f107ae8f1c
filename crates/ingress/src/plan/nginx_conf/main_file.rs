//! nginx.conf itself, and the files that it includes.

use std::collections::{BTreeMap, BTreeSet};

use super::conditions::ConditionVariables;
use super::forwarding::forwarded_fields;
use super::groups::NO_SERVERS;
use super::http_server::{Listening, ServerWriter};
use super::listen::InnerServer;
use super::{ConfText, PlannedFiles, PlannedSite, ServiceGroups, StreamPort, quoted};
use crate::plan::outcome::{PlannedListen, Settings};

/// Everything that the configuration serves.
#[derive(Clone, Debug, Default)]
pub(crate) struct PlannedSites {
    /// The ports of `http {}`, and whether connections speak TLS there.
    pub(crate) http_ports: BTreeMap<PlannedListen, bool>,
    /// By port and host; the empty host is for all hosts that no other one is for.
    pub(crate) http: BTreeMap<(PlannedListen, String), PlannedSite>,
    pub(crate) stream: BTreeMap<PlannedListen, StreamPort>,
    pub(crate) groups: ServiceGroups,
    /// Files of routes with maps and the like, for `http {}` and `stream {}`.
    pub(crate) http_includes: BTreeSet<String>,
    pub(crate) stream_includes: BTreeSet<String>,
}

pub(crate) fn write_files(sites: &PlannedSites, settings: &Settings, files: &mut PlannedFiles) {
    let mut out = ConfText::default();
    out.comment("Written by weir-ingress; changes by hand are lost.");
    out.blank();
    out.line("worker_processes auto");
    out.line(format!("pid {}", quoted(&format!("{}/weir.pid", settings.folder))));
    out.line("error_log stderr notice");
    let socket = &settings.control_socket;
    let unix = if socket.starts_with("unix:") { "" } else { "unix:" };
    out.line(format!("control_socket {}", quoted(&format!("{unix}{socket}"))));
    out.blank();
    out.block("events", |out| out.line("worker_connections 16384"));
    out.blank();
    out.block("http", |out| http_block(sites, settings, files, out));
    if !sites.stream.is_empty() {
        out.blank();
        out.block("stream", |out| stream_block(sites, settings, files, out));
    }
    files.insert("nginx.conf".to_owned(), out.into_bytes());
}

fn http_block(
    sites: &PlannedSites,
    settings: &Settings,
    files: &mut PlannedFiles,
    out: &mut ConfText,
) {
    let folder = settings.folder.as_str();
    out.raw(HTTP_SETTINGS);
    trust_proxies(&settings.trusted_proxies, out);
    for family in ["proxy", "grpc"] {
        forwarded_fields(family, "$client_host", out);
    }
    out.blank();
    out.comment("Where requests go for a group that has no servers.");
    out.block("server", |out| {
        out.line(format!("listen {NO_SERVERS}"));
        out.line("return 503");
    });
    includes(&sites.groups.write(false, folder, files), out);
    let routes: Vec<_> = sites.http_includes.iter().map(|file| include(folder, file)).collect();
    includes(&routes, out);
    let mut writer = ServerWriter { folder, conditions: ConditionVariables::default(), choices: 0 };
    let servers = http_servers(sites, settings, &mut writer, files);
    let conditions = writer.conditions.into_text();
    if !conditions.is_empty() {
        files.insert("conditions.conf".to_owned(), conditions.into_bytes());
        includes(&[include(folder, "conditions.conf")], out);
    }
    includes(&servers, out);
}

/// The proxies in front tell the client's address and scheme; nobody else does.
fn trust_proxies(networks: &[String], out: &mut ConfText) {
    out.block("geo $realip_remote_addr $is_from_proxy", |out| {
        out.line("default \"\"");
        networks.iter().for_each(|network| out.line(format!("{network} 1")));
    });
    for network in networks {
        out.line(format!("set_real_ip_from {network}"));
    }
    if !networks.is_empty() {
        out.line("real_ip_header X-Forwarded-For");
        out.line("real_ip_recursive on");
    }
    out.blank();
}

fn include(folder: &str, file: &str) -> String {
    format!("include {}", quoted(&format!("{folder}/{file}")))
}

fn includes(lines: &[String], out: &mut ConfText) {
    out.blank();
    for line in lines {
        out.line(line);
    }
}

fn http_servers(
    sites: &PlannedSites,
    settings: &Settings,
    writer: &mut ServerWriter<'_>,
    files: &mut PlannedFiles,
) -> Vec<String> {
    let mut lines = Vec::new();
    let nothing = PlannedSite::default();
    for (&listen, &is_tls) in &sites.http_ports {
        let default = (listen, String::new());
        let own = sites.http.range(default.clone()..).take_while(|((own, _), _)| *own == listen);
        let others = own.filter(|((_, host), _)| !host.is_empty());
        let default = sites.http.get(&default).unwrap_or(&nothing);
        let all = std::iter::once(("", default)).chain(others.map(|(key, site)| (&*key.1, site)));
        for (host, site) in all {
            let has_stream = sites.stream.contains_key(&listen);
            let addresses = if has_stream {
                let inner = listen.inner(InnerServer::Http, settings);
                vec![format!("{inner} server_port={}", listen.port)]
            } else {
                listen.words(settings)
            };
            let listening = Listening { addresses, is_tls, is_default: host.is_empty() };
            let text = writer.server(host, site, &listening);
            let file = format!("servers/{}.{}.conf", listen.file_name(), file_name(host));
            lines.push(include(&settings.folder, &file));
            files.insert(file, text.into_bytes());
        }
    }
    lines
}

/// No host has an underscore.
fn file_name(host: &str) -> String {
    if host.is_empty() { "_".to_owned() } else { host.replace('*', "_") }
}

fn stream_block(
    sites: &PlannedSites,
    settings: &Settings,
    files: &mut PlannedFiles,
    out: &mut ConfText,
) {
    includes(&sites.groups.write(true, &settings.folder, files), out);
    let routes: Vec<_> =
        sites.stream_includes.iter().map(|file| include(&settings.folder, file)).collect();
    includes(&routes, out);
    for (&listen, stream) in &sites.stream {
        let has_http = sites.http_ports.contains_key(&listen);
        let mut text = ConfText::default();
        stream.write(listen, has_http, settings, &mut text);
        let file = format!("servers/stream-{}.conf", listen.file_name());
        out.line(include(&settings.folder, &file));
        files.insert(file, text.into_bytes());
    }
}

const HTTP_SETTINGS: &str = r#"access_log /dev/stdout;
http2 on;
server_tokens off;
grpc_errors on;
recursive_error_pages on;

# A dollar that names no variable.
geo $dollar {
    default "$";
}
map $http_upgrade $connection_upgrade {
    default upgrade;
    "" close;
}
map $http_host $client_host {
    default $http_host;
    "" $host;
}
# The scheme of the client, also where a trusted proxy terminates TLS.
map "$is_from_proxy$http_x_forwarded_proto" $client_scheme {
    default $scheme;
    1http http;
    1https https;
}
# The port in redirects to this server: nothing where the scheme implies it.
map $scheme:$server_port $redirect_port {
    default :$server_port;
    http:80 "";
    https:443 "";
}
"#;
