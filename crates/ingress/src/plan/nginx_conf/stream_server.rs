//! Servers of `stream {}`: plain TCP, TLS passed through by the name in its handshake, and TLS that
//! is terminated.

use std::collections::BTreeMap;

use super::{ConfText, quoted};

/// Where a connection goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StreamTarget {
    /// What it is for, to be read by people.
    pub(crate) title: String,
    /// A group or a variable with one; `None`: connections are closed.
    pub(crate) proxy_pass: Option<String>,
    /// The paths of certificates and keys within the folder, if TLS is terminated.
    pub(crate) certificates: Vec<(String, String)>,
}

/// What a port of `stream {}` does with connections: by host for TLS, and otherwise for the empty
/// host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct StreamPort {
    pub(crate) is_tls: bool,
    pub(crate) targets: BTreeMap<String, StreamTarget>,
}

/// Where `http {}` listens for connections of a port that `stream {}` has: an address of its own
/// for each port, which only this machine reaches.
pub(super) fn http_address(port: u16) -> String {
    own_address(69, port)
}

fn terminating_address(port: u16) -> String {
    own_address(70, port)
}

/// Ports at which nobody else listens, and which need no rights.
fn own_address(network: u8, port: u16) -> String {
    const PORTS: u16 = 20_000;
    format!("127.87.{network}.{}:{}", 74 + port / PORTS, 40_000 + port % PORTS)
}

impl StreamPort {
    /// `has_http`: connections for other hosts belong to `http {}`.
    pub(super) fn write(
        &self,
        port: u16,
        listens: &[String],
        has_http: bool,
        folder: &str,
        out: &mut ConfText,
    ) {
        if !self.is_tls {
            for target in self.targets.values() {
                out.blank();
                out.comment(&target.title);
                out.block("server", |out| {
                    listen_lines(listens, "", out);
                    pass(target, out);
                });
            }
            return;
        }
        for (host, target) in &self.targets {
            self.tls_server(port, listens, host, target, folder, out);
        }
        if !self.targets.contains_key("") {
            other_hosts(port, listens, has_http, out);
        }
    }

    fn tls_server(
        &self,
        port: u16,
        listens: &[String],
        host: &str,
        target: &StreamTarget,
        folder: &str,
        out: &mut ConfText,
    ) {
        let address = terminating_address(port);
        let name = if host.is_empty() { "_" } else { host };
        let default = if host.is_empty() { " default_server" } else { "" };
        out.blank();
        out.comment(&target.title);
        out.block("server", |out| {
            listen_lines(listens, default, out);
            out.line(format!("server_name {name}"));
            out.line("ssl_preread on");
            if target.certificates.is_empty() {
                pass(target, out);
            } else {
                out.line(format!("pass {address}"));
            }
        });
        if target.certificates.is_empty() {
            return;
        }
        out.block("server", |out| {
            out.line(format!("listen {address} ssl{default}"));
            out.line(format!("server_name {name}"));
            for (certificate, key) in &target.certificates {
                out.line(format!("ssl_certificate {}", quoted(&format!("{folder}/{certificate}"))));
                out.line(format!("ssl_certificate_key {}", quoted(&format!("{folder}/{key}"))));
            }
            pass(target, out);
        });
    }
}

fn other_hosts(port: u16, listens: &[String], has_http: bool, out: &mut ConfText) {
    out.blank();
    out.comment("All other names.");
    out.block("server", |out| {
        listen_lines(listens, " default_server", out);
        out.line("ssl_preread on");
        if has_http {
            out.line(format!("pass {}", http_address(port)));
        } else {
            out.line("return \"\"");
        }
    });
}

fn listen_lines(listens: &[String], more: &str, out: &mut ConfText) {
    for listen in listens {
        out.line(format!("listen {listen}{more}"));
    }
}

fn pass(target: &StreamTarget, out: &mut ConfText) {
    match &target.proxy_pass {
        Some(group) => out.line(format!("proxy_pass {group}")),
        None => out.line("return \"\""),
    }
}
