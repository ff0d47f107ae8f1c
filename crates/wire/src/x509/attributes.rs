//! OpenSSL's short names of the attributes in distinguished names.

/// OpenSSL's name of the attribute with this object identifier, if it has one.
pub(super) fn short_name(oid: &[u8]) -> Option<&'static str> {
    let (last, family) = oid.split_last()?;
    let names = FAMILIES.iter().find(|(prefix, _)| *prefix == family)?.1;
    names.iter().find(|(number, _)| number == last).map(|(_, name)| *name)
}

/// An attribute's last number, and its name.
type Attribute = (u8, &'static str);

/// All but the last number of an identifier, and the names by the last number.
const FAMILIES: [(&[u8], &[Attribute]); 6] = [
    // 2.5.4
    (&[0x55, 0x04], &X520),
    // 0.9.2342.19200300.100.1
    (&[0x09, 0x92, 0x26, 0x89, 0x93, 0xf2, 0x2c, 0x64, 0x01], &PILOT),
    // 1.2.840.113549.1.9
    (&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x09], &PKCS9),
    // 1.3.6.1.4.1.311.60.2.1
    (&[0x2b, 0x06, 0x01, 0x04, 0x01, 0x82, 0x37, 0x3c, 0x02, 0x01], &JURISDICTION),
    // 1.2.643.100
    (&[0x2a, 0x85, 0x03, 0x64], &RUSSIA),
    // 1.2.643.3.131.1
    (&[0x2a, 0x85, 0x03, 0x03, 0x81, 0x03, 0x01], &RUSSIA_TAX),
];

const X520: [Attribute; 58] = [
    (3, "CN"),
    (4, "SN"),
    (5, "serialNumber"),
    (6, "C"),
    (7, "L"),
    (8, "ST"),
    (9, "street"),
    (10, "O"),
    (11, "OU"),
    (12, "title"),
    (13, "description"),
    (14, "searchGuide"),
    (15, "businessCategory"),
    (16, "postalAddress"),
    (17, "postalCode"),
    (18, "postOfficeBox"),
    (19, "physicalDeliveryOfficeName"),
    (20, "telephoneNumber"),
    (21, "telexNumber"),
    (22, "teletexTerminalIdentifier"),
    (23, "facsimileTelephoneNumber"),
    (24, "x121Address"),
    (25, "internationaliSDNNumber"),
    (26, "registeredAddress"),
    (27, "destinationIndicator"),
    (28, "preferredDeliveryMethod"),
    (29, "presentationAddress"),
    (30, "supportedApplicationContext"),
    (31, "member"),
    (32, "owner"),
    (33, "roleOccupant"),
    (34, "seeAlso"),
    (35, "userPassword"),
    (36, "userCertificate"),
    (37, "cACertificate"),
    (38, "authorityRevocationList"),
    (39, "certificateRevocationList"),
    (40, "crossCertificatePair"),
    (41, "name"),
    (42, "GN"),
    (43, "initials"),
    (44, "generationQualifier"),
    (45, "x500UniqueIdentifier"),
    (46, "dnQualifier"),
    (47, "enhancedSearchGuide"),
    (48, "protocolInformation"),
    (49, "distinguishedName"),
    (50, "uniqueMember"),
    (51, "houseIdentifier"),
    (52, "supportedAlgorithms"),
    (53, "deltaRevocationList"),
    (54, "dmdName"),
    (65, "pseudonym"),
    (72, "role"),
    (97, "organizationIdentifier"),
    (98, "c3"),
    (99, "n3"),
    (100, "dnsName"),
];

const PILOT: [Attribute; 47] = [
    (1, "UID"),
    (2, "textEncodedORAddress"),
    (3, "mail"),
    (4, "info"),
    (5, "favouriteDrink"),
    (6, "roomNumber"),
    (7, "photo"),
    (8, "userClass"),
    (9, "host"),
    (10, "manager"),
    (11, "documentIdentifier"),
    (12, "documentTitle"),
    (13, "documentVersion"),
    (14, "documentAuthor"),
    (15, "documentLocation"),
    (20, "homeTelephoneNumber"),
    (21, "secretary"),
    (22, "otherMailbox"),
    (23, "lastModifiedTime"),
    (24, "lastModifiedBy"),
    (25, "DC"),
    (26, "aRecord"),
    (27, "pilotAttributeType27"),
    (28, "mXRecord"),
    (29, "nSRecord"),
    (30, "sOARecord"),
    (31, "cNAMERecord"),
    (37, "associatedDomain"),
    (38, "associatedName"),
    (39, "homePostalAddress"),
    (40, "personalTitle"),
    (41, "mobileTelephoneNumber"),
    (42, "pagerTelephoneNumber"),
    (43, "friendlyCountryName"),
    (44, "uid"),
    (45, "organizationalStatus"),
    (46, "janetMailbox"),
    (47, "mailPreferenceOption"),
    (48, "buildingName"),
    (49, "dSAQuality"),
    (50, "singleLevelQuality"),
    (51, "subtreeMinimumQuality"),
    (52, "subtreeMaximumQuality"),
    (53, "personalSignature"),
    (54, "dITRedirect"),
    (55, "audio"),
    (56, "documentPublisher"),
];

const PKCS9: [Attribute; 5] = [
    (1, "emailAddress"),
    (2, "unstructuredName"),
    (7, "challengePassword"),
    (8, "unstructuredAddress"),
    (20, "friendlyName"),
];

const JURISDICTION: [Attribute; 3] =
    [(1, "jurisdictionL"), (2, "jurisdictionST"), (3, "jurisdictionC")];

const RUSSIA: [Attribute; 6] = [
    (1, "OGRN"),
    (3, "SNILS"),
    (5, "OGRNIP"),
    (111, "subjectSignTool"),
    (112, "issuerSignTool"),
    (113, "classSignTool"),
];

const RUSSIA_TAX: [Attribute; 1] = [(1, "INN")];
