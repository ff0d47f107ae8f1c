use super::*;

macro_rules! file {
    ($name:literal) => {
        include_bytes!(concat!("../testdata/", $name)).as_slice()
    };
}

const FIRST: &[u8] = file!("first.crt");

fn read(key: &[u8], passwords: &[&str]) -> Result<(), CredentialError> {
    let passwords: Vec<Vec<u8>> = passwords.iter().map(|text| text.as_bytes().to_vec()).collect();
    Credential::read(FIRST, key, &passwords).map(|_| ())
}

fn refused(error: KeyError) -> Result<(), CredentialError> {
    Err(CredentialError::Key(error))
}

#[test]
fn unencrypted_keys_need_no_password() {
    assert_eq!(read(file!("sec1.key"), &[]), Ok(()));
    assert_eq!(read(file!("pkcs8.key"), &["unused"]), Ok(()));
    let version_1 = Credential::read(file!("version1.crt"), file!("sec1.key"), &[]);
    assert!(version_1.is_ok(), "{version_1:?}");
    let ed25519 = Credential::read(file!("ed25519.crt"), file!("ed25519.key"), &[]);
    assert!(ed25519.is_ok(), "{ed25519:?}");
}

/// Written by OpenSSL 3.0 (`openssl pkcs8 -topk8`, `openssl ec -aes128`), with the password `weir`.
#[test]
fn openssls_encrypted_keys_are_read() {
    for (key, name) in [
        (file!("pbes2_aes256.key"), "PBES2 with AES-256"),
        (file!("pbes2_aes192_sha512.key"), "PBES2 with AES-192 and SHA-512"),
        (file!("pbes2_aes128_sha1.key"), "PBES2 with AES-128 and SHA-1"),
        (file!("pbes2_des3.key"), "PBES2 with 3DES"),
        (file!("legacy_aes128.key"), "AES-128-CBC"),
        (file!("legacy_aes192.key"), "AES-192-CBC"),
        (file!("legacy_aes256.key"), "AES-256-CBC"),
        (file!("legacy_des3.key"), "DES-EDE3-CBC"),
    ] {
        assert_eq!(read(key, &["weir"]), Ok(()), "{name}");
        assert_eq!(read(key, &["wrong", "weir"]), Ok(()), "{name}, second password");
        assert_eq!(read(key, &["wrong", ""]), refused(KeyError::WrongPassword), "{name}");
        assert_eq!(read(key, &[]), refused(KeyError::NoPassword), "{name}");
    }
    let rsa = Credential::read(file!("rsa.crt"), file!("legacy_rsa.key"), &[b"weir".to_vec()]);
    assert!(rsa.is_ok(), "{rsa:?}");
}

#[test]
fn unsupported_encryption_is_refused() {
    for key in [file!("scrypt.key"), file!("pbes1.key"), file!("legacy_camellia.key")] {
        assert_eq!(read(key, &["weir"]), refused(KeyError::UnsupportedEncryption));
    }
}

#[test]
fn a_key_of_another_certificate_is_refused() {
    let mismatch = Credential::read(file!("second.crt"), file!("sec1.key"), &[]).map(|_| ());
    assert_eq!(mismatch, refused(KeyError::Mismatch));
    let other_kind = Credential::read(file!("rsa.crt"), file!("sec1.key"), &[]).map(|_| ());
    assert_eq!(other_kind, refused(KeyError::Mismatch));
}

#[test]
fn files_without_a_key_or_certificate_are_refused() {
    assert_eq!(read(FIRST, &[]), refused(KeyError::Missing));
    assert_eq!(read(b"", &[]), refused(KeyError::Missing));
    assert_eq!(read(&file!("sec1.key")[..100], &[]), refused(KeyError::Pem(PemError::NoEnd)));
    let no_certificate = Credential::read(b"", file!("sec1.key"), &[]).map(|_| ());
    assert_eq!(no_certificate, Err(CredentialError::Certificate(KeyError::Missing)));
    let broken = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    let broken = Credential::read(broken, file!("sec1.key"), &[]).map(|_| ());
    assert_eq!(broken, Err(CredentialError::Certificate(KeyError::InvalidCertificate)));
}

/// Written by OpenSSL 3.0 (`openssl genrsa 1024`).
#[test]
fn a_short_rsa_key_is_distinguished_from_a_broken_one() {
    let short = || refused(KeyError::ShortRsaKey(1024));
    assert_eq!(read(file!("rsa1024_pkcs1.key"), &[]), short());
    assert_eq!(read(file!("rsa1024_pkcs8.key"), &[]), short());
    assert_eq!(read(file!("rsa1024_encrypted.key"), &["x", "weir"]), short());
    assert_eq!(read(file!("rsa1024_encrypted.key"), &["x"]), refused(KeyError::WrongPassword));
    let said = KeyError::ShortRsaKey(1024).to_string();
    assert_eq!(said, "RSA key of 1024 bits; at least 2048 are needed");
}

#[test]
fn one_file_may_contain_the_chain_and_the_key() {
    let both = [file!("sec1.key"), FIRST, file!("second.crt")].concat();
    let credential = Credential::read(&both, &both, &[]).expect("a credential");
    assert_eq!(credential.chain().count(), 2);
}

#[test]
fn a_password_file_has_one_password_per_line() {
    let passwords = read_passwords(b"one\r\n\n two \nthree").expect("passwords");
    assert_eq!(passwords, [&b"one"[..], b" two ", b"three"]);
    assert_eq!(read_passwords(b""), Some(vec![Vec::new()]));
    assert_eq!(read_passwords(&[b'x'; PASSWORD_LENGTH_MAX]), None);
}

#[test]
fn many_credentials_are_read_in_order() {
    use crate::testing::tls::{ECDSA_CERTIFICATE, ECDSA_KEY, RSA_CERTIFICATE};

    let fits = |number: usize| number % 7 != 3;
    let texts: Vec<_> = (0..100)
        .map(|number| CredentialTexts {
            certificates: if fits(number) { ECDSA_CERTIFICATE } else { RSA_CERTIFICATE }.as_bytes(),
            key: ECDSA_KEY.as_bytes(),
            passwords: &[],
        })
        .collect();
    let read = Credential::read_all(&texts);
    assert_eq!(read.len(), texts.len());
    assert!(read.iter().enumerate().all(|(number, read)| read.is_ok() == fits(number)));
    assert!(Credential::read_all(&[]).is_empty());
}
