//! TLS.

mod private_key;

pub use private_key::{Credential, CredentialError, KeyError, PASSWORD_LENGTH_MAX, read_passwords};
