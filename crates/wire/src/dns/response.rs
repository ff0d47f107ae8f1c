//! A response, checked against its question.

use alloc::vec::Vec;
use core::net::IpAddr;
use core::ops::Range;

use super::name::walk;
use super::{
    ALIASES_MAX, CLASS_IN, DnsQuestion, DomainName, HEADER_BYTES, Rcode, RecordType, ResponseError,
    u16_at,
};

/// The bit of a response, and the kind of query, which is 0.
const QR_AND_OPCODE: u16 = 0xf800;
const QR: u16 = 0x8000;
const TRUNCATED: u16 = 0x0200;
const RCODE: u16 = 0x000f;
/// The type of an alias.
const CNAME: u16 = 5;
/// Priority, weight and port, before the target.
const SERVICE_NUMBERS_BYTES: usize = 6;
/// A larger TTL counts as 0 (RFC 2181 section 8).
const TTL_S_MAX: u32 = i32::MAX as u32;

type Result<T> = core::result::Result<T, ResponseError>;

/// The response of a name server to a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Response {
    /// The answer is too long for a datagram and must be requested over TCP.
    Truncated,
    /// The name server reports an error.
    Failed(Rcode),
    /// An answer, which may have no records.
    Answer(DnsAnswer),
}

/// The records that answer a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DnsAnswer {
    pub records: Vec<RecordData>,
    /// Without records: the name that the question's name is an alias of, to be looked up next.
    pub alias: Option<DomainName>,
    /// How long the answer is valid; 0 without records and alias.
    pub ttl_s: u32,
}

/// The data of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordData {
    /// A and AAAA: an address.
    Address(IpAddr),
    /// SRV: the host and port of a service.
    Service(Service),
    /// PTR: the name of an address.
    Pointer(DomainName),
    /// NS: the name of a server of the zone.
    NameServer(DomainName),
    /// TXT: its strings, one after the other.
    Text(Vec<u8>),
}

/// The host and port of a service (RFC 2782).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Service {
    /// Services with lower numbers are used first.
    pub priority: u16,
    /// Its share of the load among the services of the same priority.
    pub weight: u16,
    pub port: u16,
    pub target: DomainName,
}

impl DnsAnswer {
    pub fn is_empty(&self) -> bool {
        self.records.is_empty() && self.alias.is_none()
    }

    /// Whether one of the records is exactly this text: what a challenge asks for is visible.
    pub fn has_text(&self, text: &[u8]) -> bool {
        self.records.iter().any(|record| matches!(record, RecordData::Text(own) if own == text))
    }
}

pub fn id_of(message: &[u8]) -> Option<u16> {
    u16_at(message, 0)
}

/// Whether the whole message has to be requested over TCP.
pub fn is_truncated(message: &[u8]) -> bool {
    u16_at(message, 2).is_some_and(|flags| flags & TRUNCATED != 0)
}

/// Reads the response to a query.
pub fn parse(message: &[u8], question: &DnsQuestion, id: u16) -> Result<Response> {
    let flags = check_header(message, id)?;
    let rcode = Rcode((flags & RCODE) as u8);
    // A name server that did not understand the query may repeat no question.
    if rcode == Rcode::FORMERR || rcode.0 > Rcode::REFUSED.0 {
        return Err(ResponseError::Server(rcode));
    }
    let at = check_question(message, question)?;
    if flags & TRUNCATED != 0 {
        return Ok(Response::Truncated);
    }
    if rcode.0 != 0 {
        return Ok(Response::Failed(rcode));
    }
    let left = u16_at(message, 6).ok_or(ResponseError::Short)?;
    RelevantRecords::read(Records { message, at, left }, question)?.answer(message, question)
}

fn check_header(message: &[u8], id: u16) -> Result<u16> {
    if message.len() < HEADER_BYTES {
        return Err(ResponseError::Short);
    }
    let found = id_of(message).ok_or(ResponseError::Short)?;
    let flags = u16_at(message, 2).ok_or(ResponseError::Short)?;
    if flags & QR_AND_OPCODE != QR {
        return Err(ResponseError::Flags(flags));
    }
    match found == id {
        true => Ok(flags),
        false => Err(ResponseError::Id { found, expected: id }),
    }
}

/// Checks that the question is the one that was sent. Returns the offset after it.
fn check_question(message: &[u8], question: &DnsQuestion) -> Result<usize> {
    match u16_at(message, 4).ok_or(ResponseError::Short)? {
        1 => {}
        count => return Err(ResponseError::Questions(count)),
    }
    let end = walk(message, HEADER_BYTES, |_| ())?;
    let kind = u16_at(message, end).ok_or(ResponseError::Short)?;
    let class = u16_at(message, end + 2).ok_or(ResponseError::Short)?;
    let same = question.name.is_at(message, HEADER_BYTES)
        && (kind, class) == (question.kind as u16, CLASS_IN);
    if same { Ok(end + 4) } else { Err(ResponseError::Question) }
}

/// The records of the answer section, each within the message.
struct Records<'a> {
    message: &'a [u8],
    at: usize,
    left: u16,
}

struct Raw {
    owner: usize,
    kind: u16,
    ttl_s: u32,
    data: Range<usize>,
}

impl Records<'_> {
    fn next(&mut self) -> Result<Option<Raw>> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        let owner = self.at;
        let at = walk(self.message, owner, |_| ())?;
        let word = |offset| u16_at(self.message, at + offset).ok_or(ResponseError::Short);
        let (kind, class) = (word(0)?, word(2)?);
        let ttl_s = u32::from(word(4)?) << 16 | u32::from(word(6)?);
        let data = at + 10..at + 10 + usize::from(word(8)?);
        if data.end > self.message.len() {
            return Err(ResponseError::Short);
        }
        if class != CLASS_IN {
            return Err(ResponseError::Class(class));
        }
        self.at = data.end;
        let ttl_s = if ttl_s > TTL_S_MAX { 0 } else { ttl_s };
        Ok(Some(Raw { owner, kind, ttl_s, data }))
    }
}

/// The records that may matter. Others (DNAME, signatures) are skipped.
#[derive(Default)]
struct RelevantRecords {
    aliases: Vec<Raw>,
    records: Vec<Raw>,
}

impl RelevantRecords {
    fn read(mut records: Records<'_>, question: &DnsQuestion) -> Result<Self> {
        let mut found = Self::default();
        while let Some(raw) = records.next()? {
            if raw.kind == CNAME {
                if found.aliases.len() == ALIASES_MAX {
                    return Err(ResponseError::Aliases);
                }
                found.aliases.push(raw);
            } else if raw.kind == question.kind as u16 && !is_unavailable(&raw, records.message) {
                found.records.push(raw);
            }
        }
        Ok(found)
    }

    /// Follows the aliases from the requested name, in any order, and accepts the records of the
    /// name that they lead to.
    fn answer(self, message: &[u8], question: &DnsQuestion) -> Result<Response> {
        let mut alias: Option<DomainName> = None;
        let mut ttl_s = u32::MAX;
        // An alias may point to itself: the number of aliases limits the steps.
        for _ in 0..self.aliases.len() {
            let name = alias.as_ref().unwrap_or(&question.name);
            let Some(raw) = self.aliases.iter().find(|raw| name.is_at(message, raw.owner)) else {
                break;
            };
            ttl_s = ttl_s.min(raw.ttl_s);
            alias = Some(name_of(message, &raw.data)?.ok_or(ResponseError::Alias)?);
        }
        let mut records = Vec::new();
        let name = alias.as_ref().unwrap_or(&question.name);
        for raw in self.records.iter().filter(|raw| name.is_at(message, raw.owner)) {
            let record = read_data(message, &raw.data, question.kind)?;
            records.push(record.ok_or(ResponseError::Data(question.kind))?);
            ttl_s = ttl_s.min(raw.ttl_s);
        }
        if !records.is_empty() {
            alias = None;
        }
        if records.is_empty() && alias.is_none() {
            ttl_s = 0;
        }
        Ok(Response::Answer(DnsAnswer { records, alias, ttl_s }))
    }
}

/// A target at the root means that the service is not available (RFC 2782).
fn is_unavailable(raw: &Raw, message: &[u8]) -> bool {
    let target = raw.data.start + SERVICE_NUMBERS_BYTES;
    raw.kind == RecordType::Srv as u16 && target + 1 == raw.data.end && message[target] == 0
}

/// Reads a record's data; `None` if they do not have the form of their type.
fn read_data(message: &[u8], data: &Range<usize>, kind: RecordType) -> Result<Option<RecordData>> {
    let bytes = &message[data.clone()];
    Ok(match kind {
        RecordType::A => <[u8; 4]>::try_from(bytes).ok().map(|ip| RecordData::Address(ip.into())),
        RecordType::Aaaa => {
            <[u8; 16]>::try_from(bytes).ok().map(|ip| RecordData::Address(ip.into()))
        }
        RecordType::Ptr => name_of(message, data)?.map(RecordData::Pointer),
        RecordType::Ns => name_of(message, data)?.map(RecordData::NameServer),
        RecordType::Txt => text(bytes).map(RecordData::Text),
        RecordType::Srv => service(message, data)?.map(RecordData::Service),
        // Followed as an alias, whatever was asked for.
        RecordType::Cname => None,
    })
}

/// The strings of a text, each after its length.
fn text(mut data: &[u8]) -> Option<Vec<u8>> {
    let mut text = Vec::with_capacity(data.len());
    while let Some((length, rest)) = data.split_first() {
        let (string, rest) = rest.split_at_checked(usize::from(*length))?;
        text.extend_from_slice(string);
        data = rest;
    }
    Some(text)
}

fn service(message: &[u8], data: &Range<usize>) -> Result<Option<Service>> {
    if data.len() < SERVICE_NUMBERS_BYTES {
        return Ok(None);
    }
    let word = |offset| u16_at(message, data.start + offset).ok_or(ResponseError::Short);
    let (priority, weight, port) = (word(0)?, word(2)?, word(4)?);
    let target = name_of(message, &(data.start + SERVICE_NUMBERS_BYTES..data.end))?;
    Ok(target.map(|target| Service { priority, weight, port, target }))
}

/// The name that fills the data; `None` if it does not end with them.
fn name_of(message: &[u8], data: &Range<usize>) -> Result<Option<DomainName>> {
    let (name, end) = DomainName::read(message, data.start)?;
    Ok((end == data.end).then_some(name))
}
