//! Certificates whose names have variables: read when they are needed, and cached for a while.

use std::fmt;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use std::result;
use std::sync::Arc;

use conf::{Directive, Load, Result, Template, Value};
use net::clock;
use net::tls::{CertificateChain, Credential, CredentialError, KeyError, PrivateKey};

use super::certificate_cache::{CachedObject, CertificateCacheRules};

use super::files::PasswordFile;
use super::values::CertificateFile;

/// The name of a file with certificates or a key, perhaps with variables.
#[derive(Clone)]
pub struct CertificateTemplate {
    pub template: Template,
    /// The name as it was written.
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
    pub fn is_empty(&self) -> bool {
        self.file.text.is_empty()
    }

    /// Whether it is the same for all requests.
    pub fn is_fixed(&self) -> bool {
        self.template.as_fixed().is_some()
    }
}

/// Reads certificates when they are needed.
pub(super) struct LoadedCertificates {
    rules: CertificateCacheRules,
    passwords: Option<PasswordFile>,
    /// Where names start that do not begin with a slash.
    folder: PathBuf,
}

/// Why there is no certificate.
enum LoadFault {
    File(io::Error),
    Contents(KeyError),
}

/// The certificates of one connection, by name, still to be read.
pub struct ConnectionCertificates {
    /// The names of certificates and their keys.
    pub(super) names: Vec<(Vec<u8>, Vec<u8>)>,
    pub(super) loaded: Arc<LoadedCertificates>,
}

impl ConnectionCertificates {
    /// Reads them. Files are read by threads beside the worker, so that other connections do not
    /// wait for a disk; what is cached is there at once. The error is a line for the log.
    pub async fn read(self) -> result::Result<Vec<Credential>, String> {
        let now_ms = clock::now_ms();
        let Self { names, loaded } = self;
        let cached = |(chain, key): &(Vec<u8>, Vec<u8>)| loaded.cached(chain, key, now_ms);
        if let Some(all) = names.iter().map(cached).collect() {
            return Ok(all);
        }
        let load = move || {
            let load = |(chain, key): &(Vec<u8>, Vec<u8>)| loaded.load(chain, key, now_ms);
            names.iter().map(load).collect()
        };
        net::offload(load).await
    }
}

impl LoadedCertificates {
    pub(super) fn new(
        rules: CertificateCacheRules,
        passwords: Option<PasswordFile>,
        folder: PathBuf,
    ) -> Self {
        Self { rules, passwords, folder }
    }

    /// The certificate with these names; the error is nginx's line for the log.
    pub(super) fn load(
        &self,
        certificate: &[u8],
        key: &[u8],
        now_ms: u64,
    ) -> result::Result<Credential, String> {
        let read = |is_stale| {
            let chain = self.object(certificate, is_stale, now_ms, |text| {
                CertificateChain::read(text).map(|chain| (chain, true))
            });
            let chain = chain.map_err(|fault| self.describe("certificate", certificate, &fault))?;
            let passwords = self.passwords.as_ref().map_or(&[][..], PasswordFile::passwords);
            let private = self.object(key, is_stale, now_ms, |text| {
                // As in nginx: a key that is encrypted in its file is not in memory either, unless
                // it is in use.
                PrivateKey::read(text, passwords).map(|key| (key.clone(), !key.was_encrypted))
            });
            private
                .map(|private| (chain, private))
                .map_err(|fault| self.describe("certificate key", key, &fault))
        };
        let (chain, private) = read(false)?;
        if let Ok(credential) = Credential::new(&chain, &private) {
            return Ok(credential);
        }
        // One of two files was replaced, and the other was still cached.
        let (chain, private) = read(true)?;
        Credential::new(&chain, &private).map_err(|fault| {
            let (CredentialError::Certificate(reason) | CredentialError::Key(reason)) = fault;
            self.describe("certificate key", key, &LoadFault::Contents(reason))
        })
    }

    /// The certificate with these names if it is cached and need not be compared with its files.
    pub(super) fn cached(&self, certificate: &[u8], key: &[u8], now_ms: u64) -> Option<Credential> {
        let cache = self.rules.cache()?;
        let name = |name: &[u8]| match name.starts_with(b"data:") {
            true => name.into(),
            false => self.path(name).as_os_str().as_bytes().to_vec(),
        };
        let chain = cache.find_young(&name(certificate), now_ms)?;
        let private = cache.find_young(&name(key), now_ms)?;
        Credential::new(&chain, &private).ok()
    }

    /// A file's contents, from the cache if it has them. `parse` says whether they may be cached.
    fn object<T: CachedObject>(
        &self,
        name: &[u8],
        is_stale: bool,
        now_ms: u64,
        parse: impl Fn(&[u8]) -> result::Result<(T, bool), KeyError>,
    ) -> result::Result<T, LoadFault> {
        let path = self.path(name);
        let read = || {
            let text = match name.strip_prefix(b"data:") {
                Some(text) => text.to_vec(),
                None => std::fs::read(&path).map_err(LoadFault::File)?,
            };
            parse(&text).map_err(LoadFault::Contents)
        };
        match self.rules.cache() {
            None => read().map(|(object, _)| object),
            Some(cache) if name.starts_with(b"data:") => cache.get(name, None, false, now_ms, read),
            Some(cache) => {
                cache.get(path.as_os_str().as_bytes(), Some(&path), is_stale, now_ms, read)
            }
        }
    }

    fn path(&self, name: &[u8]) -> PathBuf {
        self.folder.join(std::ffi::OsStr::from_bytes(name))
    }

    fn describe(&self, what: &str, name: &[u8], fault: &LoadFault) -> String {
        let name = match name.starts_with(b"data:") {
            true => "data:...".into(),
            false => self.path(name).display().to_string(),
        };
        format!("cannot load {what} \"{name}\": {fault}")
    }
}

impl fmt::Display for LoadFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(error) => write!(f, "open() failed{}", observe::Errno(error)),
            Self::Contents(error) => error.fmt(f),
        }
    }
}

impl fmt::Debug for LoadedCertificates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoadedCertificates").finish_non_exhaustive()
    }
}
