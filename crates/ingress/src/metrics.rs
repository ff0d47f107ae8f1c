//! What is counted, as a page in Prometheus' text form.

use std::fmt::Write;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

#[derive(Debug, Default)]
pub(crate) struct IngressMetrics {
    pub(crate) plans: AtomicU64,
    pub(crate) plan_failures: AtomicU64,
    pub(crate) plan_micros: AtomicU64,
    pub(crate) reloads: AtomicU64,
    pub(crate) reload_failures: AtomicU64,
    /// Whether the configuration that is wanted was refused.
    pub(crate) is_refused: AtomicBool,
    /// The objects that are left out, since the server refuses them.
    pub(crate) left_out: AtomicU64,
    /// Whether the server does not have the configuration in the folder yet.
    pub(crate) is_behind: AtomicBool,
    pub(crate) status_writes: AtomicU64,
    pub(crate) status_conflicts: AtomicU64,
    pub(crate) status_failures: AtomicU64,
    /// How long the oldest watch has failed, in milliseconds.
    pub(crate) age_ms: AtomicU64,
    /// Kinds, whether they are watched without failure, and how many objects they have.
    pub(crate) kinds: Mutex<Vec<(&'static str, bool, usize)>>,
}

impl IngressMetrics {
    pub(crate) fn count(counter: &AtomicU64) {
        counter.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn page(&self, is_leader: bool) -> String {
        let mut page = MetricsText::default();
        let number = |counter: &AtomicU64| counter.load(Ordering::Relaxed) as f64;
        let flag = |is_set: bool| f64::from(u8::from(is_set));
        let set = |flag_of: &AtomicBool| flag(flag_of.load(Ordering::Relaxed));
        let help = "Seconds for which a watch has failed; 0: none does.";
        page.one("age_seconds", "gauge", help, number(&self.age_ms) / 1000.0);
        let kinds = self.kinds.lock().unwrap_or_else(PoisonError::into_inner).clone();
        page.head("watch_up", "gauge", "Whether objects of the kind are watched.");
        kinds.iter().for_each(|(kind, is_up, _)| page.of_kind("watch_up", kind, flag(*is_up)));
        page.head("objects", "gauge", "Objects of the kind.");
        kinds.iter().for_each(|(kind, _, count)| page.of_kind("objects", kind, *count as f64));
        let help = "Whether the server refuses the configuration, and keeps an older one.";
        page.one("configuration_refused", "gauge", help, set(&self.is_refused));
        let help = "Whether the server is still to read the configuration.";
        page.one("configuration_behind", "gauge", help, set(&self.is_behind));
        let help = "Objects that are left out, since the server refuses what they become.";
        page.one("objects_left_out", "gauge", help, number(&self.left_out));
        page.one("leader", "gauge", "Whether this replica writes statuses.", flag(is_leader));
        let mut total = |name: &str, help, counter| page.one(name, "counter", help, counter);
        total("plans_total", "Plans made.", number(&self.plans));
        let seconds = number(&self.plan_micros) / 1e6;
        total("plan_seconds_total", "Time that plans took.", seconds);
        total("plan_failures_total", "Plans that failed.", number(&self.plan_failures));
        total("reloads_total", "Reloads of the server.", number(&self.reloads));
        let help = "Configurations that were refused, and reloads without answer.";
        total("reload_failures_total", help, number(&self.reload_failures));
        total("status_writes_total", "Statuses written.", number(&self.status_writes));
        let help = "Statuses of objects that had changed meanwhile.";
        total("status_conflicts_total", help, number(&self.status_conflicts));
        total("status_failures_total", "Statuses not written.", number(&self.status_failures));
        page.0
    }
}

#[derive(Default)]
struct MetricsText(String);

impl MetricsText {
    fn head(&mut self, name: &str, kind: &str, help: &str) {
        let head =
            format!("# HELP weir_ingress_{name} {help}\n# TYPE weir_ingress_{name} {kind}\n");
        self.0.push_str(&head);
    }

    fn of_kind(&mut self, name: &str, kind: &str, value: f64) {
        let _ = writeln!(self.0, "weir_ingress_{name}{{kind=\"{kind}\"}} {value}");
    }

    fn one(&mut self, name: &str, kind: &str, help: &str, value: f64) {
        self.head(name, kind, help);
        let _ = writeln!(self.0, "weir_ingress_{name} {value}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_every_metric_once() {
        let metrics = IngressMetrics::default();
        metrics.kinds.lock().unwrap().push(("services", true, 3));
        IngressMetrics::count(&metrics.reloads);
        let page = metrics.page(true);
        for line in [
            "weir_ingress_leader 1",
            "weir_ingress_reloads_total 1",
            "weir_ingress_objects{kind=\"services\"} 3",
            "weir_ingress_watch_up{kind=\"services\"} 1",
        ] {
            assert!(page.lines().any(|other| other == line), "{line}: {page}");
        }
        let names: Vec<_> = page.lines().filter(|line| line.starts_with("# TYPE")).collect();
        let mut unique = names.clone();
        unique.sort_unstable();
        unique.dedup();
        assert_eq!(unique.len(), names.len());
    }
}
