//! The interface of sessions for the features of both subsystems.

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

/// One use of a connection: an HTTP request, or a whole connection of `stream {}`.
pub trait Session: Values + Sized + 'static {
    /// The type of the subsystem's configuration.
    type Configuration: Configuration<Session = Self>;

    /// The configuration that serves the session.
    fn generation(&self) -> &Rc<WorkerGeneration<Self::Configuration>>;
    fn client(&self) -> &Client;
    /// The values of the session's variables.
    fn values(&mut self) -> &mut SetValues;
    /// The groups of the last regular expression that matched.
    fn captures(&mut self) -> &mut Captures;
    /// Writes a message to the session's error log, with its context.
    fn log(&self, level: Level, message: fmt::Arguments<'_>);

    /// The address of the listening socket that accepted the client's connection.
    fn listen_address(&self) -> Option<&Address> {
        let listen = self.generation().listen(self.client().listen)?;
        Some(Self::Configuration::address(listen))
    }
    /// The port that clients use for the listening socket, or else the one that the client
    /// connected to; `None` on Unix sockets.
    fn server_port(&self) -> Option<u16> {
        let listen = self.generation().listen(self.client().listen);
        let named = listen.and_then(Self::Configuration::server_port);
        named.or_else(|| self.client().local().map(|local| local.port()))
    }
    /// How the session's server verifies client certificates; `None` if it does not request them.
    fn client_trust(&self) -> Option<&ClientTrust>;
    /// An empty vector for temporary text.
    fn scratch(&mut self) -> Vec<u8> {
        Vec::new()
    }
    /// Takes back the vector of [`scratch`](Self::scratch) for reuse.
    fn give_scratch(&mut self, _scratch: Vec<u8>) {}
    /// The client address that a proxy at `ip` forwards, if it is trusted; otherwise `ip`. With
    /// `recursive`, the lookup continues while the forwarded address is a trusted proxy itself.
    fn forwarded(&self, ip: IpAddr, _trusted: &Proxies, _recursive: bool) -> IpAddr {
        ip
    }
}
