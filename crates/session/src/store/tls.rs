//! TLS with a store: the parameters of its address, and what is made of them and their files.
//!
//! The files are read with the configuration. Two settings are equal if their files have the same
//! contents, so a reload after a change of a file connects again.

use std::os::unix::ffi::OsStringExt as _;
use std::sync::Arc;

use conf::{Directive, Error, Load, Result, Word};
use fetch::{SYSTEM_AUTHORITIES, bare_tls_transport, trust_in};
use net::Address;
use net::accept::Transport;
use net::tls::{Credential, CredentialError, ServerTrust};
use upstream::address::Endpoint;

/// The parameters of an address that are about TLS.
#[derive(Default, PartialEq, Eq)]
pub(super) struct StoreTlsParameters<'t> {
    name: Option<&'t [u8]>,
    ca_file: Option<&'t [u8]>,
    certificate: Option<&'t [u8]>,
    certificate_key: Option<&'t [u8]>,
    ignores_certificate: bool,
}

/// How the connections to a store are secured.
#[derive(Clone)]
pub(super) struct StoreTls {
    texts: StoreTlsTexts,
    pub(super) transport: Arc<dyn Transport>,
}

/// What TLS with a store depends on.
#[derive(Clone, PartialEq, Eq)]
struct StoreTlsTexts {
    name: String,
    authorities: Option<Arc<[u8]>>,
    certificate: Option<StoreCertificate>,
}

/// The texts of a client's certificate and its key.
#[derive(Clone, PartialEq, Eq)]
struct StoreCertificate {
    chain: Arc<[u8]>,
    key: Arc<[u8]>,
}

impl PartialEq for StoreTls {
    fn eq(&self, other: &Self) -> bool {
        self.texts == other.texts
    }
}

impl Eq for StoreTls {}

impl StoreTls {
    /// The name that the store's certificate must have.
    pub(super) fn name(&self) -> &str {
        &self.texts.name
    }
}

impl<'t> StoreTlsParameters<'t> {
    /// Takes a parameter; `None`: it is not about TLS. The error is a reason.
    pub(super) fn set(
        &mut self,
        name: &[u8],
        value: &'t [u8],
    ) -> Option<std::result::Result<(), String>> {
        let place = match name {
            b"name" => &mut self.name,
            b"ca_file" => &mut self.ca_file,
            b"certificate" => &mut self.certificate,
            b"certificate_key" => &mut self.certificate_key,
            b"verify" if matches!(value, b"on" | b"off") => {
                self.ignores_certificate = value == b"off";
                return Some(Ok(()));
            }
            b"verify" => return Some(Err("invalid value of \"verify\"".into())),
            _ => return None,
        };
        if value.is_empty() {
            let name = String::from_utf8_lossy(name);
            return Some(Err(format!("invalid value of \"{name}\"")));
        }
        *place = Some(value);
        Some(Ok(()))
    }

    pub(super) fn are_there(&self) -> bool {
        *self != Self::default()
    }

    /// Reads the files.
    pub(super) fn read(
        &self,
        place: &Endpoint,
        word: &Word,
        from: &Directive,
        load: &mut Load<'_>,
    ) -> Result<StoreTls> {
        let mut files = StoreFiles { word, from, load };
        let name = self.server_name(place).map_err(|reason| files.error(reason))?;
        let authorities = self.authorities(&mut files)?;
        let trust = match &authorities {
            None => ServerTrust::Any,
            Some(text) => trust_in(text, &name).map_err(|error| {
                files.error(format!("cannot load certificates of authorities: {error}"))
            })?,
        };
        let certificate = self.certificate(&mut files)?;
        let credential = match &certificate {
            None => None,
            Some(StoreCertificate { chain, key }) => {
                let read = Credential::read(chain, key, &[]);
                Some(read.map_err(|error| files.error(no_credential(error)))?)
            }
        };
        let transport = bare_tls_transport(&name, trust, credential);
        let transport = transport.map_err(|reason| files.error(reason))?;
        Ok(StoreTls { texts: StoreTlsTexts { name, authorities, certificate }, transport })
    }

    /// The name to send (SNI) and to verify.
    fn server_name(&self, place: &Endpoint) -> std::result::Result<String, &'static str> {
        let host = match (self.name, place) {
            (Some(name), _) => name,
            (None, Endpoint::Named { host, .. }) => host,
            (None, Endpoint::At(Address::Ip(address))) => return Ok(address.ip().to_string()),
            (None, Endpoint::At(_)) => return Err("TLS at a Unix socket requires \"name=\""),
        };
        let name = std::str::from_utf8(host).map_err(|_| "invalid value of \"name\"")?;
        Ok(name.to_owned())
    }

    /// Certificates to trust; `None`: any is accepted.
    fn authorities(&self, files: &mut StoreFiles<'_, '_>) -> Result<Option<Arc<[u8]>>> {
        match (self.ca_file, self.ignores_certificate) {
            (Some(_), true) => Err(files.error("\"ca_file=\" has no use with \"verify=off\"")),
            (None, true) => Ok(None),
            (Some(path), false) => files.read(path),
            (None, false) => {
                let paths = SYSTEM_AUTHORITIES.iter();
                let found = paths.filter_map(|path| files.load.files.read(path).ok()).next();
                if found.is_none() && !files.load.checking {
                    let error = files.error("a store with TLS requires \"ca_file=\"");
                    return Err(error.help("the system has no certificate authorities"));
                }
                Ok(found)
            }
        }
    }

    fn certificate(&self, files: &mut StoreFiles<'_, '_>) -> Result<Option<StoreCertificate>> {
        let (certificate, key) = match (self.certificate, self.certificate_key) {
            (None, None) => return Ok(None),
            (Some(certificate), Some(key)) => (certificate, key),
            (Some(_), None) => {
                return Err(files.error("\"certificate=\" requires \"certificate_key=\""));
            }
            (None, Some(_)) => {
                return Err(files.error("\"certificate_key=\" requires \"certificate=\""));
            }
        };
        let texts = files.read(certificate)?.zip(files.read(key)?);
        Ok(texts.map(|(chain, key)| StoreCertificate { chain, key }))
    }
}

fn no_credential(error: CredentialError) -> String {
    match error {
        CredentialError::Certificate(error) => format!("cannot load the certificate: {error}"),
        CredentialError::Key(error) => format!("cannot load the certificate's key: {error}"),
    }
}

/// Reads the files that an address names.
struct StoreFiles<'a, 'l> {
    word: &'a Word,
    from: &'a Directive,
    load: &'a mut Load<'l>,
}

impl StoreFiles<'_, '_> {
    fn error(&self, reason: impl Into<String>) -> Error {
        let (name, reason) = (&self.from.name, reason.into());
        let message = format!("{reason} in the address of the store of \"{name}\"");
        self.from.error_at(self.word, message)
    }

    /// `None`: the file cannot be read on the machine where the configuration is only checked.
    fn read(&mut self, path: &[u8]) -> Result<Option<Arc<[u8]>>> {
        let path = self.load.conf_path(path).into_os_string().into_vec();
        let read = self.load.files.read(&path);
        let read = read.map_err(|error| self.from.error_at(self.word, error.describe(&path)));
        self.load.of_this_machine(read)
    }
}
