//! Starts the threads of the controller, and waits for SIGTERM.

use std::net::{IpAddr, UdpSocket};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, channel, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use discover::{ApiServerPlace, Drive, HttpPlace, MetricsPage, WeirApi};
use net::signals::{SIGTERM, note_once};

use crate::arguments::IngressArguments;
use crate::cluster;
use crate::controller::{self, Controller, ControllerNews, PlannedLists, Planning};
use crate::election::take_part;
use crate::installer::Installer;
use crate::metrics::IngressMetrics;
use crate::plan::servers;
use crate::server::ServerControl;
use crate::statuses::StatusWriter;
use crate::{plan, tell};

/// Messages of watches that wait; a watch waits for room.
const HEARD_MAX: usize = 1024;
/// How often to look for SIGTERM.
const LOOK: Duration = Duration::from_millis(50);
/// How often the page of metrics is renewed.
const METRICS_EACH: Duration = Duration::from_secs(1);
/// How long `--prepare` waits for the API server; less if there is a configuration already.
const PREPARE_MAX: Duration = Duration::from_secs(120);
const PREPARED_MAX: Duration = Duration::from_secs(30);

/// The parts that the threads run.
pub(crate) struct ControllerParts<'a> {
    pub(crate) arguments: &'a IngressArguments,
    pub(crate) kube: ApiServerPlace,
    /// The control socket of the server.
    pub(crate) server: HttpPlace,
    pub(crate) metrics: Arc<IngressMetrics>,
    pub(crate) planning: Planning,
}

pub(crate) fn run(arguments: &IngressArguments) -> Result<ExitCode, String> {
    // The first process of a container would ignore it.
    let ends = note_once(SIGTERM).map_err(|error| error.to_string())?;
    end_with_every_thread();
    check_addresses(&arguments.gateway_addresses)?;
    let metrics = Arc::<IngressMetrics>::default();
    let parts = ControllerParts {
        arguments,
        kube: arguments.kube.find()?,
        server: arguments.place()?,
        metrics: metrics.clone(),
        planning: Planning { plan, servers },
    };
    if arguments.is_prepare {
        thread::spawn(move || wait_for_end(ends));
        return prepare(&parts);
    }
    let page = arguments
        .metrics
        .as_ref()
        .map(|address| MetricsPage::serve(address).map_err(|error| format!("{address}: {error}")));
    let page = page.transpose()?;
    let is_leader = start(parts, page.clone())?;
    show(page, &metrics, &is_leader, ends);
    Ok(ExitCode::SUCCESS)
}

/// Starts all threads. Returns what tells whether this replica leads.
pub(crate) fn start(
    parts: ControllerParts<'_>,
    page: Option<MetricsPage>,
) -> Result<Arc<AtomicBool>, String> {
    let (mut controller, heard) = parts.controller();
    let mut installer = parts.installer()?;
    controller.set_used_groups(installer.groups());
    let reports = heard.clone();
    // Without the controller the process ends.
    installer.reports = Box::new(move |report| {
        let _ = reports.send(ControllerNews::Install(report));
    });
    let is_leader = start_statuses(&parts, &controller)?;
    start_lists(&parts, &controller, page);
    cluster::watch(&parts.kube, &heard);
    installer.installs = controller.installs.clone();
    thread::spawn(move || installer.run());
    thread::spawn(move || controller.run());
    Ok(is_leader)
}

impl ControllerParts<'_> {
    fn controller(&self) -> (Controller, SyncSender<ControllerNews>) {
        let (heard, hears) = sync_channel(HEARD_MAX);
        let settings = self.arguments.controller_settings();
        (Controller::new(settings, self.planning, hears, self.metrics.clone()), heard)
    }

    fn installer(&self) -> Result<Installer, String> {
        let server = ServerControl::new(self.server.clone(), self.arguments.check_program());
        Installer::new(self.arguments.folder(), server, self.metrics.clone())
    }
}

/// A thread that panics ends the process, which is then started again, rather than leave the others
/// without it.
fn end_with_every_thread() {
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        report(panic);
        if !controller::is_planning() {
            std::process::exit(1);
        }
    }));
}

fn prepare(parts: &ControllerParts<'_>) -> Result<ExitCode, String> {
    let (mut controller, heard) = parts.controller();
    let mut installer = parts.installer()?;
    let (reports, reported) = channel();
    installer.reports = Box::new(move |report| drop(reports.send(report)));
    cluster::watch(&parts.kube, &heard);
    let has_one = installer.has_configuration();
    let most = if has_one { PREPARED_MAX } else { PREPARE_MAX };
    let mut planned = match controller.first_plan(Instant::now() + most) {
        Some(planned) => planned,
        None if has_one => {
            tell("the API server did not answer; the last configuration is used");
            return Ok(ExitCode::SUCCESS);
        }
        None => return Err("the API server did not tell everything in time".to_owned()),
    };
    while !installer.prepare(&planned)? {
        let report = reported.try_recv().map_err(|error| error.to_string())?;
        planned = controller.next_plan(report).ok_or("the configuration is refused")?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Whether the machine has all addresses that Gateways are to have: the server could listen nowhere
/// else.
fn check_addresses(addresses: &[IpAddr]) -> Result<(), String> {
    for address in addresses {
        UdpSocket::bind((*address, 0))
            .map_err(|error| format!("--gateway-address {address}: {error}"))?;
    }
    Ok(())
}

/// Starts the writer of statuses, and the election of the one who writes.
fn start_statuses(
    parts: &ControllerParts<'_>,
    controller: &Controller,
) -> Result<Arc<AtomicBool>, String> {
    let is_leader = Arc::new(AtomicBool::new(false));
    if parts.arguments.writes_status {
        let (lease, place) = (parts.arguments.lease()?, parts.kube.clone());
        let mut writer = StatusWriter::new(place.clone(), is_leader.clone(), parts.metrics.clone());
        writer.changes = controller.statuses.clone();
        thread::spawn(move || writer.run());
        let leads = is_leader.clone();
        thread::spawn(move || take_part(place, lease, leads));
    }
    Ok(is_leader)
}

/// Starts what gives the lists of servers to the server.
fn start_lists(parts: &ControllerParts<'_>, controller: &Controller, metrics: Option<MetricsPage>) {
    let drive = Drive {
        api: WeirApi::new(parts.server.clone(), parts.arguments.owner.clone()),
        empty_after_ms: parts.arguments.empty_after_ms,
        metrics,
        is_once: false,
        log: tell,
    };
    let lists = PlannedLists(controller.lists.clone());
    thread::spawn(move || drive.run(vec![Box::new(lists)]));
}

/// Renews the page of metrics until the process is to end.
fn show(
    page: Option<MetricsPage>,
    metrics: &IngressMetrics,
    is_leader: &AtomicBool,
    ends: &AtomicBool,
) {
    let mut due = Instant::now();
    while !ends.load(Ordering::Relaxed) {
        if Instant::now() >= due {
            due += METRICS_EACH;
            let text = metrics.page(is_leader.load(Ordering::SeqCst));
            page.iter().for_each(|page| page.set("ingress", text.clone()));
        }
        thread::sleep(LOOK);
    }
}

fn wait_for_end(ends: &AtomicBool) {
    while !ends.load(Ordering::Relaxed) {
        thread::sleep(LOOK);
    }
    std::process::exit(1);
}
