//! What the features of both subsystems ask of a session.

use std::fmt;
use std::net::IpAddr;
use std::rc::Rc;

use conf::Values;
use net::Address;
use net::tls::ClientTrust;
use observe::Level;

use crate::forwarded::Proxies;
use crate::values::SetValues;
use crate::{Captures, Client, Configuration, WorkerGeneration};

/// One use of a connection: a request of HTTP, or a connection of `stream {}` from its beginning
/// to its end.
pub trait Session: Values + Sized + 'static {
    /// The configuration that serves it.
    type Configuration: Configuration<Session = Self>;

    /// The configuration that serves it.
    fn generation(&self) -> &Rc<WorkerGeneration<Self::Configuration>>;
    /// The client.
    fn client(&self) -> &Client;
    /// The values of its variables.
    fn values(&mut self) -> &mut SetValues;
    /// The groups of the last regular expression that matched.
    fn captures(&mut self) -> &mut Captures;
    /// Writes a message to its error log, with its context.
    fn log(&self, level: Level, message: fmt::Arguments<'_>);

    /// The address of the listening socket that accepted the client's connection.
    fn listen_address(&self) -> Option<&Address> {
        let listen = self.generation().listen(self.client().listen)?;
        Some(Self::Configuration::address(listen))
    }
    /// The port that the client connected to, as clients name it; `None` on Unix sockets.
    fn server_port(&self) -> Option<u16> {
        let listen = self.generation().listen(self.client().listen);
        let named = listen.and_then(Self::Configuration::server_port);
        named.or_else(|| self.client().local().map(|local| local.port()))
    }
    /// How its server verifies certificates of clients, if it asks for them.
    fn client_trust(&self) -> Option<&ClientTrust>;
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
