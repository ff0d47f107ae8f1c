//! Dynamic updates (RFC 2136) of TXT records, signed with a shared secret (TSIG, RFC 8945).
//!
//! Deliberately absent: prerequisites, other types of records, and the digest itself, which comes
//! from outside.

use alloc::vec::Vec;
use core::fmt;

use super::name::walk;
use super::{CLASS_IN, DomainName, HEADER_BYTES, NameError, Rcode, u16_at};

/// The HMAC of a secret and a message.
pub type TsigHmac<'h> = &'h dyn Fn(TsigAlgorithm, &[u8], &[u8]) -> Vec<u8>;

/// A change of one TXT record; other records of the name stay.
#[derive(Clone, Copy, Debug)]
pub struct TxtUpdate<'a> {
    /// The name of the zone that has the record.
    pub zone: &'a DomainName,
    pub name: &'a DomainName,
    pub value: &'a [u8],
    pub change: TxtChange,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TxtChange {
    Add { ttl_s: u32 },
    Remove,
}

/// A secret that is shared with a name server.
#[derive(Clone, PartialEq, Eq)]
pub struct TsigKey {
    pub name: DomainName,
    pub algorithm: TsigAlgorithm,
    pub secret: Vec<u8>,
}

/// The algorithms that RFC 8945, section 6, requires or recommends, but SHA-1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TsigAlgorithm {
    HmacSha256,
    HmacSha384,
    HmacSha512,
}

/// A signed message, and what its response is checked with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedUpdate {
    pub message: Vec<u8>,
    id: u16,
    mac: Vec<u8>,
}

/// Why a message is not the response to an update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpdateError {
    /// The message ends too early, or has parts that it must not have.
    Invalid,
    Name(NameError),
    /// It is the response to another message.
    Other,
    /// It is not signed, with this code.
    Unsigned(Rcode),
    /// The server did not accept our signature: the error of RFC 8945, section 3.
    Tsig(u16),
    /// The signature of the response is wrong.
    Signature,
    /// The response was signed at another time, at which this clock is not.
    Time,
}

const OPCODE_UPDATE: u16 = 5 << 11;
/// The bit of a response, and the kind of query.
const QR_AND_OPCODE: u16 = 0xf800;
const RESPONSE: u16 = 0x8000;

const TYPE_SOA: u16 = 6;
const TYPE_TXT: u16 = 16;
const TYPE_TSIG: u16 = 250;
const CLASS_NONE: u16 = 254;
const CLASS_ANY: u16 = 255;

/// By how many seconds the clocks may differ.
const FUDGE_S: u16 = 300;
/// The most bytes of a string in a TXT record.
const STRING_BYTES_MAX: usize = 255;

impl TxtUpdate<'_> {
    /// The message, signed at `now_s` since 1970.
    pub fn sign(&self, id: u16, now_s: u64, key: &TsigKey, hmac: TsigHmac<'_>) -> SignedUpdate {
        let mut message = Vec::new();
        self.write(id, &mut message);
        let variables = key.variables(now_s, FUDGE_S, 0, &[]);
        let mac = hmac(key.algorithm, &key.secret, &[message.as_slice(), &variables].concat());
        key.write_record(id, now_s, &mac, &mut message);
        // One additional record.
        message[11] = 1;
        SignedUpdate { message, id, mac }
    }

    fn write(&self, id: u16, out: &mut Vec<u8>) {
        // One zone, no prerequisites, one update.
        push_words(&[id, OPCODE_UPDATE, 1, 0, 1, 0], out);
        self.zone.write(out);
        push_words(&[TYPE_SOA, CLASS_IN], out);
        self.name.write(out);
        let (class, ttl_s) = match self.change {
            TxtChange::Add { ttl_s } => (CLASS_IN, ttl_s),
            TxtChange::Remove => (CLASS_NONE, 0),
        };
        push_words(&[TYPE_TXT, class], out);
        out.extend_from_slice(&ttl_s.to_be_bytes());
        let mut data = Vec::new();
        for part in self.value.chunks(STRING_BYTES_MAX) {
            data.push(part.len() as u8);
            data.extend_from_slice(part);
        }
        push_words(&[data.len() as u16], out);
        out.append(&mut data);
    }
}

impl TsigAlgorithm {
    pub const ALL: [Self; 3] = [Self::HmacSha256, Self::HmacSha384, Self::HmacSha512];

    pub const fn name(self) -> &'static str {
        match self {
            Self::HmacSha256 => "hmac-sha256",
            Self::HmacSha384 => "hmac-sha384",
            Self::HmacSha512 => "hmac-sha512",
        }
    }

    /// The algorithm of this name; case does not matter.
    pub fn of(name: &[u8]) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.name().as_bytes().eq_ignore_ascii_case(name))
    }

    /// Its name on the wire.
    const fn wire(self) -> &'static [u8] {
        match self {
            Self::HmacSha256 => b"\x0bhmac-sha256\0",
            Self::HmacSha384 => b"\x0bhmac-sha384\0",
            Self::HmacSha512 => b"\x0bhmac-sha512\0",
        }
    }
}

impl TsigKey {
    /// The signed part of a TSIG record (RFC 8945, section 4.3.3).
    fn variables(&self, time_s: u64, fudge_s: u16, error: u16, other: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        self.name.write(&mut out);
        push_words(&[CLASS_ANY, 0, 0], &mut out);
        out.extend_from_slice(self.algorithm.wire());
        out.extend_from_slice(&time_s.to_be_bytes()[2..]);
        push_words(&[fudge_s, error, other.len() as u16], &mut out);
        out.extend_from_slice(other);
        out
    }

    fn write_record(&self, id: u16, time_s: u64, mac: &[u8], out: &mut Vec<u8>) {
        let mut data = self.algorithm.wire().to_vec();
        data.extend_from_slice(&time_s.to_be_bytes()[2..]);
        push_words(&[FUDGE_S, mac.len() as u16], &mut data);
        data.extend_from_slice(mac);
        push_words(&[id, 0, 0], &mut data);
        self.name.write(out);
        push_words(&[TYPE_TSIG, CLASS_ANY, 0, 0, data.len() as u16], out);
        out.append(&mut data);
    }
}

impl SignedUpdate {
    /// The server's verdict: 0 is success. Its signature is checked.
    pub fn verdict(
        &self,
        response: &[u8],
        now_s: u64,
        key: &TsigKey,
        hmac: TsigHmac<'_>,
    ) -> Result<Rcode, UpdateError> {
        let word = |at| u16_at(response, at).ok_or(UpdateError::Invalid);
        let flags = word(2)?;
        if word(0)? != self.id || flags & QR_AND_OPCODE != RESPONSE | OPCODE_UPDATE {
            return Err(UpdateError::Other);
        }
        let rcode = Rcode((flags & 0xf) as u8);
        let Some(tsig) = TsigRecord::find(response, key)? else {
            return Err(UpdateError::Unsigned(rcode));
        };
        if tsig.mac.is_empty() && tsig.error != 0 {
            return Err(UpdateError::Tsig(tsig.error));
        }
        // The message as it was before the record was added.
        let mut message = response[..tsig.start].to_vec();
        let records = word(10)?.wrapping_sub(1);
        message[..2].copy_from_slice(&tsig.original_id.to_be_bytes());
        message[10..12].copy_from_slice(&records.to_be_bytes());
        let mut signed = (self.mac.len() as u16).to_be_bytes().to_vec();
        signed.extend_from_slice(&self.mac);
        signed.append(&mut message);
        signed.extend(key.variables(tsig.time_s, tsig.fudge_s, tsig.error, tsig.other));
        if !is_equal(&hmac(key.algorithm, &key.secret, &signed), tsig.mac) {
            return Err(UpdateError::Signature);
        }
        match (tsig.error, tsig.time_s.abs_diff(now_s) <= u64::from(tsig.fudge_s)) {
            (0, true) => Ok(rcode),
            (0, false) => Err(UpdateError::Time),
            (error, _) => Err(UpdateError::Tsig(error)),
        }
    }
}

/// The TSIG record of a response.
struct TsigRecord<'m> {
    /// The offset of its name.
    start: usize,
    time_s: u64,
    fudge_s: u16,
    mac: &'m [u8],
    original_id: u16,
    error: u16,
    other: &'m [u8],
}

impl<'m> TsigRecord<'m> {
    /// The last record, if it is a TSIG record of this key.
    fn find(message: &'m [u8], key: &TsigKey) -> Result<Option<Self>, UpdateError> {
        let word = |at| u16_at(message, at).ok_or(UpdateError::Invalid);
        let mut at = HEADER_BYTES;
        for _ in 0..word(4)? {
            at = skip_name(message, at)? + 4;
        }
        let records = usize::from(word(6)?) + usize::from(word(8)?) + usize::from(word(10)?);
        let mut last = None;
        for _ in 0..records {
            let data = skip_name(message, at)? + 10;
            last = Some((at, data));
            at = data + usize::from(word(data - 2)?);
        }
        if at != message.len() {
            return Err(UpdateError::Invalid);
        }
        let Some((start, data)) = last.filter(|_| word(10) != Ok(0)) else { return Ok(None) };
        if word(data - 10)? != TYPE_TSIG {
            return Ok(None);
        }
        // Class and TTL.
        if [word(data - 8)?, word(data - 6)?, word(data - 4)?] != [CLASS_ANY, 0, 0] {
            return Err(UpdateError::Invalid);
        }
        if !key.name.is_at(message, start) {
            return Err(UpdateError::Signature);
        }
        let algorithm = key.algorithm.wire();
        Self::read(message, start, data, algorithm).map(Some).ok_or(UpdateError::Invalid)
    }

    fn read(message: &'m [u8], start: usize, data: usize, algorithm: &[u8]) -> Option<Self> {
        let fields = message.get(data..)?;
        let (head, fields) = fields.split_at_checked(algorithm.len())?;
        let mut time = [0; 8];
        time[2..].copy_from_slice(fields.get(..6)?);
        let mac_end = 10 + usize::from(u16_at(fields, 8)?);
        let other = fields.get(mac_end + 6..)?;
        let is_whole = usize::from(u16_at(fields, mac_end + 4)?) == other.len();
        (is_whole && head.eq_ignore_ascii_case(algorithm)).then_some(Self {
            start,
            time_s: u64::from_be_bytes(time),
            fudge_s: u16_at(fields, 6)?,
            mac: fields.get(10..mac_end)?,
            original_id: u16_at(fields, mac_end)?,
            error: u16_at(fields, mac_end + 2)?,
            other,
        })
    }
}

/// The offset after a name, which may be the root's.
fn skip_name(message: &[u8], at: usize) -> Result<usize, UpdateError> {
    match message.get(at) {
        Some(0) => Ok(at + 1),
        _ => walk(message, at, |_| ()).map_err(UpdateError::Name),
    }
}

/// In constant time for texts of one length.
fn is_equal(one: &[u8], other: &[u8]) -> bool {
    let differences = one.iter().zip(other).fold(0, |sum, (a, b)| sum | (a ^ b));
    one.len() == other.len() && differences == 0
}

fn push_words(words: &[u16], out: &mut Vec<u8>) {
    words.iter().for_each(|word| out.extend_from_slice(&word.to_be_bytes()));
}

/// Without the secret.
impl fmt::Debug for TsigKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TsigKey").field("name", &self.name).finish_non_exhaustive()
    }
}

impl fmt::Display for UpdateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid => f.write_str("invalid response to a DNS update"),
            Self::Name(error) => error.fmt(f),
            Self::Other => f.write_str("response to another DNS update"),
            Self::Unsigned(rcode) => {
                write!(f, "unsigned response to a DNS update ({})", rcode.mnemonic())
            }
            Self::Tsig(16) => f.write_str("the name server refuses the signature (BADSIG)"),
            Self::Tsig(17) => f.write_str("the name server does not know the key (BADKEY)"),
            Self::Tsig(18) => f.write_str("the name server has another time (BADTIME)"),
            Self::Tsig(error) => write!(f, "the name server refuses the signature ({error})"),
            Self::Signature => f.write_str("wrong signature of a response to a DNS update"),
            Self::Time => f.write_str("a response to a DNS update has another time"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW_S: u64 = 1_700_000_000;
    const ID: u16 = 0x1234;

    const MAC_BYTES: usize = 32;

    /// A digest that merely depends on everything.
    fn hmac(_: TsigAlgorithm, secret: &[u8], message: &[u8]) -> Vec<u8> {
        let mut digest = [secret.len() as u8; MAC_BYTES];
        for (at, byte) in secret.iter().chain(message).enumerate() {
            let place = &mut digest[at % MAC_BYTES];
            *place = place.wrapping_mul(31).wrapping_add(*byte);
        }
        digest.to_vec()
    }

    fn name(text: &str) -> DomainName {
        DomainName::from_text(text.as_bytes()).expect("a name")
    }

    fn key() -> TsigKey {
        let algorithm = TsigAlgorithm::HmacSha256;
        TsigKey { name: name("key.test"), algorithm, secret: b"secret".to_vec() }
    }

    fn signed(change: TxtChange) -> SignedUpdate {
        let (zone, name) = (name("a.test"), name("_acme-challenge.a.test"));
        let update = TxtUpdate { zone: &zone, name: &name, value: b"value", change };
        update.sign(ID, NOW_S, &key(), &hmac)
    }

    /// A signed response with this code.
    fn response(update: &SignedUpdate, rcode: u16) -> Vec<u8> {
        let mut message = Vec::new();
        push_words(&[ID, RESPONSE | OPCODE_UPDATE | rcode, 0, 0, 0, 0], &mut message);
        let mut to_sign = (MAC_BYTES as u16).to_be_bytes().to_vec();
        to_sign.extend_from_slice(&update.mac);
        to_sign.extend_from_slice(&message);
        to_sign.extend(key().variables(NOW_S, FUDGE_S, 0, &[]));
        let mac = hmac(key().algorithm, &key().secret, &to_sign);
        key().write_record(ID, NOW_S, &mac, &mut message);
        message[11] = 1;
        message
    }

    #[test]
    fn an_update_adds_or_removes_one_record() {
        let add = signed(TxtChange::Add { ttl_s: 60 });
        let zone = b"\x12\x34\x28\0\0\x01\0\0\0\x01\0\x01\x01a\x04test\0\0\x06\0\x01";
        assert!(add.message.starts_with(zone));
        let record = b"\x0f_acme-challenge\x01a\x04test\0\0\x10\0\x01\0\0\0\x3c\0\x06\x05value";
        assert!(add.message[zone.len()..].starts_with(record));
        let remove = signed(TxtChange::Remove);
        let record = b"\x0f_acme-challenge\x01a\x04test\0\0\x10\0\xfe\0\0\0\0\0\x06\x05value";
        assert!(remove.message[zone.len()..].starts_with(record));
    }

    #[test]
    fn a_signed_response_is_the_verdict() {
        let update = signed(TxtChange::Remove);
        for rcode in [0, 5, 9] {
            let response = response(&update, rcode);
            let verdict = |now_s| update.verdict(&response, now_s, &key(), &hmac);
            assert_eq!(verdict(NOW_S + 300), Ok(Rcode(rcode as u8)));
            assert_eq!(verdict(NOW_S + 301), Err(UpdateError::Time));
        }
    }

    #[test]
    fn a_changed_response_is_refused() {
        let update = signed(TxtChange::Remove);
        let good = response(&update, 0);
        for at in 0..good.len() {
            let mut changed = good.clone();
            changed[at] ^= 1;
            let verdict = update.verdict(&changed, NOW_S, &key(), &hmac);
            // Names are compared without case, and bit 0 is not the case's.
            assert!(verdict.is_err(), "{at}");
            assert!(update.verdict(&good[..at], NOW_S, &key(), &hmac).is_err(), "{at}");
        }
        let other = signed(TxtChange::Add { ttl_s: 1 });
        let verdict = other.verdict(&good, NOW_S, &key(), &hmac);
        assert_eq!(verdict, Err(UpdateError::Signature));
    }

    #[test]
    fn a_server_says_why_it_does_not_sign() {
        let update = signed(TxtChange::Remove);
        let mut refused = Vec::new();
        push_words(&[ID, RESPONSE | OPCODE_UPDATE | 5, 0, 0, 0, 0], &mut refused);
        let verdict = update.verdict(&refused, NOW_S, &key(), &hmac);
        assert_eq!(verdict, Err(UpdateError::Unsigned(Rcode::REFUSED)));
        refused[11] = 1;
        key().write_record(ID, NOW_S, &[], &mut refused);
        let error_at = refused.len() - 4;
        refused[error_at + 1] = 17;
        let verdict = update.verdict(&refused, NOW_S, &key(), &hmac);
        assert_eq!(verdict, Err(UpdateError::Tsig(17)));
    }
}
