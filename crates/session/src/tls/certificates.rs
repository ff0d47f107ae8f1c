//! Certificates whose names have variables: read when they are needed, and cached for a while.

use std::collections::HashMap;
use std::fmt;
use std::ops::RangeInclusive;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use conf::{Directive, Load, Result, Template, Value, units};
use net::tls::{Credential, CredentialError};

use super::files::PasswordFile;
use super::values::CertificateFile;

/// The name of a file with certificates or a key, perhaps with variables.
#[derive(Clone)]
pub struct CertificateTemplate {
    /// What it renders to.
    pub template: Template,
    /// The same without variables.
    pub file: CertificateFile,
}

impl Value for CertificateTemplate {
    fn parse(from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        let word = from.arg(0);
        for scheme in ["engine:", "store:"] {
            if word.text.starts_with(scheme.as_bytes()) {
                let message = format!("\"{word}\": there are no OpenSSL engines and stores");
                return Err(from.error_at(word, message).help("use a file"));
            }
        }
        let template = Template::compile(word, from, load)?;
        let file = CertificateFile { text: word.text.clone(), from: from.clone() };
        Ok(Self { template, file })
    }
}

impl CertificateTemplate {
    /// Whether it names nothing.
    pub fn is_empty(&self) -> bool {
        self.file.text.is_empty()
    }

    /// Whether it is the same for all requests.
    pub fn is_fixed(&self) -> bool {
        self.template.as_fixed().is_some()
    }
}

/// What `*_ssl_certificate_cache` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CertificateCacheRules {
    /// How many certificates; 0: none.
    max: usize,
    inactive_ms: u64,
    valid_ms: u64,
}

impl Value for CertificateCacheRules {
    const SYNTAX: &'static str = "off | max=NUMBER [inactive=TIME] [valid=TIME]";
    const ARGS: RangeInclusive<usize> = 1..=3;
    fn parse(from: &Directive, _: &mut Load<'_>) -> Result<Self> {
        let (mut rules, mut is_off) =
            (Self { max: 0, inactive_ms: 10_000, valid_ms: 60_000 }, false);
        for word in &from.args {
            let text = &word.text[..];
            let understood = if let Some(number) = text.strip_prefix(b"max=") {
                rules.max =
                    units::number(number).and_then(|n| usize::try_from(n).ok()).unwrap_or(0);
                rules.max > 0
            } else if let Some(time) = text.strip_prefix(b"inactive=") {
                units::seconds(time).map(|s| rules.inactive_ms = s.saturating_mul(1000)).is_some()
            } else if let Some(time) = text.strip_prefix(b"valid=") {
                units::seconds(time).map(|s| rules.valid_ms = s.saturating_mul(1000)).is_some()
            } else {
                is_off = text == b"off";
                is_off
            };
            if !understood {
                return Err(from.error_at(word, format!("invalid parameter \"{word}\"")));
            }
        }
        if !is_off && rules.max == 0 {
            let name = String::from_utf8_lossy(&from.name.text);
            return Err(from.error(format!("\"{name}\" must have the \"max\" parameter")));
        }
        Ok(if is_off { Self { max: 0, ..rules } } else { rules })
    }
}

/// Certificates that were read for requests.
pub(super) struct LoadedCertificates {
    rules: CertificateCacheRules,
    passwords: Option<PasswordFile>,
    /// Where names start that do not begin with a slash.
    folder: PathBuf,
    cache: Mutex<HashMap<FileNames, LoadedCertificate>>,
}

/// The names of a certificate and its key.
type FileNames = (Box<[u8]>, Box<[u8]>);

struct LoadedCertificate {
    credential: Credential,
    loaded_ms: u64,
    used_ms: u64,
}

impl LoadedCertificates {
    pub(super) fn new(
        rules: CertificateCacheRules,
        passwords: Option<PasswordFile>,
        folder: PathBuf,
    ) -> Self {
        Self { rules, passwords, folder, cache: Mutex::default() }
    }

    /// The certificate with these names; the error is nginx's line for the log.
    pub(super) fn load(
        &self,
        certificate: &[u8],
        key: &[u8],
        now_ms: u64,
    ) -> std::result::Result<Credential, String> {
        if self.rules.max == 0 {
            return self.read(certificate, key);
        }
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        let CertificateCacheRules { inactive_ms, valid_ms, max } = self.rules;
        cache.retain(|_, one| {
            now_ms.saturating_sub(one.loaded_ms) < valid_ms
                && now_ms.saturating_sub(one.used_ms) < inactive_ms
        });
        let names = (certificate.into(), key.into());
        if let Some(known) = cache.get_mut(&names) {
            known.used_ms = now_ms;
            return Ok(known.credential.clone());
        }
        let credential = self.read(certificate, key)?;
        if cache.len() >= max {
            let oldest = cache.iter().min_by_key(|(_, one)| one.used_ms);
            if let Some(names) = oldest.map(|(names, _)| names.clone()) {
                cache.remove(&names);
            }
        }
        let known = credential.clone();
        cache.insert(
            names,
            LoadedCertificate { credential: known, loaded_ms: now_ms, used_ms: now_ms },
        );
        Ok(credential)
    }

    fn read(&self, certificate: &[u8], key: &[u8]) -> std::result::Result<Credential, String> {
        let describe = |what: &str, name: &[u8], reason: &dyn fmt::Display| {
            let path = self.path(name);
            format!("cannot load {what} \"{}\": {reason}", path.display())
        };
        let texts = self.text(certificate).map_err(|e| describe("certificate", certificate, &e))?;
        let key_text = self.text(key).map_err(|e| describe("certificate key", key, &e))?;
        let passwords = self.passwords.as_ref().map_or(&[][..], PasswordFile::passwords);
        Credential::read(&texts, &key_text, passwords).map_err(|error| match error {
            CredentialError::Certificate(reason) => describe("certificate", certificate, &reason),
            CredentialError::Key(reason) => describe("certificate key", key, &reason),
        })
    }

    fn text(&self, name: &[u8]) -> std::io::Result<Vec<u8>> {
        match name.strip_prefix(b"data:") {
            Some(text) => Ok(text.to_vec()),
            None => std::fs::read(self.path(name)),
        }
    }

    fn path(&self, name: &[u8]) -> PathBuf {
        self.folder.join(std::ffi::OsStr::from_bytes(name))
    }
}

impl fmt::Debug for LoadedCertificates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoadedCertificates").field("rules", &self.rules).finish_non_exhaustive()
    }
}
