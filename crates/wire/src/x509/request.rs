//! Requests for certificates (PKCS #10, RFC 2986).

use alloc::vec::Vec;

use super::SubjectName;
use super::written::{COMMON_NAME_BYTES_MAX, sign, write_name, write_names, write_public_key};
use crate::der::tag;
use crate::der_writer::DerWriter;
use crate::signer::{Signer, SigningFailed};

/// `extensionRequest`, 1.2.840.113549.1.9.14.
const EXTENSION_REQUEST: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 9, 14];

/// A request for a certificate with these names, as DER. With `has_common_name`, the first host
/// that is short enough is the common name, too.
pub fn write_request(
    names: &[SubjectName],
    has_common_name: bool,
    signer: &dyn Signer,
) -> Result<Vec<u8>, SigningFailed> {
    let common_name = names.iter().find_map(|name| match name {
        SubjectName::Dns(host) if host.len() <= COMMON_NAME_BYTES_MAX => Some(host.as_str()),
        _ => None,
    });
    let info = DerWriter::sequence(|info| {
        info.integer(&[0]);
        write_name(common_name.filter(|_| has_common_name), info);
        write_public_key(signer, info);
        info.nested(tag::constructed(0), |attributes| {
            attributes.nested(tag::SEQUENCE, |attribute| {
                attribute.object_identifier(EXTENSION_REQUEST);
                attribute.nested(tag::SET, |set| {
                    set.nested(tag::SEQUENCE, |list| write_names(names, false, list));
                });
            });
        });
    });
    sign(&info, signer)
}
