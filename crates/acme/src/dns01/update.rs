//! Changes of records by signed updates (RFC 2136, RFC 8945).

use std::time::Duration;

use net::hmac::{HmacHash, sign_with};
use net::{Timer, clock, sleep};
use upstream::ResolverPolicy;
use wire::dns::{
    DomainName, Rcode, SignedUpdate, TsigAlgorithm, TsigKey, TxtChange, TxtUpdate, UpdateError,
    id_of, is_truncated,
};

use super::exchange::{DnsMessage, ReceivedMessage, exchange};
use super::lookup;
use super::settings::{DnsRecord, DnsZone, RecordChange};

/// How long one change may take, whatever the servers do.
const UPDATE_MS_MAX: u64 = 60_000;
/// The pauses before the servers are tried again.
const PAUSES: [Duration; 2] = [Duration::from_secs(2), Duration::from_secs(5)];

/// An update that waits for the server's verdict.
struct PendingUpdate<'k> {
    signed: SignedUpdate,
    key: &'k TsigKey,
}

/// Why a server has not made the change.
struct NotChanged {
    reason: String,
    /// Whether the same server may make it soon.
    may_pass: bool,
}

/// Makes a change at the first server that takes it.
pub(super) async fn change(
    zone: &DnsZone,
    record: &DnsRecord,
    change: RecordChange,
    names: &ResolverPolicy,
) -> Result<(), String> {
    let owner = record.owner()?;
    let deadline = Timer::new();
    deadline.set(UPDATE_MS_MAX);
    let mut reason = String::new();
    let changing = async {
        for pause in PAUSES.map(Some).into_iter().chain([None]) {
            match change_once(zone, &owner, record, change, names, &mut reason).await {
                Ok(()) => return Ok(()),
                Err(may_pass) if !may_pass => return Err(()),
                Err(_) => {}
            }
            if let Some(pause) = pause {
                sleep(pause).await;
            }
        }
        Err(())
    };
    match deadline.limit(changing).await {
        Some(Ok(())) => Ok(()),
        Some(Err(())) => Err(reason),
        None if reason.is_empty() => Err(format!("updating zone {} takes too long", zone.name)),
        None => Err(reason),
    }
}

/// Tries each server once. The error says whether to try again; `reason` is the last failure's.
async fn change_once(
    zone: &DnsZone,
    owner: &DomainName,
    record: &DnsRecord,
    change: RecordChange,
    names: &ResolverPolicy,
    reason: &mut String,
) -> Result<(), bool> {
    let mut may_pass = false;
    for server in &zone.servers {
        let addresses = match lookup::addresses(server, names).await {
            Ok(addresses) => addresses,
            Err(error) => {
                (*reason, may_pass) = (error, true);
                continue;
            }
        };
        for address in addresses {
            let update = PendingUpdate::new(zone, owner, record, change);
            let failure = match exchange(address, &update).await {
                Ok(Ok(())) => return Ok(()),
                Ok(Err(failure)) => failure,
                Err(reason) => NotChanged { reason, may_pass: true },
            };
            may_pass |= failure.may_pass;
            *reason = format!("{} (update of zone {} at {address})", failure.reason, zone.name);
        }
    }
    Err(may_pass)
}

impl<'k> PendingUpdate<'k> {
    fn new(
        zone: &'k DnsZone,
        owner: &DomainName,
        record: &DnsRecord,
        change: RecordChange,
    ) -> Self {
        let change = match change {
            RecordChange::Add => TxtChange::Add { ttl_s: zone.ttl_s },
            RecordChange::Remove => TxtChange::Remove,
        };
        let update =
            TxtUpdate { zone: &zone.name, name: owner, value: record.value.as_bytes(), change };
        let id = net::system::random() as u16;
        Self { signed: update.sign(id, now_s(), &zone.key, &hmac), key: &zone.key }
    }
}

impl DnsMessage for PendingUpdate<'_> {
    type Outcome = Result<(), NotChanged>;
    const TCP_AFTER_SILENCE: bool = true;

    fn bytes(&self) -> &[u8] {
        &self.signed.message
    }

    fn read(&self, response: &[u8]) -> ReceivedMessage<Self::Outcome> {
        if is_truncated(response) && id_of(response) == id_of(&self.signed.message) {
            return ReceivedMessage::Truncated;
        }
        match self.signed.verdict(response, now_s(), self.key, &hmac) {
            Err(UpdateError::Other) => ReceivedMessage::Other,
            verdict => ReceivedMessage::Response(outcome(verdict)),
        }
    }
}

fn outcome(verdict: Result<Rcode, UpdateError>) -> Result<(), NotChanged> {
    match verdict {
        Ok(Rcode(0)) => Ok(()),
        Ok(rcode) => {
            let reason = format!("the name server refuses the update ({})", rcode.mnemonic());
            Err(NotChanged { reason, may_pass: rcode == Rcode::SERVFAIL })
        }
        Err(error) => {
            let may_pass = error == UpdateError::Unsigned(Rcode::SERVFAIL);
            Err(NotChanged { reason: error.to_string(), may_pass })
        }
    }
}

fn hmac(algorithm: TsigAlgorithm, secret: &[u8], message: &[u8]) -> Vec<u8> {
    let hash = match algorithm {
        TsigAlgorithm::HmacSha256 => HmacHash::Sha256,
        TsigAlgorithm::HmacSha384 => HmacHash::Sha384,
        TsigAlgorithm::HmacSha512 => HmacHash::Sha512,
    };
    sign_with(hash, secret, message)
}

fn now_s() -> u64 {
    clock::unix_ms() / 1000
}
