//! The subsystems of the program, `http {}` and `stream {}`: the list of those there are.

use std::sync::Arc;

use conf::Zones;
use session::limits::LimitSharing;
use session::{ControlJob, ControlJobs};

use crate::load::Sites;

/// The jobs of the control thread, in the order in which they adopt a configuration.
pub fn control_jobs() -> ControlJobs<Sites> {
    vec![
        Box::new(LimitSharing::default()),
        Box::new(SubsystemJobs { jobs: http::control_jobs(), site: |sites| &sites.http }),
        Box::new(SubsystemJobs { jobs: stream::control_jobs(), site: |sites| &sites.stream }),
    ]
}

/// The jobs of one subsystem.
struct SubsystemJobs<S> {
    jobs: ControlJobs<Arc<S>>,
    site: fn(&Sites) -> &Arc<S>,
}

impl<S> ControlJob<Sites> for SubsystemJobs<S> {
    fn adopt(&mut self, sites: &Sites, zones: &Zones) {
        self.jobs.iter_mut().for_each(|job| job.adopt((self.site)(sites), zones));
    }

    fn leave(&mut self) {
        self.jobs.iter_mut().for_each(|job| job.leave());
    }
}
