//! Records of TLS 1.2 and 1.3 (RFC 5246 section 6.2, RFC 8446 section 5): sealed into a buffer,
//! opened in place.
//!
//! rustls negotiates the keys. The records of an established connection are handled here, since
//! each one would cost an allocation and a copy in rustls. Each direction of a connection has one
//! [`RecordKey`].

use aws_lc_rs::aead::{self, Aad, LessSafeKey, Nonce, UnboundKey};
use rustls::ConnectionTrafficSecrets;

/// Maximum number of bytes of plaintext in a record.
pub(crate) const PLAINTEXT_MAX: usize = 1 << 14;
/// A record's header: type, version, length.
pub(crate) const HEADER: usize = 5;
/// Maximum number of bytes of a record after its header: RFC 5246 allows 2048 bytes in addition to
/// the plaintext.
const PAYLOAD_MAX: usize = PLAINTEXT_MAX + 2048;
/// Maximum number of bytes of a record.
pub(crate) const RECORD_MAX: usize = HEADER + PAYLOAD_MAX;
/// Maximum number of bytes of a record in addition to its plaintext: header, explicit nonce or
/// type, and tag.
pub(crate) const OVERHEAD_MAX: usize = HEADER + EXPLICIT_NONCE + TAG;

const TAG: usize = 16;
const NONCE: usize = 12;
/// The part of AES-GCM's nonce that TLS 1.2 sends (RFC 5288).
const EXPLICIT_NONCE: usize = 8;
/// TLS 1.2's version in a record's header, which TLS 1.3 uses as well.
const VERSION: [u8; 2] = [3, 3];

/// The type of a record's contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ContentType(pub(crate) u8);

impl ContentType {
    pub(crate) const ALERT: Self = Self(21);
    pub(crate) const HANDSHAKE: Self = Self(22);
    pub(crate) const APPLICATION_DATA: Self = Self(23);
}

/// Why a record cannot be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RecordFault {
    /// It is longer than the maximum.
    TooLong,
    /// It was not sealed with this key, or is not the next record.
    NotAuthentic,
    /// It has no type.
    Untyped,
}

/// How records are protected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RecordFormat {
    /// TLS 1.3: the type is encrypted.
    Tls13,
    /// TLS 1.2 with AES-GCM: a part of the nonce is sent.
    Tls12Gcm,
    /// TLS 1.2 with ChaCha20-Poly1305.
    Tls12ChaCha,
}

/// The key of one direction.
pub(crate) struct RecordKey {
    key: LessSafeKey,
    iv: [u8; NONCE],
    sequence: u64,
    format: RecordFormat,
}

impl RecordKey {
    /// The negotiated key; the first record has the given number.
    pub(crate) fn new(
        (sequence, secrets): (u64, ConnectionTrafficSecrets),
        is_tls13: bool,
    ) -> Option<Self> {
        let (algorithm, key, iv) = match &secrets {
            ConnectionTrafficSecrets::Aes128Gcm { key, iv } => (&aead::AES_128_GCM, key, iv),
            ConnectionTrafficSecrets::Aes256Gcm { key, iv } => (&aead::AES_256_GCM, key, iv),
            ConnectionTrafficSecrets::Chacha20Poly1305 { key, iv } => {
                (&aead::CHACHA20_POLY1305, key, iv)
            }
            _ => return None,
        };
        let is_gcm = !matches!(secrets, ConnectionTrafficSecrets::Chacha20Poly1305 { .. });
        let format = match is_tls13 {
            true => RecordFormat::Tls13,
            false if is_gcm => RecordFormat::Tls12Gcm,
            false => RecordFormat::Tls12ChaCha,
        };
        let key = LessSafeKey::new(UnboundKey::new(algorithm, key.as_ref()).ok()?);
        Some(Self { key, iv: iv.as_ref().try_into().ok()?, sequence, format })
    }

    /// The number of records sealed or opened, including those of the handshake.
    pub(crate) fn sequence(&self) -> u64 {
        self.sequence
    }

    pub(crate) fn is_tls13(&self) -> bool {
        self.format == RecordFormat::Tls13
    }

    /// Writes a record whose plaintext is in pieces, in total at most [`PLAINTEXT_MAX`] bytes.
    /// `out` needs room for the plaintext and [`OVERHEAD_MAX`]. Returns the length of the record.
    pub(crate) fn seal(
        &mut self,
        kind: ContentType,
        plaintext: &[&[u8]],
        out: &mut [u8],
    ) -> Result<usize, RecordFault> {
        let length = plaintext.iter().map(|piece| piece.len()).sum::<usize>();
        debug_assert!(length <= PLAINTEXT_MAX, "a record holds no more");
        let (nonce, sequence) = self.next_nonce();
        let own_kind = [kind.0];
        let (inner_kind, explicit, outer_kind) = match self.format {
            RecordFormat::Tls13 => (&own_kind[..], &[][..], ContentType::APPLICATION_DATA),
            RecordFormat::Tls12Gcm => (&[][..], &nonce[NONCE - EXPLICIT_NONCE..], kind),
            RecordFormat::Tls12ChaCha => (&[][..], &[][..], kind),
        };
        let start = HEADER + explicit.len();
        let end = start + length + inner_kind.len() + TAG;
        let header = header(outer_kind, end - HEADER);
        let record = out.get_mut(..end).ok_or(RecordFault::TooLong)?;
        record[..HEADER].copy_from_slice(&header);
        record[HEADER..start].copy_from_slice(explicit);
        let aad = self.additional_data(sequence, kind, header, length);
        let nonce = Nonce::assume_unique_for_key(nonce);
        let (text, rest) = record[start..].split_at_mut(length);
        let sealed = match plaintext {
            [one] => self.key.seal_out_of_place_scatter(nonce, aad, one, text, inner_kind, rest),
            pieces => {
                gather(pieces, text);
                self.key.seal_in_place_scatter(nonce, aad, text, inner_kind, rest)
            }
        };
        sealed.map(|()| end).map_err(|_| RecordFault::NotAuthentic)
    }

    /// Opens a record in place, including its header. Returns its type and the range of its
    /// plaintext.
    pub(crate) fn open(
        &mut self,
        record: &mut [u8],
    ) -> Result<(ContentType, std::ops::Range<usize>), RecordFault> {
        let (header, payload) = record.split_first_chunk_mut().ok_or(RecordFault::NotAuthentic)?;
        let (nonce, sequence) = self.next_nonce();
        let (nonce, skipped) = match self.format {
            RecordFormat::Tls12Gcm => {
                let explicit = payload.get(..EXPLICIT_NONCE).ok_or(RecordFault::NotAuthentic)?;
                let mut nonce = self.iv;
                nonce[NONCE - EXPLICIT_NONCE..].copy_from_slice(explicit);
                (nonce, EXPLICIT_NONCE)
            }
            RecordFormat::Tls13 | RecordFormat::Tls12ChaCha => (nonce, 0),
        };
        let sealed = &mut payload[skipped..];
        let length = sealed.len().checked_sub(TAG).ok_or(RecordFault::NotAuthentic)?;
        let kind = ContentType(header[0]);
        let aad = self.additional_data(sequence, kind, *header, length);
        let nonce = Nonce::assume_unique_for_key(nonce);
        self.key.open_in_place(nonce, aad, sealed).map_err(|_| RecordFault::NotAuthentic)?;
        let text = &sealed[..length];
        let (kind, length) = match self.format {
            RecordFormat::Tls13 => inner_kind(text).ok_or(RecordFault::Untyped)?,
            RecordFormat::Tls12Gcm | RecordFormat::Tls12ChaCha => (kind, length),
        };
        if length > PLAINTEXT_MAX {
            return Err(RecordFault::TooLong);
        }
        let start = HEADER + skipped;
        Ok((kind, start..start + length))
    }

    /// The nonce and number of the next record. Numbers never repeat: 2^64 records are never
    /// reached.
    fn next_nonce(&mut self) -> ([u8; NONCE], u64) {
        let sequence = self.sequence;
        self.sequence += 1;
        let mut nonce = self.iv;
        let counter = &mut nonce[NONCE - size_of::<u64>()..];
        counter.iter_mut().zip(sequence.to_be_bytes()).for_each(|(byte, key)| *byte ^= key);
        (nonce, sequence)
    }

    /// The authenticated data in addition to the plaintext: in TLS 1.3 the header, in TLS 1.2 the
    /// number, the type, the version and the plaintext's length.
    fn additional_data(
        &self,
        sequence: u64,
        kind: ContentType,
        header: [u8; HEADER],
        length: usize,
    ) -> Aad<AdditionalData> {
        let mut data = AdditionalData { bytes: [0; AdditionalData::MAX], length: HEADER };
        match self.format {
            RecordFormat::Tls13 => data.bytes[..HEADER].copy_from_slice(&header),
            RecordFormat::Tls12Gcm | RecordFormat::Tls12ChaCha => {
                data.bytes[..8].copy_from_slice(&sequence.to_be_bytes());
                data.bytes[8] = kind.0;
                data.bytes[9..11].copy_from_slice(&VERSION);
                data.bytes[11..].copy_from_slice(&(length as u16).to_be_bytes());
                data.length = AdditionalData::MAX;
            }
        }
        Aad::from(data)
    }
}

/// See [`RecordKey::additional_data`].
struct AdditionalData {
    bytes: [u8; Self::MAX],
    length: usize,
}

impl AdditionalData {
    const MAX: usize = 13;
}

impl AsRef<[u8]> for AdditionalData {
    fn as_ref(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

fn gather(pieces: &[&[u8]], mut out: &mut [u8]) {
    for piece in pieces {
        let (part, rest) = out.split_at_mut(piece.len());
        part.copy_from_slice(piece);
        out = rest;
    }
}

pub(crate) fn header(kind: ContentType, payload: usize) -> [u8; HEADER] {
    let [high, low] = (payload as u16).to_be_bytes();
    [kind.0, VERSION[0], VERSION[1], high, low]
}

/// The length of the first record including its header, once it is complete.
pub(crate) fn complete(bytes: &[u8]) -> Result<Option<usize>, RecordFault> {
    let [_, _, _, high, low, rest @ ..] = bytes else { return Ok(None) };
    let payload = usize::from(u16::from_be_bytes([*high, *low]));
    if payload > PAYLOAD_MAX {
        return Err(RecordFault::TooLong);
    }
    Ok((rest.len() >= payload).then_some(HEADER + payload))
}

/// The type of TLS 1.3's inner plaintext, which follows the plaintext and precedes the padding, and
/// the plaintext's length.
fn inner_kind(text: &[u8]) -> Option<(ContentType, usize)> {
    let at = text.iter().rposition(|byte| *byte != 0)?;
    Some((ContentType(text[at]), at))
}

#[cfg(test)]
mod tests {
    use rustls::crypto::cipher::{AeadKey, Iv};

    use super::*;

    /// The keys of both ends, for every format.
    fn pairs() -> Vec<(RecordKey, RecordKey)> {
        let secrets = |kind: usize| {
            let iv = Iv::from([7; 12]);
            let key = AeadKey::from([9; 32]);
            match kind {
                0 => ConnectionTrafficSecrets::Aes256Gcm { key, iv },
                _ => ConnectionTrafficSecrets::Chacha20Poly1305 { key, iv },
            }
        };
        let key = |kind, is_tls13| RecordKey::new((3, secrets(kind)), is_tls13).unwrap();
        let both = |kind, is_tls13| (key(kind, is_tls13), key(kind, is_tls13));
        vec![both(0, true), both(1, true), both(0, false), both(1, false)]
    }

    fn sealed(key: &mut RecordKey, kind: ContentType, text: &[&[u8]]) -> Vec<u8> {
        let mut record = vec![0; 100];
        let length = key.seal(kind, text, &mut record).unwrap();
        record.truncate(length);
        record
    }

    #[test]
    fn sealed_records_open_once_and_in_order() {
        for (mut seal, mut open) in pairs() {
            let pieces = [&b"hello "[..], b"", b"world"];
            let mut first = sealed(&mut seal, ContentType::APPLICATION_DATA, &pieces);
            let mut second = sealed(&mut seal, ContentType::ALERT, &[&[1, 0]]);
            assert_eq!(complete(&first), Ok(Some(first.len())));
            assert_eq!(complete(&first[..first.len() - 1]), Ok(None));
            assert!(first.len() <= 11 + OVERHEAD_MAX && second.len() <= 2 + OVERHEAD_MAX);
            let mut repeated = first.clone();
            let (kind, text) = open.open(&mut first).unwrap();
            assert_eq!((kind, &first[text]), (ContentType::APPLICATION_DATA, &b"hello world"[..]));
            let (kind, text) = open.open(&mut second).unwrap();
            assert_eq!((kind, &second[text]), (ContentType::ALERT, &[1, 0][..]));
            // TLS 1.2 with AES-GCM takes the nonce from the record, but not the record's number.
            assert_eq!(open.open(&mut repeated).unwrap_err(), RecordFault::NotAuthentic);
        }
    }

    #[test]
    fn a_changed_record_is_not_authentic() {
        for pair in 0..pairs().len() {
            let (mut seal, _) = pairs().remove(pair);
            let record = sealed(&mut seal, ContentType::APPLICATION_DATA, &[b"abc"]);
            for at in 0..record.len() {
                let (_, mut open) = pairs().remove(pair);
                let mut changed = record.clone();
                changed[at] ^= 1;
                // TLS 1.2 does not authenticate the version and length in the header.
                let is_said_again = !seal.is_tls13() && (1..HEADER).contains(&at);
                assert!(open.open(&mut changed).is_err() || is_said_again, "{pair} {at}");
            }
        }
    }

    #[test]
    fn padding_is_not_plaintext() {
        assert_eq!(inner_kind(b"ab\x17\0\0"), Some((ContentType(23), 2)));
        assert_eq!(inner_kind(b"\0\0"), None);
        assert_eq!(complete(&[23, 3, 3, 0xff, 0xff]), Err(RecordFault::TooLong));
    }
}
