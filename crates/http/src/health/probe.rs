//! The two kinds of probes.

use std::fmt;
use std::sync::Arc;

use ::session::health::{HealthProbe, Verdict};
use ::upstream::Server;
use observe::{Level, MessageSource};

use super::{location, server};
use crate::backend::check::KeptConnection;

#[derive(Clone)]
pub(super) enum BackendProbe {
    /// With requests of a location's backend (`health_check`).
    Location(location::LocationProbe),
    /// As an `upstream` block demands (`check`).
    Server(server::ServerProbe),
}

impl HealthProbe for BackendProbe {
    type Kept = KeptConnection;

    async fn ask(
        &self,
        server: &Arc<Server>,
        kept: Option<KeptConnection>,
    ) -> (Verdict, Option<KeptConnection>) {
        match self {
            Self::Location(probe) => probe.ask(server, kept).await,
            Self::Server(probe) => probe.ask(server, kept).await,
        }
    }

    fn match_name(&self) -> &[u8] {
        match self {
            Self::Location(probe) => probe.check().matching.name(),
            Self::Server(_) => b"",
        }
    }

    fn port(&self) -> Option<u16> {
        match self {
            Self::Location(probe) => probe.check().port,
            Self::Server(probe) => probe.check.port,
        }
    }

    fn log(&self, level: Level, message: fmt::Arguments<'_>) {
        match self {
            Self::Location(probe) => {
                probe.log().write(level, MessageSource::default(), message, |_| ());
            }
            Self::Server(_) => observe::log(level, message),
        }
    }
}
