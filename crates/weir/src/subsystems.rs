//! The subsystems of the program. This is the only list of them: to have another one, add it here
//! and to the blocks of the main level (`settings::BLOCKS`).
//!
//! Everything else in the program handles them alike, by their places in the list: what listens,
//! what serves in a worker, whose jobs the control thread does.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;

use acme::AcmeJob;
use conf::{Directive, Error, Load, Result, Subsystem};
use net::{Address, SocketOptions};
use session::keyval::KeyvalZone;
use session::limits::LimitSharing;
use session::status::SubsystemStatus;
use session::steering::SteeringCall;
use session::store::StoreJob;
use session::{ControlJob, ControlJobs, SubsystemSite};
use upstream::Group;
use zones::Zones;

/// The subsystems' blocks as far as they have been read.
#[derive(Default)]
pub struct Plans {
    http: Option<http::HttpPlan>,
    stream: Option<stream::StreamPlan>,
}

/// What a configuration serves. A subsystem without a block has a site without sockets.
#[derive(Clone, Default)]
pub struct Sites {
    http: Arc<http::Site>,
    stream: Arc<stream::StreamSite>,
}

impl Plans {
    /// Reads the block of a subsystem.
    pub fn read(&mut self, block: &Directive, load: &mut Load<'_>) -> Result<()> {
        match &*block.name.text {
            b"http" => self.http = Some(http::read(block, load)?),
            b"stream" => self.stream = Some(stream::read(block, load)?),
            _ => {}
        }
        Ok(())
    }

    pub fn compile(self, load: &mut Load<'_>) -> Result<Sites> {
        let http = self.http.map(|plan| plan.compile(load)).transpose()?.unwrap_or_default();
        let stream = self.stream.map(|plan| plan.compile(load)).transpose()?.unwrap_or_default();
        let sites = Sites { http: Arc::new(http), stream: Arc::new(stream) };
        sites.check()?;
        Ok(sites)
    }
}

impl Sites {
    pub const COUNT: usize = 2;

    /// The site of each subsystem.
    pub fn each(&self) -> [&dyn SubsystemSite; Self::COUNT] {
        [&*self.http, &*self.stream]
    }

    pub fn http(&self) -> &http::Site {
        &self.http
    }

    /// [`Self::each`] as shared pointers.
    pub fn shared(&self) -> [Arc<dyn SubsystemSite>; Self::COUNT] {
        [self.http.clone(), self.stream.clone()]
    }

    pub fn listens(&self) -> Vec<(&Address, &SocketOptions)> {
        self.each().into_iter().flat_map(SubsystemSite::sockets).collect()
    }

    /// The groups of servers that can be changed at run time.
    pub fn groups(&self) -> impl Iterator<Item = &Arc<Group>> {
        let all = self.each().into_iter().flat_map(SubsystemSite::upstream_groups);
        all.filter(|group| group.rules().is_some())
    }

    /// The group of that name.
    pub fn group(&self, subsystem: Subsystem, name: &[u8]) -> Option<&Arc<Group>> {
        self.groups()
            .find(|group| group.subsystem() == subsystem && group.name().eq_ignore_ascii_case(name))
    }

    /// The tables that can be changed at run time.
    pub fn keyval_zones(&self) -> impl Iterator<Item = &Arc<KeyvalZone>> {
        self.each().into_iter().flat_map(|site| &site.shown().keyvals)
    }

    /// What is shown of a subsystem.
    pub fn shown(&self, subsystem: Subsystem) -> &SubsystemStatus {
        match subsystem {
            Subsystem::Stream => self.stream.shown(),
            Subsystem::Main | Subsystem::Http => self.http.shown(),
        }
    }

    /// The table of that name.
    pub fn keyval_zone(&self, subsystem: Subsystem, name: &[u8]) -> Option<&Arc<KeyvalZone>> {
        self.keyval_zones().find(|zone| zone.subsystem == subsystem && *zone.name == *name)
    }

    /// Refuses an address that two of them have.
    fn check(&self) -> Result<()> {
        let mut owners = HashMap::new();
        for site in self.each() {
            for (address, _) in site.sockets() {
                let owner = *owners.entry(address).or_insert(site.block());
                if owner != site.block() {
                    let both = format!("is listened on in {owner} and in {}", site.block());
                    return Err(Error::bare(format!("{address} {both}")));
                }
            }
        }
        Ok(())
    }
}

/// The jobs of the control thread, in the order in which they adopt a configuration.
pub fn control_jobs() -> ControlJobs<Sites> {
    vec![
        Box::new(LimitSharing::default()),
        Box::new(AcmeJob::default()),
        Box::new(StoreJob::default()),
        Box::new(SubsystemJobs { jobs: http::control_jobs(), site: |sites| &sites.http }),
        Box::new(SubsystemJobs { jobs: stream::control_jobs(), site: |sites| &sites.stream }),
    ]
}

struct SubsystemJobs<S> {
    jobs: ControlJobs<Arc<S>>,
    site: fn(&Sites) -> &Arc<S>,
}

impl<S> ControlJob<Sites> for SubsystemJobs<S> {
    fn adopt(&mut self, sites: &Sites, zones: &Zones) {
        self.jobs.iter_mut().for_each(|job| job.adopt((self.site)(sites), zones));
    }

    fn changed(&mut self, group: &Arc<Group>) {
        self.jobs.iter_mut().for_each(|job| job.changed(group));
    }

    fn called(&mut self, call: SteeringCall) -> Option<SteeringCall> {
        self.jobs.iter_mut().try_fold(call, |call, job| job.called(call))
    }

    fn leave(&mut self) {
        self.jobs.iter_mut().for_each(|job| job.leave());
    }

    fn finish(&mut self) -> Pin<Box<dyn Future<Output = ()> + '_>> {
        Box::pin(async {
            for job in &mut self.jobs {
                job.finish().await;
            }
        })
    }
}
