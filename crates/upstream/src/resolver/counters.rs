//! What a `resolver` line with `status_zone=` counts.

use metrics::{Metric, Tally};
use wire::dns::{Rcode, RecordType};

use super::cache::Topic;

metrics::counts! {
    /// What a resolver has asked, and what it was told.
    pub struct ResolverCounters of ResolverCounts = 7 {
        names: Tally,
        services: Tally,
        addresses: Tally,
        sent_a: Tally,
        sent_aaaa: Tally,
        sent_srv: Tally,
        sent_ptr: Tally,
        success: Tally,
        timed_out: Tally,
        format_error: Tally,
        server_failure: Tally,
        not_found: Tally,
        unimplemented: Tally,
        refused: Tally,
        other: Tally,
    }
}

/// The zones of the configuration that is being read.
#[derive(Default)]
pub struct ResolverZones(pub Vec<(Box<[u8]>, Metric<ResolverCounts>)>);

impl ResolverZones {
    /// The metric of a zone, which is shown from now on.
    pub fn add(&mut self, name: &[u8]) {
        if !self.0.iter().any(|(known, _)| **known == *name) {
            self.0.push((name.into(), Metric::named(name)));
        }
    }
}

impl ResolverCounters<'_> {
    pub(super) fn asked(self, topic: Topic) {
        match topic {
            Topic::Addresses => self.names().add(1),
            Topic::Services => self.services().add(1),
            Topic::Pointer => self.addresses().add(1),
        }
    }

    pub(super) fn sent(self, kind: RecordType) {
        match kind {
            RecordType::A => self.sent_a().add(1),
            RecordType::Aaaa => self.sent_aaaa().add(1),
            RecordType::Srv => self.sent_srv().add(1),
            RecordType::Ptr => self.sent_ptr().add(1),
            // No topic asks for them.
            RecordType::Ns | RecordType::Cname | RecordType::Txt => {}
        }
    }

    /// Counts the end of a lookup. `None`: nobody answered in time.
    pub(super) fn told(self, outcome: Option<Result<(), Rcode>>) {
        let counter = match outcome {
            None => self.timed_out(),
            Some(Ok(())) => self.success(),
            Some(Err(rcode)) => match rcode.0 {
                1 => self.format_error(),
                2 => self.server_failure(),
                3 => self.not_found(),
                4 => self.unimplemented(),
                5 => self.refused(),
                _ => self.other(),
            },
        };
        counter.add(1);
    }
}
