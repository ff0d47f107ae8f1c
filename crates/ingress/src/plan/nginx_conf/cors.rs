//! Cross-origin requests: which origins may ask, and the answer to a browser's question.

use super::text::{no_variables, quoted, regex_of};
use super::{ConfText, quoted_template};
use crate::plan::names;

/// What browsers are told. Empty lists are not told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CrossOrigin {
    pub(crate) origins: Vec<String>,
    pub(crate) methods: String,
    pub(crate) headers: String,
    pub(crate) exposed: String,
    pub(crate) allows_credentials: bool,
    pub(crate) age_max: i64,
}

const ASKED_METHOD: &str = "$http_access_control_request_method";
const ASKED_HEADERS: &str = "$http_access_control_request_headers";

/// A scheme and a host, which may begin with `*.`, and a port.
pub(crate) fn is_origin(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once("://") else { return false };
    let (host, port) = rest.split_once(':').map_or((rest, None), |(host, port)| (host, Some(port)));
    let is_scheme = !scheme.is_empty()
        && scheme.len() < 20
        && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
    let is_host =
        host == "*" || names::is_name(&host.trim_start_matches("*.").to_ascii_lowercase());
    is_scheme && is_host && port.is_none_or(|port| port == "*" || port.parse::<u16>().is_ok())
}

impl CrossOrigin {
    /// Writes the map of allowed origins, and the lines of a location.
    pub(crate) fn write(&self, variable: &str, maps: &mut ConfText, out: &mut ConfText) {
        let origin = format!("${variable}_origin");
        maps.block(format!("map $http_origin {origin}"), |maps| {
            maps.line("default \"\"");
            for one in &self.origins {
                // With credentials, a browser does not accept a star.
                let (pattern, value) = match one.as_str() {
                    "*" if self.allows_credentials => ("~.".to_owned(), "$http_origin"),
                    "*" => ("~".to_owned(), "*"),
                    one => (format!("~*^{}\\z", origin_pattern(one)), "$http_origin"),
                };
                maps.line(format!("{} {value}", quoted(&pattern)));
            }
        });
        let is_told = |name: &str| format!("${variable}_{name}");
        let mut told = |name: &str, field: &str, value: &str| {
            // With credentials, a star allows nothing but what is called a star.
            let value = match (name, value) {
                (_, "") => return,
                ("methods", "*") if self.allows_credentials => ASKED_METHOD.to_owned(),
                ("headers", "*") if self.allows_credentials => ASKED_HEADERS.to_owned(),
                (_, value) => no_variables(value),
            };
            let told = is_told(name);
            maps.block(format!("map {origin} {told}"), |maps| {
                maps.line("default ".to_owned() + &quoted_template(&value));
                maps.line("\"\" \"\"");
            });
            out.line(format!("more_set_headers \"{field}: {told}\""));
        };
        told(
            "credentials",
            "Access-Control-Allow-Credentials",
            match self.allows_credentials {
                true => "true",
                false => "",
            },
        );
        told("methods", "Access-Control-Allow-Methods", &self.methods);
        told("headers", "Access-Control-Allow-Headers", &self.headers);
        told("exposed", "Access-Control-Expose-Headers", &self.exposed);
        told("age", "Access-Control-Max-Age", &self.age_max.to_string());
        out.line(format!("more_set_headers \"Access-Control-Allow-Origin: {origin}\""));
        if self.origins.iter().any(|one| one != "*") {
            out.line("more_set_headers -a \"Vary: Origin\"");
        }
        // A browser asks first, with the method that it wants to use; also where it may not.
        let asked = format!("$request_method:{ASKED_METHOD}:$http_origin");
        maps.block(format!("map {asked} ${variable}_preflight"), |maps| {
            maps.line("default 0");
            maps.line("\"~^OPTIONS:[^:]+:.\" 1");
        });
        out.block(format!("if (${variable}_preflight)"), |out| out.line("return 204"));
    }
}

fn origin_pattern(origin: &str) -> String {
    let (scheme, rest) = origin.split_once("://").unwrap_or(("", origin));
    let (host, port) = rest.split_once(':').map_or((rest, None), |(host, port)| (host, Some(port)));
    let host = match host.strip_prefix("*.") {
        _ if host == "*" => "[^:/]+".to_owned(),
        Some(rest) => format!("[^:/]+\\.{}", regex_of(rest)),
        None => regex_of(host),
    };
    let port = match port {
        None => String::new(),
        Some("*") => "(?::[0-9]+)?".to_owned(),
        Some(port) => format!(":{}", regex_of(port)),
    };
    format!("{}://{host}{port}", regex_of(scheme))
}
