//! Why a request is refused, in the words of NGINX Plus where it has some.

use std::fmt;

/// A refusal: the parts of an error of the API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyvalRefusal {
    /// The status of the reply.
    pub status: u16,
    /// NGINX Plus's name of the error.
    pub code: &'static str,
    pub text: String,
}

impl KeyvalRefusal {
    pub(super) fn new(status: u16, code: &'static str, text: impl Into<String>) -> Self {
        Self { status, code, text: text.into() }
    }

    /// The request does not say what it has to.
    pub(super) fn format(text: impl Into<String>) -> Self {
        Self::new(400, "KeyvalFormatError", text)
    }

    /// The subsystem has no zone of that name.
    pub fn no_zone(name: &[u8]) -> Self {
        let name = String::from_utf8_lossy(name);
        Self::new(404, "KeyvalNotFound", format!("keyval zone \"{name}\" not found"))
    }

    /// The zone has no entry with that key.
    pub fn no_key(key: &[u8]) -> Self {
        let key = String::from_utf8_lossy(key);
        Self::new(404, "KeyvalKeyNotFound", format!("keyval key \"{key}\" not found"))
    }

    pub(super) fn exists(key: &[u8]) -> Self {
        let key = String::from_utf8_lossy(key);
        Self::new(409, "KeyvalKeyExists", format!("key \"{key}\" already exists"))
    }

    pub(super) fn full(bytes_max: u64, keys: usize) -> Self {
        let text = format!("keyval storage is full: {keys} keys in a zone of {bytes_max} bytes");
        Self::new(413, "KeyvalStorageFull", text)
    }
}

impl fmt::Display for KeyvalRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
