//! The checks, one function each. To add one, write the function and add it to [`CHECKS`].

mod backends;
mod caches;
mod certificates;
mod files;
mod logs;
mod queues;
mod timeouts;
mod tls;
mod workers;

// Names that the checks use.
pub(super) use super::configuration::{ExaminedConfig, parameter};
pub(super) use super::finding::FindingList;
pub(super) use super::machine::MachineLimits;
pub(super) use super::scope::ConfigScope;

/// A check: its name in reports, and the function that runs it.
pub(super) struct DoctorCheck {
    pub(super) name: &'static str,
    pub(super) run: fn(&MachineLimits, &ExaminedConfig, &mut FindingList<'_>),
}

/// All checks, in the order of reports.
pub(super) const CHECKS: &[DoctorCheck] = &[
    DoctorCheck { name: "includes", run: files::includes },
    DoctorCheck { name: "workers", run: workers::count },
    DoctorCheck { name: "descriptors", run: workers::descriptors },
    DoctorCheck { name: "file-max", run: workers::descriptors_of_all },
    DoctorCheck { name: "governor", run: workers::governor },
    DoctorCheck { name: "accept-queue", run: queues::accept_queue },
    DoctorCheck { name: "syn-backlog", run: queues::syn_backlog },
    DoctorCheck { name: "conntrack", run: queues::conntrack },
    DoctorCheck { name: "backend-keepalive", run: backends::keepalive },
    DoctorCheck { name: "fastcgi-keepalive", run: backends::fastcgi },
    DoctorCheck { name: "backend-version", run: backends::version },
    DoctorCheck { name: "backend-buffering", run: backends::buffering },
    DoctorCheck { name: "proxy-connect-timeout", run: timeouts::connect },
    DoctorCheck { name: "stream-timeout", run: timeouts::stream },
    DoctorCheck { name: "local-ports", run: backends::local_ports },
    DoctorCheck { name: "client-keepalive", run: queues::client_keepalive },
    DoctorCheck { name: "access-log", run: logs::unbuffered },
    DoctorCheck { name: "error-log", run: logs::verbose },
    DoctorCheck { name: "open-file-cache", run: files::cache },
    DoctorCheck { name: "sendfile", run: files::sendfile },
    DoctorCheck { name: "gzip-level", run: files::gzip_level },
    DoctorCheck { name: "tls-sessions", run: tls::sessions },
    DoctorCheck { name: "certificates", run: certificates::refused },
    DoctorCheck { name: "cache-keys", run: caches::mixed_up },
];
