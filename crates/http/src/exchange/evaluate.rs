//! The values of an exchange's variables.

use std::fmt;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;

use ::upstream::Group;
use conf::{Values, VariableId};
use net::tls::ClientTrust;
use observe::Level;
use session::backend::{Attempts, Backed};
use session::evaluate;
use session::forwarded::{Proxies, forwarded};
use session::values::SetValues;
use session::{Captures, Client, Session};
use wire::Known;

use super::Exchange;
use crate::site::{Generation, Site};

impl Session for Exchange {
    type Configuration = Site;

    fn generation(&self) -> &Rc<Generation> {
        &self.generation
    }
    fn client(&self) -> &Client {
        &self.client
    }
    fn values(&mut self) -> &mut SetValues {
        &mut self.values
    }
    fn captures(&mut self) -> &mut Captures {
        &mut self.captures
    }
    fn log(&self, level: Level, message: fmt::Arguments<'_>) {
        Exchange::log(self, level, message);
    }
    fn client_trust(&self) -> Option<&ClientTrust> {
        self.server().tls.clients.as_ref()?.trust()
    }
    fn scratch(&mut self) -> Vec<u8> {
        Exchange::scratch(self)
    }
    fn give_scratch(&mut self, scratch: Vec<u8>) {
        Exchange::give_scratch(self, scratch);
    }
    fn forwarded(&self, ip: IpAddr, trusted: &Proxies, recursive: bool) -> IpAddr {
        let fields = self.request.head.fields_of(Known::XForwardedFor);
        let lines = fields.map(|field| self.request.text(field.value));
        forwarded(Some(ip), lines, trusted, recursive).map_or(ip, |(ip, _)| ip)
    }
}

impl Backed for Exchange {
    fn attempts(&self) -> &Attempts {
        &self.backends.attempts
    }
    fn limited(&self) -> Option<&Arc<Group>> {
        self.backends.limited.as_ref()
    }
    fn action(&mut self) -> &mut &'static str {
        &mut self.action
    }
}

impl Values for Exchange {
    fn variable(&mut self, id: VariableId, out: &mut Vec<u8>) -> bool {
        evaluate::append(self, id, out)
    }

    fn capture(&mut self, group: u8, out: &mut Vec<u8>) {
        out.extend_from_slice(self.captures.group(group.into()).unwrap_or_default());
    }
}
