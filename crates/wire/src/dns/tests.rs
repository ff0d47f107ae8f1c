use alloc::format;
use alloc::string::ToString;
use alloc::vec;
use alloc::vec::Vec;
use core::net::IpAddr;

use super::*;

const ID: u16 = 0x1234;
const OK: u16 = 0x8180;
const CNAME: u16 = 5;
const DNAME: u16 = 39;

fn name(text: &str) -> DomainName {
    DomainName::from_text(text.as_bytes()).unwrap()
}

fn question(text: &str, kind: RecordType) -> DnsQuestion {
    DnsQuestion { name: name(text), kind }
}

/// A message under construction: header and question of `question`, then records.
struct Message(Vec<u8>);

impl Message {
    fn to(question: &DnsQuestion, flags: u16) -> Self {
        let mut message = Vec::new();
        question.write(ID, &mut message);
        message[2..4].copy_from_slice(&flags.to_be_bytes());
        Self(message)
    }

    fn record(mut self, owner: &[u8], kind: u16, ttl_s: u32, data: &[u8]) -> Self {
        let count = u16_at(&self.0, 6).unwrap() + 1;
        self.0[6..8].copy_from_slice(&count.to_be_bytes());
        self.0.extend_from_slice(owner);
        for word in [kind, 1, (ttl_s >> 16) as u16, ttl_s as u16, data.len() as u16] {
            self.0.extend_from_slice(&word.to_be_bytes());
        }
        self.0.extend_from_slice(data);
        self
    }

    fn parse(&self, question: &DnsQuestion) -> Result<Response, ResponseError> {
        parse(&self.0, question, ID)
    }

    fn answer(&self, question: &DnsQuestion) -> DnsAnswer {
        match self.parse(question) {
            Ok(Response::Answer(answer)) => answer,
            other => panic!("{other:?}"),
        }
    }
}

fn wire(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    name(text).write(&mut out);
    out
}

/// A pointer to the question's name.
const ASKED: &[u8] = &[0xc0, 12];

fn addresses(answer: &DnsAnswer) -> Vec<IpAddr> {
    let address = |record: &RecordData| match record {
        RecordData::Address(ip) => *ip,
        other => panic!("{other:?}"),
    };
    answer.records.iter().map(address).collect()
}

#[test]
fn names_from_text() {
    assert_eq!(name("WWW.Example.com.").to_string(), "www.example.com");
    assert_eq!(name("_http._tcp.a").to_string(), "_http._tcp.a");
    let label = "a".repeat(LABEL_BYTES_MAX);
    let longest = [&label[..]; 4].join(".");
    assert_eq!(wire(&longest).len(), NAME_BYTES_MAX);
    let longer = format!("{}.b.{}", [&label[..]; 3].join("."), &label[2..]);
    assert!(DomainName::from_text(longer.as_bytes()).is_ok());
    for wrong in ["", ".", "..", "a..b", ".a", "a..", &format!("{label}a"), &format!("{longest}b")]
    {
        assert_eq!(DomainName::from_text(wrong.as_bytes()), Err(InvalidName), "{wrong}");
    }
}

#[test]
fn names_lie_within_their_domains() {
    let www = name("www.example.com");
    for domain in ["www.example.com", "example.com", "com"] {
        assert!(www.is_within(&name(domain)), "{domain}");
    }
    for other in ["a.www.example.com", "ww.example.com", "ample.com", "net"] {
        assert!(!www.is_within(&name(other)), "{other}");
    }
    assert_eq!(www.parent(), Some(name("example.com")));
    assert_eq!(name("com").parent(), None);
}

#[test]
fn names_that_look_alike_are_displayed_differently() {
    let message = [&[0; 12][..], &[3, b'a', b'.', b'B', 2, b'\\', b'\n', 0]].concat();
    let (name, end) = DomainName::read(&message, 12).unwrap();
    assert_eq!(name.to_string(), "a\\.b.\\\\\\010");
    assert_eq!(end, message.len());
    assert_ne!(name, super::DomainName::from_text(b"a.b.\\\n").unwrap());
}

#[test]
fn addresses_reversed() {
    assert_eq!(DomainName::reverse([192, 0, 2, 1].into()).to_string(), "1.2.0.192.in-addr.arpa");
    let v6: IpAddr = "2001:db8::567:89ab".parse().unwrap();
    let expected = "b.a.9.8.7.6.5.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa";
    assert_eq!(DomainName::reverse(v6).to_string(), expected);
}

#[test]
fn compressed_names_end_where_their_pointer_does() {
    let mut message = vec![0; 12];
    message.extend_from_slice(&wire("example.com"));
    let at = message.len();
    message.extend_from_slice(&[3, b'w', b'w', b'w', 0xc0, 12, 0xc0, at as u8]);
    let read = |at| DomainName::read(&message, at).map(|(name, end)| (name.to_string(), end));
    assert_eq!(read(at), Ok(("www.example.com".to_string(), at + 6)));
    assert_eq!(read(at + 6), Ok(("www.example.com".to_string(), at + 8)));
    assert!(name("WWW.example.com").is_at(&message, at));
    for other in ["example.com", "wwww.example.com", "www.example.co", "a.www.example.com"] {
        assert!(!name(other).is_at(&message, at), "{other}");
    }
}

#[test]
fn invalid_names_are_refused() {
    let read = |tail: &[u8]| {
        let message = [&[0; 12][..], tail].concat();
        DomainName::read(&message, 12).map(|(name, _)| name.to_string())
    };
    assert_eq!(read(&[]), Err(NameError::Short));
    assert_eq!(read(&[0]), Err(NameError::Length), "the root");
    assert_eq!(read(&[3, b'a']), Err(NameError::Short));
    assert_eq!(read(&[1, b'a']), Err(NameError::Short), "no end");
    assert_eq!(read(&[0xc0]), Err(NameError::Short));
    assert_eq!(read(&[0xc0, 12]), Err(NameError::Pointers), "itself");
    assert_eq!(read(&[0xc0, 14, 1, b'a', 0]), Err(NameError::Pointers), "forwards");
    assert_eq!(read(&[0xc0, 0]), Err(NameError::Pointers), "into the header");
    assert_eq!(read(&[0x40, 0]), Err(NameError::LabelType));
    assert_eq!(read(&[0x80, 0]), Err(NameError::LabelType));
    let long = [&[63][..], &[b'a'; 63]].concat().repeat(4);
    assert!(read(&[&long[..], &[0]].concat()).is_ok());
    assert_eq!(read(&[&long[..], &[1, b'a', 0]].concat()), Err(NameError::Length));
}

#[test]
fn too_many_pointers_are_refused() {
    let chain = |pointers: usize| {
        let mut message = vec![0; 12];
        message.extend_from_slice(&[1, b'a', 0, 0]);
        message.extend_from_slice(&[0xc0, 12]);
        for at in (16..).step_by(2).take(pointers - 1) {
            message.extend_from_slice(&(0xc000 | at as u16).to_be_bytes());
        }
        DomainName::read(&message, message.len() - 2).map(|(name, _)| name.to_string())
    };
    assert_eq!(chain(POINTERS_MAX), Ok("a".to_string()));
    assert_eq!(chain(POINTERS_MAX + 1), Err(NameError::Pointers));
}

#[test]
fn a_query() {
    let mut query = Vec::new();
    question("a.bc", RecordType::Aaaa).write(ID, &mut query);
    assert_eq!(query, b"\x12\x34\x01\0\0\x01\0\0\0\0\0\0\x01a\x02bc\0\0\x1c\0\x01");
}

#[test]
fn addresses_of_the_requested_name() {
    let a = question("example.net", RecordType::A);
    let message = Message::to(&a, OK)
        .record(ASKED, RecordType::A as u16, 300, &[127, 0, 0, 1])
        .record(&wire("EXAMPLE.net"), RecordType::A as u16, 60, &[127, 0, 0, 2]);
    let answer = message.answer(&a);
    assert_eq!(addresses(&answer), [IpAddr::from([127, 0, 0, 1]), [127, 0, 0, 2].into()]);
    assert_eq!((answer.alias, answer.ttl_s), (None, 60));
    let aaaa = question("example.net", RecordType::Aaaa);
    let ip: core::net::Ipv6Addr = "fe80::1".parse().unwrap();
    let message =
        Message::to(&aaaa, OK).record(ASKED, RecordType::Aaaa as u16, 1 << 31, &ip.octets());
    let answer = message.answer(&aaaa);
    assert_eq!((addresses(&answer), answer.ttl_s), (vec![ip.into()], 0));
}

#[test]
fn unrequested_records_are_ignored() {
    let a = question("example.net", RecordType::A);
    let message = Message::to(&a, OK)
        .record(&wire("other.net"), RecordType::A as u16, 300, &[10, 0, 0, 1])
        .record(ASKED, RecordType::Aaaa as u16, 300, &[0; 16])
        .record(&wire("other.net"), CNAME, 1, &wire("third.net"))
        .record(ASKED, RecordType::A as u16, 300, &[127, 0, 0, 1]);
    let answer = message.answer(&a);
    assert_eq!(addresses(&answer), [IpAddr::from([127, 0, 0, 1])]);
    assert_eq!(answer.ttl_s, 300);
    let answer = Message::to(&a, OK).record(ASKED, RecordType::Aaaa as u16, 9, &[0; 16]).answer(&a);
    assert_eq!(answer, DnsAnswer { records: Vec::new(), alias: None, ttl_s: 0 });
}

#[test]
fn aliases_are_followed_in_any_order() {
    let a = question("a.net", RecordType::A);
    let records = [
        (wire("a.net"), CNAME, 200, wire("b.net")),
        (wire("b.net"), CNAME, 100, wire("c.net")),
        (wire("c.net"), RecordType::A as u16, 300, vec![127, 0, 0, 1]),
        (wire("a.net"), RecordType::A as u16, 1, vec![10, 0, 0, 1]),
    ];
    for order in [[0, 1, 2, 3], [3, 2, 1, 0], [1, 3, 0, 2]] {
        let mut message = Message::to(&a, OK);
        for (owner, kind, ttl_s, data) in order.map(|index| &records[index]) {
            message = message.record(owner, *kind, *ttl_s, data);
        }
        let answer = message.answer(&a);
        assert_eq!(addresses(&answer), [IpAddr::from([127, 0, 0, 1])], "{order:?}");
        assert_eq!((answer.alias, answer.ttl_s), (None, 100));
    }
}

#[test]
fn an_alias_may_be_what_is_asked_for() {
    let cname = question("_acme-challenge.a.net", RecordType::Cname);
    let message = Message::to(&cname, OK).record(ASKED, CNAME, 7, &wire("b.net"));
    let expected = DnsAnswer { records: Vec::new(), alias: Some(name("b.net")), ttl_s: 7 };
    assert_eq!(message.answer(&cname), expected);
    assert!(Message::to(&cname, OK).answer(&cname).is_empty());
}

#[test]
fn an_alias_without_records_is_returned() {
    let a = question("a.net", RecordType::A);
    let message = Message::to(&a, OK).record(ASKED, CNAME, 7, &wire("b.net")).record(
        &wire("b.net"),
        CNAME,
        9,
        &wire("c.net"),
    );
    let expected = DnsAnswer { records: Vec::new(), alias: Some(name("c.net")), ttl_s: 7 };
    assert_eq!(message.answer(&a), expected);
    let circle = Message::to(&a, OK).record(ASKED, CNAME, 7, &wire("b.net")).record(
        &wire("b.net"),
        CNAME,
        9,
        &wire("a.net"),
    );
    assert_eq!(circle.answer(&a).alias, Some(name("a.net")));
    let mut many = Message::to(&a, OK);
    for index in 0..ALIASES_MAX {
        many = many.record(&wire(&format!("x{index}.net")), CNAME, 7, ASKED);
    }
    assert!(many.parse(&a).is_ok());
    assert_eq!(many.record(ASKED, CNAME, 7, &wire("b")).parse(&a), Err(ResponseError::Aliases));
}

#[test]
fn other_types_are_skipped() {
    // As in nginx's tests: example.com is example.net, so alias.example.com is alias.example.net.
    let a = question("alias.example.com", RecordType::A);
    let message = Message::to(&a, OK).record(&[0xc0, 18], DNAME, 3600, &wire("example.net"));
    let message = message.record(ASKED, CNAME, 3600, b"\x05alias\xc0\x2f");
    assert_eq!(message.answer(&a).alias, Some(name("alias.example.net")));
}

#[test]
fn services() {
    let srv = question("_http._tcp.example.net", RecordType::Srv);
    let data = [&[0, 1, 0, 5, 31, 144][..], &wire("a.example.net")].concat();
    let message = Message::to(&srv, OK).record(ASKED, RecordType::Srv as u16, 60, &data).record(
        ASKED,
        RecordType::Srv as u16,
        60,
        &[0, 0, 0, 0, 0, 0, 0],
    );
    let service = Service { priority: 1, weight: 5, port: 8080, target: name("a.example.net") };
    assert_eq!(message.answer(&srv).records, [RecordData::Service(service)]);
    for short in [&data[..5], &data[..6], &data[..9]] {
        let message = Message::to(&srv, OK).record(ASKED, RecordType::Srv as u16, 60, short);
        assert!(message.parse(&srv).is_err(), "{short:?}");
    }
}

#[test]
fn texts_are_whole_and_name_servers_have_names() {
    let txt = question("_acme-challenge.a.net", RecordType::Txt);
    let message = Message::to(&txt, OK)
        .record(ASKED, RecordType::Txt as u16, 60, b"\x03one\x00\x03two")
        .record(ASKED, RecordType::Txt as u16, 60, b"\x05other");
    let answer = message.answer(&txt);
    assert!(answer.has_text(b"onetwo") && answer.has_text(b"other"));
    assert!(!answer.has_text(b"one") && !answer.has_text(b""));
    let short = Message::to(&txt, OK).record(ASKED, RecordType::Txt as u16, 60, b"\x06other");
    assert_eq!(short.parse(&txt), Err(ResponseError::Data(RecordType::Txt)));
    let ns = question("a.net", RecordType::Ns);
    let message = Message::to(&ns, OK).record(ASKED, RecordType::Ns as u16, 60, &wire("ns1.net"));
    assert_eq!(message.answer(&ns).records, [RecordData::NameServer(name("ns1.net"))]);
}

#[test]
fn the_name_of_an_address() {
    let ptr =
        DnsQuestion { name: DomainName::reverse([127, 0, 0, 1].into()), kind: RecordType::Ptr };
    let message =
        Message::to(&ptr, OK).record(ASKED, RecordType::Ptr as u16, 60, &wire("localhost"));
    assert_eq!(message.answer(&ptr).records, [RecordData::Pointer(name("localhost"))]);
    let tail = [&wire("localhost")[..], b"x"].concat();
    let message = Message::to(&ptr, OK).record(ASKED, RecordType::Ptr as u16, 60, &tail);
    assert_eq!(message.parse(&ptr), Err(ResponseError::Data(RecordType::Ptr)));
}

#[test]
fn failures_and_truncation() {
    let a = question("a.net", RecordType::A);
    let parse = |flags| Message::to(&a, flags).parse(&a);
    for code in 2..=5_u8 {
        assert_eq!(parse(OK | u16::from(code)), Ok(Response::Failed(Rcode(code))));
    }
    for code in [1, 6, 15_u8] {
        let expected = Err(ResponseError::Server(Rcode(code)));
        assert_eq!(parse(OK | u16::from(code)), expected);
    }
    assert_eq!(parse(OK | 0x0200), Ok(Response::Truncated));
    assert_eq!(
        parse(OK | 0x0030),
        Ok(Response::Answer(DnsAnswer { records: Vec::new(), alias: None, ttl_s: 0 }))
    );
}

#[test]
fn invalid_responses_are_refused() {
    let a = question("a.net", RecordType::A);
    assert_eq!(Message::to(&a, 0x0180).parse(&a), Err(ResponseError::Flags(0x0180)), "a query");
    assert_eq!(Message::to(&a, 0xa180).parse(&a), Err(ResponseError::Flags(0xa180)), "a notify");
    let other = question("b.net", RecordType::A);
    assert_eq!(Message::to(&other, OK).parse(&a), Err(ResponseError::Question));
    let other = question("a.net", RecordType::Aaaa);
    assert_eq!(Message::to(&other, OK).parse(&a), Err(ResponseError::Question));
    assert_eq!(
        Message::to(&question("A.NET", RecordType::A), OK | 2).parse(&a).map(|_| ()),
        Ok(())
    );
    let message = Message::to(&a, OK).0;
    let expected = Err(ResponseError::Id { found: ID, expected: 7 });
    assert_eq!(parse(&message, &a, 7), expected);
    let mut chaos = message.clone();
    *chaos.last_mut().unwrap() = 3;
    assert_eq!(parse(&chaos, &a, ID), Err(ResponseError::Question));
    let mut two = message.clone();
    two[5] = 2;
    assert_eq!(parse(&two, &a, ID), Err(ResponseError::Questions(2)));
    for end in 0..message.len() {
        assert!(parse(&message[..end], &a, ID).is_err(), "{end}");
    }
}

#[test]
fn a_truncated_record_is_refused() {
    let a = question("a.net", RecordType::A);
    let message = Message::to(&a, OK).record(ASKED, RecordType::A as u16, 60, &[127, 0, 0, 1]).0;
    let start = Message::to(&a, OK).0.len();
    assert!(parse(&message, &a, ID).is_ok());
    for end in start..message.len() {
        assert!(parse(&message[..end], &a, ID).is_err(), "{end}");
    }
    let short = Message::to(&a, OK).record(ASKED, RecordType::A as u16, 60, &[127, 0, 0]);
    assert_eq!(short.parse(&a), Err(ResponseError::Data(RecordType::A)));
    let mut chaos = message;
    chaos[start + 5] = 3;
    assert_eq!(parse(&chaos, &a, ID), Err(ResponseError::Class(3)));
}
