//! Certificates on pages about the server.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use metrics::tree::{Items, JsonPage, StatusTree, TreeSource, Visitor, list};

use zones::Zones;

use crate::account::IssuerInUse;
use crate::certificate::CertificateKeeper;
use crate::counts::AcmeOrders;
use crate::on_demand::OnDemandNames;
use crate::on_demand_keeper::stored_names;
use crate::on_demand_plan::OnDemandPlans;
use crate::plan::{AcmeCertificate, AcmePlan, OrderProgress};

/// The certificates that status pages show: those of the newest configuration.
#[derive(Clone)]
struct ShownCertificates {
    certificates: Vec<AcmeCertificate>,
    on_demand: Vec<Arc<OnDemandNames>>,
}

static SHOWN: Mutex<ShownCertificates> =
    Mutex::new(ShownCertificates { certificates: Vec::new(), on_demand: Vec::new() });

/// Shows these certificates from now on.
pub(crate) fn set(certificates: Vec<AcmeCertificate>, on_demand: Vec<Arc<OnDemandNames>>) {
    let shown = ShownCertificates { certificates, on_demand };
    *SHOWN.lock().unwrap_or_else(PoisonError::into_inner) = shown;
}

/// Adds the certificates to what the program shows of itself.
pub(crate) fn show(tree: &mut StatusTree) {
    let shown = SHOWN.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let ShownCertificates { certificates: mut shown, on_demand } = shown;
    let demanded = on_demand.iter().flat_map(|names| names.all());
    shown.extend(demanded.map(|one| one.certificate.clone()));
    let issuers: BTreeSet<_> =
        shown.iter().flat_map(|one| &one.issuers).map(|issuer| issuer.name.clone()).collect();
    tree.add(&[b"tls", b"acme"], Items::List(sources(shown)));
    let counts = issuers.into_iter().map(|name| (name.as_bytes().into(), counts(&name)));
    tree.add(&[b"tls", b"acme_orders"], Items::Named(counts.collect()));
}

/// The certificates as items of a tree: one that both subsystems have is shown once.
pub(crate) fn sources(mut shown: Vec<AcmeCertificate>) -> Vec<Arc<dyn TreeSource>> {
    let mut seen = HashSet::new();
    shown.retain(|one| seen.insert(one.place()));
    let mut first: HashMap<String, usize> = HashMap::new();
    shown.iter().for_each(|one| *first.entry(one.shown()).or_default() += 1);
    let source = |one: AcmeCertificate| -> Arc<dyn TreeSource> {
        // Several certificates may begin with the same name.
        let name = if first[&one.shown()] == 1 { one.shown() } else { one.stem.clone() };
        Arc::new(move |out: &mut dyn Visitor| show_one(&name, &one, out))
    };
    shown.into_iter().map(source).collect()
}

/// How certificates are doing as far as the state folders know, as JSON, without a server. Blocks
/// on the disk.
pub fn stored_status(zones: &Zones) -> io::Result<Vec<u8>> {
    let plans = zones.all::<AcmePlan>();
    let mut wanted: Vec<_> = plans.iter().flat_map(|plan| plan.certificates.clone()).collect();
    for plan in zones.all::<OnDemandPlans>().iter().flat_map(|plans| &plans.0) {
        for (name, _) in stored_names(plan.folder())? {
            wanted.push(AcmeCertificate::demanded(&name, plan.key, plan.issuers.clone(), None));
        }
    }
    net::run(async {
        for certificate in &wanted {
            let issuers = certificate.issuers.iter();
            let issuers = issuers.map(|issuer| IssuerInUse::new(issuer.clone())).collect();
            let keeper = CertificateKeeper::new(certificate.clone(), issuers);
            match keeper.look().await {
                Ok(()) => drop(keeper.note_due()),
                Err(error) => keeper.note_storage_error(&error),
            }
        }
    })?;
    let mut tree = StatusTree::default();
    tree.add(&[b"acme"], Items::List(sources(wanted)));
    Ok(JsonPage::new(tree).text())
}

fn counts(issuer: &str) -> Arc<dyn TreeSource> {
    let orders = AcmeOrders::of(issuer);
    Arc::new(move |out: &mut dyn Visitor| {
        let totals = orders.totals();
        out.number(b"obtained", totals.get().obtained().get());
        out.number(b"failed", totals.get().failed().get());
    })
}

fn show_one(name: &str, certificate: &AcmeCertificate, out: &mut dyn Visitor) {
    let progress = certificate.kept.progress().clone();
    let milliseconds = |seconds: i64| u64::try_from(seconds).unwrap_or(0).saturating_mul(1000);
    out.text(b"name", name.as_bytes());
    out.text(b"file", certificate.stem.as_bytes());
    list(out, b"names", |out| {
        certificate.names.iter().for_each(|name| out.text(b"", name.to_string().as_bytes()));
    });
    list(out, b"issuers", |out| {
        certificate.issuers.iter().for_each(|issuer| out.text(b"", issuer.name.as_bytes()));
    });
    out.number(b"number", progress.number);
    if let Some(facts) = &progress.facts {
        if !facts.issuer.is_empty() {
            out.text(b"issuer", facts.issuer.as_bytes());
        }
        out.text(b"serial", facts.serial.as_bytes());
        out.number(b"not_before_at", milliseconds(facts.validity.not_before_s));
        out.number(b"not_after_at", milliseconds(facts.validity.not_after_s));
    }
    if let Some(next) = progress.next_attempt {
        out.number(b"next_attempt_at", milliseconds(next.at_s));
        out.text(b"next_attempt_why", next.why.name().as_bytes());
    }
    let order: &[u8] = match progress.order {
        OrderProgress::None => b"none",
        OrderProgress::Stored => b"stored",
        OrderProgress::Queued => b"queued",
        OrderProgress::UnderWay => b"under way",
    };
    out.text(b"order", order);
    out.number(b"failures", progress.failures.into());
    if let Some(error) = progress.error() {
        out.text(b"last_error", error.text.as_bytes());
        if error.at_s > 0 {
            out.number(b"last_error_at", milliseconds(error.at_s));
        }
    }
    if progress.blocked_until_s > 0 {
        out.number(b"blocked_until_at", milliseconds(progress.blocked_until_s));
    }
}
