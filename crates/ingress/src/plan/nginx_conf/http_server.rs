//! The file of one virtual server of `http {}`.

use std::collections::{BTreeMap, BTreeSet};

use super::conditions::ConditionVariables;
use super::matching::{MatchCandidate, Place, places};
use super::{ConfText, PlannedSite, quoted};

/// Where a server listens, as words of `listen`.
pub(super) struct Listening {
    pub(super) addresses: Vec<String>,
    pub(super) is_tls: bool,
    pub(super) is_default: bool,
}

/// What the files of all servers share.
pub(super) struct ServerWriter<'a> {
    pub(super) folder: &'a str,
    pub(super) conditions: ConditionVariables,
    pub(super) choices: usize,
}

/// Where a request goes whose choice fell on nothing.
const NOTHING: &str = "@nothing";

impl ServerWriter<'_> {
    pub(super) fn server(
        &mut self,
        host: &str,
        site: &PlannedSite,
        listening: &Listening,
    ) -> ConfText {
        let (mut maps, mut locations) = (ConfText::default(), ConfText::default());
        let mut named = BTreeMap::new();
        for (place, candidates) in places(&site.entries) {
            locations.blank();
            self.location(&place, &candidates, &mut maps, &mut locations, &mut named);
        }
        for (name, (title, body)) in &named {
            locations.blank();
            self.body(&format!("location {name}"), title, body, &mut locations);
        }
        if maps.as_str().contains(NOTHING) {
            locations.blank();
            locations.block(format!("location {NOTHING}"), |out| out.line("return 404"));
        }
        let mut out = maps;
        out.blank();
        out.block("server", |out| {
            self.head(host, site, listening, out);
            out.blank();
            out.raw(locations.as_str());
        });
        out
    }

    fn head(&self, host: &str, site: &PlannedSite, listening: &Listening, out: &mut ConfText) {
        for address in &listening.addresses {
            let tls = if listening.is_tls { " ssl" } else { "" };
            let default = if listening.is_default { " default_server" } else { "" };
            out.line(format!("listen {address}{tls}{default}"));
        }
        out.line(format!("server_name {}", if host.is_empty() { "_" } else { host }));
        for (certificate, key) in &site.certificates {
            out.line(format!("ssl_certificate {}", self.path(certificate)));
            out.line(format!("ssl_certificate_key {}", self.path(key)));
        }
        if listening.is_tls && site.certificates.is_empty() {
            out.line("ssl_reject_handshake on");
        }
        for (name, value) in &site.settings {
            out.line(format!("{name} {value}"));
        }
        for file in &site.includes {
            out.line(format!("include {}", self.path(file)));
        }
    }

    fn path(&self, file: &str) -> String {
        quoted(&format!("{}/{file}", self.folder))
    }

    fn location(
        &mut self,
        place: &Place,
        candidates: &[MatchCandidate<'_>],
        maps: &mut ConfText,
        out: &mut ConfText,
        named: &mut BTreeMap<String, (String, String)>,
    ) {
        let head = head_of(place);
        match candidates {
            [] => out.block(head, |out| out.line("return 404")),
            [only, ..] if only.conditions.is_empty() => {
                self.body(&head, &only.entry.title, &only.entry.body, out);
            }
            _ => {
                let choice = self.choice(candidates, maps, named);
                out.block(head, |out| {
                    out.line("client_max_body_size 0");
                    out.line(format!("error_page 418 = {choice}"));
                    out.line("return 418");
                });
            }
        }
    }

    fn body(&self, head: &str, title: &str, file: &str, out: &mut ConfText) {
        out.comment(title);
        out.block(head, |out| out.line(format!("include {}", self.path(file))));
    }

    /// The variable with the name of the location of the first candidate whose conditions hold.
    fn choice(
        &mut self,
        candidates: &[MatchCandidate<'_>],
        maps: &mut ConfText,
        named: &mut BTreeMap<String, (String, String)>,
    ) -> String {
        self.choices += 1;
        let choice = format!("$choice_{}", self.choices);
        let asked: BTreeSet<_> = candidates.iter().flat_map(|one| &one.conditions).collect();
        let variables: Vec<_> = asked.iter().map(|one| self.conditions.variable(one)).collect();
        maps.blank();
        maps.block(format!("map \"{}\" {choice}", variables.concat()), |maps| {
            maps.line(format!("default {NOTHING}"));
            for candidate in candidates {
                let name = location_name(&candidate.entry.body);
                let value = (candidate.entry.title.clone(), candidate.entry.body.clone());
                named.insert(name.clone(), value);
                let is_asked = |one: &&_| candidate.conditions.contains(one);
                let bits: String =
                    asked.iter().map(|one| if is_asked(one) { '1' } else { '.' }).collect();
                maps.line(format!("\"~^{bits}\" {name}"));
            }
        });
        choice
    }
}

fn head_of(place: &Place) -> String {
    match place {
        Place::Exact(path) => format!("location = {}", quoted(path)),
        Place::Below(path) => format!("location {}", quoted(&format!("{path}/"))),
        Place::Regex { pattern, is_caseless, .. } => {
            let tilde = if *is_caseless { "~*" } else { "~" };
            format!("location {tilde} {}", quoted(pattern))
        }
    }
}

/// `routes/httproute.shop.cart/rule-1.conf`: `@httproute.shop.cart/rule-1`
pub(super) fn location_name(body: &str) -> String {
    let name = body.trim_start_matches("routes/").trim_end_matches(".conf");
    format!("@{name}")
}
