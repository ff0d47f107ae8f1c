//! `set_real_ip_from` and its companions: takes the client's address from a trusted proxy.
//!
//! It applies to one exchange. The connection keeps its client. The client of the exchange, its
//! variables and its log lines is replaced when the address is found first.

#[cfg(test)]
mod tests;

use std::iter::once;
use std::net::SocketAddr;
use std::sync::Arc;

use ::session::forwarded::{Proxies, forwarded};
use ::session::realip;
use conf::{Directive, Load, Result, Value};
use wire::Known;

use crate::exchange::{Exchange, Flow};
use crate::site::LocationBuilder;
use crate::variables::VariableTable;

conf::directives! {
    in MAIN | SERVER | LOCATION;

    /// A proxy that is trusted to report the client's address: an address, a network, a host name,
    /// or every client of a Unix socket.
    ///
    /// Syntax: ADDRESS | CIDR | unix:
    ///
    /// ```nginx
    /// set_real_ip_from 10.0.0.0/8;
    /// real_ip_header X-Forwarded-For;
    /// real_ip_recursive on;
    /// ```
    set_real_ip_from: Option<Proxies>,
    /// Where a trusted proxy writes the client's address: a field of the request, or the PROXY
    /// protocol.
    ///
    /// Syntax: FIELD | X-Real-IP | X-Forwarded-For | proxy_protocol
    ///
    /// ```nginx
    /// real_ip_header X-Forwarded-For;
    /// ```
    real_ip_header: RealIpField = "X-Real-IP",
    /// Whether the last address in the list that is not a trusted proxy is used, instead of the
    /// last one.
    ///
    /// ```nginx
    /// real_ip_recursive on;
    /// ```
    real_ip_recursive: bool = "off",
}

/// Where a proxy sends the client's address.
#[derive(Clone)]
pub enum RealIpField {
    XRealIp,
    /// `X-Forwarded-For`, all lines.
    XForwardedFor,
    ProxyProtocol,
    /// The first line of another field.
    Field(Box<[u8]>),
}

impl Value for RealIpField {
    fn parse(from: &Directive, _: &mut Load<'_>) -> Result<Self> {
        let name = &from.arg(0).text;
        Ok(match &**name {
            b"X-Real-IP" => Self::XRealIp,
            b"X-Forwarded-For" => Self::XForwardedFor,
            b"proxy_protocol" => Self::ProxyProtocol,
            _ => Self::Field(name.clone()),
        })
    }
}

/// `$realip_...`: the client of the connection.
pub(crate) const VARIABLES: VariableTable =
    VariableTable::new("ngx_http_realip_module", realip::RealIpVariables::<Exchange>::TABLE);

/// Adds a handler that runs first in the server, and again in the location.
pub fn install(conf: &Arc<Conf>, location: &mut LocationBuilder<'_, '_>) -> Result<()> {
    if conf.set_real_ip_from.is_some() {
        let (early, late) = (conf.clone(), conf.clone());
        location.postread(move |x| early.find_client(x));
        location.preaccess(move |x| late.find_client(x));
    }
    Ok(())
}

impl Conf {
    fn find_client(&self, x: &mut Exchange) -> Flow {
        if x.client.behind.is_none()
            && let Some(peer) = self.peer(x)
        {
            x.speak_for(peer);
        }
        Flow::Next
    }

    /// The address that the client sends as a trusted proxy.
    fn peer(&self, x: &Exchange) -> Option<SocketAddr> {
        let proxies = self.set_real_ip_from.as_ref()?;
        let from = x.client.peer.map(|peer| peer.ip());
        let (request, recursive) = (&x.request, self.real_ip_recursive);
        let one = |value: &[u8]| forwarded(from, once(value), proxies, recursive);
        let (ip, port) = match &self.real_ip_header {
            RealIpField::XRealIp => one(request.field(Known::XRealIp)?)?,
            RealIpField::XForwardedFor => {
                let fields = request.head.fields_of(Known::XForwardedFor);
                let lines = fields.map(|field| request.text(field.value));
                forwarded(from, lines, proxies, recursive)?
            }
            RealIpField::ProxyProtocol => return realip::proxied(&x.client, proxies),
            RealIpField::Field(name) => {
                let named = |field: &[u8]| field.eq_ignore_ascii_case(name);
                let mut fields = request.head.fields.iter();
                let field = fields.find(|field| named(request.text(field.name)))?;
                one(request.text(field.value))?
            }
        };
        Some(SocketAddr::new(ip, port))
    }
}
