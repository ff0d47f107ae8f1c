//! `acme_issuer`: the lines of the block.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use conf::{Directive, Load, Result};
use net::{KeyPair, NewKey};
use upstream::ResolverPolicy;
use wire::acme::{AcmeProfile, ChallengeKind, ExternalAccount};
use wire::base64;
use zones::{TwoProcesses, ZoneState, Zones};

use crate::client::AcmeUrl;
use crate::dns_lines::DnsLines;
use crate::dns01::DnsSettings;
use crate::issuer::{AccountKey, AcmeIssuer, IssuerTrust};
use crate::key_name;
use crate::line_words::{read_file, text};
use crate::on_demand_lines;
use crate::on_demand_rules::OnDemandRules;
use crate::plan::StateFolders;
use crate::state_folder::StateFolder;

/// The lines of a block, and the least and greatest number of their arguments.
const LINES: [(&str, usize, usize); 18] = [
    ("uri", 1, 1),
    ("account_key", 1, 1),
    ("challenge", 1, 1),
    ("common_name_in_csr", 1, 1),
    ("contact", 1, 1),
    ("dns_check", 1, 8),
    ("dns_hook", 1, 32),
    ("dns_timeout", 1, 1),
    ("dns_update", 3, 12),
    ("external_account_key", 2, 2),
    ("on_demand", 1, 5),
    ("preferred_chain", 1, 1),
    ("profile", 1, 2),
    ("ssl_trusted_certificate", 1, 1),
    ("ssl_verify", 1, 1),
    ("staging_uri", 1, 1),
    ("state_path", 1, 1),
    ("accept_terms_of_service", 0, 0),
];

/// The blocks of a subsystem.
#[derive(Default)]
struct IssuerBlocks(Vec<IssuerBlock>);

/// The issuers of the whole configuration, by name.
#[derive(Default)]
pub(crate) struct Issuers(pub(crate) BTreeMap<Box<[u8]>, Arc<AcmeIssuer>>);

/// What `state_path off` keeps.
struct MemoryState(Arc<StateFolder>);

impl ZoneState for MemoryState {
    const DIRECTIVES: &'static [&'static str] = &["acme_issuer"];
    const TWO_PROCESSES: TwoProcesses = TwoProcesses::Private;
}

struct IssuerBlock {
    from: Directive,
    /// Lines that may be there once, and were.
    seen: Vec<Box<[u8]>>,
    uri: Option<String>,
    staging_uri: Option<String>,
    account_key: Option<AccountKey>,
    challenge: Option<ChallengeKind>,
    has_common_name: bool,
    contact: Vec<String>,
    external: Option<ExternalAccount>,
    on_demand: Option<OnDemandRules>,
    preferred_chain: Option<String>,
    profile: Option<AcmeProfile>,
    authorities: Option<Directive>,
    verifies: bool,
    state: StateLine,
    accepts_terms: bool,
    dns: DnsLines,
}

enum StateLine {
    Default,
    Off,
    Path(PathBuf),
}

pub(crate) fn declare(from: &Directive, load: &mut Load<'_>) -> Result<()> {
    let name = &from.arg(0).text;
    let blocks = load.own.of::<IssuerBlocks>();
    if blocks.0.iter().any(|known| known.from.arg(0).text == *name) {
        return Err(from.refuse("is duplicate"));
    }
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.".contains(byte);
    if name.is_empty() || name.starts_with(b".") || !name.iter().all(is_plain) {
        let message = format!("invalid issuer name \"{}\"", from.arg(0));
        return Err(from.error_at(from.arg(0), message).help("use letters, digits, - and _"));
    }
    let mut block = IssuerBlock::new(from);
    for line in from.block.iter().flatten() {
        block.add(line, load)?;
    }
    if block.uri.is_none() {
        return Err(from.error(format!("\"uri\" is missing in issuer \"{}\"", from.arg(0))));
    }
    load.own.of::<IssuerBlocks>().0.push(block);
    Ok(())
}

/// Completes the issuers of a subsystem, after all its lines were read. `names` is the resolver of
/// its outermost block.
pub fn build_issuers(names: &ResolverPolicy, load: &mut Load<'_>) -> Result<()> {
    for block in std::mem::take(load.own.of::<IssuerBlocks>()).0 {
        let (name, from) = (block.from.arg(0).text.clone(), block.from.clone());
        let issuer = Arc::new(block.build(names.clone(), load)?);
        if load.registry.of::<Issuers>().0.insert(name, issuer).is_some() {
            return Err(from.refuse("is duplicate").help("another block has the same name"));
        }
    }
    Ok(())
}

/// Whether any issuer looks for answers by HTTP.
pub fn answers_http(load: &mut Load<'_>) -> bool {
    let issuers = &load.registry.of::<Issuers>().0;
    issuers.values().any(|issuer| issuer.challenges.contains(&ChallengeKind::Http01))
}

impl IssuerBlock {
    fn new(from: &Directive) -> Self {
        Self {
            from: from.clone(),
            seen: Vec::new(),
            uri: None,
            staging_uri: None,
            account_key: None,
            challenge: None,
            has_common_name: false,
            contact: Vec::new(),
            external: None,
            on_demand: None,
            preferred_chain: None,
            profile: None,
            authorities: None,
            verifies: true,
            state: StateLine::Default,
            accepts_terms: false,
            dns: DnsLines::default(),
        }
    }

    fn add(&mut self, line: &Directive, load: &mut Load<'_>) -> Result<()> {
        let name = &*line.name.text;
        let Some((_, least, most)) = LINES.iter().find(|(known, ..)| known.as_bytes() == name)
        else {
            let error = line.error(format!("unknown directive \"{}\"", line.name));
            return Err(error.meant(name, LINES.iter().map(|(name, ..)| *name)));
        };
        if line.block.is_some() {
            return Err(line.error("unexpected \"{\""));
        }
        if !(*least..=*most).contains(&line.args.len()) {
            return Err(line.error(format!("invalid number of arguments in \"{}\"", line.name)));
        }
        let may_repeat = matches!(name, b"contact" | b"dns_update");
        if !may_repeat && self.seen.contains(&line.name.text) {
            return Err(line.refuse("is duplicate"));
        }
        self.seen.push(line.name.text.clone());
        if let Some(empty) = line.args.iter().find(|word| word.text.is_empty()) {
            return Err(line.refuse("invalid value").marked(empty.span));
        }
        self.set(name, line, load)
    }

    fn set(&mut self, name: &[u8], line: &Directive, load: &mut Load<'_>) -> Result<()> {
        match name {
            b"uri" => self.uri = Some(uri(line)?),
            b"account_key" => self.account_key = account_key(line, load)?,
            b"challenge" => self.challenge = Some(challenge(line)?),
            b"common_name_in_csr" => self.has_common_name = flag(line)?,
            b"contact" => self.contact.push(contact(line)?),
            b"dns_check" => self.dns.add_check(line)?,
            b"dns_hook" => self.dns.add_hook(line)?,
            b"dns_timeout" => self.dns.add_timeout(line)?,
            b"dns_update" => self.dns.add_update(line, load)?,
            b"external_account_key" => self.external = external_account(line, load)?,
            b"on_demand" => self.on_demand = Some(on_demand_lines::read(line)?),
            b"preferred_chain" => self.preferred_chain = Some(text(line, line.arg(0))?),
            b"profile" => self.profile = Some(profile(line)?),
            b"ssl_trusted_certificate" => self.authorities = Some(line.clone()),
            b"ssl_verify" => self.verifies = flag(line)?,
            b"staging_uri" => self.staging_uri = Some(uri(line)?),
            b"state_path" => {
                self.state = match &*line.arg(0).text {
                    b"off" => StateLine::Off,
                    path => StateLine::Path(load.path(path)),
                }
            }
            _ => self.accepts_terms = true,
        }
        Ok(())
    }

    fn build(mut self, names: ResolverPolicy, load: &mut Load<'_>) -> Result<AcmeIssuer> {
        let name = String::from_utf8_lossy(&self.from.arg(0).text).into_owned();
        let trust = self.trust(load)?;
        let challenge = self.challenge.unwrap_or(ChallengeKind::Http01);
        let dns = self.dns.build(challenge == ChallengeKind::Dns01, &self.from, load)?;
        let text = self.text(&trust, dns.as_ref(), &names);
        Ok(AcmeIssuer {
            folder: self.folder(&name, load),
            uri: self.uri.take().unwrap_or_default(),
            staging_uri: self.staging_uri.take(),
            account_key: self.account_key.take().unwrap_or(AccountKey::Made(NewKey::EcdsaP256)),
            challenges: vec![challenge],
            dns,
            has_common_name: self.has_common_name,
            contact: self.contact,
            accepts_terms: self.accepts_terms,
            external: self.external,
            on_demand: self.on_demand,
            profile: self.profile,
            preferred_chain: self.preferred_chain,
            names,
            text,
            trust,
            name,
        })
    }

    /// A text that identifies the issuer's settings: the words of the block in order, the contents
    /// of its files, and the name servers.
    fn text(
        &self,
        trust: &IssuerTrust,
        dns: Option<&DnsSettings>,
        names: &ResolverPolicy,
    ) -> Vec<u8> {
        let mut text = Vec::new();
        let lines = self.from.block.iter().flatten();
        for word in lines.flat_map(|line| std::iter::once(&line.name).chain(&line.args)) {
            text.extend_from_slice(&word.text);
            text.push(b'\n');
        }
        if let IssuerTrust::Authorities(authorities) = trust {
            text.extend_from_slice(&net::sha256(authorities));
        }
        if let Some(AccountKey::File(key)) = &self.account_key {
            text.extend_from_slice(&net::sha256(key));
        }
        text.extend(format!("{:?}", names.servers).bytes());
        text.extend(dns.iter().flat_map(|dns| dns.secrets()).flat_map(net::sha256));
        text.extend(self.external.iter().flat_map(|external| net::sha256(&external.key)));
        text
    }

    fn folder(&self, name: &str, load: &mut Load<'_>) -> Arc<StateFolder> {
        let path = match &self.state {
            StateLine::Off => {
                let make = || Arc::new(MemoryState(Arc::new(StateFolder::in_memory_of(name))));
                let zones = Zones::of(load);
                let kept = zones.keep(name.as_bytes(), |old| old.unwrap_or_else(make));
                return kept.0.clone();
            }
            StateLine::Path(path) => path.clone(),
            StateLine::Default => load.path(format!("acme_{name}").as_bytes()),
        };
        load.registry.of::<StateFolders>().add(&path, self.from.words());
        Arc::new(StateFolder::Disk(path))
    }

    fn trust(&self, load: &mut Load<'_>) -> Result<IssuerTrust> {
        if !self.verifies {
            return Ok(IssuerTrust::Any);
        }
        let read = match &self.authorities {
            Some(line) => read_file(line, line.arg(0), load)?.map(Arc::from),
            None => fetch::SYSTEM_AUTHORITIES.iter().find_map(|path| load.files.read(path).ok()),
        };
        match read {
            Some(text) => {
                let from = self.authorities.as_ref().unwrap_or(&self.from);
                let read = net::tls::TrustedCertificates::read(&text);
                read.map_err(|error| from.error(format!("cannot load certificates: {error}")))?;
                Ok(IssuerTrust::Authorities(text))
            }
            None if load.checking => Ok(IssuerTrust::Any),
            None => {
                let message = "\"acme_issuer\" requires \"ssl_trusted_certificate\"";
                let help = "the system has no certificate authorities";
                Err(self.from.error(message).help(help))
            }
        }
    }
}

fn uri(line: &Directive) -> Result<String> {
    let word = line.arg(0);
    let uri = text(line, word)?;
    match AcmeUrl::parse(&uri) {
        Ok(_) => Ok(uri),
        Err(reason) => Err(line.error_at(word, format!("{reason} in \"{word}\""))),
    }
}

/// `None`: the file cannot be read on the machine where the configuration is only checked.
fn account_key(line: &Directive, load: &mut Load<'_>) -> Result<Option<AccountKey>> {
    let word = line.arg(0);
    match key_name::parse(&word.text) {
        Some(Ok(new)) => Ok(Some(AccountKey::Made(new))),
        Some(Err(reason)) => Err(line.error_at(word, reason)),
        None => {
            let Some(text) = read_file(line, word, load)? else { return Ok(None) };
            match KeyPair::read(&text) {
                Ok(_) => Ok(Some(AccountKey::File(text))),
                Err(error) => {
                    Err(line.error_at(word, format!("cannot load account key \"{word}\": {error}")))
                }
            }
        }
    }
}

fn challenge(line: &Directive) -> Result<ChallengeKind> {
    let word = line.arg(0);
    match &*word.text {
        b"http" | b"http-01" => Ok(ChallengeKind::Http01),
        b"tls-alpn" | b"tls-alpn-01" => Ok(ChallengeKind::TlsAlpn01),
        b"dns" | b"dns-01" => Ok(ChallengeKind::Dns01),
        _ => {
            let error = line.error_at(word, format!("unsupported challenge: {word}"));
            Err(error.meant(&word.text, ["http-01", "tls-alpn-01", "dns-01"]))
        }
    }
}

fn flag(line: &Directive) -> Result<bool> {
    let word = line.arg(0);
    match &*word.text.to_ascii_lowercase() {
        b"on" => Ok(true),
        b"off" => Ok(false),
        _ => {
            let message = format!(
                "invalid value \"{word}\" in \"{}\" directive, it must be \"on\" or \"off\"",
                line.name
            );
            Err(line.error_at(word, message))
        }
    }
}

/// As in nginx-acme, an address without a scheme is one of mail.
fn contact(line: &Directive) -> Result<String> {
    let contact = text(line, line.arg(0))?;
    let is_scheme = |scheme: &str| {
        scheme.starts_with(|first: char| first.is_ascii_alphabetic())
            && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
    };
    match contact.split_once(':') {
        Some((scheme, _)) if is_scheme(scheme) => Ok(contact),
        _ => Ok(format!("mailto:{contact}")),
    }
}

fn external_account(line: &Directive, load: &mut Load<'_>) -> Result<Option<ExternalAccount>> {
    let (key_id, word) = (text(line, line.arg(0))?, line.arg(1));
    let encoded = match word.text.strip_prefix(b"data:") {
        Some(data) => data.to_vec(),
        None => {
            let Some(contents) = read_file(line, word, load)? else { return Ok(None) };
            contents.trim_ascii_end().to_vec()
        }
    };
    let mut key = Vec::new();
    match base64::decode_url(&encoded, &mut key) {
        Some(()) if !key.is_empty() => Ok(Some(ExternalAccount { key_id, key })),
        _ => Err(line.error_at(word, "invalid external account key: it is not base64url")),
    }
}

fn profile(line: &Directive) -> Result<AcmeProfile> {
    let name = text(line, line.arg(0))?;
    let is_required = match line.args.get(1) {
        None => false,
        Some(word) if *word.text == *b"require" => true,
        Some(word) => return Err(line.error_at(word, format!("invalid parameter \"{word}\""))),
    };
    Ok(AcmeProfile { name, is_required })
}
