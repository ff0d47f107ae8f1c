//! Questions to name servers: aliases, name servers of a zone, texts, addresses.
//!
//! Deliberately absent: a cache, because these records change while a certificate is obtained.

use std::net::{IpAddr, SocketAddr};

use net::Address;
use upstream::ResolverPolicy;
use upstream::address::Endpoint;
use wire::dns::{
    self, DnsAnswer, DnsQuestion, DomainName, Rcode, RecordData, RecordType, Response,
};

use super::exchange::{DnsMessage, ReceivedMessage, exchange};

pub(super) const DNS_PORT: u16 = 53;
/// The most aliases that are followed from a record's name.
const ALIASES_MAX: usize = 8;
/// The most name servers of a zone that are asked.
const ZONE_SERVERS_MAX: usize = 8;
/// The system's name servers, and how many of them are used, as by libc.
const SYSTEM_SERVERS: &str = "/etc/resolv.conf";
const SYSTEM_SERVERS_MAX: usize = 3;

/// A question that waits for its answer.
struct PendingQuestion {
    question: DnsQuestion,
    id: u16,
    message: Vec<u8>,
}

impl DnsMessage for PendingQuestion {
    type Outcome = Response;
    const TCP_AFTER_SILENCE: bool = false;

    fn bytes(&self) -> &[u8] {
        &self.message
    }

    fn read(&self, response: &[u8]) -> ReceivedMessage<Response> {
        match dns::parse(response, &self.question, self.id) {
            Ok(Response::Truncated) => ReceivedMessage::Truncated,
            Ok(response) => ReceivedMessage::Response(response),
            Err(dns::ResponseError::Server(rcode)) => {
                ReceivedMessage::Response(Response::Failed(rcode))
            }
            Err(_) => ReceivedMessage::Other,
        }
    }
}

/// The answer of the first server that has one; a name that does not exist has no records.
pub(super) async fn ask(
    servers: &[SocketAddr],
    name: &DomainName,
    kind: RecordType,
) -> Result<DnsAnswer, String> {
    let question = DnsQuestion { name: name.clone(), kind };
    let mut failure = format!("there is no name server to ask for {name}");
    for server in servers {
        let (id, mut message) = (net::system::random() as u16, Vec::new());
        question.write(id, &mut message);
        let pending = PendingQuestion { question: question.clone(), id, message };
        failure = match exchange(*server, &pending).await {
            Ok(Response::Answer(answer)) => return Ok(answer),
            Ok(Response::Failed(Rcode::NXDOMAIN)) => {
                return Ok(DnsAnswer { records: Vec::new(), alias: None, ttl_s: 0 });
            }
            Ok(Response::Failed(rcode)) => {
                format!("name server {server} has no answer for {name} ({})", rcode.mnemonic())
            }
            Ok(Response::Truncated) => format!("name server {server} has no whole answer"),
            Err(failure) => failure,
        };
    }
    Err(failure)
}

/// The name at the end of a chain of aliases (CNAME); the name itself if it has none.
pub(super) async fn follow(
    servers: &[SocketAddr],
    name: &DomainName,
) -> Result<DomainName, String> {
    let mut at = name.clone();
    for _ in 0..=ALIASES_MAX {
        match ask(servers, &at, RecordType::Cname).await?.alias {
            Some(next) => at = next,
            None => return Ok(at),
        }
    }
    Err(format!("{name} has more than {ALIASES_MAX} aliases in a row"))
}

/// The name servers of the zone that a name is in, by their names.
pub(super) async fn zone_servers(
    servers: &[SocketAddr],
    name: &DomainName,
) -> Result<Vec<DomainName>, String> {
    let mut at = Some(name.clone());
    while let Some(domain) = at {
        let answer = ask(servers, &domain, RecordType::Ns).await?;
        let names = answer.records.into_iter().filter_map(|record| match record {
            RecordData::NameServer(server) => Some(server),
            _ => None,
        });
        let names: Vec<_> = names.take(ZONE_SERVERS_MAX).collect();
        if !names.is_empty() {
            return Ok(names);
        }
        at = domain.parent();
    }
    Err(format!("no name server of {name} was found"))
}

/// The addresses of a name server of a zone, those of IPv4 first.
pub(super) async fn host_addresses(
    servers: &[SocketAddr],
    host: &DomainName,
) -> Result<Vec<SocketAddr>, String> {
    let mut found = Vec::new();
    for kind in [RecordType::A, RecordType::Aaaa] {
        let answer = ask(servers, host, kind).await?;
        found.extend(answer.records.into_iter().filter_map(|record| match record {
            RecordData::Address(ip) => Some(SocketAddr::new(ip, DNS_PORT)),
            _ => None,
        }));
    }
    if found.is_empty() { Err(format!("name server {host} has no address")) } else { Ok(found) }
}

/// The addresses of a server of the configuration. A name is looked up by the resolver, or by the
/// system.
pub(super) async fn addresses(
    place: &Endpoint,
    names: &ResolverPolicy,
) -> Result<Vec<SocketAddr>, String> {
    let found: Vec<SocketAddr> = match (place, names.resolver()) {
        (Endpoint::Named { host, port }, Some(resolver)) => {
            let resolved = resolver.addresses(host).await.map_err(|error| error.to_string())?;
            resolved.addresses.into_iter().map(|ip| SocketAddr::new(ip, *port)).collect()
        }
        _ => {
            let asked = place.clone();
            let found = net::offload(move || asked.addresses()).await;
            found.into_iter().filter_map(ip_of).collect()
        }
    };
    if found.is_empty() { Err(format!("host not found: {place}")) } else { Ok(found) }
}

fn ip_of(address: Address) -> Option<SocketAddr> {
    match address {
        Address::Ip(ip) | Address::Udp(ip) => Some(ip),
        Address::Unix(_) => None,
    }
}

/// The name servers that look up everything: those of `resolver`, or else the system's.
pub(super) async fn recursive_servers(names: &ResolverPolicy) -> Vec<SocketAddr> {
    match &names.servers {
        Some(servers) => servers.addresses().to_vec(),
        None => {
            let read = || std::fs::read_to_string(SYSTEM_SERVERS);
            system_servers(&net::offload(read).await.unwrap_or_default())
        }
    }
}

/// The servers of resolv.conf(5).
fn system_servers(text: &str) -> Vec<SocketAddr> {
    let servers = text.lines().filter_map(|line| {
        let mut words = line.split_ascii_whitespace();
        let ip: Option<IpAddr> = match words.next() {
            Some("nameserver") => words.next()?.parse().ok(),
            _ => None,
        };
        Some(SocketAddr::new(ip?, DNS_PORT))
    });
    servers.take(SYSTEM_SERVERS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_system_has_up_to_three_name_servers() {
        let text = "# nameserver 10.0.0.9\nsearch a.test\nnameserver 10.0.0.1\n nameserver ::1 x\n\
                    nameserver fe80::1%eth0\nnameserver\nnameserver 10.0.0.3\nnameserver 10.0.0.4";
        let servers: Vec<_> = system_servers(text).iter().map(ToString::to_string).collect();
        assert_eq!(servers, ["10.0.0.1:53", "[::1]:53", "10.0.0.3:53"]);
        assert_eq!(system_servers(""), []);
    }
}
