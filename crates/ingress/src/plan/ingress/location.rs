//! The location of a path: everything that annotations say about it.

use serde_json::Value;

use super::access::AccessSettings;
use super::annotations::{ANY_SIZE, Annotations, BUFFER_SIZE, shown_size, url_template};
use super::canary::Canary;
use super::server::{HttpsRedirect, own_object, snippet};
use super::target::{BalanceSettings, ServiceReference};
use crate::plan::names;
use crate::plan::nginx_conf::{
    ConfText, CrossOrigin, forwarded_fields, is_origin, literal, no_variables, quoted,
    quoted_template, regex_of,
};
use crate::plan::object::texts;
use crate::plan::patterns::check_pattern;
use crate::plan::planner::Planner;
use crate::plan::route_files::RouteFiles;
use crate::{ResourceKey, ResourceKind};

#[derive(Clone, Debug, Default)]
pub(super) struct LocationSettings {
    pub(super) has_regex: bool,
    pub(super) app_root: Option<String>,
    is_grpc: bool,
    is_tls: bool,
    /// A template with the groups of the path's expression.
    rewrite: Option<String>,
    redirect: Option<String>,
    lines: ConfText,
    access: AccessSettings,
    balance: BalanceSettings,
    /// A word of nginx.conf.
    host: Option<String>,
    errors: Vec<u64>,
    snippet: Option<String>,
}

impl LocationSettings {
    pub(super) fn read(
        planner: &mut Planner<'_>,
        own: &ResourceKey,
        annotations: &mut Annotations<'_>,
        files: &mut RouteFiles,
    ) -> Self {
        let mut settings = Self {
            app_root: annotations
                .parsed("app-root", |text| url_template(text).filter(|url| url.starts_with('/'))),
            access: AccessSettings::read(planner, own, annotations, files),
            balance: BalanceSettings::read(annotations),
            ..Self::default()
        };
        settings.read_protocol(annotations);
        settings.read_rewrite(annotations);
        settings.read_redirect(annotations);
        settings.read_proxy(annotations);
        settings.read_proxy_tls(planner, own, annotations);
        settings.read_fields(planner, own, annotations);
        settings.read_cross_origin(own, annotations, files);
        settings.read_errors(planner, own, annotations, files);
        settings.snippet = snippet(planner, annotations, "configuration-snippet");
        settings
    }

    fn family(&self) -> &'static str {
        if self.is_grpc { "grpc" } else { "proxy" }
    }

    fn read_protocol(&mut self, annotations: &mut Annotations<'_>) {
        match annotations.text("backend-protocol").unwrap_or("HTTP") {
            "HTTP" => {}
            "HTTPS" => self.is_tls = true,
            "GRPC" => self.is_grpc = true,
            "GRPCS" => (self.is_grpc, self.is_tls) = (true, true),
            _ => {
                let why = "its value is not supported; the location is closed";
                annotations.refuse("backend-protocol", why);
                self.access.closed = Some("backend-protocol".to_owned());
            }
        }
    }

    fn read_rewrite(&mut self, annotations: &mut Annotations<'_>) {
        let uses_regex = annotations.is_on("use-regex");
        self.rewrite = annotations.parsed("rewrite-target", rewrite_template);
        self.has_regex = uses_regex || self.rewrite.is_some();
    }

    fn read_redirect(&mut self, annotations: &mut Annotations<'_>) {
        let code = |annotations: &mut Annotations<'_>, name, default| {
            let code = annotations.number(name, 399).filter(|code| *code >= 300);
            code.unwrap_or(default)
        };
        let permanent_code = code(annotations, "permanent-redirect-code", 301);
        let temporal_code = code(annotations, "temporal-redirect-code", 302);
        let permanent = annotations.parsed("permanent-redirect", url_template);
        let temporal = annotations.parsed("temporal-redirect", url_template);
        let permanent = permanent.map(|url| (permanent_code, url));
        let redirect = temporal.map(|url| (temporal_code, url)).or(permanent);
        self.redirect =
            redirect.map(|(code, url)| format!("return {code} {}", quoted_template(&url)));
    }

    fn read_proxy(&mut self, annotations: &mut Annotations<'_>) {
        let family = self.family();
        if let Some(size) = annotations.size("proxy-body-size", ANY_SIZE) {
            self.lines.line(format!("client_max_body_size {size}"));
        }
        for (name, directive) in [
            ("proxy-connect-timeout", "connect_timeout"),
            ("proxy-send-timeout", "send_timeout"),
            ("proxy-read-timeout", "read_timeout"),
            ("proxy-next-upstream-timeout", "next_upstream_timeout"),
        ] {
            if let Some(time) = annotations.time(name) {
                self.lines.line(format!("{family}_{directive} {time}"));
            }
        }
        if let Some(tries) = annotations.number("proxy-next-upstream-tries", 1000) {
            self.lines.line(format!("{family}_next_upstream_tries {tries}"));
        }
        if let Some(cases) = annotations.parsed("proxy-next-upstream", next_upstream) {
            self.lines.line(format!("{family}_next_upstream {cases}"));
        }
        self.read_buffers(annotations);
    }

    fn read_buffers(&mut self, annotations: &mut Annotations<'_>) {
        let mut lines = Vec::new();
        for (name, directive) in [
            ("proxy-buffering", "proxy_buffering"),
            ("proxy-request-buffering", "proxy_request_buffering"),
        ] {
            if let Some(is_on) = annotations.switch(name) {
                lines.push(format!("{directive} {}", if is_on { "on" } else { "off" }));
            }
        }
        let bytes = annotations.bytes("proxy-buffer-size", BUFFER_SIZE);
        let size = bytes.map(shown_size);
        let number = annotations.number("proxy-buffers-number", 1000).filter(|number| *number > 1);
        if let Some(size) = &size {
            lines.push(format!("proxy_buffer_size {size}"));
        }
        if size.is_some() || number.is_some() {
            let (number, size) = (number.unwrap_or(4), size.unwrap_or_else(|| "4k".to_owned()));
            lines.push(format!("proxy_buffers {number} {size}"));
            // Its default may be smaller than a buffer of this size.
            lines.push(format!("proxy_busy_buffers_size {size}"));
        }
        /// What a buffer has unless an annotation says otherwise.
        const BUFFER_DEFAULT: u64 = 8 << 10;
        match annotations.bytes("proxy-max-temp-file-size", ANY_SIZE) {
            None => {}
            Some(file) if file > 0 && file < bytes.unwrap_or(BUFFER_DEFAULT) => {
                annotations.refuse("proxy-max-temp-file-size", "it is less than a buffer");
            }
            Some(file) => lines.push(format!("proxy_max_temp_file_size {}", shown_size(file))),
        }
        if let Some(version) = annotations.parsed("proxy-http-version", |text| {
            ["1.0", "1.1", "2"].into_iter().find(|one| *one == text)
        }) {
            lines.push(format!("proxy_http_version {version}"));
        }
        if let Some(size) = annotations.size("client-body-buffer-size", BUFFER_SIZE) {
            self.lines.line(format!("client_body_buffer_size {size}"));
        }
        for line in lines.iter().filter(|_| !self.is_grpc) {
            self.lines.line(line);
        }
    }

    fn read_proxy_tls(
        &mut self,
        planner: &mut Planner<'_>,
        own: &ResourceKey,
        annotations: &mut Annotations<'_>,
    ) {
        let family = self.family();
        let secret = annotations.text("proxy-ssl-secret");
        let verify = annotations.switch("proxy-ssl-verify").unwrap_or(false);
        let depth = annotations.number("proxy-ssl-verify-depth", 20);
        let name =
            annotations.parsed("proxy-ssl-name", |text| names::is_name(text).then_some(text));
        let server_name = annotations.switch("proxy-ssl-server-name").unwrap_or(name.is_some());
        let folder = planner.settings.folder.clone();
        let mut close = |annotations: &mut Annotations<'_>, why: &str| {
            annotations.refuse("proxy-ssl-secret", &format!("{why}; the location is closed"));
            self.access.closed = Some(format!("proxy-ssl-secret: {why}"));
        };
        let secret = match secret.map(|secret| own_object(own, secret)).transpose() {
            Ok(secret) => secret,
            Err(why) => return close(annotations, &why),
        };
        let mut lines = Vec::new();
        let with_certificate =
            secret.as_ref().filter(|secret| planner.secret_data(secret, "tls.crt").is_ok());
        if let Some(secret) = with_certificate {
            match planner.certificate(secret) {
                Ok((certificate, key)) => {
                    let path = |file: &str| quoted(&format!("{folder}/{file}"));
                    lines.push(format!("{family}_ssl_certificate {}", path(&certificate)));
                    lines.push(format!("{family}_ssl_certificate_key {}", path(&key)));
                }
                Err(why) => return close(annotations, &why),
            }
        }
        if verify {
            let file = secret.as_ref().map(|secret| planner.authorities(secret));
            match file.unwrap_or_else(|| Err("proxy-ssl-verify needs its ca.crt".to_owned())) {
                Ok(file) => {
                    let path = quoted(&format!("{folder}/{file}"));
                    lines.push(format!("{family}_ssl_trusted_certificate {path}"));
                    lines.push(format!("{family}_ssl_verify on"));
                    lines.push(format!("{family}_ssl_verify_depth {}", depth.unwrap_or(1)));
                }
                Err(why) => return close(annotations, &why),
            }
        }
        if let Some(name) = name {
            lines.push(format!("{family}_ssl_name {name}"));
        }
        if server_name {
            lines.push(format!("{family}_ssl_server_name on"));
        }
        lines.iter().for_each(|line| self.lines.line(line));
    }

    fn read_fields(
        &mut self,
        planner: &Planner<'_>,
        own: &ResourceKey,
        annotations: &mut Annotations<'_>,
    ) {
        self.host = annotations.parsed("upstream-vhost", |text| match text {
            "$host" => Some("$host".to_owned()),
            "$http_host" => Some("$client_host".to_owned()),
            text => {
                let host = text.split(':').next().unwrap_or_default();
                let is_port = |port: &str| port.parse::<u16>().is_ok();
                let has_port = text.split_once(':').is_none_or(|(_, port)| is_port(port));
                (names::is_name(host) && has_port).then(|| text.to_owned())
            }
        });
        let prefix = annotations.parsed("x-forwarded-prefix", |text| {
            names::is_printable(text).then(|| literal(&format!("X-Forwarded-Prefix: {text}")))
        });
        if let Some(prefix) = prefix {
            self.lines.line(format!("more_set_input_headers {prefix}"));
        }
        let Some(map) = annotations.text("custom-headers") else { return };
        match custom_fields(planner, own, map) {
            Ok(lines) => lines.iter().for_each(|line| self.lines.line(line)),
            Err(why) => annotations.refuse("custom-headers", &why),
        }
    }

    fn read_cross_origin(
        &mut self,
        own: &ResourceKey,
        annotations: &mut Annotations<'_>,
        files: &mut RouteFiles,
    ) {
        let is_origin = |text: &str| text == "*" || is_origin(text);
        let is_name = |text: &str| text == "*" || names::is_token(text);
        let is_on = annotations.is_on("enable-cors");
        let origins = annotations.several("cors-allow-origin", is_origin);
        let methods = annotations.several("cors-allow-methods", is_name);
        let headers = annotations.several("cors-allow-headers", is_name);
        let exposed = annotations.several("cors-expose-headers", is_name);
        let credentials = annotations.switch("cors-allow-credentials");
        let age = annotations.number("cors-max-age", 1 << 31);
        if !is_on {
            return;
        }
        let joined = |values: Option<Vec<String>>, default: &str| {
            values.map_or_else(|| default.to_owned(), |values| values.join(", "))
        };
        let cross_origin = CrossOrigin {
            origins: origins.unwrap_or_else(|| vec!["*".to_owned()]),
            methods: joined(methods, "GET, PUT, POST, DELETE, PATCH, OPTIONS"),
            headers: joined(headers, CORS_HEADERS),
            exposed: joined(exposed, ""),
            allows_credentials: credentials.unwrap_or(true),
            age_max: age.map_or(1_728_000, |age| age as i64),
        };
        let variable = names::variable("ingress", own, "cors");
        cross_origin.write(&variable, &mut files.maps, &mut self.lines);
    }

    /// Pages of errors come from another Service.
    fn read_errors(
        &mut self,
        planner: &mut Planner<'_>,
        own: &ResourceKey,
        annotations: &mut Annotations<'_>,
        files: &mut RouteFiles,
    ) {
        let backend = annotations.text("default-backend");
        let codes = annotations.several("custom-http-errors", |text| {
            text.parse::<u16>().is_ok_and(|code| (400..=599).contains(&code) && code != 418)
        });
        let (Some(codes), Some(backend)) = (&codes, backend) else {
            match (codes, backend) {
                (Some(_), None) => {
                    annotations.refuse("custom-http-errors", "default-backend is missing")
                }
                (None, Some(_)) => {
                    annotations
                        .refuse("default-backend", "it is used with custom-http-errors only");
                }
                _ => {}
            }
            return;
        };
        let reference = ServiceReference::named(&own.namespace, backend, None);
        let port = match reference.port(planner) {
            Ok(port) => port,
            Err(why) => return annotations.refuse("default-backend", &why),
        };
        let group = planner.group(&port, false, "", &[]);
        let codes: std::collections::BTreeSet<u64> =
            codes.iter().filter_map(|code| code.parse().ok()).collect();
        for code in &codes {
            let location = format!("location @{}/error-{code}", files.id);
            files.locations.block(location, |out| {
                out.line(format!("more_set_input_headers \"X-Code: {code}\""));
                out.line("more_set_input_headers \"X-Format: $http_accept\"");
                out.line("more_set_input_headers \"X-Original-URI: $request_uri\"");
                out.line(format!("more_set_input_headers \"X-Namespace: {}\"", own.namespace));
                out.line(format!("more_set_input_headers \"X-Ingress-Name: {}\"", own.name));
                out.line("proxy_method GET");
                out.line("proxy_pass_request_body off");
                out.line(format!("proxy_pass http://{group}"));
            });
        }
        self.errors = codes.into_iter().collect();
    }

    /// The body of the location for a path, to which `backend` belongs.
    #[expect(clippy::too_many_arguments, reason = "one path of one host, with all it depends on")]
    pub(super) fn body(
        &self,
        planner: &mut Planner<'_>,
        own: &ResourceKey,
        path: &str,
        (number, backend, canary): (usize, &Value, Option<Canary<'_>>),
        https: HttpsRedirect,
        files: &mut RouteFiles,
        annotations: &mut Annotations<'_>,
    ) -> ConfText {
        let mut out = ConfText::default();
        https_redirect(https, &mut out);
        if let Some(why) = &self.access.closed {
            out.comment(why);
            out.line("return 503");
            return out;
        }
        if let Some(redirect) = &self.redirect {
            out.line(redirect);
            return out;
        }
        out.raw(self.access.lines.as_str());
        out.raw(self.lines.as_str());
        if let Some(rewrite) = &self.rewrite {
            let path = match check_pattern(path) {
                Ok(()) => path.to_owned(),
                Err(_) => regex_of(path),
            };
            let pattern = quoted(&format!("(?i)^(?:{path})"));
            out.line(format!("rewrite {pattern} {} break", quoted_template(rewrite)));
        }
        if !self.errors.is_empty() {
            out.line(format!("{}_intercept_errors on", self.family()));
        }
        for code in &self.errors {
            out.line(format!("error_page {code} = @{}/error-{code}", files.id));
        }
        match self.target(planner, own, (number, backend, canary), files) {
            Ok(target) => self.pass(&target, &mut out),
            Err(why) => {
                out.comment(&why);
                out.line("return 503");
                annotations.warnings.push(why);
            }
        }
        if let Some(snippet) = &self.snippet {
            out.comment("configuration-snippet");
            out.raw(snippet);
        }
        out
    }

    /// A group, or a variable with one.
    fn target(
        &self,
        planner: &mut Planner<'_>,
        own: &ResourceKey,
        (number, backend, canary): (usize, &Value, Option<Canary<'_>>),
        files: &mut RouteFiles,
    ) -> Result<String, String> {
        let port = ServiceReference::read(own, backend).port(planner)?;
        let main = self.balance.group(planner, own, &port);
        let Some(canary) = canary else { return Ok(main) };
        let port = canary.backend.port(planner)?;
        let other = self.balance.group(planner, own, &port);
        let variable = names::variable("ingress", own, &format!("path_{number}"));
        canary.write(&variable, &main, &other, &mut files.maps);
        Ok(format!("${variable}"))
    }

    fn pass(&self, target: &str, out: &mut ConfText) {
        let family = self.family();
        if self.host.is_some() || !self.access.fields.is_empty() {
            forwarded_fields(family, self.host.as_deref().unwrap_or("$client_host"), out);
        }
        for (name, variable) in &self.access.fields {
            out.line(format!("{family}_set_header {name} {variable}"));
        }
        let scheme = match (self.is_grpc, self.is_tls) {
            (false, false) => "http",
            (false, true) => "https",
            (true, false) => "grpc",
            (true, true) => "grpcs",
        };
        out.line(format!("{family}_pass {scheme}://{target}"));
    }
}

pub(super) fn https_redirect(redirect: HttpsRedirect, out: &mut ConfText) {
    let condition = match redirect {
        HttpsRedirect::Never => return,
        HttpsRedirect::Plain => "$scheme = http",
        HttpsRedirect::Forced => "$client_scheme = http",
    };
    out.block(format!("if ({condition})"), |out| {
        out.line("return 308 https://$host$request_uri");
    });
}

/// A path with groups of the expression: `/$2`.
fn rewrite_template(text: &str) -> Option<String> {
    let is_sound = |next: char| !next.is_whitespace() && !next.is_control();
    if !text.starts_with('/') || !names::is_printable(text) || !text.chars().all(is_sound) {
        return (text.starts_with('$') && text.len() == 2 && text.as_bytes()[1].is_ascii_digit())
            .then(|| text.to_owned());
    }
    let mut parts = text.split('$');
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        if part.starts_with(|next: char| next.is_ascii_digit()) {
            out.push('$');
            out.push_str(part);
        } else {
            out.push_str(&no_variables("$"));
            out.push_str(part);
        }
    }
    Some(out)
}

fn next_upstream(text: &str) -> Option<String> {
    const CASES: [&str; 12] = [
        "error",
        "timeout",
        "invalid_header",
        "http_500",
        "http_502",
        "http_503",
        "http_504",
        "http_403",
        "http_404",
        "http_429",
        "non_idempotent",
        "off",
    ];
    let cases: Vec<_> = text.split_whitespace().collect();
    let mut seen = std::collections::BTreeSet::new();
    let is_sound = cases.iter().all(|case| CASES.contains(case) && seen.insert(*case));
    (is_sound && !cases.is_empty()).then(|| cases.join(" "))
}

/// Fields of responses, from a ConfigMap.
fn custom_fields(
    planner: &Planner<'_>,
    own: &ResourceKey,
    map: &str,
) -> Result<Vec<String>, String> {
    let key = own_object(own, map)?;
    let map = planner.objects.get(ResourceKind::ConfigMap, &key);
    let map = map.ok_or_else(|| format!("the ConfigMap {} does not exist", key.name))?;
    let mut lines = Vec::new();
    for (name, value) in texts(map, "/data") {
        let is_ours = ["connection", "content-length", "transfer-encoding"]
            .contains(&name.to_ascii_lowercase().as_str());
        let is_sound = names::is_plain_field(name) && !name.starts_with('-') && !is_ours;
        if !is_sound || !names::is_printable(value) {
            return Err(format!("the header field {name:?} or its value is not valid"));
        }
        lines.push(format!("more_set_headers {}", literal(&format!("{name}: {value}"))));
    }
    Ok(lines)
}

const CORS_HEADERS: &str = "DNT, Keep-Alive, User-Agent, X-Requested-With, If-Modified-Since, \
                            Cache-Control, Content-Type, Range, Authorization";
