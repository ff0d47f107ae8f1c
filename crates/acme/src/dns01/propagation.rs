//! Waits until name servers show records: an authority that asks too early refuses the name, and
//! remembers for a while that there is no record.

use std::net::SocketAddr;
use std::time::Duration;

use net::{Timer, sleep};
use wire::dns::RecordType;

use super::lookup;
use super::settings::{DnsCheck, DnsContext, DnsRecord};

/// The pauses between two rounds grow to the last one.
const PAUSES_S: [u64; 5] = [1, 2, 4, 8, 10];

/// A name server that has to show a record, by all its addresses.
struct Witness {
    shown: String,
    addresses: Vec<SocketAddr>,
}

/// A name server's view of a record.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Testimony {
    Shown,
    Lacking,
    /// It says nothing, which does not hold up others.
    Silent,
}

/// Waits until all witnesses that answer show all records, for the settings' time at most.
pub(super) async fn await_records(
    context: DnsContext<'_>,
    records: &[DnsRecord],
) -> Result<(), String> {
    let deadline = Timer::new();
    deadline.set(context.settings.timeout_ms);
    let mut reason = String::new();
    let waiting = async {
        for record in records {
            await_record(context, record, &mut reason).await?;
        }
        Ok(())
    };
    match deadline.limit(waiting).await {
        Some(done) => done,
        None => {
            let seconds = context.settings.timeout_ms / 1000;
            Err(format!("{reason}, {seconds} s after the record was added"))
        }
    }
}

async fn await_record(
    context: DnsContext<'_>,
    record: &DnsRecord,
    reason: &mut String,
) -> Result<(), String> {
    *reason = format!("no name server has shown {}", record.name);
    let witnesses = witnesses(context, record).await?;
    let mut pauses_s = PAUSES_S.into_iter();
    let mut pause_s = 0;
    loop {
        match round(&witnesses, record).await {
            Ok(()) => return Ok(()),
            Err(lacking) => *reason = lacking,
        }
        pause_s = pauses_s.next().unwrap_or(pause_s);
        sleep(Duration::from_secs(pause_s)).await;
    }
}

/// Asks each witness once. The error names one that does not show the record.
async fn round(witnesses: &[Witness], record: &DnsRecord) -> Result<(), String> {
    let mut is_shown = false;
    let mut silent = String::new();
    for witness in witnesses {
        match testimony(witness, record).await {
            Testimony::Shown => is_shown = true,
            Testimony::Lacking => {
                return Err(format!("{} does not show {}", witness.shown, record.name));
            }
            Testimony::Silent => silent = format!("{} has no answer", witness.shown),
        }
    }
    if is_shown { Ok(()) } else { Err(format!("{silent} for {}", record.name)) }
}

async fn testimony(witness: &Witness, record: &DnsRecord) -> Testimony {
    let Ok(owner) = record.owner() else { return Testimony::Lacking };
    // One address after the other: the first that answers counts.
    match lookup::ask(&witness.addresses, &owner, RecordType::Txt).await {
        Ok(answer) if answer.has_text(record.value.as_bytes()) => Testimony::Shown,
        Ok(_) => Testimony::Lacking,
        Err(_) => Testimony::Silent,
    }
}

async fn witnesses(context: DnsContext<'_>, record: &DnsRecord) -> Result<Vec<Witness>, String> {
    let named = match &context.settings.check {
        DnsCheck::Off => return Ok(Vec::new()),
        DnsCheck::Servers(servers) => servers,
        DnsCheck::Authoritative => {
            let found = authoritative(context, record).await;
            match (found, context.settings.zone_of(record)?) {
                (Ok(found), _) => return Ok(found),
                // Nobody else can be asked.
                (Err(_), Some(zone)) => &zone.servers,
                (Err(error), None) => return Err(format!("{error}; see \"dns_check\"")),
            }
        }
    };
    let mut found = Vec::new();
    for server in named {
        let addresses = lookup::addresses(server, context.names).await?;
        found.push(Witness { shown: format!("name server {server}"), addresses });
    }
    Ok(found)
}

/// The name servers of the record's zone that have addresses.
async fn authoritative(
    context: DnsContext<'_>,
    record: &DnsRecord,
) -> Result<Vec<Witness>, String> {
    let recursive = lookup::recursive_servers(context.names).await;
    let owner = match context.settings.zone_of(record)? {
        Some(zone) => zone.name.clone(),
        None => record.owner()?,
    };
    let mut found = Vec::new();
    let mut failure = String::new();
    for host in lookup::zone_servers(&recursive, &owner).await? {
        match lookup::host_addresses(&recursive, &host).await {
            Ok(addresses) => {
                found.push(Witness { shown: format!("name server {host}"), addresses });
            }
            Err(error) => failure = error,
        }
    }
    if found.is_empty() { Err(failure) } else { Ok(found) }
}
