use alloc::string::String;
use alloc::vec::Vec;

use super::name::push_hex;
use super::*;
use crate::pem::PemSections;

/// Names as DER, and OpenSSL 3.0's output for them (`openssl x509 -nameopt RFC2253` and
/// `-nameopt compat`).
const NAMES: [(&str, &str, &str); 15] = [
    ("3000", "", ""),
    (
        "302d310b3009060355040613024445310d300b060355040a0c0457656972310f300d06035504030c0663\
         6c69656e74",
        "CN=client,O=Weir,C=DE",
        "/C=DE/O=Weir/CN=client",
    ),
    (
        "30173115301306035504030c0c5a6fc3ab20e282acf09f9880",
        "CN=Zo\\C3\\AB \\E2\\82\\AC\\F0\\9F\\98\\80",
        "/CN=Zo\\xC3\\xAB \\xE2\\x82\\xAC\\xF0\\x9F\\x98\\x80",
    ),
    ("3010310e300c060355040314055a6feb20a4", "CN=Zo\\C3\\AB \\C2\\A4", "/CN=Zo\\xEB \\xA4"),
    (
        "301d311b301906035504031e1200dc006e00ef0063006f00640065002020ac",
        "CN=\\C3\\9Cn\\C3\\AFcode \\E2\\82\\AC",
        "/CN=\\x00\\xDC\\x00n\\x00\\xEF\\x00c\\x00o\\x00d\\x00e\\x00  \\xAC",
    ),
    (
        "30273125302306035504031c1c0000007700000069000000640000006500000020000020ac0001f600",
        "CN=wide \\E2\\82\\AC\\F0\\9F\\98\\80",
        "/CN=\\x00\\x00\\x00w\\x00\\x00\\x00i\\x00\\x00\\x00d\\x00\\x00\\x00e\\x00\\x00\\x00 \
         \\x00\\x00 \\xAC\\x00\\x01\\xF6\\x00",
    ),
    (
        "30453134300c06035504030c056d756c74693010060a0992268993f22c6401010c023432301206092a86\
         4886f70d01090116056140622e63310d300b060355040a0c046c617374",
        "O=last,emailAddress=a@b.c+UID=42+CN=multi",
        "/CN=multi+UID=42+emailAddress=a@b.c/O=last",
    ),
    (
        "304831133011060a0992268993f22c64011916036f726731173015060a0992268993f22c640119160765\
         78616d706c653118300a06035504051303313233300a06035504040c03537572",
        "SN=Sur+serialNumber=123,DC=example,DC=org",
        "/DC=org/DC=example/serialNumber=123+SN=Sur",
    ),
    (
        "30263124302206035504030c1b20236c6561642c202b20227122205c203c613e3b20747261696c20",
        "CN=\\ #lead\\, \\+ \\\"q\\\" \\\\ \\<a\\>\\; trail\\ ",
        "/CN= #lead, \\+ \"q\" \\ <a>; trail ",
    ),
    (
        "3027310a300806035504030c0123310a3008060355040a0c0120310d300b060355040b0c043d2f2b2c",
        "OU==/\\+\\,,O=\\ ,CN=#",
        "/CN=#/O= /OU==\\/\\+,",
    ),
    (
        "3026310c300a06035504030c03232320310b3009060355040a0c02202031093007060355040b0c00",
        "OU=,O=\\ \\ ,CN=\\##\\ ",
        "/CN=## /O=  /OU=",
    ),
    (
        "30133111300f06035504030c0863746c00011f7f0a",
        "CN=ctl\\00\\01\\1F\\7F\\0A",
        "/CN=ctl\\x00\\x01\\x1F\\x7F\\x0A",
    ),
    (
        "303e3110300e06032a03040c07756e6b6e6f776e311e301c06146983f09da7ebcfdee0c7a1a7b2c0948c\
         c8f9d7760c0475756964310a30080603883701130178",
        "2.999.1=#130178,2.25.329800735698586629295641978511506172918=#0C0475756964,1.2.3.4=#\
         0C07756E6B6E6F776E",
        "/1.2.3.4=unknown/2.25.329800735698586629295641978511506172918=uuid/2.999.1=x",
    ),
    (
        "305c31133011060b2b0601040182373c020103130255533110300e060355040f0c075072697661746531\
         10300e06035504610c0756415444452d31310e300c06035504110c0531303131353111300f0603550409\
         0c085374726565742031",
        "street=Street 1,postalCode=10115,organizationIdentifier=VATDE-1,businessCategory=Pri\
         vate,jurisdictionC=US",
        "/jurisdictionC=US/businessCategory=Private/organizationIdentifier=VATDE-1/postalCode\
         =10115/street=Street 1",
    ),
    (
        "3044311a301806082a85030381030101120c3030373831343530383932313118301606052a8503640112\
         0d31303337383433303034393033310c300a06052a85036403120131",
        "SNILS=1,OGRN=1037843004903,INN=007814508921",
        "/INN=007814508921/OGRN=1037843004903/SNILS=1",
    ),
];

/// Serial numbers, and the output of `openssl x509 -serial`.
const SERIALS: [(&str, &str); 12] = [
    ("01", "01"),
    ("00", "00"),
    ("7f", "7F"),
    ("0080", "80"),
    ("ff", "-01"),
    ("80", "-80"),
    ("ff7f", "-81"),
    ("00deadbeef", "DEADBEEF"),
    ("0102030405060708090a0b0c0d0e0f1011121314", "0102030405060708090A0B0C0D0E0F1011121314"),
    (
        "0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f2021222324",
        "0102030405060708090A0B0C0D0E0F101112131415161718191A1B1C1D1E1F20212223\\\n24",
    ),
    (
        "010101010101010101010101010101010101010101010101010101010101010101010101010101010101\
         0101010101010101010101010101010101010101010101010101010101",
        "0101010101010101010101010101010101010101010101010101010101010101010101\\\n0101010101\
         010101010101010101010101010101010101010101010101010101010101\\\n01",
    ),
    ("ff00", "-0100"),
];

/// Times by tag, and the output of `openssl x509 -startdate`.
const TIMES: [(u8, &str, &str); 8] = [
    (23, "260101000000Z", "Jan  1 00:00:00 2026 GMT"),
    (23, "491231235959Z", "Dec 31 23:59:59 2049 GMT"),
    (23, "500101000000Z", "Jan  1 00:00:00 1950 GMT"),
    (23, "701106084937Z", "Nov  6 08:49:37 1970 GMT"),
    (24, "20501106084937Z", "Nov  6 08:49:37 2050 GMT"),
    (24, "19491106084937Z", "Nov  6 08:49:37 1949 GMT"),
    (24, "99991231235959Z", "Dec 31 23:59:59 9999 GMT"),
    (23, "240229120000Z", "Feb 29 12:00:00 2024 GMT"),
];

#[test]
fn names_are_written_as_openssl_writes_them() {
    for (der, rfc2253, legacy) in NAMES {
        let der = bytes(der);
        let element = DerReader::new(&der).element(tag::SEQUENCE).expect("a sequence");
        let name = DistinguishedName::new(element);
        let (mut first, mut second) = (Vec::new(), Vec::new());
        name.write_rfc2253(&mut first).expect("a name");
        name.write_legacy(&mut second).expect("a name");
        assert_eq!(String::from_utf8(first).as_deref(), Ok(rfc2253));
        assert_eq!(String::from_utf8(second).as_deref(), Ok(legacy));
    }
}

#[test]
fn serial_numbers_are_written_as_openssl_writes_them() {
    let certificate = first();
    for (serial, expected) in SERIALS {
        let serial = bytes(serial);
        let mut x509 = X509::parse(&certificate).expect("a certificate");
        let mut out = Vec::new();
        x509.serial = &serial;
        x509.write_serial(&mut out);
        assert_eq!(String::from_utf8(out).as_deref(), Ok(expected));
    }
}

#[test]
fn times_are_written_as_openssl_writes_them() {
    for (tag, text, expected) in TIMES {
        let time = time(tag, text).expect("a time");
        let mut out = Vec::new();
        time.write(&mut out);
        assert_eq!(String::from_utf8(out).as_deref(), Ok(expected));
    }
    assert_eq!(time(tag::UTC_TIME, "700101000000Z").map(CertificateTime::seconds), Ok(0));
    for broken in
        ["", "26010100000", "260101000000", "260231000000Z", "261301000000Z", "2601010000-1Z"]
    {
        assert_eq!(time(tag::UTC_TIME, broken), Err(InvalidDer), "{broken}");
    }
}

#[test]
fn parts_of_a_certificate_are_found() {
    let certificate = first();
    let x509 = X509::parse(&certificate).expect("a certificate");
    let mut name = Vec::new();
    x509.subject.write_rfc2253(&mut name).expect("a name");
    assert_eq!((&name[..], x509.subject), (&b"CN=first"[..], x509.issuer));
    assert_eq!((x509.ocsp_responder(), x509.may_sign_ocsp()), (None, false));
    let end = x509.not_after.seconds();
    assert_eq!(x509.days_left(end), 0);
    assert_eq!(x509.days_left(end - 86399), 0);
    assert_eq!(x509.days_left(end - 86400), 1);
    assert_eq!(x509.days_left(end + 86400 * 3), 0);
    for cut in 0..certificate.len() {
        assert!(X509::parse(&certificate[..cut]).is_err(), "cut at {cut}");
    }
}

fn time(tag: u8, text: &str) -> Result<CertificateTime, InvalidDer> {
    CertificateTime::read(crate::der::Element { tag, contents: text.as_bytes(), whole: &[] })
}

fn first() -> Vec<u8> {
    let text = include_bytes!("../../../../fuzz/seeds/pem/certificate");
    PemSections::new(text).next().expect("a section").expect("a good one").contents
}

fn bytes(hex: &str) -> Vec<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16).expect("a digit") as u8;
    let (pairs, _) = hex.as_bytes().as_chunks();
    let bytes: Vec<u8> = pairs.iter().map(|[high, low]| digit(*high) << 4 | digit(*low)).collect();
    let mut again = Vec::new();
    bytes.iter().for_each(|byte| push_hex(*byte, &mut again));
    assert_eq!(again.to_ascii_lowercase(), hex.as_bytes());
    bytes
}
