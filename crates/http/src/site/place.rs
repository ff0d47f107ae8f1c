//! Where features hook in while a location is compiled.

use std::sync::Arc;

use conf::{FeatureName, InstallTarget, Load, Registry, Span};
use session::{Hook, WorkerSlot, WorkerSlotKinds};

use super::policy::Policy;
use super::{Exclusive, Generation, Location, LocationId, Locations, ServerName};
use crate::exchange::{
    Exchange, Filter, Filtered, Flow, Handler, LocationBackend, Logger, Phase, PhaseOrder, Reach,
};

/// A location being compiled. A feature that is off leaves nothing here.
pub struct LocationBuilder<'a, 'f> {
    /// What has been declared: zones, formats, variables.
    pub load: &'a mut Load<'f>,
    /// Where the block begins: for errors about what its lines come to together.
    pub at: Span,
    /// The location's name.
    pub name: Box<[u8]>,
    /// The names of the server that it belongs to.
    pub server_names: Arc<[ServerName]>,
    /// The `if` blocks inside, in order.
    pub(crate) ifs: Vec<LocationId>,
    /// The names of its lines, in order.
    pub(crate) lines: Vec<Box<[u8]>>,
    /// What the core and the driver ask for.
    pub(crate) core: Policy,
    /// What a feature leaves for one that is listed after it, by type.
    pub(crate) handed_on: Registry,
    /// Whose turn it is to hook in.
    feature: FeatureName,
    postread: Vec<Hook<Handler>>,
    rewrite: Vec<Hook<Handler>>,
    preaccess: Vec<Hook<Handler>>,
    access: Vec<Hook<Handler>>,
    precontent: Vec<Hook<Handler>>,
    content: Vec<Hook<Handler>>,
    exclusive: Option<(usize, Exclusive, FeatureName)>,
    adds_slash: bool,
    filters: Vec<(Reach, Hook<Filter>)>,
    ends: Vec<Logger>,
    loggers: Vec<Logger>,
}

impl<'a, 'f> LocationBuilder<'a, 'f> {
    pub(crate) fn new(
        load: &'a mut Load<'f>,
        at: Span,
        name: Box<[u8]>,
        server_names: Arc<[ServerName]>,
    ) -> Self {
        Self {
            load,
            at,
            name,
            server_names,
            ifs: Vec::new(),
            lines: Vec::new(),
            core: Policy::default(),
            handed_on: Registry::default(),
            feature: FeatureName::default(),
            postread: Vec::new(),
            rewrite: Vec::new(),
            preaccess: Vec::new(),
            access: Vec::new(),
            precontent: Vec::new(),
            content: Vec::new(),
            exclusive: None,
            adds_slash: false,
            filters: Vec::new(),
            ends: Vec::new(),
            loggers: Vec::new(),
        }
    }

    /// Runs before anything else, in the server that the client named.
    pub fn postread(&mut self, handler: impl Fn(&mut Exchange) -> Flow + Send + Sync + 'static) {
        self.postread.push(self.hook(Box::new(handler)));
    }

    /// Runs after the location is chosen; may change the path.
    pub fn rewrite(&mut self, handler: impl Fn(&mut Exchange) -> Flow + Send + Sync + 'static) {
        self.rewrite.push(self.hook(Box::new(handler)));
    }

    /// Runs before access is checked: limits.
    pub fn preaccess(&mut self, handler: impl Fn(&mut Exchange) -> Flow + Send + Sync + 'static) {
        self.preaccess.push(self.hook(Box::new(handler)));
    }

    /// Grants ([`Flow::Skip`]), refuses (a status) or leaves it to others ([`Flow::Next`]).
    pub fn access(&mut self, handler: impl Fn(&mut Exchange) -> Flow + Send + Sync + 'static) {
        self.access.push(self.hook(Box::new(handler)));
    }

    /// Runs after access is granted: `try_files`.
    pub fn precontent(&mut self, handler: impl Fn(&mut Exchange) -> Flow + Send + Sync + 'static) {
        self.precontent.push(self.hook(Box::new(handler)));
    }

    /// May answer, else the next is asked: `index`, files.
    pub fn content(&mut self, handler: impl Fn(&mut Exchange) -> Flow + Send + Sync + 'static) {
        self.content.push(self.hook(Box::new(handler)));
    }

    /// Answers everything in this location, as the line `name` says.
    pub fn exclusive(
        &mut self,
        name: &str,
        handler: impl Fn(&mut Exchange) -> Flow + Send + Sync + 'static,
    ) {
        self.answer_all(name, Exclusive::Handler(Box::new(handler)));
    }

    /// Answers everything in this location, as the line `name` says, but always waits before it
    /// does. Who asks for the location's name without the slash it ends with is sent there.
    pub fn backend(&mut self, name: &str, backend: Arc<dyn LocationBackend>) {
        self.answer_all(name, Exclusive::Backend(backend));
        self.adds_slash = true;
    }

    /// Of several such lines, the last counts.
    fn answer_all(&mut self, name: &str, exclusive: Exclusive) {
        let line = self.lines.iter().rposition(|line| **line == *name.as_bytes()).unwrap_or(0);
        if self.exclusive.as_ref().is_none_or(|(other, ..)| line >= *other) {
            self.exclusive = Some((line, exclusive, self.feature));
        }
    }

    /// Sits on the way out of every reply, be it a subrequest's.
    pub fn filter(&mut self, filter: impl Fn(&mut Exchange) -> Filtered + Send + Sync + 'static) {
        self.filters.push((Reach::All, self.hook(Box::new(filter))));
    }

    /// Sits on the way out of the reply that the client gets.
    pub fn main_filter(
        &mut self,
        filter: impl Fn(&mut Exchange) -> Filtered + Send + Sync + 'static,
    ) {
        self.filters.push((Reach::Main, self.hook(Box::new(filter))));
    }

    fn hook<F>(&self, run: F) -> Hook<F> {
        Hook { feature: self.feature, run }
    }

    /// Is told when all of the body has been given, before the fields after it are written.
    pub fn end(&mut self, end: impl Fn(&mut Exchange) + Send + Sync + 'static) {
        self.ends.push(Box::new(end));
    }

    /// Is told when the exchange is over.
    pub fn logger(&mut self, logger: impl Fn(&mut Exchange) + Send + Sync + 'static) {
        self.loggers.push(Box::new(logger));
    }

    /// Every worker has a `T` of its own in each generation: `x.generation.worker.of::<T>()`.
    pub fn worker_slot<T: WorkerSlot<Generation>>(&mut self) {
        self.load.own.of::<WorkerSlotKinds<Generation>>().declare::<T>();
    }

    pub(crate) fn finish(
        self,
        inner: Locations,
        limit_except: Option<(u32, LocationId)>,
        pool_number: u64,
    ) -> Location {
        let phases = PhaseOrder::new(|phase| match phase {
            Phase::Preaccess => self.preaccess.is_empty(),
            Phase::Access => self.access.is_empty(),
            Phase::Precontent => self.precontent.is_empty(),
            _ => false,
        });
        let (exclusive, exclusive_of) = match self.exclusive {
            Some((_, exclusive, feature)) => (Some(exclusive), feature),
            None => (None, FeatureName::default()),
        };
        Location {
            name: self.name,
            inner,
            phases,
            postread: self.postread.into(),
            rewrite: self.rewrite.into(),
            preaccess: self.preaccess.into(),
            access: self.access.into(),
            precontent: self.precontent.into(),
            content: self.content.into(),
            exclusive,
            exclusive_of,
            adds_slash: self.adds_slash,
            filters: self.filters.into(),
            ends: self.ends.into(),
            loggers: self.loggers.into(),
            limit_except,
            pool_number,
            core: self.core,
        }
    }
}

impl InstallTarget for LocationBuilder<'_, '_> {
    fn installing(&mut self, feature: FeatureName) {
        self.feature = feature;
    }
}
