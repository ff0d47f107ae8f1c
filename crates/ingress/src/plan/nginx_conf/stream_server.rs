//! Servers of `stream {}`: plain TCP, TLS passed through by the name in its handshake, and TLS that
//! is terminated.

use std::collections::BTreeMap;

use super::listen::InnerServer;
use super::{ConfText, quoted};
use crate::plan::outcome::{PlannedListen, Settings};

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

impl StreamPort {
    /// `has_http`: connections for other hosts belong to `http {}`.
    pub(super) fn write(
        &self,
        listen: PlannedListen,
        has_http: bool,
        settings: &Settings,
        out: &mut ConfText,
    ) {
        let listens = listen.words(settings);
        if !self.is_tls {
            for target in self.targets.values() {
                out.blank();
                out.comment(&target.title);
                out.block("server", |out| {
                    listen_lines(&listens, "", out);
                    pass(target, out);
                });
            }
            return;
        }
        for (host, target) in &self.targets {
            let inner = listen.inner(InnerServer::Terminating, settings);
            target.tls_server(host, &listens, &inner, &settings.folder, out);
        }
        if !self.targets.contains_key("") {
            let http = has_http.then(|| listen.inner(InnerServer::Http, settings));
            other_hosts(&listens, http.as_deref(), out);
        }
    }
}

impl StreamTarget {
    /// `inner` is where TLS is terminated, if it is.
    fn tls_server(
        &self,
        host: &str,
        listens: &[String],
        inner: &str,
        folder: &str,
        out: &mut ConfText,
    ) {
        let name = if host.is_empty() { "_" } else { host };
        let default = if host.is_empty() { " default_server" } else { "" };
        out.blank();
        out.comment(&self.title);
        out.block("server", |out| {
            listen_lines(listens, default, out);
            out.line(format!("server_name {name}"));
            out.line("ssl_preread on");
            if self.certificates.is_empty() {
                pass(self, out);
            } else {
                out.line(format!("pass {inner}"));
            }
        });
        if self.certificates.is_empty() {
            return;
        }
        out.block("server", |out| {
            out.line(format!("listen {inner} ssl{default}"));
            out.line(format!("server_name {name}"));
            for (certificate, key) in &self.certificates {
                out.line(format!("ssl_certificate {}", quoted(&format!("{folder}/{certificate}"))));
                out.line(format!("ssl_certificate_key {}", quoted(&format!("{folder}/{key}"))));
            }
            pass(self, out);
        });
    }
}

fn other_hosts(listens: &[String], http: Option<&str>, out: &mut ConfText) {
    out.blank();
    out.comment("All other names.");
    out.block("server", |out| {
        listen_lines(listens, " default_server", out);
        out.line("ssl_preread on");
        match http {
            Some(http) => out.line(format!("pass {http}")),
            None => out.line("return \"\""),
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
