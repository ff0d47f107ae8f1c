//! Canaries: an Ingress that takes a share of the requests of another one with the same host and
//! path.

use std::collections::BTreeMap;

use serde_json::Value;

use super::annotations::Annotations;
use super::target::ServiceReference;
use crate::ResourceKey;
use crate::plan::names::{self, field_variable};
use crate::plan::nginx_conf::{ConfText, quoted, regex_of, split};
use crate::plan::object::{list, text};
use crate::plan::patterns::check_pattern;

/// A canary for one path.
#[derive(Clone, Debug)]
pub(super) struct Canary<'v> {
    pub(super) backend: ServiceReference<'v>,
    rules: CanaryRules,
}

/// Who is sent to the canary: what the field says, or else the cookie, or else the weight.
#[derive(Clone, Debug, Default)]
struct CanaryRules {
    field: Option<(String, FieldRule)>,
    cookie: Option<String>,
    weight: (u64, u64),
}

#[derive(Clone, Debug)]
enum FieldRule {
    /// `always` and `never`.
    Words,
    /// An expression for the whole value.
    Pattern(String),
}

/// By namespace, host and path.
#[derive(Debug, Default)]
pub(super) struct Canaries<'v>(BTreeMap<(&'v str, String, &'v str), Canary<'v>>);

pub(super) fn is_canary(annotations: &mut Annotations<'_>) -> bool {
    annotations.is_on("canary")
}

/// Reads all annotations of canaries, so that bad ones are reported.
pub(super) fn read_all(annotations: &mut Annotations<'_>) {
    let _ = CanaryRules::read(annotations);
}

impl<'v> Canaries<'v> {
    /// The oldest canary of a path wins.
    pub(super) fn read(all: &[(&'v ResourceKey, &'v Value)]) -> Self {
        let mut canaries = Self::default();
        for (own, ingress) in all {
            let mut annotations = Annotations::of(ingress);
            if !is_canary(&mut annotations) {
                continue;
            }
            let rules = CanaryRules::read(&mut annotations);
            for rule in list(ingress, "/spec/rules") {
                let host = text(rule, "/host").unwrap_or_default().to_ascii_lowercase();
                for path in list(rule, "/http/paths") {
                    let backend = path.pointer("/backend").unwrap_or(&Value::Null);
                    let backend = ServiceReference::read(own, backend);
                    let canary = Canary { backend, rules: rules.clone() };
                    let place = (own.namespace.as_str(), host.clone(), path_of(path));
                    canaries.0.entry(place).or_insert(canary);
                }
            }
        }
        canaries
    }

    pub(super) fn of(
        &self,
        own: &'v ResourceKey,
        host: &str,
        path: &'v Value,
    ) -> Option<Canary<'v>> {
        self.0.get(&(own.namespace.as_str(), host.to_owned(), path_of(path))).cloned()
    }
}

fn path_of(path: &Value) -> &str {
    text(path, "/path").filter(|path| !path.is_empty()).unwrap_or("/")
}

impl CanaryRules {
    fn read(annotations: &mut Annotations<'_>) -> Self {
        let weight = annotations.number("canary-weight", 1_000_000).unwrap_or(0);
        let total = annotations.number("canary-weight-total", 1_000_000).unwrap_or(100).max(1);
        let name = annotations.parsed("canary-by-header", |text| {
            names::is_plain_field(text).then(|| text.to_owned())
        });
        let value = annotations.parsed("canary-by-header-value", |text| {
            names::is_printable(text).then(|| regex_of(text))
        });
        let pattern = annotations.parsed("canary-by-header-pattern", |text| {
            check_pattern(text).ok().map(|()| format!("(?:{text})"))
        });
        let cookie = annotations.parsed("canary-by-cookie", |text| {
            let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
            text.bytes().all(is_plain).then(|| text.to_owned())
        });
        let rule = value.or(pattern).map_or(FieldRule::Words, FieldRule::Pattern);
        let field = name.map(|name| (name, rule));
        Self { field, cookie, weight: (weight.min(total), total) }
    }
}

impl Canary<'_> {
    /// Writes the maps by which `variable` becomes one of the two groups.
    pub(super) fn write(&self, variable: &str, main: &str, canary: &str, maps: &mut ConfText) {
        let rules = &self.rules;
        let (weight, total) = rules.weight;
        let mut otherwise = match weight {
            0 => main.to_owned(),
            _ => {
                let shares = [(weight, canary.to_owned()), (total - weight, main.to_owned())];
                let share = format!("{variable}_share");
                split(maps, "$request_id", &share, &shares);
                format!("${share}")
            }
        };
        if let Some(cookie) = &rules.cookie {
            let by_cookie = format!("${variable}_cookie");
            words(&format!("$cookie_{cookie}"), &by_cookie, (main, canary, &otherwise), maps);
            otherwise = by_cookie;
        }
        let own = format!("${variable}");
        match &rules.field {
            None => maps.block(format!("map \"\" {own}"), |maps| {
                maps.line(format!("default {otherwise}"));
            }),
            Some((name, FieldRule::Words)) => {
                words(&field_variable(name), &own, (main, canary, &otherwise), maps);
            }
            Some((name, FieldRule::Pattern(pattern))) => {
                maps.block(format!("map {} {own}", field_variable(name)), |maps| {
                    maps.line(format!("default {otherwise}"));
                    maps.line(format!("{} {canary}", quoted(&format!("~^{pattern}\\z"))));
                });
            }
        }
    }
}

fn words(
    subject: &str,
    variable: &str,
    (main, canary, otherwise): (&str, &str, &str),
    maps: &mut ConfText,
) {
    maps.block(format!("map {subject} {variable}"), |maps| {
        maps.line(format!("always {canary}"));
        maps.line(format!("never {main}"));
        maps.line(format!("default {otherwise}"));
    });
}
