//! Publishing what a configuration shows, as a job of the control thread.

use std::sync::Arc;

use conf::Subsystem;
use zones::Zones;

use super::published::publish;
use crate::control_job::ControlJob;
use crate::generation::Configuration;

/// Shows each configuration from the moment on in which it is served.
pub struct StatusJob(pub Subsystem);

impl<C: Configuration> ControlJob<Arc<C>> for StatusJob {
    fn adopt(&mut self, site: &Arc<C>, _: &Zones) {
        publish(self.0, site.status());
    }

    fn leave(&mut self) {}
}
