//! Random chains, verified here and by `openssl verify`: chains that OpenSSL refuses must not be
//! accepted. `cargo xtask chains` runs it; the seed is fixed.

use std::path::Path;
use std::process::{Command, Stdio};
use std::{fs, slice};

use ::aws_lc_rs::rand::SystemRandom;
use ::aws_lc_rs::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair as _};

use super::*;

const CHAINS: usize = 3000;
/// 1 January 2030.
const NOW: i64 = 1_893_456_000;

const ECDSA_SHA256: &[u8] = &[0x30, 10, 6, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 2];
const P256: &[u8] = &[
    0x30, 0x13, 6, 7, 0x2a, 0x86, 0x48, 0xce, 0x3d, 2, 1, 6, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1,
    7,
];
const HOSTS: [&str; 7] = ["a.test", "b.a.test", "*.a.test", "evil.test", "A.Test", "", ".a.test"];
const MAILS: [&str; 5] = ["x@a.test", "y@b.a.test", "a.test", ".a.test", "nothing"];
const URIS: [&str; 5] = ["https://a.test/", "https://b.a.test:1/x", "a.test", ".a.test", "urn:x"];
const NAMES: [&str; 4] = ["weir", "Weir", "W E I R", "evil"];

struct Dice(u64);

impl Dice {
    /// A number below `count`.
    fn roll(&mut self, count: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 20) as usize % count
    }

    fn pick<'a, T: ?Sized>(&mut self, from: &[&'a T]) -> &'a T {
        from[self.roll(from.len())]
    }
}

fn tlv(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let contents = parts.concat();
    let length = contents.len() as u16;
    let [high, low] = length.to_be_bytes();
    let head = if length < 0x80 { vec![tag, low] } else { vec![tag, 0x82, high, low] };
    [head, contents].concat()
}

fn attribute(oid: &[u8], tag: u8, text: &str) -> Vec<u8> {
    tlv(0x31, &[&tlv(0x30, &[&tlv(6, &[oid]), &tlv(tag, &[text.as_bytes()])])])
}

/// A name with the given common name, and a random organization and e-mail address.
fn name(dice: &mut Dice, common: &str) -> Vec<u8> {
    let mut sets = Vec::new();
    if dice.roll(2) == 0 {
        let tag = [0x0c, 0x13][dice.roll(2)];
        sets.push(attribute(&[0x55, 4, 10], tag, NAMES[dice.roll(4)]));
    }
    sets.push(attribute(&[0x55, 4, 3], 0x0c, common));
    if dice.roll(8) == 0 {
        let oid = [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 9, 1];
        sets.push(attribute(&oid, [0x16, 0x0c][dice.roll(8) / 7], MAILS[dice.roll(2)]));
    }
    tlv(0x30, &[&sets.concat()])
}

/// A `GeneralName`, or the base of a name constraint.
fn general_name(dice: &mut Dice, is_base: bool) -> Vec<u8> {
    match dice.roll(if is_base { 9 } else { 8 }) {
        0..=2 => tlv(0x82, &[HOSTS[dice.roll(HOSTS.len())].as_bytes()]),
        3 => tlv(0x81, &[MAILS[dice.roll(if is_base { 5 } else { 2 })].as_bytes()]),
        4 => tlv(0x86, &[URIS[dice.roll(5)].as_bytes()]),
        5 if is_base => tlv(0x87, &[&[10, dice.roll(2) as u8, 0, 0, 255, 255, 0, 0]]),
        5 => tlv(0x87, &[&[10, dice.roll(2) as u8, 1, 1][..[4, 4, 4, 3][dice.roll(4)]]]),
        6 => {
            let set = attribute(&[0x55, 4, 10], [0x0c, 0x13][dice.roll(2)], NAMES[dice.roll(4)]);
            tlv(0xa4, &[&tlv(0x30, &[&set])])
        }
        // The second one is an `otherName` in an invalid form.
        7 => tlv([0x88, 0x80][dice.roll(6) / 5], &[&[0x2a, 3]]),
        _ => tlv(0x82, &[b"a.test"]),
    }
}

fn extension(oid: &[u8], is_critical: bool, contents: &[u8]) -> Vec<u8> {
    let critical: &[u8] = if is_critical { &[1, 1, 0xff] } else { &[] };
    tlv(0x30, &[&tlv(6, &[oid]), critical, &tlv(4, &[contents])])
}

fn constraints(dice: &mut Dice) -> Vec<u8> {
    let mut lists = Vec::new();
    for tag in [0xa0, 0xa1] {
        let subtrees: Vec<_> = (0..dice.roll(3))
            .map(|_| {
                let bounds: &[u8] = if dice.roll(20) == 0 { &[0x80, 1, 1] } else { &[] };
                tlv(0x30, &[&general_name(dice, true), bounds])
            })
            .collect();
        if !subtrees.is_empty() {
            lists.push(tlv(tag, &[&subtrees.concat()]));
        }
    }
    tlv(0x30, &[&lists.concat()])
}

/// Random extensions, most of them needed in a chain.
fn extensions(dice: &mut Dice, is_ca: bool) -> Vec<u8> {
    let mut all = Vec::new();
    let ca: [&[u8]; 5] =
        [&[1, 1, 0xff], &[1, 1, 0xff, 2, 1, 0], &[1, 1, 0xff, 2, 1, 1], &[], &[2, 1, 0]];
    let kind = if is_ca {
        [0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 2, 2, 1, 3][dice.roll(14)]
    } else {
        dice.roll(25)
    };
    if kind < ca.len() {
        all.push(extension(BASIC, dice.roll(2) == 0, &tlv(0x30, &[ca[kind]])));
    }
    let usages: [u8; 8] = [0x80, 0x20, 0x08, 0x04, 0x80, 0xa0, 0x86, 0];
    if dice.roll(3) == 0 {
        let usage =
            if is_ca { [0x06, 0x04, 0x86, 0x80][dice.roll(16) / 5] } else { usages[dice.roll(8)] };
        all.push(extension(&[0x55, 0x1d, 0x0f], dice.roll(2) == 0, &[3, 2, 0, usage]));
    }
    if dice.roll(10) == 0 {
        let purpose: &[u8] = dice.pick(&[
            &[0x2b, 6, 1, 5, 5, 7, 3, 1][..],
            &[0x2b, 6, 1, 5, 5, 7, 3, 2],
            &[0x2b, 6, 1, 5, 5, 7, 3, 3],
            &[0x55, 0x1d, 0x25, 0],
        ]);
        let purposes = tlv(0x30, &[&tlv(6, &[purpose])]);
        all.push(extension(&[0x55, 0x1d, 0x25], dice.roll(2) == 0, &purposes));
    }
    if is_ca && dice.roll(3) == 0 {
        all.push(extension(&[0x55, 0x1d, 0x1e], dice.roll(2) == 0, &constraints(dice)));
    }
    if dice.roll(if is_ca { 8 } else { 2 }) == 0 {
        let names: Vec<_> = (0..=dice.roll(3)).map(|_| general_name(dice, false)).collect();
        let names = tlv(0x30, &[&names.concat()]);
        all.push(extension(&[0x55, 0x1d, 0x11], dice.roll(2) == 0, &names));
    }
    // A key identifier, one of two values, so that some authorities match those below them.
    if dice.roll(24) == 0 {
        all.push(extension(&[0x55, 0x1d, 0x0e], false, &[4, 1, dice.roll(2) as u8]));
    }
    if dice.roll(24) == 0 {
        all.push(extension(&[0x55, 0x1d, 0x23], false, &[0x30, 3, 0x80, 1, dice.roll(2) as u8]));
    }
    match dice.roll(28) {
        0 => all.push(extension(&[0x2a, 3, 4], dice.roll(2) == 0, &[5, 0])),
        1 => {
            let kind = [3, 2, 0, [0x80, 0x40, 0x04, 0xc4][dice.roll(4)]];
            all.push(extension(&[0x60, 0x86, 0x48, 1, 0x86, 0xf8, 0x42, 1, 1], false, &kind));
        }
        2 if !all.is_empty() => all.push(all[dice.roll(all.len())].clone()),
        _ => {}
    }
    all.concat()
}

const BASIC: &[u8] = &[0x55, 0x1d, 0x13];

struct Issuer<'k> {
    name: Vec<u8>,
    key: &'k EcdsaKeyPair,
}

/// A certificate signed by the issuer, or self-signed.
fn certificate(dice: &mut Dice, own: &Issuer<'_>, issuer: &Issuer<'_>, is_ca: bool) -> Vec<u8> {
    let (begin, end) = match dice.roll(60) {
        2 => ("20200101000000Z", "20300101000000Z"), // Expires, or becomes valid, now.
        3 => ("20300101000000Z", "21200101000000Z"),
        0 => ("20200101000000Z", "20210101000000Z"),
        1 => ("21000101000000Z", "21200101000000Z"),
        _ => ("20200101000000Z", "21200101000000Z"),
    };
    let extensions = match dice.roll(60) {
        0 => Vec::new(),
        _ => extensions(dice, is_ca),
    };
    let serial = [1, dice.roll(256) as u8, dice.roll(256) as u8];
    let key = if dice.roll(80) == 0 { own.key } else { issuer.key };
    sign(&serial, own, &Issuer { name: issuer.name.clone(), key }, [begin, end], &extensions)
}

fn sign(
    serial: &[u8],
    own: &Issuer<'_>,
    issuer: &Issuer<'_>,
    times: [&str; 2],
    extensions: &[u8],
) -> Vec<u8> {
    let validity =
        tlv(0x30, &times.map(|time| tlv(0x18, &[time.as_bytes()])).each_ref().map(|t| &t[..]));
    let key = tlv(0x30, &[P256, &tlv(3, &[&[0], own.key.public_key().as_ref()])]);
    let extensions = match extensions.is_empty() {
        true => Vec::new(),
        false => tlv(0xa3, &[&tlv(0x30, &[extensions])]),
    };
    let signed = tlv(
        0x30,
        &[
            &[0xa0, 3, 2, 1, 2],
            &tlv(2, &[serial]),
            ECDSA_SHA256,
            &issuer.name,
            &validity,
            &own.name,
            &key,
            &extensions,
        ],
    );
    let signature = issuer.key.sign(&SystemRandom::new(), &signed).expect("a signature");
    tlv(0x30, &[&signed, ECDSA_SHA256, &tlv(3, &[&[0], signature.as_ref()])])
}

fn pem(certificates: &[Vec<u8>]) -> Vec<u8> {
    let mut text = Vec::new();
    certificates.iter().for_each(|der| wire::pem::encode("CERTIFICATE", der, &mut text));
    text
}

/// A chain from the peer's certificate to the root's, and other certificates that the peer sends:
/// the same authorities, issued by another authority or again.
fn chain(dice: &mut Dice, keys: &[EcdsaKeyPair]) -> (Vec<Vec<u8>>, Vec<Vec<u8>>) {
    let mut issuer = Issuer { name: name(dice, "root"), key: &keys[0] };
    let stranger = Issuer { name: name(dice, "stranger"), key: &keys[4] };
    let mut chain = vec![certificate(dice, &issuer, &issuer, true)];
    let mut others = Vec::new();
    for (at, key) in keys[1..].iter().enumerate().take(1 + dice.roll(3)) {
        let common = ["leaf", "a.test", "b.a.test", "evil.test", "*.a.test"][dice.roll(5)];
        let name = match dice.roll(20) {
            0 => issuer.name.clone(),
            _ => self::name(dice, &format!("authority {at}")),
        };
        let own = Issuer { name, key };
        chain.insert(0, certificate(dice, &own, &issuer, true));
        match dice.roll(16) {
            0 => others.push(certificate(dice, &own, &stranger, true)),
            1 => others.push(certificate(dice, &own, &issuer, true)),
            _ => {}
        }
        issuer = own;
        if dice.roll(2) == 0 || at == 2 {
            let own = Issuer { name: self::name(dice, common), key: &keys[4] };
            chain.insert(0, certificate(dice, &own, &issuer, false));
            break;
        }
    }
    (chain, others)
}

/// A peer's certificates with the purpose and name to verify them for.
struct Question {
    leaf: Vec<u8>,
    /// The other certificates that the peer sends, in any order.
    others: Vec<Vec<u8>>,
    root: Vec<u8>,
    purpose: ChainPurpose,
    host: Option<&'static str>,
}

impl Question {
    fn new(dice: &mut Dice, keys: &[EcdsaKeyPair]) -> Self {
        let (mut chain, strange) = chain(dice, keys);
        let root = chain.pop().expect("a root");
        let mut others = chain.split_off(chain.len().min(1));
        others.extend(strange);
        if dice.roll(4) == 0 {
            others.reverse();
        }
        let leaf = chain.pop().unwrap_or_else(|| root.clone());
        let purpose = [ChainPurpose::Server, ChainPurpose::Client][dice.roll(2)];
        let has_host = purpose == ChainPurpose::Server && dice.roll(4) == 0;
        let host = has_host.then(|| ["a.test", "b.a.test"][dice.roll(2)]);
        Self { leaf, others, root, purpose, host }
    }

    /// The chain found here; `None`: the host name does not match.
    fn ask_here(&self) -> Result<Option<Vec<Vec<u8>>>, ChainFault> {
        let trusted = TrustedCertificates::read(&pem(slice::from_ref(&self.root))).expect("a root");
        let rules = ChainRules { trusted, revoked: None, depth_max: 9 };
        let others: Vec<&[u8]> = self.others.iter().map(|der| &**der).collect();
        let chain = rules.verified_chain(&self.leaf, &others, self.purpose, NOW)?;
        let leaf = X509::parse(&self.leaf).expect("a certificate that was verified");
        let is_host = self.host.is_none_or(|host| leaf.is_of_host(host.as_bytes()));
        Ok(is_host.then_some(chain))
    }

    /// OpenSSL's error, if it refuses the certificate with these others.
    fn ask_openssl(&self, folder: &Path, others: &[Vec<u8>]) -> Result<(), String> {
        let (root, leaf) = (slice::from_ref(&self.root), slice::from_ref(&self.leaf));
        for (name, certificates) in [("root", root), ("others", others), ("leaf", leaf)] {
            fs::write(folder.join(name), pem(certificates)).expect("a file");
        }
        let purpose = match self.purpose {
            ChainPurpose::Server => "sslserver",
            ChainPurpose::Client => "sslclient",
        };
        let mut openssl = Command::new("openssl");
        openssl.current_dir(folder).args(["verify", "-attime", &NOW.to_string()]);
        openssl.args(["-CAfile", "root", "-untrusted", "others", "-purpose", purpose]);
        openssl.args(self.host.iter().flat_map(|host| ["-verify_hostname", host]));
        let output = openssl.arg("leaf").stdin(Stdio::null()).output().expect("openssl");
        match output.status.success() {
            true => Ok(()),
            false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
        }
    }
}

#[test]
#[ignore = "it starts openssl for each of thousands of chains: cargo xtask chains"]
fn chains_refused_by_openssl_are_refused() {
    let folder = ::testing::Folder::new();
    let new_key = |_| EcdsaKeyPair::generate(&ECDSA_P256_SHA256_ASN1_SIGNING).expect("a key");
    let keys: Vec<_> = (0..5).map(new_key).collect();
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
    let (mut both, mut neither, mut other_way) = (0, 0, 0);
    let (mut stricter, mut wrong) = (Vec::new(), Vec::new());
    for number in 0..CHAINS {
        let question = Question::new(&mut dice, &keys);
        match (question.ask_here(), question.ask_openssl(&folder, &question.others)) {
            (Ok(Some(_)), Ok(())) => both += 1,
            // OpenSSL follows only the first issuer that fits, and Weir each of them. OpenSSL must
            // accept the chain found.
            (Ok(Some(chain)), Err(complaint)) => match question.ask_openssl(&folder, &chain) {
                Ok(()) => other_way += 1,
                Err(_) => {
                    let chain = String::from_utf8_lossy(&pem(&chain)).into_owned();
                    wrong.push(format!("{number}: {complaint}{chain}"));
                }
            },
            (here, Ok(())) => stricter.push(format!("{:?}", here.map(|_| "host"))),
            (_, Err(_)) => neither += 1,
        }
    }
    stricter.sort();
    let kinds = stricter.chunk_by(|one, other| one == other);
    let kinds: Vec<_> = kinds.map(|kind| format!("{} x {}", kind.len(), kind[0])).collect();
    println!("{both} accepted by both, {neither} refused by both, refused here alone: {kinds:?}");
    println!("{other_way} accepted by a chain that OpenSSL does not look for, and accepts");
    assert!(both > CHAINS / 10, "too few chains are good ones: {both}");
    assert!(wrong.is_empty(), "{} accepted here alone: {}", wrong.len(), wrong.concat());
}

#[test]
fn a_root_that_names_another_issuer_does_not_end_a_chain() {
    let key = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_ASN1_SIGNING).expect("a key");
    let own = |common: &str| {
        let set = attribute(&[0x55, 4, 3], 0x0c, common);
        Issuer { name: tlv(0x30, &[&set]), key: &key }
    };
    let (root, leaf) = (own("root"), own("leaf"));
    let times = ["20200101000000Z", "21200101000000Z"];
    let verified = |named: u8| {
        let all = [
            extension(BASIC, true, &tlv(0x30, &[&[1, 1, 0xff]])),
            extension(&[0x55, 0x1d, 0x0e], false, &[4, 1, 7]),
            extension(&[0x55, 0x1d, 0x23], false, &[0x30, 3, 0x80, 1, named]),
        ];
        let (root, leaf) =
            (sign(&[1], &root, &root, times, &all.concat()), sign(&[2], &leaf, &root, times, &[]));
        let trusted = TrustedCertificates::read(&pem(slice::from_ref(&root))).expect("a root");
        let rules = ChainRules { trusted, revoked: None, depth_max: 9 };
        rules.verify(&leaf, &[], ChainPurpose::Server, NOW)
    };
    assert_eq!(verified(7), Ok(()));
    assert!(verified(8).is_err());
}
