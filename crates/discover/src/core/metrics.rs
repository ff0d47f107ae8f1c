//! The page of metrics.

use std::fmt::Write;

use super::{Core, ServerAnswer};

impl Core {
    /// All metrics in Prometheus' text form.
    pub fn metrics(&self, now_ms: u64) -> String {
        let mut out = String::new();
        let mut metric = |name: &str, kind: &str, help: &str, value: f64| {
            let _ = write!(
                out,
                "# HELP weir_discovery_{name} {help}\n# TYPE weir_discovery_{name} {kind}\n\
                 weir_discovery_{name} {value}\n"
            );
        };
        let seconds = |ms: u64| ms as f64 / 1000.0;
        let age = self.age_ms(now_ms).map_or(f64::INFINITY, seconds);
        metric("age_seconds", "gauge", "How old the lists are if the source fails; else 0.", age);
        let up = |is_up: bool| f64::from(u8::from(is_up));
        metric(
            "source_up",
            "gauge",
            "Whether the source answers.",
            up(self.age_ms(now_ms) == Some(0)),
        );
        metric("server_up", "gauge", "Whether the server answers.", up(!self.is_server_gone));
        let groups = || self.groups.values();
        let servers = groups().filter_map(|known| known.list.as_ref()).map(|list| list.count);
        metric("groups", "gauge", "Groups that the source names.", groups().count() as f64);
        metric("servers", "gauge", "Servers in all lists.", servers.sum::<usize>() as f64);
        let held = groups().filter(|known| known.empty_since_ms.is_some()).count();
        metric("held_groups", "gauge", "Groups whose empty lists are held back.", held as f64);
        let behind = groups().filter(|known| known.is_untold()).count();
        metric("behind_groups", "gauge", "Groups whose lists are to be sent.", behind as f64);
        let refused = groups().filter(|known| {
            !matches!(known.answer, None | Some(ServerAnswer::Made | ServerAnswer::Failed(_)))
        });
        let help = "Groups whose lists the server does not take.";
        metric("refused_groups", "gauge", help, refused.count() as f64);
        let counts = &self.counts;
        let total = |name: &str| format!("{name}_total");
        metric(&total("changes"), "counter", "Lists that the server took.", counts.made as f64);
        metric(
            &total("server_failures"),
            "counter",
            "Requests without answer.",
            counts.failed as f64,
        );
        metric(&total("held"), "counter", "Empty lists that were held back.", counts.held as f64);
        let help = "Failures of the source, bad data included.";
        metric(&total("source_failures"), "counter", help, counts.source_errors as f64);
        out
    }

    /// How old the oldest lists are of a part that fails; 0 if none does; `None`: a part has told
    /// none yet.
    fn age_ms(&self, now_ms: u64) -> Option<u64> {
        let ages = self.parts.iter().map(|part| {
            let age = now_ms.saturating_sub(part.told_ms?);
            Some(if part.error.is_some() { age } else { 0 })
        });
        ages.collect::<Option<Vec<_>>>().map(|ages| ages.into_iter().max().unwrap_or(0))
    }
}
