//! The runs as a table, and what must hold of them.

use super::variant::{CLIENTS, LIMIT, Variant};
use crate::wrk::WrkSummary;
use statistics::median;

/// What many get with the limit is at least this much of what few get.
const HOLDS: f64 = 0.95;

pub(super) struct LimitRun {
    pub(super) variant: &'static Variant,
    pub(super) clients: usize,
    pub(super) summary: WrkSummary,
    /// The most requests that the backend had at once.
    pub(super) highest: usize,
}

#[derive(Default)]
pub(super) struct LimitReport(pub(super) Vec<LimitRun>);

/// The runs of a variant with a number of clients, as one: medians, the highest, all errors.
struct LimitRow {
    variant: &'static Variant,
    clients: usize,
    summary: WrkSummary,
    highest: usize,
}

impl LimitReport {
    fn row(&self, variant: &'static Variant, clients: usize) -> LimitRow {
        let of = |run: &&LimitRun| run.variant == variant && run.clients == clients;
        let runs: Vec<&LimitRun> = self.0.iter().filter(of).collect();
        let middle = |pick: fn(&WrkSummary) -> f64| {
            let figures: Vec<f64> = runs.iter().map(|run| pick(&run.summary)).collect();
            median(&figures)
        };
        let summary = WrkSummary {
            rate: middle(|summary| summary.rate),
            p50_ms: middle(|summary| summary.p50_ms),
            p99_ms: middle(|summary| summary.p99_ms),
            max_ms: middle(|summary| summary.max_ms),
            errors: runs.iter().map(|run| run.summary.errors).sum(),
        };
        let highest = runs.iter().map(|run| run.highest).max().unwrap_or_default();
        LimitRow { variant, clients, summary, highest }
    }

    /// By clients, then by variant.
    fn rows(&self, variants: &[&'static Variant]) -> Vec<LimitRow> {
        let cells = CLIENTS.iter().flat_map(|c| variants.iter().map(move |v| (*v, *c)));
        cells.map(|(variant, clients)| self.row(variant, clients)).collect()
    }

    pub(super) fn table(&self, variants: &[&'static Variant]) -> String {
        let mut table = String::from(
            "clients  server          requests/s   p50 ms   p99 ms  at the backend  errors\n",
        );
        for row in self.rows(variants) {
            let LimitRow { variant: Variant { name, .. }, clients, summary, highest } = row;
            let WrkSummary { rate, p50_ms, p99_ms, errors, .. } = summary;
            table += &format!(
                "{clients:7}  {name:15} {rate:10.0} {p50_ms:8.0} {p99_ms:8.0} \
                 {highest:15} {errors:7}\n"
            );
        }
        table
    }

    /// What does not hold of the runs with the limit.
    pub(super) fn verdict(&self, limited: &'static Variant) -> Result<(), String> {
        let rows = CLIENTS.map(|clients| self.row(limited, clients));
        let (few, many) = (&rows[0], &rows[rows.len() - 1]);
        let part = many.summary.rate / few.summary.rate;
        println!(
            "with the limit, {} clients get {:.0} % of what {} get",
            many.clients,
            part * 100.0,
            few.clients
        );
        let highest = rows.iter().map(|row| row.highest).max().unwrap_or_default();
        let errors: f64 = rows.iter().map(|row| row.summary.errors).sum();
        match () {
            () if highest > LIMIT => Err(format!("the backend had {highest} requests at once")),
            () if errors > 0.0 => Err(format!("{errors} requests failed")),
            // A ratio that is no number does not hold.
            () if part >= HOLDS => Ok(()),
            () => Err(format!("that is less than {:.0} %", HOLDS * 100.0)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::variant::{LIMITED, PLAIN};
    use super::*;

    fn report(rates: [f64; 3], highest: usize, errors: f64) -> LimitReport {
        let run = |(clients, rate): (usize, f64)| LimitRun {
            variant: &LIMITED,
            clients,
            summary: WrkSummary { rate, p50_ms: 70.0, p99_ms: 90.0, max_ms: 95.0, errors },
            highest,
        };
        LimitReport(CLIENTS.into_iter().zip(rates).map(run).collect())
    }

    #[test]
    fn the_limit_holds_or_not() {
        let verdict = |rates, highest, errors| report(rates, highest, errors).verdict(&LIMITED);
        assert_eq!(verdict([1000.0, 990.0, 950.0], 200, 0.0), Ok(()));
        assert!(verdict([1000.0, 990.0, 949.0], 200, 0.0).is_err());
        assert!(verdict([1000.0, 990.0, 1000.0], 201, 0.0).is_err());
        assert!(verdict([1000.0, 990.0, 1000.0], 200, 1.0).is_err());
        assert!(LimitReport::default().verdict(&LIMITED).is_err());
    }

    #[test]
    fn rows_are_medians() {
        let mut report = report([1000.0, 990.0, 950.0], 199, 0.0);
        report.0.extend(self::report([2000.0, 990.0, 950.0], 200, 0.0).0);
        let row = report.row(&LIMITED, CLIENTS[0]);
        assert_eq!((row.summary.rate, row.highest), (1500.0, 200));
        let table = report.table(&[&PLAIN, &LIMITED]);
        let line = "    200  weir, limit 200       1500       70       90             200       0";
        assert!(table.contains(line), "{table}");
    }
}
