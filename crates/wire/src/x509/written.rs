//! What certificates and requests for them have in common when they are written.

use alloc::vec::Vec;

use super::{SUBJECT_ALT_NAME, SubjectName};
use crate::der::tag;
use crate::der_writer::DerWriter;
use crate::signer::{KeyKind, Signer, SigningFailed};

const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];

/// The most bytes of a common name (RFC 5280, appendix A.1).
pub(super) const COMMON_NAME_BYTES_MAX: usize = 64;

/// `ecPublicKey` with its curve, or `rsaEncryption`.
fn key_algorithm(kind: KeyKind) -> &'static [u8] {
    match kind {
        KeyKind::EcdsaP256 => {
            b"\x30\x13\x06\x07\x2a\x86\x48\xce\x3d\x02\x01\
                                \x06\x08\x2a\x86\x48\xce\x3d\x03\x01\x07"
        }
        KeyKind::EcdsaP384 => {
            b"\x30\x10\x06\x07\x2a\x86\x48\xce\x3d\x02\x01\x06\x05\x2b\x81\x04\0\x22"
        }
        KeyKind::EcdsaP521 => {
            b"\x30\x10\x06\x07\x2a\x86\x48\xce\x3d\x02\x01\x06\x05\x2b\x81\x04\0\x23"
        }
        KeyKind::Rsa => b"\x30\x0d\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x01\x01\x05\0",
    }
}

/// `ecdsa-with-SHA256`, `ecdsa-with-SHA384`, `ecdsa-with-SHA512`, `sha256WithRSAEncryption`.
pub(super) fn signature_algorithm(kind: KeyKind) -> &'static [u8] {
    match kind {
        KeyKind::EcdsaP256 => b"\x30\x0a\x06\x08\x2a\x86\x48\xce\x3d\x04\x03\x02",
        KeyKind::EcdsaP384 => b"\x30\x0a\x06\x08\x2a\x86\x48\xce\x3d\x04\x03\x03",
        KeyKind::EcdsaP521 => b"\x30\x0a\x06\x08\x2a\x86\x48\xce\x3d\x04\x03\x04",
        KeyKind::Rsa => b"\x30\x0d\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x01\x0b\x05\0",
    }
}

/// `SubjectPublicKeyInfo`.
pub(super) fn write_public_key(signer: &dyn Signer, out: &mut DerWriter) {
    out.nested(tag::SEQUENCE, |info| {
        info.whole(key_algorithm(signer.kind()));
        info.bit_string(signer.public_bits());
    });
}

/// A distinguished name with a common name or nothing.
pub(super) fn write_name(common_name: Option<&str>, out: &mut DerWriter) {
    out.nested(tag::SEQUENCE, |name| {
        let Some(text) = common_name else { return };
        name.nested(tag::SET, |set| {
            set.nested(tag::SEQUENCE, |attribute| {
                attribute.object_identifier(COMMON_NAME);
                attribute.element(tag::UTF8_STRING, text.as_bytes());
            });
        });
    });
}

pub(super) fn write_extension(oid: &[u8], is_critical: bool, contents: &[u8], out: &mut DerWriter) {
    out.nested(tag::SEQUENCE, |extension| {
        extension.object_identifier(oid);
        if is_critical {
            extension.element(tag::BOOLEAN, &[0xff]);
        }
        extension.element(tag::OCTET_STRING, contents);
    });
}

/// The extension `subjectAltName`.
pub(super) fn write_names(names: &[SubjectName], is_critical: bool, out: &mut DerWriter) {
    let list = DerWriter::sequence(|list| names.iter().for_each(|name| name.write(list)));
    write_extension(SUBJECT_ALT_NAME, is_critical, &list, out);
}

/// The signed bytes, the algorithm and the signature.
pub(super) fn sign(signed: &[u8], signer: &dyn Signer) -> Result<Vec<u8>, SigningFailed> {
    let signature = signer.sign(signed)?;
    let bits = match signer.kind().coordinate_bytes() {
        None => signature,
        Some(length) => {
            let (r, s) = signature.split_at_checked(length).ok_or(SigningFailed)?;
            DerWriter::sequence(|numbers| [r, s].iter().for_each(|number| numbers.integer(number)))
        }
    };
    Ok(DerWriter::sequence(|outer| {
        outer.whole(signed);
        outer.whole(signature_algorithm(signer.kind()));
        outer.bit_string(&bits);
    }))
}
