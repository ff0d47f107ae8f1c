//! The extensions of a certificate, and whether verification can rely on them.

use super::name_constraints::{NameConstraints, is_general_name};
use super::{
    AUTHORITY_KEY_ID, BASIC_CONSTRAINTS, CERTIFICATE_TYPE, DISTRIBUTION_POINTS, EXTENDED_KEY_USAGE,
    Extension, KEY_USAGE, NAME_CONSTRAINTS, SUBJECT_ALT_NAME, SUBJECT_KEY_ID, X509,
};
use crate::der::{DerReader, Element, InvalidDer, tag};

/// The most extensions of a certificate.
const EXTENSIONS_MAX: usize = 100;

/// Critical extensions that verification processes, or that have no effect here: policies.
const HEEDED: [&[u8]; 10] = [
    BASIC_CONSTRAINTS,
    KEY_USAGE,
    EXTENDED_KEY_USAGE,
    SUBJECT_ALT_NAME,
    NAME_CONSTRAINTS,
    CERTIFICATE_TYPE,
    &[0x55, 0x1d, 0x20],
    &[0x55, 0x1d, 0x21],
    &[0x55, 0x1d, 0x24],
    &[0x55, 0x1d, 0x36],
];

/// The value of the extension `BasicConstraints`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct BasicConstraints {
    pub(super) is_ca: bool,
    pub(super) path_max: Option<u32>,
}

impl<'a> X509<'a> {
    /// Whether it has a critical extension that verification does not process and may not
    /// ignore.
    pub fn has_unknown_critical(&self) -> bool {
        has_critical(self.extensions, &HEEDED)
    }

    /// Whether an extension that verification uses is broken, or occurs twice: it could be read in
    /// two ways.
    pub fn has_invalid_extension(&self) -> bool {
        let mut seen: [&[u8]; EXTENSIONS_MAX] = [&[]; EXTENSIONS_MAX];
        let mut count = 0;
        let mut reader = DerReader::new(self.extensions);
        while !reader.is_empty() {
            let Ok((oid, contents)) = read_extension(&mut reader) else { return true };
            if count == EXTENSIONS_MAX || seen[..count].contains(&oid) || !is_sound(oid, contents) {
                return true;
            }
            seen[count] = oid;
            count += 1;
        }
        false
    }

    pub(super) fn basic_constraints(&self) -> Option<BasicConstraints> {
        read_basic_constraints(self.extension(BASIC_CONSTRAINTS)?).ok()
    }

    pub(super) fn extension(&self, oid: &[u8]) -> Option<&'a [u8]> {
        self.extensions().find(|(other, _)| *other == oid).map(|(_, contents)| contents)
    }

    /// The extensions, as far as they can be read.
    pub(super) fn extensions(&self) -> impl Iterator<Item = Extension<'a>> {
        let mut reader = DerReader::new(self.extensions);
        core::iter::from_fn(move || read_extension(&mut reader).ok()).take(EXTENSIONS_MAX)
    }
}

/// Whether there is a critical extension that is not one of these, or a broken one.
pub(super) fn has_critical(extensions: &[u8], heeded: &[&[u8]]) -> bool {
    let mut reader = DerReader::new(extensions);
    while !reader.is_empty() {
        let Ok(mut fields) = reader.inside(tag::SEQUENCE) else { return true };
        let Ok(oid) = fields.contents(tag::OBJECT_IDENTIFIER) else { return true };
        let is_critical =
            matches!(fields.optional(tag::BOOLEAN), Ok(Some(value)) if value.contents != [0]);
        if is_critical && !heeded.contains(&oid) {
            return true;
        }
    }
    false
}

pub(super) fn read_extension<'a>(reader: &mut DerReader<'a>) -> Result<Extension<'a>, InvalidDer> {
    let mut extension = reader.inside(tag::SEQUENCE)?;
    let oid = extension.contents(tag::OBJECT_IDENTIFIER)?;
    extension.optional(tag::BOOLEAN)?;
    let contents = extension.contents(tag::OCTET_STRING)?;
    extension.end()?;
    Ok((oid, contents))
}

fn read_basic_constraints(der: &[u8]) -> Result<BasicConstraints, InvalidDer> {
    let mut fields = DerReader::sequence(der)?;
    let is_true = |value: Element<'_>| value.contents == [0xff];
    let is_ca = fields.optional(tag::BOOLEAN)?.is_some_and(is_true);
    let path_max = if fields.is_empty() { None } else { Some(fields.number()?) };
    fields.end()?;
    Ok(BasicConstraints { is_ca, path_max })
}

fn is_sound(oid: &[u8], contents: &[u8]) -> bool {
    match oid {
        BASIC_CONSTRAINTS => {
            read_basic_constraints(contents).is_ok_and(|read| read.is_ca || read.path_max.is_none())
        }
        KEY_USAGE | CERTIFICATE_TYPE => is_element(contents, tag::BIT_STRING),
        SUBJECT_KEY_ID => is_element(contents, tag::OCTET_STRING),
        NAME_CONSTRAINTS => NameConstraints::read(contents).is_ok(),
        EXTENDED_KEY_USAGE => is_list_of(contents, |item| item.tag == tag::OBJECT_IDENTIFIER),
        SUBJECT_ALT_NAME => is_list_of(contents, is_general_name),
        AUTHORITY_KEY_ID | DISTRIBUTION_POINTS => is_list_of(contents, |_| true),
        _ => true,
    }
}

fn is_element(der: &[u8], tag: u8) -> bool {
    let mut reader = DerReader::new(der);
    reader.contents(tag).is_ok_and(|contents| !contents.is_empty()) && reader.is_empty()
}

fn is_list_of(der: &[u8], is_item: impl Fn(Element<'_>) -> bool) -> bool {
    let Ok(mut items) = DerReader::sequence(der) else { return false };
    while !items.is_empty() {
        if !items.any().is_ok_and(&is_item) {
            return false;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_in_the_wrong_form_is_broken() {
        let alt_name = |name: &[u8]| {
            let der = [&[0x30, name.len() as u8], name].concat();
            is_sound(SUBJECT_ALT_NAME, &der)
        };
        assert!(alt_name(&[0x82, 1, b'a', 0x87, 4, 127, 0, 0, 1]));
        assert!(alt_name(&[0xa4, 2, 0x30, 0]));
        assert!(!alt_name(&[0x87, 4, 127, 0, 0, 1, 0x80, 4, 127, 0, 0, 1]));
        assert!(!alt_name(&[0xa2, 1, b'a']) && !alt_name(&[0x84, 0]) && !alt_name(&[0x89, 0]));
    }
}
