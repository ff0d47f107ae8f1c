//! Answers to the challenge dns-01 (RFC 8555, section 8.4): TXT records, which are added, waited
//! for, and removed.
//!
//! ```text
//! _acme-challenge.NAME --aliases--> the record's name
//!   --update, or program--> the zone --questions--> its name servers show the record
//! ```
//!
//! Deliberately absent: messages (`wire::dns`), and which records exist, which the caller notes on
//! the disk before they are added.

mod exchange;
mod hook;
mod lookup;
mod propagation;
mod settings;
mod update;

pub(crate) use settings::{
    DnsCheck, DnsContext, DnsHook, DnsRecord, DnsSettings, DnsWriter, DnsZone, RecordChange,
};

use std::net::SocketAddr;

use observe::Level;

/// The port of name servers.
pub(crate) const DNS_PORT: u16 = lookup::DNS_PORT;

impl DnsContext<'_> {
    /// The records with the names that theirs are aliases of, so that a zone can leave challenges
    /// to another one. As soon as nobody can say, names stay as they are.
    pub(crate) async fn followed(
        &self,
        mut records: Vec<DnsRecord>,
    ) -> Result<Vec<DnsRecord>, String> {
        let servers = self.alias_servers().await;
        for record in &mut records {
            match lookup::follow(&servers, &record.owner()?).await {
                Ok(followed) => record.name = followed.to_string(),
                Err(reason) => {
                    let text = format_args!("acme: aliases are not followed: {reason}");
                    observe::log(Level::Info, text);
                    break;
                }
            }
        }
        records.iter().try_for_each(|record| record.owner().map(drop))?;
        Ok(records)
    }

    /// The servers that are asked for aliases.
    async fn alias_servers(&self) -> Vec<SocketAddr> {
        let DnsCheck::Servers(servers) = &self.settings.check else {
            return lookup::recursive_servers(self.names).await;
        };
        let mut all = Vec::new();
        for server in servers {
            all.extend(lookup::addresses(server, self.names).await.unwrap_or_default());
        }
        all
    }

    pub(crate) async fn change(
        &self,
        record: &DnsRecord,
        change: RecordChange,
    ) -> Result<(), String> {
        let settings = self.settings;
        match (&settings.writer, settings.zone_of(record)?) {
            (DnsWriter::Hook(hook), _) => {
                hook::change(hook, record, change, settings.timeout_ms).await
            }
            (_, Some(zone)) => update::change(zone, record, change, self.names).await,
            (_, None) => Ok(()),
        }
    }

    /// Waits until the name servers show the records.
    pub(crate) async fn await_records(&self, records: &[DnsRecord]) -> Result<(), String> {
        match self.settings.check {
            DnsCheck::Off => Ok(()),
            _ => propagation::await_records(*self, records).await,
        }
    }
}
