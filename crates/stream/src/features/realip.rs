//! `set_real_ip_from`: takes the client's address from the PROXY header of a trusted proxy
//! (`session::realip`).

use std::rc::Rc;
use std::sync::Arc;

use ::session::forwarded::Proxies;
use ::session::realip;
use ::session::variables::VariableTable;
use conf::Result;

use crate::session::StreamSession;
use crate::site::{Decision, ServerBuilder};

conf::directives! {
    in MAIN | SERVER;

    /// A proxy that is trusted to report the client's address in its PROXY header: an address, a
    /// network, a host name, or every client of a Unix socket.
    ///
    /// Syntax: ADDRESS | CIDR | unix:
    ///
    /// ```nginx
    /// server {
    ///     listen 127.0.0.1:9000 proxy_protocol;
    ///     set_real_ip_from 10.0.0.0/8;
    ///     return "$remote_addr $realip_remote_addr\n";
    /// }
    /// ```
    set_real_ip_from: Option<Proxies>,
}

pub(crate) const VARIABLES: VariableTable<StreamSession> =
    VariableTable::new("ngx_stream_realip_module", realip::RealIpVariables::<StreamSession>::TABLE);

/// Adds a handler that runs right after the PROXY header was read.
pub fn install(conf: &Arc<Conf>, place: &mut ServerBuilder<'_, '_>) -> Result<()> {
    if let Some(proxies) = conf.set_real_ip_from.clone() {
        place.server.postaccept.push(place.hook(Box::new(move |x| {
            if let Some(peer) = realip::proxied(&x.client, &proxies) {
                x.client = Rc::new(x.client.speaking_for(peer));
            }
            Decision::Next
        })));
    }
    Ok(())
}
