//! Many certificates at once: those that the blocks of a configuration name are read on several
//! threads before their servers are compiled.

use std::collections::HashMap;
use std::sync::Arc;

use conf::Load;
use net::tls::{Credential, CredentialTexts};

use super::Layer;
use super::files::{CredentialsByFile, FilePair, PasswordFile};

/// Reads the certificates that these blocks name. What cannot be read is left for the server, which
/// says why.
pub fn read_ahead<'l>(blocks: impl Iterator<Item = &'l Layer>, load: &mut Load<'_>) {
    let mut pairs: HashMap<FilePair, CertificateTexts<'l>> = HashMap::new();
    for block in blocks {
        let (Some(chains), Some(keys)) = (&block.certificate, &block.certificate_key) else {
            continue;
        };
        for (chain, key) in chains.iter().zip(keys) {
            let pair = (chain.file.text.clone(), key.file.text.clone());
            if !chain.is_fixed() || !key.is_fixed() || pairs.contains_key(&pair) {
                continue;
            }
            let texts = chain
                .file
                .read("certificate", load)
                .and_then(|chain_text| Ok((chain_text, key.file.read("certificate key", load)?)));
            let passwords = block.password_file.as_ref().and_then(Option::as_ref);
            if let Ok((chain, key)) = texts {
                let passwords = passwords.map_or(&[][..], PasswordFile::passwords);
                pairs.insert(pair, CertificateTexts { chain, key, passwords });
            }
        }
    }
    let (names, texts): (Vec<_>, Vec<_>) = pairs.into_iter().unzip();
    let texts: Vec<_> = texts.iter().map(CertificateTexts::borrow).collect();
    let read = names.into_iter().zip(Credential::read_all(&texts));
    let known = &mut load.registry.of::<CredentialsByFile>().0;
    known.extend(read.filter_map(|(names, credential)| Some((names, credential.ok()?))));
}

/// What a certificate is read from.
struct CertificateTexts<'p> {
    chain: Arc<[u8]>,
    key: Arc<[u8]>,
    passwords: &'p [Vec<u8>],
}

impl CertificateTexts<'_> {
    fn borrow(&self) -> CredentialTexts<'_> {
        let Self { chain, key, passwords } = self;
        CredentialTexts { certificates: chain, key, passwords }
    }
}
