//! `acme_certificate`: issuers, names, and the kind of key.

use std::ops::RangeInclusive;
use std::sync::Arc;

use conf::{Directive, Load, Result, Value, Word};
use net::NewKey;
use tls::CertificateSlot;
use wire::x509::SubjectName;
use zones::Zones;

use crate::host_name::{check_host, host_of};
use crate::issuer::AcmeIssuer;
use crate::issuer_lines::Issuers;
use crate::key_name;
use crate::on_demand::{OnDemandNames, OnDemandServer};
use crate::on_demand_plan::{OnDemandBook, OnDemandPlan};
use crate::plan::{AcmeCertificate, PlanBook};
use crate::stand_in;

/// The name in the certificate that is shown to clients whose name gets none.
const NAMELESS: &str = "on-demand.invalid";
/// The most names of a certificate; no authority has a higher limit.
const NAMES_MAX: usize = 100;

#[derive(Clone)]
pub struct CertificateLine {
    from: Directive,
    /// As they are written.
    names: Vec<String>,
    key: NewKey,
    /// Whether clients tell the names.
    is_on_demand: bool,
}

/// A name of the server, as `server_name` has it.
pub struct ServerNameText<'a> {
    pub text: &'a [u8],
    pub is_pattern: bool,
}

impl Value for CertificateLine {
    const ARGS: RangeInclusive<usize> = 1..=usize::MAX;

    fn parse(from: &Directive, _: &mut Load<'_>) -> Result<Self> {
        let (names, key) = (Vec::new(), NewKey::EcdsaP256);
        let mut line = Self { from: from.clone(), names, key, is_on_demand: false };
        if from.arg(0).text.is_empty() {
            return Err(from.refuse("\"issuer\" is missing"));
        }
        for word in &from.args[1..] {
            if *word.text == *b"on_demand" {
                line.is_on_demand = true;
                continue;
            }
            match word.text.strip_prefix(b"key=") {
                Some(kind) => match key_name::parse(kind) {
                    Some(Ok(key)) => line.key = key,
                    Some(Err(reason)) => return Err(from.error_at(word, reason)),
                    None => return Err(from.error_at(word, "invalid \"key\" value")),
                },
                None => {
                    let name = checked(&word.text).map_err(|reason| refuse(from, word, reason))?;
                    line.names.push(name);
                }
            }
        }
        if line.is_on_demand && !line.names.is_empty() {
            let help = "clients tell the names; another server can have names of its own";
            return Err(from.error("\"on_demand\" cannot be combined with names").help(help));
        }
        Ok(line)
    }
}

fn refuse(from: &Directive, word: &Word, reason: &str) -> conf::Error {
    from.error_at(word, format!("invalid server name \"{word}\": {reason}"))
}

impl CertificateLine {
    /// The slot with the certificate, for a server with these names.
    pub fn slot<'n>(
        &self,
        server_names: impl Iterator<Item = ServerNameText<'n>>,
        load: &mut Load<'_>,
    ) -> Result<Arc<CertificateSlot>> {
        if self.is_on_demand {
            return self.on_demand(server_names, load);
        }
        let mut line = self.clone();
        if line.names.is_empty() {
            line.add_all(server_names, load)?;
        }
        if line.names.is_empty() {
            let help = "name them here, or with \"server_name\"";
            return Err(self.from.error("\"acme_certificate\": no identifiers").help(help));
        }
        let issuers = line.issuers(load)?;
        let names = subject_names(&line.names, &issuers);
        if names.len() > NAMES_MAX {
            let message = format!("\"acme_certificate\" has more than {NAMES_MAX} names");
            return Err(self.from.error(message));
        }
        self.check_challenges(&names, &issuers)?;
        Ok(PlanBook::add(AcmeCertificate::new(names, line.key, issuers, load), load))
    }

    /// Whether all issuers can prove all names.
    fn check_challenges(&self, names: &[SubjectName], issuers: &[Arc<AcmeIssuer>]) -> Result<()> {
        for issuer in issuers {
            let proves = |name: &&SubjectName| match name {
                SubjectName::Ip(_) => issuer.dns.is_none(),
                name => issuer.dns.is_some() || !name.is_wildcard(),
            };
            let Some(name) = names.iter().find(|name| !proves(name)) else { continue };
            let (shown, issuer) = (name.to_string(), &issuer.name);
            let error = match name {
                SubjectName::Dns(_) => {
                    let message = format!(
                        "issuer \"{issuer}\" cannot obtain a certificate for wildcard \"{shown}\""
                    );
                    self.from
                        .error(message)
                        .help("wildcards need \"challenge dns-01\" in its block")
                }
                SubjectName::Ip(_) => {
                    let message = format!(
                        "issuer \"{issuer}\" cannot obtain a certificate for address \"{shown}\""
                    );
                    self.from.error(message).help("the challenge dns-01 is not for addresses")
                }
            };
            return Err(error);
        }
        Ok(())
    }

    /// The slot of a server whose clients tell the names.
    fn on_demand<'n>(
        &self,
        server_names: impl Iterator<Item = ServerNameText<'n>>,
        load: &mut Load<'_>,
    ) -> Result<Arc<CertificateSlot>> {
        let issuers = self.issuers(load)?;
        let Some(rules) = issuers[0].on_demand.clone() else {
            let message = format!("issuer \"{}\" has no \"on_demand\"", issuers[0].name);
            let help = "\"on_demand ask=URI;\" there names who allows names";
            return Err(self.from.error_at(self.from.arg(0), message).help(help));
        };
        let issuer_names: Vec<_> = issuers.iter().map(|issuer| issuer.name.as_str()).collect();
        let place = format!(
            "on demand\n{}\n{}\n{:?}",
            issuers[0].folder.shown(),
            issuer_names.join(","),
            self.key
        );
        let names: Arc<OnDemandNames> =
            Zones::of(load).keep(place.as_bytes(), |old| old.unwrap_or_default());
        let server = OnDemandServer { names: names.clone(), wait_ms: rules.wait_ms };
        OnDemandBook::add(OnDemandPlan { names, rules, issuers, key: self.key }, load);
        let texts = server_names.filter(|name| !name.is_pattern);
        let hosts = texts.filter_map(|name| host_of(name.text)).map(|host| SubjectName::of(&host));
        let mut shown: Vec<_> = hosts.collect();
        if shown.is_empty() {
            shown.push(SubjectName::of(NAMELESS));
        }
        let make_stand_in = Box::new(move || stand_in::make(&shown));
        Ok(Arc::new(CertificateSlot::with_on_demand(make_stand_in, Arc::new(server))))
    }

    fn add_all<'n>(
        &mut self,
        server_names: impl Iterator<Item = ServerNameText<'n>>,
        load: &mut Load<'_>,
    ) -> Result<()> {
        for name in server_names.filter(|name| !name.text.is_empty()) {
            let shown = String::from_utf8_lossy(name.text);
            if name.is_pattern {
                let message = "\"acme_certificate\": unsupported regular expression in server_name";
                load.warn(self.from.error(format!("{message}: {shown}")));
                continue;
            }
            let name = checked(name.text).map_err(|reason| {
                self.from.error(format!("invalid server name \"{shown}\": {reason}"))
            })?;
            self.names.push(name);
        }
        Ok(())
    }

    fn issuers(&self, load: &mut Load<'_>) -> Result<Vec<Arc<AcmeIssuer>>> {
        let word = self.from.arg(0);
        let known = &load.registry.of::<Issuers>().0;
        let mut issuers: Vec<Arc<AcmeIssuer>> = Vec::new();
        for name in word.text.split(|byte| *byte == b',') {
            let Some(issuer) = known.get(name) else {
                let shown = String::from_utf8_lossy(name);
                let message = format!("\"acme_certificate\": issuer \"{shown}\" is missing");
                let names = known.keys().filter_map(|name| std::str::from_utf8(name).ok());
                return Err(self.from.error_at(word, message).meant(name, names));
            };
            if issuers.iter().any(|other| Arc::ptr_eq(other, issuer)) {
                let message = format!("issuer \"{}\" is named twice", issuer.name);
                return Err(self.from.error_at(word, message));
            }
            issuers.push(issuer.clone());
        }
        Ok(issuers)
    }
}

/// A name, if it is one.
fn checked(text: &[u8]) -> std::result::Result<String, &'static str> {
    let text = std::str::from_utf8(text).map_err(|_| "it is not ASCII")?;
    match SubjectName::of(text.strip_prefix('.').unwrap_or(text)) {
        SubjectName::Dns(host) => check_host(&host)?,
        SubjectName::Ip(_) => {}
    }
    Ok(text.to_owned())
}

/// The names of a certificate. One that begins with a dot stands for its domain and, as in
/// nginx-acme, for its host `www`, or for all hosts if wildcards can be proved. Hosts that a
/// wildcard covers are left out: authorities refuse such orders.
fn subject_names(texts: &[String], issuers: &[Arc<AcmeIssuer>]) -> Vec<SubjectName> {
    let has_wildcards = issuers.iter().all(|issuer| issuer.dns.is_some());
    let first = if has_wildcards { "*" } else { "www" };
    let mut names: Vec<SubjectName> = Vec::new();
    for text in texts {
        let meant = match text.strip_prefix('.') {
            Some(host) => vec![format!("{first}.{host}"), host.to_owned()],
            None => vec![text.clone()],
        };
        for name in meant.iter().map(|name| SubjectName::of(name)) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
    }
    let all = names.clone();
    names.retain(|name| match name {
        SubjectName::Dns(host) => {
            let domain = host.split_once('.').map_or("", |(_, domain)| domain);
            host.starts_with("*.") || !all.contains(&SubjectName::Dns(format!("*.{domain}")))
        }
        SubjectName::Ip(_) => true,
    });
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_that_a_wildcard_covers_are_left_out() {
        let names = |texts: &[&str]| -> Vec<_> {
            let texts: Vec<_> = texts.iter().map(|text| (*text).to_owned()).collect();
            subject_names(&texts, &[]).iter().map(ToString::to_string).collect()
        };
        let all = ["a.test", "*.a.test", "WWW.a.test", "b.c.a.test", "test", "a.test", "10.0.0.1"];
        assert_eq!(names(&all), ["a.test", "*.a.test", "b.c.a.test", "test", "10.0.0.1"]);
        assert_eq!(names(&[".a.test"]), ["*.a.test", "a.test"]);
        assert_eq!(names(&["a.test", "www.a.test"]), ["a.test", "www.a.test"]);
    }
}
