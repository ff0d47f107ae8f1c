//! A self-signed certificate for servers under test.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::{env, fs, process};

use crate::packages;

/// An ECDSA key and its certificate for 127.0.0.1 and localhost. The files are deleted with it.
pub(crate) struct OwnCertificate {
    folder: PathBuf,
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
}

impl OwnCertificate {
    pub(crate) fn new() -> Result<Self, String> {
        static NUMBERS: AtomicU32 = AtomicU32::new(0);
        packages::need(&[("openssl", "openssl")])?;
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        let folder = env::temp_dir().join(format!("weir-keys-{}-{number}", process::id()));
        fs::create_dir_all(&folder).map_err(|err| format!("{}: {err}", folder.display()))?;
        let (certificate, key) = (folder.join("cert.pem"), folder.join("key.pem"));
        let own = Self { folder, certificate, key };
        processes::certificate::make(&own.key, &own.certificate)?;
        Ok(own)
    }

    /// The directives that give a server this certificate.
    pub(crate) fn directives(&self) -> String {
        let (certificate, key) = (self.certificate.display(), self.key.display());
        format!("ssl_certificate {certificate}; ssl_certificate_key {key};")
    }
}

impl Drop for OwnCertificate {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}
