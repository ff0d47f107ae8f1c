//! Domain names: from text, from messages through their compression, and to text.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt::{self, Write};
use core::net::IpAddr;

use super::HEADER_BYTES;

/// The most bytes of a label.
pub const LABEL_BYTES_MAX: usize = 63;
/// The most bytes of a name on the wire, including the root's zero. RFC 1035 allows 255, which is a
/// text of 253. nginx accepts texts of 255 in queries and responses, and its tests rely on it.
pub const NAME_BYTES_MAX: usize = 257;
/// The most pointers followed within one name. 128 are enough for a name of 255 bytes.
pub const POINTERS_MAX: usize = 128;

/// A domain name in lower case, with at least one label.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DomainName {
    /// Labels as on the wire, each after its length; without the root's.
    labels: Box<[u8]>,
}

/// Text that is not a domain name: a label is empty or too long, or the name is too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidName;

/// Why a name inside a message cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameError {
    /// The name extends past the end of the message.
    Short,
    /// A byte that is neither a length nor a pointer.
    LabelType,
    /// A pointer that does not point backwards, or too many pointers.
    Pointers,
    /// Longer than [`NAME_BYTES_MAX`], or the root, which is never looked up.
    Length,
}

impl DomainName {
    /// Reads `www.Example.com` or `www.Example.com.`; any byte but the dot may be in a label.
    pub fn from_text(text: &[u8]) -> Result<Self, InvalidName> {
        let text = text.strip_suffix(b".").unwrap_or(text);
        if text.len() + 2 > NAME_BYTES_MAX {
            return Err(InvalidName);
        }
        let mut labels = Vec::with_capacity(text.len() + 1);
        for label in text.split(|&byte| byte == b'.') {
            if !(1..=LABEL_BYTES_MAX).contains(&label.len()) {
                return Err(InvalidName);
            }
            push_label(&mut labels, label);
        }
        Ok(Self { labels: labels.into() })
    }

    /// The name under which the name of an address is looked up: `1.2.0.192.in-addr.arpa` (RFC 1035
    /// section 3.5), or in `ip6.arpa` (RFC 3596 section 2.5).
    pub fn reverse(address: IpAddr) -> Self {
        let mut text = Vec::with_capacity(72);
        match address {
            IpAddr::V4(ip) => {
                let [a, b, c, d] = ip.octets();
                let _ = write!(NameText(&mut text), "{d}.{c}.{b}.{a}.in-addr.arpa");
            }
            IpAddr::V6(ip) => {
                for octet in ip.octets().iter().rev() {
                    let _ = write!(NameText(&mut text), "{:x}.{:x}.", octet & 0xf, octet >> 4);
                }
                text.extend_from_slice(b"ip6.arpa");
            }
        }
        Self::from_text(&text).expect("every address has a reverse name")
    }

    /// The name without its first label; `None`: it has one label.
    pub fn parent(&self) -> Option<Self> {
        let rest = &self.labels[1 + usize::from(*self.labels.first()?)..];
        (!rest.is_empty()).then(|| Self { labels: rest.into() })
    }

    /// Whether it is this domain, or below it.
    pub fn is_within(&self, domain: &Self) -> bool {
        let mut own = Some(self.clone());
        while let Some(name) = own {
            if name == *domain {
                return true;
            }
            own = name.parent();
        }
        false
    }

    /// Reads the name at offset `at` of a message. Returns the name and the offset after it.
    pub(super) fn read(message: &[u8], at: usize) -> Result<(Self, usize), NameError> {
        let mut labels = Vec::new();
        let end = walk(message, at, |label| push_label(&mut labels, label))?;
        Ok((Self { labels: labels.into() }, end))
    }

    /// Whether the name at `at` of a message is this one.
    pub(super) fn is_at(&self, message: &[u8], at: usize) -> bool {
        let mut rest = &self.labels[..];
        let mut same = true;
        let end = walk(message, at, |label| {
            let length = 1 + label.len();
            same = same
                && rest.len() >= length
                && rest[0] as usize == label.len()
                && rest[1..length].eq_ignore_ascii_case(label);
            rest = rest.get(length..).unwrap_or_default();
        });
        end.is_ok() && same && rest.is_empty()
    }

    /// Appends the name in its form on the wire.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.labels);
        out.push(0);
    }

    fn labels(&self) -> impl Iterator<Item = &[u8]> {
        let mut rest = &self.labels[..];
        core::iter::from_fn(move || {
            let (&length, after) = rest.split_first()?;
            let (label, after) = after.split_at(length.into());
            rest = after;
            Some(label)
        })
    }
}

fn push_label(labels: &mut Vec<u8>, label: &[u8]) {
    labels.push(label.len() as u8);
    labels.extend(label.iter().map(u8::to_ascii_lowercase));
}

/// Checks the name at offset `at` of a message, passes its labels to `see`, and returns the offset
/// after it.
pub(super) fn walk<'a>(
    message: &'a [u8],
    at: usize,
    mut see: impl FnMut(&'a [u8]),
) -> Result<usize, NameError> {
    let (mut at, mut start) = (at, at);
    let (mut length, mut pointers) = (1, 0);
    let mut end = None;
    loop {
        let first = *message.get(at).ok_or(NameError::Short)? as usize;
        match first {
            0 if length == 1 => return Err(NameError::Length),
            0 => return Ok(end.unwrap_or(at + 1)),
            1..=LABEL_BYTES_MAX => {
                let label = message.get(at + 1..at + 1 + first).ok_or(NameError::Short)?;
                length += 1 + first;
                if length > NAME_BYTES_MAX {
                    return Err(NameError::Length);
                }
                see(label);
                at += 1 + first;
            }
            0xc0.. => {
                let low = *message.get(at + 1).ok_or(NameError::Short)? as usize;
                let target = (first & 0x3f) << 8 | low;
                end = end.or(Some(at + 2));
                pointers += 1;
                // Each pointer points further back than the one before, so there is no loop.
                if !(HEADER_BYTES..start).contains(&target) || pointers > POINTERS_MAX {
                    return Err(NameError::Pointers);
                }
                (at, start) = (target, target);
            }
            _ => return Err(NameError::LabelType),
        }
    }
}

/// As in master files (RFC 1035 section 5.1), a dot within a label is `\.` and an unprintable byte
/// is `\DDD`. So different names never look the same, and no name breaks a log line.
impl fmt::Display for DomainName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, label) in self.labels().enumerate() {
            if index > 0 {
                f.write_char('.')?;
            }
            for &byte in label {
                match byte {
                    b'.' | b'\\' => write!(f, "\\{}", byte as char)?,
                    b'!'..=b'~' => f.write_char(byte as char)?,
                    _ => write!(f, "\\{byte:03}")?,
                }
            }
        }
        Ok(())
    }
}

impl fmt::Debug for DomainName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for NameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Short => "name is out of DNS response",
            Self::LabelType => "invalid label type in DNS response",
            Self::Pointers => "compression pointers loop in DNS response",
            Self::Length => "invalid name in DNS response",
        })
    }
}

/// Appends formatted text to bytes.
struct NameText<'a>(&'a mut Vec<u8>);

impl fmt::Write for NameText<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.extend_from_slice(text.as_bytes());
        Ok(())
    }
}
