//! A location while it is compiled: features add their handlers, filters and settings to it.

use std::sync::Arc;

use conf::{Directive, FeatureName, InstallTarget, Load, Registry, Span};
use session::{Hook, WorkerSlot, WorkerSlotKinds};

use super::policy::Policy;
use super::{Exclusive, Generation, Location, LocationId, Locations, ServerName};
use crate::exchange::{
    Exchange, Filter, Filtered, Flow, Handler, LocationBackend, Logger, Phase, PhaseOrder, Reach,
};

/// A location while it is compiled. A feature that is off adds nothing.
pub struct LocationBuilder<'a, 'f> {
    /// Declarations of the configuration: zones, formats, variables.
    pub load: &'a mut Load<'f>,
    /// The position of the block, for errors about its lines as a whole.
    pub at: Span,
    pub name: Box<[u8]>,
    /// The names of the server that it belongs to.
    pub server_names: Arc<[ServerName]>,
    /// The `if` blocks inside, in order.
    pub(crate) ifs: Vec<LocationId>,
    /// The names of its lines, in order.
    pub(crate) lines: Vec<Box<[u8]>>,
    /// Settings of the core and the drivers.
    pub(crate) core: Policy,
    /// Values that a feature leaves for a later one of the feature list, by type.
    pub(crate) handed_on: Registry,
    /// A line that lets every client change something, unless there are access rules.
    needs_access_rules: Option<(Directive, &'static str)>,
    /// The feature that is being installed.
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
            needs_access_rules: None,
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

    /// Adds a handler that runs first, in the server that the client named.
    pub fn postread(&mut self, handler: impl Fn(&mut Exchange) -> Flow + Send + Sync + 'static) {
        self.postread.push(self.hook(Box::new(handler)));
    }

    /// Adds a handler that runs after the location was chosen, and may change the path.
    pub fn rewrite(&mut self, handler: impl Fn(&mut Exchange) -> Flow + Send + Sync + 'static) {
        self.rewrite.push(self.hook(Box::new(handler)));
    }

    /// Adds a handler that runs before access is checked, such as limits.
    pub fn preaccess(&mut self, handler: impl Fn(&mut Exchange) -> Flow + Send + Sync + 'static) {
        self.preaccess.push(self.hook(Box::new(handler)));
    }

    /// Adds a check of access. It grants access ([`Flow::Skip`]), refuses it (a status), or leaves
    /// the decision to other checks ([`Flow::Next`]).
    pub fn access(&mut self, handler: impl Fn(&mut Exchange) -> Flow + Send + Sync + 'static) {
        self.access.push(self.hook(Box::new(handler)));
    }

    /// Adds a handler that runs after access was granted, such as `try_files`.
    pub fn precontent(&mut self, handler: impl Fn(&mut Exchange) -> Flow + Send + Sync + 'static) {
        self.precontent.push(self.hook(Box::new(handler)));
    }

    /// Adds a content handler. Content handlers are tried in order until one answers.
    pub fn content(&mut self, handler: impl Fn(&mut Exchange) -> Flow + Send + Sync + 'static) {
        self.content.push(self.hook(Box::new(handler)));
    }

    /// Sets the handler that answers all requests of this location, for the directive `name`.
    pub fn exclusive(
        &mut self,
        name: &str,
        handler: impl Fn(&mut Exchange) -> Flow + Send + Sync + 'static,
    ) {
        self.answer_all(name, Exclusive::Handler(Box::new(handler)));
    }

    /// Sets the backend that answers all requests of this location, for the directive `name`. A
    /// request for the location's name without its final slash is redirected to it.
    pub fn backend(&mut self, name: &str, backend: Arc<dyn LocationBackend>) {
        self.answer_all(name, Exclusive::Backend(backend));
        self.redirect_slashless();
    }

    /// Redirects requests for the location's name without its final slash to it.
    pub fn redirect_slashless(&mut self) {
        self.adds_slash = true;
    }

    /// Of several such directives, the last one in the block wins.
    fn answer_all(&mut self, name: &str, exclusive: Exclusive) {
        let line = self.lines.iter().rposition(|line| **line == *name.as_bytes()).unwrap_or(0);
        if self.exclusive.as_ref().is_none_or(|(other, ..)| line >= *other) {
            self.exclusive = Some((line, exclusive, self.feature));
        }
    }

    /// Adds a filter of all replies, those of subrequests included.
    pub fn filter(&mut self, filter: impl Fn(&mut Exchange) -> Filtered + Send + Sync + 'static) {
        self.filters.push((Reach::All, self.hook(Box::new(filter))));
    }

    /// Adds a filter of replies to the client, not of subrequests.
    pub fn main_filter(
        &mut self,
        filter: impl Fn(&mut Exchange) -> Filtered + Send + Sync + 'static,
    ) {
        self.filters.push((Reach::Main, self.hook(Box::new(filter))));
    }

    fn hook<F>(&self, run: F) -> Hook<F> {
        Hook { feature: self.feature, run }
    }

    /// Adds a function that is called after the whole body was produced, before trailers are
    /// written.
    pub fn end(&mut self, end: impl Fn(&mut Exchange) + Send + Sync + 'static) {
        self.ends.push(Box::new(end));
    }

    /// Adds a function that is called when the exchange is over.
    pub fn logger(&mut self, logger: impl Fn(&mut Exchange) + Send + Sync + 'static) {
        self.loggers.push(Box::new(logger));
    }

    /// Declares state that every worker has in each generation: `x.generation.worker.of::<T>()`.
    pub fn worker_slot<T: WorkerSlot<Generation>>(&mut self) {
        self.load.own.of::<WorkerSlotKinds<Generation>>().declare::<T>();
    }

    /// Says that a line lets every client change something, unless there are access rules.
    pub fn needs_access_rules(&mut self, line: Directive) {
        let help = "add \"allow\" and \"deny\", or \"auth_basic\", or listen on a Unix socket only";
        self.needs_access_rules_or(line, help);
    }

    /// The same of a line that can be restricted otherwise, as `help` says.
    pub fn needs_access_rules_or(&mut self, line: Directive, help: &'static str) {
        self.needs_access_rules = Some((line, help));
    }

    /// Warns of a line that clients over TCP can use without access rules.
    pub(crate) fn check_access_rules(&mut self) {
        let needed = self.needs_access_rules.take();
        let Some((line, help)) = needed.filter(|_| self.access.is_empty()) else { return };
        let who = "whoever reaches this server over TCP can change what it does";
        let words = line.args.iter().map(|word| format!(" {word}")).collect::<String>();
        let warning = format!("\"{}{words}\" without access rules: {who}", line.name);
        self.load.warn(line.error(warning).help(help));
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
