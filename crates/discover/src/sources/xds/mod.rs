//! xDS: clusters and their endpoints from a control plane of Envoy, over one aggregated stream.
//!
//! Deliberately absent: everything about how requests are sent, which the server's configuration
//! decides; and the lifetime of resources, because the last lists stay anyway.

mod node;
mod notes;
mod servers;
mod state;
#[cfg(test)]
pub(super) mod testing;
#[cfg(test)]
mod tests;

use std::convert::Infallible;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use wire::xds::{DELTA_PATH, STREAM_PATH};

use super::{Report, Source};
use crate::drive::tell;
use crate::grpc::{GrpcEvent, GrpcStreamCall};
use crate::http::HttpPlace;
use crate::secret::read_secret;
use crate::wanted::WantedGroups;
pub use node::encoded_node;
pub use state::ClusterGroups;
use state::{XdsState, XdsTaken};

/// A stream that ends in good order sooner than this is a failure.
const STREAM_MIN: Duration = Duration::from_secs(10);
/// How long to wait for something when there is nothing else to do.
const WAIT: Duration = Duration::from_secs(60);
/// The names of endpoints that are told when they do not come.
const MISSING_TOLD: usize = 3;

/// How long the control plane may be silent at the beginning of a stream.
#[derive(Clone, Copy, Debug)]
struct XdsPatience {
    /// Until it names the clusters.
    clusters: Duration,
    /// Until the endpoints of all clusters are there, which may never come.
    endpoints: Duration,
    /// A stream of changes that goes on where another one ended says nothing while nothing has
    /// changed: after this silence the lists count as told.
    resumed: Duration,
}

const PATIENCE: XdsPatience = XdsPatience {
    clusters: Duration::from_secs(30),
    endpoints: Duration::from_secs(15),
    resumed: Duration::from_secs(5),
};

pub struct XdsSource {
    patience: XdsPatience,
    place: HttpPlace,
    /// Read for each stream, because the token is replaced now and then.
    token: Option<PathBuf>,
    is_delta: bool,
    state: XdsState,
    /// The stream goes on after a response was refused.
    stream: Option<XdsStream>,
    /// The lists that were told last. Once there are some, new ones do not wait for endpoints.
    told: Option<WantedGroups>,
}

struct XdsStream {
    call: GrpcStreamCall,
    opened: Instant,
    has_told: bool,
}

impl XdsSource {
    /// `node`: the encoded node.
    pub fn new(
        place: HttpPlace,
        groups: ClusterGroups,
        is_delta: bool,
        node: Vec<u8>,
        token: Option<PathBuf>,
    ) -> Self {
        let state = XdsState::new(is_delta, groups, node);
        Self {
            patience: PATIENCE,
            place: place.for_http2(),
            token,
            is_delta,
            state,
            stream: None,
            told: None,
        }
    }

    fn open(&mut self) -> Result<XdsStream, String> {
        let token = self.token.as_deref().map(read_secret).transpose()?;
        let authorization = token.map(|token| format!("Bearer {token}"));
        let fields: Vec<_> =
            authorization.iter().map(|value| ("authorization", &**value)).collect();
        let path = if self.is_delta { DELTA_PATH } else { STREAM_PATH };
        let mut call = GrpcStreamCall::open(&self.place, path, &fields)?;
        for request in self.state.begin() {
            call.send(&request)?;
        }
        Ok(XdsStream { call, opened: Instant::now(), has_told: false })
    }

    /// Takes what happens next. Returns why a response was refused, and whether the stream goes on.
    fn step(&mut self, stream: &mut XdsStream, report: Report<'_>) -> Result<XdsStep, String> {
        let until = self.due(stream);
        match stream.call.receive(until)? {
            GrpcEvent::Message(message) => {
                let mut requests = Vec::new();
                let taken = self.state.take(&message, &mut requests)?;
                for request in requests {
                    stream.call.send(&request)?;
                }
                self.state.notes.lines().iter().for_each(|line| tell(line));
                if let XdsTaken::Rejected(why) = taken {
                    return Ok(XdsStep::Rejected(why));
                }
                if self.may_tell() {
                    self.tell(stream, report)?;
                }
            }
            GrpcEvent::Alive if stream.has_told => self.tell(stream, report)?,
            GrpcEvent::Alive => {}
            GrpcEvent::Silence => self.be_patient(stream, report)?,
            GrpcEvent::Ending => return Ok(XdsStep::Ending),
        }
        Ok(XdsStep::GoesOn)
    }

    /// Whether everything that was asked for has been told at least once.
    fn may_tell(&self) -> bool {
        self.is_known() && (self.told.is_some() || self.state.missing().next().is_none())
    }

    /// Whether the clusters are known, if only from an earlier stream of changes.
    fn is_known(&self) -> bool {
        self.state.has_clusters() || self.is_delta && self.told.is_some()
    }

    fn tell(&mut self, stream: &mut XdsStream, report: Report<'_>) -> Result<(), String> {
        let wanted = self.state.wanted();
        // While something is refused, only news count: the source is not well.
        if self.state.is_rejecting() && self.told.as_ref() == Some(&wanted) {
            return Ok(());
        }
        self.told = Some(wanted.clone());
        stream.has_told = true;
        report(wanted)
    }

    /// When to do something although nothing comes.
    fn due(&self, stream: &XdsStream) -> Instant {
        let XdsPatience { clusters, endpoints, resumed } = self.patience;
        match (stream.has_told, self.is_known()) {
            (true, _) => Instant::now() + WAIT,
            (false, false) => stream.opened + clusters,
            (false, true) if self.told.is_some() => stream.opened + resumed,
            (false, true) => stream.opened + endpoints,
        }
    }

    /// Nothing came until something was due.
    fn be_patient(&mut self, stream: &mut XdsStream, report: Report<'_>) -> Result<(), String> {
        if stream.has_told || Instant::now() < self.due(stream) {
            return Ok(());
        }
        if !self.is_known() {
            let most = self.patience.clusters;
            return Err(format!("the control plane named no clusters within {most:?}"));
        }
        let missing: Vec<&str> = self.state.missing().take(MISSING_TOLD).collect();
        if !missing.is_empty() {
            let names = missing.join(", ");
            tell(&format!("endpoints are missing, and the servers there are stay: {names}"));
        }
        self.tell(stream, report)
    }
}

enum XdsStep {
    GoesOn,
    Rejected(String),
    Ending,
}

impl Source for XdsSource {
    fn watch(&mut self, report: Report<'_>) -> Result<Infallible, String> {
        let mut stream = match self.stream.take() {
            Some(stream) => stream,
            None => self.open()?,
        };
        loop {
            match self.step(&mut stream, report)? {
                XdsStep::GoesOn => {}
                XdsStep::Rejected(why) => {
                    self.stream = Some(stream);
                    return Err(format!("a response is wrong: {why}"));
                }
                XdsStep::Ending if stream.opened.elapsed() >= STREAM_MIN => stream = self.open()?,
                XdsStep::Ending => return Err("the control plane ended the stream".to_owned()),
            }
        }
    }
}
