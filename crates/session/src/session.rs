//! What the features of both subsystems ask of a session.

use std::fmt;
use std::net::IpAddr;
use std::rc::Rc;

use conf::Values;
use net::Address;
use observe::Level;

use crate::forwarded::Proxies;
use crate::values::SetValues;
use crate::variables::Variables;
use crate::{Captures, Client};

/// One use of a connection: a request of HTTP, or a connection of `stream {}` from its beginning
/// to its end.
pub trait Session: Values + Sized + 'static {
    /// The configuration that it is served by.
    type Configuration: Variables<Self>;

    /// The configuration that it is served by.
    fn configuration(&self) -> Rc<Self::Configuration>;
    /// Whose it is.
    fn client(&self) -> &Client;
    /// Where the client's connection came in.
    fn listen_address(&self) -> Option<Address>;
    /// The values that variables have in it.
    fn values(&mut self) -> &mut SetValues;
    /// The groups of the last regular expression that matched.
    fn captures(&mut self) -> &mut Captures;
    /// Writes a message to its error log, with its context.
    fn log(&self, level: Level, message: fmt::Arguments<'_>);

    /// An empty vector for text that is needed for a moment.
    fn scratch(&mut self) -> Vec<u8> {
        Vec::new()
    }
    /// Takes the vector back.
    fn give_scratch(&mut self, _scratch: Vec<u8>) {}
    /// The address that trusted proxies speak for, if it was one of them that connected from `ip`;
    /// `recursive`: the one that the first of them speaks for.
    fn forwarded(&self, ip: IpAddr, _trusted: &Proxies, _recursive: bool) -> IpAddr {
        ip
    }
}
