//! Certificates and keys from files: each pair of files is read once, however many servers name it.

use std::collections::HashMap;
use std::os::unix::ffi::OsStrExt as _;
use std::sync::Arc;

use conf::{Directive, Error, Load, Result, Value};
use net::tls::{Credential, CredentialError, KeyError, read_passwords};
use wire::pem::PemSections;

use super::values::CertificateFile;

/// The pairs that were read.
#[derive(Default)]
pub(super) struct CredentialsByFile(pub(super) HashMap<FilePair, Credential>);

/// The names of a file with certificates and one with their key.
pub(super) type FilePair = (Box<[u8]>, Box<[u8]>);

/// The certificates of one file with the key of another; `None`: they are not on the machine where
/// the configuration is checked.
pub(super) fn credential(
    certificate: &CertificateFile,
    key: &CertificateFile,
    passwords: Option<&PasswordFile>,
    load: &mut Load<'_>,
) -> Result<Option<Credential>> {
    let pair = (certificate.text.clone(), key.text.clone());
    if let Some(known) = load.registry.of::<CredentialsByFile>().0.get(&pair) {
        return Ok(Some(known.clone()));
    }
    let chain_text = certificate.read_if_here("certificate", load)?;
    let key_text = key.read_if_here("certificate key", load)?;
    let Some(texts) = chain_text.zip(key_text) else { return Ok(None) };
    let passwords = passwords.map_or(&[][..], PasswordFile::passwords);
    let read = Credential::read(&texts.0, &texts.1, passwords);
    let credential = read.map_err(|error| match error {
        CredentialError::Certificate(reason) => {
            let error = certificate.refuse("certificate", &reason, load);
            advise(error, reason, certificate, &texts.0, b"PRIVATE KEY", "a private key")
        }
        CredentialError::Key(reason) => {
            let error = key.refuse("certificate key", &reason, load);
            advise(error, reason, key, &texts.1, b"CERTIFICATE", "a certificate")
        }
    })?;
    load.registry.of::<CredentialsByFile>().0.insert(pair, credential.clone());
    Ok(Some(credential))
}

/// Says so if a file has what belongs into the other one: a section whose label ends so.
fn advise(
    error: Error,
    reason: KeyError,
    file: &CertificateFile,
    text: &[u8],
    label_end: &[u8],
    what: &str,
) -> Error {
    let has_other = || {
        let mut sections = PemSections::new(text).filter_map(std::result::Result::ok);
        sections.any(|section| section.label.ends_with(label_end))
    };
    if reason != KeyError::Missing || file.text.starts_with(b"data:") || !has_other() {
        return error;
    }
    let name = file.from.arg(0);
    error.help(format!("{name} has {what}; are certificate and key exchanged?"))
}

/// The passwords of private keys.
#[derive(Clone)]
pub struct PasswordFile(Arc<[Vec<u8>]>);

impl PasswordFile {
    pub(super) fn passwords(&self) -> &[Vec<u8>] {
        &self.0
    }
}

impl Value for PasswordFile {
    fn parse(from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        let word = from.arg(0);
        let path = load.conf_path(&word.text);
        let path = path.as_os_str().as_bytes();
        let text = load.files.read(path);
        let text = text.map_err(|error| from.error_at(word, error.describe(path)));
        let text = load.of_this_machine(text)?.unwrap_or_default();
        match read_passwords(&text) {
            Some(passwords) => Ok(Self(passwords.into())),
            None => {
                let name = String::from_utf8_lossy(path);
                Err(from.error_at(word, format!("too long line in \"{name}\"")))
            }
        }
    }
}

impl CertificateFile {
    /// The file's contents. `None` if the configuration is checked on a machine without the file.
    pub(super) fn read_if_here(
        &self,
        what: &str,
        load: &mut Load<'_>,
    ) -> Result<Option<Arc<[u8]>>> {
        let text = self.read(what, load);
        load.of_this_machine(text)
    }

    pub(super) fn read(&self, what: &str, load: &mut Load<'_>) -> Result<Arc<[u8]>> {
        if let Some(data) = self.text.strip_prefix(b"data:") {
            return Ok(data.into());
        }
        let path = load.conf_path(&self.text);
        let path = path.as_os_str().as_bytes();
        let read = load.files.read(path);
        read.map_err(|error| self.refuse(what, &error.describe(path), load))
    }

    pub(super) fn refuse(
        &self,
        what: &str,
        reason: &dyn std::fmt::Display,
        load: &Load<'_>,
    ) -> conf::Error {
        let (word, name) = (self.from.arg(0), self.shown(load));
        self.from.error_at(word, format!("cannot load {what} \"{name}\": {reason}"))
    }

    /// Its name in messages.
    pub(super) fn shown(&self, load: &Load<'_>) -> String {
        match self.text.starts_with(b"data:") {
            true => "data:...".into(),
            false => load.conf_path(&self.text).display().to_string(),
        }
    }
}
