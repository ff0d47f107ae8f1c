//! The values of an exchange's variables, and what variables ask of it.

use std::fmt;
use std::net::IpAddr;
use std::rc::Rc;

use conf::{Values, VariableId};
use net::Address;
use observe::Level;
use session::evaluate;
use session::forwarded::{Proxies, forwarded};
use session::values::{SetValues, TooLong};
use session::variables::Variables;
use session::{Captures, Client, Session};
use wire::Known;

use super::Exchange;
use crate::site::Generation;
use crate::variables::Variable;

impl Variables<Exchange> for Generation {
    fn variable(&self, id: VariableId) -> &Variable {
        (**self).variable(id)
    }
}

impl Session for Exchange {
    type Configuration = Generation;

    fn configuration(&self) -> Rc<Generation> {
        self.generation.clone()
    }
    fn client(&self) -> &Client {
        &self.client
    }
    fn listen_address(&self) -> Option<Address> {
        self.generation.listen(self.client.listen).map(|listen| listen.address.clone())
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

impl Exchange {
    /// Gives a variable its value. `Err`: there is no room for it, which has been logged.
    pub fn set_value(&mut self, id: VariableId, value: &[u8]) -> Result<(), TooLong> {
        evaluate::set(self, id, value)
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
